package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// The catch-up policies as they stand in a row; grace and none with the
// windows that they have for intervals up to four minutes.
var (
	all    = store.CatchUp{Max: 64}
	latest = store.CatchUp{Max: 1, Newest: true}
	grace  = store.CatchUp{WindowMS: 120_000, Max: 64}
	none   = store.CatchUp{WindowMS: 10_000, Max: 1, Newest: true}
)

// utc has the minutes of one zone, "UTC".
func utc(zone string, at store.Instant) (uint16, string) {
	if zone != "UTC" {
		return 0, "no zone " + zone
	}
	const day = 24 * 60
	return uint16((int64(at)/60_000%day + day) % day), ""
}

// rowOf is an active row with the anchor 0 whose cursor is due.
func rowOf(spec string, cursor store.Instant) store.Schedule {
	return store.Schedule{
		ID: 7, Rev: 3, Name: "s", Spec: spec, Queue: "q",
		Stamps: core.PlainStamps, CatchUp: all, Cursor: cursor, DueAt: cursor, SetAt: -1,
	}
}

// boundaries are those that the plan fires.
func boundaries(p core.FirePlan) []store.Instant {
	var fired []store.Instant
	for k := range p.Move.Fires {
		fired = append(fired, p.First+store.Instant(int64(k)*p.EveryMS))
	}
	return fired
}

// skips are those that the plan has, without their distance where it is the
// plan's, as it has to be.
func skips(p core.FirePlan) []store.Skip {
	var some []store.Skip
	for _, skip := range p.Skips {
		if skip.Count > 0 {
			if skip.EveryMS == p.EveryMS {
				skip.EveryMS = 0
			}
			some = append(some, skip)
		}
	}
	return some
}

func TestT6SkipLandsOnTheGrid(t *testing.T) {
	row := rowOf("@every 7s", 0)
	p := core.PlanFire(&row, 1_000_000, "", utc)
	require.Equal(t, store.Move{ID: 7, Rev: 3, Cursor: 1_001_000, DueAt: 1_001_000, SetAt: 1_000_000, Fires: 64}, p.Move)
	require.Equal(t, store.Instant(0), p.First)
	require.Equal(t, int64(7000), p.EveryMS)
	require.Equal(t, []store.Skip{{Reason: store.SkipCap, First: 448_000, Last: 994_000, Count: 79}}, skips(p))
}

func TestT5T7TheCap(t *testing.T) {
	for _, c := range []struct {
		due, fires int32
		skips      []store.Skip
	}{
		{1, 1, nil},
		{63, 63, nil},
		{64, 64, nil},
		{65, 64, []store.Skip{{Reason: store.SkipCap, First: 640_000, Last: 640_000, Count: 1}}},
		{66, 64, []store.Skip{{Reason: store.SkipCap, First: 640_000, Last: 650_000, Count: 2}}},
		{300, 64, []store.Skip{{Reason: store.SkipCap, First: 640_000, Last: 2_990_000, Count: 236}}},
	} {
		row := rowOf("@every 10s", 0)
		newest := store.Instant(c.due-1) * 10_000
		for _, now := range []store.Instant{newest, newest + 1, newest + 9999} {
			p := core.PlanFire(&row, now, "", utc)
			require.Equal(t, c.fires, p.Move.Fires, "%d due", c.due)
			require.Equal(t, store.Instant(0), p.First, "oldest first")
			require.Equal(t, c.skips, skips(p), "%d due", c.due)
			require.Equal(t, newest+10_000, p.Move.Cursor, "strictly after now")
			require.Equal(t, newest+10_000, p.Move.DueAt)
		}
	}
}

func TestT6SkipIsStrictlyAfterNow(t *testing.T) {
	row := rowOf("@every 10s", 0)
	for now, want := range map[store.Instant]store.Instant{
		999_999:   1_000_000,
		1_000_000: 1_010_000, // now is a boundary itself
		1_000_001: 1_010_000,
	} {
		require.Equal(t, want, core.PlanFire(&row, now, "", utc).Move.Cursor)
	}
}

