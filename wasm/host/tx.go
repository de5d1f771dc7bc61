package host

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/wire"
)

// Tx is a transaction, as [tickonce.Tx] is: writes that are checked as they are
// called, and written together, or not at all, when the function of [Engine.Tx]
// has returned (O7). To check one, the guest plans it behind what was staged on
// the same schedule or job, so each method is a call of the guest, and a
// transaction as many as its methods and one. A Tx is not safe for concurrent use.
type Tx struct {
	engine *Engine
	ctx    context.Context
	done   bool
	from   int // which of the engine's instances gave the claims; 0: there are none
	ops    []wire.TxOp
	of     []subject // the ops
	jobs   map[int]*TxJob
}

// subject is the schedule or the job that an op is of; the zero one is of its own.
type subject struct {
	schedule string
	job      tickonce.JobID
}

// TxJob is a job that a transaction enqueues. Its id is given at the commit.
type TxJob struct {
	id       tickonce.JobID
	existing bool
}

// ID is [tickonce.TxJob.ID].
func (j *TxJob) ID() tickonce.JobID { return j.id }

// Existing is [tickonce.TxJob.Existing].
func (j *TxJob) Existing() bool { return j.existing }

// Tx is [tickonce.Engine.Tx].
func (e *Engine) Tx(ctx context.Context, fn func(*Tx) error) error {
	tx := &Tx{engine: e, ctx: ctx, jobs: map[int]*TxJob{}}
	defer func() { tx.done = true }()
	if err := fn(tx); err != nil {
		return err
	}
	tx.done = true
	if len(tx.ops) == 0 {
		return nil
	}
	a, err := e.exchange(ctx, wire.OpTx, &wire.Request{Ops: tx.ops}, tx.from)
	if err != nil {
		return err
	}
	for i, job := range tx.jobs {
		job.id, job.existing = a.Results[i].Job, a.Results[i].Existing
	}
	return nil
}

// stage plans an op behind those of the same subject, and keeps it. At the first
// touch of a schedule it is looked up, and must be the same at the commit.
func (tx *Tx) stage(op wire.Op, r wire.Request, of subject) (*wire.Reply, error) {
	if tx.done {
		return nil, tickonce.ErrTxDone
	}
	if err := sendable(&r); err != nil {
		return nil, err
	}
	r.Payload = bytes.Clone(r.Payload) // the caller's may be another by the commit
	var before []wire.TxOp
	for i := range tx.ops {
		if of != (subject{}) && tx.of[i] == of {
			before = append(before, tx.ops[i])
		}
	}
	if of.schedule != "" && len(before) == 0 {
		look := wire.TxOp{Op: wire.OpLookup, Request: wire.Request{Name: of.schedule}}
		seen, err := tx.plan([]wire.TxOp{look})
		if err != nil {
			return nil, err
		}
		look.Seen = seen
		before = append(before, look)
		tx.ops, tx.of = append(tx.ops, look), append(tx.of, of)
		if op == wire.OpLookup {
			return seen, nil
		}
	}
	staged := wire.TxOp{Op: op, Request: r}
	result, err := tx.plan(append(before, staged))
	if err == nil && op != wire.OpLookup {
		tx.ops, tx.of = append(tx.ops, staged), append(tx.of, of)
	}
	return result, err
}

// plan answers what would come of the last of the ops.
func (tx *Tx) plan(ops []wire.TxOp) (*wire.Reply, error) {
	for i := range ops {
		ops[i].Seen = nil // what has changed since shows at the commit
	}
	a, err := tx.engine.exchange(tx.ctx, wire.OpTx, &wire.Request{Ops: ops, Plan: true}, tx.from)
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		last := len(ops) - 1
		prefix := "op " + strconv.Itoa(last) + ", " + ops[last].Op.String() + ": "
		return nil, refused("", &wire.Error{Code: refusal.Code, Message: strings.TrimPrefix(refusal.Message, prefix)})
	}
	if err != nil {
		return nil, err
	}
	return &a.Results[len(ops)-1], nil
}

// stageJob stages an op that makes a job.
func (tx *Tx) stageJob(op wire.Op, r wire.Request, of subject) (*TxJob, error) {
	if _, err := tx.stage(op, r, of); err != nil {
		return nil, err
	}
	job := &TxJob{}
	tx.jobs[len(tx.ops)-1] = job
	return job, nil
}

// stageDone stages an op that answers whether it does something.
func (tx *Tx) stageDone(op wire.Op, r wire.Request) (bool, error) {
	result, err := tx.stage(op, r, subject{schedule: r.Name})
	if err != nil {
		return false, err
	}
	return result.Done, nil
}

