package sim

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is a word of a line: text, or key=text. Text that is quoted in the line
// stands here without its quotes.
type word struct {
	column int    // of the word, in bytes, from 1
	raw    string // as it stands in the line
	key    string // "" without one
	text   string
	textAt int  // the column of the text
	quoted bool // the text
}

// split splits a line into its words. A word ends at a blank; a quoted part of
// a word may have blanks in it. A word that begins with # ends the line.
func split(line string) ([]word, *refusal) {
	if r := checkCharacters(line); r != nil {
		return nil, r
	}
	var words []word
	for i := 0; i < len(line); {
		switch {
		case line[i] == ' ' || line[i] == '\t':
			i++
			continue
		case line[i] == '#':
			return words, nil
		}
		raw, r := wordAt(line, i)
		if r != nil {
			return words, r
		}
		w := word{column: i + 1, raw: raw}
		if r := w.divide(); r != nil {
			r.at += i
			return words, r
		}
		words = append(words, w)
		i += len(raw)
	}
	return words, nil
}

func checkCharacters(line string) *refusal {
	for i, r := range line {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(line[i:], "\uFFFD"):
			return &refusal{at: i, found: "the byte " + shown(line[i:i+1]), allowed: "valid UTF-8"}
		case r != '\t' && r != ' ' && !unicode.IsPrint(r):
			return &refusal{at: i, found: "the character " + shown(string(r)), allowed: "printable characters; others only escaped in quotes"}
		}
	}
	return nil
}

// wordAt is the word that begins at the byte i.
func wordAt(line string, i int) (string, *refusal) {
	end := i
	for end < len(line) && line[end] != ' ' && line[end] != '\t' {
		if line[end] != '"' {
			end++
			continue
		}
		quoted, err := strconv.QuotedPrefix(line[end:])
		if err != nil {
			r := refuse(line[end:], "a quoted text as Go writes it, closed by \"")
			r.at = end
			return "", r
		}
		end += len(quoted)
	}
	return line[i:end], nil
}

// divide finds the key and the text of a word.
func (w *word) divide() *refusal {
	keyEnd := 0
	if w.raw[0] == '"' {
		quoted, _ := strconv.QuotedPrefix(w.raw)
		keyEnd = len(quoted)
	}
	text, at := w.raw, 0
	if i := strings.IndexAny(w.raw[keyEnd:], "=\""); i >= 0 && w.raw[keyEnd+i] == '=' {
		w.key, at = w.raw[:keyEnd+i], keyEnd+i+1
		text = w.raw[at:]
		if w.key == "" {
			return &refusal{found: shown(w.raw), allowed: "a key before the ="}
		}
	}
	w.text, w.textAt = text, w.column+at
	if strings.HasPrefix(text, `"`) {
		quoted, _ := strconv.QuotedPrefix(text)
		if rest := text[len(quoted):]; rest != "" {
			return &refusal{at: at + len(quoted), found: shown(rest), allowed: "a blank after the closing quote"}
		}
		w.text, _ = strconv.Unquote(quoted)
		w.quoted = true
		return nil
	}
	if i := strings.IndexByte(text, '"'); i >= 0 {
		return &refusal{at: at + i, found: shown(text[i:]), allowed: "a quote only at the beginning of a text"}
	}
	return nil
}

// quote writes text so that it is one word's text again: bare if it can be.
func quote(text string) string {
	for i := range len(text) {
		c := text[i]
		bare := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("-_.,:/+%@", c) >= 0
		if !bare {
			return strconv.Quote(text)
		}
	}
	if text == "" {
		return `""`
	}
	return text
}
