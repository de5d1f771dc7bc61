package memengine

import (
	"context"

	"github.com/tickonce/tickonce/store"
)

// Commit implements [store.Store].
func (s *Store) Commit(ctx context.Context, b *store.Batch) (store.Committed, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return store.Committed{}, err
	}
	defer s.mu.Unlock()
	w := batchWrite{s: s, c: s.stage(opCommit, now), b: b, out: store.Committed{Now: now}}
	for i := range b.Settles {
		b.Settles[i].Tripped = 0
	}
	if refusal := w.stage(); refusal.Why != store.NotRefused {
		s.discard()
		for i := range b.Settles {
			b.Settles[i].Tripped = 0
		}
		return store.Committed{Now: now, Refusal: refusal}, nil
	}
	if err := s.commit(); err != nil {
		return store.Committed{}, err
	}
	for i := range w.out.Puts {
		w.out.Puts[i].Live = s.ids.find(int64(w.out.Puts[i].ID)).Live
	}
	return w.out, nil
}

// batchWrite stages one batch.
type batchWrite struct {
	s   *Store
	c   *changes
	b   *store.Batch
	out store.Committed

	created int             // schedules with a new name
	names   map[string]bool // written schedules
	keys    map[liveKey]store.JobID
}

type liveKey struct {
	q   *queue
	key string
}

// stage stages the parts in their order, up to the first refusal.
func (w *batchWrite) stage() store.Refusal {
	b := w.b
	parts := [...]struct {
		n   int
		one func(i int) store.Why
	}{
		store.Guards:   {len(b.Guards), w.guard},
		store.Puts:     {len(b.Puts), w.put},
		store.Removes:  {len(b.Removes), w.remove},
		store.Settles:  {len(b.Settles), w.settle},
		store.Cancels:  {len(b.Cancels), w.cancel},
		store.Requeues: {len(b.Requeues), w.requeue},
		store.Purges:   {len(b.Purges), w.purge},
		store.Inserts:  {len(b.Inserts), w.insert},
	}
	for part, p := range parts {
		for i := range p.n {
			if why := p.one(i); why != store.NotRefused {
				return store.Refusal{Why: why, Part: store.Part(part), Index: i}
			}
		}
	}
	return store.Refusal{}
}

// guarded answers the row that the guard names, or nil, and whether the guard
// holds.
func (w *batchWrite) guarded(g store.Guard) (row *schedule, holds bool) {
	row = w.s.named(g.Name)
	if row == nil {
		return nil, g.ID == 0
	}
	return row, row.ID == g.ID && row.Rev == g.Rev && (g.Live == nil || row.Live == *g.Live)
}

// write is guarded for a schedule that is to be written, once in a batch.
func (w *batchWrite) write(g store.Guard) (row *schedule, holds bool) {
	if w.names[g.Name] {
		return nil, false
	}
	if row, holds = w.guarded(g); holds && len(w.b.Puts)+len(w.b.Removes) > 1 {
		if w.names == nil {
			w.names = make(map[string]bool)
		}
		w.names[g.Name] = true
	}
	return row, holds
}

func (w *batchWrite) guard(i int) store.Why {
	if _, holds := w.guarded(w.b.Guards[i]); !holds {
		return store.Conflict
	}
	return store.NotRefused
}

func (w *batchWrite) put(i int) store.Why {
	p, c := &w.b.Puts[i], w.c
	row, holds := w.write(p.Guard)
	if !holds {
		return store.Conflict
	}
	if w.out.Puts == nil {
		w.out.Puts = make([]store.Schedule, len(w.b.Puts)) // does not move: what is staged points into it
	}
	next := &w.out.Puts[i]
	*next = p.Row
	next.Payload = payload(next.Payload)
	switch {
	case row != nil && next.ID != 0:
		next.Rev = row.Rev + 1
		c.putOver(row, putSchedule{row: row, next: next})
	case row == nil && int64(w.s.ids.n+w.created) >= w.s.limits.Schedules:
		return store.SchedulesFull
	default:
		if row != nil {
			c.remove(row)
		} else {
			w.created++
		}
		c.last.schedule++
		next.ID, next.Rev = c.last.schedule, 1
		c.put = append(c.put, putSchedule{next: next})
	}
	for k := range p.Skips {
		id := p.Guard.ID
		if p.Skips[k].Reason == store.SkipBefore {
			id = next.ID
		}
		c.skipped(next.Name, id, &p.Skips[k])
	}
	return store.NotRefused
}

