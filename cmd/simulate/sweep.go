package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
)

func newSweep() *cobra.Command {
	c := sweepCommand{seeds: seeds{sim.Seeds{First: 1, Last: 1000}}, jobs: jobs(min(runtime.GOMAXPROCS(0), mostJobs))}
	cmd := &cobra.Command{
		Use:   "sweep FILE",
		Short: "Run a scenario with many seeds and judge them together",
		Long: `Run a scenario with many seeds and judge them together. FILE is a scenario
file, or - for standard input.

Each seed draws the faults of a file with a line swarm; with --swarm those of
any file, in the place of its own. Seeds that fail are named, with the command
that runs one again; with --print that command writes the faults out. What a
file expects with sometimes:MARK has to come in one run of the sweep. About one
seed in twenty is run twice, to see whether it comes to the same.

The result does not depend on --jobs. An interrupt ends the sweep after the
runs under way and tells what was found; a second one ends it at once. With
--state what was done is kept in a file, every ten seconds and at the end, and
the same command goes on from there; a second one is refused while a first one
runs, by a lock on a file beside it, FILE.lock. With --shard 3/64 the seeds are
the third of 64 parts of --seeds; simulate merge joins what the shards have
kept in their files.

With --out each distinct failure is written as a scenario file, shrunk as far
as 500 runs go, and the command that replays it is printed.

With --guest a program of your own runs the jobs; see simulate run --help. Its
hash is part of what --state keeps: another program is another sweep.

` + aboutEngine + `

` + exitCodes + unfinishedCode,
		Example: `  simulate sweep examples/scenarios/interleavings.sim
  simulate sweep --seeds 1..10000 --swarm "faults=8..60" examples/scenarios/all-outages.sim
  simulate sweep --swarm "faults=1..8 kinds=clock,process,-crash" --fail-fast my.sim
  simulate sweep --swarm portfolio --seeds 1..100000 my.sim
  simulate sweep my.sim --out finds
  simulate sweep my.sim --seeds 1..1000000 --shard 3/64 --state shard-3.json`,
		Args:              oneFile,
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.stdin, c.stdout, c.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return c.run(cmd.Context(), args[0])
		},
	}
	cmd.Flags().Var(&c.seeds, "seeds", "the seeds, the first and the last")
	cmd.Flags().Var(&c.shard, "shard", "of N parts of the seeds, run the one with the number I, from 1 to N")
	cmd.Flags().StringVar(&c.state, "state", "", "keep in this `FILE` what was done, and go on from there")
	cmd.Flags().Var(&c.jobs, "jobs", "how many runs are made at once")
	c.addSwarm(cmd)
	c.addGuests(cmd)
	addEngine(cmd, &c.engine)
	cmd.Flags().StringVar(&c.out, "out", "", "write each distinct failure, shrunk, as a scenario file into this `FOLDER`")
	cmd.Flags().BoolVar(&c.failFast, "fail-fast", false, "end with the first seed that fails")
	addCoverage(cmd, &c.coverage)
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	completeExt(cmd, "state", "json")
	completeFlag(cmd, "out", completeFolder)
	completeNothing(cmd, "seeds", "shard", "jobs")
	return cmd
}

type sweepCommand struct {
	input
	engine         engine
	module         *simulator // of --engine, or nil
	seeds          seeds
	shard          shard
	state          string
	out            string
	jobs           jobs
	coverage       bool
	failFast, json bool
	stdout, stderr io.Writer
}

