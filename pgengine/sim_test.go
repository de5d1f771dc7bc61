package pgengine

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/store"
)

var simSeeds = flag.Uint64("simseeds", 1, "how many seeds of each scenario TestSimulationsAreThoseOfMemory runs")

// What happens in a simulated run, faults and all, does not depend on the store:
// on PostgreSQL it is that in memory, event by event and byte by byte.
func TestSimulationsAreThoseOfMemory(t *testing.T) {
	pool, schema := pgtest.Pool(t), pgtest.Schema(t)
	_, err := Migrate(t.Context(), pool, schema)
	require.NoError(t, err)
	for _, file := range []string{"portfolio.sim", "deliveries.sim", "policies.sim"} {
		text, err := os.ReadFile("../examples/scenarios/" + file)
		require.NoError(t, err)
		base, err := sim.Parse(file, string(text))
		require.NoError(t, err)
		base.Faults, base.Swarm.Mode = nil, sim.ModePortfolio
		for seed := range *simSeeds {
			t.Run(fmt.Sprint(file, "/seed=", seed), func(t *testing.T) {
				s, err := base.Draw(seed)
				require.NoError(t, err)
				sameAsInMemory(t, pool, schema, s)
			})
		}
	}
}

// sameAsInMemory runs the scenario on both stores.
func sameAsInMemory(t *testing.T, pool *pgxpool.Pool, schema string, s sim.Scenario) {
	s = onAnyStore(s)
	want, memory, err := sim.Record(s)
	require.NoError(t, err)
	s.Store = func(now func() store.Instant, limits store.Limits) store.Store {
		empty(t, pool, schema)
		return newStore(pool, schema, limits, now)
	}
	s.Reopen = func(s store.Store) store.Store {
		opened := *s.(*Store)
		_, err := pool.Exec(t.Context(), opened.texts[forgetLeader], store.SchedulerLock)
		require.NoError(t, err)
		return &opened
	}
	got, tape, err := sim.Record(s)
	require.NoError(t, err)
	sameText(t, memory.String(), tape.String())
	want.Checks, got.Checks = nil, nil // how often two states are compared depends on their size
	require.Equal(t, want, got)
}

// sameText shows the first lines that differ.
func sameText(t *testing.T, want, got string) {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		require.Equal(t, a[i], b[i], "after\n%s", strings.Join(a[max(0, i-5):i], "\n"))
	}
	require.Equal(t, len(a), len(b), "lines")
}

var forgetLeader = sql(`delete from tickonce.lease where lock = $1`)

// onAnyStore is the scenario without what only memory has: snapshots that lose
// what came after them, and a journal that can fail.
func onAnyStore(s sim.Scenario) sim.Scenario {
	var kept []sim.Fault
	for _, f := range s.Faults {
		if f.Restart == sim.FromSnapshot {
			f.Restart = sim.FromJournal
		}
		if f.Kind != sim.FaultJournalErrors {
			kept = append(kept, f)
		}
	}
	s.Faults = kept
	return s
}
