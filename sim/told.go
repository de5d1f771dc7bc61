package sim

import (
	"fmt"
	"slices"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// owes notes what the call under way did and its process is answered: each of it
// is told to the process's observer once, before the operation returns. What an
// unknown outcome hides is not told.
func (w *world) owes(kind tickonce.EventKind, at store.Instant, what, times int64) {
	if w.acting.reply == faultstore.Pass {
		w.owed += uint64(times) * sumOf(kind, at, what)
	}
}

// claimID is a claim, by its token.
type claimID struct {
	job     store.JobID
	attempt int
}

// loss is what a call was answered of a claim that is not the live one.
type loss struct {
	claimID
	at store.Instant
}

// owesLoss is owes for a claim that is not the live one, of which a process is told
// once, however often it asks: by whichever answer comes first.
func (w *world) owesLoss(at store.Instant, job store.JobID, attempt int32) {
	if w.acting.reply == faultstore.Pass {
		w.losses = append(w.losses, loss{claimID{job, int(attempt)}, at})
	}
}

// tellsLoss takes note of a loss that is told, and reports whether one was answered that
// had not been told yet.
func (n *node) tellsLoss(job store.JobID, at store.Instant) bool {
	for _, l := range n.w.losses {
		if l.job == job && l.at == at && !n.lost[l.claimID] {
			n.lost[l.claimID] = true
			return true
		}
	}
	return false
}

// sumOf is what one event adds to a sum, in which equal ones cancel each other.
func sumOf(kind tickonce.EventKind, at store.Instant, what int64) uint64 {
	return core.Mix64(core.Mix64(uint64(kind)^uint64(at)<<8) ^ uint64(what))
}

// hears is the observer of the process's engine. It sums up what [world.owes]
// does, but for events that no call answers and those of the lease.
func (n *node) hears(e tickonce.Event) {
	w, what, times := n.w, int64(e.Job), int64(1)
	switch e.Kind {
	case tickonce.EventFired:
		if j := w.truth.jobs[e.Job]; j != nil && !j.wasFired(e.Schedule, e.Queue, e.Boundary) {
			w.fail(trueEvents, e.Schedule, "of a fire was told: "+j.unlike(e.Job, e.Schedule, e.Queue, e.Boundary))
		}
	case tickonce.EventClaimed:
		what += e.Count << 48
	case tickonce.EventRetrying:
		if n.working != nil {
			n.working.outage = true
		}
		return
	case tickonce.EventClaimLost:
		if n.working != nil && n.working.outage && n.handling == nil { // it could not be renewed in time, as no call answered
			for _, a := range n.working.attempts {
				if a.job.ID == e.Job {
					n.lost[claimID{e.Job, a.job.Attempt}] = true
				}
			}
			return
		}
		if n.tellsLoss(e.Job, store.Instant(e.At.UnixMilli())) {
			w.heard = e.Kind
			return
		}
	case tickonce.EventEnqueued, tickonce.EventTriggered:
	case tickonce.EventDone, tickonce.EventRetried, tickonce.EventDied,
		tickonce.EventDelivered, tickonce.EventDeliveryRetried, tickonce.EventDeliveryFailed:
		what = endSum(e.Job, e.Execution, e.Delivery, e.Origin)
	case tickonce.EventScheduled, tickonce.EventUnscheduled, tickonce.EventPaused, tickonce.EventResumed,
		tickonce.EventQuarantined, tickonce.EventRearmed:
		what = w.truth.named[e.Schedule].index
	case tickonce.EventSkipped, tickonce.EventBreakerOpened:
		what, times = w.truth.named[e.Schedule].index, e.Count
	case tickonce.EventBuried:
		what, times = 0, e.Count
	default:
		return
	}
	w.owed -= uint64(times) * sumOf(e.Kind, store.Instant(e.At.UnixMilli()), what)
	w.heard = e.Kind
}

// checkEvents checks at the end of an operation that what was told is what
// happened.
func (w *world) checkEvents() {
	w.checked[anOperation]++
	if w.owed != 0 || slices.ContainsFunc(w.losses, func(l loss) bool { return !w.acting.lost[l.claimID] }) {
		w.fail(trueEvents, "", fmt.Sprintf("%s was told of other events than happened, the last one was %s", w.acting, w.heard))
	}
	w.owed, w.losses, w.heard = 0, w.losses[:0], tickonce.EventNone
	if n := w.acting; n != nil && n.rouses {
		n.rouses = false
		for _, worker := range n.workers {
			if worker.roused {
				worker.wakeUp()
			}
		}
	}
}
