package sim

import (
	"time"

	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// The limits of a scenario. The text of one that exceeds them is refused.
const (
	MaxFile      = 1 << 20 // bytes, the recorded outcome included
	MaxLine      = 4096    // bytes of one line
	MaxSchedules = 10_000
	MaxQueues    = 10_000 // lines that describe a queue, and as many outboxes
	MaxFaults    = 10_000
	MaxRunners   = 16
	MaxWorkers   = 1000    // of one queue in one process
	MaxAtWork    = 100_000 // workers of all queues, in all processes
	MaxTimes     = 1000    // that one crash repeats itself
	MaxJobs      = 1000    // that one fault puts into a queue at once
)

// DefaultStart is when a scenario starts that does not say it.
var DefaultStart = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Scenario is one simulated run as data: what runs, for how long, and what
// goes wrong meanwhile. [Parse] reads one from text, String writes it back;
// built in Go it is checked by [Scenario.Validate].
type Scenario struct {
	Engine     Engine
	Start      time.Time     // true time at the beginning; zero: [DefaultStart]
	For        time.Duration // how long the run lasts
	QuietAfter time.Duration // no fault lasts longer, and liveness is judged from here on; 0: the end of the last fault, with a swarm two thirds of the run

	Queues    []Queue
	Outboxes  []Outbox
	Schedules []Schedule
	Handlers  Handlers // those in Go, which no text has
	Faults    []Fault
	Swarm     Swarm // has faults drawn from the seed, where Faults has none
	Expect    []Expect

	// Store opens the store under test, with no rows in it; nil: that of package
	// memengine. It is a store for one goroutine that keeps to package store, as
	// package storetest demands it; its calls answer at once. It
	// keeps what a restart finds, so that restart=snapshot is one from a journal; for
	// restart=empty another is opened. The text of a scenario has no Store.
	Store func(now func() store.Instant, limits store.Limits) store.Store

	// Reopen has a restart open the store anew, from what the one before has kept:
	// what every call left that was answered, but no lease of the scheduler (D6).
	// It answers the new one. nil: the one before goes on, leases and all.
	Reopen func(store.Store) store.Store

	// Outcome is the recorded outcome, the text below the line "----". It is
	// no part of what runs.
	Outcome string
}

func (s *Scenario) start() time.Time {
	if s.Start.IsZero() {
		return DefaultStart
	}
	return s.Start
}

// Engine configures the engines under test. A zero field has the engine's own
// default.
type Engine struct {
	Runners       int // 0: 1
	Lease         time.Duration
	Batch         int
	OnTime        time.Duration
	StandBy       bool
	ClockRepair   ClockRepair
	QueueLimit    int           // how many jobs a queue keeps
	SnapshotEvery time.Duration // how often each process takes a snapshot; 0: only at the start
	Ties          Ties
	Seed          uint64 // of every random choice of the run
}

// ClockRepair is what becomes of a schedule whose cursor a wrong clock set
// far ahead (T11).
type ClockRepair uint8

// The repairs.
const (
	RepairHold  ClockRepair = iota // what was fired or skipped stays so
	RepairRearm                    // from the first boundary after now on
)

// Ties is the order of what happens at the same instant.
type Ties uint8

// The orders.
const (
	TiesFIFO   Ties = iota // as it was planned
	TiesSeeded             // drawn anew for every seed
)

// Queue says what workers a queue has. A queue of a schedule that no Queue
// describes has one. They are the engine's own, [tickonce.Worker], unless a schedule
// has a Heartbeat or a fault is of acks: then it is worked by hand, by as many
// programs that claim one job after the other, with no timeout, and settle it
// themselves.
type Queue struct {
	Name        string
	Workers     int           // in each process; 0: nobody takes jobs from it
	Concurrency int           // how many jobs each has in hand at most; 0: 1
	Timeout     time.Duration // how long a run of a job may take; 0: no bound
}

// Outbox is an outbox of the engine, and how its deliveries go. Its name is not that
// of a queue. Results of jobs come there by [Schedule.Deliver] and [Call.Deliver],
// other entries by [Schedule.Outbox], [FaultHandlerSpawns], [FaultOverload] and
// [Call.EnqueueOutbox]. Its workers are the engine's own, [tickonce.Outbox.NewWorker],
// or with a Heartbeat programs that call [tickonce.Outbox.RunOnce].
type Outbox struct {
	Name        string
	Workers     int           // in each process; 0: nobody delivers
	Concurrency int           // how many entries each has in hand at most; 0: 1
	Deliver     Handler       // what happens when an entry is delivered
	Heartbeat   time.Duration // how often a delivery extends its claim of 60 s; 0: never (O4)
	MaxAttempts int           // of each entry that is no result of a job; 0: the engine's own, 5
}

// Schedule is a schedule and what its handler does. A zero option has the
// engine's own default.
type Schedule struct {
	Name    string
	Spec    string // "@every 5m"
	Queue   string
	CatchUp CatchUp
	Anchor  time.Time
	Payload []byte

	Priority    int16
	Expires     time.Duration
	Visibility  time.Duration
	MaxAttempts int
	BaseBackoff time.Duration

	Handler   Handler
	Heartbeat time.Duration // how often a running handler extends its claim; the jobs of its queue are worked by hand then. 0: the engine's worker does it

	Policies

	Deliver string // the outbox to which its handler delivers the result, before it returns, with [tickonce.Job.Deliver]; "": to none
	Outbox  string // where a handler that succeeds puts an entry, in one transaction with its ack, as with Tx of [FaultHandlerSpawns]; "": nowhere
}

// Policies say what else decides whether a schedule fires, and for how long its jobs
// run. The zero value has none of them.
type Policies struct {
	Overlap Overlap
	Hours   Hours         // outside of which nothing fires (X10)
	RunOnce bool          // the first fire is the last, and its job starts once at most (X8)
	Breaker int           // after how many jobs in a row that failed the schedule is paused (X4); 0 and [NoBreaker]: never, unlike the engine's own 3
	Timeout time.Duration // how long a handler may take from its claim (X5); 0: for ever
}

// NoBreaker is [Policies.Breaker] where a text says breaker=off.
const NoBreaker = -1

// Overlap says whether a schedule fires while jobs of it are not done (X9).
type Overlap uint8

// The policies of overlap.
const (
	OverlapAllow     Overlap = iota // it does
	OverlapSkip                     // not while one is pending or claimed
	OverlapBufferOne                // not while one is pending
)

// Hours are the times of day from Start to before End in a zone, over midnight where
// End is before Start; with both the same they are always.
type Hours struct {
	Start, End time.Duration // since midnight, in whole minutes, less than a day
	Zone       string        // of the IANA time zone database; "": UTC
}

// CatchUp is a schedule's catch-up policy (T14).
type CatchUp uint8

// The policies.
const (
	CatchUpAll CatchUp = iota
	CatchUpLatest
	CatchUpGrace
	CatchUpNone
)

// Handler is what happens when a job runs. The zero Handler succeeds at once.
type Handler struct {
	Kind  HandlerKind
	Takes Span // unless it overruns
	Fails PPM  // of HandlerFails and HandlerPanics: how likely, 0: always. Otherwise the run succeeds
}

// HandlerKind is how a handler ends.
type HandlerKind uint8

// The kinds.
const (
	HandlerSucceeds HandlerKind = iota
	HandlerFails
	HandlerOverruns // succeeds after twice its visibility: by hand and without a heartbeat too late
	HandlerPanics   // by hand nobody settles its claim then
)

// Span is a range of durations, both ends included; what lies in it is drawn.
type Span struct{ Min, Max time.Duration }

// PPM is a probability in parts per million.
type PPM int32

// Always is certainty.
const Always PPM = 1_000_000

// Fault is one thing that goes wrong. Which fields it may have depends on its
// kind.
type Fault struct {
	Kind FaultKind
	At   time.Duration // from the start
	For  time.Duration // how long; of FaultCrash and FaultRestartStorm: until the restart

	Runner   int           // the process it happens to, from 1; 0: all of them
	Point    Point         // of the faults of an instant, which At then only arms
	By       time.Duration // of FaultClockJump and FaultClockStrobe
	Drift    int64         // of FaultClockDrift: parts per million
	Chance   PPM           // 0: always
	Applied  Applied       // of FaultStoreErrors; of FaultHandlerFails, FaultHandlerSlow and FaultHandlerHangs: whether a delivery that fails or takes too long came through all the same, 0: no
	Error    Class         // of FaultHandlerFails and FaultPoison: what the error says of another try
	Late     Late          // of FaultStoreSlow
	Torn     bool          // of FaultJournalErrors
	Tx       bool          // of FaultHandlerSpawns: in one transaction with the ack
	Op       Op            // of the store's faults: which calls; 0: any
	Restart  Restart       // of FaultCrash and FaultRestartStorm
	Times    int           // of FaultRestartStorm: how often
	Profile  Profile       // of FaultThrottle
	Takes    Span          // of FaultHandlerSlow: how long, zero: twice the visibility; of the acks' faults: how much later
	Jobs     int           // of FaultHandlerSpawns: for each that ends, 0: one; of FaultOverload: in all
	Schedule string        // of edits, FaultTamper and FaultLostRow; of the handlers' and the acks' faults: of whose jobs, "": any
	To       string        // of FaultEditRename: the other schedule
	Into     string        // of FaultHandlerSpawns: another queue, or an outbox
	Queue    string        // of the handlers' and the acks' faults: whose jobs, "": any; of FaultEditChange and FaultOverload; of the handlers' faults and FaultOverload an outbox, too
	Spec     string        // of FaultEditChange and FaultTamper
	CatchUp  CatchUp       // of FaultEditChange
	Policies Policies      // of FaultEditPolicies
	Row      Spoiling      // of FaultTamper
}

// FaultKind is what kind of fault it is.
type FaultKind uint8

// The kinds.
const (
	// FaultDown: the process stops in good order, is away, and starts again with
	// what its journal kept. Handlers that run are cut off; with a Runner, whose
	// store stays, the engine's workers first let them run for 10 s, and give them
	// 5 s to return (W6).
	FaultDown FaultKind = iota + 1

	// FaultCrash: the process is gone at once, between two calls or between a call
	// and its reply, and starts again with what Restart says.
	FaultCrash

	// FaultRestartStorm: it crashes, is away for For, lives for as long, crashes again,
	// and so on, Times times.
	FaultRestartStorm

	// FaultPause: the process takes no step, its workers neither, as when it is
	// stopped by a signal or its machine by the host. What falls due meanwhile
	// comes afterwards, and it goes on with what it knew.
	FaultPause

	// FaultThrottle: the process's host lets it take steps only at some instants, as
	// browsers and laptops do; what falls due between comes then.
	FaultThrottle

	// FaultClockJump: a clock jumps; with For it jumps back afterwards. Without a
	// Runner it is the store's. Each of several processes has a clock of its own,
	// by which its runner and its workers sleep; a single one shares the store's.
	FaultClockJump

	// FaultClockDrift: a clock runs too fast, or too slow, and keeps what that has
	// made of it.
	FaultClockDrift

	// FaultClockFreeze: a clock stands still, and then goes on from there.
	FaultClockFreeze

	// FaultClockStrobe: a clock jumps forth and back, each second.
	FaultClockStrobe

	// FaultStoreErrors: calls of the store fail, each by chance.
	FaultStoreErrors

	// FaultStoreSlow: calls of the store are long on their way, each by chance.
	// What is on its way when the fault ends arrives then.
	FaultStoreSlow

	// FaultStoreFull: the store has no room for one row more: all calls that write
	// but renewals and releases fail, and change nothing.
	FaultStoreFull

	// FaultJournalErrors: the journal fails to keep records, each by chance, and so
	// the calls fail that they are of, and change nothing (D2). With Torn the first
	// of them is cut somewhere, or has zeros for its end: then no other comes behind
	// it until the store opens again, which at the end of the fault it does, as the
	// processes crash and start with what the journal has (D3). It is of the
	// store in memory alone.
	FaultJournalErrors

	// FaultSwizzle: the processes are cut off from the store, one after the other in
	// the first half of the time, and come back in another order in the second.
	FaultSwizzle

	// The next two break the store's contract, each by chance. What has to hold all
	// the same is everything but that due rows are found at once: each move is
	// guarded by the row's revision (T3).

	// FaultStaleRead: reads of due rows answer rows as they were before they were
	// last written.
	FaultStaleRead

	// FaultRepeatedRow: reads of due rows answer each row twice.
	FaultRepeatedRow

	// FaultLostRow: the row of a schedule is gone, behind the engine's back; with For
	// it is put back afterwards, with another id, unless it was registered
	// meanwhile.
	FaultLostRow

	// FaultHandlerSlow: handlers that start take longer, each by chance.
	FaultHandlerSlow

	// FaultHandlerFails: handlers that start fail, each by chance.
	FaultHandlerFails

	// FaultHandlerPanics: handlers that start panic, each by chance. The worker
	// goes on; by hand nobody settles the claim.
	FaultHandlerPanics

	// FaultHandlerHangs: handlers that start do not return before the fault is over,
	// whatever their context says, and do not beat by hand, each by chance.
	FaultHandlerHangs

	// FaultPoison: of some jobs, drawn for each, the handlers that start fail, as
	// often as they are tried.
	FaultPoison

	// FaultHandlerSpawns: handlers that succeed put more jobs into their queue, or
	// into another one or an outbox, before their ack, each by chance, and fail if
	// that does. With Tx they look up their schedule, enqueue and ack in one
	// transaction, which is tried again if the schedule has changed; handlers that
	// fail roll theirs back.
	FaultHandlerSpawns

	// The faults of acks are of programs that settle by hand, which is how the jobs
	// of their queues, or of all, are then worked for the whole run.

	// FaultLateAck: when a handler has ended, its ack or retry is sent later, each
	// by chance, while the worker goes on.
	FaultLateAck

	// FaultDuplicateAck: an ack or retry is sent twice, each by chance.
	FaultDuplicateAck

	// FaultLostAck: an ack or retry is never sent, each by chance, and the worker
	// does not know.
	FaultLostAck

	// FaultOverload: the operator puts jobs of no schedule into a queue, all or none,
	// each of which takes a second; or entries into an outbox.
	FaultOverload

	// Edits are made by an operator outside the processes, one after the other; a
	// call that fails, or finds the store away, is made again after 5 s. A process
	// that starts registers the schedules as the scenario has them (S1).

	FaultEditAdd    // registers the schedule as the scenario has it
	FaultEditChange // registers it with another spec, queue or policy
	FaultEditPause
	FaultEditResume // what was missed is skipped
	FaultEditRemove
	FaultEditRename   // removes it and registers it under another's name, in one transaction
	FaultEditPolicies // registers it with other policies than its own: those of the fault, and no others
	FaultEditTrigger  // has it fire at once, unless it is paused or its overlap forbids that

	// FaultTamper: the row of a schedule is spoilt behind the engine's back; with
	// For it is mended afterwards.
	FaultTamper
)

// Class is what the error of a handler says of another attempt. Of an error without
// a class an attempt follows after the curve, but none of the delivery of a job's
// result (X6).
type Class struct {
	Kind  ClassKind
	After time.Duration // of ClassRetryAfter
}

// ClassKind is the kind of a class.
type ClassKind uint8

// The kinds.
const (
	ClassPlain      ClassKind = iota // nothing
	ClassTransient                   // as [tickonce.Transient]: one may do
	ClassPermanent                   // as [tickonce.Permanent]: it would be in vain
	ClassTimeout                     // the error is a timeout, with no mark
	ClassRetryAfter                  // as [tickonce.RetryAfter]: not before so much later
)

// Profile is how a host throttles a process.
type Profile uint8

// The profiles.
const (
	// HiddenTab: as a browser treats a tab that nobody sees: at whole seconds, after
	// 5 min at whole minutes, after an hour not at all.
	HiddenTab Profile = iota + 1

	// Laptop: as a computer that was closed: asleep, but for the last 10 s of each
	// hour.
	Laptop

	// LowPower: timers are put together: every 10 s.
	LowPower
)

// Point is the point of a process's work at which a fault strikes: of the process
// that the fault names, or of any. A fault that would last beyond the quiet does
// not strike any more.
type Point uint8

// The points.
const (
	// Anywhere: at the fault's time, whatever the processes do.
	Anywhere Point = iota

	// BetweenReadAndWrite: when next a process stands between the read of due
	// rows and the write of its tick.
	BetweenReadAndWrite

	// MidRequest: when next a call of a process is on its way to the store, as while
	// [FaultStoreSlow] is on.
	MidRequest

	// MidReply: when next a reply of the store is on its way back to a process.
	MidReply
)

// Applied says whether a store call that fails was done nevertheless.
type Applied uint8

// What may have happened.
const (
	AppliedNo Applied = iota + 1
	AppliedYes
	AppliedUnknown // drawn for every call
)

// Late says what of a slow call is late.
type Late uint8

// What may be late.
const (
	LateEither  Late = iota // drawn for every call: how much of the time is the request's
	LateRequest             // the store makes the call late
	LateReply               // the store makes it at once, and the caller is told late
)

// Op is a kind of call of the store.
type Op uint8

// The calls.
const (
	OpSchedules = Op(faultstore.Schedules) + 1
	OpJobs      = Op(faultstore.Jobs) + 1
	OpQueues    = Op(faultstore.Queues) + 1
	OpDue       = Op(faultstore.Due) + 1
	OpAdvance   = Op(faultstore.Advance) + 1
	OpClaim     = Op(faultstore.Claim) + 1
	OpSettle    = Op(faultstore.Settle) + 1
	OpExtend    = Op(faultstore.Extend) + 1
	OpAcquire   = Op(faultstore.Acquire) + 1
	OpRenew     = Op(faultstore.Renew) + 1
	OpRelease   = Op(faultstore.Release) + 1
	OpCommit    = Op(faultstore.Commit) + 1
	OpRuns      = Op(faultstore.Runs) + 1
	OpSkips     = Op(faultstore.Skips) + 1
)

// Restart is what a crashed process has when it starts again.
type Restart uint8

// What there may be.
const (
	FromJournal  Restart = iota + 1 // everything
	FromSnapshot                    // what the last snapshot had
	FromNothing                     // an empty store, into which the schedules are registered again
)

// Spoiling is what is wrong with a row.
type Spoiling uint8

// What there may be.
const (
	SpoilSpec      Spoiling = iota + 1 // it does not parse
	SpoilCutSpec                       // it lacks its last character
	SpoilQueue                         // it is one of the engine's own
	SpoilPolicy                        // no boundary may fire at once
	SpoilOffGrid                       // the cursor lies between two boundaries, the second of which was the next
	SpoilAhead                         // the cursor is a thousand boundaries ahead
	SpoilEndOfTime                     // the cursor is the last instant
)

// Expect is something that a run must come to.
type Expect struct {
	Kind     ExpectKind
	Schedule string  // of the three kinds that count
	Count    int64   // of the same
	Verdict  Verdict // of ExpectVerdict
	Mark     string  // of ExpectMark: its id; or "all", and behind it ",-" and the id of each that is not expected
}

// ExpectKind is what is expected.
type ExpectKind uint8

// The kinds.
const (
	ExpectNoDoubleFire ExpectKind = iota + 1
	ExpectFires                   // the schedule fires so many boundaries
	ExpectSkipped                 // so many boundaries are skipped
	ExpectQuarantined             // the schedule is held so often
	ExpectVerdict                 // the run's verdict
	ExpectMark                    // a coverage mark is reached; all of them, by a sweep of [EnoughSeeds]
)
