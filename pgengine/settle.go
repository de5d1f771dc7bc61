package pgengine

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

// Settle implements [store.Store].
func (s *Store) Settle(ctx context.Context, settles []store.Settle, out []bool) (now store.Instant, err error) {
	err = s.step(ctx, func(t *step) error {
		now = t.now
		ids := make([]int64, len(settles))
		for i := range settles {
			ids[i] = int64(settles[i].Job)
		}
		e := t.ends()
		jobs := make(map[store.JobID]*store.Job, len(ids))
		var b pgx.Batch
		e.queueRows(b.Queue(t.texts[lockEnded], ids))
		t.lockJobs(&b, ids, jobs)
		e.queueNames(b.Queue(t.texts[readNames], ids))
		e.before = t.totals(&b)
		if err := t.send(&b); err != nil {
			return err
		}
		for i := range settles {
			j := jobs[settles[i].Job]
			settles[i].Tripped = 0
			if out[i] = j != nil && j.Holds(settles[i].Attempt, now); out[i] {
				settles[i].Tripped = e.settle(j, &settles[i])
			}
		}
		b = pgx.Batch{}
		e.writeRows(&b, no)
		e.writeJobs(&b)
		t.add(&b, e.counts)
		t.record(&b, e.before, e.runs, nil)
		return t.send(&b)
	})
	return now, err
}

// lockJobs locks jobs.
func (t *step) lockJobs(b *pgx.Batch, ids []int64, jobs map[store.JobID]*store.Job) {
	each(b.Queue(t.texts[lockJobs], ids), func(row pgx.CollectableRow) error {
		j, err := scanEnd(row)
		jobs[j.ID] = j
		return err
	})
}

// A job that is extended twice ends up with the deadline of the second.
var extend = sql(`
with clock as materialized (select tickonce.instant($1) as now),
held as materialized (
  select j.id, j.attempts from tickonce.job j, clock
  where j.id = any($2::bigint[]) and j.state = 2 and j.deadline >= now order by j.id for update of j
),
v as (
  select v.ix, v.id, tickonce.later(now, v.for_ms) as deadline
  from clock, unnest($2::bigint[], $3::integer[], $4::bigint[]) with ordinality v(id, attempt, for_ms, ix)
  join held on held.id = v.id and held.attempts = v.attempt
),
written as (
  update tickonce.job j set deadline = l.deadline
  from (select distinct on (id) id, deadline from v order by id, ix desc) l where j.id = l.id
)
select now, v.ix, v.deadline from clock left join v on true`)

// Extend implements [store.Store].
func (s *Store) Extend(ctx context.Context, extends []store.Extend, out []store.Instant) (now store.Instant, err error) {
	given, err := s.reading(ctx)
	if err != nil {
		return 0, err
	}
	ids, attempts, forMS := make([]int64, len(extends)), make([]int32, len(extends)), make([]int64, len(extends))
	for i, e := range extends {
		ids[i], attempts[i], forMS[i] = int64(e.Job), e.Attempt, e.ForMS
		out[i] = store.None
	}
	err = s.one(ctx, extend, []any{given, ids, attempts, forMS}, func(row pgx.CollectableRow) error {
		var ix *int
		var deadline *store.Instant
		err := row.Scan(&now, &ix, &deadline)
		if ix != nil {
			out[*ix-1] = *deadline
		}
		return err
	})
	return now, err
}