func TestT1ARowThatIsNotDueFiresNothing(t *testing.T) {
	row := rowOf("@every 10s", 20_000)
	p := core.PlanFire(&row, 19_999, "", utc)
	require.Equal(t, store.Move{ID: 7, Rev: 3, Cursor: 20_000, DueAt: 20_000, SetAt: -1}, p.Move)
	require.Empty(t, skips(p))
}

func TestT9AGapOfAnyLength(t *testing.T) {
	row := rowOf("@every 1s", 0)
	const gap = 1_000_000_000_000 // seconds; ends within the range of instants
	for _, now := range []store.Instant{gap, store.MaxInstant - 1000} {
		p := core.PlanFire(&row, now, "", utc)
		require.Equal(t, int32(64), p.Move.Fires)
		next := now/1000*1000 + 1000
		require.Equal(t, next, p.Move.Cursor)
		require.Equal(t, []store.Skip{{
			Reason: store.SkipCap, First: 64_000, Last: next - 1000, Count: int64(next/1000) - 64,
		}}, skips(p))
	}
	row = rowOf("@every 1s", store.MinInstant)
	row.Anchor = store.MinInstant
	p := core.PlanFire(&row, store.MaxInstant-1000, "", utc)
	require.Equal(t, int32(64), p.Move.Fires)
	require.Equal(t, int64(18_014_398_509_481)-64, skips(p)[0].Count, "from the first instant to the last")
}

func TestT14TheSameGapUnderAllPolicies(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy store.CatchUp
		first  store.Instant
		fires  int32
		skips  []store.Skip
	}{
		{"all", all, 0, 64, []store.Skip{
			{Reason: store.SkipCap, First: 64_000, Last: 600_000, Count: 537},
		}},
		{"latest", latest, 600_000, 1, []store.Skip{
			{Reason: store.SkipPolicy, First: 0, Last: 599_000, Count: 600},
		}},
		{"grace", grace, 480_000, 64, []store.Skip{
			{Reason: store.SkipPolicy, First: 0, Last: 479_000, Count: 480},
			{Reason: store.SkipCap, First: 544_000, Last: 600_000, Count: 57},
		}},
		{"none", none, 600_000, 1, []store.Skip{
			{Reason: store.SkipPolicy, First: 0, Last: 589_000, Count: 590},
			{Reason: store.SkipPolicy, First: 590_000, Last: 599_000, Count: 10},
		}},
		{"five oldest", store.CatchUp{Max: 5}, 0, 5, []store.Skip{
			{Reason: store.SkipPolicy, First: 5000, Last: 600_000, Count: 596},
		}},
		{"five newest", store.CatchUp{Max: 5, Newest: true}, 596_000, 5, []store.Skip{
			{Reason: store.SkipPolicy, First: 0, Last: 595_000, Count: 596},
		}},
		{"64 newest", store.CatchUp{Max: 64, Newest: true}, 537_000, 64, []store.Skip{
			{Reason: store.SkipCap, First: 0, Last: 536_000, Count: 537},
		}},
		{"a window without a count in the way", store.CatchUp{WindowMS: 60_000, Max: 64}, 540_000, 61, []store.Skip{
			{Reason: store.SkipPolicy, First: 0, Last: 539_000, Count: 540},
		}},
		{"a window longer than the gap", store.CatchUp{WindowMS: 31_536_000_000, Max: 64}, 0, 64, []store.Skip{
			{Reason: store.SkipCap, First: 64_000, Last: 600_000, Count: 537},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := rowOf("@every 1s", 0)
			row.CatchUp = c.policy
			p := core.PlanFire(&row, 600_000, "", utc)
			require.Equal(t, c.first, p.First)
			require.Equal(t, c.fires, p.Move.Fires)
			require.Equal(t, c.skips, skips(p))
			require.Equal(t, store.Instant(601_000), p.Move.Cursor)
		})
	}
}

