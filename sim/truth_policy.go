package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// fates is what has to become of the boundaries that a tick meets: so many
// fire, from the first on, and the others are skipped.
type fates struct {
	first store.Instant
	fires int64
	skips [2]store.Skip // in the order of the boundaries; those with a count
	ends  bool          // a run-once has its turn (X8)
}

// skip has boundaries be skipped from the first one to before end.
func (f *fates) skip(reason store.SkipReason, first, end store.Instant, intervalMS int64) {
	n := int64(end-first) / intervalMS
	if n <= 0 {
		return
	}
	at := &f.skips[0]
	if at.Count > 0 {
		at = &f.skips[1]
	}
	*at = store.Skip{Reason: reason, EveryMS: intervalMS, First: first, Last: end.Add(-intervalMS), Count: n}
}

// skipped is how many are skipped.
func (f *fates) skipped() int64 { return f.skips[0].Count + f.skips[1].Count }

// skippedBy is how many are skipped for the reason.
func (f *fates) skippedBy(reason store.SkipReason) (n int64) {
	for _, skip := range f.skips {
		if skip.Reason == reason {
			n += skip.Count
		}
	}
	return n
}

// judge says what has to become of the boundaries from the cursor to now (T5,
// T6, T14, X8–X10).
func (s *trueSchedule) judge(now store.Instant) fates {
	policy, first := s.row.CatchUp, s.first()
	if first > now {
		return fates{}
	}
	end := s.after(now)
	f := fates{first: end}
	if !open(&s.row, now) {
		f.skip(store.SkipHours, first, end, s.interval)
		return f
	}
	if oldest := now - store.Instant(policy.WindowMS); policy.WindowMS > 0 && first < oldest {
		inTime := min(s.after(oldest-1), end)
		if s.row.RunOnce && inTime == end {
			f.ends = true
			f.skip(store.SkipMissed, first, end, s.interval)
			return f
		}
		f.skip(store.SkipPolicy, first, inTime, s.interval)
		first = inTime
	}
	most, beyond := int64(policy.Max), store.SkipPolicy
	switch {
	case s.row.Overlap != store.Allow:
		most, beyond = 1, store.SkipOverlap
		if s.overlaps() {
			most = 0
		}
	case s.row.RunOnce:
		most = 1
	case policy.Max == catchUpCap:
		beyond = store.SkipCap
	}
	due := int64(end-first) / s.interval
	f.fires = min(due, most)
	f.ends = s.row.RunOnce && f.fires > 0
	fired := store.Instant(f.fires * s.interval)
	if policy.Newest {
		f.skip(beyond, first, end-fired, s.interval)
		f.first = end - fired
	} else {
		f.skip(beyond, first+fired, end, s.interval)
		f.first = first
	}
	return f
}

// overlaps reports whether live jobs keep the schedule from firing (X9).
func (s *trueSchedule) overlaps() bool {
	return s.row.Overlap != store.Allow && s.live.Pending > 0 || s.row.Overlap == store.SkipLive && s.live.Claimed > 0
}

// open reports whether now is within the row's active hours (X10); in a zone that
// there is not it is.
func open(row *store.Schedule, now store.Instant) bool {
	if row.Rare == nil || row.Rare.Hours.Start == row.Rare.Hours.End {
		return true
	}
	hours, location := row.Rare.Hours, time.UTC
	if hours.Zone != "" {
		var err error
		if location, err = zone(hours.Zone); err != nil {
			return true
		}
	}
	at := timeOf(now).In(location)
	minute := uint16(at.Hour()*60 + at.Minute())
	sinceStart := (minute + 24*60 - hours.Start) % (24 * 60)
	return sinceStart < (hours.End+24*60-hours.Start)%(24*60)
}

