package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

var rewrite = flag.Bool("rewrite", false, "record the outcomes of testdata anew")

func parsed(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := Parse("test.sim", text)
	require.NoError(t, err)
	return &s
}

// TestRecordedOutcomes: a change of what the engine does, or of how the
// simulator draws, shows in the outcomes and digests of testdata. Run with
// -rewrite to record them anew, and read the difference.
func TestRecordedOutcomes(t *testing.T) {
	files, err := filepath.Glob("testdata/*.sim")
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		s := parsed(t, string(text))
		r, err := Run(*s)
		require.NoError(t, err)
		require.Equal(t, Pass, r.Verdict, "%s: %+v %v", file, r.Failures, r.Unmet)
		if *rewrite {
			require.NoError(t, os.WriteFile(file, []byte(WithOutcome(string(text), r.Outcome())), 0o644))
			continue
		}
		require.Equal(t, s.Outcome, r.Outcome(), file)
	}
}

// TestI12RunsAreEqual: a run owns nothing, so neither a run before it nor
// its own repetition changes it.
func TestI12RunsAreEqual(t *testing.T) {
	const seeds = 10
	var forth, back [seeds]string
	outcome := func(seed int) string {
		r, err := Run(drawScenario(uint64(seed)))
		require.NoError(t, err)
		return r.Outcome()
	}
	for seed := range seeds {
		forth[seed] = outcome(seed)
	}
	for seed := seeds - 1; seed >= 0; seed-- {
		back[seed] = outcome(seed)
	}
	require.Equal(t, forth, back)
	require.NotEqual(t, forth[0], forth[1])
}

// TestTiesShuffleOnly: the order of what happens at the same instant makes
// another run, in which the same boundaries fire.
func TestTiesShuffleOnly(t *testing.T) {
	s := parsed(t, strings.ReplaceAll(twoRunners, "runners=2", "runners=5"))
	fifo, first := fires(t, s)
	digests := map[Digest]bool{first.Digest: true}
	s.Engine.Ties = TiesSeeded
	for seed := range uint64(5) {
		s.Engine.Seed = seed
		seeded, r := fires(t, s)
		require.Equal(t, fifo, seeded)
		digests[r.Digest] = true
	}
	require.Len(t, digests, 6)
}

func TestExpectations(t *testing.T) {
	deaf := rig{budget: maxEvents, above: func(s store.Store) store.Store {
		return liar{Store: s, due: func(s store.Store, dst []store.Schedule) (store.Due, error) {
			due, err := s.Due(ctx, nil)
			return store.Due{Now: due.Now, Next: store.None}, err
		}}
	}}
	twice := rig{budget: maxEvents, below: func(s store.Store) store.Store {
		l := tick(func(t *store.Tick) { t.Fires[0].Boundary -= 60_000 })
		l.Store = s
		return l
	}}
	for _, c := range []struct {
		name, expect string
		rig          rig
		verdict      Verdict
		unmet        string // a part of the only one
	}{
		{"all met", "a.fires=120 a.skipped=0 a.quarantined=0 no-double-fire verdict=pass", rig{}, Pass, ""},
		{"too few fires", "a.fires=121", rig{}, Unmet, "expected a.fires=121, got 120"},
		{"a skip too many", "a.skipped=1", rig{}, Unmet, "expected a.skipped=1, got 0"},
		{"no hold", "a.quarantined=1", rig{}, Unmet, "expected a.quarantined=1, got 0"},
		{"a mark not reached", "sometimes:skipped", rig{}, Unmet, "expected sometimes:skipped, which was never reached"},
		{"a verdict that did not come", "verdict=liveness", rig{}, Unmet, "expected verdict=liveness, got pass"},
		{"a verdict that came", "verdict=liveness", deaf, Pass, ""},
		{"a verdict that came, and another one unmet", "verdict=liveness a.fires=1", deaf, Unmet, "expected a.fires=1, got 0"},
		{"another verdict than expected", "verdict=safety", deaf, Liveness, "expected verdict=safety, got liveness"},
		{"a double fire", "no-double-fire", twice, Safety, "had fired or been skipped"},
		{"a double fire beside the expected verdict", "no-double-fire verdict=safety", twice, Unmet, "had fired or been skipped"},
		{"out of budget", "", rig{budget: 100}, Budget, ""},
		{"out of budget, as expected", "verdict=budget", rig{budget: 100}, Pass, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := calmHour
			if c.expect != "" {
				text += "expect " + c.expect + "\n"
			}
			if c.rig.budget == 0 {
				c.rig.budget = maxEvents
			}
			r := run(parsed(t, text), c.rig)
			require.Equal(t, c.verdict, r.Verdict, "%+v", r.Failures)
			if c.unmet == "" {
				require.Empty(t, r.Unmet)
				return
			}
			require.Len(t, r.Unmet, 1)
			require.Contains(t, r.Unmet[0], c.unmet)
		})
	}
}

