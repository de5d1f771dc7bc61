package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tickonce/tickonce"
)

func (p *parser) engine(l *line) {
	parseKeys(p, l, l.words[1:], &p.scenario.Engine, engineKeys)
	p.later(l, func() { p.checkEngine(l) })
}

// checkEngine has the engine judge its own limits.
func (p *parser) checkEngine(l *line) {
	e := &p.scenario.Engine
	_, err := tickonce.Config{LeaseTTL: e.Lease, Batch: e.Batch, OnTime: e.OnTime}.WithDefaults()
	joined, _ := err.(interface{ Unwrap() []error })
	if joined == nil {
		return
	}
	for _, fault := range joined.Unwrap() {
		if bad := (*tickonce.OptionError)(nil); errors.As(fault, &bad) {
			w, _ := l.at(engineOptions[bad.Option])
			p.refuseText(l, w, refuse(w.text, "the engine's "+bad.Option+": this one "+bad.Problem))
		}
	}
}

func (p *parser) start(l *line) {
	if _, ok := p.argument(l, 1, instantForm, instantValue{&p.scenario.Start}); ok {
		parseKeys[Scenario](p, l, l.words[2:], nil, nil)
	}
}

func (p *parser) run(l *line) {
	s := &p.scenario
	p.runLine = *l
	if _, ok := p.argument(l, 1, durationForm, durationValue{d: &s.For}); !ok {
		return
	}
	parseKeys(p, l, l.words[2:], s, runKeys)
	p.later(l, func() {
		if w, ok := l.at("quiet-after"); ok && s.QuietAfter > s.For {
			p.refuseText(l, w, refuse(w.text, "at most the run's "+formatDuration(s.For)))
		}
	})
}

func (p *parser) queue(l *line) {
	if !p.limit(l, len(p.scenario.Queues), MaxQueues, "queues") {
		return
	}
	var q Queue
	w, ok := p.argument(l, 1, "the name of a queue", nameValue{"a queue name", &q.Name})
	if !ok {
		return
	}
	parseKeys(p, l, l.words[2:], &q, queueKeys)
	p.need(l, "workers")
	if p.described[q.Name] {
		p.refuse(l, w.column, &refusal{found: "a second line for queue " + shown(q.Name), allowed: "one line for a queue"})
	}
	p.described[q.Name] = true
	p.scenario.Queues = append(p.scenario.Queues, q)
	p.later(l, func() {
		p.employ(l, q.Workers, "queue")
		if !p.queues[q.Name] {
			p.refuseName(l, w, "the queue of a schedule", queueOf)
		}
	})
}

// employ counts the workers that the line of a queue, or of an outbox, has in each
// process.
func (p *parser) employ(l *line, workers int, of string) {
	before := p.atWork
	if p.atWork += workers * p.runners; before <= MaxAtWork && p.atWork > MaxAtWork {
		p.refuse(l, 1, &refusal{
			found:   fmt.Sprintf("with this %s's %d in each of %d processes %d workers", of, workers, p.runners, p.atWork),
			allowed: fmt.Sprintf("at most %d in a scenario", MaxAtWork),
		})
	}
}

func (p *parser) outbox(l *line) {
	if !p.limit(l, len(p.scenario.Outboxes), MaxQueues, "outboxes") {
		return
	}
	var o Outbox
	w, ok := p.argument(l, 1, "the name of an outbox", nameValue{"an outbox name", &o.Name})
	if !ok {
		return
	}
	parseKeys(p, l, l.words[2:], &o, outboxKeys)
	p.need(l, "workers")
	if p.outboxes[o.Name] {
		p.refuse(l, w.column, &refusal{found: "a second outbox " + shown(o.Name), allowed: "one line for an outbox"})
	}
	p.outboxes[o.Name] = true
	p.scenario.Outboxes = append(p.scenario.Outboxes, o)
	p.later(l, func() {
		p.employ(l, o.Workers, "outbox")
		if p.queues[o.Name] {
			p.refuseText(l, w, refuse(w.text, "a name that is not that of a queue"))
		}
	})
}

