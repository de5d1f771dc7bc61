package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
	"github.com/tickonce/tickonce/storetest"
)

func naive(now func() store.Instant, limits store.Limits) store.Store {
	return storetest.NewNaive(now, limits)
}

// What happens in a run does not depend on the store: the naive one comes to the
// same result, digest and all, as the one in memory, with the same faults.
func TestAnotherStoreComesToTheSame(t *testing.T) {
	runs := 0
	watched(t, func(name string, s Scenario) {
		for i := range s.Faults {
			if f := &s.Faults[i]; f.Restart == FromSnapshot || f.Restart == FromJournal || f.Kind == FaultJournalErrors {
				return // memory has forgotten its leases then, and only memory has snapshots and a journal
			}
		}
		if s.For > 14*24*time.Hour || len(s.Schedules) > 30 {
			return // the naive store is slow
		}
		want, err := Run(s)
		require.NoError(t, err)
		s.Store = naive
		got, err := Run(s)
		require.NoError(t, err)
		want.Checks, got.Checks = nil, nil // how often two states are compared depends on their size
		require.Equal(t, want, got, name)
		runs++
	})
	require.Greater(t, runs, 3)
}

// forgetful is a store that loses every tenth job that is acknowledged.
type forgetful struct {
	store.Store
	settles int
}

func (s *forgetful) Settle(ctx context.Context, settles []store.Settle, out []bool) (store.Instant, error) {
	if s.settles++; s.settles%10 == 0 {
		for i := range out {
			out[i] = true
		}
		_, now, err := s.Store.Queues(ctx, "", nil)
		return now, err
	}
	return s.Store.Settle(ctx, settles, out)
}

func TestAnotherStoreIsJudged(t *testing.T) {
	s := Scenario{
		For:       time.Hour,
		Schedules: []Schedule{{Name: "report", Spec: "@every 1m", Queue: "mail"}},
		Store: func(now func() store.Instant, limits store.Limits) store.Store {
			return &forgetful{Store: naive(now, limits)}
		},
	}
	r, err := Run(s)
	require.NoError(t, err)
	require.Equal(t, Safety, r.Verdict)

	// The command has no such store, so it is not told to run the text.
	var f failing
	swept, err := Sweep(s, Seeds{2, 2})
	require.NoError(t, err)
	swept.Require(&f)
	require.Contains(t, f.said, "\nto run seed 2 again, which has a store in Go, let the test sweep sim.Seeds{First: 2, Last: 2}; it is, shrunk")
	require.NotContains(t, f.said, "cmd/simulate")
}
