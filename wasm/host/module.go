package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/tickonce/tickonce/wasm/wire"
)

// Options say how a module is compiled, and what its instances may take. The
// zero value works.
type Options struct {
	// CacheDir keeps the compiled code in a directory, where the next process
	// finds it: it is then ready in a twentieth of the time. It is made if it
	// is not there. Default: the code is kept in memory alone.
	CacheDir string

	// Memory is how many bytes one instance may have, in whole pages of 64 KiB,
	// rounded down. One that asks for more is dead; see [DeadError]. Default
	// 1 GiB; 32 MiB to 4 GiB.
	Memory int64

	// CallTimeout is how long one call of the guest may take; an instance that
	// takes longer is dead. To be able to stop it makes all its code slower, by
	// a factor of 2 and more. Default: no bound.
	CallTimeout time.Duration

	// Stdout and Stderr get what the guest prints, which is nothing but the
	// last words of a Go program that dies. They must be safe for concurrent use
	// where several engines are. Default: it is dropped.
	Stdout, Stderr io.Writer
}

const (
	pageBytes     = 64 << 10
	leastMemory   = 32 << 20
	defaultMemory = 1 << 30
	mostMemory    = 4 << 30
)

// Module is the guest, compiled. Engines on it share its code and nothing else.
// It is safe for concurrent use.
type Module struct {
	options  Options
	cache    wazero.CompilationCache // or nil
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

// Compile compiles the guest, whose bytes go build makes; see the package
// comment. The error says what is wrong with the bytes or the options.
func Compile(ctx context.Context, wasm []byte, o Options) (_ *Module, err error) {
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.Memory < leastMemory || o.Memory > mostMemory {
		return nil, optionError("Memory", fmt.Sprintf("is %d, want %d to %d bytes", o.Memory, leastMemory, mostMemory))
	}
	if o.CallTimeout < 0 {
		return nil, optionError("CallTimeout", "is "+o.CallTimeout.String()+", want 0 or more")
	}
	if !bytes.HasPrefix(wasm, []byte("\x00asm\x01\x00\x00\x00")) {
		return nil, fmt.Errorf("compile the guest: found %.16q, want a WebAssembly module", wasm)
	}
	m := &Module{options: o}
	config := wazero.NewRuntimeConfig().
		WithMemoryLimitPages(uint32(o.Memory / pageBytes)).
		WithCloseOnContextDone(o.CallTimeout > 0)
	if o.CacheDir != "" {
		if m.cache, err = wazero.NewCompilationCacheWithDir(o.CacheDir); err != nil {
			return nil, fmt.Errorf("compile the guest: %w", err)
		}
		config = config.WithCompilationCache(m.cache)
	}
	m.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("compile the guest: %w", err), m.Close(ctx))
		}
	}()
	if _, err = wasi_snapshot_preview1.Instantiate(ctx, m.runtime); err != nil {
		return nil, err
	}
	if m.compiled, err = m.runtime.CompileModule(ctx, wasm); err != nil {
		return nil, err
	}
	return m, m.check()
}

// exports are those of the ABI, in the order of the fields of exported.
var exports = [...]string{
	"tk_abi", "tk_alloc", "tk_free", "tk_open", "tk_close", "tk_call", "tk_step", "tk_out", "tk_snapshot", "tk_error",
}

func (m *Module) check() error {
	found := m.compiled.ExportedFunctions()
	for _, name := range append(exports[:], "_initialize") {
		if found[name] == nil {
			return fmt.Errorf("the module has no export %s, want one with the ABI %d of wasm/ABI.md", name, wire.ABI)
		}
	}
	return nil
}

// Close frees the module. Engines on it are dead by then.
func (m *Module) Close(ctx context.Context) error {
	err := m.runtime.Close(ctx)
	if m.cache != nil {
		err = errors.Join(err, m.cache.Close(ctx))
	}
	return err
}
