package host

import (
	"context"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/wire"
)

// Lock is a held lease on a name, as [tickonce.Lock] is. Its methods are not safe
// for concurrent use. It is lost with the instance that gave it.
type Lock struct {
	engine    *Engine
	term      int64
	from      int // which of the engine's instances gave it
	expiresAt time.Time
}

// Lock is [tickonce.Engine.Lock].
func (e *Engine) Lock(ctx context.Context, name, owner string, ttl time.Duration) (*Lock, error) {
	a, err := e.exchange(ctx, wire.OpLock, &wire.Request{Name: name, Owner: owner, For: ttl}, 0)
	if err != nil || a.Term == 0 {
		return nil, err
	}
	return &Lock{e, a.Term, a.from, a.At}, nil
}

// Term is [tickonce.Lock.Term].
func (l *Lock) Term() int64 { return l.term }

// ExpiresAt is [tickonce.Lock.ExpiresAt].
func (l *Lock) ExpiresAt() time.Time { return l.expiresAt }

// Renew is [tickonce.Lock.Renew].
func (l *Lock) Renew(ctx context.Context, ttl time.Duration) (bool, error) {
	a, held, err := l.call(ctx, wire.OpRenewLock, ttl)
	if held {
		l.expiresAt = a.At
	}
	return held, err
}

// Release is [tickonce.Lock.Release].
func (l *Lock) Release(ctx context.Context) (bool, error) {
	_, held, err := l.call(ctx, wire.OpReleaseLock, 0)
	return held, err
}

func (l *Lock) call(ctx context.Context, op wire.Op, ttl time.Duration) (a answer, held bool, err error) {
	a, err = l.engine.exchange(ctx, op, &wire.Request{Term: l.term, For: ttl}, l.from)
	if err == tickonce.ErrClaimLost { // with its instance
		err = nil
	}
	return a, a.Reply != nil && a.Done, err
}
