package crashtest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/pgengine"
	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
	"github.com/tickonce/tickonce/store"
)

// world is a database with the engine's tables, the application's, and the
// processes that are at work there.
type world struct {
	*crew
	server  *pgtest.Server
	base    part          // what all processes have
	admin   *pgxpool.Pool // of who owns the tables
	started int
}

// newWorld makes the tables, audited, and the role of the processes.
func newWorld(t *testing.T, server *pgtest.Server, engine, app, role string) *world {
	t.Helper()
	w := &world{crew: newCrew(t), server: server, admin: server.Pool(t)}
	_, err := pgengine.Migrate(ctx, w.admin, engine)
	require.NoError(t, err)
	w.exec("create schema " + pgx.Identifier{app}.Sanitize())
	w.base = part{Conn: server.Config(t, role).ConnString(), Schema: engine, App: app}
	w.exec(strings.NewReplacer(
		"engine.", pgx.Identifier{engine}.Sanitize()+".", "schema engine ", "schema "+pgx.Identifier{engine}.Sanitize()+" ",
		"schema app, engine ", "schema "+pgx.Identifier{app}.Sanitize()+", "+pgx.Identifier{engine}.Sanitize()+" ",
		"app.", pgx.Identifier{app}.Sanitize()+".", "to role", "to "+role,
	).Replace(audits))
	w.base.Grid = w.now() - 10_000 // a grid that is there already
	return w
}

// shared is a world on the server that all tests share.
func shared(t *testing.T) *world {
	t.Helper()
	return newWorld(t, pgtest.Shared(t), pgtest.Schema(t), pgtest.Schema(t), pgtest.Role(t))
}

// alone is a world on a server of its own, which may crash.
func alone(t *testing.T) *world {
	t.Helper()
	server := pgtest.Start(t, "fsync = on")
	_, err := server.Pool(t).Exec(ctx, "create role app login")
	require.NoError(t, err)
	return newWorld(t, server, "engine", "app", "app")
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.admin.Exec(ctx, sql, args...)
	require.NoError(w.t, err)
}

func (w *world) query(sql string, target any, args ...any) {
	w.t.Helper()
	require.NoError(w.t, w.admin.QueryRow(ctx, sql, args...).Scan(target))
}

func (w *world) table(name string) string { return quoted(w.base.Schema, name) }

// engine is one of the test's own, at an instant at which all claims have lapsed
// if it is to be later.
func (w *world) engine(later bool) *pgengine.Engine {
	w.t.Helper()
	o := pgengine.Options{Schema: w.base.Schema}
	if later {
		at := store.Instant(time.Now().Add(time.Hour).UnixMilli())
		o.Now = func() store.Instant { return at }
	}
	e, err := pgengine.New(ctx, w.admin, tickonce.Config{Limits: tickonce.Limits{Runs: 1 << 20, Skips: 1 << 20}}, o)
	require.NoError(w.t, err)
	return e
}

// register registers schedules.
func (w *world) register(schedules []schedule) {
	w.t.Helper()
	e := w.engine(false)
	for _, s := range schedules {
		require.NoError(w.t, s.register(ctx, e.Engine, w.base.Grid))
	}
}

// order is an order of the test's own, with its job.
func (w *world) order(queue string, o tickonce.EnqueueOptions) (job tickonce.JobID) {
	w.t.Helper()
	e := w.engine(false)
	tx, err := w.admin.Begin(ctx)
	require.NoError(w.t, err)
	defer tx.Rollback(ctx)
	var n int64
	require.NoError(w.t, tx.QueryRow(ctx, "insert into "+quoted(w.base.App, "orders")+" default values returning n").Scan(&n))
	in, err := e.In(tx)
	require.NoError(w.t, err)
	job, err = in.Enqueue(ctx, queue, []byte(strconv.FormatInt(n, 10)), o)
	require.NoError(w.t, err)
	require.NoError(w.t, tx.Commit(ctx))
	return job
}

// now is what the server's clock says.
func (w *world) now() (at int64) {
	w.t.Helper()
	w.query("select floor(extract(epoch from clock_timestamp()) * 1000)::bigint", &at)
	return at
}

// behind counts the schedules that are still due at the instant.
func (w *world) behind(at int64) (n int) {
	w.t.Helper()
	w.query("select count(*) from "+w.table("schedule")+" where cursor <= $1 and paused = 0", &n, at)
	return n
}

// begin starts a process with the part, which has what all have.
func (w *world) begin(p part) *process {
	w.t.Helper()
	p.Conn, p.Schema, p.App, p.Grid = w.base.Conn, w.base.Schema, w.base.App, w.base.Grid
	return w.start(p)
}

// quiet returns when no session of a process is left: a statement goes on when
// who sent it was killed.
func (w *world) quiet() {
	w.t.Helper()
	for n := 1; n > 0; {
		w.query("select count(*) from pg_stat_activity where usename = $1", &n, w.role())
	}
}

func (w *world) role() string {
	config, err := pgx.ParseConfig(w.base.Conn)
	require.NoError(w.t, err)
	return config.User
}

// drain handles all jobs that are left.
func (w *world) drain() {
	w.t.Helper()
	e := w.engine(true)
	for _, queue := range queues {
		for {
			jobs, err := e.ClaimBatch(ctx, queue, "drain", 1000)
			require.NoError(w.t, err)
			if len(jobs) == 0 {
				break
			}
			ids, attempts := make([]int64, len(jobs)), make([]int, len(jobs))
			for i, j := range jobs {
				ids[i], attempts[i] = int64(j.ID), j.Attempt
			}
			w.exec("insert into "+quoted(w.base.App, "handled")+" select * from unnest($1::bigint[], $2::int[])", ids, attempts)
			acked, err := e.AckAll(ctx, jobs)
			require.NoError(w.t, err)
			require.NotContains(w.t, acked, false)
		}
	}
}

// judged is what happened, judged, once all processes have gone and all jobs are
// handled.
func (w *world) judged() (*account, verdict) {
	w.t.Helper()
	w.quiet()
	w.drain()
	a := readAccount(w.t, w.admin, w.base.Schema, w.base.App)
	return a, a.judge()
}
