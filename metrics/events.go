package metrics

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tickonce/tickonce"
)

const namespace = "tickonce"

// The values of labels, where they are not the names of queues and schedules.
// What an event says beyond them is [other].
var (
	reasons    = texts(tickonce.SkippedByPause, tickonce.SkippedAsMissed)
	executions = texts(tickonce.ExecutionOK, tickonce.ExecutionLost)
	deliveries = append(texts(tickonce.Delivered, tickonce.DeliveryPermanent), lost)
	changes    = texts(tickonce.EventScheduled, tickonce.EventResumed)
	phases     = []string{
		string(tickonce.PhaseAcquire), string(tickonce.PhaseRenew), string(tickonce.PhaseSelect), string(tickonce.PhaseAdvance),
		string(tickonce.PhaseExtend), string(tickonce.PhaseSettle), string(tickonce.PhaseClaim), string(tickonce.PhaseAsk),
		string(tickonce.PhaseListen),
	}
	ends = []string{"ok", "failed"}
)

// lost is the outcome of what nobody told the store in time, a delivery too.
var lost = tickonce.ExecutionLost.String()

// texts are those of the constants from first to last.
func texts[T interface {
	~uint8
	String() string
}](first, last T) (texts []string) {
	for value := first; value <= last; value++ {
		texts = append(texts, value.String())
	}
	return texts
}

func oneOf(known []string, value string) string {
	if slices.Contains(known, value) {
		return value
	}
	return other
}

// Buckets are in seconds. A runner that is on time wakes within a second, and
// an outage may last for days; a run takes milliseconds or hours.
var (
	latenessBuckets = []float64{0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 6 * 3600, 24 * 3600}
	durationBuckets = []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600}
)

// events are the metrics that events move.
type events struct {
	names *names
	named map[string]string // schedules that have a label, and which
	all   []prometheus.Collector

	fires, triggered, skipped, quarantines, breakers, changes *prometheus.CounterVec
	ahead, rearmed                                            prometheus.Counter
	lateness                                                  prometheus.Histogram

	executions, deliveries, buried      *prometheus.CounterVec
	executionDuration, deliveryDuration prometheus.Histogram

	leadership, standBys, retries, stops *prometheus.CounterVec
	leading                              prometheus.Gauge

	mu      sync.Mutex
	leaders map[string]bool // the owners of the runners that lead

	scheduleFires, scheduleSkipped, scheduleQuarantines, scheduleBreakers *prometheus.CounterVec
	scheduleExecutions, scheduleDeliveries                                *prometheus.CounterVec
	scheduleSuccess                                                       *prometheus.GaugeVec
}

