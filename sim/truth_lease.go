package sim

import (
	"context"
	"fmt"

	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// live reports whether the lease holds now (LK1, K2).
func (t *truth) live() bool {
	now := t.w.shown()
	return t.lease.Term != 0 && now < t.lease.ExpiresAt && int64(t.lease.ExpiresAt-now) <= t.lease.TTLMS+slackMS
}

// holds reports whether l is the live lease.
func (t *truth) holds(l store.Lease) bool {
	return t.live() && t.lease.Owner == l.Owner && t.lease.Term == l.Term
}

// Acquire watches [store.Store.Acquire] of the scheduler's lock (invariant 6).
func (t *truth) Acquire(ctx context.Context, lock, owner string, ttlMS int64) (store.Grant, error) {
	live := t.live()
	grant, err := t.Store.Acquire(ctx, lock, owner, ttlMS)
	if err != nil {
		return grant, err
	}
	t.w.checked[anAcquisition]++
	term, by := grant.Lease.Term, t.w.acting
	by.refused = !grant.OK && by.reply == faultstore.Pass
	t.tellOfLease(&grant, term, "acquire")
	switch {
	case !grant.OK:
		if !live || t.lease.Owner == owner {
			t.w.fail(oneLease, "", fmt.Sprintf("%s was refused the lease that no other holds", owner))
		}
		return grant, nil
	case live && t.lease.Owner != owner:
		t.w.fail(oneLease, "", fmt.Sprintf("%s got the lease that %s holds until %s", owner, t.lease.Owner, text(t.lease.ExpiresAt)))
	case live && t.holder != t.w.acting:
		t.w.fail(oneLease, "", fmt.Sprintf("%s got the lease that %s holds under the same token", t.w.acting, t.holder))
	case live && (term != t.lease.Term || grant.Lease.ExpiresAt != t.lease.ExpiresAt):
		t.w.fail(oneLease, "", fmt.Sprintf("%s got another lease than it holds", owner))
	case !live && term <= t.term:
		t.w.fail(termsRise, "", fmt.Sprintf("term %d was given after term %d", term, t.term))
	case !live && t.w.now > t.w.calm():
		t.w.fail(keepsLease, "", fmt.Sprintf("%s got the lease that %s let go, with no fault to blame", owner, t.leader))
	}
	if !live {
		t.checkSpan(grant, ttlMS)
	}
	t.w.coverage.sometimes(leaderChanged, t.leader != "" && t.leader != owner)
	t.w.coverage.sometimes(leaseAhead, !live && t.lease.Term != 0 && grant.Now < t.lease.ExpiresAt)
	t.w.coverage.sometimes(leaseLapsed, t.leader == owner && term != t.lease.Term)
	t.lease, t.term, t.leader, t.holder = grant.Lease, max(t.term, term), owner, t.w.acting
	t.w.digest.Int(tagLease, int64(term))
	t.w.digest.Text(tagLease, owner)
	if n := t.w.acting; n.reply == faultstore.Pass {
		n.leads, n.term, n.renewed, n.midTick = true, term, true, false
		t.w.coverage.sometimes(twoLeaders, t.w.leaders() > 1)
	}
	return grant, nil
}

// leaseOf says whose the scheduler's lease is.
func leaseOf(l store.Lease) string {
	if l.Term == 0 {
		return "nobody has the lease"
	}
	return fmt.Sprintf("%s has the lease, under term %d until %s", l.Owner, l.Term, text(l.ExpiresAt))
}

// checkSpan checks that a lease was asked for, and granted, for as long as the
// engine is told to.
func (t *truth) checkSpan(grant store.Grant, ttlMS int64) {
	if l := grant.Lease; ttlMS != t.w.leaseMS() || l.TTLMS != ttlMS || l.ExpiresAt != grant.Now.Add(ttlMS) {
		t.w.fail(oneLease, "", fmt.Sprintf("a lease of %d ms was asked for at %s, and one of %d ms until %s granted",
			ttlMS, text(grant.Now), l.TTLMS, text(l.ExpiresAt)))
	}
}

// leaders is how many processes believe to lead.
func (w *world) leaders() int {
	count := 0
	for _, n := range w.nodes {
		if n.leads {
			count++
		}
	}
	return count
}

// Renew watches [store.Store.Renew] (LK3).
func (t *truth) Renew(ctx context.Context, l store.Lease, ttlMS int64) (store.Grant, error) {
	mine := t.holds(l)
	grant, err := t.Store.Renew(ctx, l, ttlMS)
	if err != nil {
		return grant, err
	}
	t.w.checked[aRenewal]++
	if grant.OK != mine {
		t.w.fail(oneLease, "", fmt.Sprintf("a renewal by %s was granted: %s, while %s", l.Owner, yesNo(grant.OK), leaseOf(t.lease)))
	}
	if left := int64(t.lease.ExpiresAt - grant.Now); mine && 2*left < ttlMS && t.w.now > t.w.calm() {
		t.w.fail(keepsLease, "", fmt.Sprintf("%s renewed its lease %d ms before its end, less than half of what it lasts", l.Owner, left))
	}
	if grant.OK {
		t.checkSpan(grant, ttlMS)
		t.lease = grant.Lease
	}
	t.tellOfLease(&grant, l.Term, "renew")
	t.w.coverage.sometimes(lateRenewalRefused, !grant.OK && t.w.flying != nil && t.w.flying.thereMS > 0)
	if n := t.w.acting; n.reply == faultstore.Pass {
		n.leads, n.renewed, n.midTick = grant.OK, grant.OK, false
	}
	t.w.digest.Int(tagLease, int64(grant.Now))
	return grant, nil
}

// Release watches [store.Store.Release].
func (t *truth) Release(ctx context.Context, l store.Lease) (bool, error) {
	mine := t.lease.Term != 0 && t.lease.Owner == l.Owner && t.lease.Term == l.Term
	released, err := t.Store.Release(ctx, l)
	if err != nil {
		return released, err
	}
	t.w.checked[aRelease]++
	if released != mine {
		t.w.fail(oneLease, "", fmt.Sprintf("a release by %s was done: %s, while %s", l.Owner, yesNo(released), leaseOf(t.lease)))
	}
	if released {
		t.w.causes.lease = t.w.tell(Event{Kind: EventLeaseReleased, Cause: t.w.causeOfCall(), Process: t.w.acting.number(), Term: int64(l.Term)})
		t.lease = store.Lease{}
	}
	return released, nil
}
