// Command metrics is a service whose engine is scraped by Prometheus: it runs
// two schedules and a worker for their jobs, of which some fail, and serves
// /metrics.
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
	for name, spec := range map[string]string{"report": "@every 5s", "cleanup": "@every 2s"} {
		if _, err := eng.Schedule(ctx, name, spec, "work", nil, tickonce.ScheduleOptions{BaseBackoff: time.Second}); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	led := make(chan error, 1)
	go func() {
		defer stop()
		led <- eng.RunSchedules(ctx)
	}()
	worked := eng.RunWorker(ctx, "work", handle, tickonce.WorkerConfig{Concurrency: 2})
	stop()
	return errors.Join(<-led, worked)
}

// handle takes up to a second and a half, and fails at each fifth job's first
// attempt.
func handle(ctx context.Context, job *tickonce.Job) error {
	select {
	case <-time.After(time.Duration(job.ID%4) * 500 * time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if job.ID%5 == 0 && job.Attempt == 1 {
		return errors.New("no answer")
	}
	return nil
}
