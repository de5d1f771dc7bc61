package sim

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/store"
)

// interleaved is light, and its faults are drawn.
const interleaved = `simulate v1
engine runners=2 lease=5s standby=yes
run 30m
schedule a every=1m queue=q handler=ok:1s
schedule b every=5s queue=q
swarm faults=0..4 kinds=process,clock-jump,store-error-burst,handler,queue
`

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string]Seeds{
		"1..1000": {1, 1000},
		"7":       {7, 7},
		"0..0":    {0, 0},
		"18446744073709551615..18446744073709551615": {1<<64 - 1, 1<<64 - 1},
		"18446744072709551616..18446744073709551615": {1<<64 - 1_000_000_000, 1<<64 - 1},
	} {
		got, err := ParseSeeds(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
		again, err := ParseSeeds(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
	for _, text := range []string{"", "..", "1..", "..5", "a..b", "1..b", "-1..3", "1...3", "1..2..3", "1.5..2", " 1..2", "0x1..2", "01..2", "1..18446744073709551616"} {
		_, err := ParseSeeds(text)
		require.EqualError(t, err, "found "+shown(text)+", want a range of seeds such as 1..1000")
	}
	_, err := ParseSeeds("5..1")
	require.EqualError(t, err, "found the seeds 5..1, want a range whose end is not before its beginning")
	for _, text := range []string{"0..1000000000", "0..18446744073709551615"} {
		_, err = ParseSeeds(text)
		require.EqualError(t, err, "found the seeds "+text+", want at most 1000000000 of them")
	}
}

// TestShardsHaveEachSeedOnce: however a range is cut, the shards follow on one
// another, from its first seed to its last, and none is longer than another by
// more than a seed.
func TestShardsHaveEachSeedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.Uint64Range(1, MaxSeeds).Draw(t, "count")
		first := rapid.OneOf(rapid.Uint64Range(0, 100), rapid.Just(-count)).Draw(t, "first")
		whole := Seeds{first, first + count - 1}
		n := rapid.Uint64Range(1, min(count, 200)).Draw(t, "shards")
		next := whole.First
		for i := uint64(1); i <= n; i++ {
			shard, err := whole.Shard(i, n)
			require.NoError(t, err)
			require.Equal(t, next, shard.First)
			require.Contains(t, []uint64{count / n, (count + n - 1) / n}, shard.Count())
			next = shard.Last + 1
		}
		require.Equal(t, whole.Last+1, next)
	})
	many := Seeds{0, MaxSeeds - 1}
	last, err := many.Shard(MaxSeeds, MaxSeeds)
	require.NoError(t, err)
	require.Equal(t, Seeds{MaxSeeds - 1, MaxSeeds - 1}, last)
}

func TestShardRefusesWhatThereIsNot(t *testing.T) {
	for _, c := range [][2]uint64{{0, 4}, {5, 4}, {0, 0}, {1, 11}, {11, 11}} {
		_, err := Seeds{1, 10}.Shard(c[0], c[1])
		require.EqualError(t, err, fmt.Sprintf("found the shard %d/%d, want I/N with I from 1 to N, and N at most 10, the count of the seeds", c[0], c[1]))
	}
	_, err := Seeds{2, 1}.Shard(1, 1)
	require.ErrorContains(t, err, "found the seeds 2..1")
}

// TestWordsAreReadBack: verdicts and kinds of faults, as they stand in JSON.
func TestWordsAreReadBack(t *testing.T) {
	for v := Pass; int(v) < len(verdictWords); v++ {
		text, err := v.MarshalText()
		require.NoError(t, err)
		var again Verdict
		require.NoError(t, again.UnmarshalText(text))
		require.Equal(t, v, again)
	}
	require.ErrorContains(t, new(Verdict).UnmarshalText([]byte("fine")), `found the verdict "fine", want one of pass, `)
	for k := FaultDown; int(k) < len(faultRules); k++ {
		text, err := k.MarshalText()
		require.NoError(t, err)
		var again FaultKind
		require.NoError(t, again.UnmarshalText(text))
		require.Equal(t, k, again)
	}
	require.ErrorContains(t, new(FaultKind).UnmarshalText([]byte("rain")), `found the fault "rain", want one of down, `)
}

