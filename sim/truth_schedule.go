package sim

import (
	"time"

	"github.com/tickonce/tickonce/store"
)

// trueSchedule is the model of one schedule, and what is counted of it.
type trueSchedule struct {
	scenario *Schedule
	index    int64
	queue    *trueQueue

	known    bool // the store has it
	row      store.Schedule
	interval int64
	next     store.Instant // nothing before may fire
	tick     fates         // of the tick under way

	fired, policySkips, capSkips, quarantined int64
	firstFire, lastFire                       store.Instant
	firedAt                                   store.Instant // the last one, in true time
	maxLateMS                                 int64

	charged                   store.Instant // the boundaries before
	have                      boundaries    // that have fired
	undoneBy                  *Cost         // of the fault after which they may fire again
	rearmed                   bool          // it is a repair that allows it, not a restart
	firedAgain, firedByRepair int64
	left, forgotten           int64
}

// fates is what has to become of the boundaries that a tick meets: so many
// fire, from the first on, and so many are skipped.
type fates struct {
	first                 store.Instant
	fires                 int64
	policySkips, capSkips int64
}

// know takes in a row.
func (s *trueSchedule) know(row *store.Schedule) {
	s.interval, s.next = intervalOf(row.Spec), row.Cursor
	if int64(row.Anchor-s.row.Anchor)%s.interval != 0 {
		s.have = nil
	}
	s.known, s.row = true, *row
}

// onGrid reports whether the instant is a boundary.
func (s *trueSchedule) onGrid(t store.Instant) bool {
	return t >= s.row.Anchor && int64(t-s.row.Anchor)%s.interval == 0
}

// judge says what has to become of the boundaries from the cursor to now (T5,
// T6, T14).
func (s *trueSchedule) judge(now store.Instant) fates {
	policy, every := s.row.CatchUp, store.Instant(s.interval)
	if s.row.Cursor > now {
		return fates{}
	}
	due := int64((now-s.row.Cursor)/every) + 1
	f := fates{first: s.row.Cursor}
	if oldest := now - store.Instant(policy.WindowMS); policy.WindowMS > 0 && s.row.Cursor < oldest {
		f.policySkips = min(due, int64((oldest-s.row.Cursor-1)/every)+1)
	}
	f.fires = min(due-f.policySkips, int64(policy.Max))
	excess := due - f.policySkips - f.fires
	f.first += store.Instant(f.policySkips) * every
	if policy.Newest {
		f.first += store.Instant(excess) * every
	}
	if policy.Max == catchUpCap {
		f.capSkips = excess
	} else {
		f.policySkips += excess
	}
	return f
}

// policyOf is the catch-up policy of the schedule in numbers (T14).
func (w *world) policyOf(s *trueSchedule) store.CatchUp {
	switch s.scenario.CatchUp {
	case CatchUpLatest:
		return store.CatchUp{Max: 1, Newest: true}
	case CatchUpGrace:
		return store.CatchUp{WindowMS: min(max(s.interval/2, 120_000), 7_200_000), Max: catchUpCap}
	case CatchUpNone:
		onTime := w.scenario.Engine.OnTime
		if onTime == 0 {
			onTime = 10 * time.Second
		}
		return store.CatchUp{WindowMS: onTime.Milliseconds(), Max: 1, Newest: true}
	default:
		return store.CatchUp{Max: catchUpCap}
	}
}

func (s *trueSchedule) countFire(boundary store.Instant, lateMS int64) {
	if s.fired++; s.fired == 1 {
		s.firstFire = boundary
	}
	s.lastFire = boundary
	s.maxLateMS = max(s.maxLateMS, lateMS)
}

func (s *trueSchedule) result() ScheduleResult {
	r := ScheduleResult{
		Name: s.scenario.Name, Spec: s.scenario.Spec, Queue: s.scenario.Queue,
		Boundaries: s.fired + s.policySkips + s.capSkips, Fired: s.fired, Skipped: s.policySkips + s.capSkips,
		SkipReasons: map[string]int64{}, Quarantined: s.quarantined, FiredAgain: s.firedAgain, FiredByRepair: s.firedByRepair,
		Left: s.left, Forgotten: s.forgotten,
		MaxLate: time.Duration(s.maxLateMS) * time.Millisecond,
	}
	if s.fired > 0 {
		r.FirstFire, r.LastFire = timeOf(s.firstFire), timeOf(s.lastFire)
	}
	if s.policySkips > 0 {
		r.SkipReasons["policy"] = s.policySkips
	}
	if s.capSkips > 0 {
		r.SkipReasons["cap"] = s.capSkips
	}
	return r
}

// isTrue reports whether the row is the one of the model.
func (t *truth) isTrue(row *store.Schedule) bool {
	s := t.byID[row.ID]
	return s != nil && row.Rev == s.row.Rev && row.Name == s.row.Name && row.Spec == s.row.Spec && row.Queue == s.row.Queue &&
		row.Anchor == s.row.Anchor && row.Cursor == s.row.Cursor && row.DueAt == s.row.DueAt && row.SetAt == s.row.SetAt &&
		row.CatchUp == s.row.CatchUp && row.Paused == s.row.Paused
}

// eachSchedule reads all schedules of the store in name order.
func (t *truth) eachSchedule(f func(*store.Schedule)) {
	page := t.schedulePage[:]
	for from, n := "", len(page); n == len(page); from = page[n-1].Name + "\x00" {
		var err error
		if n, _, err = t.Store.Schedules(ctx, from, page); err != nil {
			panic(err)
		}
		if n == 0 {
			return
		}
		for i := range page[:n] {
			f(&page[i])
		}
	}
}
