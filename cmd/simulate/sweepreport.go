package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
)

// sweepReport is a part of a sweep and all that is told of it.
type sweepReport struct {
	*part
	asked  sim.Seeds // those that were to be run: all of the sweep, or a shard
	goOn   []string  // the commands that run the rest
	before int64     // runs that an earlier command made
	files  int       // that were merged
	wall   time.Duration
	finds  []string // files in which the failures are kept, in their order

	failFast bool
	coverage bool // with the tables of what was drawn and reached
}

// rest is what was to be run and was not.
func (r *sweepReport) rest() seedSet { return r.done.gaps(r.asked) }

// whole reports whether the whole sweep was run.
func (r *sweepReport) whole() bool { return len(r.done.gaps(r.seeds)) == 0 }

// stopped reports whether a seed that failed ended the sweep.
func (r *sweepReport) stopped() bool { return r.failFast && r.Failed > 0 && len(r.rest()) > 0 }

// verdict is that of the runs; a part of a sweep need not reach every mark.
func (r *sweepReport) verdict() sim.Verdict {
	if v := r.Verdict(); v != sim.Vacuous || r.whole() {
		return v
	}
	return sim.Pass
}

// end is how the command ends after the report.
func (r *sweepReport) end() error {
	switch verdict := r.verdict(); {
	case verdict != sim.Pass:
		return &failure{verdict}
	case len(r.rest()) > 0:
		return errUnfinished
	}
	return nil
}

// errUnfinished is the end of a sweep of which not all seeds were run, and
// nothing was found in those that were.
var errUnfinished = errors.New("unfinished")

// exitUnfinished is what a shell shows of a program that an interrupt ended.
const exitUnfinished = 130

const unfinishedCode = `
130  not all seeds were run, and nothing was found in those that were`

// again is the command that runs a seed again.
func (p *part) again(seed uint64) string {
	return p.command("simulate run", "--seed", strconv.FormatUint(seed, 10))
}

// command is a command about the scenario.
func (p *part) command(name string, flags ...string) string {
	words := append([]string{name, shellWord(p.file)}, flags...)
	words = append(words, p.guests.flags()...)
	words = append(words, p.engine.flags()...)
	if p.swarmGiven {
		words = append(words, "--swarm", shellWord(p.Scenario.Swarm.String()))
	}
	return strings.Join(words, " ")
}

// shellWord is the text as one word of a shell's command line.
func shellWord(s string) string {
	s = printable(s)
	if s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c < 0x80 && !strings.ContainsRune(shellPlain, c) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

const shellPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:=@%,"

// addCoverage adds the flag --coverage.
func addCoverage(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "coverage", false,
		"list how often each kind of fault was drawn and had an effect, which coverage marks were reached, and what was excused")
}

