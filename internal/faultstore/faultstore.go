// Package faultstore loses calls of a store on purpose.
//
// A [Store] stands before another one. For each call it asks a function for a
// [Verdict]: the call passes; or its request is lost, so that nothing happens;
// or its reply is lost, so that all of it happens and nobody is told. Both
// losses look the same to the caller, an error, as package store has it: the
// outcome is unknown. Only [Lost] knows more, for those who check.
//
// It draws no lots and starts no goroutine: what is lost is the function's to
// say.
package faultstore

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tickonce/tickonce/store"
)

// Verdict is what becomes of a call.
type Verdict uint8

// The verdicts.
const (
	Pass        Verdict = iota
	LoseRequest         // not made; answers *[Lost]
	LoseReply           // made; answers *[Lost], and nothing of the answer
)

// Store passes calls on to another store, or loses them. It is as safe for
// concurrent use as that store and its functions are.
type Store struct {
	// Before, unless nil, runs at the start of each call, before its verdict
	// and while nothing is locked. So it is the place for what happens
	// elsewhere while a request is on its way; it may call the Store itself.
	Before func(Op)

	// After, unless nil, runs at the end of each call, lost or not, before its
	// caller is told.
	After func(Op)

	inner  store.Store
	decide func(Op) Verdict
	calls  atomic.Int64
}

var _ store.Store = (*Store)(nil)

// New returns a store before inner that asks decide for the verdict of each
// call.
func New(inner store.Store, decide func(Op) Verdict) *Store {
	return &Store{inner: inner, decide: decide}
}

// call makes one call, or not. do forwards it; if its reply is to be lost, do
// keeps the answer out of the caller's memory.
func call[A any](s *Store, op Op, do func(lost bool) (A, error)) (A, error) {
	op.Number = s.calls.Add(1)
	if s.Before != nil {
		s.Before(op)
	}
	var answer A
	var err error
	switch s.decide(op) {
	case LoseRequest:
		err = &Lost{Op: op}
	case LoseReply:
		_, failed := do(true)
		err = &Lost{Op: op, Applied: failed == nil}
	default:
		answer, err = do(false)
	}
	if s.After != nil {
		s.After(op)
	}
	return answer, err
}

// unless returns dst, or if its content is to be lost another slice like it.
func unless[E any](lost bool, dst []E) []E {
	if lost {
		return make([]E, len(dst))
	}
	return dst
}

// lostRows has room for due rows that are lost: runners offer a lot of it, and
// ask often.
var lostRows = sync.Pool{New: func() any { return new([]store.Schedule) }}

// read is the answer of a paged read.
type read struct {
	n   int
	now store.Instant
}

// Schedules implements [store.Store].
func (s *Store) Schedules(ctx context.Context, from string, dst []store.Schedule) (int, store.Instant, error) {
	r, err := call(s, Op{Method: Schedules}, func(lost bool) (r read, err error) {
		r.n, r.now, err = s.inner.Schedules(ctx, from, unless(lost, dst))
		return r, err
	})
	return r.n, r.now, err
}

// Jobs implements [store.Store].
func (s *Store) Jobs(ctx context.Context, f store.Filter, dst []store.Job) (int, store.Instant, error) {
	r, err := call(s, Op{Method: Jobs, Queue: f.Queue}, func(lost bool) (r read, err error) {
		r.n, r.now, err = s.inner.Jobs(ctx, f, unless(lost, dst))
		return r, err
	})
	return r.n, r.now, err
}

// Queues implements [store.Store].
func (s *Store) Queues(ctx context.Context, from string, dst []store.Queue) (int, store.Instant, error) {
	r, err := call(s, Op{Method: Queues}, func(lost bool) (r read, err error) {
		r.n, r.now, err = s.inner.Queues(ctx, from, unless(lost, dst))
		return r, err
	})
	return r.n, r.now, err
}

