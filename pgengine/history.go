package pgengine

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

// pastOf is what is known of the history of the name $1 beside its entries, of
// one kind: 1 are runs, 2 are skips.
func pastOf(kind string) string {
	return `(select coalesce(min(since), -9007199254740991) as since, coalesce(min(earlier), -9007199254740991) as earlier,
  array(select what from tickonce.past_total where name = $1 and kind = ` + kind + ` order by what) as what,
  array(select n from tickonce.past_total where name = $1 and kind = ` + kind + ` order by what) as n
  from tickonce.past where name = $1 and kind = ` + kind + `) past`
}

// Without an entry there is one row all the same, with the id 0.
var readRuns, readSkips = sql(`
select past.since, past.earlier, past.what, past.n,
  coalesce(r.id, 0), coalesce(r.schedule, ''), coalesce(r.schedule_id, 0), coalesce(r.job, 0), coalesce(r.fire_at, 0),
  coalesce(r.fired_at, 0), coalesce(r.started_at, 0), coalesce(r.ended_at, 0), coalesce(r.attempt, 0), coalesce(r.ended, 0::smallint),
  coalesce(r.became, 0::smallint), coalesce(r.error, '')
from ` + pastOf("1") + ` left join (
  select * from tickonce.run where schedule = $1 and ($2 = 0::bigint or id < $2) order by id desc limit $3) r on true
order by r.id desc`), sql(`
select past.since, past.earlier, past.what, past.n,
  coalesce(r.id, 0), coalesce(r.schedule, ''), coalesce(r.schedule_id, 0), coalesce(r.reason, 0::smallint), coalesce(r.every_ms, 0),
  coalesce(r.first, 0), coalesce(r.last, 0), coalesce(r.count, 0), coalesce(r.from_at, 0), coalesce(r.until_at, 0)
from ` + pastOf("2") + ` left join (
  select * from tickonce.skip where schedule = $1 and ($2 = 0::bigint or id < $2) order by id desc limit $3) r on true
order by r.id desc`)

// Runs implements [store.Store].
func (s *Store) Runs(ctx context.Context, p store.Page, dst []store.Run) (store.History, error) {
	return s.history(ctx, readRuns, p, len(dst), func(i int) (*store.EntryID, []any) {
		r := new(store.Run)
		if i < len(dst) {
			r = &dst[i]
		}
		return &r.ID, []any{
			&r.ID, &r.Schedule, &r.ScheduleID, &r.Job, &r.FireAt, &r.FiredAt, &r.StartedAt, &r.EndedAt,
			&r.Attempt, &r.Ended, &r.To, &r.Error,
		}
	})
}

// Skips implements [store.Store].
func (s *Store) Skips(ctx context.Context, p store.Page, dst []store.SkipRange) (store.History, error) {
	return s.history(ctx, readSkips, p, len(dst), func(i int) (*store.EntryID, []any) {
		r := new(store.SkipRange)
		if i < len(dst) {
			r = &dst[i]
		}
		return &r.ID, []any{
			&r.ID, &r.Schedule, &r.ScheduleID, &r.Reason, &r.EveryMS, &r.First, &r.Last, &r.Count, &r.From, &r.Until,
		}
	})
}

// history reads a page; into tells where the entry i goes.
func (s *Store) history(
	ctx context.Context, q statement, p store.Page, most int, into func(i int) (id *store.EntryID, columns []any),
) (h store.History, err error) {
	h.Now, err = s.read(ctx, q, []any{p.Schedule, int64(p.Before), most}, func(row pgx.CollectableRow) error {
		var what []int16
		var n []int64
		id, columns := into(h.N)
		err := row.Scan(append([]any{&h.Since, &h.Earlier, &what, &n}, columns...)...)
		for i, w := range what {
			h.Totals[w] = n[i]
		}
		if *id != 0 {
			h.N++
		}
		return err
	})
	if err != nil {
		return store.History{}, err
	}
	return h, nil
}

// totals are what the summands of total_tally come to.
type totals struct {
	schedules, runs, skips int64
}

var readTotals, addTotals, foldTotals = sql(`
select coalesce(sum(schedules), 0)::bigint, coalesce(sum(runs), 0)::bigint, coalesce(sum(skips), 0)::bigint from tickonce.total_tally`), sql(`
insert into tickonce.total_tally (schedules) values ($1)`), sql(`
with old as (
  delete from tickonce.total_tally t using (select id from tickonce.total_tally order by id for update skip locked) o
  where t.id = o.id returning t.*
)
insert into tickonce.total_tally (schedules, runs, skips)
select sum(schedules), sum(runs), sum(skips) from old having count(*) > 0`)

func (t *step) totals(b *pgx.Batch) *totals {
	n := new(totals)
	b.Queue(t.texts[readTotals]).QueryRow(func(row pgx.Row) error { return row.Scan(&n.schedules, &n.runs, &n.skips) })
	return n
}

