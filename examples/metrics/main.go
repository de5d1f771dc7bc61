// Command metrics is a service whose engine is scraped by Prometheus: it runs
// two schedules, a worker for their jobs and one that delivers what they result
// in, of which some fail, and serves /metrics.
//
//	metrics [ADDRESS]
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/eventlog"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/metrics"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills at once

	address := "127.0.0.1:2112"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	listener, err := net.Listen("tcp", address)
	if err == nil {
		slog.Info("serving", "url", fmt.Sprintf("http://%s/metrics", listener.Addr()))
		err = serve(ctx, listener)
	}
	if err != nil {
		slog.Error("service ended", "error", err)
		os.Exit(1)
	}
}

// serve runs the engine and shows its metrics until ctx ends.
func serve(ctx context.Context, listener net.Listener) error {
	m, err := metrics.New(metrics.Options{Schedules: []string{"report"}})
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}

	ctx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() {
		defer stop()
		served <- server.Serve(listener)
	}()
	worked := work(ctx, m)
	closed := server.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		worked = errors.Join(worked, err)
	}
	return errors.Join(worked, closed)
}

// work runs the engine until ctx ends.
func work(ctx context.Context, m *metrics.Metrics) error {
	write := eventlog.New(slog.Default()) // at level Info
	eng, err := memengine.New(tickonce.Config{
		Poll: -1, // in memory: nobody else writes the store
		Observer: func(e tickonce.Event) {
			m.Observe(e)
			write(e)
		},
	})
	if err != nil {
		return err
	}
	m.Watch(eng)
	if _, err := eng.Schedule(ctx, "report", "@every 5s", "work", nil, tickonce.ScheduleOptions{
		BaseBackoff: time.Second,
	}); err != nil {
		return err
	}
	if _, err := eng.Schedule(ctx, "cleanup", "@every 2s", "work", nil, tickonce.ScheduleOptions{
		Overlap: tickonce.OverlapSkip, // it takes longer than that
	}); err != nil {
		return err
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ends := make(chan error, 3)
	for _, run := range []func() error{
		func() error { return eng.RunSchedules(ctx) },
		func() error { return eng.RunWorker(ctx, "work", handle, tickonce.WorkerConfig{Concurrency: 2}) },
		func() error { return eng.Outbox("mail").Run(ctx, deliver, tickonce.WorkerConfig{}) },
	} {
		go func() {
			defer stop()
			ends <- run()
		}()
	}
	return errors.Join(<-ends, <-ends, <-ends)
}

// handle does a job of either schedule. Each fourth report fails at first.
func handle(ctx context.Context, job *tickonce.Job) error {
	if job.Schedule == "cleanup" {
		return sleep(ctx, 3*time.Second)
	}
	if err := sleep(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	if number(job)%4 == 0 && job.Attempt == 1 {
		return errors.New("the figures are locked")
	}
	return job.Deliver("mail", []byte("the figures"))
}

// deliver sends a report. Each third one has to be sent again, each fifth one
// cannot be.
func deliver(ctx context.Context, entry *tickonce.Job) error {
	if err := sleep(ctx, 100*time.Millisecond); err != nil {
		return err
	}
	switch {
	case number(entry)%5 == 0:
		return tickonce.Permanent(errors.New("no such address"))
	case number(entry)%3 == 0 && entry.Attempt == 1:
		return tickonce.Transient(errors.New("no answer"))
	}
	return nil
}

// number counts the boundaries of a schedule of 5 s.
func number(job *tickonce.Job) int64 { return job.Boundary.Unix() / 5 }

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
