package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/sim/htmlreport"
)

func newRun() *cobra.Command {
	var c runCommand
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a scenario and judge it",
		Long: `Run a scenario and judge it. FILE is a scenario file, or - for standard input;
at its shortest:

  simulate v1
  run      1d
  schedule report every=5m queue=mail

The package comment of sim has all the words: go doc
github.com/tickonce/tickonce/sim. With a line "swarm faults=1..12" the seed
draws what goes wrong; --print writes that out, as a file to be edited and run.

A file may have a recorded outcome below a line "----". The run is compared
with it: a difference is an expectation that was not met. With --rewrite the
outcome is recorded anew, and what stands above it is left as it is. With
--seed nothing is compared, since the recorded outcome is that of the file's
own seed; an outcome has the hash of each program of --guest, and is compared
with a run of the same.

With --guest a program of your own runs each job, in the place of what the file
says of its handler: one for WASI preview 1, as GOOS=wasip1 GOARCH=wasm go
build makes it. It has the job's payload on standard input, its name, attempt
and so on in the environment as TICKONCE_SCHEDULE, TICKONCE_ATTEMPT, and
simulated time: a sleep takes none of yours. With the exit code 0 the job is
done, with another one it is tried again. go doc
github.com/tickonce/tickonce/sim/guest has the rest.

` + aboutEngine + `

` + exitCodes,
		Example: `  simulate run examples/scenarios/all-outages.sim
  simulate run --report out.html examples/scenarios/all-outages.sim
  simulate run --ascii examples/scenarios/regional-outage.sim
  simulate run --seed 7 --json examples/scenarios/database-failover.sim
  simulate run --seed 7 --print examples/scenarios/interleavings.sim >seed-7.sim
  simulate run --guest report=report.wasm my.sim
  simulate run --engine wasm examples/scenarios/calm.sim`,
		Args:              oneFile,
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.stdin, c.stdout, c.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return c.run(cmd.Context(), args[0])
		},
	}
	cmd.Flags().Var(&c.seed, "seed", "another seed of the random choices than the file's; the recorded outcome is not compared")
	c.addSwarm(cmd)
	c.addGuests(cmd)
	addEngine(cmd, &c.engine)
	cmd.Flags().BoolVar(&c.print, "print", false, "print the scenario with the faults that its seed draws, and do not run it")
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	addReport(cmd, &c.html)
	cmd.Flags().BoolVar(&c.ascii, "ascii", false, "draw the run, in ASCII: when its faults were on, who ran the schedules, what fired")
	cmd.Flags().IntVar(&c.width, "width", 0, "how many `COLUMNS` the drawing has (default: those of the terminal, or 80)")
	cmd.Flags().BoolVar(&c.rewrite, "rewrite", false, "record the outcome in the file")
	completeNothing(cmd, "seed", "width")
	return cmd
}

type runCommand struct {
	input
	seed                 seed
	engine               engine
	json, rewrite, print bool
	ascii                bool
	width                int
	html                 string // where to, or ""
	stdout, stderr       io.Writer
}

