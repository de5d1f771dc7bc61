package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// foreign stands for the schedule of the jobs that have none. Their handler takes a
// second.
var foreign = Schedule{Handler: Handler{Takes: Span{time.Second, time.Second}}}

// spawn is so many jobs of no schedule for a queue, or entries for an outbox.
type spawn struct {
	into *trueQueue
	jobs int
}

// entryOf is the payload of what the handler of a job puts into an outbox.
func entryOf(job *tickonce.Job) []byte {
	return strconv.AppendInt([]byte("of job "), int64(job.ID), 10)
}

// stage stages what is put somewhere in a transaction; what goes to an outbox with
// the payload.
func (p spawn) stage(tx *tickonce.Tx, payload []byte) error {
	for range p.jobs {
		var err error
		if o := p.into.outbox; o != nil {
			_, err = tx.Outbox(o.Name).Enqueue(payload, o.options())
		} else {
			_, err = tx.Enqueue(p.into.row.Name, nil, tickonce.EnqueueOptions{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enqueue puts all of it or nothing.
func (n *node) enqueue(spawns []spawn, payload []byte) (err error) {
	n.w.intent.tx = &transaction{spawns: spawns, payload: payload}
	if o := spawns[0].into.outbox; o != nil && len(spawns) == 1 && spawns[0].jobs == 1 {
		_, err = n.engine.Outbox(o.Name).Enqueue(ctx, payload, o.options())
	} else {
		err = n.engine.Tx(ctx, func(tx *tickonce.Tx) error {
			for _, p := range spawns {
				if err := p.stage(tx, payload); err != nil {
					return err
				}
			}
			return nil
		})
	}
	n.w.intent.tx = nil
	n.w.coverage.sometimes(enqueueRefused, errors.Is(err, tickonce.ErrLimit))
	return err
}

// spawns draws by the faults that are on what the handler of a job of the queue puts somewhere
// as it succeeds, and whether together with its ack, as what its schedule has it
// put into an outbox always is.
func (w *world) spawns(queue *trueQueue, job *tickonce.Job) (list []spawn, tx bool) {
	if job.Schedule == "" || queue.outbox != nil {
		return nil, false
	}
	if outbox := w.truth.named[job.Schedule].scenario.Outbox; outbox != "" {
		list, tx = append(list, spawn{w.truth.place(outbox), 1}), true
	}
	for _, i := range w.handlerFaults {
		f := &w.scenario.Faults[i]
		if f.Kind != FaultHandlerSpawns || !f.concerns(job, queue) || f.Chance != 0 && !w.draws.handlerFault.happens(f.Chance) {
			continue
		}
		w.faults[i].effect++
		into := queue
		if f.Into != "" {
			into = w.truth.place(f.Into)
		}
		list, tx = append(list, spawn{into, max(f.Jobs, 1)}), tx || f.Tx
	}
	return list, tx
}

// inserted takes jobs of no schedule into the model. One whose key a live job of
// its queue has is that one (QU12).
func (t *truth) inserted(b *store.Batch, done *store.Committed) {
	for i := range b.Inserts {
		in, out, q := &b.Inserts[i], done.Inserts[i], t.byQueue[b.Inserts[i].Queue]
		held := t.withKey(in)
		if out.Existing != (held != 0) || out.Existing && out.Job != held {
			has := pick(held == 0, "no live job has it", fmt.Sprintf("job %d has it", held))
			t.w.fail(oneState, "", fmt.Sprintf("a job with the key %q was answered with job %d, as one that was there: %s; %s",
				in.Key, out.Job, yesNo(out.Existing), has))
			continue
		}
		if out.Existing {
			continue
		}
		job := trueJob{
			queue: q, schedule: t.named[""], boundary: store.None, payload: in.Payload, key: in.Key, priority: in.Priority, stamps: in.Stamps,
			runAt: done.Now.Add(in.DelayMS), expires: store.None,
		}
		told, heard := EventEnqueued, tickonce.EventEnqueued
		cause := t.w.causeOfCall()
		if from := in.From; from != nil {
			job.schedule, job.incarnation, job.boundary = t.named[from.Schedule], from.ScheduleID, from.FireAt
			job.origin, job.timeoutMS, job.alone = from.Origin, from.TimeoutMS, from.Alone
			if job.origin != 0 {
				if i := slices.IndexFunc(b.Settles, func(s store.Settle) bool { return s.Job == job.origin }); i >= 0 {
					cause = t.ends[i]
				}
			} else {
				job.once = job.schedule.row.RunOnce
				told, heard = EventTriggered, tickonce.EventTriggered
			}
		}
		if in.RunAt != store.None {
			job.runAt = max(in.RunAt, done.Now)
		}
		if in.ExpiresMS > 0 {
			job.expires = job.runAt.Add(in.ExpiresMS)
		}
		t.add(out.Job, job)
		t.memory += jobMemory(job.payload)
		t.w.tellOfJob(out.Job, t.jobs[out.Job], Event{Kind: told, Cause: cause})
		t.w.digest.Int(tagFire, int64(out.Job))
		t.w.owes(heard, done.Now, int64(out.Job), 1)
		t.count(t.jobs[out.Job], +1)
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

// hasRoom reports whether the queues of the batch's jobs have room for them, once
// those that it acks are gone.
func (t *truth) hasRoom(b *store.Batch) bool {
	for i := range b.Settles {
		t.jobs[b.Settles[i].Job].queue.incoming--
	}
	room := true
	for i := range b.Inserts {
		if q := t.byQueue[b.Inserts[i].Queue]; t.withKey(&b.Inserts[i]) == 0 {
			q.incoming++
			room = room && q.row.Len()+q.incoming <= t.w.queueLimit()
		}
	}
	for i := range b.Settles {
		t.jobs[b.Settles[i].Job].queue.incoming = 0
	}
	for i := range b.Inserts {
		t.byQueue[b.Inserts[i].Queue].incoming = 0
	}
	return room
}
