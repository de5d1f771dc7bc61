package main

import (
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
	outcome    outcome
	difference *difference // from the recorded outcome, or nil
	second     *second     // by the module of --engine, or nil
	picture    *picture    // or nil
	page       string      // its report for a browser, or ""
	guests     guests
	askable    bool // what-if and trace can be asked about this run

	// While it is written for people.
	words, told map[string]bool // that the tables used, that were explained
	rules       []string        // that were cited
}

// outcome is what became of the recorded outcome.
type outcome string

const (
	outcomeNone     outcome = "none"         // there is none
	outcomeSame     outcome = "same"         // the run came to it
	outcomeDiffers  outcome = "differs"      // it did not
	outcomeIgnored  outcome = "not compared" // because of another seed, or of other handlers
	outcomeRecorded outcome = "recorded"     // anew
)

// mostRows is how many rows of a table people get to see.
const mostRows = 100

// start is when the run began.
func (r *report) start() time.Time { return startOf(r.scenario) }

func startOf(s *sim.Scenario) time.Time {
	if s.Start.IsZero() {
		return sim.DefaultStart
	}
	return s.Start
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
	w := newPage(to)
	fmt.Fprintf(w, "%s: %s from %s, seed %d\n\n", printable(r.file), exact(r.scenario.For), instant(r.start()), r.Seed)
	r.writeSchedules(w)
	r.writeQueues(w)
	r.writeFaults(w)
	r.writeMarks(w)
	r.writeProblems(w)
	if r.picture != nil {
		r.picture.write(w)
	}
	if len(r.rules) > 0 {
		fmt.Fprintf(w, "%s: see docs/CONTRACT.md\n", strings.Join(r.rules, ", "))
	}
	if r.askable {
		file := printable(strings.Join(append([]string{r.file}, r.guests.flags()...), " "))
		fmt.Fprintf(w, "what these faults changed, and why: simulate what-if %s\nevent by event: simulate trace %s\n", file, file)
	}
	if r.askable || len(r.rules) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "verdict: %s\n", r.verdict)
	w.judge(r.judgement())
	fmt.Fprintln(w, checksMade(r.Checks))
	if r.second != nil && r.second.difference == nil {
		w.judge(r.second.words())
	}
	writePageLine(w, r.page)
	w.item("", fmt.Sprintf("simulated %s in %s: %s seconds per second, %s",
		exact(r.Simulated), span(r.wall.Round(time.Millisecond)), number(r.speed()), count(r.Events, "event", "events")))
	fmt.Fprintf(w, "digest %s\n", r.Digest)
	return w.Flush()
}

// checksMade says how much was checked.
func checksMade(checks []sim.Check) string {
	var invariants, made int64
	for _, c := range checks {
		invariants += min(c.Count, 1)
		made += c.Count
	}
	return fmt.Sprintf("checked %s, %s", count(invariants, "invariant", "invariants"), count(made, "time in all", "times in all"))
}

// speed is how many seconds were simulated in one.
func (r *report) speed() int64 {
	return int64(float64(r.Simulated) / float64(max(r.wall, time.Microsecond)))
}

// policies are the catch-up policies of the schedules by their names.
func (r *report) policies() map[string]sim.CatchUp {
	policies := map[string]sim.CatchUp{}
	for _, s := range r.scenario.Schedules {
		policies[s.Name] = s.CatchUp
	}
	return policies
}

