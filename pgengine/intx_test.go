package pgengine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/pgengine"
	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
)

// newEngine returns an engine in a schema of the test's own, in which the test
// has a table of its own beside.
func newEngine(t *testing.T, c tickonce.Config) (*pgengine.Engine, *pgxpool.Pool, pgx.Identifier) {
	pool, schema := pgtest.Pool(t), pgtest.Schema(t)
	_, err := pgengine.Migrate(t.Context(), pool, schema)
	require.NoError(t, err)
	e, err := pgengine.New(t.Context(), pool, c, pgengine.Options{Schema: schema})
	require.NoError(t, err)
	orders := pgx.Identifier{schema, "orders"}
	_, err = pool.Exec(t.Context(), "create table "+orders.Sanitize()+" (id int primary key)")
	require.NoError(t, err)
	return e, pool, orders
}

// writeAll writes all that joins a transaction.
func writeAll(ctx context.Context, e *tickonce.Engine) error {
	_, err := e.Schedule(ctx, "s", "@every 1s", "q", nil, tickonce.ScheduleOptions{})
	_, err2 := e.Enqueue(ctx, "q", []byte("p"), tickonce.EnqueueOptions{Key: "k"})
	_, err3 := e.Outbox("mail").Enqueue(ctx, []byte("m"), tickonce.OutboxOptions{})
	return errors.Join(err, err2, err3)
}

// found is how many rows of each kind there are: orders, schedules, jobs and
// outbox entries.
func found(t *testing.T, e *tickonce.Engine, pool *pgxpool.Pool, orders pgx.Identifier) (n [4]int64) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), "select count(*) from "+orders.Sanitize()).Scan(&n[0]))
	for _, err := range e.Schedules(t.Context()) {
		require.NoError(t, err)
		n[1]++
	}
	info, err := e.Queue(t.Context(), "q")
	require.NoError(t, err)
	mail, err := e.Outbox("mail").Info(t.Context())
	require.NoError(t, err)
	n[2], n[3] = info.Pending, mail.Pending
	return n
}

func TestO7InATransactionOfTheUsersAllOrNothingIsWritten(t *testing.T) {
	e, pool, orders := newEngine(t, tickonce.Config{Observer: func(tickonce.Event) { panic("it may be undone") }})
	for i, commit := range []bool{false, true} {
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "insert into "+orders.Sanitize()+" values ($1)", i)
		require.NoError(t, err)
		in, err := e.In(tx)
		require.NoError(t, err)
		require.NoError(t, writeAll(t.Context(), in))
		read, ok, err := in.Lookup(t.Context(), "s")
		require.NoError(t, err)
		require.True(t, ok, "what it wrote it can read")
		require.Equal(t, "q", read.Queue)
		require.Equal(t, [4]int64{}, found(t, e.Engine, pool, orders), "nobody else sees it before the commit")
		if !commit {
			require.NoError(t, tx.Rollback(t.Context()))
			require.Equal(t, [4]int64{}, found(t, e.Engine, pool, orders))
			continue
		}
		require.NoError(t, tx.Commit(t.Context()))
		require.Equal(t, [4]int64{1, 1, 1, 1}, found(t, e.Engine, pool, orders))
	}
}

func TestO7ARefusedCallLeavesTheTransactionAsItWas(t *testing.T) {
	e, pool, orders := newEngine(t, tickonce.Config{Limits: tickonce.Limits{QueueLength: 1}})
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	in, err := e.In(tx)
	require.NoError(t, err)
	require.NoError(t, writeAll(t.Context(), in))
	_, err = in.Enqueue(t.Context(), "q", nil, tickonce.EnqueueOptions{})
	require.ErrorIs(t, err, tickonce.ErrLimit)
	_, err = tx.Exec(t.Context(), "insert into "+orders.Sanitize()+" values (1)")
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, [4]int64{1, 1, 1, 1}, found(t, e.Engine, pool, orders))
}

// What the engine sets for its own transactions it does not set for another's.
func TestO7TheUsersTransactionKeepsItsSettings(t *testing.T) {
	e, pool, _ := newEngine(t, tickonce.Config{})
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context())
	settings := func() string {
		var all string
		require.NoError(t, tx.QueryRow(t.Context(), "select json_agg(name || ' = ' || setting order by name)::text from pg_settings").Scan(&all))
		return all
	}
	before := settings()
	in, err := e.In(tx)
	require.NoError(t, err)
	require.NoError(t, writeAll(t.Context(), in))
	_, err = in.Enqueue(t.Context(), "q", nil, tickonce.EnqueueOptions{}) // in one statement
	require.NoError(t, err)
	_, _, err = in.Lookup(t.Context(), "s")
	require.NoError(t, err)
	require.JSONEq(t, before, settings())
}

// A transaction that is stricter than read committed is told of it if it has to
// be begun again.
func TestO7ASerializationFailureIsToldInTheUsersTransaction(t *testing.T) {
	e, pool, orders := newEngine(t, tickonce.Config{})
	var txs [2]pgx.Tx
	for i := range txs {
		var err error
		txs[i], err = pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.Serializable})
		require.NoError(t, err)
		defer func() { _ = txs[i].Rollback(context.WithoutCancel(t.Context())) }()
		_, err = txs[i].Exec(t.Context(), "select from "+orders.Sanitize())
		require.NoError(t, err)
	}
	enqueue := func(tx pgx.Tx) error { // reads how long the queue is, which the other one changes
		in, err := e.In(tx)
		require.NoError(t, err)
		_, err = in.Enqueue(t.Context(), "q", nil, tickonce.EnqueueOptions{})
		return err
	}
	require.NoError(t, enqueue(txs[0]))
	require.NoError(t, txs[0].Commit(t.Context()))
	require.ErrorContains(t, enqueue(txs[1]), "(SQLSTATE 40001)")
}

