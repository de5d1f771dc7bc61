package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// Eleven boundaries of a second are due, 0 to 10.
func TestX8ARunOnceHasOneTurn(t *testing.T) {
	skip := func(reason store.SkipReason, first, last store.Instant) store.Skip {
		return store.Skip{Reason: reason, First: first, Last: last, Count: int64(last-first)/1000 + 1}
	}
	for _, c := range []struct {
		name    string
		policy  store.CatchUp
		overlap store.Overlap
		live    store.Live
		now     store.Instant
		fires   []store.Instant
		skips   []store.Skip
		ends    bool
	}{
		{"the oldest", all, store.Allow, store.Live{}, 10_000, []store.Instant{0}, []store.Skip{skip(store.SkipPolicy, 1000, 10_000)}, true},
		{"the newest", latest, store.Allow, store.Live{}, 10_000, []store.Instant{10_000}, []store.Skip{skip(store.SkipPolicy, 0, 9000)}, true},
		{"within the window", store.CatchUp{WindowMS: 5000, Max: 64}, store.Allow, store.Live{}, 10_000, []store.Instant{5000}, []store.Skip{
			skip(store.SkipPolicy, 0, 4000), skip(store.SkipPolicy, 6000, 10_000),
		}, true},
		{"all too late", store.CatchUp{WindowMS: 100, Max: 64}, store.Allow, store.Live{}, 10_500, nil, []store.Skip{skip(store.SkipMissed, 0, 10_000)}, true},
		{"too late, over a job that runs", store.CatchUp{WindowMS: 100, Max: 1}, store.SkipLive, store.Live{Claimed: 1}, 10_500, nil, []store.Skip{skip(store.SkipMissed, 0, 10_000)}, true},
		{"over a job that runs", all, store.SkipLive, store.Live{Claimed: 1}, 10_000, nil, []store.Skip{skip(store.SkipOverlap, 0, 10_000)}, false},
		{"with the policy of overlap", all, store.SkipLive, store.Live{}, 10_000, []store.Instant{0}, []store.Skip{skip(store.SkipOverlap, 1000, 10_000)}, true},
		{"not due", all, store.Allow, store.Live{}, -1, nil, nil, false},
	} {
		row := rowOf("@every 1s", 0)
		row.RunOnce, row.CatchUp, row.Overlap, row.Live = true, c.policy, c.overlap, c.live
		p := core.PlanFire(&row, c.now, "", utc)
		require.Equal(t, c.fires, boundaries(p), c.name)
		require.Equal(t, c.skips, skips(p), c.name)
		require.Equal(t, c.ends, p.Move.Ends, c.name)
		due := p.Move.Cursor
		if c.ends {
			due = store.None
		}
		require.Equal(t, due, p.Move.DueAt, c.name)
	}
}

func TestX8ANewGridArmsARunOnceAgain(t *testing.T) {
	old := kept()
	old.RunOnce, old.Paused, old.DueAt = true, store.PausedByRunOnce, store.None
	again := request(t, "@every 10s")
	again.Row.RunOnce = true
	row, skips, ok := core.PlanPut(&old, again, 100_000)
	require.True(t, ok)
	require.Equal(t, []any{old.ID, store.PausedByRunOnce, store.None}, []any{row.ID, row.Paused, row.DueAt}, "the same again does not")
	require.Empty(t, skips)
	for name, change := range map[string]func(*core.Registration){
		"another interval": func(r *core.Registration) { *r = *request(t, "@every 20s"); r.Row.RunOnce = true },
		"another anchor":   func(r *core.Registration) { r.Anchor = 500 },
		"a reset":          func(r *core.Registration) { r.ResetCursor = true },
		"recurring now":    func(r *core.Registration) { r.Row.RunOnce = false },
	} {
		reg := request(t, "@every 10s")
		reg.Row.RunOnce = true
		change(reg)
		row, skips, ok := core.PlanPut(&old, reg, 100_000)
		require.True(t, ok, name)
		require.Zero(t, row.ID, name)
		require.Equal(t, store.Active, row.Paused, name)
		require.Greater(t, row.DueAt, store.Instant(100_000), name)
		for _, skip := range skips {
			require.Equal(t, store.SkipBefore, skip.Reason, "%s: what came after its turn was never to fire", name)
		}
	}
}

