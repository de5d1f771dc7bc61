package sim

import (
	"context"

	"github.com/tickonce/tickonce/store"
)

// liar is a store that lies where it has a function for it, each of which gets
// the honest store.
type liar struct {
	store.Store
	schedules func(store.Store, string, []store.Schedule) (int, store.Instant, error)
	jobs      func(store.Store, store.Filter, []store.Job) (int, store.Instant, error)
	queues    func(store.Store, string, []store.Queue) (int, store.Instant, error)
	due       func(store.Store, []store.Schedule) (store.Due, error)
	advance   func(store.Store, *store.Tick) (bool, error)
	claim     func(store.Store, string, []store.Job) (store.Claim, error)
	settle    func(store.Store, []store.Settle, []bool) (store.Instant, error)
	extend    func(store.Store, []store.Extend, []store.Instant) (store.Instant, error)
	acquire   func(store.Store, string, string, int64) (store.Grant, error)
	renew     func(store.Store, store.Lease, int64) (store.Grant, error)
	release   func(store.Store, store.Lease) (bool, error)
	commit    func(store.Store, *store.Batch) (store.Committed, error)
	runs      func(store.Store, store.Page, []store.Run) (store.History, error)
	skips     func(store.Store, store.Page, []store.SkipRange) (store.History, error)
}

func (l liar) Runs(ctx context.Context, p store.Page, dst []store.Run) (store.History, error) {
	if l.runs != nil {
		return l.runs(l.Store, p, dst)
	}
	return l.Store.Runs(ctx, p, dst)
}

func (l liar) Skips(ctx context.Context, p store.Page, dst []store.SkipRange) (store.History, error) {
	if l.skips != nil {
		return l.skips(l.Store, p, dst)
	}
	return l.Store.Skips(ctx, p, dst)
}

func (l liar) Schedules(ctx context.Context, from string, dst []store.Schedule) (int, store.Instant, error) {
	if l.schedules != nil {
		return l.schedules(l.Store, from, dst)
	}
	return l.Store.Schedules(ctx, from, dst)
}

func (l liar) Jobs(ctx context.Context, f store.Filter, dst []store.Job) (int, store.Instant, error) {
	if l.jobs != nil {
		return l.jobs(l.Store, f, dst)
	}
	return l.Store.Jobs(ctx, f, dst)
}

func (l liar) Queues(ctx context.Context, from string, dst []store.Queue) (int, store.Instant, error) {
	if l.queues != nil {
		return l.queues(l.Store, from, dst)
	}
	return l.Store.Queues(ctx, from, dst)
}

func (l liar) Due(ctx context.Context, dst []store.Schedule) (store.Due, error) {
	if l.due != nil {
		return l.due(l.Store, dst)
	}
	return l.Store.Due(ctx, dst)
}

func (l liar) Advance(ctx context.Context, t *store.Tick) (bool, error) {
	if l.advance != nil {
		return l.advance(l.Store, t)
	}
	return l.Store.Advance(ctx, t)
}

func (l liar) Claim(ctx context.Context, queue, worker string, dst []store.Job) (store.Claim, error) {
	if l.claim != nil {
		return l.claim(l.Store, queue, dst)
	}
	return l.Store.Claim(ctx, queue, worker, dst)
}

func (l liar) Settle(ctx context.Context, s []store.Settle, out []bool) (store.Instant, error) {
	if l.settle != nil {
		return l.settle(l.Store, s, out)
	}
	return l.Store.Settle(ctx, s, out)
}

func (l liar) Extend(ctx context.Context, e []store.Extend, out []store.Instant) (store.Instant, error) {
	if l.extend != nil {
		return l.extend(l.Store, e, out)
	}
	return l.Store.Extend(ctx, e, out)
}

func (l liar) Acquire(ctx context.Context, lock, owner string, ttlMS int64) (store.Grant, error) {
	if l.acquire != nil {
		return l.acquire(l.Store, lock, owner, ttlMS)
	}
	return l.Store.Acquire(ctx, lock, owner, ttlMS)
}

