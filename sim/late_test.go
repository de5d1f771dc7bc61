package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The clock goes back after the runner's look and before its write: the loop
// compares it anew at its next slice (K5).
func TestK5ARunnerDoesNotSleepByAReadingBeforeATurn(t *testing.T) {
	r := passes(t, `simulate v1
engine   runners=2
run      1h quiet-after=40m
schedule a every=1m queue=q
at 10m   clock-jump runner=1 by=-10m point=between-read-and-write
`)
	require.Positive(t, r.Faults[0].Effect)
	require.LessOrEqual(t, r.Schedules[0].MaxLate, time.Second)
}

// The answer of the worker that asks until when there is nothing to claim is
// old when it comes, and no other job follows.
func TestAJobThatComesWhileItsWorkerAsksIsNotLeft(t *testing.T) {
	r := passes(t, `simulate v1
engine   queue-limit=1
run      1h
queue    q workers=1
schedule a every=1m queue=q handler=ok:50s
during 9m40s..10m30s store slow op=queues late=reply takes=20s
`)
	require.Positive(t, r.Faults[0].Effect)
	require.EqualValues(t, 59, r.Queues[0].Done)
}

// A row is repaired as of the reading at which it was listed, however late that
// comes: what has come due since is caught up (T11).
func TestT11ARepairMayComeLate(t *testing.T) {
	r := passes(t, `simulate v1
engine   standby=yes clock-repair=rearm
run      1h quiet-after=40m
schedule a every=5s queue=q
during 10m..15m clock-jump by=+20m
during 12m..18m store slow op=schedules late=reply takes=20s..30s
`)
	require.Positive(t, r.Faults[1].Effect)
	require.Positive(t, r.Schedules[0].FiredByRepair)
}

// While its clock stands in the pause before a retry, a runner is stepped and
// makes no call: that ends no tick.
func TestR1APauseBeforeARetryIsNoSuccess(t *testing.T) {
	r := passes(t, `simulate v1
engine   runners=2
run      1h quiet-after=40m
schedule a every=1m queue=q
during 9m59s..12m store error-burst runner=1 applied=no op=renew
during 10m50ms..11m clock-freeze runner=1
`)
	require.EqualValues(t, 4, r.Faults[0].Effect)
	require.NotEmpty(t, r.Excused)
}

// A refusal comes so late that by then nobody leads any more.
func TestI8ARefusalMayComeLate(t *testing.T) {
	r := passes(t, `simulate v1
engine   runners=2
run      1h quiet-after=40m
schedule a every=1m queue=q
at 9m    down runner=2 for=1m
at 10m10s down runner=1 for=5m
during 9m30s..11m store slow runner=2 op=acquire late=reply takes=30s
`)
	require.EqualValues(t, 1, r.Faults[2].Effect)
	require.NotEmpty(t, r.Excused)
}
