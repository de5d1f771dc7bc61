package htmlreport

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/sim"
)

// words puts an event into words, with the rule behind it.
func (r *Recorder) words(e *sim.Event) (text, rule string) {
	text, rule = e.Text(), r.scenario.Why(e, 0).Rule
	switch {
	case e.Kind == sim.EventFaultBegan:
		return r.sayFault(&r.scenario.Faults[e.Fault-1]), ""
	case e.Kind == sim.EventFaultEnded:
		return "The fault is over", ""
	case e.Schedule != "":
		text = e.Schedule + ": " + text
	case e.Kind == sim.EventStoreOpened || e.Kind == sim.EventViolated:
		text = strings.ToUpper(text[:1]) + text[1:]
	default:
		text = r.processes[r.lane(e.Process)].Name + ": " + text
	}
	return text, rule
}

// sayFault says in a sentence what a fault is.
func (r *Recorder) sayFault(f *sim.Fault) string {
	who := "All processes"
	was, its, clock := "were", "their", "The store’s clock"
	switch {
	case f.Runner > 0:
		who, was, its, clock = "Process "+strconv.Itoa(f.Runner), "was", "its", "Process "+strconv.Itoa(f.Runner)+"’s clock"
	case r.single():
		who, was, its, clock = "The process", "was", "its", "The clock"
	}
	lasted := ""
	if f.For > 0 {
		lasted = " for " + span(f.For)
	}
	chance := ""
	if f.Chance > 0 {
		chance = fmt.Sprintf(" with a chance of %s", percent(f.Chance))
	}
	whose := ""
	handlers := "Handlers"
	switch _, outbox := r.outcomes.outboxes[f.Queue]; {
	case outbox:
		handlers, whose = "Deliveries", " to "+f.Queue
	case f.Queue != "":
		whose = " of queue " + f.Queue
	}
	if f.Schedule != "" {
		whose = " of " + f.Schedule
	}
	switch f.Kind {
	case sim.FaultDown:
		return who + " " + was + " down" + lasted
	case sim.FaultCrash:
		with := map[sim.Restart]string{sim.FromSnapshot: " and " + its + " last snapshot", sim.FromNothing: " with nothing"}[f.Restart]
		return who + " crashed, back after " + span(f.For) + strings.Replace(with, " and ", " with ", 1)
	case sim.FaultPause:
		return who + " stood still" + lasted
	case sim.FaultRestartStorm:
		return who + " crashed again and again" + lasted
	case sim.FaultThrottle:
		return who + " " + was + " throttled" + lasted + map[sim.Profile]string{
			sim.HiddenTab: ", like a hidden tab", sim.Laptop: ", like a closed laptop", sim.LowPower: ", to save power",
		}[f.Profile]
	case sim.FaultClockJump:
		return clock + " jumped " + span(max(f.By, -f.By)) + map[bool]string{true: " ahead", false: " back"}[f.By > 0] + lasted
	case sim.FaultClockDrift:
		return clock + map[bool]string{true: " ran fast", false: " ran slow"}[f.Drift > 0] + lasted + fmt.Sprintf(", by %d ppm", max(f.Drift, -f.Drift))
	case sim.FaultClockFreeze:
		return clock + " stood still" + lasted
	case sim.FaultClockStrobe:
		return clock + " jumped forth and back each second" + lasted
	case sim.FaultStoreErrors:
		if f.Chance > 0 {
			return "Store calls failed" + lasted + chance
		}
		return "The store failed all calls" + lasted
	case sim.FaultStoreSlow:
		return "The store was slow" + lasted + chance
	case sim.FaultStoreFull:
		return "The store was full" + lasted
	case sim.FaultJournalErrors:
		if f.Torn {
			return "The journal broke off within a record" + lasted
		}
		return "The journal refused records" + lasted + chance
	case sim.FaultSwizzle:
		return "The processes were cut off from the store, one after the other," + lasted
	case sim.FaultStaleRead:
		return "The store answered rows as they had been" + lasted + chance
	case sim.FaultRepeatedRow:
		return "The store answered rows twice" + lasted + chance
	case sim.FaultLostRow:
		return "The row of " + f.Schedule + " was lost" + lasted
	case sim.FaultHandlerSlow:
		return handlers + whose + " were slow" + lasted + chance
	case sim.FaultHandlerFails:
		return handlers + whose + " failed" + lasted + chance
	case sim.FaultHandlerPanics:
		return handlers + whose + " panicked" + lasted + chance
	case sim.FaultHandlerHangs:
		return handlers + whose + " hung" + lasted + chance
	case sim.FaultPoison:
		return "Some jobs" + whose + " were poison" + lasted + chance
	case sim.FaultHandlerSpawns:
		return handlers + whose + " made more jobs" + lasted + chance
	case sim.FaultLostAck:
		return "Acks" + whose + " were lost" + lasted + chance
	case sim.FaultOverload:
		if f.Queue == "" {
			return "Jobs of no schedule flooded the queues"
		}
		return "Jobs of no schedule flooded " + strings.TrimPrefix(strings.TrimPrefix(whose, " of "), " to ")
	case sim.FaultLateAck:
		return "Acks" + whose + " came late" + lasted + chance
	case sim.FaultDuplicateAck:
		return "Acks" + whose + " came twice" + lasted + chance
	case sim.FaultEditAdd:
		return f.Schedule + " was registered"
	case sim.FaultEditChange:
		return f.Schedule + " was changed"
	case sim.FaultEditPause:
		return f.Schedule + " was paused"
	case sim.FaultEditResume:
		return f.Schedule + " was resumed"
	case sim.FaultEditRemove:
		return f.Schedule + " was removed"
	case sim.FaultEditRename:
		return f.Schedule + " was renamed"
	case sim.FaultEditPolicies:
		return f.Schedule + " got other policies"
	case sim.FaultEditTrigger:
		return f.Schedule + " was to fire by hand"
	case sim.FaultTamper:
		return "The row of " + f.Schedule + " was spoilt" + lasted
	}
	return f.String()
}

