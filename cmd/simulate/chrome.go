package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tickonce/tickonce/sim"
)

// chromeEvent is an event of Chrome's trace format, which Perfetto reads, too.
type chromeEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Ph    string         `json:"ph"`
	TS    int64          `json:"ts"` // in µs from the start, true time
	Dur   *int64         `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	ID    int64          `json:"id,omitempty"`
	Scope string         `json:"s,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// The processes of a timeline; those of the scenario come behind.
const (
	chromeFaults = iota + 1
	chromeStore
	chromeSchedules
	chromeOutboxes
	chromeProcess
)

// The threads of a process.
const (
	chromeLead = iota + 1
	chromeAway
	chromeWorkers
)

// chrome makes a timeline of the events of a run: faults, leases, absences and
// jobs as slices, fires, skips and ends of deliveries as instants, the clocks' offsets and the queues'
// depths as counters, and what led to what as flows. Its events are in the order
// of time.
type chrome struct {
	scenario *sim.Scenario
	events   []chromeEvent
	threads  map[[2]int]string
	open     map[[2]int]int        // the slice that goes on, by thread
	places   map[int64]chromeEvent // where an event is that others follow, by its ID
	until    map[int]int64         // when the lease of a process lapses
	flows    int64
	tracks   map[string]int // of schedules
	outboxes map[string]int
	workers  map[string]int // of a process
	live     map[int64]string
	depth    map[string]int64
}

func newChrome(s *sim.Scenario) *chrome {
	c := &chrome{
		outboxes: map[string]int{}, scenario: s, threads: map[[2]int]string{}, open: map[[2]int]int{}, places: map[int64]chromeEvent{},
		until: map[int]int64{}, tracks: map[string]int{}, workers: map[string]int{}, live: map[int64]string{}, depth: map[string]int64{},
	}
	c.thread(chromeStore, chromeLead, "operator")
	for i := range s.Faults {
		c.thread(chromeFaults, i+1, fmt.Sprintf("fault %d: %s", i+1, s.Faults[i].Kind))
	}
	for i := range s.Schedules {
		c.tracks[s.Schedules[i].Name] = i + 1
		c.thread(chromeSchedules, i+1, s.Schedules[i].Name)
	}
	for i := range s.Outboxes {
		c.outboxes[s.Outboxes[i].Name] = i + 1
		c.thread(chromeOutboxes, i+1, s.Outboxes[i].Name)
	}
	for i := range max(s.Engine.Runners, 1) {
		c.thread(chromeProcess+i, chromeLead, "leads")
		c.thread(chromeProcess+i, chromeAway, "away")
	}
	return c
}

func (c *chrome) thread(pid, tid int, name string) { c.threads[[2]int{pid, tid}] = printable(name) }

func (c *chrome) ts(e *sim.Event) int64 { return e.At.Sub(startOf(c.scenario)).Microseconds() }

// add adds an event of the timeline.
func (c *chrome) add(e *sim.Event, ph string, pid, tid int, name string) *chromeEvent {
	o := chromeEvent{Name: printable(name), Cat: e.Kind.String(), Ph: ph, TS: c.ts(e), PID: pid, TID: tid}
	switch ph {
	case "i":
		o.Scope = "t"
	case "X":
		c.end(e, pid, tid)
		c.open[[2]int{pid, tid}] = len(c.events)
		o.Dur = new(int64)
	}
	if ph != "C" {
		o.Args = map[string]any{"event": e.ID, "text": printable(e.Text())}
	}
	c.events = append(c.events, o)
	return &c.events[len(c.events)-1]
}

// end ends the slice that goes on in the thread, if one does.
func (c *chrome) end(e *sim.Event, pid, tid int) {
	c.endAt(c.ts(e), [2]int{pid, tid})
}

// endAt ends the slice that goes on in the thread; a lease not later than it
// lapses, an absence of a microsecond at least.
func (c *chrome) endAt(ts int64, thread [2]int) {
	at, ok := c.open[thread]
	if !ok {
		return
	}
	if until, ok := c.until[thread[0]]; ok && thread[0] >= chromeProcess && thread[1] == chromeLead {
		ts = min(ts, until)
	}
	if thread[1] == chromeAway { // where flows begin, for which a slice of no length has no place
		ts = max(ts, c.events[at].TS+1)
	}
	*c.events[at].Dur = ts - c.events[at].TS
	delete(c.open, thread)
}

// follows draws a flow from the place of the event's cause to what is added next
// in the thread.
func (c *chrome) follows(e *sim.Event, pid, tid int) {
	from, ok := c.places[max(e.Cause, 0)]
	if kept, also := c.places[e.Since]; also && e.Since > 0 {
		from, ok = kept, true
	}
	if !ok {
		return
	}
	c.flows++
	from.Name, from.Cat, from.Ph, from.ID = "leads to", "cause", "s", c.flows
	c.events = append(c.events, from)
	c.events = append(c.events, chromeEvent{Name: from.Name, Cat: from.Cat, Ph: "f", TS: c.ts(e), PID: pid, TID: tid, ID: c.flows})
}

