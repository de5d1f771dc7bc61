package pgengine

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

// leaseLives is Lease.Live of package store, for a lease l and a now.
const leaseLives = `now < l.expires_at and l.expires_at <= tickonce.later(tickonce.later(now, l.ttl_ms), 1000)`

// The term is the column's default, drawn only where the lock seems to be free.
// Where another was granted it at the same time there is no row.
var acquire = sql(`
with clock as materialized (select tickonce.instant($1) as now),
gone as (
  delete from tickonce.lease where lock in (
    select l.lock from tickonce.lease l, clock where l.expires_at <= now and l.lock <> $2 for update of l skip locked)
),
granted as (
  insert into tickonce.lease as l (lock, owner, ttl_ms, expires_at)
  select $2, $3, $4, tickonce.later(now, $4) from clock
  where not exists (select from tickonce.lease l where l.lock = $2 and ` + leaseLives + `)
  on conflict (lock) do update set owner = excluded.owner, term = excluded.term, ttl_ms = excluded.ttl_ms, expires_at = excluded.expires_at
  where not (select ` + leaseLives + ` from clock)
  returning l.*
)
select now, l.owner, l.term, l.ttl_ms, l.expires_at from clock, granted l
union all
select now, l.owner, l.term, l.ttl_ms, l.expires_at from clock, tickonce.lease l
where l.lock = $2 and not exists (select from granted) and ` + leaseLives)

// Acquire implements [store.Store].
func (s *Store) Acquire(ctx context.Context, lock, owner string, ttlMS int64) (g store.Grant, err error) {
	given, err := s.reading(ctx)
	if err != nil {
		return g, err
	}
	for found := false; !found && err == nil; {
		err = s.one(ctx, acquire, []any{given, lock, owner, ttlMS}, func(row pgx.CollectableRow) error {
			found, g.Lease.Lock = true, lock
			return row.Scan(&g.Now, &g.Lease.Owner, &g.Lease.Term, &g.Lease.TTLMS, &g.Lease.ExpiresAt)
		})
		g.OK = found && g.Lease.Owner == owner
	}
	if err != nil {
		return store.Grant{}, err
	}
	return g, nil
}

var renew = sql(`
with clock as materialized (select tickonce.instant($1) as now),
renewed as (
  update tickonce.lease l set ttl_ms = $5, expires_at = tickonce.later(now, $5) from clock
  where l.lock = $2 and l.owner = $3 and l.term = $4 and ` + leaseLives + `
  returning l.*
),
found as (
  select true as ok, l.* from renewed l
  union all
  select false, l.* from tickonce.lease l, clock where l.lock = $2 and not exists (select from renewed) and ` + leaseLives + `
)
select now, coalesce(ok, false), coalesce(lock, ''), coalesce(owner, ''), coalesce(term, 0), coalesce(ttl_ms, 0), coalesce(expires_at, 0)
from clock left join found on true`)

// Renew implements [store.Store].
func (s *Store) Renew(ctx context.Context, l store.Lease, ttlMS int64) (g store.Grant, err error) {
	given, err := s.reading(ctx)
	if err != nil {
		return g, err
	}
	err = s.one(ctx, renew, []any{given, l.Lock, l.Owner, int64(l.Term), ttlMS}, func(row pgx.CollectableRow) error {
		return row.Scan(&g.Now, &g.OK, &g.Lease.Lock, &g.Lease.Owner, &g.Lease.Term, &g.Lease.TTLMS, &g.Lease.ExpiresAt)
	})
	if err != nil {
		return store.Grant{}, err
	}
	return g, nil
}

var release = sql(`delete from tickonce.lease where lock = $1 and owner = $2 and term = $3 returning true`)

// Release implements [store.Store].
func (s *Store) Release(ctx context.Context, l store.Lease) (released bool, err error) {
	if _, err := s.reading(ctx); err != nil {
		return false, err
	}
	err = s.one(ctx, release, []any{l.Lock, l.Owner, int64(l.Term)}, func(row pgx.CollectableRow) error {
		return row.Scan(&released)
	})
	return released, err
}
