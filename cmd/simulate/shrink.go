package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/sim/htmlreport"
)

func newShrink() *cobra.Command {
	c := shrinkCommand{runs: runs(sim.DefaultShrinkRuns)}
	cmd := &cobra.Command{
		Use:   "shrink FILE",
		Short: "Make a scenario that fails as small as it can be",
		Long: `Make a scenario that fails as small as it can be while it fails in the same
way: with the same verdict, at the same invariant or expectation. FILE is a
scenario file, or - for standard input.

Faults, schedules, queues and processes are left out, what lasts is shortened,
and defaults and round values are put where others stood, each as long as a run
still fails. What is left is printed as a scenario file, with its outcome
recorded below a line "----".

With --keep the scenario is shrunk while it meets something, which is written
as in a line expect: --keep sometimes:two-leaders finds the smallest scenario
that still reaches this coverage mark.

With --report the run of FILE is written as a page for a browser, with the
shrunk scenario beside the rule that was broken.

With --guest a program of your own runs the jobs; see simulate run --help. What
is printed fails with that program, and is replayed with it.

An interrupt ends the shrinking with what it has. A failure that does not come
again in the same run is never shrunk.

Exit codes:
  0  shrunk
  1  usage, bad input, or nothing to keep
  4  nondeterministic: the same scenario came to something else`,
		Example: `  simulate shrink --seed 5 --keep sometimes:two-leaders examples/scenarios/interleavings.sim
  simulate shrink failing.sim -o smaller.sim
  simulate shrink failing.sim -o smaller.sim --report failing.html`,
		Args:              oneFile,
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.stdin, c.stdout, c.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			defer c.guests.close()
			return c.run(cmd.Context(), args[0])
		},
	}
	cmd.Flags().Var(&c.seed, "seed", "another seed of the random choices than the file's")
	c.addSwarm(cmd)
	c.addGuests(cmd)
	cmd.Flags().Var(&c.keep, "keep", "what the shrunk scenario still has to meet, instead of its failure, such as sometimes:two-leaders")
	cmd.Flags().Var(&c.runs, "runs", "how many runs it may take")
	cmd.Flags().StringVarP(&c.output, "output", "o", "", "write the scenario to this `FILE`, and what was done to standard output")
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	addReport(cmd, &c.html)
	completeExt(cmd, "output", "sim")
	completeText(cmd, "keep", sim.Scenario.CompleteExpect)
	completeNothing(cmd, "seed", "runs")
	return cmd
}

type shrinkCommand struct {
	input
	seed           seed
	keep           keep
	runs           runs
	output         string
	json           bool
	html           string // where to, or ""
	stdout, stderr io.Writer
}

func (c *shrinkCommand) run(ctx context.Context, path string) error {
	s, text, err := c.scenario(path)
	if err != nil {
		return err
	}
	if c.seed.given {
		s.Engine.Seed = c.seed.n
	}
	if s, err = drawn(s); err != nil {
		return err
	}
	so, err := c.shrink(ctx, s)
	if errors.Is(err, sim.ErrNondeterministic) {
		fmt.Fprintf(c.stderr, "not shrunk: %s\n", printable(err.Error()))
		return &failure{sim.Nondeterministic}
	}
	if err != nil {
		return err
	}
	done := shrunk{so, s, path, c.guests}
	if c.output != "" {
		if err := writeFile(c.output, done.text()); err != nil {
			return err
		}
	}
	if c.html != "" {
		if err := c.writeHTML(&done, text); err != nil {
			return err
		}
	}
	switch {
	case c.json:
		return writeJSON(c.stdout, done.object())
	case c.output != "":
		_, err = fmt.Fprintf(c.stdout, "%s\n%s\n", printable(done.reason()), done.summary())
	default:
		_, err = io.WriteString(c.stdout, done.text())
	}
	return err
}

// drawn is the scenario with the faults that its swarm draws, and with all that
// it expects.
func drawn(s sim.Scenario) (sim.Scenario, error) {
	if s.Swarm == (sim.Swarm{}) {
		return s, nil
	}
	return s.Draw(s.Engine.Seed)
}

// shrink shrinks until it is interrupted, and shows how far it is.
func (c *shrinkCommand) shrink(ctx context.Context, s sim.Scenario) (*sim.Shrunk, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	bar := newBar(c.stderr, int64(c.runs))
	defer bar.stop()
	return sim.Shrink(s, sim.Shrinking{Keep: c.keep.list, Runs: int(c.runs), Told: func(so *sim.Shrunk) bool {
		bar.show(int64(so.Runs), size(&so.Scenario))
		return ctx.Err() == nil
	}})
}

