package tickonce

import (
	"context"
	"slices"
	"strconv"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// Tx is a transaction: a batch of writes that are checked and staged as they
// are called, and written together, or not at all, when the function of
// [Engine.Tx] has returned (O7). Nothing is locked meanwhile, and the function
// may call the engine. Reads through the Tx see what it staged over what was
// committed. Its methods return the errors of the engine's methods of the same
// name, at once where a check fails, and [ErrTxDone] after the transaction is
// over. A Tx is not safe for concurrent use.
type Tx struct {
	engine *Engine
	ctx    context.Context
	done   bool

	batch   store.Batch // but for guards, puts and removes, which finish adds
	rows    map[string]*txRow
	order   []*txRow // in the order of the first touch
	events  []Event
	jobs    []*TxJob // one for each requeue and insert
	claims  []*Job   // one for each settle
	endings []ending
	told    []int // where in events its own is
	ends    map[JobID]bool
}

// txRow is the overlay over one schedule.
type txRow struct {
	name    string
	read    *store.Schedule // as committed, nil without one
	now     store.Instant   // of that read
	row     *store.Schedule // as staged, nil without one
	skips   []store.Skip
	written bool
	alone   bool // what is written rests on the jobs that are live (X9)
}

// TxJob is a job that a transaction enqueues. Its id is given at the commit.
type TxJob struct {
	id       JobID
	existing bool
	queue    string
	requeue  bool
}

// ID returns the job's id, or 0 before the commit.
func (j *TxJob) ID() JobID { return j.id }

// Existing reports whether the queue had a live job with the key already, so
// that nothing was written (QU12). False before the commit.
func (j *TxJob) Existing() bool { return j.existing }

// Tx calls fn and then writes what it staged in one guarded store call, all or
// nothing (O7). If fn returns an error or panics, nothing is written and no
// call made. If a schedule that fn read or wrote has changed since, Tx returns
// [ErrConflict]; if a claim that it settles was lost, [ErrClaimLost]; if a
// limit stands in the way, [ErrLimit]; if a job is gone, [ErrNotFound]; if it
// touches more than 10,000 schedules and jobs, or writes more than 1 GiB of
// payloads, [ErrInvalidOption]: and nothing of the batch is there. Call it again to try anew. After another
// error of the store the outcome is unknown.
func (e *Engine) Tx(ctx context.Context, fn func(*Tx) error) error {
	tx := &Tx{engine: e, ctx: ctx, rows: map[string]*txRow{}, ends: map[JobID]bool{}}
	defer tx.over()
	if err := fn(tx); err != nil {
		return err
	}
	tx.done = true
	return tx.commit()
}

// over ends the transaction. What it was to settle, and did not, goes on.
func (tx *Tx) over() {
	tx.done = true
	for _, job := range tx.claims {
		job.speak()
	}
}

func (tx *Tx) commit() error {
	b := &tx.batch
	for _, r := range tx.order {
		guard := guardOf(r.name, r.read)
		if r.alone {
			guard.Live = &r.read.Live
		}
		switch {
		case !r.written:
			b.Guards = append(b.Guards, guard)
		case r.row != nil:
			b.Puts = append(b.Puts, store.Put{Guard: guard, Row: *r.row, Skips: r.skips})
		case r.read != nil:
			b.Removes = append(b.Removes, guard)
		default: // staged and removed again
			b.Guards = append(b.Guards, guard)
		}
	}
	switch n := len(tx.order) + len(b.Settles) + len(b.Cancels) + len(b.Requeues) + len(b.Purges) + len(b.Inserts); {
	case n == 0:
		return nil
	case n > maxBatch:
		return tooMany("the schedules and jobs of the transaction", n)
	}
	bytes := payloadBytes(b.Inserts)
	for i := range b.Puts {
		bytes += int64(len(b.Puts[i].Row.Payload))
	}
	if most := tx.engine.batchPayload; bytes > most {
		return &OptionError{Option: "the payloads of the transaction", Problem: "are " + strconv.FormatInt(bytes, 10) +
			" bytes long, want at most " + strconv.FormatInt(most, 10)}
	}
	defer tx.wakeWorkers() // after an error, too: it may be done
	done, err := tx.engine.commit(tx.ctx, "transaction", b)
	if done.Refusal.Why == store.ClaimLost {
		index := done.Refusal.Index
		tx.claims[index].settled(done.Now, ending{}, false)
	}
	if err != nil {
		return err
	}
	requeues, inserts := 0, 0
	for _, job := range tx.jobs {
		var event Event
		if job.requeue {
			job.id = done.Requeues[requeues]
			event = Event{Kind: EventRequeued, Queue: job.queue, Job: job.id}
			requeues++
		} else {
			job.id, job.existing = done.Inserts[inserts].Job, done.Inserts[inserts].Existing
			event = enqueuedEvent(&b.Inserts[inserts], job.id)
			inserts++
		}
		if !job.existing {
			tx.events = append(tx.events, event)
		}
	}
	for i, job := range tx.claims {
		job.end()
		tx.engine.details.settled(job, done.Now, tx.endings[i])
		tx.events[tx.told[i]] = job.ended(done.Now, tx.endings[i])
	}
	tx.engine.announce(done.Now, tx.events)
	for i, job := range tx.claims {
		tx.engine.tripped(done.Now, job.Schedule, job.Queue, job.ID, b.Settles[i].Tripped)
	}
	return nil
}

// wakeWorkers wakes those of the queues that get a job to claim.
func (tx *Tx) wakeWorkers() {
	if len(tx.batch.Settles)+len(tx.batch.Cancels) > 0 {
		tx.engine.queues.ended()
	}
	for _, job := range tx.jobs {
		tx.engine.queues.raise(job.queue)
	}
	for i, settle := range tx.batch.Settles {
		if settle.To == store.Pending {
			tx.engine.queues.raise(tx.claims[i].Queue)
		}
	}
}

// row is the overlay of a schedule, read at its first touch.
func (tx *Tx) row(op, name string) (*txRow, error) {
	if tx.done {
		return nil, ErrTxDone
	}
	if r := tx.rows[name]; r != nil {
		return r, nil
	}
	read, now, err := tx.engine.read(tx.ctx, name)
	if err != nil {
		return nil, opError(op, name, err)
	}
	r := &txRow{name: name, read: read, now: now, row: read}
	tx.rows[name] = r
	tx.order = append(tx.order, r)
	return r, nil
}

// update stages what plan decides on the overlay.
func (tx *Tx) update(op, name string, plan planner) (bool, error) {
	r, err := tx.row(op, name)
	if err != nil {
		return false, err
	}
	ch, err := plan(r.row, r.now)
	if err != nil || ch.row == nil {
		return false, err
	}
	r.row, r.written, r.alone = ch.row, true, r.alone || ch.overlaps()
	if ch.anew { // a grid that the transaction itself began never was
		r.skips = slices.DeleteFunc(r.skips, func(s store.Skip) bool { return s.Reason == store.SkipBefore })
	}
	r.skips = append(r.skips, ch.skips...)
	tx.events = append(tx.events, ch.events...)
	if ch.fire != nil {
		tx.batch.Inserts = append(tx.batch.Inserts, *ch.fire)
		tx.jobs = append(tx.jobs, &TxJob{queue: ch.fire.Queue})
	}
	return true, nil
}

// Schedule stages [Engine.Schedule].
func (tx *Tx) Schedule(name, spec, queue string, payload []byte, o ScheduleOptions) (Schedule, error) {
	reg, err := tx.engine.registration(name, spec, queue, payload, o)
	if err != nil {
		return Schedule{}, err
	}
	var row store.Schedule
	if _, err := tx.update("schedule", name, planSchedule(reg, &row)); err != nil {
		return Schedule{}, err
	}
	return scheduleOf(&row), nil
}

// Unschedule stages [Engine.Unschedule].
func (tx *Tx) Unschedule(name string) (bool, error) {
	if err := core.CheckName("schedule name", name); err != nil {
		return false, err
	}
	r, err := tx.row("unschedule", name)
	if err != nil || r.row == nil {
		return false, err
	}
	r.row, r.written = nil, true
	tx.events = append(tx.events, Event{Kind: EventUnscheduled, Schedule: name})
	return true, nil
}

// Pause stages [Engine.Pause].
func (tx *Tx) Pause(name string) (bool, error) {
	if err := core.CheckName("schedule name", name); err != nil {
		return false, err
	}
	return tx.update("pause", name, planPause)
}

// Resume stages [Engine.Resume].
func (tx *Tx) Resume(name string, o ResumeOptions) (bool, error) {
	if err := core.CheckName("schedule name", name); err != nil {
		return false, err
	}
	return tx.update("resume", name, planResume(o))
}

// Trigger stages [Engine.Trigger]. A schedule that this transaction makes anew
// can be triggered only after the commit: [ErrInvalidOption].
func (tx *Tx) Trigger(name string) (*TxJob, error) {
	if err := core.CheckName("schedule name", name); err != nil {
		return nil, err
	}
	if _, err := tx.update("trigger", name, planTrigger(name)); err != nil {
		return nil, err
	}
	return tx.jobs[len(tx.jobs)-1], nil
}

// Lookup is [Engine.Lookup] under what is staged. The schedule, or its
// absence, must still be so at the commit.
func (tx *Tx) Lookup(name string) (Schedule, bool, error) {
	if err := core.CheckName("schedule name", name); err != nil {
		return Schedule{}, false, err
	}
	r, err := tx.row("lookup", name)
	if err != nil || r.row == nil {
		return Schedule{}, false, err
	}
	return scheduleOf(r.row), true, nil
}

// Enqueue stages [Engine.Enqueue].
func (tx *Tx) Enqueue(queue string, payload []byte, o EnqueueOptions) (*TxJob, error) {
	if err := core.CheckName("queue", queue); err != nil {
		return nil, err
	}
	return tx.enqueue(queue, payload, o, core.PlainStamps)
}

func (tx *Tx) enqueue(queue string, payload []byte, o EnqueueOptions, stamps store.Stamps) (*TxJob, error) {
	if tx.done {
		return nil, ErrTxDone
	}
	insert, err := tx.engine.insert(queue, payload, o, stamps)
	if err != nil {
		return nil, err
	}
	tx.batch.Inserts = append(tx.batch.Inserts, insert)
	job := &TxJob{queue: queue}
	tx.jobs = append(tx.jobs, job)
	return job, nil
}

// TxOutbox is an [Outbox] within a transaction.
type TxOutbox struct {
	tx     *Tx
	outbox *Outbox
}

// Outbox returns the outbox of that name within the transaction.
func (tx *Tx) Outbox(name string) TxOutbox { return TxOutbox{tx, tx.engine.Outbox(name)} }

// Enqueue stages [Outbox.Enqueue].
func (o TxOutbox) Enqueue(payload []byte, opts OutboxOptions) (*TxJob, error) {
	if o.outbox.err != nil {
		return nil, o.outbox.err
	}
	return o.tx.enqueue(o.outbox.queue, payload, opts.enqueue(), core.OutboxStamps)
}

// Ack stages [Job.Ack], and what the job delivers by then. What it would deliver
// from then on, until the transaction is over, is refused.
func (tx *Tx) Ack(j *Job) error { return tx.settle(j, func() ending { return j.ack() }) }

// Retry stages [Job.Retry].
func (tx *Tx) Retry(j *Job, cause error) error {
	return tx.settle(j, func() ending { return j.retry(cause, -1) })
}

// Fail stages [Job.Fail].
func (tx *Tx) Fail(j *Job, cause error) error {
	return tx.settle(j, func() ending { return j.fail(cause) })
}

// settle stages the end of a claim. Whether the claim is the live one shows at
// the commit, but for a job that this transaction has ended already.
func (tx *Tx) settle(j *Job, end func() ending) error {
	switch {
	case tx.done:
		return ErrTxDone
	case j == nil || j.engine != tx.engine:
		return &OptionError{Option: "job", Problem: "is none of this engine"}
	case tx.ends[j.ID]:
		return ErrClaimLost
	}
	tx.ends[j.ID] = true
	j.hush()
	s := end()
	tx.batch.Settles = append(tx.batch.Settles, s.Settle)
	tx.claims, tx.endings = append(tx.claims, j), append(tx.endings, s)
	tx.told = append(tx.told, len(tx.events))
	tx.events = append(tx.events, Event{}) // how long the run took shows at the commit
	for _, entry := range s.deliver {
		tx.batch.Inserts = append(tx.batch.Inserts, entry)
		tx.jobs = append(tx.jobs, &TxJob{queue: entry.Queue})
	}
	return nil
}

// Cancel stages [Engine.Cancel]. A job that is gone by the commit makes it
// fail with [ErrNotFound].
func (tx *Tx) Cancel(queue string, job JobID) error {
	if err := tx.end(queue, job); err != nil {
		return err
	}
	tx.batch.Cancels = append(tx.batch.Cancels, store.JobRef{Queue: queue, Job: job})
	tx.events = append(tx.events, Event{Kind: EventCancelled, Queue: queue, Job: job})
	return nil
}

// Requeue stages [Engine.Requeue].
func (tx *Tx) Requeue(queue string, job JobID) (*TxJob, error) {
	if err := tx.end(queue, job); err != nil {
		return nil, err
	}
	tx.batch.Requeues = append(tx.batch.Requeues, store.JobRef{Queue: queue, Job: job})
	staged := &TxJob{queue: queue, requeue: true}
	tx.jobs = append(tx.jobs, staged)
	return staged, nil
}

// Purge stages [Engine.Purge] of one job.
func (tx *Tx) Purge(queue string, job JobID) error {
	if err := tx.end(queue, job); err != nil {
		return err
	}
	tx.batch.Purges = append(tx.batch.Purges, store.JobRef{Queue: queue, Job: job})
	tx.events = append(tx.events, Event{Kind: EventPurged, Queue: queue, Count: 1})
	return nil
}

// end checks a request to end a job of a public queue, once.
func (tx *Tx) end(queue string, job JobID) error {
	if err := core.CheckName("queue", queue); err != nil {
		return err
	}
	switch {
	case tx.done:
		return ErrTxDone
	case tx.ends[job]:
		return ErrNotFound
	}
	tx.ends[job] = true
	return nil
}
