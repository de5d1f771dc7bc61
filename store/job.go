package store

// JobID identifies a job. Ids are positive and rise in the order of insertion.
type JobID int64

// State is where a job is. Done, cancelled and purged jobs are counted, not
// kept.
type State uint8

// The states of a job. The zero State means any in a [Filter].
const (
	Pending State = iota + 1
	Claimed
	Dead
	Done // the target of a [Settle]; no kept row has it
)

// The error texts of jobs that die without a caller's word.
const (
	ErrorExhausted = "max attempts exceeded" // QU5
	ErrorExpired   = "expired"               // QU9
)

// MaxBuried is how many doomed jobs one [Store.Claim] moves to dead at most.
const MaxBuried = 1000

// Job is the row of one job.
type Job struct {
	ID      JobID
	Queue   string
	Payload []byte
	Key     string // "" without one (QU12)

	Schedule   string     // the name of the schedule that fired it, or ""
	ScheduleID ScheduleID // and its incarnation, or 0
	FireAt     Instant    // the boundary, or None

	Stamps     Stamps
	EnqueuedAt Instant // the store's now at the insert
	RunAt      Instant // not claimable before
	ExpiresAt  Instant // not claimable at or after; None: never expires

	Priority int32
	Attempts int32 // claims so far; with the id, the token of the latest one
	State    State

	Worker   string  // of the latest claim
	Deadline Instant // the latest claim holds while now ≤ Deadline; None if never claimed

	LastError string
	DiedAt    Instant // None unless dead
}

// ReadyAt is the instant from which the job may be handed out, if it is not
// doomed by then: a pending job from its run-at on, a claimed one when its
// claim has lapsed, that is one millisecond after its deadline (QU3). None for
// a dead job.
func (j *Job) ReadyAt() Instant {
	switch j.State {
	case Pending:
		return j.RunAt
	case Claimed:
		return j.lapsesAt()
	default:
		return None
	}
}

// lapsesAt is the instant from which the job's claim has lapsed; None where its
// deadline is the last instant there is.
func (j *Job) lapsesAt() Instant {
	if j.Deadline >= MaxInstant {
		return None
	}
	return j.Deadline + 1
}

// DoomedAt is the instant from which the job, left alone, can only die: it has
// expired (QU9), or its claim has lapsed and no attempt is left (QU5). None if
// there is no such instant, as for a dead job.
func (j *Job) DoomedAt() Instant {
	spent := j.Attempts >= j.Stamps.MaxAttempts
	switch {
	case j.State == Pending && spent:
		return j.RunAt
	case j.State == Pending:
		return j.ExpiresAt
	case j.State == Claimed && spent:
		return j.lapsesAt()
	case j.State == Claimed && j.ExpiresAt != None:
		return max(j.ExpiresAt, j.lapsesAt())
	default:
		return None
	}
}

// DoomText is the last error that a job which dies of its doom gets: the error
// of expiry where both hold.
func (j *Job) DoomText(now Instant) string {
	if j.ExpiresAt <= now {
		return ErrorExpired
	}
	return ErrorExhausted
}

// Holds reports whether the claim with this attempt number is the live one at
// now (QU3, QU4).
func (j *Job) Holds(attempt int32, now Instant) bool {
	return j.State == Claimed && j.Attempts == attempt && now <= j.Deadline
}

// Insert is a job to be inserted.
type Insert struct {
	Queue    string
	Payload  []byte
	Key      string // "": none
	Stamps   Stamps
	Priority int32

	// The job is ready from max(RunAt, now) on or, where RunAt is None, from
	// now + DelayMS on. It expires ExpiresMS after that; 0: never.
	RunAt     Instant
	DelayMS   int64
	ExpiresMS int64
}

// Settle ends one claim. Its guard is [Job.Holds].
type Settle struct {
	Job     JobID
	Attempt int32
	To      State  // Done, Pending or Dead
	DelayMS int64  // Pending: ready again this long after now
	Error   string // Pending and Dead: the job's last error
}

// Extend renews one claim: its deadline becomes now + ForMS (QU8). Its guard
// is [Job.Holds].
type Extend struct {
	Job     JobID
	Attempt int32
	ForMS   int64
}

// Claim is the answer of [Store.Claim].
type Claim struct {
	N      int     // rows written to dst
	Buried int     // doomed jobs moved to dead, at most [MaxBuried]
	Now    Instant // the store's reading
}

// Filter chooses jobs of one queue.
type Filter struct {
	Queue string
	State State // 0: any
	From  JobID // the least id
}

// Queue is what a store knows of one queue: the jobs it keeps, and counters of
// all that ever happened. A queue is there from its first job on, and stays. At
// every instant (invariant 4)
//
//	Enqueued = Pending + Claimed + Dead + Done + Cancelled + Requeued + Purged
type Queue struct {
	Name string

	Pending, Claimed, Dead int64

	Enqueued  int64 // inserted, fired and requeued
	Claims    int64 // attempts handed out
	Retried   int64 // claims settled to pending
	Done      int64
	Died      int64 // ever moved to dead
	Cancelled int64
	Requeued  int64 // dead jobs that were inserted anew
	Purged    int64 // dead jobs that were removed

	// NextClaimAt is the least instant at which a claim would hand out a job
	// of the queue, or bury one: the least ReadyAt and DoomedAt of its pending
	// and claimed jobs; None without any. So a waiter that sleeps until it is
	// never parked past a claimable job (QU10), and no job waits for ever for
	// its burial; the instant may lie in the past.
	NextClaimAt Instant
}

// Len is what the queue's limit counts: every job it keeps.
func (q *Queue) Len() int64 { return q.Pending + q.Claimed + q.Dead }
