package pgengine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
	"github.com/tickonce/tickonce/store"
)

// fails runs the statement, which has to fail, and returns the error explained.
func fails(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) error {
	t.Helper()
	_, err := pool.Exec(ctx, sql, args...)
	require.Error(t, err)
	return explain(err)
}

// Each error says what it is and what to do about it, and whether it is of use
// to ask again before.
func TestR2ErrorsSayWhatToDo(t *testing.T) {
	pool, schema := migrated(t)
	server, role := pgtest.Shared(t), pgtest.Role(t)
	config := func(role string, settings ...string) *pgxpool.Config {
		c := server.Config(t, role)
		for _, setting := range settings {
			name, value, _ := strings.Cut(setting, "=")
			c.ConnConfig.RuntimeParams[name] = value
		}
		return c
	}
	job := quoted(schema, "job")
	exec(t, pool, "grant usage on schema "+quoted(schema)+" to "+role)
	socket := server.Config(t, role).ConnConfig.Host + "/.s.PGSQL."

	for _, c := range []struct {
		name      string
		err       func(t *testing.T) error
		text      string
		permanent bool
	}{
		{"a privilege is missing", func(t *testing.T) error {
			return fails(t, pgtest.Open(t, config(role)), "insert into "+job+" default values")
		}, `ERROR: permission denied for table job (SQLSTATE 42501): grant the role what docs/POSTGRES.md lists under "Privileges"`, true},

		{"the session is read-only", func(t *testing.T) error {
			return fails(t, pgtest.Open(t, config(pgtest.Superuser, "default_transaction_read_only=on")), "insert into "+job+" default values")
		}, "ERROR: cannot execute INSERT in a read-only transaction (SQLSTATE 25006): " +
			"the server is a replica or the session is read-only: connect to the primary, as target_session_attrs=read-write does", true},

		{"a table is gone", func(t *testing.T) error {
			return fails(t, pool, "select from "+quoted(schema, "gone"))
		}, `ERROR: relation "` + schema + `.gone" does not exist (SQLSTATE 42P01): the schema is not as pgengine.Migrate made it`, true},

		{"a session that has the statements of another", func(t *testing.T) error {
			return fails(t, pgtest.Open(t, config(role)), "prepare mine as select; prepare mine as select")
		}, `ERROR: prepared statement "mine" already exists (SQLSTATE 42P05): a pooler gives the session to several: ` +
			"it takes PgBouncer 1.21 with max_prepared_statements, or default_query_exec_mode=exec in the connection string", true},

		{"a session that has not the statements of this", func(t *testing.T) error {
			return fails(t, pgtest.Open(t, config(role)), "execute mine")
		}, `ERROR: prepared statement "mine" does not exist (SQLSTATE 26000): a pooler gives the session to several: ` +
			"it takes PgBouncer 1.21 with max_prepared_statements, or default_query_exec_mode=exec in the connection string", false},

		{"the database does not exist", func(t *testing.T) error {
			c := config(role)
			c.ConnConfig.Database = "nowhere"
			return fails(t, pgtest.Open(t, c), "select")
		}, "failed to connect to `user=" + role + " database=nowhere`: " + socket + "5432 (" + strings.TrimSuffix(socket, "/.s.PGSQL.") +
			`): server error: FATAL: database "nowhere" does not exist (SQLSTATE 3D000): create the database, or name another`, true},

		{"the role does not exist", func(t *testing.T) error {
			return fails(t, pgtest.Open(t, config("nobody_there")), "select")
		}, "failed to connect to `user=nobody_there database=postgres`: " + socket + "5432 (" + strings.TrimSuffix(socket, "/.s.PGSQL.") +
			`): server error: FATAL: role "nobody_there" does not exist (SQLSTATE 28000): check the user, the password and the server's pg_hba.conf`, true},

		{"the server is not there", func(t *testing.T) error {
			c := config(role)
			c.ConnConfig.Port = 1
			return fails(t, pgtest.Open(t, c), "select")
		}, "failed to connect to `user=" + role + " database=postgres`: " + socket + "1 (" + strings.TrimSuffix(socket, "/.s.PGSQL.") +
			"): dial error: dial unix " + socket + "1: connect: no such file or directory: check the address, and whether the server runs", false},

		{"a statement takes too long", func(t *testing.T) error {
			return fails(t, pgtest.Open(t, config(pgtest.Superuser, "statement_timeout=1ms")), "select pg_sleep(600)")
		}, "ERROR: canceling statement due to statement timeout (SQLSTATE 57014): unless somebody cancelled it, raise the role's statement_timeout, or see in pg_stat_activity who holds a lock", false},

		{"a lock is held for too long", func(t *testing.T) error {
			tx, err := pool.Begin(ctx)
			require.NoError(t, err)
			defer tx.Rollback(ctx)
			_, err = tx.Exec(ctx, "lock table "+job)
			require.NoError(t, err)
			return fails(t, pgtest.Open(t, config(pgtest.Superuser, "lock_timeout=1ms")), "select from "+job)
		}, "ERROR: canceling statement due to lock timeout (SQLSTATE 55P03): another transaction held what it needs for longer than lock_timeout: pg_stat_activity shows which", false},

		{"the server has no connection left", func(t *testing.T) error {
			exec(t, pool, "alter role "+role+" connection limit 1")
			defer exec(t, pool, "alter role "+role+" connection limit -1")
			one, err := pgtest.Open(t, config(role)).Acquire(ctx)
			require.NoError(t, err)
			defer one.Release()
			return fails(t, pgtest.Open(t, config(role)), "select")
		}, "failed to connect to `user=" + role + " database=postgres`: " + socket + "5432 (" + strings.TrimSuffix(socket, "/.s.PGSQL.") +
			`): server error: FATAL: too many connections for role "` + role + `" (SQLSTATE 53300): lower MaxConns of the pools that use the server, or raise its max_connections`, false},

		{"the server ends the session", func(t *testing.T) error {
			conn, err := pgtest.Open(t, config(pgtest.Superuser)).Acquire(ctx)
			require.NoError(t, err)
			defer conn.Release()
			_, err = conn.Exec(ctx, "select pg_terminate_backend(pg_backend_pid())")
			return explain(err)
		}, "FATAL: terminating connection due to administrator command (SQLSTATE 57P01)", false},

		{"two transactions wait for each other", func(t *testing.T) error {
			return fails(t, pool, "do $$ begin raise exception using errcode = 'deadlock_detected', message = 'deadlock detected'; end $$")
		}, "ERROR: deadlock detected (SQLSTATE 40P01)", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.err(t)
			require.EqualError(t, err, c.text)
			require.Equal(t, c.permanent, errors.Is(err, store.ErrPermanent))
		})
	}
}

