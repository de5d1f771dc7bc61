// Package eventlog writes the events of an engine to log/slog, one record for
// each:
//
//	eng, err := memengine.New(tickonce.Config{
//		Observer: eventlog.New(slog.Default()),
//	})
//
// A record's time is the event's, by the store's clock. Its message is the kind
// in words, as in "lease lapsed". Its attributes are those fields of
// [tickonce.Event] that the event sets, under their names in snake_case:
// schedule, queue, job, boundary, first, last, count, origin, execution,
// delivery, reason, owner, phase, took, wait, error. The queue of an outbox is
// told by the outbox's name, as outbox.
//
// The level says who has to know:
//
//	Debug  what each job does in the ordinary course: fired, enqueued, claimed,
//	       done, delivered; and a runner that stands by because another leads
//	Info   what someone asked for, and what the engine mends by itself:
//	       scheduled, unscheduled, paused, resumed, triggered, cancelled,
//	       requeued, purged, leading, retried, delivery retried, stopped; and
//	       skipped for a pause, active hours or an overlap
//	Warn   what was lost, put off or done in vain: skipped for any other reason,
//	       quarantined, breaker opened, died, delivery failed, buried, claim
//	       lost, cursor ahead, rearmed, lease lapsed, leadership lost, retrying,
//	       stand by, abandoned
//	Error  what ended the schedules or a worker: stopped with an error
//
// To write less, raise the level of the handler: a disabled record costs no
// allocation. To write other attributes, or to count, put a function of your
// own in front: an observer is a func(tickonce.Event).
package eventlog

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/tickonce/tickonce"
)

// New returns an observer for [tickonce.Config.Observer] that writes each
// event to the logger (Q2). The logger must not be nil. The observer is safe
// for concurrent use.
func New(logger *slog.Logger) func(tickonce.Event) {
	handler := logger.Handler()
	return func(e tickonce.Event) {
		ctx := context.Background()
		if level := levelOf(e); handler.Enabled(ctx, level) {
			_ = handler.Handle(ctx, record(e, level))
		}
	}
}

// levelOf is the level of an event. A kind that it does not know is a warning.
func levelOf(e tickonce.Event) slog.Level {
	switch e.Kind {
	case tickonce.EventStopped:
		if e.Err != nil {
			return slog.LevelError
		}
	case tickonce.EventSkipped:
		switch e.Reason {
		case "pause", "hours", "overlap":
			return slog.LevelInfo
		}
	case tickonce.EventStandBy:
		if errors.Is(e.Err, tickonce.ErrLeadershipLost) {
			return slog.LevelDebug // the ordinary state of a second runner, every 5 s
		}
	}
	if level, ok := levels[e.Kind]; ok {
		return level
	}
	return slog.LevelWarn
}

var levels = map[tickonce.EventKind]slog.Level{
	tickonce.EventFired:     slog.LevelDebug,
	tickonce.EventEnqueued:  slog.LevelDebug,
	tickonce.EventClaimed:   slog.LevelDebug,
	tickonce.EventDone:      slog.LevelDebug,
	tickonce.EventDelivered: slog.LevelDebug,

	tickonce.EventScheduled:       slog.LevelInfo,
	tickonce.EventUnscheduled:     slog.LevelInfo,
	tickonce.EventPaused:          slog.LevelInfo,
	tickonce.EventResumed:         slog.LevelInfo,
	tickonce.EventTriggered:       slog.LevelInfo,
	tickonce.EventCancelled:       slog.LevelInfo,
	tickonce.EventRequeued:        slog.LevelInfo,
	tickonce.EventPurged:          slog.LevelInfo,
	tickonce.EventLeading:         slog.LevelInfo,
	tickonce.EventRetried:         slog.LevelInfo,
	tickonce.EventDeliveryRetried: slog.LevelInfo,
	tickonce.EventStopped:         slog.LevelInfo,

	tickonce.EventSkipped:        slog.LevelWarn,
	tickonce.EventQuarantined:    slog.LevelWarn,
	tickonce.EventBreakerOpened:  slog.LevelWarn,
	tickonce.EventDied:           slog.LevelWarn,
	tickonce.EventDeliveryFailed: slog.LevelWarn,
	tickonce.EventBuried:         slog.LevelWarn,
	tickonce.EventClaimLost:      slog.LevelWarn,
	tickonce.EventCursorAhead:    slog.LevelWarn,
	tickonce.EventRearmed:        slog.LevelWarn,
	tickonce.EventLeaseLapsed:    slog.LevelWarn,
	tickonce.EventLeadershipLost: slog.LevelWarn,
	tickonce.EventRetrying:       slog.LevelWarn,
	tickonce.EventAbandoned:      slog.LevelWarn,
	tickonce.EventStandBy:        slog.LevelWarn,
}

func record(e tickonce.Event, level slog.Level) slog.Record {
	r := slog.NewRecord(e.At, level, strings.ReplaceAll(e.Kind.String(), "_", " "), 0)
	addString(&r, "schedule", e.Schedule)
	if outbox, is := tickonce.OutboxName(e.Queue); is {
		addString(&r, "outbox", outbox)
	} else {
		addString(&r, "queue", e.Queue)
	}
	addInt(&r, "job", int64(e.Job))
	addTime(&r, "boundary", e.Boundary)
	addTime(&r, "first", e.First)
	addTime(&r, "last", e.Last)
	addInt(&r, "count", e.Count)
	addInt(&r, "origin", int64(e.Origin))
	addString(&r, "execution", e.Execution.String())
	if e.Delivery != tickonce.DeliveryNone {
		addString(&r, "delivery", e.Delivery.String())
	}
	addString(&r, "reason", e.Reason)
	addString(&r, "owner", e.Owner)
	addString(&r, "phase", string(e.Phase))
	addDuration(&r, "took", e.Took)
	addDuration(&r, "wait", e.Wait)
	if e.Err != nil {
		r.AddAttrs(slog.Any("error", e.Err))
	}
	return r
}

func addString(r *slog.Record, key, value string) {
	if value != "" {
		r.AddAttrs(slog.String(key, value))
	}
}

func addInt(r *slog.Record, key string, value int64) {
	if value != 0 {
		r.AddAttrs(slog.Int64(key, value))
	}
}

func addDuration(r *slog.Record, key string, value time.Duration) {
	if value != 0 {
		r.AddAttrs(slog.Duration(key, value))
	}
}

func addTime(r *slog.Record, key string, value time.Time) {
	if !value.IsZero() {
		r.AddAttrs(slog.Time(key, value))
	}
}
