// Command service is a Go service with recurring work inside: it runs a
// schedule, two workers handle the jobs that it fires, and SIGINT or SIGTERM
// stops it in two phases.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/eventlog"
	"github.com/tickonce/tickonce/memengine"
)

const (
	grace      = 10 * time.Second // for the jobs in hand to finish
	lastNotice = time.Second      // for them to give up after that
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills at once

	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if err := serve(ctx, tickonce.Config{}, logger, sendReport); err != nil {
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

// serve runs until ctx ends or the schedules cannot be run any more, and then
// stops: first nothing new starts and the jobs in hand may finish; those that
// are still at it after the grace are told to give up.
func serve(ctx context.Context, config tickonce.Config, logger *slog.Logger, handle handler) error {
	config.Observer = eventlog.New(logger)
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
	jobs, abandon := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abandon(nil)

	var (
		running sync.WaitGroup
		ledErr  error // read once all have ended
	)
	running.Go(func() {
		defer stop()
		ledErr = eng.RunSchedules(ctx)
	})
	for _, name := range []string{"worker-1", "worker-2"} {
		w := worker{eng.Engine, "reports", name, handle, logger}
		running.Go(func() { w.run(ctx, jobs) })
	}
	ended := make(chan struct{})
	go func() { running.Wait(); close(ended) }()

	<-ctx.Done()
	if !within(grace, ended) {
		abandon(errors.New("the service stops"))
		if !within(lastNotice, ended) {
			return errors.New("a job did not give up")
		}
	}
	return ledErr
}

// within reports whether ended is closed within d.
func within(d time.Duration, ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	case <-time.After(d):
		return false
	}
}