// Schedule stages [Engine.Schedule].
func (tx *Tx) Schedule(name, spec, queue string, payload []byte, o tickonce.ScheduleOptions) (tickonce.Schedule, error) {
	r := wire.Request{Name: name, Spec: spec, Queue: queue, Payload: payload, Schedule: o}
	result, err := tx.stage(wire.OpSchedule, r, subject{schedule: name})
	if err != nil {
		return tickonce.Schedule{}, err
	}
	return *result.Schedule, nil
}

// Unschedule stages [Engine.Unschedule].
func (tx *Tx) Unschedule(name string) (bool, error) {
	return tx.stageDone(wire.OpUnschedule, wire.Request{Name: name})
}

// Pause stages [Engine.Pause].
func (tx *Tx) Pause(name string) (bool, error) {
	return tx.stageDone(wire.OpPause, wire.Request{Name: name})
}

// Resume stages [Engine.Resume].
func (tx *Tx) Resume(name string, o tickonce.ResumeOptions) (bool, error) {
	return tx.stageDone(wire.OpResume, wire.Request{Name: name, CatchUp: o.CatchUp})
}

// Trigger stages [Engine.Trigger], as [tickonce.Tx.Trigger] does.
func (tx *Tx) Trigger(name string) (*TxJob, error) {
	return tx.stageJob(wire.OpTrigger, wire.Request{Name: name}, subject{schedule: name})
}

// Lookup is [Engine.Lookup] under what is staged. The schedule, or its absence,
// must still be so at the commit.
func (tx *Tx) Lookup(name string) (tickonce.Schedule, bool, error) {
	result, err := tx.stage(wire.OpLookup, wire.Request{Name: name}, subject{schedule: name})
	if err != nil || result.Schedule == nil {
		return tickonce.Schedule{}, false, err
	}
	return *result.Schedule, true, nil
}

// Enqueue stages [Engine.Enqueue].
func (tx *Tx) Enqueue(queue string, payload []byte, o tickonce.EnqueueOptions) (*TxJob, error) {
	return tx.stageJob(wire.OpEnqueue, wire.Request{Queue: queue, Payload: payload, Enqueue: o}, subject{})
}

// TxOutbox is an [Outbox] within a transaction.
type TxOutbox struct {
	tx     *Tx
	outbox *Outbox
}

// Outbox returns the outbox of that name within the transaction.
func (tx *Tx) Outbox(name string) TxOutbox { return TxOutbox{tx, tx.engine.Outbox(name)} }

// Enqueue stages [Outbox.Enqueue].
func (o TxOutbox) Enqueue(payload []byte, opts tickonce.OutboxOptions) (*TxJob, error) {
	r := o.outbox.request()
	r.Payload, r.Enqueue = payload, tickonce.EnqueueOptions{MaxAttempts: opts.MaxAttempts, Key: opts.Key}
	return o.tx.stageJob(wire.OpEnqueue, r, subject{})
}

// Ack stages [Job.Ack], as [tickonce.Tx.Ack] does.
func (tx *Tx) Ack(j *Job) error { return tx.settle(wire.OpAck, j, nil) }

// Retry stages [Job.Retry].
func (tx *Tx) Retry(j *Job, cause error) error { return tx.settle(wire.OpRetry, j, caused(cause)) }

// Fail stages [Job.Fail].
func (tx *Tx) Fail(j *Job, cause error) error { return tx.settle(wire.OpFail, j, caused(cause)) }

// settle stages the end of a claim.
func (tx *Tx) settle(op wire.Op, j *Job, failure *wire.Failure) error {
	if tx.done {
		return tickonce.ErrTxDone
	}
	if err := j.of(tx.engine); err != nil {
		return err
	}
	before := tx.from
	if before != 0 && before != j.from {
		return tickonce.ErrClaimLost
	}
	tx.from = j.from
	r := wire.Request{Claim: j.claim, Error: failure}
	if op == wire.OpAck {
		r = wire.Request{Claims: []wire.Claim{j.claim}}
	}
	_, err := tx.stage(op, r, subject{job: j.ID})
	if err != nil {
		tx.from = before
	}
	return err
}

// Cancel stages [Engine.Cancel], as [tickonce.Tx.Cancel] does.
func (tx *Tx) Cancel(queue string, job tickonce.JobID) error {
	_, err := tx.stage(wire.OpCancel, wire.Request{Queue: queue, Job: job}, subject{job: job})
	return err
}

// Requeue stages [Engine.Requeue].
func (tx *Tx) Requeue(queue string, job tickonce.JobID) (*TxJob, error) {
	return tx.stageJob(wire.OpRequeue, wire.Request{Queue: queue, Job: job}, subject{job: job})
}

// Purge stages [Engine.Purge] of one job.
func (tx *Tx) Purge(queue string, job tickonce.JobID) error {
	_, err := tx.stage(wire.OpPurge, wire.Request{Queue: queue, Jobs: []tickonce.JobID{job}}, subject{job: job})
	return err
}
