package pgengine

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

var lockLease = sql(`
select l.owner, l.term, l.ttl_ms, l.expires_at from tickonce.lease l where l.lock = $1 for share`)

// lockMoves locks the rows, but for those that somebody else is writing: they
// are stale.
var lockMoves, readLives = sql(`
select s.id, s.rev, s.name, s.queue, s.overlap
from tickonce.schedule s where s.id = any($1::bigint[]) for no key update skip locked`), sql(`
select s.name, live.pending, live.claimed from tickonce.schedule s, ` + live + ` where s.name = any($1::text[])`)

var writeMoves = sql(`
update tickonce.schedule s set rev = s.rev + 1, cursor = v.cursor, due_at = v.due_at, set_at = v.set_at,
  hold_reason = v.hold_reason, hold_since = v.hold_since, hold_times = v.hold_times,
  paused = case when v.ends then 3 else s.paused end
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::integer[], $8::boolean[])
  v(id, cursor, due_at, set_at, hold_reason, hold_since, hold_times, ends)
where s.id = v.id`)

// The ids of the jobs rise in the order of the fires, and are answered in it.
var insertFires = sql(`
insert into tickonce.job (queue, payload, schedule, schedule_id, fire_at, visibility_ms, base_backoff_ms, max_attempts,
  timeout_ms, enqueued_at, run_at, expires_at, priority, alone)
select s.queue, s.payload, s.name, s.id, f.boundary, s.visibility_ms, s.base_backoff_ms,
  case when s.run_once then 1 else s.max_attempts end, coalesce(s.timeout_ms, 0), $3, $4,
  case when s.expires_ms = 0 then 9223372036854775807 else tickonce.later($4, s.expires_ms) end, s.priority, s.overlap <> 0
from unnest($1::bigint[], $2::bigint[]) with ordinality f(id, boundary, ix) join tickonce.schedule s on s.id = f.id
order by f.ix
returning id`)

