package pgengine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
	"github.com/tickonce/tickonce/store"
)

// column is one of a table, with values that somebody may write there.
type column struct {
	Name, Type string
	extremes   []string
}

// columns are those that can be written, but for some.
func (r *rig) columns(table string, but ...string) []column {
	r.t.Helper()
	rows, err := r.admin.Query(ctx, `
select attname::text, typname::text from pg_attribute a join pg_type t on t.oid = atttypid
where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' and attname <> all($2) order by 1`, r.table(table), append([]string{}, but...))
	require.NoError(r.t, err)
	columns, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) { return c, row.Scan(&c.Name, &c.Type) })
	require.NoError(r.t, err)
	require.NotEmpty(r.t, columns)
	extremes := map[string][]string{
		"int2":  {"-32768", "32767", "-1", "0", "null"},
		"int4":  {"-2147483648", "2147483647", "-1", "0", "null"},
		"int8":  {"-9223372036854775808", "9223372036854775807", "-1", "0", "9007199254740992", "null"},
		"bool":  {"true", "false", "null"},
		"text":  {"''", "'@every 1000000000d'", "repeat('x', 100000)", `E'\x01'`, "null"},
		"bytea": {"''", `'\x00'`, "null"},
	}
	for i := range columns {
		require.Contains(r.t, extremes, columns[i].Type)
		columns[i].extremes = extremes[columns[i].Type]
	}
	return columns
}

// What somebody did to a row, as far as the table takes it, stops no other
// schedule, and the runner neither.
func TestQ1Q6ATamperedColumnStopsNoOther(t *testing.T) {
	r := newRig(t, pgtest.Shared(t), tickonce.Config{})
	refused := 0
	for _, c := range r.columns("schedule", "id", "name") {
		for _, value := range c.extremes {
			empty(t, r.admin, r.schema)
			r.ms.Store(start.UnixMilli())
			r.schedule("a", "@every 10s")
			r.schedule("b", "@every 10s")
			_, err := r.admin.Exec(ctx, "update "+r.table("schedule")+" set "+c.Name+" = "+value+" where name = 'a'")
			if err != nil {
				require.ErrorContains(t, err, "(SQLSTATE 23", "%s = %s", c.Name, value)
				refused++
				continue
			}
			runner := r.NewRunner()
			if err := r.run(runner, 25*time.Second); err != nil {
				t.Errorf("%s = %s: %v", c.Name, value, err)
				continue
			}
			fires := r.fires()
			require.Contains(t, fires, "b 10s", "%s = %s", c.Name, value)
			require.Contains(t, fires, "b 20s", "%s = %s", c.Name, value)
			require.NoError(t, runner.Stop(ctx))
		}
	}
	require.Positive(t, refused)
}

// A row whose write the tables refuse is found among many, and held with the
// reason; the others fire in the same round. It heals when it can be written.
func TestQ1Q6ARowThatCannotBeWritten(t *testing.T) {
	const schedules = 100
	r := newRig(t, pgtest.Shared(t), tickonce.Config{})
	for i := range schedules {
		r.schedule(fmt.Sprintf("s%02d", i), "@every 10s")
	}
	runner := r.NewRunner()
	require.NoError(t, r.run(runner, 15*time.Second))
	require.Len(t, r.fires(), schedules)
	exec(t, r.admin, "update "+r.table("schedule")+" set cursor = cursor - 10000, rev = rev + 1 where name = 's42'")

	statements := 0
	r.proxy.Decide(func(sql string) pgtest.Verdict {
		if strings.Contains(sql, "held as") {
			statements++
		}
		return pgtest.Pass
	})
	require.NoError(t, r.run(runner, 25*time.Second))
	require.Len(t, r.fires(), 2*schedules-1)
	require.NotContains(t, r.fires(), "s42 20s")
	quarantined := r.of(tickonce.EventQuarantined)
	require.Len(t, quarantined, 1)
	require.Equal(t, "s42", quarantined[0].Schedule)
	require.Equal(t, "the store refuses what it would write", quarantined[0].Reason)
	require.LessOrEqual(t, statements, 20, "one bad row took too many statements")

	exec(t, r.admin, "delete from "+r.table("job")+" where schedule = 's42'")
	require.NoError(t, r.run(runner, 100*time.Second))
	require.Contains(t, r.fires(), "s42 10s")
	require.Contains(t, r.fires(), "s42 20s")
	require.NoError(t, runner.Stop(ctx))
}

