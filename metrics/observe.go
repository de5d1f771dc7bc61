package metrics

import (
	"errors"

	"github.com/tickonce/tickonce"
)

// observe counts an event. Kinds that are not here are told by the counters of
// the queue, which a lost reply does not make wrong.
func (m *events) observe(e tickonce.Event) {
	schedule, named := m.named[e.Schedule]
	switch e.Kind {
	case tickonce.EventScheduled, tickonce.EventUnscheduled, tickonce.EventPaused, tickonce.EventResumed:
		m.changes.WithLabelValues(e.Kind.String()).Inc()
	case tickonce.EventBreakerOpened:
		m.breakers.WithLabelValues(m.names.label(e.Queue)).Inc()
		if named {
			m.scheduleBreakers.WithLabelValues(schedule).Inc()
		}
	case tickonce.EventTriggered:
		m.triggered.WithLabelValues(m.names.label(e.Queue)).Inc()

	case tickonce.EventFired:
		m.fires.WithLabelValues(m.names.label(e.Queue)).Inc()
		m.lateness.Observe(e.At.Sub(e.Boundary).Seconds())
		if named {
			m.scheduleFires.WithLabelValues(schedule).Inc()
		}
	case tickonce.EventSkipped:
		reason := oneOf(reasons, e.Reason)
		m.skipped.WithLabelValues(reason).Add(float64(e.Count))
		if named {
			m.scheduleSkipped.WithLabelValues(schedule, reason).Add(float64(e.Count))
		}
	case tickonce.EventQuarantined:
		m.quarantines.WithLabelValues(m.names.label(e.Queue)).Inc()
		if named {
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

	case tickonce.EventDone, tickonce.EventRetried, tickonce.EventDied:
		m.executed(e, oneOf(executions, e.Execution.String()))
		m.executionDuration.Observe(e.Took.Seconds())
		if named && e.Kind == tickonce.EventDone {
			m.scheduleSuccess.WithLabelValues(schedule).Set(seconds(e.At))
		}
	case tickonce.EventDelivered, tickonce.EventDeliveryRetried, tickonce.EventDeliveryFailed:
		m.delivered(e, oneOf(deliveries, e.Delivery.String()))
		m.deliveryDuration.Observe(e.Took.Seconds())
	case tickonce.EventClaimLost, tickonce.EventAbandoned:
		if _, outbox := tickonce.OutboxName(e.Queue); outbox {
			m.delivered(e, lost)
		} else {
			m.executed(e, lost)
		}
	case tickonce.EventBuried:
		m.buried.WithLabelValues(m.names.label(e.Queue)).Add(float64(e.Count))
	}
}

func (m *events) executed(e tickonce.Event, outcome string) {
	m.executions.WithLabelValues(m.names.label(e.Queue), outcome).Inc()
	if schedule, named := m.named[e.Schedule]; named {
		m.scheduleExecutions.WithLabelValues(schedule, outcome).Inc()
	}
}

func (m *events) delivered(e tickonce.Event, outcome string) {
	m.deliveries.WithLabelValues(m.names.label(e.Queue), outcome).Inc()
	if schedule, named := m.named[e.Schedule]; named {
		m.scheduleDeliveries.WithLabelValues(schedule, outcome).Inc()
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
