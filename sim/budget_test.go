package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// TestBudget: a run that takes too many events is broken off.
func TestBudget(t *testing.T) {
	s := parsed(t, calmHour)
	whole := run(s, rig{budget: maxEvents})
	require.Equal(t, s.For, whole.Simulated)
	require.Empty(t, whole.Spent)
	require.Equal(t, Pass, run(s, rig{budget: whole.Events}).Verdict)

	r := run(s, rig{budget: whole.Events / 2})
	require.Equal(t, Budget, r.Verdict)
	require.Equal(t, "events", r.Spent)
	require.Equal(t, whole.Events/2, r.Events)
	require.Less(t, r.Simulated, s.For)
}

// TestBudgetOfMemory: whatever piles up breaks a run off that is bounded by less
// memory, and leaves it alone otherwise.
func TestBudgetOfMemory(t *testing.T) {
	for name, text := range map[string]string{
		"jobs that nobody takes": `
run 1h
queue q workers=0
schedule a every=1s queue=q
`,
		"a few jobs with payloads that nobody takes": `
run 10m
queue q workers=0
schedule a every=5s queue=q payload="` + strings.Repeat("x", 3000) + `"
`,
		"dead jobs": `
run 1h
schedule a every=1s queue=q handler=fail attempts=1
`,
		"acks that are late": `
run 1h quiet-after=58m
queue q workers=1
schedule a every=1s queue=q visibility=10h
during 0s..58m queue late-ack takes=50m..57m
`,
		"wakes that were put off again and again": `
run 210m
queue q workers=2
schedule short every=1s queue=q
schedule long every=99m queue=q handler=ok:95m visibility=10h
`,
		"a clock that is turned": `
run 3h
schedule a every=1h queue=q
during 1s..2h59m clock-strobe by=+1s
`,
	} {
		t.Run(name, func(t *testing.T) {
			s := parsed(t, "simulate v1\nengine standby=yes"+text)
			w := newWorld(s, rig{budget: maxEvents})
			w.run()
			require.Empty(t, w.failures)
			require.Empty(t, w.spent)

			r := run(s, rig{budget: maxEvents, memory: 200_000})
			require.Equal(t, Budget, r.Verdict, "%+v", r.Failures)
			require.Equal(t, "memory", r.Spent)
			require.Less(t, r.Simulated, s.For)
		})
	}
}

// TestBudgetCountsTheJobsThatAreThere: what is counted of the jobs, call by call,
// is what the store has, restarts or not.
func TestBudgetCountsTheJobsThatAreThere(t *testing.T) {
	for _, restart := range []string{"journal", "snapshot", "empty"} {
		s := parsed(t, fmt.Sprintf(`simulate v1
engine standby=yes snapshot-every=7m
run 1h quiet-after=50m
queue left workers=0
schedule a every=1m queue=q handler=fail:50%%:1s..2m attempts=2 backoff=1m payload="some bytes"
schedule b every=5m queue=left payload=more
during 5m..40m queue late-ack takes=1s..1m p=50%%
at 30m30s crash restart=%s after=1s
`, restart))
		w := newWorld(s, rig{budget: maxEvents})
		w.run()
		require.Empty(t, w.failures)
		there, jobs := int64(0), 0
		for _, q := range w.truth.queues {
			w.truth.eachJob(q, func(row *store.Job) {
				there += jobMemory(row.Payload)
				jobs++
			})
		}
		require.Greater(t, jobs, 10)
		require.Equal(t, there, w.truth.memory)
		require.Empty(t, w.sent)
		require.Zero(t, w.sentMemory)
	}
}

// TestBudgetCountsTheDisk: where a restart will read it.
func TestBudgetCountsTheDisk(t *testing.T) {
	const s = "simulate v1\nrun 4m quiet-after=230s\nqueue q workers=0\nschedule a every=1s queue=q\n"
	limited := rig{budget: maxEvents, memory: 140_000}
	require.Equal(t, Pass, run(parsed(t, s), limited).Verdict)
	require.Equal(t, Budget, run(parsed(t, s+"at 220s crash restart=journal after=1s\n"), limited).Verdict)
}

// TestBudgetEndsAFlood: with the limit that holds for everyone.
func TestBudgetEndsAFlood(t *testing.T) {
	text := "simulate v1\nrun 14h\nqueue q workers=0\n"
	for i := range 200 {
		text += fmt.Sprintf("schedule s%d every=1s queue=q payload=%q\n", i, strings.Repeat("x", 3900))
	}
	r, err := Run(*parsed(t, text))
	require.NoError(t, err)
	require.Equal(t, Budget, r.Verdict)
	require.Equal(t, "memory", r.Spent)
	require.LessOrEqual(t, r.Queues[0].Pending*(3900+jobBytes), int64(maxMemory+1000*(3900+jobBytes)), "one tick more than the limit at most")
}
