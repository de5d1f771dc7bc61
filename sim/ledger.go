package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/tickonce/tickonce/store"
)

// ledger is what became of every boundary of a run, and by which fault.
type ledger struct {
	scenario *Scenario
	result   *Result
	pages    []page // of the schedules, in the scenario's order
	nobody   page   // of the jobs of no schedule
	named    map[string]int

	events []Effect // others than those of boundaries
	at     map[effectKey]int

	trail   []trace       // of each event, by its ID
	latest  int           // the fault that began or ended last
	turned  int           // the fault of the last turn of a clock
	behind  time.Duration // the store's clock, when it was read last
	stopped [MaxRunners + 1]int
	blows   []blow
	retried map[int64]bool // the jobs that wait for another attempt
}

// trace is what is kept of an event: the fault that its causes lead to, from 1, or
// 0 for none.
type trace struct {
	fault int32
	kind  EventKind
}

// blow is an event after which boundaries may never come: of one schedule, or of
// all of them.
type blow struct {
	at    time.Time
	kind  EventKind
	fault int
	page  *page // nil: all
	anew  bool  // and boundaries are counted anew from then on
}

// page is what became of the boundaries of one schedule. A run of them that are
// alike is one entry, in the order of happening.
type page struct {
	schedule *Schedule
	runs     []fateRun
	again    []fateRun // fires of boundaries that had fired
	allowed  trace     // by which boundaries may fire again
	firedAt  time.Time // the last one, in true time
	early    int       // the fault by which that was early; 0: it was not
	tally    Tally
}

// fateRun are boundaries that lie next to each other on a grid and had the same
// fate in one tick, or equally late.
type fateRun struct {
	first    store.Instant
	every    int64 // 0 of a single one
	count    int64
	fate     Fate
	reason   string
	fault    int
	byClock  bool
	event    int64         // of the first
	tick     int64         // in which they were all met; 0: in several
	lastTick int64         // the latest of them
	metAt    store.Instant // the first; true time
	late     int64         // of the first, as metAt − boundary, in ms
}

func (r *fateRun) at(i int64) store.Instant { return r.first.Add(i * r.every) }

// atOnce reports whether one tick met them all.
func (r *fateRun) atOnce() bool { return r.tick != 0 }

// firedAt is the true time at which the i-th was met.
func (r *fateRun) firedAt(i int64) store.Instant {
	if r.atOnce() {
		return r.metAt
	}
	return r.metAt.Add(i * r.every)
}

// by is how late the i-th was met, in true time.
func (r *fateRun) by(i int64) time.Duration {
	return time.Duration(r.firedAt(i)-r.at(i)) * time.Millisecond
}

// like reports whether both had the same fate, at the same time.
func (r *fateRun) like(o *fateRun) bool {
	if r.fate != o.fate || r.reason != o.reason {
		return false
	}
	return r.fate == Fired || r.fate == Skipped || r.by(0) == o.by(0) && r.by(r.count-1) == o.by(o.count-1)
}

// extend adds a run behind r, if it goes on with it.
func (r *fateRun) extend(o *fateRun) bool {
	every := int64(o.first - r.at(r.count-1))
	switch {
	case every <= 0 || r.count > 1 && every != r.every || o.count > 1 && every != o.every:
		return false
	case r.fate != o.fate || r.reason != o.reason || r.fault != o.fault || r.byClock != o.byClock:
		return false
	case r.fate != Fired && r.tick != o.tick && (r.count > 1 && r.atOnce() || r.late != o.late):
		return false
	case r.tick != o.tick:
		r.tick = 0
	}
	r.every, r.lastTick = every, o.tick
	r.count += o.count
	return true
}

// cursor goes through runs in the order of the boundaries.
type cursor struct {
	runs  []fateRun
	taken int64 // of the first
}

func (c *cursor) more() bool          { return len(c.runs) > 0 }
func (c *cursor) next() store.Instant { return c.runs[0].at(c.taken) }
func (c *cursor) left() int64         { return c.runs[0].count - c.taken }

// before is how many of the run at hand come before the next of the other.
func (c *cursor) before(o *cursor) int64 {
	r := &c.runs[0]
	if !o.more() || r.every == 0 {
		return c.left()
	}
	return min(c.left(), (int64(o.next()-c.next())+r.every-1)/r.every)
}

// beside is how many of both runs at hand are the same boundaries.
func (c *cursor) beside(o *cursor) int64 {
	n := min(c.left(), o.left())
	if c.runs[0].every != o.runs[0].every {
		return min(n, 1)
	}
	return n
}

// take takes the next n of the run at hand.
func (c *cursor) take(n int64) fateRun {
	r := c.runs[0]
	r.metAt, r.first = r.firedAt(c.taken), r.at(c.taken)
	r.count = n
	if c.taken += n; c.taken == c.runs[0].count {
		c.runs, c.taken = c.runs[1:], 0
	}
	return r
}

