package memengine

import (
	"context"

	"github.com/tickonce/tickonce/store"
)

// maxSpare bounds the job rows that are kept for use again.
const maxSpare = 4096

// job is a row of its own and its place in the indexes.
type job struct {
	store.Job
	q          *queue
	prev, next *job // in the queue, in id order

	waiting, come, ready, doom int32 // places in the queue's heaps

	staged int32 // by the call under way: index + 1 in its turned, or -1 if the job will be gone
}

// live reports whether a job in the state holds its key (QU12).
func live(s store.State) bool { return s == store.Pending || s == store.Claimed }

// newJob answers an empty row for a job of the queue.
func (s *Store) newJob(q *queue) *job {
	var j *job
	if n := len(s.spare); n > 0 {
		j = s.spare[n-1]
		s.spare = s.spare[:n-1]
	} else {
		j = new(job)
	}
	j.q, j.Queue = q, q.Name
	return j
}

// recycle takes back a row that nothing points to.
func (s *Store) recycle(j *job) {
	if len(s.spare) < maxSpare {
		*j = job{}
		s.spare = append(s.spare, j)
	}
}

// addJob takes in a job whose id is the largest so far.
func (s *Store) addJob(j *job) {
	q := j.q
	s.jobs.put(int64(j.ID), j)
	if j.prev = q.last; j.prev == nil {
		q.first = j
	} else {
		j.prev.next = j
	}
	q.last = j
	if j.Key != "" && live(j.State) {
		q.keys[j.Key] = j
	}
	q.index(j)
}

func (s *Store) dropJob(j *job) {
	q := j.q
	q.unindex(j)
	if j.prev == nil {
		q.first = j.next
	} else {
		j.prev.next = j.next
	}
	if j.next == nil {
		q.last = j.prev
	} else {
		j.next.prev = j.prev
	}
	if j.Key != "" && live(j.State) {
		delete(q.keys, j.Key)
	}
	s.jobs.drop(int64(j.ID))
	s.recycle(j)
}

// Jobs implements [store.Store].
func (s *Store) Jobs(ctx context.Context, f store.Filter, dst []store.Job) (int, store.Instant, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer s.mu.Unlock()
	q, ok := s.queues.Get(f.Queue)
	if !ok {
		return 0, now, nil
	}
	n := 0
	for j := s.firstJob(q, f.From); j != nil && n < len(dst); j = j.next {
		if f.State == 0 || f.State == j.State {
			dst[n] = j.Job
			n++
		}
	}
	return n, now, nil
}

// firstJob answers the queue's first job with this id or a larger one.
func (s *Store) firstJob(q *queue, from store.JobID) *job {
	if q.first == nil || from <= q.first.ID {
		return q.first
	}
	if from > q.last.ID {
		return nil
	}
	for j := range s.jobs.from(int64(from)) {
		if j.q == q {
			return j
		}
	}
	return nil
}

// Claim implements [store.Store].
func (s *Store) Claim(ctx context.Context, queue, worker string, dst []store.Job) (store.Claim, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return store.Claim{}, err
	}
	defer s.mu.Unlock()
	q, ok := s.queues.Get(queue)
	if !ok {
		return store.Claim{Now: now}, nil
	}
	c := s.stage(opClaim, now)
	buried, tripped := 0, []store.Trip(nil)
	for ; buried < store.MaxBuried; buried++ {
		j := q.doom.top()
		if j == nil || now < j.DoomedAt() {
			break
		}
		q.doom.pop()
		next := j.Job
		next.LastError = j.DoomText(now)
		c.lost(&j.Job, store.Dead, next.LastError)
		c.kill(j, next)
		if next.LastError == store.ErrorExhausted {
			if failures := s.ended(c, &j.Job, true); failures > 0 {
				tripped = append(tripped, store.Trip{Schedule: j.Schedule, Failures: failures})
			}
		}
	}
	q.judge(now) // after the burials, which may let others have their turn
	n := 0
	for ; n < len(dst); n++ {
		j := q.nextReady(now)
		if j == nil {
			break
		}
		c.lost(&j.Job, store.Claimed, "")
		next := &dst[n]
		*next = j.Job
		next.State = store.Claimed
		next.Attempts++
		next.Worker = worker
		next.Deadline = now.Add(j.Stamps.VisibilityMS)
		next.Since = now
		c.turn(j, *next)
	}
	if n > 0 {
		c.counters(q).Claims += int64(n)
	}
	if err := s.commit(); err != nil {
		return store.Claim{}, err
	}
	return store.Claim{N: n, Buried: buried, Now: now, Tripped: tripped}, nil
}

// kill stages the job's move to dead.
func (c *changes) kill(j *job, next store.Job) {
	next.State = store.Dead
	next.Since = c.now
	c.turn(j, next)
	c.counters(j.q).Died++
}

// Settle implements [store.Store].
func (s *Store) Settle(ctx context.Context, settles []store.Settle, out []bool) (store.Instant, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	c := s.stage(opSettle, now)
	for i := range settles {
		j := s.held(c, settles[i].Job, settles[i].Attempt)
		settles[i].Tripped = 0
		if out[i] = j != nil; out[i] {
			settles[i].Tripped = s.settle(c, j, &settles[i])
		}
	}
	return now, s.commit()
}

// held answers the job if its live claim is the one with this attempt number.
func (s *Store) held(c *changes, id store.JobID, attempt int32) *job {
	j := s.jobs.find(int64(id))
	if j == nil {
		return nil
	}
	if row := c.view(j); row == nil || !row.Holds(attempt, c.now) {
		return nil
	}
	return j
}

// settle stages the end of a claim that is held. It answers, where that opened
// the breaker of the job's schedule, the failures in a row.
func (s *Store) settle(c *changes, j *job, t *store.Settle) (tripped uint8) {
	next := *c.view(j)
	c.ran(&next, t.Execution(), t.To, t.Error)
	n := c.counters(j.q)
	switch t.To {
	case store.Pending:
		next.State, next.Since = store.Pending, store.None
		next.RunAt = c.now.Add(t.DelayMS)
		next.LastError = t.Error
		c.turn(j, next)
		n.Retried++
	case store.Dead:
		next.LastError = t.Error
		c.kill(j, next)
		tripped = s.ended(c, &j.Job, true)
	default:
		c.end(j)
		n.Done++
		s.ended(c, &j.Job, false)
	}
	return tripped
}

// Extend implements [store.Store].
func (s *Store) Extend(ctx context.Context, extends []store.Extend, out []store.Instant) (store.Instant, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	c := s.stage(opExtend, now)
	for i, e := range extends {
		out[i] = store.None
		if j := s.held(c, e.Job, e.Attempt); j != nil {
			next := *c.view(j)
			next.Deadline = now.Add(e.ForMS)
			c.turn(j, next)
			out[i] = next.Deadline
		}
	}
	return now, s.commit()
}
