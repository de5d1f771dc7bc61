package pgengine

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

// jobColumns are the columns of a job j, in the order of scanJob.
const jobColumns = `j.id, j.queue, j.payload, j.key, j.schedule, j.schedule_id, j.fire_at, j.origin,
  j.visibility_ms, j.base_backoff_ms, j.max_attempts, j.timeout_ms, j.enqueued_at, j.run_at, j.expires_at,
  j.priority, j.state, j.alone, j.attempts, j.worker, j.deadline, j.last_error, j.since`

func scanJob(row pgx.CollectableRow, j *store.Job) error {
	*j = store.Job{}
	return row.Scan(jobTargets(j)...)
}

// jobWidth is how many columns jobColumns are.
const jobWidth = 23

func jobTargets(j *store.Job) []any {
	return []any{
		&j.ID, &j.Queue, &j.Payload, &j.Key, &j.Schedule, &j.ScheduleID, &j.FireAt, &j.Origin,
		&j.Stamps.VisibilityMS, &j.Stamps.BaseBackoffMS, &j.Stamps.MaxAttempts, &j.TimeoutMS, &j.EnqueuedAt, &j.RunAt, &j.ExpiresAt,
		&j.Priority, &j.State, &j.Alone, &j.Attempts, &j.Worker, &j.Deadline, &j.LastError, &j.Since,
	}
}

// few are so many pending jobs of a queue that to list some of them is to sort
// all of them. Where there are more, and so enough of them among the others, the
// table is gone through in the order of ids.
const few = "10000"

// The operators without effect leave the planner one index for each of the parts:
// it would take any other that seems as good, and read all of it.
var readJobs = sql(`
with queue as materialized (select coalesce(sum(pending), 0) < ` + few + ` as few from tickonce.queue_tally where queue = $1)
select ` + jobColumns + ` from (
  (select id from tickonce.job j where (select few from queue) and $2 in (0, 1) and j.queue = $1 and j.state = 1 and j.id + 0 >= $3 order by j.id + 0 limit $4)
  union all
  (select id from tickonce.job j where not (select few from queue) and $2 in (0, 1) and j.queue || '' = $1 and j.state + 0 = 1 and j.id >= $3 order by j.id limit $4)
  union all
  (select id from tickonce.job where queue = $1 and state = 2 and $2 in (0, 2) and id + 0 >= $3 order by id + 0 limit $4)
  union all
  (select id from tickonce.job where queue = $1 and state = 3 and $2 in (0, 3) and id >= $3 order by id limit $4)
  order by id limit $4) found join tickonce.job j using (id)
order by j.id`)

// Jobs implements [store.Store].
func (s *Store) Jobs(ctx context.Context, f store.Filter, dst []store.Job) (n int, now store.Instant, err error) {
	now, err = s.read(ctx, readJobs, []any{f.Queue, int16(f.State), int64(f.From), len(dst)}, func(row pgx.CollectableRow) error {
		n++
		return scanJob(row, &dst[n-1])
	})
	return n, now, err
}

// jobRows are the columns of jobs to be inserted, which are pending.
type jobRows struct {
	queue                      []string
	payload                    [][]byte
	key, schedule              []string
	scheduleID, fireAt, origin []int64
	visibilityMS               []int64
	baseBackoffMS, maxAttempts []int32
	timeoutMS, enqueuedAt      []int64
	runAt, expiresAt           []int64
	priority                   []int16
	alone                      []bool
}

func (c *jobRows) add(j *store.Job) {
	c.queue = append(c.queue, j.Queue)
	c.payload = append(c.payload, orNil(j.Payload))
	c.key = append(c.key, j.Key)
	c.schedule = append(c.schedule, j.Schedule)
	c.scheduleID = append(c.scheduleID, int64(j.ScheduleID))
	c.fireAt = append(c.fireAt, int64(j.FireAt))
	c.origin = append(c.origin, int64(j.Origin))
	c.visibilityMS = append(c.visibilityMS, j.Stamps.VisibilityMS)
	c.baseBackoffMS = append(c.baseBackoffMS, j.Stamps.BaseBackoffMS)
	c.maxAttempts = append(c.maxAttempts, j.Stamps.MaxAttempts)
	c.timeoutMS = append(c.timeoutMS, j.TimeoutMS)
	c.enqueuedAt = append(c.enqueuedAt, int64(j.EnqueuedAt))
	c.runAt = append(c.runAt, int64(j.RunAt))
	c.expiresAt = append(c.expiresAt, int64(j.ExpiresAt))
	c.priority = append(c.priority, j.Priority)
	c.alone = append(c.alone, j.Alone)
}

func (c *jobRows) args() []any {
	return []any{
		c.queue, c.payload, c.key, c.schedule, c.scheduleID, c.fireAt, c.origin, c.visibilityMS, c.baseBackoffMS, c.maxAttempts,
		c.timeoutMS, c.enqueuedAt, c.runAt, c.expiresAt, c.priority, c.alone,
	}
}

// The ids of new rows rise in their order, and are answered in it.
var insertJobs = sql(`
insert into tickonce.job (queue, payload, key, schedule, schedule_id, fire_at, origin, visibility_ms, base_backoff_ms,
  max_attempts, timeout_ms, enqueued_at, run_at, expires_at, priority, alone)
select queue, payload, key, schedule, schedule_id, fire_at, origin, visibility_ms, base_backoff_ms,
  max_attempts, timeout_ms, enqueued_at, run_at, expires_at, priority, alone
from unnest($1::text[], $2::bytea[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::integer[],
    $10::integer[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::smallint[], $16::boolean[])
  with ordinality v(queue, payload, key, schedule, schedule_id, fire_at, origin, visibility_ms, base_backoff_ms,
    max_attempts, timeout_ms, enqueued_at, run_at, expires_at, priority, alone, ix)
order by ix
returning id`)
