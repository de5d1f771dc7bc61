// Command simulate runs schedules in virtual time, through outages, and tells
// what became of every boundary. Package sim describes its scenario files.
//
//	simulate new             write a scenario to start from
//	simulate run FILE        run a scenario and judge it
//	simulate what-if FILE    what a fault changes, and by which rule
//	simulate trace FILE      what happens in a run, event by event, and why
//	simulate sweep FILE      run it with many seeds and judge them together
//	simulate merge PART…     join the parts of a sweep
//	simulate shrink FILE     make one that fails as small as it can be
//	simulate replay FILE     run a recorded one again, and say where it differs
//	simulate journal DIR     replay what an engine has recorded, and judge it
//	simulate corpus          keep scenarios that a test runs before all others
//	simulate explain SPEC    what one schedule does through an outage
//
// The exit code is that of the verdict:
//
//	0  pass
//	1  usage or bad input
//	2  safety: an invariant broken; or unmet: an expectation or the recorded outcome
//	3  liveness: what was due did not happen in time
//	4  nondeterministic
//	5  vacuous
//	6  budget: more than a run may take
//	7  a handler crashed
//
// and 130 that of a sweep of which not all seeds were run, and that found nothing
// in those that were.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
)

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // a run keeps a few MB, which collecting so often would cost a sixth of its time
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(1 << 30) // from where on it collects as often as it has to; a large run keeps 256 MiB
	}
	os.Exit(simulate(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// simulate runs the command and returns its exit code.
func simulate(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	if err == nil {
		return sim.Pass.ExitCode()
	}
	var failed *failure
	if errors.As(err, &failed) {
		return failed.verdict.ExitCode()
	}
	if errors.Is(err, errUnfinished) {
		return exitUnfinished
	}
	var mistakes *sim.Mistakes
	if errors.As(err, &mistakes) {
		fmt.Fprintln(stderr, printableLines(mistakes.Error()))
	} else {
		fmt.Fprintf(stderr, "%s: %s\n", cmd.CommandPath(), printableLines(err.Error()))
	}
	return sim.BadInput.ExitCode()
}

// failure is the verdict of a run that has been reported.
type failure struct{ verdict sim.Verdict }

func (f *failure) Error() string { return f.verdict.String() }

const exitCodes = `Exit codes:
  0  pass
  1  usage or bad input
  2  safety: a rule was broken; or unmet: an expectation or the recorded outcome
  3  liveness: what was due did not happen in time
  4  nondeterministic: the same seed came to something else
  5  vacuous: a coverage mark that was asked for was never reached
  6  budget: more than a run may take
  7  handler crash: a handler panicked that was not meant to`

const (
	helpGroup = "Help:"
	helpWidth = 80 // in columns of a terminal
)

func newRoot() *cobra.Command {
	cobra.EnableCommandSorting = false
	root := &cobra.Command{
		Use:   "simulate",
		Short: "Run schedules in virtual time, through outages",
		Long: `Run schedules in virtual time, through outages, and tell what became of every
boundary, which is an instant at which a schedule is due.

` + exitCodes,
		Example: `  simulate new -o my.sim
  simulate run examples/scenarios/regional-outage.sim
  simulate what-if examples/scenarios/calm.sim --fault "down for=10h at=2d"
  simulate sweep examples/scenarios/interleavings.sim --seeds 1..1000
  simulate explain "@every 7s" --down 10m`,
		Args:                       cobra.ArbitraryArgs,
		RunE:                       noCommand,
		DisableFlagsInUseLine:      true,
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
	}
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages", fmt.Sprintf("Flags.FlagUsagesWrapped %d", helpWidth)))
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Begin:", []*cobra.Command{newNew()}},
		{"Run and explain:", []*cobra.Command{newRun(), newWhatIf(), newTrace(), newExplain(), newJournal()}},
		{"Sweep and merge:", []*cobra.Command{newSweep(), newMerge()}},
		{"Shrink and keep:", []*cobra.Command{newShrink(), newReplay(), newCorpus()}},
		{helpGroup, nil},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.title
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommand(newHelp())
	root.SetHelpCommandGroupID(helpGroup)
	root.SetCompletionCommandGroupID(helpGroup)
	return root
}

// newHelp is cobra's command, but that it fails where there is no such command.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			of, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) == 0 {
				for _, c := range of.Commands() {
					if c.IsAvailableCommand() {
						names = append(names, c.Name()+"\t"+c.Short)
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return noCommand(of, rest)
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// noCommand says what there is, if what came is none of the commands.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %q?", near[0])
	}
	return fmt.Errorf("found the command %q, want one of %s%s", args[0], strings.Join(names, ", "), hint)
}

// flagError says of a bad flag what to write instead.
func flagError(cmd *cobra.Command, err error) error {
	var value interface {
		GetValue() string
		Unwrap() error
	}
	if errors.As(err, &value) {
		return value.Unwrap()
	}
	var name interface{ GetSpecifiedName() string }
	if errors.As(err, &name) && cmd.Flags().Lookup(name.GetSpecifiedName()) == nil {
		if near := nearestFlag(cmd, name.GetSpecifiedName()); near != "" {
			return fmt.Errorf("%w; did you mean --%s?", err, near)
		}
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// nearestFlag has cobra, which finds the nearest command, find the nearest
// flag.
func nearestFlag(cmd *cobra.Command, name string) string {
	flags := &cobra.Command{SuggestionsMinimumDistance: 2}
	for usage := range strings.Lines(cmd.Flags().FlagUsages()) {
		_, after, _ := strings.Cut(usage, "--")
		if flag, _, ok := strings.Cut(after, " "); ok {
			flags.AddCommand(&cobra.Command{Use: flag, Run: func(*cobra.Command, []string) {}})
		}
	}
	near := flags.SuggestionsFor(name)
	if len(near) == 0 {
		return ""
	}
	return near[0]
}
