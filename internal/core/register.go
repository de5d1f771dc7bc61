package core

import (
	"bytes"

	"github.com/tickonce/tickonce/store"
)

// Registration is a checked request to put a schedule.
type Registration struct {
	Row         store.Schedule // name, spec, queue, payload and the resolved options
	Interval    Spec
	Anchor      store.Instant // None: keep the one there is, or now
	ResetCursor bool
}

// PlanPut decides what row a registration makes of the one there is, nil
// without one (S1, S2, S5, S6), and which boundaries the change passes over. A
// row with ID 0 is a new incarnation. False says that its first boundary would
// lie past the last instant.
func PlanPut(old *store.Schedule, reg *Registration, now store.Instant) (store.Schedule, []store.Skip, bool) {
	row := reg.Row
	if old != nil {
		row.Live, row.Paused = old.Live, old.Paused
		row.Failures = min(old.Failures, row.Breaker)
		if KeepsGrid(old, reg) {
			row.ID, row.Anchor, row.AtAnchor, row.Cursor, row.SetAt = old.ID, old.Anchor, old.AtAnchor, old.Cursor, old.SetAt
			setDue(&row)
			return row, nil, true
		}
		if row.Paused == store.PausedByRunOnce {
			row.Paused = store.Active
		}
	}
	if row.Anchor = reg.Anchor; row.Anchor == store.None {
		row.Anchor = now
	}
	cursor, ok := BoundaryAfter(row.Anchor, reg.Interval.IntervalMS(), now)
	row.Cursor, row.SetAt, row.AtAnchor = cursor, now, cursor == row.Anchor
	setDue(&row)
	return row, passedOver(old, &row, reg.Interval.IntervalMS(), now), ok
}

// passedOver are the boundaries of which nobody else tells when a new grid
// begins: those of the old one that were due, and those of the new one that
// were before it began. A run-once that had its turn has none to come (X8).
func passedOver(old, row *store.Schedule, intervalMS int64, now store.Instant) []store.Skip {
	var skips []store.Skip
	if old != nil && old.Paused != store.PausedByRunOnce {
		if oldIntervalMS, ok := gridOf(old); ok {
			reason := store.SkipMissed
			if old.Paused != store.Active {
				reason = store.SkipPause
			}
			if skip := due(old, oldIntervalMS, now, reason); skip.Count > 0 {
				skips = append(skips, skip)
			}
		}
	}
	return before(skips, row, intervalMS, now)
}

// before appends the boundaries before a grid begins at now, if its anchor lies
// before that: one that begins at its anchor needs no word.
func before(skips []store.Skip, row *store.Schedule, intervalMS int64, now store.Instant) []store.Skip {
	if row.Anchor >= now {
		return skips
	}
	grid := store.Schedule{Anchor: row.Anchor, Cursor: row.Anchor}
	return append(skips, due(&grid, intervalMS, now, store.SkipBefore))
}

// due is the range of the row's boundaries that are due at now, as a skip: with
// a Count of 0 if there are none.
func due(row *store.Schedule, intervalMS int64, now store.Instant, reason store.SkipReason) store.Skip {
	first, ok := boundaryFrom(row.Anchor, intervalMS, row.Cursor)
	if !ok || first > now {
		return store.Skip{}
	}
	every := store.Instant(intervalMS)
	count := (now-first)/every + 1
	return store.Skip{Reason: reason, EveryMS: intervalMS, First: first, Last: first + (count-1)*every, Count: int64(count)}
}

// KeepsGrid reports whether a registration leaves grid and cursor alone (S5).
// Under a spec that no longer parses the grid is taken to be the same; one
// that is out of range cannot be kept (Q5), nor that of a run-once that had its
// turn and is to recur from now on (X8).
func KeepsGrid(old *store.Schedule, reg *Registration) bool {
	if reg.ResetCursor || reg.Anchor != store.None && reg.Anchor != old.Anchor {
		return false
	}
	if !old.Anchor.Valid() || !old.Cursor.Valid() || old.Paused == store.PausedByRunOnce && !reg.Row.RunOnce {
		return false
	}
	spec, err := ParseSpec(old.Spec)
	return err != nil || spec.IntervalMS() == reg.Interval.IntervalMS()
}

// SameRow reports whether a put of row would change nothing of old (C25).
func SameRow(old, row *store.Schedule) bool {
	return old.ID == row.ID && old.Name == row.Name && old.Spec == row.Spec && old.Queue == row.Queue &&
		bytes.Equal(old.Payload, row.Payload) && old.Stamps == row.Stamps && old.ExpiresMS == row.ExpiresMS &&
		old.CatchUp == row.CatchUp && old.Anchor == row.Anchor && old.Cursor == row.Cursor &&
		old.DueAt == row.DueAt && old.SetAt == row.SetAt && old.Priority == row.Priority &&
		old.Paused == row.Paused && old.Overlap == row.Overlap && old.RunOnce == row.RunOnce &&
		old.Breaker == row.Breaker && old.Failures == row.Failures && sameRare(old.Rare, row.Rare) &&
		old.Hold == nil && row.Hold == nil
}

