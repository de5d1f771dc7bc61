package pgtest_test

import (
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
)

// through is a pool of one connection through a proxy, and a table that it knows.
func through(t *testing.T) (proxy *pgtest.Proxy, pool *pgxpool.Pool, table string) {
	t.Helper()
	proxy = pgtest.Shared(t).Proxy(t)
	config := proxy.Config(t, pgtest.Superuser)
	config.MaxConns = 1
	pool = pgtest.Open(t, config)
	schema := pgtest.Schema(t)
	table = pgx.Identifier{schema, "rows"}.Sanitize()
	_, err := pool.Exec(ctx, "create schema "+pgx.Identifier{schema}.Sanitize()+" create table rows (n int)")
	require.NoError(t, err)
	return proxy, pool, table
}

func count(t *testing.T, pool *pgxpool.Pool, table string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(ctx, "select count(*) from "+table).Scan(&n))
	return n
}

// What a client is told is the same of both losses; what the server has done is
// not.
func TestProxyLosesAStatement(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*pgxpool.Pool, string) error
		rows int
	}{
		{"with arguments", func(pool *pgxpool.Pool, table string) error {
			_, err := pool.Exec(ctx, "insert into "+table+" values ($1)", 1)
			return err
		}, 1},
		{"without", func(pool *pgxpool.Pool, table string) error {
			_, err := pool.Exec(ctx, "insert into "+table+" values (1)")
			return err
		}, 1},
		{"in a batch", func(pool *pgxpool.Pool, table string) error {
			var b pgx.Batch
			b.Queue("select $1::int", 1)
			b.Queue("insert into "+table+" values ($1)", 1)
			b.Queue("insert into "+table+" values ($1), ($1)", 1)
			return pool.SendBatch(ctx, &b).Close()
		}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			proxy, pool, table := through(t)
			want := 0
			for range 2 { // the second time all is prepared
				proxy.Lose(pgtest.LoseRequest, "insert")
				require.Error(t, c.do(pool, table))
				require.Equal(t, want, count(t, pool, table))
				require.NoError(t, c.do(pool, table))
				want += c.rows

				proxy.Lose(pgtest.LoseReply, "insert")
				require.Error(t, c.do(pool, table))
				want += c.rows
				require.Equal(t, want, count(t, pool, table))
			}
			require.Equal(t, 4, proxy.Lost())
		})
	}
}

func TestProxyLosesACommit(t *testing.T) {
	proxy, pool, table := through(t)
	for verdict, rows := range map[pgtest.Verdict]int{pgtest.LoseRequest: 0, pgtest.LoseReply: 1} {
		proxy.Lose(verdict, "commit")
		before := count(t, pool, table)
		tx, err := pool.Begin(ctx)
		require.NoError(t, err)
		_, err = tx.Exec(ctx, "insert into "+table+" values ($1)", 1)
		require.NoError(t, err)
		require.Error(t, tx.Commit(ctx))
		require.Equal(t, rows, count(t, pool, table)-before)
	}
}

func TestProxyCutsAndRefuses(t *testing.T) {
	proxy, pool, table := through(t)
	require.Zero(t, count(t, pool, table))
	proxy.Refuse(true)
	_, err := pool.Exec(ctx, "select 1")
	require.NoError(t, err, "of a connection that was there")
	proxy.Cut()
	_, err = pool.Exec(ctx, "select 1")
	require.Error(t, err)
	_, err = pool.Exec(ctx, "select 1")
	require.Error(t, err)
	proxy.Refuse(false)
	require.Zero(t, count(t, pool, table))
}

// Each statement of each connection is asked about, once.
func TestProxyAsksForEachStatement(t *testing.T) {
	proxy := pgtest.Shared(t).Proxy(t)
	asked := map[string]int{}
	proxy.Decide(func(sql string) pgtest.Verdict { asked[sql]++; return pgtest.Pass })
	pool := pgtest.Open(t, proxy.Config(t, pgtest.Superuser))
	var wait sync.WaitGroup
	var errs [8]error
	for i := range errs {
		wait.Go(func() {
			for n := 0; n < 100 && errs[i] == nil; n++ {
				_, errs[i] = pool.Exec(ctx, "select $1::int", n)
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	proxy.Decide(nil)
	require.Equal(t, 800, asked["select $1::int"])
	require.Zero(t, proxy.Lost())
}
