package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/tickonce/tickonce/sim"
)

// sweepReport is a sweep and all that is told of it.
type sweepReport struct {
	*sim.SweepResult
	command *sweepCommand
	file    string
	rest    *sim.Seeds // what was not run, or nil
	wall    time.Duration
}

// stopped reports whether a seed that failed ended the sweep.
func (r *sweepReport) stopped() bool { return r.rest != nil && r.command.failFast && r.Failed > 0 }

// interrupted reports whether somebody ended it.
func (r *sweepReport) interrupted() bool { return r.rest != nil && !r.stopped() }

// verdict is that of the runs; a part of a sweep need not reach every mark.
func (r *sweepReport) verdict() sim.Verdict {
	if v := r.Verdict(); v != sim.Vacuous || r.rest == nil {
		return v
	}
	return sim.Pass
}

// again is the command that runs a seed again.
func (r *sweepReport) again(seed uint64) string {
	words := []string{"simulate run", shellWord(r.file), "--seed", strconv.FormatUint(seed, 10)}
	return strings.Join(append(words, r.swarmWords()...), " ")
}

// goOn is the command that runs what was not run.
func (r *sweepReport) goOn() string {
	words := []string{"simulate sweep", shellWord(r.file), "--seeds", r.rest.String()}
	return strings.Join(append(words, r.swarmWords()...), " ")
}

func (r *sweepReport) swarmWords() []string {
	if !r.command.swarm.given {
		return nil
	}
	return []string{"--swarm", shellWord(r.command.swarm.String())}
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

// write writes the report for people. Its last line is the digest.
func (r *sweepReport) write(to io.Writer) error {
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "%s: seeds %s", printable(r.file), r.command.seeds)
	if swarm := r.Scenario.Swarm; swarm != (sim.Swarm{}) {
		fmt.Fprintf(w, ", swarm %s", swarm)
	}
	fmt.Fprint(w, "\n\n")
	r.writeFaults(w)
	r.writeMarks(w)
	r.writeExcuses(w)
	r.writeFailures(w)
	fmt.Fprintf(w, "verdict: %s\n", r.verdict())
	for _, line := range r.judgement() {
		fmt.Fprintf(w, "  %s\n", printable(line))
	}
	fmt.Fprintln(w, checksMade(r.Checks))
	fmt.Fprintf(w, "%s, %s of them twice to compare, in %s: %s runs per second, %s\n",
		count(r.Runs, "run", "runs"), number(r.Repeated), span(r.wall.Round(time.Millisecond)), number(r.speed()), count(r.Events, "event", "events"))
	fmt.Fprintf(w, "digest %s\n", r.Digest)
	return w.Flush()
}

// speed is how many runs were made in a second.
func (r *sweepReport) speed() int64 {
	return int64(float64(r.Runs) / max(r.wall, time.Microsecond).Seconds())
}

func (r *sweepReport) writeFaults(w io.Writer) {
	var rows [][]string
	for _, f := range r.Faults {
		rows = append(rows, []string{f.Kind.String(), number(f.Count), number(f.Effective), number(f.Effect)})
	}
	if len(rows) > 0 {
		writeRows(w, []column{{"fault", words}, {"drawn", numbers}, {"with effect", numbers}, {"effects", numbers}}, rows, nil)
		fmt.Fprint(w, "effects: how often they struck, each time a process, a call, a job, a row or a clock\n\n")
	}
}

func (r *sweepReport) writeMarks(w io.Writer) {
	var rows [][]string
	var never []string
	for _, m := range r.Marks {
		if m.Reached > 0 {
			rows = append(rows, []string{m.ID, number(m.Runs), number(m.Reached), m.About})
		} else {
			never = append(never, m.ID)
		}
	}
	if len(rows) > 0 {
		writeRows(w, []column{{"coverage mark", words}, {"runs", numbers}, {"times", numbers}, {"meaning", wrapped}}, rows, nil)
	}
	if len(never) > 0 {
		for line := range strings.Lines(text.WrapSoft("never reached: "+strings.Join(never, ", "), pageWidth) + "\n") {
			fmt.Fprintln(w, strings.TrimRight(line, " \n"))
		}
		fmt.Fprintln(w)
	}
}

func (r *sweepReport) writeExcuses(w io.Writer) {
	var rows [][]string
	for _, e := range r.Excuses {
		rows = append(rows, []string{printable(e.Kind), number(e.Runs), number(e.Count), strconv.FormatUint(e.Seed, 10)})
	}
	if len(rows) > 0 {
		writeRows(w, []column{{"excused", wrapped}, {"runs", numbers}, {"times", numbers}, {"first seed", numbers}}, rows, nil)
	}
}

