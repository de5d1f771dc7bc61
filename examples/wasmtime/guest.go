package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/bytecodealliance/wasmtime-go/v37"
)

// module is the guest, compiled.
type module struct {
	compiled *wasmtime.Module
	linker   *wasmtime.Linker
}

func compile(wasm []byte) (*module, error) {
	engine := wasmtime.NewEngine()
	compiled, err := wasmtime.NewModule(engine, wasm)
	if err != nil {
		return nil, err
	}
	linker := wasmtime.NewLinker(engine)
	return &module{compiled, linker}, linker.DefineWasi()
}

// guest is an instance of the module, with one handle. What it answers is copied.
// After an error that is no *refusal it is dead.
type guest struct {
	store    *wasmtime.Store
	instance *wasmtime.Instance
	handle   int32
}

// refusal is an error that the guest answers.
type refusal struct{ Code, Message string }

func (r *refusal) Error() string { return r.Code + ": " + r.Message }

// open makes an instance and opens a handle in it, with the state of a snapshot
// and the log of the journal behind it, which may be empty.
func (m *module) open(now float64, config, snapshot, log []byte) (*guest, error) {
	g := &guest{store: wasmtime.NewStore(m.linker.Engine)}
	g.store.SetWasi(wasmtime.NewWasiConfig())
	var err error
	if g.instance, err = m.linker.Instantiate(g.store, m.compiled); err != nil {
		return nil, err
	}
	if _, err := g.do("_initialize"); err != nil {
		return nil, err
	}
	version, err := g.do("tk_abi")
	if err == nil && version != int32(1) {
		err = fmt.Errorf("the module has the ABI %v, want 1", version)
	}
	if err != nil {
		return nil, err
	}
	return g, g.with([][]byte{config, snapshot, log}, func(arguments []any) error {
		handle, err := g.do("tk_open", append([]any{now}, arguments...)...)
		if err != nil {
			return err
		}
		if g.handle = handle.(int32); g.handle < 0 {
			return g.refused()
		}
		return nil
	})
}

// do calls an export.
func (g *guest) do(name string, arguments ...any) (any, error) {
	export := g.instance.GetFunc(g.store, name)
	if export == nil {
		return nil, fmt.Errorf("the module has no export %s, want one with the ABI 1", name)
	}
	return export.Call(g.store, arguments...)
}

// memory is a view that is good until the next call.
func (g *guest) memory() []byte {
	return g.instance.GetExport(g.store, "memory").Memory().UnsafeData(g.store)
}

// with makes a call whose arguments are the bytes in blocks, each an address and a
// length. What the call answers is to be read in it.
func (g *guest) with(given [][]byte, call func(arguments []any) error) (err error) {
	var arguments []any
	for _, b := range given {
		at := any(int32(0))
		if len(b) > 0 {
			if at, err = g.do("tk_alloc", int32(len(b))); err != nil {
				return err
			}
			if at == int32(0) {
				return fmt.Errorf("an argument of %d bytes is too long", len(b))
			}
			copy(g.memory()[uint32(at.(int32)):], b)
			defer func() {
				if _, trap := g.do("tk_free", at); trap != nil {
					err = errors.Join(err, trap)
				}
			}()
		}
		arguments = append(arguments, at, int32(len(b)))
	}
	return call(arguments)
}

// read is what lies at the place that an export answered.
func (g *guest) read(place any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	at, n := uint64(place.(int64))>>32, uint64(uint32(place.(int64)))
	memory := g.memory()
	if at+n > uint64(len(memory)) {
		return nil, fmt.Errorf("the guest points at %d bytes at %d, outside its memory", n, at)
	}
	return bytes.Clone(memory[at : at+n]), nil
}

// answer is what lies at the place, or, where there is none, the guest's error.
func (g *guest) answer(place any, err error) ([]byte, error) {
	if err == nil && place == int64(0) {
		return nil, g.refused()
	}
	return g.read(place, err)
}

// refused is the last error of the guest.
func (g *guest) refused() error {
	text, err := g.read(g.do("tk_error"))
	if err != nil {
		return err
	}
	r := &refusal{}
	if err := json.Unmarshal(text, r); err != nil {
		return err
	}
	return r
}

// call makes a call, with its request and its reply as JSON.
func (g *guest) call(now float64, op int32, request []byte) (reply []byte, err error) {
	err = g.with([][]byte{request}, func(arguments []any) (err error) {
		reply, err = g.answer(g.do("tk_call", append([]any{g.handle, now, op}, arguments...)...))
		return err
	})
	return reply, err
}

// step lets happen what is due, and answers when to be called next.
func (g *guest) step(now float64, most int32) (float64, error) {
	result, err := g.do("tk_step", g.handle, now, most)
	if err != nil {
		return 0, err
	}
	next := result.(float64)
	if math.IsNaN(next) {
		return 0, g.refused()
	}
	return next, nil
}

// out is the records that the last call or step put out.
func (g *guest) out() ([]byte, error) { return g.read(g.do("tk_out", g.handle)) }

func (g *guest) snapshot() ([]byte, error) { return g.answer(g.do("tk_snapshot", g.handle)) }

// The kinds of records that are of interest here.
const (
	begunRecord   = 2
	stoppedRecord = 4
	journalRecord = 5
)

// records yields their kinds, and what is behind kind and size.
func records(out []byte) iter.Seq2[uint32, []byte] {
	return func(yield func(uint32, []byte) bool) {
		for len(out) > 0 {
			kind, size := binary.LittleEndian.Uint32(out), binary.LittleEndian.Uint32(out[4:])
			if !yield(kind, out[8:size]) {
				return
			}
			out = out[size:]
		}
	}
}