func TestSweepRefusesWhatItCannotRun(t *testing.T) {
	_, err := Sweep(Scenario{}, Seeds{1, 2})
	var mistakes *Mistakes
	require.ErrorAs(t, err, &mistakes)
	_, err = Sweep(*parsed(t, interleaved), Seeds{2, 1})
	require.ErrorContains(t, err, "found the seeds 2..1")
}

// TestSweepIsTheSumOfItsRuns compares a sweep with the runs that it is made of.
func TestSweepIsTheSumOfItsRuns(t *testing.T) {
	s := *parsed(t, interleaved)
	sum, err := Sweep(s, Seeds{1, 40})
	require.NoError(t, err)
	require.Equal(t, Pass, sum.Verdict(), sum.failure(t.Name(), rig{budget: maxEvents}))
	var events, fired, skipped, enqueued, drawn, effects int64
	var coverage Coverage
	runs := make([]int64, marks)
	for seed := uint64(1); seed <= 40; seed++ {
		r, err := Run(s.draw(seed))
		require.NoError(t, err)
		events += r.Events
		for i := range r.Schedules {
			fired += r.Schedules[i].Fired
			skipped += r.Schedules[i].Skipped
		}
		for i := range r.Queues {
			enqueued += r.Queues[i].Enqueued
		}
		for i := range r.Faults {
			drawn++
			effects += r.Faults[i].Effect
		}
		coverage.Add(&r.Coverage)
		for m, mark := range r.Coverage.Marks() {
			runs[m] += min(mark.Reached, 1)
		}
	}
	require.EqualValues(t, 40, sum.Runs)
	require.Zero(t, sum.Failed)
	require.Equal(t, events, sum.Events)
	require.Equal(t, []int64{fired, skipped}, []int64{sum.Schedules.Fired, sum.Schedules.Skipped})
	require.Equal(t, sum.Schedules.Skipped, sum.Schedules.SkipReasons["cap"]+sum.Schedules.SkipReasons["policy"])
	require.Equal(t, enqueued, sum.Queues.Enqueued)
	for i, m := range coverage.Marks() {
		require.Equal(t, MarkGroup{m, runs[i]}, sum.Marks[i])
	}
	for _, f := range sum.Faults {
		drawn -= f.Count
		effects -= f.Effect
		require.LessOrEqual(t, f.Effective, f.Count)
	}
	require.Zero(t, drawn)
	require.Zero(t, effects)
}

// broken panics where it catches up, and fires the boundary before now and then.
func broken(s store.Store) store.Store {
	l := tick(func(t *store.Tick) {
		switch {
		case len(t.Fires) > 3:
			panic("broken")
		case t.Fires[0].Boundary/60_000%17 == 5:
			t.Fires[0].Boundary -= 60_000
		}
	})
	l.Store = s
	return l
}

// TestSweepMergesInAnyOrder: however a range is cut, and in whatever order the
// parts are merged, they come to the same, the digest, the seeds and the details
// of failures too.
func TestSweepMergesInAnyOrder(t *testing.T) {
	s := *parsed(t, interleaved)
	s.Swarm, s.Engine.StandBy = Swarm{Min: 1, Max: 8}, false
	r := rig{budget: 20_000, below: broken}
	const last = 40
	whole := sweep(s, Seeds{1, last}, r)
	require.Greater(t, len(whole.Failures), 1)
	require.Greater(t, whole.Failures[0].Runs, int64(keptSeeds))
	require.EqualValues(t, 1, whole.Excuses[0].Seed, "without stand-by each run has one")
	random := rand.New(rand.NewSource(1))
	for range 2 {
		var parts []*SweepResult
		for first := uint64(1); first <= last; {
			end := min(first+uint64(random.Intn(10)), last)
			parts = append(parts, sweep(s, Seeds{first, end}, r))
			first = end + 1
		}
		random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		for len(parts) > 1 { // in any grouping
			i := random.Intn(len(parts) - 1)
			parts[i].Merge(parts[i+1])
			parts = append(parts[:i+1], parts[i+2:]...)
		}
		require.Equal(t, whole, parts[0])
	}
	require.NotEqual(t, whole.Digest, sweep(s, Seeds{2, last + 1}, r).Digest)
}

