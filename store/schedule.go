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

	Priority int32
	Paused   Pause
	Hold     *Hold // why the row is quarantined, or nil
}

// Stamps are copied onto a job when it is inserted and frozen there.
type Stamps struct {
	VisibilityMS  int64 // how long a claim lasts without a heartbeat
	BaseBackoffMS int64 // the retry curve's base
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
}

// Move is what was decided for one row.
type Move struct {
	ID     ScheduleID
	Rev    Rev // the guard
	Cursor Instant
	DueAt  Instant
	SetAt  Instant
	Hold   *Hold
	Fires  int32 // how many of the tick's fires belong to this move

	Outcome Outcome // set by [Store.Advance]
}

// Fire is one boundary that becomes one job.
type Fire struct {
	Move     int32 // index into Tick.Moves
	Boundary Instant

	Job JobID // set by [Store.Advance]; 0 if the move was not made
}

// Outcome is what became of a move.
type Outcome uint8

// The outcomes of a move.
const (
	// Stale: no row with this id and rev; nothing of the move was written.
	Stale Outcome = iota
	// Moved: the row was written and its jobs inserted.
	Moved
	// Full: the queue has no room for the move's jobs; nothing of it was
	// written.
	Full
)
