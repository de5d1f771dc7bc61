package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/tickonce/tickonce/store"
)

// Claim watches [store.Store.Claim]: invariants 4 and 5.
func (t *truth) Claim(ctx context.Context, queue, worker string, dst []store.Job) (store.Claim, error) {
	claim, err := t.Store.Claim(ctx, queue, worker, dst)
	if err != nil {
		return claim, err
	}
	t.bury(queue, claim.Buried)
	for i := range dst[:claim.N] {
		row := &dst[i]
		job := t.jobs[row.ID]
		switch {
		case job == nil || job.Queue != queue:
			t.w.fail("4 one state", row.Schedule, fmt.Sprintf("queue %q handed out a job it does not have", queue))
			continue
		case job.ReadyAt() > claim.Now:
			t.w.fail("5 one claim", row.Schedule, fmt.Sprintf("the job of %s was handed out before %s", timeOf(job.FireAt), timeOf(job.ReadyAt())))
		case row.Attempts != job.Attempts+1 || row.Attempts > job.Stamps.MaxAttempts:
			t.w.fail("4 attempts", row.Schedule, fmt.Sprintf("attempt %d of %d was handed out after attempt %d", row.Attempts, job.Stamps.MaxAttempts, job.Attempts))
		}
		t.w.coverage.sometimes(claimReclaimed, job.State == store.Claimed)
		t.w.digest.Text(tagClaim, row.Schedule)
		t.w.digest.Int(tagClaim, int64(row.FireAt))
		t.w.digest.Int(tagClaim, int64(row.Attempts))
		job.State, job.Attempts, job.Deadline = store.Claimed, row.Attempts, row.Deadline
		t.w.at(t.w.whenShown(row.Deadline.Add(1)), event{kind: queueWakes, index: int32(t.queueIndex(queue))})
	}
	return claim, nil
}

// bury moves the doomed jobs of the model to dead, and checks that they are as
// many as the store buried.
func (t *truth) bury(queue string, buried int) {
	q := t.queue(queue)
	now := t.w.shown()
	died := 0
	if buried > 0 {
		q.open = slices.DeleteFunc(q.open, func(id store.JobID) bool {
			job := t.jobs[id]
			if job != nil && job.DoomedAt() <= now && died < store.MaxBuried {
				died++
				t.die(job)
			}
			return t.jobs[id] == nil
		})
		t.w.digest.Int(tagSettle, int64(buried))
	}
	if died != buried {
		t.w.fail("4 one state", "", fmt.Sprintf("queue %q buried %d jobs, of which %d had to die", queue, buried, died))
	}
}

func (t *truth) die(job *store.Job) {
	delete(t.jobs, job.ID)
	t.w.coverage.sometimes(deadLetter, true)
}

func (t *truth) queueIndex(name string) int {
	return slices.IndexFunc(t.queues, func(q *trueQueue) bool { return q.name == name })
}

// Settle watches [store.Store.Settle]: a stale token changes nothing, the live
// one does (invariant 5).
func (t *truth) Settle(ctx context.Context, settles []store.Settle, out []bool) (store.Instant, error) {
	now, err := t.Store.Settle(ctx, settles, out)
	if err != nil {
		return now, err
	}
	for i, s := range settles {
		job := t.jobs[s.Job]
		if holds := job != nil && job.Holds(s.Attempt, now); holds != out[i] {
			t.w.fail("5 stale token", "", fmt.Sprintf("a settlement of attempt %d answered %v, its claim is live: %v", s.Attempt, out[i], holds))
		}
		if !out[i] || job == nil {
			continue
		}
		t.w.digest.Text(tagSettle, job.Schedule)
		t.w.digest.Int(tagSettle, int64(job.FireAt))
		t.w.digest.Int(tagSettle, int64(s.To))
		switch s.To {
		case store.Done:
			delete(t.jobs, s.Job)
		case store.Dead:
			t.die(job)
		default:
			job.State, job.RunAt = store.Pending, now.Add(s.DelayMS)
			t.w.wakeQueue(job.Queue)
		}
	}
	return now, nil
}

// sweep checks the sums of all queues against the model (invariant 4).
func (t *truth) sweep() {
	if !t.open {
		return
	}
	var rows [1]store.Queue
	for _, q := range t.queues {
		n, _, err := t.memory.Queues(ctx, q.name, rows[:])
		if err != nil {
			panic(err)
		}
		if n == 0 || rows[0].Name != q.name {
			continue
		}
		row := &rows[0]
		if sum := row.Pending + row.Claimed + row.Dead + row.Done + row.Cancelled + row.Requeued + row.Purged; sum != row.Enqueued {
			t.w.fail("4 conservation", "", fmt.Sprintf("queue %q: %d enqueued, %d accounted for", q.name, row.Enqueued, sum))
		}
		open := int64(0)
		q.open = slices.DeleteFunc(q.open, func(id store.JobID) bool {
			if t.jobs[id] == nil {
				return true
			}
			if t.jobs[id].State != store.Dead {
				open++
			}
			return false
		})
		if open != row.Pending+row.Claimed {
			t.w.fail("4 one state", "", fmt.Sprintf("queue %q keeps %d open jobs, the model %d", q.name, row.Pending+row.Claimed, open))
		}
	}
}
