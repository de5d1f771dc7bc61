package peers

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Behaviour is a situation that peers are put in.
type Behaviour struct {
	Case string // in docs/CONTRACT.md, a case or a rule
	What string
	try  func(*Peer) string
}

// Behaviours are what is tried.
var Behaviours = []Behaviour{
	{"C01", "every 5 s; the process is frozen for 10 h, which is 7,200 boundaries", bubbled(freeze)},
	{"C07", "every 10 min; the clock steps forward by 8 h and 1 s, which is 48 boundaries", bubbled(forward)},
	{"C04", "the same, and an hour later the clock steps back again", bubbled(back)},
	{"C97", "`@every 0s`, for 10 s", bubbled(spec(0))},
	{"C96", "`@every -1s`, for 10 s", bubbled(spec(-time.Second))},
	{"C95", "`@every 500ms`, for 10 s", bubbled(spec(500 * time.Millisecond))},
	{"C22", "every 6 h for 3 days, which is 12 boundaries; the process restarts every 4 h", bubbled(restart)},
	{"C49", "every 10 min for 1 h, in two instances", bubbled(twoInstances)},
	{"S6", "every 10 min for 1 h; a run takes 1 min and removes its job when it begins", bubbled(removal)},
	{"C93", "every 1 s for 10 s; the job panics", panics},
}

// Observe puts a peer in the situation, and tells what it did.
func (b *Behaviour) Observe(p *Peer) string { return b.try(p) }

// trial is a peer in a situation, in a bubble of its own. What fails and is
// not looked for is a panic.
type trial struct {
	*Peer
	clock *Clock
	fires atomic.Int64
}

func bubbled(try func(*trial) string) func(*Peer) string {
	return func(p *Peer) (did string) {
		inBubble(func() { did = try(&trial{Peer: p, clock: new(Clock)}) })
		return did
	}
}

func (t *trial) open() Scheduler { return must(t.Open(t.clock)) }

func (t *trial) fire() { t.fires.Add(1) }

// pass answers how many fires there were in the time.
func (t *trial) pass(d time.Duration) int64 {
	t.fires.Store(0)
	Pass(d)
	return t.fires.Load()
}

// atOnce is time enough for a loop and a worker that look once a second.
const atOnce = 2 * time.Second

func freeze(t *trial) string {
	s := t.open()
	defer s.Stop()
	must(s.Every("job", 5*time.Second, t.fire))
	s.Start()
	Pass(61 * time.Second)
	t.clock.Freeze(10 * time.Hour)
	first := t.pass(10*time.Hour + atOnce)
	then := t.pass(time.Minute)
	return say(s, "%d fired at once, %d in the minute after", first, then)
}

const unsteppable = "not tried: it reads the system's clock, which does not step in a bubble"

func forward(t *trial) string {
	if !t.Clocked {
		return unsteppable
	}
	s := t.open()
	defer s.Stop()
	first, then := t.stepForward(s)
	return say(s, "%d fired at once, %d in the hour after", first, then)
}

// wrong is how far the clock is ahead. A second more than the interval divides,
// because no machine wakes in the very instant of a boundary.
const wrong = 8*time.Hour + time.Second

// stepForward lets the clock be ahead for an hour.
func (t *trial) stepForward(s Scheduler) (first, then int64) {
	must(s.Every("job", 10*time.Minute, t.fire))
	s.Start()
	Pass(61 * time.Minute)
	t.clock.Step(wrong)
	return t.pass(atOnce), t.pass(time.Hour)
}

func back(t *trial) string {
	if !t.Clocked {
		return unsteppable
	}
	did := t.stepBack(t.open())
	if t.repair != nil {
		did += "; with repair: " + t.stepBack(must(t.repair(t.clock)))
	}
	return did
}

func (t *trial) stepBack(s Scheduler) string {
	defer s.Stop()
	t.stepForward(s)
	s.Note()
	t.clock.Step(-wrong)
	silent := time.Duration(0)
	for t.pass(time.Minute) == 0 && silent < 24*time.Hour {
		silent += time.Minute
	}
	return say(s, "silent for %s", strings.TrimSuffix(silent.String(), "0s"))
}

// spec registers a schedule of so long an interval.
func spec(interval time.Duration) func(*trial) string {
	return func(t *trial) string {
		s := t.open()
		_, err := s.Every("job", interval, t.fire)
		s.Start()
		defer s.Stop()
		if err != nil {
			return "refused: " + err.Error()
		}
		const many = 1000
		if n := t.pass(10*time.Second + time.Millisecond); n < many {
			return say(s, "%d fired", n)
		}
		return say(s, "more than %d fired", many)
	}
}

func restart(t *trial) string {
	const lives = 3*24/4 + 1
	t.fires.Store(0)
	s := t.open()
	for life := range lives {
		if life > 0 && t.reopen != nil {
			s = must(t.reopen(t.clock, s))
		} else if life > 0 {
			s = t.open()
		}
		must(s.Every("job", 6*time.Hour, t.fire))
		s.Start()
		Pass(4*time.Hour - time.Minute)
		s.Stop()
		Pass(time.Minute)
	}
	return say(s, "%d fired", t.fires.Load())
}

func twoInstances(t *trial) string {
	first := t.open()
	second, err := t.open(), error(nil)
	if t.share != nil {
		second, err = t.share(t.clock, first)
	}
	must(second, err)
	for _, s := range []Scheduler{first, second} {
		must(s.Every("job", 10*time.Minute, t.fire))
		s.Start()
		defer s.Stop()
	}
	return say(first, "%d fired", t.pass(time.Hour+atOnce))
}

func removal(t *trial) string {
	s := t.open()
	defer s.Stop()
	var remove func() error
	var err error
	var ended atomic.Int64
	remove = must(s.Every("job", 10*time.Minute, func() {
		t.fire()
		err = remove()
		time.Sleep(time.Minute)
		ended.Add(1)
	}))
	s.Start()
	fired := t.pass(time.Hour + atOnce)
	must(0, err)
	return say(s, "%d fired, %d ended", fired, ended.Load())
}

// say is what a peer did, and what it told of it.
func say(s Scheduler, format string, values ...any) string {
	did := fmt.Sprintf(format, values...)
	if note := s.Note(); note != "" {
		did += ", " + note
	}
	return did
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