// How a connection broke says pgx, in one of several ways.
func TestR2ALostConnection(t *testing.T) {
	server := pgtest.Start(t)
	proxy := server.Proxy(t)
	pool := pgtest.Open(t, proxy.Config(t, pgtest.Superuser))
	lost := func(do func()) {
		t.Helper()
		conn, err := pool.Acquire(ctx)
		require.NoError(t, err)
		defer conn.Release()
		do()
		_, err = conn.Exec(ctx, "select 1")
		require.ErrorContains(t, explain(err), ": the connection to the server was lost; whether the statement was done is not known")
		require.NotErrorIs(t, explain(err), store.ErrPermanent)
	}
	lost(proxy.Cut)
	lost(func() { proxy.Lose(pgtest.LoseRequest, "select 1") })
	lost(func() { proxy.Lose(pgtest.LoseReply, "select 1") })
	require.Equal(t, 2, proxy.Lost())
	lost(func() { server.Kill(t) })
}

// The end of a context is no fault of the server's.
func TestAContextThatEndsStaysAsItIs(t *testing.T) {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err := pgtest.Pool(t).Exec(ended, "select")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, err, explain(err))
	require.NoError(t, explain(nil))
}

// limited is a store whose calls end after a millisecond, over two connections.
func limited(t *testing.T) (*Store, *pgxpool.Pool) {
	t.Helper()
	config := pgtest.Shared(t).Config(t, pgtest.Superuser)
	config.MaxConns = 2
	pool := pgtest.Open(t, config)
	s := newStore(pool, "nowhere", store.Limits{}, nil)
	s.callTime = time.Millisecond
	return s, pool
}

