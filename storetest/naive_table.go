package storetest

import (
	"cmp"
	"slices"

	"github.com/tickonce/tickonce/store"
)

func (t *table) clone() table {
	c := *t
	c.schedules = slices.Clone(t.schedules)
	c.jobs = slices.Clone(t.jobs)
	c.queues = slices.Clone(t.queues)
	c.leases = slices.Clone(t.leases)
	c.runs, c.skips = t.runs.clone(), t.skips.clone()
	return c
}

// find answers the first row that matches, in place, or nil.
func find[E any](rows []E, match func(*E) bool) *E {
	for i := range rows {
		if match(&rows[i]) {
			return &rows[i]
		}
	}
	return nil
}

func (t *table) schedule(name string) *store.Schedule {
	return find(t.schedules, func(s *store.Schedule) bool { return s.Name == name })
}

func (t *table) scheduleByID(id store.ScheduleID) *store.Schedule {
	return find(t.schedules, func(s *store.Schedule) bool { return s.ID == id })
}

func (t *table) job(id store.JobID) *store.Job {
	return find(t.jobs, func(j *store.Job) bool { return j.ID == id })
}

// jobByKey answers the live job of the queue with the key (QU12), or nil.
func (t *table) jobByKey(queue, key string) *store.Job {
	return find(t.jobs, func(j *store.Job) bool {
		return key != "" && j.Queue == queue && j.Key == key && j.State != store.Dead
	})
}

func (t *table) queue(name string) *store.Queue {
	return find(t.queues, func(q *store.Queue) bool { return q.Name == name })
}

func (t *table) lease(lock string) *store.Lease {
	return find(t.leases, func(l *store.Lease) bool { return l.Lock == lock })
}

// length is the number of jobs that the queue keeps.
func (t *table) length(queue string) (n int64) {
	for i := range t.jobs {
		if t.jobs[i].Queue == queue {
			n++
		}
	}
	return n
}

// count returns q with all that follows from the jobs it keeps.
func (t *table) count(q store.Queue) store.Queue {
	q.NextClaimAt = store.None
	for i := range t.jobs {
		j := &t.jobs[i]
		if j.Queue != q.Name {
			continue
		}
		switch j.State {
		case store.Pending:
			q.Pending++
		case store.Claimed:
			q.Claimed++
		case store.Dead:
			q.Dead++
		}
		q.NextClaimAt = min(q.NextClaimAt, j.DoomedAt())
		switch {
		case !t.waits(j):
			q.NextClaimAt = min(q.NextClaimAt, j.ReadyAt())
		case j.ReadyAt() < j.DoomedAt():
			q.Waiting++
		}
	}
	return q
}

// counted returns the row with its count of live jobs.
func (t *table) counted(row store.Schedule) store.Schedule {
	row.Live = t.live(row.Name)
	return row
}

// live counts the live jobs of a schedule's name.
func (t *table) live(name string) (n store.Live) {
	for i := range t.jobs {
		switch j := &t.jobs[i]; {
		case j.Schedule != name || !j.Counts():
		case j.State == store.Pending:
			n.Pending++
		case j.State == store.Claimed:
			n.Claimed++
		}
	}
	return n
}

// waits reports whether the job has to wait until it is alone (X9).
func (t *table) waits(j *store.Job) bool {
	return j.Alone && find(t.jobs, func(o *store.Job) bool {
		return o.ID != j.ID && o.Counts() && o.Schedule == j.Schedule && o.State == store.Claimed
	}) != nil
}

func (t *table) addSchedule(row store.Schedule) {
	t.schedules = append(t.schedules, row)
	slices.SortFunc(t.schedules, func(a, b store.Schedule) int { return cmp.Compare(a.Name, b.Name) })
}

// addJob inserts j under a new id. The first job of a queue brings the queue
// into being.
func (t *table) addJob(j store.Job) store.JobID {
	t.lastJob++
	j.ID = t.lastJob
	t.jobs = append(t.jobs, j)
	if t.queue(j.Queue) == nil {
		t.queues = append(t.queues, store.Queue{Name: j.Queue})
		slices.SortFunc(t.queues, func(a, b store.Queue) int { return cmp.Compare(a.Name, b.Name) })
	}
	t.queue(j.Queue).Enqueued++
	return j.ID
}

func (t *table) removeJob(id store.JobID) {
	t.jobs = slices.DeleteFunc(t.jobs, func(j store.Job) bool { return j.ID == id })
}

// fire inserts the job of one boundary, ready at readyAt.
func (t *table) fire(row *store.Schedule, boundary, readyAt, now store.Instant) store.JobID {
	j := store.Job{
		Queue: row.Queue, Payload: row.Payload,
		Schedule: row.Name, ScheduleID: row.ID, FireAt: boundary,
		Stamps: row.Stamps, Priority: row.Priority,
		EnqueuedAt: now, RunAt: readyAt, ExpiresAt: store.None,
		State: store.Pending, Deadline: store.None, Since: store.None,
		Alone: row.Overlap != store.Allow,
	}
	if row.RunOnce {
		j.Stamps.MaxAttempts = 1
	}
	if row.Rare != nil {
		j.TimeoutMS = row.Rare.TimeoutMS
	}
	if row.ExpiresMS != 0 {
		j.ExpiresAt = readyAt.Add(row.ExpiresMS)
	}
	return t.addJob(j)
}

// ended tells the schedule of j how it ended, and answers, where that opened its
// breaker, the failures in a row (X4).
func (t *table) ended(j store.Job, failed bool) uint8 {
	row := t.scheduleByID(j.ScheduleID)
	if row == nil || !j.Counts() {
		return 0
	}
	changed, tripped := row.Ended(failed)
	if changed {
		row.Rev++
	}
	if !tripped {
		return 0
	}
	return row.Failures
}

// settle ends the claim that j is in. It answers as ended does.
func (t *table) settle(j *store.Job, e store.Settle, now store.Instant) (tripped uint8) {
	switch e.To {
	case store.Done:
		t.ended(*j, false)
		t.queue(j.Queue).Done++
		t.removeJob(j.ID)
	case store.Pending:
		t.queue(j.Queue).Retried++
		j.State, j.Since, j.RunAt, j.LastError = store.Pending, store.None, now.Add(e.DelayMS), e.Error
	case store.Dead:
		t.bury(j, e.Error, now)
		tripped = t.ended(*j, true)
	}
	return tripped
}

func (t *table) bury(j *store.Job, lastError string, now store.Instant) {
	t.queue(j.Queue).Died++
	j.State, j.LastError, j.Since = store.Dead, lastError, now
}

func orNil(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
