package sim

import (
	"fmt"

	"github.com/tickonce/tickonce/store"
)

// audit compares all rows of the store with the model (invariant 4), and
// answers how many there are.
func (t *truth) audit() int64 {
	if !t.open {
		return 0
	}
	rows := int64(0)
	t.eachSchedule(func(row *store.Schedule) {
		rows++
		t.w.checked[anAuditedSchedule]++
		if !t.isTrue(row) {
			t.w.fail(rightRows, row.Name, "its row is not as it was written")
		}
	})
	if known := int64(len(t.byID)); rows != known {
		t.w.fail(rightRows, "", fmt.Sprintf("the store has %d schedules, it was given %d", rows, known))
	}
	for _, q := range t.queues {
		rows += t.auditQueue(q)
	}
	t.askWhy()
	return rows
}

func (t *truth) auditQueue(q *trueQueue) (rows int64) {
	t.w.checked[anAuditedQueue]++
	counted := q.row
	counted.NextClaimAt = 0
	has := t.queueRow(q.row.Name)
	if has != counted {
		var f mismatches
		f.note("pending", has.Pending, counted.Pending)
		f.note("claimed", has.Claimed, counted.Claimed)
		f.note("dead", has.Dead, counted.Dead)
		f.note("enqueued", has.Enqueued, counted.Enqueued)
		f.note("claims", has.Claims, counted.Claims)
		f.note("retried", has.Retried, counted.Retried)
		f.note("done", has.Done, counted.Done)
		f.note("died", has.Died, counted.Died)
		f.note("cancelled", has.Cancelled, counted.Cancelled)
		f.note("requeued", has.Requeued, counted.Requeued)
		f.note("purged", has.Purged, counted.Purged)
		t.w.fail(conservation, "", fmt.Sprintf("the counts of queue %q are not those of its calls: %s", q.name, f))
	}
	if sum := has.Pending + has.Claimed + has.Dead + has.Done + has.Cancelled + has.Requeued + has.Purged; sum != has.Enqueued {
		t.w.fail(conservation, "", fmt.Sprintf("queue %q: %d enqueued, %d accounted for", q.name, has.Enqueued, sum))
	}
	var pending, claimed, dead int64
	t.eachJob(q, func(row *store.Job) {
		rows++
		t.w.checked[anAuditedJob]++
		if row.State == store.Dead {
			dead++
			if died, known := q.dead[row.ID]; !known || died.lastError != row.LastError {
				t.w.fail(oneState, row.Schedule, fmt.Sprintf("%s is dead of %q, not of %q", jobOf(row.FireAt), row.LastError, died.lastError))
			}
			return
		}
		j := t.jobs[row.ID]
		if row.State == store.Claimed {
			claimed++
		} else {
			pending++
		}
		if j == nil || j.queue != q || j.claimed != (row.State == store.Claimed) || j.attempts != row.Attempts ||
			j.claimed && j.deadline != row.Deadline || !j.has(row) {
			t.w.fail(oneState, row.Schedule, jobOf(row.FireAt)+" is not as it was written")
		}
	})
	if pending != q.row.Pending || claimed != q.row.Claimed || dead != q.row.Dead {
		t.w.fail(oneState, "", fmt.Sprintf("queue %q keeps %d pending, %d claimed and %d dead jobs, there should be %d, %d and %d",
			q.name, pending, claimed, dead, q.row.Pending, q.row.Claimed, q.row.Dead))
	}
	return rows
}