func newLedger(s Scenario) (*ledger, error) {
	if s.Swarm != (Swarm{}) {
		drawn, err := s.Draw(s.Engine.Seed)
		if err != nil {
			return nil, err
		}
		s = drawn
	}
	l := &ledger{
		scenario: &s, pages: make([]page, len(s.Schedules)), named: map[string]int{},
		at: map[effectKey]int{}, trail: make([]trace, 1), retried: map[int64]bool{},
	}
	for i := range s.Schedules {
		l.pages[i].schedule = &s.Schedules[i]
		l.named[s.Schedules[i].Name] = i
	}
	var err error
	if l.result, err = Watch(s, l.enter); err != nil {
		return nil, err
	}
	for i := range l.pages {
		l.silent(&l.pages[i], s.start().Add(l.result.Simulated))
	}
	return l, nil
}

// page is that of a schedule; that of "" is nobody's.
func (l *ledger) page(schedule string) *page {
	if i, ok := l.named[schedule]; ok {
		return &l.pages[i]
	}
	return &l.nobody
}

// enter enters an event.
func (l *ledger) enter(e *Event) {
	fault := l.faultOf(e)
	l.behind = e.At.Sub(e.Shown)
	l.trail = append(l.trail, trace{int32(fault), e.Kind})
	p := l.page(e.Schedule)
	switch e.Kind {
	case EventFired:
		l.fired(p, e, fault)
	case EventSkipped:
		l.skipped(p, e, fault)
	case EventStoreOpened:
		for i := range l.pages {
			l.pages[i].allowed = trace{int32(fault), e.Kind}
		}
		switch {
		case e.Reason == "journal": // nothing was lost, and the processes are back
			l.blows = slices.DeleteFunc(l.blows, func(b blow) bool { return b.kind == EventProcessStopped })
		case fault != 0:
			l.blows = append(l.blows, blow{at: e.At, kind: e.Kind, fault: fault, anew: true})
		}
	case EventFaultBegan, EventFaultEnded:
		l.latest = fault
	case EventClockTurned:
		l.turned = fault
		l.blows = append(l.blows, blow{at: e.At, kind: e.Kind, fault: fault})
	case EventProcessStopped:
		l.stopped[e.Process] = fault
		l.blows = append(l.blows, blow{at: e.At, kind: e.Kind, fault: fault})
	case EventRunnerEnded, EventProcessPaused:
		l.blows = append(l.blows, blow{at: e.At, kind: e.Kind, fault: fault})
	case EventHeld:
		p.tally.Held++
		l.blows = append(l.blows, blow{at: e.At, kind: e.Kind, fault: fault, page: p})
	case EventPaused, EventRemoved, EventQueueFull:
		l.blows = append(l.blows, blow{at: e.At, kind: e.Kind, fault: fault, page: p})
	case EventTampered, EventRegistered, EventRepaired:
		if e.Kind == EventRepaired {
			p.allowed = trace{int32(fault), e.Kind}
		}
		if fault != 0 { // a process that starts registers what is there already
			l.blows = append(l.blows, blow{at: e.At, kind: e.Kind, fault: fault, page: p, anew: true})
		}
	case EventJobRetried:
		p.tally.Retried++
		l.retried[e.Job] = true
	case EventClaimed:
		if e.Attempt > 1 && !l.retried[e.Job] {
			p.tally.Rerun++
		}
		delete(l.retried, e.Job)
	case EventJobDied:
		p.tally.Died++
		delete(l.retried, e.Job)
	}
	if int(e.Kind) < len(telling) && telling[e.Kind] {
		told := Effect{
			Fault: fault, Kind: e.Kind, Process: e.Process, Schedule: e.Schedule, Op: e.Op, Reason: e.Reason,
			Count: 1, From: e.At, To: e.At, MinBy: e.By, MaxBy: e.By, Event: e.ID, Note: whyEvent(e.Kind),
		}
		switch e.Kind {
		case EventClockTurned:
			told.Reason = offBy(e.By)
		case EventRunnerEnded:
			told.Reason = ""
		}
		merge(&l.events, l.at, told)
	}
}

// faultOf is the fault that led to the event.
func (l *ledger) faultOf(e *Event) int {
	switch {
	case e.Kind == EventHandlerCut && e.Reason == "stop":
		return l.stopped[e.Process]
	case e.Fault != 0:
		return e.Fault
	}
	kept, led := l.trail[e.Since], l.trail[e.Cause]
	if kept.kind == EventRegistered || kept.kind == EventStoreOpened { // which are long ago
		return int(cmp.Or(led.fault, kept.fault))
	}
	return int(cmp.Or(kept.fault, led.fault))
}

// OnTimeWithin is how late a boundary may fire in true time that is told to be on
// time: the slice in which a sleeping runner notices that its clock was turned.
const OnTimeWithin = sliceMS * time.Millisecond

// fateOf is what became of a boundary that fired, and whether it was so since the
// store's clock was wrong: of a late one, whether it was on time by that clock.
func fateOf(e *Event) (fate Fate, byClock bool) {
	const within = OnTimeWithin
	late := e.At.Sub(e.Boundary)
	byClock = e.Shown.Sub(e.At).Abs() > within
	switch {
	case e.Again:
		return FiredAgain, byClock
	case late > within:
		return CaughtUp, e.Shown.Sub(e.Boundary) <= within
	case late < -within:
		return FiredEarly, byClock
	default:
		return Fired, false
	}
}

