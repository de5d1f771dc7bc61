package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// request is a checked registration of "s", without an anchor.
func request(t require.TestingT, spec string) *core.Registration {
	interval, err := core.ParseSpec(spec)
	require.NoError(t, err)
	return &core.Registration{
		Interval: interval, Anchor: store.None,
		Row: store.Schedule{Name: "s", Spec: spec, Queue: "q", Payload: []byte("p"), Stamps: core.PlainStamps, CatchUp: all},
	}
}

// kept is a row of an earlier registration: every 10 s from 3 s on.
func kept() store.Schedule {
	return store.Schedule{
		ID: 7, Rev: 3, Name: "s", Spec: "@every 10s", Queue: "old", Payload: []byte("old"),
		Stamps: core.OutboxStamps, CatchUp: latest, Anchor: 3000, Cursor: 23_000, DueAt: 23_000, SetAt: 13_000,
	}
}

func TestS2TheFirstBoundaryIsStrictlyAfterNow(t *testing.T) {
	const now, year = store.Instant(1_000_000), 365 * 86_400_000
	for _, c := range []struct {
		name          string
		anchor        store.Instant
		wantA, cursor store.Instant
	}{
		{"no anchor: now, so the first is an interval away", store.None, now, now + 7000},
		{"an anchor at now", now, now, now + 7000},
		{"an anchor a millisecond ahead", now + 1, now + 1, now + 1},
		{"an anchor a millisecond ago", now - 1, now - 1, now + 6999},
		{"an anchor of 1970: the next of its grid, no backlog", 0, 0, 1_001_000},
		{"an anchor in a year: the anchor itself", now + year, now + year, now + year},
		{"an anchor of exactly an interval ago", now - 7000, now - 7000, now + 7000},
		{"an anchor before the epoch", -5000, -5000, 1_003_000},
		{"the first instant", first, first, now + 7000 - (now-first)%7000},
	} {
		t.Run(c.name, func(t *testing.T) {
			reg := request(t, "@every 7s")
			reg.Anchor = c.anchor
			row, _, ok := core.PlanPut(nil, reg, now)
			require.True(t, ok)
			want := reg.Row
			want.Anchor, want.Cursor, want.DueAt, want.SetAt = c.wantA, c.cursor, c.cursor, now
			want.AtAnchor = c.wantA > now
			require.Equal(t, want, row)
			require.Zero(t, row.ID, "a new incarnation")
		})
	}
}

func TestG6RegistrationPastTheLastInstantIsRefused(t *testing.T) {
	reg := request(t, "@every 106751d")
	_, _, ok := core.PlanPut(nil, reg, last-1000)
	require.False(t, ok)
	reg = request(t, "@every 1s")
	_, _, ok = core.PlanPut(nil, reg, last-1000)
	require.True(t, ok)
}

func TestS5WhatKeepsTheGridAndWhatStartsANewOne(t *testing.T) {
	const now = store.Instant(20_500)
	for _, c := range []struct {
		name   string
		change func(reg *core.Registration, old *store.Schedule)
		keeps  bool
	}{
		{"the same again", nil, true},
		{"the same anchor given", func(r *core.Registration, _ *store.Schedule) { r.Anchor = 3000 }, true},
		{"another anchor", func(r *core.Registration, _ *store.Schedule) { r.Anchor = 3001 }, false},
		{"another anchor on the same grid", func(r *core.Registration, _ *store.Schedule) { r.Anchor = 13_000 }, false},
		{"ResetCursor", func(r *core.Registration, _ *store.Schedule) { r.ResetCursor = true }, false},
		{"ResetCursor with the same anchor", func(r *core.Registration, _ *store.Schedule) { r.Anchor, r.ResetCursor = 3000, true }, false},
		{"another interval", func(r *core.Registration, _ *store.Schedule) { r.Interval, _ = core.ParseSpec("@every 20s") }, false},
		{"another interval and the same anchor", func(r *core.Registration, _ *store.Schedule) {
			r.Anchor = 3000
			r.Interval, _ = core.ParseSpec("@every 20s")
		}, false},
		{"a stored spec that no longer parses", func(_ *core.Registration, old *store.Schedule) { old.Spec = "@daily" }, true},
		{"a stored anchor out of range", func(_ *core.Registration, old *store.Schedule) { old.Anchor = store.MaxInstant + 1 }, false},
		{"a stored cursor out of range", func(_ *core.Registration, old *store.Schedule) { old.Cursor = store.None }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, reg := kept(), request(t, "@every 10s")
			if c.change != nil {
				c.change(reg, &old)
			}
			row, _, ok := core.PlanPut(&old, reg, now)
			require.True(t, ok)
			want := reg.Row // queue, payload and options are replaced
			if c.keeps {
				want.ID, want.Anchor, want.Cursor, want.DueAt, want.SetAt = 7, 3000, 23_000, 23_000, 13_000
			} else {
				want.SetAt, want.Anchor = now, now
				if reg.Anchor != store.None {
					want.Anchor = reg.Anchor
				}
				want.Cursor, _ = core.BoundaryAfter(want.Anchor, reg.Interval.IntervalMS(), now)
				want.DueAt = want.Cursor
			}
			require.Equal(t, want, row)
		})
	}
}

