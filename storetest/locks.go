package storetest

import "github.com/tickonce/tickonce/store"

var lockScenarios = []scenario{
	{name: "LK1 a free lock is granted, with the term, the TTL and the expiry", run: func(r *rig) {
		g := r.acquire("l", "a", 100)
		same(r, "term is positive", g.Lease.Term > 0, true)
		same(r, "grant", g, store.Grant{
			OK: true, Now: start,
			Lease: store.Lease{Lock: "l", Owner: "a", Term: g.Lease.Term, TTLMS: 100, ExpiresAt: start + 100},
		})
	}},
	{name: "LK1 a held lock is refused until exactly its expiry", run: func(r *rig) {
		first := r.acquire("l", "a", 100).Lease
		for _, now := range []store.Instant{start, start + 99} {
			r.at(now)
			same(r, "refused: the lease in the way is answered", r.acquire("l", "b", 50), store.Grant{Lease: first, Now: now})
		}
		r.at(start + 100)
		g := r.acquire("l", "b", 50)
		same(r, "granted", g.OK, true)
		same(r, "lease", g.Lease, store.Lease{Lock: "l", Owner: "b", Term: g.Lease.Term, TTLMS: 50, ExpiresAt: start + 150})
		same(r, "a larger term", g.Lease.Term > first.Term, true)
	}},
	{name: "LK2 to its live owner the lease is granted as it is", run: func(r *rig) {
		first := r.acquire("l", "a", 100).Lease
		r.at(start + 99)
		same(r, "grant", r.acquire("l", "a", 5000), store.Grant{OK: true, Lease: first, Now: start + 99})
		r.at(start + 100)
		same(r, "not extended", r.acquire("l", "b", 100).OK, true)
	}},
	{name: "LK2 after its expiry the owner gets a new lease, with a larger term", run: func(r *rig) {
		first := r.acquire("l", "a", 100).Lease
		r.at(start + 100)
		g := r.acquire("l", "a", 70)
		same(r, "granted", g.OK, true)
		same(r, "a larger term", g.Lease.Term > first.Term, true)
		same(r, "expiry", g.Lease.ExpiresAt, start+170)
		same(r, "LK3 the old term is not renewed", r.renew(first, 100), store.Grant{Lease: g.Lease, Now: start + 100})
		same(r, "LK4 nor released", r.release(first), false)
	}},
	{name: "LK3 renew sets TTL and expiry and keeps the term", run: func(r *rig) {
		want := r.acquire("l", "a", 100).Lease
		for _, ttl := range []int64{500, 20, 1 << 62} {
			r.at(r.now() + 7)
			want.TTLMS, want.ExpiresAt = ttl, r.now().Add(ttl)
			same(r, "grant", r.renew(want, ttl), store.Grant{OK: true, Lease: want, Now: r.now()})
			same(r, "lease", r.acquire("l", "b", 1), store.Grant{Lease: want, Now: r.now()})
		}
	}},
	{name: "LK3 only owner and term count, not the rest of the caller's copy", run: func(r *rig) {
		l := r.acquire("l", "a", 100).Lease
		l.TTLMS, l.ExpiresAt = 1, start-9
		same(r, "renewed", r.renew(l, 100).OK, true)
		same(r, "released", r.release(l), true)
	}},
	{name: "LK3 up to its expiry, then it is lost even if nobody took it", run: func(r *rig) {
		l := r.acquire("l", "a", 100).Lease
		r.at(start + 99)
		l = r.renew(l, 100).Lease
		r.at(start + 199)
		same(r, "at the expiry", r.renew(l, 100), store.Grant{Now: start + 199})
		r.at(start + 198)
		same(r, "and live again after a step back", r.renew(l, 100).OK, true)
	}},
	{name: "LK3 not another's, nor another term, nor another lock", run: func(r *rig) {
		l := r.acquire("l", "a", 100).Lease
		for _, c := range []struct {
			name string
			l    store.Lease
			want store.Grant
		}{
			{"another owner", store.Lease{Lock: "l", Owner: "b", Term: l.Term}, store.Grant{Lease: l, Now: start}},
			{"another term", store.Lease{Lock: "l", Owner: "a", Term: l.Term + 1}, store.Grant{Lease: l, Now: start}},
			{"a free lock", store.Lease{Lock: "m", Owner: "a", Term: l.Term}, store.Grant{Now: start}},
			{"zero", store.Lease{}, store.Grant{Now: start}},
		} {
			same(r, c.name, r.renew(c.l, 500), c.want)
			same(r, c.name+": released", r.release(c.l), false)
		}
		same(r, "lease", r.acquire("l", "a", 1).Lease, l)
	}},
	{name: "LK4 released, the lock is free at once; twice is no", run: func(r *rig) {
		l := r.acquire("l", "a", 100).Lease
		same(r, "first", r.release(l), true)
		same(r, "second", r.release(l), false)
		same(r, "renewed", r.renew(l, 100), store.Grant{Now: start})
		same(r, "granted to another", r.acquire("l", "b", 100).OK, true)
	}},
	{name: "LK4 a lease is released live or not", run: func(r *rig) {
		l := r.acquire("l", "a", 100).Lease
		r.at(start + 100)
		same(r, "expired", r.release(l), true)
		r.at(start)
		same(r, "gone", r.renew(l, 100).OK, false)
		l = r.acquire("l", "a", 100).Lease
		r.at(start - 1_000_000)
		same(r, "not live after a step back", r.release(l), true)
		r.at(start)
		same(r, "gone", r.renew(l, 100).OK, false)
	}},
	{name: "LK6 terms rise over all locks, releases and refusals", run: func(r *rig) {
		var last store.Term
		for i := range 12 {
			lock := []string{"l", "m", "n"}[i%3]
			g := r.acquire(lock, "a", 100)
			same(r, "granted", g.OK, true)
			same(r, "a larger term", g.Lease.Term > last, true)
			last = g.Lease.Term
			same(r, "refused", r.acquire(lock, "b", 100).OK, false)
			same(r, "released", r.release(g.Lease), true)
		}
	}},
	{name: "LK6 every acquisition drops the expired leases of all locks", run: func(r *rig) {
		for _, c := range []struct {
			name  string
			owner string // who acquires another lock
			ok    bool
		}{
			{"granted", "b", true}, {"refused", "c", false},
		} {
			r.at(start)
			expired := r.acquire("expired "+c.name, "a", 100).Lease
			lives := r.acquire("lives "+c.name, "a", 101).Lease
			r.at(start + 50)
			r.acquire("other "+c.name, "b", 1000)
			same(r, c.name+": not yet expired", r.release(r.acquire("at 50", "x", 1).Lease), true)
			r.at(start + 100)
			same(r, c.name, r.acquire("other "+c.name, c.owner, 1000).OK, c.ok)
			r.at(start + 99)
			same(r, c.name+": dropped, also after a step back", r.renew(expired, 100), store.Grant{Now: start + 99})
			same(r, c.name+": dropped, nothing to release", r.release(expired), false)
			same(r, c.name+": kept", r.renew(lives, 100).OK, true)
		}
	}},
	{name: "LK6 other calls drop no lease", run: func(r *rig) {
		l := r.acquire("l", "a", 100).Lease
		r.at(start + 100)
		r.renew(l, 100)
		r.release(store.Lease{Lock: "m"})
		r.advance(store.Tick{By: l})
		r.due(nil)
		r.claim(0)
		r.commit(store.Batch{})
		r.at(start + 99)
		same(r, "renewed after a step back", r.renew(l, 100).OK, true)
	}},
	{name: "K2 a step back beyond TTL and slack ends a lease, a smaller one does not", run: func(r *rig) {
		for i, c := range []struct {
			name string
			back store.Instant
			live bool
		}{
			{"by the slack", store.LeaseSlackMS, true},
			{"by one millisecond more", store.LeaseSlackMS + 1, false},
			{"by a year", 365 * 86_400_000, false},
		} {
			from := start + store.Instant(i)*10_000_000
			r.at(from)
			first := r.acquire("l", "a", 100).Lease
			r.at(from - c.back)
			if c.live {
				same(r, c.name+": refused", r.acquire("l", "b", 100), store.Grant{Lease: first, Now: r.now()})
				same(r, c.name+": kept", r.acquire("l", "a", 100), store.Grant{OK: true, Lease: first, Now: r.now()})
				same(r, c.name+": renewed", r.renew(first, 100).OK, true)
			} else {
				same(r, c.name+": not renewed", r.renew(first, 100), store.Grant{Now: r.now()})
				g := r.acquire("l", "b", 100)
				same(r, c.name+": granted", g.OK, true)
				same(r, c.name+": a larger term", g.Lease.Term > first.Term, true)
				same(r, c.name+": expiry", g.Lease.ExpiresAt, r.now()+100)
				same(r, c.name+": the old one is gone", r.release(first), false)
			}
			r.release(r.acquire("l", "a", 100).Lease)
			r.release(r.acquire("l", "b", 100).Lease)
		}
	}},
	{name: "K2 its owner acquires such a lease anew", run: func(r *rig) {
		first := r.acquire("l", "a", 100).Lease
		r.at(start - store.LeaseSlackMS - 1)
		g := r.acquire("l", "a", 100)
		same(r, "granted", g.OK, true)
		same(r, "a larger term", g.Lease.Term > first.Term, true)
		same(r, "expiry", g.Lease.ExpiresAt, r.now()+100)
	}},
	{name: "K2 the TTL is that of the last renewal", run: func(r *rig) {
		l := r.acquire("l", "a", 100).Lease
		l = r.renew(l, 5000).Lease
		r.at(start - store.LeaseSlackMS)
		same(r, "live", r.renew(l, 5000).OK, true)
		l = r.renew(l, 10).Lease
		r.at(r.now() - store.LeaseSlackMS - 1)
		same(r, "not live", r.renew(l, 10).OK, false)
	}},
	{name: "K2 other locks' leases that seem too long are not dropped", run: func(r *rig) {
		l := r.acquire("l", "a", 100).Lease
		r.at(start - 1_000_000)
		r.acquire("m", "a", 100)
		r.at(start + 99)
		same(r, "live again", r.renew(l, 100).OK, true)
	}},
	{name: "LK5 a crashed holder blocks no longer than TTL and slack after a step back", run: func(r *rig) {
		const ttl = 100
		for _, back := range []store.Instant{0, 1, ttl, store.LeaseSlackMS - 1, store.LeaseSlackMS, 3_600_000} {
			r.at(start)
			r.acquire("l", "crashed", ttl)
			r.at(start - back + ttl + store.LeaseSlackMS)
			g := r.acquire("l", "b", ttl)
			same(r, "granted", g.OK, true)
			r.release(g.Lease)
		}
	}},
}
