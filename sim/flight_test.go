package sim

import (
	"fmt"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// What the store's faults make of one process that runs a schedule of five
// minutes with a lease of a minute: it renews every 20 s, and before each tick.
func TestStoreFaultsOfACall(t *testing.T) {
	for _, c := range []struct {
		name, fault, marks string
		effect             int64
		late               time.Duration
	}{
		{
			"two renewals are lost, and retried", "during 14m..14m200ms store error-burst op=renew applied=no",
			"sometimes:unknown-not-applied sometimes:renewal-lost-yet-kept", 2, 0,
		},
		{
			"renewals are done, and their replies lost", "during 14m..14m200ms store error-burst op=renew applied=yes",
			"sometimes:unknown-applied sometimes:renewal-lost-yet-kept", 2, 0,
		},
		{
			"other calls than those that are due", "during 14m..14m30s store error-burst op=advance applied=no", "", 0, 0,
		},
		{
			"reads are told late, all of one tick", "during 14m50s..15m30s store slow takes=5s late=reply op=due", "", 2, 5 * time.Second,
		},
		{
			"writes are late", "during 14m50s..16m store slow takes=7s late=request op=advance", "", 1, 7 * time.Second,
		},
		{
			"a write is done at once, and told late", "during 14m50s..16m store slow takes=7s late=reply op=advance", "", 1, 0,
		},
		{
			"a renewal comes after the lease", "during 14m..14m55s store slow takes=50s late=request op=renew",
			"sometimes:late-renewal-refused sometimes:lease-lapsed", 1, 0,
		},
		{
			"a write comes after the lease", "during 14m50s..17m store slow takes=61s late=request op=advance",
			"sometimes:stale-write-refused sometimes:lease-lapsed", 2, 2 * time.Minute, // again at 16m1s, under a lease until 17m1s
		},
		{
			"what is on its way when the fault ends arrives then", "during 14m50s..15m10s store slow takes=61s late=request op=advance", "", 1, 10 * time.Second,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "simulate v1\nengine standby=yes\nrun 1h quiet-after=30m\nschedule a every=5m queue=q\n" + c.fault +
				"\nexpect a.fires=12 no-double-fire " + c.marks + "\n"
			r := passes(t, text)
			require.Equal(t, c.effect, r.Faults[0].Effect)
			require.Equal(t, c.late, r.Schedules[0].MaxLate)
		})
	}
}

// A partition is a burst of errors of one process: its lease lapses, and the
// other one takes the lead.
func TestPartition(t *testing.T) {
	const partition = `simulate v1
engine   runners=2 standby=yes
run      1h quiet-after=30m
schedule a every=1m queue=q
during 10m30s..20m30s store error-burst applied=no runner=%d
expect   no-double-fire a.fires=60
`
	r := passes(t, fmt.Sprintf(partition, 1)+"expect sometimes:leader-changed\n")
	require.Greater(t, r.Faults[0].Effect, int64(10*60/5))
	require.Equal(t, 20*time.Second, r.Schedules[0].MaxLate, "renewed at 10m20s for a minute, the other one asks every 5 s")

	r = passes(t, fmt.Sprintf(partition, 2))
	require.Zero(t, r.Schedules[0].MaxLate)
	require.Zero(t, r.Coverage.counts[leaderChanged].reached)
}

// The processes of a slow store crash while requests and replies are on their
// way; what comes of a dead one's request is done or lost, and nothing twice.
func TestCrashesInFlight(t *testing.T) {
	var all Coverage
	for seed := range uint64(20) {
		s := parsed(t, `simulate v1
engine   runners=2 standby=yes ties=seeded
run      1h quiet-after=40m
schedule a every=5s queue=q handler=ok:1s..2s
during 5m..35m store slow takes=1s..20s
at 10m1s crash runner=1 after=10s
at 15m2s crash runner=2 after=90s
at 20m3s crash restart=journal after=30s
at 25m4s down for=10s
expect   no-double-fire
`)
		s.Engine.Seed = seed
		r, err := Run(*s)
		require.NoError(t, err)
		require.Equal(t, Pass, r.Verdict, "seed %d: %+v", seed, r.Failures)
		again, err := Run(*s)
		require.NoError(t, err)
		require.Equal(t, r.Outcome(), again.Outcome())
		all.Add(&r.Coverage)
	}
	for _, m := range []mark{crashMidRequest, crashMidReply, orphanApplied} {
		require.Positive(t, all.counts[m].reached, catalogue[m].id)
	}
}

// A crash waits for a request or a reply to be on its way, by the word.
func TestPointMidCall(t *testing.T) {
	for point, m := range map[string]mark{"mid-request": crashMidRequest, "mid-reply": crashMidReply} {
		r := passes(t, `simulate v1
engine   standby=yes
run      1h quiet-after=40m
schedule a every=5s queue=q
at 5m crash runner=1 after=10s point=`+point+`
during 10m..20m store slow takes=2s late=`+point[len("mid-"):]+`
expect   no-double-fire
`)
		require.EqualValues(t, 1, r.Faults[0].Effect, point)
		require.EqualValues(t, 1, r.Coverage.counts[m].reached, point)
		require.LessOrEqual(t, r.Faults[0].Cost.Due, int64(3))
	}
}

// TestPanicInFlight: a panic in a step that waited is a failure as any other.
func TestPanicInFlight(t *testing.T) {
	s := parsed(t, calmHour+"during 1m..50m store slow takes=1s\n")
	r := run(s, rig{budget: maxEvents, below: func(s store.Store) store.Store {
		return liar{Store: s, settle: func(store.Store, []store.Settle, []bool) (store.Instant, error) { panic("no reason") }}
	}})
	require.Equal(t, Safety, r.Verdict)
	require.Len(t, r.Failures, 1)
	require.Regexp(t, `^no reason, in sim\.\S+ \(flight_test\.go:\d+\) < .* < tickonce\.\(\*Worker\)\.settle \(worker\.go:\d+\).*; seed 0$`, r.Failures[0].Detail)
}

// TestARunLeavesNoGoroutines: whatever waited, was abandoned or had no step to
// take ends with the run.
func TestARunLeavesNoGoroutines(t *testing.T) {
	require.Empty(t, coroutines())
	for _, fault := range []string{
		"during 10m..50m store slow takes=1s..20s",
		"during 10m..50m store slow takes=1s..20s\nat 30m crash runner=1 after=1m point=mid-request",
		"during 10m..50m store slow takes=1s..20s\nat 30m5s down for=1m runner=1\nat 35m3s down for=1m runner=2",
		"during 59m..1h store slow takes=1h late=request",
	} {
		s := parsed(t, "simulate v1\nengine runners=2 standby=yes\nrun 1h\nschedule a every=1m queue=q\n"+fault+"\n")
		w := newWorld(s, rig{budget: maxEvents})
		w.run()
		require.NotEmpty(t, w.idle, fault)
		require.Empty(t, coroutines(), fault)
	}
}

// coroutines is the stacks of the goroutines that iter.Pull began and that
// have not ended. Goroutines of others come and go while a test runs.
func coroutines() []string {
	stacks := make([]byte, 1<<20)
	return regexp.MustCompile(`(?s)[^\n]*created by iter\.Pull.*?\n`).FindAllString(string(stacks[:runtime.Stack(stacks, true)]), -1)
}
