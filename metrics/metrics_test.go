package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/metrics"
)

// engine is one in memory that is observed and watched, and led by a runner.
type engine struct {
	*memengine.Engine
	clock  *clock.Mock
	runner *tickonce.Runner
}

func newEngine(t *testing.T, m *metrics.Metrics) engine {
	mock := clock.NewMock()
	mock.Set(at)
	eng, err := memengine.New(tickonce.Config{
		Clock: mock, Seed: 1, Owner: "a", Observer: m.Observe, Limits: tickonce.Limits{QueueLength: 70},
	})
	require.NoError(t, err)
	m.Watch(eng)
	return engine{eng, mock, eng.NewRunner()}
}

func (e engine) schedule(t *testing.T, name, spec, queue string) {
	_, err := e.Schedule(t.Context(), name, spec, queue, nil, tickonce.ScheduleOptions{})
	require.NoError(t, err)
}

// pass lets the time pass and fires what is due then.
func (e engine) pass(t *testing.T, d time.Duration) {
	e.clock.Set(e.clock.Now().Add(d))
	for {
		next, _, err := e.runner.Step(t.Context())
		require.NoError(t, err)
		if next.After(e.clock.Now()) {
			return
		}
	}
}

func (e engine) claim(t *testing.T, queue string) *tickonce.Job {
	job, err := e.Claim(t.Context(), queue, "worker")
	require.NoError(t, err)
	require.NotNil(t, job)
	return job
}

func requireMetrics(t *testing.T, m prometheus.Collector, want string, about ...any) {
	var names []string
	for line := range strings.Lines(want) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[1] == "TYPE" {
			names = append(names, fields[2])
		}
	}
	require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(want), names...), about...)
}

