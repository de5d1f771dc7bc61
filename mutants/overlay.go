package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// plant applies the mutant's patch to copies of the files that it touches, in
// folder, and returns the file for the -overlay of the go command. The tree
// stays as it is.
func (m *mutant) plant(root, folder string) (overlay string, err error) {
	replace := map[string]string{}
	for _, file := range m.files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		twin := filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(twin), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(twin, text, 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = twin
	}
	if len(m.patch) > 0 {
		git := exec.Command("git", "apply", "-")
		git.Dir = folder
		git.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(folder)) // in no repository
		git.Stdin = bytes.NewReader(m.patch)
		if out, err := git.CombinedOutput(); err != nil {
			return "", fmt.Errorf("git apply: %w: %s", err, bytes.TrimSpace(out))
		}
	}
	text, err := json.Marshal(struct{ Replace map[string]string }{replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}
