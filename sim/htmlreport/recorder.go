package htmlreport

import (
	"time"

	"github.com/tickonce/tickonce/sim"
)

// noticeMS is for how long something has to go on to be told of.
const noticeMS = 1000

// Recorder keeps what the page of a run has to show of its events. It is for
// one run.
type Recorder struct {
	scenario  sim.Scenario
	start     time.Time
	processes []*process // that of the store comes last
	leads     []*lease   // of each process, the lease that it holds
	schedules map[string]*schedule
	jobs      jobs
	outcomes  outcomes
	faults    []extent
	causes    causes
	conflicts conflicts
	failures  []int // the entry of each
	last      int64 // instant
}

// extent is when a fault began and ended.
type extent struct {
	from, to int64
	struck   bool
}

// NewRecorder makes the recorder of a run of the scenario. A swarm must have
// been drawn before ([sim.Scenario.Draw]).
func NewRecorder(s sim.Scenario) *Recorder {
	start := s.Start
	if start.IsZero() {
		start = sim.DefaultStart
	}
	r := &Recorder{
		scenario: s, start: start, schedules: map[string]*schedule{},
		jobs: newJobs(s), outcomes: newOutcomes(s), faults: make([]extent, len(s.Faults)),
	}
	runners := max(s.Engine.Runners, 1)
	for i := range runners {
		name := "Process"
		if runners > 1 {
			name = "Process " + number(int64(i+1))
		}
		r.processes = append(r.processes, &process{Name: name, Runs: true})
	}
	r.processes = append(r.processes, &process{Name: "Store"})
	r.leads = make([]*lease, len(r.processes))
	for i, f := range s.Faults {
		r.faults[i] = extent{from: f.At.Milliseconds(), to: (f.At + f.For).Milliseconds()}
	}
	for _, q := range s.Schedules {
		r.schedules[q.Name] = &schedule{Name: q.Name}
	}
	r.causes, r.conflicts = newCauses(r), newConflicts(r)
	return r
}

// since is an instant of true time in milliseconds of the run.
func (r *Recorder) since(t time.Time) int64 { return t.Sub(r.start).Milliseconds() }

// lane is the index of a process; that of the store where there is none. A
// single process shares the store's clock, and its lane.
func (r *Recorder) lane(number int) int {
	switch {
	case number > 0:
		return number - 1
	case len(r.processes) == 2:
		return 0
	default:
		return len(r.processes) - 1
	}
}

// Tell is to be told of each event of the run, by [sim.Watch].
func (r *Recorder) Tell(e *sim.Event) {
	r.last = r.since(e.At)
	r.causes.note(e)
	r.conflicts.tell(e)
	boundary := int64(noBoundary)
	if !e.Boundary.IsZero() {
		boundary = r.since(e.Boundary)
	}
	r.jobs.tell(e, r.last, boundary)
	r.outcomes.tell(e, r.last, boundary, r.schedules[e.Schedule])
	switch e.Kind {
	case sim.EventFaultBegan:
		r.faults[e.Fault-1] = extent{from: r.last, to: r.last, struck: true}
	case sim.EventFaultEnded:
		r.faults[e.Fault-1].to = r.last
	case sim.EventProcessStarted, sim.EventProcessStopped, sim.EventProcessPaused, sim.EventClockTurned,
		sim.EventTickRefused, sim.EventRunnerEnded:
		r.tellOfProcess(e)
	case sim.EventLeaseGranted, sim.EventLeaseRenewed, sim.EventLeaseRefused, sim.EventLeaseReleased:
		r.tellOfLease(e)
	case sim.EventStoreOpened: // a lease is no part of what it opened with
		for i := range r.leads {
			r.endLease(i, "its holder was gone")
		}
	case sim.EventFired:
		r.fired(e)
	case sim.EventSkipped:
		r.skipped(e)
	case sim.EventHeld, sim.EventQueueFull:
		s, why := r.schedules[e.Schedule], "its row cannot be decided; it is looked at again after a minute"
		if e.Kind == sim.EventQueueFull {
			why = "its queue is full; what is due fires when there is room"
		}
		s.Holds = append(s.Holds, hold{r.last, why, r.causes.of(e)})
	case sim.EventTriggered, sim.EventPaused, sim.EventResumed, sim.EventBreakerOpened:
		s := r.schedules[e.Schedule]
		text, rule := r.words(e)
		s.Turns = append(s.Turns, signal{r.last, turnKinds[e.Kind], text, rule, r.causes.of(e)})
	case sim.EventViolated:
		r.failures = append(r.failures, r.causes.of(e))
	}
}