func TestT14TheEdgeOfTheWindow(t *testing.T) {
	for _, c := range []struct {
		name   string
		window int64
		now    store.Instant
		fired  []store.Instant
		skips  []store.Skip
	}{
		{"exactly at its edge it fires", 10_000, 70_000, []store.Instant{60_000}, nil},
		{"a millisecond later it does not", 10_000, 70_001, nil, []store.Skip{
			{Reason: store.SkipPolicy, First: 60_000, Last: 60_000, Count: 1},
		}},
		{"a millisecond sooner it fires", 10_000, 69_999, []store.Instant{60_000}, nil},
		{"on time", 10_000, 60_000, []store.Instant{60_000}, nil},
		{"the shortest window", 1, 60_001, []store.Instant{60_000}, nil},
		{"the shortest window, a millisecond late", 1, 60_002, nil, []store.Skip{
			{Reason: store.SkipPolicy, First: 60_000, Last: 60_000, Count: 1},
		}},
		{"its edge is the second boundary", 60_000, 180_000, []store.Instant{120_000, 180_000}, []store.Skip{
			{Reason: store.SkipPolicy, First: 60_000, Last: 60_000, Count: 1},
		}},
		{"its edge is just past the second boundary", 60_000, 180_001, []store.Instant{180_000}, []store.Skip{
			{Reason: store.SkipPolicy, First: 60_000, Last: 120_000, Count: 2},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := rowOf("@every 1m", 60_000)
			row.CatchUp = store.CatchUp{WindowMS: c.window, Max: 64}
			p := core.PlanFire(&row, c.now, "", utc)
			require.Equal(t, c.fired, boundaries(p))
			require.Equal(t, c.skips, skips(p))
			require.Equal(t, c.now/60_000*60_000+60_000, p.Move.Cursor)
		})
	}
}

// dueRows are rows with any grid, policy and overlap at a now from their cursor
// on.
var dueRows = rapid.Custom(func(t *rapid.T) (d struct {
	row   store.Schedule
	every int64
	now   store.Instant
},
) {
	d.every = intervals.Draw(t, "interval")
	spec, _ := core.Every(d.every)
	d.row = rowOf(spec.String(), 0)
	d.row.Anchor = instants.Draw(t, "anchor")
	k := rapid.Int64Range(0, int64(store.MaxInstant-d.row.Anchor)/d.every).Draw(t, "k")
	d.row.Cursor = d.row.Anchor + store.Instant(k*d.every)
	d.row.CatchUp = store.CatchUp{Max: rapid.Int32Range(1, 64).Draw(t, "max"), Newest: rapid.Bool().Draw(t, "newest")}
	late := rapid.Int64Range(0, int64(store.MaxInstant-d.row.Cursor)).Draw(t, "late")
	if rapid.Bool().Draw(t, "soon") {
		late %= 200*d.every + 1
	}
	d.now = d.row.Cursor + store.Instant(late)
	if rapid.Bool().Draw(t, "windowed") {
		d.row.CatchUp.WindowMS = rapid.Int64Range(1, core.MaxIntervalMS).Draw(t, "window")
		if rapid.Bool().Draw(t, "narrow") {
			d.row.CatchUp.WindowMS = max(1, d.row.CatchUp.WindowMS%(100*d.every))
		}
	}
	d.row.Overlap = store.Overlap(rapid.Uint8Range(0, uint8(store.BufferOne)).Draw(t, "overlap"))
	d.row.Live = store.Live{Pending: rapid.Int32Range(0, 1).Draw(t, "pending"), Claimed: rapid.Int32Range(0, 1).Draw(t, "claimed")}
	d.row.RunOnce = rapid.Bool().Draw(t, "run-once")
	if rapid.Bool().Draw(t, "hours") {
		minutes := rapid.Uint16Range(0, 24*60-1)
		d.row.Rare = &store.Rare{Hours: store.Hours{Start: minutes.Draw(t, "from"), End: minutes.Draw(t, "to"), Zone: "UTC"}}
	}
	return d
})

