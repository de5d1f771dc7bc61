package htmlreport

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tickonce/tickonce/sim"
)

// run is all that the page has to know.
func (r *Recorder) run(result *sim.Result, source Source) (*run, error) {
	compared := source.WhatIf
	switch {
	case source.Recording != nil:
		compared = &sim.Comparison{First: result, Second: result}
	case compared == nil:
		var err error
		if compared, err = sim.Compare(r.scenario.Calm(), r.scenario); err != nil {
			return nil, err
		}
	}
	end := result.Simulated.Milliseconds()
	r.close(end)
	boxes := r.outcomes.close(max(end, 1))
	text := source.Text
	if source.Recording != nil {
		text = ""
	} else if text == "" || len(source.Faults) > 0 {
		text = r.scenario.String()
	}
	d := &run{
		Title: title(source), File: source.File, Seed: fmt.Sprint(result.Seed), Digest: result.Digest.String(),
		Start: r.start.UnixMilli(), Simulated: max(end, 1), Quiet: r.quiet(), Events: result.Events,
		Schedules: r.ofSchedules(result, source.Recording), Queues: r.ofQueues(result), Outboxes: boxes, Depth: r.jobs.all.thinned(end), Strays: notNil(r.jobs.strays), Unmet: []string{}, Excused: []string{}, Failures: []failure{},
		Faults: []fault{}, Scenario: text, Commands: commands(source, result.Seed), Processes: []*process{}, Recording: source.Recording != nil,
	}
	d.Unmet = append(d.Unmet, result.Unmet...)
	for _, e := range result.Excused {
		d.Excused = append(d.Excused, e.Text)
	}
	for _, p := range r.processes {
		if source.Recording == nil && (p.Runs || len(p.Clock) > 0) {
			d.Processes = append(d.Processes, p)
		}
	}
	d.Leading = r.leading()
	d.Stories = r.stories(compared)
	for i := range result.Faults {
		f := &result.Faults[i]
		d.Faults = append(d.Faults, fault{
			At: r.faults[i].from, End: min(r.faults[i].to, max(end, 1)), Short: short(&f.Fault), Say: r.sayFault(&f.Fault),
			Text: f.Text, Effect: came(f), Causes: r.followed(i),
		})
	}
	for _, s := range result.Schedules {
		for reason, n := range s.SkipReasons {
			d.Reasons.add(reason, n)
		}
	}
	for _, c := range result.Checks {
		if source.Recording != nil && c.Count == 0 { // rows cannot tell of it
			continue
		}
		d.Checks = append(d.Checks, check{c.Invariant, c.About, c.Count})
	}
	for _, m := range result.Coverage.Marks() {
		d.Marks = append(d.Marks, mark{m.ID, m.About, m.Reached})
	}
	d.Failures = r.ofFailures(result)
	d.Against = ofComparison(compared)
	d.Against.WhatIf = source.WhatIf != nil
	r.haunt(d.Schedules, compared)
	d.Merged = merge(d.Schedules, mostRows)
	d.Verdict = judge(d, result)
	if source.WhatIf != nil {
		d.Verdict.ofWhatIf(compared, d)
	}
	switch {
	case source.Shrunk.Text != "":
		d.Shrunk = ofShrunk(source.Shrunk)
	case len(result.Failures) > 0:
		d.Shrink = shrinking(source, result.Seed)
	}
	d.Log = r.causes.log
	d.prune()
	return d, nil
}

func (r *Recorder) quiet() int64 {
	if r.scenario.QuietAfter > 0 {
		return r.scenario.QuietAfter.Milliseconds()
	}
	last := int64(0)
	for _, f := range r.faults {
		last = max(last, f.to)
	}
	return last
}

// title is the first sentence of the file's comment, or the file's name.
func title(source Source) string {
	var words []string
	for text := range strings.Lines(source.Text) {
		comment, ok := strings.CutPrefix(strings.TrimSpace(text), "#")
		if !ok && len(words) > 0 {
			break
		}
		if ok {
			words = append(words, strings.Fields(comment)...)
		}
	}
	const most = 160
	sentence := strings.Join(words, " ")
	if i := slices.IndexFunc(words, func(w string) bool { return strings.HasSuffix(w, ".") || strings.HasSuffix(w, "?") }); i >= 0 {
		sentence = strings.TrimSuffix(strings.Join(words[:i+1], " "), ".")
	}
	if sentence == "" || len(sentence) > most {
		return path.Base(source.File)
	}
	return sentence
}

// commands make the run again; there are none where the scenario is in no file.
func commands(source Source, seed uint64) []string {
	file := quoted(source.File)
	switch {
	case source.Recording != nil:
		return []string{"simulate journal " + file, "simulate journal --report report.html " + file}
	case source.Text == "":
		return []string{}
	case source.WhatIf != nil:
		command := "simulate what-if " + file
		for _, f := range source.Faults {
			command += " --fault " + quoted(f)
		}
		return []string{command, command + " --report report.html"}
	}
	return []string{
		fmt.Sprintf("simulate run --seed %d %s", seed, file),
		fmt.Sprintf("simulate run --seed %d --report report.html %s", seed, file),
		fmt.Sprintf("simulate sweep --seeds 1..1000 %s", file),
	}
}

// shrinking is the command that finds the least scenario that fails alike.
func shrinking(source Source, seed uint64) string {
	if source.Text == "" || source.WhatIf != nil || source.Recording != nil {
		return ""
	}
	return fmt.Sprintf("simulate shrink --seed %d --report report.html %s", seed, quoted(source.File))
}

