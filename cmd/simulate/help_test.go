package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// commands are those of the program, without help and completion.
func commands() (list []*cobra.Command) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		list = append(list, cmd)
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(newRoot())
	return list
}

// TestHelpIsWhole: each command says in a line and at length what it does, shows
// how it is called, and belongs to a group; its texts are of one form.
func TestHelpIsWhole(t *testing.T) {
	for _, cmd := range commands() {
		name := cmd.CommandPath()
		require.NotEmpty(t, cmd.Example, name)
		require.NotEmpty(t, cmd.Long, name)
		require.True(t, unicode.IsUpper(rune(cmd.Short[0])), name)
		require.False(t, strings.HasSuffix(cmd.Short, "."), name)
		require.LessOrEqual(t, len(cmd.Short), 66, name)
		require.Equal(t, strings.Fields(cmd.Short)[0], strings.Fields(cmd.Long)[0], name)
		for line := range strings.Lines(cmd.Long) {
			require.LessOrEqual(t, len(line), helpWidth+1, "%s: %s", name, line)
		}
		for line := range strings.Lines(cmd.Example) {
			require.True(t, strings.HasPrefix(line, "  simulate "), "%s: %s", name, line)
		}
		if cmd.HasParent() && !cmd.Parent().HasParent() {
			require.NotEmpty(t, cmd.GroupID, name)
		}
		for line := range strings.Lines(cmd.UsageString()) {
			require.True(t, len(line) <= helpWidth+1 || strings.Contains(cmd.Example, strings.TrimSpace(line)), "%s: %s", name, line)
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			flag := name + " --" + f.Name
			require.Regexp(t, "^[a-z]", f.Usage, flag)
			require.NotRegexp(t, `\.$`, f.Usage, flag)
			if f.Value.Type() != "bool" {
				_, completes := cmd.GetFlagCompletionFunc(f.Name)
				require.True(t, completes, "%s completes to any file", flag)
			}
		})
	}
}

// TestExamplesRun runs the examples of all commands, those of sweeps with fewer
// seeds: none is refused. Those of a command are run one after the other, in a
// folder with the files that they name.
func TestExamplesRun(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: each example of each command is run")
	}
	repo, err := filepath.Abs("../..")
	require.NoError(t, err)
	script := `mkdir files
cd files
guest report.wasm
engine state
exec simulate new -o my.sim
exec sh -c 'sed s/report.skipped=9/report.skipped=8/ my.sim >failing.sim'
exec simulate shrink my.sim --keep sometimes:skipped -o found.sim
exec simulate sweep my.sim --seeds 1..4 --shard 1/2 --state shard-1.json
exec simulate sweep my.sim --seeds 1..4 --shard 2/2 --state shard-2.json
cd ..
`
	for _, cmd := range commands() {
		for line := range strings.Lines(cmd.Example) {
			line = regexp.MustCompile(`1\.\.\d{3,}`).ReplaceAllString(strings.TrimSpace(line), "1..64")
			if strings.HasPrefix(line, "simulate sweep") && !strings.Contains(line, "--seeds") {
				line += " --seeds 1..4"
			}
			require.NotContains(t, line, "'")
			script += fmt.Sprintf("understood %s '%s'\n", cmd.Name(), line)
		}
	}
	file := filepath.Join(t.TempDir(), "examples.txtar")
	require.NoError(t, os.WriteFile(file, []byte(script), 0o666))
	testscript.Run(t, testscript.Params{
		Files:               []string{file},
		RequireExplicitExec: true,
		Setup:               useCache,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"guest": writeGuest, "engine": recordEngine,
			"understood": func(ts *testscript.TestScript, _ bool, args []string) {
				begin, folder, line := ts.MkAbs("."), ts.MkAbs("of-"+args[0]), args[1]
				if _, err := os.Stat(folder); err != nil {
					ts.Check(os.CopyFS(folder, os.DirFS(ts.MkAbs("files"))))
					for _, shared := range []string{"examples/scenarios", "sim/testdata/corpus"} {
						ts.Check(os.CopyFS(filepath.Join(folder, shared), os.DirFS(filepath.Join(repo, shared))))
					}
					if args[0] == "new" || args[0] == "simulate" {
						ts.Check(os.Remove(filepath.Join(folder, "my.sim")))
					}
				}
				ts.Check(ts.Chdir(folder))
				err := ts.Exec("sh", "-c", line)
				var exit *exec.ExitError
				if err != nil && !(errors.As(err, &exit) && slices.Contains([]int{2, 3, 4, 5, 6, 7}, exit.ExitCode())) {
					ts.Fatalf("%s: %v", line, err)
				}
				ts.Check(ts.Chdir(begin))
			},
		},
	})
}