// An engine that was down for two hours, with a full queue and jobs that end in
// each way, shows what became of all.
func TestScrapeOfAnEngine(t *testing.T) {
	m := newMetrics(t, metrics.Options{Schedules: []string{"report"}})
	eng := newEngine(t, m)
	eng.schedule(t, "report", "@every 1m", "mail")
	eng.schedule(t, "other", "@every 1m", "mail")
	eng.pass(t, 2*time.Hour+1500*time.Millisecond) // 64 and 56 of each; the second finds the queue full

	require.NoError(t, eng.claim(t, "mail").Ack(t.Context()))
	require.NoError(t, eng.claim(t, "mail").RetryAfter(t.Context(), errors.New("busy"), time.Minute))
	require.NoError(t, eng.claim(t, "mail").Fail(t.Context(), errors.New("no such address")))
	job := eng.claim(t, "mail")
	cancelled, err := eng.Cancel(t.Context(), "mail", job.ID)
	require.NoError(t, err)
	require.True(t, cancelled)
	require.ErrorIs(t, job.Ack(t.Context()), tickonce.ErrClaimLost)
	eng.claim(t, "mail")

	requireMetrics(t, m, `
# HELP tickonce_fires_total Boundaries that fired.
# TYPE tickonce_fires_total counter
tickonce_fires_total{queue="mail"} 64
# HELP tickonce_skipped_boundaries_total Boundaries that were dropped unfired, by reason.
# TYPE tickonce_skipped_boundaries_total counter
tickonce_skipped_boundaries_total{reason="cap"} 56
tickonce_skipped_boundaries_total{reason="hours"} 0
tickonce_skipped_boundaries_total{reason="missed"} 0
tickonce_skipped_boundaries_total{reason="overlap"} 0
tickonce_skipped_boundaries_total{reason="pause"} 0
tickonce_skipped_boundaries_total{reason="policy"} 0
# HELP tickonce_fire_lateness_seconds How long after its boundary a fire came.
# TYPE tickonce_fire_lateness_seconds histogram
tickonce_fire_lateness_seconds_bucket{le="0.01"} 0
tickonce_fire_lateness_seconds_bucket{le="0.1"} 0
tickonce_fire_lateness_seconds_bucket{le="0.5"} 0
tickonce_fire_lateness_seconds_bucket{le="1"} 0
tickonce_fire_lateness_seconds_bucket{le="2.5"} 0
tickonce_fire_lateness_seconds_bucket{le="5"} 0
tickonce_fire_lateness_seconds_bucket{le="10"} 0
tickonce_fire_lateness_seconds_bucket{le="30"} 0
tickonce_fire_lateness_seconds_bucket{le="60"} 0
tickonce_fire_lateness_seconds_bucket{le="300"} 0
tickonce_fire_lateness_seconds_bucket{le="1800"} 0
tickonce_fire_lateness_seconds_bucket{le="3600"} 4
tickonce_fire_lateness_seconds_bucket{le="21600"} 64
tickonce_fire_lateness_seconds_bucket{le="86400"} 64
tickonce_fire_lateness_seconds_bucket{le="+Inf"} 64
tickonce_fire_lateness_seconds_sum 336096
tickonce_fire_lateness_seconds_count 64
# HELP tickonce_quarantines_total Times that a schedule was held, again each minute that it stays so.
# TYPE tickonce_quarantines_total counter
tickonce_quarantines_total{queue="mail"} 1
# HELP tickonce_leading_runners Runners of this process that lead, as far as they know.
# TYPE tickonce_leading_runners gauge
tickonce_leading_runners 1
# HELP tickonce_executions_total Attempts at jobs that ended, by outcome; of outboxes see tickonce_deliveries_total.
# TYPE tickonce_executions_total counter
tickonce_executions_total{outcome="cancelled",queue="mail"} 0
tickonce_executions_total{outcome="failed",queue="mail"} 2
tickonce_executions_total{outcome="lost",queue="mail"} 1
tickonce_executions_total{outcome="ok",queue="mail"} 1
tickonce_executions_total{outcome="panicked",queue="mail"} 0
tickonce_executions_total{outcome="timed_out",queue="mail"} 0
# HELP tickonce_queue_jobs Jobs that the queue keeps, by state.
# TYPE tickonce_queue_jobs gauge
tickonce_queue_jobs{queue="mail",state="claimed"} 1
tickonce_queue_jobs{queue="mail",state="dead"} 1
tickonce_queue_jobs{queue="mail",state="pending"} 60
# HELP tickonce_queue_removed_jobs_total Jobs that left the queue, by how.
# TYPE tickonce_queue_removed_jobs_total counter
tickonce_queue_removed_jobs_total{how="cancelled",queue="mail"} 1
tickonce_queue_removed_jobs_total{how="done",queue="mail"} 1
tickonce_queue_removed_jobs_total{how="purged",queue="mail"} 0
tickonce_queue_removed_jobs_total{how="requeued",queue="mail"} 0
# HELP tickonce_queue_next_claim_timestamp_seconds When the queue has a job to claim: if past, since when one waits; absent: none waits.
# TYPE tickonce_queue_next_claim_timestamp_seconds gauge
tickonce_queue_next_claim_timestamp_seconds{queue="mail"} 1.7723736015e+09
# HELP tickonce_queue_reads_total Readings of the queues at a scrape, by outcome; after one that failed the other tickonce_queue metrics are absent.
# TYPE tickonce_queue_reads_total counter
tickonce_queue_reads_total{outcome="failed"} 0
tickonce_queue_reads_total{outcome="ok"} 1
`)
}

