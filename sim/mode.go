package sim

import (
	"math/bits"
	"slices"
	"time"
)

// Mode is how a swarm draws the faults of a seed.
type Mode uint8

// The modes. Which kinds of faults there are, the list of kinds may narrow
// further.
const (
	ModeMixed      Mode = iota // all kinds, a few, or a random part of them, drawn for each seed
	ModePortfolio              // one of the other modes for each seed, by its number
	ModeCalm                   // no faults
	ModeLite                   // at most three faults, each for the time of a lease at most
	ModeSome                   // a random part of the kinds
	ModeAllOn                  // all kinds
	ModeUnmasked               // without the kinds in whose shadow others show nothing: no process is away and no store full
	ModePairs                  // two kinds, the faults close to each other
	ModeExhaustive             // a few faults, each at each instant beside a boundary or an edge of a lease, all combinations of them by the seed's number
)

var modeWords = []string{
	ModePortfolio: "portfolio", ModeCalm: "calm", ModeLite: "lite", ModeSome: "some", ModeAllOn: "all-on",
	ModeUnmasked: "unmasked", ModePairs: "pairs", ModeExhaustive: "exhaustive",
}

// portfolio has the mode of each seed, by its remainder.
var portfolio = [...]Mode{
	ModeCalm, ModeLite, ModeLite, ModeSome, ModeSome, ModeSome, ModeSome, ModeAllOn, ModeAllOn,
	ModeUnmasked, ModeUnmasked, ModeUnmasked, ModePairs, ModePairs, ModePairs, ModeExhaustive,
}

// of is the mode of a seed, and the seed's number among those of its mode.
func (m Mode) of(seed uint64) (Mode, uint64) {
	if m != ModePortfolio {
		return m, seed
	}
	return portfolio[seed%uint64(len(portfolio))], seed / uint64(len(portfolio))
}

// How many faults there are if a swarm with a mode does not say it.
const (
	modeMin, modeMax = 4, 24
	liteMax          = 3
	exhaustiveMax    = 2
)

// count draws how many faults the plan has.
func (d *drawing) count() int {
	low, high := d.scenario.Swarm.Min, d.scenario.Swarm.Max
	if high == 0 {
		low, high = modeMin, modeMax
	}
	switch d.mode {
	case ModeCalm:
		return 0
	case ModeLite:
		low, high = 1, liteMax
	}
	return low + d.n("count", high-low+1)
}

// kinds draws which kinds of faults a plan has.
func (d *drawing) kinds() []FaultKind {
	all, _ := kindsOf(d.scenario.kindsText())
	some := all
	switch mode := d.mode; {
	case mode == ModeMixed:
		return d.mixed(all)
	case mode == ModeSome:
		some = d.some(all)
	case mode == ModePairs:
		some = d.few(all, 2)
	case mode == ModeUnmasked:
		some = slices.DeleteFunc(slices.Clone(all), func(k FaultKind) bool { return drawings[k].masks })
	}
	if len(some) == 0 {
		return all
	}
	return some
}

// mixed draws which kinds a plan has: one in four has all of them, one has three
// at most, two have each by even chance.
func (d *drawing) mixed(all []FaultKind) []FaultKind {
	switch d.n("portfolio", 4) {
	case 0:
		return all
	case 1:
		return d.few(all, 3)
	}
	if some := d.some(all); len(some) > 0 {
		return some
	}
	return all
}

// few draws so many of the kinds, and keeps each once.
func (d *drawing) few(all []FaultKind, n int) (few []FaultKind) {
	for range n {
		few = append(few, one(d, "few", all...))
	}
	slices.Sort(few)
	return slices.Compact(few)
}

// some draws of each kind whether it is there.
func (d *drawing) some(all []FaultKind) (some []FaultKind) {
	for _, k := range all {
		if d.n("has "+k.word(), 2) == 1 {
			some = append(some, k)
		}
	}
	return some
}

// enumerate gives the plan the faults of the nth combination: first all of one
// fault, then those of two, and so on; after the last one they begin anew.
func (d *drawing) enumerate(nth uint64) {
	kinds, edges := d.kinds(), d.edges()
	most := d.scenario.Swarm.Max
	if most == 0 {
		most = exhaustiveMax
	}
	base := uint64(len(kinds) * len(edges))
	faults, combinations := 1, base
	for faults < most && nth >= combinations {
		nth -= combinations
		high, low := bits.Mul64(combinations, base)
		if faults++; high > 0 {
			break // more than there are seeds
		}
		combinations = low
	}
	for range faults {
		digit := nth % base
		nth /= base
		d.add(kinds[digit/uint64(len(edges))], func() time.Duration { return edges[digit%uint64(len(edges))] })
	}
}

// edges are the instants beside the first two boundaries of each schedule and
// beside the renewals and the end of the first two leases, in their order.
func (d *drawing) edges() []time.Duration {
	last := d.scenario.QuietAfter - time.Millisecond
	edges := []time.Duration{0}
	beside := func(at time.Duration, by ...time.Duration) {
		for _, by := range by {
			if at := wholeMS(at + by); 0 <= at && at <= last {
				edges = append(edges, at)
			}
		}
	}
	for i := range d.scenario.Schedules {
		first, every := d.grid(&d.scenario.Schedules[i])
		for nth := range int64(2) {
			if at := first + nth*every; at <= (last + time.Second).Milliseconds() {
				beside(time.Duration(at)*time.Millisecond, 0, -time.Millisecond, time.Millisecond, -time.Second, time.Second)
			}
		}
	}
	for nth := range time.Duration(6) {
		beside((nth+1)*(d.lease()/3), 0, -time.Millisecond, time.Millisecond)
	}
	slices.Sort(edges)
	return slices.Compact(edges)
}
