package pgengine

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

var lockLease = sql(`
select l.owner, l.term, l.ttl_ms, l.expires_at from tickonce.lease l where l.lock = $1 for share`)

// lockMoves locks the rows whose guard holds, and leaves those that somebody
// else is writing: they are stale.
var lockMoves, readLives = sql(`
select s.id, s.name, s.queue, s.overlap
from tickonce.schedule s join unnest($1::bigint[], $2::bigint[]) v(id, rev) on s.id = v.id and s.rev = v.rev
for no key update of s skip locked`), sql(`
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

// Advance implements [store.Store].
func (s *Store) Advance(ctx context.Context, tick *store.Tick) (held bool, err error) {
	err = s.step(ctx, func(t *step) error {
		a := advance{step: t, tick: tick}
		held, err = a.judge()
		if err != nil || !held {
			return err
		}
		return a.write()
	})
	return held && err == nil, err
}

// advance is a tick that is judged row by row.
type advance struct {
	*step
	tick   *store.Tick
	rows   map[store.ScheduleID]*store.Schedule // those whose guard holds
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
	ids, revs := make([]int64, len(t.Moves)), make([]int64, len(t.Moves))
	for i := range t.Moves {
		ids[i], revs[i] = int64(t.Moves[i].ID), int64(t.Moves[i].Rev)
	}
	each(b.Queue(a.texts[lockMoves], ids, revs), func(row pgx.CollectableRow) error {
		s := new(store.Schedule)
		err := row.Scan(&s.ID, &s.Name, &s.Queue, &s.Overlap)
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
		if s == nil || s.Overlap != store.Allow && lives[s.Name] != m.Live {
			continue
		}
		if m.Fires > 0 && lengths[s.Queue]+int64(m.Fires) > a.limits.QueueLength {
			m.Outcome = store.Full
			continue
		}
		m.Outcome = store.Moved
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
