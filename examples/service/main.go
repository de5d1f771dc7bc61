// Command service is a Go service with recurring work inside: it runs a
// schedule, a worker does the jobs that it fires, two at a time, and SIGINT or
// SIGTERM stops it in two phases.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/eventlog"
	"github.com/tickonce/tickonce/memengine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills at once

	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if err := serve(ctx, tickonce.Config{Observer: eventlog.New(logger)}, sendReport); err != nil {
		logger.Error("service ended", "error", err)
		os.Exit(1)
	}
}

// sendReport is the work itself.
func sendReport(ctx context.Context, job *tickonce.Job) error {
	select {
	case <-time.After(3 * time.Second):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serve runs until ctx ends, or the schedules cannot be run any more, and the
// jobs in hand are done.
func serve(ctx context.Context, config tickonce.Config, handle tickonce.Handler) error {
	config.Poll = -1 // in memory: nobody else writes the store
	eng, err := memengine.New(config)
	if err != nil {
		return err
	}
	if _, err := eng.Schedule(ctx, "report", "@every 5s", "reports", []byte("figures"), tickonce.ScheduleOptions{
		Anchor:  time.Unix(0, 0), // at :00, :05, :10, …, whenever the service starts
		CatchUp: tickonce.CatchUpLatest,
	}); err != nil {
		return err
	}

	ctx, stop := context.WithCancel(ctx)
	led := make(chan error, 1)
	go func() {
		defer stop()
		led <- eng.RunSchedules(ctx)
	}()
	worked := eng.RunWorker(ctx, "reports", handle, tickonce.WorkerConfig{
		Concurrency: 2,
		Timeout:     time.Minute,
		StopTimeout: 10 * time.Second,
	})
	stop()
	return errors.Join(<-led, worked)
}
