package storetest

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/tickonce/tickonce/store"
)

// Naive is a [store.Store] that keeps its rows in plain slices and scans them
// at every call: slow, and by reading alone seen to be right. It is the
// reference of models and comparisons. It is safe for concurrent use.
type Naive struct {
	now    func() store.Instant
	limits store.Limits

	mu   sync.Mutex
	rows table
}

// table is all that the store knows. A copy by clone shares nothing that is
// ever changed.
type table struct {
	schedules []store.Schedule // by name
	jobs      []store.Job      // by id
	queues    []store.Queue    // by name; what can be counted is counted at a read
	leases    []store.Lease
	runs      history[store.Run]
	skips     history[store.SkipRange]

	lastSchedule store.ScheduleID
	lastJob      store.JobID
	lastTerm     store.Term
}

// NewNaive returns an empty store that reads its clock from now. Zero limits
// are the defaults.
func NewNaive(now func() store.Instant, limits store.Limits) *Naive {
	s := &Naive{now: now, limits: limits.WithDefaults()}
	s.rows.runs.about, s.rows.skips.about = aboutRun, aboutSkip
	return s
}

var _ store.Store = (*Naive)(nil)

// step is the frame of every call: nothing if the context has ended, else one
// reading of the clock and f, with the rows to itself.
func (s *Naive) step(ctx context.Context, f func(now store.Instant, rows *table)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.now(), &s.rows)
	return nil
}

// Schedules implements [store.Store].
func (s *Naive) Schedules(ctx context.Context, from string, dst []store.Schedule) (n int, now store.Instant, err error) {
	err = s.step(ctx, func(at store.Instant, rows *table) {
		now = at
		for _, row := range rows.schedules {
			if row.Name >= from && n < len(dst) {
				dst[n] = rows.counted(row)
				n++
			}
		}
	})
	return n, now, err
}

// Jobs implements [store.Store].
func (s *Naive) Jobs(ctx context.Context, f store.Filter, dst []store.Job) (n int, now store.Instant, err error) {
	err = s.step(ctx, func(at store.Instant, rows *table) {
		now = at
		for _, j := range rows.jobs {
			if j.Queue == f.Queue && (f.State == 0 || j.State == f.State) && j.ID >= f.From && n < len(dst) {
				dst[n] = j
				n++
			}
		}
	})
	return n, now, err
}

// Queues implements [store.Store].
func (s *Naive) Queues(ctx context.Context, from string, dst []store.Queue) (n int, now store.Instant, err error) {
	err = s.step(ctx, func(at store.Instant, rows *table) {
		now = at
		for _, q := range rows.queues {
			if q.Name >= from && n < len(dst) {
				dst[n] = rows.count(q)
				n++
			}
		}
	})
	return n, now, err
}

// Due implements [store.Store].
func (s *Naive) Due(ctx context.Context, dst []store.Schedule) (due store.Due, err error) {
	err = s.step(ctx, func(now store.Instant, rows *table) {
		due = store.Due{Now: now, Next: store.None}
		inOrder := slices.Clone(rows.schedules)
		slices.SortFunc(inOrder, func(a, b store.Schedule) int {
			return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), cmp.Compare(a.Name, b.Name))
		})
		for _, row := range inOrder {
			if row.DueAt > now || due.N == len(dst) {
				due.Next = row.DueAt
				break
			}
			dst[due.N] = rows.counted(row)
			due.N++
		}
	})
	return due, err
}

// Advance implements [store.Store].
func (s *Naive) Advance(ctx context.Context, t *store.Tick) (held bool, err error) {
	err = s.step(ctx, func(now store.Instant, rows *table) {
		l := rows.lease(t.By.Lock)
		if held = l != nil && l.Live(now) && l.Owner == t.By.Owner && l.Term == t.By.Term; !held {
			return
		}
		for i := range t.Moves {
			t.Moves[i].Outcome = s.move(rows, &t.Moves[i], t.Moves[:i])
		}
		for i := range t.Fires {
			f := &t.Fires[i]
			f.Job = 0
			if m := t.Moves[f.Move]; m.Outcome == store.Moved {
				f.Job = rows.fire(rows.scheduleByID(m.ID), f.Boundary, t.Now, now)
			}
		}
		for _, skip := range t.Skips {
			if m := t.Moves[skip.Move]; m.Outcome == store.Moved {
				rows.skipped(&s.limits, rows.scheduleByID(m.ID).Name, m.ID, skip, now)
			}
		}
	})
	return held, err
}

// move judges and writes one move that comes after the moves before.
func (s *Naive) move(rows *table, m *store.Move, before []store.Move) store.Outcome {
	row := rows.scheduleByID(m.ID)
	if row == nil || row.Rev != m.Rev || row.Overlap != store.Allow && rows.live(row.Name) != m.Live {
		return store.Stale
	}
	length := rows.length(row.Queue) + int64(m.Fires)
	for _, b := range before {
		if b.Outcome == store.Moved && rows.scheduleByID(b.ID).Queue == row.Queue {
			length += int64(b.Fires)
		}
	}
	if m.Fires > 0 && length > s.limits.QueueLength {
		return store.Full
	}
	row.Cursor, row.DueAt, row.SetAt, row.Hold = m.Cursor, m.DueAt, m.SetAt, m.Hold
	if m.Ends {
		row.Paused = store.PausedByRunOnce
	}
	row.Rev++
	return store.Moved
}