func TestS5TheSameIntervalInAnotherUnitKeepsTheGrid(t *testing.T) {
	old := kept()
	old.Spec = "@every 60s"
	row, _, ok := core.PlanPut(&old, request(t, "@every 1m"), 1_000_000)
	require.True(t, ok)
	require.Equal(t, store.ScheduleID(7), row.ID)
	require.Equal(t, store.Instant(23_000), row.Cursor, "a backlog is kept, too")
	require.Equal(t, "@every 1m", row.Spec)
}

func TestS5PausedStaysPausedAndAHoldEnds(t *testing.T) {
	for _, reset := range []bool{false, true} {
		old, reg := kept(), request(t, "@every 10s")
		old.Hold = &store.Hold{Reason: "x", Since: 1, Times: 1}
		old.DueAt, reg.ResetCursor = 80_000, reset
		row, _, _ := core.PlanPut(&old, reg, 20_500)
		require.Nil(t, row.Hold)
		require.Equal(t, row.Cursor, row.DueAt)
		require.False(t, core.SameRow(&old, &row))

		old.Paused, old.DueAt = store.PausedByBreaker, store.None
		row, _, _ = core.PlanPut(&old, reg, 20_500)
		require.Equal(t, store.PausedByBreaker, row.Paused)
		require.Equal(t, store.None, row.DueAt)
	}
}

func TestC25SameRowSeesEveryField(t *testing.T) {
	old := kept()
	for name, change := range map[string]func(row *store.Schedule){
		"id":           func(r *store.Schedule) { r.ID = 0 },
		"name":         func(r *store.Schedule) { r.Name = "t" },
		"spec":         func(r *store.Schedule) { r.Spec = "@every 11s" },
		"queue":        func(r *store.Schedule) { r.Queue = "p" },
		"payload":      func(r *store.Schedule) { r.Payload = []byte("olds") },
		"visibility":   func(r *store.Schedule) { r.Stamps.VisibilityMS++ },
		"attempts":     func(r *store.Schedule) { r.Stamps.MaxAttempts++ },
		"backoff":      func(r *store.Schedule) { r.Stamps.BaseBackoffMS++ },
		"expiry":       func(r *store.Schedule) { r.ExpiresMS++ },
		"window":       func(r *store.Schedule) { r.CatchUp.WindowMS++ },
		"count":        func(r *store.Schedule) { r.CatchUp.Max++ },
		"end":          func(r *store.Schedule) { r.CatchUp.Newest = !r.CatchUp.Newest },
		"anchor":       func(r *store.Schedule) { r.Anchor++ },
		"cursor":       func(r *store.Schedule) { r.Cursor++ },
		"due":          func(r *store.Schedule) { r.DueAt++ },
		"set":          func(r *store.Schedule) { r.SetAt++ },
		"priority":     func(r *store.Schedule) { r.Priority++ },
		"pause":        func(r *store.Schedule) { r.Paused = store.PausedByUser },
		"hold":         func(r *store.Schedule) { r.Hold = &store.Hold{} },
		"payload gone": func(r *store.Schedule) { r.Payload = nil },
	} {
		row := kept()
		change(&row)
		require.False(t, core.SameRow(&old, &row), name)
	}
	row := kept()
	row.Rev = 99
	require.True(t, core.SameRow(&old, &row), "the rev is the store's")
	old.Payload, row.Payload = nil, []byte{}
	require.True(t, core.SameRow(&old, &row), "no payload and an empty one are the same")
}

