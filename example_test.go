package tickonce_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	mockclock "github.com/benbjohnson/clock"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// A schedule fires jobs into a queue, and a worker claims them. A program
// leaves Config.Clock unset and runs RunSchedules in a goroutine; here the
// clock is set by hand and a runner is stepped, so that the output is always
// the same.
func Example() {
	ctx := context.Background()
	clock := mockclock.NewMock()
	clock.Set(noon)
	eng, err := memengine.New(tickonce.Config{Clock: clock})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := eng.Schedule(ctx, "report", "@every 5m", "mail", []byte("figures"), tickonce.ScheduleOptions{}); err != nil {
		log.Fatal(err)
	}

	// Nobody runs the schedules for a quarter of an hour; then one tick
	// catches up.
	clock.Set(noon.Add(15 * time.Minute))
	runner := eng.NewRunner()
	for {
		next, _, err := runner.Step(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if next.After(clock.Now()) {
			break
		}
	}

	for {
		job, err := eng.Claim(ctx, "mail", "worker-1")
		if err != nil {
			log.Fatal(err)
		}
		if job == nil {
			break
		}
		fmt.Printf("%s of %s: %s\n", job.Schedule, job.Boundary.Format(time.TimeOnly), job.Payload)
		if err := job.Ack(ctx); err != nil {
			log.Fatal(err)
		}
	}

	// Output:
	// report of 12:05:00: figures
	// report of 12:10:00: figures
	// report of 12:15:00: figures
}

// A schedule is registered at each start of a program. The same spec again
// keeps what is next; an anchor puts the boundaries on the hours of a day.
func ExampleEngine_Schedule() {
	ctx := context.Background()
	clock := mockclock.NewMock()
	clock.Set(noon)
	eng, err := memengine.New(tickonce.Config{Clock: clock})
	if err != nil {
		log.Fatal(err)
	}

	register := func() {
		s, err := eng.Schedule(ctx, "sync", "@every 6h", "jobs", nil, tickonce.ScheduleOptions{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(s.Name, s.Spec, s.Next.Format(time.DateTime))
	}
	register()
	clock.Set(noon.Add(4 * time.Hour)) // a restart
	register()

	s, err := eng.Schedule(ctx, "cleanup", "@every 1d", "jobs", nil, tickonce.ScheduleOptions{
		Anchor:  time.Date(2026, time.January, 1, 3, 0, 0, 0, time.UTC), // each day at 03:00 UTC
		CatchUp: tickonce.CatchUpLatest,                                 // after an outage, once
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Name, s.Spec, s.Next.Format(time.DateTime))

	_, err = eng.Schedule(ctx, "typo", "@every 1h30m", "jobs", nil, tickonce.ScheduleOptions{})
	fmt.Println(errors.Is(err, tickonce.ErrInvalidSpec), err)

	// Output:
	// sync @every 6h 2026-03-01 18:00:00
	// sync @every 6h 2026-03-01 18:00:00
	// cleanup @every 1d 2026-03-02 03:00:00
	// true invalid spec "@every 1h30m": at byte 9 found "3", want the end after one number and one unit; write "@every 90m"
}

// A job that is given back waits for its retry; NextClaimAt says until when a
// worker can sleep.
func ExampleEngine_Claim() {
	ctx := context.Background()
	clock := mockclock.NewMock()
	clock.Set(noon)
	eng, err := memengine.New(tickonce.Config{Clock: clock})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := eng.Enqueue(ctx, "images", []byte("cat.png"), tickonce.EnqueueOptions{MaxAttempts: 2}); err != nil {
		log.Fatal(err)
	}

	for {
		job, err := eng.Claim(ctx, "images", "worker-1")
		if err != nil {
			log.Fatal(err)
		}
		if job == nil {
			next, waiting, err := eng.NextClaimAt(ctx, "images")
			if err != nil {
				log.Fatal(err)
			}
			if !waiting {
				break
			}
			fmt.Println("sleep for", next.Sub(clock.Now()))
			clock.Set(next)
			continue
		}
		fmt.Printf("attempt %d of %d at %s\n", job.Attempt, job.MaxAttempts, job.Payload)
		if err := job.RetryAfter(ctx, errors.New("not an image"), 30*time.Second); err != nil {
			log.Fatal(err)
		}
	}
	for dead, err := range eng.Dead(ctx, "images") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s is dead: %s\n", dead.Payload, dead.LastError)
	}

	// Output:
	// attempt 1 of 2 at cat.png
	// sleep for 30s
	// attempt 2 of 2 at cat.png
	// cat.png is dead: not an image
}

// A job is settled together with what follows from it. A worker that has lost
// its claim commits nothing.
func ExampleEngine_Tx() {
	ctx := context.Background()
	clock := mockclock.NewMock()
	clock.Set(noon)
	eng, err := memengine.New(tickonce.Config{Clock: clock})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := eng.Enqueue(ctx, "orders", []byte("order 17"), tickonce.EnqueueOptions{}); err != nil {
		log.Fatal(err)
	}

	order, err := eng.Claim(ctx, "orders", "worker-1")
	if err != nil {
		log.Fatal(err)
	}
	finish := func(tx *tickonce.Tx) error {
		if err := tx.Ack(order); err != nil {
			return err
		}
		_, err := tx.Outbox("mail").Enqueue([]byte("receipt for order 17"), tickonce.OutboxOptions{})
		return err
	}
	fmt.Println("commit:", eng.Tx(ctx, finish))
	fmt.Println("again:", eng.Tx(ctx, finish))

	mail, err := eng.Outbox("mail").Info(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("receipts:", mail.Pending)

	// Output:
	// commit: <nil>
	// again: transaction: claim lost
	// receipts: 1
}

// RunOnce delivers one entry and settles it. What fails is delivered again
// later; what fails five times is dead until it is requeued.
func ExampleOutbox_RunOnce() {
	ctx := context.Background()
	clock := mockclock.NewMock()
	clock.Set(noon)
	eng, err := memengine.New(tickonce.Config{Clock: clock})
	if err != nil {
		log.Fatal(err)
	}
	outbox := eng.Outbox("mail")
	if _, err := outbox.Enqueue(ctx, []byte("receipt for order 17"), tickonce.OutboxOptions{}); err != nil {
		log.Fatal(err)
	}

	up := false
	deliver := func(_ context.Context, entry *tickonce.Job) error {
		if !up {
			return errors.New("the mail server is down")
		}
		fmt.Printf("attempt %d: sent %s\n", entry.Attempt, entry.Payload)
		return nil
	}
	for {
		found, err := outbox.RunOnce(ctx, "mailer-1", deliver)
		if err != nil {
			log.Fatal(err)
		}
		if found {
			continue
		}
		next, waiting, err := outbox.NextClaimAt(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if !waiting {
			break
		}
		clock.Set(next)
		up = true
	}

	// Output:
	// attempt 2: sent receipt for order 17
}

// The recipe for the test of a program with schedules: set the clock, then
// step a runner until it rests. Nothing sleeps, nothing has to be waited for,
// and after each tick the test looks at what is there. Do not move a mock
// clock beside RunSchedules: it runs ahead of the loop, which then meets many
// boundaries at once.
func ExampleRunner_Step() {
	ctx := context.Background()
	clock := mockclock.NewMock()
	clock.Set(noon)
	eng, err := memengine.New(tickonce.Config{Clock: clock})
	if err != nil {
		log.Fatal(err)
	}
	runner := eng.NewRunner()
	tick := func(at time.Time) {
		clock.Set(at)
		for {
			next, report, err := runner.Step(ctx)
			if err != nil {
				log.Fatal(err)
			}
			for fire := range report.Fires() {
				fmt.Println("fired", fire.Schedule, fire.Boundary.Format(time.TimeOnly))
			}
			for passed := range report.Passed() {
				for _, skip := range passed.Skips {
					fmt.Printf("skipped %d of %s: %s\n", skip.Count, passed.Schedule, skip.Reason)
				}
			}
			if next.After(clock.Now()) {
				return // it rests
			}
		}
	}

	if _, err := eng.Schedule(ctx, "poll", "@every 10m", "jobs", nil, tickonce.ScheduleOptions{
		CatchUp: tickonce.CatchUpLatest,
	}); err != nil {
		log.Fatal(err)
	}
	tick(noon.Add(10*time.Minute - time.Millisecond))
	tick(noon.Add(10 * time.Minute))
	tick(noon.Add(10 * time.Minute)) // the same again
	tick(noon.Add(45 * time.Minute)) // after an outage

	// Output:
	// fired poll 12:10:00
	// fired poll 12:40:00
	// skipped 2 of poll: policy
}

func ExampleParseSpec() {
	spec, err := tickonce.ParseSpec("@every 90m")
	fmt.Println(spec, spec.Interval(), err)

	for _, text := range []string{"@every 1h30m", "@every 500ms", "@midnight", "*/5 * * * *"} {
		_, err := tickonce.ParseSpec(text)
		var specErr *tickonce.SpecError
		if errors.As(err, &specErr) {
			fmt.Println(specErr.Hint)
		}
	}

	// Output:
	// @every 90m 1h30m0s <nil>
	// write "@every 90m"
	// the shortest interval is 1s
	// @midnight is cron, which is not in this grammar: write "@every 1d", which keeps the period but not the hour; an anchor keeps the hour in UTC
	// cron expressions are not in this grammar: write "@every 5m"; an anchor sets its offset, in UTC
}

// The boundaries of a spec lie on a grid from its anchor.
func ExampleSpec_Next() {
	spec, err := tickonce.Every(8 * time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	anchor := time.Date(2026, time.January, 1, 6, 0, 0, 0, time.UTC)
	for at := spec.Next(anchor, noon); at.Before(noon.AddDate(0, 0, 1)); at = spec.Next(anchor, at) {
		fmt.Println(spec, at.Format(time.DateTime))
	}

	// Output:
	// @every 8h 2026-03-01 14:00:00
	// @every 8h 2026-03-01 22:00:00
	// @every 8h 2026-03-02 06:00:00
}
