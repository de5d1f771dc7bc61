package storetest

import (
	"testing"

	"github.com/tickonce/tickonce/store"
)

// Open makes an empty store for one test: it reads its clock from now, which
// may be called from several goroutines, and refuses to exceed the limits,
// which are never zero. What it needs to be closed is a t.Cleanup.
type Open = func(t *testing.T, now func() store.Instant, limits store.Limits) store.Store

// Run checks that the stores that open makes keep every rule of package store.
func Run(t *testing.T, open Open) {
	n := seeds
	if testing.Short() {
		n = seedsShort
	}
	RunSeeds(t, open, n)
}

// RunSeeds is Run with as many random sequences as it is told, for a store whose
// calls take long.
func RunSeeds(t *testing.T, open Open, seeds int) {
	for _, part := range []struct {
		name      string
		scenarios []scenario
	}{
		{"Call", callScenarios},
		{"Read", readScenarios},
		{"Due", dueScenarios},
		{"Advance", advanceScenarios},
		{"Claim", claimScenarios},
		{"Bury", buryScenarios},
		{"Overlap", overlapScenarios},
		{"Settle", settleScenarios},
		{"Lock", lockScenarios},
		{"Batch", batchScenarios},
		{"Insert", insertScenarios},
		{"Policy", policyScenarios},
		{"Ends", endScenarios},
		{"History", historyScenarios},
		{"Race", raceScenarios},
	} {
		t.Run(part.name, func(t *testing.T) {
			for _, s := range part.scenarios {
				t.Run(s.name, func(t *testing.T) {
					r := newRig(t, open, s.limits)
					s.run(r)
					r.audit()
				})
			}
		})
	}
	t.Run("Random", func(t *testing.T) { compareAll(t, open, seeds) })
}

// scenario is one conversation with an empty store.
type scenario struct {
	name   string
	limits store.Limits // zeros: the defaults
	run    func(r *rig)
}