// print writes the report, for people or in JSON.
func (r *sweepReport) print(w io.Writer, asJSON bool) error {
	if !asJSON {
		return r.write(w)
	}
	text, err := newSweepObject(r).text()
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// write writes the report for people. Its last line is the digest.
func (r *sweepReport) write(to io.Writer) error {
	w := newPage(to)
	fmt.Fprintf(w, "%s: seeds %s", printable(r.file), r.asked)
	if r.asked != r.seeds {
		fmt.Fprintf(w, " of %s", r.seeds)
	}
	if r.files > 0 {
		fmt.Fprintf(w, ", from %s", count(int64(r.files), "file", "files"))
	}
	if swarm := r.Scenario.Swarm; swarm != (sim.Swarm{}) {
		fmt.Fprintf(w, ", swarm %s", swarm)
	}
	fmt.Fprint(w, "\n\n")
	if r.coverage {
		r.writeFaults(w)
		r.writeMarks(w)
		r.writeExcuses(w)
	}
	r.writeFailures(w)
	fmt.Fprintf(w, "verdict: %s\n", r.verdict())
	w.judge(r.judgement())
	if !r.coverage {
		w.item("", r.covered())
	}
	fmt.Fprintln(w, checksMade(r.Checks))
	if r.engine.wasm {
		w.item("", "each seed was also run by the simulator compiled to WebAssembly, and its digests compared")
	}
	made := fmt.Sprintf("%s, %s of them twice to compare", count(r.Runs, "run", "runs"), number(r.Repeated))
	if r.wall > 0 {
		made += fmt.Sprintf(", in %s: %s runs per second", span(r.wall.Round(time.Millisecond)), number(r.speed()))
	}
	w.item("", made+", "+count(r.Events, "event", "events"))
	fmt.Fprintf(w, "digest %s\n", r.Digest)
	return w.Flush()
}

// speed is how many runs were made in a second.
func (r *sweepReport) speed() int64 {
	return int64(float64(r.Runs-r.before) / max(r.wall, time.Microsecond).Seconds())
}

// covered says in a line what the tables say.
func (r *sweepReport) covered() string {
	var drawn, effective, reached, excuses int64
	for _, f := range r.Faults {
		drawn, effective = drawn+f.Count, effective+f.Effective
	}
	for _, m := range r.Marks {
		reached += min(m.Reached, 1)
	}
	for _, e := range r.Excuses {
		excuses += e.Count
	}
	return fmt.Sprintf("%s, %s with effect; %s of %s reached; %s (--coverage lists them)",
		count(drawn, "fault", "faults"), number(effective), number(reached), count(int64(len(r.Marks)), "coverage mark", "coverage marks"),
		count(excuses, "excuse", "excuses"))
}

func (r *sweepReport) writeFaults(w *page) {
	var rows [][]string
	for _, f := range r.Faults {
		rows = append(rows, []string{f.Kind.String(), number(f.Count), number(f.Effective), number(f.Effect)})
	}
	if len(rows) > 0 {
		writeRows(w, []column{{"fault", words}, {"drawn", numbers}, {"with effect", numbers}, {"effects", numbers}}, rows, nil)
		w.hang("effects: ", "how often they struck, each time a process, a call, a job, a row or a clock")
		fmt.Fprintln(w)
	}
}

func (r *sweepReport) writeMarks(w *page) {
	var rows [][]string
	var never, unseen []string
	for _, m := range r.Marks {
		switch {
		case m.Reached > 0:
			rows = append(rows, []string{m.ID, number(m.Runs), number(m.Reached), m.About})
		case m.Evaluated > 0:
			never = append(never, m.ID)
		default:
			unseen = append(unseen, m.ID)
		}
	}
	if len(rows) > 0 {
		writeRows(w, []column{{"coverage mark", words}, {"runs", numbers}, {"times", numbers}, {"meaning", wrapped}}, rows, nil)
	}
	writeMarkList(w, "never reached: ", never)
	writeMarkList(w, "never even looked at: ", unseen)
}

func writeMarkList(w *page, what string, marks []string) {
	if len(marks) == 0 {
		return
	}
	w.hang("", what+strings.Join(marks, ", "))
	fmt.Fprintln(w)
}

func (r *sweepReport) writeExcuses(w *page) {
	var rows [][]string
	for _, e := range r.Excuses {
		rows = append(rows, []string{printable(e.Kind), number(e.Runs), number(e.Count), strconv.FormatUint(e.Seed, 10)})
	}
	if len(rows) > 0 {
		writeRows(w, []column{{"excused", wrapped}, {"runs", numbers}, {"times", numbers}, {"first seed", numbers}}, rows, nil)
	}
}

func (r *sweepReport) writeFailures(w *page) {
	for i := range r.Failures {
		g := &r.Failures[i]
		fmt.Fprintf(w, "%s: %s, in %s: %s\n", g.Verdict, printable(g.What), count(g.Runs, "run", "runs"), g.SeedList())
		detail := g.Detail
		if g.Schedule != "" {
			detail = "schedule " + g.Schedule + ": " + detail
		}
		w.hang("  ", printable(detail))
		fmt.Fprintf(w, "  %s\n", r.again(g.Seeds[0]))
		if i < len(r.finds) {
			fmt.Fprintf(w, "  %s\n", strings.Join(append([]string{"simulate replay", shellWord(r.finds[i])}, r.guests.flags()...), " "))
		}
		fmt.Fprintln(w)
	}
}

// judgement says in words what the verdict means and what it rests on.
func (r *sweepReport) judgement() []string {
	var list []string
	if r.Failed > 0 {
		list = append(list, fmt.Sprintf("%s of %s failed", number(r.Failed), count(r.Runs, "run", "runs")))
	} else {
		list = append(list, "every invariant held in "+count(r.Runs, "run", "runs"))
	}
	s := &r.Schedules
	skips := fmt.Sprintf("%s fired, %s skipped by policy, %s by the cap, %s by a pause",
		count(s.Fired, "boundary", "boundaries"), number(s.SkipReasons["policy"]), number(s.SkipReasons["cap"]), number(s.SkipReasons["pause"]))
	for _, rare := range []struct{ reason, words string }{
		{"hours", "outside active hours"}, {"overlap", "over a live job"}, {"missed", "too late for a run-once"},
	} {
		if n := s.SkipReasons[rare.reason]; n > 0 {
			skips += fmt.Sprintf(", %s %s", number(n), rare.words)
		}
	}
	list = append(list, skips)
	list = append(list, fmt.Sprintf("%s still due at the end, %s unknown to a restart", number(s.Left), number(s.Forgotten)))
	q := &r.Queues
	list = append(list, fmt.Sprintf("%s: %s done, %s dead, %s pending, %s claimed",
		count(q.Enqueued, "job", "jobs"), number(q.Done), number(q.Dead), number(q.Pending), number(q.Claimed)))
	if len(r.Scenario.Outboxes) > 0 {
		list = append(list, fmt.Sprintf("%s of the outboxes, %s of them again", count(q.Delivered, "delivery", "deliveries"), number(q.DeliveredAgain)))
	}
	switch {
	case r.whole():
		for _, mark := range r.Unreached() {
			list = append(list, "expected sometimes:"+mark+", which no run reached")
		}
	case len(r.Unreached()) > 0:
		list = append(list, "what is expected with sometimes was not judged, since not all seeds of the sweep were run: "+strings.Join(r.Unreached(), ", "))
	}
	if r.swarmGiven {
		list = append(list, "what the file expects of its own faults was not judged: counts, verdict, recorded outcome")
	}
	if r.Scenario.Swarm == (sim.Swarm{}) {
		list = append(list, "all seeds had the file's own faults: with a line swarm in it, or --swarm portfolio, each draws others")
	}
	if r.before > 0 {
		list = append(list, fmt.Sprintf("%s had been made before", count(r.before, "run", "runs")))
	}
	if rest := r.rest(); len(rest) > 0 {
		why := "interrupted"
		switch {
		case r.files > 0:
			why = "unfinished, the seeds " + rest.String() + " are missing"
		case r.stopped():
			why = "ended by --fail-fast"
		}
		list = append(list, why+"; to go on:")
		for _, command := range r.goOn {
			list = append(list, whole+command)
		}
	}
	return list
}
