package sim

import (
	"errors"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// What a worker does that is worked by hand: one job at a time, with at most one
// store call for each step.
//
//	state   step                answer → next state, when
//	claims  Claim               a job → works, when its handler ends · none → asks, now
//	asks    NextClaimAt         an instant → sleeps until then · none → sleeps
//	sleeps  none                → claims; a new job or a jump of the clock does that, too
//	works   Heartbeat           → works, until the next one or its handler's end · refused → claims, now
//	works   that of its handler → works
//	works   Ack, or Retry       → claims, now; without a call if the handler panicked, or its ack comes later
//
// A worker of an outbox claims, works and settles in one step, which others
// interrupt (delivery.go).
//
// A failed call is made again after 5 s, a heartbeat when the next one is due.
type byHand struct {
	state  workerState
	woken  store.Instant // while it asks: when it was to be woken meanwhile
	has    attempt       // while it works
	beatAt store.Instant // when the next automatic heartbeat is due
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

// goOn makes the worker take its next step, in this state, at t; at None, when it
// is woken.
func (w *worker) goOn(state workerState, t store.Instant) {
	w.state = state
	if t == store.None {
		w.epoch++
		w.wakes = t
		return
	}
	w.stepAt(t)
}

// leave ends the worker's job for it.
func (w *worker) leave() {
	w.has.call.end()
	w.has.job, w.has.call = nil, nil
}

func (w *worker) stepByHand() {
	switch {
	case w.state == asks:
		w.ask()
	case w.state == works && w.node.w.now < w.has.endsAt:
		w.beat()
	case w.state == works:
		if w.has.goOn() {
			w.end()
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

func (w *worker) claim() {
	job, err := w.node.engine.Claim(ctx, w.queue.row.Name, w.name)
	switch {
	case err != nil:
		w.failed(err)
	case job == nil:
		w.goOn(asks, w.node.w.now)
	default:
		w.take(job)
		w.has.begins()
		w.work()
	}
}

func (w *worker) take(job *tickonce.Job) {
	w.unsure = false
	w.has.take(job)
	w.beatLater()
}

// beatLater has the next automatic heartbeat be due an interval from now.
func (w *worker) beatLater() {
	w.beatAt = store.None
	if _, every := w.has.handler(); every > 0 && !w.has.hangs {
		w.beatAt = w.node.w.now.Add(every.Milliseconds())
	}
}

// work lets the handler run until its next heartbeat or its end.
func (w *worker) work() {
	w.goOn(works, min(w.has.endsAt, w.beatAt))
}

// beat extends the claim. A handler that learns that its claim is lost gives
// up.
func (w *worker) beat() {
	err := w.has.heartbeat()
	if errors.Is(err, tickonce.ErrClaimLost) {
		w.has.tell(EventHandlerCut, "claim-lost")
		w.free()
		return
	}
	w.beatLater()
	w.work()
}

// free makes the worker claim again.
func (w *worker) free() {
	w.leave()
	w.goOn(claims, w.node.w.now)
}

// end settles the claim when the handler has ended, or leaves that to others.
func (w *worker) end() {
	if !w.has.writes() {
		return
	}
	world, ends := w.node.w, w.has.ends
	if !w.unsure {
		world.coverage.sometimes(handlerPanicked, ends == panics)
		w.has.tell(EventHandlerEnded, ends.String())
	}
	switch {
	case ends == panics:
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
	ends := w.has.ends
	err := w.node.w.settle(w.has.job, ends, w.has.reason, w.has.class)
	lost := errors.Is(err, tickonce.ErrClaimLost)
	if ends == succeeds && !w.unsure {
		w.node.w.coverage.sometimes(ackRefused, lost)
	}
	if err != nil && !lost {
		w.unsure = true
		w.failed(err)
		return
	}
	w.free()
}

// settle tells the engine how the handler of the job ended. A job whose result finds
// no room is tried again.
func (w *world) settle(job *tickonce.Job, ends ending, reason handlerError, class Class) (err error) {
	defer func() { w.intent = intent{} }()
	if ends == succeeds {
		w.intent = intent{}
		if err = job.Ack(ctx); !errors.Is(err, tickonce.ErrLimit) {
			return err
		}
		reason, class = errNoRoom, Class{}
	}
	w.intent = intent{ends: fails, reason: reason, class: class}
	switch class.Kind {
	case ClassPermanent:
		return job.Fail(ctx, reason)
	case ClassRetryAfter:
		return job.RetryAfter(ctx, reason, class.After)
	default:
		return job.Retry(ctx, reason)
	}
}

const errNoRoom handlerError = "the outbox of the result is full"

// failed makes the call again later.
func (w *worker) failed(err error) {
	w.check(err)
	if w.state == sleeps {
		w.state = claims // nothing wakes it before
	}
	w.goOn(w.state, w.node.w.now.Add(errorBackoffMS))
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
