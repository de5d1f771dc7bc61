package pgengine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
	"github.com/tickonce/tickonce/store"
)

// What a call reads depends on what it is about, and not on how much there is,
// whatever the server knows of the tables when it plans.
func TestCallsReadWhatTheyAreAbout(t *testing.T) {
	pool, schema := pgtest.Pool(t), pgtest.Schema(t)
	_, err := Migrate(t.Context(), pool, schema)
	require.NoError(t, err)
	s := newStore(pool, schema, store.Limits{}, nil)
	analyze := func() {
		for _, table := range []string{"job", "schedule", "run"} {
			_, err := pool.Exec(t.Context(), "analyze "+pgx.Identifier{schema, table}.Sanitize())
			require.NoError(t, err)
		}
	}
	for _, c := range []struct {
		name    string
		prepare []func()
	}{
		{"not analyzed", []func(){fill(t, s)}},
		{"analyzed when empty", []func(){analyze, fill(t, s)}},
		{"analyzed", []func(){fill(t, s), analyze}},
	} {
		t.Run(c.name, func(t *testing.T) {
			empty(t, pool, schema)
			for _, prepare := range c.prepare {
				prepare()
			}
			claimed := make([]store.Job, 10)
			_, err := s.Claim(t.Context(), "full", "w", claimed)
			require.NoError(t, err)
			var ids, delays []int64
			var attempts, ends []int32
			var errs []string
			for _, j := range claimed {
				ids, attempts = append(ids, int64(j.ID)), append(attempts, j.Attempts)
				ends, delays, errs = append(ends, int32(store.Done)), append(delays, 0), append(errs, "")
			}
			for name, read := range map[string]int{
				"claim":   blocks(t, pool, s, claimReady, nil, "full", 10, "w"),
				"settle":  blocks(t, pool, s, settleAll, nil, ids, attempts, ends, ends, delays, errs, 100, 1_000_000),
				"due":     blocks(t, pool, s, readDue, 0, 1001),
				"free":    blocks(t, pool, s, findFree, filled, 10) + blocks(t, pool, s, readFree, 0, 1001, ids),
				"bury":    blocks(t, pool, s, lockDoomed, "full", 1),
				"write":   blocks(t, pool, s, lockRows, []string{"s1"}, ids),
				"tell":    blocks(t, pool, s, lockEnded, ids),
				"name":    blocks(t, pool, s, readNames, ids),
				"trim":    blocks(t, pool, s, trimRunsOfName, []string{"s1"}, 1),
				"drop":    blocks(t, pool, s, trimRuns, filled-10),
				"queues":  blocks(t, pool, s, readQueues, "full", []byte("full"), 1),
				"all":     blocks(t, pool, s, readJobs, "full", 0, 0, 10),
				"claimed": blocks(t, pool, s, readJobs, "full", int(store.Claimed), 0, 10),
				"dead":    blocks(t, pool, s, readJobs, "full", int(store.Dead), 0, 10),
			} {
				require.Less(t, read, 400, "%s: blocks of 8 kB, of %d jobs, schedules and runs", name, filled)
			}
		})
	}
}

// filled is how many schedules and runs there are, and jobs in two queues, one of
// ten in the shorter one.
const filled = 60_000

func fill(t *testing.T, s *Store) func() {
	return func() {
		_, err := s.db.(*pgxpool.Pool).Exec(t.Context(), s.texts[fillQueue], filled)
		require.NoError(t, err)
	}
}

var fillQueue = sql(`
with jobs as (
  insert into tickonce.job (queue, visibility_ms, base_backoff_ms, max_attempts, enqueued_at, run_at, priority)
  select case when n % 10 = 0 then 'short' else 'full' end, 60000, 1000, 3, 0, 0, n % 3 from generate_series(1, $1::integer) n returning queue
),
schedules as (
  insert into tickonce.schedule (rev, name, spec, queue, visibility_ms, base_backoff_ms, max_attempts, expires_ms, window_ms, catch_up_max,
    newest, anchor, cursor, due_at, set_at, priority, paused, overlap, run_once, at_anchor, breaker, failures)
  select 1, 's' || n, '@every 1h', 'full', 60000, 1000, 3, 0, 0, 64, false, 0, n, n, 0, 0, 0, 0, false, false, 3, 0 from generate_series(1, $1) n
),
runs as (
  insert into tickonce.run (schedule, schedule_id, job, fire_at, fired_at, started_at, ended_at, attempt, ended, became, error)
  select 's' || n % 10000, 1, n, n, 0, 0, 0, 1, 1, 4, '' from generate_series(1, $1) n returning weight
),
total as (insert into tickonce.total_tally (runs) select sum(weight) from runs)
insert into tickonce.queue_tally (queue, pending) select queue, count(*) from jobs group by queue`)

// Jobs are listed in the order of their ids, whatever the length of their queue.
func TestJobsOfLongAndShortQueuesAreListed(t *testing.T) {
	pool, schema := pgtest.Pool(t), pgtest.Schema(t)
	_, err := Migrate(t.Context(), pool, schema)
	require.NoError(t, err)
	s := newStore(pool, schema, store.Limits{}, nil)
	fill(t, s)()
	for _, queue := range []string{"full", "short"} {
		claimed := make([]store.Job, 50) // of all priorities the highest, and so not the first ids
		_, err := s.Claim(t.Context(), queue, "w", claimed)
		require.NoError(t, err)
		for _, f := range []store.Filter{{Queue: queue}, {Queue: queue, State: store.Pending}, {Queue: queue, State: store.Claimed}} {
			for f.From = 0; f.From < 300; f.From += 97 {
				got := []store.JobID{}
				rows, err := pool.Query(t.Context(), "select id from "+pgx.Identifier{schema, "job"}.Sanitize()+
					" where queue = $1 and $2::int in (0, state) and id >= $3 order by id limit 7", f.Queue, int(f.State), int64(f.From))
				require.NoError(t, err)
				want, err := pgx.CollectRows(rows, pgx.RowTo[store.JobID])
				require.NoError(t, err)
				page := make([]store.Job, 7)
				n, _, err := s.Jobs(t.Context(), f, page)
				require.NoError(t, err)
				for _, j := range page[:n] {
					got = append(got, j.ID)
				}
				require.Equal(t, want, got, "%+v", f)
			}
		}
	}
}

// blocks is how many blocks a statement reads that is planned as those of the
// store are. What it writes is undone.
func blocks(t *testing.T, pool *pgxpool.Pool, s *Store, q statement, args ...any) int {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
	_, err = tx.Exec(t.Context(), s.texts[planOnce])
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "prepare it as "+s.texts[q])
	require.NoError(t, err)
	defer func() { _, _ = tx.Exec(t.Context(), "deallocate it") }()
	var places []string
	for i := range args {
		places = append(places, fmt.Sprintf("$%d", i+1))
	}
	var text []byte
	err = tx.QueryRow(t.Context(), "explain (analyze, buffers, timing off, format json) execute it("+strings.Join(places, ",")+")",
		append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...).Scan(&text)
	require.NoError(t, err)
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	require.NoError(t, json.Unmarshal(text, &plans))
	return plans[0].Plan.Hit + plans[0].Plan.Read
}
