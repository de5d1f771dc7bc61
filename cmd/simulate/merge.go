package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
)

func newMerge() *cobra.Command {
	var c mergeCommand
	cmd := &cobra.Command{
		Use:   "merge PART...",
		Short: "Join the parts of a sweep and judge them together",
		Long: `Join the parts of a sweep and judge them together. A part is a file that
simulate sweep wrote with --state, or what it printed with --json, or a merged
one. In which order they come makes no difference.

All have to be of one scenario and one build, and no seed may be in two of
them. Seeds between the first and the last that are in none are named; as long
as there are some, nothing is said of what the scenario expects with
sometimes:MARK.

` + exitCodes + unfinishedCode,
		Example: `  simulate merge shard-*.json
  simulate merge shard-*.json -o whole.json
  simulate merge shard-1.json shard-2.json --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("no files came, want at least one, as in %s shard-1.json shard-2.json", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveFilterFileExt),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.stdout = cmd.OutOrStdout()
			return c.run(args)
		},
	}
	cmd.Flags().StringVarP(&c.output, "output", "o", "", "write the merged part to this `FILE`")
	addCoverage(cmd, &c.coverage)
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	completeExt(cmd, "output", "json")
	return cmd
}

type mergeCommand struct {
	output         string
	coverage, json bool
	stdout         io.Writer
}

func (c *mergeCommand) run(paths []string) error {
	sum, err := mergeFiles(paths)
	if err != nil {
		return err
	}
	r := &sweepReport{part: sum, asked: sum.seeds, files: len(paths), coverage: c.coverage}
	if c.output != "" {
		if err := r.keep(c.output); err != nil {
			return err
		}
		r.goOn = []string{sum.command("simulate sweep", "--seeds", sum.seeds.String(), "--state", shellWord(c.output))}
	} else {
		for _, gap := range r.rest() {
			if len(r.goOn) == mostCommands {
				r.goOn = append(r.goOn, "…")
				break
			}
			r.goOn = append(r.goOn, sum.command("simulate sweep", "--seeds", gap.String(),
				"--state", fmt.Sprintf("seeds-%d-%d.json", gap.First, gap.Last)))
		}
	}
	if err := r.print(c.stdout, c.json); err != nil {
		return err
	}
	return r.end()
}

// mostCommands is how many of the commands are shown that run what is missing.
const mostCommands = 5

// mergeFiles reads the parts and merges them. What does not fit is an error that
// names both files.
func mergeFiles(paths []string) (*part, error) {
	parts := make([]*part, len(paths))
	for i, path := range paths {
		var err error
		if parts[i], err = readPart(path); err != nil {
			return nil, err
		}
		if err := parts[0].sameSweep(parts[i]); err != nil {
			return nil, fmt.Errorf("%s: %w, as in %s", path, err, paths[0])
		}
		for j := range i {
			if both, found := parts[j].done.common(parts[i].done); found {
				return nil, fmt.Errorf("%s: found runs of the seeds %s, which are in %s as well; want each seed once", path, both, paths[j])
			}
		}
	}
	sum := parts[0]
	for _, p := range parts[1:] {
		sum.merge(p)
	}
	if _, err := sim.ParseSeeds(sum.seeds.String()); err != nil {
		return nil, err
	}
	return sum, nil
}
