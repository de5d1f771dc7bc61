package htmlreport

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickonce/tickonce/sim"
)

// effect is what a fault did to one schedule.
type effect struct {
	late, early, again, skipped int64
	waited, ahead, back         int64 // the most
	reasons                     reasons
}

// stories tells of each fault what it did, schedule by schedule; schedules of
// which the same is to be said share a sentence.
func (r *Recorder) stories(schedules []schedule) [][]line {
	all := make([][]line, len(r.faults)) // of each fault
	for i := range r.faults {
		lines := []line{}
		names := map[line][]string{}
		for k := range schedules {
			s := &schedules[k]
			e := r.effect(i, s)
			if e == nil {
				continue
			}
			for _, l := range e.say(s) {
				if names[l] == nil {
					lines = append(lines, l)
				}
				names[l] = append(names[l], s.Name)
			}
		}
		for k, l := range lines {
			lines[k].Text = list(names[l]) + " " + l.Text
		}
		all[i] = lines
	}
	return all
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
		return strings.Join(names[:most], ", ") + " and " + number(int64(n-most)) + " more each"
	}
}

// effect is what the fault did to the schedule; nil for nothing.
func (r *Recorder) effect(fault int, s *schedule) *effect {
	var e effect
	for _, f := range s.Fires {
		if !r.blames(fault, f.cause, f.first, f.at) {
			continue
		}
		switch f.kind {
		case "late":
			e.late += f.count
			e.waited = max(e.waited, f.wait())
		case "early":
			e.early += f.count
			e.ahead = max(e.ahead, f.last()-f.at)
		default:
			e.again += f.count
			e.back = max(e.back, f.wait())
		}
	}
	for _, q := range s.Skips {
		if r.blames(fault, q.cause, q.first, q.at) {
			e.skipped += q.count
			e.reasons.add(q.reason, q.count)
		}
	}
	if e.late+e.early+e.again+e.skipped == 0 {
		return nil
	}
	return &e
}

// blames reports whether the fault led to what happened to a boundary: it is
// the nearest in the chain of causes, and was not over for long when the
// boundary was due.
func (r *Recorder) blames(fault, cause int, boundary, at int64) bool {
	const slack = int64(2 * time.Minute / time.Millisecond)
	return r.causes.blamed(cause) == fault && r.faults[fault].to >= min(boundary, at)-slack
}

func (n *reasons) add(reason string, by int64) {
	switch reason {
	case "cap":
		n.Cap += by
	case "policy":
		n.Policy += by
	case "pause":
		n.Pause += by
	}
}

// say says it, without the name of the schedule. What leaves a day or more
// without a fire is grave.
func (e *effect) say(s *schedule) (lines []line) {
	ms := func(n int64) string { return span(time.Duration(n) * time.Millisecond) }
	grave := e.skipped > 0 && s.Every*e.skipped >= int64(24*time.Hour/time.Millisecond)
	late := fmt.Sprintf("fired %d late, up to %s", e.late, ms(e.waited))
	if e.late == 1 {
		late = "fired " + ms(e.waited) + " late"
	}
	switch {
	case e.reasons.Cap > 0:
		lines = append(lines, line{fmt.Sprintf("caught up the oldest %s, up to %s late, and dropped the %s beyond the cap", number(e.late), ms(e.waited), number(e.reasons.Cap)), "T5, T6", grave})
	case e.reasons.Policy > 0 && e.late > 0:
		lines = append(lines, line{fmt.Sprintf("%s; %s dropped by catch-up=%s", late, wereOr(e.reasons.Policy), s.Policy), "T14", grave})
	case e.reasons.Policy > 0:
		lines = append(lines, line{fmt.Sprintf("did not fire: %s dropped by catch-up=%s", wereOr(e.reasons.Policy), s.Policy), "T14", grave})
	case e.late > 1:
		lines = append(lines, line{late, "T5", false})
	case e.late == 1:
		lines = append(lines, line{late, "T2", false})
	}
	if e.reasons.Pause > 0 {
		lines = append(lines, line{fmt.Sprintf("skipped %s that came while it was paused", number(e.reasons.Pause)), "S7", grave})
	}
	if e.early > 0 {
		lines = append(lines, line{fmt.Sprintf("fired %s early, up to %s ahead of true time", number(e.early), ms(e.ahead)), "T11, K1", false})
	}
	if e.again > 0 {
		lines = append(lines, line{fmt.Sprintf("fired %s again that it had fired before, back to %s ago", number(e.again), ms(e.back)), "D4", false})
	}
	return lines
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
