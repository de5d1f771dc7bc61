package sim

import (
	"cmp"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// causes are the events by which the next ones are explained. Each is 0 until
// there is one.
type causes struct {
	last   int64 // of all
	fault  int64 // that began, or ended, last
	opened int64 // the store
	lease  int64 // why the last holder of the lease lost it, or how it got it
	tick   int64 // the one under way
}

// watched reports whether somebody is told of events. Where they are frequent
// they are not even made if nobody is.
func (w *world) watched() bool { return w.rig.tell != nil }

// tell tells of an event, and answers its ID; 0 if nobody is told.
func (w *world) tell(e Event) int64 {
	if !w.watched() {
		return 0
	}
	w.causes.last++
	told := e // so that e itself need not be allocated where nobody is told
	told.ID, told.Step, told.At, told.Shown, told.Digest = w.causes.last, w.events, timeOf(w.now), timeOf(w.shown()), w.digest
	w.rig.tell(&told)
	return told.ID
}

// number is that of the process in an event.
func (n *node) number() int {
	if n == nil || n == n.w.operator {
		return 0
	}
	return n.index + 1
}

// tellOf tells of an event of the schedule, which may explain when it fires next.
func (w *world) tellOf(s *trueSchedule, e Event) {
	if !w.watched() {
		return
	}
	e.Schedule, e.Process, e.Since = s.scenario.Name, w.acting.number(), s.since
	if e.Cause == 0 {
		e.Cause = w.causeOfCall()
	}
	switch id := w.tell(e); e.Kind {
	case EventFired:
		s.since = 0
	case EventSkipped:
	default:
		s.since = id
	}
}

// tellOfSkips tells of the boundaries from first to before end, if there are
// any.
func (w *world) tellOfSkips(s *trueSchedule, first, end store.Instant, reason store.SkipReason) {
	if n := int64(end-first) / s.interval; w.watched() && n > 0 {
		e := Event{Kind: EventSkipped, Boundary: timeOf(first), Last: timeOf(end.Add(-s.interval)), Count: n, Reason: reason.String()}
		if reason != store.SkipPause {
			e.Cause = w.causes.tick
		}
		w.tellOf(s, e)
	}
}

// tellOfFault tells that a fault begins or ends.
func (w *world) tellOfFault(fault int, kind EventKind) {
	state := &w.faults[fault]
	state.told = w.tell(Event{Kind: kind, Cause: state.told, Fault: fault + 1, Process: w.scenario.Faults[fault].Runner})
	w.causes.fault = state.told
}

// causeOfCall is the event that led to the call under way.
func (w *world) causeOfCall() int64 {
	switch n := w.acting; {
	case n == nil:
		return 0
	case n == w.operator && len(w.edits) > 0:
		return w.faults[w.edits[0]].told
	default:
		return n.cause
	}
}

// tellOfJob tells of an event of a job, which the next one of it follows.
func (w *world) tellOfJob(id store.JobID, j *trueJob, e Event) {
	if !w.watched() {
		return
	}
	if e.Cause == 0 {
		e.Cause = j.cause
	}
	e.Schedule, e.Queue, e.Boundary = j.schedule.scenario.Name, j.queue.name, timeOf(j.boundary)
	e.Job, e.Origin, e.Attempt, e.Fault = int64(id), int64(j.origin), int(j.attempts), j.fault
	j.cause = w.tell(e)
}

// tell tells of an event of the attempt.
func (a *attempt) tell(kind EventKind, reason string) {
	if w, job := a.worker.node.w, a.job; w.watched() {
		delivery := tickonce.DeliveryNone
		if a.through {
			delivery = tickonce.Delivered
		}
		a.cause = w.tell(Event{
			Kind: kind, Delivery: delivery, Again: a.repeats, Cause: a.cause, Process: a.worker.node.number(), Worker: a.worker.name, Schedule: job.Schedule,
			Queue: a.worker.queue.name, Boundary: job.Boundary, Job: int64(job.ID), Origin: int64(job.Origin), Attempt: job.Attempt, Reason: reason,
			Fault: a.fault,
		})
		if j := w.truth.jobs[store.JobID(job.ID)]; j != nil && int(j.attempts) == job.Attempt {
			j.cause = a.cause
		}
	}
}

// tellOfCall tells what becomes of a call of n by a fault.
func (w *world) tellOfCall(n *node, op faultstore.Op, fault int, e Event) {
	if !w.watched() {
		return
	}
	e.Cause, e.Fault = w.faults[fault].told, fault+1
	e.Process, e.Op = n.number(), opWords[Op(op.Method)+1]
	id := w.tell(e)
	switch op.Method {
	case faultstore.Acquire, faultstore.Renew, faultstore.Due, faultstore.Advance:
		n.disturbed(id)
	}
}

// disturbed notes the event that explains what the process's runner does next,
// and why it may lose the lease.
func (n *node) disturbed(id int64) {
	n.cause = id
	if n == n.w.truth.holder {
		n.w.causes.lease = id
	}
}

// tellOfLease tells what a runner was answered that asked for the lease, or for
// more of that of the term. It is granted because it began to run, or because
// the other lost it.
func (t *truth) tellOfLease(grant *store.Grant, term store.Term, op string) {
	w, n := t.w, t.w.acting
	if !w.watched() {
		return
	}
	e := Event{Kind: EventLeaseRefused, Cause: n.cause, Process: n.number(), Term: int64(term), Op: op}
	switch {
	case !grant.OK && op == "acquire":
		e.Term, e.Cause = 0, w.causes.lease
		w.tell(e)
	case !grant.OK:
		n.cause = w.tell(e)
	case op == "renew":
		e.Kind, e.Until, e.Op = EventLeaseRenewed, timeOf(grant.Lease.ExpiresAt), ""
		w.tell(e)
	default:
		e.Kind, e.Until, e.Op = EventLeaseGranted, timeOf(grant.Lease.ExpiresAt), ""
		e.Cause = max(n.cause, w.causes.lease)
		n.grant = w.tell(e)
		n.cause, w.causes.lease = n.grant, n.grant
	}
}

// tellOfTick tells of a tick of n that was written or refused.
func (w *world) tellOfTick(n *node, tick *store.Tick, kind EventKind) int64 {
	e := Event{Kind: kind, Cause: n.read, Process: n.number(), Term: int64(tick.By.Term), Count: int64(len(tick.Fires))}
	if kind == EventTickWritten {
		return w.tell(e)
	}
	if n.cause > n.read {
		e.Since = n.cause
	}
	n.cause = w.tell(e)
	return n.cause
}

// tellOfClaim tells that a job was handed out.
func (w *world) tellOfClaim(id store.JobID, j *trueJob) {
	if !w.watched() {
		return
	}
	w.tellOfJob(id, j, Event{Kind: EventClaimed, Process: w.acting.number(), Worker: w.acting.working.name, Until: timeOf(j.deadline)})
}

// tellOfRefusal tells that the claim of a call was lost.
func (w *world) tellOfRefusal(id store.JobID, attempt int32) {
	e := Event{Kind: EventClaimLost, Job: int64(id), Attempt: int(attempt), Process: w.acting.number(), Fault: w.answers}
	if j := w.truth.jobs[id]; j != nil {
		e.Fault = cmp.Or(e.Fault, j.fault)
		e.Origin = int64(j.origin)
		e.Cause, e.Schedule, e.Queue, e.Boundary = j.cause, j.schedule.scenario.Name, j.queue.name, timeOf(j.boundary)
	}
	if a := w.acting.attemptAt(id, attempt); a != nil {
		e.Fault, e.Schedule, e.Queue = cmp.Or(e.Fault, a.fault), a.job.Schedule, a.worker.queue.name
	}
	w.tell(e)
}

// event is the kind of event that the operation on a schedule is.
func (i intent) event() EventKind {
	switch i.edit {
	case 0:
		return EventRepaired
	case FaultEditPause:
		return EventPaused
	case FaultEditResume:
		return EventResumed
	case FaultEditTrigger:
		return EventTriggered
	default:
		return EventRegistered
	}
}

// attemptAt is the attempt in the hands of the worker whose step it is, or nil.
func (n *node) attemptAt(id store.JobID, number int32) *attempt {
	w := n.worksOn()
	if w == nil {
		return nil
	}
	if job := w.has.job; job != nil && job.ID == id && job.Attempt == int(number) {
		return &w.has
	}
	for _, a := range w.attempts {
		if a.job.ID == id && a.job.Attempt == int(number) {
			return a
		}
	}
	return nil
}

// worksOn is the worker whose step it is, or nil.
func (n *node) worksOn() *worker {
	if n == nil {
		return nil
	}
	return n.working
}
