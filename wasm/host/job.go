package host

import (
	"context"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/wire"
)

// Job is a claimed job, as [tickonce.Job] is. Its methods are safe for concurrent
// use; the fields are not changed but for Deadline, by [Job.Heartbeat]. A claim
// dies with the instance that gave it.
type Job struct {
	ID      tickonce.JobID
	Queue   string
	Payload []byte // a copy of its own

	Schedule string         // the schedule that fired it, or ""
	Boundary time.Time      // and the boundary, or the zero time
	Origin   tickonce.JobID // of a delivery: the job whose result it is, which has the two above; or 0

	Enqueued    time.Time
	RunAt       time.Time
	Attempt     int // from 1
	MaxAttempts int
	Priority    int16
	LastError   string // of the attempt before
	Deadline    time.Time

	engine *Engine
	claim  wire.Claim
	from   int // which of the engine's instances gave it
}

// jobOf is a job that the instance that is there has handed out.
func (e *Engine) jobOf(r *wire.Record) *Job {
	return &Job{
		ID: r.Job, Queue: r.Queue, Payload: r.Payload, Schedule: r.Schedule, Boundary: r.Boundary, Origin: r.Origin,
		Enqueued: r.Enqueued, RunAt: r.RunAt, Attempt: int(r.Attempt), MaxAttempts: int(r.MaxAttempts),
		Priority: int16(r.Priority), LastError: r.LastError, Deadline: r.Deadline,
		engine: e, claim: wire.Claim{Job: r.Job, Attempt: r.Attempt}, from: e.opened,
	}
}

// of refuses a job that no claim of the engine handed out.
func (j *Job) of(e *Engine) error {
	if j == nil || j.engine == nil || e != nil && j.engine != e {
		return optionError("job", "was not handed out by a claim of this engine")
	}
	return nil
}

func (j *Job) call(ctx context.Context, op wire.Op, r *wire.Request) (*wire.Reply, error) {
	if err := j.of(nil); err != nil {
		return nil, err
	}
	r.Claim = j.claim
	a, err := j.engine.exchange(ctx, op, r, j.from)
	return a.Reply, err
}

// Ack is [tickonce.Job.Ack].
func (j *Job) Ack(ctx context.Context) error {
	if err := j.of(nil); err != nil {
		return err
	}
	acked, err := j.engine.AckAll(ctx, []*Job{j})
	if err == nil && !acked[0] {
		err = tickonce.ErrClaimLost
	}
	return err
}

// caused is a failure with an error's text alone.
func caused(cause error) *wire.Failure {
	if cause == nil {
		return nil
	}
	return &wire.Failure{Message: textOf(cause)}
}

// Retry is [tickonce.Job.Retry].
func (j *Job) Retry(ctx context.Context, cause error) error {
	_, err := j.call(ctx, wire.OpRetry, &wire.Request{Error: caused(cause)})
	return err
}

// RetryAfter is [tickonce.Job.RetryAfter].
func (j *Job) RetryAfter(ctx context.Context, cause error, delay time.Duration) error {
	failure := &wire.Failure{RetryAfter: &wire.RetryAfter{For: delay}}
	if cause != nil {
		failure.Message = textOf(cause)
	}
	_, err := j.call(ctx, wire.OpRetry, &wire.Request{Error: failure})
	return err
}

// Fail is [tickonce.Job.Fail].
func (j *Job) Fail(ctx context.Context, cause error) error {
	_, err := j.call(ctx, wire.OpFail, &wire.Request{Error: caused(cause)})
	return err
}

// Heartbeat is [tickonce.Job.Heartbeat].
func (j *Job) Heartbeat(ctx context.Context, extension time.Duration) error {
	reply, err := j.call(ctx, wire.OpHeartbeat, &wire.Request{For: extension})
	if err == nil {
		j.Deadline = reply.At
	}
	return err
}

// Deliver is [tickonce.Job.Deliver].
func (j *Job) Deliver(outbox string, payload []byte) error {
	_, err := j.call(context.Background(), wire.OpDeliver, &wire.Request{Outbox: outbox, Payload: payload})
	return err
}

// Summarize is [tickonce.Job.Summarize].
func (j *Job) Summarize(text string) {
	_, _ = j.call(context.Background(), wire.OpSummarize, &wire.Request{Text: text})
}
