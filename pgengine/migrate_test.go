package pgengine

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
)

var ctx = context.Background()

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// twoSteps are migrations that fail when they are done twice.
var twoSteps = []migration{
	{1, "0001_one", "create table one (n int); insert into one values (1)"},
	{2, "0002_two", "alter table one add m int; create table two (n int)"},
}

// tables returns what is in the schema.
func tables(t *testing.T, pool *pgxpool.Pool, schema string) []string {
	t.Helper()
	rows, err := pool.Query(ctx, `select c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relkind = 'r' order by 1`, schema)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return found
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	_, err := pool.Exec(ctx, sql, args...)
	require.NoError(t, err)
}

func quoted(name ...string) string { return pgx.Identifier(name).Sanitize() }

func TestMigrate(t *testing.T) {
	pool, schema := pgtest.Pool(t), pgtest.Schema(t)
	applied, err := migrate(ctx, pool, schema, twoSteps[:1])
	require.NoError(t, err)
	require.Equal(t, []string{"0001_one"}, applied)

	applied, err = migrate(ctx, pool, schema, twoSteps)
	require.NoError(t, err)
	require.Equal(t, []string{"0002_two"}, applied)
	require.Equal(t, []string{"migration", "one", "two"}, tables(t, pool, schema))

	applied, err = migrate(ctx, pool, schema, twoSteps)
	require.NoError(t, err)
	require.Empty(t, applied)

	var names string
	require.NoError(t, pool.QueryRow(ctx, "select string_agg(version || name, ' ' order by version) from "+quoted(schema, "migration")).Scan(&names))
	require.Equal(t, "10001_one 20002_two", names)
}

// The pool is the user's: no connection keeps a setting of the migration's.
func TestMigrateLeavesTheSessionAsItWas(t *testing.T) {
	config := pgtest.Shared(t).Config(t, pgtest.Superuser)
	config.MaxConns = 1
	pool := pgtest.Open(t, config)
	state := func() (state string) {
		require.NoError(t, pool.QueryRow(ctx, `select current_setting('search_path') || ' ' || (
  select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid())`).Scan(&state))
		return state
	}
	before := state()
	_, err := migrate(ctx, pool, pgtest.Schema(t), twoSteps)
	require.NoError(t, err)
	require.Equal(t, before, state())
}

// Of migrators that begin together, one does each migration, and all find all
// of them done.
func TestMigrateManyAtOnce(t *testing.T) {
	const migrators = 20
	schema := pgtest.Schema(t)
	for _, isolation := range []string{"read committed", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			config := pgtest.Shared(t).Config(t, pgtest.Superuser)
			config.MaxConns = migrators
			config.ConnConfig.RuntimeParams["default_transaction_isolation"] = isolation
			pool := pgtest.Open(t, config)
			exec(t, pool, "drop schema if exists "+quoted(schema)+" cascade")

			var applied [migrators][]string
			var errs [migrators]error
			var wait sync.WaitGroup
			for i := range migrators {
				wait.Go(func() { applied[i], errs[i] = migrate(ctx, pool, schema, twoSteps) })
			}
			wait.Wait()
			done := map[string]int{}
			for i := range migrators {
				require.NoError(t, errs[i])
				for _, name := range applied[i] {
					done[name]++
				}
			}
			require.Equal(t, map[string]int{"0001_one": 1, "0002_two": 1}, done)
		})
	}
}

// A migration that fails leaves nothing of its own, and those before it are
// kept. The next call goes on where it failed.
func TestMigrateThatFails(t *testing.T) {
	failing := []migration{twoSteps[0], {2, "0002_two", "create table two (n int); insert into two values (1 / 0)"}}
	t.Run("in the second migration", func(t *testing.T) {
		pool, schema := pgtest.Pool(t), pgtest.Schema(t)
		applied, err := migrate(ctx, pool, schema, failing)
		require.EqualError(t, err, "pgengine: migrate: 0002_two: ERROR: division by zero (SQLSTATE 22012)")
		require.Equal(t, []string{"0001_one"}, applied)
		require.Equal(t, []string{"migration", "one"}, tables(t, pool, schema))

		applied, err = migrate(ctx, pool, schema, twoSteps)
		require.NoError(t, err)
		require.Equal(t, []string{"0002_two"}, applied)
	})
	t.Run("in the first", func(t *testing.T) {
		pool, schema := pgtest.Pool(t), pgtest.Schema(t)
		_, err := migrate(ctx, pool, schema, []migration{{1, "0001_two", failing[1].sql}})
		require.ErrorContains(t, err, "0001_two")
		var exists bool
		require.NoError(t, pool.QueryRow(ctx, "select exists (select from pg_namespace where nspname = $1)", schema).Scan(&exists))
		require.False(t, exists, "half a migration has made the schema")
	})
	t.Run("at its commit", func(t *testing.T) {
		pool, schema := pgtest.Pool(t), pgtest.Schema(t)
		deferred := "create table two (n int primary key, m int references two deferrable initially deferred); insert into two values (1, 2)"
		applied, err := migrate(ctx, pool, schema, []migration{twoSteps[0], {2, "0002_two", deferred}})
		require.ErrorContains(t, err, "SQLSTATE 23503")
		require.Equal(t, []string{"0001_one"}, applied)
		require.Equal(t, []string{"migration", "one"}, tables(t, pool, schema))
	})
	t.Run("by a commit of which nobody is told", func(t *testing.T) {
		proxy, schema := pgtest.Shared(t).Proxy(t), pgtest.Schema(t)
		pool := pgtest.Open(t, proxy.Config(t, pgtest.Superuser))
		proxy.Decide(func(sql string) pgtest.Verdict {
			if sql == "commit" {
				return pgtest.LoseReply
			}
			return pgtest.Pass
		})
		applied, err := migrate(ctx, pool, schema, twoSteps)
		require.ErrorContains(t, err, lost)
		require.Empty(t, applied)
		proxy.Decide(nil)
		applied, err = migrate(ctx, pool, schema, twoSteps)
		require.NoError(t, err)
		require.Equal(t, []string{"0002_two"}, applied)
	})
	t.Run("by the end of the context", func(t *testing.T) {
		pool, schema := pgtest.Pool(t), pgtest.Schema(t)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err := migrate(ended, pool, schema, twoSteps)
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, tables(t, pool, schema))
	})
}