func newEvents(schedules []string) *events {
	m := &events{named: map[string]string{}, leaders: map[string]bool{}}

	m.fires = m.counters("fires_total", "Boundaries that fired.", "queue")
	m.lateness = m.histogram("fire_lateness_seconds", "How long after its boundary a fire came.", latenessBuckets)
	m.triggered = m.counters("triggered_jobs_total", "Jobs of schedules that were fired by hand.", "queue")
	m.skipped = m.counters("skipped_boundaries_total", "Boundaries that were dropped unfired, by reason.", "reason")
	m.quarantines = m.counters("quarantines_total", "Times that a schedule was held, again each minute that it stays so.", "queue")
	m.breakers = m.counters("opened_breakers_total", "Schedules that were paused, since their jobs failed.", "queue")
	m.ahead = m.counter("cursors_ahead_total", "Cursors found that a clock set which was ahead.")
	m.rearmed = m.counter("rearmed_cursors_total", "Cursors set anew, since they were ahead.")
	m.changes = m.counters("schedule_changes_total", "Changes of schedules, by what was done.", "change")

	m.executions = m.counters("executions_total", "Attempts at jobs that ended, by outcome; of outboxes see tickonce_deliveries_total.", "queue", "outcome")
	m.executionDuration = m.histogram("execution_duration_seconds", "From the claim of a job to the end of the attempt, if it was not lost.", durationBuckets)
	m.deliveries = m.counters("deliveries_total", "Tries to deliver an entry of an outbox that ended, by outcome.", "queue", "outcome")
	m.deliveryDuration = m.histogram("delivery_duration_seconds", "From the claim of an entry to the end of the try, if it was not lost.", durationBuckets)
	m.buried = m.counters("buried_jobs_total", "Jobs that died unstarted: expired, or claimed for the last time and not settled.", "queue")

	m.leading = prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "leading_runners", Help: "Runners of this process that lead, as far as they know.",
	})
	m.all = append(m.all, m.leading)
	m.leadership = m.counters("leadership_changes_total", "Times that a runner of this process came to lead or ceased to.", "change")
	m.standBys = m.counters("stand_bys_total", "Times that a runner began to stand by, by cause.", "cause")
	m.retries = m.counters("store_retries_total", "Store errors of runners, workers and listeners after which the call is made again, by phase.", "phase")
	m.stops = m.counters("stops_total", "Ends of runners and workers, by outcome.", "role", "outcome")

	m.scheduleFires = m.counters("schedule_fires_total", "Boundaries of a schedule that fired.", "schedule")
	m.scheduleSkipped = m.counters("schedule_skipped_boundaries_total", "Boundaries of a schedule that were dropped unfired, by reason.", "schedule", "reason")
	m.scheduleQuarantines = m.counters("schedule_quarantines_total", "Times that a schedule was held, again each minute that it stays so.", "schedule")
	m.scheduleBreakers = m.counters("schedule_opened_breakers_total", "Times that a schedule was paused, since its jobs failed.", "schedule")
	m.scheduleExecutions = m.counters("schedule_executions_total", "Attempts at a schedule's jobs that ended, by outcome.", "schedule", "outcome")
	m.scheduleDeliveries = m.counters("schedule_deliveries_total", "Tries to deliver what a schedule's jobs resulted in, by outcome.", "schedule", "outcome")
	m.scheduleSuccess = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Name: "schedule_last_success_timestamp_seconds",
		Help: "When a job of the schedule was last done by this process.",
	}, []string{"schedule"})
	m.all = append(m.all, m.scheduleSuccess)

	zero(m.skipped, reasons)
	zero(m.changes, changes)
	zero(m.leadership, []string{"gained", "lapsed", "lost"})
	zero(m.standBys, []string{"lost", "store"})
	zero(m.retries, phases)
	zero(m.stops, ends, "runner")
	zero(m.stops, ends, "worker")
	for _, name := range schedules {
		label := valid(name)
		m.named[name] = label
		zero(m.scheduleFires, []string{label})
		zero(m.scheduleSkipped, reasons, label)
		zero(m.scheduleQuarantines, []string{label})
		zero(m.scheduleBreakers, []string{label})
		zero(m.scheduleExecutions, executions, label)
		zero(m.scheduleDeliveries, deliveries, label)
	}
	return m
}

// zero has what is to come begin at zero, so that its first increase is seen.
func zero(vec *prometheus.CounterVec, values []string, before ...string) {
	for _, value := range values {
		vec.WithLabelValues(append(before, value)...)
	}
}

// begin is told of each value of the label queue, and whether it is an
// outbox's: no schedule fires into one, and no handler runs for it.
func (m *events) begin(queue string, outbox bool) {
	zero(m.buried, []string{queue})
	if outbox {
		zero(m.deliveries, deliveries, queue)
		return
	}
	zero(m.fires, []string{queue})
	zero(m.triggered, []string{queue})
	zero(m.quarantines, []string{queue})
	zero(m.breakers, []string{queue})
	zero(m.executions, executions, queue)
}

func (m *events) counter(name, help string) prometheus.Counter {
	counter := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	m.all = append(m.all, counter)
	return counter
}

func (m *events) counters(name, help string, labels ...string) *prometheus.CounterVec {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	m.all = append(m.all, vec)
	return vec
}

func (m *events) histogram(name, help string, buckets []float64) prometheus.Histogram {
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets})
	m.all = append(m.all, histogram)
	return histogram
}

func (m *events) describe(descs chan<- *prometheus.Desc) {
	for _, c := range m.all {
		c.Describe(descs)
	}
}

func (m *events) collect(metrics chan<- prometheus.Metric) {
	for _, c := range m.all {
		c.Collect(metrics)
	}
}