// addSkips is for at most one range of each name: the newest of the name takes
// it in if it can, which is SkipRange.TakeIn of package store.
var addRuns, addSkips = sql(`
with v as (
  select * from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
      $8::integer[], $9::smallint[], $10::smallint[], $11::text[])
    with ordinality v(schedule, schedule_id, job, fire_at, fired_at, started_at, ended_at, attempt, ended, became, error, ix)
),
added as (
  insert into tickonce.run (schedule, schedule_id, job, fire_at, fired_at, started_at, ended_at, attempt, ended, became, error)
  select schedule, schedule_id, job, fire_at, fired_at, started_at, ended_at, attempt, ended, became, error from v order by ix
  returning weight
),
total as (insert into tickonce.total_tally (runs) select sum(weight) from added)
insert into tickonce.past_total (name, kind, what, n)
select schedule, 1, ended, count(*) from v group by schedule, ended order by schedule, ended
on conflict (name, kind, what) do update set n = past_total.n + excluded.n`), sql(`
with v as (
  select * from unnest($1::text[], $2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
    with ordinality v(schedule, schedule_id, reason, every_ms, first, last, count, at, ix)
),
taken as (
  update tickonce.skip r set last = v.last, count = r.count + v.count, until_at = v.at from v
  where r.id = (select id from tickonce.skip n where n.schedule = v.schedule order by id desc limit 1)
    and r.schedule_id = v.schedule_id and r.reason = v.reason and r.every_ms = v.every_ms and r.last + r.every_ms = v.first
  returning r.schedule
),
added as (
  insert into tickonce.skip (schedule, schedule_id, reason, every_ms, first, last, count, from_at, until_at)
  select schedule, schedule_id, reason, every_ms, first, last, count, at, at from v
  where schedule not in (select schedule from taken) order by ix
  returning id
),
total as (insert into tickonce.total_tally (skips) select count(*) from added having count(*) > 0)
insert into tickonce.past_total (name, kind, what, n)
select schedule, 2, reason, count from v order by schedule
on conflict (name, kind, what) do update set n = past_total.n + excluded.n`)

// keep chooses the entries that leave the history where others come, of which
// added has the names, their number and weight: leaving are the oldest of these
// names, and of all. That is what leaves if they come one by one, unless one of
// several pushes out an older one of its name that weighs more than one.
//
// Who drops the same at once does not wait: it leaves that to the other, and
// takes the next oldest. A limit that was lowered is reached bit by bit.
func keep(of *strings.Replacer, most, all string) string {
	return strings.NewReplacer("MOST", most, "ALL", all).Replace(of.Replace(`
kept as materialized (select coalesce(sum(TOTAL), 0)::bigint as n from tickonce.total_tally),
pushed as materialized (
  select e.id, WEIGHT as weight from tickonce.ENTRY e where e.id = any(array(
    select o.id from added a, lateral (
      select id from tickonce.ENTRY where schedule = a.name order by id desc offset greatest(0, MOST - a.n)) o
  )) order by e.id for update skip locked
),
excess as materialized (
  select kept.n + (select sum(weight) from added) - coalesce((select sum(weight) from pushed), 0) - ALL as n
  from kept where exists (select from added)
),
oldest as materialized (
  select e.id, WEIGHT as weight from tickonce.ENTRY e where e.id not in (select id from pushed)
  order by e.id limit (select least(10000, greatest(0, max(n))) from excess) for update skip locked
),
leaving as materialized (
  select id from pushed
  union all
  select id from (select id, sum(weight) over (order by id) - weight as before from oldest) o, excess where before < n
),`))
}

// What is dropped is noted: from when on the present incarnation is known
// wholly, or up to when there were earlier ones.
const (
	trimName = `
with over as (
  select e.id from unnest($1::text[]) n(name), lateral (
    select id from tickonce.ENTRY where schedule = n.name order by id desc offset $2) e
),`
	trimAll = `
with excess as (select coalesce(sum(TOTAL), 0)::bigint - $1 as n from tickonce.total_tally),
oldest as (
  select id, WEIGHT as weight from tickonce.ENTRY e order by id limit (select least(10000, greatest(n, 0)) from excess) for update skip locked
),
over as (
  select id from (select id, sum(weight) over (order by id) - weight as before from oldest) o, excess where before < excess.n
),`
	dropped = `
gone as (
  delete from tickonce.ENTRY e where e.id = any(array(select id from over))
  returning e.schedule, e.schedule_id, e.LAST as last, WEIGHT as weight
),
noted as (
  insert into tickonce.past (name, kind, since, earlier)
  select g.schedule, KIND,
    coalesce(max(tickonce.later(g.last, 1)) filter (where g.schedule_id = s.id), -9007199254740991),
    coalesce(max(tickonce.later(g.last, 1)) filter (where g.schedule_id <> s.id), -9007199254740991)
  from gone g join tickonce.schedule s on s.name = g.schedule where g.last < 9223372036854775807
  group by g.schedule order by g.schedule
  on conflict (name, kind) do update
  set since = greatest(past.since, excluded.since), earlier = greatest(past.earlier, excluded.earlier)
)`
	droppedTotal = `
insert into tickonce.total_tally (TOTAL) select -sum(weight) from gone having count(*) > 0`
)

