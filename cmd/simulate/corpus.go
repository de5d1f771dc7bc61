package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
)

func newCorpus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "corpus",
		Short: "Keep scenarios that a test runs before all others",
		Long: `Keep scenarios that a test runs before all others: a folder of small scenario
files, each kept for a point. The point is what the file expects, such as a
coverage mark, sometimes:MARK; or, where it failed once, what the comment below
its first line says, such as the invariant. A file has its outcome recorded.

A file that no longer reaches its point tests nothing, although it passes. So
each has to meet what it expects, to come to its recorded outcome, and to have
every fault take effect: in a shrunk scenario none is there in vain.

The folder of this module is sim/testdata/corpus.`,
		Example: `  simulate corpus list sim/testdata/corpus
  simulate corpus check sim/testdata/corpus
  simulate shrink my.sim --keep sometimes:skipped -o found.sim
  simulate corpus add sim/testdata/corpus found.sim`,
		RunE:                       noCommand,
		DisableFlagsInUseLine:      true,
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newCorpusList(), newCorpusCheck(), newCorpusAdd())
	return cmd
}

func newCorpusList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list FOLDER",
		Short: "List the files and what each is kept for",
		Long: `List the files of the folder, by their names, and what each is kept for. They
are read, and not run.`,
		Example:           "  simulate corpus list sim/testdata/corpus",
		Args:              oneFolder,
		ValidArgsFunction: completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := readCorpus(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), corpusJSON(args[0], files))
			}
			var rows [][]string
			for _, f := range files {
				rows = append(rows, []string{
					printable(f.name), printable(f.point()), number(int64(len(f.scenario.Faults))), exact(f.scenario.For),
				})
			}
			out := newPage(cmd.OutOrStdout())
			writeRows(out, []column{{"file", words}, {"kept for", wrapped}, {"faults", numbers}, {"run", numbers}}, rows, nil)
			return out.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newCorpusCheck() *cobra.Command {
	var asJSON, rewrite bool
	cmd := &cobra.Command{
		Use:   "check FOLDER",
		Short: "See whether each file still reaches its point",
		Long: `See whether each file still reaches its point. One that does not is named, with
what to do about it. With --rewrite the outcomes of those that do are recorded
anew.

Exit codes:
  0  each reaches its point
  1  usage or bad input
  2  some do not`,
		Example:           "  simulate corpus check sim/testdata/corpus",
		Args:              oneFolder,
		ValidArgsFunction: completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := readCorpus(args[0])
			if err != nil {
				return err
			}
			bad := int64(0)
			for _, f := range files {
				if err := f.check(rewrite); err != nil {
					return err
				}
				bad += int64(min(len(f.problems), 1))
			}
			if asJSON {
				err = writeJSON(cmd.OutOrStdout(), corpusJSON(args[0], files))
			} else {
				err = writeCorpus(cmd.OutOrStdout(), args[0], files, bad)
			}
			if err == nil && bad > 0 {
				err = &failure{sim.Unmet}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&rewrite, "rewrite", false, "record the outcomes anew")
	return cmd
}

func newCorpusAdd() *cobra.Command {
	var as string
	cmd := &cobra.Command{
		Use:   "add FOLDER FILE",
		Short: "Add a scenario, with its outcome recorded",
		Long: `Add a scenario, with its outcome recorded. It has to reach its point, as
simulate corpus check demands; best it is shrunk before. What stands in the
file above its outcome is kept as it is. A folder that is not there is made.
The test that runs the files is a few lines of Go: TestKept of examples/gotest
is one to copy.`,
		Example: "  simulate corpus add sim/testdata/corpus found.sim --as report-skipped.sim",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%d arguments came, want two: write %s FOLDER FILE", len(args), cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return completeFolder(cmd, args, text)
			}
			return completeFile(cmd, args[1:], text)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c := input{stdin: cmd.InOrStdin()}
			s, text, err := c.scenario(args[1])
			if err != nil {
				return err
			}
			if as == "" {
				as = filepath.Base(args[1])
			}
			if as != filepath.Base(as) || filepath.Ext(as) != scenarioExt {
				return fmt.Errorf("--as: found %q, want the name of a file that ends with %s", as, scenarioExt)
			}
			f := &corpusFile{folder: args[0], name: as, scenario: s, text: text}
			if _, err := os.Stat(f.path()); err == nil {
				return fmt.Errorf("%s is there already: choose another name with --as", f.path())
			} else if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err := f.check(true); err != nil {
				return err
			}
			if len(f.problems) > 0 {
				return fmt.Errorf("not added: %s", strings.Join(f.problems, "; "))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "added %s, kept for %s\n", printable(f.path()), printable(f.point()))
			return err
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "the `NAME` of the file in the folder, if it is to be another one")
	completeNothing(cmd, "as")
	return cmd
}

func oneFolder(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d folders came, want one: write %s FOLDER", len(args), cmd.CommandPath())
	}
	return nil
}

var completeFolder = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)

