package properties_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce"
)

// lockModel is who holds which lock, in milliseconds from start.
type lockModel struct {
	leases map[string]modelLease
	term   int64
}

type modelLease struct {
	owner          string
	term           int64
	ttl, expiresAt int64
}

// live: not expired, and not the work of a clock that was ahead (K2).
func (l modelLease) live(now int64) bool {
	return now < l.expiresAt && l.expiresAt <= now+l.ttl+1000
}

// acquire answers the lease that the owner has then, if it gets it. Whoever
// acquires a lock clears away the leases of all locks that have expired.
func (m *lockModel) acquire(name, owner string, ttl, now int64) (modelLease, bool) {
	for lock, l := range m.leases {
		if l.expiresAt <= now {
			delete(m.leases, lock)
		}
	}
	l, ok := m.leases[name]
	if ok && l.live(now) {
		return l, l.owner == owner
	}
	m.term++
	m.leases[name] = modelLease{owner, m.term, ttl, now + ttl}
	return m.leases[name], true
}

func (m *lockModel) renew(name string, term, ttl, now int64) bool {
	l, ok := m.leases[name]
	if !ok || l.term != term || !l.live(now) {
		return false
	}
	l.ttl, l.expiresAt = ttl, now+ttl
	m.leases[name] = l
	return true
}

func (m *lockModel) release(name string, term int64) bool {
	if l, ok := m.leases[name]; !ok || l.term != term {
		return false
	}
	delete(m.leases, name)
	return true
}

func TestI6LK1LK2LK3LK4LK5LK6K2LocksAreTheModels(t *testing.T) {
	type held struct {
		*tickonce.Lock
		name string
	}
	var (
		names  = rapid.SampledFrom([]string{"door", "gate"})
		owners = rapid.SampledFrom([]string{"ann", "bob", "cid"})
		ttls   = rapid.SampledFrom([]time.Duration{1, 20, 21, 2000}) // ms
	)
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, tickonce.Config{}, choose(t, "store", memory, naive), 1)
		m := &lockModel{leases: map[string]modelLease{}}
		var locks []held
		now := func() int64 { return sinceStart(w.clock.now) }
		which := func(t *rapid.T) held {
			l, ok := latest(locks, choose(t, "which", 0, 0, 1, 2, 4))
			if !ok {
				t.Skip("no such lock")
			}
			return l
		}
		acquire := func(t *rapid.T) {
			name, owner, ttl := names.Draw(t, "name"), owners.Draw(t, "owner"), ttls.Draw(t, "ttl")
			l, err := w.engine().Lock(ctx, name, owner, ttl*time.Millisecond)
			require.NoError(t, err)
			want, ok := m.acquire(name, owner, int64(ttl), now())
			require.Equal(t, ok, l != nil, "granted")
			if ok {
				require.Equal(t, want.term, l.Term())
				require.Equal(t, atMS(want.expiresAt), l.ExpiresAt())
				locks = append(locks, held{l, name})
			}
		}
		clock := func(t *rapid.T) {
			by := choose(t, "ms", 1, 1, 19, 20, 21, 2000, -1, -20, -999, -1000, -1001, -3001)
			w.clock.move(time.Duration(by) * time.Millisecond)
		}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": acquire, "acquire more": acquire, "clock": clock,
			"renew": func(t *rapid.T) {
				l, ttl := which(t), ttls.Draw(t, "ttl")
				ok, err := l.Renew(ctx, ttl*time.Millisecond)
				require.NoError(t, err)
				require.Equal(t, m.renew(l.name, l.Term(), int64(ttl), now()), ok)
				if ok {
					require.Equal(t, atMS(now()+int64(ttl)), l.ExpiresAt())
				}
			},
			"release": func(t *rapid.T) {
				l := which(t)
				ok, err := l.Release(ctx)
				require.NoError(t, err)
				require.Equal(t, m.release(l.name, l.Term()), ok)
			},
		})

		// All holders crash, and the clock steps: an heir waits no longer than
		// the longest TTL and a second (LK5).
		clock(t)
		inherits := func(name string) bool {
			l, err := w.engine().Lock(ctx, name, "heir", time.Millisecond)
			require.NoError(t, err)
			return l != nil
		}
		door, gate := inherits("door"), inherits("gate")
		w.clock.move(2*time.Second + time.Second)
		require.True(t, door || inherits("door"))
		require.True(t, gate || inherits("gate"))
	})
}