// Fired and skipped are exactly the boundaries that the cursor passes, in
// order and without a gap, whatever grid, policy and lateness (invariants 1–3).
func TestT12FiredAndSkippedAreThePassedBoundaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := dueRows.Draw(t, "row")
		p := core.PlanFire(&d.row, d.now, "", utc)
		next, ok := core.BoundaryAfter(d.row.Anchor, d.every, d.now)
		if !ok {
			require.NotNil(t, p.Move.Hold, "G6")
			require.Equal(t, d.row.Cursor, p.Move.Cursor)
			require.Zero(t, p.Move.Fires)
			return
		}
		require.Equal(t, next, p.Move.Cursor)
		require.LessOrEqual(t, p.Move.Fires, d.row.CatchUp.Max)
		if d.row.Overlap != store.Allow {
			require.LessOrEqual(t, p.Move.Fires, int32(1))
			require.False(t, p.Move.Fires > 0 && d.row.Overlap.Blocked(d.row.Live), "X9")
		}
		if d.row.RunOnce {
			require.LessOrEqual(t, p.Move.Fires, int32(1), "X8")
			require.Equal(t, p.Move.Fires > 0 || p.Skips[0].Reason == store.SkipMissed, p.Move.Ends, "X8")
		}

		type run struct {
			first store.Instant
			count int64
		}
		var runs []run
		for _, skip := range skips(p) {
			require.Equal(t, skip.First+store.Instant((skip.Count-1)*d.every), skip.Last)
			require.False(t, skip.Reason == store.SkipCap && p.Move.Fires != 64, "cap only beside 64 fires")
			runs = append(runs, run{skip.First, skip.Count})
		}
		if p.Move.Fires > 0 {
			runs = append(runs, run{p.First, int64(p.Move.Fires)})
			if window := d.row.CatchUp.WindowMS; window > 0 {
				require.LessOrEqual(t, int64(d.now-p.First), window)
			}
		}
		for at := d.row.Cursor; at != next; {
			found := false
			for i, r := range runs {
				if r.first == at {
					at += store.Instant(r.count * d.every)
					runs[i].count, found = 0, true
					break
				}
			}
			require.True(t, found, "no fire and no skip at %d", at)
		}
		for _, r := range runs {
			require.Zero(t, r.count, "a range outside of what was passed")
		}
	})
}

func TestQ3AHeldRowKeepsItsCursor(t *testing.T) {
	row := rowOf("@daily", 50_000)
	p := core.PlanFire(&row, 100_000, "", utc)
	require.Equal(t, store.Move{
		ID: 7, Rev: 3, Cursor: 50_000, DueAt: 160_000, SetAt: -1, Hold: p.Move.Hold,
	}, p.Move)
	require.Empty(t, skips(p))
	require.Equal(t, &store.Hold{Reason: p.Move.Hold.Reason, Since: 100_000, Times: 1}, p.Move.Hold)
	require.Contains(t, p.Move.Hold.Reason, `invalid spec "@daily"`)

	row.Hold, row.DueAt = p.Move.Hold, p.Move.DueAt
	p = core.PlanFire(&row, 161_234, "", utc)
	require.Equal(t, store.Instant(50_000), p.Move.Cursor)
	require.Equal(t, store.Instant(221_234), p.Move.DueAt)
	require.Equal(t, int32(2), p.Move.Hold.Times)
	require.Equal(t, store.Instant(100_000), p.Move.Hold.Since, "of the first of the consecutive holds")
	require.Equal(t, int32(1), row.Hold.Times, "a hold is never changed")

	row.Hold.Times = 1<<31 - 1
	require.Equal(t, int32(1<<31-1), core.PlanFire(&row, 161_234, "", utc).Move.Hold.Times)
}

