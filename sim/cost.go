package sim

import (
	"slices"
	"sort"
	"time"

	"github.com/tickonce/tickonce/store"
)

// Cost is what a fault did to the boundaries, summed over all schedules. The
// counts of those that came due while a process was away are of outages
// ([FaultDown], [FaultCrash], [FaultRestartStorm], [FaultPause], [FaultThrottle]), the last three of
// the faults of the store's clock.
type Cost struct {
	Due       int64 // while the outage lasted, its end included: all of the next five
	OnTime    int64 // fired by another process, or as the outage ended
	Late      int64 // fired when that was over
	Skipped   int64
	Forgotten int64 // of these the restart knew nothing
	Left      int64 // neither fired nor skipped by the end of the run

	FiredAgain int64 // because a restart had forgotten them, or a repair of the clock took them back

	FiredEarly int64         // before their true time
	MaxEarly   time.Duration // by how much
	Silence    time.Duration // the longest in true time without a fire of a schedule, if longer than two of its intervals
	Silent     string        // that schedule
}

// absence is the time for which a fault keeps a process away.
type absence struct {
	cost     *Cost
	from, to store.Instant // true time
	reach    store.Instant // no absence up to this one ends later
}

// beginAbsence notes an absence. They begin in the order of time.
func (w *world) beginAbsence(i int) {
	o := absence{cost: &w.faults[i].cost, from: w.now, to: w.now.Add(w.scenario.Faults[i].For.Milliseconds())}
	o.reach = o.to
	if last := len(w.absences) - 1; last >= 0 {
		o.reach = max(o.reach, w.absences[last].reach)
	}
	w.absences = append(w.absences, o)
}

// charge counts what became of the boundaries of s from the one at first to
// the one before end: each absence in which some came due gets its part. What
// was charged before a restart forgot it is not charged again; charge answers how
// many are left of them.
func (w *world) charge(s *trueSchedule, first, end store.Instant, count func(*Cost) *int64) int64 {
	if behind := int64(s.charged - first); behind > 0 {
		first = first.Add((behind + s.interval - 1) / s.interval * s.interval)
	}
	if first >= end {
		return 0
	}
	n := int((int64(end-first) + s.interval - 1) / s.interval)
	dueBefore := func(t store.Instant) int {
		return sort.Search(n, func(i int) bool { return w.clock.reached(first.Add(int64(i)*s.interval)) >= t })
	}
	earliest := w.clock.reached(first)
	for i := len(w.absences) - 1; i >= 0 && w.absences[i].reach >= earliest; i-- {
		o := &w.absences[i]
		due := int64(dueBefore(o.to+1) - dueBefore(o.from))
		o.cost.Due += due
		*count(o.cost) += due
	}
	return int64(n)
}

// What may have become of a boundary that came due during an outage.
func onTime(c *Cost) *int64    { return &c.OnTime }
func late(c *Cost) *int64      { return &c.Late }
func dropped(c *Cost) *int64   { return &c.Skipped }
func forgotten(c *Cost) *int64 { return &c.Forgotten }
func left(c *Cost) *int64      { return &c.Left }

// chargeFire counts a fire of s now.
func (w *world) chargeFire(s *trueSchedule, boundary store.Instant, lateMS int64) {
	count := onTime
	if lateMS > 0 {
		count = late
	}
	w.charge(s, boundary, boundary+1, count)
	if early := time.Duration(boundary-w.now) * time.Millisecond; early > 0 && w.jumped != nil {
		w.jumped.FiredEarly++
		w.jumped.MaxEarly = max(w.jumped.MaxEarly, early)
	}
	if s.fired > 0 {
		w.chargeSilence(s)
	}
	s.firedAt = w.now
	if !s.have.add(boundary, s.interval) {
		return
	}
	if s.rearmed {
		s.firedByRepair++
	} else {
		s.firedAgain++
	}
	if s.undoneBy != nil {
		s.undoneBy.FiredAgain++
	}
}

// chargeSilence charges the time since the last fire of s to the latest jump of
// the clock, if that was within it.
func (w *world) chargeSilence(s *trueSchedule) {
	silence := int64(w.now - s.firedAt)
	if w.jumped == nil || w.jumpedAt < s.firedAt || silence <= 2*s.interval {
		return
	}
	if d := time.Duration(silence) * time.Millisecond; d > w.jumped.Silence {
		w.jumped.Silence, w.jumped.Silent = d, s.scenario.Name
	}
}

// chargeRest charges what the end of the run leaves.
func (w *world) chargeRest() {
	for i := range w.truth.schedules {
		s := &w.truth.schedules[i]
		if s.fired > 0 {
			w.chargeSilence(s)
		}
		if s.known {
			s.left = w.chargeUnfired(s, left)
		}
	}
}

// chargeUnfired charges what is due of the schedule and has not fired, and counts it. A
// run-once that had its turn has nothing due.
func (w *world) chargeUnfired(s *trueSchedule, count func(*Cost) *int64) int64 {
	if s.row.Paused == store.PausedByRunOnce {
		return 0
	}
	return w.charge(s, s.row.Cursor, w.shown()+1, count)
}

// boundaries are those of one grid that have fired: runs of neighbours, in
// their order.
type boundaries []struct{ first, last store.Instant }

// add adds a boundary, and reports whether it was there already.
func (b *boundaries) add(at store.Instant, interval int64) bool {
	list := *b
	i := len(list) // of the run behind at
	if i > 0 && list[i-1].first > at {
		i = sort.Search(i, func(i int) bool { return list[i].first > at })
	}
	switch {
	case i > 0 && at <= list[i-1].last:
		return true
	case i > 0 && at == list[i-1].last.Add(interval):
		list[i-1].last = at
	default:
		*b = slices.Insert(list, i, struct{ first, last store.Instant }{at, at})
	}
	return false
}
