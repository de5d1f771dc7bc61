package sim

import (
	"fmt"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// result is a delivery that a handler has staged, in the model.
type result struct {
	outbox  *trueQueue
	payload []byte
}

// isResult reports whether it is the delivery of a job's result.
func isResult(in store.Insert) bool { return in.From != nil && in.From.Origin != 0 }

// The stamps and the deadline of the delivery of a result, and the longest wait
// between two of its tries (X7).
var resultStamps = store.Stamps{VisibilityMS: 60_000, BaseBackoffMS: 1000, MaxAttempts: 3}

const (
	tryTimeoutMS = 30_000
	maxTryWaitMS = 8000
)

// insert is what is to be written of a result of the job.
func (r *result) insert(j *trueJob) store.Insert {
	return store.Insert{
		Queue: r.outbox.row.Name, Payload: r.payload, Stamps: resultStamps, RunAt: store.None,
		From: &store.Source{
			Schedule: j.schedule.scenario.Name, ScheduleID: j.incarnation, FireAt: j.boundary, Origin: j.id, TimeoutMS: tryTimeoutMS,
		},
	}
}

// checkResults checks that what the runs have staged which the batch acks is in the
// batch, as it was staged, and nothing that a run has not staged or that it staged
// before it failed (X2).
func (t *truth) checkResults(b *store.Batch) {
	next := 0
	is := func(want *store.Insert) bool {
		for next < len(b.Inserts) && !isResult(b.Inserts[next]) {
			next++
		}
		if next == len(b.Inserts) {
			return want == nil
		}
		next++
		return want != nil && sameInsert(&b.Inserts[next-1], want) && *b.Inserts[next-1].From == *want.From
	}
	for i := range b.Settles {
		j := t.jobs[b.Settles[i].Job]
		if b.Settles[i].To != store.Done {
			continue
		}
		for k := range j.results {
			t.w.checked[aResult]++
			if want := j.results[k].insert(j); !is(&want) {
				t.w.fail(withItsAck, j.schedule.scenario.Name, fmt.Sprintf("%s was acked without its delivery %d of %d, or with another one", jobOf(j.boundary), k+1, len(j.results)))
			}
		}
		j.results = nil
	}
	if !is(nil) {
		t.w.fail(withItsAck, b.Inserts[next-1].From.Schedule, "a delivery was written that no run has staged which ended well")
	}
}

// refused notes why the batch of a worker was not written.
func (t *truth) refused(b *store.Batch, done *store.Committed) {
	n, at := t.w.acting, done.Refusal
	switch at.Why {
	case store.ClaimLost:
		s := &b.Settles[at.Index]
		t.w.owesLoss(done.Now, s.Job, s.Attempt)
		if a := n.attemptAt(s.Job, s.Attempt); a != nil && a.run != nil && n.handling == nil {
			a.isSettled(false)
		}
		if t.w.watched() {
			t.w.tellOfRefusal(s.Job, s.Attempt)
		}
	case store.QueueFull:
		if !isResult(b.Inserts[at.Index]) {
			return
		}
		t.w.coverage.sometimes(resultRefused, true)
		for i := range b.Settles {
			s := &b.Settles[i]
			if a := n.attemptAt(s.Job, s.Attempt); a != nil && s.Job == b.Inserts[at.Index].From.Origin && n.handling == nil {
				a.noRoom = a.noRoom || n.reply == faultstore.Pass
			}
		}
	}
}

// again reports whether another try may do after a failure of the class (X6).
func (c Class) again(j *trueJob) bool {
	return c.Kind != ClassPermanent && (c.Kind != ClassPlain || j.origin == 0)
}

// fails reports whether the settlement is what a failure of the class makes of the
// job (QU6, X6, X7).
func (j *trueJob) fails(s *store.Settle, c Class) bool {
	if j.attempts >= j.stamps.MaxAttempts || !c.again(j) {
		return s.To == store.Dead
	}
	most := backoffMS(int64(j.stamps.BaseBackoffMS), j.attempts)
	least := most / 2
	switch {
	case c.Kind == ClassRetryAfter:
		most = c.After.Milliseconds()
		least = most
	case j.origin != 0:
		most = min(most, maxTryWaitMS)
		least = most
	}
	return s.To == store.Pending && least <= s.DelayMS && s.DelayMS <= most
}

// outcome is how the run ended (X1), and what that says of another attempt.
func (a *attempt) outcome() (store.Execution, Class) {
	switch {
	case a.overdue:
		return store.TimedOut, Class{Kind: ClassTimeout}
	case a.noRoom:
		return store.Failed, Class{}
	case a.err == nil:
		return store.OK, Class{}
	}
	ended, class := store.Failed, a.class
	if a.ends == panics { // which says nothing
		ended, class = store.Panicked, Class{}
	}
	if a.cut && (class.Kind == ClassPlain || class.Kind == ClassTimeout) { // the job cannot help it (W6)
		class = Class{Kind: ClassRetryAfter}
		if ended == store.Failed {
			ended = store.Cancelled
		}
	}
	return ended, class
}

// outcomeOf is what the settlement says of the run or, of an entry, of the try (X1).
func (t *truth) outcomeOf(a *attempt, j *trueJob, s *store.Settle) (e Event) {
	if j.queue.outbox == nil {
		e.Execution = s.Ended
		return e
	}
	class, tried := t.w.intent.class, t.w.intent.ends == fails
	if a != nil && a.run != nil {
		_, class = a.outcome()
		tried = true
	}
	switch {
	case s.To == store.Done:
		e.Delivery = tickonce.Delivered
	case !tried: // it was given back as its worker stops
	case class.again(j):
		e.Delivery = tickonce.DeliveryTransient
	default:
		e.Delivery = tickonce.DeliveryPermanent
	}
	return e
}

// owesEnd notes what a process is told of a settlement.
func (w *world) owesEnd(a *attempt, j *trueJob, s *store.Settle, done bool, now store.Instant) {
	if !done || j == nil {
		w.owesLoss(now, s.Job, s.Attempt)
		return
	}
	kinds := [...]tickonce.EventKind{store.Pending: tickonce.EventRetried, store.Done: tickonce.EventDone, store.Dead: tickonce.EventDied}
	if j.queue.outbox != nil {
		kinds = [...]tickonce.EventKind{
			store.Pending: tickonce.EventDeliveryRetried, store.Done: tickonce.EventDelivered, store.Dead: tickonce.EventDeliveryFailed,
		}
	}
	e := w.truth.outcomeOf(a, j, s)
	w.owes(kinds[s.To], now, endSum(s.Job, e.Execution, e.Delivery, j.originOfEntry()), 1)
}

// originOfEntry is the job whose result an entry is, or 0.
func (j *trueJob) originOfEntry() store.JobID {
	if j.queue.outbox == nil {
		return 0
	}
	return j.origin
}

// endSum stands for what an event tells of the end of a job.
func endSum(job store.JobID, execution store.Execution, delivery tickonce.Delivery, origin store.JobID) int64 {
	return int64(core.Mix64(core.Mix64(uint64(job)) ^ uint64(execution)<<56 ^ uint64(delivery)<<48 ^ uint64(origin)))
}

// reaches notes which of the ends of runs and of deliveries it is.
func (w *world) reaches(j *trueJob, s *store.Settle, e *Event) {
	if j.queue.outbox == nil {
		w.coverage.sometimes(runFailed, s.Ended == store.Failed)
		w.coverage.sometimes(runTimedOut, s.Ended == store.TimedOut)
		w.coverage.sometimes(runCancelled, s.Ended == store.Cancelled)
		return
	}
	if j.origin == 0 {
		return
	}
	transient := e.Delivery == tickonce.DeliveryTransient
	w.coverage.sometimes(resultDelivered, s.To == store.Done)
	w.coverage.sometimes(resultRetried, transient && s.To == store.Pending)
	w.coverage.sometimes(resultExhausted, transient && s.To == store.Dead)
	w.coverage.sometimes(resultPermanent, e.Delivery == tickonce.DeliveryPermanent)
	w.coverage.sometimes(resultTimedOut, s.Ended == store.TimedOut)
}
