package htmlreport

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickonce/tickonce/sim"
)

// stories tell of each fault what it led to, and then of what is traced to no
// single fault.
func (r *Recorder) stories(c *sim.Comparison) [][]line {
	all := make([][]line, len(r.faults)+1)
	for i := range all {
		all[i] = []line{}
		for _, l := range c.Story((i + 1) % len(all)) {
			text := l.Text()
			if len(l.Who) > 0 {
				text = list(l.Who) + ": " + text
			}
			all[i] = append(all[i], line{T: r.since(l.From), Text: text, Rule: l.Rule, Grave: grave(&l.Effect)})
		}
	}
	return all
}

// grave reports whether the effect leaves a schedule without a fire for a day.
func grave(e *sim.Effect) bool {
	const day = 24 * time.Hour
	switch {
	case !e.Boundaries():
		return e.Schedule != "" && e.Kind == sim.EventClockTurned && e.MaxBy >= day
	default:
		return (e.Fate == sim.Skipped || e.Fate == sim.NeverCame) && e.Last.Sub(e.First) >= day
	}
}

// list names the schedules, the first of many.
func list(names []string) string {
	const most = 3
	switch n := len(names); {
	case n == 1:
		return names[0]
	case n <= most+1:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	default:
		return strings.Join(names[:most], ", ") + " and " + number(int64(n-most)) + " more"
	}
}

func (n *reasons) add(reason string, by int64) {
	switch reason {
	case "cap":
		n.Cap += by
	case "policy":
		n.Policy += by
	case "pause":
		n.Pause += by
	case "hours":
		n.Hours += by
	case "overlap":
		n.Overlap += by
	case "missed":
		n.Missed += by
	}
}

func wereOr(n int64) string {
	if n == 1 {
		return "1 was"
	}
	return number(n) + " were"
}

// came says what a fault came to, of its counts.
func came(f *sim.FaultResult) string {
	if f.Effect == 0 {
		return "nothing: there was no occasion"
	}
	c := &f.Cost
	var parts []string
	add := func(n int64, text string) {
		if n > 0 {
			parts = append(parts, number(n)+" "+text)
		}
	}
	if c.Due > 0 {
		parts = append(parts, count(c.Due, "boundary", "boundaries")+" due meanwhile")
	}
	add(c.OnTime, "on time")
	add(c.Late, "late")
	add(c.Skipped, "skipped")
	add(c.Forgotten, "forgotten")
	add(c.Left, "left at the end")
	add(c.FiredAgain, "fired again")
	add(c.FiredEarly, "fired early")
	if c.Silence > 0 {
		parts = append(parts, fmt.Sprintf("%s silent for %s", c.Silent, span(c.Silence)))
	}
	if len(parts) > 0 {
		return strings.Join(parts, ", ")
	}
	switch f.Fault.Kind {
	case sim.FaultStoreErrors:
		return count(f.Effect, "call failed", "calls failed")
	case sim.FaultStoreSlow:
		return count(f.Effect, "call slowed", "calls slowed")
	case sim.FaultHandlerSlow, sim.FaultHandlerFails, sim.FaultHandlerPanics:
		return count(f.Effect, "handler hit", "handlers hit")
	case sim.FaultLateAck, sim.FaultDuplicateAck:
		return count(f.Effect, "ack hit", "acks hit")
	}
	return "nothing was due meanwhile"
}

// followed are the entries of the log that a fault led to, the first of them.
func (r *Recorder) followed(fault int) []int {
	const most = 12
	found := []int{}
	for i := range r.causes.log {
		if r.causes.blamed(i) == fault {
			found = append(found, i)
		}
	}
	slices.SortStableFunc(found, func(a, b int) int { return int(r.causes.log[a].T - r.causes.log[b].T) })
	return found[:min(len(found), most)]
}