// advanceAll is a tick in one statement: the lease is judged and kept from being
// taken, the rows whose guard holds are locked unless somebody else is writing
// them, and these move, fire and skip. It does nothing, and says so, where a
// queue may not have room for all, or what is dropped of the history is a range
// that takes in another: there it matters in which order they come, see keep.
//
// Who triggers a schedule by hand counts its live jobs under its lock, and
// raises counted; what the statement has counted is from before it got the lock,
// and good if that did not happen in between.
//
// Its CTEs are never joined with each other: the planner takes them to be short,
// and would go through the one for each row of the other.
var advanceAll = sql(`
with clock as materialized (select tickonce.instant($1) as now),
lead as materialized (
  select l.lock from tickonce.lease l, clock
  where l.lock = $2 and l.owner = $3 and l.term = $4 and ` + leaseLives + ` for share of l
),
v as materialized (
  select * from unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::text[], $11::bigint[], $12::integer[],
      $13::boolean[], $14::integer[], $15::integer[], $16::integer[])
    with ordinality v(id, rev, cursor, due_at, set_at, hold_reason, hold_since, hold_times, ends, pending, claimed, fires, ix)
),
locked as materialized (
  select s.name, s.queue, s.overlap, s.counted, live.counted as counted_before, live.pending as live_pending, live.claimed as live_claimed, v.*
  from v join tickonce.schedule s on s.id = v.id and s.rev = v.rev
  left join lateral (
    select before.counted, count(j.id) filter (where j.state = 1) as pending, count(j.id) filter (where j.state = 2) as claimed
    from tickonce.schedule before left join tickonce.job j on j.schedule = before.name and j.schedule <> '' and j.origin = 0 and j.state < 3
    where s.overlap <> 0 and before.id = v.id group by before.id
  ) live on true
  where exists (select from lead) for no key update of s skip locked
),
held as materialized (
  select distinct on (id) * from locked
  where overlap = 0 or counted = counted_before and live_pending = pending and live_claimed = claimed
  order by id, ix
),
skipped as materialized (
  select h.name as schedule, h.id as schedule_id, k as ix, k > f.at as again, ($21::smallint[])[k] as reason, ($22::bigint[])[k] as every_ms,
    ($23::bigint[])[k] as first, ($24::bigint[])[k] as last, ($25::bigint[])[k] as count
  from held h, lateral (select ($20::integer[])[h.ix] as at, ($26::integer[])[h.ix] as n) f, generate_series(f.at, f.at + f.n - 1) k
  where f.n > 0
),
taken as materialized (
  select r.id, k.ix, k.last, k.count
  from skipped k, lateral (select * from tickonce.skip n where n.schedule = k.schedule order by id desc limit 1) r
  where not k.again and r.schedule_id = k.schedule_id and r.reason = k.reason and r.every_ms = k.every_ms and r.last + r.every_ms = k.first
),
added as materialized (
  select schedule as name, count(*) as n, count(*) as weight from skipped where ix not in (select ix from taken) group by schedule
),` + keep(ofSkips, "$27", "$28") + `
hard as materialized (
  select exists (
    select from (select queue, sum(fires) as n from held group by queue) h
    where h.n > 0 and h.n + (
      select coalesce(sum(t.pending + t.claimed + t.dead), 0) from tickonce.queue_tally t where t.queue = h.queue) > $19
  ) or exists (select from added where n > $27) or coalesce((select sum(n) from added), 0) > $28
    or exists (select from taken join leaving using (id)) as hard
),
moved as (
  update tickonce.schedule s set rev = s.rev + 1, cursor = v.cursor, due_at = v.due_at, set_at = v.set_at,
    hold_reason = v.hold_reason, hold_since = v.hold_since, hold_times = v.hold_times,
    paused = case when v.ends then 3 else s.paused end
  from held v where s.id = v.id and not (select hard from hard)
  returning v.ix, v.fires, s.id, s.name, s.queue, s.payload, s.visibility_ms, s.base_backoff_ms, s.max_attempts, s.run_once, s.timeout_ms,
    s.expires_ms, s.priority, s.overlap
),
fired as (
  insert into tickonce.job (queue, payload, schedule, schedule_id, fire_at, visibility_ms, base_backoff_ms, max_attempts,
    timeout_ms, enqueued_at, run_at, expires_at, priority, alone)
  select m.queue, m.payload, m.name, m.id, ($30::bigint[])[k], m.visibility_ms, m.base_backoff_ms,
    case when m.run_once then 1 else m.max_attempts end, coalesce(m.timeout_ms, 0), now, $29,
    case when m.expires_ms = 0 then 9223372036854775807 else tickonce.later($29, m.expires_ms) end, m.priority, m.overlap <> 0
  from clock, moved m, lateral (select ($17::integer[])[m.ix] as at) f, generate_series(f.at, f.at + m.fires - 1) k
  order by ($18::integer[])[k]
  returning id, queue
),
tally as (insert into tickonce.queue_tally (queue, pending) select queue, count(*) from fired group by queue),
grown as (
  update tickonce.skip r set last = k.last, count = r.count + k.count, until_at = now
  from taken k, clock where r.id = k.id and not (select hard from hard)
),
ranges as (
  insert into tickonce.skip (schedule, schedule_id, reason, every_ms, first, last, count, from_at, until_at)
  select schedule, schedule_id, reason, every_ms, first, last, count, now, now from skipped, clock
  where ix not in (select ix from taken) and not (select hard from hard) order by ix
  returning id
),
over as materialized (select id from leaving where not (select hard from hard)),` + ofSkips.Replace(dropped) + `,
total as (
  insert into tickonce.total_tally (skips)
  select n from (select (select count(*) from ranges) - (select count(*) from gone) as n) t where n <> 0
),
totals as (
  insert into tickonce.past_total (name, kind, what, n)
  select schedule, 2, reason, sum(count) from skipped where not (select hard from hard) group by schedule, reason order by schedule, reason
  on conflict (name, kind, what) do update set n = past_total.n + excluded.n
)
select exists (select from lead), (select hard from hard), array(select ix from moved), array(select id from fired order by id),
  array(select distinct queue from fired)`)