func (p *parser) schedule(l *line) {
	if !p.limit(l, len(p.scenario.Schedules), MaxSchedules, "schedules") {
		return
	}
	var s Schedule
	w, ok := p.argument(l, 1, "the name of a schedule", nameValue{"a schedule name", &s.Name})
	if !ok {
		return
	}
	parseKeys(p, l, l.words[2:], &s, scheduleKeys)
	p.need(l, "every", "queue")
	if p.schedules[s.Name] {
		p.refuse(l, w.column, &refusal{found: "a second schedule " + shown(s.Name), allowed: "one line for a schedule"})
	}
	if handler, ok := p.handlers[s.Name]; ok && (handler == nil || s.Handler != Handler{}) {
		p.refuse(l, w.column, &refusal{found: "a handler in Go of " + shown(s.Name), allowed: "one that is not nil, and the zero Schedule.Handler"})
	}
	p.schedules[s.Name], p.queues[s.Queue] = true, true
	p.scenario.Schedules = append(p.scenario.Schedules, s)
	p.later(l, func() {
		if w, ok := l.at("outbox"); ok && !p.outboxes[s.Outbox] {
			p.refuseOutbox(l, w)
		}
		if w, ok := l.at("deliver"); ok && !p.outboxes[s.Deliver] {
			p.refuseOutbox(l, w)
		} else if ok && p.scenario.outbox(s.Deliver).Heartbeat > 0 {
			p.refuseText(l, w, refuse(w.text, "an outbox without heartbeat="))
		}
		if w, ok := l.at("attempts"); ok && s.RunOnce && s.MaxAttempts > 1 {
			p.refuseText(l, w, refuse(w.text, "1, or no attempts=, with run-once=yes"))
		}
	})
}

func (p *parser) at(l *line) {
	var f Fault
	if _, ok := p.argument(l, 1, durationForm, durationValue{d: &f.At, orZero: true}); ok {
		p.fault(l, &f, false)
	}
}

func (p *parser) during(l *line) {
	const form = "a time from one duration to a later one, such as 50m..55m"
	var from Span
	w, ok := p.argument(l, 1, form, spanValue{s: &from})
	if !ok {
		return
	}
	if !l.bad && from.Min == from.Max {
		p.refuseText(l, w, refuse(w.text, form))
	}
	p.fault(l, &Fault{At: from.Min, For: from.Max - from.Min}, true)
}

// fault reads what at and during have in common: the kind and its keys.
func (p *parser) fault(l *line, f *Fault, lasts bool) {
	if !p.limit(l, len(p.scenario.Faults), MaxFaults, "faults") {
		return
	}
	const begin = 2
	end := begin
	var kind []string
	for end < len(l.words) && l.words[end].key == "" {
		kind = append(kind, l.words[end].raw)
		end++
	}
	words := strings.Join(kind, " ")
	index := slices.Index(faultWords, words)
	if index < 0 {
		r := unknown(words, faultWords)
		before := l.words[begin-1]
		column := before.column + len(before.raw) + 1
		if end == begin {
			r.found = "no fault"
		} else {
			column = l.words[begin].column
		}
		p.refuse(l, column, r)
		return
	}
	f.Kind = FaultDown + FaultKind(index)
	rule, keys := faultRules[f.Kind], keysOf(f.Kind)
	if lasts {
		hasFor := func(k key[Fault]) bool { return k.name == forKey }
		if !slices.ContainsFunc(keys, hasFor) {
			p.refuse(l, l.words[0].column, &refusal{found: `"during"`, allowed: "at TIME " + words})
		}
		keys = slices.DeleteFunc(keys, func(k key[Fault]) bool { return hasFor(k) || k.name == pointKey })
	}
	parseKeys(p, l, l.words[end:], f, keys)
	if f.Kind == FaultEditChange && f.Queue != "" {
		p.queues[f.Queue] = true
	}
	p.need(l, slices.DeleteFunc(slices.Clone(rule.must), func(k string) bool { return lasts && k == forKey })...)
	p.scenario.Faults = append(p.scenario.Faults, *f)
	p.later(l, func() { p.checkFault(l, f) })
}

