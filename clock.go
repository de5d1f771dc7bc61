package tickonce

import (
	"strconv"
	"time"

	"github.com/tickonce/tickonce/store"
)

// Clock tells a host's time and wakes its loops. The clocks of
// github.com/benbjohnson/clock satisfy it: New() in production, NewMock() in
// tests. It must be safe for concurrent use. Only [Engine.RunSchedules]
// and [Engine.RunWorker] call After: a host that drives the steps itself may
// panic there.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// instantOf is t in whole milliseconds, rounded down.
func instantOf(t time.Time) store.Instant { return store.Instant(t.UnixMilli()) }

// timeOf is the instant as a time in UTC, or the zero time where there is none.
func timeOf(t store.Instant) time.Time {
	if t == store.None {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}

func durationOf(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// optionMS reads a duration option: whole milliseconds, 0 or more.
func optionMS(option string, d time.Duration) (int64, error) {
	switch {
	case d < 0:
		return 0, &OptionError{Option: option, Problem: "is " + d.String() + ", want 0 or more"}
	case d%time.Millisecond != 0:
		return 0, &OptionError{Option: option, Problem: "is " + d.String() + ", want whole milliseconds"}
	}
	return d.Milliseconds(), nil
}

// optionInstant reads a time option; the zero time is none. A fraction of a
// millisecond is rounded up, so that nothing happens early.
func optionInstant(option string, t time.Time) (store.Instant, error) {
	if t.IsZero() {
		return store.None, nil
	}
	// UnixMilli wraps outside this range of years.
	if year := t.Year(); year < -280_000 || year > 280_000 {
		return 0, &OptionError{Option: option, Problem: "is in the year " + strconv.Itoa(year) + ", want -280000 to 280000"}
	}
	at := instantOf(t)
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		at++
	}
	return at, nil
}
