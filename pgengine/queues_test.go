package pgengine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// Counters are sums of what every write adds, and what is added up again stays
// the same: in few rows, whatever happened.
func TestSummandsAreAddedUp(t *testing.T) {
	s, pool := newTestStore(t)
	in := store.Insert{Queue: "q", RunAt: store.None, Stamps: store.Stamps{VisibilityMS: 100, MaxAttempts: 3}}
	dst, out := make([]store.Job, 1), make([]bool, 1)
	const jobs = 100
	for range jobs {
		_, err := s.Commit(t.Context(), &store.Batch{Inserts: []store.Insert{in}})
		require.NoError(t, err)
		_, err = s.Claim(t.Context(), "q", "w", dst)
		require.NoError(t, err)
		_, err = s.Settle(t.Context(), []store.Settle{{Job: dst[0].ID, Attempt: 1, To: store.Done}}, out)
		require.NoError(t, err)
	}
	q := make([]store.Queue, 1)
	_, _, err := s.Queues(t.Context(), "q", q)
	require.NoError(t, err)
	require.Equal(t, store.Queue{Name: "q", Enqueued: jobs, Claims: jobs, Done: jobs, NextClaimAt: store.None}, q[0])
	var rows int
	require.NoError(t, pool.QueryRow(t.Context(), s.texts[countTallies]).Scan(&rows))
	require.LessOrEqual(t, rows, foldEvery+1)
}

// Of queues that are written to in turns each has its summands added up, however
// many they are.
func TestSummandsOfQueuesInTurnsAreAddedUp(t *testing.T) {
	s, pool := newTestStore(t)
	const queues = foldEvery
	for i := range 5 * queues {
		in := store.Insert{Queue: fmt.Sprint(i % queues), RunAt: store.None, Stamps: store.Stamps{VisibilityMS: 100, MaxAttempts: 3}}
		_, err := s.Commit(t.Context(), &store.Batch{Inserts: []store.Insert{in}})
		require.NoError(t, err)
	}
	var rows int
	require.NoError(t, pool.QueryRow(t.Context(), s.texts[countTallies]).Scan(&rows))
	require.Equal(t, queues, rows)
}

var countTallies = sql(`select count(*) from tickonce.queue_tally`)
