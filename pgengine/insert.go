package pgengine

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

// insertAll inserts jobs in one statement, by the rules of Insert.Job of package
// store. It does nothing, and says so, where a queue has no room for all, or a
// key is there already.
var insertAll = sql(`
with clock as materialized (select tickonce.instant($1) as now),
v as materialized (
  select *, tickonce.later(now, delay_ms) as delayed
  from clock, unnest($2::text[], $3::bytea[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::integer[],
      $11::integer[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::smallint[], $17::boolean[])
    with ordinality v(queue, payload, key, schedule, schedule_id, fire_at, origin, visibility_ms, base_backoff_ms,
      max_attempts, timeout_ms, delay_ms, run_at, expires_ms, priority, alone, ix)
),
hard as materialized (
  select exists (
    select from v join tickonce.job j on j.queue = v.queue and j.key = v.key where v.key <> '' and j.key <> '' and j.state < 3
  ) or exists (
    select from (select queue, count(*) as n from v group by queue) q
    where q.n + (select coalesce(sum(t.pending + t.claimed + t.dead), 0) from tickonce.queue_tally t where t.queue = q.queue) > $18
  ) as hard
),
ready as materialized (
  select *, case when run_at = 9223372036854775807 then delayed else greatest(run_at, now) end as ready_at from v where not (select hard from hard)
),
added as (
  insert into tickonce.job (queue, payload, key, schedule, schedule_id, fire_at, origin, visibility_ms, base_backoff_ms,
    max_attempts, timeout_ms, enqueued_at, run_at, expires_at, priority, alone)
  select queue, payload, key, schedule, schedule_id, fire_at, origin, visibility_ms, base_backoff_ms,
    max_attempts, timeout_ms, now, ready_at, case when expires_ms = 0 then 9223372036854775807 else tickonce.later(ready_at, expires_ms) end,
    priority, alone
  from ready order by ix
  returning id, queue
),
tally as (insert into tickonce.queue_tally (queue, pending) select queue, count(*) from added group by queue)
select now, (select hard from hard), array(select id from added order by id), array(select distinct queue from added) from clock`)

// insert makes a batch of nothing but inserts, and reports whether it is not one
// that is made at once.
func (s *Store) insert(ctx context.Context, given *int64, b *store.Batch) (c store.Committed, hard bool, err error) {
	if len(b.Inserts) == 0 || len(b.Guards)+len(b.Puts)+len(b.Removes)+len(b.Settles)+len(b.Cancels)+len(b.Requeues)+len(b.Purges) > 0 {
		return c, true, nil
	}
	var rows jobRows
	expiresMS := make([]int64, len(b.Inserts))
	keys, bytes := make(map[liveKey]bool), 0
	for i := range b.Inserts {
		in := &b.Inserts[i]
		key := liveKey{in.Queue, in.Key}
		bytes += len(in.Payload)
		if bytes > chunkBytes || in.Key != "" && (keys[key] || s.unfolded == nil) {
			return c, true, nil // where somebody inserts the same key, a step of another's transaction can be made again
		}
		keys[key] = true
		j := in.Job(0)
		j.EnqueuedAt, j.RunAt, expiresMS[i] = store.Instant(in.DelayMS), in.RunAt, in.ExpiresMS
		rows.add(&j)
	}
	args := append([]any{given}, rows.args()...)
	args[14] = expiresMS // in the place of the instant
	var ids []int64
	var queues []string
	err = s.call(ctx, func(ctx context.Context) error {
		ask := func() error {
			return s.ask(ctx, insertAll, append(args, s.limits.QueueLength), func(row pgx.CollectableRow) error {
				return row.Scan(&c.Now, &hard, &ids, &queues)
			})
		}
		if s.unfolded == nil {
			return ask() // an error has undone another's transaction
		}
		return again(ask)
	})
	if err != nil || hard {
		return store.Committed{}, hard, err
	}
	for _, id := range ids {
		c.Inserts = append(c.Inserts, store.Inserted{Job: store.JobID(id)})
	}
	s.fold(ctx, queues)
	return c, false, s.wrote(ctx, false, queues)
}
