package pgengine

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

// scheduleColumns are the columns of a schedule s, in the order of scanSchedule.
const scheduleColumns = `s.id, s.rev, s.name, s.spec, s.queue, s.payload,
  s.visibility_ms, s.base_backoff_ms, s.max_attempts, s.expires_ms, s.window_ms, s.catch_up_max, s.newest,
  s.anchor, s.cursor, s.due_at, s.set_at, s.priority, s.paused, s.overlap, s.run_once, s.at_anchor,
  s.breaker, s.failures, s.hours_start, s.hours_end, s.hours_zone, s.timeout_ms, s.hold_reason, s.hold_since, s.hold_times`

// live counts the live jobs of a schedule s.
const live = `lateral (
  select count(*) filter (where j.state = 1)::integer as pending, count(*) filter (where j.state = 2)::integer as claimed
  from tickonce.job j where j.schedule = s.name and j.schedule <> '' and j.origin = 0 and j.state < 3) live`

// findFree finds the due rows that nobody has locked, and holds none of them, and
// readFree reads these, since who freezes in the middle of an answer that is long
// holds what the statement has locked.
var readSchedules, readDue, findFree, readFree = sql(`
select ` + scheduleColumns + `, live.pending, live.claimed
from (
  select * from tickonce.schedule where name >= $1 and convert_to(name, 'UTF8') >= $2 order by name limit $3
) s, ` + live + `
order by s.name`), sql(`
with clock as materialized (select tickonce.instant($1) as now)
select ` + scheduleColumns + `, live.pending, live.claimed, s.free
from (
  (select *, true as free from tickonce.schedule
    where due_at <= (select now from clock) and due_at < 9223372036854775807 order by due_at, name limit $2)
  union all
  (select *, false from tickonce.schedule
    where due_at > (select now from clock) and due_at < 9223372036854775807 order by due_at, name limit 1)
  order by due_at, name limit $2
) s, ` + live + `
order by s.due_at, s.name`), sql(`
with clock as materialized (select tickonce.instant($1) as now)
select id from tickonce.schedule
where due_at <= (select now from clock) and due_at < 9223372036854775807 order by due_at, name limit $2 for no key update skip locked`), sql(`
with clock as materialized (select tickonce.instant($1) as now),
free as materialized (
  select * from tickonce.schedule where id = any($3::bigint[]) and due_at <= (select now from clock)
)
select ` + scheduleColumns + `, live.pending, live.claimed, s.free
from (
  (select *, true as free from free)
  union all
  (select *, false from tickonce.schedule
    where due_at < 9223372036854775807 and id <> all(array(select id from free)) order by due_at, name limit 1)
  order by free desc, due_at, name limit $2
) s, ` + live + `
order by s.free desc, s.due_at, s.name`)

// scanSchedule reads the columns of a schedule and what follows them.
func scanSchedule(row pgx.CollectableRow, s *store.Schedule, more ...any) error {
	var (
		hoursStart, hoursEnd *uint16
		zone                 *string
		timeoutMS            *int64
		reason               *string
		since                *store.Instant
		times                *int32
	)
	*s = store.Schedule{}
	err := row.Scan(append([]any{
		&s.ID, &s.Rev, &s.Name, &s.Spec, &s.Queue, &s.Payload,
		&s.Stamps.VisibilityMS, &s.Stamps.BaseBackoffMS, &s.Stamps.MaxAttempts, &s.ExpiresMS,
		&s.CatchUp.WindowMS, &s.CatchUp.Max, &s.CatchUp.Newest,
		&s.Anchor, &s.Cursor, &s.DueAt, &s.SetAt, &s.Priority, &s.Paused, &s.Overlap, &s.RunOnce, &s.AtAnchor,
		&s.Breaker, &s.Failures, &hoursStart, &hoursEnd, &zone, &timeoutMS, &reason, &since, &times,
	}, more...)...)
	if timeoutMS != nil {
		s.Rare = &store.Rare{Hours: store.Hours{Start: *hoursStart, End: *hoursEnd, Zone: *zone}, TimeoutMS: *timeoutMS}
	}
	if reason != nil {
		s.Hold = &store.Hold{Reason: *reason, Since: *since, Times: *times}
	}
	return err
}

