package memengine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// A page begins where the one before ended, however many entries are newer, and
// where that one has been dropped, or others read in between, answers the same.
func TestX11APageBeginsWhereTheLastOneEnded(t *testing.T) {
	h := history[store.Run]{about: aboutRun, most: 10, all: 100}
	p, other := h.of(1), h.of(2)
	run := func(p *past[store.Run]) { h.add(p, h.last+1, &store.Run{ScheduleID: p.id, FireAt: store.None}) }
	for range 10 {
		run(p)
		run(other)
	}
	page := func(p *past[store.Run], before store.EntryID, size int) (ids []store.EntryID) {
		dst := make([]store.Run, size)
		for _, r := range dst[:h.page(p, before, dst, func(r *store.Run) *store.EntryID { return &r.ID })] {
			ids = append(ids, r.ID)
		}
		return ids
	}
	require.Equal(t, []store.EntryID{19, 17, 15}, page(p, 0, 3))
	newest := p.newest
	p.newest = nil // it is not looked at
	require.Equal(t, []store.EntryID{13, 11, 9}, page(p, 15, 3))
	p.newest = newest
	page(p, 0, 3)
	page(p, 0, 3)
	p.newest = nil
	for range 2 { // two readers in turn
		require.Equal(t, []store.EntryID{13, 11, 9}, page(p, 15, 3))
	}
	for range 2 {
		require.Equal(t, []store.EntryID{7, 5, 3}, page(p, 9, 3))
	}
	p.newest = newest

	require.Equal(t, []store.EntryID{20, 18}, page(other, 0, 2))
	require.Equal(t, []store.EntryID{7, 5}, page(p, 9, 2))
	require.Equal(t, []store.EntryID{13, 11}, page(p, 15, 2), "another page than the next")
	require.Equal(t, []store.EntryID{3, 1}, page(p, 5, 3))
	for range 2 {
		run(p) // drops the last ones that were read
	}
	require.Empty(t, page(p, 1, 3))
	require.Equal(t, []store.EntryID{9, 7, 5}, page(p, 11, 9))
}
