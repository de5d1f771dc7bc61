package sim_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/tickonce/tickonce/sim"
)

// A service that is down over night: what becomes of its schedules?
func ExampleRun() {
	r, err := sim.Run(sim.Scenario{
		Start: time.Date(2026, time.March, 1, 18, 0, 0, 0, time.UTC),
		For:   24 * time.Hour,
		Schedules: []sim.Schedule{
			{Name: "report", Spec: "@every 1h", Queue: "mail"},
			{Name: "probe", Spec: "@every 5m", Queue: "ops", CatchUp: sim.CatchUpLatest},
			{Name: "mirror", Spec: "@every 5m", Queue: "ops"},
		},
		Faults: []sim.Fault{{Kind: sim.FaultDown, At: 4 * time.Hour, For: 8 * time.Hour}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Verdict)
	for _, s := range r.Schedules {
		fmt.Printf("%-6s %3d boundaries, %3d fired, %2d skipped, up to %v late\n", s.Name, s.Boundaries, s.Fired, s.Skipped, s.MaxLate)
	}
	// Output:
	// pass
	// report  24 boundaries,  24 fired,  0 skipped, up to 8h0m0s late
	// probe  288 boundaries, 192 fired, 96 skipped, up to 0s late
	// mirror 288 boundaries, 255 fired, 33 skipped, up to 8h0m0s late
}

// A scenario in the text format, with what must come of it.
func ExampleParse() {
	s, err := sim.Parse("night.sim", `simulate v1
engine   standby=yes
run      6h
schedule report every=1h queue=mail handler=fail:20%
during 2h..2h10m store error-burst applied=unknown p=0.5
expect   report.fires=6 no-double-fire sometimes:unknown-applied
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := sim.Run(s)
	fmt.Println(r.Verdict, r.Unmet, err)
	// Output:
	// pass [] <nil>
}

// A handler in Go, which takes some minutes and fails at times: how long after
// midnight each night's report is there, although the process goes down in one
// of them.
func ExampleSteps() {
	r, err := sim.Run(sim.Scenario{
		Engine:    sim.Engine{Seed: 2},
		For:       5*24*time.Hour + 2*time.Hour,
		Schedules: []sim.Schedule{{Name: "report", Spec: "@every 1d", Queue: "mail", BaseBackoff: 10 * time.Minute}},
		Handlers: sim.Handlers{"report": func(c *sim.Call) error {
			c.Sleep(time.Duration(1+c.Rand().IntN(5)) * time.Minute)
			if c.Rand().IntN(3) == 0 {
				return errors.New("the server is busy")
			}
			fmt.Printf("%s at the %d. attempt, after %v\n", c.Now().Format(time.DateOnly), c.Job.Attempt, c.Now().Sub(c.Job.Boundary))
			return nil
		}},
		Faults: []sim.Fault{{Kind: sim.FaultDown, At: 48*time.Hour + 30*time.Second, For: time.Hour}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Verdict)
	// Output:
	// 2026-01-02 at the 1. attempt, after 2m0s
	// 2026-01-03 at the 2. attempt, after 1h1m30s
	// 2026-01-04 at the 1. attempt, after 2m0s
	// 2026-01-05 at the 1. attempt, after 5m0s
	// 2026-01-06 at the 2. attempt, after 12m32.109s
	// pass
}
