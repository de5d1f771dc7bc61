package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/sim"
)

// TestSeedSetIsASet compares it with a map of the seeds.
func TestSeedSetIsASet(t *testing.T) {
	for _, low := range []uint64{0, 100, math.MaxUint64 - 40} {
		rapid.Check(t, func(t *rapid.T) {
			ranges := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sim.Seeds {
				first := rapid.Uint64Range(0, 40).Draw(t, "first")
				return sim.Seeds{First: low + first, Last: low + rapid.Uint64Range(first, 40).Draw(t, "last")}
			}), 2, 8).Draw(t, "ranges")
			of := ranges[0]
			var sets [2]seedSet
			var naive [2]map[uint64]bool
			for i := range sets {
				naive[i] = map[uint64]bool{}
				for j, r := range ranges[1:] {
					if j%2 != i {
						continue
					}
					sets[i].add(r)
					for s := r.First; ; s++ {
						naive[i][s] = true
						if s == r.Last {
							break
						}
					}
				}
				require.EqualValues(t, len(naive[i]), sets[i].count())
				again, err := parseSeedSet(sets[i].words())
				require.NoError(t, err, "in order, with gaps")
				require.Equal(t, sets[i], again)
			}
			gaps := sets[0].gaps(of)
			both, found := sets[0].common(sets[1])
			inside, wantFound := true, false
			for s := low; ; s++ {
				require.Equal(t, of.First <= s && s <= of.Last && !naive[0][s], has(gaps, s), s)
				if naive[0][s] && naive[1][s] && !wantFound {
					wantFound = true
					require.Equal(t, s, both.First)
				}
				inside = inside && (!naive[0][s] || of.First <= s && s <= of.Last)
				if s == low+40 {
					break
				}
			}
			require.Equal(t, wantFound, found)
			require.Equal(t, inside, sets[0].within(of))
		})
	}
}

func has(s seedSet, seed uint64) bool {
	_, found := s.common(seedSet{{First: seed, Last: seed}})
	return found
}

func TestSeedSetNamesItsRanges(t *testing.T) {
	var s seedSet
	for i := range uint64(7) {
		s.add(sim.Seeds{First: 10 * i, Last: 10*i + 1})
	}
	require.Equal(t, "0..1, 10..11, 20..21, 30..31, 40..41, and 2 more", s.String())
	require.Equal(t, "0..1", s[:1].String())
}
