package sim

import (
	"strings"

	"github.com/tickonce/tickonce/store"
)

// leaseLies are those about the lease, and what is written without it.
var leaseLies = []lie{
	{
		lie: "an expired lease is renewed", fails: oneLease, text: lapsedLease,
		below: liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) {
			return granted(l, shownBy(s)), nil
		}},
	},
	{
		lie: "a live lease is not renewed", fails: oneLease, text: calmHour,
		below: liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) {
			return store.Grant{Now: shownBy(s)}, nil
		}},
	},
	{
		lie: "two runners get the lease", fails: oneLease, says: "holds until", text: twoRunners,
		below: liar{acquire: func(s store.Store, lock, owner string, ttlMS int64) (store.Grant, error) {
			return granted(store.Lease{Lock: lock, Owner: owner, Term: 7, TTLMS: ttlMS}, shownBy(s)), nil
		}},
	},
	{
		lie: "the lease of another is released", fails: oneLease, says: "a release by", text: twoRunners +
			"during 10m..20m store error-burst runner=1 op=renew applied=no\n" +
			"during 10m..20m store error-burst runner=1 op=acquire applied=no\n" +
			"at 15m down runner=1 for=1m\n",
		below: liar{release: func(s store.Store, l store.Lease) (bool, error) {
			_, err := s.Release(ctx, l)
			return true, err
		}},
	},
	{
		lie: "two processes have the same owner token", fails: oneLease, text: twoRunners,
		above: liar{acquire: func(s store.Store, lock, _ string, ttlMS int64) (store.Grant, error) {
			return s.Acquire(ctx, lock, "the same", ttlMS)
		}},
	},
	{
		lie: "a lease is renewed for longer", fails: oneLease, text: calmHour,
		above: liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) { return s.Renew(ctx, l, ttlMS+1) }},
	},
	{
		lie: "a lease is let go", fails: keepsLease, text: calmHour,
		above: liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) {
			return granted(l, shownBy(s)), nil
		}},
	},
	{
		lie: "a lease is renewed when half of it is over", fails: keepsLease, text: calmHour,
		above: liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) {
			if now := shownBy(s); now/20_000%2 == 0 {
				return granted(l, now), nil
			}
			return s.Renew(ctx, l, ttlMS)
		}},
	},
	{
		lie: "a clean stop keeps the lease", fails: releases, text: downFor90m,
		above: liar{release: func(store.Store, store.Lease) (bool, error) { return true, nil }},
	},
	{
		lie: "a term is given again after a restart", fails: termsRise, text: downFor90m,
		below: liar{acquire: func(s store.Store, lock, owner string, ttlMS int64) (store.Grant, error) {
			g, err := s.Acquire(ctx, lock, owner, ttlMS)
			g.Lease.Term = 1
			return g, err
		}},
	},
	{
		lie: "nobody gets the lease", fails: oneLease, text: calmHour,
		below: liar{acquire: func(s store.Store, lock, owner string, ttlMS int64) (store.Grant, error) {
			return store.Grant{Now: shownBy(s)}, nil
		}},
	},
	{
		lie: "a term is given again", fails: termsRise, text: lapsedLease,
		below: liar{acquire: func(s store.Store, lock, owner string, ttlMS int64) (store.Grant, error) {
			g, err := s.Acquire(ctx, lock, owner, ttlMS)
			g.Lease.Term = 1
			return g, err
		}},
	},
	{
		lie: "a tick without a live lease is written", fails: fence, text: lapsedLease,
		above: liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) {
			_, err := s.Renew(ctx, l, ttlMS)
			return granted(l, shownBy(s)), err
		}},
		below: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
			by := t.By
			defer func() { t.By = by }()
			if g, _ := s.Acquire(ctx, by.Lock, by.Owner, by.TTLMS); g.OK {
				t.By = g.Lease
			}
			return s.Advance(ctx, t)
		}},
	},
	{
		lie: "a tick under a live lease is refused", fails: fence, text: calmHour,
		below: liar{advance: func(s store.Store, t *store.Tick) (bool, error) { return false, nil }},
	},
	{
		lie: "a refused tick writes something", fails: failedWrite, text: lapsedLease,
		above: liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) {
			_, err := s.Renew(ctx, l, ttlMS)
			return granted(l, shownBy(s)), err
		}},
		below: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
			held, err := s.Advance(ctx, t)
			if !held {
				_, err = s.Acquire(ctx, "trace", "liar", minuteMS)
			}
			return held, err
		}},
	},
	{
		lie: "a write that the journal refused leaves a trace", fails: failedWrite,
		text: calmHour + "during 10m..50m store journal-error p=0.5\n",
		below: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
			held, err := s.Advance(ctx, t)
			for kept := err == nil; !kept; {
				_, failed := s.Acquire(ctx, "trace", "liar", minuteMS)
				kept = failed == nil
			}
			return held, err
		}},
	},
	{
		lie: "a transaction that is refused leaves its jobs", fails: failedWrite, text: transactions,
		below: liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
			done, err := s.Commit(ctx, b)
			if done.Refusal.Why != store.NotRefused {
				_, _ = s.Commit(ctx, &store.Batch{Inserts: b.Inserts})
			}
			return done, err
		}},
	},
	{
		lie: "a runner ends although no other leads", fails: exits, text: strings.ReplaceAll(calmHour, "engine standby=yes\n", ""),
		above: liar{acquire: func(s store.Store, lock, owner string, ttlMS int64) (store.Grant, error) {
			return store.Grant{Now: shownBy(s)}, nil
		}},
	},
	{
		lie: "a tick is written twice, and renewed once", fails: renewsFirst, text: calmHour,
		above: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
			_, _ = s.Advance(ctx, t)
			return s.Advance(ctx, t)
		}},
	},
}