// A job that is done stays so when the delivery of its result fails, and the
// other way round no delivery is counted for a job that fails.
func TestX1ExecutionsAndDeliveriesAreCountedApart(t *testing.T) {
	m := newMetrics(t, metrics.Options{Schedules: []string{"report"}})
	eng := newEngine(t, m)
	eng.schedule(t, "report", "@every 1m", "mail")
	eng.pass(t, 0)
	eng.pass(t, 3*time.Minute)
	for _, failure := range []error{nil, nil, errors.New("no figures")} {
		job := eng.claim(t, "mail")
		require.NoError(t, job.Deliver("chat", nil))
		eng.clock.Add(1500 * time.Millisecond)
		if failure == nil {
			require.NoError(t, job.Ack(t.Context()))
		} else {
			require.NoError(t, job.Fail(t.Context(), failure))
		}
	}
	for _, failure := range []error{tickonce.Permanent(errors.New("no such channel")), tickonce.Transient(errors.New("no answer"))} {
		found, err := eng.Outbox("chat").RunOnce(t.Context(), "worker", func(context.Context, *tickonce.Job) error {
			eng.clock.Add(250 * time.Millisecond)
			return failure
		})
		require.NoError(t, err)
		require.True(t, found)
	}

	for _, family := range []struct{ name, label, of string }{
		{"tickonce_executions_total", "queue", "mail"},
		{"tickonce_schedule_executions_total", "schedule", "report"},
	} {
		require.Equal(t, 2.0, value(t, m, family.name, family.label, family.of, "outcome", "ok"))
		require.Equal(t, 1.0, value(t, m, family.name, family.label, family.of, "outcome", "failed"))
		require.Equal(t, 3.0, value(t, m, family.name))
	}
	for _, family := range []struct{ name, label, of string }{
		{"tickonce_deliveries_total", "queue", "outbox:chat"},
		{"tickonce_schedule_deliveries_total", "schedule", "report"},
	} {
		require.Equal(t, 1.0, value(t, m, family.name, family.label, family.of, "outcome", "permanent"))
		require.Equal(t, 1.0, value(t, m, family.name, family.label, family.of, "outcome", "transient"))
		require.Equal(t, 2.0, value(t, m, family.name))
	}
	for _, family := range gather(t, m) {
		switch h := family.GetMetric()[0].GetHistogram(); family.GetName() {
		case "tickonce_execution_duration_seconds":
			require.EqualValues(t, 3, h.GetSampleCount())
			require.Equal(t, 3*1.5, h.GetSampleSum())
		case "tickonce_delivery_duration_seconds":
			require.EqualValues(t, 2, h.GetSampleCount())
			require.Equal(t, 2*0.25, h.GetSampleSum())
		}
	}
}

// What the policies of schedules do is counted: a breaker that opens, a job that
// is fired by hand, and what was skipped over a job that runs.
func TestPoliciesAreCounted(t *testing.T) {
	m := newMetrics(t, metrics.Options{Schedules: []string{"report"}})
	eng := newEngine(t, m)
	_, err := eng.Schedule(t.Context(), "report", "@every 1m", "mail", nil, tickonce.ScheduleOptions{
		Overlap: tickonce.OverlapSkip, Breaker: 1,
	})
	require.NoError(t, err)
	_, err = eng.Trigger(t.Context(), "report")
	require.NoError(t, err)
	eng.pass(t, 0)
	eng.pass(t, 2*time.Minute)
	require.NoError(t, eng.claim(t, "mail").Fail(t.Context(), errors.New("no figures")))
	requireMetrics(t, m, `
# HELP tickonce_triggered_jobs_total Jobs of schedules that were fired by hand.
# TYPE tickonce_triggered_jobs_total counter
tickonce_triggered_jobs_total{queue="mail"} 1
# HELP tickonce_schedule_skipped_boundaries_total Boundaries of a schedule that were dropped unfired, by reason.
# TYPE tickonce_schedule_skipped_boundaries_total counter
tickonce_schedule_skipped_boundaries_total{reason="cap",schedule="report"} 0
tickonce_schedule_skipped_boundaries_total{reason="hours",schedule="report"} 0
tickonce_schedule_skipped_boundaries_total{reason="missed",schedule="report"} 0
tickonce_schedule_skipped_boundaries_total{reason="overlap",schedule="report"} 2
tickonce_schedule_skipped_boundaries_total{reason="pause",schedule="report"} 0
tickonce_schedule_skipped_boundaries_total{reason="policy",schedule="report"} 0
# HELP tickonce_opened_breakers_total Schedules that were paused, since their jobs failed.
# TYPE tickonce_opened_breakers_total counter
tickonce_opened_breakers_total{queue="mail"} 1
# HELP tickonce_schedule_opened_breakers_total Times that a schedule was paused, since its jobs failed.
# TYPE tickonce_schedule_opened_breakers_total counter
tickonce_schedule_opened_breakers_total{schedule="report"} 1
`)
}

// An engine pays for being counted with time alone.
func TestCountingAllocatesNothing(t *testing.T) {
	m := newMetrics(t, metrics.Options{MaxQueues: 2, Schedules: []string{"report"}})
	for kind := tickonce.EventNone + 1; kind <= tickonce.EventDeliveryFailed; kind++ {
		for _, e := range events(kind) {
			e.Err = nil
			require.Zero(t, testing.AllocsPerRun(100, func() { m.Observe(e) }), kind)
		}
	}
}

