//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// built builds a package into the folder.
func built(t *testing.T, folder, name, pkg string, env ...string) string {
	t.Helper()
	out := filepath.Join(folder, name)
	build := exec.Command("go", "build", "-o", out, pkg)
	build.Env = append(build.Environ(), env...)
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	return out
}

// A program in the page has the arguments, files, descriptors, directory and
// exit code of the process around it.
func TestProgramInThePageIsThisProcess(t *testing.T) {
	folder := t.TempDir()
	command := built(t, folder, "chromium_exec", ".")
	program := built(t, folder, "program.wasm", "./testdata/program", "GOOS=js", "GOARCH=wasm")

	run := func(args ...string) (code int, stdout, stderr string) {
		var out, failed bytes.Buffer
		c := exec.Command(command, append([]string{program}, args...)...)
		c.Dir, c.Stdout, c.Stderr = t.TempDir(), &out, &failed
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "GOCACHE=" + folder, "WORD=wort"}
		c.Run() // it fails by its exit code
		return c.ProcessState.ExitCode(), out.String(), failed.String()
	}
	code, stdout, stderr := run("one", "two words", "ü&=%")
	require.Equal(t, 3, code)
	require.Equal(t, "last words\n", stderr)
	require.Equal(t, `[one two words ü&=%] wort true
true
true
folder
"pfer\n"
1 b 6 -rw-r--r-- true
`, stdout)

	code, stdout, stderr = run("panic")
	require.Equal(t, 2, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "panic: on purpose")
}
