package core

import "github.com/tickonce/tickonce/store"

// BoundaryAfter is the first boundary of the grid anchor + k·interval, k ≥ 0,
// strictly after t; false where it would lie past [store.MaxInstant] (G6).
func BoundaryAfter(anchor store.Instant, intervalMS int64, t store.Instant) (store.Instant, bool) {
	if t < anchor {
		return anchor, true
	}
	// Instants are within ±2^53 and an interval below 2^44: no sum overflows.
	next := t - (t-anchor)%store.Instant(intervalMS) + store.Instant(intervalMS)
	return next, next <= store.MaxInstant
}

// boundaryFrom is the first boundary at or after t.
func boundaryFrom(anchor store.Instant, intervalMS int64, t store.Instant) (store.Instant, bool) {
	if t <= anchor {
		return anchor, true
	}
	if (t-anchor)%store.Instant(intervalMS) == 0 {
		return t, true
	}
	return BoundaryAfter(anchor, intervalMS, t)
}

// gridOf is the interval of the row's grid, if there is one, though the row may be
// held for another fault.
func gridOf(row *store.Schedule) (intervalMS int64, ok bool) {
	spec, fault := scanSpec(row.Spec)
	return spec.IntervalMS(), fault == 0 && row.Anchor.Valid() && row.Cursor.Valid()
}

// OnGrid reports whether t is a boundary of the row's grid. The interval is 0
// where the row cannot be decided.
func OnGrid(row *store.Schedule, t store.Instant) (on bool, intervalMS int64) {
	spec, problem := checkRow(row)
	if problem != "" {
		return false, 0
	}
	intervalMS = spec.IntervalMS()
	next, ok := boundaryFrom(row.Anchor, intervalMS, t)
	return ok && next == t, intervalMS
}
