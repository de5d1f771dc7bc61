package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/tickonce/tickonce"
)

const (
	maxIdle     = time.Second // a job may be enqueued while a worker sleeps
	minIdle     = 10 * time.Millisecond
	maxBackoff  = 5 * time.Second
	settleLimit = 5 * time.Second
)

// handler does a job. Its context ends with the claim.
type handler func(context.Context, *tickonce.Job) error

// worker claims the jobs of a queue and does them one by one.
type worker struct {
	eng    *tickonce.Engine
	queue  string
	name   string
	handle handler
	logger *slog.Logger
}

// run works until ctx ends. The job in hand is done under jobs.
func (w worker) run(ctx, jobs context.Context) {
	backoff := minIdle
	for ctx.Err() == nil {
		job, err := w.eng.Claim(ctx, w.queue, w.name)
		if err != nil {
			w.logger.Warn("claim failed", "worker", w.name, "error", err)
			sleep(ctx, backoff)
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		backoff = minIdle
		if job == nil {
			sleep(ctx, w.idle(ctx))
			continue
		}
		w.do(jobs, job)
	}
}

// do does the job and settles it, also when ctx ends meanwhile. A settlement
// that fails is not the end: the claim lapses and the job is done again.
func (w worker) do(ctx context.Context, job *tickonce.Job) {
	working, cancel := context.WithDeadline(ctx, job.Deadline)
	defer cancel()
	failure := w.handle(working, job)

	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	var err error
	switch {
	case failure == nil:
		err = job.Ack(settling)
	case ctx.Err() != nil:
		err = job.RetryAfter(settling, failure, 0) // it was not the job's fault
	default:
		err = job.Retry(settling, failure)
	}
	if err != nil {
		w.logger.Warn("settlement failed", "worker", w.name, "job", job.ID, "error", err)
	}
}

// idle is how long to sleep while there is nothing to claim.
func (w worker) idle(ctx context.Context) time.Duration {
	next, waiting, err := w.eng.NextClaimAt(ctx, w.queue)
	if err != nil || !waiting {
		return maxIdle
	}
	return min(max(time.Until(next), minIdle), maxIdle)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