func TestQ6WhatHoldsARow(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(row *store.Schedule)
		reason string
	}{
		{"an empty spec", func(r *store.Schedule) { r.Spec = "" }, `invalid spec ""`},
		{"a spec of a later version", func(r *store.Schedule) { r.Spec = "@cron 5 * * * *" }, "invalid spec"},
		{"a zero interval", func(r *store.Schedule) { r.Spec = "@every 0s" }, "the shortest interval is 1s"},
		{"a reserved queue", func(r *store.Schedule) { r.Queue = "__alkstore_x" }, "reserved name"},
		{"an empty queue", func(r *store.Schedule) { r.Queue = "" }, "invalid name"},
		{"no attempts", func(r *store.Schedule) { r.Stamps.MaxAttempts = 0 }, "max attempts is 0, want 1 to 2147483647"},
		{"no visibility", func(r *store.Schedule) { r.Stamps.VisibilityMS = 0 }, "visibility is 0ms"},
		{"a negative backoff", func(r *store.Schedule) { r.Stamps.BaseBackoffMS = -1 }, "base backoff is -1ms, want 1ms to 3600000ms"},
		{"a count of 0", func(r *store.Schedule) { r.CatchUp.Max = 0 }, "catch-up count is 0, want 1 to 64"},
		{"a count past the cap", func(r *store.Schedule) { r.CatchUp.Max = 65 }, "catch-up count is 65, want 1 to 64"},
		{"a negative window", func(r *store.Schedule) { r.CatchUp.WindowMS = -1 }, "catch-up window is -1ms"},
		{"a negative expiry", func(r *store.Schedule) { r.ExpiresMS = -1 }, "expiry is -1ms"},
		{"an anchor past the last instant", func(r *store.Schedule) { r.Anchor = store.MaxInstant + 1 }, "anchor or cursor is out of range"},
		{"an anchor before the first instant", func(r *store.Schedule) { r.Anchor = -1 << 63 }, "anchor or cursor is out of range"},
		{"a cursor before the first instant", func(r *store.Schedule) { r.Cursor = store.MinInstant - 1 }, "anchor or cursor is out of range"},
		{"no cursor", func(r *store.Schedule) { r.Cursor = store.None }, "anchor or cursor is out of range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := rowOf("@every 1s", 1000)
			c.spoil(&row)
			p := core.PlanFire(&row, 5000, "", utc)
			require.NotNil(t, p.Move.Hold)
			require.Contains(t, p.Move.Hold.Reason, c.reason)
			require.Equal(t, row.Cursor, p.Move.Cursor)
			require.Equal(t, store.Instant(65_000), p.Move.DueAt)
			require.Zero(t, p.Move.Fires)
			require.Empty(t, skips(p))
		})
	}
}

func TestQ6AFullQueueHoldsTheRow(t *testing.T) {
	row := rowOf("@every 1s", 1000)
	p := core.PlanFire(&row, 5000, "the queue is full", utc)
	require.Equal(t, "the queue is full", p.Move.Hold.Reason)
	require.Equal(t, store.Instant(1000), p.Move.Cursor)
	require.Zero(t, p.Move.Fires)

	row.Spec = "@daily"
	require.Contains(t, core.PlanFire(&row, 5000, "the queue is full", utc).Move.Hold.Reason, "invalid spec", "what cannot be decided comes first")
}

func TestQ5AHealedRowCatchesUpFromItsCursor(t *testing.T) {
	row := rowOf("@every 1s", 1000)
	row.Hold = &store.Hold{Reason: "x", Since: 1000, Times: 9}
	row.DueAt = 61_000
	p := core.PlanFire(&row, 100_000, "", utc)
	require.Nil(t, p.Move.Hold)
	require.Equal(t, store.Instant(1000), p.First)
	require.Equal(t, int32(64), p.Move.Fires)
	require.Equal(t, []store.Skip{{Reason: store.SkipCap, First: 65_000, Last: 100_000, Count: 36}}, skips(p))
}