// The gauge follows the runners through all that ends their lead.
func TestLeadingRunnersFollowTheEvents(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	for i, step := range []struct {
		event   tickonce.Event
		leading int
	}{
		{tickonce.Event{Kind: tickonce.EventLeading, Owner: "a/1"}, 1},
		{tickonce.Event{Kind: tickonce.EventStandBy, Owner: "a/2", Err: tickonce.ErrLeadershipLost}, 1},
		{tickonce.Event{Kind: tickonce.EventLeaseLapsed, Owner: "a/1"}, 1},
		{tickonce.Event{Kind: tickonce.EventLeading, Owner: "a/1"}, 1},
		{tickonce.Event{Kind: tickonce.EventStandBy, Owner: "a/1", Err: errors.New("connection reset")}, 0},
		{tickonce.Event{Kind: tickonce.EventLeading, Owner: "a/2"}, 1},
		{tickonce.Event{Kind: tickonce.EventLeadershipLost, Owner: "a/2"}, 0},
		{tickonce.Event{Kind: tickonce.EventLeading, Owner: "a/1"}, 1},
		{tickonce.Event{Kind: tickonce.EventStopped, Owner: "a/1", Queue: "mail"}, 1}, // a worker
		{tickonce.Event{Kind: tickonce.EventStopped, Owner: "a/1"}, 0},
	} {
		m.Observe(step.event)
		requireMetrics(t, m, fmt.Sprintf(`
# HELP tickonce_leading_runners Runners of this process that lead, as far as they know.
# TYPE tickonce_leading_runners gauge
tickonce_leading_runners %d
`, step.leading), i)
	}
}

func TestUnknownTextsAreOther(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	m.Observe(tickonce.Event{Kind: tickonce.EventSkipped, Reason: "a reason of a later version", Count: 3})
	m.Observe(tickonce.Event{Kind: tickonce.EventSkipped, Reason: "another", Count: 4})
	m.Observe(tickonce.Event{Kind: tickonce.EventRetrying, Phase: "later"})
	m.Observe(tickonce.Event{Kind: 255})
	require.Equal(t, 7.0, value(t, m, "tickonce_skipped_boundaries_total", "reason", "other"))
	require.Equal(t, 1.0, value(t, m, "tickonce_store_retries_total", "phase", "other"))
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	_, err := metrics.New(metrics.Options{MaxQueues: 10_001, ReadTimeout: -time.Second})
	require.ErrorIs(t, err, tickonce.ErrInvalidOption)
	require.EqualError(t, err, "invalid option: MaxQueues is 10001, want at most 10000\n"+
		"invalid option: ReadTimeout is -1s, want more than 0s")
}

// Several goroutines count and scrape at once, and nothing is lost.
func TestConcurrentUse(t *testing.T) {
	const goroutines, rounds = 8, 200
	m := newMetrics(t, metrics.Options{MaxQueues: 3})
	m.Watch(queuesOf{{Name: "q0", Pending: 1}, {Name: "q9", Pending: 2}})
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m))
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range rounds {
				m.Observe(tickonce.Event{Kind: tickonce.EventFired, At: at, Boundary: at, Queue: fmt.Sprint("q", (g+i)%5)})
				m.Observe(tickonce.Event{Kind: tickonce.EventLeading, Owner: fmt.Sprint(g)})
				m.Observe(tickonce.Event{Kind: tickonce.EventStopped, Owner: fmt.Sprint(g)})
				if i%50 == 0 {
					_, err := registry.Gather()
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, float64(goroutines*rounds), value(t, m, "tickonce_fires_total"))
	require.Zero(t, value(t, m, "tickonce_leading_runners"))
}

// value adds up the family's series with these labels and values.
func value(t *testing.T, m *metrics.Metrics, name string, labels ...string) (total float64) {
	for _, family := range gather(t, m) {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			have := map[string]string{}
			for _, label := range metric.GetLabel() {
				have[label.GetName()] = label.GetValue()
			}
			matches := true
			for i := 0; i < len(labels); i += 2 {
				matches = matches && have[labels[i]] == labels[i+1]
			}
			if matches {
				total += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return total
}
