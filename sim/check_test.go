package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryInvariantHasItsOccasions: none of the catalogue is left out, and each
// occasion is there for some.
func TestEveryInvariantHasItsOccasions(t *testing.T) {
	seen := map[invariant]bool{}
	names := map[string]bool{}
	for o, list := range checkedAt {
		require.NotEmpty(t, list, "occasion %d", o)
		for _, i := range list {
			seen[i] = true
		}
	}
	for i, rule := range rules {
		require.True(t, seen[invariant(i)], rule.name)
		require.NotEmpty(t, rule.about, rule.name)
		require.False(t, names[rule.name], rule.name)
		names[rule.name] = true
	}
}

// TestChecksAreCounted: each fire, claim and settlement is checked once, and what
// never came up is in the list with 0.
func TestChecksAreCounted(t *testing.T) {
	s, err := Parse("calm.sim", calmHour)
	require.NoError(t, err)
	r, err := Run(s)
	require.NoError(t, err)
	require.Len(t, r.Checks, int(invariants))
	fires := r.Schedules[0].Fired + r.Schedules[1].Fired
	count := func(i invariant) int64 {
		require.Equal(t, i.String(), r.Checks[i].Invariant)
		return r.Checks[i].Count
	}
	require.Equal(t, fires+2, count(firesOnce), "and the two registrations")
	require.Equal(t, r.Queues[0].Claims, count(oneClaim))
	require.Equal(t, r.Queues[0].Done+2, count(staleToken), "and the two registrations")
	require.Equal(t, r.Events, count(panicked))
	require.Zero(t, count(pauses))
}

// TestSweepSumsUpTheChecks over its runs.
func TestSweepSumsUpTheChecks(t *testing.T) {
	s, err := Parse("calm.sim", calmHour)
	require.NoError(t, err)
	one, err := Run(s)
	require.NoError(t, err)
	r, err := Sweep(s, Seeds{First: 1, Last: 3})
	require.NoError(t, err)
	require.Equal(t, 3*one.Checks[firesOnce].Count, r.Checks[firesOnce].Count)
	require.Equal(t, "1 fires once", r.Checks[firesOnce].Invariant)
}
