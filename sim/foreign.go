package sim

import (
	"errors"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// foreign stands for the schedule of the jobs that have none. Their handler takes a
// second.
var foreign = Schedule{Handler: Handler{Takes: Span{time.Second, time.Second}}}

// enqueue puts jobs of no schedule into the queue, all or none.
func (n *node) enqueue(queue string, jobs int) error {
	err := n.engine.Tx(ctx, func(tx *tickonce.Tx) error {
		for range jobs {
			if _, err := tx.Enqueue(queue, nil, tickonce.EnqueueOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	n.w.coverage.sometimes(enqueueRefused, errors.Is(err, tickonce.ErrLimit))
	return err
}

// spawns draws by the faults that are on how many jobs the worker's handler puts
// into its queue as it succeeds.
func (w *world) spawns(job *tickonce.Job) (jobs int) {
	for _, i := range w.handlerFaults {
		f := &w.scenario.Faults[i]
		if f.Kind == FaultHandlerSpawns && f.concerns(job) && job.Schedule != "" && (f.Chance == 0 || w.draws.handlerFault.happens(f.Chance)) {
			w.faults[i].effect++
			jobs += max(f.Jobs, 1)
		}
	}
	return jobs
}

// inserted takes jobs of no schedule into the model.
func (t *truth) inserted(b *store.Batch, done *store.Committed) {
	for i := range b.Inserts {
		in, q := &b.Inserts[i], t.byQueue[b.Inserts[i].Queue]
		t.add(done.Inserts[i].Job, trueJob{
			queue: q, schedule: t.named[""], boundary: store.None, payload: in.Payload, priority: in.Priority, stamps: in.Stamps,
			runAt: done.Now, expires: store.None,
		})
		t.w.tellOfJob(done.Inserts[i].Job, t.jobs[done.Inserts[i].Job], Event{Kind: EventEnqueued, Cause: t.w.causeOfCall()})
		t.w.digest.Int(tagFire, int64(done.Inserts[i].Job))
		t.w.owes(tickonce.EventEnqueued, done.Now, int64(done.Inserts[i].Job), 1)
		q.row.Pending++
		q.row.Enqueued++
		t.wake(q)
	}
}

// hasRoom reports whether the queue of the batch's jobs has room for them.
func (t *truth) hasRoom(b *store.Batch) bool {
	n := int64(len(b.Inserts))
	return n == 0 || t.byQueue[b.Inserts[0].Queue].row.Len()+n <= t.w.queueLimit()
}
