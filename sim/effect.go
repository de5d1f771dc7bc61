package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickonce/tickonce/store"
)

// Headline says in a sentence or two what matters most.
func (c *Comparison) Headline() string {
	var fates [len(fateWords)]Effect
	var silent Effect
	for _, e := range c.Effects {
		switch {
		case e.Boundaries():
			sum := &fates[e.Fate]
			sum.Count += e.Count
			sum.MaxBy = max(sum.MaxBy, e.MaxBy)
		case e.Kind == EventClockTurned && e.Schedule != "" && e.MaxBy > silent.MaxBy:
			silent = e
		}
	}
	var parts []string
	part := func(n int64, one, many string, by time.Duration) {
		switch {
		case n > 0 && by > 0:
			parts = append(parts, counted(n, one+", by "+formatDuration(by), many+", by up to "+formatDuration(by)))
		case n > 0:
			parts = append(parts, counted(n, one, many))
		}
	}
	part(fates[Skipped].Count+fates[NeverCame].Count, "never fires", "never fire", 0)
	part(fates[CaughtUp].Count, "fires late", "fire late", fates[CaughtUp].MaxBy)
	part(fates[FiredEarly].Count, "fires early", "fire early", fates[FiredEarly].MaxBy)
	part(fates[FiredAgain].Count, "fires a second time", "fire a second time", 0)
	part(fates[Fired].Count, "fires on time, unlike in the first run", "fire on time, unlike in the first run", 0)
	if len(parts) > 0 { // they are boundaries
		n, rest, _ := strings.Cut(parts[0], " ")
		parts[0] = n + pick(n == "1", " boundary ", " boundaries ") + rest
	}
	affected, died, undelivered := 0, int64(0), int64(0)
	for i := range c.Schedules {
		s := &c.Schedules[i]
		more := max(s.Second.Died-s.First.Died, 0)
		lost := max(s.Second.Undelivered-s.First.Undelivered, 0)
		undelivered += lost
		if died += more; s.Changed > 0 || more > 0 || lost > 0 {
			affected++
		}
	}
	part(died, "job dies", "jobs die", 0)
	part(undelivered, "result is not delivered", "results are not delivered", 0)
	var text string
	if len(c.Second.Failures) > len(c.First.Failures) {
		text = "The engine breaks a rule that holds whatever happens (" + c.Second.Failures[0].Invariant + "). "
	}
	switch n := len(parts); {
	case n > 1:
		parts[n-2] += pick(strings.Contains(parts[n-2], ","), ", and ", " and ") + parts[n-1]
		fallthrough
	case n == 1:
		text += strings.Join(parts[:max(n-1, 1)], ", ")
		if silent.MaxBy > 0 {
			text += "; then " + silent.Schedule + " does not fire for " + formatDuration(silent.MaxBy)
		}
		if of := len(c.Schedules); of > 1 {
			text += fmt.Sprintf("; %d of %d schedules %s affected", affected, of, pick(affected == 1, "is", "are"))
		}
		return text + "."
	case len(c.Effects) == 0 && hits(c.First) == hits(c.Second):
		return text + "Nothing changes."
	default:
		return text + "No boundary notices: each has the same fate at the same time in both runs."
	}
}

// hits is how often the faults of a run took effect.
func hits(r *Result) (n int64) {
	for i := range r.Faults {
		n += r.Faults[i].Effect
	}
	return n
}

// Boundaries reports whether the effect is what became of boundaries.
func (e *Effect) Boundaries() bool {
	return e.Kind == 0 || e.Kind == EventFired || e.Kind == EventSkipped
}

// Why is the rule that decided an event, and what it says; without one it is
// empty. The event's Since is of the kind kept.
func (s Scenario) Why(e *Event, kept EventKind) Note {
	if e.Kind != EventFired && e.Kind != EventSkipped {
		return whyTold(e)
	}
	at := slices.IndexFunc(s.Schedules, func(c Schedule) bool { return c.Name == e.Schedule })
	if at < 0 {
		return Note{}
	}
	fate, byClock, reason := Skipped, false, e.Reason
	if e.Kind == EventFired {
		fate, byClock = fateOf(e)
		reason = whyKept(kept)
	}
	if note := s.why(&s.Schedules[at], fate, byClock, reason); fate != Fired {
		return note
	}
	return Note{"T2", "a boundary that is due fires: one job is put into its queue"}
}

// whyKept is the reason for a fire that an event had kept from coming, or had
// allowed again; "" of others.
func whyKept(kept EventKind) string {
	switch kept {
	case EventHeld, EventQueueFull, EventTampered, EventStoreOpened, EventRepaired:
		return kept.String()
	default:
		return ""
	}
}