// scanCounted is scanSchedule where the counts of live jobs follow, and more.
func scanCounted(row pgx.CollectableRow, s *store.Schedule, more ...any) error {
	var live store.Live
	err := scanSchedule(row, s, append([]any{&live.Pending, &live.Claimed}, more...)...)
	s.Live = live
	return err
}

// Schedules implements [store.Store].
func (s *Store) Schedules(ctx context.Context, name string, dst []store.Schedule) (n int, now store.Instant, err error) {
	text, bytes := from(name)
	now, err = s.read(ctx, readSchedules, []any{text, bytes, len(dst)}, func(row pgx.CollectableRow) error {
		n++
		return scanCounted(row, &dst[n-1])
	})
	return n, now, err
}

// Due implements [store.Store]. It reads one row more than dst holds of those that
// are due, or the first of the others: the first that it does not answer says when
// to look again. After a tick that passed over rows, it leaves out those that
// somebody else has locked, as long as there are some, so that they keep no other
// from being fired.
func (s *Store) Due(ctx context.Context, dst []store.Schedule) (due store.Due, err error) {
	given, err := s.reading(ctx)
	if err != nil {
		return due, err
	}
	q, args := readDue, []any{given, len(dst) + 1}
	if s.passed.Load() {
		free := []int64{}
		err := s.one(ctx, findFree, args, func(row pgx.CollectableRow) error {
			free = append(free, 0)
			return row.Scan(&free[len(free)-1])
		})
		if err != nil {
			return due, err
		}
		q, args = readFree, append(args, free)
	}
	var next store.Schedule
	var left bool // next is not one that is free
	due.Next = store.None
	due.Now, err = s.readAt(ctx, given, q, args, func(row pgx.CollectableRow) error {
		var read store.Schedule
		var free bool
		err := scanCounted(row, &read, &free)
		if free && due.N < len(dst) {
			dst[due.N] = read
			due.N++
		} else {
			next, left, due.Next = read, !free, read.DueAt
		}
		return err
	})
	if err != nil {
		return store.Due{}, err
	}
	if q == readFree && !(left && next.DueAt <= due.Now) {
		s.passed.Store(false)
	}
	for due.N > 0 && dst[due.N-1].DueAt > due.Now {
		due.N--
		due.Next = dst[due.N].DueAt
		dst[due.N] = store.Schedule{}
	}
	return due, nil
}

// scheduleRows are the columns of schedules to be written.
type scheduleRows struct {
	id, rev                      []int64
	name, spec, queue            []string
	payload                      [][]byte
	visibilityMS                 []int64
	baseBackoffMS, maxAttempts   []int32
	expiresMS, windowMS          []int64
	catchUpMax                   []int32
	newest                       []bool
	anchor, cursor, dueAt, setAt []int64
	priority, paused, overlap    []int16
	runOnce, atAnchor            []bool
	breaker, failures            []int16
	hoursStart, hoursEnd         []*int32
	hoursZone                    []*string
	timeoutMS                    []*int64
	holdReason                   []*string
	holdSince                    []*int64
	holdTimes                    []*int32
}

func (c *scheduleRows) add(s *store.Schedule) {
	c.id = append(c.id, int64(s.ID))
	c.rev = append(c.rev, int64(s.Rev))
	c.name = append(c.name, s.Name)
	c.spec = append(c.spec, s.Spec)
	c.queue = append(c.queue, s.Queue)
	c.payload = append(c.payload, orNil(s.Payload))
	c.visibilityMS = append(c.visibilityMS, s.Stamps.VisibilityMS)
	c.baseBackoffMS = append(c.baseBackoffMS, s.Stamps.BaseBackoffMS)
	c.maxAttempts = append(c.maxAttempts, s.Stamps.MaxAttempts)
	c.expiresMS = append(c.expiresMS, s.ExpiresMS)
	c.windowMS = append(c.windowMS, s.CatchUp.WindowMS)
	c.catchUpMax = append(c.catchUpMax, s.CatchUp.Max)
	c.newest = append(c.newest, s.CatchUp.Newest)
	c.anchor = append(c.anchor, int64(s.Anchor))
	c.cursor = append(c.cursor, int64(s.Cursor))
	c.dueAt = append(c.dueAt, int64(s.DueAt))
	c.setAt = append(c.setAt, int64(s.SetAt))
	c.priority = append(c.priority, s.Priority)
	c.paused = append(c.paused, int16(s.Paused))
	c.overlap = append(c.overlap, int16(s.Overlap))
	c.runOnce = append(c.runOnce, s.RunOnce)
	c.atAnchor = append(c.atAnchor, s.AtAnchor)
	c.breaker = append(c.breaker, int16(s.Breaker))
	c.failures = append(c.failures, int16(s.Failures))
	var (
		start, end *int32
		zone       *string
		timeoutMS  *int64
	)
	if r := s.Rare; r != nil {
		start, end, zone, timeoutMS = new(int32(r.Hours.Start)), new(int32(r.Hours.End)), &r.Hours.Zone, &r.TimeoutMS
	}
	c.hoursStart = append(c.hoursStart, start)
	c.hoursEnd = append(c.hoursEnd, end)
	c.hoursZone = append(c.hoursZone, zone)
	c.timeoutMS = append(c.timeoutMS, timeoutMS)
	reason, since, times := hold(s.Hold)
	c.holdReason = append(c.holdReason, reason)
	c.holdSince = append(c.holdSince, since)
	c.holdTimes = append(c.holdTimes, times)
}

