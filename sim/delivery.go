package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// did is what the call of an outbox under way has done.
type did struct {
	handed   bool // it delivers an entry
	accepted bool // which comes through even if the delivery fails
	beats    bool // a heartbeat of the delivery is under way
	settles  int  // how many settlements it has made
	held     bool // the last of them was
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
	w.has.tell(EventHandlerEnded, w.has.ends.String())
	if w.has.ends == succeeds || w.has.did.accepted {
		world.truth.deliver(w.queue, store.JobID(job.ID))
	}
	switch w.has.ends {
	case panics:
		world.intent = intent{ends: fails, reason: "panic: " + w.has.reason}
		panic(string(w.has.reason))
	case fails:
		world.intent = intent{ends: fails, reason: w.has.reason}
		return w.has.reason
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

// deliver notes that an entry has come through.
func (t *truth) deliver(q *trueQueue, entry store.JobID) {
	again := q.delivered[entry]
	t.w.coverage.sometimes(deliveredAgain, again)
	q.deliveries++
	if again {
		q.deliveredAgain++
		return
	}
	q.delivered[entry] = true
	t.memory += deliveredBytes
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