func TestQ5AnotherIntervalGoesOnOnItsGrid(t *testing.T) {
	for _, c := range []struct {
		name        string
		anchor      store.Instant
		cursor, now store.Instant
		fired       []store.Instant
		next        store.Instant
	}{
		{"the cursor is off the new grid", 0, 25_000, 45_000, []store.Instant{30_000, 40_000}, 50_000},
		{"the cursor is on the new grid", 0, 30_000, 45_000, []store.Instant{30_000, 40_000}, 50_000},
		{"nothing of the new grid is due", 0, 41_000, 45_000, nil, 50_000},
		{"the cursor lies before the anchor", 40_000, 5000, 45_000, []store.Instant{40_000}, 50_000},
		{"the anchor is ahead", 70_000, 5000, 45_000, nil, 70_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := rowOf("@every 10s", c.cursor)
			row.Anchor = c.anchor
			p := core.PlanFire(&row, c.now, "", utc)
			require.Equal(t, c.fired, boundaries(p))
			require.Empty(t, skips(p))
			require.Equal(t, c.next, p.Move.Cursor)
			require.Equal(t, c.next, p.Move.DueAt)
			require.Equal(t, c.now, p.Move.SetAt)
		})
	}
}

func TestG6TheEndOfTheRangeHoldsTheRow(t *testing.T) {
	row := rowOf("@every 1m", last-30_000)
	row.Anchor = row.Cursor
	for _, c := range []struct {
		name       string
		now, dueAt store.Instant
	}{
		{"the boundary is due, the next one is past the range", last - 30_000, store.MaxInstant},
		{"at the last instant", last, store.None},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := core.PlanFire(&row, c.now, "", utc)
			require.Equal(t, "the next boundary is past the last instant", p.Move.Hold.Reason)
			require.Equal(t, row.Cursor, p.Move.Cursor)
			require.Equal(t, c.dueAt, p.Move.DueAt, "strictly after now, so that it cannot spin")
			require.Zero(t, p.Move.Fires)
		})
	}
	row.Cursor = last - 90_000
	row.Anchor = row.Cursor
	p := core.PlanFire(&row, last-90_000, "", utc)
	require.Nil(t, p.Move.Hold)
	require.Equal(t, last-30_000, p.Move.Cursor, "the last boundary in range is a cursor")
}

func TestS7APausedRowIsPutToRest(t *testing.T) {
	for _, paused := range []store.Pause{store.PausedByUser, store.PausedByBreaker, store.PausedByRunOnce} {
		row := rowOf("@every 1s", 1000)
		row.Paused = paused
		row.Hold = &store.Hold{Reason: "x", Since: 1, Times: 1}
		p := core.PlanFire(&row, 5000, "", utc)
		require.Equal(t, store.Move{ID: 7, Rev: 3, Cursor: 1000, DueAt: store.None, SetAt: -1, Hold: row.Hold}, p.Move)
		require.Empty(t, skips(p))
	}
}

func TestSkipReasonsAreNamed(t *testing.T) {
	require.Equal(t, "pause", store.SkipPause.String())
	require.Equal(t, "policy", store.SkipPolicy.String())
	require.Equal(t, "cap", store.SkipCap.String())
	require.Empty(t, store.SkipReason(0).String())
}

// BenchmarkPlanFire shows that a gap of any length costs the same, but for
// longer divisions (T9).
func BenchmarkPlanFire(b *testing.B) {
	for _, gap := range []struct {
		name string
		now  store.Instant
	}{{"one due", 0}, {"65 due", 64_000}, {"10^12 s", 1_000_000_000_000_000}} {
		b.Run(gap.name, func(b *testing.B) {
			row := rowOf("@every 1s", 0)
			b.ReportAllocs()
			for b.Loop() {
				if p := core.PlanFire(&row, gap.now, "", utc); p.Move.Fires == 0 {
					b.Fatal("nothing fired")
				}
			}
		})
	}
}

func TestT9AFirePlanAllocatesNothing(t *testing.T) {
	row := rowOf("@every 1s", 0)
	require.Zero(t, testing.AllocsPerRun(100, func() { core.PlanFire(&row, 1_000_000_000_000, "", utc) }))
}