// place notes where the event is: within a slice that begins then, or goes on.
func (c *chrome) place(e *sim.Event, pid, tid int) {
	c.places[e.ID] = chromeEvent{TS: c.ts(e), PID: pid, TID: tid}
}

// inherit has what follows an event that is in no slice follow its cause.
func (c *chrome) inherit(e *sim.Event) {
	if from, ok := c.places[e.Cause]; ok {
		c.places[e.ID] = from
	}
}

// placeEnd notes where the event is that ends the slice of the thread: within it.
func (c *chrome) placeEnd(e *sim.Event, pid, tid int) {
	if at, ok := c.open[[2]int{pid, tid}]; ok {
		c.places[e.ID] = chromeEvent{TS: max(c.ts(e)-1, c.events[at].TS), PID: pid, TID: tid}
		c.end(e, pid, tid)
	}
}

func (c *chrome) counter(e *sim.Event, pid int, name string, value int64) {
	c.add(e, "C", pid, 0, name).Args = map[string]any{"value": value}
}

func (c *chrome) tell(e *sim.Event) {
	pid := chromeStore
	if e.Process > 0 {
		pid = chromeProcess + e.Process - 1
	}
	switch e.Kind {
	case sim.EventFaultBegan:
		c.add(e, "X", chromeFaults, e.Fault, c.scenario.Faults[e.Fault-1].String())
		c.place(e, chromeFaults, e.Fault)
		if c.scenario.Faults[e.Fault-1].For == 0 { // and over at once
			c.endAt(c.ts(e)+1, [2]int{chromeFaults, e.Fault})
		}
	case sim.EventFaultEnded:
		c.placeEnd(e, chromeFaults, e.Fault)
	case sim.EventProcessStopped, sim.EventProcessPaused:
		if e.Kind == sim.EventProcessStopped {
			c.end(e, pid, chromeLead)
		}
		c.follows(e, pid, chromeAway)
		c.add(e, "X", pid, chromeAway, map[bool]string{true: "paused", false: e.Reason}[e.Kind == sim.EventProcessPaused])
		c.place(e, pid, chromeAway)
		if e.Kind == sim.EventProcessPaused {
			c.endAt(c.ts(e)+e.Last.Sub(e.At).Microseconds(), [2]int{pid, chromeAway})
		}
	case sim.EventProcessStarted:
		c.placeEnd(e, pid, chromeAway)
	case sim.EventStoreOpened:
		if e.Reason != "journal" {
			clear(c.live)
			clear(c.depth)
		}
	case sim.EventClockTurned:
		c.counter(e, pid, "clock offset in ms", e.By.Milliseconds())
		c.inherit(e)
	case sim.EventLeaseGranted:
		for i := range max(c.scenario.Engine.Runners, 1) {
			c.end(e, chromeProcess+i, chromeLead)
		}
		c.follows(e, pid, chromeLead)
		c.add(e, "X", pid, chromeLead, fmt.Sprintf("leads, term %d", e.Term))
		c.place(e, pid, chromeLead)
		c.renew(e, pid)
	case sim.EventLeaseRenewed:
		c.renew(e, pid)
	case sim.EventLeaseReleased, sim.EventRunnerEnded:
		c.end(e, pid, chromeLead)
		c.add(e, "i", pid, chromeLead, e.Kind.String())
	case sim.EventCallLost:
		c.add(e, "i", pid, chromeLead, "call lost: "+e.Op)
		c.inherit(e)
	case sim.EventRowsRead, sim.EventTickWritten:
		c.inherit(e)
	case sim.EventTickRefused:
		c.follows(e, pid, chromeLead)
		c.add(e, "i", pid, chromeLead, "write refused")
	case sim.EventFired, sim.EventTriggered, sim.EventSkipped, sim.EventHeld, sim.EventPaused, sim.EventResumed, sim.EventBreakerOpened, sim.EventRemoved,
		sim.EventTampered, sim.EventRepaired:
		c.onSchedule(e)
	case sim.EventViolated:
		c.add(e, "i", chromeStore, 1, "violated").Scope = "g"
	case sim.EventEnqueued:
		c.enqueued(e, 1)
	case sim.EventClaimed, sim.EventHandlerEnded, sim.EventHandlerCut, sim.EventJobDone, sim.EventJobRetried, sim.EventJobDied:
		c.onJob(e, pid)
	}
}

// renew notes until when the lease lasts, in true time.
func (c *chrome) renew(e *sim.Event, pid int) {
	c.until[pid] = c.ts(e) + e.Until.Sub(e.Shown).Microseconds()
}

