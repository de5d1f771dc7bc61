package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
)

const (
	queued      = 10_000 // jobs in the queue when it is measured
	claimBatch  = 100
	queueRepeat = 15
)

// measureQueue measures a queue's calls: jobs are enqueued, then claimed and
// acked one by one, then enqueued again and claimed and acked in batches.
func measureQueue() ([]row, error) {
	e, err := newEngine(epoch, time.Minute)
	if err != nil {
		return nil, err
	}
	var enqueue, single, batched sample
	for range queueRepeat {
		for _, s := range []struct {
			ns *sample
			by int
		}{{&single, 1}, {&batched, claimBatch}} {
			runtime.GC()
			begin := cpuTime()
			if err := enqueueJobs(e.engine, queued); err != nil {
				return nil, err
			}
			enqueue.add(cpuTime()-begin, queued)
			begin = cpuTime()
			n, err := drainBy(e.engine, s.by)
			s.ns.add(cpuTime()-begin, queued)
			if err != nil {
				return nil, err
			}
			if n != queued {
				return nil, fmt.Errorf("%d jobs were acked, want %d", n, queued)
			}
		}
	}
	rows := []row{
		newRow("enqueue", 0, "tickonce", enqueue),
		newRow("claim + ack", 0, "tickonce", single),
		newRow(fmt.Sprintf("claim + ack by %d", claimBatch), 0, "tickonce", batched),
	}
	return rows, nil
}

func enqueueJobs(e *memengine.Engine, n int) error {
	for range n {
		if _, err := e.Enqueue(context.Background(), queueName, payload, tickonce.EnqueueOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// drainBy empties the queue, so many jobs a call, and answers how many there
// were. One by one it uses the calls for one job.
func drainBy(e *memengine.Engine, n int) (int, error) {
	if n > 1 {
		return drainBatches(e, n)
	}
	ctx := context.Background()
	for n := 0; ; n++ {
		job, err := e.Claim(ctx, queueName, "worker")
		if err != nil || job == nil {
			return n, err
		}
		if err := job.Ack(ctx); err != nil {
			return n, err
		}
	}
}

func drainBatches(e *memengine.Engine, n int) (int, error) {
	ctx := context.Background()
	for total := 0; ; {
		jobs, err := e.ClaimBatch(ctx, queueName, "worker", n)
		if err != nil || len(jobs) == 0 {
			return total, err
		}
		acked, err := e.AckAll(ctx, jobs)
		if err != nil {
			return total, err
		}
		for i, ok := range acked {
			if !ok {
				return total, fmt.Errorf("job %d: %w", jobs[i].ID, tickonce.ErrClaimLost)
			}
		}
		if total += len(jobs); len(jobs) < n {
			return total, nil
		}
	}
}

// drainWorker empties the queue by the steps of a worker with so many slots,
// and answers how many jobs there were. Its handler does nothing.
func drainWorker(e *memengine.Engine, slots int) (int, error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	w, err := e.NewWorker(queueName, tickonce.WorkerConfig{Concurrency: slots})
	if err != nil {
		return 0, err
	}
	for n := 0; ; {
		_, report, err := w.Step(ctx)
		if err != nil || report.Err != nil {
			return n, errors.Join(err, report.Err)
		}
		if report.Phase == tickonce.PhaseAsk { // nothing is left
			stop()
			_, _, err = w.Step(ctx)
			return n, err
		}
		for _, run := range report.Begun {
			w.Ended(run, run.Call(doNothing))
			n++
		}
	}
}

func doNothing(context.Context, *tickonce.Job) error { return nil }
