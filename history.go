package tickonce

import (
	"context"
	"iter"
	"time"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// SkipReason says why boundaries did not fire (T14, X12).
type SkipReason = store.SkipReason

// The reasons.
const (
	SkippedByPause   = store.SkipPause   // dropped by a resume (S7)
	SkippedByHours   = store.SkipHours   // outside the active hours (X10)
	SkippedByPolicy  = store.SkipPolicy  // older than the window, or more than the policy's count
	SkippedByOverlap = store.SkipOverlap // a job of the schedule was live (X9)
	SkippedByCap     = store.SkipCap     // more than 64
	SkippedAsMissed  = store.SkipMissed  // due when its grid ended, or a run-once's that came too late (X8)
	SkippedAsBefore  = store.SkipBefore  // of the grid, but before the schedule was on it: never due on it; an earlier grid may have had it
)

// JobState is where a job is.
type JobState = store.State

// The states of a job. What is done or cancelled is not kept.
const (
	JobPending = store.Pending
	JobClaimed = store.Claimed
	JobDead    = store.Dead
	JobDone    = store.Done
)

// PastRun is an attempt of a job of a schedule, as it ended (X11).
type PastRun struct {
	ID       int64 // rises from run to run; see [HistoryOptions]
	Schedule string
	Boundary time.Time // the zero time if it was fired by hand
	Job      JobID
	Attempt  int

	Fired    time.Time     // when its job was inserted
	Late     time.Duration // how much after the boundary that was, if it was
	Started  time.Time
	Finished time.Time // when the end was recorded: of a lost run, when its loss was met

	Execution Execution
	Error     string
	Then      JobState // what became of the job: done, dead, pending for another try, claimed by another worker, or 0: cancelled

	// What this engine still knows beside, see [Engine.Details]: the run's
	// summary and, after a run that was ok, the tries to deliver what it staged.
	Summary    string
	Deliveries []Detail

	incarnation store.ScheduleID
}

// PastSkip is a range of boundaries that did not fire, for one reason (X12).
type PastSkip struct {
	ID          int64
	Schedule    string
	Reason      SkipReason
	First, Last time.Time
	Every       time.Duration // between two of them
	Count       int64
	From, Until time.Time // when the first and the last of them were skipped
}

// HistoryOptions say which part of a history is wanted.
type HistoryOptions struct {
	Before int64 // only what has a lesser ID, to go on from where a page ended; 0: all
}

// Totals count what ever happened to a schedule, also what its history keeps no
// longer (X12).
type Totals struct {
	runs, skips [store.HistoryTotals]int64
}

// Runs is how many runs ended so.
func (t *Totals) Runs(x Execution) int64 { return t.runs[x] }

// Skipped is how many boundaries were skipped for the reason. They need not have
// been in one range.
func (t *Totals) Skipped(r SkipReason) int64 { return t.skips[r] }

// historyPage is how many entries of a history one call reads.
const historyPage = 64

// History returns the runs of a schedule that are kept, the newest first (X11),
// read page by page: [Limits.Runs] of them, and of all schedules [Limits.History].
// A schedule that is not there has none. An error ends the sequence:
// [ErrInvalidName] of the schedule's, or one of the store.
func (e *Engine) History(ctx context.Context, schedule string, o HistoryOptions) iter.Seq2[PastRun, error] {
	return past(ctx, "history", schedule, o, e.store.Runs, runID, e.pastRun)
}

// Skips returns the ranges of boundaries of a schedule that did not fire, the
// newest first (X12), read page by page: [Limits.Skips] of them, and of all
// schedules [Limits.History]. A schedule that is not there has none. An error
// ends the sequence, as that of [Engine.History].
func (e *Engine) Skips(ctx context.Context, schedule string, o HistoryOptions) iter.Seq2[PastSkip, error] {
	return past(ctx, "skips", schedule, o, e.store.Skips, skipID, pastSkip)
}

// reader is [store.Store.Runs] or [store.Store.Skips].
type reader[E any] func(context.Context, store.Page, []E) (store.History, error)

func runID(r *store.Run) store.EntryID        { return r.ID }
func skipID(r *store.SkipRange) store.EntryID { return r.ID }

// readHistory reads a history page by page, the newest entry first, until its
// end or until each answers false.
func readHistory[E any](
	ctx context.Context, page store.Page, read reader[E], id func(*E) store.EntryID, each func(store.History, []E) bool,
) error {
	for dst := make([]E, historyPage); ; {
		h, err := read(ctx, page, dst)
		if err != nil {
			return err
		}
		if !each(h, dst[:h.N]) || h.N < len(dst) {
			return nil
		}
		page.Before = id(&dst[h.N-1])
	}
}

// past yields the entries of a history, each as of says.
func past[E, R any](
	ctx context.Context, op, schedule string, o HistoryOptions, read reader[E], id func(*E) store.EntryID, of func(*E) R,
) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		var none R
		if err := core.CheckName("schedule name", schedule); err != nil {
			yield(none, err)
			return
		}
		page := store.Page{Schedule: schedule, Before: store.EntryID(o.Before)}
		err := readHistory(ctx, page, read, id, func(_ store.History, entries []E) bool {
			for i := range entries {
				if !yield(of(&entries[i]), nil) {
					return false
				}
			}
			return true
		})
		if err != nil {
			yield(none, opError(op, schedule, err))
		}
	}
}

// Totals returns the counters of a schedule (X12), by how its runs ended and by
// why its boundaries were skipped. Those of a schedule that is not there are 0.
func (e *Engine) Totals(ctx context.Context, schedule string) (Totals, error) {
	if err := core.CheckName("schedule name", schedule); err != nil {
		return Totals{}, err
	}
	page := store.Page{Schedule: schedule}
	runs, err := e.store.Runs(ctx, page, nil)
	if err != nil {
		return Totals{}, opError("totals", schedule, err)
	}
	skips, err := e.store.Skips(ctx, page, nil)
	if err != nil {
		return Totals{}, opError("totals", schedule, err)
	}
	return Totals{runs.Totals, skips.Totals}, nil
}

func (e *Engine) pastRun(row *store.Run) PastRun {
	run := PastRun{
		ID: int64(row.ID), Schedule: row.Schedule, Boundary: timeOf(row.FireAt), Job: row.Job, Attempt: int(row.Attempt),
		Fired: timeOf(row.FiredAt), Started: timeOf(row.StartedAt), Finished: timeOf(row.EndedAt),
		Execution: row.Ended, Error: row.Error, Then: row.To, incarnation: row.ScheduleID,
	}
	if row.FireAt != store.None {
		run.Late = durationOf(max(int64(row.FiredAt-row.FireAt), 0))
	}
	e.details.join(&run)
	return run
}

func pastSkip(row *store.SkipRange) PastSkip {
	return PastSkip{
		ID: int64(row.ID), Schedule: row.Schedule, Reason: row.Reason,
		First: timeOf(row.First), Last: timeOf(row.Last), Every: durationOf(row.EveryMS), Count: row.Count,
		From: timeOf(row.From), Until: timeOf(row.Until),
	}
}