func TestC25RegisteringTheSameAgainChangesNothing(t *testing.T) {
	reg := request(t, "@every 10s")
	row, _, _ := core.PlanPut(nil, reg, 1000)
	row.ID, row.Rev = 7, 1
	again, _, ok := core.PlanPut(&row, reg, 500_000)
	require.True(t, ok)
	require.True(t, core.SameRow(&row, &again))
}

func TestS7PlanPause(t *testing.T) {
	want := kept()
	want.Paused, want.DueAt = store.PausedByUser, store.None
	require.Equal(t, want, core.PlanPause(kept()))
}

func TestS7PlanResume(t *testing.T) {
	for _, c := range []struct {
		name    string
		now     store.Instant
		catchUp bool
		cursor  store.Instant
		skip    store.Skip
	}{
		{"nothing missed", 22_999, false, 23_000, store.Skip{}},
		{"at the boundary", 23_000, false, 33_000, store.Skip{Reason: store.SkipPause, EveryMS: 10_000, First: 23_000, Last: 23_000, Count: 1}},
		{"just before the next one", 32_999, false, 33_000, store.Skip{Reason: store.SkipPause, EveryMS: 10_000, First: 23_000, Last: 23_000, Count: 1}},
		{"a thousand missed", 10_020_000, false, 10_023_000, store.Skip{Reason: store.SkipPause, EveryMS: 10_000, First: 23_000, Last: 10_013_000, Count: 1000}},
		{"ten to the twelfth seconds missed", 1_000_000_000_000_000, false, 1_000_000_000_003_000, store.Skip{
			Reason: store.SkipPause, EveryMS: 10_000, First: 23_000, Last: 999_999_999_993_000, Count: 99_999_999_998,
		}},
		{"catch up instead", 10_020_000, true, 23_000, store.Skip{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			old := core.PlanPause(kept())
			row, skip := core.PlanResume(old, c.now, c.catchUp)
			require.Equal(t, c.skip, skip)
			want := kept()
			want.Cursor, want.DueAt = c.cursor, c.cursor
			if c.skip.Count > 0 {
				want.SetAt = c.now
			}
			require.Equal(t, want, row, "the same incarnation and grid, active")
		})
	}
}

// A row that cannot be decided is left due, for the tick to quarantine.
func TestS7ResumeOfABadRowLeavesItToTheTick(t *testing.T) {
	for name, spoil := range map[string]func(row *store.Schedule){
		"spec":             func(r *store.Schedule) { r.Spec = "@daily" },
		"queue":            func(r *store.Schedule) { r.Queue = "" },
		"the end of range": func(r *store.Schedule) { r.Anchor, r.Cursor = last-1000, last-1000 },
	} {
		old := core.PlanPause(kept())
		spoil(&old)
		row, skip := core.PlanResume(old, last, false)
		require.Zero(t, skip, name)
		require.Equal(t, store.Active, row.Paused, name)
		require.Equal(t, row.Cursor, row.DueAt, name)
		require.NotNil(t, core.PlanFire(&row, last, "", utc).Move.Hold, name)
	}
}

func TestT11CursorAhead(t *testing.T) {
	const set, every = store.Instant(1_000_000), 10_000
	for _, c := range []struct {
		name   string
		change func(row *store.Schedule)
		now    store.Instant
		ahead  bool
	}{
		{"the clock stands", nil, set, false},
		{"the clock went on", nil, set + 5000, false},
		{"a small step back", nil, set - 2, false},
		{"back by an interval", nil, set - every, false},
		{"exactly two intervals before the cursor", nil, set + every - 2*every, false},
		{"a millisecond more", nil, set + every - 2*every - 1, true},
		{"back by 400 days", nil, set - 400*86_400_000, true},
		{"set by the right clock, far ahead all the same", func(r *store.Schedule) { r.Cursor = set + 86_400_000 }, set, false},
		{"set by the right clock: an anchor far ahead", func(r *store.Schedule) { r.Anchor = set + 86_400_000; r.Cursor = r.Anchor }, set, false},
		{"an anchor far ahead, and a small step back", func(r *store.Schedule) { r.Anchor = set + 86_400_000; r.Cursor = r.Anchor }, set - 2, false},
		{"paused", func(r *store.Schedule) { r.Paused, r.DueAt = store.PausedByUser, store.None }, 0, true},
		{"a bad row", func(r *store.Schedule) { r.Spec = "@daily" }, 0, false},
		{"across the whole range", func(r *store.Schedule) { r.Anchor, r.Cursor, r.SetAt = first, last, last }, first, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := rowOf("@every 10s", set+every)
			row.SetAt = set
			if c.change != nil {
				c.change(&row)
			}
			require.Equal(t, c.ahead, core.CursorAhead(&row, c.now))
		})
	}
}

