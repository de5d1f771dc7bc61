package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	header    = "simulate v1"
	separator = "----"
)

// Parse reads a scenario. The file's name is for the messages. The error is
// [*Mistakes] and has all that is wrong with the text, in its order.
func Parse(file, text string) (Scenario, error) {
	p := parser{file: file}
	p.parse(text)
	if m := p.mistakes(); m != nil {
		return Scenario{}, m
	}
	return p.scenario, nil
}

// Validate checks a scenario built in Go as [Parse] checks a text: the lines
// that the error speaks of are those of String.
func (s Scenario) Validate() error {
	p := parser{handlers: s.Handlers}
	s.Handlers = nil
	p.parse(s.String())
	if m := p.mistakes(); m != nil {
		return m
	}
	return nil
}

// parser reads a text in two passes: words and values first, line by line;
// then, again in the order of the lines, what depends on other lines.
type parser struct {
	file     string
	scenario Scenario
	handlers Handlers // of a scenario built in Go
	checks   []func() // the second pass
	passes   [2]pass
	second   bool

	seen      map[string]int  // directives that may stand once: their line
	schedules map[string]bool // names
	queues    map[string]bool // names that schedules use
	outboxes  map[string]bool // names
	described map[string]bool // queues that have a line
	runners   int
	atWork    int // workers of the queues so far, in all processes
	runLine   line
}

// pass is what one pass finds: only what may be reported is kept.
type pass struct {
	list  []Mistake
	count int
}

// line is one line of the text.
type line struct {
	number int
	source string
	words  []word
	bad    bool // it has a mistake of the first pass
}

// directives are the first words of lines. A line with a mistake is checked no
// further in the second pass.
var directives = []struct {
	word  string
	once  bool
	parse func(*parser, *line)
}{
	{"engine", true, (*parser).engine},
	{"start", true, (*parser).start},
	{"run", true, (*parser).run},
	{"queue", false, (*parser).queue},
	{"outbox", false, (*parser).outbox},
	{"schedule", false, (*parser).schedule},
	{"at", false, (*parser).at},
	{"during", false, (*parser).during},
	{swarmWord, true, (*parser).swarm},
	{expectWord, false, (*parser).expect},
}

func directiveWords() []string {
	words := make([]string, len(directives))
	for i, d := range directives {
		words[i] = d.word
	}
	return words
}

func (p *parser) parse(text string) {
	p.seen, p.described = map[string]int{}, map[string]bool{}
	p.schedules, p.queues, p.outboxes = map[string]bool{}, map[string]bool{}, map[string]bool{}
	if len(text) > MaxFile {
		p.refuse(&line{number: 1}, 1, &refusal{
			found: fmt.Sprintf("%d bytes", len(text)), allowed: fmt.Sprintf("at most %d bytes in a scenario", MaxFile),
		})
		return
	}
	above, outcome := cutOutcome(text)
	p.scenario.Outcome = outcome
	l := &line{}
	for rest, more := above, true; more; {
		l = &line{number: l.number + 1}
		l.source, rest, more = strings.Cut(rest, "\n")
		l.source = strings.TrimSuffix(l.source, "\r")
		if l.number > 1 {
			p.line(l)
		} else if p.header(l); l.bad {
			return // in another version everything may be different
		}
	}
	p.second = true
	p.end(l)
	for _, check := range p.checks {
		check()
	}
	if p.passes[0].count+p.passes[1].count == 0 {
		p.whole(l)
	}
}

func (p *parser) header(l *line) {
	if p.split(l); l.bad {
		return
	}
	var words []string
	for _, w := range l.words {
		words = append(words, w.raw)
	}
	if strings.Join(words, " ") != header {
		r := refuse(l.source, fmt.Sprintf("%q as the first line", header))
		if strings.TrimSpace(l.source) == "" {
			r.found = "an empty line"
		}
		p.refuse(l, 1, r)
	}
}

// only reads a line on its own, without its directive. Its error is the first
// mistake, without a place.
func (p *parser) only(directive, text string, parse func(*line)) error {
	l := &line{number: 1, source: directive + " " + text}
	if p.split(l); !l.bad {
		parse(l)
	}
	m := p.mistakes()
	if m == nil {
		return nil
	}
	first := &m.List[0]
	return fmt.Errorf("found %s, want %s%s", first.Found, first.Allowed, strings.TrimSuffix("; "+first.Hint, "; "))
}

