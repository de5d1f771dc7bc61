package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// stormy is three processes, three schedules, and 40 faults.
const stormy = `simulate v1
engine   runners=3 lease=5s standby=yes
run      2h
queue    q workers=2
queue    r workers=2
schedule a every=1m queue=q handler=ok:1s..30s visibility=20s
schedule b every=5s queue=r handler=ok:1s catch-up=latest
schedule c every=7m queue=r handler=fail:10%:1s
swarm    faults=40
expect   no-double-fire b.fires=7
`

// bugs are lies of the store that only some fault brings to light.
var bugs = []struct {
	name  string
	fails invariant
	lie   liar
}{
	{"an expired lease is renewed", oneLease, liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) {
		if g, err := s.Renew(ctx, l, ttlMS); g.OK || err != nil {
			return g, err
		}
		return granted(l, shownBy(s)), nil
	}}},
	{"a stale ack is accepted", staleToken, liar{settle: func(s store.Store, settles []store.Settle, out []bool) (store.Instant, error) {
		now, err := s.Settle(ctx, settles, out)
		for i := range out {
			out[i] = true
		}
		return now, err
	}}},
	{"65 fire at once", capHeld, tick(func(t *store.Tick) {
		for i := len(t.Fires) - 1; i >= 0; i-- {
			if last := t.Fires[i]; t.Moves[last.Move].Fires == 64 {
				last.Boundary += 5000
				t.Fires = append(t.Fires, last)
				t.Moves[last.Move].Fires++
			}
		}
	})},
}

func lying(l liar) rig {
	return rig{budget: maxEvents, below: func(s store.Store) store.Store {
		l.Store = s
		return l
	}}
}

// failsStormy is stormy as the first seed draws it with which the bug shows.
func failsStormy(tb testing.TB, r rig, fails invariant) Scenario {
	s, err := Parse("", stormy)
	require.NoError(tb, err)
	for seed := uint64(1); seed < 1000; seed++ {
		drawn := s.draw(seed)
		if f := failureOf(&drawn, run(&drawn, r)); f.What == fails.String() {
			return drawn
		}
	}
	tb.Fatal("no seed fails")
	return s
}

// TestShrinkKeepsTheFailure: of 40 faults few are left, none of which can be
// left out, and what is left fails at the same invariant.
func TestShrinkKeepsTheFailure(t *testing.T) {
	for _, bug := range bugs {
		t.Run(bug.name, func(t *testing.T) {
			r := lying(bug.lie)
			s := failsStormy(t, r, bug.fails)
			require.Len(t, s.Faults, 40)
			before := s.String()

			so, err := shrink(s, Shrinking{}, r)
			require.NoError(t, err)
			require.True(t, so.Whole)
			require.Equal(t, "safety: "+bug.fails.String(), so.Kept)
			require.LessOrEqual(t, len(so.Scenario.Faults), 3)
			require.Len(t, so.Scenario.Schedules, 1)
			require.Empty(t, so.Scenario.Expect)
			require.LessOrEqual(t, so.Scenario.For, 5*time.Minute)

			kept := parsed(t, so.Scenario.String())
			again := run(kept, r)
			require.Equal(t, so.Result, again)
			require.Equal(t, Safety, again.Verdict)
			require.Equal(t, bug.fails.String(), again.Failures[0].Invariant)
			for i := range kept.Faults {
				fewer := *parsed(t, so.Scenario.String())
				fewer.Faults = append(fewer.Faults[:i:i], fewer.Faults[i+1:]...)
				require.Equal(t, Pass, run(&fewer, r).Verdict, kept.Faults[i])
			}

			require.Equal(t, before, s.String(), "the scenario is left as it was")
			twice, err := shrink(s, Shrinking{}, r)
			require.NoError(t, err)
			require.Equal(t, so, twice)
		})
	}
}

// TestShrinkKeepsTheInvariant: no other failure takes its place.
func TestShrinkKeepsTheInvariant(t *testing.T) {
	failed := func(verdict Verdict, broken invariant) *Result {
		return &Result{Verdict: verdict, Failures: []Failure{{Invariant: broken.String(), Verdict: verdict}}}
	}
	s := Scenario{}
	k := shrinker{failure: failureOf(&s, failed(Safety, capHeld))}
	require.True(t, k.keeps(&s, failed(Safety, capHeld)))
	require.False(t, k.keeps(&s, failed(Safety, firesOnce)))
	require.False(t, k.keeps(&s, failed(Liveness, liveness)))
	require.False(t, k.keeps(&s, &Result{}))
	k.failure = nil
	require.True(t, k.keeps(&s, &Result{}))
	require.False(t, k.keeps(&s, failed(Safety, capHeld)))
}

