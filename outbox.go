package tickonce

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/tickonce/tickonce/internal/core"
)

// Outbox is a queue for deliveries to the outside, with stamps of its own:
// visibility 60 s, 5 attempts, base backoff 5 s; an entry of [Job.Deliver] has
// those that are said there. Its queue belongs to the engine and is reached only
// through the outbox (N5). It is safe for concurrent use.
type Outbox struct {
	engine *Engine
	queue  string
	err    error // of the name
}

// Outbox returns the outbox of that name. A name that is refused is reported
// by the outbox's methods: [ErrInvalidName], [ErrReservedName].
func (e *Engine) Outbox(name string) *Outbox {
	return &Outbox{engine: e, queue: core.OutboxPrefix + name, err: core.CheckName("outbox", name)}
}

// OutboxName returns the name of the outbox whose queue it is, as events and
// [Engine.Queues] name it, and false for a queue that is no outbox's.
func OutboxName(queue string) (name string, ok bool) {
	return strings.CutPrefix(queue, core.OutboxPrefix)
}

// OutboxOptions are the options of an entry.
type OutboxOptions struct {
	MaxAttempts int    // default 5
	Key         string // see [EnqueueOptions.Key]
}

func (o OutboxOptions) enqueue() EnqueueOptions {
	return EnqueueOptions{MaxAttempts: o.MaxAttempts, Key: o.Key}
}

// Enqueue puts an entry into the outbox; see [Engine.Enqueue]. To put it there
// together with other writes, use [Tx.Outbox].
func (o *Outbox) Enqueue(ctx context.Context, payload []byte, opts OutboxOptions) (JobID, error) {
	if o.err != nil {
		return 0, o.err
	}
	return o.engine.enqueue(ctx, o.queue, payload, opts.enqueue(), core.OutboxStamps)
}

// RunOnce claims one entry, hands it to deliver, and settles it: done if
// deliver returns nil, else retried after the curve, or as [Permanent] and
// [RetryAfter] say, and dead at the last attempt with the error's text (O1–O3).
// It reports whether there was an entry. An error or a panic of deliver is the
// entry's, not RunOnce's. Nothing renews the claim meanwhile (O4): a deliver
// that takes longer than 60 s calls [Job.Heartbeat] itself, or the entry is
// handed out again and RunOnce returns (true, [ErrClaimLost]) (O5). Other errors
// are the store's: if the settlement failed, the entry is delivered again once
// its claim lapses. The settlement is made even if ctx ended during deliver, or
// deliver called runtime.Goexit. A deliver leaves it to RunOnce: if it settles
// the entry itself, RunOnce finds the claim gone and returns
// (true, [ErrClaimLost]).
//
// An entry of [Job.Deliver] has 30 s, after which the context of deliver ends. It
// is retried if the failure was transient: marked by [Transient] or [RetryAfter],
// or a timeout, that is [context.DeadlineExceeded] or a net.Error that says so,
// anywhere along the error's chain, where the first mark counts, or unmarked
// when the 30 s had passed. Any other failure is permanent, and the entry dead
// (X6). RunOnce waits for a deliver that does not heed its context; [Outbox.Run]
// does not.
func (o *Outbox) RunOnce(ctx context.Context, worker string, deliver Handler) (bool, error) {
	if o.err != nil {
		return false, o.err
	}
	if err := checkWorker(worker); err != nil {
		return false, err
	}
	if deliver == nil { // it would fail all entries
		return false, &OptionError{Option: "deliver", Problem: "is nil, want a function"}
	}
	job, err := o.engine.claim(ctx, o.queue, worker)
	if err != nil || job == nil {
		return false, err
	}
	settled := context.WithoutCancel(ctx)
	returned := false
	defer func() {
		if !returned { // nothing to return an error to
			end := job.outcome(exitError("deliver ended its goroutine"), false)
			_ = job.settle(settled, "retry", end)
		}
	}()
	try, done := job.within(ctx)
	failure := contained(try, job, deliver)
	if try.Err() != nil && ctx.Err() == nil && markOf(failure) == nil { // too late, whatever the error says of it
		failure = Transient(failure)
	}
	done()
	returned = true
	op := "ack"
	if failure != nil {
		op = "retry"
	}
	cut := job.Origin != 0 && ctx.Err() != nil
	return true, job.settle(settled, op, job.outcome(failure, cut))
}

// NewWorker returns a worker of the outbox, see [Engine.NewWorker], for a host
// that steps it itself; [Outbox.Run] is the goroutine's driver. It settles
// entries as [Outbox.RunOnce] does, and renews no claim (O4): a try has as long
// as the claim lasts, 60 s, or what is less of 30 s for an entry of [Job.Deliver]
// and [WorkerConfig.Timeout]. One that has not returned by then has failed, with
// a timeout.
func (o *Outbox) NewWorker(c WorkerConfig) (*Worker, error) {
	if o.err != nil {
		return nil, o.err
	}
	c, err := c.withDefaults(o.engine.config)
	if err != nil {
		return nil, err
	}
	w := o.engine.newWorker(o.queue, c)
	w.outbox = true
	return w, nil
}

// Run calls deliver for the entries of the outbox until ctx ends, as
// [Engine.RunWorker] calls its handler for the jobs of a queue, with the times of
// [Outbox.NewWorker]: a deliver that hangs holds up nothing but its own slot.
func (o *Outbox) Run(ctx context.Context, deliver Handler, c WorkerConfig) error {
	w, err := o.NewWorker(c)
	if err != nil {
		return err
	}
	return w.run(ctx, "deliver", deliver)
}

// NextClaimAt is [Engine.NextClaimAt] of the outbox.
func (o *Outbox) NextClaimAt(ctx context.Context) (time.Time, bool, error) {
	if o.err != nil {
		return time.Time{}, false, o.err
	}
	return o.engine.nextClaimAt(ctx, o.queue)
}

// Info is [Engine.Queue] of the outbox.
func (o *Outbox) Info(ctx context.Context) (QueueInfo, error) {
	if o.err != nil {
		return QueueInfo{}, o.err
	}
	return o.engine.queueInfo(ctx, o.queue)
}

// Sweep is [Engine.Sweep] of the outbox.
func (o *Outbox) Sweep(ctx context.Context) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	return o.engine.sweep(ctx, o.queue)
}

// Dead is [Engine.Dead] of the outbox.
func (o *Outbox) Dead(ctx context.Context) iter.Seq2[DeadJob, error] {
	if o.err != nil {
		return func(yield func(DeadJob, error) bool) { yield(DeadJob{}, o.err) }
	}
	return o.engine.dead(ctx, o.queue)
}

// Requeue is [Engine.Requeue] of the outbox.
func (o *Outbox) Requeue(ctx context.Context, job JobID) (JobID, error) {
	if o.err != nil {
		return 0, o.err
	}
	return o.engine.requeue(ctx, o.queue, job)
}

// Purge is [Engine.Purge] of the outbox.
func (o *Outbox) Purge(ctx context.Context, jobs ...JobID) error {
	if o.err != nil {
		return o.err
	}
	return o.engine.purge(ctx, o.queue, jobs)
}