func (c *sweepCommand) run(ctx context.Context, path string) error {
	defer c.guests.close()
	scenario, _, err := c.scenario(path)
	if err != nil {
		return err
	}
	asked, err := c.shard.of(c.seeds.Seeds)
	if err != nil {
		return err
	}
	if c.module, err = c.engine.open(ctx, c.guests, c.stderr); err != nil {
		return err
	}
	defer c.module.close(context.WithoutCancel(ctx))
	p := &part{file: path, guests: c.guests, engine: c.engine, swarmGiven: c.swarm.given, seeds: c.seeds.Seeds, SweepResult: newResult(scenario)}
	if c.state != "" || c.json {
		if p.build, err = buildID(); err != nil {
			return err
		}
	}
	if c.out != "" {
		if err := os.MkdirAll(c.out, 0o777); err != nil {
			return err
		}
	}
	if c.state != "" {
		unlock, err := lockState(c.state)
		if err != nil {
			return err
		}
		defer unlock() // which the end of the program does as well
		if err := resume(p, c.state, asked); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := &sweepReport{part: p, asked: asked, before: p.Runs, failFast: c.failFast, coverage: c.coverage}
	bar := newBar(c.stderr, int64(r.rest().count()))
	defer context.AfterFunc(ctx, func() {
		stop() // a second interrupt ends the program
		bar.say("interrupted: the runs under way end first; interrupt again to end at once")
	})()
	begin := time.Now()
	state := stateFile{path: c.state, kept: begin}
	failed := c.sweep(ctx, p, asked, func() {
		bar.set(p.Runs-r.before, p.Failed)
		state.keepAt(time.Now(), r)
	})
	r.wall = time.Since(begin)
	state.keep(r)
	bar.stop()
	if failed != nil {
		return failed
	}
	if c.out != "" {
		if err := r.keepFinds(ctx, c.out); err != nil {
			return err
		}
	}
	r.goOn = []string{c.goOn(r)}
	if err := r.print(c.stdout, c.json); err != nil {
		return err
	}
	if state.err != nil {
		return fmt.Errorf("what was done is not kept: %w", state.err)
	}
	return r.end()
}

// goOn is the command that runs what was not run.
func (c *sweepCommand) goOn(r *sweepReport) string {
	if c.state == "" {
		return r.command("simulate sweep", "--seeds", r.rest().String())
	}
	flags := []string{"--seeds", r.seeds.String()}
	if c.shard.n > 0 {
		flags = append(flags, "--shard", c.shard.String())
	}
	return r.command("simulate sweep", append(flags, "--state", shellWord(c.state))...)
}

// task is the run of one seed, which is handed over when it is done.
type task struct {
	seed uint64
	done chan seedResult
}

// seedResult is what a run of a sweep came to.
type seedResult struct {
	*sim.SweepResult
	err error // of the module of --engine
}

// sweep runs the seeds that are asked for and that the part does not have, as
// many at once as there are jobs, and adds to the part what they come to, in their
// own order; told is called after each. When ctx is done, no more runs begin, and
// those under way end. With fail-fast what comes after the first seed that fails is
// not added. With a module each seed is run by it, too; an error of it ends the sweep.
func (c *sweepCommand) sweep(ctx context.Context, p *part, asked sim.Seeds, told func()) (failed error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun, ordered := make(chan task), make(chan task, 4*c.jobs)
	var workers sync.WaitGroup
	for range c.jobs {
		workers.Go(func() {
			for t := range begun {
				r, err := sim.Sweep(p.Scenario, sim.Seeds{First: t.seed, Last: t.seed})
				if err != nil {
					panic(err) // the scenario was valid
				}
				if c.module != nil {
					err = c.module.sweepSecond(context.WithoutCancel(ctx), t.seed, r)
				}
				t.done <- seedResult{r, err}
			}
		})
	}
	todo := p.done.gaps(asked)
	workers.Go(func() {
		defer close(ordered)
		defer close(begun)
		for _, r := range todo {
			for seed := r.First; ctx.Err() == nil; seed++ {
				t := task{seed, make(chan seedResult, 1)}
				select {
				case <-ctx.Done():
					return
				case begun <- t:
					ordered <- t
				}
				if seed == r.Last {
					break
				}
			}
		}
	})
	enough := func() bool { return c.failFast && p.Failed > 0 }
	if enough() {
		cancel()
	}
	for t := range ordered {
		r := <-t.done
		if enough() || failed != nil {
			continue
		}
		if r.err != nil {
			failed = r.err
			cancel()
			continue
		}
		p.SweepResult.Merge(r.SweepResult)
		p.done.add(sim.Seeds{First: t.seed, Last: t.seed})
		told()
		if enough() {
			cancel()
		}
	}
	workers.Wait()
	return failed
}
