package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/wire"
)

// Handler does a job, as [tickonce.Handler] does.
type Handler func(ctx context.Context, job *Job) error

// worker is a loop of the jobs of a queue.
type worker struct {
	loop
	id      int32 // in this instance
	request wire.Request
	handle  Handler
}

// run is one that a handler has in hand.
type run struct {
	id     int64
	worker *worker
	cancel context.CancelCauseFunc
	over   bool // its handler has returned
}

// end is that of a run whose handler has returned.
type end struct {
	run     *run
	failure *wire.Failure // nil: it did the job
}

// RunWorker calls the handler for the jobs of the queue until ctx ends and the jobs
// in hand are done, as [tickonce.Engine.RunWorker] does; WorkerConfig.Poll has no
// use. When the instance dies, the contexts of its runs end with
// [tickonce.ErrClaimLost], and the worker goes on in the one that takes its place.
func (e *Engine) RunWorker(ctx context.Context, queue string, handle Handler, c tickonce.WorkerConfig) error {
	return e.work(ctx, &worker{request: wire.Request{Queue: queue, Work: c}, handle: handle}, "handle")
}

func (e *Engine) work(ctx context.Context, w *worker, option string) error {
	if w.handle == nil { // it would fail all jobs
		return optionError(option, "is nil, want a function")
	}
	if err := sendable(&w.request); err != nil {
		return err
	}
	w.loop = loop{ctx: ctx, done: make(chan struct{})}
	if w.patience = w.request.Work.StopTimeout; w.patience == 0 {
		w.patience = 10 * time.Second
	}
	w.patience = max(w.patience, 0) + noticeTime
	e.mu.Lock()
	e.workers = append(e.workers, w)
	e.drive()
	e.unlock()
	return e.wait(&w.loop)
}

// remove ends a worker.
func (e *Engine) remove(w *worker, err error) {
	e.workers = slices.DeleteFunc(e.workers, func(other *worker) bool { return other == w })
	for id, r := range e.runs {
		if r.worker == w {
			r.cancel(context.Canceled)
			delete(e.runs, id)
		}
	}
	e.finish(&w.loop, err)
}

// queue is the queue as errors name it.
func (w *worker) queue() string {
	if w.request.Outbox != "" {
		return w.request.Outbox
	}
	return w.request.Queue
}

// begin calls the handler of a run.
func (e *Engine) begin(record *wire.Record) {
	i := slices.IndexFunc(e.workers, func(w *worker) bool { return w.began && w.id == record.Worker })
	if i < 0 {
		return
	}
	w := e.workers[i]
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(w.ctx))
	r := &run{id: record.Run, worker: w, cancel: cancel}
	e.runs[r.id] = r
	job := e.jobOf(record)
	go func() {
		failure := &wire.Failure{Message: "the handler ended its goroutine", Panicked: true}
		defer func() {
			e.mu.Lock()
			defer e.unlock()
			r.over = true
			e.ends = append(e.ends, end{r, failure})
			e.woken.raise()
			cancel(context.Canceled)
		}()
		failure = call(ctx, job, w.handle)
	}()
}

// cause is why the context of the run ends.
func (r *run) cause(why *wire.Error) error {
	switch {
	case why == nil:
		return context.Canceled
	case why.Code == wire.CodeTimeout:
		return context.DeadlineExceeded
	case why.Is(tickonce.ErrClaimLost):
		return tickonce.ErrClaimLost
	case r.worker.ctx.Err() != nil:
		return context.Cause(r.worker.ctx)
	default:
		return why
	}
}

// call calls a handler, and answers its failure.
func call(ctx context.Context, job *Job, handle Handler) (failure *wire.Failure) {
	defer func() {
		if p := recover(); p != nil {
			failure = &wire.Failure{Message: fmt.Sprint(p), Panicked: true}
		}
	}()
	return failureOf(handle(ctx, job), job.Origin != 0)
}

// failureOf is what the guest is told of a handler's error. It knows no errors,
// so a delivery that timed out is marked as the transient failure that it is (X6).
func failureOf(err error, delivery bool) *wire.Failure {
	if err == nil {
		return nil
	}
	f := &wire.Failure{Message: textOf(err)}
	switch mark, marked := tickonce.MarkOf(err); {
	case marked && mark.Permanent:
		f.Permanent = true
	case marked && mark.After >= 0:
		f.RetryAfter = &wire.RetryAfter{For: mark.After}
	case marked || delivery && timedOut(err):
		f.Transient = true
	}
	return f
}

// textOf is the text of an error, which may panic when it is asked.
func textOf(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = "an error without a text: asking for it panics"
		}
	}()
	return err.Error()
}

// timedOut reports whether the error, or one that it wraps, is a timeout.
func timedOut(err error) (is bool) {
	defer func() { _ = recover() }()
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
