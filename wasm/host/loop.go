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

// The times of the loops, those of the native ones.
const (
	sliceTime      = time.Second // the longest sleep
	standByTime    = 5 * time.Second
	noticeTime     = 5 * time.Second // of handlers, and of a journal, at a stop
	firstRetryTime = 100 * time.Millisecond
	retries        = 3
)

// loop is a call of RunSchedules or RunWorker that waits for its end.
type loop struct {
	ctx  context.Context
	done chan struct{}
	err  error // of the end

	began    bool // in this instance
	stopping bool // the guest was told of the stop
	patience time.Duration
	leaveAt  time.Time // of a loop that cannot tell the guest of its stop
}

// runner is a loop of the schedules.
type runner struct{ loop }

// RunSchedules runs the schedules until ctx ends, as [tickonce.Engine.RunSchedules]
// does. A second one beside it on the engine returns [tickonce.ErrLeadershipLost]
// or, with StandBy, goes on where the first ends. A journal that refuses does not
// end it, but holds it up; see [Config.Journal].
//
// One goroutine steps the guest for all loops of an engine. It sleeps on the
// engine's clock in slices of at most 1 s, since timers stand still while a
// machine sleeps (L7), and is woken at once by calls of this engine (L8).
func (e *Engine) RunSchedules(ctx context.Context) error {
	for ctx.Err() == nil {
		e.mu.Lock()
		other := e.runner
		if other == nil {
			r := &runner{loop{ctx: ctx, done: make(chan struct{}), patience: sliceTime}}
			e.runner = r
			e.drive()
			e.unlock()
			return e.wait(&r.loop)
		}
		e.unlock()
		if !e.config.StandBy {
			return &tickonce.OpError{Op: "run schedules", Phase: tickonce.PhaseAcquire, Err: tickonce.ErrLeadershipLost}
		}
		select {
		case <-ctx.Done():
		case <-other.done:
		}
	}
	return nil
}

// wait waits for the end of a loop.
func (e *Engine) wait(l *loop) error {
	select {
	case <-l.done:
	case <-l.ctx.Done():
		e.mu.Lock()
		e.woken.raise()
		e.unlock()
		<-l.done
	}
	return l.err
}

// finish ends a loop.
func (e *Engine) finish(l *loop, err error) {
	l.err = err
	e.over = append(e.over, l.done)
}

// drive starts the goroutine that steps the guest, or wakes it.
func (e *Engine) drive() {
	if e.woken.raise(); !e.driven {
		e.driven = true
		go e.steps()
	}
}

// steps steps the guest as long as there are loops.
func (e *Engine) steps() {
	for failures := 0; ; {
		e.mu.Lock()
		woken := e.woken.next()
		sleep, err := e.turn(context.Background())
		if err == nil {
			failures = 0
		} else {
			failures++
			sleep = e.failed(err, failures)
		}
		e.moved.raise()
		e.driven = len(e.loops()) > 0
		driven := e.driven
		e.unlock()
		if !driven {
			return
		}
		if sleep > 0 {
			select {
			case <-woken:
			case <-e.config.Clock.After(sleep):
			}
		}
	}
}

// turn tells the guest of what the host knows, steps it, and answers how long it
// may rest.
func (e *Engine) turn(ctx context.Context) (time.Duration, error) {
	if err := e.ready(ctx); err != nil {
		return 0, err
	}
	if err := e.report(ctx); err != nil {
		return 0, err
	}
	var next float64
	_, err := e.do(ctx, func(i *instance) (err error) {
		next, err = i.step(ctx, e.now(), int32(e.config.Batch))
		return err
	})
	if err != nil {
		return 0, err
	}
	rest := max(min(next-e.now(), float64(sliceTime.Milliseconds())), 0)
	return time.Duration(rest) * time.Millisecond, nil
}