// hold are the columns of a quarantine mark.
func hold(h *store.Hold) (reason *string, since *int64, times *int32) {
	if h == nil {
		return nil, nil, nil
	}
	return &h.Reason, new(int64(h.Since)), &h.Times
}

func (c *scheduleRows) args() []any {
	return []any{
		c.id, c.rev, c.name, c.spec, c.queue, c.payload, c.visibilityMS, c.baseBackoffMS, c.maxAttempts,
		c.expiresMS, c.windowMS, c.catchUpMax, c.newest, c.anchor, c.cursor, c.dueAt, c.setAt,
		c.priority, c.paused, c.overlap, c.runOnce, c.atAnchor, c.breaker, c.failures,
		c.hoursStart, c.hoursEnd, c.hoursZone, c.timeoutMS, c.holdReason, c.holdSince, c.holdTimes,
	}
}

// scheduleValues are the rows of scheduleRows, in their order.
const scheduleValues = `unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bytea[],
    $7::bigint[], $8::integer[], $9::integer[], $10::bigint[], $11::bigint[], $12::integer[], $13::boolean[],
    $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[],
    $18::smallint[], $19::smallint[], $20::smallint[], $21::boolean[], $22::boolean[], $23::smallint[], $24::smallint[],
    $25::integer[], $26::integer[], $27::text[], $28::bigint[], $29::text[], $30::bigint[], $31::integer[])
  with ordinality s(id, rev, name, spec, queue, payload,
    visibility_ms, base_backoff_ms, max_attempts, expires_ms, window_ms, catch_up_max, newest,
    anchor, cursor, due_at, set_at, priority, paused, overlap, run_once, at_anchor, breaker, failures,
    hours_start, hours_end, hours_zone, timeout_ms, hold_reason, hold_since, hold_times, ix)`

// scheduleSet are the columns that a write may change.
const scheduleSet = `rev, name, spec, queue, payload,
  visibility_ms, base_backoff_ms, max_attempts, expires_ms, window_ms, catch_up_max, newest,
  anchor, cursor, due_at, set_at, priority, paused, overlap, run_once, at_anchor,
  breaker, failures, hours_start, hours_end, hours_zone, timeout_ms, hold_reason, hold_since, hold_times`

// The ids of new rows rise in their order, and are answered in it.
var insertSchedules, updateSchedules = sql(`
insert into tickonce.schedule (` + scheduleSet + `)
select ` + scheduleSet + ` from ` + scheduleValues + ` order by ix
returning id`), sql(`
update tickonce.schedule r set (` + scheduleSet + `) = (
  s.rev, s.name, s.spec, s.queue, s.payload,
  s.visibility_ms, s.base_backoff_ms, s.max_attempts, s.expires_ms, s.window_ms, s.catch_up_max, s.newest,
  s.anchor, s.cursor, s.due_at, s.set_at, s.priority, s.paused, s.overlap, s.run_once, s.at_anchor,
  s.breaker, s.failures, s.hours_start, s.hours_end, s.hours_zone, s.timeout_ms, s.hold_reason, s.hold_since, s.hold_times)
from ` + scheduleValues + ` where r.id = s.id`)

func orNil(payload []byte) []byte {
	if len(payload) == 0 {
		return nil
	}
	return payload
}
