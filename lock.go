package tickonce

import (
	"context"
	"strconv"
	"time"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// Lock is a held lease on a name. Its methods are not safe for concurrent use.
type Lock struct {
	engine *Engine
	lease  store.Lease
}

const maxLockTTL = 24 * time.Hour

// Lock acquires the lock for the owner, for ttl: whole milliseconds from 1 ms
// to 24 h. It returns (nil, nil) while another owner holds it (LK1). The owner
// that holds it already gets the same term, not extended (LK2). A crashed
// holder blocks others no longer than its ttl, whatever the clock does (LK5).
// [ErrInvalidName], [ErrReservedName], [ErrInvalidWorker], [ErrInvalidOption].
func (e *Engine) Lock(ctx context.Context, name, owner string, ttl time.Duration) (*Lock, error) {
	if err := core.CheckName("lock", name); err != nil {
		return nil, err
	}
	if err := checkWorker(owner); err != nil {
		return nil, err
	}
	ms, err := lockMS(ttl)
	if err != nil {
		return nil, err
	}
	grant, err := e.store.Acquire(ctx, name, owner, ms)
	if err != nil {
		return nil, &OpError{Op: "lock " + strconv.Quote(name), Err: err}
	}
	if !grant.OK {
		return nil, nil
	}
	return &Lock{engine: e, lease: grant.Lease}, nil
}

// Term numbers the acquisitions of all locks of a store: a later one has a
// larger term. Hand it to what the lock protects, as a fencing token.
func (l *Lock) Term() int64 { return int64(l.lease.Term) }

// ExpiresAt is when the lock is free for others unless it is renewed.
func (l *Lock) ExpiresAt() time.Time { return timeOf(l.lease.ExpiresAt) }

// Renew makes the lock last for ttl from now, and reports whether it was still
// held: an expired one is lost even if nobody took it (LK3).
func (l *Lock) Renew(ctx context.Context, ttl time.Duration) (bool, error) {
	ms, err := lockMS(ttl)
	if err != nil {
		return false, err
	}
	grant, err := l.engine.store.Renew(ctx, l.lease, ms)
	if err != nil {
		return false, &OpError{Op: "renew lock " + strconv.Quote(l.lease.Lock), Err: err}
	}
	if grant.OK {
		l.lease = grant.Lease
	}
	return grant.OK, nil
}

// Release frees the lock, and reports whether it was this one's to free: after
// another took it, it is (false, nil) (LK4).
func (l *Lock) Release(ctx context.Context) (bool, error) {
	released, err := l.engine.store.Release(ctx, l.lease)
	if err != nil {
		return false, &OpError{Op: "release lock " + strconv.Quote(l.lease.Lock), Err: err}
	}
	return released, nil
}

func lockMS(ttl time.Duration) (int64, error) {
	if ttl < time.Millisecond || ttl > maxLockTTL || ttl%time.Millisecond != 0 {
		return 0, &OptionError{Option: "ttl", Problem: "is " + ttl.String() + ", want whole milliseconds from 1ms to 24h0m0s"}
	}
	return ttl.Milliseconds(), nil
}
