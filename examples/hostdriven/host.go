package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/eventlog"
	"github.com/tickonce/tickonce/memengine"
)

// host has one thread, a clock and one timer. It is the engine's clock.
type host struct {
	now   time.Time
	timer time.Time // when onTimer is to be called
	out   io.Writer

	eng    *memengine.Engine
	runner *tickonce.Runner
}

// Now is all that a stepped engine asks of its clock.
func (h *host) Now() time.Time { return h.now }

// After is for RunSchedules, which this host does not call.
func (h *host) After(time.Duration) <-chan time.Time { return nil }

// open starts an engine, empty or from a snapshot. The owner must be another
// one each time.
func (h *host) open(ctx context.Context, owner string, snapshot []byte) (err error) {
	config := tickonce.Config{
		Clock:    h,
		Owner:    owner,
		Seed:     1,         // the same jitter each time
		LeaseTTL: time.Hour, // nobody contends; renewing wakes the host every 20 min
		Observer: eventlog.New(slog.New(slog.NewTextHandler(h.out, nil))),
	}
	if snapshot == nil {
		h.eng, err = memengine.New(config)
	} else {
		h.eng, err = memengine.Restore(config, snapshot)
	}
	if err != nil {
		return err
	}
	h.runner = h.eng.NewRunner()
	return h.onTimer(ctx)
}

// schedule registers a schedule. It may be due before the timer, so the runner
// is stepped at once.
func (h *host) schedule(ctx context.Context, name, spec string, catchUp tickonce.CatchUp) error {
	if _, err := h.eng.Schedule(ctx, name, spec, "work", nil, tickonce.ScheduleOptions{CatchUp: catchUp}); err != nil {
		return err
	}
	return h.onTimer(ctx)
}

// onTimer steps the runner until it rests, does the jobs that are there, and
// sets the timer to what comes first: the runner's next step, or a job that
// waits for its retry. It may be called early, late, or for nothing.
func (h *host) onTimer(ctx context.Context) error {
	for h.timer = h.now; !h.timer.After(h.now); {
		next, _, err := h.runner.Step(ctx)
		if err != nil || next.IsZero() { // the run is over
			return err
		}
		h.timer = next
	}
	if err := h.work(ctx); err != nil {
		return err
	}
	claim, waiting, err := h.eng.NextClaimAt(ctx, "work")
	if waiting && claim.Before(h.timer) {
		h.timer = claim
	}
	return err
}

// work does the jobs that are there.
func (h *host) work(ctx context.Context) error {
	for {
		job, err := h.eng.Claim(ctx, "work", "host")
		if err != nil || job == nil {
			return err
		}
		if failure := h.do(job); failure != nil {
			err = job.Retry(ctx, failure)
		} else {
			err = job.Ack(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// do does a job. No ping is answered at the first attempt.
func (h *host) do(job *tickonce.Job) error {
	if job.Schedule == "ping" && job.Attempt == 1 {
		return errors.New("no answer")
	}
	fmt.Fprintf(h.out, "%s %s of %s\n", h.now.Format(time.TimeOnly), job.Schedule, job.Boundary.Format(time.TimeOnly))
	return nil
}

// pass lets time go by. The timer goes off when its time has come, or as soon
// as the host can.
func (h *host) pass(ctx context.Context, d time.Duration) error {
	end := h.now.Add(d)
	for !h.timer.After(end) {
		if h.timer.After(h.now) {
			h.now = h.timer
		}
		if err := h.onTimer(ctx); err != nil {
			return err
		}
	}
	h.now = end
	return nil
}
