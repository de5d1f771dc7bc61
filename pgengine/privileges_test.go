package pgengine

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
	"github.com/tickonce/tickonce/store"
)

// documented returns pools of the two roles that docs/POSTGRES.md describes, who
// were made by its statements, for a schema of the test's own.
func documented(t *testing.T) (owner, app *pgxpool.Pool, schema string) {
	t.Helper()
	text, err := os.ReadFile("../docs/POSTGRES.md")
	require.NoError(t, err)
	_, sql, found := strings.Cut(string(text), "\n## Privileges\n")
	require.True(t, found)
	_, sql, found = strings.Cut(sql, "\n```sql\n")
	require.True(t, found)
	sql, _, _ = strings.Cut(sql, "```")

	admin := pgtest.Pool(t)
	schema = pgtest.Schema(t)
	names := []string{pgtest.Name(t), pgtest.Name(t)}
	exec(t, admin, strings.NewReplacer("jobs_owner", names[0], "jobs_app", names[1], "tickonce", quoted(schema)).Replace(sql))
	for _, name := range names {
		t.Cleanup(func() { exec(t, admin, "drop owned by "+name+" cascade; drop role "+name) })
	}
	server := pgtest.Shared(t)
	return pgtest.Open(t, server.Config(t, names[0])), pgtest.Open(t, server.Config(t, names[1])), schema
}

// The privileges that are documented suffice, and those of the role that runs
// engines do not suffice for more. They hold for what later migrations make.
func TestDocumentedPrivileges(t *testing.T) {
	owner, app, schema := documented(t)
	for version := range len(twoSteps) {
		_, err := migrate(ctx, owner, schema, twoSteps[:version+1])
		require.NoError(t, err)
		require.NoError(t, check(ctx, app, schema, version+1))
	}
	for _, sql := range []string{
		"drop table %.two", "alter table %.two add x int", "truncate %.two", "create table %.three (n int)",
		"create function %.f() returns int language sql return 1", "drop schema % cascade", "create schema other",
	} {
		_, err := app.Exec(ctx, strings.ReplaceAll(sql, "%", pgx.Identifier{schema}.Sanitize()))
		require.ErrorContains(t, explain(err), "(SQLSTATE 42501)", sql)
	}
	_, err := migrate(ctx, app, schema, append(twoSteps, migration{3, "0003_more", "create table three (n int)"}))
	require.ErrorContains(t, err, "0003_more: ERROR: permission denied for schema")
	require.NoError(t, check(ctx, app, schema, 2), "nothing is half migrated")
}

// They suffice, too, where functions are not everybody's, and one that is missing
// shows at the start.
func TestDocumentedPrivilegesWhereFunctionsAreNotPublic(t *testing.T) {
	owner, app, schema := documented(t)
	exec(t, owner, "alter default privileges revoke execute on functions from public")
	_, err := Migrate(ctx, owner, schema)
	require.NoError(t, err)
	_, err = New(ctx, app, tickonce.Config{}, Options{Schema: schema})
	require.NoError(t, err)
	_, err = newStore(app, schema, store.Limits{}, nil).Acquire(ctx, "lock", "owner", 1000)
	require.NoError(t, err)
	exec(t, owner, "revoke execute on all functions in schema "+quoted(schema)+" from "+app.Config().ConnConfig.User)
	_, err = New(ctx, app, tickonce.Config{}, Options{Schema: schema})
	require.ErrorContains(t, err, `lacks execute on function instant; execute on function later: grant the role`)
}