// writeHTML writes the report of the scenario as it was, with the shrunk one in it.
func (c *shrinkCommand) writeHTML(done *shrunk, text string) error {
	recorder := htmlreport.NewRecorder(done.before)
	result, err := sim.Watch(done.before, recorder.Tell)
	if err != nil {
		return err
	}
	if c.swarm.given {
		text = "" // which did not run
	}
	return writePage(c.html, recorder, result, htmlreport.Source{
		File: done.file, Text: withoutOutcome(&done.before, text),
		Shrunk: htmlreport.Shrunk{Text: textOf(done.Scenario), Says: done.summary(), File: c.output},
	})
}

// size is how large a scenario is.
func size(s *sim.Scenario) string {
	return fmt.Sprintf("%s, %s, %s", count(int64(len(s.Faults)), "fault", "faults"),
		count(int64(len(s.Schedules)), "schedule", "schedules"), exact(s.For))
}

// shrunk is a shrunk scenario, and which it was.
type shrunk struct {
	*sim.Shrunk
	before sim.Scenario
	file   string
	guests guests
}

// mostReason is how many columns a comment takes at most.
const mostReason = 500

// reason is what the scenario was shrunk towards, and of a failure how it shows.
func (s *shrunk) reason() string {
	for _, f := range s.Result.Failures {
		if f.Verdict == s.Result.Verdict {
			if f.Schedule != "" {
				f.Detail = "schedule " + f.Schedule + ": " + f.Detail
			}
			return s.Kept + ": " + f.Detail
		}
	}
	return s.Kept
}

// summary is what was left out.
func (s *shrunk) summary() string {
	text := fmt.Sprintf("shrunk from %s, seed %d, with %s to %s in %s", printable(s.file), s.before.Engine.Seed,
		size(&s.before), size(&s.Scenario), count(int64(s.Runs), "run", "runs"))
	if !s.Whole {
		text += "; there is more to try"
	}
	return text
}

// text is the scenario as a file to keep: with what it is kept for in comments, and
// its outcome.
func (s *shrunk) text() string {
	header, rest, _ := strings.Cut(textOf(s.Scenario), "\n")
	return sim.WithOutcome(fmt.Sprintf("%s\n# %s\n# %s\n%s", header, snip(printable(s.reason()), mostReason), s.summary(), rest), s.guests.outcome(&s.Scenario, s.Result))
}

type shrunkObject struct {
	Scenario string      `json:"scenario"`
	Seed     uint64      `json:"seed"`
	Kept     string      `json:"kept"`
	Runs     int         `json:"runs"`
	Events   int64       `json:"events"`
	Whole    bool        `json:"whole"`
	Verdict  sim.Verdict `json:"verdict"`
	Digest   string      `json:"digest"`
	From     sizeObject  `json:"from"`
	To       sizeObject  `json:"to"`
	Text     string      `json:"text"`
}

type sizeObject struct {
	Faults    int   `json:"faults"`
	Schedules int   `json:"schedules"`
	Runners   int   `json:"runners"`
	RunMS     int64 `json:"run_ms"`
}

func sizeOf(s *sim.Scenario) sizeObject {
	return sizeObject{len(s.Faults), len(s.Schedules), max(s.Engine.Runners, 1), int64(s.For / time.Millisecond)}
}

func (s *shrunk) object() shrunkObject {
	return shrunkObject{
		Scenario: s.file, Seed: s.before.Engine.Seed, Kept: s.Kept, Runs: s.Runs, Events: s.Events, Whole: s.Whole,
		Verdict: s.Result.Verdict, Digest: s.Result.Digest.String(), From: sizeOf(&s.before), To: sizeOf(&s.Scenario), Text: s.text(),
	}
}

// keep is a flag for what is to be met.
type keep struct {
	list []sim.Expect
	text string
}

func (*keep) Type() string     { return "WORDS" }
func (k *keep) String() string { return k.text }

func (k *keep) Set(text string) (err error) {
	if k.list, err = sim.ParseExpect(text); err != nil {
		return fmt.Errorf("--keep: %w", err)
	}
	k.text = text
	return nil
}

// runs is a flag for how many runs may be made.
type runs int

const mostRuns = 1_000_000

func (*runs) Type() string     { return "N" }
func (r *runs) String() string { return strconv.Itoa(int(*r)) }

func (r *runs) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostRuns {
		return fmt.Errorf("--runs: found %q, want a whole number from 1 to %d", text, mostRuns)
	}
	*r = runs(n)
	return nil
}