func (w *batchWrite) remove(i int) store.Why {
	row, holds := w.write(w.b.Removes[i])
	if !holds {
		return store.Conflict
	}
	if row != nil {
		w.c.remove(row)
	}
	return store.NotRefused
}

func (w *batchWrite) settle(i int) store.Why {
	t := &w.b.Settles[i]
	j := w.s.held(w.c, t.Job, t.Attempt)
	if j == nil {
		return store.ClaimLost
	}
	t.Tripped = w.s.settle(w.c, j, t)
	return store.NotRefused
}

// job answers the job of the queue that no element before has touched, or nil.
func (w *batchWrite) job(r store.JobRef) *job {
	j := w.s.jobs.find(int64(r.Job))
	if j == nil || j.Queue != r.Queue || j.staged != 0 {
		return nil
	}
	return j
}

func (w *batchWrite) cancel(i int) store.Why {
	j := w.job(w.b.Cancels[i])
	if j == nil || !live(j.State) {
		return store.NotFound
	}
	if j.Holds(j.Attempts, w.c.now) {
		w.c.ran(&j.Job, store.Cancelled, 0, "")
	} else {
		w.c.lost(&j.Job, 0, "")
	}
	w.c.end(j)
	w.c.counters(j.q).Cancelled++
	return store.NotRefused
}

func (w *batchWrite) requeue(i int) store.Why {
	j := w.job(w.b.Requeues[i])
	if j == nil || j.State != store.Dead {
		return store.NotFound
	}
	c := w.c
	c.last.job++
	again := w.s.newJob(j.q)
	again.Job = store.Requeued(j.Job, c.last.job, c.now)
	c.end(j)
	c.bear(again)
	n := c.counters(j.q)
	n.Requeued++
	n.Enqueued++
	w.out.Requeues = append(w.out.Requeues, again.ID)
	return store.NotRefused
}

func (w *batchWrite) purge(i int) store.Why {
	j := w.job(w.b.Purges[i])
	if j == nil || j.State != store.Dead {
		return store.NotFound
	}
	w.c.end(j)
	w.c.counters(j.q).Purged++
	return store.NotRefused
}

func (w *batchWrite) insert(i int) store.Why {
	in, c := &w.b.Inserts[i], w.c
	q := w.s.queue(in.Queue)
	if id := w.keyed(q, in.Key); id != 0 {
		w.out.Inserts = append(w.out.Inserts, store.Inserted{Job: id, Existing: true})
		return store.NotRefused
	}
	n := c.counters(q)
	if n.Len() >= w.s.limits.QueueLength {
		return store.QueueFull
	}
	c.last.job++
	j := w.s.newJob(q)
	j.ID = c.last.job
	j.Payload = payload(in.Payload)
	j.Key = in.Key
	j.FireAt = store.None
	if f := in.From; f != nil {
		j.Schedule, j.ScheduleID, j.FireAt, j.Origin = f.Schedule, f.ScheduleID, f.FireAt, f.Origin
		j.TimeoutMS, j.Alone = f.TimeoutMS, f.Alone
	}
	j.Stamps = in.Stamps
	j.EnqueuedAt = c.now
	if j.RunAt = c.now.Add(in.DelayMS); in.RunAt != store.None {
		j.RunAt = max(in.RunAt, c.now)
	}
	j.ExpiresAt = expiry(j.RunAt, in.ExpiresMS)
	j.Priority = in.Priority
	j.State = store.Pending
	j.Deadline, j.Since = store.None, store.None
	c.bear(j)
	n.Enqueued++
	if j.Key != "" {
		if w.keys == nil {
			w.keys = make(map[liveKey]store.JobID)
		}
		w.keys[liveKey{q, j.Key}] = j.ID
	}
	w.out.Inserts = append(w.out.Inserts, store.Inserted{Job: j.ID})
	return store.NotRefused
}

// keyed answers the job of the queue that will hold the key, or 0.
func (w *batchWrite) keyed(q *queue, key string) store.JobID {
	if key == "" {
		return 0
	}
	if id, ok := w.keys[liveKey{q, key}]; ok {
		return id
	}
	if j := q.keys[key]; j != nil {
		if row := w.c.view(j); row != nil && live(row.State) {
			return j.ID
		}
	}
	return 0
}

// payload answers p, nil if it is empty.
func payload(p []byte) []byte {
	if len(p) == 0 {
		return nil
	}
	return p
}
