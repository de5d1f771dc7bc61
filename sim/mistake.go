package sim

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxMistakes is how many mistakes of one scenario are reported; one line more
// says how many there were.
const MaxMistakes = 20

// Mistake is one thing that is wrong with the text of a scenario.
type Mistake struct {
	File   string // as given to [Parse]; "" for a scenario built in Go
	Line   int    // from 1
	Column int    // in bytes, from 1
	Source string // the line

	Found   string // what stands there
	Allowed string // what may stand there
	Hint    string // the nearest known word or what to write instead; "" if there is none
}

func (m *Mistake) Error() string {
	where := m.File
	if where == "" {
		where = "scenario"
	}
	text := fmt.Sprintf("%s:%d:%d: found %s, want %s", where, m.Line, m.Column, m.Found, m.Allowed)
	if m.Hint != "" {
		text += "; " + m.Hint
	}
	if m.File == "" && m.Source != "" {
		text += fmt.Sprintf("; the line is %#q", m.Source)
	}
	return text
}

// Mistakes is the error of [Parse] and [Scenario.Validate]: in the order of
// the text, at most [MaxMistakes] of them.
type Mistakes struct {
	List []Mistake
	More int // how many followed
}

func (m *Mistakes) Error() string {
	lines := make([]string, 0, len(m.List)+1)
	for i := range m.List {
		lines = append(lines, m.List[i].Error())
	}
	if m.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", m.More))
	}
	return strings.Join(lines, "\n")
}

// refusal says why a word, or a part of it from the byte at on, is refused. It
// becomes a [Mistake] once it is known where the word stands.
type refusal struct {
	at                   int
	found, allowed, hint string
}

func refuse(found, allowed string) *refusal {
	return &refusal{found: shown(found), allowed: allowed}
}

// unknown refuses a word that is none of the known ones.
func unknown(word string, known []string) *refusal {
	r := refuse(word, oneOf(known))
	if near := nearest(word, known); near != "" {
		r.hint = "did you mean " + strconv.Quote(near) + "?"
	}
	return r
}

// oneOf lists words, the first of them if there are many.
func oneOf(words []string) string {
	const most = 48
	switch {
	case len(words) == 0:
		return "none"
	case len(words) == 1:
		return words[0]
	case len(words) > most:
		return fmt.Sprintf("one of %d: %s, …", len(words), strings.Join(words[:most], ", "))
	default:
		return "one of " + strings.Join(words, ", ")
	}
}

// shown quotes what came, cut where it is long.
func shown(s string) string {
	const most = 80
	if len(s) > most {
		end := most
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		return strconv.Quote(s[:end]) + "…"
	}
	return strconv.Quote(s)
}

// nearest is the known word that the fewest edits make of word, the first of
// equals; "" if that takes more than a third of its letters and one.
func nearest(word string, known []string) string {
	const most = 64
	if len(word) > most {
		return ""
	}
	best, fewest := "", 0
	for _, k := range known {
		if d := edits(word, k); d <= len(k)/3+1 && (best == "" || d < fewest) {
			best, fewest = k, d
		}
	}
	return best
}

// edits is the edit distance in bytes in which swapping neighbours is one
// edit (optimal string alignment).
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
