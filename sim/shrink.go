package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Shrinking says how a scenario is shrunk. The zero value keeps its failure.
type Shrinking struct {
	// Keep is what the shrunk scenario still has to meet, in the place of what the
	// scenario expects: a coverage mark that it reaches, say. Empty: it fails with
	// the verdict of the scenario, and at the same invariant or expectation. Where
	// a count is expected that is not 0, the same other count comes in a run as long:
	// in less of a run it would be another one anyway.
	Keep []Expect

	Runs int // how many runs it may take, 0: [DefaultShrinkRuns]

	// Told is called after each run with what there is by then; false ends the
	// shrinking with that. nil: it goes on.
	Told func(*Shrunk) bool
}

// DefaultShrinkRuns is how many runs a shrinking may take that does not say it.
const DefaultShrinkRuns = 2000

// Shrunk is a scenario made smaller, and what it came to.
type Shrunk struct {
	Scenario Scenario // without a swarm: its faults are written out
	Result   *Result
	Kept     string // what it was shrunk towards, as "safety: 1 fires once" or "sometimes:two-leaders"
	Runs     int    // that it took, of them the three that show that the scenario is deterministic
	Events   int64  // of these runs
	Whole    bool   // nothing was left to try
}

// ErrNondeterministic says that the same scenario came to something else when
// it was run again. Such a failure is never shrunk: what would be kept is chance.
var ErrNondeterministic = errors.New("the same scenario came to something else")

// Shrink makes a scenario as small as it can, run by run: it leaves out faults,
// schedules, queues, processes and expectations, shortens the run and what lasts
// in it, and puts defaults and round values where others stood, as long as a run
// still comes to what is kept. A scenario with a swarm is shrunk as
// [Scenario.Draw] draws it with its own seed.
//
// The result is a function of the scenario and of how it is shrunk; no part of it
// can be left out on its own, if it is Whole. The error is [*Mistakes] where
// [Scenario.Validate] refuses the scenario or what is to be kept,
// [ErrNondeterministic], or says that there is nothing to keep.
func Shrink(s Scenario, how Shrinking) (*Shrunk, error) {
	return shrink(s, how, rig{budget: maxEvents})
}

func shrink(s Scenario, how Shrinking, r rig) (*Shrunk, error) {
	if len(how.Keep) > 0 {
		s.Expect = how.Keep
	}
	for _, e := range how.Keep {
		if e.Kind == ExpectMark && strings.HasPrefix(e.Mark, allMarks) {
			return nil, fmt.Errorf("found sometimes:%s to keep, want one mark: of all of them a single run is not judged", e.Mark)
		}
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.Outcome = ""; s.Swarm != (Swarm{}) {
		expect := s.Expect
		s = s.draw(s.Engine.Seed)
		if len(how.Keep) > 0 {
			s.Expect = expect
		}
	}
	k := &shrinker{how: how, rig: r, tried: map[string]bool{}}
	if k.how.Runs == 0 {
		k.how.Runs = DefaultShrinkRuns
	}
	first := k.run(&s)
	switch k.failure = failureOf(&s, first); {
	case len(how.Keep) > 0 && k.failure != nil:
		return nil, fmt.Errorf("the scenario does not come to what is to be kept: %s: %s, %s", k.failure.Verdict, k.failure.What, k.failure.Detail)
	case len(how.Keep) == 0 && k.failure == nil:
		return nil, errors.New("the scenario passes: there is no failure to keep; say what else is to be kept")
	}
	k.counted = k.failure != nil && slices.ContainsFunc(s.Expect, func(e Expect) bool {
		return e.Count > 0 && k.failure.What == "expected "+e.String()
	})
	k.best = Shrunk{Scenario: s, Result: first, Kept: k.kept(), Runs: k.runs, Events: k.events}
	if differs := difference(first, k.run(&s)); differs != "" {
		return nil, fmt.Errorf("%w: %s", ErrNondeterministic, differs)
	}
	k.shrink()
	if differs := difference(k.best.Result, k.run(&k.best.Scenario)); differs != "" {
		return nil, fmt.Errorf("%w: shrunk, %s", ErrNondeterministic, differs)
	}
	k.best.Runs, k.best.Events = k.runs, k.events
	return &k.best, nil
}

// shrinker shrinks one scenario.
type shrinker struct {
	how     Shrinking
	rig     rig
	failure *FailureGroup // that is kept; nil: what is expected is met
	counted bool          // the failure is a count, and a run of nothing would fail as well
	best    Shrunk
	tried   map[string]bool // texts
	runs    int
	events  int64
	ended   bool
}

// run runs the scenario. A panic, even of the simulator itself, is a failure.
func (k *shrinker) run(s *Scenario) (r *Result) {
	defer func() {
		if p := recover(); p != nil {
			r = &Result{Verdict: Safety, Failures: []Failure{{Invariant: panicked.String(), Detail: ownPanic(p), Verdict: Safety}}}
		}
		k.runs++
		k.events += r.Events
	}()
	return run(s, k.rig)
}

func (k *shrinker) kept() string {
	if k.failure != nil {
		return k.failure.kept()
	}
	text := ""
	for _, e := range k.how.Keep {
		text += " " + e.String()
	}
	return text[1:]
}

// keeps reports whether the run comes to what is kept.
func (k *shrinker) keeps(s *Scenario, r *Result) bool {
	failed := failureOf(s, r)
	if k.failure == nil || failed == nil {
		return k.failure == failed
	}
	return failed.kept() == k.failure.kept() && (!k.counted || failed.Detail == k.failure.Detail)
}

// try takes over a change of the best scenario so far, if what it makes of it is
// a scenario, was not tried before, and still comes to what is kept. A run may
// take a few times the events of the best one: a change may make one endless.
func (k *shrinker) try(change func(*Scenario)) bool {
	if k.ended = k.ended || k.runs >= k.how.Runs-1; k.ended { // the last run is the repetition
		return false
	}
	s := k.best.Scenario
	s.Queues, s.Outboxes, s.Schedules = slices.Clone(s.Queues), slices.Clone(s.Outboxes), slices.Clone(s.Schedules)
	s.Faults, s.Expect = slices.Clone(s.Faults), slices.Clone(s.Expect)
	change(&s)
	text := s.String()
	if k.tried[text] || k.counted && s.For != k.best.Scenario.For || s.Validate() != nil {
		return false
	}
	k.tried[text] = true
	if k.best.Result.Verdict != Budget {
		k.rig.budget = 4*k.best.Result.Events + 10_000
	}
	r := k.run(&s)
	taken := k.keeps(&s, r)
	if taken {
		k.best.Scenario, k.best.Result = s, r
	}
	k.best.Runs, k.best.Events = k.runs, k.events
	if k.how.Told != nil {
		so := k.best
		k.ended = !k.how.Told(&so)
	}
	return taken
}

// shrink tries everything until nothing makes the scenario smaller.
func (k *shrinker) shrink() {
	k.tried[k.best.Scenario.String()] = true
	for again := true; again && !k.ended; {
		before := k.best.Result
		for _, reduce := range reductions {
			reduce(k)
		}
		again = k.best.Result != before
	}
	k.best.Whole = !k.ended
}
