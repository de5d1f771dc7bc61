package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
)

func newNew() *cobra.Command {
	var c newCommand
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Write a scenario to start from, with comments",
		Long: `Write a scenario to start from, with comments that say what each line means and
what to try next. It is printed, or written to a file with -o. It has two
schedules or, with --schedule, those that you give, and an outage that lasts
for a quarter of the run.`,
		Example: `  simulate new -o my.sim
  simulate new --schedule "report=@every 5m" --schedule "backup=@every 6h" -o mine.sim
  simulate new | simulate run -`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.stdout, c.stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return c.run()
		},
	}
	cmd.Flags().StringArrayVar(&c.schedules, "schedule", nil, "a `SCHEDULE`, such as \"report=@every 5m\", instead of the two; may be given several times")
	cmd.Flags().StringVarP(&c.output, "output", "o", "", "write it to this `FILE`, which must not be there yet")
	cmd.Flags().BoolVar(&c.force, "force", false, "replace the file of -o, if it is there")
	completeExt(cmd, "output", "sim")
	completeNothing(cmd, "schedule")
	return cmd
}

type newCommand struct {
	schedules      []string
	output         string
	force          bool
	stdout, stderr io.Writer
}

func (c *newCommand) run() error {
	s, err := c.scenario()
	if err != nil {
		return err
	}
	text, err := starter{s, c.output}.text()
	switch {
	case err != nil:
		return err
	case c.output == "":
		_, err = io.WriteString(c.stdout, text)
		return err
	case c.force:
		return writeFile(c.output, text)
	}
	f, err := os.OpenFile(c.output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: name another file, or replace it with --force", c.output)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(c.output)) // which was not there
	}
	return nil
}

// How long a scenario runs that new writes.
const (
	leastRun  = 24 * time.Hour
	mostRun   = 120 * 24 * time.Hour // about a second of the computer's
	mostFires = 100_000              // of one schedule
)

// scenario has the schedules of the flags, and an outage from a third of the run
// on. It expects what it comes to.
func (c *newCommand) scenario() (sim.Scenario, error) {
	s := sim.Scenario{Engine: sim.Engine{Runners: 1}, For: leastRun}
	given := c.schedules
	if len(given) == 0 {
		given = []string{"report=@every 5m", "backup=@every 1h"}
	}
	shortest := mostRun
	for _, text := range given {
		at := strings.LastIndex(text, "=")
		if at < 0 {
			return s, fmt.Errorf("--schedule: found %q, want NAME=SPEC such as \"report=@every 5m\"", text)
		}
		schedule := sim.Schedule{
			Name: text[:at], Spec: text[at+1:], Queue: "work",
			Handler: sim.Handler{Takes: sim.Span{Min: time.Second, Max: 5 * time.Second}},
		}
		told, err := sim.Explain(sim.Question{Spec: schedule.Spec})
		if err != nil {
			return s, fmt.Errorf("--schedule %q: %w", text, err)
		}
		s.Schedules = append(s.Schedules, schedule)
		s.For = max(s.For, 4*min(told.Interval, mostRun/4)) // so that it fires a few times
		shortest = min(shortest, told.Interval)
	}
	if len(c.schedules) == 0 {
		s.Schedules[1].CatchUp = sim.CatchUpLatest
	}
	if s.For/shortest > mostFires {
		s.For = (shortest * mostFires).Truncate(leastRun)
	}
	part := (s.For / 12).Truncate(time.Minute)
	s.Faults = []sim.Fault{{Kind: sim.FaultDown, At: 4 * part, For: 3 * part}}
	r, err := sim.Run(s)
	if err != nil {
		return s, err
	}
	s.Expect = []sim.Expect{{Kind: sim.ExpectNoDoubleFire}}
	for _, schedule := range r.Schedules {
		s.Expect = append(s.Expect,
			sim.Expect{Kind: sim.ExpectFires, Schedule: schedule.Name, Count: schedule.Fired},
			sim.Expect{Kind: sim.ExpectSkipped, Schedule: schedule.Name, Count: schedule.Skipped})
	}
	return s, nil
}

//go:embed new.sim.tmpl
var starterText string

var starterTemplate = template.Must(template.New("new").Parse(starterText))

// starter is a scenario and the file that it is to be.
type starter struct {
	sim.Scenario
	path string
}

func (s starter) text() (string, error) {
	var b strings.Builder
	err := starterTemplate.Execute(&b, s)
	return b.String(), err
}

// File is the file's name in a command.
func (s starter) File() string { return shellWord(cmp.Or(s.path, "my.sim")) }

// Lines are the lines of a directive.
func (s starter) Lines(directive string) string {
	var b strings.Builder
	for line := range strings.Lines(s.Scenario.String()) {
		if word, _, _ := strings.Cut(line, " "); word == directive {
			b.WriteString(line)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Expected are the lines of what is expected, one for each schedule.
func (s starter) Expected() []string {
	list, of := []string{}, "-"
	for _, e := range s.Expect {
		if e.Schedule != of {
			list, of = append(list, "expect  "), e.Schedule
		}
		list[len(list)-1] += " " + e.String()
	}
	return list
}

// Ideas are other faults of the same time, each with what it is in plain words.
func (s starter) Ideas() []string {
	at, length := s.Faults[0].At, s.Faults[0].For
	var list []string
	for _, idea := range []struct {
		fault sim.Fault
		words string
	}{
		{sim.Fault{Kind: sim.FaultPause, At: at, For: length}, "the computer sleeps"},
		{sim.Fault{Kind: sim.FaultCrash, At: at, Restart: sim.FromSnapshot}, "the process crashes, and begins from an old state"},
		{sim.Fault{Kind: sim.FaultClockJump, At: at, By: length}, "the clock is set forward"},
		{sim.Fault{Kind: sim.FaultStoreErrors, At: at, For: time.Minute, Applied: sim.AppliedUnknown}, "the store fails, and may have written"},
		{sim.Fault{Kind: sim.FaultHandlerFails, At: at, For: length}, "the jobs fail"},
	} {
		list = append(list, fmt.Sprintf("%-50s # %s", idea.fault.String(), idea.words))
	}
	return list
}

// Fault is one as a word of a command.
func (s starter) Fault() string {
	f := sim.Fault{Kind: sim.FaultClockJump, At: s.Faults[0].At / 2, By: -s.Faults[0].For / 3}
	return shellWord(f.String())
}
