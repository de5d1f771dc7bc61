package sim

import (
	"strconv"
	"strings"
	"time"

	"github.com/tickonce/tickonce"
)

// String is the event in one line: its ID, when it happened, its kind, those of
// its fields that it has, and the digest of everything up to it. Equal events have
// equal texts.
func (e *Event) String() string {
	b := make([]byte, 0, 256)
	b = strconv.AppendInt(b, e.ID, 10)
	b = append(b, ' ')
	b = e.At.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(append(b, ' '), e.Kind.String()...)
	field := func(key, text string) {
		if text != "" {
			b = append(append(append(append(b, ' '), key...), '='), quote(text)...)
		}
	}
	number := func(key string, n int64) {
		if n != 0 {
			b = strconv.AppendInt(append(append(append(b, ' '), key...), '='), n, 10)
		}
	}
	instant := func(key string, t time.Time) {
		if !t.IsZero() {
			b = t.UTC().AppendFormat(append(append(append(b, ' '), key...), '='), time.RFC3339Nano)
		}
	}
	number("cause", e.Cause)
	number("since", e.Since)
	number("step", e.Step)
	if !e.Shown.Equal(e.At) {
		instant("shown", e.Shown)
	}
	number("fault", int64(e.Fault))
	number("process", int64(e.Process))
	field("worker", e.Worker)
	field("schedule", e.Schedule)
	field("queue", e.Queue)
	instant("boundary", e.Boundary)
	instant("last", e.Last)
	number("count", e.Count)
	number("late-ms", e.Late.Milliseconds())
	if e.Again {
		field("again", "yes")
	}
	number("job", e.Job)
	number("attempt", int64(e.Attempt))
	number("origin", e.Origin)
	if e.Execution != 0 {
		field("execution", e.Execution.String())
	}
	if e.Delivery != tickonce.DeliveryNone {
		field("delivery", e.Delivery.String())
	}
	field("error", e.Error)
	number("term", e.Term)
	instant("until", e.Until)
	number("by-ms", e.By.Milliseconds())
	number("drift", e.Drift)
	field("op", e.Op)
	field("reason", e.Reason)
	return strings.ToValidUTF8(string(b), "\uFFFD") + " digest=" + e.Digest.String()
}
