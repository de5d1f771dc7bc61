package pgengine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
	"github.com/tickonce/tickonce/store"
)

// fillRuns and fillSkips give each of the schedules so many entries, whose
// totals are counted.
var fillRuns, fillSkips = sql(`
with added as (
  insert into tickonce.run (schedule, schedule_id, job, fire_at, fired_at, started_at, ended_at, attempt, ended, became, error)
  select s.name, s.id, -k, k, k, k, k, 1, 1, 4, '' from generate_series(1, $1) k, tickonce.schedule s order by k, s.id returning weight
)
insert into tickonce.total_tally (runs) select sum(weight) from added`), sql(`
with added as (
  insert into tickonce.skip (schedule, schedule_id, reason, every_ms, first, last, count, from_at, until_at)
  select s.name, s.id, 1, 0, k, k, 1, k, k from generate_series(1, $1) k, tickonce.schedule s order by k, s.id returning id
)
insert into tickonce.total_tally (skips) select count(*) from added`)

// BenchmarkHistory is settles, and ticks, that add a hundred entries to the
// history of as many schedules: where it has room, where it is full for each
// name, and where it is full altogether, in turns. x-room is how many times as
// long a call takes as where there is room.
//
//	go test -run '^$' -bench History -benchtime 300x .
func BenchmarkHistory(b *testing.B) {
	const names, kept, batch = 400, 50, 100
	stores := make([]*Store, 3)
	pool := pgtest.Start(b, "fsync = on", "shared_buffers = 256MB", "max_wal_size = 4GB").Pool(b)
	limits := []store.Limits{{}, {Runs: kept, Skips: kept}, {History: names * kept}}
	var rows []store.Schedule
	for i, l := range limits {
		schema := fmt.Sprint("s", i)
		_, err := Migrate(b.Context(), pool, schema)
		require.NoError(b, err)
		stores[i] = newStore(pool, schema, l, nil)
		var puts []store.Put
		for k := range names {
			name := fmt.Sprintf("s%03d", k)
			puts = append(puts, store.Put{Guard: store.Guard{Name: name}, Row: store.Schedule{
				Name: name, Spec: "@every 1s", Queue: "q", DueAt: store.None, CatchUp: store.CatchUp{Max: 64},
			}})
		}
		c, err := stores[i].Commit(b.Context(), &store.Batch{Puts: puts})
		require.NoError(b, err)
		rows = c.Puts
		for _, fill := range []statement{fillRuns, fillSkips} {
			_, err = pool.Exec(b.Context(), stores[i].texts[fill], kept)
			require.NoError(b, err)
		}
	}
	_, err := pool.Exec(b.Context(), "vacuum analyze")
	require.NoError(b, err)

	turn := func(b *testing.B, call func(s *Store, round int) time.Duration) {
		var took [3]time.Duration
		for round := 0; b.Loop(); round++ {
			for i, s := range stores {
				took[i] += call(s, round)
			}
		}
		for i, what := range []string{"room", "names", "full"} {
			b.ReportMetric(float64(took[i].Microseconds())/1000/float64(b.N), what+"-ms")
			b.ReportMetric(float64(took[i])/float64(took[0]), what+"-x-room")
		}
	}
	b.Run("settle", func(b *testing.B) {
		dst, out := make([]store.Job, batch), make([]bool, batch)
		turn(b, func(s *Store, round int) time.Duration {
			var inserts []store.Insert
			for i := range batch {
				row := &rows[(round*batch+i)%names]
				inserts = append(inserts, store.Insert{
					Queue: "q", RunAt: store.None, Stamps: store.Stamps{VisibilityMS: 600_000, MaxAttempts: 3},
					From: &store.Source{Schedule: row.Name, ScheduleID: row.ID, FireAt: store.None},
				})
			}
			_, err := s.Commit(b.Context(), &store.Batch{Inserts: inserts})
			require.NoError(b, err)
			c, err := s.Claim(b.Context(), "q", "w", dst)
			require.NoError(b, err)
			require.Equal(b, batch, c.N)
			settles := make([]store.Settle, batch)
			for i, j := range dst {
				settles[i] = store.Settle{Job: j.ID, Attempt: j.Attempts, To: store.Done}
			}
			began := time.Now()
			_, err = s.Settle(b.Context(), settles, out)
			took := time.Since(began)
			require.NoError(b, err)
			require.NotContains(b, out, false)
			return took
		})
	})
	b.Run("tick", func(b *testing.B) {
		leases := make(map[*Store]store.Lease)
		for _, s := range stores {
			g, err := s.Acquire(b.Context(), store.SchedulerLock, "bench", 3_600_000)
			require.NoError(b, err)
			leases[s] = g.Lease
		}
		revs := make(map[*Store][]store.Rev)
		for _, s := range stores {
			for range names {
				revs[s] = append(revs[s], 1)
			}
		}
		n := store.Instant(0)
		turn(b, func(s *Store, round int) time.Duration {
			n += 10 // goes on from no range
			t := store.Tick{By: leases[s]}
			for i := range batch {
				k := (round*batch + i) % names
				t.Moves = append(t.Moves, store.Move{ID: rows[k].ID, Rev: revs[s][k], DueAt: store.None})
				t.Skips = append(t.Skips, store.Skip{Move: int32(i), Reason: 1, First: n, Last: n, Count: 1})
				revs[s][k]++
			}
			began := time.Now()
			held, err := s.Advance(b.Context(), &t)
			took := time.Since(began)
			require.NoError(b, err)
			require.True(b, held)
			for i := range t.Moves {
				require.Equal(b, store.Moved, t.Moves[i].Outcome)
			}
			return took
		})
	})
}
