package sim

import (
	"errors"
	"fmt"
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
// into its queue as it succeeds, and whether together with its ack.
func (w *world) spawns(job *tickonce.Job) (jobs int, tx bool) {
	for _, i := range w.handlerFaults {
		f := &w.scenario.Faults[i]
		if f.Kind == FaultHandlerSpawns && f.concerns(job) && job.Schedule != "" && (f.Chance == 0 || w.draws.handlerFault.happens(f.Chance)) {
			w.faults[i].effect++
			jobs += max(f.Jobs, 1)
			tx = tx || f.Tx
		}
	}
	return jobs, tx
}

// inserted takes jobs of no schedule into the model. One whose key a live job of
// its queue has is that one (QU12).
func (t *truth) inserted(b *store.Batch, done *store.Committed) {
	for i := range b.Inserts {
		in, out, q := &b.Inserts[i], done.Inserts[i], t.byQueue[b.Inserts[i].Queue]
		held := t.withKey(in)
		if out.Existing != (held != 0) || out.Existing && out.Job != held {
			t.w.fail(oneState, "", fmt.Sprintf("a job with the key %q answered %+v, while job %d has it", in.Key, out, held))
			continue
		}
		if out.Existing {
			continue
		}
		job := trueJob{
			queue: q, schedule: t.named[""], boundary: store.None, payload: in.Payload, key: in.Key, priority: in.Priority, stamps: in.Stamps,
			runAt: done.Now.Add(in.DelayMS), expires: store.None,
		}
		if in.RunAt != store.None {
			job.runAt = max(in.RunAt, done.Now)
		}
		if in.ExpiresMS > 0 {
			job.expires = job.runAt.Add(in.ExpiresMS)
		}
		t.add(out.Job, job)
		t.memory += jobMemory(job.payload)
		t.w.tellOfJob(out.Job, t.jobs[out.Job], Event{Kind: EventEnqueued, Cause: t.w.causeOfCall()})
		t.w.digest.Int(tagFire, int64(out.Job))
		t.w.owes(tickonce.EventEnqueued, done.Now, int64(out.Job), 1)
		q.row.Pending++
		q.row.Enqueued++
		t.wake(q)
	}
}

// withKey is the live job that has the key of the insert, 0 without one.
func (t *truth) withKey(in *store.Insert) store.JobID {
	if in.Key == "" {
		return 0
	}
	return t.keyed[liveKey{t.byQueue[in.Queue], in.Key}]
}

// hasRoom reports whether the queue of the batch's jobs has room for them, once
// those that it acks are gone, which are of the same queue.
func (t *truth) hasRoom(b *store.Batch) bool {
	n := int64(0)
	for i := range b.Inserts {
		if t.withKey(&b.Inserts[i]) == 0 {
			n++
		}
	}
	return n == 0 || t.byQueue[b.Inserts[0].Queue].row.Len()-int64(len(b.Settles))+n <= t.w.queueLimit()
}