func sameRare(a, b *store.Rare) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func setDue(row *store.Schedule) {
	row.DueAt, row.Hold = row.Cursor, nil
	if row.Paused != store.Active {
		row.DueAt = store.None
	}
}

// PlanPause pauses the row (S7).
func PlanPause(row store.Schedule) store.Schedule {
	row.Paused, row.DueAt = store.PausedByUser, store.None
	return row
}

// PlanResume ends a pause (S7), and begins the count of failures anew (X4). The
// boundaries missed meanwhile are one recorded skip, unless catchUp leaves them
// to the next tick. A row that cannot be decided is left due, so that the next
// tick quarantines it.
func PlanResume(row store.Schedule, now store.Instant, catchUp bool) (store.Schedule, store.Skip) {
	row.Paused, row.Failures = store.Active, 0
	setDue(&row)
	spec, problem := checkRow(&row)
	if catchUp || problem != "" {
		return row, store.Skip{}
	}
	skip := due(&row, spec.IntervalMS(), now, store.SkipPause)
	next, ok := BoundaryAfter(row.Anchor, spec.IntervalMS(), now)
	if skip.Count == 0 || !ok {
		return row, store.Skip{}
	}
	row.Cursor, row.DueAt, row.SetAt = next, next, now
	return row, skip
}

// PlanTrigger fires a job of the row by hand, which is the turn of a run-once
// (X8). The problem is "" unless the row cannot be decided.
func PlanTrigger(row store.Schedule) (next store.Schedule, fire store.Insert, problem string) {
	if _, problem := checkRow(&row); problem != "" {
		return row, fire, problem
	}
	fire = store.Insert{
		Queue: row.Queue, Payload: row.Payload, Stamps: row.Stamps, Priority: row.Priority,
		From: &store.Source{
			Schedule: row.Name, ScheduleID: row.ID, FireAt: store.None, Alone: row.Overlap != store.Allow,
		},
		RunAt: store.None, ExpiresMS: row.ExpiresMS,
	}
	if row.Rare != nil {
		fire.From.TimeoutMS = row.Rare.TimeoutMS
	}
	if row.RunOnce {
		fire.Stamps.MaxAttempts = 1
		row.Paused, row.DueAt, row.Hold = store.PausedByRunOnce, store.None, nil
	}
	row.Live.Pending++
	return row, fire, ""
}

// CursorAhead reports whether a clock that was ahead set the row's cursor
// (T11): set later than now, more than two intervals past it, and not where
// the grid would put it now, as an anchor that lies ahead does. One that is paused
// counts, too: nobody would look at its cursor again when it is resumed.
func CursorAhead(row *store.Schedule, now store.Instant) bool {
	if row.SetAt <= now || row.Cursor <= now {
		return false
	}
	spec, problem := checkRow(row)
	if problem != "" || int64(row.Cursor-now) <= 2*spec.IntervalMS() {
		return false
	}
	next, _ := BoundaryAfter(row.Anchor, spec.IntervalMS(), now)
	return row.Cursor != next
}

// HoldAhead reports whether a clock that was ahead set the end of the row's
// hold: it lies more than a hold past now.
func HoldAhead(row *store.Schedule, now store.Instant) bool {
	return row.Hold != nil && row.Paused == store.Active && row.DueAt > now.Add(HoldMS)
}

// PlanRearm makes a new incarnation, on the same grid, of a row whose cursor is
// ahead: its cursor is the first boundary after now (T11). An anchor that lies
// ahead as well, since the wrong clock set or passed it, moves back by whole
// intervals, to now or before: a cursor at its anchor would look as if it was
// to begin there, and not be repaired again.
func PlanRearm(row store.Schedule, now store.Instant) (store.Schedule, []store.Skip, bool) {
	spec, problem := checkRow(&row)
	if problem != "" {
		return row, nil, false
	}
	every := store.Instant(spec.IntervalMS())
	if row.Anchor > now {
		row.Anchor -= (row.Anchor - now + every - 1) / every * every
		if row.Anchor < store.MinInstant {
			row.Anchor += every
		}
	}
	cursor, ok := BoundaryAfter(row.Anchor, spec.IntervalMS(), now)
	row.ID, row.Cursor, row.SetAt, row.AtAnchor = 0, cursor, now, cursor == row.Anchor
	setDue(&row)
	return row, before(nil, &row, spec.IntervalMS(), now), ok
}
