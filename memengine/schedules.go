package memengine

import (
	"context"

	"github.com/tickonce/tickonce/store"
)

// schedule is a row of its own and its place in the indexes.
type schedule struct {
	store.Schedule
	q      *queue
	run    int32 // index + 1 in the due index's run; 0: not in it
	staged int32 // by the call under way: index + 1 in its put, or -1 if the row will be gone
}

// named answers the row with the name, or nil.
func (s *Store) named(name string) *schedule {
	row, _ := s.names.Get(s.at(name))
	return row
}

// at is a row that compares as the one with the name does.
func (s *Store) at(name string) *schedule {
	s.probe.Name = name
	return &s.probe
}

// row is named, for a name whose row mostly has this id.
func (s *Store) row(name string, id store.ScheduleID) *schedule {
	if row := s.ids.find(int64(id)); row != nil && row.Name == name {
		return row
	}
	return s.named(name)
}

// Schedules implements [store.Store].
func (s *Store) Schedules(ctx context.Context, from string, dst []store.Schedule) (int, store.Instant, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer s.mu.Unlock()
	n := 0
	s.names.Ascend(s.at(from), func(row *schedule) bool {
		if n == len(dst) {
			return false
		}
		dst[n] = row.Schedule
		n++
		return true
	})
	return n, now, nil
}

// Due implements [store.Store].
func (s *Store) Due(ctx context.Context, dst []store.Schedule) (store.Due, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return store.Due{}, err
	}
	defer s.mu.Unlock()
	n, next := s.due.read(now, dst)
	return store.Due{N: n, Now: now, Next: next}, nil
}

// Advance implements [store.Store].
func (s *Store) Advance(ctx context.Context, t *store.Tick) (bool, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	if l := s.lease(t.By.Lock); !l.is(t.By) || !l.Live(now) {
		return false, nil
	}
	c := s.stage(opAdvance, now)
	defer empty(&s.moved)
	for i := range t.Moves {
		m := &t.Moves[i]
		row := s.ids.find(int64(m.ID))
		m.Outcome = s.stageMove(c, row, m)
		s.moved = append(s.moved, row)
	}
	for i := range t.Fires {
		f := &t.Fires[i]
		if f.Job = 0; t.Moves[f.Move].Outcome == store.Moved {
			f.Job = s.stageFire(c, s.moved[f.Move], f.Boundary, t.Now)
		}
	}
	for i := range t.Skips {
		if skip := &t.Skips[i]; t.Moves[skip.Move].Outcome == store.Moved {
			c.skipped(s.moved[skip.Move].Name, s.moved[skip.Move].ID, skip)
		}
	}
	return true, s.commit()
}

func (s *Store) stageMove(c *changes, row *schedule, m *store.Move) store.Outcome {
	if row == nil || row.Rev != m.Rev || row.staged != 0 || row.Overlap != store.Allow && row.Live != m.Live {
		return store.Stale
	}
	if m.Fires > 0 {
		n := c.counters(row.q)
		if n.Len()+int64(m.Fires) > s.limits.QueueLength {
			return store.Full
		}
		n.Pending += int64(m.Fires)
		n.Enqueued += int64(m.Fires)
	}
	c.putOver(row, putSchedule{row: row, move: m})
	return store.Moved
}

// stageFire stages the job of a boundary, which is counted already.
func (s *Store) stageFire(c *changes, row *schedule, boundary, ready store.Instant) store.JobID {
	c.last.job++
	j := s.newJob(row.q)
	j.ID = c.last.job
	j.Payload = row.Payload
	j.Schedule, j.ScheduleID, j.FireAt = row.Name, row.ID, boundary
	j.Stamps = row.Stamps
	j.EnqueuedAt, j.RunAt, j.ExpiresAt = c.now, ready, expiry(ready, row.ExpiresMS)
	j.Priority = row.Priority
	j.Alone = row.Overlap != store.Allow
	if row.RunOnce {
		j.Stamps.MaxAttempts = 1
	}
	if row.Rare != nil {
		j.TimeoutMS = row.Rare.TimeoutMS
	}
	j.State = store.Pending
	j.Deadline, j.Since = store.None, store.None
	s.overlap.countFor(row, row.Name, 0, store.Pending)
	c.born = append(c.born, j)
	return j.ID
}

// expiry is when a job that is ready then expires; ms 0 is never.
func expiry(ready store.Instant, ms int64) store.Instant {
	if ms == 0 {
		return store.None
	}
	return ready.Add(ms)
}

// putSchedule writes a row, in the place of the one it changes.
func (s *Store) putSchedule(p *putSchedule) {
	if p.move != nil {
		s.moveSchedule(p.row, p.move)
		return
	}
	next, row := *p.next, p.row
	if row == nil {
		row = &schedule{Schedule: next}
		s.fireInto(row, next.Queue)
		s.ids.put(int64(row.ID), row)
		s.names.Set(row)
		s.overlap.arrived(row)
		s.due.add(row)
		return
	}
	s.due.remove(row)
	old := row.q
	row.staged = 0
	next.Live = row.Live
	row.Schedule = next
	if row.Queue != old.Name {
		s.fireInto(row, next.Queue)
		old.schedules--
		s.forget(old)
	}
	s.due.add(row)
}

// moveSchedule writes what a move changes in place, because copying the whole
// row there and back shows in the cost of a fire.
func (s *Store) moveSchedule(row *schedule, m *store.Move) {
	s.due.remove(row)
	row.staged = 0
	moved(&row.Schedule, m)
	s.due.add(row)
}

// fireInto points the row to its queue.
func (s *Store) fireInto(row *schedule, queue string) {
	row.q = s.queue(queue)
	row.q.schedules++
	row.Queue = row.q.Name
}

func (s *Store) removeSchedule(row *schedule) {
	s.due.remove(row)
	s.names.Delete(row)
	s.ids.drop(int64(row.ID))
	s.overlap.left(row)
	row.q.schedules--
	s.forget(row.q)
}