func TestQ3HoldAhead(t *testing.T) {
	const now = store.Instant(1_000_000)
	for _, c := range []struct {
		name   string
		dueAt  store.Instant
		change func(row *store.Schedule)
		ahead  bool
	}{
		{"a hold that began now", now + 60_000, nil, false},
		{"a millisecond longer", now + 60_001, nil, true},
		{"over", now, nil, false},
		{"without end: the clock had reached the last instant", store.None, nil, true},
		{"not held", now + 86_400_000, func(r *store.Schedule) { r.Hold = nil }, false},
		{"paused", store.None, func(r *store.Schedule) { r.Paused = store.PausedByUser }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := rowOf("@daily", 0)
			row.Hold, row.DueAt = &store.Hold{Reason: "x", Times: 1}, c.dueAt
			if c.change != nil {
				c.change(&row)
			}
			require.Equal(t, c.ahead, core.HoldAhead(&row, now))
		})
	}
}

func TestT11PlanRearm(t *testing.T) {
	const year = store.Instant(365 * 86_400_000)
	for _, c := range []struct {
		name                   string
		anchor, cursor, now    store.Instant
		wantAnchor, wantCursor store.Instant
	}{
		{"on the same grid", 3000, 3000 + 100*year, 45_000, 3000, 53_000},
		{"at a boundary: strictly after", 3000, 3000 + 100*year, 43_000, 3000, 53_000},
		{"the wrong clock set the anchor, too: the same phase", 3000 + 70*year, 13_000 + 70*year, 45_000, 43_000, 53_000},
		{"the anchor ahead, at a boundary", 3000 + 70*year, 13_000 + 70*year, 43_000, 43_000, 53_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := kept()
			row.Anchor, row.Cursor, row.DueAt, row.SetAt = c.anchor, c.cursor, c.cursor+60_000, c.cursor-1
			row.Hold = &store.Hold{Reason: "x", Since: 1, Times: 1}
			require.True(t, core.CursorAhead(&row, c.now))
			rearmed, before, ok := core.PlanRearm(row, c.now)
			require.True(t, ok)
			if c.wantAnchor < c.now {
				require.Equal(t, []store.Skip{{
					Reason: store.SkipBefore, EveryMS: 10_000,
					First: c.wantAnchor, Last: c.wantCursor - 10_000, Count: int64(c.wantCursor-c.wantAnchor) / 10_000,
				}}, before)
			} else {
				require.Empty(t, before)
			}
			want := kept()
			want.ID, want.Anchor, want.Cursor, want.DueAt, want.SetAt = 0, c.wantAnchor, c.wantCursor, c.wantCursor, c.now
			require.Equal(t, want, rearmed, "a new incarnation")
			require.False(t, core.CursorAhead(&rearmed, c.now))
			require.LessOrEqual(t, int64(rearmed.Cursor-c.now), int64(10_000), "within one interval")
			require.True(t, core.CursorAhead(&rearmed, c.now-year), "and again after another step")
		})
	}
	row := kept()
	row.Spec = "@daily"
	_, _, ok := core.PlanRearm(row, 0)
	require.False(t, ok, "a bad row")
	row = kept()
	row.Anchor, row.Cursor = last-5000, last
	rearmed, _, ok := core.PlanRearm(row, first)
	require.True(t, ok, "from the last instants to the first")
	require.Equal(t, first+6982, rearmed.Cursor)
}

// After a step back of less than an interval no policy may repair: what the
// clock used before the step would fire again.
func TestT11NoStepOfLessThanAnIntervalIsRepaired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		every := 1000 * rapid.Int64Range(1, 1_000_000).Draw(t, "seconds")
		spec, _ := core.Every(every)
		row := rowOf(spec.String(), 0)
		now := store.Instant(rapid.Int64Range(0, 1<<50).Draw(t, "now"))
		p := core.PlanFire(&row, now, "", utc)
		row.Cursor, row.DueAt, row.SetAt = p.Move.Cursor, p.Move.DueAt, p.Move.SetAt
		step := store.Instant(rapid.Int64Range(0, every-1).Draw(t, "step"))
		require.False(t, core.CursorAhead(&row, now-step))
	})
}
