package sim

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// drawer draws scenarios.
type drawer struct{ *choices }

func (d drawer) n(site string, n int) int { return int(d.at(site).choice(int64(n))) }

func (d drawer) chance(site string, percent int) bool { return d.n(site, 100) < percent }

func drawn[T any](d drawer, site string, of ...T) T { return of[d.n(site, len(of))] }

const (
	second = time.Second
	minute = time.Minute
)

// drawScenario is a scenario of three hours with up to sixteen faults in the
// first two.
func drawScenario(seed uint64) Scenario {
	d := drawer{newChoices(seed)}
	s := Scenario{For: 3 * time.Hour, QuietAfter: 2 * time.Hour}
	s.Engine = Engine{
		Runners: drawn(d, "runners", 1, 1, 2, 3), StandBy: d.chance("standby", 80), Seed: seed,
		SnapshotEvery: drawn(d, "snapshots", 0, 17*minute),
		Ties:          drawn(d, "ties", TiesFIFO, TiesSeeded),
		QueueLimit:    drawn(d, "queue limit", 0, 0, 0, 0, 0, 0, 70, 3),
		ClockRepair:   drawn(d, "repair", RepairHold, RepairHold, RepairRearm),
		Batch:         drawn(d, "batch", 0, 0, 1, 10),
	}
	for i := range 1 + d.n("schedules", 5) {
		s.Schedules = append(s.Schedules, Schedule{
			Name:        fmt.Sprintf("s%d", i),
			Spec:        drawn(d, "spec", "@every 5s", "@every 7s", "@every 1m", "@every 5m", "@every 7m", "@every 1h", "@every 5h"),
			Queue:       drawn(d, "queue", "a", "b"),
			CatchUp:     drawn(d, "catch-up", CatchUpAll, CatchUpAll, CatchUpLatest, CatchUpGrace, CatchUpNone),
			Anchor:      drawn(d, "anchor", time.Time{}, time.Unix(0, 0), DefaultStart.Add(30*minute)),
			Visibility:  drawn(d, "visibility", 10*second, minute),
			MaxAttempts: drawn(d, "attempts", 0, 1, 2),
			BaseBackoff: drawn(d, "backoff", 0, 5*second),
			Expires:     drawn(d, "expires", 0, 0, 30*second, minute),
			Handler: drawn(d, "handler", Handler{}, Handler{Takes: Span{0, 3 * second}},
				Handler{Kind: HandlerFails, Fails: Always / 4}, Handler{Kind: HandlerOverruns},
				Handler{Kind: HandlerPanics, Fails: Always / 4, Takes: Span{0, 3 * second}}),
			Heartbeat: drawn(d, "heartbeat", 0, 0, 4*second, 15*second),
		})
	}
	s.Queues = []Queue{{Name: s.Schedules[0].Queue, Workers: 1 + d.n("workers", 3)}}
	s.Swarm = Swarm{Max: 16, Kinds: drawn(d, "kinds", "", "", "process,store")}
	return s.draw(seed)
}

// TestRandomScenarios: whatever goes wrong, every invariant holds.
func TestRandomScenarios(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		s := drawScenario(seed)
		r, err := Run(s)
		require.NoError(t, err)
		require.Equal(t, Pass, r.Verdict, "seed %d: %+v\n%s", seed, r.Failures, s)
	}
}

// TestTheExamplesComeEverywhere: of the seeds that are enough, one comes to each
// mark of the catalogue: of the portfolio or, for what becomes of results, of
// deliveries.sim.
func TestTheExamplesComeEverywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: fewer than 2,000 seeds do not come everywhere")
	}
	runs := map[string]int64{}
	for _, file := range []string{"portfolio.sim", "deliveries.sim"} {
		text, err := os.ReadFile("../examples/scenarios/" + file)
		require.NoError(t, err)
		s, err := Parse(file, string(text))
		require.NoError(t, err)
		r, err := Sweep(s, Seeds{First: 1, Last: EnoughSeeds})
		require.NoError(t, err)
		r.Require(t)
		for _, m := range r.Marks {
			runs[m.ID] += m.Runs
		}
	}
	require.Len(t, runs, int(marks))
	for id, n := range runs {
		require.Positive(t, n, id)
	}
}
