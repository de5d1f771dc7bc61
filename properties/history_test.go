package properties_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
)

// grid is one incarnation of the schedule, and all that ever became of its
// boundaries.
type grid struct {
	anchor, began int64 // ms
	every         int64
	fired         map[int64]tickonce.JobID
	skips         []tickonce.Event // ranges
}

// has reports whether the grid has the boundary, on it or before it began.
func (g *grid) has(at int64) bool { return at >= g.anchor && (at-g.anchor)%g.every == 0 }

// own reports whether the boundary is one that the incarnation meets (S2).
func (g *grid) own(at int64) bool { return g.has(at) && at > g.began }

// skip answers why the boundary was skipped, or "".
func (g *grid) skip(at int64) string {
	for _, s := range g.skips {
		if first := s.First.UnixMilli(); first <= at && at <= s.Last.UnixMilli() && (at-first)%g.every == 0 {
			return s.Reason
		}
	}
	return ""
}

// remembered is the naive model: it remembers everything.
type remembered struct {
	grids   []*grid // the last is the present one
	ended   map[tickonce.JobID]map[int]tickonce.Execution
	bounded bool // the history is small, and forgets
}

const watched = "s"

func (m *remembered) present() *grid { return m.grids[len(m.grids)-1] }

// learn takes in what the events of a call say of the grid that was the present
// one when it was made.
func (m *remembered) learn(g *grid, events []tickonce.Event) {
	for _, e := range events {
		switch {
		case e.Schedule != watched:
		case e.Kind == tickonce.EventFired:
			g.fired[e.Boundary.UnixMilli()] = e.Job
		case e.Kind == tickonce.EventSkipped:
			g.skips = append(g.skips, e)
		}
	}
}

