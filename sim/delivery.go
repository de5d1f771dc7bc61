package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// deliverResult has the handler deliver the result of its job, if it has yet to. The
// bytes are its own again at once.
func (a *attempt) deliverResult() {
	if !a.result {
		return
	}
	a.result = false
	world, payload := a.worker.node.w, entryOf(a.job)
	_ = a.deliver(world.truth.place(world.truth.named[a.job.Schedule].scenario.Deliver), payload)
	clear(payload)
}

// deliver has the handler stage a delivery. Only one whose run is over is refused:
// what a run that lost its claim delivers is lost with its ack.
func (a *attempt) deliver(outbox *trueQueue, payload []byte) error {
	world, job := a.worker.node.w, a.job
	err := job.Deliver(outbox.name, payload)
	over := a.run != nil && errors.Is(a.run.Cause(), context.DeadlineExceeded)
	world.checked[aResult]++
	if lost := errors.Is(err, tickonce.ErrClaimLost); lost != over {
		world.fail(withItsAck, job.Schedule, fmt.Sprintf("%s delivers a result, its run is over: %s, and that was refused: %s",
			jobOf(store.Instant(job.Boundary.UnixMilli())), yesNo(over), yesNo(lost)))
	}
	if j := world.truth.jobs[job.ID]; err == nil && j != nil && j.claimed && int(j.attempts) == job.Attempt {
		j.results = append(j.results, result{outbox, bytes.Clone(payload)})
	}
	return err
}

// comesThrough notes that what the attempt delivers came through, if it ended well, or
// was accepted although it did not.
func (a *attempt) comesThrough(ok bool) {
	if q := a.worker.queue; q.outbox != nil && (ok || a.accepted) {
		a.through, a.repeats = true, a.worker.node.w.truth.deliver(q, a.job.ID)
	}
}

// of is an error of the class, which an error around it does not say (X6).
func (c Class) of(err handlerError) error {
	switch c.Kind {
	case ClassTransient:
		return wrapped{tickonce.Transient(err)}
	case ClassPermanent:
		return wrapped{tickonce.Permanent(err)}
	case ClassTimeout:
		return wrapped{timeoutFailure{err}}
	case ClassRetryAfter:
		return wrapped{tickonce.RetryAfter(c.After, err)}
	default:
		return err
	}
}

// wrapped is an error that another one has around it.
type wrapped struct{ error }

func (w wrapped) Unwrap() error { return w.error }

// timeoutFailure is an error that says to be a timeout, as those of package net do.
type timeoutFailure struct{ handlerError }

func (timeoutFailure) Timeout() bool { return true }

// did is what the call of an outbox under way has done.
type did struct {
	handed  bool // it delivers an entry
	beats   bool // a heartbeat of the delivery is under way
	settles int  // how many settlements it has made
	held    bool // the last of them was
}

// runOnce claims an entry, delivers and settles it, by the one call that does all of
// it. Others go on meanwhile, since it is a flight. What the store has failed is not
// asked for again: the entry is delivered again when its claim has lapsed.
func (w *worker) runOnce() {
	world := w.node.w
	w.has.did = did{}
	had, err := w.node.engine.Outbox(w.queue.name).RunOnce(ctx, w.name, w.deliver)
	if f := world.flying; f.ended { // and it has gone on all the same
		f.abandon()
	}
	world.intent = intent{}
	w.checkCall(had, err)
	switch {
	case err == nil && !had:
		w.goOn(asks, world.now)
	case err == nil, errors.Is(err, tickonce.ErrClaimLost):
		w.free()
	default:
		w.leave()
		w.state = claims
		w.failed(err)
	}
}

// deliver is a delivery as the scenario says: it takes its time, beats, and ends.
func (w *worker) deliver(_ context.Context, job *tickonce.Job) error {
	world := w.node.w
	f := world.flying
	w.take(job)
	w.state, w.has.did.handed = works, true
	for {
		if f.wait(delivery, min(w.has.endsAt, w.beatAt)); f.cutOff() {
			f.abandon()
		}
		if world.now >= w.has.endsAt {
			break
		}
		w.has.did.beats = true
		err := w.has.heartbeat()
		w.has.did.beats = false
		if errors.Is(err, tickonce.ErrClaimLost) {
			w.has.tell(EventHandlerCut, "claim-lost")
			world.intent = intent{ends: fails, reason: errGivenUp}
			return errGivenUp
		}
		w.beatLater()
	}
	w.has.comesThrough(w.has.ends == succeeds)
	w.has.tell(EventHandlerEnded, w.has.ends.String())
	switch w.has.ends {
	case panics:
		world.intent = intent{ends: fails, reason: "panic: " + w.has.reason}
		panic(string(w.has.reason))
	case fails:
		world.intent = intent{ends: fails, reason: w.has.reason, class: w.has.class}
		return w.has.class.of(w.has.reason)
	default:
		world.intent = intent{ends: succeeds}
		return nil
	}
}

const errGivenUp handlerError = "the claim was lost"

// checkCall checks what the call of an outbox has done, and answered (O1, O2, O5).
func (w *worker) checkCall(had bool, err error) {
	world, d := w.node.w, &w.has.did
	lost := errors.Is(err, tickonce.ErrClaimLost)
	world.checked[aDelivery]++
	var right bool
	switch {
	case had != d.handed:
	case !had:
		right = d.settles == 0 && !lost
	case err != nil && !lost:
		right = d.settles <= 1
	default:
		right = d.settles == 1 && d.held != lost
		world.coverage.sometimes(lateDeliveryRefused, lost)
		world.coverage.sometimes(deliveryPanicked, !lost && w.has.ends == panics)
	}
	if !right {
		answer := "no error"
		if err != nil {
			answer = "the error " + shown(err.Error())
		}
		world.fail(oneDelivery, "", fmt.Sprintf("outbox %q says that it had an entry: %s, with %s; it delivered one: %s, settled it %s, and its claim held: %s",
			w.queue.name, yesNo(had), answer, yesNo(d.handed), counted(int64(d.settles), "time", "times"), yesNo(d.held)))
	}
}

// settles notes a settlement by the outbox's call under way.
func (n *node) settles(held bool) {
	if w := n.worksOn(); w != nil && w.queue.outbox != nil && !n.w.orphaned() {
		w.has.did.settles++
		w.has.did.held = held
	}
}

// extends checks that it is a delivery that extends the claim of an entry (O4).
func (n *node) extends() {
	if w := n.worksOn(); w != nil && w.queue.outbox != nil && !w.has.did.beats && !n.w.orphaned() {
		n.w.fail(oneDelivery, "", fmt.Sprintf("outbox %q extended the claim of an entry by itself", w.queue.name))
	}
}

// deliver notes that an entry has come through, and reports whether it had before.
func (t *truth) deliver(q *trueQueue, entry store.JobID) (again bool) {
	again = q.delivered[entry]
	t.w.coverage.sometimes(deliveredAgain, again)
	q.deliveries++
	if again {
		q.deliveredAgain++
		return true
	}
	q.delivered[entry] = true
	t.memory += deliveredBytes
	return false
}

// options are those of its entries.
func (o *Outbox) options() tickonce.OutboxOptions {
	return tickonce.OutboxOptions{MaxAttempts: o.MaxAttempts}
}

// stamps are those that its entries have to have.
func (o *Outbox) stamps() store.Stamps {
	stamps := store.Stamps{VisibilityMS: 60_000, BaseBackoffMS: 5_000, MaxAttempts: 5}
	if o.MaxAttempts > 0 {
		stamps.MaxAttempts = int32(o.MaxAttempts)
	}
	return stamps
}
