package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Swarm has faults drawn from the run's seed, in the place of concrete ones:
// the zero Swarm has none. Which faults a seed gives is told by
// [Scenario.Draw]; docs/SWARM.md describes how they are drawn.
type Swarm struct {
	Min, Max int // how many faults, at most [MaxFaults]; 0, with a Mode: 4 to 24, of ModeExhaustive at most 2

	// Kinds are the kinds that are drawn from: words with commas between. A word is
	// that of a kind, with - for its blanks, that of a group, or all; one after a
	// - leaves out what it names. "": all. All kinds are more than one version of
	// this package has; one that is to draw the same for ever lists them.
	Kinds string

	Mode Mode
}

// String is the line of the swarm without its first word.
func (s Swarm) String() string {
	var words []string
	if mode := s.modeValue().text(); mode != "" {
		words = append(words, mode)
	}
	return strings.Join(keyWords(words, &s, swarmKeys), " ")
}

func (s *Swarm) modeValue() wordValue[Mode] { return wordValue[Mode]{&s.Mode, modeWords} }

// ParseSwarm reads what stands in the line swarm of a scenario file:
// "portfolio", or "faults=8..60 kinds=all,-handler".
func ParseSwarm(text string) (Swarm, error) {
	p := parser{}
	err := p.only(swarmWord, text, p.swarm)
	return p.scenario.Swarm, err
}

// WithSwarm is the scenario with faults drawn instead of its own. What it
// expects of its own faults is left out: the counts, the verdict, and the
// recorded outcome.
func (s Scenario) WithSwarm(swarm Swarm) Scenario {
	s.Swarm, s.Faults, s.Outcome = swarm, nil, ""
	s.Expect = slices.DeleteFunc(slices.Clone(s.Expect), func(e Expect) bool {
		return e.Kind != ExpectNoDoubleFire && e.Kind != ExpectMark
	})
	return s
}

// word is the kind's name in a list of kinds.
func (k FaultKind) word() string { return strings.ReplaceAll(k.String(), " ", "-") }

const allKinds = "all"

// kindsOf reads a list of kinds, in the order of the kinds.
func kindsOf(text string) ([]FaultKind, *refusal) {
	var on [len(drawings)]bool
	for at, rest, more := 0, text, true; more; {
		var w string
		w, rest, more = strings.Cut(rest, ",")
		name, off := strings.CutPrefix(w, "-")
		known := name == allKinds
		for k := FaultDown; int(k) < len(drawings); k++ {
			switch {
			case name == allKinds || name == drawings[k].group || name == k.word():
				on[k], known = !off, true
			case off && at == 0: // a list that only leaves out
				on[k] = true
			}
		}
		if !known {
			r := unknown(name, kindNames())
			r.at = at
			return nil, r
		}
		at += len(w) + len(",")
	}
	var kinds []FaultKind
	for k := FaultDown; int(k) < len(drawings); k++ {
		if on[k] {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return nil, refuse(text, "a list that leaves at least one kind of fault")
	}
	return kinds, nil
}

// kindNames are the words of a list of kinds.
func kindNames() []string {
	names := []string{allKinds}
	for _, d := range drawings[FaultDown:] {
		if !slices.Contains(names, d.group) {
			names = append(names, d.group)
		}
	}
	for k := FaultDown; int(k) < len(drawings); k++ {
		names = append(names, k.word())
	}
	return names
}

// kindsValue is a list of kinds of faults.
type kindsValue struct{ s *string }

func (v kindsValue) parse(text string) *refusal {
	_, r := kindsOf(text)
	if r == nil {
		*v.s = text
	}
	return r
}

func (v kindsValue) text() string { return *v.s }

// rangeValue is a whole number, or two with .. between; the zero range is left
// out.
type rangeValue struct {
	low, high *int
	most      int
}

func (v rangeValue) parse(text string) *refusal {
	form := fmt.Sprintf("a whole number from 1 to %d, or two with .. between, such as 8..60", v.most)
	first, last, two := strings.Cut(text, "..")
	if !two {
		last = first
	}
	var low, high int
	if (numberValue[int]{n: &low, most: v.most}).parse(first) != nil || (numberValue[int]{n: &high, least: 1, most: v.most}).parse(last) != nil {
		return refuse(text, form)
	}
	if high < low {
		return refuse(text, "a range whose end is not before its beginning")
	}
	*v.low, *v.high = low, high
	return nil
}

func (v rangeValue) text() string {
	switch {
	case *v.low == 0 && *v.high == 0:
		return ""
	case *v.low == *v.high:
		return strconv.Itoa(*v.low)
	default:
		return strconv.Itoa(*v.low) + ".." + strconv.Itoa(*v.high)
	}
}
