package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// buildID names what this program was built from: two programs of one name run
// every scenario alike. Where the build tells it, that is the commit, which is
// the same for all systems; a commit with changes, a build that knows of no commit
// such as that of go run, and one in another module are named by the bytes of the
// program itself.
func buildID() (string, error) {
	if info, ok := debug.ReadBuildInfo(); ok {
		if revision := cleanRevision(info); revision != "" {
			return revision, nil
		}
	}
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err = io.Copy(hash, f); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return "sha256 " + hex.EncodeToString(hash.Sum(nil)), nil
}

// cleanRevision is the commit of a build without changes, or "".
func cleanRevision(info *debug.BuildInfo) string {
	setting := map[string]string{}
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	if setting["vcs.modified"] != "false" || setting["vcs.revision"] == "" {
		return ""
	}
	return setting["vcs"] + " " + setting["vcs.revision"]
}
