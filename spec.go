package tickonce

import (
	"time"

	"github.com/tickonce/tickonce/internal/core"
)

// Spec is a parsed spec: "@every <n><unit>", n a whole number from 1 on, unit
// one of s, m, h, d; at most 106,751 days (G1, G2). The zero Spec is none.
type Spec struct{ spec core.Spec }

// ParseSpec parses the text of a spec. The error is a [*SpecError] and says
// what to write instead where that can be guessed (G4).
func ParseSpec(text string) (Spec, error) {
	spec, err := core.ParseSpec(text)
	return Spec{spec}, err
}

// Every returns the spec of an interval, in the largest unit that divides it
// (G3). An interval that is not a whole number of seconds from 1 s on is
// [ErrInvalidOption].
func Every(interval time.Duration) (Spec, error) {
	if interval%time.Second == 0 {
		if spec, ok := core.Every(interval.Milliseconds()); ok {
			return Spec{spec}, nil
		}
	}
	return Spec{}, &OptionError{Option: "interval", Problem: "is " + interval.String() + ", want whole seconds from 1s on"}
}

// String returns the text that parses to s (G3), and "" of the zero Spec.
func (s Spec) String() string { return s.spec.String() }

// Interval is the time between two boundaries.
func (s Spec) Interval() time.Duration { return durationOf(s.spec.IntervalMS()) }

// Next returns the first boundary of the grid anchor + k·interval, k ≥ 0,
// strictly after the given time (G3), in UTC and whole milliseconds; the zero
// time where it would lie past the last instant (G6), and of the zero Spec or anchor.
func (s Spec) Next(anchor, after time.Time) time.Time {
	from, err := optionInstant("anchor", anchor)
	_, afterErr := optionInstant("after", after)
	if s.spec == (core.Spec{}) || anchor.IsZero() || err != nil || afterErr != nil {
		return time.Time{}
	}
	next, ok := core.BoundaryAfter(from, s.spec.IntervalMS(), instantOf(after))
	if !ok {
		return time.Time{}
	}
	return timeOf(next)
}