// work steps the worker until so long after the start, and returns the jobs that
// it was given, each of which is done at once. Its errors and too many steps,
// which are a spin, are those of the test.
func (r *rig) work(w *tickonce.Worker, until time.Duration, what string) (done []store.JobID) {
	r.t.Helper()
	for steps := 0; ; steps++ {
		if steps == 100 {
			r.t.Errorf("%s: the worker spins", what)
			return done
		}
		next, rep, err := w.Step(ctx)
		require.NoError(r.t, err, what)
		if rep.Err != nil {
			r.t.Errorf("%s: %v", what, rep.Err)
		}
		for _, run := range rep.Begun {
			done = append(done, store.JobID(run.Job.ID))
			w.Ended(run, nil)
		}
		if len(rep.Begun) > 0 {
			continue
		}
		if next.After(start.Add(until)) {
			return done
		}
		r.ms.Store(max(r.ms.Load(), next.UnixMilli()))
	}
}

// What somebody did to a job, pending or claimed, as far as the table takes it,
// stops no other job of the queue, and has the worker neither fail nor spin.
func TestQ6ATamperedJobStopsNoOther(t *testing.T) {
	r := newRig(t, pgtest.Shared(t), tickonce.Config{})
	n, refused := 0, 0
	for _, c := range r.columns("job", "id") {
		for _, value := range c.extremes {
			for _, state := range []store.State{store.Pending, store.Claimed} {
				n++
				if testing.Short() && n/2%2 == n%2 {
					continue // every other value in the one state, and then in the other
				}
				r.ms.Store(start.UnixMilli())
				queue, what := fmt.Sprint("q", n), fmt.Sprintf("%s = %s of a job in state %d", c.Name, value, state)
				in := store.Insert{
					Queue: queue, RunAt: store.None, Stamps: store.Stamps{VisibilityMS: 10_000, MaxAttempts: 3},
					From: &store.Source{Schedule: queue, FireAt: store.None},
				}
				b := store.Batch{Inserts: []store.Insert{in}}
				if state == store.Pending {
					b.Inserts = append(b.Inserts, in)
				}
				written, err := r.store.Commit(ctx, &b)
				require.NoError(t, err)
				if state == store.Claimed {
					_, err = r.store.Claim(ctx, queue, "gone", make([]store.Job, 1))
					require.NoError(t, err)
					b.Inserts[0].RunAt = store.Instant(r.ms.Load() + 15_000)
					other, err := r.store.Commit(ctx, &b)
					require.NoError(t, err)
					written.Inserts = append(written.Inserts, other.Inserts...)
				}
				if _, err := r.admin.Exec(ctx, "update "+r.table("job")+" set "+c.Name+" = "+value+" where id = $1", written.Inserts[0].Job); err != nil {
					require.ErrorContains(t, err, "(SQLSTATE 23", what)
					refused++
					continue
				}
				w, err := r.NewWorker(queue, tickonce.WorkerConfig{})
				require.NoError(t, err)
				require.Contains(t, r.work(w, time.Minute, what), written.Inserts[1].Job, what)
			}
		}
	}
	require.Positive(t, refused)
}

// What somebody did to a lease, as far as the table takes it, keeps nobody from
// asking for the lock, and from having it in the end.
func TestLK5ATamperedLease(t *testing.T) {
	r := newRig(t, pgtest.Shared(t), tickonce.Config{})
	for _, c := range r.columns("lease") {
		for _, value := range c.extremes {
			what := fmt.Sprintf("%s = %s", c.Name, value)
			empty(t, r.admin, r.schema)
			r.ms.Store(start.UnixMilli())
			_, err := r.store.Acquire(ctx, "lock", "one", 60_000)
			require.NoError(t, err)
			if _, err := r.admin.Exec(ctx, "update "+r.table("lease")+" set "+c.Name+" = "+value); err != nil {
				require.ErrorContains(t, err, "(SQLSTATE 23", what)
				continue
			}
			bounded, cancel := context.WithTimeout(ctx, 10*time.Second) // it would ask for ever
			_, err = r.store.Acquire(bounded, "lock", "other", 60_000)
			cancel()
			require.NoError(t, err, what)
			r.ms.Add(120_000)
			g, err := r.store.Acquire(ctx, "lock", "other", 60_000)
			require.NoError(t, err, what)
			require.True(t, g.OK, what)
		}
	}
}