// TestShrinkTowardsAMark: what is to be kept need not be a failure.
func TestShrinkTowardsAMark(t *testing.T) {
	keep, err := ParseExpect("sometimes:two-leaders")
	require.NoError(t, err)
	s := *parsed(t, stormy)
	s.Engine.Seed = 4
	so, err := Shrink(s, Shrinking{Keep: keep})
	require.NoError(t, err)
	require.True(t, so.Whole)
	require.Equal(t, "sometimes:two-leaders", so.Kept)
	require.Equal(t, keep, so.Scenario.Expect)
	require.Equal(t, 2, so.Scenario.Engine.Runners)
	require.Len(t, so.Scenario.Faults, 1)
	r, err := Run(*parsed(t, so.Scenario.String()))
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict)
	require.True(t, r.Coverage.reached(twoLeaders))
}

// TestShrinkKeepsAnExpectation that was not met, and no other: of a count what came
// instead, by the few faults that it takes, and not what a shorter run comes to.
func TestShrinkKeepsAnExpectation(t *testing.T) {
	s := *parsed(t, stormy)
	so, err := Shrink(s, Shrinking{})
	require.NoError(t, err)
	require.Equal(t, "unmet: expected b.fires=7", so.Kept)
	require.Equal(t, []Expect{{Kind: ExpectFires, Schedule: "b", Count: 7}}, so.Scenario.Expect)
	require.Equal(t, `simulate v1
run      2h
schedule b every=5s queue=r
at 1m44s edit remove schedule=b
expect   b.fires=7
`, so.Scenario.String())
	require.Equal(t, s.For, so.Scenario.For)
	first, err := Run(s.draw(s.Engine.Seed))
	require.NoError(t, err)
	require.Equal(t, first.Unmet, so.Result.Unmet)
}

// TestShrinkEndsWhenItIsTold: with what it has by then, and within its runs.
func TestShrinkEndsWhenItIsTold(t *testing.T) {
	bug := bugs[1]
	r := lying(bug.lie)
	s := failsStormy(t, r, bug.fails)
	whole, err := shrink(s, Shrinking{}, r)
	require.NoError(t, err)
	faults := len(s.Faults)
	step := 7
	if testing.Short() {
		step = 35
	}
	for most := 3; most < whole.Runs; most += step {
		budgeted, err := shrink(s, Shrinking{Runs: most}, r)
		require.NoError(t, err)
		require.Equal(t, most, budgeted.Runs)

		stopped, err := shrink(s, Shrinking{Told: func(so *Shrunk) bool { return so.Runs < most }}, r)
		require.NoError(t, err)
		require.LessOrEqual(t, stopped.Runs, max(most, 3)+1, "the last run and its repetition")

		for _, so := range []*Shrunk{budgeted, stopped} {
			require.False(t, so.Whole)
			require.Equal(t, bug.fails.String(), run(&so.Scenario, r).Failures[0].Invariant)
		}
		require.LessOrEqual(t, len(budgeted.Scenario.Faults), faults)
		faults = len(budgeted.Scenario.Faults)
	}
	require.Equal(t, 1, faults, "without one no ack is stale")
}

// TestShrinkLeavesChanceAlone: what does not come again is not shrunk, whether
// that shows at once or only of the shrunk scenario.
func TestShrinkLeavesChanceAlone(t *testing.T) {
	stays := func(from int) (*Shrunk, int, error) {
		runs := 0
		s := *parsed(t, calmHour)
		so, err := shrink(s, Shrinking{}, rig{budget: maxEvents, below: func(s store.Store) store.Store {
			if runs++; runs == from {
				return s
			}
			l := bugs[1].lie
			l.claim = claim(func(j *store.Job) { j.Attempts-- }).claim
			l.Store = s
			return l
		}})
		return so, runs, err
	}
	so, runs, err := stays(2)
	require.ErrorIs(t, err, ErrNondeterministic)
	require.ErrorContains(t, err, `the first run came to "verdict  safety", the second to "verdict  pass"`)
	require.Nil(t, so)
	require.Equal(t, 2, runs)

	whole, runs, err := stays(0)
	require.NoError(t, err)
	require.Equal(t, whole.Runs, runs)
	so, _, err = stays(runs)
	require.ErrorIs(t, err, ErrNondeterministic)
	require.Nil(t, so)
}