// split splits the line into its words.
func (p *parser) split(l *line) {
	if len(l.source) > MaxLine {
		p.refuse(l, 1, &refusal{
			found: fmt.Sprintf("a line of %d bytes", len(l.source)), allowed: fmt.Sprintf("at most %d bytes in a line", MaxLine),
		})
		return
	}
	words, r := split(l.source)
	if l.words = words; r != nil {
		p.refuse(l, 1, r)
	}
}

func (p *parser) line(l *line) {
	if p.split(l); l.bad || len(l.words) == 0 {
		return
	}
	first := l.words[0]
	for _, d := range directives {
		if d.word != first.raw {
			continue
		}
		if before := p.seen[d.word]; d.once && before > 0 {
			p.refuse(l, first.column, &refusal{
				found: "a second " + d.word + " line", allowed: fmt.Sprintf("one, which is line %d", before),
			})
			return
		}
		p.seen[d.word] = l.number
		d.parse(p, l)
		return
	}
	p.refuse(l, first.column, unknown(first.raw, directiveWords()))
}

// refuse notes a mistake: r, which counts from the column.
func (p *parser) refuse(l *line, column int, r *refusal) {
	found := &p.passes[0]
	if p.second {
		found = &p.passes[1]
	} else {
		l.bad = true
	}
	if found.count++; found.count > MaxMistakes {
		return
	}
	found.list = append(found.list, Mistake{
		File: p.file, Line: l.number, Column: column + r.at, Source: l.source,
		Found: r.found, Allowed: r.allowed, Hint: r.hint,
	})
}

// refuseText is refuse for the text of a word.
func (p *parser) refuseText(l *line, w word, r *refusal) {
	if w.quoted {
		r.at = 0
	}
	p.refuse(l, w.textAt, r)
}

// mistakes are those of both passes in the order of the text, nil without any.
func (p *parser) mistakes() *Mistakes {
	all := append(p.passes[0].list, p.passes[1].list...)
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	listed := all[:min(len(all), MaxMistakes)]
	return &Mistakes{List: listed, More: p.passes[0].count + p.passes[1].count - len(listed)}
}

// later has the second pass check the line, unless it is bad.
func (p *parser) later(l *line, check func()) {
	if !l.bad {
		p.checks = append(p.checks, check)
	}
}

// at is the word of the line with the key.
func (l *line) at(key string) (word, bool) {
	i := slices.IndexFunc(l.words, func(w word) bool { return w.key == key })
	if i < 0 {
		return word{}, false
	}
	return l.words[i], true
}

// endColumn is the column behind the last word.
func (l *line) endColumn() int {
	last := l.words[len(l.words)-1]
	return last.column + len(last.raw)
}

// argument reads the word at an index of the line, which has no key, into v;
// false if there is none.
func (p *parser) argument(l *line, i int, form string, v value) (word, bool) {
	switch {
	case i >= len(l.words):
		p.refuse(l, l.endColumn(), &refusal{found: "the end of the line", allowed: form})
		return word{}, false
	case l.words[i].key != "":
		p.refuse(l, l.words[i].column, refuse(l.words[i].raw, form))
		return word{}, false
	}
	w := l.words[i]
	if r := v.parse(w.text); r != nil {
		p.refuseText(l, w, r)
	}
	return w, true
}

// parseKeys reads key=value words into target.
func parseKeys[T any](p *parser, l *line, words []word, target *T, keys []key[T]) {
	for i, w := range words {
		k := slices.IndexFunc(keys, func(k key[T]) bool { return k.name == w.key })
		switch {
		case k < 0 && w.key == "":
			p.refuse(l, w.column, unknown(w.raw, keyNames(keys)))
		case k < 0:
			p.refuse(l, w.column, unknown(w.key+"=", keyNames(keys)))
		case slices.ContainsFunc(words[:i], func(before word) bool { return before.key == w.key }):
			p.refuse(l, w.column, &refusal{found: shown(w.raw), allowed: w.key + "= only once in a line"})
		default:
			if r := keys[k].of(target).parse(w.text); r != nil {
				p.refuseText(l, w, r)
			}
		}
	}
}