const scenarioExt = ".sim"

// corpusFile is a file of a corpus.
type corpusFile struct {
	folder, name string
	scenario     sim.Scenario
	text         string
	problems     []string // why it does not reach its point, with what to do
}

// readCorpus reads all scenarios of the folder, in the order of their names.
func readCorpus(folder string) ([]*corpusFile, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []*corpusFile
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != scenarioExt {
			continue
		}
		f := &corpusFile{folder: folder, name: e.Name()}
		if f.scenario, f.text, err = (&input{}).scenario(f.path()); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no files that end with %s: simulate corpus add %s FILE", folder, scenarioExt, shellWord(folder))
	}
	return files, nil
}

func (f *corpusFile) path() string { return filepath.Join(f.folder, f.name) }

// point is what the file is kept for: what it expects or, without that, the
// comment below its first line. "" if it does not say.
func (f *corpusFile) point() string {
	var points []string
	for _, e := range f.scenario.Expect {
		points = append(points, e.String())
	}
	if len(points) > 0 {
		return strings.Join(points, " ")
	}
	_, below, _ := strings.Cut(f.text, "\n")
	line, _, _ := strings.Cut(below, "\n")
	comment, isComment := strings.CutPrefix(strings.TrimSpace(line), "#")
	if !isComment {
		return ""
	}
	return strings.TrimSpace(comment)
}

// check finds out whether the file reaches its point, and if it does and rewrite
// says so, records its outcome.
func (f *corpusFile) check(rewrite bool) error {
	problem := func(what, todo string) { f.problems = append(f.problems, what+": "+todo) }
	if f.point() == "" {
		problem("it does not say what it is kept for",
			"write a line expect sometimes:MARK or, where it failed once, the invariant in a comment below the first line")
	}
	if recordedGuests(f.scenario.Outcome) != "" {
		problem("it was recorded with a program as a handler", "a corpus runs without; leave it to a test that has the program")
		return nil
	}
	result, err := sim.Run(f.scenario)
	if err != nil {
		return err
	}
	shrinkAnew := "shrink another scenario that comes to it, and put it in the place of this one"
	switch {
	case len(result.Unmet) > 0:
		problem("it does not reach its point, "+strings.Join(result.Unmet, ", "), "write what it comes to, or "+shrinkAnew)
	case result.Verdict != sim.Pass:
		what := result.Verdict.String()
		if len(result.Failures) > 0 {
			what += ": " + result.Failures[0].Invariant + ": " + result.Failures[0].Detail
		}
		problem("it fails, "+what, "that is a bug, or expect verdict="+result.Verdict.String())
	}
	for i := range result.Faults {
		if result.Faults[i].Effect == 0 {
			problem(fmt.Sprintf("its fault %q has no effect", result.Faults[i].Text), "leave it out if the point is reached without, or "+shrinkAnew)
		}
	}
	switch r := (report{Result: result, scenario: &f.scenario}); {
	case len(f.problems) > 0:
	case rewrite:
		if err := os.MkdirAll(f.folder, 0o777); err != nil {
			return err
		}
		return writeFile(f.path(), sim.WithOutcome(f.text, result.Outcome()))
	case f.scenario.Outcome == "":
		problem("it has no recorded outcome", "simulate corpus check --rewrite "+shellWord(f.folder))
	default:
		if r.compare(f.text); r.difference != nil {
			problem(fmt.Sprintf("line %d recorded %q, now it is %q", r.difference.line, r.difference.was, r.difference.is),
				"if that is meant, simulate corpus check --rewrite "+shellWord(f.folder))
		}
	}
	return nil
}

// writeCorpus writes for people what the check came to.
func writeCorpus(w io.Writer, folder string, files []*corpusFile, bad int64) error {
	for _, f := range files {
		for _, p := range f.problems {
			fmt.Fprintf(w, "%s: %s\n", printable(f.path()), printable(p))
		}
	}
	all := count(int64(len(files)), "file", "files")
	if bad > 0 {
		_, err := fmt.Fprintf(w, "%s: %s of %s not as they should be\n", printable(folder), strconv.FormatInt(bad, 10), all)
		return err
	}
	_, err := fmt.Fprintf(w, "%s: %s, each of which reaches its point\n", printable(folder), all)
	return err
}

type corpusObject struct {
	Folder string             `json:"folder"`
	Files  []corpusFileObject `json:"files"`
}

type corpusFileObject struct {
	File     string   `json:"file"`
	KeptFor  string   `json:"kept_for"`
	Faults   int      `json:"faults"`
	RunMS    int64    `json:"run_ms"`
	Problems []string `json:"problems"`
}

func corpusJSON(folder string, files []*corpusFile) corpusObject {
	o := corpusObject{Folder: folder}
	for _, f := range files {
		o.Files = append(o.Files, corpusFileObject{
			f.name, f.point(), len(f.scenario.Faults), f.scenario.For.Milliseconds(), append([]string{}, f.problems...),
		})
	}
	return o
}
