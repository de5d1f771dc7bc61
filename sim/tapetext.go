package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The words of a tape's text.
const (
	tapeHeader   = "simulate tape v1"
	scenarioWord = "scenario"
	choiceWord   = "choice"
	eventWord    = "event"
	endWord      = "end"
)

// String writes the tape as the text that [ParseTape] reads as an equal one: a
// line for each choice and for each event, and an end, without which a tape is
// taken for cut off.
//
//	simulate tape v1
//	scenario 5f0c7e0b2f4a1d39
//	choice 17 "store fault" 1000000 431002
//	event 1 2026-01-01T00:00:00Z store-opened reason=empty digest=0c3f0e6a4d2b9178
//	end 1 1
func (t *Tape) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s %s\n", tapeHeader, scenarioWord, t.Scenario)
	for _, c := range t.Choices {
		fmt.Fprintf(&b, "%s %d %s %d %d\n", choiceWord, c.Step, quote(c.Site), c.N, c.Value)
	}
	for _, e := range t.Events {
		fmt.Fprintf(&b, "%s %s\n", eventWord, e)
	}
	fmt.Fprintf(&b, "%s %d %d\n", endWord, len(t.Choices), len(t.Events))
	return b.String()
}

// ParseTape reads a tape. The file's name is for the message. The error is
// [*Mistakes] with the first thing that is wrong.
func ParseTape(file, text string) (*Tape, error) {
	p := tapeParser{parser: parser{file: file}, tape: &Tape{}}
	p.parse(text)
	if m := p.mistakes(); m != nil {
		return nil, m
	}
	return p.tape, nil
}

type tapeParser struct {
	parser
	tape  *Tape
	ended bool
}

func (p *tapeParser) parse(text string) {
	l := &line{}
	if len(text) > MaxTape {
		p.refuse(&line{number: 1}, 1, &refusal{found: fmt.Sprintf("%d bytes", len(text)), allowed: fmt.Sprintf("at most %d bytes in a tape", MaxTape)})
		return
	}
	for rest, more := text, true; more && p.passes[0].count == 0; {
		l = &line{number: l.number + 1}
		l.source, rest, more = strings.Cut(rest, "\n")
		l.source = strings.TrimSuffix(l.source, "\r")
		switch {
		case l.number == 1 && l.source != tapeHeader:
			p.refuse(l, 1, refuse(l.source, fmt.Sprintf("%q as the first line", tapeHeader)))
		case l.number == 1:
		case !more && l.source == "":
			p.needEnd(l)
			return
		case p.ended:
			p.refuse(l, 1, refuse(l.source, "nothing behind the end"))
		default:
			p.line(l)
		}
	}
	p.needEnd(l)
}

func (p *tapeParser) needEnd(l *line) {
	if !p.ended && p.passes[0].count == 0 {
		p.refuse(l, 1, &refusal{found: "the end of the text", allowed: "more of the tape, up to a line " + endWord, hint: "it is cut off"})
	}
}

func (p *tapeParser) line(l *line) {
	word, rest, _ := strings.Cut(l.source, " ")
	switch {
	case word == eventWord:
		p.tape.Events = append(p.tape.Events, rest)
		return
	case l.number == 2 && word != scenarioWord:
		p.refuse(l, 1, refuse(word, scenarioWord+" and the digest of its text"))
		return
	}
	if p.split(l); l.bad {
		return
	}
	switch numbers := p.numbersOf(word); {
	case numbers == nil:
		p.refuse(l, 1, unknown(word, []string{choiceWord, eventWord, endWord}))
	case len(l.words) <= len(numbers):
		p.refuse(l, len(l.source)+1, &refusal{found: "the end of the line", allowed: fmt.Sprintf("more, as in %q", tapeForms[word])})
	case len(l.words) > len(numbers)+1:
		w := l.words[len(numbers)+1]
		p.refuse(l, w.column, refuse(w.raw, fmt.Sprintf("the end of the line, as in %q", tapeForms[word])))
	default:
		for i, read := range numbers {
			if w := l.words[i+1]; !read(w.text) {
				p.refuse(l, w.column, refuse(w.raw, fmt.Sprintf("what there is in %q", tapeForms[word])))
				return
			}
		}
	}
}

// tapeForms has an example of each line.
var tapeForms = map[string]string{
	scenarioWord: scenarioWord + " 0123456789abcdef",
	choiceWord:   choiceWord + ` 17 "store fault" 1000000 431002, with a value below the number before it`,
	endWord:      endWord + " 120 450, the numbers of choices and of events before it",
}

// numbersOf are what read the words behind the first one of a line; nil if there
// is no such line.
func (p *tapeParser) numbersOf(word string) []func(string) bool {
	number := func(n *int64, least int64) func(string) bool {
		return func(text string) bool {
			return (numberValue[int64]{n: n, least: least, most: math.MaxInt64}).parse(text) == nil
		}
	}
	switch word {
	case scenarioWord:
		return []func(string) bool{func(text string) bool {
			n, err := strconv.ParseUint(text, 16, 64)
			p.tape.Scenario = Digest(n)
			return err == nil && p.tape.Scenario.String() == text
		}}
	case choiceWord:
		p.tape.Choices = append(p.tape.Choices, Choice{})
		c := &p.tape.Choices[len(p.tape.Choices)-1]
		site := func(text string) bool { c.Site = text; return text != "" }
		value := number(&c.Value, 0)
		return []func(string) bool{number(&c.Step, 0), site, number(&c.N, 1), func(text string) bool { return value(text) && c.Value < c.N }}
	case endWord:
		p.ended = true
		equal := func(want int) func(string) bool { return func(text string) bool { return text == strconv.Itoa(want) } }
		return []func(string) bool{equal(len(p.tape.Choices)), equal(len(p.tape.Events))}
	}
	return nil
}
