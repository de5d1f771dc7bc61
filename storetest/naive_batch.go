package storetest

import (
	"context"
	"slices"

	"github.com/tickonce/tickonce/store"
)

// Commit implements [store.Store]. It writes to a copy of the rows, element by
// element, and throws the copy away at the first refusal.
func (s *Naive) Commit(ctx context.Context, b *store.Batch) (c store.Committed, err error) {
	err = s.step(ctx, func(now store.Instant, rows *table) {
		d := draft{before: rows, after: rows.clone(), limits: s.limits, answer: store.Committed{Now: now}}
		if d.write(b) {
			s.rows = d.after
			c = d.answer
			for i, row := range c.Puts {
				c.Puts[i] = rows.counted(row)
			}
		} else {
			c = store.Committed{Now: now, Refusal: d.answer.Refusal}
			d.tripped = make([]uint8, len(b.Settles))
		}
		for i, failures := range d.tripped {
			b.Settles[i].Tripped = failures
		}
	})
	return c, err
}

// draft is a batch half written. Guards read before, writes go to after.
type draft struct {
	before *table
	after  table
	limits store.Limits

	names   []string      // the schedules written so far
	ids     []store.JobID // the jobs touched so far
	tripped []uint8       // by the settles
	skips   []func()      // to be recorded at the end
	answer  store.Committed
}

// write reports whether no element is refused.
func (d *draft) write(b *store.Batch) bool {
	return each(d, store.Guards, b.Guards, d.holds) &&
		each(d, store.Puts, b.Puts, d.put) &&
		each(d, store.Removes, b.Removes, d.remove) &&
		each(d, store.Settles, b.Settles, d.settle) &&
		each(d, store.Cancels, b.Cancels, d.cancel) &&
		each(d, store.Requeues, b.Requeues, d.requeue) &&
		each(d, store.Purges, b.Purges, d.purge) &&
		each(d, store.Inserts, b.Inserts, d.insert) &&
		d.skipped()
}

// skipped records what the puts have skipped.
func (d *draft) skipped() bool {
	for _, record := range d.skips {
		record()
	}
	return true
}

// each writes the elements of one part up to the first that is refused.
func each[E any](d *draft, part store.Part, elements []E, write func(E) store.Why) bool {
	for i, e := range elements {
		if why := write(e); why != store.NotRefused {
			d.answer.Refusal = store.Refusal{Why: why, Part: part, Index: i}
			return false
		}
	}
	return true
}

func (d *draft) holds(g store.Guard) store.Why {
	row := d.before.schedule(g.Name)
	absent := g.ID == 0 && row == nil
	same := g.ID != 0 && row != nil && row.ID == g.ID && row.Rev == g.Rev &&
		(g.Live == nil || *g.Live == d.before.live(g.Name))
	if !absent && !same {
		return store.Conflict
	}
	return store.NotRefused
}

// own is holds for an element that writes the schedule.
func (d *draft) own(g store.Guard) store.Why {
	if slices.Contains(d.names, g.Name) {
		return store.Conflict
	}
	d.names = append(d.names, g.Name)
	return d.holds(g)
}

func (d *draft) put(p store.Put) store.Why {
	if why := d.own(p.Guard); why != store.NotRefused {
		return why
	}
	row := p.Row
	row.Payload = orNil(row.Payload)
	if row.ID != 0 {
		row.Rev = p.Guard.Rev + 1
	} else {
		d.after.lastSchedule++
		row.ID, row.Rev = d.after.lastSchedule, 1
		if old := d.before.schedule(row.Name); old != nil {
			d.after.runs.began(old)
			d.after.skips.began(old)
		}
	}
	for _, skip := range p.Skips {
		id := p.Guard.ID
		if skip.Reason == store.SkipBefore {
			id = row.ID
		}
		d.skips = append(d.skips, func() { d.after.skipped(&d.limits, row.Name, id, skip, d.answer.Now) })
	}
	if p.Guard.ID != 0 {
		*d.after.schedule(row.Name) = row
	} else if int64(len(d.after.schedules)) < d.limits.Schedules {
		d.after.addSchedule(row)
	} else {
		return store.SchedulesFull
	}
	d.answer.Puts = append(d.answer.Puts, row)
	return store.NotRefused
}

