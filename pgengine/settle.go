package pgengine

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

// settleAll settles in one statement. It does nothing, and says so, where an end
// may change a breaker, or it matters for the history in which order the runs
// come, see keep. Of several elements with one claim the first ends it.
var settleAll = sql(`
with clock as materialized (select tickonce.instant($1) as now),
v as materialized (
  select * from unnest($2::bigint[], $3::integer[], $4::smallint[], $5::smallint[], $6::bigint[], $7::text[])
    with ordinality v(id, attempt, became, ended, delay_ms, error, ix)
),
locked as materialized (
  select j.id, j.queue, j.schedule, j.schedule_id, j.fire_at, j.origin, j.enqueued_at, j.attempts, j.since,
    v.became, v.ended, v.delay_ms, v.error, v.ix
  from clock, v join tickonce.job j on j.id = v.id and j.attempts = v.attempt
  where j.state = 2 and j.deadline >= now order by j.id for update of j
),
first as materialized (select distinct on (id) * from locked order by id, ix),
ran as materialized (
  select f.*, 1 + octet_length(f.error) / 256 as weight from first f join tickonce.schedule s on s.name = f.schedule
  where f.schedule <> '' and f.origin = 0
),
added as materialized (select schedule as name, count(*) as n, sum(weight) as weight from ran group by schedule),` +
	keep(ofRuns, "$8", "$9") + `
hard as materialized (
  select exists (
      select from first f join tickonce.schedule s on s.id = f.schedule_id
      where f.schedule <> '' and f.origin = 0 and s.breaker > 0 and (f.became = 3 or s.failures > 0))
    or exists (select from added where n > $8)
    or coalesce((select sum(weight) > $9 or sum(n) > 1 and (select n from kept) + sum(weight) > $9
      and exists (select from pushed where weight > 1) from added), false) as hard
),
won as materialized (select * from first where not (select hard from hard)),
settled as (delete from tickonce.job j using won where j.id = won.id and won.became = 4),
stays as (
  update tickonce.job j set state = won.became, last_error = won.error,
    run_at = case when won.became = 1 then tickonce.later(now, won.delay_ms) else j.run_at end,
    since = case when won.became = 1 then 9223372036854775807 else now end
  from won, clock where j.id = won.id and won.became <> 4
),
tally as (
  insert into tickonce.queue_tally (queue, claimed, pending, retried, dead, died, done)
  select queue, -count(*), count(*) filter (where became = 1), count(*) filter (where became = 1),
    count(*) filter (where became = 3), count(*) filter (where became = 3), count(*) filter (where became = 4)
  from won group by queue
),
runs as (
  insert into tickonce.run (schedule, schedule_id, job, fire_at, fired_at, started_at, ended_at, attempt, ended, became, error)
  select schedule, schedule_id, id, fire_at, enqueued_at, since, now, attempts, ended, became, error from ran, clock
  where not (select hard from hard) order by ix
  returning weight
),
over as materialized (select id from leaving where not (select hard from hard)),` + ofRuns.Replace(dropped) + `,
total as (
  insert into tickonce.total_tally (runs)
  select n from (select coalesce((select sum(weight) from runs), 0) - coalesce((select sum(weight) from gone), 0) as n) t where n <> 0
),
totals as (
  insert into tickonce.past_total (name, kind, what, n)
  select schedule, 1, ended, count(*) from ran where not (select hard from hard) group by schedule, ended order by schedule, ended
  on conflict (name, kind, what) do update set n = past_total.n + excluded.n
)
select now, (select hard from hard), array(select ix from won), array(select distinct queue from won) from clock`)

// Settle implements [store.Store].
func (s *Store) Settle(ctx context.Context, settles []store.Settle, out []bool) (now store.Instant, err error) {
	given, err := s.reading(ctx)
	if err != nil {
		return 0, err
	}
	n := len(settles)
	id, attempt, became, ended, delay, text := make([]int64, n), make([]int32, n), make([]int16, n), make([]int16, n), make([]int64, n), make([]string, n)
	for i := range settles {
		e := &settles[i]
		id[i], attempt[i], became[i], ended[i], delay[i], text[i] = int64(e.Job), e.Attempt, int16(e.To), int16(e.Execution()), e.DelayMS, e.Error
		e.Tripped, out[i] = 0, false
	}
	var hard bool
	var won []int64
	var queues []string
	err = s.one(ctx, settleAll, []any{given, id, attempt, became, ended, delay, text, s.limits.Runs, s.limits.History}, func(row pgx.CollectableRow) error {
		return row.Scan(&now, &hard, &won, &queues)
	})
	for _, ix := range won {
		out[ix-1] = true
	}
	if err != nil || !hard {
		s.fold(ctx, queues)
	} else {
		err = s.step(ctx, given, func(t *step) error {
			now = t.now
			err := t.ends().settleEach(id, settles, out)
			queues = t.queues
			return err
		})
	}
	if err == nil && retries(settles) {
		err = s.wrote(ctx, false, queues)
	}
	return now, err
}

// retries reports whether some of the jobs go back to their queues.
func retries(settles []store.Settle) bool {
	return slices.ContainsFunc(settles, func(s store.Settle) bool { return s.To == store.Pending })
}

// settleEach settles claims one by one.
func (e *ends) settleEach(ids []int64, settles []store.Settle, out []bool) error {
	jobs := make(map[store.JobID]*store.Job, len(ids))
	var b pgx.Batch
	e.queueRows(b.Queue(e.texts[lockEnded], ids))
	e.lockJobs(&b, ids, jobs)
	e.queueNames(b.Queue(e.texts[readNames], ids))
	e.before = e.totals(&b)
	if err := e.send(&b); err != nil {
		return err
	}
	for i := range settles {
		j := jobs[settles[i].Job]
		settles[i].Tripped = 0
		if out[i] = j != nil && j.Holds(settles[i].Attempt, e.now); out[i] {
			settles[i].Tripped = e.settle(j, &settles[i])
		}
	}
	b = pgx.Batch{}
	e.writeRows(&b, no)
	e.writeJobs(&b)
	e.add(&b, e.counts)
	e.record(&b, e.before, e.runs, nil)
	return e.send(&b)
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
v as materialized (
  select v.ix, j.id, tickonce.later(now, v.for_ms) as deadline
  from clock, unnest($2::bigint[], $3::integer[], $4::bigint[]) with ordinality v(id, attempt, for_ms, ix)
  join tickonce.job j on j.id = v.id and j.attempts = v.attempt
  where j.state = 2 and j.deadline >= now order by j.id for update of j
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