func (r *sweepReport) writeFailures(w io.Writer) {
	for i := range r.Failures {
		g := &r.Failures[i]
		fmt.Fprintf(w, "%s: %s, in %s: %s\n", g.Verdict, printable(g.What), count(g.Runs, "run", "runs"), g.SeedList())
		detail := g.Detail
		if g.Schedule != "" {
			detail = "schedule " + g.Schedule + ": " + detail
		}
		fmt.Fprintf(w, "  %s\n  %s\n\n", printable(detail), r.again(g.Seeds[0]))
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
	list = append(list, fmt.Sprintf("%s fired, %s skipped by policy, %s by the cap, %s by a pause",
		count(s.Fired, "boundary", "boundaries"), number(s.SkipReasons["policy"]), number(s.SkipReasons["cap"]), number(s.SkipReasons["pause"])))
	list = append(list, fmt.Sprintf("%s still due at the end, %s unknown to a restart", number(s.Left), number(s.Forgotten)))
	q := &r.Queues
	list = append(list, fmt.Sprintf("%s: %s done, %s dead, %s pending, %s claimed",
		count(q.Enqueued, "job", "jobs"), number(q.Done), number(q.Dead), number(q.Pending), number(q.Claimed)))
	if r.rest == nil {
		for _, mark := range r.Unreached() {
			list = append(list, "expected sometimes:"+mark+", which no run reached")
		}
	}
	if r.command.swarm.given {
		list = append(list, "what the file expects of its own faults was not judged: counts, verdict, recorded outcome")
	}
	switch {
	case r.stopped():
		list = append(list, "ended by --fail-fast; to go on: "+r.goOn())
	case r.interrupted():
		list = append(list, "interrupted; to go on: "+r.goOn())
	}
	return list
}

type sweepObject struct {
	Scenario string      `json:"scenario"`
	Swarm    string      `json:"swarm"`
	Seeds    string      `json:"seeds"`
	Rest     *string     `json:"rest"` // what was not run
	Verdict  sim.Verdict `json:"verdict"`
	Digest   string      `json:"digest"`
	Runs     int64       `json:"runs"`
	Failed   int64       `json:"failed"`
	Repeated int64       `json:"repeated"`
	Events   int64       `json:"events"`

	Failures  []failureObject  `json:"failures"`
	Unreached []string         `json:"unreached"`
	Excuses   []excuseObject   `json:"excuses"`
	Faults    []faultSumObject `json:"faults"`
	Checks    map[string]int64 `json:"checks"`
	Coverage  []markObject     `json:"coverage"`
	Schedules scheduleSum      `json:"schedules"`
	Queues    queueSum         `json:"queues"`
}

type failureObject struct {
	Verdict  sim.Verdict `json:"verdict"`
	What     string      `json:"what"`
	Runs     int64       `json:"runs"`
	Seeds    []uint64    `json:"seeds"` // the lowest few
	Schedule string      `json:"schedule"`
	Detail   string      `json:"detail"` // of the first
	Command  string      `json:"command"`
}

type excuseObject struct {
	Kind  string `json:"kind"`
	Runs  int64  `json:"runs"`
	Count int64  `json:"count"`
	Seed  uint64 `json:"seed"` // the lowest
	Text  string `json:"text"` // its first
}

type faultSumObject struct {
	Fault     string `json:"fault"`
	Count     int64  `json:"count"`
	Effective int64  `json:"effective"`
	Effect    int64  `json:"effect"`
}

type markObject struct {
	Mark    string `json:"mark"`
	Runs    int64  `json:"runs"`
	Reached int64  `json:"reached"`
}

// scheduleSum is the sum over the schedules of all runs.
type scheduleSum struct {
	Boundaries  int64            `json:"boundaries"`
	Fired       int64            `json:"fired"`
	Skipped     int64            `json:"skipped"`
	SkipReasons map[string]int64 `json:"skip_reasons"`
	Quarantined int64            `json:"quarantined"`
	FiredAgain  int64            `json:"fired_again"`
	Repaired    int64            `json:"fired_by_repair"`
	Left        int64            `json:"left"`
	Forgotten   int64            `json:"forgotten"`
	MaxLateMS   int64            `json:"max_late_ms"`
}

// queueSum is the sum over the queues of all runs.
type queueSum struct {
	Enqueued    int64            `json:"enqueued"`
	Done        int64            `json:"done"`
	Dead        int64            `json:"dead"`
	Pending     int64            `json:"pending"`
	Claimed     int64            `json:"claimed"`
	Cancelled   int64            `json:"cancelled"`
	DeadReasons map[string]int64 `json:"dead_reasons"`
}

// sweepJSON is what sweep --json prints: all that people are told but how long
// it took.
func sweepJSON(r *sweepReport) sweepObject {
	s, q := &r.Schedules, &r.Queues
	o := sweepObject{
		Scenario: r.file, Swarm: r.Scenario.Swarm.String(), Seeds: r.command.seeds.String(),
		Verdict: r.verdict(), Digest: r.Digest.String(), Runs: r.Runs, Failed: r.Failed, Repeated: r.Repeated, Events: r.Events,
		Failures: []failureObject{}, Unreached: append([]string{}, r.Unreached()...), Excuses: []excuseObject{}, Faults: []faultSumObject{},
		Checks: checksJSON(r.Checks), Coverage: []markObject{},
		Schedules: scheduleSum{
			s.Boundaries, s.Fired, s.Skipped, s.SkipReasons, s.Quarantined, s.FiredAgain, s.FiredByRepair, s.Left, s.Forgotten, s.MaxLate.Milliseconds(),
		},
		Queues: queueSum{q.Enqueued, q.Done, q.Dead, q.Pending, q.Claimed, q.Cancelled, q.DeadReasons},
	}
	if r.rest != nil {
		rest := r.rest.String()
		o.Rest = &rest
	}
	for _, g := range r.Failures {
		o.Failures = append(o.Failures, failureObject{g.Verdict, g.What, g.Runs, g.Seeds, g.Schedule, g.Detail, r.again(g.Seeds[0])})
	}
	for _, e := range r.Excuses {
		o.Excuses = append(o.Excuses, excuseObject{e.Kind, e.Runs, e.Count, e.Seed, e.Text})
	}
	for _, f := range r.Faults {
		o.Faults = append(o.Faults, faultSumObject{f.Kind.String(), f.Count, f.Effective, f.Effect})
	}
	for _, m := range r.Marks {
		o.Coverage = append(o.Coverage, markObject{m.ID, m.Runs, m.Reached})
	}
	return o
}
