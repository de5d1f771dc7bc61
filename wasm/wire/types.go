package wire

import (
	"strconv"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// Config configures a handle. Its fields are those of [tickonce.Config]; a host
// that drives the steps has no use for StandBy and Poll.
type Config struct {
	Seed        uint64 // decimal digits in a string; not 0, since there is no randomness but this
	Owner       string // default "tickonce"
	Batch       int
	LeaseTTL    time.Duration
	ClockRepair tickonce.ClockRepair
	OnTime      time.Duration
	Details     int
	Limits      tickonce.Limits

	Zones   []Zone // of active hours, beside UTC
	Journal bool   // put out a record of every write
	Events  bool   // put out events
}

// Zone is a time zone.
type Zone struct {
	Name string
	Data []byte // in the format of the IANA database, TZif
}

func visitConfig(c *Config, o *object) {
	seed := ""
	if o.writing && c.Seed != 0 {
		seed = strconv.FormatUint(c.Seed, 10)
	}
	if o.text("seed", &seed); !o.writing {
		var err error
		if c.Seed, err = strconv.ParseUint(seed, 10, 64); err != nil || c.Seed == 0 {
			o.fault("seed", "is "+quoted(seed)+", want a decimal number from 1 to 2^64 - 1 in a string")
		}
	}
	o.text("owner", &c.Owner)
	whole(o, "batch", &c.Batch)
	o.span("leaseTTLMS", &c.LeaseTTL)
	word(o, "clockRepair", &c.ClockRepair, tickonce.RepairRearm)
	o.span("onTimeMS", &c.OnTime)
	whole(o, "details", &c.Details)
	inner(o, "limits", &c.Limits, func(l *tickonce.Limits, o *object) {
		whole(o, "payload", &l.Payload)
		whole(o, "queueLength", &l.QueueLength)
		whole(o, "schedules", &l.Schedules)
		whole(o, "lastError", &l.LastError)
		whole(o, "runs", &l.Runs)
		whole(o, "skips", &l.Skips)
		whole(o, "history", &l.History)
	})
	list(o, "zones", &c.Zones, func(z *Zone, o *object) {
		o.text("name", &z.Name)
		o.bytes("data", &z.Data)
	})
	o.flag("journal", &c.Journal)
	o.flag("events", &c.Events)
}

func visitScheduleOptions(s *tickonce.ScheduleOptions, o *object) {
	o.span("visibilityMS", &s.Visibility)
	whole(o, "maxAttempts", &s.MaxAttempts)
	o.span("baseBackoffMS", &s.BaseBackoff)
	whole(o, "priority", &s.Priority)
	o.span("expiresMS", &s.Expires)
	o.at("anchor", &s.Anchor)
	inner(o, "catchUp", &s.CatchUp, func(c *tickonce.CatchUp, o *object) {
		o.window("windowMS", &c.Window)
		whole(o, "count", &c.Count)
		o.flag("newest", &c.Newest)
	})
	word(o, "overlap", &s.Overlap, tickonce.OverlapBufferOne)
	inner(o, "activeHours", &s.ActiveHours, func(a *tickonce.ActiveHours, o *object) {
		o.text("from", &a.From)
		o.text("to", &a.To)
		o.text("zone", &a.Zone)
	})
	o.flag("runOnce", &s.RunOnce)
	whole(o, "breaker", &s.Breaker)
	o.span("timeoutMS", &s.Timeout)
	o.flag("resetCursor", &s.ResetCursor)
}

func visitSchedule(s *tickonce.Schedule, o *object) {
	o.text("name", &s.Name)
	o.text("spec", &s.Spec)
	o.text("queue", &s.Queue)
	o.bytes("payload", &s.Payload)
	inner(o, "options", &s.Options, visitScheduleOptions)
	o.at("next", &s.Next)
	o.at("due", &s.Due)
	word(o, "paused", &s.Paused, tickonce.PausedByRunOnce)
	whole(o, "failures", &s.Failures)
	maybe(o, "hold", &s.Hold, visitHold)
}

func visitEnqueueOptions(e *tickonce.EnqueueOptions, o *object) {
	o.span("delayMS", &e.Delay)
	o.at("runAt", &e.RunAt)
	whole(o, "priority", &e.Priority)
	o.span("expiresMS", &e.Expires)
	o.text("key", &e.Key)
	o.span("visibilityMS", &e.Visibility)
	whole(o, "maxAttempts", &e.MaxAttempts)
	o.span("baseBackoffMS", &e.BaseBackoff)
}

func visitDeadJob(d *tickonce.DeadJob, o *object) {
	whole(o, "id", &d.ID)
	o.text("queue", &d.Queue)
	o.bytes("payload", &d.Payload)
	o.text("schedule", &d.Schedule)
	o.at("boundary", &d.Boundary)
	whole(o, "origin", &d.Origin)
	whole(o, "attempts", &d.Attempts)
	o.text("lastError", &d.LastError)
	o.at("enqueued", &d.Enqueued)
	o.at("died", &d.Died)
}

func visitQueueInfo(q *tickonce.QueueInfo, o *object) {
	o.text("name", &q.Name)
	whole(o, "pending", &q.Pending)
	whole(o, "claimed", &q.Claimed)
	whole(o, "dead", &q.Dead)
	whole(o, "enqueued", &q.Enqueued)
	whole(o, "claims", &q.Claims)
	whole(o, "retried", &q.Retried)
	whole(o, "done", &q.Done)
	whole(o, "died", &q.Died)
	whole(o, "cancelled", &q.Cancelled)
	whole(o, "requeued", &q.Requeued)
	whole(o, "purged", &q.Purged)
	o.at("nextClaimAt", &q.NextClaimAt)
	whole(o, "waiting", &q.Waiting)
}

func visitWorkerConfig(c *tickonce.WorkerConfig, o *object) {
	o.text("name", &c.Name)
	whole(o, "concurrency", &c.Concurrency)
	o.span("timeoutMS", &c.Timeout)
	o.span("stopTimeoutMS", &c.StopTimeout)
}

func visitDetail(d *tickonce.Detail, o *object) {
	whole(o, "number", &d.Number)
	o.at("at", &d.At)
	o.text("schedule", &d.Schedule)
	o.at("boundary", &d.Boundary)
	whole(o, "job", &d.Job)
	whole(o, "attempt", &d.Attempt)
	o.text("summary", &d.Summary)
	whole(o, "deliveries", &d.Deliveries)
	o.text("outbox", &d.Outbox)
	whole(o, "entry", &d.Entry)
	whole(o, "try", &d.Try)
	word(o, "delivery", &d.Delivery, tickonce.DeliveryPermanent)
	o.flag("last", &d.Last)
	o.text("error", &d.Error)
}

func visitPastRun(r *tickonce.PastRun, o *object) {
	whole(o, "id", &r.ID)
	o.text("schedule", &r.Schedule)
	o.at("boundary", &r.Boundary)
	whole(o, "job", &r.Job)
	whole(o, "attempt", &r.Attempt)
	o.at("fired", &r.Fired)
	o.span("lateMS", &r.Late)
	o.at("started", &r.Started)
	o.at("finished", &r.Finished)
	word(o, "execution", &r.Execution, tickonce.ExecutionLost)
	o.text("error", &r.Error)
	word(o, "then", &r.Then, tickonce.JobDone)
	o.text("summary", &r.Summary)
	list(o, "deliveries", &r.Deliveries, visitDetail)
}

func visitPastSkip(s *tickonce.PastSkip, o *object) {
	whole(o, "id", &s.ID)
	o.text("schedule", &s.Schedule)
	word(o, "reason", &s.Reason, tickonce.SkippedAsBefore)
	o.at("first", &s.First)
	o.at("last", &s.Last)
	o.span("everyMS", &s.Every)
	whole(o, "count", &s.Count)
	o.at("from", &s.From)
	o.at("until", &s.Until)
}

func visitWhy(w *tickonce.Why, o *object) {
	o.text("schedule", &w.Schedule)
	o.at("boundary", &w.Boundary)
	word(o, "kind", &w.Kind, tickonce.WhyForgotten)
	list(o, "runs", &w.Runs, visitPastRun)
	whole(o, "job", &w.Job)
	word(o, "state", &w.State, tickonce.JobDone)
	o.span("lateMS", &w.Late)
	word(o, "lateness", &w.Lateness, tickonce.FiredCaughtUp)
	maybe(o, "skip", &w.Skip, visitPastSkip)
	word(o, "paused", &w.Paused, tickonce.PausedByRunOnce)
	maybe(o, "hold", &w.Hold, visitHold)
	o.at("since", &w.Since)
}

func visitHold(h *tickonce.Hold, o *object) {
	o.text("reason", &h.Reason)
	o.at("since", &h.Since)
	whole(o, "times", &h.Times)
}

// Event is a [tickonce.Event] on the wire, where its error is a text.
type Event struct {
	tickonce.Event
	Error string
}

func visitEvent(e *Event, o *object) {
	word(o, "kind", &e.Kind, tickonce.EventDeliveryFailed)
	o.at("at", &e.At)
	o.text("schedule", &e.Schedule)
	o.text("queue", &e.Queue)
	whole(o, "job", &e.Job)
	o.at("boundary", &e.Boundary)
	whole(o, "origin", &e.Origin)
	word(o, "execution", &e.Execution, tickonce.ExecutionLost)
	word(o, "delivery", &e.Delivery, tickonce.DeliveryPermanent)
	o.at("first", &e.First)
	o.at("last", &e.Last)
	whole(o, "count", &e.Count)
	o.text("reason", &e.Reason)
	o.text("owner", &e.Owner)
	o.text("phase", (*string)(&e.Phase))
	o.span("waitMS", &e.Wait)
	o.span("tookMS", &e.Took)
	o.text("error", &e.Error)
}

// Totals are [tickonce.Totals] on the wire: two objects of numbers by their
// words.
type Totals struct{ runs, skipped [store.HistoryTotals]int64 }

// Runs is how many runs ended so.
func (t *Totals) Runs(x tickonce.Execution) int64 { return t.runs[x] }

// Skipped is how many boundaries were skipped for the reason.
func (t *Totals) Skipped(r tickonce.SkipReason) int64 { return t.skipped[r] }

func totalsOf(from *tickonce.Totals) (t Totals) {
	for x := tickonce.ExecutionOK; x <= tickonce.ExecutionLost; x++ {
		t.runs[x] = from.Runs(x)
	}
	for r := tickonce.SkippedByPause; r <= tickonce.SkippedAsBefore; r++ {
		t.skipped[r] = from.Skipped(r)
	}
	return t
}

func visitTotals(t *Totals, o *object) {
	inner(o, "runs", t, func(t *Totals, o *object) {
		for x := tickonce.ExecutionOK; x <= tickonce.ExecutionLost; x++ {
			whole(o, x.String(), &t.runs[x])
		}
	})
	inner(o, "skipped", t, func(t *Totals, o *object) {
		for r := tickonce.SkippedByPause; r <= tickonce.SkippedAsBefore; r++ {
			whole(o, r.String(), &t.skipped[r])
		}
	})
}