// A transaction that stays open, as one does whose client hangs, is in nobody's
// way: others enqueue, claim and settle, and ticks go on.
func TestO7AnOpenTransactionKeepsNobodyWaiting(t *testing.T) {
	e, pool, _ := newEngine(t, tickonce.Config{})
	_, err := e.Schedule(t.Context(), "s", "@every 1s", "q", nil, tickonce.ScheduleOptions{Anchor: time.Unix(0, 0), Breaker: 3})
	require.NoError(t, err)
	_, err = e.Schedule(t.Context(), "held", "@every 1s", "q", nil, tickonce.ScheduleOptions{})
	require.NoError(t, err)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	in, err := e.In(tx)
	require.NoError(t, err)
	_, err = in.Enqueue(t.Context(), "q", nil, tickonce.EnqueueOptions{})
	require.NoError(t, err)
	_, err = in.Pause(t.Context(), "held")
	require.NoError(t, err)

	// Were anything to wait, it would wait until the test's deadline.
	_, err = pool.Exec(t.Context(), "update "+e.Table("schedule")+" set due_at = cursor - 5000, cursor = cursor - 5000 where name = 's'")
	require.NoError(t, err)
	r := e.NewRunner()
	fires := 0
	for range 5 {
		_, report, err := r.Step(t.Context())
		require.NoError(t, err)
		if report != nil {
			for range report.Fires() {
				fires++
			}
		}
	}
	require.GreaterOrEqual(t, fires, 5)
	for range 70 { // until summands were added up, too
		id, err := e.Enqueue(t.Context(), "q", nil, tickonce.EnqueueOptions{Priority: 1})
		require.NoError(t, err)
		job, err := e.Claim(t.Context(), "q", "w")
		require.NoError(t, err)
		require.Equal(t, id, job.ID)
		require.NoError(t, job.Ack(t.Context()))
	}
}

// Schedules that an open transaction has locked do not keep those that are due
// after them from being fired, even where they are as many as a tick may fire.
func TestO7LockedSchedulesKeepNoOtherFromBeingDue(t *testing.T) {
	e, pool, _ := newEngine(t, tickonce.Config{Batch: 2})
	for _, name := range []string{"a", "b", "c"} {
		_, err := e.Schedule(t.Context(), name, "@every 1h", name, nil, tickonce.ScheduleOptions{})
		require.NoError(t, err)
	}
	_, err := pool.Exec(t.Context(), "update "+e.Table("schedule")+" set cursor = cursor - 3600000, due_at = cursor - 3600000 - case name when 'c' then 0 else 1 end")
	require.NoError(t, err)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	in, err := e.In(tx)
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		_, err = in.Pause(t.Context(), name)
		require.NoError(t, err)
	}
	r := e.NewRunner()
	fired := func() (names []string) {
		for range 12 {
			_, report, err := r.Step(t.Context())
			require.NoError(t, err)
			if report != nil {
				for fire := range report.Fires() {
					names = append(names, fire.Schedule)
				}
			}
		}
		return names
	}
	require.Equal(t, []string{"c"}, fired())
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, []string{"a", "b"}, fired())
}

func TestNilIsRefused(t *testing.T) {
	e, pool, _ := newEngine(t, tickonce.Config{})
	_, err := pgengine.Migrate(t.Context(), nil, "")
	require.EqualError(t, err, "pgengine: migrate: invalid option: db is nil, want a pool or a connection")
	_, err = pgengine.New(t.Context(), nil, tickonce.Config{}, pgengine.Options{})
	require.EqualError(t, err, "invalid option: pool is nil, want a pool of connections")
	_, err = e.In(nil)
	require.EqualError(t, err, "invalid option: tx is nil, want a transaction")
	require.EqualError(t, e.InSQL(nil, func(*tickonce.Engine) error { return nil }), "invalid option: conn is nil, want a connection")
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	require.EqualError(t, e.InSQL(conn, nil), "invalid option: f is nil, want a function")
}

func TestO7InATransactionOfDatabaseSQL(t *testing.T) {
	e, pool, orders := newEngine(t, tickonce.Config{})
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	for i, commit := range []bool{false, true} {
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		require.ErrorContains(t, e.InSQL(conn, func(*tickonce.Engine) error { return nil }), "no transaction was begun")
		tx, err := conn.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.Exec("insert into "+orders.Sanitize()+" values ($1)", i)
		require.NoError(t, err)
		require.NoError(t, e.InSQL(conn, func(in *tickonce.Engine) error { return writeAll(t.Context(), in) }))
		err = e.InSQL(conn, func(in *tickonce.Engine) error {
			_, err := in.Requeue(t.Context(), "q", 99)
			return err
		})
		require.ErrorIs(t, err, tickonce.ErrNotFound)
		require.Equal(t, [4]int64{}, found(t, e.Engine, pool, orders))
		want := [4]int64{1, 1, 1, 1}
		if commit {
			require.NoError(t, tx.Commit())
		} else {
			require.NoError(t, tx.Rollback())
			want = [4]int64{}
		}
		require.NoError(t, conn.Close())
		require.Equal(t, want, found(t, e.Engine, pool, orders))
	}
}