// turnKinds are the marks of what happens to a schedule beside its fires.
var turnKinds = map[sim.EventKind]string{
	sim.EventTriggered: "triggered", sim.EventPaused: "paused", sim.EventResumed: "resumed", sim.EventBreakerOpened: "breaker",
}

func (r *Recorder) fired(e *sim.Event) {
	s, boundary := r.schedules[e.Schedule], r.since(e.Boundary)
	waited := r.last - boundary
	s.Longest = max(s.Longest, waited)
	kind := ""
	switch e.Fate() {
	case sim.FiredAgain:
		kind = "again"
		s.FiredAgain++
	case sim.FiredEarly:
		kind = "early"
		s.Early++
	case sim.CaughtUp:
		kind = "late"
		s.Late++
	default:
		s.OnTime++
		s.addOnTime(boundary, waited)
		return
	}
	if i := len(s.Fires) - 1; i >= 0 && s.Fires[i].goesOn(kind, boundary, r.last) {
		return
	}
	lane := r.lane(e.Process)
	f := fire{first: boundary, count: 1, at: r.last, kind: kind, process: lane, cause: r.causes.of(e)}
	if l := r.leads[lane]; l != nil {
		f.term = l.Term
	}
	s.Fires = append(s.Fires, f)
}

// goesOn adds a boundary to those that fired before it, if it is the next on
// their grid and fired with them, or just as late.
func (f *fire) goesOn(kind string, boundary, at int64) bool {
	if f.kind != kind || boundary <= f.first || f.count > 1 && boundary != f.last()+f.step {
		return false
	}
	together, alike := at == f.at, at-boundary == f.at-f.last()
	switch {
	case f.count == 1 && together, f.count > 1 && !f.spread && together, f.spread && alike:
	case f.count == 1 && alike:
		f.spread, f.since = true, f.at
	default:
		return false
	}
	f.step = (boundary - f.first) / f.count
	f.count++
	f.at = at
	return true
}

func (s *schedule) addOnTime(boundary, waited int64) {
	if i := len(s.Runs) - 1; i >= 0 {
		q := &s.Runs[i]
		if q[2] == 1 && boundary > q[0] || q[2] > 1 && boundary == q[0]+q[1]*q[2] {
			q[1] = (boundary - q[0]) / q[2]
			q[2]++
			q[3], q[4] = min(q[3], waited), max(q[4], waited)
			return
		}
	}
	s.Runs = append(s.Runs, onTime{boundary, 0, 1, waited, waited})
}

func (r *Recorder) skipped(e *sim.Event) {
	s, first := r.schedules[e.Schedule], r.since(e.Boundary)
	q := skip{first: first, count: e.Count, at: r.last, reason: e.Reason, cause: r.causes.of(e)}
	if e.Count > 1 {
		q.step = (r.since(e.Last) - first) / (e.Count - 1)
	}
	s.Skipped += e.Count
	s.Skips = append(s.Skips, q)
}