// TestSweepContainsPanics: of the engine, with the place, and of the simulator
// itself.
func TestSweepContainsPanics(t *testing.T) {
	s := *parsed(t, interleaved)
	r := sweep(s, Seeds{1, 3}, rig{budget: maxEvents, below: func(s store.Store) store.Store {
		l := tick(func(*store.Tick) { panic("broken") })
		l.Store = s
		return l
	}})
	require.Equal(t, Safety, r.Verdict())
	require.EqualValues(t, 3, r.Failed)
	require.Equal(t, panicked.String(), r.Failures[0].What)
	require.Equal(t, []uint64{1, 2, 3}, r.Failures[0].Seeds)
	require.Contains(t, r.Failures[0].Detail, "broken, in ")

	s.Swarm = Swarm{Min: 1, Max: 1, Kinds: "none"} // which is not valid, and has nothing to draw from
	r = sweep(s, Seeds{7, 8}, rig{budget: maxEvents})
	require.Equal(t, Safety, r.Verdict())
	require.EqualValues(t, 2, r.Runs)
	require.Equal(t, []uint64{7, 8}, r.Failures[0].Seeds)
	require.Contains(t, r.Failures[0].Detail, "in the simulator: ")
}

// TestI12SweepRepeatsRuns: one seed in twenty is run twice, and one that
// comes to something else is found.
func TestI12SweepRepeatsRuns(t *testing.T) {
	s := *parsed(t, interleaved)
	s.Swarm = Swarm{}
	runs := 0
	r := sweep(s, Seeds{1, 400}, rig{budget: 500, below: func(s store.Store) store.Store {
		runs++
		l := liar{Store: s}
		if runs > 200 && runs%2 == 0 {
			l.due = func(s store.Store, dst []store.Schedule) (store.Due, error) {
				due, err := s.Due(ctx, dst[:min(len(dst), 1)])
				return due, err
			}
		}
		return l
	}})
	require.InDelta(t, 20, r.Repeated, 10)
	require.EqualValues(t, 400+r.Repeated, runs)
	require.Equal(t, Nondeterministic, r.Failures[0].Verdict)
	require.Contains(t, r.Failures[0].Detail, "the first run came to ")
}

// TestSweepJudgesMarksOverAllRuns: a mark that is expected has to be reached in
// one of the runs, not in each.
func TestSweepJudgesMarksOverAllRuns(t *testing.T) {
	s := *parsed(t, interleaved+"expect sometimes:two-leaders sometimes:quarantined\n")
	r, err := Sweep(s, Seeds{1, 40})
	require.NoError(t, err)
	require.Equal(t, Vacuous, r.Verdict())
	require.Equal(t, []string{"quarantined"}, r.Unreached())
	require.Zero(t, r.Failed)
	s.Expect = s.Expect[:1]
	r, err = Sweep(s, Seeds{1, 40})
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict())
	require.Equal(t, Vacuous, (&SweepResult{Scenario: s}).Verdict(), "no run reaches no mark")
}

// TestAllMarksAreExpectedOfALargeSweep alone; those that are named are not.
func TestAllMarksAreExpectedOfALargeSweep(t *testing.T) {
	s := *parsed(t, calmHour+"expect sometimes:all,-quarantined,-queue-full\n")
	r, err := Sweep(s, Seeds{1, 2})
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict())
	r.Runs = EnoughSeeds
	require.Equal(t, Vacuous, r.Verdict())
	require.Len(t, r.Unreached(), int(marks)-2, "in a calm hour nothing is reached")
	require.NotContains(t, r.Unreached(), "queue-full")
	for i := range r.Marks {
		if id := r.Marks[i].ID; id != "quarantined" && id != "queue-full" && id != "cap-hit" {
			r.Marks[i].Runs = 1
		}
	}
	require.Equal(t, []string{"cap-hit"}, r.Unreached())

	one, err := Run(s)
	require.NoError(t, err)
	require.Equal(t, Pass, one.Verdict, "and not of a single run")
}

