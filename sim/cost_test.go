package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/store"
)

func TestCost(t *testing.T) {
	for _, c := range []struct {
		name, text string
		costs      []Cost
	}{
		{
			"down: the cap fires late, the rest is skipped, over all schedules",
			"engine standby=yes\nrun 1d\nschedule a every=10m queue=q\nschedule b every=1h queue=q catch-up=latest\nat 1h5m down for=15h",
			[]Cost{{Due: 105, Late: 65, Skipped: 40}},
		},
		{
			"one is due as the outage begins, and one as it ends, which is on time",
			"run 1h\nschedule a every=10m queue=q\nat 10m down for=20m",
			[]Cost{{Due: 3, OnTime: 1, Late: 2}},
		},
		{
			"of two outages each has its own part of one catching up",
			"run 1h\nschedule a every=1m queue=q\nat 10m30s down for=5m\nat 12m30s down for=7m",
			[]Cost{{Due: 5, Late: 5}, {Due: 7, Late: 7}},
		},
		{
			"a short outage within a long one",
			"run 1h\nschedule a every=1m queue=q\nat 10m30s down for=20m\nat 12m30s down for=1m",
			[]Cost{{Due: 20, Late: 20}, {Due: 1, Late: 1}},
		},
		{
			"another process takes over",
			"engine runners=2 lease=10s standby=yes\nrun 1h\nschedule a every=1m queue=q\nat 10m30s crash runner=1 after=5m",
			[]Cost{{Due: 5, OnTime: 5}},
		},
		{
			"after errors of the store have ended the runner, a restart catches up",
			"run 30m\nschedule a every=1m queue=q\nat 10m30s store error-burst applied=no for=1m\nat 12m30s down runner=1 for=1m",
			[]Cost{{}, {Due: 1, Late: 1}},
		},
		{
			"it lasts until the end of the run",
			"run 30m\nschedule a every=1m queue=q\nat 10m30s down for=19m30s",
			[]Cost{{Due: 20, OnTime: 1, Late: 19}},
		},
		{
			"a restart from nothing does not know what came due",
			"run 1h\nschedule a every=10m queue=q anchor=2026-01-01T00:00:00Z\nat 15m crash restart=empty after=30m",
			[]Cost{{Due: 3, Forgotten: 3}},
		},
		{
			"a restart from a snapshot fires again what it forgot, and then what came due",
			"engine snapshot-every=15m30s\nrun 1h\nschedule a every=1m queue=q\nat 20m30s crash restart=snapshot after=5m",
			[]Cost{{Due: 5, Late: 5, FiredAgain: 5}},
		},
		{
			"what was skipped before the restart forgot it, and fires after it, does not fire again",
			"engine snapshot-every=15m15s\nrun 25m\nschedule a every=1m queue=q catch-up=latest\nat 15m30s down for=3m\nat 20m30s crash restart=snapshot after=1m",
			[]Cost{{Due: 3, Late: 1, Skipped: 2}, {Due: 1, Late: 1}},
		},
		{
			"a boundary of a new grid has not fired before",
			"run 1h\nschedule a every=1m queue=q\nat 20m10s clock-jump by=-10m\nat 20m30s crash restart=empty after=15s",
			[]Cost{{}, {}},
		},
		{
			"a clock that is ahead for a while",
			"run 12h\nschedule a every=10m queue=q\nschedule b every=5h queue=q\nat 1h5m clock-jump by=+8h for=20m",
			[]Cost{{FiredEarly: 51, MaxEarly: 8 * time.Hour, Silence: 8*time.Hour + 10*time.Minute, Silent: "a"}},
		},
		{
			"a clock that steps back, and is never right again: silent until the end",
			"run 2h\nschedule a every=10m queue=q\nat 1h5m clock-jump by=-8h",
			[]Cost{{Silence: time.Hour, Silent: "a"}},
		},
		{
			"a repaired clock",
			"engine clock-repair=rearm\nrun 12h\nschedule a every=10m queue=q\nat 1h5m clock-jump by=+8h for=20m",
			[]Cost{{FiredEarly: 50, MaxEarly: 8 * time.Hour, FiredAgain: 48}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Run(*parsed(t, "simulate v1\n"+c.text+"\n"))
			require.NoError(t, err)
			require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
			var costs []Cost
			for _, f := range r.Faults {
				costs = append(costs, f.Cost)
			}
			require.Equal(t, c.costs, costs)
		})
	}
}

