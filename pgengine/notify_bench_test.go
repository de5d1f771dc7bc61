package pgengine

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
)

// BenchmarkNotify is eight goroutines that enqueue 250 jobs each;
// x-silent is how many times as long that takes with Notify as without, made in
// turns.
func BenchmarkNotify(b *testing.B) {
	_, pool := durable(b)
	engine := func(notify bool) *Engine {
		e, err := New(b.Context(), pool, tickonce.Config{Limits: tickonce.Limits{QueueLength: 1 << 30}}, Options{Notify: notify})
		require.NoError(b, err)
		return e
	}
	enqueue := func(e *Engine) time.Duration {
		began := time.Now()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 250 {
					if _, err := e.Enqueue(b.Context(), "q", []byte("payload"), tickonce.EnqueueOptions{}); err != nil {
						b.Error(err)
					}
				}
			})
		}
		all.Wait()
		return time.Since(began)
	}
	loud, silent := engine(true), engine(false)
	enqueue(silent) // the connections and their statements
	var withNotify, without time.Duration
	for b.Loop() {
		without += enqueue(silent)
		withNotify += enqueue(loud)
	}
	b.ReportMetric(float64(withNotify)/float64(without), "x-silent")
	b.ReportMetric(float64(b.N)*2000/withNotify.Seconds(), "jobs/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkWake is the time from a call that enqueues a job to its handler, in
// another engine that does not poll.
func BenchmarkWake(b *testing.B) {
	_, pool := durable(b)
	writer, err := New(b.Context(), pool, tickonce.Config{}, Options{Notify: true})
	require.NoError(b, err)
	worker, err := New(b.Context(), pool, tickonce.Config{Poll: -1}, Options{})
	require.NoError(b, err)
	begun := make(chan struct{})
	ctx, stop := context.WithCancel(b.Context())
	var loops sync.WaitGroup
	loops.Go(func() { worker.Listen(ctx) })
	loops.Go(func() {
		_ = worker.RunWorker(ctx, "q", func(context.Context, *tickonce.Job) error { begun <- struct{}{}; return nil }, tickonce.WorkerConfig{})
	})
	defer loops.Wait()
	defer stop()
	for b.Loop() {
		_, err := writer.Enqueue(b.Context(), "q", nil, tickonce.EnqueueOptions{})
		require.NoError(b, err)
		<-begun
		b.StopTimer()
		time.Sleep(2 * gapTime) // as where it is quiet
		b.StartTimer()
	}
}
