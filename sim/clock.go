package sim

import (
	"slices"
	"time"

	"github.com/tickonce/tickonce/store"
)

// timeline is a clock over true time: it drifts and jumps.
type timeline []stretch

// stretch is a part of the timeline that lasts until the next one begins.
type stretch struct {
	from   store.Instant // true time
	offset int64         // clock − true time when it began, in milliseconds
	drift  int64         // by how much faster than true time it runs, in parts per million; −million or less: it stands still
	top    store.Instant // the latest that the clock had shown when it began
}

const million = 1_000_000

// frozen is a drift that no other one makes up for.
const frozen = -4 * million

// pace is how many parts of true time the clock goes in a million.
func (s *stretch) pace() int64 { return max(million+s.drift, 0) }

// at is what the clock shows at the true time now, which no stretch after this
// one has begun by.
func (s *stretch) at(now store.Instant) store.Instant {
	if s.drift == 0 {
		return now.Add(s.offset)
	}
	whole, rest := int64(now-s.from)/million, int64(now-s.from)%million
	return s.from.Add(s.offset).Add(whole*s.pace() + rest*s.pace()/million)
}

// when is the first true time at which the clock shows the instant, one not
// before it began.
func (s *stretch) when(shown store.Instant) store.Instant {
	ahead, pace := int64(shown-s.from.Add(s.offset)), s.pace()
	switch {
	case s.drift == 0:
		return shown.Add(-s.offset)
	case ahead <= 0:
		return s.from
	case pace == 0 || ahead/pace > int64(store.MaxInstant)/million:
		return store.MaxInstant
	}
	return s.from.Add(ahead/pace*million + (ahead%pace*million+pace-1)/pace)
}

func (t timeline) last() *stretch { return &t[len(t)-1] }

// at is what the clock shows at the true time now, the latest.
func (t timeline) at(now store.Instant) store.Instant { return t.last().at(now) }

// when is the true time at which the clock shows the instant, by its present
// pace; of one that it shows already, by the true pace.
func (t timeline) when(now, shown store.Instant) store.Instant {
	if ago := int64(t.at(now) - shown); ago >= 0 {
		return now.Add(-ago)
	}
	return t.last().when(shown)
}

// jump moves the clock by ms at the true time now.
func (t *timeline) jump(now store.Instant, ms int64) { t.turn(now, ms, 0) }

// turn moves the clock by ms at the true time now, and makes it faster by parts
// per million from then on.
func (t *timeline) turn(now store.Instant, ms, ppm int64) {
	last := t.last()
	top := last.at(now)
	offset := int64(store.Instant(top - now).Add(ms)) // held within the range of instants
	if len(*t) > 1 {
		top = max(top, last.top)
	}
	*t = append(*t, stretch{from: now, offset: offset, drift: last.drift + ppm, top: top})
}

// reached is the true time at which the clock first showed the instant or a
// later one. If it has not yet, it is when the clock will unless it turns.
func (t timeline) reached(shown store.Instant) store.Instant {
	next, _ := slices.BinarySearchFunc(t[1:], shown, func(s stretch, shown store.Instant) int {
		if s.top < shown {
			return -1
		}
		return 1
	})
	return max(t[next].when(shown), t[next].from)
}

// simClock is a clock as the engines under test see it. They are all stepped, so
// nothing waits. It keeps its reading, for a step reads it several times.
type simClock struct {
	w       *world
	of      *timeline
	shown   store.Instant
	reading time.Time
}

func newClock(w *world, of *timeline) *simClock {
	return &simClock{w: w, of: of, shown: store.None}
}

func (c *simClock) Now() time.Time {
	if shown := c.of.at(c.w.now); shown != c.shown {
		c.shown, c.reading = shown, timeOf(shown)
	}
	return c.reading
}

func (*simClock) After(time.Duration) <-chan time.Time {
	panic("sim: an engine under test waits by its clock instead of being stepped")
}
