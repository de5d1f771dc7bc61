package host

import (
	"context"
	"time"

	"github.com/tickonce/tickonce/wasm/wire"
)

// Lock is a held lease on a name, as [tickonce.Lock] is. Its methods are not safe
// for concurrent use. It is lost with the instance that gave it.
type Lock struct {
	engine    *Engine
	term      int64
	expiresAt time.Time
}

// Lock is [tickonce.Engine.Lock].
func (e *Engine) Lock(ctx context.Context, name, owner string, ttl time.Duration) (*Lock, error) {
	reply, err := e.call(ctx, wire.OpLock, &wire.Request{Name: name, Owner: owner, For: ttl})
	if err != nil || reply.Term == 0 {
		return nil, err
	}
	return &Lock{e, reply.Term, reply.At}, nil
}

// Term is [tickonce.Lock.Term].
func (l *Lock) Term() int64 { return l.term }

// ExpiresAt is [tickonce.Lock.ExpiresAt].
func (l *Lock) ExpiresAt() time.Time { return l.expiresAt }

// Renew is [tickonce.Lock.Renew].
func (l *Lock) Renew(ctx context.Context, ttl time.Duration) (bool, error) {
	reply, err := l.engine.call(ctx, wire.OpRenewLock, &wire.Request{Term: l.term, For: ttl})
	if err != nil || !reply.Done {
		return false, err
	}
	l.expiresAt = reply.At
	return true, nil
}

// Release is [tickonce.Lock.Release].
func (l *Lock) Release(ctx context.Context) (bool, error) {
	return l.engine.done(ctx, wire.OpReleaseLock, &wire.Request{Term: l.term})
}
