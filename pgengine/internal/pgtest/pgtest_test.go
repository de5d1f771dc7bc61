package pgtest_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
)

var ctx = context.Background()

// ending tells a test process that this one starts how it is to end.
const ending = "PGTEST_ENDING"

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestTheServerRunsWithoutTCP(t *testing.T) {
	var addresses, fsync string
	row := pgtest.Pool(t).QueryRow(ctx, "select current_setting('listen_addresses'), current_setting('fsync')")
	require.NoError(t, row.Scan(&addresses, &fsync))
	require.Equal(t, []string{"", "off"}, []string{addresses, fsync})
}

func TestSchemaIsATestsOwnAndIsDropped(t *testing.T) {
	pool := pgtest.Pool(t)
	count := func() (n int) {
		require.NoError(t, pool.QueryRow(ctx, "select count(*) from pg_namespace where nspname like 'test\\_%'").Scan(&n))
		return n
	}
	require.Zero(t, count())
	t.Run("of a schema", func(t *testing.T) {
		one, other := pgtest.Schema(t), pgtest.Schema(t)
		require.NotEqual(t, one, other)
		_, err := pool.Exec(ctx, "do $do$ begin execute format('create schema %I create table rows (n int)', "+quote(one)+"); end $do$")
		require.NoError(t, err)
		require.Equal(t, 1, count())
	})
	require.Zero(t, count())
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func TestRoleMayNothingAndIsDropped(t *testing.T) {
	pool := pgtest.Pool(t)
	t.Run("of a role", func(t *testing.T) {
		limited := pgtest.Open(t, pgtest.Shared(t).Config(t, pgtest.Role(t)))
		_, err := limited.Exec(ctx, "create schema anything")
		require.ErrorContains(t, err, "permission denied")
	})
	var n int
	require.NoError(t, pool.QueryRow(ctx, "select count(*) from pg_roles where rolname like 'test\\_%'").Scan(&n))
	require.Zero(t, n)
}

// What was committed outlasts a kill, and the connections do not.
func TestKillAndRunAServerOfItsOwn(t *testing.T) {
	server := pgtest.Start(t, "max_connections = 17")
	pool := server.Pool(t)
	_, err := pool.Exec(ctx, "create table rows as select current_setting('max_connections')::int as n")
	require.NoError(t, err)
	held, err := pool.Acquire(ctx)
	require.NoError(t, err)
	defer held.Release()

	server.Kill(t)
	_, err = server.Pool(t).Exec(ctx, "select")
	require.Error(t, err)
	server.Run(t)

	_, err = held.Exec(ctx, "select")
	require.Error(t, err)
	var n int
	require.NoError(t, server.Pool(t).QueryRow(ctx, "select n from rows").Scan(&n))
	require.Equal(t, 17, n)
}

// However a process of tests ends, its server and its folder are gone. The
// watcher has the process's stderr, so that whose end is waited for.
func TestNothingIsLeftBehind(t *testing.T) {
	for _, how := range []string{"passed", "panicked", "killed"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestEnding$")
			cmd.Env = append(cmd.Environ(), ending+"="+how)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			stdin, err := cmd.StdinPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())

			out := bufio.NewReader(stdout)
			folder, err := out.ReadString('\n')
			require.NoError(t, err, folder)
			folder = strings.TrimSpace(folder)
			conn, err := pgx.Connect(ctx, "host="+folder+" port=5432 user="+pgtest.Superuser)
			require.NoError(t, err)
			defer conn.Close(ctx)

			require.NoError(t, stdin.Close())
			_, err = io.ReadAll(out)
			require.NoError(t, err)
			require.Equal(t, how == "passed", cmd.Wait() == nil, &stderr)
			require.NoDirExists(t, folder)
			require.NotContains(t, stderr.String(), "pg_ctl")
			_, err = conn.Exec(ctx, "select")
			require.Error(t, err, "the server still runs")
		})
	}
}

// TestEnding is what the processes that are ended do.
func TestEnding(t *testing.T) {
	how := os.Getenv(ending)
	if how == "" {
		return
	}
	folder := pgtest.Shared(t).Config(t, pgtest.Superuser).ConnConfig.Host
	require.DirExists(t, folder)
	os.Stdout.WriteString(folder + "\n")
	io.ReadAll(os.Stdin)
	switch how {
	case "panicked":
		panic("on purpose")
	case "killed":
		self, err := os.FindProcess(os.Getpid())
		require.NoError(t, err)
		require.NoError(t, self.Kill())
		select {}
	}
}
