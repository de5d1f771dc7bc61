package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// kindsDrawn are the kinds of the faults that the seed draws, each once, sorted.
func kindsDrawn(s *Scenario, seed uint64) (kinds []FaultKind) {
	for _, f := range s.draw(seed).Faults {
		kinds = append(kinds, f.Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// TestPortfolioHasAllModes: each seed draws as the mode of its remainder does.
func TestPortfolioHasAllModes(t *testing.T) {
	modes := map[Mode]int{}
	for seed := range uint64(160) {
		mode, nth := ModePortfolio.of(seed)
		modes[mode]++
		require.Equal(t, seed/16, nth)
		s := *parsed(t, swarming)
		s.Swarm = Swarm{Mode: ModePortfolio}
		drawn := s.draw(seed)
		if s.Swarm.Mode = mode; mode != ModeExhaustive {
			require.Equal(t, s.draw(seed), drawn)
		} else {
			alone := s.draw(nth)
			require.Len(t, drawn.Faults, 1)
			require.Equal(t, alone.Faults[0].Kind, drawn.Faults[0].Kind)
			require.Equal(t, alone.Faults[0].At, drawn.Faults[0].At)
		}
	}
	require.Equal(t, map[Mode]int{
		ModeCalm: 10, ModeLite: 20, ModeSome: 40, ModeAllOn: 20, ModeUnmasked: 30, ModePairs: 30, ModeExhaustive: 10,
	}, modes)
}

// TestModesNarrowKinds: what a mode is named for is what its plans have.
func TestModesNarrowKinds(t *testing.T) {
	s := *parsed(t, swarming)
	of := func(mode Mode) (kinds []map[FaultKind]bool, faults []int) {
		s.Swarm = Swarm{Mode: mode}
		for seed := range uint64(300) {
			has := map[FaultKind]bool{}
			for _, k := range kindsDrawn(&s, seed) {
				has[k] = true
			}
			kinds, faults = append(kinds, has), append(faults, len(s.draw(seed).Faults))
		}
		return kinds, faults
	}
	_, faults := of(ModeCalm)
	require.Zero(t, slices.Max(faults))

	_, faults = of(ModeLite)
	require.Equal(t, 1, slices.Min(faults))
	require.Equal(t, 3, slices.Max(faults))
	for seed := range uint64(300) {
		for _, f := range s.draw(seed).Faults {
			require.LessOrEqual(t, f.For, 5*time.Second)
		}
	}

	kinds, faults := of(ModePairs)
	require.Equal(t, 4, slices.Min(faults))
	require.Equal(t, 24, slices.Max(faults))
	pairs := map[string]bool{}
	for _, has := range kinds {
		require.LessOrEqual(t, len(has), 2)
		pairs[fmt.Sprint(has)] = true
	}
	require.Greater(t, len(pairs), 100, "of 300 seeds")

	kinds, _ = of(ModeUnmasked)
	unmasked := map[FaultKind]bool{}
	for _, has := range kinds {
		for k := range has {
			unmasked[k] = true
		}
	}
	for k := FaultDown; int(k) < len(drawings); k++ {
		require.Equal(t, !drawings[k].masks, unmasked[k], k.String())
	}
	require.False(t, unmasked[FaultDown])
	require.False(t, unmasked[FaultCrash])
}

// TestModesKeepToTheList: a list that leaves a mode nothing is drawn from whole.
func TestModesKeepToTheList(t *testing.T) {
	s := *parsed(t, swarming)
	for mode := ModeLite; mode <= ModeExhaustive; mode++ {
		s.Swarm = Swarm{Mode: mode, Kinds: "down"}
		for seed := range uint64(20) {
			require.Equal(t, []FaultKind{FaultDown}, kindsDrawn(&s, seed), mode)
		}
	}
}

// TestExhaustiveGoesThroughAll: of as many seeds as there are combinations each
// draws another one, and together they have all.
func TestExhaustiveGoesThroughAll(t *testing.T) {
	s := *parsed(t, `simulate v1
engine   lease=30s
run      1m quiet-after=40s
schedule a every=20s queue=q
swarm    exhaustive kinds=pause,clock-freeze
`)
	require.NoError(t, s.Validate())
	at := func(seed uint64) (list []string) {
		for _, f := range s.draw(seed).Faults {
			list = append(list, fmt.Sprintf("%s %s", formatDuration(f.At), f.Kind))
		}
		return list
	}
	// The lease is renewed at 10 s, 20 s, 30 s and 40 s, a fault begins before 40 s.
	edges := []string{
		"0s", "9s999ms", "10s", "10s1ms", "19s", "19s999ms", "20s", "20s1ms", "21s",
		"29s999ms", "30s", "30s1ms", "39s", "39s999ms",
	}
	base := uint64(2 * len(edges))
	single, twice := map[string]bool{}, map[string]bool{}
	for seed := range base {
		faults := at(seed)
		require.Len(t, faults, 1)
		single[faults[0]] = true
	}
	for _, e := range edges {
		require.True(t, single[e+" pause"], e)
		require.True(t, single[e+" clock-freeze"], e)
	}
	require.Len(t, single, int(base))
	for seed := base; seed < base+base*base; seed++ {
		faults := at(seed)
		require.Len(t, faults, 2)
		twice[fmt.Sprint(faults)] = true
	}
	// Two kinds at one instant are counted once: in either order they stand as they are drawn.
	require.Len(t, twice, int(base*base)-len(edges)*(len(edges)-1)/2*4)
	require.Equal(t, at(base), at(base+base*base), "it begins anew")
}
