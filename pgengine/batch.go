package pgengine

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

// errRefused undoes a batch.
var errRefused = errors.New("refused")

// Commit implements [store.Store]. A batch of more than inserts is a step: it
// locks and reads all that the batch is about, judges it element by element, and
// writes what is left to write.
func (s *Store) Commit(ctx context.Context, b *store.Batch) (c store.Committed, err error) {
	given, err := s.reading(ctx)
	if err != nil {
		return c, err
	}
	var queues []string
	c, hard, err := s.insert(ctx, given, b)
	if err != nil || !hard {
		return c, err
	}
	err = s.step(ctx, given, func(t *step) error {
		c = store.Committed{Now: t.now}
		w := batch{ends: t.ends(), b: b, c: &c}
		if err := w.read(); err != nil {
			return err
		}
		if c.Refusal = w.judge(); c.Refusal.Why != store.NotRefused {
			return errRefused
		}
		err := w.write()
		queues = t.queues
		return err
	})
	if c.Refusal.Why != store.NotRefused {
		for i := range b.Settles {
			b.Settles[i].Tripped = 0
		}
		return store.Committed{Now: c.Now, Refusal: c.Refusal}, nil
	}
	if err != nil {
		return store.Committed{}, err
	}
	if len(b.Inserts)+len(b.Requeues) == 0 && !retries(b.Settles) {
		queues = nil
	}
	return c, s.wrote(ctx, len(b.Puts) > 0, queues)
}

// batch is a batch that is judged element by element: guards by the rows as they
// were read, room and keys by what the elements before leave.
type batch struct {
	*ends
	b *store.Batch
	c *store.Committed

	rows    map[string]*scheduleRow // by name
	jobs    map[store.JobID]*store.Job
	touched map[store.JobID]bool
	keys    map[liveKey]store.JobID
	lengths map[string]int64
	lives   map[string]store.Live

	written  map[string]bool // schedules
	created  int64           // names that were not there, less those that went
	changed  []*scheduleRow  // written in place
	born     []scheduleRows  // new incarnations
	bornAt   []int           // their places among the puts
	dropped  []int64         // ids of rows that went
	forgot   []string        // names that went, or came
	began    []string        // names of new incarnations in the place of others
	cursors  []int64         // of the others
	requeues []int64
	inserts  []jobRows
	insertAt []int           // their places among the inserts
	newKeys  map[liveKey]int // and of those with a key

	insertBytes, bornBytes int // of the payloads in the last chunk
}

type liveKey struct{ queue, key string }

// lockRows locks schedules, in the order of all: those that the batch names, and
// those whose breakers may be told of an end.
var lockRows, readKeys, countRows = sql(`
select ` + rowColumns + ` from tickonce.schedule s
where s.id = any(array(
  select id from tickonce.schedule where name = any($1::text[])
  union all
  select schedule_id from tickonce.job where id = any($2::bigint[]) and schedule <> '' and origin = 0))
and (s.name = any($1::text[]) or s.breaker > 0)
order by s.id for update`), sql(`
select j.id, j.queue, j.key from tickonce.job j join unnest($1::text[], $2::text[]) v(queue, key) on j.queue = v.queue and j.key = v.key
where j.key <> '' and j.state < 3`), sql(`
update tickonce.schedule set counted = counted + 1 where id = any($1::bigint[])`)

