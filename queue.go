package tickonce

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// EnqueueOptions say when and how a job runs. A zero field is its default.
type EnqueueOptions struct {
	Delay time.Duration // ready this long after now
	RunAt time.Time     // or at that time; in the past: now. Not both. A fraction of a millisecond is rounded up.

	Priority int16         // higher is claimed sooner
	Expires  time.Duration // dies if not started this long after it is ready; 0: never

	// Key makes enqueueing safe to ask for again (QU12): while a pending or
	// claimed job of the queue has the key, its id is returned and nothing is
	// written. It is a name: 1 to 128 bytes.
	Key string

	Visibility  time.Duration // how long a claim lasts without a heartbeat; default 5 min
	MaxAttempts int           // default 3
	BaseBackoff time.Duration // of the retry curve; default 1 min, at most 1 h
}

// maxBatch is how many jobs one batched call may name, and how many writes a
// transaction may stage.
const maxBatch = 10_000

func tooMany(option string, n int) error {
	return &OptionError{Option: option, Problem: "are " + strconv.Itoa(n) + ", want at most " + strconv.Itoa(maxBatch)}
}

// Enqueue puts a job into a queue and returns its id. Faults are found in the
// order queue, payload, options, and change nothing: [ErrInvalidName],
// [ErrReservedName], [ErrLimit], [ErrInvalidOption]. After any other error it
// is unknown whether the job is there; with a key it is safe to ask again.
func (e *Engine) Enqueue(ctx context.Context, queue string, payload []byte, o EnqueueOptions) (JobID, error) {
	if err := core.CheckName("queue", queue); err != nil {
		return 0, err
	}
	return e.enqueue(ctx, queue, payload, o, core.PlainStamps)
}

func (e *Engine) enqueue(ctx context.Context, queue string, payload []byte, o EnqueueOptions, stamps store.Stamps) (JobID, error) {
	insert, err := e.insert(queue, payload, o, stamps)
	if err != nil {
		return 0, err
	}
	defer e.queues.raise(queue) // after an error, too: it may be done
	s := takeScratch()
	defer s.drop()
	s.insert[0] = insert
	s.batch.Inserts = s.insert[:]
	done, err := e.commit(ctx, "enqueue", &s.batch)
	if err != nil {
		return 0, err
	}
	e.enqueued(done.Now, s.insert[:], done.Inserts)
	return done.Inserts[0].Job, nil
}

// enqueued tells of jobs that were inserted.
func (e *Engine) enqueued(now store.Instant, inserts []store.Insert, done []store.Inserted) {
	for i := range inserts {
		if !done[i].Existing {
			event := enqueuedEvent(&inserts[i], done[i].Job)
			event.At = timeOf(now)
			e.emit(event)
		}
	}
}

func enqueuedEvent(insert *store.Insert, job JobID) Event {
	event := Event{Kind: EventEnqueued, Queue: insert.Queue, Job: job}
	if from := insert.From; from != nil {
		event.Schedule, event.Boundary, event.Origin = from.Schedule, timeOf(from.FireAt), from.Origin
		if from.Origin == 0 {
			event.Kind = EventTriggered
		}
	}
	return event
}

// insert checks a request to enqueue, behind its queue's name.
func (e *Engine) insert(queue string, payload []byte, o EnqueueOptions, stamps store.Stamps) (store.Insert, error) {
	err := e.checkPayload(payload)
	if err != nil {
		return store.Insert{}, err
	}
	insert := store.Insert{Queue: queue, Payload: cloneBytes(payload), Key: o.Key, Priority: o.Priority}
	if !o.RunAt.IsZero() && o.Delay != 0 {
		return insert, &OptionError{Option: "RunAt", Problem: "and Delay are both set, want one"}
	}
	if insert.DelayMS, err = optionMS("Delay", o.Delay); err != nil {
		return insert, err
	}
	if insert.RunAt, err = optionInstant("RunAt", o.RunAt); err != nil {
		return insert, err
	}
	if insert.ExpiresMS, err = optionMS("Expires", o.Expires); err != nil {
		return insert, err
	}
	if o.Key != "" {
		if err := core.CheckName("key", o.Key); err != nil {
			return insert, err
		}
	}
	insert.Stamps, err = stampOptions{o.Visibility, o.MaxAttempts, o.BaseBackoff}.over(stamps)
	return insert, err
}

