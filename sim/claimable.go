package sim

import (
	"cmp"

	"github.com/tickonce/tickonce/store"
)

// claimable has the open jobs of a queue, to tell which of them is to be handed out
// next (QU1). Entries of jobs that have gone on meanwhile stay until they come
// up.
type claimable struct {
	ready  events[store.JobID] // pending, by priority, run-at and id
	later  events[store.JobID] // pending, by run-at: those that were not ready
	claims []*trueJob
}

// wait puts a pending job in line.
func (l *claimable) wait(j *trueJob, now store.Instant) {
	if j.runAt > now {
		l.later.insert(entry[store.JobID]{at: j.runAt, seq: uint64(j.id), e: j.id})
		return
	}
	l.ready.insert(entry[store.JobID]{at: store.Instant(-j.priority), tie: uint64(j.runAt) ^ 1<<63, seq: uint64(j.id), e: j.id})
}

// claim notes that a job is claimed.
func (l *claimable) claim(j *trueJob) {
	j.claim = len(l.claims)
	l.claims = append(l.claims, j)
}

// end notes that it is so no more.
func (l *claimable) end(j *trueJob) {
	last := len(l.claims) - 1
	moved := l.claims[last]
	l.claims[j.claim], moved.claim = moved, j.claim
	l.claims[last] = nil
	l.claims = l.claims[:last]
}

// goesBefore reports whether j is handed out before k, if both are ready.
func (j *trueJob) goesBefore(k *trueJob) bool {
	return cmp.Or(cmp.Compare(k.priority, j.priority), cmp.Compare(j.runAt, k.runAt), cmp.Compare(j.id, k.id)) < 0
}

// mayBeClaimed reports whether the job is ready, and neither doomed nor to wait for
// another.
func (j *trueJob) mayBeClaimed(now store.Instant) bool {
	return j.readyAt() <= now && j.doomedAt() > now && !j.waits()
}

// first is the job of the queue that is to be handed out at now; nil without
// one.
func (t *truth) first(q *trueQueue, now store.Instant) *trueJob {
	l := &q.claimable
	for l.later.next() <= now {
		if at, id := l.later.pop(); t.jobs[id] != nil && !t.jobs[id].claimed && t.jobs[id].runAt == at {
			l.wait(t.jobs[id], now)
		}
	}
	var first *trueJob
	for first == nil && l.ready.len() > 0 {
		top := &l.ready.heap[0]
		j := t.jobs[top.e]
		switch waits := j != nil && !j.claimed && uint64(j.runAt)^1<<63 == top.tie; {
		case waits && j.mayBeClaimed(now):
			first = j
		case waits && j.runAt > now: // the clock stepped back (K4)
			l.ready.pop()
			l.wait(j, now)
		case waits && j.waits():
			l.ready.pop()
			j.schedule.waiting = append(j.schedule.waiting, j.id)
		default:
			l.ready.pop()
		}
	}
	for _, j := range l.claims {
		if j.mayBeClaimed(now) && (first == nil || j.goesBefore(first)) {
			first = j
		}
	}
	return first
}
