package memengine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

func insert(t testing.TB, s *Store, in ...store.Insert) []store.Inserted {
	t.Helper()
	for i := range in {
		in[i].Queue, in[i].Stamps = "q", stamps
	}
	return commit(t, s, store.Batch{Inserts: in}).Inserts
}

func claim(t testing.TB, s *Store, n int) ([]store.JobID, int) {
	t.Helper()
	dst := make([]store.Job, n)
	c, err := s.Claim(ctx, "q", "w", dst)
	require.NoError(t, err)
	var ids []store.JobID
	for _, j := range dst[:c.N] {
		ids = append(ids, j.ID)
	}
	return ids, c.Buried
}

func TestK4AStepBackTakesReadyJobsBack(t *testing.T) {
	c := &clock{now: 100}
	s := newStore(c.read, store.Limits{}, nil)
	insert(t, s,
		store.Insert{RunAt: 100}, // ready by every clock below
		store.Insert{RunAt: 150, Priority: 9},
		store.Insert{RunAt: 200, Priority: 5})

	c.now = 200
	_, _ = claim(t, s, 0) // all three are judged ready
	c.now = 149
	ids, _ := claim(t, s, 3)
	require.Equal(t, []store.JobID{1}, ids)
	c.now = 150
	ids, _ = claim(t, s, 3)
	require.Equal(t, []store.JobID{2}, ids)
	checkIndexes(t, s, c.now)
	c.now = 200
	ids, _ = claim(t, s, 1)
	require.Equal(t, []store.JobID{3}, ids)
}

func TestK4AStepBackRevivesWhatWasDoomed(t *testing.T) {
	c := &clock{now: 100}
	s := newStore(c.read, store.Limits{}, nil)
	var in []store.Insert
	for range store.MaxBuried + 1 {
		in = append(in, store.Insert{RunAt: 100, ExpiresMS: 50})
	}
	insert(t, s, in...)
	for _, tc := range []struct {
		now     store.Instant
		claimed int
		buried  int
	}{
		{149, 0, 0},               // ready, and not asked for
		{150, 0, store.MaxBuried}, // expired; one is left unburied, and unclaimable
		{149, 1, 0},               // the step back: that one has not expired
	} {
		c.now = tc.now
		ids, buried := claim(t, s, min(1, tc.claimed+tc.buried))
		require.Len(t, ids, tc.claimed)
		require.Equal(t, tc.buried, buried)
		checkIndexes(t, s, c.now)
	}
}

// A claim that lapsed by a clock that was ahead, and that nobody took, is live
// again, wherever its job was put meanwhile (QU3).
func TestK3AStepBackRevivesALapsedClaim(t *testing.T) {
	for what, end := range map[string]func(s *Store) bool{
		"settled": func(s *Store) bool {
			out := make([]bool, 1)
			_, err := s.Settle(ctx, []store.Settle{{Job: 1, Attempt: 1, To: store.Done}}, out)
			require.NoError(t, err)
			return out[0]
		},
		"extended": func(s *Store) bool {
			out := make([]store.Instant, 1)
			_, err := s.Extend(ctx, []store.Extend{{Job: 1, Attempt: 1, ForMS: 50}}, out)
			require.NoError(t, err)
			return out[0] != store.None
		},
	} {
		c := &clock{now: 100}
		s := newStore(c.read, store.Limits{}, nil)
		insert(t, s, store.Insert{RunAt: 100})
		ids, _ := claim(t, s, 1)
		require.Len(t, ids, 1)

		c.now = 151 // one past the deadline
		_, _ = claim(t, s, 0)
		require.False(t, end(s), what)
		c.now = 150
		require.True(t, end(s), what)
		checkIndexes(t, s, c.now)
	}
}

func TestAQueueIsKeptWhileItIsNeeded(t *testing.T) {
	c := &clock{now: 100}
	s := newStore(c.read, store.Limits{QueueLength: 1}, nil)
	rows := put(t, s, row("a", 5))
	require.Equal(t, 1, s.queues.Len())
	other := rows[0]
	other.Queue = "other"
	rows = commit(t, s, store.Batch{Puts: []store.Put{{Guard: store.Guard{Name: "a", ID: 1, Rev: 1}, Row: other}}}).Puts
	_, ok := s.queues.Get("q")
	require.False(t, ok)
	commit(t, s, store.Batch{Removes: []store.Guard{{Name: "a", ID: 1, Rev: rows[0].Rev}}})
	require.Zero(t, s.queues.Len())

	in := store.Insert{Queue: "new", Stamps: stamps}
	refused, err := s.Commit(ctx, &store.Batch{Inserts: []store.Insert{in, in}})
	require.NoError(t, err)
	require.Equal(t, store.Refusal{Why: store.QueueFull, Part: store.Inserts, Index: 1}, refused.Refusal)
	require.Zero(t, s.queues.Len())
	require.Zero(t, s.last.job)
}

// The parts of a batch are written in their order: a key that a settle frees
// is free for an insert.
func TestQU12AKeyIsFreeOnceItsJobHasEnded(t *testing.T) {
	for to, existing := range map[store.State]bool{store.Done: false, store.Dead: false, store.Pending: true} {
		c := &clock{now: 100}
		s := newStore(c.read, store.Limits{}, nil)
		insert(t, s, store.Insert{Key: "k"})
		_, _ = claim(t, s, 1)
		in := store.Insert{Queue: "q", Key: "k", Stamps: stamps}
		got := commit(t, s, store.Batch{
			Settles: []store.Settle{{Job: 1, Attempt: 1, To: to}},
			Inserts: []store.Insert{in, in},
		}).Inserts
		want := store.Inserted{Job: 2, Existing: existing}
		if existing {
			want.Job = 1
		}
		require.Equal(t, want, got[0])
		require.Equal(t, store.Inserted{Job: want.Job, Existing: true}, got[1])
		checkIndexes(t, s, c.now)
	}
}