// swarm reads a swarm, beside which there is no concrete fault.
func (p *parser) swarm(l *line) {
	swarm, keys := &p.scenario.Swarm, l.words[1:]
	if len(keys) > 0 && keys[0].key == "" {
		if r := swarm.modeValue().parse(keys[0].text); r != nil {
			p.refuse(l, keys[0].column, r)
		}
		keys = keys[1:]
	}
	parseKeys(p, l, keys, swarm, swarmKeys)
	if swarm.Mode == ModeMixed {
		p.need(l, "faults")
	}
	p.later(l, func() {
		if len(p.scenario.Faults) > 0 {
			p.refuse(l, 1, &refusal{found: "a swarm beside lines at and during", allowed: "a swarm or concrete faults"})
		}
	})
}

func scheduleOf(s *Schedule) string { return s.Name }
func queueOf(s *Schedule) string    { return s.Queue }

// names lists what the schedules are called, or their queues, each once.
func (s *Scenario) names(of func(*Schedule) string) (names []string) {
	listed := map[string]bool{}
	for i := range s.Schedules {
		if n := of(&s.Schedules[i]); !listed[n] {
			names = append(names, n)
			listed[n] = true
		}
	}
	return names
}

// outbox is the outbox of that name, which there has to be.
func (s *Scenario) outbox(name string) *Outbox {
	return &s.Outboxes[slices.IndexFunc(s.Outboxes, func(o Outbox) bool { return o.Name == name })]
}

func (s *Scenario) outboxNames() (names []string) {
	for i := range s.Outboxes {
		names = append(names, s.Outboxes[i].Name)
	}
	return names
}

// refuseName refuses a name that no schedule has.
func (p *parser) refuseName(l *line, w word, what string, of func(*Schedule) string) {
	p.refuseUnknown(l, w, what, func() []string { return p.scenario.names(of) })
}

// refuseQueue refuses a name that neither a queue nor an outbox has.
func (p *parser) refuseQueue(l *line, w word) {
	what := "the queue of a schedule"
	if len(p.outboxes) > 0 {
		what += ", or an outbox"
	}
	p.refuseUnknown(l, w, what, func() []string { return append(p.scenario.names(queueOf), p.scenario.outboxNames()...) })
}

// meetsOutboxes reports whether the queue of a fault of the kind may be an outbox,
// which has no acks that could be late or lost: its call makes them.
func (k FaultKind) meetsOutboxes() bool {
	return k != FaultLateAck && k != FaultDuplicateAck && k != FaultLostAck && k != FaultEditChange
}

// refuseOutbox refuses a name that no outbox has.
func (p *parser) refuseOutbox(l *line, w word) {
	if len(p.outboxes) == 0 {
		p.refuseText(l, w, refuse(w.text, "an outbox, which needs a line: outbox NAME workers=N"))
		return
	}
	p.refuseUnknown(l, w, "an outbox", p.scenario.outboxNames)
}

// refuseUnknown refuses a name that is none of those.
func (p *parser) refuseUnknown(l *line, w word, what string, names func() []string) {
	var r refusal
	if p.passes[1].count < MaxMistakes { // or it is only counted
		r = *unknown(w.text, names())
		r.allowed = what + ": " + r.allowed
	}
	p.refuseText(l, w, &r)
}

