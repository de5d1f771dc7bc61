package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/tickonce/tickonce"
)

// Text says in words what happened, for people, without the names of process,
// worker and schedule. [Event.String] has all fields.
func (e *Event) Text() string {
	switch e.Kind {
	case EventFaultBegan:
		return fmt.Sprintf("fault %d begins", e.Fault)
	case EventFaultEnded:
		return fmt.Sprintf("fault %d is over", e.Fault)
	case EventStoreOpened:
		return "the store opens, " + opensWith(e.Reason)
	case EventProcessStarted:
		return "starts"
	case EventProcessStopped:
		if e.Reason == "crash" {
			return "crashes"
		}
		return "stops in good order"
	case EventProcessPaused:
		return "stands still until " + clockText(e.Last, e.At)
	case EventClockTurned:
		return "its clock is " + offBy(e.By) + drifts(e.Drift)
	case EventLeaseGranted:
		return fmt.Sprintf("takes the lead, term %d, until %s", e.Term, clockText(e.Until, e.Shown))
	case EventLeaseRenewed:
		return fmt.Sprintf("keeps the lead, term %d, until %s", e.Term, clockText(e.Until, e.Shown))
	case EventLeaseRefused:
		if e.Op == "renew" {
			return fmt.Sprintf("wants to keep the lead of term %d, and has lost it", e.Term)
		}
		return "asks for the lead, which another one has"
	case EventLeaseReleased:
		return fmt.Sprintf("gives back the lead, term %d", e.Term)
	case EventRunnerEnded:
		return "gives up, and runs no schedules until it starts again: " + e.Reason
	case EventCallLost:
		if e.Reason == "reply" {
			return "calls " + e.Op + ", which fails although the store has done it"
		}
		return "calls " + e.Op + ", which fails, and the store has not done it"
	case EventCallDelayed:
		return "calls " + e.Op + ", which is on its way for " + formatDuration(e.By)
	case EventRowsRead:
		return "finds " + counted(e.Count, "schedule", "schedules") + " due"
	case EventTickWritten:
		return fmt.Sprintf("writes what is due, %s, under term %d", counted(e.Count, "fire", "fires"), e.Term)
	case EventTickRefused:
		return fmt.Sprintf("writes %s under term %d, which is over: refused as a whole", counted(e.Count, "fire", "fires"), e.Term)
	case EventFired:
		return e.fired()
	case EventSkipped:
		reason := map[string]string{
			"cap": "beyond the 64 that are caught up", "policy": "by its catch-up policy", "pause": "since it was paused",
			"hours": "outside its active hours", "overlap": "since a job of it is not done", "missed": "too late for its only turn",
		}[e.Reason]
		if e.Count == 1 {
			return "skips " + clockText(e.Boundary, e.At) + ", " + reason
		}
		return fmt.Sprintf("skips %s to %s, %d boundaries, %s", clockText(e.Boundary, e.At), clockText(e.Last, e.Boundary), e.Count, reason)
	case EventHeld:
		return "cannot be run, and is set aside until " + clockText(e.Until, e.Shown)
	case EventStale:
		return "has changed since it was read, and is left alone"
	case EventQueueFull:
		return fmt.Sprintf("has to wait with %s, its queue is full", counted(e.Count, "fire", "fires"))
	case EventRegistered:
		return "is registered, next boundary " + clockText(e.Boundary, e.At)
	case EventRepaired:
		return "goes back to its right time, next boundary " + clockText(e.Boundary, e.At)
	case EventPaused:
		return "is paused"
	case EventResumed:
		return "is resumed, next boundary " + clockText(e.Boundary, e.At)
	case EventBreakerOpened:
		return "is paused by its breaker, " + counted(e.Count, "job has", "jobs have") + " failed in a row"
	case EventRemoved:
		return "is removed"
	case EventTampered:
		return "its row is written behind the engine's back"
	case EventEnqueued:
		return e.job() + " is put into " + shown(e.Queue)
	case EventTriggered:
		return fmt.Sprintf("is fired by hand: job %d", e.Job)
	case EventClaimed:
		return e.job() + " is handed out until " + clockText(e.Until, e.Shown)
	case EventHandlerEnded, EventHandlerCut, EventJobDone, EventJobRetried, EventJobDied:
		return e.job() + e.ends()
	case EventClaimLost:
		return e.job() + ": an answer comes too late and changes nothing"
	case EventViolated:
		return "a rule is broken: " + e.Reason
	default:
		return strings.ReplaceAll(e.Kind.String(), "-", " ")
	}
}