// tick is [Store.Advance] of what can be written. It answers the queues that got
// jobs as well.
func (s *Store) tick(ctx context.Context, t *store.Tick) (held bool, queues []string, err error) {
	given, err := s.reading(ctx)
	if err != nil {
		return false, nil, err
	}
	var hard bool
	var moved, jobs []int64
	err = s.one(ctx, advanceAll, s.tickArgs(given, t), func(row pgx.CollectableRow) error {
		return row.Scan(&held, &hard, &moved, &jobs, &queues)
	})
	if err != nil {
		return false, nil, err
	}
	if hard {
		err = s.step(ctx, given, func(step *step) error {
			a := advance{step: step, tick: t}
			held, err = a.judge()
			if err != nil || !held {
				return err
			}
			err = a.write()
			queues = step.queues
			return err
		})
		return held && err == nil, queues, err
	}
	if !held {
		return false, nil, nil
	}
	for i := range t.Moves {
		t.Moves[i].Outcome = store.Stale
	}
	for _, ix := range moved {
		t.Moves[ix-1].Outcome = store.Moved
	}
	for i := range t.Fires {
		f := &t.Fires[i]
		if f.Job = 0; t.Moves[f.Move].Outcome == store.Moved {
			f.Job, jobs = store.JobID(jobs[0]), jobs[1:]
		}
	}
	s.fold(ctx, queues)
	return true, queues, nil
}

// tickArgs are the arguments of advanceAll.
func (s *Store) tickArgs(given *int64, t *store.Tick) []any {
	n := len(t.Moves)
	id, rev, cursor, dueAt, setAt := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	reason, since, times, ends := make([]*string, n), make([]*int64, n), make([]*int32, n), make([]bool, n)
	pending, claimed, fires := make([]int32, n), make([]int32, n), make([]int32, n)
	for i := range t.Moves {
		m := &t.Moves[i]
		id[i], rev[i], cursor[i], dueAt[i], setAt[i] = int64(m.ID), int64(m.Rev), int64(m.Cursor), int64(m.DueAt), int64(m.SetAt)
		reason[i], since[i], times[i] = hold(m.Hold)
		ends[i], pending[i], claimed[i], fires[i] = m.Ends, m.Live.Pending, m.Live.Claimed, m.Fires
	}
	// The fires and the skips of a move lie side by side, so that it finds them
	// without a join.
	fireAt, inOrder, boundaries := make([]int32, n), make([]int32, len(t.Fires)), make([]int64, len(t.Fires))
	next := int32(1)
	for i := range fires {
		fireAt[i] = next
		next += fires[i]
	}
	at := slices.Clone(fireAt)
	for i, f := range t.Fires {
		k := at[f.Move] - 1
		at[f.Move]++
		inOrder[k], boundaries[k] = int32(i), int64(f.Boundary)
	}
	skips := joined(t.Skips)
	skipAt, skipN := make([]int32, n), make([]int32, n)
	reasons := make([]int16, len(skips))
	everyMS, first, last, count := make([]int64, len(skips)), make([]int64, len(skips)), make([]int64, len(skips)), make([]int64, len(skips))
	for i, k := range skips {
		if skipN[k.Move] == 0 {
			skipAt[k.Move] = int32(i + 1)
		}
		skipN[k.Move]++
		reasons[i], everyMS[i], first[i], last[i], count[i] = int16(k.Reason), k.EveryMS, int64(k.First), int64(k.Last), k.Count
	}
	return []any{
		given, t.By.Lock, t.By.Owner, int64(t.By.Term),
		id, rev, cursor, dueAt, setAt, reason, since, times, ends, pending, claimed, fires,
		fireAt, inOrder, s.limits.QueueLength,
		skipAt, reasons, everyMS, first, last, count, skipN, s.limits.Skips, s.limits.History, int64(t.Now), boundaries,
	}
}

// joined are the skips of a tick, where those of one move that go on where the
// one before ends are one with it: then no range takes in more than the first.
func joined(skips []store.Skip) (all []store.Skip) {
	for _, next := range skips {
		if len(all) > 0 {
			last := &all[len(all)-1]
			a, b := last.Range("", 0, 0), next.Range("", 0, 0)
			if last.Move == next.Move && a.TakeIn(&b) {
				last.Last, last.Count = a.Last, a.Count
				continue
			}
		}
		all = append(all, next)
	}
	return all
}

// advance is a tick that is judged row by row.
type advance struct {
	*step
	tick   *store.Tick
	rows   map[store.ScheduleID]*store.Schedule // locked
	before *totals
}

