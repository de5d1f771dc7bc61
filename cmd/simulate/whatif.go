package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/sim/htmlreport"
)

func newWhatIf() *cobra.Command {
	var c whatIfCommand
	cmd := &cobra.Command{
		Use:   "what-if FILE",
		Short: "Tell what a fault changes: two runs, and the difference",
		Long: `Tell what a fault changes: the scenario is run twice, without and with it, and
the difference is told in words and tables, with the rule behind each part of
it.

Without --fault the file's own faults are what makes the difference: it is run
without any, and as it is. With --fault it is run as it is, and with these
faults added. A fault is written as in a scenario file, and its time, counted
from the start, may also stand in a key at= or during=. With --guest a program
of your own runs the jobs, in both runs; see simulate run --help.

` + exitCodes,
		Example: `  simulate what-if examples/scenarios/regional-outage.sim
  simulate what-if examples/scenarios/calm.sim --fault "down for=10h at=2d"
  simulate what-if examples/scenarios/leader-crash.sim --fault "pause runner=1 for=10m at=2h"
  simulate what-if --report out.html examples/scenarios/calm.sim --fault "down for=10h at=2d"`,
		Args:              oneFile,
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.stdin, c.stdout, c.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			defer c.guests.close()
			return c.run(args[0])
		},
	}
	c.addFaults(cmd)
	c.addGuests(cmd)
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	addReport(cmd, &c.html)
	return cmd
}

type whatIfCommand struct {
	input
	json           bool
	html           string // where to, or ""
	stdout, stderr io.Writer
}

func (c *whatIfCommand) run(path string) error {
	with, text, err := c.scenario(path)
	if err != nil {
		return err
	}
	if with, err = with.Draw(with.Engine.Seed); err != nil {
		return err
	}
	without := with
	w := &whatIf{file: path, page: c.html}
	if len(c.faults) == 0 {
		if len(with.Faults) == 0 {
			return fmt.Errorf("%s: nothing goes wrong in it: add a fault, such as --fault \"down for=10h at=2h\"", printable(path))
		}
		without = with.Calm()
	}
	if with, err = c.withFaults(with); err != nil {
		return err
	}
	w.added = len(c.faults)
	arrived := patience(c.stderr, longRun)
	w.Comparison, err = sim.Compare(without, with)
	arrived()
	if err != nil {
		return err
	}
	w.scenario = &with
	if c.html != "" {
		if err := c.writeHTML(w, text); err != nil {
			return err
		}
	}
	if c.json {
		err = writeJSON(c.stdout, whatIfJSON(w))
	} else {
		err = w.write(c.stdout)
	}
	if verdict := worse(w.First.Verdict, w.Second.Verdict); err == nil && verdict != sim.Pass {
		err = &failure{verdict}
	}
	return err
}

// writeHTML writes the report of the second run, and how it differs from the first.
func (c *whatIfCommand) writeHTML(w *whatIf, text string) error {
	s := *w.scenario
	s.Expect = nil // which is left out of account
	recorder := htmlreport.NewRecorder(s)
	result, err := sim.Watch(s, recorder.Tell)
	if err != nil {
		return err
	}
	if c.swarm.given {
		text = "" // which did not run
	}
	return writePage(c.html, recorder, result, htmlreport.Source{
		File: w.file, Text: withoutOutcome(&s, text), WhatIf: w.Comparison, Faults: c.faults,
	})
}

// worse is the verdict that is graver.
func worse(a, b sim.Verdict) sim.Verdict {
	for _, v := range []sim.Verdict{sim.Safety, sim.Budget, sim.Liveness} {
		if a == v || b == v {
			return v
		}
	}
	if a != sim.Pass {
		return a
	}
	return b
}

// whatIf is a comparison and what was compared.
type whatIf struct {
	*sim.Comparison
	file     string
	scenario *sim.Scenario // the second
	added    int           // faults
	page     string        // its report for a browser, or ""
}