// Claim implements [store.Store].
func (s *Naive) Claim(ctx context.Context, queue, worker string, dst []store.Job) (c store.Claim, err error) {
	err = s.step(ctx, func(now store.Instant, rows *table) {
		c.Now = now
		var doomed, ready []*store.Job
		for i := range rows.jobs {
			switch j := &rows.jobs[i]; {
			case j.Queue != queue:
			case j.DoomedAt() <= now:
				doomed = append(doomed, j)
			case j.ReadyAt() <= now:
				ready = append(ready, j)
			}
		}
		slices.SortFunc(doomed, func(a, b *store.Job) int {
			return cmp.Or(cmp.Compare(a.DoomedAt(), b.DoomedAt()), cmp.Compare(a.ID, b.ID))
		})
		slices.SortFunc(ready, func(a, b *store.Job) int {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.RunAt, b.RunAt), cmp.Compare(a.ID, b.ID))
		})
		for _, j := range doomed[:min(len(doomed), store.MaxBuried)] {
			rows.lost(&s.limits, *j, store.Dead, j.DoomText(now), now)
			rows.bury(j, j.DoomText(now), now)
			c.Buried++
			if j.LastError == store.ErrorExhausted {
				if failures := rows.ended(*j, true); failures > 0 {
					c.Tripped = append(c.Tripped, store.Trip{Schedule: j.Schedule, Failures: failures})
				}
			}
		}
		for _, j := range ready {
			if c.N == len(dst) {
				break
			}
			if rows.waits(j) {
				continue
			}
			rows.lost(&s.limits, *j, store.Claimed, "", now)
			j.State, j.Since = store.Claimed, now
			j.Worker = worker
			j.Deadline = now.Add(j.Stamps.VisibilityMS)
			j.Attempts++
			rows.queue(queue).Claims++
			dst[c.N] = *j
			c.N++
		}
	})
	return c, err
}

// Settle implements [store.Store].
func (s *Naive) Settle(ctx context.Context, settles []store.Settle, out []bool) (now store.Instant, err error) {
	err = s.step(ctx, func(at store.Instant, rows *table) {
		now = at
		for i, e := range settles {
			j := rows.job(e.Job)
			settles[i].Tripped = 0
			if out[i] = j != nil && j.Holds(e.Attempt, now); out[i] {
				rows.ran(&s.limits, *j, e.Execution(), e.To, e.Error, now)
				settles[i].Tripped = rows.settle(j, e, now)
			}
		}
	})
	return now, err
}

// Extend implements [store.Store].
func (s *Naive) Extend(ctx context.Context, extends []store.Extend, out []store.Instant) (now store.Instant, err error) {
	err = s.step(ctx, func(at store.Instant, rows *table) {
		now = at
		for i, e := range extends {
			out[i] = store.None
			if j := rows.job(e.Job); j != nil && j.Holds(e.Attempt, now) {
				j.Deadline = now.Add(e.ForMS)
				out[i] = j.Deadline
			}
		}
	})
	return now, err
}

// Acquire implements [store.Store].
func (s *Naive) Acquire(ctx context.Context, lock, owner string, ttlMS int64) (g store.Grant, err error) {
	err = s.step(ctx, func(now store.Instant, rows *table) {
		rows.leases = slices.DeleteFunc(rows.leases, func(l store.Lease) bool { return l.ExpiresAt <= now })
		l := rows.lease(lock)
		if l != nil && l.Live(now) {
			g = store.Grant{OK: l.Owner == owner, Lease: *l, Now: now}
			return
		}
		if l == nil {
			rows.leases = append(rows.leases, store.Lease{Lock: lock})
			l = rows.lease(lock)
		}
		rows.lastTerm++
		*l = store.Lease{Lock: lock, Owner: owner, Term: rows.lastTerm, TTLMS: ttlMS, ExpiresAt: now.Add(ttlMS)}
		g = store.Grant{OK: true, Lease: *l, Now: now}
	})
	return g, err
}

// Renew implements [store.Store].
func (s *Naive) Renew(ctx context.Context, l store.Lease, ttlMS int64) (g store.Grant, err error) {
	err = s.step(ctx, func(now store.Instant, rows *table) {
		g.Now = now
		row := rows.lease(l.Lock)
		if row == nil || !row.Live(now) {
			return
		}
		if g.OK = row.Owner == l.Owner && row.Term == l.Term; g.OK {
			row.TTLMS, row.ExpiresAt = ttlMS, now.Add(ttlMS)
		}
		g.Lease = *row
	})
	return g, err
}

// Release implements [store.Store].
func (s *Naive) Release(ctx context.Context, l store.Lease) (released bool, err error) {
	err = s.step(ctx, func(_ store.Instant, rows *table) {
		before := len(rows.leases)
		rows.leases = slices.DeleteFunc(rows.leases, func(row store.Lease) bool {
			return row.Lock == l.Lock && row.Owner == l.Owner && row.Term == l.Term
		})
		released = len(rows.leases) < before
	})
	return released, err
}