// report tells the guest which loops begin and stop, and which runs have ended.
func (e *Engine) report(ctx context.Context) error {
	for len(e.ends) > 0 {
		ended := e.ends[0]
		if e.runs[ended.run.id] == ended.run { // else its worker or its instance is gone
			_, err := e.tellGuest(ctx, wire.OpEnd, &wire.Request{Run: ended.run.id, Error: ended.failure})
			if err != nil && !errors.As(err, new(*wire.Error)) { // a refusal: its worker has left it behind
				return err
			}
			delete(e.runs, ended.run.id)
		}
		e.ends = e.ends[1:]
	}
	if r := e.runner; r != nil {
		switch {
		case r.ctx.Err() != nil && !r.began:
			e.runner = nil
			e.finish(&r.loop, nil)
		case r.ctx.Err() != nil && !r.stopping:
			r.stopping = true
			if _, err := e.tellGuest(ctx, wire.OpStop, &wire.Request{}); err != nil {
				return err
			}
		case !r.began:
			r.began = true
			if _, err := e.tellGuest(ctx, wire.OpStart, &wire.Request{}); err != nil {
				return err
			}
		}
	}
	for _, w := range slices.Clone(e.workers) {
		switch {
		case w.ctx.Err() != nil && !w.began:
			e.remove(w, nil)
		case w.ctx.Err() != nil && !w.stopping:
			w.stopping = true
			if _, err := e.tellGuest(ctx, wire.OpStopWork, &wire.Request{WorkerID: w.id}); err != nil {
				return err
			}
		case !w.began:
			reply, err := e.tellGuest(ctx, wire.OpWork, &w.request)
			switch {
			case err == nil:
				w.began, w.id = true, reply.Worker
			case e.guest != nil && errors.As(err, new(*wire.Error)):
				e.remove(w, refused("", err))
			default:
				return err
			}
		}
	}
	return nil
}

// tellGuest makes a call for a loop.
func (e *Engine) tellGuest(ctx context.Context, op wire.Op, r *wire.Request) (reply *wire.Reply, err error) {
	_, err = e.do(ctx, func(i *instance) error {
		text, err := i.call(ctx, e.now(), op, r.Encode(op))
		if err == nil {
			if reply, err = wire.ParseReply(text); err != nil {
				err = i.died(err)
			}
		}
		return err
	})
	return reply, err
}

// failed deals with a turn that could not be made, and answers when the next one
// is. A loop that stops has patience, and then the state that cannot be kept is
// given up, all of which is undone.
func (e *Engine) failed(err error, failures int) time.Duration {
	pause := standByTime
	if failures <= retries {
		pause = firstRetryTime << (failures - 1)
	}
	now := e.config.Clock.Now()
	if lost, ok := err.(unstored); ok {
		err = fmt.Errorf("append to the journal: %w", lost.error)
	}
	for _, l := range e.loops() {
		if l.ctx.Err() == nil {
			continue
		}
		if l.leaveAt.IsZero() {
			l.leaveAt = now.Add(l.patience)
		}
		switch left := l.leaveAt.Sub(now); {
		case left > 0:
			pause = min(pause, left)
		case e.guest != nil:
			e.die(err)
		}
	}
	if e.guest == nil {
		e.leave(err)
	}
	if e.config.Observer != nil && len(e.loops()) > 0 {
		e.events = append(e.events, tickonce.Event{
			Kind: tickonce.EventRetrying, At: now, Owner: e.config.Owner, Count: int64(failures), Wait: pause, Err: err,
		})
	}
	return pause
}

func (e *Engine) loops() (all []*loop) {
	if e.runner != nil {
		all = append(all, &e.runner.loop)
	}
	for _, w := range e.workers {
		all = append(all, &w.loop)
	}
	return all
}

// leave gives up what the loops had in an instance that is gone. Those that stop
// are over, and so are all where no other instance will be.
func (e *Engine) leave(err error) {
	for id, r := range e.runs {
		cause := tickonce.ErrClaimLost
		if e.closed {
			cause = err
		}
		r.cancel(cause)
		delete(e.runs, id)
	}
	e.ends = nil
	over := e.closed || e.config.Reopen == nil
	if r := e.runner; r != nil {
		if r.began, r.stopping = false, false; over || r.ctx.Err() != nil {
			e.runner = nil
			e.finish(&r.loop, err)
		}
	}
	for _, w := range slices.Clone(e.workers) {
		if w.began, w.stopping = false, false; over || w.ctx.Err() != nil {
			e.remove(w, err)
		}
	}
}

// stopped ends the loop that the guest says has ended.
func (e *Engine) stopped(record *wire.Record) {
	var err error
	if record.Err != nil {
		err = record.Err
	}
	if record.Worker == 0 {
		if r := e.runner; r != nil {
			e.runner = nil
			e.finish(&r.loop, err)
		}
		return
	}
	for _, w := range e.workers {
		if w.began && w.id == record.Worker {
			if record.Err != nil && record.Err.Code == wire.CodeAbandoned {
				left := &tickonce.AbandonedError{Queue: w.queue()}
				for _, r := range e.runs {
					if r.worker == w && !r.over {
						left.Running++
					}
				}
				err = left
			}
			e.remove(w, err)
			return
		}
	}
}