func (l liar) Renew(ctx context.Context, lease store.Lease, ttlMS int64) (store.Grant, error) {
	if l.renew != nil {
		return l.renew(l.Store, lease, ttlMS)
	}
	return l.Store.Renew(ctx, lease, ttlMS)
}

func (l liar) Release(ctx context.Context, lease store.Lease) (bool, error) {
	if l.release != nil {
		return l.release(l.Store, lease)
	}
	return l.Store.Release(ctx, lease)
}

func (l liar) Commit(ctx context.Context, b *store.Batch) (store.Committed, error) {
	if l.commit != nil {
		return l.commit(l.Store, b)
	}
	return l.Store.Commit(ctx, b)
}

// tick is a liar that changes a tick before it is written.
func tick(change func(*store.Tick)) liar {
	return liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
		if len(t.Fires) > 0 {
			change(t)
		}
		return s.Advance(ctx, t)
	}}
}

// oneTooMany is a liar that has a 65th boundary fire.
var oneTooMany = tick(func(t *store.Tick) {
	for i := len(t.Fires) - 1; i >= 0; i-- {
		if last := t.Fires[i]; t.Moves[last.Move].Fires == 64 {
			last.Boundary += minuteMS
			t.Fires = append(t.Fires, last)
			t.Moves[last.Move].Fires++
		}
	}
})

// claim is a liar that changes a job after it was claimed.
func claim(change func(*store.Job)) liar {
	return liar{claim: func(s store.Store, queue string, dst []store.Job) (store.Claim, error) {
		c, err := s.Claim(ctx, queue, "liar", dst)
		if c.N > 0 {
			change(&dst[0])
		}
		return c, err
	}}
}

// secondJob is a liar that hands out the second job in line, where there are two.
func secondJob() liar {
	return liar{claim: func(s store.Store, queue string, dst []store.Job) (store.Claim, error) {
		var two [2]store.Job
		c, err := s.Claim(ctx, queue, "liar", two[:])
		if c.N > 0 {
			dst[0] = two[c.N-1]
			c.N = 1
		}
		return c, err
	}}
}

// dead is a liar that changes the dead jobs that are listed.
func dead(change func(*store.Job)) liar {
	return liar{jobs: func(s store.Store, f store.Filter, dst []store.Job) (int, store.Instant, error) {
		n, now, err := s.Jobs(ctx, f, dst)
		for i := range dst[:n] {
			if dst[i].State == store.Dead {
				change(&dst[i])
			}
		}
		return n, now, err
	}}
}

// settle is a liar that changes how a job ends.
func settle(change func(*store.Settle)) liar {
	return liar{settle: func(s store.Store, settles []store.Settle, out []bool) (store.Instant, error) {
		for i := range settles {
			change(&settles[i])
		}
		return s.Settle(ctx, settles, out)
	}}
}

// listed is a liar that changes the schedules that are listed.
func listed(change func(row *store.Schedule, now store.Instant)) liar {
	return liar{schedules: func(s store.Store, from string, dst []store.Schedule) (int, store.Instant, error) {
		n, now, err := s.Schedules(ctx, from, dst)
		for i := range dst[:n] {
			change(&dst[i], now)
		}
		return n, now, err
	}}
}

// dueRows is a liar that changes the first of the schedules that are due.
func dueRows(change func(*store.Schedule)) liar {
	return liar{due: func(s store.Store, dst []store.Schedule) (store.Due, error) {
		due, err := s.Due(ctx, dst)
		if due.N > 0 {
			change(&dst[0])
		}
		return due, err
	}}
}

// put is a liar that changes a schedule before it is written.
func put(change func(*store.Schedule)) liar {
	return liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
		for i := range b.Puts {
			change(&b.Puts[i].Row)
		}
		return s.Commit(ctx, b)
	}}
}

// written is a liar that changes a schedule after it was written.
func written(change func(*store.Schedule)) liar {
	return liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
		done, err := s.Commit(ctx, b)
		for i := range done.Puts {
			change(&done.Puts[i])
		}
		return done, err
	}}
}