// judge sets the outcomes, unless the lease is not live.
func (a *advance) judge() (held bool, err error) {
	t := a.tick
	var b pgx.Batch
	each(b.Queue(a.texts[lockLease], t.By.Lock), func(row pgx.CollectableRow) error {
		var l store.Lease
		err := row.Scan(&l.Owner, &l.Term, &l.TTLMS, &l.ExpiresAt)
		held = l.Live(a.now) && l.Owner == t.By.Owner && l.Term == t.By.Term
		return err
	})
	if err := a.send(&b); err != nil || !held {
		return false, err
	}

	b = pgx.Batch{}
	a.rows = make(map[store.ScheduleID]*store.Schedule, len(t.Moves))
	ids := make([]int64, len(t.Moves))
	for i := range t.Moves {
		ids[i] = int64(t.Moves[i].ID)
	}
	each(b.Queue(a.texts[lockMoves], ids), func(row pgx.CollectableRow) error {
		s := new(store.Schedule)
		err := row.Scan(&s.ID, &s.Rev, &s.Name, &s.Queue, &s.Overlap)
		a.rows[s.ID] = s
		return err
	})
	if err := a.send(&b); err != nil {
		return false, err
	}

	var queues, names []string
	for _, s := range a.rows {
		queues = append(queues, s.Queue)
		if s.Overlap != store.Allow {
			names = append(names, s.Name)
		}
	}
	b = pgx.Batch{}
	lives := a.lives(&b, names)
	lengths := a.lengths(&b, distinct(queues))
	a.before = a.totals(&b)
	if err := a.send(&b); err != nil {
		return false, err
	}
	for i := range t.Moves {
		m := &t.Moves[i]
		m.Outcome = store.Stale
		s := a.rows[m.ID]
		if s == nil || s.Rev != m.Rev || s.Overlap != store.Allow && lives[s.Name] != m.Live {
			continue
		}
		if m.Fires > 0 && lengths[s.Queue]+int64(m.Fires) > a.limits.QueueLength {
			m.Outcome = store.Full
			continue
		}
		m.Outcome = store.Moved
		s.Rev++
		lengths[s.Queue] += int64(m.Fires)
	}
	return true, nil
}

// write writes the moves that were found to be made, their fires and skips.
func (a *advance) write() error {
	t := a.tick
	var b pgx.Batch
	var (
		id, cursor, dueAt, setAt []int64
		reason                   []*string
		since                    []*int64
		times                    []*int32
		ends                     []bool
		counts                   = make(tallies)
	)
	for i := range t.Moves {
		m := &t.Moves[i]
		if m.Outcome != store.Moved {
			continue
		}
		id, cursor, dueAt, setAt = append(id, int64(m.ID)), append(cursor, int64(m.Cursor)), append(dueAt, int64(m.DueAt)), append(setAt, int64(m.SetAt))
		r, at, n := hold(m.Hold)
		reason, since, times, ends = append(reason, r), append(since, at), append(times, n), append(ends, m.Ends)
		if m.Fires > 0 {
			counts.of(a.rows[m.ID].Queue).Pending += int64(m.Fires)
		}
	}
	var ids, boundaries []int64
	var fires []*store.Fire
	for i := range t.Fires {
		f := &t.Fires[i]
		f.Job = 0
		if m := &t.Moves[f.Move]; m.Outcome == store.Moved {
			ids, boundaries, fires = append(ids, int64(m.ID)), append(boundaries, int64(f.Boundary)), append(fires, f)
		}
	}
	if len(fires) > 0 {
		eachID(b.Queue(a.texts[insertFires], ids, boundaries, int64(a.now), int64(t.Now)), func(id int64) {
			fires[0].Job = store.JobID(id)
			fires = fires[1:]
		})
	}
	if len(id) > 0 {
		b.Queue(a.texts[writeMoves], id, cursor, dueAt, setAt, reason, since, times, ends)
	}
	var skips []store.SkipRange
	for i := range t.Skips {
		if m := &t.Moves[t.Skips[i].Move]; m.Outcome == store.Moved {
			skips = append(skips, t.Skips[i].Range(a.rows[m.ID].Name, m.ID, a.now))
		}
	}
	a.add(&b, counts)
	a.record(&b, a.before, nil, skips)
	return a.send(&b)
}

// lives counts the live jobs of schedules.
func (t *step) lives(b *pgx.Batch, names []string) map[string]store.Live {
	lives := make(map[string]store.Live)
	if len(names) > 0 {
		slices.Sort(names)
		each(b.Queue(t.texts[readLives], names), func(row pgx.CollectableRow) error {
			var name string
			var live store.Live
			err := row.Scan(&name, &live.Pending, &live.Claimed)
			lives[name] = live
			return err
		})
	}
	return lives
}
