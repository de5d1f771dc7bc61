package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// SweepResult is what the runs of a sweep came to together.
type SweepResult struct {
	Scenario Scenario
	Runs     int64 // one for each seed
	Failed   int64 // of them, those whose verdict is not pass
	Repeated int64 // of them, those that were made twice
	Digest   Digest
	Events   int64

	Failures []FailureGroup // the gravest first
	Excuses  []ExcuseGroup  // by kind
	Faults   []FaultGroup   // by kind
	Marks    []MarkGroup    // the whole catalogue
	Checks   []Check        // the whole catalogue

	Schedules ScheduleResult // the sum over all schedules, with the greatest MaxLate
	Queues    QueueResult    // the sum over all queues
}

// FailureGroup is the runs that failed alike, each counted once: by its verdict,
// and by the first invariant that it broke or the first expectation that it did
// not meet.
type FailureGroup struct {
	Verdict Verdict
	What    string // the invariant, or "expected …", or the verdict's word
	Runs    int64
	Seeds   []uint64 // the lowest few

	Schedule, Detail string // of the first of the seeds
}

// ExcuseGroup is the excuses of one kind.
type ExcuseGroup struct {
	Excuse       // of the run with the lowest seed, its first
	Count  int64 // excuses
	Runs   int64
	Seed   uint64 // the lowest
}

// FaultGroup is the faults of one kind.
type FaultGroup struct {
	Kind      FaultKind
	Count     int64
	Effective int64 // of them, those that took effect
	Effect    int64 // how often they did
}

// MarkGroup is a coverage mark.
type MarkGroup struct {
	Reach
	Runs int64 // in how many it was reached
}

// keptSeeds is how many seeds of a group are kept.
const keptSeeds = 5

// add takes in what a run came to.
func (r *SweepResult) add(seed uint64, run *Result) {
	one := SweepResult{Events: run.Events, Checks: run.Checks}
	for i := range run.Schedules {
		one.Schedules.add(&run.Schedules[i])
	}
	for i := range run.Queues {
		one.Queues.add(&run.Queues[i])
	}
	for _, e := range run.Excused {
		one.Excuses = group(one.Excuses, []ExcuseGroup{{Excuse: e, Count: 1, Seed: seed}}, ExcuseGroup.compare, (*ExcuseGroup).add)
	}
	for i := range one.Excuses {
		one.Excuses[i].Runs = 1
	}
	for i := range run.Faults {
		f := FaultGroup{Kind: run.Faults[i].Fault.Kind, Count: 1, Effect: run.Faults[i].Effect}
		f.Effective = min(f.Effect, 1)
		one.Faults = group(one.Faults, []FaultGroup{f}, FaultGroup.compare, (*FaultGroup).add)
	}
	for _, m := range run.Coverage.Marks() {
		one.Marks = append(one.Marks, MarkGroup{m, min(m.Reached, 1)})
	}
	r.Merge(&one)
}

// count counts a run, and with it how it failed, if it did.
func (r *SweepResult) count(seed uint64, failed *FailureGroup) {
	one := SweepResult{Runs: 1}
	if failed != nil {
		failed.Runs, failed.Seeds = 1, []uint64{seed}
		one.Failed, one.Failures = 1, []FailureGroup{*failed}
	}
	r.Merge(&one)
}

// Merge adds another part of the sweep: of the same scenario, and of seeds that
// r does not have. In which order parts are merged makes no difference. Merged with
// the zero SweepResult, r has both catalogues, of marks and of checks, whole.
func (r *SweepResult) Merge(other *SweepResult) {
	r.Runs += other.Runs
	r.Failed += other.Failed
	r.Repeated += other.Repeated
	r.Digest += other.Digest
	r.Events += other.Events
	r.Failures = group(r.Failures, other.Failures, FailureGroup.compare, (*FailureGroup).add)
	r.Excuses = group(r.Excuses, other.Excuses, ExcuseGroup.compare, (*ExcuseGroup).add)
	r.Faults = group(r.Faults, other.Faults, FaultGroup.compare, (*FaultGroup).add)
	if r.Marks == nil {
		for _, m := range new(Coverage).Marks() {
			r.Marks = append(r.Marks, MarkGroup{Reach: m})
		}
	}
	for i := range other.Marks {
		m, o := &r.Marks[i], &other.Marks[i]
		m.Evaluated += o.Evaluated
		m.Reached += o.Reached
		m.Runs += o.Runs
	}
	if r.Checks == nil {
		r.Checks = new(world).checks()
	}
	for i := range other.Checks {
		r.Checks[i].Count += other.Checks[i].Count
	}
	r.Schedules.add(&other.Schedules)
	r.Queues.add(&other.Queues)
}

// group merges two sorted lists of groups.
func group[G any](list, others []G, compare func(G, G) int, add func(*G, *G)) []G {
	for i := range others {
		at, found := slices.BinarySearchFunc(list, others[i], compare)
		if found {
			add(&list[at], &others[i])
		} else {
			list = slices.Insert(list, at, others[i])
		}
	}
	return list
}

// kept is what a run that is to fail alike is known by.
func (g *FailureGroup) kept() string { return g.Verdict.String() + ": " + g.What }

func (g FailureGroup) compare(o FailureGroup) int {
	return cmp.Or(slices.Index(gravity, g.Verdict)-slices.Index(gravity, o.Verdict), cmp.Compare(g.What, o.What))
}