// need refuses a line that is right so far but has not all of the keys.
func (p *parser) need(l *line, keys ...string) {
	if l.bad {
		return // the missing key may be the misspelt one
	}
	for _, k := range keys {
		if _, ok := l.at(k); !ok {
			p.refuse(l, l.endColumn(), &refusal{found: "the end of the line", allowed: k + "="})
		}
	}
}

// limit refuses one more of what there may be most of.
func (p *parser) limit(l *line, have, most int, what string) bool {
	if have < most {
		return true
	}
	p.refuse(l, 1, &refusal{
		found: fmt.Sprintf("number %d of the %s", have+1, what), allowed: fmt.Sprintf("at most %d %s in a scenario", most, what),
	})
	return false
}

// whole checks what the text as a whole must have, once all of its lines are
// right.
func (p *parser) whole(l *line) {
	s := &p.scenario
	if len(s.Schedules) == 0 {
		p.refuse(l, 1, &refusal{found: "the end of the scenario", allowed: "a line: schedule NAME every=SPEC queue=NAME"})
		return
	}
	for _, name := range slices.Sorted(maps.Keys(p.handlers)) {
		if !p.schedules[name] && (name != "" || p.handlers[name] == nil) {
			p.refuse(&p.runLine, 1, &refusal{found: "a handler in Go of " + shown(name), allowed: "handlers of the schedules"})
		}
	}
	boundaries := int64(0)
	for i := range s.Schedules {
		boundaries += s.For.Milliseconds() / intervalOf(s.Schedules[i].Spec)
	}
	if boundaries > maxEvents {
		p.refuse(&p.runLine, 1, &refusal{
			found:   fmt.Sprintf("a run of %s with %d boundaries", formatDuration(s.For), boundaries),
			allowed: fmt.Sprintf("at most %d, each of which takes an event", maxEvents),
			hint:    "make the run shorter, or the schedules fewer or rarer",
		})
	}
}

// end checks what has to stand in some line.
func (p *parser) end(l *line) {
	p.runners = max(p.scenario.Engine.Runners, 1)
	if p.seen["run"] == 0 {
		p.refuse(l, 1, &refusal{found: "the end of the scenario", allowed: "a line: run DURATION"})
	}
}

// ParseFault reads a fault as it stands in the scenario's file, behind at D or
// during D..D, or with one of these as a key: "pause runner=1 for=10m at=2h". The
// error names the column.
func (s Scenario) ParseFault(text string) (Fault, error) {
	p := parser{runners: max(s.Engine.Runners, 1), scenario: s}
	p.scenario.Faults = nil
	p.schedules, p.queues, p.outboxes = map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range s.Schedules {
		p.schedules[s.Schedules[i].Name], p.queues[s.Schedules[i].Queue] = true, true
	}
	for i := range s.Outboxes {
		p.outboxes[s.Outboxes[i].Name] = true
	}
	l := &line{number: 1, source: text}
	if p.split(l); !l.bad {
		p.faultAlone(l)
	}
	p.second = true
	for _, check := range p.checks {
		check()
	}
	if m := p.mistakes(); m != nil {
		first := &m.List[0]
		return Fault{}, fmt.Errorf("column %d: found %s, want %s%s", first.Column, first.Found, first.Allowed, strings.TrimSuffix("; "+first.Hint, "; "))
	}
	return p.scenario.Faults[0], nil
}

// faultAlone reads a fault whose time may be a key.
func (p *parser) faultAlone(l *line) {
	times := map[string]func(*parser, *line){"at": (*parser).at, "during": (*parser).during}
	if len(l.words) > 0 {
		if parse := times[l.words[0].raw]; parse != nil {
			parse(p, l)
			return
		}
	}
	for i, w := range l.words {
		if parse := times[w.key]; parse != nil {
			when := word{column: w.textAt, raw: w.text, text: w.text, textAt: w.textAt, quoted: w.quoted}
			l.words = slices.Concat([]word{{column: w.column, raw: w.key, text: w.key, textAt: w.column}, when}, l.words[:i], l.words[i+1:])
			parse(p, l)
			return
		}
	}
	if len(l.words) > 0 { // what is wrong before the end is told first
		l.words = slices.Concat([]word{{raw: "at"}, {}}, l.words)
		p.fault(l, &Fault{}, false)
	}
	p.refuse(l, len(l.source)+1, &refusal{found: "the end of the fault", allowed: "its time, such as at=2h or during=2h..3h"})
}
