package host

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/wire"
)

// Enqueue is [tickonce.Engine.Enqueue].
func (e *Engine) Enqueue(ctx context.Context, queue string, payload []byte, o tickonce.EnqueueOptions) (tickonce.JobID, error) {
	return e.job(ctx, wire.OpEnqueue, &wire.Request{Queue: queue, Payload: payload, Enqueue: o})
}

// Claim is [tickonce.Engine.Claim].
func (e *Engine) Claim(ctx context.Context, queue, worker string) (*Job, error) {
	jobs, err := e.ClaimBatch(ctx, queue, worker, 1)
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	return jobs[0], nil
}

// ClaimBatch is [tickonce.Engine.ClaimBatch].
func (e *Engine) ClaimBatch(ctx context.Context, queue, worker string, n int) ([]*Job, error) {
	if n == 0 { // for the guest that is 1
		return nil, optionError("n", "is "+strconv.Itoa(n)+", want 1 to 10000")
	}
	a, err := e.exchange(ctx, wire.OpClaim, &wire.Request{Queue: queue, Worker: worker, Max: n}, 0)
	return a.jobs, err
}

// AckAll is [tickonce.Engine.AckAll].
func (e *Engine) AckAll(ctx context.Context, jobs []*Job) (acked []bool, err error) {
	var claims []wire.Claim
	var at []int // of each, among the jobs
	from := 0    // the latest of their instances, so that the claims of others are lost
	for i, job := range jobs {
		if err := job.of(e); err != nil {
			return nil, err
		}
		if job.from > from {
			claims, at, from = nil, nil, job.from
		}
		if job.from == from {
			claims, at = append(claims, job.claim), append(at, i)
		}
	}
	a, err := e.exchange(ctx, wire.OpAck, &wire.Request{Claims: claims}, from)
	if err != nil && err != tickonce.ErrClaimLost {
		return nil, err
	}
	acked = make([]bool, len(jobs))
	for k, i := range at {
		acked[i] = err == nil && a.Acked[k]
	}
	return acked, nil
}

// Cancel is [tickonce.Engine.Cancel].
func (e *Engine) Cancel(ctx context.Context, queue string, job tickonce.JobID) (bool, error) {
	return e.done(ctx, wire.OpCancel, &wire.Request{Queue: queue, Job: job})
}

// Requeue is [tickonce.Engine.Requeue].
func (e *Engine) Requeue(ctx context.Context, queue string, job tickonce.JobID) (tickonce.JobID, error) {
	return e.job(ctx, wire.OpRequeue, &wire.Request{Queue: queue, Job: job})
}

// Purge is [tickonce.Engine.Purge].
func (e *Engine) Purge(ctx context.Context, queue string, jobs ...tickonce.JobID) error {
	_, err := e.call(ctx, wire.OpPurge, &wire.Request{Queue: queue, Jobs: jobs})
	return err
}

// Sweep is [tickonce.Engine.Sweep].
func (e *Engine) Sweep(ctx context.Context, queue string) (int, error) {
	return e.sweep(ctx, &wire.Request{Queue: queue})
}

func (e *Engine) sweep(ctx context.Context, r *wire.Request) (int, error) {
	reply, err := e.call(ctx, wire.OpSweep, r)
	if err != nil {
		return 0, err
	}
	return int(reply.Count), nil
}

// Dead is [tickonce.Engine.Dead].
func (e *Engine) Dead(ctx context.Context, queue string) iter.Seq2[tickonce.DeadJob, error] {
	return e.deadJobs(ctx, wire.Request{Queue: queue})
}

func (e *Engine) deadJobs(ctx context.Context, r wire.Request) iter.Seq2[tickonce.DeadJob, error] {
	return pages(func(last *tickonce.DeadJob) ([]tickonce.DeadJob, error) {
		r := r
		if last != nil {
			r.From = int64(last.ID) + 1
		}
		reply, err := e.call(ctx, wire.OpDead, &r)
		if err != nil {
			return nil, err
		}
		return reply.Dead, nil
	})
}

// NextClaimAt is [tickonce.Engine.NextClaimAt].
func (e *Engine) NextClaimAt(ctx context.Context, queue string) (time.Time, bool, error) {
	return e.nextClaimAt(ctx, &wire.Request{Queue: queue})
}

func (e *Engine) nextClaimAt(ctx context.Context, r *wire.Request) (time.Time, bool, error) {
	reply, err := e.call(ctx, wire.OpNextClaim, r)
	if err != nil || reply.At.IsZero() {
		return time.Time{}, false, err
	}
	return reply.At, true, nil
}

// Queue is [tickonce.Engine.Queue].
func (e *Engine) Queue(ctx context.Context, name string) (tickonce.QueueInfo, error) {
	return e.queueInfo(ctx, &wire.Request{Queue: name})
}

func (e *Engine) queueInfo(ctx context.Context, r *wire.Request) (tickonce.QueueInfo, error) {
	reply, err := e.call(ctx, wire.OpQueue, r)
	if err != nil {
		return tickonce.QueueInfo{}, err
	}
	return *reply.Queue, nil
}

// Queues is [tickonce.Engine.Queues].
func (e *Engine) Queues(ctx context.Context) iter.Seq2[tickonce.QueueInfo, error] {
	return pages(func(last *tickonce.QueueInfo) ([]tickonce.QueueInfo, error) {
		r := &wire.Request{}
		if last != nil {
			r.After = last.Name
		}
		reply, err := e.call(ctx, wire.OpQueues, r)
		if err != nil {
			return nil, err
		}
		return reply.Queues, nil
	})
}
