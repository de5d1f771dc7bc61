// Command delivery is a report that a schedule runs, and a chat that its result
// is delivered to. The two fail apart: a chat that is down makes no failed
// report, and a report that failed posts nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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

	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if err := serve(ctx, tickonce.Config{Observer: eventlog.New(logger)}, &chat{}, os.Stdout); err != nil {
		logger.Error("service ended", "error", err)
		os.Exit(1)
	}
}

// report does the work. What it delivers is posted if it returns nil, and by
// then it is done: nothing that the chat does can make it run again.
func report(_ context.Context, job *tickonce.Job) error {
	job.Summarize("7 figures")
	return job.Deliver("chat", fmt.Appendf(nil, "figures of job %d", job.ID))
}

// chat is down at first, takes the first post then, and has no such channel when
// the second one comes.
type chat struct{ posts int }

func (c *chat) post(context.Context, *tickonce.Job) error {
	switch c.posts++; c.posts {
	case 1:
		return tickonce.Transient(errors.New("503 service unavailable")) // up to two more tries
	case 2:
		return nil
	default:
		return errors.New("404 no such channel") // none
	}
}

// serve runs until ctx ends, or one of its parts, and then prints what the runs said.
func serve(ctx context.Context, config tickonce.Config, chat *chat, out io.Writer) error {
	config.Poll = -1 // in memory: nobody else writes the store
	eng, err := memengine.New(config)
	if err != nil {
		return err
	}
	if _, err := eng.Schedule(ctx, "report", "@every 10s", "reports", nil, tickonce.ScheduleOptions{}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ends := make(chan error, 3)
	for _, run := range []func() error{
		func() error { return eng.RunSchedules(ctx) },
		func() error {
			return eng.RunWorker(ctx, "reports", report, tickonce.WorkerConfig{Timeout: time.Minute})
		},
		func() error { return eng.Outbox("chat").Run(ctx, chat.post, tickonce.WorkerConfig{}) },
	} {
		go func() {
			defer stop() // none goes on without the others
			ends <- run()
		}()
	}
	err = errors.Join(<-ends, <-ends, <-ends)

	for d := range eng.Details(ctx) {
		if d.Attempt > 0 {
			fmt.Fprintf(out, "job %d: %s, %d to deliver\n", d.Job, d.Summary, d.Deliveries)
		} else {
			fmt.Fprintf(out, "job %d: to %s, try %d: %s %q\n", d.Job, d.Outbox, d.Try, d.Delivery, d.Error)
		}
	}
	return err
}
