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
//	works   Heartbeat           → works, until the next one or its handler's end · refused → claims, now
//	works   Heartbeat, Enqueue  → works, as a handler in Go asked for it
//	works   none                → works, until a handler in Go wants to go on again
//	works   Ack, or Retry       → claims, now; without a call if the handler panicked, or its ack comes later
//
// A worker of an outbox claims, works and settles in one step, which others
// interrupt (delivery.go).
//
// A failed call is made again after 5 s, a heartbeat when the next one is due.
type worker struct {
	node  *node
	index int
	name  string
	queue *trueQueue
	epoch int64

	state  workerState
	wakes  store.Instant // while it sleeps; None: only if it is woken
	woken  store.Instant // while it asks: when it was to be woken meanwhile
	idle   store.Instant // since when it has nothing to do, while it asks and sleeps
	job    *tickonce.Job // while it works
	call   *Call         // its handler in Go, until that has ended; nil without one
	ends   ending        // how its handler does
	reason handlerError  // of one that fails
	endsAt store.Instant // or goes on again, in Go
	hangs  bool          // it does not beat until then
	spawns []spawn       // what it puts into queues and outboxes then
	tx     bool          // in one transaction with its ack
	beatAt store.Instant // when the next automatic heartbeat is due
	unsure bool          // whether an earlier settlement was made
	cause  int64         // the latest event of its job
	fault  int           // that its handler meets, from 1
	did    did           // of an outbox: what its call has done
}

type workerState uint8

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

const (
	away workerState = iota
	claims
	asks
	sleeps
	works
)

// handlerError is why a handler failed.
type handlerError string

func (e handlerError) Error() string { return string(e) }

const errHandler handlerError = "the handler failed, as the scenario says"

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
	w.tell(EventHandlerCut, "stop")
	w.leave()
}

// leave ends the worker's job for it.
func (w *worker) leave() {
	w.call.end()
	w.job, w.call = nil, nil
}

func (w *worker) step() {
	w.node.working = w
	defer func() { w.node.working = nil }()
	switch w.state {
	case asks:
		w.ask()
	case works:
		switch {
		case w.node.w.now < w.endsAt:
			w.beat()
		case w.call == nil:
			w.end()
		case w.call.asks != nil:
			ask := w.call.asks
			w.call.asks = nil
			ask()
			w.proceed()
		default:
			w.proceed()
		}
	default:
		if w.state == claims {
			w.idle = w.node.w.now
		}
		if w.queue.outbox != nil {
			w.runOnce()
		} else {
			w.claim()
		}
	}
}

// flies reports whether the worker's next step is one that others interrupt.
func (w *worker) flies() bool { return w.tx || w.queue.outbox != nil }

func (w *worker) claim() {
	world := w.node.w
	job, err := w.node.engine.Claim(ctx, w.queue.row.Name, w.name)
	switch {
	case err != nil:
		w.failed(err)
	case job == nil:
		w.goOn(asks, world.now)
	default:
		w.take(job)
		if handler := world.scenario.Handlers[job.Schedule]; handler != nil {
			w.call = newCall(w, handler)
		}
		w.work()
	}
}

// take takes a job that was claimed, and draws how its handler goes.
func (w *worker) take(job *tickonce.Job) {
	world := w.node.w
	world.truth.checkJob(job, w.queue)
	takes := world.handle(w, job)
	w.job, w.reason, w.unsure = job, errHandler, false
	w.endsAt = world.now.Add(takes.Milliseconds())
	w.beatLater()
}

// handler is what handles the job, and how often it beats.
func (w *worker) handler(job *tickonce.Job) (handler Handler, heartbeat time.Duration) {
	if o := w.queue.outbox; o != nil {
		return o.Deliver, o.Heartbeat
	}
	s := w.node.w.truth.named[job.Schedule].scenario
	return s.Handler, s.Heartbeat
}

// beatLater has the next automatic heartbeat be due an interval from now.
func (w *worker) beatLater() {
	w.beatAt = store.None
	if _, every := w.handler(w.job); every > 0 && !w.hangs {
		w.beatAt = w.node.w.now.Add(every.Milliseconds())
	}
}

// work lets the handler run until its next heartbeat or its end.
func (w *worker) work() {
	w.goOn(works, min(w.endsAt, w.beatAt))
}

// beat extends the claim. A handler that learns that its claim is lost gives
// up.
func (w *worker) beat() {
	err := w.heartbeat()
	if errors.Is(err, tickonce.ErrClaimLost) {
		w.tell(EventHandlerCut, "claim-lost")
		w.free()
		return
	}
	w.beatLater()
	w.work()
}

// heartbeat extends the claim.
func (w *worker) heartbeat() error {
	err := w.job.Heartbeat(ctx, 0)
	lost := errors.Is(err, tickonce.ErrClaimLost)
	w.node.w.coverage.sometimes(heartbeatRefused, lost)
	if !lost {
		w.check(err)
	}
	if w.call != nil {
		w.call.Job.Deadline = w.job.Deadline
	}
	return err
}

