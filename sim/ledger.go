package sim

import (
	"cmp"
	"slices"
	"sort"
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

	trail   []trace  // of each event, by its ID
	latest  int      // the fault that began or ended last
	turned  int      // the fault of the last turn of a clock
	clock   timeline // of the store
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
	until time.Time // when it was over, and boundaries came again; zero: never
	kind  EventKind
	fault int

	process int
	page    *page // nil: all
	anew    bool  // and boundaries are counted anew from then on, which is never over
}

// page is what became of the boundaries of one schedule. A run of them that are
// alike is one entry, in the order of happening.
type page struct {
	schedule *Schedule
	runs     []fateRun
	again    []fateRun // fires of boundaries that had fired
	allowed  trace     // by which boundaries may fire again
	resumed  blow      // the last time
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
		scenario: &s, pages: make([]page, len(s.Schedules)), named: map[string]int{}, clock: timeline{{from: store.Instant(s.start().UnixMilli())}},
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
	l.trail = append(l.trail, trace{int32(fault), e.Kind})
	p := l.page(e.Schedule)
	hit := blow{at: e.At, kind: e.Kind, fault: fault, process: e.Process}
	switch e.Kind {
	case EventFired:
		l.fired(p, e, fault)
		l.over(e.At, p, 0, EventHeld, EventQueueFull, EventPaused, EventBreakerOpened, EventRemoved)
	case EventSkipped:
		l.skipped(p, e, fault)
		l.over(e.At, p, 0, EventHeld, EventQueueFull, EventPaused, EventBreakerOpened, EventRemoved)
	case EventTickWritten: // so somebody runs the schedules
		l.over(e.At, nil, 0, EventProcessStopped, EventProcessPaused, EventRunnerEnded, EventCallLost, EventCallDelayed)
	case EventStoreOpened:
		for i := range l.pages {
			l.pages[i].allowed = trace{int32(fault), e.Kind}
		}
		if fault != 0 && e.Reason != "journal" { // with which nothing was lost
			hit.anew = true
			l.blows = append(l.blows, hit)
		}
	case EventFaultBegan, EventFaultEnded:
		l.latest = fault
	case EventClockTurned:
		l.turned = fault
		if e.Process == 0 || l.scenario.Engine.Runners <= 1 { // which has the store's
			at := store.Instant(e.At.UnixMilli())
			l.clock.turn(at, e.By.Milliseconds()-int64(l.clock.at(at)-at), e.Drift-l.clock.last().drift)
		}
	case EventProcessStopped:
		l.stopped[e.Process] = fault
		l.blows = append(l.blows, hit)
	case EventProcessStarted:
		l.over(e.At, nil, e.Process, EventProcessStopped, EventRunnerEnded)
	case EventProcessPaused:
		if e.Last.Before(l.scenario.start().Add(l.scenario.For)) {
			hit.until = e.Last
		}
		l.blows = append(l.blows, hit)
	case EventRunnerEnded:
		l.over(e.At, nil, e.Process, EventCallLost, EventCallDelayed)
		l.blows = append(l.blows, hit)
	case EventCallLost, EventCallDelayed:
		switch last := l.blows[max(len(l.blows)-1, 0):]; {
		case !slices.Contains(runnerOps, e.Op):
		case len(last) > 0 && last[0].kind == e.Kind && last[0].fault == fault && last[0].until.IsZero(): // a burst is one blow
		default:
			l.blows = append(l.blows, hit)
		}
	case EventHeld:
		p.tally.Held++
		hit.page = p
		l.blows = append(l.blows, hit)
	case EventPaused, EventBreakerOpened, EventRemoved, EventQueueFull:
		hit.page = p
		l.blows = append(l.blows, hit)
	case EventResumed:
		l.over(e.At, p, 0, EventPaused, EventBreakerOpened)
		p.resumed = hit
	case EventTampered, EventRegistered, EventRepaired:
		if e.Kind == EventRepaired {
			p.allowed = trace{int32(fault), e.Kind}
		}
		l.over(e.At, p, 0, EventRemoved)
		if fault != 0 { // a process that starts registers what is there already
			hit.page, hit.anew = p, true
			l.blows = append(l.blows, hit)
		}
	case EventJobRetried, EventClaimed, EventJobDied:
		l.tally(p, e)
	}
	if int(e.Kind) < len(telling) && telling[e.Kind] {
		told := Effect{
			Fault: fault, Kind: e.Kind, Process: e.Process, Schedule: e.Schedule, Op: e.Op, Reason: e.Reason,
			Delivery: e.Origin != 0,
			Count:    1, From: e.At, To: e.At, MinBy: e.By, MaxBy: e.By, Event: e.ID, Note: whyTold(e),
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

// tally counts what became of a job, or of the delivery of its result.
func (l *ledger) tally(p *page, e *Event) {
	switch {
	case e.Origin != 0:
		if e.Kind == EventJobDied {
			p.tally.Undelivered++
		}
	case e.Kind == EventJobRetried:
		p.tally.Retried++
		l.retried[e.Job] = true
		return
	case e.Kind == EventJobDied:
		p.tally.Died++
	case e.Attempt > 1 && !l.retried[e.Job]:
		p.tally.Rerun++
	}
	delete(l.retried, e.Job)
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
	switch e.Kind {
	case EventRegistered, EventPaused, EventResumed, EventRemoved, EventTampered: // whatever was done to the schedule before
		return int(cmp.Or(led.fault, kept.fault))
	}
	if kept.kind == EventRegistered || kept.kind == EventStoreOpened { // which are long ago
		return int(cmp.Or(led.fault, kept.fault))
	}
	return int(cmp.Or(kept.fault, led.fault))
}

// onTimeWithin is how late a boundary may fire in true time that is told to be on
// time: the slice in which a sleeping runner notices that its clock was turned.
const onTimeWithin = sliceMS * time.Millisecond

// Fate is what became of the boundary of an [EventFired].
func (e *Event) Fate() Fate {
	fate, _ := fateOf(e)
	return fate
}

// fateOf is what became of a boundary that fired, and whether it was so since the
// store's clock was wrong: of a late one, whether it was on time by that clock.
func fateOf(e *Event) (fate Fate, byClock bool) {
	const within = onTimeWithin
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
// fired what was due by a clock that was ahead and was turned since.
func (l *ledger) silent(p *page, now time.Time) {
	silence, interval := now.Sub(p.firedAt), time.Duration(intervalOf(p.schedule.Spec))*time.Millisecond
	if p.early == 0 || silence <= 2*interval || !timeOf(l.clock.last().from).After(p.firedAt) {
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

// runnerOps are the calls without which nothing fires.
var runnerOps = []string{opWords[OpAcquire], opWords[OpRenew], opWords[OpDue], opWords[OpAdvance]}

// over notes that blows of the kinds are over: those to one schedule, or to all,
// and to one process or, without one, to each.
func (l *ledger) over(at time.Time, p *page, process int, kinds ...EventKind) {
	for i := range l.blows {
		b := &l.blows[i]
		if b.page == p && (process == 0 || b.process == process) && b.until.IsZero() && slices.Contains(kinds, b.kind) {
			b.until = at
		}
	}
}

// blowOf is what kept the boundary from coming, if anything did. Of a schedule that
// goes on it is what has its boundaries counted anew, or had taken it away. What
// was over before the end made the boundary late, unless something else had begun
// by then that did more.
func (l *ledger) blowOf(p *page, boundary time.Time, goesOn bool) (found blow) {
	due := timeOf(l.clock.reached(store.Instant(boundary.UnixMilli())))
	var away time.Time // until when something kept it from coming that was over then
	for _, b := range l.blows {
		isOver, drops := !b.until.IsZero(), b.kind == EventPaused || b.kind == EventBreakerOpened || b.kind == EventRemoved
		switch {
		case b.page != nil && b.page != p || goesOn && !b.anew && !isOver:
		case b.at.After(due) && b.at.After(away) && !(b.anew && found.kind == EventProcessStopped):
		case isOver && !b.until.After(due):
		case isOver && !drops:
			away = later(away, b.until)
		case b.at.After(due):
			return b
		default:
			found = b
		}
	}
	return found
}

// parted cuts a run where a blow to the schedule began or was over, and hands over
// the parts.
func (l *ledger) parted(p *page, r fateRun, part func(fateRun)) {
	for r.count > 1 {
		due, edge := l.clock.reached(r.first), store.MaxInstant
		for _, b := range l.blows {
			for _, at := range []time.Time{b.at, b.until} {
				if at := store.Instant(at.UnixMilli()); (b.page == nil || b.page == p) && at > due {
					edge = min(edge, at)
				}
			}
		}
		n := int64(sort.Search(int(r.count), func(i int) bool { return l.clock.reached(r.at(int64(i))) >= edge }))
		if n == r.count {
			break
		}
		head := r
		head.count = n
		part(head)
		r.first, r.metAt, r.count = r.at(n), r.firedAt(n), r.count-n
	}
	part(r)
}

// isAhead reports whether the store's clock had not come to the boundary by the end
// of the run.
func (l *ledger) isAhead(boundary time.Time) bool {
	end := l.scenario.start().Add(l.result.Simulated)
	return timeOf(l.clock.reached(store.Instant(boundary.UnixMilli()))).After(end)
}

// telling are the events, others than those of boundaries, that tell what a fault
// led to.
var telling = [...]bool{
	EventStoreOpened: true, EventProcessStarted: true, EventProcessStopped: true, EventProcessPaused: true, EventClockTurned: true,
	EventLeaseGranted: true, EventRunnerEnded: true, EventCallLost: true, EventCallDelayed: true, EventTickRefused: true,
	EventHeld: true, EventStale: true, EventQueueFull: true, EventRepaired: true, EventPaused: true, EventResumed: true,
	EventBreakerOpened: true, EventRemoved: true, EventTampered: true, EventHandlerCut: true, EventJobRetried: true, EventJobDied: true,
	EventClaimLost: true, EventViolated: true,
}
