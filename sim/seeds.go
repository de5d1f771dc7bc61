package sim

import (
	"fmt"
	"math"
	"strings"

	"github.com/tickonce/tickonce/internal/core"
)

// MaxSeeds is how many seeds one sweep may have.
const MaxSeeds = 1_000_000_000

// Seeds is a range of seeds, both ends included. The zero value is the seed 0
// alone.
type Seeds struct{ First, Last uint64 }

// Count is how many seeds there are; at most [MaxSeeds] in a valid range.
func (s Seeds) Count() uint64 { return s.Last - s.First + 1 }

// String is the range as [ParseSeeds] reads it.
func (s Seeds) String() string { return fmt.Sprintf("%d..%d", s.First, s.Last) }

// Shard is the i-th of n parts of the range, counted from 1: of c seeds it has
// those from c(i-1)/n on to before ci/n, both rounded down. So the shards are as
// long as one another, but for one seed, and together have each seed once. The
// error says what is wrong with i or n; there are at most as many shards as seeds.
func (s Seeds) Shard(i, n uint64) (Seeds, error) {
	if err := s.check(); err != nil {
		return Seeds{}, err
	}
	if i < 1 || i > n || n > s.Count() {
		return Seeds{}, fmt.Errorf("found the shard %d/%d, want I/N with I from 1 to N, and N at most %d, the count of the seeds", i, n, s.Count())
	}
	return Seeds{s.First + s.Count()*(i-1)/n, s.First + s.Count()*i/n - 1}, nil
}

// ParseSeeds reads a range as 1..1000, or one seed.
func ParseSeeds(text string) (Seeds, error) {
	first, last, two := strings.Cut(text, "..")
	if !two {
		last = first
	}
	var s Seeds
	if (numberValue[uint64]{n: &s.First, most: math.MaxUint64}).parse(first) != nil ||
		(numberValue[uint64]{n: &s.Last, most: math.MaxUint64}).parse(last) != nil {
		return Seeds{}, fmt.Errorf("found %s, want a range of seeds such as 1..1000", shown(text))
	}
	return s, s.check()
}

func (s Seeds) check() error {
	switch {
	case s.Last < s.First:
		return fmt.Errorf("found the seeds %s, want a range whose end is not before its beginning", s)
	case s.Last-s.First >= MaxSeeds:
		return fmt.Errorf("found the seeds %s, want at most %d of them", s, MaxSeeds)
	}
	return nil
}

// Sweep runs the scenario once with each of the seeds, as [Scenario.Draw] draws
// it, and sums up. About one seed in twenty is run twice, to see whether it comes
// to the same. A panic, even of the simulator itself, is a failure of its seed. The
// error is [*Mistakes], where [Scenario.Validate] refuses the scenario, or says
// what is wrong with the range.
//
// Sweeps of parts of a range, which may be made at once, merge to the sweep of
// the whole ([SweepResult.Merge]).
func Sweep(s Scenario, seeds Seeds) (*SweepResult, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if err := seeds.check(); err != nil {
		return nil, err
	}
	return sweep(s, seeds, rig{budget: maxEvents}), nil
}

func sweep(s Scenario, seeds Seeds, r rig) *SweepResult {
	sum := &SweepResult{Scenario: s}
	for seed := seeds.First; ; seed++ {
		sum.run(seed, r)
		if seed == seeds.Last {
			return sum
		}
	}
}

// run adds the run of one seed.
func (r *SweepResult) run(seed uint64, rig rig) {
	var d Digest
	d.Int(0, int64(seed))
	var failed *FailureGroup
	defer func() {
		if p := recover(); p != nil {
			failed = &FailureGroup{Verdict: Safety, What: panicked.String(), Detail: ownPanic(p)}
		}
		r.count(seed, failed)
		r.Digest += Digest(core.Mix64(uint64(d))) // a sum, so that the order of the runs makes no difference
	}()
	s := r.Scenario.draw(seed)
	result := run(&s, rig)
	d.Int(0, int64(result.Verdict))
	d.Int(0, int64(result.Digest))
	r.add(seed, result)
	failed = failureOf(&s, result)
	if core.Mix64(seed)%repeatedOf > 0 {
		return
	}
	r.Repeated++
	if differs := difference(result, run(&s, rig)); differs != "" && (failed == nil || failed.Verdict != Safety) {
		failed = &FailureGroup{Verdict: Nondeterministic, What: "repetition", Detail: differs}
	}
}

// ownPanic tells of a panic of the simulator itself. The deferred function calls
// it.
func ownPanic(p any) string { return fmt.Sprintf("in the simulator: %v, in %s", p, panickedIn()) }

// repeatedOf is of how many seeds one is run twice.
const repeatedOf = 20

// difference is what two runs of one scenario differ in, "" if in nothing.
func difference(first, second *Result) string {
	a, b := strings.Split(first.Outcome(), "\n"), strings.Split(second.Outcome(), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("the first run came to %q, the second to %q", a[i], b[i])
		}
	}
	return "" // the digest stands in the last line
}

// failureOf says why a run failed; nil if it did not.
func failureOf(s *Scenario, r *Result) *FailureGroup {
	g := &FailureGroup{Verdict: r.Verdict, What: r.Verdict.String()}
	if r.Spent != "" {
		g.Detail = "out of " + r.Spent
	}
	switch r.Verdict {
	case Pass:
		return nil
	case Unmet:
		for _, e := range s.Expect {
			if met, got := r.meets(e); !met {
				g.What, g.Detail = "expected "+e.String(), got
				break
			}
		}
	default:
		for _, f := range r.Failures {
			if f.Verdict == r.Verdict {
				g.What, g.Schedule, g.Detail = f.Invariant, f.Schedule, f.Detail
				break
			}
		}
	}
	return g
}