func (g *FailureGroup) add(o *FailureGroup) {
	if o.Seeds[0] < g.Seeds[0] {
		g.Schedule, g.Detail = o.Schedule, o.Detail
	}
	g.Runs += o.Runs
	g.Seeds = slices.Concat(g.Seeds, o.Seeds)
	slices.Sort(g.Seeds)
	g.Seeds = g.Seeds[:min(len(g.Seeds), keptSeeds)]
}

func (g ExcuseGroup) compare(o ExcuseGroup) int { return cmp.Compare(g.Kind, o.Kind) }

func (g *ExcuseGroup) add(o *ExcuseGroup) {
	if o.Seed < g.Seed {
		g.Excuse, g.Seed = o.Excuse, o.Seed
	}
	g.Count += o.Count
	g.Runs += o.Runs
}

func (g FaultGroup) compare(o FaultGroup) int { return cmp.Compare(g.Kind, o.Kind) }

func (g *FaultGroup) add(o *FaultGroup) {
	g.Count += o.Count
	g.Effective += o.Effective
	g.Effect += o.Effect
}

// gravity has the verdicts, the gravest first.
var gravity = []Verdict{BadInput, Safety, Nondeterministic, HandlerCrash, Budget, Liveness, Unmet, Vacuous, Pass}

// Verdict is the gravest of the runs; [Vacuous] if all passed and a mark that
// the scenario expects was reached by none. All of them are expected of
// [EnoughSeeds] runs and more.
func (r *SweepResult) Verdict() Verdict {
	switch {
	case len(r.Failures) > 0:
		return r.Failures[0].Verdict
	case len(r.Unreached()) > 0:
		return Vacuous
	default:
		return Pass
	}
}

// EnoughSeeds is of how many runs it is expected that they come to all coverage
// marks, where a scenario expects sometimes:all.
const EnoughSeeds = 2000

// Unreached lists the marks that the scenario expects and no run reached.
func (r *SweepResult) Unreached() []string {
	var list []string
	for _, e := range r.Scenario.Expect {
		if e.Kind != ExpectMark || e.ofAllMarks() && r.Runs < EnoughSeeds {
			continue
		}
		for _, m := range e.marks() {
			if id := catalogue[m].id; (r.Marks == nil || r.Marks[m].Runs == 0) && !slices.Contains(list, id) {
				list = append(list, id)
			}
		}
	}
	return list
}

// TB is what [SweepResult.Require] needs of a *testing.T.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Require fails the test unless the verdict is [Pass]. The message names the
// seeds that failed, and has the scenario of the gravest of them, shrunk as far as
// a few runs go: kept as a file, the command simulate runs it again. One with
// handlers or a store in Go only the test can run again.
func (r *SweepResult) Require(t TB) {
	t.Helper()
	if r.Verdict() == Pass {
		return
	}
	test := "the test"
	if named, ok := t.(interface{ Name() string }); ok {
		test = named.Name()
	}
	t.Fatal(r.failure(test, rig{budget: maxEvents}))
}

// What the shrinking of a failed test may take.
const (
	requireRuns   = 300
	requireEvents = 10_000_000
)

func (r *SweepResult) failure(test string, rig rig) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d seeds failed\n", r.Verdict(), r.Failed, r.Runs)
	for _, g := range r.Failures {
		fmt.Fprintf(&b, "%s: %s, %s\n", g.Verdict, g.What, g.SeedList())
		if g.Schedule != "" {
			fmt.Fprintf(&b, "  schedule %s: ", quote(g.Schedule))
		} else {
			b.WriteString("  ")
		}
		b.WriteString(g.Detail + "\n")
	}
	for _, mark := range r.Unreached() {
		fmt.Fprintf(&b, "no run reached the mark %s\n", mark)
	}
	if len(r.Failures) == 0 {
		return b.String()
	}
	seed := r.Failures[0].Seeds[0]
	s, so := r.Scenario.draw(seed), ""
	shrunk, err := shrink(s, Shrinking{Runs: requireRuns, Told: func(s *Shrunk) bool { return s.Events < requireEvents }}, rig)
	if err == nil && shrunk.Kept == r.Failures[0].kept() {
		s, so = shrunk.Scenario, ", shrunk to what makes it fail"
	}
	if inGo := r.Scenario.inGo(); inGo != "" {
		fmt.Fprintf(&b, "to run seed %d again, which has %s in Go, let %s sweep sim.Seeds{First: %d, Last: %d}; it is%s\n", seed, inGo, test, seed, seed, so)
	} else {
		fmt.Fprintf(&b, "to run seed %d again%s, keep what follows as seed-%d.sim, and\n", seed, so, seed)
		fmt.Fprintf(&b, "  go run github.com/tickonce/tickonce/cmd/simulate run seed-%d.sim\n", seed)
	}
	fmt.Fprintf(&b, "\n%s", s)
	return b.String()
}

// inGo is what the scenario has in Go, and no text has; "" of one without.
func (s *Scenario) inGo() string {
	switch {
	case len(s.Handlers) > 0 && s.Store != nil:
		return "handlers and a store"
	case len(s.Handlers) > 0:
		return "handlers"
	case s.Store != nil:
		return "a store"
	default:
		return ""
	}
}

// SeedList names the seeds that are kept, and says how many there are more.
func (g *FailureGroup) SeedList() string {
	words := make([]string, len(g.Seeds))
	for i, seed := range g.Seeds {
		words[i] = fmt.Sprint(seed)
	}
	if more := g.Runs - int64(len(g.Seeds)); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	if len(words) == 1 {
		return "seed " + words[0]
	}
	return "seeds " + strings.Join(words, ", ")
}
