package sim_test

import (
	"fmt"
	"time"

	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/store"
	"github.com/tickonce/tickonce/storetest"
)

// A store of your own under faults: here the naive one of package storetest, which
// stands for yours.
func ExampleScenario_store() {
	r, err := sim.Sweep(sim.Scenario{
		Engine:    sim.Engine{Runners: 2, StandBy: true},
		For:       6 * time.Hour,
		Schedules: []sim.Schedule{{Name: "report", Spec: "@every 5m", Queue: "mail"}},
		Swarm:     sim.Swarm{Min: 4, Max: 12},
		Store: func(now func() store.Instant, limits store.Limits) store.Store {
			return storetest.NewNaive(now, limits)
		},
	}, sim.Seeds{First: 1, Last: 15})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Verdict(), r.Runs)
	// Output: pass 15
}
