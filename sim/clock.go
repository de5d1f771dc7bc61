package sim

import (
	"slices"
	"time"

	"github.com/tickonce/tickonce/store"
)

// timeline is the store's clock over true time: it runs at the true pace and
// jumps.
type timeline []stretch

// stretch is a part of the timeline that lasts until the next one begins.
type stretch struct {
	from   store.Instant // true time
	offset int64         // clock − true time, in milliseconds
	top    store.Instant // the latest that the clock had shown when it began
}

func (t timeline) offset() int64 { return t[len(t)-1].offset }

// jump moves the clock by ms at the true time now.
func (t *timeline) jump(now store.Instant, ms int64) {
	last := (*t)[len(*t)-1]
	top := now.Add(last.offset)
	if len(*t) > 1 {
		top = max(top, last.top)
	}
	offset := int64(store.Instant(last.offset).Add(ms)) // held within the range of instants
	*t = append(*t, stretch{from: now, offset: offset, top: top})
}

// reached is the true time at which the clock first showed the instant or a
// later one. If it has not yet, it is when the clock will unless it jumps.
func (t timeline) reached(shown store.Instant) store.Instant {
	next, _ := slices.BinarySearchFunc(t[1:], shown, func(s stretch, shown store.Instant) int {
		if s.top < shown {
			return -1
		}
		return 1
	})
	s := t[next]
	return max(shown.Add(-s.offset), s.from)
}

// storeClock is the store's clock as the engines under test see it. They are
// all stepped, so nothing waits. It keeps its reading, for a step reads it
// several times.
type storeClock struct {
	w       *world
	shown   store.Instant
	reading time.Time
}

func newStoreClock(w *world) *storeClock { return &storeClock{w: w, shown: store.None} }

func (c *storeClock) Now() time.Time {
	if shown := c.w.shown(); shown != c.shown {
		c.shown, c.reading = shown, timeOf(shown)
	}
	return c.reading
}

func (*storeClock) After(time.Duration) <-chan time.Time {
	panic("sim: an engine under test waits by its clock instead of being stepped")
}
