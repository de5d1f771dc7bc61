package memengine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// shuffledRemoves are the removals of all schedules, in any order.
func shuffledRemoves(s *Store) []store.Guard {
	var removes []store.Guard
	s.names.Scan(func(r *schedule) bool {
		removes = append(removes, store.Guard{Name: r.Name, ID: r.ID, Rev: r.Rev})
		return true
	})
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(removes), func(i, j int) { removes[i], removes[j] = removes[j], removes[i] })
	return removes
}

// A removal leaves nothing behind in any index. BenchmarkC132Remove shows that
// its time does not grow with the number of schedules.
func TestC132RemovalLeavesNothingBehind(t *testing.T) {
	s, _ := filled(t, 5000, func(i int) store.Instant { return store.Instant(i) })
	for _, guard := range shuffledRemoves(s) {
		commit(t, s, store.Batch{Removes: []store.Guard{guard}})
	}
	require.Zero(t, s.names.Len())
	require.Empty(t, s.ids.leaves)
	require.LessOrEqual(t, len(s.due.keys), 64, "the keys of the removed are dropped")
}

// Due leaves everything in its place: asked again, it answers the same.
func TestDueChangesNothing(t *testing.T) {
	c := &clock{now: 50}
	s := newStore(c.read, store.Limits{}, nil)
	for i := range 100 {
		put(t, s, row(fmt.Sprintf("s%02d", i*37%100), store.Instant(i%7*10)))
	}
	want := make([]store.Schedule, 100)
	first, err := s.Due(ctx, want)
	require.NoError(t, err)
	require.True(t, slices.IsSortedFunc(want[:first.N], func(a, b store.Schedule) int {
		return byDue(&schedule{Schedule: a}, &schedule{Schedule: b})
	}))
	for _, now := range []store.Instant{50, 20, 50, 9, 60, 50} {
		c.now = now
		for _, n := range []int{0, 1, 17, 100} {
			got := make([]store.Schedule, n)
			d, err := s.Due(ctx, got)
			require.NoError(t, err)
			if now <= 50 {
				require.Equal(t, want[:d.N], got[:d.N])
			}
			checkIndexes(t, s, now)
		}
	}
}

// A row that is put before what Due has read already comes first.
func TestDueSeesWhatComesBeforeItsRun(t *testing.T) {
	c := &clock{now: 50}
	s := newStore(c.read, store.Limits{}, nil)
	put(t, s, row("b", 10), row("d", 10), row("x", 30))
	names := func() (names []string) {
		dst := make([]store.Schedule, 9)
		d, err := s.Due(ctx, dst)
		require.NoError(t, err)
		for _, r := range dst[:d.N] {
			names = append(names, r.Name)
		}
		return names
	}
	require.Equal(t, []string{"b", "d", "x"}, names())
	put(t, s, row("c", 10), row("z", 5), row("y", 30), row("later", 60))
	require.Equal(t, []string{"z", "b", "c", "d", "x", "y"}, names())
	put(t, s, row("a tie with the last", 30))
	require.Equal(t, []string{"z", "b", "c", "d", "a tie with the last", "x", "y"}, names())
}

// A row that came back to an instant has two keys for it, of which one is
// stale.
func TestDueAnswersARowOnce(t *testing.T) {
	c := &clock{now: 50}
	s := newStore(c.read, store.Limits{}, nil)
	r := put(t, s, row("a", 20))[0]
	for _, at := range []store.Instant{30, 20, store.None, 20} {
		g := store.Guard{Name: "a", ID: r.ID, Rev: r.Rev}
		r.DueAt = at
		r = commit(t, s, store.Batch{Puts: []store.Put{{Guard: g, Row: r}}}).Puts[0]
	}
	require.Len(t, s.due.keys, 4)
	d, err := s.Due(ctx, make([]store.Schedule, 2))
	require.NoError(t, err)
	require.Equal(t, store.Due{N: 1, Now: 50, Next: store.None}, d)
	checkIndexes(t, s, c.now)
}

// A due row that nobody moves is read again and again, and what comes and goes
// behind it leaves nothing.
func TestDueForgetsWhatHasLeftItsRun(t *testing.T) {
	c := &clock{now: 10}
	s := newStore(c.read, store.Limits{}, nil)
	put(t, s, row("stuck", 1), row("moved", 5))
	g, err := s.Acquire(ctx, store.SchedulerLock, "o", 1<<40)
	require.NoError(t, err)
	dst := make([]store.Schedule, 9)
	for range 1000 {
		d, err := s.Due(ctx, dst)
		require.NoError(t, err)
		require.Equal(t, 2, d.N)
		require.Equal(t, "moved", dst[1].Name)
		c.now += 10
		m := store.Move{ID: dst[1].ID, Rev: dst[1].Rev, Cursor: c.now, DueAt: c.now}
		_, err = s.Advance(ctx, &store.Tick{By: g.Lease, Now: d.Now, Moves: []store.Move{m}})
		require.NoError(t, err)
		require.LessOrEqual(t, len(s.due.run), 70)
	}
	checkIndexes(t, s, c.now)
}

func TestT3ASecondMoveOfARowIsStale(t *testing.T) {
	c := &clock{now: 50}
	s := newStore(c.read, store.Limits{}, nil)
	r := put(t, s, row("a", 20))[0]
	g, err := s.Acquire(ctx, store.SchedulerLock, "o", 100)
	require.NoError(t, err)
	m := store.Move{ID: r.ID, Rev: r.Rev, Cursor: 60, DueAt: 60, Fires: 1}
	tick := store.Tick{By: g.Lease, Now: 50, Moves: []store.Move{m, m}, Fires: []store.Fire{{Move: 0}, {Move: 1}}}
	held, err := s.Advance(ctx, &tick)
	require.NoError(t, err)
	require.True(t, held)
	require.Equal(t, store.Moved, tick.Moves[0].Outcome)
	require.Equal(t, store.Stale, tick.Moves[1].Outcome)
	require.Equal(t, []store.Fire{{Move: 0, Job: 1}, {Move: 1}}, tick.Fires)
	checkIndexes(t, s, c.now)
}

func TestByIDFollowsAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var x byID[int64]
	want := map[int64]*int64{}
	next := int64(1)
	for range 20_000 {
		switch rng.IntN(4) {
		case 0, 1: // the next ids, with gaps
			next += rng.Int64N(rng.Int64N(200) + 1)
			id := next
			next++
			x.put(id, &id)
			want[id] = &id
		default: // most of a stretch goes
			from := rng.Int64N(next)
			for id := from; id < from+100; id++ {
				if want[id] != nil && rng.IntN(3) > 0 {
					x.drop(id)
					delete(want, id)
				}
			}
		}
		if rng.IntN(50) > 0 {
			continue
		}
		require.Equal(t, len(want), x.n)
		ids := slices.Sorted(maps.Keys(want))
		from := rng.Int64N(next + 1)
		i, _ := slices.BinarySearch(ids, from)
		var rows []int64
		for row := range x.from(from) {
			rows = append(rows, *row)
		}
		require.True(t, slices.Equal(ids[i:], rows))
		require.Same(t, want[from], x.find(from))
		if len(ids) > 0 {
			require.Equal(t, ids[len(ids)-1], x.lastID())
		}
		for _, l := range x.leaves {
			if l.live <= 0 {
				t.Fatal("an empty leaf is left")
			}
		}
	}
}
