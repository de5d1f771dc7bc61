package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// kill is the end of a mutant.
type kill struct {
	Package string `json:"package"`
	Test    string `json:"test"` // "" if the package failed outside a test
	How     how    `json:"how"`
}

type how string

const (
	failed   how = "failed"
	panicked how = "panicked"
	timedOut how = "timed out"
)

// suite runs tests of packages, each in its module, under an overlay.
type suite struct {
	root    string
	timeout time.Duration // of one package's tests

	installing  sync.Once // the npm package
	uninstalled error
}

// besides are the tests of the repository itself: they read its files, in which
// there is no bug, and take their time for it.
const besides = "^Test(Layering|Bans|Contract)"

// graceTime is how long tests may go on once one has failed: so long a panic
// takes to be told, and no longer may what then hangs hold up the campaign.
const graceTime = 10 * time.Second

// run runs the tests of the packages, one after the other, until one fails. It
// returns nil if none does. Binaries go to folder.
func (s *suite) run(ctx context.Context, overlay, folder string, packages []string) (*kill, error) {
	for _, pkg := range packages {
		if pkg == npmFolder {
			k, err := s.npm(ctx, folder)
			if err != nil || k != nil {
				return k, err
			}
			continue
		}
		binary := filepath.Join(folder, "tests")
		if err := build(ctx, filepath.Join(s.root, pkg), "test", "-c", "-overlay", overlay, "-o", binary, "."); err != nil {
			return nil, err
		}
		k, err := s.test(ctx, binary, pkg)
		if err != nil || k != nil {
			return k, err
		}
	}
	return nil, nil
}

// build runs the go command in the folder, to compile.
func build(ctx context.Context, folder string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("does not compile: %w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

// test runs the tests in the binary. It is not go test that runs them, since
// that leaves them running when it is killed.
func (s *suite) test(ctx context.Context, binary, pkg string) (*kill, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	tests := exec.CommandContext(running, binary, "-test.v=test2json", "-test.short", "-test.failfast",
		"-test.skip="+besides, "-test.timeout="+s.timeout.String())
	tests.Dir = filepath.Join(s.root, pkg)
	// The same values drawn by rapid at each run, and no file of a failure in the tree.
	tests.Env = append(os.Environ(), "RAPID_SEED=1", "RAPID_NOFAILFILE=true")
	said, err := tests.StdoutPipe()
	if err != nil {
		return nil, err
	}
	tests.Stderr = tests.Stdout
	events := exec.CommandContext(ctx, "go", "tool", "test2json")
	events.Stdin = said
	told, err := events.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(tests.Start(), events.Start()); err != nil {
		return nil, err
	}
	k, err := judge(told, func() { time.AfterFunc(graceTime, stop) })
	if err != nil {
		stop()
	}
	result := tests.Wait()
	if err = errors.Join(err, events.Wait(), ctx.Err()); err != nil {
		return nil, fmt.Errorf("tests of %s: %w", pkg, err)
	}
	if k == nil && result != nil {
		k = &kill{How: failed}
	}
	if k != nil {
		k.Package = pkg
	}
	return k, nil
}

// judge reads what test2json says of one package to its end, and answers which
// test failed first, nil if none did. Fails is called when one does.
func judge(told io.Reader, fails func()) (k *kill, err error) {
	for dec := json.NewDecoder(told); ; {
		var e struct{ Action, Test, Output string }
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return k, nil
		} else if err != nil {
			return k, err
		}
		said := func(prefix string) bool {
			return e.Action == "output" && strings.HasPrefix(strings.TrimLeft(e.Output, " "), prefix)
		}
		end := failed
		switch {
		case said("panic: test timed out"):
			end = timedOut
		case said("panic: ") && e.Output[0] != ' ', said("fatal error: "):
			end = panicked
		case !said("--- FAIL: ") && e.Action != "fail":
			continue
		}
		switch {
		case k == nil:
			k = &kill{Test: e.Test, How: end}
			fails()
		case k.How == failed: // a panic is told after the tests that it fails
			k.How = end
		}
	}
}