func (w *batch) read() error {
	b := w.b
	var names, counted []string
	for _, g := range slices.Concat(b.Guards, putGuards(b.Puts), b.Removes) {
		names = append(names, g.Name)
		if g.Live != nil {
			counted = append(counted, g.Name)
		}
	}
	var ended, ids []int64
	for i := range b.Settles {
		ended = append(ended, int64(b.Settles[i].Job))
	}
	for _, r := range b.Cancels {
		ended = append(ended, int64(r.Job))
	}
	ids = slices.Clone(ended)
	var queues []string
	for _, r := range slices.Concat(b.Requeues, b.Purges) {
		ids = append(ids, int64(r.Job))
	}
	var keyQueues, keys []string
	for i := range b.Inserts {
		in := &b.Inserts[i]
		queues = append(queues, in.Queue)
		if in.Key != "" {
			keyQueues, keys = append(keyQueues, in.Queue), append(keys, in.Key)
		}
	}
	w.rows, w.jobs, w.keys = make(map[string]*scheduleRow), make(map[store.JobID]*store.Job), make(map[liveKey]store.JobID)

	var q pgx.Batch
	if len(names)+len(ended) > 0 {
		each(q.Queue(w.texts[lockRows], names, ended), func(row pgx.CollectableRow) error {
			s, err := scanRow(row)
			w.rows[s.Name], w.ids[s.ID] = s, s
			w.names[s.Name] = true
			return err
		})
	}
	if len(ids) > 0 {
		w.lockJobs(&q, ids, w.jobs)
	}
	if len(ended) > 0 {
		w.queueNames(q.Queue(w.texts[readNames], ended))
	}
	w.lives = w.step.lives(&q, counted)
	if len(keys) > 0 {
		each(q.Queue(w.texts[readKeys], keyQueues, keys), func(row pgx.CollectableRow) error {
			var id store.JobID
			var k liveKey
			err := row.Scan(&id, &k.queue, &k.key)
			w.keys[k] = id
			return err
		})
	}
	w.lengths = w.step.lengths(&q, distinct(queues))
	if len(names)+len(ended) > 0 {
		w.before = w.totals(&q)
	}
	return w.send(&q)
}

func putGuards(puts []store.Put) []store.Guard {
	guards := make([]store.Guard, len(puts))
	for i := range puts {
		guards[i] = puts[i].Guard
	}
	return guards
}

// judge judges the parts in their order, up to the first refusal.
func (w *batch) judge() store.Refusal {
	w.written, w.touched, w.newKeys = make(map[string]bool), make(map[store.JobID]bool), make(map[liveKey]int)
	b := w.b
	for part, p := range [...]struct {
		n   int
		one func(i int) store.Why
	}{
		store.Guards:   {len(b.Guards), func(i int) store.Why { return w.guard(&b.Guards[i]) }},
		store.Puts:     {len(b.Puts), w.put},
		store.Removes:  {len(b.Removes), w.remove},
		store.Settles:  {len(b.Settles), w.settleOne},
		store.Cancels:  {len(b.Cancels), w.cancel},
		store.Requeues: {len(b.Requeues), w.requeue},
		store.Purges:   {len(b.Purges), w.purge},
		store.Inserts:  {len(b.Inserts), w.insert},
	} {
		if store.Part(part) == store.Settles {
			w.settling()
		}
		for i := range p.n {
			if why := p.one(i); why != store.NotRefused {
				return store.Refusal{Why: why, Part: store.Part(part), Index: i}
			}
		}
	}
	return store.Refusal{}
}

func (w *batch) guard(g *store.Guard) store.Why {
	s := w.rows[g.Name]
	if s == nil {
		if g.ID != 0 {
			return store.Conflict
		}
		return store.NotRefused
	}
	if s.ID != g.ID || s.Rev != g.Rev || g.Live != nil && *g.Live != w.lives[g.Name] {
		return store.Conflict
	}
	return store.NotRefused
}

// own is guard for an element that writes the schedule.
func (w *batch) own(g *store.Guard) store.Why {
	if w.written[g.Name] {
		return store.Conflict
	}
	w.written[g.Name] = true
	return w.guard(g)
}

func (w *batch) put(i int) store.Why {
	p := &w.b.Puts[i]
	if why := w.own(&p.Guard); why != store.NotRefused {
		return why
	}
	row, old := p.Row, w.rows[p.Row.Name]
	row.Payload = orNil(row.Payload)
	switch {
	case row.ID != 0:
		row.Rev = p.Guard.Rev + 1
		w.changed = append(w.changed, &scheduleRow{Schedule: row})
	case old == nil && w.before.schedules+w.created >= w.limits.Schedules:
		return store.SchedulesFull
	default:
		row.Rev = 1
		chunk(&w.born, &w.bornBytes, len(row.Payload)).add(&row)
		w.bornAt = append(w.bornAt, i)
		if old == nil {
			w.created++
			w.forgot = append(w.forgot, row.Name)
		} else {
			w.dropped = append(w.dropped, int64(old.ID))
			w.began, w.cursors = append(w.began, row.Name), append(w.cursors, int64(old.Cursor))
		}
	}
	w.names[row.Name] = true
	w.c.Puts = append(w.c.Puts, row)
	return store.NotRefused
}

func (w *batch) remove(i int) store.Why {
	g := &w.b.Removes[i]
	if why := w.own(g); why != store.NotRefused {
		return why
	}
	if s := w.rows[g.Name]; s != nil {
		w.dropped = append(w.dropped, int64(s.ID))
		w.forgot = append(w.forgot, g.Name)
		w.created--
		delete(w.names, g.Name)
	}
	return store.NotRefused
}