// candidates are the boundaries to ask for: the ends of what is known, their
// neighbours, and instants that are on no grid.
func (m *remembered) candidates(now int64) []int64 {
	var all []int64
	around := func(at, every int64) { all = append(all, at-every, at, at+every, at+1) }
	for _, g := range m.grids {
		around(g.anchor, g.every)
		around(g.began-(g.began-g.anchor)%g.every, g.every)
		around(now-(now-g.anchor)%g.every, g.every)
		for at := range g.fired {
			around(at, g.every)
		}
		for _, s := range g.skips {
			around(s.First.UnixMilli(), g.every)
			around(s.Last.UnixMilli(), g.every)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// check asks why of a boundary, and judges the answer by all that ever happened.
func (m *remembered) check(t *rapid.T, w *world, at int64) tickonce.WhyKind {
	why, err := w.engine().Why(ctx, watched, time.UnixMilli(at))
	require.NoError(t, err)
	m.checkRuns(t, why)
	row, _, err := w.engine().Lookup(ctx, watched)
	require.NoError(t, err)
	g := m.present()
	say := []any{"%s at %d: %s, grids %+v", why.Kind, at, why, m.grids}
	if g.own(at) {
		_, fired := g.fired[at]
		switch reason := g.skip(at); {
		case at >= row.Next.UnixMilli():
			require.Equal(t, tickonce.WhyNotYet, why.Kind, say...)
			require.Equal(t, row.Paused, why.Paused)
		case why.Kind == tickonce.WhyForgotten:
			require.True(t, m.bounded, say...)
			require.Less(t, at, why.Since.UnixMilli(), say...)
		case fired:
			m.checkFired(t, w, why, g.fired[at], say)
		default:
			require.NotEmpty(t, reason, say...)
			m.checkSkipped(t, why, at, reason, say)
		}
		return why.Kind
	}
	passed := false // by an earlier incarnation
	for _, old := range m.grids[:len(m.grids)-1] {
		job, fired := old.fired[at]
		reason := old.skip(at)
		passed = passed || old.own(at) && (fired || reason != "")
		switch {
		case fired && slices.Contains([]tickonce.WhyKind{tickonce.WhyRan, tickonce.WhyFired}, why.Kind) && why.Job == job:
			return why.Kind
		case reason != "" && why.Skip != nil && why.Skip.Reason.String() == reason:
			m.checkSkipped(t, why, at, reason, say)
			return why.Kind
		}
	}
	switch {
	case why.Kind == tickonce.WhyForgotten:
		require.True(t, m.bounded || len(m.grids) > 1, say...)
		require.Less(t, at, why.Since.UnixMilli(), say...)
	case passed:
		require.Fail(t, "it is not told that it passed", say...)
	case g.has(at):
		require.Equal(t, tickonce.WhyBefore, why.Kind, say...)
	default:
		require.Equal(t, tickonce.WhyNoBoundary, why.Kind, say...)
	}
	return why.Kind
}

func (m *remembered) checkSkipped(t *rapid.T, why tickonce.Why, at int64, reason string, say []any) {
	kind := tickonce.WhySkipped
	if reason == "missed" {
		kind = tickonce.WhyMissed
	}
	require.Equal(t, kind, why.Kind, say...)
	require.Equal(t, reason, why.Skip.Reason.String(), say...)
	require.LessOrEqual(t, why.Skip.First.UnixMilli(), at)
	require.GreaterOrEqual(t, why.Skip.Last.UnixMilli(), at)
	require.Equal(t, why.Skip.Count, int64(why.Skip.Last.Sub(why.Skip.First)/why.Skip.Every)+1)
	require.NotEmpty(t, why.String())
}

// checkFired holds the answer against the job's row.
func (m *remembered) checkFired(t *rapid.T, w *world, why tickonce.Why, job tickonce.JobID, say []any) {
	var live, kept bool
	for _, j := range w.jobs("q", job) {
		if j.ID == job {
			kept, live = true, j.State != store.Dead
		}
	}
	ran := len(why.Runs) > 0
	switch {
	case live:
		require.Equal(t, tickonce.WhyFired, why.Kind, say...)
		require.Equal(t, job, why.Job, say...)
	case ran:
		require.Equal(t, tickonce.WhyRan, why.Kind, say...)
		require.Equal(t, job, why.Job, say...)
		require.Equal(t, kept, why.State == tickonce.JobDead, say...)
	default:
		require.Equal(t, tickonce.WhyFired, why.Kind, say...)
		if !m.bounded {
			require.Empty(t, m.ended[job], say...)
			require.Zero(t, why.Since, say...)
		}
	}
}

// checkRuns holds the attempts against those that the property has ended; the
// others were lost.
func (m *remembered) checkRuns(t *rapid.T, why tickonce.Why) {
	for _, run := range why.Runs {
		require.True(t, run.Boundary.Equal(why.Boundary))
		want, ended := m.ended[run.Job][run.Attempt]
		if !ended {
			want = tickonce.ExecutionLost
		}
		require.Equal(t, want, run.Execution)
	}
	if m.bounded {
		return
	}
	for _, run := range why.Runs { // none is missing
		for attempt := 1; attempt < run.Attempt; attempt++ {
			require.True(t, slices.ContainsFunc(why.Runs, func(r tickonce.PastRun) bool {
				return r.Job == run.Job && r.Attempt == attempt
			}))
		}
	}
}

// Whatever is done to a schedule, each boundary of each of its grids gets the
// right answer, or "forgotten", and no other instant is taken for one.
func TestX12EveryBoundaryHasAnAnswer(t *testing.T) {
	for _, kind := range []string{memory, naive} {
		t.Run(kind, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { everyBoundary(t, kind) }) })
	}
}

func everyBoundary(t *rapid.T, kind string) {
	m := &remembered{ended: map[tickonce.JobID]map[int]tickonce.Execution{}, bounded: rapid.Bool().Draw(t, "bounded")}
	c := tickonce.Config{}
	if m.bounded {
		c.Limits = tickonce.Limits{
			Runs: rapid.IntRange(1, 3).Draw(t, "runs"), Skips: rapid.IntRange(1, 3).Draw(t, "skips"),
			History: rapid.IntRange(1, 4).Draw(t, "history"),
		}
	}
	w := newWorld(t, c, kind, 1)
	register := func() {
		spec := rapid.SampledFrom([]string{"@every 1s", "@every 2s", "@every 7s", "@every 1m", "@every 1h"}).Draw(t, "spec")
		o := tickonce.ScheduleOptions{
			CatchUp: rapid.SampledFrom([]tickonce.CatchUp{
				tickonce.CatchUpAll, tickonce.CatchUpLatest, tickonce.CatchUpGrace, tickonce.CatchUpNone, {Window: 20 * time.Second, Count: 3},
			}).Draw(t, "catch-up"),
			Overlap:     rapid.SampledFrom([]tickonce.Overlap{tickonce.OverlapAllow, tickonce.OverlapAllow, tickonce.OverlapSkip}).Draw(t, "overlap"),
			MaxAttempts: 2, Visibility: 10 * time.Second, ResetCursor: rapid.IntRange(0, 9).Draw(t, "reset") == 0,
		}
		if rapid.IntRange(0, 2).Draw(t, "anchored") == 0 {
			o.Anchor = w.clock.now.Add(time.Duration(rapid.IntRange(-9, 9).Draw(t, "anchor")) * time.Second)
		}
		before := w.schedules()
		row, err := w.engine().Schedule(ctx, watched, spec, "q", nil, o)
		require.NoError(t, err)
		if len(m.grids) > 0 {
			m.learn(m.present(), w.take())
		}
		if now := w.schedules(); len(before) == 0 || before[0].ID != now[0].ID {
			parsed, err := tickonce.ParseSpec(row.Spec)
			require.NoError(t, err)
			m.grids = append(m.grids, &grid{
				anchor: int64(now[0].Anchor), began: w.clock.now.UnixMilli(), every: parsed.Interval().Milliseconds(),
				fired: map[int64]tickonce.JobID{},
			})
		}
		w.take()
	}
	register()
	end := func(j *tickonce.Job, x tickonce.Execution) {
		if j.Schedule != watched {
			return
		}
		if m.ended[j.ID] == nil {
			m.ended[j.ID] = map[int]tickonce.Execution{}
		}
		m.ended[j.ID][j.Attempt] = x
	}
	ask := func() {
		for _, at := range m.candidates(w.clock.now.UnixMilli()) {
			m.check(t, w, at)
		}
	}
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		switch rapid.IntRange(0, 11).Draw(t, "what") {
		case 0:
			register()
		case 1:
			_, err := w.engine().Pause(ctx, watched)
			require.NoError(t, err)
		case 2:
			_, err := w.engine().Resume(ctx, watched, tickonce.ResumeOptions{CatchUp: rapid.Bool().Draw(t, "catch up")})
			require.NoError(t, err)
		case 3: // an outage
			w.move(time.Duration(rapid.IntRange(1, 100_000).Draw(t, "outage")) * time.Second)
		case 4:
			w.move(-time.Duration(rapid.IntRange(1, 1500).Draw(t, "back")) * time.Millisecond)
		case 5, 6:
			j, err := w.engine().Claim(ctx, "q", "w")
			require.NoError(t, err)
			if j == nil {
				break
			}
			switch rapid.IntRange(0, 4).Draw(t, "end") {
			case 0:
				require.NoError(t, j.Fail(ctx, nil))
				end(j, tickonce.ExecutionFailed)
			case 1:
				require.NoError(t, j.RetryAfter(ctx, nil, time.Second))
				end(j, tickonce.ExecutionFailed)
			case 2:
				_, err := w.engine().Cancel(ctx, "q", j.ID)
				require.NoError(t, err)
				end(j, tickonce.ExecutionCancelled)
			case 3: // left to lapse
			default:
				require.NoError(t, j.Ack(ctx))
				end(j, tickonce.ExecutionOK)
			}
		case 7:
			if kind == memory {
				restored, err := memengine.Restore(w.config(c), w.snapshot())
				require.NoError(t, err)
				w.store = restored.Store()
				e, err := tickonce.New(w.store, w.config(c))
				require.NoError(t, err)
				w.staff(e)
			}
		case 8:
			ask()
		default:
			w.move(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
			w.rest()
		}
		m.learn(m.present(), w.take())
	}
	ask()
}
