package pgengine

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

// lockDoomed locks what is to be buried, and lockTold the schedules whose breakers
// that is told to; needTold are all that would have to be. What another call is
// about to touch is left to it.
var lockDoomed, needTold, lockTold = sql(`
select ` + endColumns + ` from tickonce.job j
where j.queue = $1 and j.doomed_at <= $2 and j.doomed_at < 9223372036854775807 order by j.doomed_at, j.id limit 1000 for update skip locked`), sql(`
select s.id from ` + breakers), sql(`
select ` + rowColumns + ` from ` + breakers + ` order by s.id for no key update skip locked`)

// ready says of a job j that it may be handed out at now: it is not doomed, and
// does not wait to be alone for one that was claimed before.
const ready = `j.run_at <= now and j.doomed_at > now and not ` + waits

// priorities are those of the pending jobs of the queue $2, with the first job of
// each, found one after another, since the index for claims begins with them.
const priorities = `priorities as (
  (select priority, run_at, id from tickonce.job where queue = $2 and state = 1 order by priority desc, run_at, id limit 1)
  union all
  select x.* from priorities p, lateral (
    select priority, run_at, id from tickonce.job j
    where j.queue = $2 and j.state = 1 and j.priority < p.priority order by priority desc, run_at, id limit 1) x
)`

// pending locks pending jobs of a priority p, which are ready and are what more
// says. It begins with the first one, past what vacuum has not removed yet of
// those that were claimed.
func pending(more string) string {
	return `lateral (
    select j.id, j.schedule, j.alone, j.origin, j.priority, j.run_at from tickonce.job j
    where j.queue = $2 and j.state = 1 and j.priority = p.priority and (j.run_at, j.id) >= (p.run_at, p.id) and ` + ready + more + `
    order by j.run_at, j.id limit $3 for update skip locked) x`
}

// claimReady claims in one statement. It does nothing, and says so, where jobs
// are to be buried, a claim has lapsed, or a job that is to be alone is found
// beside another of its schedule.
var claimReady = sql(`
with recursive clock as materialized (select tickonce.instant($1) as now),
hard as materialized (
  select exists (select from tickonce.job j where j.queue = $2 and j.doomed_at <= now and j.doomed_at < 9223372036854775807)
    or exists (select from tickonce.job j where j.queue = $2 and j.state = 2 and j.ready_at <= now) as hard from clock
),
` + priorities + `,
locked as materialized (select x.* from clock, hard, priorities p, ` + pending("") + ` where not hard),
found as materialized (select * from locked order by priority desc, run_at, id limit $3),
clash as materialized (
  select exists (select from found a join found b using (schedule) where a.alone and a.schedule <> '' and b.origin = 0 and a.id <> b.id) as clash
),
claimed as (
  update tickonce.job j set state = 2, since = now, worker = $4, deadline = tickonce.later(now, j.visibility_ms), attempts = j.attempts + 1
  from found, clash, clock where j.id = found.id and not clash
  returning ` + jobColumns + `
),
tally as (
  insert into tickonce.queue_tally (queue, pending, claimed, claims)
  select $2, -count(*), count(*), count(*) from claimed having count(*) > 0
)
select now, hard or clash, j.* from clock, hard, clash left join claimed j on true
order by j.priority desc, j.run_at, j.id`)

// lockReady locks what is to be handed out next, lapsed claims among it, but for
// what was just handed out ($4), and what waits for that to be alone ($5: its
// schedules).
var lockReady = sql(`
with recursive clock as materialized (select $1::bigint as now),
` + priorities + `,
pending as materialized (select x.id from clock, priorities p, ` + pending(others) + `),
lapsed as materialized (
  select j.id from tickonce.job j, clock
  where j.queue = $2 and j.state = 2 and j.ready_at <= now and j.doomed_at > now and not ` + waits + others + `
  order by j.priority desc, j.run_at, j.id limit $3 for update of j skip locked
)
select ` + jobColumns + `, j.state = 2 and exists (select from tickonce.schedule s where s.name = j.schedule)
from (select id from pending union all select id from lapsed) ready join tickonce.job j using (id)
order by j.priority desc, j.run_at, j.id limit $3`)

const others = ` and j.id <> all($4::bigint[]) and not (j.alone and j.schedule = any($5::text[]))`

var handOut = sql(`
update tickonce.job set state = 2, since = $2, worker = $3, deadline = tickonce.later($2, visibility_ms), attempts = attempts + 1
where id = any($1::bigint[])`)

// Claim implements [store.Store].
func (s *Store) Claim(ctx context.Context, queue, worker string, dst []store.Job) (c store.Claim, err error) {
	given, err := s.reading(ctx)
	if err != nil {
		return c, err
	}
	hard := s.unfolded == nil // where somebody claims another job of the schedule, a step of another's transaction can be made again
	if !hard {
		hard, err = s.claimReady(ctx, given, queue, worker, dst, &c)
	}
	if err != nil {
		return store.Claim{}, err
	}
	if !hard {
		if c.N > 0 {
			s.fold(ctx, []string{queue})
		}
		return c, nil
	}
	err = s.step(ctx, given, func(t *step) error {
		c = store.Claim{Now: t.now}
		return t.ends().claim(queue, worker, dst, &c)
	})
	if err != nil {
		return store.Claim{}, err
	}
	return c, nil
}

