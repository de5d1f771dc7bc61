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
			handle := func(ctx context.Context, job *tickonce.Job) error { return handled(ctx, handler, job) }
			if r.Outbox != "" {
				return js.Undefined(), e.Outbox(r.Outbox).Run(ctx, handle, r.Work)
			}
			return js.Undefined(), e.RunWorker(ctx, r.Queue, handle, r.Work)
		}, nil
	})
}

// handled calls the handler with a job, and waits for the end of its promise.
func handled(ctx context.Context, handler js.Value, job *tickonce.Job) error {
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

// failureOf reads what a handler has thrown; a delay that is no number is none.
func failureOf(v js.Value) *wire.Failure {
	if v.Type() != js.TypeObject {
		return &wire.Failure{Message: js.Global().Get("String").Invoke(v).String()}
	}
	f := &wire.Failure{
		Message:   js.Global().Get("String").Invoke(v.Get("message")).String(),
		Permanent: v.Get("permanent").Truthy(),
		Transient: v.Get("transient").Truthy(),
	}
	if after := v.Get("retryAfter"); after.Type() == js.TypeObject {
		if ms := after.Get("forMS"); ms.Type() == js.TypeNumber && !ms.IsNaN() {
			f.RetryAfter = &wire.RetryAfter{For: time.Duration(min(max(ms.Float(), 0), mostMS)) * time.Millisecond}
		}
	}
	return f
}
