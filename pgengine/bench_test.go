package pgengine

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
	"github.com/tickonce/tickonce/store"
)

// durable is an empty store on a server that syncs what it commits.
func durable(b *testing.B) (*Store, *pgxpool.Pool) {
	pool := pgtest.Start(b, "fsync = on", "shared_buffers = 256MB", "max_wal_size = 4GB").Pool(b)
	_, err := Migrate(b.Context(), pool, "")
	require.NoError(b, err)
	return newStore(pool, DefaultSchema, store.Limits{QueueLength: 1 << 40}, nil), pool
}

// bareFire reads, moves and fires a batch with nothing guarded, judged or told.
var bareFire = sql(`
with due as (select id from tickonce.schedule where due_at < 9223372036854775807 order by due_at, name limit $1),
moved as (
  update tickonce.schedule s set cursor = s.cursor + 1000, due_at = s.cursor + 1000, rev = rev + 1 from due where s.id = due.id returning s.*
)
insert into tickonce.job (queue, payload, schedule, schedule_id, fire_at, visibility_ms, base_backoff_ms, max_attempts, enqueued_at, run_at, priority)
select queue, payload, name, id, cursor - 1000, visibility_ms, base_backoff_ms, max_attempts, 0, 0, priority from moved`)

// BenchmarkFire is one runner that reads, moves and fires batches of schedules
// that are all due, each once; x-bare is how many times as long that takes as
// one statement that only moves and fires, made in turns with it.
func BenchmarkFire(b *testing.B) {
	for _, batch := range []int{1000, 100, 1} {
		b.Run(fmt.Sprint("batch=", batch), func(b *testing.B) {
			s, pool := durable(b)
			const schedules = 10_000
			for from := range schedules / 1000 {
				var puts []store.Put
				for i := range 1000 {
					name := fmt.Sprintf("s%05d", from*1000+i)
					puts = append(puts, store.Put{Guard: store.Guard{Name: name}, Row: store.Schedule{
						Name: name, Spec: "@every 1s", Queue: "q", Payload: []byte("payload"), CatchUp: store.CatchUp{Max: 64},
						Stamps: store.Stamps{VisibilityMS: 60_000, BaseBackoffMS: 1000, MaxAttempts: 3},
					}})
				}
				c, err := s.Commit(b.Context(), &store.Batch{Puts: puts})
				require.NoError(b, err)
				require.Zero(b, c.Refusal)
			}
			g, err := s.Acquire(b.Context(), store.SchedulerLock, "bench", 3_600_000)
			require.NoError(b, err)
			rows := make([]store.Schedule, batch)
			fires := 0
			var bare time.Duration
			for b.Loop() {
				b.StopTimer()
				began := time.Now()
				_, err := pool.Exec(b.Context(), s.texts[bareFire], batch)
				require.NoError(b, err)
				bare += time.Since(began)
				b.StartTimer()
				due, err := s.Due(b.Context(), rows)
				require.NoError(b, err)
				t := store.Tick{By: g.Lease, Now: due.Now}
				for i, row := range rows[:due.N] {
					t.Moves = append(t.Moves, store.Move{ID: row.ID, Rev: row.Rev, Cursor: row.Cursor + 1000, DueAt: row.Cursor + 1000, SetAt: due.Now, Fires: 1})
					t.Fires = append(t.Fires, store.Fire{Move: int32(i), Boundary: row.Cursor})
				}
				held, err := s.Advance(b.Context(), &t)
				require.NoError(b, err)
				require.True(b, held)
				for i := range t.Moves {
					require.Equal(b, store.Moved, t.Moves[i].Outcome)
				}
				fires += len(t.Fires)
			}
			b.ReportMetric(float64(fires)/b.Elapsed().Seconds(), "fires/s")
			b.ReportMetric(float64(b.Elapsed())/float64(bare), "x-bare")
		})
	}
}

// BenchmarkWork is eight workers that claim and settle a hundred jobs at a time.
func BenchmarkWork(b *testing.B) {
	s, _ := durable(b)
	const batch, workers = 100, 8
	b.StopTimer()
	var done atomic.Int64
	for range 60 {
		var inserts []store.Insert
		for range 1000 {
			inserts = append(inserts, store.Insert{Queue: "q", Payload: []byte("payload"), RunAt: store.None, Stamps: store.Stamps{VisibilityMS: 60_000, MaxAttempts: 3}})
		}
		_, err := s.Commit(b.Context(), &store.Batch{Inserts: inserts})
		require.NoError(b, err)
	}
	b.StartTimer()
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			dst, out := make([]store.Job, batch), make([]bool, batch)
			for {
				c, err := s.Claim(b.Context(), "q", fmt.Sprint("w", w), dst)
				if err != nil {
					b.Error(err)
					return
				}
				if c.N == 0 {
					return
				}
				var settles []store.Settle
				for _, j := range dst[:c.N] {
					settles = append(settles, store.Settle{Job: j.ID, Attempt: j.Attempts, To: store.Done})
				}
				if _, err := s.Settle(b.Context(), settles, out); err != nil {
					b.Error(err)
					return
				}
				done.Add(int64(c.N))
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(done.Load())/b.Elapsed().Seconds(), "jobs/s")
}
