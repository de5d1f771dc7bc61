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
	command := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, "github.com/tickonce/tickonce/wasm/guest")
	command.Env = append(command.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := command.CombinedOutput(); err != nil {
		return nil, &buildError{err, out}
	}
	return os.ReadFile(file)
})

type buildError struct {
	err error
	out []byte
}

func (e *buildError) Error() string {
	return "build the guest: " + e.err.Error() + ": " + string(e.out)
}
