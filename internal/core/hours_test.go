package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// at is the instant of a time of the first day.
func at(hour, minute int) store.Instant { return store.Instant(hour*60+minute) * 60_000 }

func TestX10HoursHoldTheirStartAndNotTheirEnd(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end uint16
		now        store.Instant
		open       bool
	}{
		{"a millisecond before the start", 480, 1050, at(8, 0) - 1, false},
		{"at the start", 480, 1050, at(8, 0), true},
		{"within", 480, 1050, at(12, 0), true},
		{"a millisecond before the end", 480, 1050, at(17, 30) - 1, true},
		{"at the end", 480, 1050, at(17, 30), false},
		{"over midnight, before the start", 1320, 360, at(22, 0) - 1, false},
		{"over midnight, at the start", 1320, 360, at(22, 0), true},
		{"over midnight, at midnight", 1320, 360, at(24, 0), true},
		{"over midnight, before the end", 1320, 360, at(30, 0) - 1, true},
		{"over midnight, at the end", 1320, 360, at(30, 0), false},
		{"until midnight, before it", 1320, 0, at(24, 0) - 1, true},
		{"until midnight, at it", 1320, 0, at(24, 0), false},
		{"equal is always", 720, 720, at(3, 0), true},
		{"equal is always, at it", 720, 720, at(12, 0), true},
		{"one minute", 0, 1, at(24, 0), true},
		{"after one minute", 0, 1, at(24, 1), false},
		{"before the epoch", 480, 1050, at(-12, 0), true},
	} {
		row := rowOf("@every 1m", c.now-60_000)
		row.Anchor, row.CatchUp = c.now-60_000, latest
		row.Rare = &store.Rare{Hours: store.Hours{Start: c.start, End: c.end, Zone: "UTC"}}
		p := core.PlanFire(&row, c.now, "", utc)
		require.Equal(t, c.now+60_000, p.Move.Cursor, c.name)
		require.Nil(t, p.Move.Hold, c.name)
		if c.open {
			require.Equal(t, []store.Instant{c.now}, boundaries(p), c.name)
			continue
		}
		require.Empty(t, boundaries(p), c.name)
		require.Equal(t, []store.Skip{{
			Reason: store.SkipHours, First: c.now - 60_000, Last: c.now, Count: 2,
		}}, skips(p), c.name)
	}
}

// What counts is when a boundary is met, not when it was (X10).
func TestX10TheHoursAreJudgedAtNow(t *testing.T) {
	for _, c := range []struct {
		name          string
		boundary, now store.Instant
		fires         bool
	}{
		{"16:59, met at 17:01", at(16, 59), at(17, 1), false},
		{"07:59, met at 08:01", at(7, 59), at(8, 1), true},
	} {
		row := rowOf("@every 1d", c.boundary)
		row.Anchor = c.boundary
		row.Rare = &store.Rare{Hours: store.Hours{Start: 480, End: 1020, Zone: "UTC"}}
		require.Equal(t, c.fires, core.PlanFire(&row, c.now, "", utc).Move.Fires == 1, c.name)
	}
}

// The hours come before window, overlap and count (T14), and are asked for
// only where something is due.
func TestX10T14TheHoursAreTheFirstReason(t *testing.T) {
	row := rowOf("@every 1s", 0)
	row.CatchUp, row.Overlap, row.Live = none, store.SkipLive, store.Live{Claimed: 1}
	row.RunOnce = true
	row.Rare = &store.Rare{Hours: store.Hours{Start: 200, End: 300, Zone: "UTC"}}
	p := core.PlanFire(&row, 999_999_999_999, "", utc)
	require.Equal(t, []store.Skip{{
		Reason: store.SkipHours, First: 0, Last: 999_999_999_000, Count: 1_000_000_000,
	}}, skips(p), "10⁹ of them are one")
	require.False(t, p.Move.Ends, "a run-once is not consumed")
	require.Equal(t, store.Instant(1_000_000_000_000), p.Move.DueAt)

	row.Rare = &store.Rare{Hours: store.Hours{Start: 60, End: 120, Zone: "nowhere"}}
	require.Nil(t, core.PlanFire(&row, -1, "", utc).Move.Hold)
}

func TestX10Q6AnUnknownZoneHoldsTheRow(t *testing.T) {
	row := rowOf("@every 1s", 0)
	row.Rare = &store.Rare{Hours: store.Hours{Start: 60, End: 120, Zone: "nowhere"}}
	p := core.PlanFire(&row, 5000, "", utc)
	require.Equal(t, store.Move{
		ID: 7, Rev: 3, DueAt: 65_000, SetAt: -1, Hold: &store.Hold{Reason: "no zone nowhere", Since: 5000, Times: 1},
	}, p.Move)
	require.Empty(t, skips(p))
	row.Rare.Hours.Zone = "no\x00name"
	require.Contains(t, core.PlanFire(&row, 5000, "", utc).Move.Hold.Reason, "the zone of the active hours has a control character")
}

func TestX10HoursAllocateNothing(t *testing.T) {
	row := rowOf("@every 1s", 0)
	row.Rare = &store.Rare{Hours: store.Hours{Start: 60, End: 120, Zone: "UTC"}}
	require.Zero(t, testing.AllocsPerRun(100, func() { core.PlanFire(&row, 5000, "", utc) }))
}
