package memengine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// The time of one removal must not grow with the number of schedules: among
// eight times as many it may be four times as long at most, where a scan of
// any index would take eight times as long. The best of many short stretches
// is compared, so that a busy machine does not matter.
func TestC132RemovalIsNotLinear(t *testing.T) {
	const stretch = 125
	best := func(n int) time.Duration {
		s, _ := filled(t, n, func(i int) store.Instant { return store.Instant(i) })
		var removes []store.Guard
		s.names.Scan(func(r *schedule) bool {
			removes = append(removes, store.Guard{Name: r.Name, ID: r.ID, Rev: r.Rev})
			return true
		})
		rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) { removes[i], removes[j] = removes[j], removes[i] })
		best := time.Hour
		for i := 0; i < n; i += stretch {
			began := time.Now()
			for k := i; k < i+stretch; k++ {
				commit(t, s, store.Batch{Removes: removes[k : k+1]})
			}
			if i < n/10 { // while most are there
				best = min(best, time.Since(began))
			}
		}
		require.Zero(t, s.names.Len())
		require.Empty(t, s.ids.leaves)
		require.LessOrEqual(t, len(s.due.keys), 64, "the keys of the removed are dropped")
		return best
	}
	require.Less(t, best(100_000), 4*best(12_500))
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
}

func TestD6TheSchedulersLockIsTheEngines(t *testing.T) {
	require.Equal(t, core.SchedulerLock, schedulerLock)
}