func TestMigrateRefusesANewerSchema(t *testing.T) {
	pool, schema := pgtest.Pool(t), pgtest.Schema(t)
	_, err := migrate(ctx, pool, schema, twoSteps)
	require.NoError(t, err)
	_, err = migrate(ctx, pool, schema, twoSteps[:1])
	var version *VersionError
	require.ErrorAs(t, err, &version)
	require.Equal(t, VersionError{Schema: schema, Found: 2, Wanted: 1}, *version)
}

func TestMigrateRefusesASchemaWithAFunctionOrATypeOfOthers(t *testing.T) {
	for _, create := range []string{"function %.f() returns int language sql return 1", "domain %.d as int"} {
		pool, schema := pgtest.Pool(t), pgtest.Schema(t)
		exec(t, pool, "create schema "+quoted(schema))
		exec(t, pool, "create "+strings.ReplaceAll(create, "%", quoted(schema)))
		_, err := migrate(ctx, pool, schema, twoSteps)
		require.ErrorContains(t, err, "holds what others have made", create)
		require.Empty(t, tables(t, pool, schema))
	}
}

// A schema that holds anything else is left as it is, even a table of the name
// that the versions have.
func TestMigrateRefusesTheSchemaOfOthers(t *testing.T) {
	for _, others := range []string{"report (id int)", "migration (id int, version text)", "migration (version int, at timestamptz)"} {
		pool, schema := pgtest.Pool(t), pgtest.Schema(t)
		exec(t, pool, "create schema "+quoted(schema))
		exec(t, pool, "create table "+quoted(schema)+"."+others)
		if strings.Contains(others, "version int") {
			exec(t, pool, "insert into "+quoted(schema, "migration")+" values (2, now())") // as if nothing were to do
		}
		_, err := migrate(ctx, pool, schema, twoSteps)
		require.ErrorContains(t, err, "holds what others have made: name one that does not exist, or is empty")
		name, _, _ := strings.Cut(others, " ")
		require.Equal(t, []string{name}, tables(t, pool, schema))
	}
}

func TestMigrateTakesAnyName(t *testing.T) {
	pool := pgtest.Pool(t)
	for _, name := range []string{
		"Upper", "select", "a b", `"`, `"; drop schema public; --`, "'", `\`, "$1", "a.b", "ü漢🙂", " ", "\n", "public, pg_temp",
		strings.Repeat("x", maxIdentifier), strings.Repeat("é", 31) + "x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { exec(t, pool, "drop schema "+quoted(name)+" cascade") })
			applied, err := migrate(ctx, pool, name, twoSteps)
			require.NoError(t, err)
			require.Len(t, applied, 2)
			require.Equal(t, []string{"migration", "one", "two"}, tables(t, pool, name))
		})
	}
	require.Empty(t, tables(t, pool, "public"))
}

func TestMigrateRefusesNames(t *testing.T) {
	pool := pgtest.Pool(t)
	for name, problem := range map[string]string{
		"a\x00b":                             "is no UTF-8 text without NUL",
		"\xff":                               "is no UTF-8 text without NUL",
		strings.Repeat("é", 32):              "is of 64 bytes, at most 63 are allowed",
		"pg_catalog":                         "begins with \"pg_\", as PostgreSQL's own do",
		"$user":                              "stands for another schema in a search path",
		strings.Repeat("x", maxIdentifier+1): "is of 64 bytes, at most 63 are allowed",
	} {
		_, err := migrate(ctx, pool, name, twoSteps)
		require.ErrorContains(t, err, "pgengine: migrate: the name of a schema "+problem)
	}
	schema, err := checkedSchema("")
	require.NoError(t, err)
	require.Equal(t, "tickonce", schema)
}

func TestMigrationFiles(t *testing.T) {
	read, err := readMigrations(fstest.MapFS{
		"migrations/0002_more.sql":   {Data: []byte("more")},
		"migrations/0001_tables.sql": {Data: []byte("tables")},
		"migrations/README.md":       {},
	})
	require.NoError(t, err)
	require.Equal(t, []migration{{1, "0001_tables", "tables"}, {2, "0002_more", "more"}}, read)

	for _, names := range [][]string{{"0001_a", "0003_b"}, {"0001_a", "0001_b"}, {"0000_a"}, {"1_a"}} {
		files := fstest.MapFS{}
		for _, name := range names {
			files["migrations/"+name+".sql"] = &fstest.MapFile{}
		}
		_, err := readMigrations(files)
		require.ErrorContains(t, err, "does not begin with", names)
	}
}

func TestVersionErrorSaysWhatToDo(t *testing.T) {
	for err, text := range map[VersionError]string{
		{"jobs", 0, 2}: `schema "jobs" has no tables of tickonce: call pgengine.Migrate, or name the schema that has them`,
		{"jobs", 1, 2}: `schema "jobs" is of version 1, older than the version 2 of this program: call pgengine.Migrate`,
		{"jobs", 3, 2}: `schema "jobs" is of version 3, newer than the version 2 of this program: run a newer program`,
	} {
		require.EqualError(t, &err, text)
	}
}
