package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// worker claims the jobs of one queue and runs their handlers, one at a time,
// with one store call for each step. An idle one sleeps until the queue says
// that there may be something, and is woken when a job comes in.
type worker struct {
	node  *node
	index int
	queue string
	epoch int64

	job   *tickonce.Job // whose handler runs
	fails bool          // how it will end
	idle  bool          // the queue had nothing to claim
	asked bool          // and has said until when
}

var errHandler = errors.New("the handler failed, as the scenario says")

func (w *worker) wakeAt(t store.Instant) {
	w.epoch++
	w.node.w.at(t, event{kind: workerSteps, node: int32(w.node.index), index: int32(w.index), epoch: w.epoch})
}

// cutOff ends whatever the worker does, as the end of its process does.
func (w *worker) cutOff() {
	w.epoch++
	w.job, w.idle, w.asked = nil, false, false
}

func (w *worker) step() {
	switch {
	case w.job != nil:
		w.settle()
	case w.idle && !w.asked:
		w.ask()
	default:
		w.claim()
	}
}

func (w *worker) claim() {
	world := w.node.w
	w.idle, w.asked = false, false
	job, err := w.node.engine.Claim(ctx, w.queue, fmt.Sprintf("worker-%d-%d", w.node.index+1, w.index+1))
	switch {
	case err != nil:
		w.failed(err)
	case job == nil:
		w.idle = true
		w.wakeAt(world.now)
	default:
		w.job = job
		var takes time.Duration
		takes, w.fails = world.handle(job)
		w.wakeAt(world.now.Add(takes.Milliseconds()))
	}
}

// ask asks until when there is nothing to claim.
func (w *worker) ask() {
	at, some, err := w.node.engine.NextClaimAt(ctx, w.queue)
	switch {
	case err != nil:
		w.failed(err)
	case some:
		w.asked = true
		w.wakeAt(w.node.w.whenShown(store.Instant(at.UnixMilli())))
	default:
		w.asked = true // sleeps until it is woken
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
	w.node.w.coverage.sometimes(ackRefused, lost)
	if err != nil && !lost {
		w.failed(err)
		return
	}
	w.job = nil
	w.wakeAt(w.node.w.now)
}

func (w *worker) failed(err error) {
	if !errors.Is(err, faultstore.ErrLost) {
		panic(fmt.Sprintf("sim: a worker of queue %q: %v", w.queue, err))
	}
	w.wakeAt(w.node.w.now.Add(storeErrorBackoffMS))
}

// wakeQueue wakes the idle workers of the queue.
func (w *world) wakeQueue(queue string) {
	for _, n := range w.nodes {
		for _, worker := range n.workers {
			if worker.idle && worker.queue == queue {
				worker.asked = true // it claims at once
				worker.wakeAt(w.now)
			}
		}
	}
}

// handle draws how long the handler of the job takes, and whether it fails.
func (w *world) handle(job *tickonce.Job) (takes time.Duration, fails bool) {
	visibility := job.Deadline.Sub(timeOf(w.shown()))
	handler := w.names[job.Schedule].Handler
	takes = w.choices.at("handler takes").within(handler.Takes)
	switch handler.Kind {
	case HandlerFails:
		fails = handler.Fails == 0 || w.choices.at("handler fails").happens(handler.Fails)
	case HandlerOverruns:
		takes = 2 * visibility
	}
	for i := range w.faults {
		f, state := &w.scenario.Faults[i], &w.faults[i]
		if !state.on || !f.hits(job) || f.Chance != 0 && !w.choices.at("handler fault").happens(f.Chance) {
			continue
		}
		switch f.Kind {
		case FaultHandlerSlow:
			state.effect++
			if takes = 2 * visibility; f.Takes != (Span{}) {
				takes = w.choices.at("handler slow").within(f.Takes)
			}
		case FaultHandlerFails:
			state.effect++
			fails = true
		}
	}
	return takes, fails
}

// hits reports whether the fault is one of handlers, and of this job's.
func (f *Fault) hits(job *tickonce.Job) bool {
	return (f.Kind == FaultHandlerSlow || f.Kind == FaultHandlerFails) &&
		(f.Schedule == "" || f.Schedule == job.Schedule) && (f.Queue == "" || f.Queue == job.Queue)
}