// TestSweepTellsWhatFailed: by the gravest verdict, the first invariant broken
// or the first expectation that was not met.
func TestSweepTellsWhatFailed(t *testing.T) {
	s := *parsed(t, calmHour+"expect a.fires=120 b.fires=7\n")
	r, err := Sweep(s, Seeds{1, 7})
	require.NoError(t, err)
	require.Equal(t, []FailureGroup{{
		Verdict: Unmet, What: "expected b.fires=7", Runs: 7, Seeds: []uint64{1, 2, 3, 4, 5}, Detail: "got 120",
	}}, r.Failures)
	require.Equal(t, "seeds 1, 2, 3, 4, 5, and 2 more", r.Failures[0].SeedList())

	r = sweep(s, Seeds{1, 1}, rig{budget: 10})
	require.Equal(t, []FailureGroup{{Verdict: Budget, What: "budget", Runs: 1, Seeds: []uint64{1}, Detail: "out of events"}}, r.Failures)

	grave := &SweepResult{Failures: []FailureGroup{{Verdict: Liveness, What: "x", Runs: 1, Seeds: []uint64{1}}}}
	grave.Merge(&SweepResult{Failures: []FailureGroup{{Verdict: Safety, What: "y", Runs: 1, Seeds: []uint64{2}}}})
	require.Equal(t, Safety, grave.Verdict())
	require.Len(t, gravity, len(verdictWords))
}

// failing is a test that notes how it failed.
type failing struct{ said string }

func (*failing) Helper()             {}
func (f *failing) Fatal(args ...any) { f.said = args[0].(string) }

// TestRequireSaysHowToRunItAgain: what a failure prints has the scenario with the
// faults drawn and shrunk, which fails the same way; one that does not come again
// is left whole.
func TestRequireSaysHowToRunItAgain(t *testing.T) {
	s := *parsed(t, interleaved)
	var f failing
	passed, err := Sweep(s, Seeds{1, 3})
	require.NoError(t, err)
	passed.Require(&f)
	require.Empty(t, f.said)

	r := rig{budget: maxEvents, below: broken}
	failed := sweep(s, Seeds{1, 20}, r)
	seed := failed.Failures[0].Seeds[0]
	said := failed.failure(t.Name(), r)
	require.Regexp(t, `^safety: \d+ of 20 seeds failed\nsafety: 1 fires once, seeds \d`, said)
	head, text, found := strings.Cut(said, "\n\n")
	require.True(t, found)
	require.True(t, strings.HasSuffix(head, fmt.Sprintf("\nto run seed %d again, shrunk to what makes it fail, keep what follows as seed-%d.sim, and"+
		"\n  go run github.com/tickonce/tickonce/cmd/simulate run seed-%d.sim", seed, seed, seed)))
	kept := parsed(t, text)
	require.Less(t, len(text), len(s.draw(seed).String()))
	require.Equal(t, failed.Failures[0].What, run(kept, r).Failures[0].Invariant)

	failed.Require(&f)
	require.Contains(t, f.said, fmt.Sprintf("\nto run seed %d again, keep what follows", seed), "it passes with an honest store")
	_, text, _ = strings.Cut(f.said, "\n\n")
	require.Equal(t, s.draw(seed).String(), text)

	s.Expect = []Expect{{Kind: ExpectMark, Mark: "quarantined"}}
	failed = sweep(s, Seeds{1, 2}, rig{budget: maxEvents})
	failed.Require(&f)
	require.Equal(t, "vacuous: 0 of 2 seeds failed\nno run reached the mark quarantined\n", f.said)
}
