package store

// The history is what a store remembers of the past of its schedules: runs that
// ended (X11) and boundaries that were skipped (X12). It is kept by name for as
// long as there is a schedule of the name, through all its incarnations, and is
// bounded by [Limits]: the oldest is dropped first.

// EntryID numbers the runs of a store's history, and its skip ranges, from 1 on
// in the order in which they were recorded.
type EntryID int64

// Run is one attempt of a job that counts for its schedule ([Job.Counts]), as
// it ended. With its attempt the job's id is its key.
type Run struct {
	ID         EntryID
	Schedule   string
	ScheduleID ScheduleID
	Job        JobID
	FireAt     Instant // the boundary; None: fired by hand

	FiredAt   Instant // the job's EnqueuedAt
	StartedAt Instant // when it was claimed
	EndedAt   Instant // when the end was recorded, for a lost run as for any other

	Attempt int32
	Ended   Execution
	To      State  // what became of the job: Done, Pending, Dead, Claimed by another, or 0: cancelled
	Error   string // the last error that the job got with it
}

// Ends is the run that the latest claim of a job was, as it ended at now.
func (j *Job) Ends(ended Execution, to State, lastError string, now Instant) Run {
	return Run{
		Schedule: j.Schedule, ScheduleID: j.ScheduleID, Job: j.ID, FireAt: j.FireAt,
		FiredAt: j.EnqueuedAt, StartedAt: j.Since, EndedAt: now,
		Attempt: j.Attempts, Ended: ended, To: to, Error: lastError,
	}
}

// Execution is how the run ended that s settles: where the caller does not say,
// it is ok if the job is done, and else has failed.
func (s *Settle) Execution() Execution {
	switch {
	case s.Ended != 0:
		return s.Ended
	case s.To == Done:
		return OK
	default:
		return Failed
	}
}

// Weight is what the run counts for against [Limits.History]: one, and one more
// for each [WeighedText] bytes of its error.
func (r *Run) Weight() int64 { return 1 + int64(len(r.Error)/WeighedText) }

// WeighedText is how many bytes of text weigh as much as an entry.
const WeighedText = 256

// SkipRange are boundaries of one incarnation that were skipped, one after
// another, for one reason: First, Last, and those between them EveryMS apart.
type SkipRange struct {
	ID          EntryID
	Schedule    string
	ScheduleID  ScheduleID
	Reason      SkipReason
	EveryMS     int64
	First, Last Instant
	Count       int64
	From, Until Instant // when the first and the last of them were skipped
}

// Range is what a skip of the schedule at now becomes if no range takes it in.
func (s *Skip) Range(schedule string, id ScheduleID, now Instant) SkipRange {
	return SkipRange{
		Schedule: schedule, ScheduleID: id, Reason: s.Reason, EveryMS: s.EveryMS,
		First: s.First, Last: s.Last, Count: s.Count, From: now, Until: now,
	}
}

// TakeIn takes in a later range of the same name if it goes on where r ends, by
// one step of the same grid and for the same reason, and reports whether it did.
func (r *SkipRange) TakeIn(next *SkipRange) bool {
	if next.ScheduleID != r.ScheduleID || next.Reason != r.Reason || next.EveryMS != r.EveryMS ||
		next.First != r.Last+Instant(r.EveryMS) {
		return false
	}
	r.Last, r.Count, r.Until = next.Last, r.Count+next.Count, next.Until
	return true
}

// Page says which entries of a schedule's history a call reads: those before
// this one, newest first.
type Page struct {
	Schedule string
	Before   EntryID // 0: all
}

// History is the answer of [Store.Runs] and [Store.Skips]. Of a schedule that
// has none N and the totals are 0.
type History struct {
	N   int     // entries written to dst
	Now Instant // the store's reading

	// What was dropped: boundaries of the present incarnation before Since may
	// have had entries that are gone, and those before Earlier may have been
	// boundaries of earlier incarnations. MinInstant: none.
	Since, Earlier Instant

	// Totals count what was ever recorded for the name: runs by [Execution],
	// skipped boundaries by [SkipReason].
	Totals [HistoryTotals]int64
}

// HistoryTotals is more than the largest [Execution] and the largest
// [SkipReason].
const HistoryTotals = 8
