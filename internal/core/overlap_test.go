package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// Eleven boundaries of a second are due, 0 to 10.
func TestX9HowManyFireByTheOverlap(t *testing.T) {
	pending, claimed := store.Live{Pending: 1}, store.Live{Claimed: 1}
	skipped := func(first, last store.Instant) []store.Skip {
		return []store.Skip{{Reason: store.SkipOverlap, First: first, Last: last, Count: int64(last-first)/1000 + 1}}
	}
	window := store.CatchUp{WindowMS: 5000, Max: 64}
	for _, c := range []struct {
		name    string
		overlap store.Overlap
		live    store.Live
		policy  store.CatchUp
		fires   []store.Instant
		skips   []store.Skip
	}{
		{"allow, two live", store.Allow, store.Live{Pending: 1, Claimed: 1}, latest, []store.Instant{10_000}, []store.Skip{
			{Reason: store.SkipPolicy, First: 0, Last: 9000, Count: 10},
		}},
		{"skip, none live: the oldest", store.SkipLive, store.Live{}, all, []store.Instant{0}, skipped(1000, 10_000)},
		{"skip, none live: the newest", store.SkipLive, store.Live{}, latest, []store.Instant{10_000}, skipped(0, 9000)},
		{"skip, one pending", store.SkipLive, pending, all, nil, skipped(0, 10_000)},
		{"skip, one claimed", store.SkipLive, claimed, latest, nil, skipped(0, 10_000)},
		{"buffer one, none live", store.BufferOne, store.Live{}, all, []store.Instant{0}, skipped(1000, 10_000)},
		{"buffer one, one claimed", store.BufferOne, claimed, latest, []store.Instant{10_000}, skipped(0, 9000)},
		{"buffer one, one pending", store.BufferOne, pending, latest, nil, skipped(0, 10_000)},
		{"buffer one, one of each", store.BufferOne, store.Live{Pending: 1, Claimed: 1}, all, nil, skipped(0, 10_000)},
		{"skip, one claimed, a window", store.SkipLive, claimed, window, nil, []store.Skip{
			{Reason: store.SkipPolicy, First: 0, Last: 4000, Count: 5},
			{Reason: store.SkipOverlap, First: 5000, Last: 10_000, Count: 6},
		}},
		{"skip, none live, a window", store.SkipLive, store.Live{}, window, []store.Instant{5000}, []store.Skip{
			{Reason: store.SkipPolicy, First: 0, Last: 4000, Count: 5},
			{Reason: store.SkipOverlap, First: 6000, Last: 10_000, Count: 5},
		}},
	} {
		row := rowOf("@every 1s", 0)
		row.Overlap, row.Live, row.CatchUp = c.overlap, c.live, c.policy
		p := core.PlanFire(&row, 10_000, "", utc)
		require.Equal(t, c.fires, boundaries(p), c.name)
		require.Equal(t, c.skips, skips(p), c.name)
		require.Equal(t, store.Instant(11_000), p.Move.Cursor, "%s: the grid stays (C70)", c.name)
		require.Equal(t, c.live, p.Move.Live, "%s: the guard of the move", c.name)
	}
}

func TestX9OneIsDueAndFires(t *testing.T) {
	for _, overlap := range []store.Overlap{store.Allow, store.SkipLive, store.BufferOne} {
		row := rowOf("@every 1s", 3000)
		row.Overlap = overlap
		p := core.PlanFire(&row, 3000, "", utc)
		require.Equal(t, []store.Instant{3000}, boundaries(p))
		require.Empty(t, skips(p))
	}
}

// 10⁹ boundaries behind a job that runs are one skip.
func TestX9T9ALongRunCostsNoMore(t *testing.T) {
	row := rowOf("@every 1s", 0)
	row.Overlap, row.Live = store.SkipLive, store.Live{Claimed: 1}
	p := core.PlanFire(&row, 999_999_999_999, "", utc)
	require.Empty(t, boundaries(p))
	require.Equal(t, []store.Skip{{Reason: store.SkipOverlap, First: 0, Last: 999_999_999_000, Count: 1_000_000_000}}, skips(p))
}
