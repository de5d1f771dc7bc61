package pgtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// shared is the server of all tests of the process.
var shared struct {
	once   sync.Once
	server *Server
	err    error
	names  atomic.Int64
}

// Main runs the tests and removes their server; it returns the exit code.
func Main(m *testing.M) int {
	code := m.Run()
	shared.once.Do(func() {})
	if shared.server == nil {
		return code
	}
	if err := shared.server.close(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest: the server of the tests:", err)
		return 1
	}
	return code
}

// Shared is the server of all tests of the process. It must not be stopped.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = start(nil) })
	require.NoError(t, shared.err)
	return shared.server
}

// Pool is a pool of the superuser's connections to the shared server.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Shared(t).Pool(t)
}

// Name returns a plain name that no other test has, for a role or a schema.
func Name(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("test_%d", shared.names.Add(1))
}

// Schema returns the name of a schema on the shared server that no other test
// has. It is not made, but dropped with all its content when the test ends. In
// its name are what SQL has to quote.
func Schema(t testing.TB) string {
	t.Helper()
	schema := Name(t) + ` "It's" $1; --`
	conn, err := pgx.ConnectConfig(context.Background(), Shared(t).Config(t, Superuser).ConnConfig)
	require.NoError(t, err)
	t.Cleanup(func() {
		defer conn.Close(context.Background())
		_, err := conn.Exec(context.Background(), "drop schema if exists "+pgx.Identifier{schema}.Sanitize()+" cascade")
		require.NoError(t, err)
	})
	return schema
}

// Role makes a role on the shared server that may log in and nothing else, and
// drops it, with what it owns and was granted, when the test ends.
func Role(t testing.TB) string {
	t.Helper()
	role := Name(t)
	do := func(statements ...string) {
		conn, err := pgx.ConnectConfig(context.Background(), Shared(t).Config(t, Superuser).ConnConfig)
		require.NoError(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(context.Background(), strings.Join(statements, "; "))
		require.NoError(t, err)
	}
	do("create role " + role + " login")
	t.Cleanup(func() { do("drop owned by "+role+" cascade", "drop role "+role) })
	return role
}