// checkFault checks a fault against run, engine and schedules.
func (p *parser) checkFault(l *line, f *Fault) {
	s := &p.scenario
	if w, ok := l.at("runner"); ok && f.Runner > p.runners {
		p.refuseText(l, w, refuse(w.text, fmt.Sprintf("a runner from 1 to %d (engine runners=)", p.runners)))
	}
	if w, ok := l.at("schedule"); ok && !p.schedules[f.Schedule] {
		p.refuseName(l, w, "a schedule", scheduleOf)
	}
	if w, ok := l.at("to"); ok && (!p.schedules[f.To] || f.To == f.Schedule) {
		p.refuseName(l, w, "another schedule", scheduleOf)
	}
	if w, ok := l.at("queue"); ok && !p.queues[f.Queue] {
		switch {
		case !f.Kind.meetsOutboxes():
			p.refuseName(l, w, "the queue of a schedule", queueOf)
		case !p.outboxes[f.Queue]:
			p.refuseQueue(l, w)
		}
	}
	if w, ok := l.at("into"); ok && !p.queues[f.Into] && !p.outboxes[f.Into] {
		p.refuseQueue(l, w)
	}
	if (f.Kind == FaultCrash || f.Kind == FaultRestartStorm) && (f.Runner == 0) == (f.Restart == 0) {
		r := refusal{found: "neither restart= nor runner="}
		if f.Runner != 0 {
			r.found = "both restart= and runner="
		}
		r.allowed = "restart=, where the store goes too, or runner=, one process over a store that stays"
		p.refuse(l, l.words[0].column, &r)
	}
	switch {
	case f.Kind == FaultTamper && (f.Row == 0) == (f.Spec == ""):
		p.refuse(l, l.endColumn(), &refusal{found: "the end of the line", allowed: "either row= or every="})
	case f.Kind == FaultEditChange && f.Spec == "" && f.Queue == "" && f.CatchUp == 0:
		p.refuse(l, l.endColumn(), &refusal{found: "the end of the line", allowed: "every=, queue= or catch-up="})
	}
	quiet, limit := s.QuietAfter, "quiet-after="
	if quiet == 0 {
		quiet, limit = s.For, "the run's "
	}
	if quiet > 0 && (f.At > quiet || f.For > f.longest(quiet) || f.At >= s.For) {
		length := formatDuration(f.For)
		if f.Times > 1 {
			length = fmt.Sprintf("%d times %s", 2*f.Times-1, length)
		}
		p.refuse(l, l.words[1].column, &refusal{
			found:   "a fault from " + formatDuration(f.At) + " for " + length,
			allowed: "one that ends by " + limit + formatDuration(quiet),
		})
	}
}

// expectWord is the first word of the lines of [Scenario.Expect].
const expectWord = "expect"

var expectForms = []string{"no-double-fire", "NAME.fires=N", "NAME.skipped=N", "NAME.quarantined=N", "verdict=WORD", "sometimes:MARK", "sometimes:all,-MARK"}

func (p *parser) expect(l *line) {
	if len(l.words) == 1 {
		p.refuse(l, l.endColumn(), &refusal{found: "the end of the line", allowed: oneOf(expectForms)})
	}
	for _, w := range l.words[1:] {
		var e Expect
		id, isMark := strings.CutPrefix(w.raw, markPrefix)
		dot := strings.LastIndexByte(w.key, '.')
		switch {
		case w.raw == noDoubleFire:
			e.Kind = ExpectNoDoubleFire
		case w.key == "" && isMark:
			e.Kind, e.Mark = ExpectMark, id
			if _, r := marksOf(id); r != nil {
				p.refuse(l, w.column+len(markPrefix), r)
			}
		case w.key == verdictKey:
			e.Kind = ExpectVerdict
			if r := (wordValue[Verdict]{&e.Verdict, verdictWords[:Unmet]}).parse(w.text); r != nil {
				p.refuseText(l, w, r)
			}
		case dot >= 0:
			p.expectCount(l, w, w.key[:dot], w.key[dot+1:], &e)
		default:
			p.refuse(l, w.column, unknown(w.raw, expectForms))
		}
		p.scenario.Expect = append(p.scenario.Expect, e)
	}
}

// ParseExpect reads what stands in a line expect of a scenario file:
// "sometimes:two-leaders report.fires=24". Whether there is such a schedule
// [Scenario.Validate] says.
func ParseExpect(text string) ([]Expect, error) {
	p := parser{}
	err := p.only(expectWord, text, p.expect)
	if err != nil {
		return nil, err
	}
	return p.scenario.Expect, nil
}

// expectCount reads NAME.WORD=N.
func (p *parser) expectCount(l *line, w word, schedule, count string, e *Expect) {
	name := word{column: w.column, raw: schedule}
	if schedule == "" || name.divide() != nil || name.text == "" {
		p.refuse(l, w.column, refuse(w.raw, "NAME."+count+"=N"))
		return
	}
	i := slices.Index(countWords, count)
	if i < 0 {
		p.refuse(l, w.column+len(schedule)+len("."), unknown(count, countWords))
		return
	}
	e.Schedule, e.Kind = name.text, ExpectFires+ExpectKind(i)
	if r := (numberValue[int64]{n: &e.Count, most: math.MaxInt64, always: true}).parse(w.text); r != nil {
		p.refuseText(l, w, r)
	}
	p.later(l, func() {
		if !p.schedules[name.text] {
			p.refuseName(l, name, "a schedule", scheduleOf)
		}
	})
}
