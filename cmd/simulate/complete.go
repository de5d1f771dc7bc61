package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
)

// completeFile completes the one scenario file that a command has.
func completeFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"sim"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeText has a flag completed whose value is in the words of a scenario
// file; the names in it are those of the file that stands before it.
func completeText(cmd *cobra.Command, flag string, complete func(s sim.Scenario, text string) []string) {
	completeFlag(cmd, flag, func(_ *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		var s sim.Scenario
		if len(args) > 0 && args[0] != fromStdin {
			s, _, _ = new(input).scenario(args[0]) // without one there are no names
		}
		list := complete(s, text)
		directive := cobra.ShellCompDirectiveNoFileComp
		if len(list) == 1 && strings.HasSuffix(list[0], "=") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return list, directive
	})
}

// completeSchedule lists the names of the schedules.
func completeSchedule(s sim.Scenario, text string) (names []string) {
	for i := range s.Schedules {
		if name := s.Schedules[i].Name; strings.HasPrefix(name, text) {
			names = append(names, name)
		}
	}
	return names
}

// completeExt has a flag completed whose value is a file with the ending.
func completeExt(cmd *cobra.Command, flag, ext string) {
	completeFlag(cmd, flag, cobra.FixedCompletions([]string{ext}, cobra.ShellCompDirectiveFilterFileExt))
}

// completeNothing is for a flag whose values cannot be listed.
func completeNothing(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		completeFlag(cmd, flag, cobra.NoFileCompletions)
	}
}

func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // no such flag
	}
}