// Runs implements [store.Store].
func (s *Store) Runs(ctx context.Context, p store.Page, dst []store.Run) (store.History, error) {
	return call(s, Op{Method: Runs}, func(lost bool) (store.History, error) {
		return s.inner.Runs(ctx, p, unless(lost, dst))
	})
}

// Skips implements [store.Store].
func (s *Store) Skips(ctx context.Context, p store.Page, dst []store.SkipRange) (store.History, error) {
	return call(s, Op{Method: Skips}, func(lost bool) (store.History, error) {
		return s.inner.Skips(ctx, p, unless(lost, dst))
	})
}

// Due implements [store.Store].
func (s *Store) Due(ctx context.Context, dst []store.Schedule) (store.Due, error) {
	return call(s, Op{Method: Due}, func(lost bool) (store.Due, error) {
		if !lost {
			return s.inner.Due(ctx, dst)
		}
		room := lostRows.Get().(*[]store.Schedule)
		*room = slices.Grow((*room)[:0], len(dst))[:len(dst)]
		due, err := s.inner.Due(ctx, *room)
		clear((*room)[:due.N])
		lostRows.Put(room)
		return due, err
	})
}

// Advance implements [store.Store].
func (s *Store) Advance(ctx context.Context, t *store.Tick) (bool, error) {
	return call(s, Op{Method: Advance, Lock: t.By.Lock}, func(lost bool) (bool, error) {
		if lost {
			own := *t
			own.Moves, own.Fires = slices.Clone(t.Moves), slices.Clone(t.Fires)
			return s.inner.Advance(ctx, &own)
		}
		return s.inner.Advance(ctx, t)
	})
}

// Claim implements [store.Store].
func (s *Store) Claim(ctx context.Context, queue, worker string, dst []store.Job) (store.Claim, error) {
	return call(s, Op{Method: Claim, Queue: queue}, func(lost bool) (store.Claim, error) {
		return s.inner.Claim(ctx, queue, worker, unless(lost, dst))
	})
}

// Settle implements [store.Store].
func (s *Store) Settle(ctx context.Context, settles []store.Settle, out []bool) (store.Instant, error) {
	return call(s, Op{Method: Settle}, func(lost bool) (store.Instant, error) {
		if lost {
			settles = slices.Clone(settles)
		}
		return s.inner.Settle(ctx, settles, unless(lost, out))
	})
}

// Extend implements [store.Store].
func (s *Store) Extend(ctx context.Context, extends []store.Extend, out []store.Instant) (store.Instant, error) {
	return call(s, Op{Method: Extend}, func(lost bool) (store.Instant, error) {
		return s.inner.Extend(ctx, extends, unless(lost, out))
	})
}

// Acquire implements [store.Store].
func (s *Store) Acquire(ctx context.Context, lock, owner string, ttlMS int64) (store.Grant, error) {
	return call(s, Op{Method: Acquire, Lock: lock}, func(bool) (store.Grant, error) {
		return s.inner.Acquire(ctx, lock, owner, ttlMS)
	})
}

// Renew implements [store.Store].
func (s *Store) Renew(ctx context.Context, l store.Lease, ttlMS int64) (store.Grant, error) {
	return call(s, Op{Method: Renew, Lock: l.Lock}, func(bool) (store.Grant, error) {
		return s.inner.Renew(ctx, l, ttlMS)
	})
}

// Release implements [store.Store].
func (s *Store) Release(ctx context.Context, l store.Lease) (bool, error) {
	return call(s, Op{Method: Release, Lock: l.Lock}, func(bool) (bool, error) {
		return s.inner.Release(ctx, l)
	})
}

// Commit implements [store.Store].
func (s *Store) Commit(ctx context.Context, b *store.Batch) (store.Committed, error) {
	return call(s, Op{Method: Commit}, func(lost bool) (store.Committed, error) {
		if lost {
			own := *b
			own.Settles = slices.Clone(b.Settles)
			return s.inner.Commit(ctx, &own)
		}
		return s.inner.Commit(ctx, b)
	})
}