func ofShrunk(s Shrunk) *shrunk {
	d := &shrunk{Text: s.Text, Says: s.Says, Commands: []string{}}
	if s.File != "" {
		d.Commands = append(d.Commands, "simulate run "+quoted(s.File), "simulate trace "+quoted(s.File))
	}
	return d
}

// quoted is a text as one word of a shell.
func quoted(text string) string {
	if !strings.ContainsFunc(text, func(c rune) bool {
		return !strings.ContainsRune("-_./=", c) && !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9')
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func (r *Recorder) ofSchedules(result *sim.Result, recording *sim.JournalResult) []schedule {
	list := []schedule{}
	for i, q := range result.Schedules {
		s := *r.schedules[q.Name]
		of := &r.scenario.Schedules[i]
		s.Spec, s.Queue, s.Missed, s.Policy, s.Rules = q.Spec, q.Queue, of.CatchUp.String(), of.Policies.String(), []line{}
		if recording != nil {
			s.Missed = missed(recording.CatchUps[i])
		}
		for _, n := range of.Policies.Notes() {
			s.Rules = append(s.Rules, line{Text: n.Text, Rule: n.Rule})
		}
		s.Due = s.OnTime + s.Early + s.Late + s.FiredAgain + s.Skipped
		if n, ok := interval(q.Spec); ok {
			s.Every = n.Milliseconds()
		}
		for k := range s.Skips {
			if s.Skips[k].step == 0 {
				s.Skips[k].step = s.Every
			}
		}
		for k := range s.Runs {
			if s.Runs[k][1] == 0 {
				s.Runs[k][1] = s.Every
			}
		}
		s.Runs, s.Fires, s.Skips = notNil(s.Runs), notNil(s.Fires), notNil(s.Skips)
		s.Tries, s.Holds = notNil(s.Tries), notNil(s.Holds)
		s.Outboxes, s.Turns, s.Outcomes = notNil(s.Outboxes), notNil(s.Turns), notNil(s.Outcomes)
		list = append(list, s)
	}
	return list
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (r *Recorder) ofQueues(result *sim.Result) []queue {
	list := []queue{}
	for _, q := range result.Queues {
		d := queue{Name: q.Name, Outbox: q.Outbox, Done: q.Done, Retried: q.Retried, Dead: q.Dead, Depth: r.jobs.queues[q.Name].thinned(result.Simulated.Milliseconds())}
		list = append(list, d)
	}
	return list
}

func (r *Recorder) ofFailures(result *sim.Result) []failure {
	list := []failure{}
	for i, f := range result.Failures {
		d := failure{
			Key: fmt.Sprintf("violation-%d", i+1), T: r.since(f.At), Invariant: f.Invariant, Schedule: f.Schedule, Detail: f.Detail, Cause: -1,
			Word: word(f.Invariant), Title: "Broken: " + word(f.Invariant), Sides: []line{},
		}
		if f.Schedule != "" {
			d.Title += ", by " + f.Schedule
		}
		for _, c := range result.Checks {
			if c.Invariant == f.Invariant {
				d.Says = c.About
			}
		}
		if i < len(r.failures) {
			d.Cause, d.Sides = r.failures[i], r.conflicts.sides[i]
			for at := d.Cause; at >= 0 && d.Lane == ""; at = r.causes.log[at].Cause {
				d.Lane = r.causes.log[at].Lane
			}
		}
		list = append(list, d)
	}
	return list
}

// word is an invariant's name without its number.
func word(invariant string) string {
	if _, name, ok := strings.Cut(invariant, " "); ok && strings.ContainsAny(invariant[:1], "0123456789TSQRL") {
		return name
	}
	return invariant
}

// leading says how the run was led.
func (r *Recorder) leading() string {
	type held struct {
		lease
		process int
	}
	var all []held
	for i, p := range r.processes {
		for _, l := range p.Leases {
			all = append(all, held{l, i})
		}
	}
	slices.SortFunc(all, func(a, b held) int { return cmp.Compare(a.From, b.From) })
	gap, taken := int64(0), 0
	for i := 1; i < len(all); i++ {
		gap = max(gap, all[i].From-all[i-1].To)
		if all[i].process != all[i-1].process {
			taken++
		}
	}
	text := "led throughout"
	if gap > noticeMS {
		text = "nobody led for up to " + span(time.Duration(gap)*time.Millisecond)
	}
	if taken > 0 {
		text = count(int64(taken), "other process took over", "times another process took over") + "; " + text
	}
	return text
}

// haunt gives the schedules the fires of the first run of a comparison that came at
// another time in the second.
func (r *Recorder) haunt(schedules []schedule, c *sim.Comparison) {
	for _, compared := range c.Schedules {
		i := slices.IndexFunc(schedules, func(s schedule) bool { return s.Name == compared.Name })
		if i < 0 { // which this run does not have
			continue
		}
		for _, f := range compared.Elsewhere {
			schedules[i].Ghosts = append(schedules[i].Ghosts, [3]int64{r.since(f.First), f.Every.Milliseconds(), f.Count})
		}
	}
}

func ofComparison(c *sim.Comparison) against {
	a := against{Calm: len(c.First.Faults) == 0, Differences: []difference{}, Why: []line{}}
	add := func(s sim.ScheduleComparison) {
		for _, d := range s.Differences() {
			a.Differences = append(a.Differences, difference{s.Name, d.What, d.First, d.Second, d.By.Milliseconds()})
		}
	}
	add(c.Total())
	for _, s := range c.Schedules {
		add(s)
	}
	for _, n := range c.Why() {
		a.Why = append(a.Why, line{Text: n.Text, Rule: n.Rule})
	}
	return a
}
