package eventlog_test

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/eventlog"
	"github.com/tickonce/tickonce/memengine"
)

func Example() {
	ctx := context.Background()
	mock := clock.NewMock()
	mock.Set(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))

	options := &slog.HandlerOptions{Level: slog.LevelDebug}
	logger := slog.New(slog.NewTextHandler(os.Stdout, options))
	eng, err := memengine.New(tickonce.Config{
		Clock:    mock,
		Seed:     1,
		Observer: eventlog.New(logger),
	})
	if err != nil {
		log.Fatal(err)
	}

	id, err := eng.Enqueue(ctx, "mail", []byte("hello"), tickonce.EnqueueOptions{MaxAttempts: 1})
	if err != nil {
		log.Fatal(err)
	}
	job, err := eng.Claim(ctx, "mail", "worker-1")
	if err != nil {
		log.Fatal(err)
	}
	if err := job.Retry(ctx, errors.New("no route to host")); err != nil {
		log.Fatal(err)
	}
	if _, err := eng.Requeue(ctx, "mail", id); err != nil {
		log.Fatal(err)
	}

	// Output:
	// time=2026-03-01T12:00:00.000Z level=DEBUG msg=enqueued queue=mail job=1
	// time=2026-03-01T12:00:00.000Z level=DEBUG msg=claimed queue=mail job=1 count=1
	// time=2026-03-01T12:00:00.000Z level=WARN msg=died queue=mail job=1 count=1 execution=failed reason="no route to host"
	// time=2026-03-01T12:00:00.000Z level=INFO msg=requeued queue=mail job=2
}