var (
	ofRuns  = strings.NewReplacer("ENTRY", "run", "TOTAL", "runs", "WEIGHT", "e.weight", "LAST", "fire_at", "KIND", "1")
	ofSkips = strings.NewReplacer("ENTRY", "skip", "TOTAL", "skips", "WEIGHT", "1", "LAST", "last", "KIND", "2")

	trimRunsOfName, trimSkipsOfName = sql(ofRuns.Replace(trimName + dropped + droppedTotal)), sql(ofSkips.Replace(trimName + dropped + droppedTotal))
	trimRuns, trimSkips             = sql(ofRuns.Replace(trimAll + dropped + droppedTotal)), sql(ofSkips.Replace(trimAll + dropped + droppedTotal))
)

// record writes what happened to the history. While its bounds are far, all at
// once; else entry by entry, so that each drops what it alone drops.
func (t *step) record(b *pgx.Batch, before *totals, runs []store.Run, skips []store.SkipRange) {
	var weight int64
	for i := range runs {
		weight += runs[i].Weight()
	}
	if at := len(runs); at > 0 {
		if before.runs+weight > t.limits.History {
			at = 1
		}
		for chunk := range slices.Chunk(runs, at) {
			t.addRuns(b, chunk)
			if at == 1 {
				b.Queue(t.texts[trimRuns], t.limits.History)
			}
		}
	}
	tight := before.skips+int64(len(skips)) > t.limits.History
	for more := skips; len(more) > 0; {
		n, names := 0, make(map[string]bool)
		for n < len(more) && !names[more[n].Schedule] {
			names[more[n].Schedule] = true
			n++
		}
		if tight {
			n = 1
		}
		t.addSkips(b, more[:n])
		if tight {
			b.Queue(t.texts[trimSkips], t.limits.History)
		}
		more = more[n:]
	}
}

func (t *step) addRuns(b *pgx.Batch, runs []store.Run) {
	var (
		schedule, text                                       []string
		scheduleID, job, fireAt, firedAt, startedAt, endedAt []int64
		attempt                                              []int32
		ended, became                                        []int16
	)
	for i := range runs {
		r := &runs[i]
		schedule, text = append(schedule, r.Schedule), append(text, r.Error)
		scheduleID, job = append(scheduleID, int64(r.ScheduleID)), append(job, int64(r.Job))
		fireAt, firedAt = append(fireAt, int64(r.FireAt)), append(firedAt, int64(r.FiredAt))
		startedAt, endedAt = append(startedAt, int64(r.StartedAt)), append(endedAt, int64(r.EndedAt))
		attempt = append(attempt, r.Attempt)
		ended, became = append(ended, int16(r.Ended)), append(became, int16(r.To))
	}
	b.Queue(t.texts[addRuns], schedule, scheduleID, job, fireAt, firedAt, startedAt, endedAt, attempt, ended, became, text)
	b.Queue(t.texts[trimRunsOfName], distinct(schedule), t.limits.Runs)
}

func (t *step) addSkips(b *pgx.Batch, skips []store.SkipRange) {
	var (
		schedule                                    []string
		scheduleID, everyMS, first, last, count, at []int64
		reason                                      []int16
	)
	for i := range skips {
		r := &skips[i]
		schedule, reason = append(schedule, r.Schedule), append(reason, int16(r.Reason))
		scheduleID, everyMS = append(scheduleID, int64(r.ScheduleID)), append(everyMS, r.EveryMS)
		first, last = append(first, int64(r.First)), append(last, int64(r.Last))
		count, at = append(count, r.Count), append(at, int64(r.From))
	}
	b.Queue(t.texts[addSkips], schedule, scheduleID, reason, everyMS, first, last, count, at)
	b.Queue(t.texts[trimSkipsOfName], schedule, t.limits.Skips)
}

// distinct are the names in order, each once.
func distinct(names []string) []string {
	names = slices.Sorted(slices.Values(names))
	return slices.Compact(names)
}

var forget, begin = sql(`
with runs as (delete from tickonce.run where schedule = any($1::text[]) returning weight),
skips as (delete from tickonce.skip where schedule = any($1::text[]) returning id),
past as (delete from tickonce.past where name = any($1::text[])),
past_total as (delete from tickonce.past_total where name = any($1::text[])),
n as (select (select coalesce(sum(weight), 0) from runs) as runs, (select count(*) from skips) as skips)
insert into tickonce.total_tally (runs, skips) select -runs, -skips from n where runs > 0 or skips > 0`), sql(`
insert into tickonce.past (name, kind, since, earlier)
select name, kind, -9007199254740991, cursor
from unnest($1::text[], $2::bigint[]) v(name, cursor), (values (1), (2)) k(kind) order by name, kind
on conflict (name, kind) do update set since = excluded.since, earlier = greatest(past.earlier, excluded.earlier)`)
