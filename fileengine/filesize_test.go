//go:build linux || darwin

package fileengine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/fileengine"
)

const envLimited = "FILEENGINE_LIMITED_DIR"

func init() { processes[envLimited] = meetLimit }

// meetLimit fills the log up to what the system lets a file of this process have,
// and goes on when it may have more. It says what the error was, and how many
// jobs were acknowledged.
func meetLimit(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	var endless syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &endless); err != nil {
		return err
	}
	limit := endless
	limit.Cur = 1000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	eng, _, err := fileengine.Open(dir, tickonce.Config{}, fileengine.Options{})
	if err != nil {
		return err
	}
	enqueue := func() error {
		_, err := eng.Enqueue(context.Background(), queue, make([]byte, 90), tickonce.EnqueueOptions{})
		return err
	}
	jobs := 0
	for err = enqueue(); err == nil; err = enqueue() {
		jobs++
	}
	for range 3 {
		if again := enqueue(); !errors.Is(again, syscall.EFBIG) {
			return fmt.Errorf("%w after %w", again, err)
		}
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &endless); err != nil {
		return err
	}
	for range 3 {
		if err := enqueue(); err != nil {
			return err
		}
		jobs++
	}
	fmt.Printf("%v\n%d", err, jobs)
	return eng.Close()
}

// A disk of the operating system takes no more, halfway through a record, and
// later takes more. The process goes on, and nothing is missing.
func TestD2AFileThatMayNotGrowKeepsTheStateUntilItMay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envLimited+"="+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	said := regexp.MustCompile(`^enqueue: queue "q": write (.*): file too large; nothing has changed, and the next call is tried again: .*\n(\d+)$`).FindSubmatch(out)
	require.NotNil(t, said, "%s", out)
	require.Equal(t, filepath.Join(dir, "log-00000001"), string(said[1]))

	eng, found, err := fileengine.Open(dir, tickonce.Config{}, fileengine.Options{})
	require.NoError(t, err)
	require.Empty(t, found.Dropped)
	q, err := eng.Queue(t.Context(), queue)
	require.NoError(t, err)
	require.Equal(t, string(said[2]), fmt.Sprint(q.Pending))
	require.NoError(t, eng.Close())
}