// jobEnded counts for the breaker of its schedule that a job is done or, by its
// handler's word or as its attempts are used up, dead. Tripped is what the store
// says: 0, or after how many failures in a row this opened it (X4).
func (t *truth) jobEnded(j *trueJob, failed bool, tripped uint8) {
	s, opens := j.schedule, uint8(0)
	if row := &s.row; j.counts() && s.known && row.ID == j.incarnation && row.Breaker > 0 {
		t.w.checked[aBreakerCount]++
		t.w.coverage.sometimes(breakerReset, !failed && row.Failures > 0)
		failures := uint8(0)
		if failed {
			failures = uint8(min(int(row.Failures)+1, int(row.Breaker)))
		}
		if failures == row.Breaker && row.Paused == store.Active {
			opens = failures
		}
		if failures != row.Failures || opens > 0 {
			t.keepPast(s)
			row.Rev++
		}
		row.Failures = failures
		if opens > 0 {
			row.Paused, row.DueAt = store.PausedByBreaker, store.None
		}
	}
	t.w.coverage.sometimes(breakerOpened, opens > 0)
	if opens != tripped {
		t.w.fail(opensBreaker, s.scenario.Name, fmt.Sprintf("as %s ended, its breaker opened after %d failures in a row, where 0 is not at all; it should have been %d",
			jobOf(j.boundary), tripped, opens))
	}
	if opens > 0 {
		t.w.owes(tickonce.EventBreakerOpened, t.w.shown(), s.index, int64(opens))
		t.w.tellOf(s, Event{Kind: EventBreakerOpened, Cause: j.cause, Queue: j.queue.name, Boundary: timeOf(j.boundary), Count: int64(opens)})
	}
}

// counts reports whether the job is one of its schedule's own.
func (j *trueJob) counts() bool { return j.schedule.index >= 0 && j.origin == 0 }

// count counts the job by its state, or with -1 counts it no more.
func (t *truth) count(j *trueJob, by int32) {
	*j.state() += int64(by)
	if !j.counts() {
		return
	}
	s := j.schedule
	if *j.ofSchedule() += by; by > 0 || !j.claimed || !j.alone && len(s.waiting) == 0 {
		return
	}
	waiting := s.waiting
	s.waiting, s.freedAt = nil, t.w.now
	for _, id := range waiting {
		if other := t.jobs[id]; other != nil && !other.claimed {
			other.queue.claimable.wait(other, t.w.shown())
		}
	}
	if s.live.Pending > 0 { // in whatever queues
		for _, q := range t.queues {
			t.wake(q)
		}
	}
}

// tripOf takes from what the claim under way says of breakers how often the
// schedule's had counted when the burial of a job opened it: of several burials of one
// schedule it is the one that makes that many.
func (t *truth) tripOf(j *trueJob) uint8 {
	if !j.counts() {
		return 0
	}
	row := &j.schedule.row
	for i, trip := range t.trips {
		if trip.Schedule == j.schedule.scenario.Name && min(int(row.Failures)+1, int(row.Breaker)) == int(trip.Failures) {
			t.trips = slices.Delete(slices.Clone(t.trips), i, i+1)
			return trip.Failures
		}
	}
	return 0
}

// freedAt is when a job that may have to wait for others last did not have to any
// more, in true time.
func (j *trueJob) freedAt() store.Instant {
	if !j.alone {
		return store.MinInstant
	}
	return j.schedule.freedAt
}

// waits reports whether the job is not to be handed out as another one of its
// schedule is claimed (X9).
func (j *trueJob) waits() bool {
	others := j.schedule.live.Claimed
	if j.claimed {
		others--
	}
	return j.alone && others > 0
}

// passedOver tells of boundaries that are skipped, and charges them.
func (t *truth) passedOver(s *trueSchedule, skips []store.Skip) {
	for _, skip := range skips {
		if skip.Count > 0 {
			s.skips[skip.Reason] += skip.Count
			end := skip.Last.Add(s.interval)
			t.w.tellOfSkips(s, skip.First, end, skip.Reason)
			t.w.charge(s, skip.First, end, dropped)
			s.fate.skipped(skip)
		}
	}
}

// skipsOf takes from the skips of a tick, which are in the order of its moves,
// those of a move.
func skipsOf(move int, skips *[]store.Skip) (of []store.Skip) {
	n := 0
	for n < len(*skips) && int((*skips)[n].Move) == move {
		n++
	}
	of, *skips = (*skips)[:n], (*skips)[n:]
	return of
}