// why says which rule decided what became of boundaries.
func (s *Scenario) why(of *Schedule, fate Fate, byClock bool, reason string) Note {
	switch fate {
	case CaughtUp:
		switch {
		case reason == EventHeld.String() || reason == EventQueueFull.String() || reason == EventTampered.String():
			return Note{"Q5", "its schedule was set aside for a minute at a time, kept its boundaries, and fired them when it could run again"}
		case byClock:
			return Note{"K1", "schedules follow the store's clock, which was behind: nothing is due before that clock says so"}
		}
		return whyCaughtUp(of.CatchUp, of.window(s))
	case FiredEarly:
		return Note{"K1", "schedules follow the store's clock, which was ahead: what it showed as due fired, and does not fire again when the time really comes"}
	case FiredAgain:
		if reason == EventRepaired.String() || reason == "" && s.Engine.ClockRepair == RepairRearm {
			return Note{"T11", "clock-repair=rearm takes back what fired by a clock that was ahead, so it fires again at its right time"}
		}
		return Note{"D4", "the restart began from an older state, which did not know that these had fired"}
	case Skipped:
		if reason == store.SkipPause.String() {
			return Note{"S7", "the schedule was paused; what was missed meanwhile is dropped when it is resumed"}
		}
		return whySkipped(reason, of.CatchUp, of.window(s))
	default:
		return Note{}
	}
}

// whyNever says why boundaries never came, or others did, after an event of that
// kind.
func whyNever(blow EventKind) Note {
	switch blow {
	case EventStoreOpened, EventRegistered, EventTampered, EventRepaired:
		return Note{"S5", "the schedule began anew and counts its boundaries from then on"}
	case EventRemoved:
		return Note{"S6", "the schedule was removed"}
	case EventPaused:
		return Note{"S7", "the schedule was paused; what it misses meanwhile never fires"}
	case EventResumed:
		return Note{"S7", "the schedule was resumed"}
	case EventBreakerOpened:
		return whyEvent(blow)
	case EventClockTurned:
		return Note{"K1", "by the store's clock they were not due before the run ended"}
	case EventHeld, EventQueueFull:
		return Note{"Q3", "the schedule could not be run and was set aside, with its boundaries kept, until the run ended"}
	case EventProcessStopped, EventProcessPaused, EventRunnerEnded:
		return Note{"L1", "nothing fires while nobody runs the schedules, and nobody did until the run ended"}
	case EventCallLost, EventCallDelayed:
		return Note{"R1", "calls of the store failed or took long, and nothing could be read or written until the run ended"}
	default:
		return Note{}
	}
}

// whyTold says which rule is behind an event that is of no boundary.
func whyTold(e *Event) Note {
	if e.Origin != 0 && (e.Kind == EventJobRetried || e.Kind == EventJobDied) {
		return Note{"X7", "a delivery that may succeed another time is tried three times, one that cannot is tried once; the job whose result it is stays done"}
	}
	return whyEvent(e.Kind)
}

// whyEvent says which rule is behind events of the kind.
func whyEvent(kind EventKind) Note {
	switch kind {
	case EventLeaseGranted:
		return Note{"LK1", "one process at a time runs the schedules, the one that holds the lease, which is the lead for a limited time and is renewed; another one may take it when it has run out or was given back"}
	case EventTickRefused:
		return Note{"L6", "a write whose lease has run out is refused as a whole, so that nothing fires twice"}
	case EventRunnerEnded:
		return Note{"L3", "a process that lost the lead to another, or whose store kept failing, stops running schedules unless it stands by (standby=yes)"}
	case EventCallLost:
		return Note{"R1", "a call that failed is made again; when nobody knows whether it was done, doing it twice does no harm"}
	case EventHeld, EventQueueFull:
		return Note{"Q3", "a schedule that cannot be run is set aside for a minute, and its boundaries are kept"}
	case EventStale:
		return Note{"T3", "a schedule that was changed between read and write is read again before it fires"}
	case EventBreakerOpened:
		return Note{"X4", "a schedule is paused when so many of its jobs have failed in a row, until it is resumed"}
	case EventRepaired:
		return Note{"T11", "what a clock that was ahead had set is taken back (clock-repair=rearm)"}
	case EventHandlerCut:
		return Note{"QU3", "a job whose worker is gone is handed out again when its claim has run out"}
	case EventJobRetried:
		return Note{"QU6", "a job whose handler failed is tried again after a growing wait"}
	case EventJobDied:
		return Note{"QU5", "a job that used up its attempts, failed for good or expired is put aside as dead"}
	case EventClaimLost:
		return Note{"QU4", "a worker that comes too late changes nothing: the job belongs to another one by then"}
	default:
		return Note{}
	}
}

