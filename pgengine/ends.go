package pgengine

import (
	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

// ends is what the ends of jobs come to: jobs that go or change, counters,
// breakers, and the history. It judges as the calls come in, and writes once.
type ends struct {
	*step
	ids    map[store.ScheduleID]*scheduleRow // those that are told of ends
	names  map[string]bool                   // schedules that are there, of those whose jobs end
	before *totals

	gone   []int64 // jobs
	jobs   endedJobs
	counts tallies
	runs   []store.Run
	skips  []store.SkipRange
}

// scheduleRow is a locked schedule, without what no judgement needs.
type scheduleRow struct {
	store.Schedule
	changed bool // by an end
}

func (t *step) ends() *ends {
	return &ends{
		step: t, ids: make(map[store.ScheduleID]*scheduleRow), names: make(map[string]bool),
		before: new(totals), counts: make(tallies),
	}
}

// endedJobs are the columns of jobs that stay.
type endedJobs struct {
	id, runAt, since []int64
	state            []int16
	lastError        []string
}

const rowColumns = `s.id, s.rev, s.name, s.cursor, s.due_at, s.paused, s.breaker, s.failures`

func scanRow(row pgx.CollectableRow) (*scheduleRow, error) {
	s := new(scheduleRow)
	return s, row.Scan(&s.ID, &s.Rev, &s.Name, &s.Cursor, &s.DueAt, &s.Paused, &s.Breaker, &s.Failures)
}

// endColumns are the columns of a job j, in the order of scanEnd.
const endColumns = `j.id, j.queue, j.schedule, j.schedule_id, j.fire_at, j.origin, j.visibility_ms, j.base_backoff_ms, j.max_attempts,
  j.enqueued_at, j.run_at, j.expires_at, j.state, j.attempts, j.deadline, j.since, j.key`

// scanEnd reads what the end of a job has to know of it.
func scanEnd(row pgx.CollectableRow) (*store.Job, error) {
	j := new(store.Job)
	return j, row.Scan(
		&j.ID, &j.Queue, &j.Schedule, &j.ScheduleID, &j.FireAt, &j.Origin,
		&j.Stamps.VisibilityMS, &j.Stamps.BaseBackoffMS, &j.Stamps.MaxAttempts,
		&j.EnqueuedAt, &j.RunAt, &j.ExpiresAt, &j.State, &j.Attempts, &j.Deadline, &j.Since, &j.Key)
}

// breakers are the schedules s whose breakers the ends of the jobs $1 are told to.
const breakers = `tickonce.schedule s where s.breaker > 0 and s.id in (
  select schedule_id from tickonce.job where id = any($1::bigint[]) and schedule <> '' and origin = 0)`

// lockEnded locks the schedules whose breakers the ends of the jobs may change,
// lockJobs the jobs, and readNames finds the schedules of their names.
var lockEnded, lockJobs, readNames = sql(`
select ` + rowColumns + ` from ` + breakers + ` order by s.id for no key update`), sql(`
select ` + endColumns + ` from tickonce.job j where j.id = any($1::bigint[]) order by j.id for update`), sql(`
select s.name from tickonce.schedule s where s.name in (select schedule from tickonce.job where id = any($1::bigint[]))`)

func (e *ends) queueRows(q *pgx.QueuedQuery) {
	each(q, func(row pgx.CollectableRow) error {
		s, err := scanRow(row)
		e.ids[s.ID] = s
		return err
	})
}

func (e *ends) queueNames(q *pgx.QueuedQuery) {
	each(q, func(row pgx.CollectableRow) error {
		var name string
		err := row.Scan(&name)
		e.names[name] = true
		return err
	})
}

// ran records the end of the run that the latest claim of the job was (X11).
func (e *ends) ran(j *store.Job, ended store.Execution, to store.State, lastError string) {
	if j.Counts() && e.names[j.Schedule] {
		e.runs = append(e.runs, j.Ends(ended, to, lastError, e.now))
	}
}

// lost records a lost run if the job's claim has lapsed.
func (e *ends) lost(j *store.Job, to store.State, lastError string) {
	if j.State == store.Claimed {
		e.ran(j, store.Lost, to, lastError)
	}
}

// told tells the schedule of the job how it ended, and answers, where that
// opened its breaker, the failures in a row (X4).
func (e *ends) told(j *store.Job, failed bool) uint8 {
	s := e.ids[j.ScheduleID]
	if s == nil || !j.Counts() {
		return 0
	}
	changed, tripped := s.Ended(failed)
	if changed {
		s.Rev++
		s.changed = true
	}
	if !tripped {
		return 0
	}
	return s.Failures
}

// leaves takes the job, in the state it is in, out of its queue's counters.
func (e *ends) leaves(j *store.Job) *store.Queue {
	q := e.counts.of(j.Queue)
	switch j.State {
	case store.Pending:
		q.Pending--
	case store.Claimed:
		q.Claimed--
	case store.Dead:
		q.Dead--
	}
	return q
}

// settle ends the claim of the job, which it holds, and answers as told does.
func (e *ends) settle(j *store.Job, s *store.Settle) (tripped uint8) {
	e.ran(j, s.Execution(), s.To, s.Error)
	switch s.To {
	case store.Done:
		e.told(j, false)
		e.leaves(j).Done++
		e.gone = append(e.gone, int64(j.ID))
		j.State = store.Done
	case store.Pending:
		q := e.leaves(j)
		q.Pending++
		q.Retried++
		j.State, j.Since, j.RunAt, j.LastError = store.Pending, store.None, e.now.Add(s.DelayMS), s.Error
		e.stays(j)
	case store.Dead:
		e.bury(j, s.Error)
		tripped = e.told(j, true)
	}
	return tripped
}

func (e *ends) bury(j *store.Job, lastError string) {
	q := e.leaves(j)
	q.Dead++
	q.Died++
	j.State, j.LastError, j.Since = store.Dead, lastError, e.now
	e.stays(j)
}

func (e *ends) stays(j *store.Job) {
	e.jobs.id = append(e.jobs.id, int64(j.ID))
	e.jobs.state = append(e.jobs.state, int16(j.State))
	e.jobs.runAt = append(e.jobs.runAt, int64(j.RunAt))
	e.jobs.since = append(e.jobs.since, int64(j.Since))
	e.jobs.lastError = append(e.jobs.lastError, j.LastError)
}

var deleteJobs, updateJobs, updateEnded = sql(`
delete from tickonce.job where id = any($1::bigint[])`), sql(`
update tickonce.job j set state = v.state, run_at = v.run_at, since = v.since, last_error = v.last_error
from unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::text[]) v(id, state, run_at, since, last_error)
where j.id = v.id`), sql(`
update tickonce.schedule s set rev = v.rev, due_at = v.due_at, paused = v.paused, failures = v.failures
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::smallint[]) v(id, rev, due_at, paused, failures)
where s.id = v.id`)

// writeJobs writes what became of the jobs.
func (e *ends) writeJobs(b *pgx.Batch) {
	if len(e.gone) > 0 {
		b.Queue(e.texts[deleteJobs], e.gone)
	}
	if j := &e.jobs; len(j.id) > 0 {
		b.Queue(e.texts[updateJobs], j.id, j.state, j.runAt, j.since, j.lastError)
	}
}

// writeRows writes the schedules that were told of ends, but for those that are
// written anyway.
func (e *ends) writeRows(b *pgx.Batch, written func(*scheduleRow) bool) {
	var id, rev, dueAt []int64
	var paused, failures []int16
	for _, s := range e.ids {
		if s.changed && !written(s) {
			id, rev, dueAt = append(id, int64(s.ID)), append(rev, int64(s.Rev)), append(dueAt, int64(s.DueAt))
			paused, failures = append(paused, int16(s.Paused)), append(failures, int16(s.Failures))
		}
	}
	if len(id) > 0 {
		b.Queue(e.texts[updateEnded], id, rev, dueAt, paused, failures)
	}
}

func no(*scheduleRow) bool { return false }
