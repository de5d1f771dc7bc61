package core

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxName is the longest name in bytes.
	MaxName = 128

	// ReservedPrefix begins the names that belong to the engine.
	ReservedPrefix = "__alkstore_"

	// OutboxPrefix and the name of an outbox make the name of its queue.
	OutboxPrefix = ReservedPrefix + "outbox:"
)

// CheckName checks a user's name (N1, N2): 1 to [MaxName] bytes of valid
// UTF-8, no control character, no space at either end, and not reserved; in
// that order. What says which name it is, for the message.
func CheckName(what, name string) error {
	if problem := nameProblem(name); problem != "" {
		return &NameError{What: what, Name: name, Problem: problem, Kind: ErrInvalidName}
	}
	if strings.HasPrefix(name, ReservedPrefix) {
		return &NameError{
			What: what, Name: name, Kind: ErrReservedName,
			Problem: "begins with " + ReservedPrefix + ", which belongs to the engine",
		}
	}
	return nil
}

func nameProblem(name string) string {
	switch {
	case name == "":
		return "is empty, want 1 to " + strconv.Itoa(MaxName) + " bytes"
	case len(name) > MaxName:
		return "has " + strconv.Itoa(len(name)) + " bytes, want at most " + strconv.Itoa(MaxName)
	}
	first, last := rune(-1), rune(-1)
	for i := 0; i < len(name); {
		r, size := rune(name[i]), 1
		if r >= utf8.RuneSelf {
			if r, size = utf8.DecodeRuneInString(name[i:]); r == utf8.RuneError && size == 1 {
				return "is not valid UTF-8 at byte " + strconv.Itoa(i)
			}
		}
		if unicode.IsControl(r) {
			return "has a control character at byte " + strconv.Itoa(i)
		}
		if i == 0 {
			first = r
		}
		last = r
		i += size
	}
	switch {
	case unicode.IsSpace(first):
		return "begins with a space"
	case unicode.IsSpace(last):
		return "ends with a space"
	}
	return ""
}

// CleanText makes a text fit to be kept: valid UTF-8, without NUL, at most
// limit bytes, cut between characters.
func CleanText(s string, limit int) string {
	s = s[:min(len(s), limit+utf8.UTFMax)] // what is cleaned never gets shorter
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
