package pgengine

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

const doomed = `select j.id from tickonce.job j where j.queue = $1 and j.doomed_at <= $2 order by j.doomed_at, j.id limit 1000`

// lockDoom locks the schedules that burials may change, and lockDoomed what is
// to be buried; what another call is about to touch is left to it.
var lockDoom, lockDoomed, readDoomNames = sql(`
select ` + rowColumns + ` from tickonce.schedule s
where s.breaker > 0 and s.id in (
  select schedule_id from tickonce.job where id in (` + doomed + `) and schedule <> '' and origin = 0)
order by s.id for no key update`), sql(`
select ` + endColumns + ` from tickonce.job j
where j.queue = $1 and j.doomed_at <= $2 order by j.doomed_at, j.id limit 1000 for update skip locked`), sql(`
select s.name from tickonce.schedule s where s.name in (select schedule from tickonce.job where id in (` + doomed + `))`)

// eligible says of a job j that it may be handed out, if it is ready: it is not
// doomed, not among those that were just handed out ($4), and does not wait to be
// alone, neither for those ($5: their schedules) nor for others.
const eligible = `j.queue = $1 and j.doomed_at > $2 and j.id <> all($4::bigint[])
    and not (j.alone and j.schedule = any($5::text[])) and not ` + waits

var lockReady = sql(`
with pending as materialized (
  select j.id from tickonce.job j where j.state = 1 and j.run_at <= $2 and ` + eligible + `
  order by j.priority desc, j.run_at, j.id limit $3 for update skip locked
),
lapsed as materialized (
  select j.id from tickonce.job j where j.state = 2 and j.ready_at <= $2 and ` + eligible + `
  order by j.priority desc, j.run_at, j.id limit $3 for update skip locked
)
select ` + jobColumns + `, j.state = 2 and exists (select from tickonce.schedule s where s.name = j.schedule)
from (select id from pending union all select id from lapsed) ready join tickonce.job j using (id)
order by j.priority desc, j.run_at, j.id limit $3`)

var handOut = sql(`
update tickonce.job set state = 2, since = $2, worker = $3, deadline = tickonce.later($2, visibility_ms), attempts = attempts + 1
where id = any($1::bigint[])`)

// Claim implements [store.Store].
func (s *Store) Claim(ctx context.Context, queue, worker string, dst []store.Job) (c store.Claim, err error) {
	err = s.step(ctx, func(t *step) error {
		c = store.Claim{Now: t.now}
		e := t.ends()
		var b pgx.Batch
		var dying []*store.Job
		e.queueRows(b.Queue(t.texts[lockDoom], queue, int64(t.now)))
		each(b.Queue(t.texts[lockDoomed], queue, int64(t.now)), func(row pgx.CollectableRow) error {
			j, err := scanEnd(row)
			dying = append(dying, j)
			return err
		})
		e.queueNames(b.Queue(t.texts[readDoomNames], queue, int64(t.now)))
		e.before = t.totals(&b)
		if err := t.send(&b); err != nil {
			return err
		}
		for _, j := range dying {
			text := j.DoomText(t.now)
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
		b = pgx.Batch{}
		e.writeRows(&b, no)
		e.writeJobs(&b)
		if err := e.handOut(&b, queue, worker, dst, &c); err != nil {
			return err
		}
		t.add(&b, e.counts)
		t.record(&b, e.before, e.runs, nil)
		return t.send(&b)
	})
	return c, err
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
		each(b.Queue(e.texts[lockReady], queue, int64(e.now), len(dst)-c.N, ids, names), func(row pgx.CollectableRow) error {
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
