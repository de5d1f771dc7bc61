// Command exec runs a program for WASI in wasmtime, with the files, the environment
// and the standard streams of its own, as go test wants it:
//
//	GOOS=wasip1 GOARCH=wasm go test -exec /path/to/exec
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/bytecodealliance/wasmtime-go/v37"
)

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "exec:", err)
	}
	os.Exit(status)
}

// run answers the program's exit status.
func run(arguments []string) (int, error) {
	if len(arguments) == 0 {
		return 2, errors.New("usage: exec PROGRAM [ARGUMENT...]")
	}
	engine := wasmtime.NewEngine()
	module, err := wasmtime.NewModuleFromFile(engine, arguments[0])
	if err != nil {
		return 1, err
	}
	linker := wasmtime.NewLinker(engine)
	if err := linker.DefineWasi(); err != nil {
		return 1, err
	}
	wasi := wasmtime.NewWasiConfig()
	wasi.SetArgv(arguments)
	directory, err := os.Getwd()
	if err != nil {
		return 1, err
	}
	names, values := []string{"PWD"}, []string{directory} // WASI has no working directory
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); name != "PWD" {
			names, values = append(names, name), append(values, value)
		}
	}
	wasi.SetEnv(names, values)
	wasi.InheritStdin()
	wasi.InheritStdout()
	wasi.InheritStderr()
	if err := wasi.PreopenDir("/", "/", wasmtime.DIR_READ|wasmtime.DIR_WRITE, wasmtime.FILE_READ|wasmtime.FILE_WRITE); err != nil {
		return 1, err
	}
	store := wasmtime.NewStore(engine)
	store.SetWasi(wasi)
	instance, err := linker.Instantiate(store, module)
	if err != nil {
		return 1, err
	}
	_, err = instance.GetFunc(store, "_start").Call(store)
	var exit *wasmtime.Error
	if errors.As(err, &exit) {
		if status, exited := exit.ExitStatus(); exited {
			return int(status), nil
		}
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
