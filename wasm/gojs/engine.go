//go:build js

// Package gojs lets the JavaScript of a page call the engine of a Go program
// that runs in it, built with GOOS=js. The program owns the engine and runs it,
// on goroutines, as it would anywhere; the page gets an object:
//
//	engine, _, err := gojs.Open(tickonce.Config{}, memengine.Durable{})
//	js.Global().Set("tickonce", engine.Object())
//	err = engine.RunSchedules(ctx)
//
// The object has three functions. Each returns a promise at once, and a refusal
// is an Error whose code is one of ../ABI.md:
//
//	await tickonce.call("schedule", { name: "report", spec: "@every 5m", queue: "mail" })
//	await tickonce.work({ queue: "mail", options: { concurrency: 2 } }, async (job, signal) => { … }, signal)
//	await tickonce.listen((event) => { … }, signal)
//
// A call has a name and a request of the ABI, and comes to its reply; that of
// claim has the jobs as records, an array. Payloads are base64 in all of them, for
// atob and btoa. A worker is one of
// [tickonce.Engine.RunWorker], or of [tickonce.Outbox.Run]; its handler gets the
// record of a job that was begun and a signal that is aborted when the context
// of the run ends. What it throws, or rejects with, is a failure, with the marks
// permanent, transient and retryAfter, as {forMS}, where the error or one of its
// causes has them; a TimeoutError is transient. While it has the job it can call
// deliver and summarize with its claim:
//
//	const claim = { job: job.job, attempt: job.attempt };
//	await tickonce.call("deliver", { claim, outbox: "webhook", payload });
//
// The promise of a worker is settled when it has ended, that of a listener when it
// has begun; both end when the signal is aborted.
//
// # Hidden pages
//
// Nothing is counted in ticks, so nothing is lost or fired twice however late a
// page's timers are. In a hidden page a browser lets timers fire once a second,
// after some minutes once a minute, and not at all while it is frozen or the
// machine sleeps: boundaries fire that late then, and what was missed is caught
// up as the schedule says. [Clock] wakes the loops as soon as the page is seen
// again. For schedules that are [tickonce.CatchUpNone], a page sets
// [tickonce.Config.OnTime] to 2 minutes.
package gojs

import (
	"sync"
	"syscall/js"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/wasm/wire"
)

// Engine is an engine in memory that JavaScript calls as well. It is safe for
// concurrent use.
type Engine struct {
	*memengine.Engine

	calling   sync.Mutex // held around each call of the server
	server    *wire.Server
	object    js.Value
	functions []js.Func

	listening sync.Mutex
	listeners []*listener // replaced, never changed
}

type listener struct{ call js.Value }

// Open opens an engine as [memengine.Open] does. [tickonce.Config.Clock] is by
// default [Clock]; the observer is told of an event before the page is.
func Open(c tickonce.Config, d memengine.Durable) (*Engine, memengine.Recovery, error) {
	e := &Engine{}
	if c.Clock == nil {
		c.Clock = Clock()
	}
	observer := c.Observer
	c.Observer = func(event tickonce.Event) {
		defer e.tell(event)
		if observer != nil {
			observer(event)
		}
	}
	engine, recovery, err := memengine.Open(c, d)
	if err != nil {
		return nil, recovery, err
	}
	e.Engine, e.server = engine, wire.Share(engine)
	e.object = js.Global().Get("Object").New()
	for name, function := range map[string]func(args []js.Value) js.Value{"call": e.call, "work": e.work, "listen": e.listen} {
		f := js.FuncOf(func(_ js.Value, args []js.Value) any { return function(args) })
		e.functions = append(e.functions, f)
		e.object.Set(name, f)
	}
	return e, recovery, nil
}

// Object is what the page calls.
func (e *Engine) Object() js.Value { return e.object }

// Release takes its functions from the object, and forgets the listeners; the
// engine is not stopped, nor are workers. It is called at most once.
func (e *Engine) Release() {
	for _, name := range []string{"call", "work", "listen"} {
		e.object.Delete(name)
	}
	for _, f := range e.functions {
		f.Release()
	}
	e.listening.Lock()
	defer e.listening.Unlock()
	e.listeners = nil
}

// argument is one of those of a function, undefined if it was not given.
func argument(args []js.Value, i int) js.Value {
	if i < len(args) {
		return args[i]
	}
	return js.Undefined()
}

func (e *Engine) call(args []js.Value) js.Value {
	return promised(func() (wait, error) {
		op, request, err := asked(argument(args, 0), argument(args, 1))
		if err != nil {
			return nil, err
		}
		return func() (any, error) { return e.answer(op, request) }, nil
	})
}

// asked reads the name and the request of a call.
func asked(name, request js.Value) (wire.Op, []byte, error) {
	op, known := wire.Op(0), false
	if name.Type() == js.TypeString {
		op, known = wire.ParseOp(name.String())
	}
	if !known {
		return 0, nil, &wire.RequestError{Where: "the op", Problem: "is not known"}
	}
	if request.IsUndefined() {
		return op, []byte("{}"), nil
	}
	text := js.Global().Get("JSON").Call("stringify", request)
	if text.Type() != js.TypeString {
		return 0, nil, &wire.RequestError{Problem: "is no object"}
	}
	return op, []byte(text.String()), nil
}

func (e *Engine) answer(op wire.Op, request []byte) (any, error) {
	e.calling.Lock()
	defer e.calling.Unlock()
	reply, err := e.server.Call(float64(time.Now().UnixMilli()), op, request)
	if err != nil {
		return nil, err
	}
	answer := parsed(reply)
	if op == wire.OpClaim {
		records, err := wire.ParseRecords(e.server.Out())
		if err != nil {
			return nil, err
		}
		claimed := make([]any, len(records))
		for i := range records {
			claimed[i] = parsed(records[i].Text())
		}
		answer.Set("records", claimed)
	}
	return answer, nil
}

func (e *Engine) listen(args []js.Value) js.Value {
	return promised(func() (wait, error) {
		l := &listener{argument(args, 0)}
		if l.call.Type() != js.TypeFunction {
			return nil, &wire.RequestError{Where: "the listener", Problem: "is no function"}
		}
		ended, err := signalOf(argument(args, 1))
		if err != nil {
			return nil, err
		}
		e.listening.Lock()
		e.listeners = append(e.listeners[:len(e.listeners):len(e.listeners)], l)
		e.listening.Unlock()
		ended.then(func() {
			e.listening.Lock()
			defer e.listening.Unlock()
			var left []*listener
			for _, other := range e.listeners {
				if other != l {
					left = append(left, other)
				}
			}
			e.listeners = left
		})
		return func() (any, error) { return js.Undefined(), nil }, nil
	})
}

// tell tells the listeners of an event. What they throw goes to the console.
func (e *Engine) tell(event tickonce.Event) {
	e.listening.Lock()
	listeners := e.listeners
	e.listening.Unlock()
	if len(listeners) == 0 {
		return
	}
	told := wire.Event{Event: event}
	if event.Err != nil {
		told.Error = event.Err.Error()
	}
	record := wire.Record{Kind: wire.RecordEvent, Event: &told}
	for _, l := range listeners {
		err := contained(func() error {
			l.call.Invoke(parsed(record.Text()).Get("event"))
			return nil
		})
		if err != nil {
			js.Global().Get("console").Call("error", "a listener of the engine has thrown:", thrown(err))
		}
	}
}
