package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
)

func newRun() *cobra.Command {
	var c runCommand
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a scenario and judge it",
		Long: `Run a scenario and judge it. FILE is a scenario file, or - for standard input.

A file may have a recorded outcome below a line "----". The run is compared with
it: a difference is an expectation that was not met. With --rewrite the outcome
is recorded anew, and what stands above it is left as it is. With --seed nothing
is compared, since the recorded outcome is that of the file's own seed.

` + exitCodes,
		Example: `  simulate run examples/scenarios/all-outages.sim
  simulate run --seed 7 --json examples/scenarios/database-failover.sim`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d files came, want one: write %s FILE", len(args), cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"sim"}, cobra.ShellCompDirectiveFilterFileExt),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.stdin, c.stdout = cmd.InOrStdin(), cmd.OutOrStdout()
			return c.run(args[0])
		},
	}
	cmd.Flags().Var(&c.seed, "seed", "another seed of the random choices than the file's; the recorded outcome is not compared")
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	cmd.Flags().BoolVar(&c.rewrite, "rewrite", false, "record the outcome in the file")
	return cmd
}

type runCommand struct {
	seed          seed
	json, rewrite bool
	stdin         io.Reader
	stdout        io.Writer
}

const fromStdin = "-"

func (c *runCommand) run(path string) error {
	if c.rewrite && c.seed.given {
		return fmt.Errorf("--rewrite and --seed exclude each other, since a recorded outcome is that of the file's own seed: "+
			"write engine seed=%d into the file", c.seed.n)
	}
	if c.rewrite && path == fromStdin {
		return errors.New("--rewrite needs a file to write to, not standard input")
	}
	text, err := c.read(path)
	if err != nil {
		return err
	}
	scenario, err := sim.Parse(printable(path), text)
	if err != nil {
		return err
	}
	if c.seed.given {
		scenario.Engine.Seed = c.seed.n
	}
	begin := time.Now()
	result, err := sim.Run(scenario)
	if err != nil {
		return err
	}
	r := &report{
		Result: result, scenario: &scenario, file: path, wall: time.Since(begin), verdict: result.Verdict, outcome: outcomeNone,
	}
	switch {
	case c.rewrite:
		if err := rewrite(path, text, sim.WithOutcome(text, result.Outcome())); err != nil {
			return err
		}
		r.outcome = outcomeRecorded
	case c.seed.given && scenario.Outcome != "":
		r.outcome = outcomeIgnored
	default:
		r.compare(text)
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

// read reads the scenario, but not much more than the longest one.
func (c *runCommand) read(path string) (string, error) {
	in := c.stdin
	if path != fromStdin {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, sim.MaxFile+1))
	return string(text), err
}

// rewrite replaces the text of a file: all of it or, on an error, nothing.
func rewrite(path, old, text string) error {
	if text == old {
		return nil
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(info.Mode()), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// compare looks for the first line in which the recorded outcome differs from
// that of the run. A difference fails a run that has passed.
func (r *report) compare(text string) {
	if r.scenario.Outcome == "" {
		return
	}
	r.outcome = outcomeSame
	above := strings.Count(text[:len(text)-len(r.scenario.Outcome)], "\n")
	recorded, now := lines(r.scenario.Outcome), lines(r.Outcome())
	for i := 0; i < max(len(recorded), len(now)); i++ {
		was, is := lineAt(recorded, i), lineAt(now, i)
		if was == is {
			continue
		}
		r.difference = &difference{line: above + i + 1, was: was, is: is}
		r.outcome = outcomeDiffers
		if r.verdict == sim.Pass {
			r.verdict = sim.Unmet
		}
		return
	}
}

// difference is the first line that is not as it was recorded.
type difference struct {
	line    int // of the file
	was, is string
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

// seed is a flag for a seed.
type seed struct {
	n     uint64
	given bool
}

func (*seed) Type() string { return "N" }

func (s *seed) String() string {
	if !s.given {
		return ""
	}
	return strconv.FormatUint(s.n, 10)
}

func (s *seed) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("--seed: found %q, want a whole number from 0 to %d", text, uint64(math.MaxUint64))
	}
	s.n, s.given = n, true
	return nil
}
