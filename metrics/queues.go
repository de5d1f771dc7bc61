package metrics

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tickonce/tickonce"
)

// queues reads an engine at a scrape.
type queues struct {
	names   *names
	timeout time.Duration
	engine  atomic.Pointer[Engine]
	turn    chan struct{} // taken by the one reading

	jobs, waiting, enqueued, claims, retries, deaths, removed, nextClaim, dropped *prometheus.Desc

	reads *prometheus.CounterVec
}

func newQueues(names *names, timeout time.Duration) *queues {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "queue", name), help, labels, nil)
	}
	q := &queues{
		names: names, timeout: timeout, turn: make(chan struct{}, 1),
		jobs:      desc("jobs", "Jobs that the queue keeps, by state.", "queue", "state"),
		waiting:   desc("waiting_jobs", "Jobs that wait for the end of another job of their schedule.", "queue"),
		enqueued:  desc("enqueued_jobs_total", "Jobs ever put into the queue: enqueued, fired, requeued.", "queue"),
		claims:    desc("claims_total", "Attempts ever handed out.", "queue"),
		retries:   desc("retries_total", "Attempts that ended in another try.", "queue"),
		deaths:    desc("deaths_total", "Jobs ever moved to dead.", "queue"),
		removed:   desc("removed_jobs_total", "Jobs that left the queue, by how.", "queue", "how"),
		nextClaim: desc("next_claim_timestamp_seconds", "When the queue has a job to claim: if past, since when one waits; absent: none waits.", "queue"),
		dropped: prometheus.NewDesc(prometheus.BuildFQName(namespace, "", "dropped_details_total"),
			"Details that were dropped before any loop over them; without one, all but the latest.", nil, nil),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: "queue", Name: "reads_total",
			Help: "Readings of the queues at a scrape, by outcome; after one that failed the other tickonce_queue metrics are absent.",
		}, []string{"outcome"}),
	}
	for _, outcome := range []string{"ok", "failed"} {
		q.reads.WithLabelValues(outcome)
	}
	return q
}

func (q *queues) describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{q.jobs, q.waiting, q.enqueued, q.claims, q.retries, q.deaths, q.removed, q.nextClaim, q.dropped} {
		descs <- desc
	}
	q.reads.Describe(descs)
}

func (q *queues) collect(metrics chan<- prometheus.Metric) {
	defer q.reads.Collect(metrics)
	engine := q.engine.Load()
	if engine == nil {
		return
	}
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value int64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, kind, float64(value), labels...)
	}
	send(q.dropped, prometheus.CounterValue, (*engine).DroppedDetails())
	infos, err := q.read(*engine)
	if err != nil {
		q.reads.WithLabelValues("failed").Inc()
		return
	}
	q.reads.WithLabelValues("ok").Inc()
	for label, info := range infos {
		send(q.jobs, prometheus.GaugeValue, info.Pending, label, "pending")
		send(q.jobs, prometheus.GaugeValue, info.Claimed, label, "claimed")
		send(q.jobs, prometheus.GaugeValue, info.Dead, label, "dead")
		send(q.waiting, prometheus.GaugeValue, info.Waiting, label)
		send(q.enqueued, prometheus.CounterValue, info.Enqueued, label)
		send(q.claims, prometheus.CounterValue, info.Claims, label)
		send(q.retries, prometheus.CounterValue, info.Retried, label)
		send(q.deaths, prometheus.CounterValue, info.Died, label)
		send(q.removed, prometheus.CounterValue, info.Done, label, "done")
		send(q.removed, prometheus.CounterValue, info.Cancelled, label, "cancelled")
		send(q.removed, prometheus.CounterValue, info.Requeued, label, "requeued")
		send(q.removed, prometheus.CounterValue, info.Purged, label, "purged")
		if !info.NextClaimAt.IsZero() {
			metrics <- prometheus.MustNewConstMetric(q.nextClaim, prometheus.GaugeValue, seconds(info.NextClaimAt), label)
		}
	}
}

var errSlow = errors.New("the queues were not read in time")

// read returns the sums of the queues by their labels. A store that hangs keeps
// one goroutine, and no scrape for longer than the timeout.
func (q *queues) read(engine Engine) (map[string]tickonce.QueueInfo, error) {
	ctx, cancel := context.WithTimeout(context.Background(), q.timeout)
	defer cancel()
	select {
	case q.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, errSlow
	}
	type answer struct {
		sums map[string]tickonce.QueueInfo
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		defer func() { <-q.turn }()
		sums, err := q.sum(ctx, engine)
		done <- answer{sums, err}
	}()
	select {
	case a := <-done:
		return a.sums, a.err
	case <-ctx.Done():
		return nil, errSlow
	}
}

func (q *queues) sum(ctx context.Context, engine Engine) (map[string]tickonce.QueueInfo, error) {
	sums := map[string]tickonce.QueueInfo{}
	for info, err := range engine.Queues(ctx) {
		if err == nil {
			err = ctx.Err() // a store may not look at it
		}
		if err != nil {
			return nil, err
		}
		label := q.names.label(info.Name)
		sums[label] = add(sums[label], info)
	}
	return sums, nil
}

func add(a, b tickonce.QueueInfo) tickonce.QueueInfo {
	a.Pending += b.Pending
	a.Claimed += b.Claimed
	a.Dead += b.Dead
	a.Waiting += b.Waiting
	a.Enqueued += b.Enqueued
	a.Claims += b.Claims
	a.Retried += b.Retried
	a.Done += b.Done
	a.Died += b.Died
	a.Cancelled += b.Cancelled
	a.Requeued += b.Requeued
	a.Purged += b.Purged
	if a.NextClaimAt.IsZero() || !b.NextClaimAt.IsZero() && b.NextClaimAt.Before(a.NextClaimAt) {
		a.NextClaimAt = b.NextClaimAt
	}
	return a
}

// seconds is an instant as Prometheus writes it.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
