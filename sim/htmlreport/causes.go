package htmlreport

import (
	"strconv"

	"github.com/tickonce/tickonce/sim"
)

// causes keeps those events that others are explained by, and puts into words
// those that explain something that is shown.
type causes struct {
	recorder *Recorder
	events   map[int64]sim.Event // that may be causes for long
	reads    []sim.Event         // of each process, the last rows that it read
	ticks    []sim.Event         // and the last tick that it wrote
	entries  map[int64]int       // of the log, by event
	log      []entry
}

func newCauses(r *Recorder) causes {
	n := len(r.processes)
	return causes{recorder: r, events: map[int64]sim.Event{}, entries: map[int64]int{}, reads: make([]sim.Event, n), ticks: make([]sim.Event, n)}
}

func (c *causes) note(e *sim.Event) {
	switch e.Kind {
	case sim.EventRowsRead:
		c.reads[c.recorder.lane(e.Process)] = *e
	case sim.EventTickWritten:
		c.ticks[c.recorder.lane(e.Process)] = *e
	case sim.EventLeaseRefused:
		if e.Op == "renew" {
			c.events[e.ID] = *e
		}
	case sim.EventFired, sim.EventSkipped, sim.EventLeaseRenewed, sim.EventEnqueued, sim.EventClaimed, sim.EventHandlerEnded,
		sim.EventHandlerCut, sim.EventJobDone, sim.EventJobRetried, sim.EventJobDied, sim.EventClaimLost:
	default:
		c.events[e.ID] = *e
	}
}

func (c *causes) find(id int64) (sim.Event, bool) {
	if e, ok := c.events[id]; ok {
		return e, true
	}
	for _, list := range [][]sim.Event{c.ticks, c.reads} {
		for i := range list {
			if list[i].ID == id && id > 0 {
				return list[i], true
			}
		}
	}
	return sim.Event{}, false
}

// of is the entry that explains the event: its own, if it is a cause itself,
// else that of its cause; -1 without one.
func (c *causes) of(e *sim.Event) int {
	if _, ok := c.find(e.ID); ok {
		return c.entry(e.ID)
	}
	return c.entry(max(e.Cause, 0))
}

// entry is the entry of the event, which is made with those that led to it if
// it is not there yet.
func (c *causes) entry(id int64) int {
	var missing []sim.Event
	before := -1
	for {
		e, ok := c.find(id)
		if !ok {
			break
		}
		if at, ok := c.entries[id]; ok {
			before = at
			break
		}
		missing = append(missing, e)
		id = e.Cause
	}
	for i := len(missing) - 1; i >= 0; i-- {
		e := &missing[i]
		text, rule := c.recorder.words(e)
		entry := entry{T: c.recorder.since(e.At), Kind: kindOf(e), Lane: c.recorder.laneOf(e), Text: text, Rule: rule, Fault: -1, Cause: before}
		if e.Fault > 0 {
			entry.Fault = e.Fault - 1
		}
		before = len(c.log)
		c.log = append(c.log, entry)
		c.entries[e.ID] = before
	}
	return before
}

// blamed is the fault that led to an entry, the nearest one; -1 without one.
func (c *causes) blamed(at int) int {
	for ; at >= 0; at = c.log[at].Cause {
		if f := c.log[at].Fault; f >= 0 {
			return f
		}
	}
	return -1
}

// laneOf is the id of the lane of an event.
func (r *Recorder) laneOf(e *sim.Event) string {
	switch {
	case e.Kind == sim.EventFaultBegan || e.Kind == sim.EventFaultEnded:
		return "faults"
	case e.Schedule != "":
		for i, s := range r.scenario.Schedules {
			if s.Name == e.Schedule {
				return scheduleID(i)
			}
		}
		return ""
	case e.Process == 0 && e.Kind != sim.EventClockTurned:
		return ""
	default:
		return "process-" + strconv.Itoa(r.lane(e.Process))
	}
}

func scheduleID(i int) string { return "schedule-" + strconv.Itoa(i) }

// single reports whether there is one process.
func (r *Recorder) single() bool { return len(r.processes) == 2 }

// kindOf is the mark of an event; one without a mark is a dot.
func kindOf(e *sim.Event) string {
	switch e.Kind {
	case sim.EventFaultBegan, sim.EventFaultEnded:
		return "fault"
	case sim.EventProcessStarted:
		return "start"
	case sim.EventProcessStopped:
		return "crash"
	case sim.EventClockTurned:
		return "clock"
	case sim.EventLeaseGranted:
		return "lease"
	case sim.EventTickRefused:
		return "refused"
	case sim.EventRunnerEnded:
		return "ended"
	case sim.EventHeld, sim.EventQueueFull:
		return "held"
	case sim.EventViolated:
		return "violation"
	default:
		return ""
	}
}
