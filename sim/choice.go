package sim

import (
	"math/bits"
	"time"

	"github.com/tickonce/tickonce/internal/core"
)

// choices are the random draws of one run. Every site that draws has a stream
// of its own, keyed by the run's seed and the site's name, so that one draw
// more at one site moves no draw of another. The n-th draw of a site is the
// n-th output of splitmix64 seeded with that key; golden vectors freeze it.
type choices struct {
	seed  uint64
	deck  *deck // records what is drawn, or plays what was; or nil
	sites map[string]*site
}

// site is one stream of draws.
type site struct {
	key   uint64
	draws uint64
	name  string
	deck  *deck
}

func newChoices(seed uint64) *choices {
	return &choices{seed: seed, sites: map[string]*site{}}
}

// at is the stream of the named site. Where draws are frequent it is looked up
// once.
func (c *choices) at(name string) *site {
	s := c.sites[name]
	if s == nil {
		var d Digest
		d.Text(0, name)
		s = &site{key: core.Mix64(c.seed ^ core.Mix64(uint64(d))), name: name, deck: c.deck}
		c.sites[name] = s
	}
	return s
}

// choice draws a number in [0, n), n ≥ 1. A stream moves by one whatever n is.
func (s *site) choice(n int64) int64 {
	const gamma = 0x9e3779b97f4a7c15 // splitmix64's step
	draw := core.Mix64(s.key + s.draws*gamma)
	s.draws++
	high, _ := bits.Mul64(draw, uint64(n)) // skewed by less than n/2^64
	if s.deck != nil {
		return s.deck.choose(s.name, n, int64(high))
	}
	return int64(high)
}

// happens draws whether something of the chance p happens.
func (s *site) happens(p PPM) bool { return s.choice(int64(Always)) < int64(p) }

// within draws a duration of the span, in whole milliseconds.
func (s *site) within(span Span) time.Duration {
	return span.Min + time.Duration(s.choice(int64((span.Max-span.Min)/time.Millisecond)+1))*time.Millisecond
}
