package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// npmFolder is that of the npm package, whose tests are run by npm: those of its
// sources, which are bundled anew, beside the guest that was built of the tree.
const npmFolder = "wasm/js"

// npm runs the tests of the npm package with the sources that are planted in
// folder. It returns nil if none fails.
func (s *suite) npm(ctx context.Context, folder string) (*kill, error) {
	if err := s.installed(ctx); err != nil {
		return nil, err
	}
	twin, err := s.twin(folder)
	if err != nil {
		return nil, err
	}
	if out, err := npm(ctx, twin, "run", "--silent", "build:sources").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("does not compile: %w\n%s", err, bytes.TrimSpace(out))
	}
	running, stop := context.WithTimeout(ctx, s.timeout)
	defer stop()
	tests := npm(running, twin, "run", "--silent", "test:sources")
	told, err := tests.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := tests.Start(); err != nil {
		return nil, err
	}
	k := judgeTAP(told)
	if k != nil {
		stop() // one is enough
	}
	result := tests.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case k != nil:
	case running.Err() != nil:
		k = &kill{How: timedOut}
	case result != nil:
		k = &kill{How: failed}
	}
	if k != nil {
		k.Package = npmFolder
	}
	return k, nil
}

// judgeTAP reads what node --test says as TAP, up to the end of the first test
// that fails, and answers which that is, nil if none does.
func judgeTAP(told io.Reader) (k *kill) {
	for lines := bufio.NewScanner(told); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		rest, fails := strings.CutPrefix(line, "not ok ")
		switch {
		case fails && k == nil:
			_, name, _ := strings.Cut(rest, " - ")
			k = &kill{Test: strings.ReplaceAll(name, `\#`, "#"), How: failed}
		case k == nil:
		case line == "failureType: 'testTimeoutFailure'":
			k.How = timedOut
		case line == "...": // the end of what is said of it
			return k
		}
	}
	return k
}

// installed installs what the tests need and builds the package of the tree,
// once: the guest is of Go, which no mutant of the package changes.
func (s *suite) installed(ctx context.Context) error {
	s.installing.Do(func() {
		for _, args := range [][]string{{"ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"}, {"run", "--silent", "build"}} {
			if out, err := npm(ctx, filepath.Join(s.root, npmFolder), args...).CombinedOutput(); err != nil {
				s.uninstalled = fmt.Errorf("npm %s: %w\n%s", args[0], err, bytes.TrimSpace(out))
				return
			}
		}
	})
	return s.uninstalled
}

// twin fills the folder of a mutant up to a package: its sources and tests are
// copies, as far as they are not planted there, and the rest is that of the tree.
func (s *suite) twin(folder string) (string, error) {
	twin, tree := filepath.Join(folder, npmFolder), filepath.Join(s.root, npmFolder)
	if err := os.MkdirAll(twin, 0o755); err != nil {
		return "", err
	}
	for _, link := range []string{npmFolder + "/node_modules", npmFolder + "/dist", "wasm/testdata"} {
		if err := os.Symlink(filepath.Join(s.root, link), filepath.Join(folder, link)); err != nil {
			return "", err
		}
	}
	return twin, fs.WalkDir(os.DirFS(tree), ".", func(path string, entry fs.DirEntry, err error) error {
		own := filepath.Join(twin, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == "node_modules" || path == "dist" || path == "build"):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(own, 0o755)
		}
		if _, err := os.Stat(own); !errors.Is(err, os.ErrNotExist) {
			return err // it is planted
		}
		text, err := os.ReadFile(filepath.Join(tree, path))
		if err != nil {
			return err
		}
		return os.WriteFile(own, text, 0o644)
	})
}

// npm is a command of npm in a folder. It is ended by an interrupt, which npm and
// node pass on to what they have begun.
func npm(ctx context.Context, folder string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "npm", args...)
	cmd.Dir = folder
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = graceTime
	return cmd
}
