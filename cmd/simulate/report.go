package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tickonce/tickonce/sim"
)

// report is a run and all that is told of it.
type report struct {
	*sim.Result
	scenario   *sim.Scenario
	file       string
	wall       time.Duration
	verdict    sim.Verdict // of the run and the comparison
	difference *difference // from the recorded outcome, or nil
}

// mostRows is how many rows of a table people get to see.
const mostRows = 100

// start is when the run began.
func (r *report) start() time.Time {
	if r.scenario.Start.IsZero() {
		return sim.DefaultStart
	}
	return r.scenario.Start
}

// unmet lists the expectations that were not met, the recorded outcome among
// them.
func (r *report) unmet() []string {
	list := slices.Clone(r.Unmet)
	if d := r.difference; d != nil {
		list = append(list, fmt.Sprintf("line %d of the file recorded %q, now it is %q", d.line, d.was, d.is))
	}
	return list
}

// write writes the report for people. Its last line is the digest.
func (r *report) write(to io.Writer) error {
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "%s: %s from %s, seed %d\n\n", printable(r.file), exact(r.scenario.For), instant(r.start()), r.Seed)
	r.writeSchedules(w)
	r.writeQueues(w)
	r.writeFaults(w)
	r.writeMarks(w)
	r.writeProblems(w)
	fmt.Fprintf(w, "verdict: %s\n", r.verdict)
	for _, line := range r.judgement() {
		fmt.Fprintf(w, "  %s\n", printable(line))
	}
	fmt.Fprintf(w, "simulated %s in %s: %s seconds per second, %s\n",
		exact(r.Simulated), span(r.wall.Round(time.Millisecond)), number(r.speed()), count(r.Events, "event", "events"))
	fmt.Fprintf(w, "digest %s\n", r.Digest)
	return w.Flush()
}

// speed is how many seconds were simulated in one.
func (r *report) speed() int64 {
	return int64(float64(r.Simulated) / float64(max(r.wall, time.Microsecond)))
}

func (r *report) writeSchedules(w io.Writer) {
	if len(r.Schedules) == 0 {
		return
	}
	policies := map[string]sim.CatchUp{}
	for _, s := range r.scenario.Schedules {
		policies[s.Name] = s.CatchUp
	}
	var rows [][]string
	var total sim.ScheduleResult
	met := map[string]bool{}
	for _, s := range r.Schedules {
		var why []string
		note := func(n int64, word string) {
			if n > 0 {
				met[word] = true
				why = append(why, number(n)+" "+word)
			}
		}
		note(s.SkipReasons["pause"], "pause")
		note(s.SkipReasons["policy"], policies[s.Name].String())
		note(s.SkipReasons["cap"], "cap")
		note(s.Quarantined, "held")
		rows = append(rows, []string{
			printable(s.Name), strings.TrimPrefix(s.Spec, "@every "), number(s.Boundaries), number(s.Fired), number(s.Skipped),
			span(s.MaxLate), strings.Join(why, ", "),
		})
		total.Boundaries += s.Boundaries
		total.Fired += s.Fired
		total.Skipped += s.Skipped
		total.MaxLate = max(total.MaxLate, s.MaxLate)
	}
	var footer []string
	if len(rows) > 1 {
		footer = []string{
			count(int64(len(rows)), "schedule", "schedules"), "", number(total.Boundaries), number(total.Fired), number(total.Skipped),
			span(total.MaxLate), "",
		}
	}
	writeRows(w, []column{
		{"schedule", cut},
		{"every", numbers},
		{"boundaries", numbers},
		{"fired", numbers},
		{"skipped", numbers},
		{"max late", numbers},
		{"skipped why", words},
	}, rows, footer)
	for _, reason := range reasons {
		if met[reason.word] {
			fmt.Fprintf(w, "%s: %s (%s)\n", reason.word, reason.about, reason.rule)
		}
	}
	if len(met) > 0 {
		fmt.Fprintln(w)
	}
}

// reasons are the words for why a boundary did not fire, or not when it was
// due.
var reasons = []struct{ word, about, rule string }{
	{"pause", "the schedule was paused", "S7"},
	{"latest", "of several due at once, only the newest fires under catch-up=latest", "T14"},
	{"grace", "under catch-up=grace only what is not later than the grace window fires", "T14"},
	{"none", "under catch-up=none nothing fires that is not on time", "T14"},
	{"cap", "more than 64 were due at once: the oldest 64 fired, the others were dropped for good", "T6"},
	{"held", "the schedule could not be run and was set aside for a minute, its boundaries kept", "Q3"},
}