// free makes the worker claim again.
func (w *worker) free() {
	w.leave()
	w.goOn(claims, w.node.w.now)
}

// end settles the claim when the handler has ended, or leaves that to others.
func (w *worker) end() {
	world := w.node.w
	if w.tx && w.ends != panics {
		w.transact()
		return
	}
	if spawns := w.spawns; len(spawns) > 0 && w.ends == succeeds {
		w.spawns = nil
		if err := w.node.enqueue(spawns, entryOf(w.job)); err != nil {
			w.ends = fails
		}
		w.goOn(works, world.now)
		return
	}
	if !w.unsure {
		world.coverage.sometimes(handlerPanicked, w.ends == panics)
		w.tell(EventHandlerEnded, w.ends.String())
	}
	switch {
	case w.ends == panics:
		w.free()
	case !w.unsure && world.sendLater(w):
		w.free()
	default:
		w.settle()
	}
}

// ask asks until when there is nothing to claim.
func (w *worker) ask() {
	w.woken = store.None
	at, some, err := w.nextClaimAt()
	switch {
	case err != nil:
		w.failed(err)
	case w.woken != store.None: // what it was told is old
		w.goOn(sleeps, max(w.woken, w.node.w.now))
	case some:
		w.goOn(sleeps, w.node.w.whenShown(store.Instant(at.UnixMilli())))
	default:
		w.goOn(sleeps, store.None)
	}
}

func (w *worker) nextClaimAt() (time.Time, bool, error) {
	if o := w.queue.outbox; o != nil {
		return w.node.engine.Outbox(o.Name).NextClaimAt(ctx)
	}
	return w.node.engine.NextClaimAt(ctx, w.queue.row.Name)
}

// settle ends the claim when the handler has returned. A failed call is made
// again: the claim's token makes that safe.
func (w *worker) settle() {
	err := w.node.w.settle(w.job, w.ends, w.reason)
	lost := errors.Is(err, tickonce.ErrClaimLost)
	if w.ends == succeeds && !w.unsure {
		w.node.w.coverage.sometimes(ackRefused, lost)
	}
	if err != nil && !lost {
		w.unsure = true
		w.failed(err)
		return
	}
	w.free()
}

// settle tells the engine how the handler of the job ended.
func (w *world) settle(job *tickonce.Job, ends ending, reason handlerError) (err error) {
	w.intent = intent{ends: ends, reason: reason}
	if ends == fails {
		err = job.Retry(ctx, reason)
	} else {
		err = job.Ack(ctx)
	}
	w.intent = intent{}
	return err
}

// failed makes the call again later.
func (w *worker) failed(err error) {
	w.check(err)
	if w.state == sleeps {
		w.state = claims // nothing wakes it before
	}
	w.goOn(w.state, w.node.w.now.Add(errorBackoffMS))
}

// check refuses an error that is not a lost call's.
func (w *worker) check(err error) {
	if err != nil && !errors.Is(err, faultstore.ErrLost) {
		w.node.w.fail(noError, "", fmt.Sprintf("%s of queue %q: %v", w.name, w.queue.name, err))
	}
}

// wake makes a worker that sleeps, or is about to, claim at t, or sooner.
func (w *worker) wake(t store.Instant) {
	switch {
	case w.state == asks:
		w.woken = min(w.woken, t)
	case w.state == sleeps && t < w.wakes:
		w.goOn(sleeps, t)
	}
}

// handle draws how long the handler of the worker's job takes, and how it ends.
func (w *world) handle(of *worker, job *tickonce.Job) (takes time.Duration) {
	ends, hangs := succeeds, time.Duration(0)
	of.fault, of.did = 0, did{}
	visibility := job.Deadline.Sub(timeOf(w.shown()))
	overrun := visibility + min(visibility, math.MaxInt64-visibility)
	handler, _ := of.handler(job)
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
		case f.Kind == FaultHandlerSpawns || !f.concerns(job, of.queue):
			continue
		case f.Kind == FaultPoison:
			if !w.poisons(i, job) {
				continue
			}
		case f.Chance != 0 && !w.draws.handlerFault.happens(f.Chance):
			continue
		}
		w.faults[i].effect++
		of.fault = i + 1
		switch {
		case f.Kind == FaultHandlerHangs:
			hangs = max(hangs, time.Duration(w.start.Add((f.At+f.For).Milliseconds())-w.now)*time.Millisecond)
		case f.Kind == FaultHandlerFails || f.Kind == FaultPoison:
			ends = max(ends, fails)
			of.did.accepted = of.did.accepted || f.Applied == AppliedYes ||
				f.Applied == AppliedUnknown && w.draws.handlerApplied.choice(2) == 1
		case f.Kind == FaultHandlerPanics:
			ends = panics
		case f.Takes == Span{}:
			takes = overrun
		default:
			takes = w.draws.handlerSlow.within(f.Takes)
		}
	}
	w.meets(job, of.fault)
	of.ends, of.hangs = ends, hangs > 0
	of.spawns, of.tx = w.spawns(of, job)
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