// settling comes before the ends of jobs: they are told to the schedules as the
// puts and removes leave them.
func (w *batch) settling() {
	for _, id := range w.dropped {
		delete(w.ids, store.ScheduleID(id))
	}
	for _, s := range w.changed {
		w.ids[s.ID] = s
	}
}

func (w *batch) settleOne(i int) store.Why {
	e := &w.b.Settles[i]
	e.Tripped = 0
	j := w.jobs[e.Job]
	if j == nil || w.touched[e.Job] || !j.Holds(e.Attempt, w.now) {
		return store.ClaimLost
	}
	w.touched[e.Job] = true
	before := j.State
	e.Tripped = w.settle(j, e)
	w.freed(j, before)
	return store.NotRefused
}

// freed takes note of what a job that was touched no longer holds: its place in
// the queue, and its key.
func (w *batch) freed(j *store.Job, before store.State) {
	gone := j.State == store.Done || j.State == 0
	if gone {
		w.lengths[j.Queue]--
	}
	if key := (liveKey{j.Queue, j.Key}); before != store.Dead && j.State != store.Pending && w.keys[key] == j.ID {
		delete(w.keys, key)
	}
}

// take answers the job that r names if it is in one of the states and nothing
// has touched it yet.
func (w *batch) take(r store.JobRef, states ...store.State) *store.Job {
	j := w.jobs[r.Job]
	if j == nil || j.Queue != r.Queue || w.touched[r.Job] || !slices.Contains(states, j.State) {
		return nil
	}
	w.touched[r.Job] = true
	return j
}

func (w *batch) cancel(i int) store.Why {
	j := w.take(w.b.Cancels[i], store.Pending, store.Claimed)
	if j == nil {
		return store.NotFound
	}
	if j.Holds(j.Attempts, w.now) {
		w.ran(j, store.Cancelled, 0, "")
	} else {
		w.lost(j, 0, "")
	}
	w.goes(j).Cancelled++
	return store.NotRefused
}

// goes removes the job.
func (w *batch) goes(j *store.Job) *store.Queue {
	q := w.leaves(j)
	before := j.State
	j.State = 0
	w.gone = append(w.gone, int64(j.ID))
	w.freed(j, before)
	return q
}

func (w *batch) requeue(i int) store.Why {
	j := w.take(w.b.Requeues[i], store.Dead)
	if j == nil {
		return store.NotFound
	}
	q := w.leaves(j)
	q.Requeued++
	q.Pending++
	w.requeues = append(w.requeues, int64(j.ID))
	return store.NotRefused
}

func (w *batch) purge(i int) store.Why {
	j := w.take(w.b.Purges[i], store.Dead)
	if j == nil {
		return store.NotFound
	}
	w.goes(j).Purged++
	return store.NotRefused
}

func (w *batch) insert(i int) store.Why {
	in := &w.b.Inserts[i]
	if in.Key != "" {
		key := liveKey{in.Queue, in.Key}
		if id, ok := w.keys[key]; ok {
			w.c.Inserts = append(w.c.Inserts, store.Inserted{Job: id, Existing: true})
			return store.NotRefused
		}
		if at, ok := w.newKeys[key]; ok { // its id is not known yet
			w.c.Inserts = append(w.c.Inserts, store.Inserted{Job: store.JobID(-at - 1), Existing: true})
			return store.NotRefused
		}
		w.newKeys[key] = i
	}
	if w.lengths[in.Queue] >= w.limits.QueueLength {
		return store.QueueFull
	}
	w.lengths[in.Queue]++
	j := in.Job(w.now)
	chunk(&w.inserts, &w.insertBytes, len(j.Payload)).add(&j)
	w.insertAt = append(w.insertAt, i)
	w.counts.of(in.Queue).Pending++
	w.c.Inserts = append(w.c.Inserts, store.Inserted{})
	return store.NotRefused
}

// chunkBytes is how many bytes of payloads one statement has, or one payload of
// more: the server takes no message of a gigabyte.
var chunkBytes = 64 << 20

// chunk returns the chunk that a row with so many bytes of payload goes into.
func chunk[R any](chunks *[]R, filled *int, bytes int) *R {
	if len(*chunks) == 0 || *filled+bytes > chunkBytes {
		*chunks, *filled = append(*chunks, *new(R)), 0
	}
	*filled += bytes
	return &(*chunks)[len(*chunks)-1]
}