// Claim hands out the next job of the queue to the worker (QU1, QU2), and
// (nil, nil) when there is none. The claim lasts for the job's visibility;
// settle it by the job's methods, or it lapses and costs an attempt. Jobs that
// have expired, or whose claim lapsed without an attempt left, die on the way
// (QU5, QU9). An empty worker is [ErrInvalidWorker] and consumes nothing (N6).
func (e *Engine) Claim(ctx context.Context, queue, worker string) (*Job, error) {
	if err := core.CheckName("queue", queue); err != nil {
		return nil, err
	}
	return e.claim(ctx, queue, worker)
}

func (e *Engine) claim(ctx context.Context, queue, worker string) (*Job, error) {
	if err := checkWorker(worker); err != nil {
		return nil, err
	}
	s := takeScratch()
	defer s.drop()
	rows := s.room(1)
	n, err := e.claimRows(ctx, queue, worker, rows)
	if err != nil || n == 0 {
		return nil, err
	}
	return e.jobOf(&rows[0]), nil
}

// ClaimBatch is [Engine.Claim] for up to n jobs in one store call (QU14), n
// from 1 to 10,000. It answers fewer, or none, when there are no more.
func (e *Engine) ClaimBatch(ctx context.Context, queue, worker string, n int) ([]*Job, error) {
	if err := core.CheckName("queue", queue); err != nil {
		return nil, err
	}
	if err := checkWorker(worker); err != nil {
		return nil, err
	}
	if n < 1 || n > maxBatch {
		return nil, &OptionError{Option: "n", Problem: "is " + strconv.Itoa(n) + ", want 1 to " + strconv.Itoa(maxBatch)}
	}
	s := takeScratch()
	defer s.drop()
	rows := s.room(n)
	got, err := e.claimRows(ctx, queue, worker, rows)
	if err != nil || got == 0 {
		return nil, err
	}
	jobs := make([]*Job, got)
	for i := range jobs {
		jobs[i] = e.jobOf(&rows[i])
	}
	return jobs, nil
}

// claimRows asks again as long as a whole round only buried.
func (e *Engine) claimRows(ctx context.Context, queue, worker string, rows []store.Job) (int, error) {
	for {
		claim, err := e.claimOnce(ctx, queue, worker, rows)
		if err != nil {
			return 0, &OpError{Op: "claim", Queue: queue, Err: err}
		}
		if claim.N > 0 || claim.Buried < store.MaxBuried {
			return claim.N, nil
		}
	}
}

// claimOnce makes one claim, and tells of it.
func (e *Engine) claimOnce(ctx context.Context, queue, worker string, rows []store.Job) (store.Claim, error) {
	claim, err := e.bury(ctx, queue, worker, rows)
	if err != nil {
		return store.Claim{}, err
	}
	for i := range rows[:claim.N] {
		e.emit(Event{Kind: EventClaimed, At: timeOf(claim.Now), Queue: queue, Job: rows[i].ID, Count: int64(rows[i].Attempts)})
	}
	return claim, nil
}

// bury makes one claim, and tells of what it buried.
func (e *Engine) bury(ctx context.Context, queue, worker string, rows []store.Job) (store.Claim, error) {
	claim, err := e.store.Claim(ctx, queue, worker, rows)
	if err != nil {
		e.queues.ended() // it may be done
		return claim, err
	}
	if claim.Buried > 0 {
		e.queues.ended()
		e.emit(Event{Kind: EventBuried, At: timeOf(claim.Now), Queue: queue, Count: int64(claim.Buried)})
	}
	for _, trip := range claim.Tripped {
		e.tripped(claim.Now, trip.Schedule, queue, 0, trip.Failures)
	}
	return claim, nil
}

// Sweep moves every job of the queue that has expired, or whose claim lapsed
// without an attempt left, to dead without claiming any (QU5), and reports how
// many.
func (e *Engine) Sweep(ctx context.Context, queue string) (int, error) {
	if err := core.CheckName("queue", queue); err != nil {
		return 0, err
	}
	return e.sweep(ctx, queue)
}

func (e *Engine) sweep(ctx context.Context, queue string) (int, error) {
	for total := 0; ; {
		claim, err := e.bury(ctx, queue, "sweep", nil)
		if err != nil {
			return total, &OpError{Op: "sweep", Queue: queue, Err: err}
		}
		if total += claim.Buried; claim.Buried < store.MaxBuried {
			return total, nil
		}
	}
}