// Text says in words what happened, without the name of the schedule or process.
func (e *Effect) Text() string {
	if e.Boundaries() {
		return e.ofBoundaries()
	}
	switch e.Kind {
	case EventProcessStopped:
		if e.Reason == "crash" {
			return e.times("crashes")
		}
		return e.times("goes away")
	case EventProcessStarted:
		return e.times("is back")
	case EventProcessPaused:
		return e.times("stands still")
	case EventStoreOpened:
		return "the store opens, " + opensWith(e.Reason)
	case EventClockTurned:
		if e.Schedule != "" {
			return "does not fire for " + formatDuration(e.MaxBy)
		}
		return e.times("the clock is " + e.Reason)
	case EventLeaseGranted:
		return e.times("takes the lead")
	case EventRunnerEnded:
		return e.times("gives up, and runs no schedules until it starts again")
	case EventCallLost:
		if e.Reason == "reply" {
			return e.times("a call (" + e.Op + ") fails although it was done")
		}
		return e.times("a call (" + e.Op + ") fails")
	case EventCallDelayed:
		return e.times("a call ("+e.Op+") takes long") + ", up to " + formatDuration(e.MaxBy)
	case EventTickRefused:
		return e.times("a write comes too late and is refused")
	case EventHeld:
		return e.times("is set aside for a minute")
	case EventStale:
		return e.times("has changed since it was read, and is read again")
	case EventQueueFull:
		return e.times("has to wait, its queue is full")
	case EventRepaired:
		return e.times("goes back to its right time")
	case EventPaused:
		return e.times("is paused")
	case EventResumed:
		return e.times("is resumed")
	case EventBreakerOpened:
		return e.times("is paused by its breaker")
	case EventRemoved:
		return e.times("is removed")
	case EventTampered:
		return e.times("its row is changed behind the engine's back")
	case EventHandlerCut:
		is := counted(e.Count, "job is", "jobs are")
		if e.Delivery {
			is = counted(e.Count, "delivery is", "deliveries are")
		}
		switch e.Reason {
		case "stop":
			return is + " cut off in the middle"
		case "timeout":
			return is + " given up, taking too long"
		}
		return is + " given up, the claim was lost"
	case EventJobRetried:
		if e.Delivery {
			return counted(e.Count, "delivery fails and is", "deliveries fail and are") + " tried again"
		}
		return counted(e.Count, "attempt fails and is", "attempts fail and are") + " made again"
	case EventJobDied:
		if e.Delivery {
			return counted(e.Count, "result is", "results are") + " not delivered"
		}
		return counted(e.Count, "job dies", "jobs die") + diesSince(e.Reason)
	case EventClaimLost:
		return e.times("a late answer of a worker is refused")
	case EventViolated:
		return e.times("a rule is broken: " + e.Reason)
	default:
		return e.times(e.Kind.String())
	}
}

func (e *Effect) times(text string) string {
	if e.Count > 1 {
		return fmt.Sprintf("%s, %d times", text, e.Count)
	}
	return text
}

// ofBoundaries says what became of boundaries.
func (e *Effect) ofBoundaries() string {
	which := "the boundary of " + clockText(e.First, e.From)
	one := e.Count == 1
	if !one {
		which = fmt.Sprintf("%d boundaries, %s to %s,", e.Count, clockText(e.First, e.From), clockText(e.Last, e.First))
	}
	by := formatDuration(e.MaxBy)
	if e.MinBy != e.MaxBy {
		by = formatDuration(e.MinBy) + " to " + by
	}
	switch e.Fate {
	case Fired:
		which += pick(one, " fires", " fire") + " on time"
		if e.Rule == "" {
			which += ", though not in the first run"
		}
		return which
	case CaughtUp:
		if !one && e.From.Equal(e.To) {
			return which + " fire all at once, " + by + " late"
		}
		return which + pick(one, " fires ", " fire ") + by + " late"
	case FiredEarly:
		if !one && e.From.Equal(e.To) {
			return which + " fire all at once, " + by + " early"
		}
		return which + pick(one, " fires ", " fire ") + by + " early"
	case FiredAgain:
		return which + pick(one, " fires", " fire") + " a second time"
	case Skipped:
		return which + pick(one, " is", " are") + " skipped and never fire" + pick(one, "s", "")
	default:
		return which + " never come" + pick(one, "s", "")
	}
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