// names are those of the two runs.
func (w *whatIf) names() (first, second string) {
	switch {
	case w.added == 0:
		return "calm", "with " + plural(len(w.scenario.Faults), "the fault", "the faults")
	case w.added == len(w.scenario.Faults):
		return "calm", "with " + plural(w.added, "the fault", "the faults")
	default:
		return "as it is", "with " + plural(w.added, "the fault added", "the faults added")
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// write writes it for people.
func (w *whatIf) write(to io.Writer) error {
	out := newPage(to)
	first, second := w.names()
	out.hang("", printable(w.Headline()))
	fmt.Fprintln(out)
	runs := fmt.Sprintf("%q as the file is, and %q as --fault says.", first, second)
	if w.added == 0 {
		runs = fmt.Sprintf("%q without what goes wrong in the file, and %q as the file is.", first, second)
	}
	out.hang("", fmt.Sprintf("Two runs of %s are compared, %s from %s each: %s",
		printable(w.file), exact(w.scenario.For), clock(startOf(w.scenario)), runs))
	out.hang("", "A boundary is an instant at which a schedule is due; to fire is to put a job into the queue.")
	fmt.Fprintln(out)
	w.writeSchedules(out, first, second)
	w.writeStory(out)
	w.writeRules(out)
	w.writeVerdicts(out, first, second)
	writePageLine(out, w.page)
	return out.Flush()
}

func (w *whatIf) writeSchedules(to *page, first, second string) {
	var rows [][]string
	var same int64
	for i := range w.Schedules {
		s := &w.Schedules[i]
		name := printable(s.Name)
		for _, d := range s.Differences() {
			by := ""
			if d.By > 0 {
				by = span(d.By)
			}
			rows = append(rows, []string{name, d.What, number(d.First), number(d.Second), signed(d.Second - d.First), by})
			name = ""
		}
		if name != "" {
			same++
		}
	}
	if len(rows) > 0 {
		writeRows(to, []column{
			{"schedule", cut},
			{"", words},
			{first, numbers},
			{second, numbers},
			{"difference", numbers},
			{"by up to", numbers},
		}, rows, nil)
	}
	if same > 0 && len(rows) > 0 {
		fmt.Fprintf(to, "%s the same in both runs.\n\n", count(same, "schedule came to", "schedules came to"))
	}
}

// signed is a number with its sign.
func signed(n int64) string {
	if n > 0 {
		return "+" + number(n)
	}
	return number(n)
}

// mostTold is how many lines people get to see of what a fault led to, and how
// many names in a line.
const (
	mostTold  = 15
	mostNames = 3
)

// writeStory tells fault by fault what followed, each in the order of time.
func (w *whatIf) writeStory(to *page) {
	const most = 30
	order := make([]int, len(w.scenario.Faults))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(w.scenario.Faults[a].At, w.scenario.Faults[b].At) })
	told := map[int][]sim.Line{}
	for i := range len(order) + 1 {
		told[i] = w.Story(i)
	}
	fmt.Fprintln(to, "What followed, in the order of time")
	if w.added < len(order) { // of the others there may be nothing to tell
		order = slices.DeleteFunc(order, func(i int) bool { return w.added > 0 && i < len(w.scenario.Faults)-w.added && len(told[i+1]) == 0 })
	}
	for n, i := range order {
		if n == most {
			fmt.Fprintf(to, "\nand %s more, which --json lists\n", count(int64(len(order)-most), "fault", "faults"))
			break
		}
		f := &w.scenario.Faults[i]
		mark := ""
		if w.added > 0 && i >= len(w.scenario.Faults)-w.added && w.added < len(w.scenario.Faults) {
			mark = " (added)"
		}
		fmt.Fprintf(to, "\n%s%s\n", printable(f.String()), mark)
		if hit := &w.Second.Faults[i]; len(told[i+1]) == 0 && hit.Effect > 0 {
			text := "nothing that a boundary notices"
			if hits := struck(hit); hits != "" {
				text += ": " + hits
			}
			to.hang("  ", text)
			continue
		}
		w.writeLines(to, told[i+1])
	}
	if len(told[0]) > 0 {
		fmt.Fprint(to, "\nother differences, traced to no single fault\n")
		w.writeLines(to, told[0])
	}
	fmt.Fprintln(to)
}

// writeLines writes what a fault led to.
func (w *whatIf) writeLines(to *page, lines []sim.Line) {
	if len(lines) == 0 {
		fmt.Fprintln(to, "  nothing")
		return
	}
	for i := range lines {
		if i == mostTold {
			fmt.Fprintf(to, "  and %s more, which --json lists\n", count(int64(len(lines)-mostTold), "line", "lines"))
			break
		}
		l := &lines[i]
		text := l.Text()
		if len(l.Who) > 0 {
			text = someOf(l.Who) + ": " + text
		}
		if l.Rule != "" {
			text += " (" + l.Rule + ")"
		}
		to.hang("  "+clock(l.From)+"  ", printable(text))
	}
}

