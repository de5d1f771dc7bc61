// Command outbox settles a job together with what it has to tell the outside,
// and delivers that with retries, a dead letter and a second chance.
//
// Its clock is moved by hand, so that the minutes pass in no time.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/eventlog"
	"github.com/tickonce/tickonce/memengine"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	mock := clock.NewMock()
	mock.Set(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	eng, err := memengine.New(tickonce.Config{
		Clock:    mock,
		Seed:     1, // the same jitter each time
		Observer: eventlog.New(slog.New(slog.NewTextHandler(w, nil))),
	})
	if err != nil {
		return err
	}
	mail := &mailServer{}
	shop := shop{eng: eng.Engine, clock: mock, send: mail.send, out: w}

	fmt.Fprintln(w, "== Orders are charged; their receipts wait in the outbox.")
	for _, order := range []string{"order 17 of buyer-1@example.org", "order 18 of buyer-2@example"} {
		job, err := shop.order(ctx, order, "cashier-1")
		if err != nil {
			return err
		}
		if err := shop.charge(ctx, job); err != nil {
			return err
		}
	}

	fmt.Fprintln(w, "== A cashier is held up until its claim has lapsed; another does the order.")
	late, err := shop.order(ctx, "order 19 of buyer-3@example.org", "cashier-1")
	if err != nil {
		return err
	}
	mock.Set(late.Deadline.Add(time.Second))
	again, err := eng.Claim(ctx, "orders", "cashier-2")
	if err != nil {
		return err
	}
	if err := shop.charge(ctx, again); err != nil {
		return err
	}
	fmt.Fprintln(w, "too late:", shop.charge(ctx, late))

	fmt.Fprintln(w, "== The mail server is down for 8 s, and never takes one of the addresses.")
	mail.downUntil = mock.Now().Add(8 * time.Second)
	if err := shop.deliver(ctx); err != nil {
		return err
	}

	fmt.Fprintln(w, "== Someone mends the mail server, and gives the dead letter another chance.")
	mail.mended = true
	if err := shop.requeueDead(ctx); err != nil {
		return err
	}
	return shop.deliver(ctx)
}
