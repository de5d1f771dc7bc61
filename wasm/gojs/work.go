//go:build js

package gojs

import (
	"context"
	"errors"
	"math"
	"syscall/js"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/wire"
)

func (e *Engine) work(args []js.Value) js.Value {
	return promised(func() (wait, error) {
		_, text, err := asked(js.ValueOf(wire.OpWork.String()), argument(args, 0))
		if err != nil {
			return nil, err
		}
		r, err := wire.ParseRequest(wire.OpWork, text)
		if err != nil {
			return nil, err
		}
		handler := argument(args, 1)
		if handler.Type() != js.TypeFunction {
			return nil, &wire.RequestError{Where: "the handler", Problem: "is no function"}
		}
		ended, err := signalOf(argument(args, 2))
		if err != nil {
			return nil, err
		}
		return func() (any, error) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			defer ended.then(cancel)()
			handle := func(ctx context.Context, job *tickonce.Job) error { return e.handled(ctx, handler, job) }
			if r.Outbox != "" {
				return js.Undefined(), e.Outbox(r.Outbox).Run(ctx, handle, r.Work)
			}
			return js.Undefined(), e.RunWorker(ctx, r.Queue, handle, r.Work)
		}, nil
	})
}

// handled calls the handler with a job, and waits for the end of its promise.
// Meanwhile calls of the page can name the job's claim.
func (e *Engine) handled(ctx context.Context, handler js.Value, job *tickonce.Job) error {
	e.calling.Lock()
	back := e.server.Lend(job)
	e.calling.Unlock()
	defer func() {
		e.calling.Lock()
		defer e.calling.Unlock()
		back()
	}()
	controller := js.Global().Get("AbortController").New()
	stop := context.AfterFunc(ctx, func() { controller.Call("abort", thrown(context.Cause(ctx))) })
	defer stop()
	err := contained(func() error {
		_, err := awaited(handler.Invoke(parsed(wire.Begun(job).Text()), controller.Get("signal")))
		return err
	})
	var own js.Error
	if !errors.As(err, &own) {
		return err
	}
	var failure *wire.Failure
	if err := contained(func() error { failure = failureOf(own.Value); return nil }); err != nil {
		return err // reading it throws in turn
	}
	return failure.Err()
}

// mostMS is the longest duration.
const mostMS = float64(math.MaxInt64 / int64(time.Millisecond))

// failureOf reads what a handler has thrown: along the chain of causes the first
// mark counts, and without one a timeout, as of AbortSignal.timeout, is transient
// (X6). A delay that is no number is none.
func failureOf(v js.Value) *wire.Failure {
	f := &wire.Failure{Message: messageOf(v)}
	timeout := false
	for depth := 0; v.Type() == js.TypeObject && depth < 32; depth++ {
		if f.Permanent = v.Get("permanent").Truthy(); f.Permanent {
			return f
		}
		if f.RetryAfter = delayOf(v.Get("retryAfter")); f.RetryAfter != nil {
			return f
		}
		if f.Transient = v.Get("transient").Truthy(); f.Transient {
			return f
		}
		timeout = timeout || v.Get("name").Equal(js.ValueOf("TimeoutError"))
		v = v.Get("cause")
	}
	f.Transient = timeout
	return f
}

// messageOf is the message of an error, or its name, or whatever was thrown.
func messageOf(v js.Value) string {
	if v.Type() == js.TypeObject {
		for _, field := range []string{"message", "name"} {
			if text := v.Get(field); text.Type() == js.TypeString && text.String() != "" {
				return text.String()
			}
		}
	}
	return js.Global().Get("String").Invoke(v).String()
}

func delayOf(after js.Value) *wire.RetryAfter {
	if after.Type() != js.TypeObject {
		return nil
	}
	ms := after.Get("forMS")
	if ms.Type() != js.TypeNumber || ms.IsNaN() {
		return nil
	}
	return &wire.RetryAfter{For: time.Duration(min(max(ms.Float(), 0), mostMS)) * time.Millisecond}
}
