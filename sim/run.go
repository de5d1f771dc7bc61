package sim

import (
	"fmt"
	"time"

	"github.com/tickonce/tickonce/store"
)

// Run runs a scenario from its start to its end. The error is [*Mistakes],
// where [Scenario.Validate] refuses the scenario. A run owns nothing outside
// its memory: several may be made at once.
func Run(s Scenario) (*Result, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	w := newWorld(&s)
	verdict := w.run()
	r := &Result{
		Seed: s.Engine.Seed, Simulated: s.For, Events: w.events,
		Digest: w.digest, Failures: w.failures, Excused: w.excused, Coverage: w.coverage,
	}
	for i := range s.Schedules {
		counts := w.truth.counts[s.Schedules[i].Name]
		counts.Boundaries = counts.Fired + counts.Skipped
		r.Schedules = append(r.Schedules, *counts)
	}
	r.Queues = w.queueResults()
	for i, f := range s.Faults {
		r.Faults = append(r.Faults, FaultResult{Fault: f, Text: f.String(), Effect: w.faults[i].effect})
	}
	r.Verdict = verdict
	if verdict == Pass {
		r.Verdict = judge(w.failures)
	}
	r.meet(s.Expect)
	return r, nil
}

// judge is the verdict of the failures: safety before liveness.
func judge(failures []Failure) Verdict {
	verdict := Pass
	for _, f := range failures {
		if !f.Liveness {
			return Safety
		}
		verdict = Liveness
	}
	return verdict
}

func (w *world) queueResults() []QueueResult {
	var results []QueueResult
	for _, q := range w.truth.queues {
		result := QueueResult{Name: q.name}
		var rows [1]store.Queue
		if n, _, err := w.truth.memory.Queues(ctx, q.name, rows[:]); err == nil && n == 1 && rows[0].Name == q.name {
			row := &rows[0]
			result.Enqueued, result.Done, result.Dead = row.Enqueued, row.Done, row.Dead
			result.Pending, result.Claimed, result.Cancelled = row.Pending, row.Claimed, row.Cancelled
			result.Retried, result.Claims = row.Retried, row.Claims
		}
		results = append(results, result)
	}
	return results
}

// meet compares the result with what the scenario expects. What is not met
// makes a run that passed a failed one.
func (r *Result) meet(expect []Expect) {
	verdict := r.Verdict
	expected := Pass
	for _, e := range expect {
		if met, got := r.meets(e, verdict); !met {
			r.Unmet = append(r.Unmet, fmt.Sprintf("expected %s, got %s", e, got))
		}
		if e.Kind == ExpectVerdict {
			expected = e.Verdict
		}
	}
	switch {
	case len(r.Unmet) > 0 && (r.Verdict == Pass || r.Verdict == expected):
		r.Verdict = Safety
	case len(r.Unmet) == 0 && verdict == expected:
		r.Verdict = Pass // what was expected is no failure
	}
}

func (r *Result) meets(e Expect, verdict Verdict) (met bool, got string) {
	number := func(n int64) (bool, string) { return n == e.Count, fmt.Sprint(n) }
	switch e.Kind {
	case ExpectNoDoubleFire:
		for _, f := range r.Failures {
			if f.Invariant == "1 fires once" {
				return false, f.Detail
			}
		}
		return true, ""
	case ExpectVerdict:
		return verdict == e.Verdict, verdict.String()
	case ExpectMark:
		m, ok := markOf(e.Mark)
		return ok && r.Coverage.reached(m), "it was not reached"
	}
	for i := range r.Schedules {
		if s := &r.Schedules[i]; s.Name == e.Schedule {
			switch e.Kind {
			case ExpectFires:
				return number(s.Fired)
			case ExpectSkipped:
				return number(s.Skipped)
			default:
				return number(s.Quarantined)
			}
		}
	}
	return false, "no such schedule"
}

// milliseconds writes a span for people.
func milliseconds(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }
