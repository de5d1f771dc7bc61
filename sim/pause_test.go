package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestL6PausedLeaderWritesNothing: a leader stands still between the read and
// the write of its tick for longer than its lease; the other one fires what it
// had planned, and its own write is refused.
func TestL6PausedLeaderWritesNothing(t *testing.T) {
	r := passes(t, `simulate v1
engine   runners=2 standby=yes
run      2h quiet-after=1h
schedule a every=5m queue=q
at 12m pause runner=1 for=70s point=between-read-and-write
expect   no-double-fire a.fires=24 a.skipped=0 sometimes:leader-changed sometimes:two-leaders
expect   sometimes:stale-write-refused sometimes:paused-leader-refused
`)
	require.EqualValues(t, 1, r.Faults[0].Effect)
	// Read at 15m under a lease renewed at most 20 s before, so the other one
	// leads within 60 s and its 5 s of standing by.
	require.Equal(t, Cost{Due: 1, Late: 1}, r.Faults[0].Cost)
	require.LessOrEqual(t, r.Schedules[0].MaxLate, 65*time.Second)
	require.Greater(t, r.Schedules[0].MaxLate, 40*time.Second)
}

// A shorter pause than the rest of the lease delays the write, which is good.
func TestPauseWithinTheLeaseIsOnlyLate(t *testing.T) {
	r := passes(t, `simulate v1
engine   runners=2 standby=yes
run      2h quiet-after=1h
schedule a every=5m queue=q
at 12m pause runner=1 for=30s point=between-read-and-write
expect   no-double-fire a.fires=24
`)
	require.Equal(t, 30*time.Second, r.Schedules[0].MaxLate)
	require.Zero(t, r.Coverage.counts[leaderChanged].reached)
	require.Zero(t, r.Coverage.counts[staleWriteRefused].reached)
}

// What falls into a pause comes after it: boundaries, and the ends of handlers,
// which may be too late for their claims.
func TestPauseHoldsUpEverything(t *testing.T) {
	r := passes(t, `simulate v1
run      2h quiet-after=1h
schedule a every=10m queue=q handler=ok:1m visibility=5m
at 10m30s pause for=6m
expect   a.fires=12 sometimes:ack-refused sometimes:claim-reclaimed
`)
	require.Zero(t, r.Schedules[0].MaxLate)
	require.EqualValues(t, 13, r.Queues[0].Claims)

	r = passes(t, `simulate v1
run      2h quiet-after=1h
schedule a every=10m queue=q handler=ok:1m visibility=5m
during 19m..41m pause
expect   a.fires=12
`)
	require.Equal(t, Cost{Due: 3, Late: 3}, r.Faults[0].Cost)
	require.Equal(t, 21*time.Minute, r.Schedules[0].MaxLate)
	require.EqualValues(t, 12, r.Queues[0].Claims)
}

// A process that is paused can only be killed: its lease stays until it lapses.
func TestPausedProcessIsKilled(t *testing.T) {
	const stopped = `simulate v1
engine   standby=yes
run      1h quiet-after=30m
schedule a every=1m queue=q
`
	const down = "at 10m30s down runner=1 for=1s\n"
	require.Zero(t, passes(t, stopped+down).Schedules[0].MaxLate)
	r := passes(t, stopped+"at 10m20s pause for=10m\n"+down)
	require.Greater(t, r.Schedules[0].MaxLate, time.Second)
	require.Less(t, r.Schedules[0].MaxLate, time.Minute, "the pause ended with the process")
}

// TestPoint: a fault that waits for its point strikes there, once, and never
// where it does not come in time.
func TestPoint(t *testing.T) {
	const every5m = "simulate v1\nengine standby=yes runners=2\nschedule a every=5m queue=q\n"
	for _, c := range []struct {
		name, text string
		effect     int64
		crashed    bool // between read and write
	}{
		{"the crash of whoever comes first", "run 1h quiet-after=30m\nat 7m crash restart=journal after=1s point=between-read-and-write\n", 1, true},
		{"the crash of one that does not lead", "run 1h quiet-after=30m\nat 7m crash runner=2 after=1s point=between-read-and-write\n", 0, false},
		{"the crash of the leader", "run 1h quiet-after=30m\nat 7m crash runner=1 after=1s point=between-read-and-write\n", 1, true},
		{"until the quiet, its end included", "run 1h quiet-after=10m\nat 7m crash restart=journal point=between-read-and-write\n", 1, true},
		{"past the quiet", "run 1h quiet-after=10m\nat 7m crash restart=journal after=1ms point=between-read-and-write\n", 0, false},
		{"without a quiet, as long as the run", "run 1h\nat 7m crash restart=journal after=50m point=between-read-and-write\n", 1, true},
		{"past the end of the run", "run 1h\nat 7m crash restart=journal after=50m1ms point=between-read-and-write\n", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := passes(t, every5m+c.text)
			require.Equal(t, c.effect, r.Faults[0].Effect)
			require.Equal(t, c.crashed, r.Coverage.reached(crashMidTick))
		})
	}
}

// Two faults may wait for the same point, and both strike there.
func TestPointOfTwoFaults(t *testing.T) {
	r := passes(t, `simulate v1
engine   standby=yes
run      1h quiet-after=30m
schedule a every=5m queue=q
at 7m clock-jump by=-1m point=between-read-and-write
at 8m clock-jump by=+1m point=between-read-and-write
`)
	require.EqualValues(t, 1, r.Faults[0].Effect)
	require.EqualValues(t, 1, r.Faults[1].Effect)
	require.Zero(t, r.Schedules[0].MaxLate, "the clock is right again before anything happens")
}

// passes runs a scenario that passes.
func passes(t *testing.T, text string) *Result {
	t.Helper()
	r, err := Run(*parsed(t, text))
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%+v %v", r.Failures, r.Unmet)
	return r
}
