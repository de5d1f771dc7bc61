package store

import (
	"context"
	"errors"
)

// ErrPermanent is matched by a store's error if the same call is bound to fail
// likewise until somebody has changed something outside, such as a privilege. A
// runner does not try such a call again (R2).
var ErrPermanent = errors.New("permanent error of the store")

// Store keeps the rows of the engine. The package comment has the rules that
// hold for every method; a comment here adds what is special to one.
type Store interface {
	// Schedules reads schedules in name order, from the name from on
	// (inclusive).
	Schedules(ctx context.Context, from string, dst []Schedule) (n int, now Instant, err error)

	// Jobs reads jobs in id order.
	Jobs(ctx context.Context, f Filter, dst []Job) (n int, now Instant, err error)

	// Queues reads the queues that ever had a job in name order, from the
	// name from on (inclusive).
	Queues(ctx context.Context, from string, dst []Queue) (n int, now Instant, err error)

	// Runs reads the runs that the history of a schedule's name keeps, newest
	// first (X11). A run is recorded by the call that ends it, for a job that
	// counts while there is a schedule of its name: by its settle; as lost by
	// the [Store.Claim] that hands the job out anew or buries it; as cancelled
	// by the cancel of its job or, if its claim had lapsed by then, as lost.
	Runs(ctx context.Context, p Page, dst []Run) (History, error)

	// Skips reads the skip ranges that the history of a schedule's name keeps,
	// newest first (X12). A skip is recorded by the call whose move or put is
	// written; the newest range of the name takes it in if it can, see
	// [SkipRange.TakeIn].
	Skips(ctx context.Context, p Page, dst []SkipRange) (History, error)

	// Due reads the schedules with DueAt ≤ now in (DueAt, Name) order, as many
	// as dst holds. It takes no lock that outlives the call.
	Due(ctx context.Context, dst []Schedule) (Due, error)

	// Advance writes one tick if the lease t.By is live, that is if the lock
	// is held with this owner and term (L6); otherwise it writes nothing and
	// answers held = false.
	//
	// Moves are judged one by one, in their order: one whose row is gone, has
	// another rev or, with an Overlap that is not [Allow], other live jobs, is
	// Stale; one whose queue has no room for its fires, counting those of the
	// moves before it, is Full; both leave their row as it is, and so does one
	// that the store cannot write, which is Refused. Every other
	// move writes cursor, due-at, set-at, hold and its end, raises the rev, and
	// inserts one pending job for each of its fires, which takes queue,
	// payload, stamps, timeout, priority and expiry from the row, is alone
	// unless the row's overlap is [Allow], and has one attempt if the row is
	// run-once (X8). The jobs of all moves are inserted in the order of
	// t.Fires, with RunAt t.Now. Advance sets Outcome in every move and Job in
	// every fire.
	Advance(ctx context.Context, t *Tick) (held bool, err error)

	// Claim first moves doomed jobs of the queue to dead, at most [MaxBuried]
	// of them, in (DoomedAt, id) order; then hands out jobs whose ReadyAt has
	// come and that are not doomed, in (priority descending, run-at, id)
	// order, as many as dst holds (QU1), but for a job that is Alone while
	// another job that counts for its schedule's name is claimed, by this call
	// or before (X9). Each is written as claimed by the worker with its
	// visibility's deadline and one attempt more, and answered as written
	// (QU2). With an empty dst it only buries. The burial of an exhausted job
	// that counts is its failed end, see [Schedule.Ended].
	Claim(ctx context.Context, queue, worker string, dst []Job) (Claim, error)

	// Settle ends claims one by one and sets out[i] to whether s[i] held its
	// claim. A job settled to pending keeps its attempts and is ready at
	// now + DelayMS. The end of a job that counts, done or dead, is told to
	// the row of its ScheduleID, if there is one, see [Schedule.Ended].
	Settle(ctx context.Context, s []Settle, out []bool) (now Instant, err error)

	// Extend renews claims one by one and sets out[i] to the new deadline, or
	// to None where e[i] does not hold its claim.
	Extend(ctx context.Context, e []Extend, out []Instant) (now Instant, err error)

	// Acquire grants the lock if no lease of it is live: with a new term and
	// an expiry of now + ttlMS. To the owner of the live lease it grants that
	// lease, unchanged (LK2). Every call drops the leases of all locks whose
	// ExpiresAt has come, so that an abandoned lock leaves no row behind.
	Acquire(ctx context.Context, lock, owner string, ttlMS int64) (Grant, error)

	// Renew sets the expiry of the lease to now + ttlMS if l is the live lease
	// of its lock, by owner and term (LK3).
	Renew(ctx context.Context, l Lease, ttlMS int64) (Grant, error)

	// Release removes the lease if owner and term match, live or not, and
	// answers whether it did (LK4).
	Release(ctx context.Context, l Lease) (bool, error)

	// Commit writes a whole batch or, if any of its elements is refused,
	// nothing of it.
	Commit(ctx context.Context, b *Batch) (Committed, error)
}

// Limits are what a store refuses to exceed. A store is made with them.
type Limits struct {
	QueueLength int64 // jobs that one queue keeps, dead ones included
	Schedules   int64

	// Of the history: runs and skip ranges that are kept of one name, and of
	// all, of each of the two kinds; see [Run.Weight].
	Runs, Skips int64
	History     int64
}

// The default limits.
const (
	DefaultQueueLength = 1_000_000
	DefaultSchedules   = 1 << 20
	DefaultRuns        = 64
	DefaultSkips       = 64
	DefaultHistory     = 1_000_000
)

// WithDefaults returns l with the defaults in the place of zeros.
func (l Limits) WithDefaults() Limits {
	for _, d := range [...]struct {
		limit     *int64
		byDefault int64
	}{
		{&l.QueueLength, DefaultQueueLength},
		{&l.Schedules, DefaultSchedules},
		{&l.Runs, DefaultRuns},
		{&l.Skips, DefaultSkips},
		{&l.History, DefaultHistory},
	} {
		if *d.limit == 0 {
			*d.limit = d.byDefault
		}
	}
	return l
}
