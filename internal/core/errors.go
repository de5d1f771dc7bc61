package core

import (
	"errors"
	"strconv"
)

// The sentinels of refused input. Package tickonce exports them.
var (
	ErrInvalidSpec  = errors.New("invalid spec")
	ErrInvalidName  = errors.New("invalid name")
	ErrReservedName = errors.New("reserved name")
)

// SpecError says what is wrong with the text of a spec. It matches
// [ErrInvalidSpec].
type SpecError struct {
	Text    string
	Offset  int    // the byte at which the text leaves the grammar
	Found   string // what stands there; "" at the end of the text
	Allowed string // what is allowed there
	Hint    string // what to write instead, or ""
}

func (e *SpecError) Error() string {
	msg := "invalid spec " + quote(e.Text) + ": at byte " + strconv.Itoa(e.Offset) + " found "
	if e.Found == "" {
		msg += "the end"
	} else {
		msg += quote(e.Found)
	}
	msg += ", want " + e.Allowed
	if e.Hint != "" {
		msg += "; " + e.Hint
	}
	return msg
}

// Is makes the error match [ErrInvalidSpec].
func (e *SpecError) Is(target error) bool { return target == ErrInvalidSpec }

// NameError says which name is refused and why. It matches [ErrInvalidName]
// or [ErrReservedName].
type NameError struct {
	What    string // "schedule name", "queue", …
	Name    string
	Problem string
	Kind    error // ErrInvalidName or ErrReservedName
}

func (e *NameError) Error() string {
	return e.Kind.Error() + ": " + e.What + " " + quote(e.Name) + " " + e.Problem
}

// Is makes the error match its kind.
func (e *NameError) Is(target error) bool { return target == e.Kind }

// quote quotes s for a message, cut where it is long.
func quote(s string) string {
	const most = 160
	if len(s) > most {
		return strconv.Quote(s[:most]) + "… (" + strconv.Itoa(len(s)) + " bytes)"
	}
	return strconv.Quote(s)
}
