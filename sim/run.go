package sim

import (
	"fmt"
	"slices"
	"time"
)

// Run runs a scenario from its start to its end; one with a swarm as
// [Scenario.Draw] draws it with its own seed. The error is [*Mistakes],
// where [Scenario.Validate] refuses the scenario; whatever goes wrong in the
// run itself, a panic of the engine too, is in the [Result]. A run owns nothing
// outside its memory: several may be made at once.
func Run(s Scenario) (*Result, error) { return runWith(s, rig{budget: maxEvents}) }

func runWith(s Scenario, r rig) (*Result, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.Swarm != (Swarm{}) {
		s = s.draw(s.Engine.Seed)
	}
	return run(&s, r), nil
}

func run(s *Scenario, r rig) *Result {
	w := newWorld(s, r)
	w.run()
	result := w.result()
	result.meet(s.Expect)
	return result
}

// result tells what the run came to, by the truth alone.
func (w *world) result() *Result {
	r := &Result{
		Seed: w.scenario.Engine.Seed, Verdict: w.verdict(), Digest: w.digest,
		Simulated: time.Duration(w.now-w.start) * time.Millisecond, Events: w.events, Spent: w.spent,
		Checks: w.checks(), Failures: w.failures, Excused: w.excused, Coverage: w.coverage,
	}
	for i := range w.truth.schedules {
		r.Schedules = append(r.Schedules, w.truth.schedules[i].result())
	}
	for _, q := range w.truth.queues {
		r.Queues = append(r.Queues, q.result())
	}
	for i, f := range w.scenario.Faults {
		r.Faults = append(r.Faults, FaultResult{Fault: f, Text: f.String(), Effect: w.faults[i].effect, Cost: w.faults[i].cost})
	}
	return r
}

// verdict is the gravest of what happened.
func (w *world) verdict() Verdict {
	verdict := Pass
	if w.spent != "" {
		verdict = Budget
	}
	for _, f := range w.failures {
		if slices.Index(gravity, f.Verdict) < slices.Index(gravity, verdict) {
			verdict = f.Verdict
		}
	}
	return verdict
}

// meet compares the result with what the scenario expects. A run whose verdict
// is the expected one passes, if it meets the rest as well; what is not met
// makes it a failed one.
func (r *Result) meet(expect []Expect) {
	expected := Pass
	for _, e := range expect {
		if met, got := r.meets(e); !met {
			r.Unmet = append(r.Unmet, fmt.Sprintf("expected %s, %s", e, got))
		}
		if e.Kind == ExpectVerdict {
			expected = e.Verdict
		}
	}
	switch {
	case r.Verdict != expected && r.Verdict != Pass:
	case len(r.Unmet) > 0:
		r.Verdict = Unmet
	default:
		r.Verdict = Pass
	}
}

// meets reports whether the expectation is met, and says what came.
func (r *Result) meets(e Expect) (met bool, got string) {
	count := func(n int64) (bool, string) { return n == e.Count, fmt.Sprintf("got %d", n) }
	switch e.Kind {
	case ExpectNoDoubleFire:
		for _, f := range r.Failures {
			if f.Invariant == firesOnce.String() {
				return false, "got one of " + f.Schedule + ": " + f.Detail
			}
		}
		return true, ""
	case ExpectVerdict:
		return r.Verdict == e.Verdict, "got " + r.Verdict.String()
	case ExpectMark:
		return e.ofAllMarks() || r.Coverage.reached(e.marks()[0]), "which was never reached"
	}
	for i := range r.Schedules {
		if s := &r.Schedules[i]; s.Name == e.Schedule {
			switch e.Kind {
			case ExpectFires:
				return count(s.Fired)
			case ExpectSkipped:
				return count(s.Skipped)
			default:
				return count(s.Quarantined)
			}
		}
	}
	return false, "there is no such schedule"
}
