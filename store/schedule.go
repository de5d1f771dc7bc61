package store

// ScheduleID identifies one incarnation of a schedule: one grid of one name.
// Ids are positive, given by the store at the commit that creates the
// incarnation, and never used again (S6).
type ScheduleID int64

// Rev counts the writes of a schedule row, from 1. Every write raises it by
// one; it is the guard of every write (T3).
type Rev int64

// Schedule is the row of one schedule.
type Schedule struct {
	ID      ScheduleID
	Rev     Rev
	Name    string
	Spec    string // the text, parsed again at every tick (G5)
	Queue   string
	Payload []byte

	Stamps    Stamps
	ExpiresMS int64 // a fired job expires this long after its RunAt, the tick's now; 0: never
	CatchUp   CatchUp

	Anchor Instant // the grid is Anchor + k·interval, k ≥ 0
	Cursor Instant // the next boundary neither fired nor skipped
	DueAt  Instant // when to look: the cursor, the end of a hold, None while paused
	SetAt  Instant // the store's now when the cursor was set (T11)

	Live Live // as the store counts them at a read; not read in a [Put]

	Priority int16
	Paused   Pause
	Overlap  Overlap
	RunOnce  bool  // its first fire pauses it for good (X8)
	AtAnchor bool  // the first boundary of the incarnation is its anchor, which lay ahead
	Breaker  uint8 // how many jobs in a row have to fail to pause it (X4); 0: none
	Failures uint8 // how many have; at most Breaker
	Rare     *Rare // what few schedules have, or nil
	Hold     *Hold // why the row is quarantined, or nil
}

// Live counts the jobs of a schedule's name, of all its incarnations and in all
// queues, but for deliveries (X9).
type Live struct {
	Pending, Claimed int32
}

// Overlap says whether a schedule fires while jobs of it are live (X9).
type Overlap uint8

// The policies of overlap.
const (
	Allow     Overlap = iota // it does
	SkipLive                 // not while one is pending or claimed
	BufferOne                // not while one is pending
)

// Blocked reports whether the policy keeps a schedule from firing while so many
// of its jobs are live.
func (o Overlap) Blocked(live Live) bool {
	switch o {
	case Allow:
		return false
	case BufferOne:
		return live.Pending > 0
	default:
		return live.Pending > 0 || live.Claimed > 0
	}
}

// Rare is what few schedules have. It is immutable.
type Rare struct {
	Hours     Hours // a zero one: always
	TimeoutMS int64 // the timeout that is stamped onto its jobs (X5); 0: none
}

// Hours are active hours: the minutes [Start, End) of the day in a zone, over
// midnight where End is less; with End equal to Start, always (X10).
type Hours struct {
	Start, End uint16 // 0…1439
	Zone       string // of the IANA time zone database; "": UTC
}

// Ended counts the end of one of the schedule's jobs (X4): done, or failed,
// that is dead by its handler's word or its attempts exhausted, but not
// expired. At the Breaker's count an active schedule is paused, and tripped is
// true. It reports whether the row changed, which is a write like any other.
func (s *Schedule) Ended(failed bool) (changed, tripped bool) {
	if !failed {
		changed = s.Failures > 0
		s.Failures = 0
		return changed, false
	}
	if s.Failures < s.Breaker {
		s.Failures++
		changed = true
	}
	if s.Breaker > 0 && s.Failures == s.Breaker && s.Paused == Active {
		s.Paused, s.DueAt = PausedByBreaker, None
		changed, tripped = true, true
	}
	return changed, tripped
}

// Stamps are copied onto a job when it is inserted and frozen there.
type Stamps struct {
	VisibilityMS  int64 // how long a claim lasts without a heartbeat
	BaseBackoffMS int32 // the retry curve's base
	MaxAttempts   int32
}

// CatchUp says which of several due boundaries fire (T14): those not older
// than the window, of these at most Max, the oldest or the newest.
type CatchUp struct {
	WindowMS int64 // 0: no window
	Max      int32 // 1…64
	Newest   bool
}

// Pause says whether a schedule is paused, and by what (S7).
type Pause uint8

// The states of a schedule.
const (
	Active Pause = iota
	PausedByUser
	PausedByBreaker
	PausedByRunOnce
)

// Hold is the quarantine mark of a row (Q4). It is immutable.
type Hold struct {
	Reason string
	Since  Instant // of the first of the consecutive holds
	Times  int32   // how many consecutive holds
}

// Due is the answer of [Store.Due].
type Due struct {
	N    int     // rows written to dst
	Now  Instant // the store's reading
	Next Instant // the least DueAt among the rows not answered; None without any
}

// Tick is one atomic write of the runner: fire and advance (T3).
type Tick struct {
	By    Lease   // the write is refused unless this lease is live (L6)
	Now   Instant // the reading the plan rests on: fired jobs are ready from it on (T2)
	Moves []Move  // at most one for a schedule
	Fires []Fire  // in (boundary, name) order, the order of the inserted jobs' ids (T10)
	Skips []Skip  // of the moves, in their order, at most two for each
}

// Move is what was decided for one row.
type Move struct {
	ID     ScheduleID
	Rev    Rev // the guard
	Cursor Instant
	DueAt  Instant
	SetAt  Instant
	Hold   *Hold
	Live   Live  // the guard of a row whose Overlap is not [Allow]
	Fires  int32 // how many of the tick's fires belong to this move
	Ends   bool  // a run-once had its turn: the row is paused for good (X8)

	Outcome Outcome // set by [Store.Advance]
}

// Fire is one boundary that becomes one job. No boundary of an incarnation fires
// twice; a store may refuse the move of a second job of one.
type Fire struct {
	Move     int32 // index into Tick.Moves
	Boundary Instant

	Job JobID // set by [Store.Advance]; 0 if the move was not made
}

// Outcome is what became of a move.
type Outcome uint8

// The outcomes of a move.
const (
	// Stale: no row with this id, rev and, where it matters, live jobs;
	// nothing of the move was written.
	Stale Outcome = iota
	// Moved: the row was written and its jobs inserted.
	Moved
	// Full: the queue has no room for the move's jobs; nothing of it was
	// written.
	Full
	// Refused: the store cannot write what the move says, now or later; nothing
	// of it was written.
	Refused
)

// Skip is a range of boundaries that will not fire, for one reason: First,
// Last, and those between them EveryMS apart.
type Skip struct {
	Move        int32 // of a tick's: index into Tick.Moves
	Reason      SkipReason
	EveryMS     int64
	First, Last Instant
	Count       int64
}

// SkipReason says why boundaries do not fire.
type SkipReason uint8

// The reasons. A boundary has the first of those from SkipPause to SkipCap that
// holds (T14).
const (
	SkipPause   SkipReason = iota + 1 // dropped by a resume (S7)
	SkipHours                         // outside the active hours (X10)
	SkipPolicy                        // older than the window, or more than the policy's count
	SkipOverlap                       // a job of the schedule was live (X9)
	SkipCap                           // more than 64
	SkipMissed                        // due when its grid ended, or a run-once's that came too late (X8, X12)
	SkipBefore                        // of the grid, but before the schedule was on it: never due on it; an earlier grid may have had it
)
