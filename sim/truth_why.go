package sim

import (
	"fmt"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// fateOfGrid is what became of the boundaries of an incarnation from a certain one on: those
// before the cursor that are in no range have fired.
type fateOfGrid struct {
	from   store.Instant // nothing is known of boundaries before
	ranges []store.Skip  // that were skipped, in their order
	told   int64         // how many ranges there ever were, of all incarnations
}

// mostRanges bounds what is kept.
const mostRanges = 256

// begins forgets all, and knows what becomes of the boundaries from the instant on.
func (f *fateOfGrid) begins(from store.Instant) { f.from, f.ranges = from, nil }

// skipped takes in a range.
func (f *fateOfGrid) skipped(skip store.Skip) {
	f.told++
	if last := len(f.ranges) - 1; last >= 0 && f.ranges[last].Reason == skip.Reason && f.ranges[last].Last.Add(skip.EveryMS) == skip.First {
		f.ranges[last].Last = skip.Last
		return
	}
	f.ranges = append(f.ranges, skip)
	if len(f.ranges) > mostRanges {
		f.from = f.ranges[0].Last + 1
		f.ranges = append(f.ranges[:0], f.ranges[1:]...)
	}
}

// reason is why the boundary was skipped; 0: it was not.
func (f *fateOfGrid) reason(at store.Instant) store.SkipReason {
	for _, r := range f.ranges {
		if r.First <= at && at <= r.Last {
			return r.Reason
		}
	}
	return 0
}

// askWhy asks the engine what became of some boundary of a schedule, or of an instant
// beside one, and compares (X12).
func (t *truth) askWhy() {
	if len(t.schedules) == 0 {
		return
	}
	draw := core.Mix64(t.w.scenario.Engine.Seed ^ core.Mix64(uint64(t.w.events)))
	next := func(n int64) int64 {
		draw = core.Mix64(draw)
		return int64(draw % uint64(n))
	}
	s := &t.schedules[next(int64(len(t.schedules)))]
	if !s.known || s.undecidable() || !s.row.Cursor.Valid() {
		return
	}
	first := s.after(s.fate.from - 1)
	steps := max(int64(s.row.Cursor-first)/s.interval+2, 1)
	if next(2) == 0 { // one of the latest, whose job may not have ended
		late := min(steps, 4)
		first, steps = first.Add((steps-late)*s.interval), late
	}
	at := first.Add(next(steps) * s.interval)
	beside := next(16) == 0 && s.interval > 1
	if beside {
		at++
	}
	if !at.Valid() || timeOf(at).Year() > 9999 { // by a row that was spoilt
		return
	}
	engine, err := tickonce.New(t.Store, tickonce.Config{Clock: newClock(t.w, &t.w.clock), Seed: 1, Owner: "why", Zones: zone})
	if err != nil {
		panic(err)
	}
	w, err := engine.Why(ctx, s.row.Name, timeOf(at))
	t.w.checked[aWhy]++
	if wrong := t.wrongWhy(s, at, beside, &w); err != nil || wrong != "" {
		if err != nil {
			wrong = err.Error()
		}
		t.w.fail(rightWhy, s.row.Name, fmt.Sprintf("asked what became of %s, the engine says %s: %s", text(at), w.Kind, wrong))
	}
}

// wrongWhy says what is wrong with the answer, "" if nothing is.
func (t *truth) wrongWhy(s *trueSchedule, at store.Instant, beside bool, w *tickonce.Why) string {
	reason := s.fate.reason(at)
	if w.Kind == tickonce.WhyForgotten && at < s.row.Cursor && !w.Since.Before(timeOf(at)) && s.fate.told >= store.DefaultSkips {
		return ""
	}
	switch {
	case beside && w.Kind != tickonce.WhyNoBoundary && w.Kind != tickonce.WhyForgotten:
		return "it is no boundary"
	case beside:
	case at >= s.row.Cursor:
		if w.Kind != tickonce.WhyNotYet || w.Paused != s.row.Paused || (w.Hold != nil) != (s.row.Hold != nil) {
			return "its time has not come"
		}
	case reason == store.SkipMissed:
		if w.Kind != tickonce.WhyMissed {
			return "it was missed"
		}
	case reason != 0:
		if w.Kind != tickonce.WhySkipped || w.Skip == nil || w.Skip.Reason != reason {
			return "it was skipped, " + reason.String()
		}
	case w.Kind == tickonce.WhyRan:
		if j := t.jobs[w.Job]; j != nil {
			return fmt.Sprintf("job %d has not ended", w.Job)
		}
	case w.Kind != tickonce.WhyFired:
		return "it fired"
	case w.Job != 0:
		if j := t.jobs[w.Job]; w.State != tickonce.JobDead && (j == nil || j.boundary != at || j.incarnation != s.row.ID) {
			return fmt.Sprintf("job %d is not its own", w.Job)
		}
	}
	return t.wrongRuns(w)
}

// wrongRuns says what is wrong with the runs of the answer: of each job it has some
// latest ones, and of one that has not ended all that are over (X11).
func (t *truth) wrongRuns(w *tickonce.Why) string {
	latest := 0
	for i := range w.Runs {
		r := &w.Runs[i]
		for _, before := range w.Runs[:i] {
			if before.Job == r.Job && before.Attempt >= r.Attempt {
				return fmt.Sprintf("attempt %d of job %d comes after attempt %d", r.Attempt, r.Job, before.Attempt)
			}
		}
		if r.Job == w.Job {
			latest = r.Attempt
		}
	}
	j := t.jobs[w.Job]
	if j == nil || latest == 0 {
		return ""
	}
	over := int(j.attempts)
	if j.claimed {
		over--
	}
	if latest != over {
		return fmt.Sprintf("job %d had %d attempts that are over, and the latest of them is %d", w.Job, over, latest)
	}
	return ""
}
