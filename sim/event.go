package sim

import (
	"time"

	"github.com/tickonce/tickonce"
)

// Watch runs a scenario as [Run] does, and tells everything that happens in it
// that explains what became of the boundaries. The result is the same as that of
// Run. The event is tell's only until it returns.
func Watch(s Scenario, tell func(*Event)) (*Result, error) {
	return runWith(s, rig{budget: maxEvents, tell: tell})
}

// Event is one thing that happened in a run. Which fields it has depends on its
// kind, as the kinds say; Process, Fault, ID, Cause and Step count from 1, and are
// 0 where there is none.
type Event struct {
	ID    int64 // in the order of happening
	Cause int64 // the event that led to this one
	Since int64 // of what a schedule does: the event that had kept it from doing so, or had changed it, since it last fired; of a tick that is refused: what befell its process since the read
	Step  int64 // in which it happened, of [Result.Events]
	Kind  EventKind

	At    time.Time // true time
	Shown time.Time // what the store's clock showed

	Fault    int // its place in [Scenario.Faults]; of jobs: of the one that the job met last, if it met one
	Process  int // 0: the store, or the operator
	Worker   string
	Schedule string
	Queue    string

	Boundary time.Time     // of a job: of its fire
	Last     time.Time     // of skips: the last boundary
	Count    int64         // of skips, rows, fires
	Late     time.Duration // in true time, since the store's clock first reached the boundary
	Again    bool          // it had fired before, and a restart or a repair of the clock had taken that back; of a handler: what it delivers had come through before

	Job       int64
	Attempt   int                // of a delivery: the try
	Origin    int64              // of a delivery: the job that it tells of, whose Schedule and Boundary it has; its Queue is the outbox's name
	Execution tickonce.Execution // how a run ended; 0 where none has, and of the jobs of outboxes
	Delivery  tickonce.Delivery  // what became of a try to deliver an entry of an outbox (X1)
	Error     string             // of an attempt that failed: its text
	Term      int64
	Until     time.Time     // by the store's clock
	By        time.Duration // by how much a clock is ahead of true time; how long a call is on its way
	Drift     int64         // of a clock, in parts per million
	Op        string        // of the store, a word of the key op=
	Reason    string

	Digest Digest // of everything up to here
}

// EventKind is what an event is.
type EventKind uint8