// AckAll acks jobs of this engine in one store call (QU14), up to 10,000, and
// reports for each whether its claim was the live one.
func (e *Engine) AckAll(ctx context.Context, jobs []*Job) (acked []bool, err error) {
	if len(jobs) > maxBatch {
		return nil, tooMany("jobs", len(jobs))
	}
	ends, settles := make([]ending, len(jobs)), make([]store.Settle, len(jobs))
	for i, job := range jobs {
		if job == nil || job.engine != e {
			return nil, &OptionError{Option: "jobs", Problem: "has no job of this engine at index " + strconv.Itoa(i)}
		}
		job.hush()
		defer job.speak()
		ends[i] = job.ack()
		if len(ends[i].deliver) > 0 { // an end with deliveries is a batch of its own
			return nil, &OptionError{Option: "jobs", Problem: "has one with deliveries at index " + strconv.Itoa(i) + ", want it acked by itself"}
		}
		settles[i] = ends[i].Settle
	}
	acked = make([]bool, len(jobs))
	defer e.queues.ended() // after an error, too: it may be done
	now, err := e.store.Settle(ctx, settles, acked)
	if err != nil {
		return nil, &OpError{Op: "ack", Err: err}
	}
	for i, job := range jobs {
		job.settled(now, ends[i], acked[i])
	}
	return acked, nil
}

// NextClaimAt returns the time from which the queue has a job to claim; it may
// lie in the past. False: nothing is waiting. A worker that sleeps until then
// is never parked past a claimable job, unless one is enqueued meanwhile
// (QU10), or one that waits has its turn (X9; [QueueInfo.Waiting]).
func (e *Engine) NextClaimAt(ctx context.Context, queue string) (time.Time, bool, error) {
	if err := core.CheckName("queue", queue); err != nil {
		return time.Time{}, false, err
	}
	return e.nextClaimAt(ctx, queue)
}

func (e *Engine) nextClaimAt(ctx context.Context, queue string) (time.Time, bool, error) {
	info, err := e.queueInfo(ctx, queue)
	if err != nil || info.NextClaimAt.IsZero() {
		return time.Time{}, false, err
	}
	return info.NextClaimAt, true, nil
}

// QueueInfo is what is known of a queue: the jobs it keeps, and counters of
// all that ever happened in it. At every instant
//
//	Enqueued = Pending + Claimed + Dead + Done + Cancelled + Requeued + Purged
type QueueInfo struct {
	Name string

	Pending, Claimed, Dead int64

	Enqueued  int64 // inserted, fired and requeued
	Claims    int64 // attempts handed out
	Retried   int64 // attempts that ended in another try
	Done      int64
	Died      int64 // ever moved to dead
	Cancelled int64
	Requeued  int64 // dead jobs that were enqueued anew
	Purged    int64 // dead jobs that were removed

	NextClaimAt time.Time // see [Engine.NextClaimAt]; zero: nothing is waiting

	// Waiting counts jobs that wait for the end of another of their schedule
	// (X9). They are pending, or claimed by a claim that may lapse.
	Waiting int64
}

func queueInfoOf(q *store.Queue) QueueInfo {
	return QueueInfo{
		Name: q.Name, Pending: q.Pending, Claimed: q.Claimed, Dead: q.Dead, Enqueued: q.Enqueued,
		Claims: q.Claims, Retried: q.Retried, Done: q.Done, Died: q.Died, Cancelled: q.Cancelled,
		Requeued: q.Requeued, Purged: q.Purged, NextClaimAt: timeOf(q.NextClaimAt), Waiting: q.Waiting,
	}
}

// Queue returns what is known of one queue; of one that was never used, all
// zeros.
func (e *Engine) Queue(ctx context.Context, name string) (QueueInfo, error) {
	if err := core.CheckName("queue", name); err != nil {
		return QueueInfo{}, err
	}
	return e.queueInfo(ctx, name)
}

func (e *Engine) queueInfo(ctx context.Context, name string) (QueueInfo, error) {
	s := takeScratch()
	defer s.drop()
	n, _, err := e.store.Queues(ctx, name, s.queue[:])
	switch {
	case err != nil:
		return QueueInfo{}, &OpError{Op: "queue", Queue: name, Err: err}
	case n == 0 || s.queue[0].Name != name:
		return QueueInfo{Name: name}, nil
	}
	return queueInfoOf(&s.queue[0]), nil
}

// Queues returns all queues that were ever used, outboxes too, in the order of
// their names. An error ends the sequence.
func (e *Engine) Queues(ctx context.Context) iter.Seq2[QueueInfo, error] {
	return func(yield func(QueueInfo, error) bool) {
		page := make([]store.Queue, readPage)
		for from, more := "", true; more; {
			n, _, err := e.store.Queues(ctx, from, page)
			if err != nil {
				yield(QueueInfo{}, &OpError{Op: "queues", Err: err})
				return
			}
			for i := range page[:n] {
				if !yield(queueInfoOf(&page[i]), nil) {
					return
				}
			}
			if more = n == len(page); more {
				from = after(page[n-1].Name)
			}
		}
	}
}