func (c *runCommand) run(ctx context.Context, path string) error {
	if c.rewrite && c.seed.given {
		return fmt.Errorf("--rewrite and --seed exclude each other, since a recorded outcome is that of the file's own seed: "+
			"write engine seed=%d into the file", c.seed.n)
	}
	if c.width != 0 && (c.width < leastPicture || c.width > mostPicture) {
		return fmt.Errorf("--width: found %d, want a number from %d to %d", c.width, leastPicture, mostPicture)
	}
	if c.ascii && c.json {
		return errors.New("--ascii and --json exclude each other")
	}
	if c.print && c.json {
		return errors.New("--print and --json exclude each other: --print writes a scenario, and does not run it")
	}
	if c.print && c.engine.wasm {
		return errors.New("--print and --engine wasm exclude each other: --print writes a scenario, and does not run it")
	}
	if c.rewrite && path == fromStdin {
		return errors.New("--rewrite needs a file to write to, not standard input")
	}
	if c.rewrite && c.swarm.given {
		return errors.New("--rewrite and --swarm exclude each other, since a recorded outcome is that of the file's own faults")
	}
	defer c.guests.close()
	scenario, text, err := c.scenario(path)
	if err != nil {
		return err
	}
	if c.seed.given {
		scenario.Engine.Seed = c.seed.n
	}
	if c.swarm.given || c.print {
		if scenario, err = scenario.Draw(scenario.Engine.Seed); err != nil {
			return err
		}
	}
	if c.print {
		_, err = io.WriteString(c.stdout, textOf(scenario))
		return err
	}
	module, err := c.engine.open(ctx, c.guests, c.stderr)
	if err != nil {
		return err
	}
	defer module.close(ctx)
	var recorder *htmlreport.Recorder
	if (c.html != "" || c.ascii) && scenario.Swarm != (sim.Swarm{}) {
		if scenario, err = scenario.Draw(scenario.Engine.Seed); err != nil {
			return err
		}
	}
	var watching []func(*sim.Event)
	if c.html != "" {
		recorder = htmlreport.NewRecorder(scenario)
		watching = append(watching, recorder.Tell)
	}
	var drawing *picture
	if c.ascii {
		drawing = newPicture(&scenario, pictureWidthOn(c.stdout, c.width))
		watching = append(watching, drawing.tell)
	}
	begin := time.Now()
	arrived := patience(c.stderr, longRun)
	defer arrived()
	result, err := watch(scenario, watching)
	if err != nil {
		return err
	}
	r := &report{
		Result: result, scenario: &scenario, file: path, wall: time.Since(begin), verdict: result.Verdict, outcome: outcomeNone,
		picture: drawing, page: c.html, guests: c.guests,
	}
	if module != nil {
		if err := r.runSecond(ctx, module); err != nil {
			return err
		}
	}
	arrived()
	r.askable = len(scenario.Faults) > 0 && scenario.Swarm == (sim.Swarm{}) && !c.seed.given && !c.swarm.given && path != fromStdin
	switch {
	case c.rewrite:
		if now := sim.WithOutcome(text, c.guests.outcome(&scenario, result)); now != text {
			if err := writeFile(path, now); err != nil {
				return err
			}
		}
		r.outcome = outcomeRecorded
	case c.seed.given && scenario.Outcome != "":
		r.outcome = outcomeIgnored
	default:
		r.compare(text)
	}
	if recorder != nil {
		if c.swarm.given {
			text = "" // which did not run
		}
		if err := r.writeHTML(c.html, text, recorder); err != nil {
			return err
		}
	}
	if c.json {
		err = writeJSON(c.stdout, runJSON(r))
	} else {
		err = r.write(c.stdout)
	}
	if err == nil && r.verdict != sim.Pass {
		err = &failure{r.verdict}
	}
	return err
}

// watch runs the scenario, under the eyes of those who watch.
func watch(s sim.Scenario, watching []func(*sim.Event)) (*sim.Result, error) {
	if len(watching) == 0 {
		return sim.Run(s)
	}
	return sim.Watch(s, func(e *sim.Event) {
		for _, tell := range watching {
			tell(e)
		}
	})
}

// compare looks for the first line in which the recorded outcome differs from
// that of the run. A difference fails a run that has passed. What was recorded with
// other programs as handlers is not compared.
func (r *report) compare(text string) {
	switch {
	case r.scenario.Outcome == "":
		return
	case recordedGuests(r.scenario.Outcome) != r.guests.in(r.scenario):
		r.outcome = outcomeIgnored
		return
	}
	r.outcome = outcomeSame
	above := strings.Count(text[:len(text)-len(r.scenario.Outcome)], "\n")
	r.difference = differenceOf(lines(r.scenario.Outcome), lines(r.guests.outcome(r.scenario, r.Result)))
	if r.difference == nil {
		return
	}
	r.difference.line += above
	r.outcome = outcomeDiffers
	if r.verdict == sim.Pass {
		r.verdict = sim.Unmet
	}
}

// difference is the first line that is another one now.
type difference struct {
	line    int // from 1 on; of the file, where the lines are recorded in one
	was, is string
}

// differenceOf is that of two texts, nil if there is none.
func differenceOf(was, is []string) *difference {
	for i := range max(len(was), len(is)) {
		if a, b := lineAt(was, i), lineAt(is, i); a != b {
			return &difference{line: i + 1, was: a, is: b}
		}
	}
	return nil
}

func lines(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		list = append(list, strings.TrimRight(line, " \t\r\n"))
	}
	return list
}

// lineAt is the line, or words for there being none.
func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(no line)"
}
