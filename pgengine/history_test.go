package pgengine

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// stepping is a DB that counts the steps, which begin a transaction.
type stepping struct {
	DB
	steps atomic.Int64
}

func (s *stepping) Begin(ctx context.Context) (pgx.Tx, error) {
	s.steps.Add(1)
	return s.DB.Begin(ctx)
}

// Where the history is full, as it is after some time and for good, settles and
// ticks that skip are one statement still. It drops the oldest itself, of a name
// and of all.
func TestX11X12AFullHistoryIsKeptInOneStatement(t *testing.T) {
	s, pool := newTestStore(t)
	db := &stepping{DB: s.db}
	s.db = db
	s.limits = store.Limits{Runs: 3, Skips: 3, History: 7}.WithDefaults()
	const schedules = 4
	var b store.Batch
	for i := range schedules {
		name := fmt.Sprint("s", i)
		b.Puts = append(b.Puts, store.Put{Guard: store.Guard{Name: name}, Row: store.Schedule{
			Name: name, Spec: "@every 1s", Queue: "q", DueAt: store.None, CatchUp: store.CatchUp{Max: 64},
		}})
	}
	c, err := s.Commit(t.Context(), &b)
	require.NoError(t, err)
	rows := c.Puts
	lease, err := s.Acquire(t.Context(), store.SchedulerLock, "o", 60_000)
	require.NoError(t, err)

	before := db.steps.Load()
	for round := range store.Instant(12) {
		of := rows[:1+round%schedules]
		var inserts []store.Insert
		tick := store.Tick{By: lease.Lease}
		for i := range of {
			row := &of[i]
			inserts = append(inserts, store.Insert{
				Queue: "q", RunAt: store.None, Stamps: store.Stamps{VisibilityMS: 100, MaxAttempts: 3},
				From: &store.Source{Schedule: row.Name, ScheduleID: row.ID, FireAt: round},
			})
			tick.Moves = append(tick.Moves, store.Move{ID: row.ID, Rev: row.Rev, DueAt: store.None})
			tick.Skips = append(tick.Skips, store.Skip{Move: int32(i), Reason: store.SkipCap, EveryMS: 1000, First: 10 * round, Last: 10 * round, Count: 1})
			row.Rev++
		}
		_, err := s.Commit(t.Context(), &store.Batch{Inserts: inserts})
		require.NoError(t, err)
		dst, out := make([]store.Job, len(of)), make([]bool, len(of))
		claim, err := s.Claim(t.Context(), "q", "w", dst)
		require.NoError(t, err)
		require.Equal(t, len(of), claim.N)
		var settles []store.Settle
		for _, j := range dst {
			settles = append(settles, store.Settle{Job: j.ID, Attempt: 1, To: store.Done})
		}
		_, err = s.Settle(t.Context(), settles, out)
		require.NoError(t, err)
		require.NotContains(t, out, false)
		held, err := s.Advance(t.Context(), &tick)
		require.NoError(t, err)
		require.True(t, held)
	}
	require.Equal(t, before, db.steps.Load(), "steps")

	kept := make([]int, 0, 4)
	require.NoError(t, pool.QueryRow(t.Context(), s.texts[countHistory]).Scan(&kept))
	require.Equal(t, []int{7, 7, 7, 7}, kept)
	// The last rounds had 3 and 4 entries of s0, s1 and s2, and 1 of s3.
	for i, want := range []int{2, 2, 2, 1} {
		runs, err := s.Runs(t.Context(), store.Page{Schedule: rows[i].Name}, make([]store.Run, 10))
		require.NoError(t, err)
		skips, err := s.Skips(t.Context(), store.Page{Schedule: rows[i].Name}, make([]store.SkipRange, 10))
		require.NoError(t, err)
		require.Equal(t, []int{want, want}, []int{runs.N, skips.N}, rows[i].Name)
	}
}

var countHistory = sql(`
select array[(select count(*) from tickonce.run), (select count(*) from tickonce.skip),
  (select sum(runs) from tickonce.total_tally), (select sum(skips) from tickonce.total_tally)]`)
