package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tickonce/tickonce/sim"
)

// seedSet is a set of seeds: ranges in order, with a gap between any two.
type seedSet []sim.Seeds

// add adds a range.
func (s *seedSet) add(r sim.Seeds) {
	begin := slices.IndexFunc(*s, func(o sim.Seeds) bool { return r.First == 0 || o.Last >= r.First-1 })
	if begin < 0 {
		begin = len(*s)
	}
	end := begin
	for ; end < len(*s) && ((*s)[end].First <= r.Last || (*s)[end].First-1 == r.Last); end++ {
		r.First, r.Last = min(r.First, (*s)[end].First), max(r.Last, (*s)[end].Last)
	}
	*s = slices.Replace(*s, begin, end, r)
}

// gaps are the seeds of the range that the set does not have.
func (s seedSet) gaps(of sim.Seeds) (gaps seedSet) {
	for _, r := range s {
		if r.Last < of.First || r.First > of.Last {
			continue
		}
		if r.First > of.First {
			gaps = append(gaps, sim.Seeds{First: of.First, Last: r.First - 1})
		}
		if r.Last >= of.Last {
			return gaps
		}
		of.First = r.Last + 1
	}
	return append(gaps, of)
}

// common is the first range that both sets have.
func (s seedSet) common(other seedSet) (both sim.Seeds, found bool) {
	for i, j := 0, 0; i < len(s) && j < len(other); {
		both = sim.Seeds{First: max(s[i].First, other[j].First), Last: min(s[i].Last, other[j].Last)}
		switch {
		case both.First <= both.Last:
			return both, true
		case s[i].Last < other[j].Last:
			i++
		default:
			j++
		}
	}
	return sim.Seeds{}, false
}

// within reports whether the range has all of the set.
func (s seedSet) within(r sim.Seeds) bool {
	return len(s) == 0 || s[0].First >= r.First && s[len(s)-1].Last <= r.Last
}

func (s seedSet) count() (n uint64) {
	for _, r := range s {
		n += r.Count()
	}
	return n
}

// words are the ranges as sim.ParseSeeds reads them.
func (s seedSet) words() []string {
	words := make([]string, len(s))
	for i, r := range s {
		words[i] = r.String()
	}
	return words
}

// String names the first few ranges.
func (s seedSet) String() string {
	const most = 5
	words := s.words()
	if more := len(words) - most; more > 0 {
		words = append(words[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, ", ")
}

// parseSeedSet reads ranges that are in order, with gaps between them.
func parseSeedSet(words []string) (s seedSet, err error) {
	for _, word := range words {
		r, err := sim.ParseSeeds(word)
		if err != nil {
			return nil, err
		}
		if n := len(s); n > 0 && (r.First <= s[n-1].Last || r.First-1 == s[n-1].Last) {
			return nil, fmt.Errorf("found the seeds %s behind %s, want ranges in order, with gaps between them", r, s[n-1])
		}
		s = append(s, r)
	}
	return s, nil
}
