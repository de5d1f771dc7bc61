package host

import (
	"context"
	"iter"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/wire"
)

// Outbox is a queue for deliveries to the outside, as [tickonce.Outbox] is, but
// for RunOnce and NewWorker. It is safe for concurrent use.
type Outbox struct {
	engine *Engine
	name   string
}

// Outbox is [tickonce.Engine.Outbox].
func (e *Engine) Outbox(name string) *Outbox { return &Outbox{e, name} }

// request is one of the outbox. One without a name, which on the wire is none,
// is refused by the name of its queue.
func (o *Outbox) request() wire.Request { return wire.Request{Outbox: o.name} }

// Enqueue is [tickonce.Outbox.Enqueue].
func (o *Outbox) Enqueue(ctx context.Context, payload []byte, opts tickonce.OutboxOptions) (tickonce.JobID, error) {
	r := o.request()
	r.Payload, r.Enqueue = payload, tickonce.EnqueueOptions{MaxAttempts: opts.MaxAttempts, Key: opts.Key}
	return o.engine.job(ctx, wire.OpEnqueue, &r)
}

// Run is [tickonce.Outbox.Run].
func (o *Outbox) Run(ctx context.Context, deliver Handler, c tickonce.WorkerConfig) error {
	r := o.request()
	r.Work = c
	return o.engine.work(ctx, &worker{request: r, handle: deliver}, "deliver")
}

// NextClaimAt is [tickonce.Outbox.NextClaimAt].
func (o *Outbox) NextClaimAt(ctx context.Context) (time.Time, bool, error) {
	r := o.request()
	return o.engine.nextClaimAt(ctx, &r)
}

// Info is [tickonce.Outbox.Info].
func (o *Outbox) Info(ctx context.Context) (tickonce.QueueInfo, error) {
	r := o.request()
	return o.engine.queueInfo(ctx, &r)
}

// Sweep is [tickonce.Outbox.Sweep].
func (o *Outbox) Sweep(ctx context.Context) (int, error) {
	r := o.request()
	return o.engine.sweep(ctx, &r)
}

// Dead is [tickonce.Outbox.Dead].
func (o *Outbox) Dead(ctx context.Context) iter.Seq2[tickonce.DeadJob, error] {
	return o.engine.deadJobs(ctx, o.request())
}

// Requeue is [tickonce.Outbox.Requeue].
func (o *Outbox) Requeue(ctx context.Context, job tickonce.JobID) (tickonce.JobID, error) {
	r := o.request()
	r.Job = job
	return o.engine.job(ctx, wire.OpRequeue, &r)
}

// Purge is [tickonce.Outbox.Purge].
func (o *Outbox) Purge(ctx context.Context, jobs ...tickonce.JobID) error {
	r := o.request()
	r.Jobs = jobs
	_, err := o.engine.call(ctx, wire.OpPurge, &r)
	return err
}