// namesSkips checks that a write names the boundaries that it passes over, and why.
func (t *truth) namesSkips(s *trueSchedule, named, want []store.Skip) {
	t.w.checked[aSkip]++
	for _, skip := range want {
		if skip.Count == 0 {
			continue
		}
		if len(named) == 0 || !sameSkip(named[0], skip) {
			has := "none"
			if len(named) > 0 {
				has = skipText(named[0])
			}
			t.w.fail(namedSkips, s.scenario.Name, "it skips "+skipText(skip)+", and its write names "+has)
			return
		}
		named = named[1:]
	}
	if len(named) > 0 {
		t.w.fail(namedSkips, s.scenario.Name, "its write names "+skipText(named[0])+", which it does not skip")
	}
}

func sameSkip(a, b store.Skip) bool {
	return a.Reason == b.Reason && a.EveryMS == b.EveryMS && a.First == b.First && a.Last == b.Last && a.Count == b.Count
}

func skipText(s store.Skip) string {
	return fmt.Sprintf("%s, %s to %s (%s)", counted(s.Count, "boundary", "boundaries"), text(s.First), text(s.Last), s.Reason)
}

// passesOver checks that a registration, or a repair, names the boundaries of which nobody else
// tells: as a new grid begins those of the old one that were due, and those of its own
// that it comes too late for (X12).
func (t *truth) passesOver(s *trueSchedule, row *store.Schedule, skips []store.Skip, anew bool) {
	var over fates
	if anew {
		if t.w.intent.as != nil && s.leavesDue(row.SetAt) {
			reason := store.SkipMissed
			if s.row.Paused != store.Active {
				reason = store.SkipPause
			}
			over.skip(reason, s.first(), s.after(row.SetAt), s.interval)
		}
		t.w.coverage.sometimes(missedByEdit, over.skipped() > 0)
		if row.Anchor < row.SetAt {
			over.skip(store.SkipBefore, row.Anchor, boundaryAfter(row, row.SetAt), intervalOf(row.Spec))
		}
		t.w.coverage.sometimes(beforeItsGrid, over.skippedBy(store.SkipBefore) > 0)
	}
	t.namesSkips(s, skips, over.skips[:])
}

// leavesDue reports whether boundaries of its grid are due at now, though the row may be
// held. A run-once that had its turn has none to come (X8).
func (s *trueSchedule) leavesDue(now store.Instant) bool {
	return s.known && intervalOf(s.row.Spec) != 0 && s.row.Paused != store.PausedByRunOnce && s.first() <= now
}

// triggered checks what a fire by hand makes of the row: it is the turn of a run-once
// (X8).
func (t *truth) triggered(s *trueSchedule, row *store.Schedule) {
	t.w.checked[aTrigger]++
	want := s.row
	want.Rev = row.Rev
	if want.RunOnce {
		want.Paused, want.DueAt, want.Hold = store.PausedByRunOnce, store.None, nil
	}
	t.w.coverage.sometimes(triggerEnds, want.RunOnce)
	switch {
	case s.row.Paused != store.Active || s.overlaps():
		t.w.fail(asAsked, row.Name, "it was fired by hand, paused: "+pauseWords[s.row.Paused]+"; a live job forbids that: "+yesNo(s.overlaps()))
	case !sameRow(row, &want):
		t.w.fail(asAsked, row.Name, "a fire by hand left "+unlike(row, &want))
	}
}

// samePolicies reports whether the row has the policies that were registered.
func samePolicies(row *store.Schedule, as *Schedule) bool {
	want := store.Rare{
		Hours: store.Hours{
			Start: uint16(as.Hours.Start / time.Minute), End: uint16(as.Hours.End / time.Minute), Zone: as.Hours.Zone,
		},
		TimeoutMS: as.Timeout.Milliseconds(),
	}
	if want.Hours.Zone == "UTC" {
		want.Hours.Zone = ""
	}
	return row.Overlap == store.Overlap(as.Overlap) && row.RunOnce == as.RunOnce && row.Breaker == uint8(max(as.Breaker, 0)) && rare(row.Rare) == want
}
