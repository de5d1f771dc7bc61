package properties_test

import (
	"cmp"
	"math"
	"slices"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

const never = math.MaxInt64

// modelJob is a job, its times in milliseconds from start.
type modelJob struct {
	id                         tickonce.JobID
	key                        string
	priority                   int16
	runAt, expiresAt, deadline int64
	visibility, backoff        int64
	attempts, most             int
	state                      store.State
	err                        string
}

// queueModel is a queue as a list of jobs, in the order of their ids.
type queueModel struct {
	jobs   []*modelJob
	counts tickonce.QueueInfo // what happened, and no states
}

func (q *queueModel) find(id tickonce.JobID) *modelJob {
	for _, j := range q.jobs {
		if j.id == id {
			return j
		}
	}
	return nil
}

// keyed is the live job with the key.
func (q *queueModel) keyed(key string) *modelJob {
	for _, j := range q.jobs {
		if key != "" && j.key == key && j.state != store.Dead {
			return j
		}
	}
	return nil
}

func (q *queueModel) add(j modelJob) {
	q.counts.Enqueued++
	j.state = store.Pending
	q.jobs = append(q.jobs, &j)
}

func (q *queueModel) remove(id tickonce.JobID) {
	q.jobs = slices.DeleteFunc(q.jobs, func(j *modelJob) bool { return j.id == id })
}

func (q *queueModel) die(j *modelJob, err string) {
	q.counts.Died++
	j.state, j.err = store.Dead, err
}

// free reports whether nobody has the job, so that it can be handed out, or
// die, at now.
func (j *modelJob) free(now int64) bool {
	return j.state == store.Pending && j.runAt <= now || j.state == store.Claimed && j.deadline < now
}

func (j *modelJob) exhausted(now int64) bool { return j.free(now) && j.attempts >= j.most }

func (j *modelJob) expired(now int64) bool {
	return j.expiresAt <= now && (j.state == store.Pending || j.free(now))
}

func (q *queueModel) bury(now int64) (n int) {
	for _, j := range q.jobs {
		switch {
		case j.expired(now):
			q.die(j, "expired")
		case j.exhausted(now):
			q.die(j, "max attempts exceeded")
		default:
			continue
		}
		n++
	}
	return n
}

func (q *queueModel) claim(now int64, n int) []*modelJob {
	q.bury(now)
	var free []*modelJob
	for _, j := range q.jobs {
		if j.free(now) {
			free = append(free, j)
		}
	}
	slices.SortFunc(free, func(a, b *modelJob) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.runAt, b.runAt), cmp.Compare(a.id, b.id))
	})
	free = free[:min(n, len(free))]
	for _, j := range free {
		q.counts.Claims++
		j.state, j.deadline = store.Claimed, now+j.visibility
		j.attempts++
	}
	return free
}

// held is the job whose claim is the live one, or nil.
func (q *queueModel) held(id tickonce.JobID, attempt int, now int64) *modelJob {
	if j := q.find(id); j != nil && j.state == store.Claimed && j.attempts == attempt && now <= j.deadline {
		return j
	}
	return nil
}

// retry gives a job back, unless it was its last attempt.
func (q *queueModel) retry(j *modelJob, runAt int64) {
	if j.attempts >= j.most {
		q.die(j, "failed")
		return
	}
	q.counts.Retried++
	j.state, j.runAt, j.err = store.Pending, runAt, "failed"
}

// requeue puts a job with a new id in the place of a dead one.
func (q *queueModel) requeue(dead, id tickonce.JobID, now int64) {
	j := *q.find(dead)
	q.counts.Requeued++
	q.remove(dead)
	j.id, j.key, j.attempts, j.runAt, j.expiresAt = id, "", 0, now, never
	q.add(j)
}

// info is what is known of the queue. It wakes a worker at the first instant
// at which a claim would hand out a job or bury one.
func (q *queueModel) info() tickonce.QueueInfo {
	info := q.counts
	next := int64(never)
	for _, j := range q.jobs {
		at := j.runAt
		switch j.state {
		case store.Pending:
			info.Pending++
		case store.Claimed:
			info.Claimed++
			at = j.deadline + 1
		case store.Dead:
			info.Dead++
			continue
		}
		if j.state == store.Pending {
			at = min(at, j.expiresAt)
		}
		next = min(next, at)
	}
	if next != never {
		info.NextClaimAt = atMS(next)
	}
	return info
}