// The kinds, and the fields beside ID, Cause, Step, At, Shown and Digest that
// each has.
const (
	// EventFaultBegan: a fault began, or struck. Fault.
	EventFaultBegan EventKind = iota + 1

	// EventFaultEnded: and ended. Fault.
	EventFaultEnded

	// EventStoreOpened: the store opened, with what the Reason says: empty, journal,
	// snapshot.
	EventStoreOpened

	// EventProcessStarted: a process started. Process.
	EventProcessStarted

	// EventProcessStopped: a process went away. Process; Reason: down, crash.
	EventProcessStopped

	// EventProcessPaused: a process takes no step. Process; Last: until when, in
	// true time.
	EventProcessPaused

	// EventClockTurned: a clock was set or runs at another pace. Process, By, Drift.
	EventClockTurned

	// EventLeaseGranted: a runner got the lease. Process, Term, Until.
	EventLeaseGranted

	// EventLeaseRenewed: a runner kept it. Process, Term, Until.
	EventLeaseRenewed

	// EventLeaseRefused: a runner did not get the lease, since another has it, or
	// its renewal was refused. Process; Op: acquire, renew; Term: of the lease that
	// was to be renewed.
	EventLeaseRefused

	// EventLeaseReleased: a runner gave it back. Process, Term.
	EventLeaseReleased

	// EventRunnerEnded: a runner ended by itself. Process, Reason.
	EventRunnerEnded

	// EventCallLost: a call of the store failed. Process, Op, Fault; Reason: request
	// (it was not done), reply (it was).
	EventCallLost

	// EventCallDelayed: a call of the store is long on its way, there and back.
	// Process, Op, Fault, By.
	EventCallDelayed

	// EventRowsRead: a runner read rows that are due. Process; Count of rows.
	EventRowsRead

	// EventTickWritten: its tick was written. Process, Term; Count of fires.
	EventTickWritten

	// EventTickRefused: its tick was refused, since its lease was not live. Process,
	// Term; Count of fires that did not happen.
	EventTickRefused

	// EventFired: a boundary fired. Process, Schedule, Queue, Boundary, Late, Again,
	// Job.
	EventFired

	// EventSkipped: boundaries that lie next to each other were skipped. Process,
	// Schedule, Boundary (the first), Last, Count; Reason: pause, hours, policy,
	// overlap, cap, missed.
	EventSkipped

	// EventHeld: a row that cannot be decided was quarantined. Process, Schedule,
	// Boundary (of its cursor), Until.
	EventHeld

	// EventStale: a row was left alone, since it had changed since it was read.
	// Process, Schedule.
	EventStale

	// EventQueueFull: a row was left alone, since its queue has no room. Process,
	// Schedule, Queue, Boundary (of its cursor); Count of fires that must wait.
	EventQueueFull

	// EventRegistered: a schedule was added or changed. Process, Schedule, Boundary
	// (of its cursor).
	EventRegistered

	// EventRepaired: a runner mended what a wrong clock had done to a schedule.
	// Process, Schedule, Boundary (of its cursor).
	EventRepaired

	// EventPaused: a schedule was paused. Process, Schedule.
	EventPaused

	// EventResumed: and resumed. Process, Schedule, Boundary (of its cursor).
	EventResumed

	// EventBreakerOpened: a schedule was paused by its breaker. Process, Schedule, Queue,
	// Boundary: of the job that failed last; Count of those that did.
	EventBreakerOpened

	// EventRemoved: a schedule was removed. Process, Schedule.
	EventRemoved

	// EventTampered: a row was written behind the engine's back, to spoil or to mend
	// it. Schedule, Boundary (of its cursor).
	EventTampered

	// EventEnqueued: a job of no schedule was put into a queue, or a delivery into an
	// outbox. Queue, Job; of a delivery, Origin, Schedule and Boundary, as its other
	// events. Those of any other such job have neither Schedule nor Boundary.
	EventEnqueued

	// EventTriggered: a schedule was fired by hand. Schedule, Queue, Job; its jobs have
	// no Boundary.
	EventTriggered

	// EventClaimed: a job was handed out. Process, Worker, Schedule, Queue, Boundary,
	// Job, Origin, Attempt, Until.
	EventClaimed

	// EventHandlerEnded: a handler ended. Process, Worker, Schedule, Queue, Boundary,
	// Job, Origin, Attempt; Reason: ok, fail, panic; Fault: that it met, if it met one;
	// Delivery and Again of one whose delivery came through, which one that fails may
	// have, too.
	EventHandlerEnded

	// EventHandlerCut: a handler was cut off with its process, or gave up since that
	// stops, its time was over, or its claim was lost. Fields as of EventHandlerEnded;
	// Reason: stop, timeout, claim-lost.
	EventHandlerCut

	// EventJobDone: a job is done. Schedule, Queue, Boundary, Job, Origin, Attempt,
	// Execution or Delivery.
	EventJobDone

	// EventJobRetried: a job is tried again. Fields as of EventJobDone; Until, Error.
	EventJobRetried

	// EventJobDied: a job died. Fields as of EventJobDone; Error; Reason: failed,
	// lapsed, expired.
	EventJobDied

	// EventClaimLost: a late ack, retry or heartbeat was refused, and changed nothing.
	// Process, Job, Attempt.
	EventClaimLost

	// EventViolated: an invariant was broken. Schedule; Reason: which, and how.
	EventViolated
)

var eventWords = [...]string{
	EventFaultBegan: "fault-began", EventFaultEnded: "fault-ended", EventStoreOpened: "store-opened",
	EventProcessStarted: "process-started", EventProcessStopped: "process-stopped", EventProcessPaused: "process-paused",
	EventClockTurned: "clock-turned", EventLeaseGranted: "lease-granted", EventLeaseRenewed: "lease-renewed",
	EventLeaseRefused: "lease-refused", EventLeaseReleased: "lease-released", EventRunnerEnded: "runner-ended",
	EventCallLost: "call-lost", EventCallDelayed: "call-delayed", EventRowsRead: "rows-read",
	EventTickWritten: "tick-written", EventTickRefused: "tick-refused", EventFired: "fired", EventSkipped: "skipped",
	EventHeld: "held", EventStale: "stale", EventQueueFull: "queue-full", EventRegistered: "registered",
	EventRepaired: "repaired", EventPaused: "paused", EventResumed: "resumed", EventBreakerOpened: "breaker-opened", EventRemoved: "removed",
	EventTampered: "tampered", EventEnqueued: "enqueued", EventTriggered: "triggered", EventClaimed: "claimed", EventHandlerEnded: "handler-ended", EventHandlerCut: "handler-cut",
	EventJobDone: "job-done", EventJobRetried: "job-retried", EventJobDied: "job-died", EventClaimLost: "claim-lost",
	EventViolated: "violated",
}

// String is the kind's word in a trace.
func (k EventKind) String() string {
	if int(k) < len(eventWords) && eventWords[k] != "" {
		return eventWords[k]
	}
	return "event"
}
