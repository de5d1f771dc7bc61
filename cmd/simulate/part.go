package main

import (
	"fmt"

	"github.com/tickonce/tickonce/sim"
)

// part is what some seeds of a sweep came to, and of which sweep they are. Parts
// of one sweep merge to what their seeds come to together, in any order.
type part struct {
	build      string    // what made the runs; "" where nobody asks
	file       string    // the scenario's, as a command named it
	guests     guests    // their programs are part of which sweep it is
	engine     engine    // so is whether it made the runs a second time
	swarmGiven bool      // by a flag, in the place of the file's own
	seeds      sim.Seeds // of the whole sweep
	done       seedSet   // of them, those that were run
	*sim.SweepResult
}

// newResult is the result of no seeds.
func newResult(s sim.Scenario) *sim.SweepResult {
	r := &sim.SweepResult{Scenario: s}
	r.Merge(&sim.SweepResult{})
	return r
}

// sameSweep says in what the other part differs that makes it one of another
// sweep; nil if it is one of the same.
func (p *part) sameSweep(other *part) error {
	if other.build != p.build {
		return fmt.Errorf("found runs of the build %s, want %s", other.build, p.build)
	}
	if !other.guests.sameAs(p.guests) {
		return fmt.Errorf("found runs with %s as handlers, want %s", other.guests.words(), p.guests.words())
	}
	if other.engine.wasm != p.engine.wasm {
		return fmt.Errorf("found runs with --engine %s, want --engine %s", other.engine.word(), p.engine.word())
	}
	was, is := lines(textOf(other.Scenario)), lines(textOf(p.Scenario))
	for i := range max(len(was), len(is)) {
		if a, b := lineAt(was, i), lineAt(is, i); a != b {
			return fmt.Errorf("found another scenario: its line %d is %q, want %q", i+1, a, b)
		}
	}
	return nil
}

// merge adds a part of the same sweep, of seeds that p does not have.
func (p *part) merge(other *part) {
	p.file = min(p.file, other.file)
	for i := range p.guests {
		p.guests[i].File = min(p.guests[i].File, other.guests[i].File)
	}
	p.swarmGiven = p.swarmGiven && other.swarmGiven // the file alone is enough
	p.seeds = sim.Seeds{First: min(p.seeds.First, other.seeds.First), Last: max(p.seeds.Last, other.seeds.Last)}
	for _, r := range other.done {
		p.done.add(r)
	}
	p.SweepResult.Merge(other.SweepResult)
}