func TestX4ARegistrationKeepsTheCountOfFailures(t *testing.T) {
	for _, c := range []struct {
		name                   string
		failures, breaker, was uint8
		paused                 store.Pause
		want                   uint8
	}{
		{"the same breaker", 2, 3, 3, store.Active, 2},
		{"a larger one", 2, 9, 3, store.Active, 2},
		{"a smaller one: the next failure opens it", 4, 2, 5, store.Active, 2},
		{"none", 2, 0, 3, store.Active, 0},
		{"open", 3, 3, 3, store.PausedByBreaker, 3},
	} {
		for _, spec := range []string{"@every 10s", "@every 20s"} {
			old := kept()
			old.Breaker, old.Failures, old.Paused = c.was, c.failures, c.paused
			reg := request(t, spec)
			reg.Row.Breaker = c.breaker
			row, _, ok := core.PlanPut(&old, reg, 20_500)
			require.True(t, ok)
			require.Equal(t, []any{c.want, c.paused}, []any{row.Failures, row.Paused}, c.name)
			require.Empty(t, core.CheckPolicy(&row), c.name)
		}
	}
}

// A new grid tells of the boundaries that it passes over: the due ones of the
// old one, and its own of the time before it (X12).
func TestX12ANewGridTellsWhatItPassesOver(t *testing.T) {
	const now = store.Instant(100_000)
	missed := store.Skip{Reason: store.SkipMissed, EveryMS: 10_000, First: 23_000, Last: 93_000, Count: 8}
	before := store.Skip{Reason: store.SkipBefore, EveryMS: 10_000, First: 500, Last: 90_500, Count: 10}
	for _, c := range []struct {
		name   string
		old    func(*store.Schedule) // nil: none
		change func(*core.Registration)
		want   []store.Skip
	}{
		{"new, from now on", nil, func(*core.Registration) {}, nil},
		{"new, on an old grid", nil, func(r *core.Registration) { r.Anchor = 500 }, []store.Skip{before}},
		{"new, on a grid to come", nil, func(r *core.Registration) { r.Anchor = now + 1 }, nil},
		{"the same again", func(*store.Schedule) {}, func(*core.Registration) {}, nil},
		{"another anchor", func(*store.Schedule) {}, func(r *core.Registration) { r.Anchor = 500 }, []store.Skip{missed, before}},
		{"reset", func(*store.Schedule) {}, func(r *core.Registration) { r.ResetCursor = true }, []store.Skip{missed}},
		{"reset on the same anchor", func(*store.Schedule) {}, func(r *core.Registration) { r.ResetCursor, r.Anchor = true, 3000 }, []store.Skip{
			missed, {Reason: store.SkipBefore, EveryMS: 10_000, First: 3000, Last: 93_000, Count: 10},
		}},
		{"reset, nothing due", func(s *store.Schedule) { s.Cursor = 103_000 }, func(r *core.Registration) { r.ResetCursor = true }, nil},
		{"reset, due at now", func(s *store.Schedule) { s.Anchor, s.Cursor = 0, now }, func(r *core.Registration) { r.ResetCursor = true }, []store.Skip{
			{Reason: store.SkipMissed, EveryMS: 10_000, First: now, Last: now, Count: 1},
		}},
		{"reset of a row that is paused", func(s *store.Schedule) { s.Paused = store.PausedByBreaker }, func(r *core.Registration) { r.ResetCursor = true }, []store.Skip{
			{Reason: store.SkipPause, EveryMS: 10_000, First: 23_000, Last: 93_000, Count: 8},
		}},
		{"reset of a run-once that had its turn", func(s *store.Schedule) { s.RunOnce, s.Paused = true, store.PausedByRunOnce }, func(r *core.Registration) { r.ResetCursor = true }, nil},
		{"reset of a row with another fault", func(s *store.Schedule) { s.Queue = "__alkstore_q" }, func(r *core.Registration) { r.ResetCursor = true }, []store.Skip{missed}},
		{"reset of a row off every grid", func(s *store.Schedule) { s.Cursor = store.None }, func(r *core.Registration) { r.ResetCursor = true }, nil},
		{"reset of a bad row", func(s *store.Schedule) { s.Spec = "@daily" }, func(r *core.Registration) { r.ResetCursor = true }, nil},
	} {
		var old *store.Schedule
		if c.old != nil {
			row := kept()
			c.old(&row)
			old = &row
		}
		reg := request(t, "@every 10s")
		c.change(reg)
		_, skips, ok := core.PlanPut(old, reg, now)
		require.True(t, ok, c.name)
		require.Equal(t, c.want, skips, c.name)
	}
}
