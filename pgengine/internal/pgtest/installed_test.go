package pgtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewestIsTheHighestVersionWithAServer(t *testing.T) {
	root := t.TempDir()
	_, err := newest(root)
	require.ErrorIs(t, err, errNotInstalled)
	require.ErrorContains(t, err, "scripts/setup")

	install := func(version string, programs ...string) {
		bin := filepath.Join(root, version, "bin")
		require.NoError(t, os.MkdirAll(bin, 0o755))
		for _, program := range programs {
			require.NoError(t, os.WriteFile(filepath.Join(bin, program), nil, 0o755))
		}
	}
	install("9.6", "initdb", "pg_ctl", "postgres")
	install("15", "initdb", "pg_ctl", "postgres")
	install("17", "pg_dump", "psql") // a client alone
	bin, err := newest(root)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(root, "15", "bin"), bin)
}
