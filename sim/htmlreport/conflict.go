package htmlreport

import (
	"slices"
	"strings"

	"github.com/tickonce/tickonce/sim"
)

// conflicts finds the events that contradict each other where a rule was broken:
// two fires of a boundary, two claims of a job, or the leases of two processes of
// which one went on as if it led.
type conflicts struct {
	recorder *Recorder
	grants   []sim.Event            // of each process, its last lease
	leader   int                    // who got the last one, from 1
	fires    map[string][]sim.Event // of each schedule, the last ones
	claims   map[int64]sim.Event    // of jobs that are claimed
	sides    [][]line               // of each failure
	broken   []sim.Event            // the failures of the step under way, the last ones
}

// mostFires is how many fires of a schedule are remembered: those of two ticks.
const mostFires = 128

func newConflicts(r *Recorder) conflicts {
	return conflicts{recorder: r, grants: make([]sim.Event, len(r.processes)+1), fires: map[string][]sim.Event{}, claims: map[int64]sim.Event{}}
}

func (c *conflicts) tell(e *sim.Event) {
	if len(c.broken) > 0 && c.broken[0].Step != e.Step {
		c.broken = nil
	}
	switch e.Kind {
	case sim.EventStoreOpened: // which may have forgotten them
		clear(c.fires)
		clear(c.claims)
	case sim.EventLeaseGranted:
		c.grants[e.Process], c.leader = *e, e.Process
	case sim.EventLeaseRenewed:
		c.grants[e.Process].Until = e.Until
	case sim.EventViolated:
		c.broken = append(c.broken, *e)
		c.sides = append(c.sides, []line{})
		if own := c.grants[e.Process]; ofLease(e) && e.Process != c.leader && own.ID > 0 {
			c.add(len(c.sides)-1, &own, &c.grants[c.leader])
		}
	case sim.EventTickWritten:
		for i := range c.broken {
			if at := c.at(i); ofLease(&c.broken[i]) && len(c.sides[at]) > 0 {
				c.add(at, e)
			}
		}
	case sim.EventFired:
		last := c.fires[e.Schedule]
		if i := slices.IndexFunc(last, func(o sim.Event) bool { return o.Boundary.Equal(e.Boundary) }); i >= 0 {
			c.contradict(&last[i], e)
		}
		c.fires[e.Schedule] = append(last[max(0, len(last)-mostFires+1):], *e)
	case sim.EventClaimed:
		if first, ok := c.claims[e.Job]; ok {
			c.contradict(&first, e)
		}
		c.claims[e.Job] = *e
	case sim.EventJobDone, sim.EventJobRetried, sim.EventJobDied:
		delete(c.claims, e.Job)
	}
}

// ofLease reports whether the rule that was broken is one of who leads.
func ofLease(e *sim.Event) bool { return strings.HasPrefix(e.Reason, "6 ") }

// at is the place of a failure of the step under way among all.
func (c *conflicts) at(i int) int { return len(c.sides) - len(c.broken) + i }

// contradict has both events be the sides of those failures of the step that are
// of their schedule.
func (c *conflicts) contradict(first, second *sim.Event) {
	for i := range c.broken {
		if at := c.at(i); c.broken[i].Schedule == second.Schedule && len(c.sides[at]) == 0 {
			c.add(at, first, second)
		}
	}
}

func (c *conflicts) add(at int, events ...*sim.Event) {
	r := c.recorder
	for _, e := range events {
		text, rule := r.words(e)
		if e.Schedule != "" && !r.single() {
			text = r.processes[r.lane(e.Process)].Name + ": " + text
		}
		c.sides[at] = append(c.sides[at], line{T: r.since(e.At), Text: text, Rule: rule})
	}
}