func (r *Recorder) tellOfProcess(e *sim.Event) {
	lane := r.lane(e.Process)
	p := r.processes[lane]
	signalled := func(kind string) {
		text, rule := r.words(e)
		p.Marks = append(p.Marks, signal{r.last, kind, text, rule, r.causes.of(e)})
	}
	switch e.Kind {
	case sim.EventProcessStarted:
		if n := len(p.Away) - 1; n >= 0 && p.Away[n].To < 0 {
			p.Away[n].To = r.last
			signalled("start")
		}
	case sim.EventProcessStopped:
		p.Away = append(p.Away, away{From: r.last, To: -1, Kind: e.Reason, Cause: r.causes.of(e)})
		if e.Reason == "crash" {
			signalled("crash")
		}
	case sim.EventProcessPaused:
		p.Away = append(p.Away, away{From: r.last, To: r.since(e.Last), Kind: "pause", After: "it goes on with what it knew", Cause: r.causes.of(e)})
	case sim.EventClockTurned:
		p.Clock = append(p.Clock, rate{r.last, e.By.Milliseconds(), e.Drift})
		if n := len(p.Marks); n == 0 || p.Marks[n-1].Kind != "clock" || p.Marks[n-1].T < r.last-2*noticeMS {
			signalled("clock")
		}
	case sim.EventTickRefused:
		signalled("refused")
	case sim.EventRunnerEnded:
		signalled("ended")
	}
}

// tellOfLease keeps from when to when each lease was the live one.
func (r *Recorder) tellOfLease(e *sim.Event) {
	lane := r.lane(e.Process)
	until := r.last + e.Until.Sub(e.Shown).Milliseconds()
	switch e.Kind {
	case sim.EventLeaseGranted:
		if l := r.leads[lane]; l != nil && l.Term == e.Term { // it asked again, since the answer was lost
			l.To = until
			return
		}
		for i := range r.leads {
			r.endLease(i, "ran out unrenewed")
		}
		p := r.processes[lane]
		p.Leases = append(p.Leases, lease{Term: e.Term, From: r.last, To: until, Cause: r.causes.of(e)})
		r.leads[lane] = &p.Leases[len(p.Leases)-1]
	case sim.EventLeaseRenewed:
		if l := r.leads[lane]; l != nil {
			l.To = until
		}
	case sim.EventLeaseReleased:
		r.endLease(lane, "given back in good order")
	case sim.EventLeaseRefused:
		if e.Op == "renew" {
			r.endLease(lane, "was no longer live when it was to be renewed")
		}
	}
}

func (r *Recorder) endLease(lane int, how string) {
	if l := r.leads[lane]; l != nil {
		l.To, l.End = min(l.To, r.last), how
		r.leads[lane] = nil
	}
}

// bound notes which processes a fault hampered.
func (r *Recorder) bound(fault int, end int64) {
	f := &r.scenario.Faults[fault]
	kind := map[sim.FaultKind]string{sim.FaultThrottle: "throttled", sim.FaultSwizzle: "cut off"}[f.Kind]
	if kind == "" || !r.faults[fault].struck {
		return
	}
	for i, p := range r.processes {
		if p.Runs && (f.Runner == 0 || f.Runner == i+1) {
			p.Bounds = append(p.Bounds, bound{r.faults[fault].from, min(r.faults[fault].to, end), kind, fault})
		}
	}
}

// close ends what goes on at the end of the run.
func (r *Recorder) close(end int64) {
	for i := range r.faults {
		r.bound(i, end)
	}
	for lane, p := range r.processes {
		p.Leases, p.Clock, p.Away, p.Marks = notNil(p.Leases), notNil(p.Clock), notNil(p.Away), notNil(p.Marks)
		p.Bounds = notNil(p.Bounds)
		if l := r.leads[lane]; l != nil {
			l.To, l.End = min(l.To, end), "the run ended"
			if l.To < end {
				l.End = "ran out unrenewed"
			}
		}
		for i := range p.Away {
			if a := &p.Away[i]; a.To < 0 || a.To > end {
				a.To = end
			}
		}
	}
}