func TestACallEndsInTime(t *testing.T) {
	s, pool := limited(t)
	err := s.call(ctx, func(ctx context.Context) error {
		_, err := pool.Exec(ctx, "select pg_sleep(600)")
		return err
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, ": no answer within 1ms")
	require.NotErrorIs(t, err, store.ErrPermanent)
	require.Equal(t, err, explain(err))
}

// Whatever call it is, it does not wait for ever for a connection.
func TestAnExhaustedPool(t *testing.T) {
	s, pool := limited(t)
	for range 2 {
		conn, err := pool.Acquire(ctx)
		require.NoError(t, err)
		defer conn.Release()
	}
	for name, call := range map[string]func() error{
		"read":      func() error { _, err := s.Due(ctx, make([]store.Schedule, 1)); return err },
		"statement": func() error { _, err := s.Acquire(ctx, "lock", "owner", 1000); return err },
		"step":      func() error { _, err := s.Commit(ctx, &store.Batch{Inserts: []store.Insert{{Queue: "q"}}}); return err },
		"tick":      func() error { _, err := s.Advance(ctx, &store.Tick{}); return err },
		"claim":     func() error { _, err := s.Claim(ctx, "q", "worker", make([]store.Job, 1)); return err },
		"settle":    func() error { _, err := s.Settle(ctx, []store.Settle{{}}, make([]bool, 1)); return err },
		"listener":  func() error { return s.listen(ctx, nil) },
	} {
		require.EqualError(t, call(), "context deadline exceeded: within 1ms none of the pool's 2 connections became free: "+
			"raise its MaxConns, or give the engine a pool of its own", name)
	}
}

func TestACallIsItsCallersToEnd(t *testing.T) {
	s, _ := limited(t)
	failed := errors.New("failed")
	require.NoError(t, s.call(ctx, func(context.Context) error { return nil }))
	require.Equal(t, failed, s.call(ctx, func(context.Context) error { return failed }))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.Equal(t, context.Canceled, s.call(ended, func(ctx context.Context) error { return ctx.Err() }))
}

// A pool whose connections all broke costs one call, not one for each of them.
func TestR1ABrokenPoolFailsOneCall(t *testing.T) {
	const connections = 8
	proxy := pgtest.Shared(t).Proxy(t)
	config := proxy.Config(t, pgtest.Superuser)
	config.MaxConns = connections
	pool := pgtest.Open(t, config)
	schema := pgtest.Schema(t)
	_, err := Migrate(ctx, pool, schema)
	require.NoError(t, err)
	s := newStore(pool, schema, store.Limits{}, nil)
	var held []*pgxpool.Conn
	for range connections {
		conn, err := pool.Acquire(ctx)
		require.NoError(t, err)
		held = append(held, conn)
	}
	for _, conn := range held {
		conn.Release()
	}

	proxy.Cut()
	failures := 0
	for range connections {
		if _, err := s.Due(ctx, make([]store.Schedule, 1)); err != nil { // none fails after a second, when pgx looks at the connection first
			require.ErrorContains(t, err, lost)
			failures++
		}
	}
	require.LessOrEqual(t, failures, 1)
}

// A call is made again where others kept it from being written, and only there.
func TestR2WhatIsMadeAgain(t *testing.T) {
	for _, c := range []struct {
		err   pgconn.PgError
		again bool
	}{
		{pgconn.PgError{Code: "40001"}, true},
		{pgconn.PgError{Code: "40P01"}, true},
		{pgconn.PgError{Code: "23505", ConstraintName: "schedule_name"}, true},
		{pgconn.PgError{Code: "23505", ConstraintName: "job_key"}, true},
		{pgconn.PgError{Code: "23505", ConstraintName: "job_alone"}, true},
		{pgconn.PgError{Code: "23505", ConstraintName: "job_fire"}, false}, // a boundary that has fired
		{pgconn.PgError{Code: "57014"}, false},
	} {
		made := 0
		err := again(func() error { made++; return &c.err })
		require.Equal(t, &c.err, err)
		require.Equal(t, map[bool]int{false: 1, true: attempts}[c.again], made, "%v", c.err)
	}
	made := 0
	require.NoError(t, again(func() error { made++; return nil }))
	require.Equal(t, 1, made)
}