// changed is a liar that makes every registration write.
var changed = liar{schedules: func(s store.Store, from string, dst []store.Schedule) (int, store.Instant, error) {
	n, now, err := s.Schedules(ctx, from, dst)
	for i := range dst[:n] {
		dst[i].Payload = []byte("is not this")
	}
	return n, now, err
}}

func granted(l store.Lease, now store.Instant) store.Grant {
	l.ExpiresAt = now.Add(l.TTLMS)
	return store.Grant{OK: true, Lease: l, Now: now}
}

func shownBy(s store.Store) store.Instant {
	_, now, _ := s.Schedules(ctx, "", nil)
	return now
}

// The scenarios in which lies are told, and in which the honest store passes.
const (
	calmHour = `simulate v1
engine standby=yes
run 2h
schedule a every=1m queue=q handler=ok:1s
schedule b every=1m queue=q handler=ok:1s
`
	oneByOne = `simulate v1
engine standby=yes batch=1
run 1h
schedule a every=1m queue=q
schedule b every=1m queue=q
`
	fullQueue = `simulate v1
engine standby=yes queue-limit=1
run 1h
schedule a every=1m queue=q handler=ok:90s
`
	downFor90m = `simulate v1
engine standby=yes
run 4h
schedule a every=1m queue=q
schedule b every=7m queue=q catch-up=latest
at 30m down for=90m30s
`
	lapsedLease = `simulate v1
engine standby=yes
run 1h
schedule a every=1m queue=q
at 10m30s clock-jump by=+5m
`
	expiringJobs = `simulate v1
engine standby=yes
run 2h
schedule a every=1m queue=q expires=1m handler=ok:90s
`
	twoQueues = `simulate v1
engine standby=yes
run 1h
schedule a every=1m queue=q handler=ok:1s
schedule b every=1m queue=r handler=ok:1s
`
	jobsOfAllStates = `simulate v1
engine standby=yes
run 2h
schedule a every=10m queue=q handler=fail attempts=1
schedule b every=10m queue=q handler=slow heartbeat=1h
`
	failingJobs = `simulate v1
engine standby=yes
run 2h
schedule a every=1h queue=q handler=fail attempts=2 backoff=2m
`
	slowJobs = `simulate v1
engine standby=yes
run 2h
queue q workers=2
schedule a every=1h queue=q handler=slow visibility=1m heartbeat=1h
`
	panickingJobs = `simulate v1
engine standby=yes
run 2h
schedule a every=1m queue=q handler=panic:100%:50s..50s visibility=10s
`
	beatenJobs = `simulate v1
engine standby=yes
run 2h
schedule a every=1h queue=q handler=slow visibility=1m heartbeat=70s
`
	transactions = `simulate v1
engine standby=yes
run 2h
schedule a every=1m queue=q handler=ok:1s visibility=10m attempts=9 backoff=1s
during 10m..20m handler spawning tx=yes jobs=2
during 14m..16m store slow op=commit takes=65s late=request
`
	pausedHour = `simulate v1
engine standby=yes
run 1h
schedule a every=1m queue=q
at 10m30s edit pause schedule=a
at 20m30s edit resume schedule=a
`
	doubledAcks = `simulate v1
engine standby=yes
run 2h
schedule a every=1m queue=q handler=ok:1s
during 10m..20m queue duplicate-ack takes=1s..5m
`
	clockAhead = `simulate v1
engine standby=yes clock-repair=rearm
run 2h
schedule a every=1m queue=q anchor=2026-01-01T00:00:00Z
during 10m..20m clock-jump by=+8h
`
	heldAhead = `simulate v1
engine standby=yes
run 2h
schedule a every=1m queue=q
at 10m tamper schedule=a row=bad-spec
during 20m30s..30m clock-jump by=+8h
`
	twoRunners = `simulate v1
engine standby=yes runners=2
run 30m
schedule a every=1m queue=q
`
)
