package sim

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// worker claims the jobs of one queue and runs their handlers, one at a time,
// with at most one store call for each step.
//
//	state   step                answer → next state, when
//	claims  Claim               a job → works, when its handler ends · none → asks, now
//	asks    NextClaimAt         an instant → sleeps until then · none → sleeps
//	sleeps  none                → claims; a new job or a jump of the clock does that, too
//	works   Ack, or Retry       → claims, now
//
// A failed call is made again after 5 s.
type worker struct {
	node  *node
	index int
	name  string
	queue *trueQueue
	epoch int64

	state  workerState
	wakes  store.Instant // while it sleeps; None: only if it is woken
	idle   store.Instant // since when it has nothing to do, while it asks and sleeps
	job    *tickonce.Job // while it works
	fails  bool          // how its handler ends
	unsure bool          // whether an earlier settlement was made
}

type workerState uint8

const (
	away workerState = iota
	claims
	asks
	sleeps
	works
)

var errHandler = errors.New("the handler failed, as the scenario says")

// goOn makes the worker take its next step, in this state, at t.
func (w *worker) goOn(state workerState, t store.Instant) {
	w.epoch++
	w.state, w.wakes = state, t
	if t != store.None {
		w.node.w.at(t, event{kind: workerSteps, node: int32(w.node.index), index: int32(w.index), epoch: w.epoch})
	}
}

// cutOff ends whatever the worker does, as the end of its process does.
func (w *worker) cutOff() {
	w.goOn(away, store.None)
	w.job = nil
}

func (w *worker) step() {
	switch w.state {
	case asks:
		w.ask()
	case works:
		w.settle()
	default:
		w.claim()
	}
}

func (w *worker) claim() {
	world := w.node.w
	if w.state == claims {
		w.idle = world.now
	}
	w.node.claiming = w
	job, err := w.node.engine.Claim(ctx, w.queue.row.Name, w.name)
	w.node.claiming = nil
	switch {
	case err != nil:
		w.failed(err)
	case job == nil:
		w.goOn(asks, world.now)
	default:
		var takes time.Duration
		takes, w.fails = world.handle(job)
		w.job, w.unsure = job, false
		w.goOn(works, world.now.Add(takes.Milliseconds()))
	}
}

// ask asks until when there is nothing to claim.
func (w *worker) ask() {
	at, some, err := w.node.engine.NextClaimAt(ctx, w.queue.row.Name)
	switch {
	case err != nil:
		w.failed(err)
	case some:
		w.goOn(sleeps, w.node.w.whenShown(store.Instant(at.UnixMilli())))
	default:
		w.goOn(sleeps, store.None)
	}
}

// settle ends the claim when the handler has returned. A failed call is made
// again: the claim's token makes that safe.
func (w *worker) settle() {
	var err error
	if w.fails {
		err = w.job.Retry(ctx, errHandler)
	} else {
		err = w.job.Ack(ctx)
	}
	lost := errors.Is(err, tickonce.ErrClaimLost)
	if !w.fails && !w.unsure {
		w.node.w.coverage.sometimes(ackRefused, lost)
	}
	if err != nil && !lost {
		w.unsure = true
		w.failed(err)
		return
	}
	w.job = nil
	w.goOn(claims, w.node.w.now)
}

// failed makes the call again later.
func (w *worker) failed(err error) {
	if !errors.Is(err, faultstore.ErrLost) {
		w.node.w.fail(noError, "", fmt.Sprintf("%s of queue %q: %v", w.name, w.queue.row.Name, err))
	}
	w.goOn(w.state, w.node.w.now.Add(errorBackoffMS))
}

// wake makes a sleeping worker claim at t, or sooner.
func (w *worker) wake(t store.Instant) {
	if w.state == sleeps && t < w.wakes {
		w.goOn(sleeps, t)
	}
}

// handle draws how long the handler of the job takes, and whether it fails.
func (w *world) handle(job *tickonce.Job) (takes time.Duration, fails bool) {
	visibility := job.Deadline.Sub(timeOf(w.shown()))
	overrun := visibility + min(visibility, math.MaxInt64-visibility)
	handler := w.truth.named[job.Schedule].scenario.Handler
	takes = w.draws.handlerTakes.within(handler.Takes)
	switch handler.Kind {
	case HandlerFails:
		fails = handler.Fails == 0 || w.draws.handlerFails.happens(handler.Fails)
	case HandlerOverruns:
		takes = overrun
	}
	for _, i := range w.handlerFaults {
		f := &w.scenario.Faults[i]
		if f.Schedule != "" && f.Schedule != job.Schedule || f.Queue != "" && f.Queue != job.Queue ||
			f.Chance != 0 && !w.draws.handlerFault.happens(f.Chance) {
			continue
		}
		w.faults[i].effect++
		switch {
		case f.Kind == FaultHandlerFails:
			fails = true
		case f.Takes == Span{}:
			takes = overrun
		default:
			takes = w.draws.handlerSlow.within(f.Takes)
		}
	}
	return takes, fails
}
