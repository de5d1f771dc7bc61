package tickonce

import (
	"time"

	"github.com/tickonce/tickonce/store"
)

// EventKind says what happened.
type EventKind uint8

// The kinds of events, each with the fields of [Event] that it sets beside
// Kind and At.
const (
	EventNone EventKind = iota

	// Schedules.
	EventScheduled   // Schedule, Queue; Boundary: the next one
	EventUnscheduled // Schedule
	EventPaused      // Schedule
	EventResumed     // Schedule; Boundary: the next one

	EventBreakerOpened // Schedule, Queue, Job: or 0, Count: the failures in a row (X4)
	EventTriggered     // Schedule, Queue, Job

	// The tick.
	EventFired       // Schedule, Queue, Job, Boundary
	EventSkipped     // Schedule, First, Last, Count, Reason
	EventQuarantined // Schedule, Queue, Reason, Count: how often in a row (Q2)
	EventCursorAhead // Schedule, Boundary: the cursor (T11)
	EventRearmed     // Schedule, Boundary: the new cursor (T11)

	// The runner, and the worker, whose Owner is its name.
	EventLeading        // Owner
	EventLeaseLapsed    // Owner: it acquires anew (L4)
	EventLeadershipLost // Owner
	EventStandBy        // Owner, Wait, Err: why it does not lead; once for each reason (L3)
	EventRetrying       // Owner, Queue: of a worker, Phase, Count: the failed attempts, Wait, Err (R1, I9)
	EventStopped        // Owner, Queue: of a worker, Err: nil after a clean stop

	// Jobs. What ends a run, or loses it, has the Schedule and the Boundary of its
	// job, if that has them.
	EventEnqueued  // Queue, Job; of a delivery Schedule, Boundary, Origin
	EventClaimed   // Queue, Job, Count: the attempt
	EventBuried    // Queue, Count: jobs that died expired or without attempts left (QU5, QU9)
	EventDone      // Queue, Job, Execution, Took
	EventRetried   // Queue, Job, Execution, Count: the attempt, Took, Wait, Reason: the error's text
	EventDied      // Queue, Job, Execution, Count: the attempt, Took, Reason: the error's text
	EventClaimLost // Queue, Job; once for a claim, when who has it meets its loss: it lapsed, or its job was cancelled, which the history tells apart
	EventCancelled // Queue, Job
	EventRequeued  // Queue, Job: the new id
	EventPurged    // Queue, Count
	EventAbandoned // Owner, Queue, Job, Schedule, Boundary: a worker that ended left its claim to lapse

	// Deliveries: the ends of the jobs of outboxes, with Schedule and Boundary of
	// the job whose result it is.
	EventDelivered       // Queue, Job, Delivery, Origin, Took
	EventDeliveryRetried // Queue, Job, Delivery, Origin, Count: the try, Took, Wait, Reason: the error's text
	EventDeliveryFailed  // Queue, Job, Delivery, Origin, Count: the try, Took, Reason: the error's text
)

var eventNames = [...]string{
	"none", "scheduled", "unscheduled", "paused", "resumed", "breaker_opened",
	"triggered", "fired", "skipped", "quarantined",
	"cursor_ahead", "rearmed", "leading", "lease_lapsed", "leadership_lost", "stand_by", "retrying",
	"stopped", "enqueued", "claimed", "buried", "done", "retried", "died", "claim_lost", "cancelled",
	"requeued", "purged", "abandoned", "delivered", "delivery_retried", "delivery_failed",
}

func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "unknown"
}

// Event is one thing that happened, as told to [Config.Observer]. At most one
// event tells of it: what an unknown outcome hid stands in the store, not in
// an event.
type Event struct {
	Kind EventKind
	At   time.Time // the store's now; of what no call has answered, as EventRetrying, the host's

	Schedule string
	Queue    string
	Job      JobID
	Boundary time.Time
	Origin   JobID // of a delivery: the job whose result it is, or 0

	Execution Execution // how a run ended, or 0
	Delivery  Delivery  // and a delivery (X1)

	First, Last time.Time // of a range of boundaries
	Count       int64
	Reason      string

	Owner string
	Phase Phase
	Wait  time.Duration
	Took  time.Duration // from the claim to the end
	Err   error
}

// emit tells the observer. Its panic is contained: what happened has happened.
func (e *Engine) emit(event Event) {
	if e.config.Observer == nil {
		return
	}
	defer func() { _ = recover() }()
	e.config.Observer(event)
}

func skipEvent(at store.Instant, schedule string, skip store.Skip) Event {
	return Event{
		Kind: EventSkipped, At: timeOf(at), Schedule: schedule, Reason: skip.Reason.String(),
		First: timeOf(skip.First), Last: timeOf(skip.Last), Count: skip.Count,
	}
}