// requeueJobs is Requeued of package store: all that it does not keep is what a
// new row has by itself.
var dropSchedules, requeueJobs = sql(`
delete from tickonce.schedule where id = any($1::bigint[])`), sql(`
with old as (delete from tickonce.job where id = any($1::bigint[]) returning *)
insert into tickonce.job (queue, payload, schedule, schedule_id, fire_at, origin, visibility_ms, base_backoff_ms,
  max_attempts, timeout_ms, priority, alone, last_error, enqueued_at, run_at)
select queue, payload, schedule, schedule_id, fire_at, origin, visibility_ms, base_backoff_ms,
  max_attempts, timeout_ms, priority, alone, last_error, $2, $2
from old join unnest($1::bigint[]) with ordinality v(id, ix) using (id) order by v.ix
returning id`)

// write writes what was judged, in an order in which no unique index is in the
// way.
func (w *batch) write() error {
	var q pgx.Batch
	if err := w.writeSchedules(&q); err != nil {
		return err
	}
	w.writeJobs(&q)
	if len(w.requeues) > 0 {
		eachID(q.Queue(w.texts[requeueJobs], w.requeues, int64(w.now)), func(id int64) {
			w.c.Requeues = append(w.c.Requeues, store.JobID(id))
		})
	}
	insertAt := w.insertAt
	for i := range w.inserts {
		eachID(q.Queue(w.texts[insertJobs], w.inserts[i].args()...), func(id int64) {
			w.c.Inserts[insertAt[0]].Job = store.JobID(id)
			insertAt = insertAt[1:]
		})
	}
	w.add(&q, w.counts)
	for i := range w.b.Puts {
		for _, skip := range w.b.Puts[i].Skips {
			id := w.b.Puts[i].Guard.ID
			if skip.Reason == store.SkipBefore {
				id = w.c.Puts[i].ID
			}
			w.skips = append(w.skips, skip.Range(w.c.Puts[i].Name, id, w.now))
		}
	}
	w.record(&q, w.before, w.runs, w.skips)
	var names []string
	for i := range w.c.Puts {
		names = append(names, w.c.Puts[i].Name)
	}
	lives := w.step.lives(&q, names)
	if err := w.send(&q); err != nil {
		return err
	}
	for i := range w.c.Puts {
		w.c.Puts[i].Live = lives[w.c.Puts[i].Name]
	}
	for i := range w.c.Inserts {
		if at := w.c.Inserts[i].Job; at < 0 {
			w.c.Inserts[i].Job = w.c.Inserts[-at-1].Job
		}
	}
	return nil
}

// writeSchedules writes the schedules, and what of the history goes with them.
// Where some are new it sends q, to know their ids.
func (w *batch) writeSchedules(q *pgx.Batch) error {
	if len(w.dropped) > 0 {
		q.Queue(w.texts[dropSchedules], w.dropped)
	}
	var rows []scheduleRows
	var bytes int
	for _, s := range w.changed {
		chunk(&rows, &bytes, len(s.Payload)).add(&s.Schedule)
	}
	for i := range rows {
		q.Queue(w.texts[updateSchedules], rows[i].args()...)
	}
	w.writeRows(q, func(s *scheduleRow) bool { return slices.Contains(w.changed, s) })
	var counted []int64
	for i := range w.b.Guards {
		if g := &w.b.Guards[i]; g.Live != nil && g.ID != 0 {
			counted = append(counted, int64(g.ID))
		}
	}
	if len(counted) > 0 {
		q.Queue(w.texts[countRows], counted)
	}
	if w.created != 0 {
		q.Queue(w.texts[addTotals], w.created)
	}
	if len(w.forgot) > 0 {
		q.Queue(w.texts[forget], w.forgot)
	}
	if len(w.began) > 0 {
		q.Queue(w.texts[begin], w.began, w.cursors)
	}
	if len(w.bornAt) == 0 {
		return nil
	}
	at := w.bornAt
	for i := range w.born {
		eachID(q.Queue(w.texts[insertSchedules], w.born[i].args()...), func(id int64) {
			w.c.Puts[at[0]].ID = store.ScheduleID(id)
			at = at[1:]
		})
	}
	err := w.send(q)
	*q = pgx.Batch{}
	return err
}
