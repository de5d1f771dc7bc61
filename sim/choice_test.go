package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func draws(s *site, n int64, count int) []int64 {
	list := make([]int64, count)
	for i := range list {
		list[i] = s.choice(n)
	}
	return list
}

// TestChoiceGolden freezes the streams; the vectors were computed by a second
// implementation in Python.
func TestChoiceGolden(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		site string
		n    int64
		want []int64
	}{
		{0, "handler", 1000, []int64{483, 963, 33, 776, 420, 813, 581, 225}},
		{1, "handler", 1000, []int64{431, 997, 185, 505, 934, 874, 823, 656}},
		{0, "handler/report", 1000, []int64{835, 350, 795, 601, 694, 913, 959, 992}},
		{42, "store", 1 << 62, []int64{1717727924066155202, 4469522708345763826, 2231283026355042798}},
	} {
		require.Equal(t, c.want, draws(newChoices(c.seed).at(c.site), c.n, len(c.want)), c.site)
	}
}

// TestChoiceSitesAreIndependent: draws at one site, however many and of
// whatever range, move no draw of another.
func TestChoiceSitesAreIndependent(t *testing.T) {
	alone := draws(newChoices(7).at("a"), 100, 50)
	c := newChoices(7)
	var beside []int64
	for i := range 50 {
		draws(c.at("b"), int64(i+1), i)
		beside = append(beside, c.at("a").choice(100))
	}
	require.Equal(t, alone, beside)
	require.NotEqual(t, alone, draws(c.at("c"), 100, 50))
}

// TestChoiceRangeMovesNothing: the range of one draw does not move the next.
func TestChoiceRangeMovesNothing(t *testing.T) {
	narrow, wide := newChoices(7).at("a"), newChoices(7).at("a")
	narrow.choice(1)
	wide.choice(1 << 40)
	require.Equal(t, draws(narrow, 100, 20), draws(wide, 100, 20))
}

func TestChoiceIsWithinItsRange(t *testing.T) {
	s := newChoices(3).at("a")
	counts := make([]int, 7)
	for range 70_000 {
		counts[s.choice(7)]++ // panics outside
	}
	for _, n := range counts {
		require.InDelta(t, 10_000, n, 400)
	}
	require.Zero(t, s.choice(1))
}

func TestChance(t *testing.T) {
	s := newChoices(3).at("a")
	count := 0
	for range 100_000 {
		if s.happens(300_000) {
			count++
		}
		require.True(t, s.happens(Always))
	}
	require.InDelta(t, 30_000, count, 600)

	draw := newChoices(3).at("a").choice(int64(Always))
	require.False(t, newChoices(3).at("a").happens(PPM(draw)), "the edge")
	require.True(t, newChoices(3).at("a").happens(PPM(draw+1)))
}

func TestDrawnSpan(t *testing.T) {
	s := newChoices(3).at("a")
	span := Span{5 * time.Millisecond, 8 * time.Millisecond}
	seen := map[time.Duration]int{}
	for range 4000 {
		seen[s.within(span)]++
	}
	require.Len(t, seen, 4)
	require.Contains(t, seen, span.Min)
	require.Contains(t, seen, span.Max)
	require.Equal(t, time.Hour, s.within(Span{time.Hour, time.Hour}))
}