func TestShrinkRefusesWhatItCannotKeep(t *testing.T) {
	calm := *parsed(t, calmHour)
	_, err := Shrink(calm, Shrinking{})
	require.EqualError(t, err, "the scenario passes: there is no failure to keep; say what else is to be kept")
	_, err = Shrink(calm, Shrinking{Keep: []Expect{{Kind: ExpectMark, Mark: "two-leaders"}}})
	require.EqualError(t, err, "the scenario does not come to what is to be kept: unmet: expected sometimes:two-leaders, which was never reached")
	_, err = Shrink(calm, Shrinking{Keep: []Expect{{Kind: ExpectMark, Mark: "all,-two-leaders"}}})
	require.EqualError(t, err, "found sometimes:all,-two-leaders to keep, want one mark: of all of them a single run is not judged")
	var mistakes *Mistakes
	_, err = Shrink(Scenario{}, Shrinking{})
	require.ErrorAs(t, err, &mistakes)
	_, err = Shrink(calm, Shrinking{Keep: []Expect{{Kind: ExpectFires, Schedule: "none", Count: 1}}})
	require.ErrorAs(t, err, &mistakes)
	require.False(t, errors.Is(err, ErrNondeterministic))
}

func TestParseExpect(t *testing.T) {
	list, err := ParseExpect("sometimes:two-leaders no-double-fire verdict=safety a.fires=3")
	require.NoError(t, err)
	require.Equal(t, []Expect{
		{Kind: ExpectMark, Mark: "two-leaders"},
		{Kind: ExpectNoDoubleFire},
		{Kind: ExpectVerdict, Verdict: Safety},
		{Kind: ExpectFires, Schedule: "a", Count: 3},
	}, list)
	for text, want := range map[string]string{
		"":                     "found the end of the line, want ",
		"sometimes:two-leader": `found "two-leader", want a coverage mark: .*; did you mean "two-leaders"\?`,
		"verdict=bad":          `found "bad", want one of `,
		"a.fires=x":            `found "x", want a whole number `,
		`"`:                    "found ",
	} {
		list, err = ParseExpect(text)
		require.Error(t, err, text)
		require.Regexp(t, "^"+want, err.Error())
		require.Nil(t, list)
	}
}

// TestSimplerDurations: each is simpler than the one before, and neither nothing
// nor endless.
func TestSimplerDurations(t *testing.T) {
	for text, want := range map[string][]string{
		"0s":              nil,
		"1ms":             nil,
		"1s":              nil,
		"999ms":           {"1s"},
		"20m":             {"1s", "1m", "2m", "5m", "10s", "10m"},
		"59m47s":          {"1s", "1m", "2m", "5m", "10s", "10m", "30m", "59m", "1h"},
		"12m5s1ms":        {"1s", "1m", "2m", "5m", "10s", "10m", "12m", "13m", "12m5s", "12m6s"},
		"1h":              {"1s", "1m", "2m", "5m"},
		"106751d23h47m1s": {"1s", "1m", "2m", "5m", "10s", "10m", "30m", "1h", "2h", "6h", "12h", "1d", "7d", "106751d", "106751d23h", "106751d23h47m"},
	} {
		d, r := parseDuration(text)
		require.Nil(t, r)
		var got []string
		for i, s := range simplerDurations(d) {
			require.True(t, simplerThan(s, d))
			require.False(t, simplerThan(d, s))
			require.True(t, i == 0 || s > simplerDurations(d)[i-1])
			got = append(got, formatDuration(s))
		}
		require.ElementsMatch(t, want, got, text)
	}
}

// TestSimplerValuesAreValuesOfTheirKeys: whatever a scenario has, what is put in
// its place has a text, and leaves the other keys alone.
func TestSimplerValuesAreValuesOfTheirKeys(t *testing.T) {
	changes := 0
	for seed := range uint64(50) {
		s := drawScenario(seed)
		for i := range s.Faults {
			for _, key := range keysOf(s.Faults[i].Kind) {
				for n := range key.of(&s.Faults[i]).simpler() {
					f := s.Faults[i]
					key.of(&f).simpler()[n]()
					text := key.of(&f).text()
					if text == "" || text == key.of(&s.Faults[i]).text() {
						continue
					}
					changes++
					var again Fault
					require.Nil(t, key.of(&again).parse(text), text)
					require.Equal(t, text, key.of(&again).text())
				}
			}
		}
	}
	require.Greater(t, changes, 100)
}

// BenchmarkShrink shrinks failures of 40 faults, one of each bug.
func BenchmarkShrink(b *testing.B) {
	for _, bug := range bugs {
		b.Run(bug.name, func(b *testing.B) {
			r := lying(bug.lie)
			s := failsStormy(b, r, bug.fails)
			var so *Shrunk
			for b.Loop() {
				var err error
				so, err = shrink(s, Shrinking{}, r)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(so.Runs), "runs")
			b.ReportMetric(float64(len(so.Scenario.Faults)), "faults")
		})
	}
}