// ends says how a run of a job ended, or a try of a delivery, and what became of the
// job.
func (e *Event) ends() string {
	text, delivery := "", e.Origin != 0
	switch e.Kind {
	case EventHandlerEnded:
		if delivery {
			return map[string]string{"ok": " comes through", "fail": " fails", "panic": " panics"}[e.Reason]
		}
		return ": the handler " + map[string]string{"ok": "is done", "fail": "fails", "panic": "panics"}[e.Reason]
	case EventHandlerCut:
		switch e.Reason {
		case "stop":
			return " is cut off in the middle"
		case "timeout":
			return " is given up, it takes too long"
		default:
			return " is given up, its claim was lost"
		}
	case EventJobDone:
		if delivery {
			return " is delivered"
		}
		return " is done"
	case EventJobRetried:
		text = " will be tried again at " + clockText(e.Until, e.Shown)
	case EventJobDied:
		switch {
		case e.Delivery == tickonce.DeliveryPermanent:
			text = " dies, since another try would be in vain"
		default:
			text = " dies" + diesSince(e.Reason)
		}
	}
	if e.Error != "" {
		text += ": " + shown(e.Error)
	}
	return text
}

// fired says how a boundary fired.
func (e *Event) fired() string {
	text := "fires " + clockText(e.Boundary, e.At)
	switch e.Fate() {
	case Fired:
		text += ", on time"
	case CaughtUp:
		text += ", " + formatDuration(e.At.Sub(e.Boundary)) + " late"
	case FiredEarly:
		text += ", " + formatDuration(e.Boundary.Sub(e.At)) + " early"
	case FiredAgain:
		text += ", a second time"
	}
	return fmt.Sprintf("%s: job %d", text, e.Job)
}

func (e *Event) job() string {
	text := fmt.Sprintf("job %d", e.Job)
	if e.Origin != 0 {
		text = fmt.Sprintf("delivery %d of job %d", e.Job, e.Origin)
	}
	if e.Attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", e.Attempt)
	}
	return text
}

func drifts(ppm int64) string {
	switch {
	case ppm <= -million:
		return ", and stands still"
	case ppm > 0:
		return fmt.Sprintf(", and gains %d s in a million", ppm)
	case ppm < 0:
		return fmt.Sprintf(", and loses %d s in a million", -ppm)
	default:
		return ""
	}
}

// opensWith says what a store has that opens.
func opensWith(reason string) string {
	return map[string]string{
		"journal": "with everything it had", "snapshot": "with the state of a snapshot", "empty": "empty",
	}[reason]
}

// diesSince says why a job dies.
func diesSince(reason string) string {
	return map[string]string{
		deathWords[failed]:  " after a failed attempt, with no other to come",
		deathWords[lapsed]:  " since nobody finished the last attempt in time",
		deathWords[expired]: " before anybody ran it",
	}[reason]
}

// offBy says by how much a clock is wrong.
func offBy(by time.Duration) string {
	switch {
	case by > 0:
		return formatDuration(by) + " ahead"
	case by < 0:
		return formatDuration(-by) + " behind"
	default:
		return "right"
	}
}

// clockText is an instant for people, without the date if that is the one of
// before.
func clockText(t, before time.Time) string {
	if t.Format(time.DateOnly) == before.Format(time.DateOnly) {
		return t.Format("15:04:05.999")
	}
	return t.Format("2006-01-02 15:04:05.999")
}
