package core

import (
	"math"

	"github.com/tickonce/tickonce/store"
)

const (
	// CatchUpCap is how many boundaries of a schedule one tick fires at most.
	CatchUpCap = 64

	// HoldMS is how long a quarantined row is left alone (Q3).
	HoldMS = 60_000
)

// FirePlan is the decision for one due row.
type FirePlan struct {
	Move    store.Move
	First   store.Instant // of Move.Fires boundaries, EveryMS apart
	EveryMS int64
	Skips   [2]store.Skip // those with a Count
}

// Minutes tells the minute of the day that an instant is in a zone, 0 to 1439,
// or what is wrong with the zone.
type Minutes func(zone string, at store.Instant) (minute uint16, problem string)

// PlanFire decides what a due row does at now (T1–T14, Q1–Q6, G5, G6, X8–X10).
// The cursor moves past every boundary ≤ now; of these fire what the active
// hours, the overlap, the catch-up policy and the cap allow, the others are
// skipped with a reason. A row that cannot be decided is held, with its cursor
// where it is. Refusal is why the row's move was not made at this revision, or
// ""; minutes is asked only for a row with active hours.
func PlanFire(row *store.Schedule, now store.Instant, refusal string, minutes Minutes) FirePlan {
	var plan FirePlan
	plan.decide(row, now, refusal, minutes)
	return plan
}

// decide is PlanFire for a zero plan.
func (p *FirePlan) decide(row *store.Schedule, now store.Instant, refusal string, minutes Minutes) {
	move := &p.Move
	move.ID, move.Rev, move.SetAt = row.ID, row.Rev, row.SetAt
	move.Cursor, move.DueAt = row.Cursor, row.Cursor
	move.Live = row.Live
	if row.Paused != store.Active {
		move.DueAt, move.Hold = store.None, row.Hold
		return
	}
	spec, problem := checkRow(row)
	if problem == "" {
		problem = refusal
	}
	if problem != "" {
		hold(move, row, now, problem)
		return
	}
	interval := spec.IntervalMS()
	cursor, inRange := boundaryFrom(row.Anchor, interval, row.Cursor)
	next := cursor
	if inRange && cursor <= now {
		next, inRange = BoundaryAfter(row.Anchor, interval, now)
	}
	if !inRange {
		hold(move, row, now, "the next boundary is past the last instant")
		return
	}
	move.Cursor, move.DueAt = next, next
	if next != row.Cursor {
		move.SetAt = now
	}
	if cursor > now {
		return
	}
	p.EveryMS = interval
	open, problem := isOpen(row.Rare, now, minutes)
	switch {
	case problem != "":
		hold(move, row, now, problem)
	case !open:
		p.skip(0, store.SkipHours, cursor, next)
	default:
		p.choose(row, cursor, next, now)
	}
}

// isOpen reports whether now lies in the active hours (X10).
func isOpen(rare *store.Rare, now store.Instant, minutes Minutes) (open bool, problem string) {
	if rare == nil || rare.Hours.Start == rare.Hours.End {
		return true, ""
	}
	hours := &rare.Hours
	minute, problem := minutes(hours.Zone, now)
	if hours.Start < hours.End {
		return hours.Start <= minute && minute < hours.End, problem
	}
	return hours.Start <= minute || minute < hours.End, problem
}

// skip makes the boundaries in [from, to) the plan's skip i, if there are any.
func (p *FirePlan) skip(i int, reason store.SkipReason, from, to store.Instant) {
	if every := store.Instant(p.EveryMS); from < to {
		p.Skips[i] = store.Skip{Reason: reason, EveryMS: p.EveryMS, First: from, Last: to - every, Count: int64((to - from) / every)}
	}
}

// choose splits the boundaries in [first, end) into fired and skipped ones.
func (p *FirePlan) choose(row *store.Schedule, first, end, now store.Instant) {
	every, policy := store.Instant(p.EveryMS), &row.CatchUp
	if edge := now - store.Instant(policy.WindowMS); policy.WindowMS > 0 && first < edge {
		inside := min(end, first+(edge-first+every-1)/every*every)
		reason := store.SkipPolicy
		if row.RunOnce && inside == end { // it is too late for its turn
			reason = store.SkipMissed
			p.finish()
		}
		p.skip(0, reason, first, inside)
		first = inside
	}
	most, reason := surplus(row)
	fires := min(int64((end-first)/every), most)
	if policy.Newest {
		p.skip(1, reason, first, end-store.Instant(fires)*every)
		first = end - store.Instant(fires)*every
	} else {
		p.skip(1, reason, first+store.Instant(fires)*every, end)
	}
	p.First, p.Move.Fires = first, int32(fires)
	if row.RunOnce && fires > 0 {
		p.finish()
	}
}

// surplus is how many boundaries within the window one tick fires at most, and
// why the others do not.
func surplus(row *store.Schedule) (most int64, reason store.SkipReason) {
	switch {
	case row.Overlap.Blocked(row.Live):
		return 0, store.SkipOverlap
	case row.Overlap != store.Allow: // one more would run over the first
		return 1, store.SkipOverlap
	case row.RunOnce:
		return 1, store.SkipPolicy
	case row.CatchUp.Max == CatchUpCap:
		return CatchUpCap, store.SkipCap
	default:
		return int64(row.CatchUp.Max), store.SkipPolicy
	}
}

// finish ends a run-once: it has had its turn (X8).
func (p *FirePlan) finish() { p.Move.Ends, p.Move.DueAt = true, store.None }

// hold quarantines the row (Q3): looked at again after a minute, the cursor
// where it is. At the end of time it is not looked at again.
func hold(move *store.Move, row *store.Schedule, now store.Instant, reason string) {
	mark := store.Hold{Reason: reason, Since: now, Times: 1}
	if row.Hold != nil {
		mark.Since = row.Hold.Since
		mark.Times = row.Hold.Times
		if mark.Times < math.MaxInt32 {
			mark.Times++
		}
	}
	move.Cursor, move.SetAt, move.Hold = row.Cursor, row.SetAt, &mark
	if move.DueAt = now.Add(HoldMS); move.DueAt <= now {
		move.DueAt = store.None
	}
}

// checkRow checks what a store may have got from elsewhere: at registration
// all of it was checked (Q1, Q6). The problem is "" if there is none.
func checkRow(row *store.Schedule) (spec Spec, problem string) {
	spec, fault := scanSpec(row.Spec)
	if fault != 0 {
		return Spec{}, explainSpec(row.Spec).Error()
	}
	if !row.Anchor.Valid() || !row.Cursor.Valid() {
		return Spec{}, "invalid row: anchor or cursor is out of range"
	}
	if problem := CheckPolicy(row); problem != "" {
		return Spec{}, "invalid row: " + problem
	}
	if err := CheckName("queue", row.Queue); err != nil {
		return Spec{}, err.Error()
	}
	return spec, ""
}
