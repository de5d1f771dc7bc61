package metrics

import (
	"errors"

	"github.com/tickonce/tickonce"
)

// observe counts an event. Kinds that are not here are told by the counters of
// the queue, which a lost reply does not make wrong.
func (m *events) observe(e tickonce.Event) {
	switch e.Kind {
	case tickonce.EventScheduled, tickonce.EventUnscheduled, tickonce.EventPaused, tickonce.EventResumed:
		m.changes.WithLabelValues(e.Kind.String()).Inc()
	case tickonce.EventFired:
		m.fires.WithLabelValues(m.names.label(e.Queue)).Inc()
		m.lateness.Observe(e.At.Sub(e.Boundary).Seconds())
		if schedule, ok := m.named[e.Schedule]; ok {
			m.scheduleFires.WithLabelValues(schedule).Inc()
		}
	case tickonce.EventSkipped:
		reason := oneOf(reasons, e.Reason)
		m.skipped.WithLabelValues(reason).Add(float64(e.Count))
		if schedule, ok := m.named[e.Schedule]; ok {
			m.scheduleSkipped.WithLabelValues(schedule, reason).Add(float64(e.Count))
		}
	case tickonce.EventQuarantined:
		m.quarantines.WithLabelValues(m.names.label(e.Queue)).Inc()
		if schedule, ok := m.named[e.Schedule]; ok {
			m.scheduleQuarantines.WithLabelValues(schedule).Inc()
		}
	case tickonce.EventCursorAhead:
		m.ahead.Inc()
	case tickonce.EventRearmed:
		m.rearmed.Inc()

	case tickonce.EventLeading:
		m.lead(e.Owner, true)
		m.leadership.WithLabelValues("gained").Inc()
	case tickonce.EventLeaseLapsed:
		m.leadership.WithLabelValues("lapsed").Inc()
	case tickonce.EventLeadershipLost:
		m.lead(e.Owner, false)
		m.leadership.WithLabelValues("lost").Inc()
	case tickonce.EventStandBy:
		m.lead(e.Owner, false)
		cause := "store"
		if errors.Is(e.Err, tickonce.ErrLeadershipLost) {
			cause = "lost"
		}
		m.standBys.WithLabelValues(cause).Inc()
	case tickonce.EventRetrying:
		m.retries.WithLabelValues(oneOf(phases, string(e.Phase))).Inc()
	case tickonce.EventStopped:
		m.stopped(e)

	case tickonce.EventBuried:
		m.buried.WithLabelValues(m.names.label(e.Queue)).Add(float64(e.Count))
	case tickonce.EventDone:
		m.executed(e, "ok")
		m.duration.Observe(e.Took.Seconds())
		if schedule, ok := m.named[e.Schedule]; ok {
			m.scheduleSuccess.WithLabelValues(schedule).Set(seconds(e.At))
		}
	case tickonce.EventRetried, tickonce.EventDied:
		m.executed(e, "failed")
		m.duration.Observe(e.Took.Seconds())
	case tickonce.EventClaimLost:
		m.executed(e, "lost")
	case tickonce.EventAbandoned:
		m.executed(e, "abandoned")
	}
}

func (m *events) executed(e tickonce.Event, outcome string) {
	m.executions.WithLabelValues(m.names.label(e.Queue), outcome).Inc()
	if schedule, ok := m.named[e.Schedule]; ok {
		m.scheduleExecutions.WithLabelValues(schedule, outcome).Inc()
	}
}

func (m *events) stopped(e tickonce.Event) {
	role, outcome := "worker", "ok"
	if e.Queue == "" {
		role = "runner"
		m.lead(e.Owner, false)
	}
	if e.Err != nil {
		outcome = "failed"
	}
	m.stops.WithLabelValues(role, outcome).Inc()
}

func (m *events) lead(owner string, leads bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if leads {
		m.leaders[owner] = true
	} else {
		delete(m.leaders, owner)
	}
	m.leading.Set(float64(len(m.leaders)))
}
