package memengine

import (
	"context"

	"github.com/tickonce/tickonce/store"
)

// lease is a row of its own and its place in the store's expiry.
type lease struct {
	store.Lease
	expiry int32
}

// is reports whether l is the acquisition that c claims it to be.
func (l *lease) is(c store.Lease) bool {
	return l != nil && l.Owner == c.Owner && l.Term == c.Term
}

// lease answers the lock's lease, live or not, or nil.
func (s *Store) lease(lock string) *lease {
	l, _ := s.locks.Get(lock)
	return l
}

// Acquire implements [store.Store].
func (s *Store) Acquire(ctx context.Context, lock, owner string, ttlMS int64) (store.Grant, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return store.Grant{}, err
	}
	defer s.mu.Unlock()
	c := s.stage(opAcquire, now)
	s.expiry.each(0,
		func(l *lease) bool { return l.ExpiresAt <= now },
		func(l *lease) { c.dropped = append(c.dropped, l.Lock) })
	g := store.Grant{Now: now}
	if l := s.lease(lock); l != nil && l.Live(now) {
		g.OK, g.Lease = l.Owner == owner, l.Lease
	} else {
		c.last.term++
		g.OK = true
		g.Lease = store.Lease{Lock: lock, Owner: owner, Term: c.last.term, TTLMS: ttlMS, ExpiresAt: now.Add(ttlMS)}
		c.granted = append(c.granted, g.Lease)
	}
	if err := s.commit(); err != nil {
		return store.Grant{}, err
	}
	return g, nil
}

// Renew implements [store.Store].
func (s *Store) Renew(ctx context.Context, l store.Lease, ttlMS int64) (store.Grant, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return store.Grant{}, err
	}
	defer s.mu.Unlock()
	g := store.Grant{Now: now}
	row := s.lease(l.Lock)
	if row == nil || !row.Live(now) {
		return g, nil
	}
	g.Lease = row.Lease
	if !row.is(l) {
		return g, nil
	}
	g.OK = true
	g.Lease.TTLMS, g.Lease.ExpiresAt = ttlMS, now.Add(ttlMS)
	c := s.stage(opRenew, now)
	c.granted = append(c.granted, g.Lease)
	return g, s.commit()
}

// Release implements [store.Store].
func (s *Store) Release(ctx context.Context, l store.Lease) (bool, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	if !s.lease(l.Lock).is(l) {
		return false, nil
	}
	c := s.stage(opRelease, now)
	c.dropped = append(c.dropped, l.Lock)
	if err := s.commit(); err != nil {
		return false, err
	}
	return true, nil
}

// putLease writes a lease, in the place of the lock's one.
func (s *Store) putLease(l *store.Lease) {
	row := s.lease(l.Lock)
	if row == nil {
		row = new(lease)
		s.locks.Set(l.Lock, row)
	} else {
		s.expiry.remove(row)
	}
	row.Lease = *l
	s.expiry.push(row)
}

func (s *Store) dropLease(lock string) {
	if row, ok := s.locks.Delete(lock); ok {
		s.expiry.remove(row)
	}
}