// fired enters a boundary that fired.
func (l *ledger) fired(p *page, e *Event, fault int) {
	r := fateRun{
		first: store.Instant(e.Boundary.UnixMilli()), count: 1, fault: fault, event: e.ID,
		tick: e.Cause, metAt: store.Instant(e.At.UnixMilli()), reason: whyKept(l.trail[e.Since].kind),
	}
	r.late = int64(r.metAt - r.first)
	r.fate, r.byClock = fateOf(e)
	if n := len(p.runs); n > 0 && e.Since == 0 && p.runs[n-1].lastTick == r.tick { // in which its first one has it
		r.reason, r.fault = p.runs[n-1].reason, p.runs[n-1].fault
	}
	if r.byClock && (r.fate != FiredAgain || r.fault == 0) {
		r.fault = cmp.Or(l.turned, r.fault)
	}
	if r.fault == 0 {
		r.fault = l.latest
	}
	l.silent(p, e.At)
	p.firedAt, p.early = e.At, 0
	t, by := &p.tally, time.Duration(r.late)*time.Millisecond
	switch r.fate {
	case FiredAgain:
		r.reason, r.fault = p.allowed.kind.String(), int(p.allowed.fault)
		t.Again++
		p.again = enter(p.again, r)
		return
	case CaughtUp:
		t.Late++
		t.MaxLate = max(t.MaxLate, by)
	case FiredEarly:
		p.early = r.fault
		t.Early++
		t.MaxEarly = max(t.MaxEarly, -by)
	default:
		r = fateRun{first: r.first, count: 1, metAt: r.first, event: r.event}
		t.OnTime++
	}
	p.runs = enter(p.runs, r)
}

// silent enters that the schedule did not fire for long, up to now, since it had
// fired what was due by a clock that was ahead.
func (l *ledger) silent(p *page, now time.Time) {
	silence, interval := now.Sub(p.firedAt), time.Duration(intervalOf(p.schedule.Spec))*time.Millisecond
	if p.early == 0 || silence <= 2*interval {
		return
	}
	merge(&l.events, l.at, Effect{
		Fault: p.early, Kind: EventClockTurned, Schedule: p.schedule.Name, Count: 1,
		From: p.firedAt, To: now, MinBy: silence, MaxBy: silence, Note: Note{
			"T11",
			"what a clock that was ahead has fired stays so, and the schedule waits until the clock comes to the first boundary that has not fired; clock-repair=rearm does not wait",
		},
	})
}

// skipped enters boundaries that were skipped.
func (l *ledger) skipped(p *page, e *Event, fault int) {
	r := fateRun{
		first: store.Instant(e.Boundary.UnixMilli()), count: e.Count, fate: Skipped, reason: e.Reason,
		fault: fault, event: e.ID, tick: e.Cause, metAt: store.Instant(e.At.UnixMilli()),
	}
	if r.count > 1 {
		r.every = (e.Last.UnixMilli() - int64(r.first)) / (r.count - 1)
	}
	if r.fault == 0 {
		r.fault = l.latest
	}
	p.tally.Skipped += r.count
	p.runs = enter(p.runs, r)
}

// enter adds a run to those of a schedule.
func enter(runs []fateRun, r fateRun) []fateRun {
	r.lastTick = r.tick
	if n := len(runs); n > 0 && runs[n-1].extend(&r) {
		return runs
	}
	return append(runs, r)
}

// blowOf is what may have kept the boundary from coming, if anything did. Of a
// schedule that goes on, or began to, it is what has its boundaries counted anew.
// The processes that are away come back with the store.
func (l *ledger) blowOf(p *page, at time.Time, goesOn bool) (found blow) {
	for _, b := range l.blows {
		switch {
		case b.page != nil && b.page != p || goesOn && !b.anew:
		case !b.at.After(at):
			found = b
		case found.kind == EventProcessStopped && b.kind == EventStoreOpened:
			return b
		}
	}
	return found
}

// isAhead reports whether the boundary is still to come at the end of the run, by
// a store's clock that is behind.
func (l *ledger) isAhead(boundary time.Time) bool {
	end := l.scenario.start().Add(l.result.Simulated)
	return l.behind > OnTimeWithin && boundary.After(end.Add(-l.behind))
}

// telling are the events, others than those of boundaries, that tell what a fault
// led to.
var telling = [...]bool{
	EventStoreOpened: true, EventProcessStarted: true, EventProcessStopped: true, EventProcessPaused: true, EventClockTurned: true,
	EventLeaseGranted: true, EventRunnerEnded: true, EventCallLost: true, EventCallDelayed: true, EventTickRefused: true,
	EventHeld: true, EventStale: true, EventQueueFull: true, EventRepaired: true, EventPaused: true, EventResumed: true,
	EventRemoved: true, EventTampered: true, EventHandlerCut: true, EventJobRetried: true, EventJobDied: true,
	EventClaimLost: true, EventViolated: true,
}