// DeadJob is a job that ran out of attempts, expired, or was failed for good
// (QU11). It is kept until it is requeued or purged.
type DeadJob struct {
	ID        JobID
	Queue     string
	Payload   []byte // a copy
	Schedule  string
	Boundary  time.Time
	Origin    JobID // of a delivery: the job whose result it is; or 0
	Attempts  int
	LastError string
	Enqueued  time.Time
	Died      time.Time
}

// Dead returns the dead jobs of the queue in the order of their ids, read page
// by page. An error ends the sequence.
func (e *Engine) Dead(ctx context.Context, queue string) iter.Seq2[DeadJob, error] {
	if err := core.CheckName("queue", queue); err != nil {
		return func(yield func(DeadJob, error) bool) { yield(DeadJob{}, err) }
	}
	return e.dead(ctx, queue)
}

func (e *Engine) dead(ctx context.Context, queue string) iter.Seq2[DeadJob, error] {
	return func(yield func(DeadJob, error) bool) {
		page := make([]store.Job, readPage)
		filter := store.Filter{Queue: queue, State: store.Dead}
		for more := true; more; {
			n, _, err := e.store.Jobs(ctx, filter, page)
			if err != nil {
				yield(DeadJob{}, &OpError{Op: "dead", Queue: queue, Err: err})
				return
			}
			for i := range page[:n] {
				row := &page[i]
				if !yield(DeadJob{
					ID: row.ID, Queue: row.Queue, Payload: cloneBytes(row.Payload),
					Schedule: row.Schedule, Boundary: timeOf(row.FireAt), Origin: row.Origin, Attempts: int(row.Attempts),
					LastError: row.LastError, Enqueued: timeOf(row.EnqueuedAt), Died: timeOf(row.Since),
				}, nil) {
					return
				}
			}
			if more = n == len(page); more {
				filter.From = page[n-1].ID + 1
			}
		}
	}
}

// Requeue enqueues a dead job anew (QU11): with a new id, no attempts, ready
// at once, without expiry and key. [ErrNotFound]: the queue has no such dead
// job.
func (e *Engine) Requeue(ctx context.Context, queue string, job JobID) (JobID, error) {
	if err := core.CheckName("queue", queue); err != nil {
		return 0, err
	}
	return e.requeue(ctx, queue, job)
}

func (e *Engine) requeue(ctx context.Context, queue string, job JobID) (JobID, error) {
	defer e.queues.raise(queue) // after an error, too: it may be done
	done, err := e.commit(ctx, "requeue", &store.Batch{Requeues: []store.JobRef{{Queue: queue, Job: job}}})
	if err != nil {
		return 0, err
	}
	e.emit(Event{Kind: EventRequeued, At: timeOf(done.Now), Queue: queue, Job: done.Requeues[0]})
	return done.Requeues[0], nil
}

// Purge removes dead jobs of the queue (QU11): all of those named, or none
// where one is no dead job of the queue ([ErrNotFound]). At most 10,000.
func (e *Engine) Purge(ctx context.Context, queue string, jobs ...JobID) error {
	if err := core.CheckName("queue", queue); err != nil {
		return err
	}
	return e.purge(ctx, queue, jobs)
}

func (e *Engine) purge(ctx context.Context, queue string, jobs []JobID) error {
	switch {
	case len(jobs) == 0:
		return nil
	case len(jobs) > maxBatch:
		return tooMany("jobs", len(jobs))
	}
	batch := &store.Batch{}
	for _, job := range jobs {
		batch.Purges = append(batch.Purges, store.JobRef{Queue: queue, Job: job})
	}
	done, err := e.commit(ctx, "purge", batch)
	if err != nil {
		return err
	}
	e.emit(Event{Kind: EventPurged, At: timeOf(done.Now), Queue: queue, Count: int64(len(jobs))})
	return nil
}

// Cancel removes a pending or claimed job; a worker that has it gets
// [ErrClaimLost] (QU7). It reports whether there was one.
func (e *Engine) Cancel(ctx context.Context, queue string, job JobID) (bool, error) {
	if err := core.CheckName("queue", queue); err != nil {
		return false, err
	}
	defer e.queues.ended() // after an error, too: it may be done
	done, err := e.store.Commit(ctx, &store.Batch{Cancels: []store.JobRef{{Queue: queue, Job: job}}})
	if err != nil {
		return false, &OpError{Op: "cancel", Queue: queue, Err: err}
	}
	if done.Refusal.Why != store.NotRefused {
		return false, nil
	}
	e.emit(Event{Kind: EventCancelled, At: timeOf(done.Now), Queue: queue, Job: job})
	return true, nil
}
