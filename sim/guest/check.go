package guest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

const pageSize = 64 << 10

const expected = "want a program compiled to WebAssembly for WASI preview 1, as go build does with GOOS=wasip1 GOARCH=wasm"

// checkHeader refuses what is no module of the core specification, version 1.
func checkHeader(wasm []byte) error {
	const header = 8
	switch {
	case len(wasm) == 0:
		return fmt.Errorf("found an empty file, %s", expected)
	case !bytes.HasPrefix(wasm, []byte("\x00asm")):
		return fmt.Errorf("found no WebAssembly, but what begins with %q, %s", wasm[:min(len(wasm), 16)], expected)
	case len(wasm) < header:
		return fmt.Errorf("found a WebAssembly module that is cut off after %d bytes, %s", len(wasm), expected)
	}
	version, layer := binary.LittleEndian.Uint16(wasm[4:]), binary.LittleEndian.Uint16(wasm[6:])
	switch {
	case layer == 1:
		return fmt.Errorf("found a WebAssembly component, as for WASI preview 2, %s", expected)
	case version != 1 || layer != 0:
		return fmt.Errorf("found WebAssembly of version %d, want 1: %s", version, expected)
	}
	return nil
}

// check refuses a module that is no program, or needs what is not there.
func (p *Program) check() error {
	has := p.runtime.Module(wasi_snapshot_preview1.ModuleName).ExportedFunctionDefinitions()
	var missing []string
	for _, f := range p.module.ImportedFunctions() {
		module, name, _ := f.Import()
		switch {
		case module == "gojs" || module == "go":
			return fmt.Errorf("found a Go program for GOOS=js, %s", expected)
		case module != wasi_snapshot_preview1.ModuleName || has[name] == nil:
			missing = append(missing, module+"."+name)
		}
	}
	for _, m := range p.module.ImportedMemories() {
		module, name, _ := m.Import()
		missing = append(missing, module+"."+name)
	}
	const most = 5
	switch n := len(missing); {
	case n > most:
		missing = append(missing[:most], fmt.Sprintf("and %d more", n-most))
		fallthrough
	case n > 0:
		return fmt.Errorf("found a module that imports %s, which is not there: %s", strings.Join(missing, ", "), expected)
	}
	for _, memory := range p.module.ExportedMemories() {
		if needs := int(memory.Min()) * pageSize; needs > p.limits.Memory {
			return fmt.Errorf("found a program that begins with %d MiB of memory, want at most %d MiB", needs>>20, p.limits.Memory>>20)
		}
	}
	exports := p.module.ExportedFunctions()
	switch {
	case exports["_start"] != nil && len(p.module.ExportedMemories()) == 0:
		return fmt.Errorf("found a program that does not export its memory, %s", expected)
	case exports["_start"] != nil:
		return nil
	case exports["_initialize"] != nil:
		return errors.New("found a library, which exports _initialize (in Go by -buildmode=c-shared), want a program, which exports _start")
	default:
		return fmt.Errorf("found a module that does not export _start, %s", expected)
	}
}