func (d *draft) remove(g store.Guard) store.Why {
	if why := d.own(g); why != store.NotRefused {
		return why
	}
	d.after.schedules = slices.DeleteFunc(d.after.schedules, func(row store.Schedule) bool { return row.Name == g.Name })
	d.after.unscheduled(g.Name)
	return store.NotRefused
}

func (d *draft) settle(e store.Settle) store.Why {
	j := d.before.job(e.Job)
	if j == nil || !j.Holds(e.Attempt, d.answer.Now) || slices.Contains(d.ids, e.Job) {
		return store.ClaimLost
	}
	d.ids = append(d.ids, e.Job)
	d.after.ran(&d.limits, *j, e.Execution(), e.To, e.Error, d.answer.Now)
	d.tripped = append(d.tripped, d.after.settle(d.after.job(e.Job), e, d.answer.Now))
	return store.NotRefused
}

// take answers the job that r names if it is in one of the states and nothing
// has touched it yet.
func (d *draft) take(r store.JobRef, states ...store.State) *store.Job {
	j := d.before.job(r.Job)
	if j == nil || j.Queue != r.Queue || !slices.Contains(states, j.State) || slices.Contains(d.ids, r.Job) {
		return nil
	}
	d.ids = append(d.ids, r.Job)
	return d.after.job(r.Job)
}

func (d *draft) cancel(r store.JobRef) store.Why {
	j := d.take(r, store.Pending, store.Claimed)
	if j == nil {
		return store.NotFound
	}
	switch {
	case j.Holds(j.Attempts, d.answer.Now):
		d.after.ran(&d.limits, *j, store.Cancelled, 0, "", d.answer.Now)
	default:
		d.after.lost(&d.limits, *j, 0, "", d.answer.Now)
	}
	d.after.queue(j.Queue).Cancelled++
	d.after.removeJob(j.ID)
	return store.NotRefused
}

func (d *draft) requeue(r store.JobRef) store.Why {
	j := d.take(r, store.Dead)
	if j == nil {
		return store.NotFound
	}
	d.after.queue(j.Queue).Requeued++
	dead := *j
	d.after.removeJob(dead.ID)
	id := d.after.addJob(store.Requeued(dead, 0, d.answer.Now))
	d.answer.Requeues = append(d.answer.Requeues, id)
	return store.NotRefused
}

func (d *draft) purge(r store.JobRef) store.Why {
	j := d.take(r, store.Dead)
	if j == nil {
		return store.NotFound
	}
	d.after.queue(j.Queue).Purged++
	d.after.removeJob(j.ID)
	return store.NotRefused
}

func (d *draft) insert(e store.Insert) store.Why {
	if j := d.after.jobByKey(e.Queue, e.Key); j != nil {
		d.answer.Inserts = append(d.answer.Inserts, store.Inserted{Job: j.ID, Existing: true})
		return store.NotRefused
	}
	if d.after.length(e.Queue) >= d.limits.QueueLength {
		return store.QueueFull
	}
	now := d.answer.Now
	j := store.Job{
		Queue: e.Queue, Payload: orNil(e.Payload), Key: e.Key, Stamps: e.Stamps, Priority: e.Priority,
		FireAt: store.None, EnqueuedAt: now, RunAt: max(e.RunAt, now), ExpiresAt: store.None,
		State: store.Pending, Deadline: store.None, Since: store.None,
	}
	if f := e.From; f != nil {
		j.Schedule, j.ScheduleID, j.FireAt, j.Origin = f.Schedule, f.ScheduleID, f.FireAt, f.Origin
		j.TimeoutMS, j.Alone = f.TimeoutMS, f.Alone
	}
	if e.RunAt == store.None {
		j.RunAt = now.Add(e.DelayMS)
	}
	if e.ExpiresMS != 0 {
		j.ExpiresAt = j.RunAt.Add(e.ExpiresMS)
	}
	d.answer.Inserts = append(d.answer.Inserts, store.Inserted{Job: d.after.addJob(j)})
	return store.NotRefused
}
