package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
)

func newSweep() *cobra.Command {
	c := sweepCommand{seeds: seeds{sim.Seeds{First: 1, Last: 1000}}, jobs: jobs(min(runtime.GOMAXPROCS(0), mostJobs))}
	cmd := &cobra.Command{
		Use:   "sweep FILE",
		Short: "Run a scenario with many seeds and judge them together",
		Long: `Run a scenario with many seeds and judge them together. FILE is a scenario file,
or - for standard input.

Each seed draws the faults of a file with a line swarm; with --swarm those of any
file, in the place of its own. Seeds that fail are named, with the command that
runs one again; with --print that command writes the faults out. What a file
expects with sometimes:MARK has to come in one run of the sweep. About one seed in
twenty is run twice, to see whether it comes to the same.

The result does not depend on --jobs. An interrupt ends the sweep after the runs
under way and tells what was found; a second one ends it at once.

` + exitCodes + `
130  interrupted, and nothing found until then`,
		Example: `  simulate sweep examples/scenarios/interleavings.sim
  simulate sweep --seeds 1..10000 --swarm "faults=8..60" examples/scenarios/all-outages.sim
  simulate sweep --swarm "faults=1..8 kinds=clock,process,-crash" --fail-fast my.sim`,
		Args:              oneFile,
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.stdin, c.stdout, c.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return c.run(cmd.Context(), args[0])
		},
	}
	cmd.Flags().Var(&c.seeds, "seeds", "the seeds, the first and the last")
	cmd.Flags().Var(&c.jobs, "jobs", "how many runs are made at once")
	c.addSwarm(cmd)
	cmd.Flags().BoolVar(&c.failFast, "fail-fast", false, "end with the first seed that fails")
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	return cmd
}

type sweepCommand struct {
	input
	seeds          seeds
	jobs           jobs
	failFast, json bool
	stdout, stderr io.Writer
}

func (c *sweepCommand) run(ctx context.Context, path string) error {
	scenario, _, err := c.scenario(path)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	bar := newBar(c.stderr, int64(c.seeds.Count()))
	defer context.AfterFunc(ctx, func() {
		stop() // a second interrupt ends the program
		bar.say("interrupted: the runs under way end first; interrupt again to end at once")
	})()
	begin := time.Now()
	r := &sweepReport{command: c, file: path}
	r.SweepResult, r.rest = c.sweep(ctx, scenario, bar.set)
	r.wall = time.Since(begin)
	bar.stop()
	if c.json {
		err = writeJSON(c.stdout, sweepJSON(r))
	} else {
		err = r.write(c.stdout)
	}
	switch verdict := r.verdict(); {
	case err != nil:
		return err
	case verdict != sim.Pass:
		return &failure{verdict}
	case r.interrupted():
		return errInterrupted
	}
	return nil
}

// part is the run of one seed, which is handed over when it is done.
type part struct {
	seed uint64
	done chan *sim.SweepResult
}

// sweep runs the seeds, as many at once as there are jobs, and merges what they
// come to in their own order; told is called after each. When ctx is done, no
// more runs begin, and those under way end. With fail-fast what comes after the
// first seed that fails is not merged. rest is what was not run, if anything.
func (c *sweepCommand) sweep(ctx context.Context, s sim.Scenario, told func(*sim.SweepResult)) (sum *sim.SweepResult, rest *sim.Seeds) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun, ordered := make(chan part), make(chan part, 4*c.jobs)
	var workers sync.WaitGroup
	for range c.jobs {
		workers.Go(func() {
			for p := range begun {
				r, err := sim.Sweep(s, sim.Seeds{First: p.seed, Last: p.seed})
				if err != nil {
					panic(err) // the scenario was valid
				}
				p.done <- r
			}
		})
	}
	workers.Go(func() {
		defer close(ordered)
		defer close(begun)
		for seed := c.seeds.First; ctx.Err() == nil; seed++ {
			p := part{seed, make(chan *sim.SweepResult, 1)}
			select {
			case <-ctx.Done():
				return
			case begun <- p:
				ordered <- p
			}
			if seed == c.seeds.Last {
				return
			}
		}
	})
	sum, rest = &sim.SweepResult{Scenario: s}, &sim.Seeds{First: c.seeds.First, Last: c.seeds.Last}
	for p := range ordered {
		r := <-p.done
		if c.failFast && sum.Failed > 0 {
			continue
		}
		sum.Merge(r)
		rest.First = p.seed + 1
		told(sum)
		if c.failFast && sum.Failed > 0 {
			cancel()
		}
	}
	workers.Wait()
	if uint64(sum.Runs) == c.seeds.Count() {
		rest = nil
	}
	return sum, rest
}

// errInterrupted is the end of a sweep that was interrupted and has found
// nothing.
var errInterrupted = errors.New("interrupted")

// exitInterrupted is what a shell shows of a program that an interrupt ended.
const exitInterrupted = 130
