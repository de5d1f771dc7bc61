package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// String writes the scenario as the text that [Parse] reads as an equal one.
// Equal scenarios have equal texts; what has its default is left out. The text
// of a scenario that [Scenario.Validate] refuses is refused by Parse. So is that
// of one with handlers in Go, which no text has: it says handler=go.
func (s Scenario) String() string {
	var b strings.Builder
	write := func(directive string, words ...string) {
		fmt.Fprintf(&b, "%-8s %s\n", directive, strings.Join(words, " "))
	}
	b.WriteString(header + "\n")
	if words := keyWords(nil, &s.Engine, engineKeys); len(words) > 0 {
		write("engine", words...)
	}
	if !s.Start.IsZero() {
		write("start", instantValue{&s.Start}.text())
	}
	write("run", keyWords([]string{formatDuration(s.For)}, &s, runKeys)...)
	for i := range s.Queues {
		q := &s.Queues[i]
		write("queue", keyWords([]string{quote(q.Name)}, q, queueKeys)...)
	}
	for i := range s.Outboxes {
		o := &s.Outboxes[i]
		write("outbox", keyWords([]string{quote(o.Name)}, o, outboxKeys)...)
	}
	for i := range s.Schedules {
		c := &s.Schedules[i]
		words := keyWords([]string{quote(c.Name)}, c, scheduleKeys)
		if s.Handlers[c.Name] != nil {
			words = append(words, "handler="+handlerInGo)
		}
		write("schedule", words...)
	}
	for i := range s.Faults {
		b.WriteString(s.Faults[i].String() + "\n")
	}
	if s.Swarm != (Swarm{}) {
		write(swarmWord, s.Swarm.String())
	}
	for i := range s.Expect {
		write(expectWord, s.Expect[i].String())
	}
	return WithOutcome(b.String(), s.Outcome)
}

// keyWords adds to words those of the keys that are set.
func keyWords[T any](words []string, of *T, keys []key[T]) []string {
	for _, k := range keys {
		if text := k.of(of).text(); text != "" {
			words = append(words, k.name+"="+quote(text))
		}
	}
	return words
}

// String is the line of the fault. One that lasts, and waits for no point, is
// written with during.
func (f Fault) String() string {
	when, length := "at "+formatDuration(f.At), forKey
	switch {
	case f.Kind == FaultCrash || f.Kind == FaultRestartStorm:
		length = afterKey
	case f.For != 0 && f.Point == Anywhere:
		when, length = "during "+formatDuration(f.At)+".."+formatDuration(f.At+f.For), ""
	}
	words := []string{when, f.Kind.String()}
	for _, k := range faultKeys {
		if (k.name == forKey || k.name == afterKey) && k.name != length {
			continue
		}
		if text := k.of(&f).text(); text != "" {
			words = append(words, k.name+"="+quote(text))
		}
	}
	return strings.Join(words, " ")
}

// String is the word of the expectation.
func (e Expect) String() string {
	switch e.Kind {
	case ExpectNoDoubleFire:
		return noDoubleFire
	case ExpectVerdict:
		return verdictKey + "=" + e.Verdict.String()
	case ExpectMark:
		return markPrefix + e.Mark
	}
	word := fmt.Sprintf("expect-%d", e.Kind)
	if i := int(e.Kind) - int(ExpectFires); i >= 0 && i < len(countWords) {
		word = countWords[i]
	}
	return quote(e.Schedule) + "." + word + "=" + strconv.FormatInt(e.Count, 10)
}

// ofAllMarks reports whether all coverage marks are expected, or all but some.
func (e Expect) ofAllMarks() bool {
	return e.Mark == allMarks || strings.HasPrefix(e.Mark, allMarks+",")
}

// marks are the coverage marks that are expected.
func (e Expect) marks() []mark {
	list, _ := marksOf(e.Mark)
	return list
}

// WithOutcome is the text of a scenario with another recorded outcome, or
// without one if it is "". What stands above the line "----" stays as it is.
func WithOutcome(text, outcome string) string {
	above, _ := cutOutcome(text)
	if above != "" && !strings.HasSuffix(above, "\n") {
		above += "\n"
	}
	if outcome == "" {
		return above
	}
	return above + separator + "\n" + outcome
}

// cutOutcome splits the text at the first line "----".
func cutOutcome(text string) (above, outcome string) {
	for end := 0; end < len(text); {
		source, rest, _ := strings.Cut(text[end:], "\n")
		if strings.TrimRight(source, " \t\r") == separator {
			return text[:end], rest
		}
		end = len(text) - len(rest)
	}
	return text, ""
}
