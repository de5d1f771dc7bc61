package conversation

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Guest is the guest as a WebAssembly module, which the first call in a process
// builds. It needs go, and to be called in the module's folders.
func Guest(t testing.TB) []byte {
	t.Helper()
	wasm, err := build()
	require.NoError(t, err)
	return wasm
}

var build = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "tickonce.wasm")
	guest := command("build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, "github.com/tickonce/tickonce/wasm/guest")
	guest.Env = append(guest.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if err := run(guest); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// Cache has wazero compile the guest into a folder, for the cache of what the
// test compiles. Under the race detector that is many times faster than to do it
// in the test itself. If the test's wazero does not take it, it compiles anew.
func Cache(t testing.TB, folder string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tickonce.wasm")
	require.NoError(t, os.WriteFile(file, Guest(t), 0o666))
	const version = "github.com/tetratelabs/wazero/internal/version.version=dev" // as tests have it
	require.NoError(t, run(command("run", "-ldflags=-X="+version, "github.com/tetratelabs/wazero/cmd/wazero", "compile", "-cachedir", folder, file)))
}

func command(arguments ...string) *exec.Cmd { return exec.Command("go", arguments...) }

func run(c *exec.Cmd) error {
	if out, err := c.CombinedOutput(); err != nil {
		return &runError{c.String(), err, out}
	}
	return nil
}

type runError struct {
	command string
	err     error
	out     []byte
}

func (e *runError) Error() string { return e.command + ": " + e.err.Error() + ": " + string(e.out) }