// missed says in a few words what a catch-up policy has fire of what was missed.
func missed(c tickonce.CatchUp) string {
	text := "all"
	switch {
	case c.Count == 1 && c.Newest:
		text = "latest"
	case c.Count < mostAtOnce && c.Newest:
		text = "newest " + number(int64(c.Count))
	case c.Count < mostAtOnce:
		text = "oldest " + number(int64(c.Count))
	case c.Newest:
		text = "newest first"
	}
	if c.Window > 0 {
		text += ", ≤ " + span(c.Window) + " late"
	}
	return text
}

// mostAtOnce is how many boundaries of a schedule a tick fires.
const mostAtOnce = 64

// short says a fault in a few words, for a label.
func short(f *sim.Fault) string {
	who := ""
	if f.Runner > 0 {
		who = "process " + strconv.Itoa(f.Runner) + " "
	}
	lasted := ""
	if f.For > 0 {
		lasted = " " + span(f.For)
	}
	switch f.Kind {
	case sim.FaultDown, sim.FaultPause:
		return who + f.Kind.String() + lasted
	case sim.FaultCrash:
		return who + "crash" + map[sim.Restart]string{sim.FromSnapshot: ", snapshot", sim.FromNothing: ", empty"}[f.Restart]
	case sim.FaultClockJump:
		return who + "clock " + map[bool]string{true: "+", false: "−"}[f.By > 0] + span(max(f.By, -f.By))
	case sim.FaultEditAdd, sim.FaultEditChange, sim.FaultEditPause, sim.FaultEditResume, sim.FaultEditRemove, sim.FaultEditRename,
		sim.FaultEditPolicies, sim.FaultEditTrigger, sim.FaultTamper, sim.FaultLostRow:
		return f.Kind.String() + " " + f.Schedule
	}
	return who + f.Kind.String()
}

func percent(p sim.PPM) string {
	return strconv.FormatFloat(float64(p)/10_000, 'f', -1, 64) + " %"
}

// number writes a count with commas.
func number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// span says a duration in at most two units; a number is not parted from its unit.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	units := []struct {
		of   time.Duration
		word string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}}
	if d <= 0 {
		return "0\u00a0s"
	}
	for i, u := range units {
		if d < u.of {
			continue
		}
		whole, rest := d/u.of, d%u.of
		text := fmt.Sprintf("%d\u00a0%s", whole, u.word)
		if i+1 < len(units) {
			if part := rest / units[i+1].of; part > 0 && whole < 60 {
				text += fmt.Sprintf(" %d\u00a0%s", part, units[i+1].word)
			}
		}
		return text
	}
	return d.String()
}
