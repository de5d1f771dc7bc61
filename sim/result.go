package sim

import (
	"time"

	"github.com/tickonce/tickonce/store"
)

// Result is what a run came to. Instants in it are true time, which no fault
// moves, unless a field says otherwise.
type Result struct {
	Seed      uint64
	Verdict   Verdict
	Digest    Digest        // of everything that happened
	Simulated time.Duration // less than asked for where the run was broken off
	Events    int64         // steps of processes, runners and workers, and faults

	Spent string // what it took more of than a run may, "events" or "memory"; the verdict is [Budget] then, or a graver one

	Schedules []ScheduleResult // in the scenario's order
	Queues    []QueueResult    // by name
	Faults    []FaultResult    // in the scenario's order
	Checks    []Check          // the whole catalogue of invariants, in its own order
	Failures  []Failure        // invariants broken, in the order of their discovery; at the 100th the run is broken off
	Unmet     []string         // expectations that were not met: what was expected, what came
	Excused   []Excuse         // what was stuck and had to be
	Coverage  Coverage         // how often each coverage mark was reached
}

// ScheduleResult is what became of the boundaries of one schedule. Boundaries
// is Fired plus Skipped, as the truth below all faults has it; one that fired
// again is in both twice.
type ScheduleResult struct {
	Name, Spec, Queue string

	Boundaries  int64
	Fired       int64
	Skipped     int64
	SkipReasons map[string]int64 // "pause", "hours", "policy", "overlap", "cap", "missed"
	Quarantined int64            // how often the row was held

	FiredAgain    int64 // of Fired: had fired, and a restart had forgotten it
	FiredByRepair int64 // of Fired: had fired by a wrong clock, and clock-repair=rearm took it back (T11)

	Left      int64 // due at the end, and neither fired nor skipped by then
	Forgotten int64 // came due while a store was gone with which they were forgotten, and never had another fate

	// MaxLate is the longest time between the instant at which the store's
	// clock first reached a boundary and its fire.
	MaxLate   time.Duration
	FirstFire time.Time // zero: none
	LastFire  time.Time

	LastError string // of its handler in Go, when it failed last
}

// QueueResult is what a queue came to, by the store's own counters: what a
// restart from an older state made it forget is in DoneForgotten and Lost alone.
type QueueResult struct {
	Name   string
	Outbox bool // it is one

	Enqueued  int64 // the sum of the next five
	Done      int64
	Dead      int64
	Pending   int64 // at the end
	Claimed   int64 // at the end
	Cancelled int64

	DeadReasons map[string]int64 // "failed": the last attempt; "lapsed": its claim; "expired"
	Claims      int64            // jobs handed out, each as often as it was
	Retried     int64            // attempts that failed before the last one

	Delivered      int64 // of an outbox: how often an entry came through
	DeliveredAgain int64 // of Delivered: had come through, and nobody had settled it, or a restart had forgotten that

	DoneForgotten int64 // jobs done, and then unknown to a restart that began from an older state
	Lost          int64 // jobs not done, and then unknown to such a restart
}

// FaultResult says how often a fault took effect, and what that cost.
type FaultResult struct {
	Fault  Fault
	Text   string // as in a scenario file
	Effect int64  // calls failed, handlers hit, restarts, jumps
	Cost   Cost
}

// Failure is an invariant that was broken.
type Failure struct {
	Invariant string // its number and name, as "1 fires once"
	At        time.Time
	Schedule  string
	Detail    string
	Verdict   Verdict // what it makes of the run: Safety, Liveness, HandlerCrash or Budget
}

// Excuse is something that was stuck and had to be.
type Excuse struct {
	Kind string // why it had to be, the same for all of its kind
	Text string // when and where
}

// add adds the counts of another schedule, or of another run.
func (s *ScheduleResult) add(o *ScheduleResult) {
	if s.SkipReasons == nil {
		s.SkipReasons = map[string]int64{}
	}
	for _, reason := range reasonWords {
		if n := o.SkipReasons[reason]; n > 0 {
			s.SkipReasons[reason] += n
		}
	}
	s.Boundaries += o.Boundaries
	s.Fired += o.Fired
	s.Skipped += o.Skipped
	s.Quarantined += o.Quarantined
	s.FiredAgain += o.FiredAgain
	s.FiredByRepair += o.FiredByRepair
	s.Left += o.Left
	s.Forgotten += o.Forgotten
	s.MaxLate = max(s.MaxLate, o.MaxLate)
}

// add adds the counts of another queue, or of another run.
func (q *QueueResult) add(o *QueueResult) {
	if q.DeadReasons == nil {
		q.DeadReasons = map[string]int64{}
	}
	for _, cause := range deathWords {
		if n := o.DeadReasons[cause]; n > 0 {
			q.DeadReasons[cause] += n
		}
	}
	q.Enqueued += o.Enqueued
	q.Done += o.Done
	q.Dead += o.Dead
	q.Pending += o.Pending
	q.Claimed += o.Claimed
	q.Cancelled += o.Cancelled
	q.Claims += o.Claims
	q.Retried += o.Retried
	q.Delivered += o.Delivered
	q.DeliveredAgain += o.DeliveredAgain
	q.DoneForgotten += o.DoneForgotten
	q.Lost += o.Lost
}

// timeOf is an instant as a time in UTC; the zero time where there is none.
func timeOf(t store.Instant) time.Time {
	if t == store.None {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}
