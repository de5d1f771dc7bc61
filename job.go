package tickonce

import (
	"context"
	"errors"
	"time"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// JobID identifies a job of one store.
type JobID = store.JobID

// Job is a claimed job, as it was when it was claimed. Its methods settle the
// claim; each of them returns [ErrClaimLost], and changes nothing, once the
// claim is not the live one (QU3, QU4): it lapsed and was handed out again, or
// was settled, or its deadline has passed. A claim dies with the engine that
// gave it (D6). The methods are safe for concurrent use; the fields are not
// changed but for Deadline, by [Job.Heartbeat].
type Job struct {
	ID      JobID
	Queue   string
	Payload []byte // a copy of its own

	Schedule string    // the schedule that fired it, or ""
	Boundary time.Time // and the boundary, or the zero time
	Origin   JobID     // of a delivery: the job whose result it is, which has the two above; or 0

	Enqueued    time.Time
	RunAt       time.Time
	Attempt     int // from 1
	MaxAttempts int
	Priority    int16
	LastError   string // of the attempt before
	Deadline    time.Time

	engine     *Engine
	token      int32
	claimed    store.Instant
	stamps     store.Stamps
	timeoutMS  int64
	scheduleID store.ScheduleID
	said       said
}

func (e *Engine) jobOf(row *store.Job) *Job {
	return &Job{
		ID: row.ID, Queue: row.Queue, Payload: cloneBytes(row.Payload),
		Schedule: row.Schedule, Boundary: timeOf(row.FireAt), Origin: row.Origin,
		Enqueued: timeOf(row.EnqueuedAt), RunAt: timeOf(row.RunAt),
		Attempt: int(row.Attempts), MaxAttempts: int(row.Stamps.MaxAttempts), Priority: row.Priority,
		LastError: row.LastError, Deadline: timeOf(row.Deadline),
		engine: e, token: row.Attempts, claimed: row.Since, stamps: row.Stamps, timeoutMS: row.TimeoutMS,
		scheduleID: row.ScheduleID,
	}
}

// Ack ends the job as done.
func (j *Job) Ack(ctx context.Context) error {
	if err := j.check(); err != nil {
		return err
	}
	j.hush()
	defer j.speak()
	return j.settle(ctx, "ack", j.ack())
}

// Retry gives the job back with the error of this attempt: it is ready again
// after the retry curve, or dead where no attempt is left (QU6).
func (j *Job) Retry(ctx context.Context, cause error) error {
	if err := j.check(); err != nil {
		return err
	}
	return j.settle(ctx, "retry", j.retry(cause, -1))
}

// RetryAfter is [Job.Retry] with a delay of its own: whole milliseconds, 0 or
// more.
func (j *Job) RetryAfter(ctx context.Context, cause error, delay time.Duration) error {
	ms, err := optionMS("delay", delay)
	if err = errors.Join(j.check(), err); err != nil {
		return err
	}
	return j.settle(ctx, "retry", j.retry(cause, ms))
}

// Fail ends the job as dead at once, with the error (QU7).
func (j *Job) Fail(ctx context.Context, cause error) error {
	if err := j.check(); err != nil {
		return err
	}
	return j.settle(ctx, "fail", j.fail(cause))
}

// Heartbeat renews the claim: its deadline becomes now + extension (QU8).
// Extension 0 is the job's visibility. Not safe beside a read of Deadline.
func (j *Job) Heartbeat(ctx context.Context, extension time.Duration) error {
	ms, err := optionMS("extension", extension)
	if err = errors.Join(j.check(), err); err != nil {
		return err
	}
	if ms == 0 {
		ms = j.stamps.VisibilityMS
	}
	var deadline [1]store.Instant
	now, err := j.engine.store.Extend(ctx, []store.Extend{{Job: j.ID, Attempt: j.token, ForMS: ms}}, deadline[:])
	switch {
	case err != nil:
		return &OpError{Op: "heartbeat", Queue: j.Queue, Err: err}
	case deadline[0] == store.None:
		j.lost(timeOf(now))
		return ErrClaimLost
	}
	j.Deadline = timeOf(deadline[0])
	return nil
}

// check refuses a job that no claim handed out.
func (j *Job) check() error {
	if j == nil || j.engine == nil {
		return &OptionError{Option: "job", Problem: "was not handed out by a claim"}
	}
	return nil
}

func (j *Job) settle(ctx context.Context, op string, end ending) error {
	if j.Schedule != "" {
		defer j.engine.queues.ended() // after an error, too: it may be done
	}
	if len(end.deliver) > 0 {
		return j.settleWith(ctx, op, end)
	}
	if end.To == store.Pending {
		defer j.engine.queues.raise(j.Queue) // after an error, too: it may be done
	}
	s := takeScratch()
	defer s.drop()
	s.settle[0] = end.Settle
	now, err := j.engine.store.Settle(ctx, s.settle[:], s.held[:])
	if err != nil {
		return &OpError{Op: op, Queue: j.Queue, Err: err}
	}
	end.Settle = s.settle[0] // as the store answered it
	j.settled(now, end, s.held[0])
	if !s.held[0] {
		return ErrClaimLost
	}
	return nil
}

// settleWith writes the end and its deliveries as one.
func (j *Job) settleWith(ctx context.Context, op string, end ending) error {
	b := &store.Batch{Settles: []store.Settle{end.Settle}, Inserts: end.deliver}
	defer j.engine.raiseAll(b.Inserts) // after an error, too: they may be there
	done, err := j.engine.store.Commit(ctx, b)
	switch {
	case err != nil:
		return &OpError{Op: op, Queue: j.Queue, Err: err}
	case done.Refusal.Why == store.ClaimLost:
		j.settled(done.Now, end, false)
		return ErrClaimLost
	case done.Refusal.Why != store.NotRefused:
		return j.engine.refused(op, b, done.Refusal)
	}
	j.settled(done.Now, end, true)
	j.engine.enqueued(done.Now, b.Inserts, done.Inserts)
	return nil
}

// errorText is what is kept of an error.
func (e *Engine) errorText(err error) string {
	if err == nil {
		return ""
	}
	return core.CleanText(textOf(err), e.config.Limits.LastError)
}