// What somebody did to the counters and the history, as far as the tables take
// it, or that their rows are gone, fails no call. Each is undone in the end.
func TestQ6TamperedCountersAndHistory(t *testing.T) {
	s, pool := newTestStore(t)
	s.limits = store.Limits{Runs: 2, Skips: 2, History: 3}.WithDefaults()
	r := &rig{t: t, admin: pool, schema: s.schema}
	lease, err := s.Acquire(ctx, store.SchedulerLock, "o", 60_000)
	require.NoError(t, err)
	stamps := store.Stamps{VisibilityMS: 100, MaxAttempts: 3}
	c, err := s.Commit(ctx, &store.Batch{Puts: []store.Put{{Guard: store.Guard{Name: "s"}, Row: store.Schedule{
		Name: "s", Spec: "@every 1s", Queue: "q", CatchUp: store.CatchUp{Max: 64}, Stamps: stamps, Cursor: 1_000_000, DueAt: 1_000_000,
	}}}})
	require.NoError(t, err)
	row := c.Puts[0]
	// calls are those that a runner, a worker and readers make, for the n-th time.
	calls := func(s *Store, n store.Instant, what string) {
		tick := store.Tick{
			By: lease.Lease, Now: 1_000_000, Moves: []store.Move{{ID: row.ID, Rev: 1 + store.Rev(n), Cursor: 1_000_000, DueAt: 1_000_000, Fires: 1}},
			Fires: []store.Fire{{Boundary: 1000 * n}}, Skips: []store.Skip{{Reason: store.SkipCap, EveryMS: 1000, First: 1000 * n, Last: 1000 * n, Count: 1}},
		}
		_, err := s.Advance(ctx, &tick)
		require.NoError(t, err, what)
		require.Equal(t, store.Moved, tick.Moves[0].Outcome, what)
		dst, out := make([]store.Job, 1), make([]bool, 1)
		claim, err := s.Claim(ctx, "q", "w", dst)
		require.NoError(t, err, what)
		require.Equal(t, 1, claim.N, what)
		_, err = s.Settle(ctx, []store.Settle{{Job: dst[0].ID, Attempt: 1, To: store.Done}}, out)
		require.NoError(t, err, what)
		require.True(t, out[0], what)
		_, err = s.Runs(ctx, store.Page{Schedule: "s"}, make([]store.Run, 4))
		require.NoError(t, err, what)
		_, err = s.Skips(ctx, store.Page{Schedule: "s"}, make([]store.SkipRange, 4))
		require.NoError(t, err, what)
		_, _, err = s.Queues(ctx, "", make([]store.Queue, 4))
		require.NoError(t, err, what)
		_, err = s.Commit(ctx, &store.Batch{Inserts: []store.Insert{{Queue: "other", Stamps: stamps, RunAt: store.None}}})
		require.NoError(t, err, what)
	}
	for n := range store.Instant(5) {
		calls(s, n, "untouched")
	}

	values := 0
	tampered := func(sql string) {
		values++
		for _, stepped := range []bool{false, true} {
			if testing.Short() && stepped == (values%2 == 0) {
				continue // every other value in the one way, and then in the other
			}
			tamperedIn(t, s, pool, sql, stepped, func(s *Store) { calls(s, 5, sql) })
		}
	}
	for _, table := range []string{"queue_tally", "total_tally", "run", "skip", "past", "past_total"} {
		tampered("delete from " + r.table(table))
		for _, c := range r.columns(table, "id") {
			for _, value := range c.extremes {
				tampered("update " + r.table(table) + " set " + c.Name + " = " + value)
			}
		}
	}
}

// tamperedIn makes the calls in a transaction in which the statement was
// executed, unless the tables refuse it, and undoes it all.
func tamperedIn(t *testing.T, s *Store, pool *pgxpool.Pool, sql string, stepped bool, calls func(*Store)) {
	tx, err := pool.Begin(ctx)
	require.NoError(t, err)
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, sql); err != nil {
		require.ErrorContains(t, err, "(SQLSTATE 23", sql)
		return
	}
	joined := *s
	joined.db = tx
	if stepped {
		joined = *byStep(t, &joined)
	}
	calls(&joined)
}
