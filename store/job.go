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
	Origin     JobID      // of a delivery: the job whose result it delivers, of which it has the three above; or 0

	Stamps     Stamps
	TimeoutMS  int64   // how long a run may take from its claim (X5); 0: as its worker says
	EnqueuedAt Instant // the store's now at the insert
	RunAt      Instant // not claimable before
	ExpiresAt  Instant // not claimable at or after; None: never expires

	Priority int16
	State    State
	Alone    bool  // not handed out while another job of its schedule's name is claimed (X9)
	Attempts int32 // claims so far; with the id, the token of the latest one

	Worker   string  // of the latest claim
	Deadline Instant // the latest claim holds while now ≤ Deadline; None if never claimed

	LastError string
	Since     Instant // when it was claimed, or died; None while pending
}

// Counts reports whether the job is one of its schedule's own, for the overlap,
// the breaker and the history: not a delivery.
func (j *Job) Counts() bool { return j.Schedule != "" && j.Origin == 0 }

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
	Priority int16

	From *Source // of a job that is fired by hand, and of a delivery; else nil

	// The job is ready from max(RunAt, now) on or, where RunAt is None, from
	// now + DelayMS on. It expires ExpiresMS after that; 0: never.
	RunAt     Instant
	DelayMS   int64
	ExpiresMS int64
}

// Job is the pending job that the insert at now makes, but for its id.
func (in *Insert) Job(now Instant) Job {
	j := Job{
		Queue: in.Queue, Payload: in.Payload, Key: in.Key, Stamps: in.Stamps, Priority: in.Priority,
		FireAt: None, EnqueuedAt: now, RunAt: max(in.RunAt, now), ExpiresAt: None,
		State: Pending, Deadline: None, Since: None,
	}
	if len(j.Payload) == 0 {
		j.Payload = nil
	}
	if f := in.From; f != nil {
		j.Schedule, j.ScheduleID, j.FireAt, j.Origin = f.Schedule, f.ScheduleID, f.FireAt, f.Origin
		j.TimeoutMS, j.Alone = f.TimeoutMS, f.Alone
	}
	if in.RunAt == None {
		j.RunAt = now.Add(in.DelayMS)
	}
	if in.ExpiresMS != 0 {
		j.ExpiresAt = j.RunAt.Add(in.ExpiresMS)
	}
	return j
}

// Source is what a job of a schedule has beside that of any other; see [Job].
type Source struct {
	Schedule   string
	ScheduleID ScheduleID
	FireAt     Instant // None, or a delivery's
	Origin     JobID   // 0, or a delivery's
	TimeoutMS  int64
	Alone      bool
}

// Settle ends one claim. Its guard is [Job.Holds].
type Settle struct {
	Job     JobID
	Attempt int32
	To      State     // Done, Pending or Dead
	Ended   Execution // of the run
	DelayMS int64     // Pending: ready again this long after now
	Error   string    // Pending and Dead: the job's last error

	Tripped uint8 // set by the store: where it opened the breaker of the job's schedule (X4), the failures in a row
}

// Execution is how a run of a job ended (X1).
type Execution uint8

// How a run ends.
const (
	OK        Execution = iota + 1
	Failed              // with an error
	TimedOut            // at its deadline (X5)
	Panicked            // or ended its goroutine
	Cancelled           // by the stop of its worker, or with its job (QU7)
	Lost                // its claim lapsed
)

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

	Tripped []Trip // the breakers that the burials of exhausted jobs opened (X4)
}

// Trip is a breaker that opened.
type Trip struct {
	Schedule string
	Failures uint8 // in a row
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
	// and claimed jobs, but no ReadyAt of a job that waits to be Alone (X9);
	// None without any. So a waiter that sleeps until it is
	// never parked past a claimable job (QU10), and no job waits for ever for
	// its burial; the instant may lie in the past.
	NextClaimAt Instant

	// Waiting counts the jobs that wait to be Alone (X9): they would be handed
	// out, now or one day, were no other job of their schedule claimed.
	Waiting int64
}

// Len is what the queue's limit counts: every job it keeps.
func (q *Queue) Len() int64 { return q.Pending + q.Claimed + q.Dead }
