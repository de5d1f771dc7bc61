//go:build js

package gojs

import (
	"errors"
	"sync"
	"syscall/js"

	"github.com/tickonce/tickonce/wasm/wire"
)

// wait is what a promise comes to: it may block, on a goroutine of its own.
type wait func() (any, error)

// promised begins at once, within the call of a function of JavaScript, where
// nothing may block, and answers a promise of the rest.
func promised(begin func() (wait, error)) js.Value {
	var resolve, reject js.Value
	executor := js.FuncOf(func(_ js.Value, args []js.Value) any {
		resolve, reject = args[0], args[1]
		return nil
	})
	defer executor.Release()
	promise := js.Global().Get("Promise").New(executor)

	var rest wait
	if err := contained(func() (err error) { rest, err = begin(); return err }); err != nil {
		reject.Invoke(thrown(err))
		return promise
	}
	go func() {
		var answer any
		if err := contained(func() (err error) { answer, err = rest(); return err }); err != nil {
			reject.Invoke(thrown(err))
			return
		}
		resolve.Invoke(answer)
	}()
	return promise
}

// awaited waits for a value, or for what its promise comes to. A rejection is a
// [js.Error].
func awaited(v js.Value) (js.Value, error) {
	type end struct {
		value js.Value
		err   error
	}
	ends := make(chan end, 1)
	resolved := js.FuncOf(func(_ js.Value, args []js.Value) any {
		ends <- end{value: argument(args, 0)}
		return nil
	})
	defer resolved.Release()
	rejected := js.FuncOf(func(_ js.Value, args []js.Value) any {
		ends <- end{err: js.Error{Value: argument(args, 0)}}
		return nil
	})
	defer rejected.Release()
	js.Global().Get("Promise").Call("resolve", v).Call("then", resolved, rejected)
	e := <-ends
	return e.value, e.err
}

// contained is do, with what it panics with, or JavaScript throws, as its error.
func contained(do func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case js.Error:
			err = p
		case error:
			err = &wire.Error{Code: wire.CodeInternal, Message: "a fault of the program: " + p.Error()}
		default:
			err = &wire.Error{Code: wire.CodeInternal, Message: "a fault of the program"}
		}
	}()
	return do()
}

// thrown is the error as JavaScript throws it: what it has thrown itself, or an
// Error with a code.
func thrown(err error) js.Value {
	var own js.Error
	if errors.As(err, &own) {
		return own.Value
	}
	sent := wire.ErrorOf(err)
	e := js.Global().Get("Error").New(sent.Message)
	e.Set("name", "TickonceError")
	e.Set("code", sent.Code)
	return e
}

// parsed is JSON of package wire as a value.
func parsed(text []byte) js.Value {
	return js.Global().Get("JSON").Call("parse", string(text))
}

// signal is an AbortSignal; its zero value is none.
type signal struct{ js.Value }

func signalOf(v js.Value) (signal, error) {
	if v.IsUndefined() {
		return signal{}, nil
	}
	if v.Type() != js.TypeObject || v.Get("aborted").Type() != js.TypeBoolean ||
		v.Get("addEventListener").Type() != js.TypeFunction || v.Get("removeEventListener").Type() != js.TypeFunction {
		return signal{}, &wire.RequestError{Where: "the signal", Problem: "is no AbortSignal"}
	}
	return signal{v}, nil
}

// then calls do, which must not block, once the signal is aborted, at once if it
// is, unless it was dropped before.
func (s signal) then(do func()) (drop func()) {
	if s.IsUndefined() {
		return func() {}
	}
	if s.Get("aborted").Bool() {
		do()
		return func() {}
	}
	var f js.Func
	drop = sync.OnceFunc(func() {
		s.Call("removeEventListener", "abort", f)
		f.Release()
	})
	f = js.FuncOf(func(js.Value, []js.Value) any {
		drop()
		do()
		return nil
	})
	s.Call("addEventListener", "abort", f)
	return drop
}
