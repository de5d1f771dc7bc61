package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// simulator sweeps scenarios with faults drawn from seeds.
type simulator struct {
	root      string
	scenarios []string // paths, in the order to try
	seeds     int      // of each scenario; 0: it is not asked
	timeout   time.Duration
}

// found is what sweeps made of a mutant.
type found struct {
	Scenario string `json:"scenario,omitempty"`
	Seed     uint64 `json:"seed"` // the first that failed; 0: none is known to
	Hung     bool   `json:"hung,omitempty"`
	Seeds    int    `json:"seeds"` // how many were to be tried
	Why      string `json:"why,omitempty"`
}

func (f *found) any() bool { return f.Seed != 0 || f.Hung }

// run sweeps one scenario after the other until a seed fails. The binary goes
// to folder.
func (s *simulator) run(ctx context.Context, overlay, folder string) (*found, error) {
	binary := filepath.Join(folder, "simulate")
	if err := build(ctx, s.root, "build", "-overlay", overlay, "-o", binary, "./cmd/simulate"); err != nil {
		return nil, err
	}
	for _, last := range []int{min(s.seeds, firstSeeds), s.seeds} {
		for _, scenario := range s.scenarios {
			f, err := s.sweep(ctx, binary, scenario, last)
			if err != nil || f != nil {
				return f, err
			}
		}
	}
	return &found{Seeds: s.seeds}, nil
}

// firstSeeds is how many seeds of each scenario are tried before more of any.
const firstSeeds = 60

func (s *simulator) sweep(ctx context.Context, binary, scenario string, last int) (*found, error) {
	running, stop := context.WithTimeout(ctx, s.timeout)
	defer stop()
	sweep := exec.CommandContext(running, binary, "sweep", scenario,
		"--seeds", "1.."+strconv.Itoa(last), "--jobs", "1", "--fail-fast", "--json")
	told, err := sweep.Output()
	f := &found{Scenario: filepath.Base(scenario), Seeds: s.seeds}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case running.Err() != nil: // the seed is not told
		f.Hung, f.Why = true, "hung"
		return f, nil
	case err == nil:
		return nil, nil
	case !errors.As(err, &exit):
		return nil, err
	}
	if err := f.read(told); err != nil {
		return nil, fmt.Errorf("simulate sweep: %w\n%s", err, exit.Stderr)
	}
	return f, nil
}

// read reads the JSON of a sweep that failed.
func (f *found) read(told []byte) error {
	var r struct {
		Failures []struct {
			Verdict, What string
			Seeds         []uint64
		}
	}
	if err := json.Unmarshal(told, &r); err != nil {
		return err
	}
	if len(r.Failures) == 0 || len(r.Failures[0].Seeds) == 0 {
		return errors.New("no seed failed, but the sweep did")
	}
	first := &r.Failures[0]
	f.Seed, f.Why = first.Seeds[0], first.Verdict
	if first.What != first.Verdict {
		f.Why += ": " + first.What
	}
	return nil
}