// someOf lists the first of the names, and how many more there are.
func someOf(names []string) string {
	list := strings.Join(names[:min(len(names), mostNames)], ", ")
	if more := len(names) - mostNames; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// writeRules says why, rule by rule.
func (w *whatIf) writeRules(to *page) {
	notes := w.Why()
	if len(notes) == 0 {
		return
	}
	fmt.Fprintln(to, "Why (the rules are those of docs/CONTRACT.md)")
	for _, n := range notes {
		to.hang("  - ", printable(n.Text)+" ("+n.Rule+")")
	}
	fmt.Fprintln(to)
}

func (w *whatIf) writeVerdicts(to *page, first, second string) {
	if w.First.Verdict == w.Second.Verdict {
		fmt.Fprintf(to, "verdict of both runs: %s\n", w.First.Verdict)
	} else {
		fmt.Fprintf(to, "verdict %s: %s; %s: %s\n", first, w.First.Verdict, second, w.Second.Verdict)
	}
	for _, f := range w.Second.Failures[:min(len(w.Second.Failures), mostTold)] {
		to.hang("  violated: ", printable(f.Invariant+" "+f.Schedule+" "+f.Detail))
	}
}

type whatIfObject struct {
	Scenario  string                 `json:"scenario"`
	Headline  string                 `json:"headline"`
	First     runOfObject            `json:"first"`
	Second    runOfObject            `json:"second"`
	Schedules []scheduleWhatIfObject `json:"schedules"`
	Effects   []effectObject         `json:"effects"`
	Rules     rulesObject            `json:"rules"`
}

type runOfObject struct {
	Name    string      `json:"name"`
	Faults  []string    `json:"faults"`
	Verdict sim.Verdict `json:"verdict"`
	Digest  string      `json:"digest"`
}

type scheduleWhatIfObject struct {
	Name    string      `json:"name"`
	Changed int64       `json:"changed"`
	First   tallyObject `json:"first"`
	Second  tallyObject `json:"second"`
}

type tallyObject struct {
	OnTime      int64 `json:"on_time"`
	Late        int64 `json:"late"`
	Early       int64 `json:"early"`
	Again       int64 `json:"again"`
	Skipped     int64 `json:"skipped"`
	MaxLateMS   int64 `json:"max_late_ms"`
	MaxEarlyMS  int64 `json:"max_early_ms"`
	Held        int64 `json:"held"`
	Retried     int64 `json:"retried"`
	Rerun       int64 `json:"rerun"`
	Died        int64 `json:"died"`
	Undelivered int64 `json:"undelivered"`
}

type effectObject struct {
	Fault    int     `json:"fault"` // of the second run's, from 1; 0: of none
	Event    int64   `json:"event"`
	From     string  `json:"from"`
	To       string  `json:"to"`
	Kind     string  `json:"kind"`
	Process  int     `json:"process"`
	Schedule string  `json:"schedule"`
	First    *string `json:"first_boundary"`
	Last     *string `json:"last_boundary"`
	Count    int64   `json:"count"`
	MinByMS  int64   `json:"min_by_ms"`
	MaxByMS  int64   `json:"max_by_ms"`
	Text     string  `json:"text"`
	Rule     string  `json:"rule"`
}

func whatIfJSON(w *whatIf) whatIfObject {
	first, second := w.names()
	o := whatIfObject{
		Scenario: w.file, Headline: w.Headline(),
		First: runOf(first, w.First), Second: runOf(second, w.Second),
		Schedules: []scheduleWhatIfObject{}, Effects: []effectObject{}, Rules: rulesObject{},
	}
	for i := range w.Schedules {
		s := &w.Schedules[i]
		o.Schedules = append(o.Schedules, scheduleWhatIfObject{s.Name, s.Changed, tallyJSON(&s.First), tallyJSON(&s.Second)})
	}
	for i := range w.Effects {
		e := &w.Effects[i]
		kind := e.Kind.String()
		if e.Boundaries() {
			kind = e.Fate.String()
		}
		o.Effects = append(o.Effects, effectObject{
			e.Fault, e.Event, instant(e.From), instant(e.To), kind, e.Process, e.Schedule, instantOrNull(e.First), instantOrNull(e.Last),
			e.Count, e.MinBy.Milliseconds(), e.MaxBy.Milliseconds(), e.Text(), e.Rule,
		})
		if e.Rule != "" {
			o.Rules.add(e.Rule, e.Note.Text)
		}
	}
	return o
}

func runOf(name string, r *sim.Result) runOfObject {
	o := runOfObject{Name: name, Faults: []string{}, Verdict: r.Verdict, Digest: r.Digest.String()}
	for i := range r.Faults {
		o.Faults = append(o.Faults, r.Faults[i].Text)
	}
	return o
}

func tallyJSON(t *sim.Tally) tallyObject {
	return tallyObject{
		t.OnTime, t.Late, t.Early, t.Again, t.Skipped, t.MaxLate.Milliseconds(), t.MaxEarly.Milliseconds(),
		t.Held, t.Retried, t.Rerun, t.Died, t.Undelivered,
	}
}