// onSchedule adds what became of boundaries.
func (c *chrome) onSchedule(e *sim.Event) {
	tid := c.tracks[e.Schedule]
	name := e.Kind.String()
	if e.Kind == sim.EventFired {
		switch e.Fate() {
		case sim.FiredAgain:
			name = "fired again"
		case sim.CaughtUp:
			name = "fired late"
		case sim.FiredEarly:
			name = "fired early"
		}
	}
	if name != sim.EventFired.String() {
		c.follows(e, chromeSchedules, tid)
	}
	o := c.add(e, "i", chromeSchedules, tid, name)
	if !e.Boundary.IsZero() {
		o.Args["boundary"] = instant(e.Boundary)
	}
	if e.Count > 0 {
		o.Args["count"] = e.Count
	}
	if e.Kind == sim.EventFired || e.Kind == sim.EventTriggered {
		c.enqueued(e, 1)
	} else {
		c.inherit(e)
	}
}

// deliveryEnds are the names of what becomes of a try of an outbox.
var deliveryEnds = map[sim.EventKind]string{
	sim.EventJobDone: "delivered", sim.EventJobRetried: "delivery failed, tried again", sim.EventJobDied: "delivery given up",
}

// onJob adds what becomes of jobs: a thread is that of a worker, or of an outbox.
func (c *chrome) onJob(e *sim.Event, pid int) {
	box, outbox := c.outboxes[e.Queue]
	if end, ends := deliveryEnds[e.Kind]; ends {
		if outbox {
			c.add(e, "i", chromeOutboxes, box, end).Args["job"] = e.Job
		}
		if e.Kind != sim.EventJobRetried {
			c.enqueued(e, -1)
		}
		return
	}
	tid, ok := c.workers[e.Worker]
	if !ok {
		tid = chromeWorkers + len(c.workers)
		c.workers[e.Worker] = tid
	}
	c.thread(pid, tid, e.Worker)
	if e.Kind == sim.EventClaimed {
		name := cmp.Or(e.Schedule, "a job of no schedule")
		if outbox {
			name = "delivery to " + e.Queue
		}
		c.add(e, "X", pid, tid, name).Args["job"] = e.Job
		c.enqueued(e, 1)
		return
	}
	c.end(e, pid, tid)
}

// enqueued counts a job of a queue, or no longer. Of those that a restart from an
// older state brings back it knows when they are handed out.
func (c *chrome) enqueued(e *sim.Event, n int64) {
	if _, there := c.live[e.Job]; there == (n > 0) {
		return
	}
	if n > 0 {
		c.live[e.Job] = e.Queue
	} else {
		delete(c.live, e.Job)
	}
	c.depth[e.Queue] += n
	c.counter(e, chromeStore, "jobs in "+e.Queue, c.depth[e.Queue])
}

// write writes the timeline, an event in each line.
func (c *chrome) write(to io.Writer) error {
	w := bufio.NewWriter(to)
	var meta []chromeEvent
	name := func(pid, tid int, what, name string, order int) {
		meta = append(meta,
			chromeEvent{Name: what + "_name", Ph: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}},
			chromeEvent{Name: what + "_sort_index", Ph: "M", PID: pid, TID: tid, Args: map[string]any{"sort_index": order}})
	}
	name(chromeFaults, 0, "process", "faults", chromeFaults)
	name(chromeStore, 0, "process", "store", chromeStore)
	name(chromeSchedules, 0, "process", "schedules", chromeProcess+sim.MaxRunners)
	if len(c.outboxes) > 0 {
		name(chromeOutboxes, 0, "process", "outboxes", chromeProcess+sim.MaxRunners+1)
	}
	for i := range max(c.scenario.Engine.Runners, 1) {
		name(chromeProcess+i, 0, "process", fmt.Sprintf("process %d", i+1), chromeProcess+i)
	}
	keys := make([][2]int, 0, len(c.threads))
	for key := range c.threads {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for _, key := range keys {
		name(key[0], key[1], "thread", c.threads[key], key[1])
	}
	fmt.Fprint(w, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")
	comma := "\n"
	for _, e := range slices.Concat(meta, c.events) {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s%s", comma, line)
		comma = ",\n"
	}
	fmt.Fprint(w, "\n]}\n")
	return w.Flush()
}

// watch makes the run.
func (c *chrome) watch() error {
	r, err := sim.Watch(*c.scenario, c.tell)
	if err != nil {
		return err
	}
	for thread := range c.open {
		c.endAt(r.Simulated.Microseconds(), thread)
	}
	slices.SortStableFunc(c.events, func(a, b chromeEvent) int { return cmp.Compare(a.TS, b.TS) })
	return nil
}

// writeChrome writes the timeline of the run to a file.
func (t trace) writeChrome(path string) error {
	c := newChrome(t.scenario)
	if err := c.watch(); err != nil {
		return err
	}
	var text strings.Builder
	if err := c.write(&text); err != nil {
		return err
	}
	return writeFile(path, text.String())
}