// TestBoundariesLeft: once its only runner has ended, nothing of a schedule fires
// any more.
func TestBoundariesLeft(t *testing.T) {
	r, err := Run(*parsed(t, `simulate v1
run 1h
schedule a every=1m queue=q
during 10m..11m store error-burst applied=no
`))
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	require.EqualValues(t, 9, r.Schedules[0].Fired)
	require.EqualValues(t, 51, r.Schedules[0].Left)
}

// TestFiredAgainHasItsReason: after a repair of the clock it is one, after a
// restart from an older state the other.
func TestFiredAgainHasItsReason(t *testing.T) {
	r, err := Run(*parsed(t, `simulate v1
engine clock-repair=rearm snapshot-every=50m
run 3h
schedule a every=1m queue=q
at 10m30s clock-jump by=+1h for=2m
at 110m30s crash restart=snapshot after=1s
`))
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	require.EqualValues(t, 60, r.Schedules[0].FiredByRepair, "13 to 72")
	require.EqualValues(t, 11, r.Schedules[0].FiredAgain, "100 to 110")
}

// TestCostsAddUp: whatever happens, what came due during an outage has one fate,
// and what fired again is charged to some fault.
func TestCostsAddUp(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		s := drawScenario(seed)
		r, err := Run(s)
		require.NoError(t, err)
		var again, charged int64
		for _, f := range r.Faults {
			c := f.Cost
			require.Equal(t, c.Due, c.OnTime+c.Late+c.Skipped+c.Forgotten+c.Left, "seed %d: %s", seed, f.Text)
			charged += c.FiredAgain
		}
		for _, s := range r.Schedules {
			again += s.FiredAgain + s.FiredByRepair
		}
		require.Equal(t, again, charged, "seed %d", seed)
	}
}

// TestBoundaries compares the runs with a plain list.
func TestBoundaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var runs boundaries
		var list []store.Instant
		for _, n := range rapid.SliceOf(rapid.Int64Range(0, 30)).Draw(t, "boundaries") {
			at := store.Instant(7 * n)
			require.Equal(t, slices.Contains(list, at), runs.add(at, 7))
			list = append(list, at)
		}
	})
}

// TestRestartsTellWhatTheyForgot: jobs that an older state does not have are
// counted by whether they were done.
func TestRestartsTellWhatTheyForgot(t *testing.T) {
	r, err := Run(*parsed(t, `simulate v1
engine snapshot-every=16m
run 1h
schedule quick every=5m queue=quick
schedule slow  every=5m queue=slow handler=ok:4m visibility=10m
schedule dead  every=5m queue=dead handler=fail attempts=1
at 26m crash restart=snapshot after=1m
`))
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	counts := map[string][2]int64{}
	for _, q := range r.Queues {
		counts[q.Name] = [2]int64{q.DoneForgotten, q.Lost}
	}
	// The snapshot does not have the jobs of minute 20, which is done, and 25.
	require.Equal(t, map[string][2]int64{"quick": {2, 0}, "slow": {1, 1}, "dead": {0, 2}}, counts)
	for _, s := range r.Schedules {
		require.EqualValues(t, 2, s.FiredAgain, s.Name)
	}
}

func TestDeadJobsHaveAReason(t *testing.T) {
	r, err := Run(*parsed(t, `simulate v1
run 1h
schedule fails  every=30m queue=fails  handler=fail attempts=2 backoff=1s
schedule lapses every=30m queue=lapses handler=slow heartbeat=1h attempts=2 visibility=1m backoff=1s
schedule waits  every=10m queue=waits  handler=ok:30m expires=5m visibility=1h
`))
	require.NoError(t, err)
	reasons := map[string]map[string]int64{}
	for _, q := range r.Queues {
		reasons[q.Name] = q.DeadReasons
	}
	require.Equal(t, map[string]map[string]int64{"fails": {"failed": 1}, "lapses": {"lapsed": 1}, "waits": {"expired": 2}}, reasons)
}
