package sim

import (
	"errors"
	"math"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// attempt is one attempt at a job, and what its handler does, as the scenario says.
//
//	step                what
//	none                it goes on until its end, or until a handler in Go wants to go on again
//	Heartbeat, Enqueue  as a handler in Go asked for it
//	Commit              what it puts into queues and outboxes as it succeeds, or that with its ack
//	none                it returns
//
// Handlers obey their context, but for those that hang: when it ends, they
// return.
type attempt struct {
	worker *worker
	job    *tickonce.Job
	call   *Call         // its handler in Go, until that has ended; nil without one
	ends   ending        // how its handler does
	reason handlerError  // of one that fails
	class  Class         // and what that says of another attempt
	endsAt store.Instant // or goes on again, in Go
	hangs  bool          // it hears nothing until then
	spawns []spawn       // what it puts into queues and outboxes then
	tx     bool          // in one transaction with its ack
	cause  int64         // the latest event of its job
	fault  int           // that its handler meets, from 1
	result bool          // it has yet to deliver the result of its job

	// Of an outbox.
	accepted bool // its delivery comes through even if it fails
	through  bool // and has come through
	repeats  bool // as one before had
	did      did  // what its call has done
	hired         // of a worker of the engine's
}

// ending is how a handler ends.
type ending uint8

const (
	succeeds ending = iota
	fails
	panics
)

func (e ending) String() string {
	return [...]string{succeeds: "ok", fails: "fail", panics: "panic"}[e]
}

// handlerError is why a handler failed.
type handlerError string

func (e handlerError) Error() string { return string(e) }

const errHandler handlerError = "the handler failed, as the scenario says"

// take takes a job that was claimed, and draws how its handler goes.
func (a *attempt) take(job *tickonce.Job) {
	world := a.worker.node.w
	world.truth.checkJob(job, a.worker.queue)
	if j := world.truth.jobs[store.JobID(job.ID)]; j != nil {
		a.cause = j.cause
	}
	a.job, a.reason = job, errHandler
	takes := world.handle(a)
	a.endsAt = world.now.Add(takes.Milliseconds())
}

// handler is what handles the job, and how often it beats by hand.
func (a *attempt) handler() (handler Handler, heartbeat time.Duration) {
	if o := a.worker.queue.outbox; o != nil {
		return o.Deliver, o.Heartbeat
	}
	s := a.worker.node.w.truth.named[a.job.Schedule].scenario
	return s.Handler, s.Heartbeat
}

// begins has a handler in Go begin, if the job has one. Every second job delivers its
// result as its handler begins, the others as it ends.
func (a *attempt) begins() {
	if a.worker.queue.outbox != nil {
		return
	}
	world := a.worker.node.w
	if handler := world.scenario.Handlers[a.job.Schedule]; handler != nil {
		a.call = newCall(a, handler)
	}
	a.result = world.truth.named[a.job.Schedule].scenario.Deliver != ""
	if a.job.ID%2 == 1 {
		a.deliverResult()
	}
}

// again has the handler take its next step at t.
func (a *attempt) again(t store.Instant) {
	if a.run == nil {
		a.worker.goOn(works, t)
		return
	}
	n := a.worker.node
	n.w.at(t, event{kind: handlerSteps, node: int32(n.index), index: int32(a.worker.index), epoch: a.number})
}

// heartbeat extends the claim.
func (a *attempt) heartbeat() error {
	err := a.job.Heartbeat(ctx, 0)
	lost := errors.Is(err, tickonce.ErrClaimLost)
	a.worker.node.w.coverage.sometimes(heartbeatRefused, lost)
	if !lost {
		a.worker.check(err)
	}
	if a.call != nil {
		a.call.Job.Deadline = a.job.Deadline
	}
	return err
}

// writes has the handler make what calls of the store it makes as it ends, one at
// each step. It reports whether that is done.
func (a *attempt) writes() bool {
	a.deliverResult()
	switch {
	case a.tx && a.ends != panics:
		a.transact()
		return false
	case len(a.spawns) > 0 && a.ends == succeeds:
		spawns := a.spawns
		a.spawns = nil
		if err := a.worker.node.enqueue(spawns, entryOf(a.job)); err != nil {
			a.ends = fails
		}
		a.again(a.worker.node.w.now)
		return false
	default:
		return true
	}
}

// goOn lets the handler in Go go on, if the job has one. It reports whether the
// handler is at its end.
func (a *attempt) goOn() bool {
	if a.call == nil {
		return true
	}
	if ask := a.call.asks; ask != nil {
		a.call.asks = nil
		ask()
	}
	return a.proceed()
}

// outlastedBy reports whether the claim lapses before the instant, in true time,
// unless the clock is turned.
func (a *attempt) outlastedBy(until store.Instant) bool {
	w := a.worker.node.w
	j := w.truth.jobs[store.JobID(a.job.ID)]
	return j != nil && j.claimed && int(j.attempts) == a.job.Attempt && j.deadline < w.shown().Add(int64(until-w.now))
}

// handle draws how long the handler takes, and how it ends.
func (w *world) handle(a *attempt) (takes time.Duration) {
	ends, hangs, job, queue := succeeds, time.Duration(0), a.job, a.worker.queue
	a.fault, a.class, a.accepted, a.through, a.repeats, a.did = 0, Class{}, false, false, false, did{}
	visibility := job.Deadline.Sub(timeOf(w.shown()))
	overrun := visibility + min(visibility, math.MaxInt64-visibility)
	handler, _ := a.handler()
	takes = w.draws.handlerTakes.within(handler.Takes)
	switch handler.Kind {
	case HandlerFails, HandlerPanics:
		if handler.Fails == 0 || w.draws.handlerFails.happens(handler.Fails) {
			if ends = fails; handler.Kind == HandlerPanics {
				ends = panics
			}
		}
	case HandlerOverruns:
		takes = overrun
	}
	for _, i := range w.handlerFaults {
		f := &w.scenario.Faults[i]
		switch {
		case f.Kind == FaultHandlerSpawns || !f.concerns(job, queue):
			continue
		case f.Kind == FaultPoison:
			if !w.poisons(i, job) {
				continue
			}
		case f.Chance != 0 && !w.draws.handlerFault.happens(f.Chance):
			continue
		}
		w.faults[i].effect++
		a.fault = i + 1
		a.accepted = a.accepted || f.Applied == AppliedYes ||
			f.Applied == AppliedUnknown && w.draws.handlerApplied.choice(2) == 1
		if f.Error != (Class{}) {
			a.class = f.Error
		}
		switch {
		case f.Kind == FaultHandlerHangs:
			hangs = max(hangs, time.Duration(w.start.Add((f.At+f.For).Milliseconds())-w.now)*time.Millisecond)
		case f.Kind == FaultHandlerFails || f.Kind == FaultPoison:
			ends = max(ends, fails)
		case f.Kind == FaultHandlerPanics:
			ends = panics
		case f.Takes == Span{}:
			takes = overrun
		default:
			takes = w.draws.handlerSlow.within(f.Takes)
		}
	}
	w.meets(job, a.fault)
	a.ends, a.hangs = ends, hangs > 0
	a.spawns, a.tx = w.spawns(queue, job)
	return max(takes, hangs)
}

// meets notes the fault that the job meets, for those who are told of it.
func (w *world) meets(job *tickonce.Job, fault int) {
	if j := w.truth.jobs[store.JobID(job.ID)]; j != nil && fault > 0 {
		j.fault = fault
	}
}

// poisons reports whether the fault has poisoned the job, which is drawn when a
// handler of it first starts.
func (w *world) poisons(fault int, job *tickonce.Job) bool {
	f, state := &w.scenario.Faults[fault], &w.faults[fault]
	id := store.JobID(job.ID)
	poisoned, drawn := state.poison[id]
	if !drawn {
		if state.poison == nil {
			state.poison = map[store.JobID]bool{}
		}
		poisoned = f.Chance == 0 || w.draws.poison.happens(f.Chance)
		state.poison[id] = poisoned
	}
	return poisoned
}

// concerns reports whether the fault is one of this job's, which is of the queue.
func (f *Fault) concerns(job *tickonce.Job, q *trueQueue) bool {
	return (f.Schedule == "" || f.Schedule == job.Schedule) && (f.Queue == "" || f.Queue == q.name)
}