// claimReady claims in one statement, and reports whether it is not a claim that
// is made so.
func (s *Store) claimReady(ctx context.Context, given *int64, queue, worker string, dst []store.Job, c *store.Claim) (hard bool, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		return again(func() error {
			*c = store.Claim{}
			return s.ask(ctx, claimReady, []any{given, queue, len(dst), worker}, func(row pgx.CollectableRow) error {
				targets := []any{&c.Now, &hard}
				if row.RawValues()[2] == nil {
					return row.Scan(append(targets, make([]any, jobWidth)...)...)
				}
				j := &dst[c.N]
				c.N++
				*j = store.Job{}
				return row.Scan(append(targets, jobTargets(j)...)...)
			})
		})
	})
	return hard, err
}

// claim buries, and then hands out.
func (e *ends) claim(queue, worker string, dst []store.Job, c *store.Claim) error {
	dying, err := e.dying(queue)
	if err != nil {
		return err
	}
	for _, j := range dying {
		text := j.DoomText(e.now)
		e.lost(j, store.Dead, text)
		e.bury(j, text)
		c.Buried++
		if text != store.ErrorExhausted {
			continue
		}
		if failures := e.told(j, true); failures > 0 {
			c.Tripped = append(c.Tripped, store.Trip{Schedule: j.Schedule, Failures: failures})
		}
	}
	var b pgx.Batch
	e.writeRows(&b, no)
	e.writeJobs(&b)
	if err := e.handOut(&b, queue, worker, dst, c); err != nil {
		return err
	}
	e.add(&b, e.counts)
	e.record(&b, e.before, e.runs, nil)
	return e.send(&b)
}

// dying locks what is to be buried, and reads what that takes. A job is left for
// later if somebody else has locked the schedule that its end is told to.
func (e *ends) dying(queue string) (dying []*store.Job, err error) {
	var b pgx.Batch
	var ids []int64
	each(b.Queue(e.texts[lockDoomed], queue, int64(e.now)), func(row pgx.CollectableRow) error {
		j, err := scanEnd(row)
		dying, ids = append(dying, j), append(ids, int64(j.ID))
		return err
	})
	e.before = e.totals(&b)
	if err := e.send(&b); err != nil || len(ids) == 0 {
		return nil, err
	}
	b = pgx.Batch{}
	need := make(map[store.ScheduleID]bool)
	eachID(b.Queue(e.texts[needTold], ids), func(id int64) { need[store.ScheduleID(id)] = true })
	e.queueRows(b.Queue(e.texts[lockTold], ids))
	e.queueNames(b.Queue(e.texts[readNames], ids))
	if err := e.send(&b); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(dying, func(j *store.Job) bool {
		return j.Counts() && need[j.ScheduleID] && e.ids[j.ScheduleID] == nil
	}), nil
}

// handOut hands out ready jobs. What was written to b before is written first.
// It looks for more as long as some of what it found has to wait for others of
// it.
func (e *ends) handOut(b *pgx.Batch, queue, worker string, dst []store.Job, c *store.Claim) error {
	ids, names := []int64{}, []string{} // handed out, and the schedules for which they count
	for more := len(dst) > 0; more; {
		more = false
		var found []store.Job
		var kept []bool // whether the schedule of a lapsed claim is there
		each(b.Queue(e.texts[lockReady], int64(e.now), queue, len(dst)-c.N, ids, names), func(row pgx.CollectableRow) error {
			found, kept = append(found, store.Job{}), append(kept, false)
			return scanReady(row, &found[len(found)-1], &kept[len(kept)-1])
		})
		if err := e.send(b); err != nil {
			return err
		}
		*b = pgx.Batch{}
		claimed := make(map[string]bool)
		for i := range found {
			j := &found[i]
			if j.Alone && claimed[j.Schedule] {
				more = true
				continue
			}
			if j.Counts() {
				claimed[j.Schedule] = true
				names = append(names, j.Schedule)
			}
			if kept[i] {
				e.names[j.Schedule] = true
			}
			e.lost(j, store.Claimed, "")
			q := e.leaves(j)
			q.Claimed++
			q.Claims++
			j.State, j.Since, j.Worker, j.Deadline = store.Claimed, e.now, worker, e.now.Add(j.Stamps.VisibilityMS)
			j.Attempts++
			ids = append(ids, int64(j.ID))
			dst[c.N] = *j
			c.N++
		}
	}
	if len(ids) > 0 {
		b.Queue(e.texts[handOut], ids, int64(e.now), worker)
	}
	return nil
}

func scanReady(row pgx.CollectableRow, j *store.Job, kept *bool) error {
	*j = store.Job{}
	return row.Scan(append(jobTargets(j), kept)...)
}
