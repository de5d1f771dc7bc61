// Command mutants plants one bug after the other in the code and demands that
// the tests see each of them. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand(os.Stdout, os.Stderr).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// The places, from the module's root.
const (
	patchFolder    = "mutants/patches"
	scenarioFolder = "mutants"
	portfolio      = "examples/scenarios/portfolio.sim"
	record         = "docs/MUTANTS.md" // where --write puts the table
)

type options struct {
	seeds, jobs int
	timeout     time.Duration
	json, write bool
}

func newCommand(stdout, stderr io.Writer) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "mutants [PATTERN...]",
		Short: "Plant bugs, and demand that the tests see each",
		Long: `Plant bugs, and demand that the tests see each: those whose names match one of
the patterns, as in cap-*, or all. For each it tells which test killed it and
which seed of the simulator showed it first.

The exit code is 1 if one survives the tests, does not apply or does not compile,
or if a canary misbehaves.`,
		Example: `  go run ./mutants
  go run ./mutants 'lease-*' no-fence
  go run ./mutants --seeds 0`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, patterns []string) error {
			return o.run(cmd.Context(), patterns, stdout, stderr)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.seeds, "seeds", 500, "seeds that the simulator tries at most; 0: it is not asked")
	flags.IntVar(&o.jobs, "jobs", 1, "mutants at once")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "of one package's tests and of one sweep; a mutant that outlasts it counts as seen")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	flags.BoolVar(&o.write, "write", false, "write the table to "+record+", of a whole run only")
	return cmd
}

func (o *options) run(ctx context.Context, patterns []string, stdout, stderr io.Writer) error {
	switch {
	case o.seeds < 0 || o.jobs < 1 || o.timeout <= 0:
		return errors.New("want --seeds 0 or more, --jobs 1 or more, a --timeout")
	case o.write && (len(patterns) > 0 || o.seeds == 0):
		return errors.New("--write records a whole run: without patterns, and with seeds")
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	mutants, err := load(filepath.Join(root, patchFolder))
	if err != nil {
		return err
	}
	if mutants, err = choose(mutants, patterns); err != nil {
		return err
	}
	scenarios, err := filepath.Glob(filepath.Join(root, scenarioFolder, "*.sim"))
	if err != nil {
		return err
	}
	scenarios = append(scenarios, filepath.Join(root, portfolio))
	c := campaign{
		suite:    suite{root: root, timeout: o.timeout},
		simulate: simulator{root: root, scenarios: scenarios, seeds: o.seeds, timeout: o.timeout},
		jobs:     o.jobs, progress: stderr,
	}
	results, err := c.run(ctx, mutants)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if o.json {
		if err := printJSON(stdout, results); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(stdout, "%s\n%s\n", newTable(results).Render(), sum(results))
	}
	if err != nil {
		return err
	}
	if o.write {
		if err := os.WriteFile(filepath.Join(root, record), markdown(results), 0o644); err != nil {
			return err
		}
	}
	if s := sum(results); s.Killed < s.Mutants {
		return errors.New(s.String())
	}
	return nil
}

// choose returns the mutants that match a pattern, all without patterns; the
// canary is always one of them.
func choose(mutants []mutant, patterns []string) ([]mutant, error) {
	if len(patterns) == 0 {
		return mutants, nil
	}
	used := make([]bool, len(patterns))
	chosen := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool {
		matches := false
		for i, pattern := range patterns {
			if ok, _ := path.Match(pattern, m.Name); ok {
				used[i], matches = true, true
			}
		}
		return !matches && m.Name != canaryName
	})
	if i := slices.Index(used, false); i >= 0 {
		return nil, fmt.Errorf("no mutant matches %q", patterns[i])
	}
	return chosen, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	return strings.TrimSpace(string(out)), err
}
