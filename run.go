package tickonce

import (
	"context"
	"sync"
	"time"

	"github.com/tickonce/tickonce/store"
)

// Run is one attempt at a job, in the hands of a [Worker].
//
//	from     event                        to
//	—        claimed                      working
//	—        claimed during a stop        ended: given back
//	working  its handler returned         ended
//	working  its timeout                  overdue; its context ends
//	working  its claim is lost            loose; its context ends
//	overdue  its handler returned         ended
//	overdue  settled                      loose
//	ended    settled, or its claim lost   —
//	loose    its handler returned         —
type Run struct {
	Job *Job

	begun context.Context // of the step that claimed the job

	mu     sync.Mutex
	ctx    context.Context // nil until somebody asks for it
	cancel context.CancelCauseFunc
	cause  error // of its end; nil before

	state   runState
	timeout time.Duration // or 0
	end     ending        // of an ended or overdue run

	// On the host's clock, counted from before the call that made the claim
	// or renewed it.
	beatAt, lapsesAt, timeoutAt store.Instant
}

type runState uint8

const (
	runWorking runState = iota // its handler runs, and the claim is kept
	runEnded                   // its handler has returned, and its end is to be settled
	runOverdue                 // its handler runs, but its end is to be settled
	runLoose                   // its handler runs, for nobody
)

// Context is the handler's. It carries the values of the context of the step
// that claimed the job, and ends by the worker's word alone: with the cause
// [ErrClaimLost] when the claim is lost, [context.DeadlineExceeded] at
// [WorkerConfig.Timeout], or that of the worker's stop. It is safe for concurrent
// use.
func (r *Run) Context() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil {
		r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(r.begun))
		if r.cause != nil {
			r.cancel(r.cause)
		}
	}
	return r.ctx
}

// Cause is why the context has ended, and nil before that, for a host that does
// without contexts. After [Worker.Ended] it is [context.Canceled] if it was nil. It
// is safe for concurrent use.
func (r *Run) Cause() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause
}

// finish ends the context, the first time.
func (r *Run) finish(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause != nil {
		return
	}
	r.cause = cause
	if r.cancel != nil {
		r.cancel(cause)
	}
}

// Call calls the handler and returns what [Worker.Ended] is to be told: a panic
// is an error with its text and the place where it arose. Only a handler that
// calls runtime.Goexit keeps Call from returning.
func (r *Run) Call(handle Handler) error {
	err := contained(r.Context(), r.Job, handle)
	if p, ok := err.(*panicError); ok && p.place != "" {
		p.text += ", at " + p.place
	}
	return err
}

// claimedAt arms the run's times after a claim or its renewal, asked for at the
// instant.
func (r *Run) claimedAt(asked store.Instant) {
	visibilityMS := r.Job.stamps.VisibilityMS
	r.beatAt = asked.Add(max(visibilityMS/3, 1))
	r.lapsesAt = asked.Add(visibilityMS)
}