func (r *report) writeQueues(w io.Writer) {
	if len(r.Queues) == 0 {
		return
	}
	columns := []column{
		{"queue", cut},
		{"enqueued", numbers},
		{"done", numbers},
		{"dead", numbers},
		{"pending", numbers},
		{"claimed", numbers},
		{"cancelled", numbers},
	}
	forgot := slices.ContainsFunc(r.Queues, func(q sim.QueueResult) bool { return q.Forgotten > 0 })
	if forgot {
		columns = append(columns, column{"forgotten", numbers})
	}
	var rows [][]string
	for _, q := range r.Queues {
		row := []string{
			printable(q.Name), number(q.Enqueued), number(q.Done), number(q.Dead), number(q.Pending), number(q.Claimed),
			number(q.Cancelled), number(q.Forgotten),
		}
		rows = append(rows, row[:len(columns)])
	}
	writeRows(w, columns, rows, nil)
	if forgot {
		fmt.Fprint(w, "forgotten: lost with what a restart did not have any more\n\n")
	}
}

func (r *report) writeFaults(w io.Writer) {
	if len(r.Faults) == 0 {
		return
	}
	var rows [][]string
	for _, f := range r.Faults {
		rows = append(rows, []string{printable(f.Text), effect(f)})
	}
	writeRows(w, []column{{"fault", cut}, {"effect", words}}, rows, nil)
}

// effect says how often a fault took effect, and in what.
func effect(f sim.FaultResult) string {
	if f.Effect == 0 {
		return "none"
	}
	switch f.Fault.Kind {
	case sim.FaultDown:
		return count(f.Effect, "stop", "stops")
	case sim.FaultCrash:
		return count(f.Effect, "crash", "crashes")
	case sim.FaultClockJump:
		return count(f.Effect, "jump", "jumps")
	case sim.FaultStoreErrors:
		return count(f.Effect, "call failed", "calls failed")
	case sim.FaultHandlerSlow:
		return count(f.Effect, "handler slowed", "handlers slowed")
	default:
		return count(f.Effect, "handler failed", "handlers failed")
	}
}

func (r *report) writeMarks(w io.Writer) {
	var rows [][]string
	for _, m := range r.Coverage.Marks() {
		if m.Reached > 0 {
			rows = append(rows, []string{m.ID, number(m.Reached), m.About})
		}
	}
	if len(rows) > 0 {
		writeRows(w, []column{{"met on the way", words}, {"times", numbers}, {"meaning", wrapped}}, rows, nil)
	}
}

func (r *report) writeProblems(w io.Writer) {
	var rows [][]string
	for _, f := range r.Failures {
		at := "+" + span(f.At.Sub(r.start()))
		rows = append(rows, []string{f.Invariant, at, printable(f.Schedule), printable(f.Detail)})
	}
	if len(rows) > 0 {
		writeRows(w, []column{{"violated", words}, {"at", words}, {"schedule", cut}, {"detail", wrapped}}, rows, nil)
	}
}

// writeRows writes a table of at most so many rows as people read.
func writeRows(w io.Writer, columns []column, rows [][]string, footer []string) {
	writeTable(w, columns, rows[:min(len(rows), mostRows)], footer)
	if more := len(rows) - mostRows; more > 0 {
		fmt.Fprintf(w, "and %s more, which --json lists\n", number(more))
	}
	fmt.Fprintln(w)
}

// judgement says in words what the verdict means and what it rests on.
func (r *report) judgement() []string {
	list := []string{verdictText[r.verdict]}
	if r.verdict == sim.Safety && len(r.Failures) == 0 {
		list[0] = "no rule was broken, but the run did not come to what the file says"
	}
	list = append(list, r.Unmet...)
	if d := r.difference; d != nil {
		list = append(list,
			fmt.Sprintf("line %d differs from the recorded outcome; if that is meant, run with --rewrite", d.line),
			"  recorded  "+d.was,
			"  now       "+d.is)
	}
	for _, text := range r.Excused {
		list = append(list, "excused: "+text)
	}
	return list
}

var verdictText = [...]string{
	sim.Pass:             "every boundary that came due fired once, or was skipped for a stated reason",
	sim.BadInput:         "the scenario could not be run",
	sim.Safety:           "a rule that holds whatever happens was broken",
	sim.Liveness:         "what was due did not happen in time, although all faults were over",
	sim.Nondeterministic: "the same scenario and seed gave another digest",
	sim.Vacuous:          "what the run was meant to meet was never met",
	sim.Budget:           "the run takes more events than a run may; make it shorter",
	sim.HandlerCrash:     "a handler panicked that was not meant to",
}