// TestPanicsAreFailures: with the point in time, the seed and where it began.
func TestPanicsAreFailures(t *testing.T) {
	s := parsed(t, strings.ReplaceAll(calmHour, "standby=yes", "standby=yes seed=9"))
	broken := rig{budget: maxEvents, below: func(s store.Store) store.Store {
		return liar{Store: s, settle: func(store.Store, []store.Settle, []bool) (store.Instant, error) {
			var none *store.Job
			return none.RunAt, nil
		}}
	}}
	r := run(s, broken)
	require.Equal(t, Safety, r.Verdict)
	require.Len(t, r.Failures, 1)
	require.Equal(t, DefaultStart.Add(time.Minute+time.Second), r.Failures[0].At)
	require.Equal(t, panicked.String(), r.Failures[0].Invariant)
	require.Regexp(t, `^runtime error: invalid memory address or nil pointer dereference, in sim\.\S+ \(run_test\.go:\d+\) < sim\.liar\.Settle \(liar_test\.go:\d+\) < .* < tickonce\.\(\*Worker\)\.settle \(worker\.go:\d+\).*; seed 9$`, r.Failures[0].Detail)
	require.NotContains(t, r.Failures[0].Detail, "/")
	require.Equal(t, r.Outcome(), run(s, broken).Outcome())
}

// TestExcuses: what is stuck and has to be is no failure.
func TestExcuses(t *testing.T) {
	for _, c := range []struct{ name, text, excuse string }{
		{
			"no runner is left after an outage of the store",
			"simulate v1\nrun 2h\nschedule a every=1m queue=q\nduring 10m..11m store error-burst applied=no\n",
			"the runner of process 1 ended at 2026-01-01 00:10:00.7: run schedules",
		},
		{
			"the lease of a crashed process keeps it out",
			"simulate v1\nengine runners=2\nrun 1h\nschedule a every=1m queue=q\nat 10m crash runner=1 after=1s\n",
			"leadership lost",
		},
		{
			"boundaries are left",
			"simulate v1\nrun 2h\nschedule a every=1m queue=q\nduring 10m..11m store error-burst applied=no\n",
			"boundaries were left because no runner runs any more",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Run(*parsed(t, c.text))
			require.NoError(t, err)
			require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
			require.Contains(t, fmt.Sprint(r.Excused), c.excuse)
		})
	}
}

// TestTheManualsScenarioPasses runs the scenario that the package comment shows.
func TestTheManualsScenarioPasses(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(doc), "//\tsimulate v1\n")
	require.True(t, found)
	shown, _, found := strings.Cut(after, "//\t----\n")
	require.True(t, found)
	r, err := Run(*parsed(t, "simulate v1\n"+strings.ReplaceAll(shown, "//\t", "")))
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%+v %v", r.Failures, r.Unmet)
	require.Empty(t, r.Excused)
	require.Len(t, r.Schedules, 2)
	require.Len(t, r.Faults, 2)
}

func TestRunRefusesAnInvalidScenario(t *testing.T) {
	_, err := Run(Scenario{})
	var mistakes *Mistakes
	require.ErrorAs(t, err, &mistakes)
}

// A handler that overruns the longest visibility takes for ever, not no time.
func TestAnOverrunIsNeverShort(t *testing.T) {
	s, err := Parse("", "simulate v1\nrun 10m\nschedule a every=1m queue=q handler=slow visibility=60000d\n")
	require.NoError(t, err)
	r, err := Run(s)
	require.NoError(t, err)
	require.Zero(t, r.Queues[0].Done)
	require.EqualValues(t, 1, r.Queues[0].Claimed)
}
