package pgengine

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

// waits says of a job j that it waits until it is alone (X9).
const waits = `(j.alone and exists (
  select from tickonce.job o
  where o.schedule = j.schedule and o.schedule <> '' and o.origin = 0 and o.state = 2 and o.id <> j.id))`

// The queues are found by their first summands, one after another. The next
// claim is looked for in each index that a claim uses: for pending jobs,
// priority by priority, since the order of the index begins with it.
var readQueues = sql(`
with recursive names as (
  (select queue from tickonce.queue_tally where queue >= $1 and convert_to(queue, 'UTF8') >= $2 order by queue limit 1)
  union all
  select (select t.queue from tickonce.queue_tally t where t.queue > n.queue order by t.queue limit 1)
  from names n where n.queue is not null
),
page as (select queue from names where queue is not null limit $3)
select page.queue, t.*, coalesce(least(doomed.at, lapsing.at, pending.at), 9223372036854775807), waiting.n
from page,
lateral (
  select sum(pending)::bigint, sum(claimed)::bigint, sum(dead)::bigint, sum(claims)::bigint, sum(retried)::bigint,
    sum(done)::bigint, sum(died)::bigint, sum(cancelled)::bigint, sum(requeued)::bigint, sum(purged)::bigint
  from tickonce.queue_tally t where t.queue = page.queue
) t,
lateral (
  select min(doomed_at) as at from tickonce.job j where j.queue = page.queue and doomed_at < 9223372036854775807
) doomed,
lateral (
  select min(ready_at) as at from (
    select ready_at from tickonce.job j where j.queue = page.queue and j.state = 2 and not ` + waits + ` order by ready_at limit 1) x
) lapsing,
lateral (
  with recursive p as (
    (select priority from tickonce.job where queue = page.queue and state = 1 order by priority desc limit 1)
    union all
    select (select j.priority from tickonce.job j where j.queue = page.queue and j.state = 1 and j.priority < p.priority order by j.priority desc limit 1)
    from p where p.priority is not null
  )
  select min(x.run_at) as at from p, lateral (
    select run_at from tickonce.job j
    where j.queue = page.queue and j.state = 1 and j.priority = p.priority and not ` + waits + ` order by run_at limit 1) x
) pending,
lateral (
  select count(*) as n from tickonce.job j
  where j.queue = page.queue and j.alone and j.state < 3 and j.ready_at < j.doomed_at and ` + waits + `
) waiting
order by page.queue`)

// Queues implements [store.Store].
func (s *Store) Queues(ctx context.Context, name string, dst []store.Queue) (n int, now store.Instant, err error) {
	text, bytes := from(name)
	now, err = s.read(ctx, readQueues, []any{text, bytes, len(dst)}, func(row pgx.CollectableRow) error {
		q := store.Queue{}
		err := row.Scan(&q.Name, &q.Pending, &q.Claimed, &q.Dead, &q.Claims, &q.Retried,
			&q.Done, &q.Died, &q.Cancelled, &q.Requeued, &q.Purged, &q.NextClaimAt, &q.Waiting)
		q.Enqueued = q.Len() + q.Done + q.Cancelled + q.Requeued + q.Purged // invariant 4
		dst[n] = q
		n++
		return err
	})
	return n, now, err
}

// tallies are what a step adds to the counters of queues.
type tallies map[string]*store.Queue

func (t tallies) of(queue string) *store.Queue {
	if t[queue] == nil {
		t[queue] = new(store.Queue)
	}
	return t[queue]
}

var addTallies, foldTallies = sql(`
insert into tickonce.queue_tally (queue, pending, claimed, dead, claims, retried, done, died, cancelled, requeued, purged)
select * from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
  $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])`), sql(`
with old as (
  delete from tickonce.queue_tally t using (
    select queue, id from tickonce.queue_tally where queue = any($1::text[]) order by queue, id for update skip locked) o
  where t.queue = o.queue and t.id = o.id returning t.*
)
insert into tickonce.queue_tally (queue, pending, claimed, dead, claims, retried, done, died, cancelled, requeued, purged)
select queue, sum(pending), sum(claimed), sum(dead), sum(claims), sum(retried), sum(done), sum(died), sum(cancelled), sum(requeued), sum(purged)
from old group by queue`)

// foldEvery is how many writes it takes until what they added is added up.
const foldEvery = 64

// unfolded are the queues whose summands a store has not added up since it wrote
// to them.
type unfolded struct {
	mu     sync.Mutex
	writes int
	queues map[string]bool
}

// note notes a write, and takes out the queues if their time has come.
func (u *unfolded) note(queues []string) (due []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, queue := range queues {
		u.queues[queue] = true
	}
	if u.writes++; u.writes < foldEvery {
		return nil
	}
	due = slices.Sorted(maps.Keys(u.queues))
	u.writes = 0
	clear(u.queues)
	return due
}

// fold adds up the summands of the queues that this call and others have written
// to, and those of the totals, after some of the calls. Nothing depends on it, so
// that it may fail; it passes over what others are adding up.
func (s *Store) fold(ctx context.Context, queues []string) {
	if len(queues) == 0 || s.unfolded == nil {
		return
	}
	if queues = s.unfolded.note(queues); len(queues) == 0 {
		return
	}
	b := s.batch()
	b.Queue(s.texts[foldTallies], queues)
	b.Queue(s.texts[foldTotals])
	_ = s.call(ctx, func(ctx context.Context) error { return s.db.SendBatch(ctx, b).Close() })
}

// add writes the summands of a step.
func (t *step) add(b *pgx.Batch, counts tallies) {
	if len(counts) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(counts))
	var columns [10][]int64
	for _, name := range names {
		q := counts[name]
		for i, n := range [...]int64{q.Pending, q.Claimed, q.Dead, q.Claims, q.Retried, q.Done, q.Died, q.Cancelled, q.Requeued, q.Purged} {
			columns[i] = append(columns[i], n)
		}
	}
	args := []any{names}
	for _, c := range columns {
		args = append(args, c)
	}
	b.Queue(t.texts[addTallies], args...)
	t.queues = names
}

var readLengths = sql(`
select queue, sum(pending + claimed + dead)::bigint from tickonce.queue_tally where queue = any($1::text[]) group by queue`)

// lengths reads how many jobs the queues keep.
func (t *step) lengths(b *pgx.Batch, queues []string) map[string]int64 {
	lengths := make(map[string]int64)
	if len(queues) > 0 {
		each(b.Queue(t.texts[readLengths], queues), func(row pgx.CollectableRow) error {
			var queue string
			var n int64
			err := row.Scan(&queue, &n)
			lengths[queue] = n
			return err
		})
	}
	return lengths
}
