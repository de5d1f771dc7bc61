package sim

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestD4ALogThatGaveWayLosesNothing: the log is kept short by a newer base, and a
// restart from the journal opens in the state that was left all the same.
func TestD4ALogThatGaveWayLosesNothing(t *testing.T) {
	s := parsed(t, calmHour)
	w := newWorld(s, rig{budget: maxEvents})
	w.disk.kept = true
	w.run()
	left := w.truth.bytes()
	require.NotEmpty(t, w.disk.log)

	w.disk.log = append(w.disk.log, make([]byte, shortLog)...)
	w.disk.base = make([]byte, len(w.disk.log))
	w.compact()
	require.NotEmpty(t, w.disk.log, "it is no longer than its base")
	w.disk.base = nil
	w.compact()
	require.Empty(t, w.disk.log)
	w.close(FromJournal)
	w.open()
	require.Empty(t, w.failures)
	require.True(t, bytes.Equal(left, w.truth.bytes()))
}

// TestRestartsLoseWhatTheySay: overlapping restarts lose as much as the worst of
// them.
func TestRestartsLoseWhatTheySay(t *testing.T) {
	const text = `simulate v1
engine standby=yes snapshot-every=7m
run 1h
schedule a every=1m queue=q anchor=2026-01-01T00:00:00Z
`
	for _, c := range []struct {
		name, faults     string
		fires, forgotten int64
	}{
		{"journal", "at 30m30s crash restart=journal after=1s\n", 60, 0},
		{"snapshot", "at 30m30s crash restart=snapshot after=1s\n", 63, 3},
		{"snapshot before the first", "at 6m30s crash restart=snapshot after=1s\n", 60, 6},
		{"empty", "at 30m30s crash restart=empty after=1s\n", 60, 30},
		{"empty, within an outage", "at 30m30s down for=1m\nat 31m crash restart=empty after=1s\n", 59, 30},
		{"empty, then journal while it is away", "at 30m30s crash restart=empty after=1m\nat 31m crash restart=journal after=1s\n", 59, 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Run(*parsed(t, text+c.faults))
			require.NoError(t, err)
			require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
			require.Equal(t, c.fires, r.Schedules[0].Fired)
			require.Equal(t, c.forgotten, r.Queues[0].DoneForgotten)
		})
	}
}
