package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// campaign plants mutants and tells what became of each.
type campaign struct {
	suite    suite
	simulate simulator
	jobs     int
	progress io.Writer
}

// result is what became of one mutant.
type result struct {
	Mutant      string   `json:"mutant"`
	Description string   `json:"description"`
	Rules       []string `json:"rules"`
	Killed      *kill    `json:"killed,omitempty"` // nil: it survived, or there is an error
	Found       *found   `json:"found,omitempty"`  // by the simulator; nil: it was not asked
	Unseen      string   `json:"unseen,omitempty"` // why it was not
	Error       string   `json:"error,omitempty"`  // why the mutant could not be tried
	Took        string   `json:"took"`
}

// The canaries show whether the campaign can be believed: what changes nothing
// has to survive, and canaryName, which lets nothing fire, has to be killed.
const (
	unchangedName = "unchanged"
	canaryName    = "canary"
	canaries      = 2
)

// withCanaries puts the canaries before the others. What changes nothing is
// tried with the tests of all.
func withCanaries(mutants []mutant) []mutant {
	all := []mutant{{Name: unchangedName, Description: "Nothing is changed."}, {}}
	for _, m := range mutants {
		all[0].Tests = append(all[0].Tests, m.Tests...)
		if m.Name == canaryName {
			all[1] = m
		} else {
			all = append(all, m)
		}
	}
	slices.Sort(all[0].Tests)
	all[0].Tests = slices.Compact(all[0].Tests)
	return all
}

// run tries the canaries and then the mutants. It ends early when a canary
// misbehaves, which is an error, or when ctx ends.
func (c *campaign) run(ctx context.Context, mutants []mutant) ([]result, error) {
	all := withCanaries(mutants)
	results := make([]result, len(all))
	for i := range all[:canaries] {
		results[i] = c.try(ctx, &all[i])
		c.tell(i, len(all), &results[i])
	}
	if err := misbehaved(&results[0], &results[1]); err != nil {
		return results[:canaries], err
	}
	next := make(chan int)
	var workers sync.WaitGroup
	for range c.jobs {
		workers.Go(func() {
			for i := range next {
				if r := c.try(ctx, &all[i]); ctx.Err() == nil {
					results[i] = r
					c.tell(i, len(all), &r)
				}
			}
		})
	}
	for i := canaries; i < len(all) && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	workers.Wait()
	results = slices.DeleteFunc(results, func(r result) bool { return r.Mutant == "" }) // never begun, or interrupted
	return results, ctx.Err()
}

// misbehaved says what is wrong with the canaries.
func misbehaved(unchanged, canary *result) error {
	switch {
	case unchanged.Error != "":
		return errors.New("the tree without a bug could not be tried: " + unchanged.Error)
	case unchanged.Killed != nil:
		return fmt.Errorf("the tree without a bug fails: %s", unchanged.Killed)
	case unchanged.Found != nil && unchanged.Found.any():
		return errors.New("the tree without a bug fails the simulator: " + unchanged.Found.String())
	case canary.Error != "":
		return errors.New("the canary could not be tried: " + canary.Error)
	case canary.Killed == nil:
		return errors.New("the canary survives the tests, which so show nothing")
	case canary.Found != nil && !canary.Found.any():
		return errors.New("the canary survives the simulator, which so shows nothing")
	}
	return nil
}

// try plants one mutant and asks the tests and the simulator.
func (c *campaign) try(ctx context.Context, m *mutant) (r result) {
	begun := time.Now()
	r = result{Mutant: m.Name, Description: m.Description, Rules: m.Rules, Unseen: m.Unseen}
	defer func() { r.Took = time.Since(begun).Round(time.Second / 10).String() }()
	folder, err := os.MkdirTemp("", "mutant-")
	if err == nil {
		defer os.RemoveAll(folder)
		folder, err = filepath.EvalSymlinks(folder)
	}
	var overlay string
	if err == nil {
		overlay, err = m.plant(c.suite.root, folder)
	}
	if err == nil {
		r.Killed, err = c.suite.run(ctx, overlay, folder, m.Tests)
	}
	if err == nil && m.Unseen == "" && c.simulate.seeds > 0 {
		r.Found, err = c.simulate.run(ctx, overlay, folder)
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// tell says on a line what became of the mutant.
func (c *campaign) tell(i, n int, r *result) {
	fmt.Fprintf(c.progress, "%*d/%d %s: %s (%s)\n", len(fmt.Sprint(n)), i+1, n, r.Mutant, r.verdict(), r.Took)
}
