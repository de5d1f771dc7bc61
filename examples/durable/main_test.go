package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
)

// Runs at uneven times, one of them killed in the middle of a write, do each
// minute's report once.
func TestEachRunDoesWhatBecameDueSinceTheLast(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	mock := clock.NewMock()
	at := func(hour, minute, second int) string {
		mock.Set(time.Date(2026, time.March, 1, hour, minute, second, 0, time.UTC))
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), dir, tickonce.Config{Clock: mock}, &out))
		return out.String()
	}
	require.Empty(t, at(12, 0, 30), "the first boundary is to come")
	require.Equal(t, "report of 12:01:00\nreport of 12:02:00\n", at(12, 2, 10))
	require.Empty(t, at(12, 2, 20))

	log := filepath.Join(dir, "log-00000001")
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.WriteString("half a record")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Regexp(t, `^\S*log-00000001: cut off 13 bytes at \d+: ends within the frame of a record\nreport of 12:03:00\n$`, at(12, 3, 0))
}
