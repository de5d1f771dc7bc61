package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/pgengine"
	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
	"github.com/tickonce/tickonce/store"
)

// contestant does a part of its work in a round, and says how much and in what
// time.
type contestant struct {
	name  string
	round func() (n int, spent time.Duration)
}

// compete lets the contestants work in turns. What it reports of each is how
// many a second, what the first has of that for one of its, and how many bytes
// of the write-ahead log one takes.
func compete(b *testing.B, pool *pgxpool.Pool, unit string, contestants []contestant) {
	n, spent, wal := make([]float64, len(contestants)), make([]time.Duration, len(contestants)), make([]float64, len(contestants))
	written := func() (at float64) {
		require.NoError(b, pool.QueryRow(b.Context(), "select (pg_current_wal_insert_lsn() - '0/0')::float8").Scan(&at))
		return at
	}
	for b.Loop() {
		for i, c := range contestants {
			before := written()
			did, took := c.round()
			n[i], spent[i], wal[i] = n[i]+float64(did), spent[i]+took, wal[i]+written()-before
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, c := range contestants {
		speed := n[i] / spent[i].Seconds()
		b.ReportMetric(speed, c.name+"-"+unit+"/s")
		b.ReportMetric(wal[i]/n[i], c.name+"-B/"+unit)
		if i > 0 {
			b.ReportMetric(n[0]/spent[0].Seconds()/speed, "x-"+c.name)
		}
	}
}

// timed is a round of a function.
func timed(f func() int) func() (int, time.Duration) {
	return func() (int, time.Duration) {
		began := time.Now()
		n := f()
		return n, time.Since(began)
	}
}

// server is an empty one that syncs what it commits. The pool has a connection
// for everybody who works at the same time.
func server(b *testing.B) *pgxpool.Pool {
	config := pgtest.Start(b, "fsync = on", "shared_buffers = 256MB", "max_wal_size = 4GB").Config(b, pgtest.Superuser)
	config.MaxConns = 16
	return pgtest.Open(b, config)
}

func engine(b *testing.B, pool *pgxpool.Pool) *pgengine.Engine {
	_, err := pgengine.Migrate(b.Context(), pool, "")
	require.NoError(b, err)
	e, err := pgengine.New(b.Context(), pool, tickonce.Config{Limits: tickonce.Limits{QueueLength: 10_000_000}}, pgengine.Options{})
	require.NoError(b, err)
	return e
}

const schedules = 10_000

// BenchmarkFire is one runner that fires schedules which are all due, by
// batches: each moves its cursor, and inserts a job.
func BenchmarkFire(b *testing.B) {
	for _, c := range []struct{ batch, rounds, rows int }{{1000, 5, 200}, {1, 200, 200}} {
		b.Run(fmt.Sprint("batch=", c.batch), func(b *testing.B) {
			pool := server(b)
			r, rows := newRiver(b, pool), newRows(b, pool)
			fire := tick(b, engine(b, pool).Store(), c.batch)
			repeat := func(n int, f func() int) func() (int, time.Duration) {
				return timed(func() (done int) {
					for range n {
						done += f()
					}
					return done
				})
			}
			contestants := []contestant{
				{"tickonce", repeat(c.rounds, fire)},
				{"river", repeat(c.rounds, func() int { return r.fire(c.batch, rows.moveOne, r.insert) })},
			}
			if c.batch > 1 {
				contestants = append(
					contestants,
					contestant{"river-fast", repeat(c.rounds, func() int { return r.fire(c.batch, rows.moveOne, r.insertFast) })},
					contestant{"river-fast-each", repeat(c.rounds, func() int { return r.fire(c.batch, rows.move, r.insertFast) })},
				)
			}
			compete(b, pool, "fire", append(contestants, contestant{"rows", repeat(c.rows, rows.fire)}))
		})
	}
}

// tick makes schedules that are due, and returns what fires so many of them: a
// tick without the core's decision.
func tick(b *testing.B, s *pgengine.Store, batch int) func() int {
	for from := 0; from < schedules; from += 1000 {
		var puts []store.Put
		for i := range 1000 {
			name := fmt.Sprintf("s%05d", from+i)
			puts = append(puts, store.Put{Guard: store.Guard{Name: name}, Row: store.Schedule{
				Name: name, Spec: "@every 1s", Queue: "q", Payload: []byte(`{"n": 1}`), CatchUp: store.CatchUp{Max: 64},
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
	return func() int {
		due, err := s.Due(b.Context(), rows)
		require.NoError(b, err)
		t := store.Tick{By: g.Lease, Now: due.Now}
		for i, row := range rows[:due.N] {
			t.Moves = append(t.Moves, store.Move{
				ID: row.ID, Rev: row.Rev, Cursor: row.Cursor + 1000, DueAt: row.Cursor + 1000, SetAt: due.Now, Fires: 1,
			})
			t.Fires = append(t.Fires, store.Fire{Move: int32(i), Boundary: row.Cursor})
		}
		held, err := s.Advance(b.Context(), &t)
		require.NoError(b, err)
		require.True(b, held)
		for i := range t.Moves {
			require.Equal(b, store.Moved, t.Moves[i].Outcome)
		}
		return len(t.Fires)
	}
}

const (
	workers = 8
	jobs    = 20_000 // of a round
	rowJobs = 1000   // and of the loop that goes row by row
)

// BenchmarkWork is the working off of jobs that do nothing.
func BenchmarkWork(b *testing.B) {
	pool := server(b)
	e, r, rows := engine(b, pool), newRiver(b, pool), newRows(b, pool)
	enqueue := func() {
		for range jobs / 1000 {
			var inserts []store.Insert
			for range 1000 {
				inserts = append(inserts, store.Insert{
					Queue: "q", Payload: []byte(`{"n": 1}`), RunAt: store.None, Stamps: store.Stamps{VisibilityMS: 60_000, MaxAttempts: 3},
				})
			}
			_, err := e.Store().Commit(b.Context(), &store.Batch{Inserts: inserts})
			require.NoError(b, err)
		}
	}
	compete(b, pool, "job", []contestant{
		{"tickonce", func() (int, time.Duration) {
			enqueue()
			return timed(func() int { return atOnce(func() int { return claimAndAck(b, e) }) })()
		}},
		{"worker", func() (int, time.Duration) {
			enqueue()
			return timed(func() int { return work(b, e) })()
		}},
		{"river", func() (int, time.Duration) {
			r.enqueue(jobs)
			return timed(func() int { return r.work(jobs) })()
		}},
		{"rows", func() (int, time.Duration) {
			rows.enqueue(rowJobs)
			return timed(func() int { return atOnce(rows.work) })()
		}},
	})
}

// atOnce has the workers work, and adds up what they have done.
func atOnce(f func() int) int {
	var n atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { n.Add(int64(f())) })
	}
	all.Wait()
	return int(n.Load())
}

// claimAndAck works off jobs a hundred at a time, until there are none.
func claimAndAck(b *testing.B, e *pgengine.Engine) (n int) {
	for {
		claimed, err := e.ClaimBatch(b.Context(), "q", "w", 100)
		if err != nil || len(claimed) == 0 {
			if err != nil {
				b.Error(err)
			}
			return n
		}
		if _, err := e.AckAll(b.Context(), claimed); err != nil {
			b.Error(err)
			return n
		}
		n += len(claimed)
	}
}

// work has the engine's own workers do the jobs.
func work(b *testing.B, e *pgengine.Engine) int {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var left atomic.Int64
	left.Store(jobs)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			err := e.RunWorker(ctx, "q", func(context.Context, *tickonce.Job) error {
				if left.Add(-1) == 0 {
					cancel() // the worker settles what it has in hand, and ends
				}
				return nil
			}, tickonce.WorkerConfig{Concurrency: 100})
			if err != nil && ctx.Err() == nil {
				b.Error(err)
				cancel()
			}
		})
	}
	all.Wait()
	return jobs
}