func (r *report) writeSchedules(w *page) {
	policies := r.policies()
	word := func(schedule string) string {
		if p := policies[schedule]; p != sim.CatchUpAll {
			return p.String()
		}
		return "policy"
	}
	var rows [][]string
	var more []string
	var total sim.ScheduleResult
	for _, s := range r.Schedules {
		name := printable(s.Name)
		rows = append(rows, []string{
			name, strings.TrimPrefix(s.Spec, "@every "), number(s.Boundaries), number(s.Fired), number(s.Skipped), span(s.MaxLate),
			r.list(
				counted{s.SkipReasons["pause"], "pause"}, counted{s.SkipReasons["hours"], "hours"},
				counted{s.SkipReasons["policy"], word(s.Name)}, counted{s.SkipReasons["overlap"], "overlap"},
				counted{s.SkipReasons["cap"], "cap"}, counted{s.SkipReasons["missed"], "missed"}, counted{s.Quarantined, "held"}),
		})
		if also := r.list(
			counted{s.FiredAgain + s.FiredByRepair, "fired again"}, counted{s.Forgotten, "forgotten"}, counted{s.Left, "left"},
		); also != "" {
			more = append(more, name+": "+also)
		}
		if s.LastError != "" {
			more = append(more, name+": the last error of its handler: "+printable(s.LastError))
		}
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
	writeMore(w, more)
	r.writeMeanings(w)
}

// writeQueues writes a table of the queues and, if there are any, one of the
// outboxes.
func (r *report) writeQueues(w *page) {
	var queues, outboxes []sim.QueueResult
	for _, q := range r.Queues {
		if q.Outbox {
			outboxes = append(outboxes, q)
		} else {
			queues = append(queues, q)
		}
	}
	r.writeQueueTable(w, queues, []column{
		{"queue", cut},
		{"enqueued", numbers},
		{"done", numbers},
		{"dead", numbers},
		{"pending", numbers},
		{"claimed", numbers},
		{"cancelled", numbers},
	}, func(q *sim.QueueResult) []string {
		return []string{
			printable(q.Name), number(q.Enqueued), number(q.Done), number(q.Dead), number(q.Pending), number(q.Claimed), number(q.Cancelled),
		}
	})
	if len(outboxes) > 0 {
		r.writeQueueTable(w, outboxes, []column{
			{"outbox", cut},
			{"entries", numbers},
			{"delivered", numbers},
			{"retried", numbers},
			{"dead", numbers},
			{"pending", numbers},
			{"claimed", numbers},
		}, func(q *sim.QueueResult) []string {
			return []string{
				printable(q.Name), number(q.Enqueued), number(q.Delivered), number(q.Retried), number(q.Dead),
				number(q.Pending), number(q.Claimed),
			}
		})
	}
	r.writeMeanings(w)
}

// writeQueueTable writes one with so many columns and, if a job died, why.
func (r *report) writeQueueTable(w *page, queues []sim.QueueResult, columns []column, cells func(*sim.QueueResult) []string) {
	counts := len(columns)
	if slices.ContainsFunc(queues, func(q sim.QueueResult) bool { return q.Dead > 0 }) {
		columns = append(columns, column{"dead why", words})
	}
	var rows [][]string
	var more []string
	for i := range queues {
		q := &queues[i]
		var causes []counted
		for _, cause := range sim.DeathCauses() {
			causes = append(causes, counted{q.DeadReasons[cause], cause})
		}
		name, row := printable(q.Name), cells(q)
		if len(columns) > counts {
			row = append(row, r.list(causes...))
		}
		rows = append(rows, row)
		if also := r.list(counted{q.DeliveredAgain, "delivered again"}, counted{q.DoneForgotten, doneForgotten}, counted{q.Lost, "lost"}); also != "" {
			more = append(more, name+": "+also)
		}
	}
	writeRows(w, columns, rows, nil)
	writeMore(w, more)
}

// writeMore writes what there is to say of some rows beyond the table.
func writeMore(w *page, lines []string) {
	for _, line := range lines[:min(len(lines), mostRows)] {
		w.item("", line)
	}
	if len(lines) > 0 {
		fmt.Fprintln(w)
	}
}

func (r *report) writeMarks(w *page) {
	var rows [][]string
	for _, m := range r.Coverage.Marks() {
		if m.Reached > 0 {
			rows = append(rows, []string{m.ID, number(m.Reached), m.About})
		}
	}
	if len(rows) > 0 {
		writeRows(w, []column{{"coverage mark", words}, {"times", numbers}, {"meaning", wrapped}}, rows, nil)
	}
}

func (r *report) writeProblems(w *page) {
	var rows [][]string
	for _, f := range r.Failures {
		at := "+" + span(f.At.Sub(r.start()))
		rows = append(rows, []string{f.Invariant, at, printable(f.Schedule), printable(f.Detail)})
	}
	if len(rows) > 0 {
		writeRows(w, []column{{"violated", words}, {"at", words}, {"schedule", cut}, {"detail", wrapped}}, rows, nil)
	}
	if r.page != "" && len(r.Failures) > 0 {
		for i := range r.Failures[:min(len(r.Failures), mostTold)] {
			fmt.Fprintln(w, linkTo(r.page, fmt.Sprintf("sel=violation-%d", i+1)))
		}
		fmt.Fprintln(w)
	}
}

// writeRows writes a table of at most so many rows as people read.
func writeRows(w *page, columns []column, rows [][]string, footer []string) {
	writeTable(w, columns, rows[:min(len(rows), mostRows)], footer)
	if more := len(rows) - mostRows; more > 0 {
		fmt.Fprintf(w, "and %s more, which --json lists\n", number(more))
	}
	fmt.Fprintln(w)
}

// judgement says in words what the verdict means and what it rests on.
func (r *report) judgement() []string {
	list := []string{verdictText[r.verdict]}
	switch {
	case r.verdict == sim.Pass:
		list = r.passed()
	case r.verdict == sim.Unmet && len(r.Failures) == 0:
		list[0] += "; no rule was broken"
	case r.verdict == sim.Budget && r.Spent != "":
		list[0] = "the run takes more " + r.Spent + " than a run may; " + spentText[r.Spent]
	}
	list = append(list, r.Unmet...)
	if r.second != nil && r.second.difference != nil {
		list = append(list, r.second.words()...)
	}
	switch d := r.difference; {
	case d != nil:
		list = append(list,
			fmt.Sprintf("line %d differs from the recorded outcome; if that is meant, run with --rewrite", d.line),
			whole+"recorded  "+d.was,
			whole+"now       "+d.is)
	case r.outcome == outcomeIgnored:
		list = append(list, "not compared with the recorded outcome, which is that of another seed or of other handlers")
	case r.outcome == outcomeRecorded && r.verdict == sim.Pass:
		list = append(list, "recorded the outcome in "+r.file)
	case r.outcome == outcomeRecorded:
		list = append(list, "recorded the outcome in "+r.file+", although the verdict is "+r.verdict.String())
	}
	for _, e := range r.Excused {
		list = append(list, "excused: "+e.Text)
	}
	return list
}

// passed says what a run that passed has shown.
func (r *report) passed() []string {
	var total sim.ScheduleResult
	for _, s := range r.Schedules {
		total.Boundaries += s.Boundaries + s.Left + s.Forgotten
		total.FiredAgain += s.FiredAgain
		total.FiredByRepair += s.FiredByRepair
		total.Left += s.Left
		total.Forgotten += s.Forgotten
	}
	if total.Boundaries == 0 {
		return []string{"no boundary came due, so this shows nothing"}
	}
	list := []string{verdictText[sim.Pass]}
	for _, but := range []struct {
		n    int64
		text string
	}{
		{total.FiredAgain, "that a restart had forgotten fired again"},
		{total.FiredByRepair, "that clock-repair=rearm took back fired again"},
		{total.Forgotten, "that a restart did not know never fired"},
		{total.Left, "still due when the run ended"},
	} {
		if but.n > 0 {
			list[len(list)-1] += ";"
			list = append(list, number(but.n)+" "+but.text)
		}
	}
	return list
}

// spentText says what to do about a run that is out of its budget.
var spentText = map[string]string{
	"events": "make it shorter",
	"memory": "make it shorter or, if its queues keep many jobs, have more workers or set engine queue-limit=",
}

var verdictText = [...]string{
	sim.Pass:             "every boundary that came due fired once, or was skipped for a stated reason",
	sim.BadInput:         "the scenario could not be run",
	sim.Safety:           "a rule that holds whatever happens was broken",
	sim.Liveness:         "what was due did not happen in time, although all faults were over",
	sim.Nondeterministic: "the same scenario and seed gave another digest",
	sim.Vacuous:          "what the run was meant to meet was never met",
	sim.Budget:           "a handler takes more than it may",
	sim.HandlerCrash:     "a handler panicked that was not meant to",
	sim.Unmet:            "the run did not come to what the file says",
}
