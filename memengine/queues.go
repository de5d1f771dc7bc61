package memengine

import (
	"context"

	"github.com/tickonce/tickonce/store"
)

// queue is the row of a queue and the indexes of its jobs.
//
// A pending or claimed job that can be handed out one day, that is with
// ReadyAt < DoomedAt, is in waiting or in come, according to whether its
// ReadyAt has come. Those in come are in ready as well, in the order of claims,
// until a claim finds them doomed. Each claim first puts this right for its now
// (K4). Of those that have to be alone only the first of each line is there, or
// none while they wait (X9). Every job with a DoomedAt is in doom. The first of
// waiting, come and doom is the queue's NextClaimAt.
type queue struct {
	store.Queue // NextClaimAt and Waiting are not kept up

	first, last *job // all jobs, in id order
	keys        map[string]*job

	waiting turns         // by ReadyAt
	come    turns         // by ReadyAt
	ready   turns         // QU1
	doom    heap[job]     // by DoomedAt and id
	passed  store.Instant // the latest ReadyAt and DoomedAt that have come, for a job in come

	overlap *overlapIndex
	lines   []*line
	waits   int64 // jobs in lines that wait

	schedules int // that fire into it
	staged    bool
	next      store.Queue // while staged
}

func readyBefore(a, b *job) bool {
	x, y := a.ReadyAt(), b.ReadyAt()
	return x < y || x == y && a.ID < b.ID
}

func claimBefore(a, b *job) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	if a.RunAt != b.RunAt {
		return a.RunAt < b.RunAt
	}
	return a.ID < b.ID
}

func doomBefore(a, b *job) bool {
	x, y := a.DoomedAt(), b.DoomedAt()
	return x < y || x == y && a.ID < b.ID
}

// queue answers the queue with this name, a new one if there is none. A queue
// that was never used is kept only while a schedule points to it.
func (s *Store) queue(name string) *queue {
	if q, ok := s.queues.Get(name); ok {
		return q
	}
	q := &queue{
		Queue:   store.Queue{Name: name},
		keys:    make(map[string]*job),
		waiting: turns{heap[job]{before: readyBefore, place: func(j *job) *int32 { return &j.waiting }}, 0},
		come:    turns{heap[job]{before: readyBefore, place: func(j *job) *int32 { return &j.come }}, 1},
		ready:   turns{heap[job]{before: claimBefore, place: func(j *job) *int32 { return &j.ready }}, 2},
		doom:    heap[job]{before: doomBefore, place: func(j *job) *int32 { return &j.doom }},
		passed:  store.MinInstant,
		overlap: &s.overlap,
	}
	s.queues.Set(name, q)
	return q
}

// turns answers the heaps that have the first jobs of lines, by their parts.
func (q *queue) turns() [3]*turns { return [...]*turns{&q.waiting, &q.come, &q.ready} }

// used reports whether the queue ever had a job.
func (q *queue) used() bool { return q.Enqueued > 0 }

// forget drops the queue if nothing needs it.
func (s *Store) forget(q *queue) {
	if q.schedules == 0 && !q.used() && !q.staged {
		s.queues.Delete(q.Name)
	}
}

// Queues implements [store.Store].
func (s *Store) Queues(ctx context.Context, from string, dst []store.Queue) (int, store.Instant, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer s.mu.Unlock()
	n := 0
	s.queues.Ascend(from, func(_ string, q *queue) bool {
		if n == len(dst) {
			return false
		}
		if q.used() {
			dst[n] = q.Queue
			dst[n].NextClaimAt, dst[n].Waiting = q.nextClaimAt(), q.waits
			n++
		}
		return true
	})
	return n, now, nil
}

func (q *queue) nextClaimAt() store.Instant {
	at := store.None
	if j := q.waiting.top(); j != nil {
		at = j.ReadyAt()
	}
	if j := q.come.top(); j != nil {
		at = min(at, j.ReadyAt())
	}
	if j := q.doom.top(); j != nil {
		at = min(at, j.DoomedAt())
	}
	return at
}

// index takes in a job that is in no heap.
func (q *queue) index(j *job) {
	doomed := j.DoomedAt()
	if doomed != store.None {
		q.doom.push(j)
	}
	if j.ReadyAt() < doomed {
		q.join(j)
		q.waiting.push(j)
	}
}

// unindex takes the job out of all heaps, while it has the row that it was
// taken in with.
func (q *queue) unindex(j *job) {
	in := q.waiting.has(j) || q.come.has(j)
	q.waiting.remove(j)
	q.come.remove(j)
	q.ready.remove(j)
	q.doom.remove(j)
	if in {
		q.leave(j)
	}
}

// turn gives the job another row.
func (q *queue) turn(j *job, next *store.Job) {
	q.unindex(j)
	if j.Key != "" && next.State == store.Dead && live(j.State) {
		delete(q.keys, j.Key)
	}
	j.Job = *next
	j.Queue = q.Name
	q.index(j)
}

// judge puts the jobs where they belong at now.
func (q *queue) judge(now store.Instant) {
	if now < q.passed { // the clock has stepped back
		q.takeBack(now)
	}
	for j := q.waiting.top(); j != nil && j.ReadyAt() <= now; j = q.waiting.top() {
		q.waiting.pop()
		q.come.push(j)
		q.ready.push(j)
		q.passed = max(q.passed, j.ReadyAt())
	}
}

// takeBack undoes what came after now, and leaves the rest where it is.
func (q *queue) takeBack(now store.Instant) {
	q.passed = store.MinInstant
	var back []*job
	judge := func(j *job) {
		ready, doomed := j.ReadyAt(), j.DoomedAt()
		switch {
		case ready > now:
			back = append(back, j)
			return
		case q.ready.has(j):
		case now < doomed:
			q.ready.push(j)
		default:
			q.passed = max(q.passed, doomed)
		}
		q.passed = max(q.passed, ready)
	}
	for _, j := range q.come.rows {
		judge(j)
	}
	for _, l := range q.lines {
		for _, j := range l.rest[q.come.part].rows {
			judge(j)
		}
	}
	for _, j := range back {
		q.come.remove(j)
		q.ready.remove(j)
		q.waiting.push(j)
	}
}

// nextReady takes out the first job in the order of claims, or answers nil.
// Those that are doomed are left to doom.
func (q *queue) nextReady(now store.Instant) *job {
	for len(q.ready.rows) > 0 {
		j := q.ready.pop()
		doomed := j.DoomedAt()
		if now < doomed {
			return j
		}
		q.passed = max(q.passed, doomed)
	}
	return nil
}
