package tickonce_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
)

// lock acquires the lock "l" for ten seconds, or answers nil.
func (r *rig) lock(owner string) *tickonce.Lock {
	r.t.Helper()
	l, err := r.Lock(r.ctx, "l", owner, 10*time.Second)
	require.NoError(r.t, err)
	return l
}

// holds is whether a renewal finds the lock held.
func (r *rig) holds(l *tickonce.Lock) bool {
	r.t.Helper()
	held, err := l.Renew(r.ctx, 10*time.Second)
	require.NoError(r.t, err)
	return held
}

func TestLK1LockIsFreeFromItsExpiryOn(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		first := r.lock("a")
		require.NotNil(t, first)
		require.Equal(t, start.Add(10*time.Second), first.ExpiresAt())
		r.at(10*time.Second - time.Millisecond)
		require.Nil(t, r.lock("b"))
		r.at(10 * time.Second)
		second := r.lock("b")
		require.NotNil(t, second)
		require.Greater(t, second.Term(), first.Term())
		require.False(t, r.holds(first))
		require.True(t, r.holds(second))
	})
}

func TestLK2LiveOwnerAcquiresTheSameTerm(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		first := r.lock("a")
		r.at(5 * time.Second)
		again := r.lock("a")
		require.Equal(t, first.Term(), again.Term())
		require.Equal(t, first.ExpiresAt(), again.ExpiresAt(), "not extended")
		r.at(10 * time.Second)
		require.Greater(t, r.lock("a").Term(), first.Term())
	})
}

func TestLK3RenewExtendsOnlyALiveLease(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		l := r.lock("a")
		r.at(10*time.Second - time.Millisecond)
		held, err := l.Renew(r.ctx, time.Minute)
		require.NoError(t, err)
		require.True(t, held)
		require.Equal(t, start.Add(10*time.Second-time.Millisecond+time.Minute), l.ExpiresAt())
		r.at(time.Minute + 10*time.Second)
		require.False(t, r.holds(l), "lost, even if nobody took it")
		require.Equal(t, start.Add(10*time.Second-time.Millisecond+time.Minute), l.ExpiresAt())
		require.NotNil(t, r.lock("b"))
	})
}

func TestLK4ReleaseIsTheOwnersAlone(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		old := r.lock("a")
		r.at(10 * time.Second)
		taken := r.lock("b")
		released, err := old.Release(r.ctx)
		require.NoError(t, err)
		require.False(t, released)
		require.True(t, r.holds(taken))

		released, err = taken.Release(r.ctx)
		require.NoError(t, err)
		require.True(t, released)
		released, err = taken.Release(r.ctx)
		require.NoError(t, err)
		require.False(t, released, "a second time")
		require.NotNil(t, r.lock("c"))
	})
}

// LK5, K2: whatever the clock does, a crashed holder blocks no longer than its
// TTL and a second.
func TestLK5CrashedHolderBlocksNoLongerThanItsTTL(t *testing.T) {
	for _, step := range []struct {
		name    string
		to      time.Duration
		blocked time.Duration
	}{
		{"no step", 0, 10 * time.Second},
		{"a second back", -time.Second, 11 * time.Second},
		{"a little more", -1001 * time.Millisecond, 0},
		{"an hour back", -time.Hour, 0},
		{"forward past the expiry", time.Hour, 0},
	} {
		t.Run(step.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				r.lock("crashed")
				if step.blocked > 0 {
					r.at(step.to + step.blocked - time.Millisecond)
					require.Nil(t, r.lock("b"))
				}
				r.at(step.to + step.blocked)
				require.NotNil(t, r.lock("b"))
			})
		})
	}
}

func TestLK6TermsRiseAcrossLocksAndReleases(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		last := int64(0)
		for range 3 {
			for _, name := range []string{"l", "m"} {
				l, err := r.Lock(r.ctx, name, "a", time.Second)
				require.NoError(t, err)
				require.Greater(t, l.Term(), last)
				last = l.Term()
				released, err := l.Release(r.ctx)
				require.NoError(t, err)
				require.True(t, released)
			}
		}
	})
}

func TestN5ReservedLocksAreOutOfReach(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		w := r.wire()
		_, err := r.Lock(r.ctx, schedulerLock, "a", time.Second)
		require.ErrorIs(t, err, tickonce.ErrReservedName)
		require.Empty(t, w.take())
		require.NotZero(t, r.lead())
	})
}

func TestLockRefusesBadInput(t *testing.T) {
	for _, c := range []struct {
		name        string
		lock, owner string
		ttl         time.Duration
		err         error
	}{
		{"no name", "", "a", time.Second, tickonce.ErrInvalidName},
		{"a long name", strings.Repeat("n", 129), "a", time.Second, tickonce.ErrInvalidName},
		{"no owner", "l", "", time.Second, tickonce.ErrInvalidWorker},
		{"a bad owner", "l", "a\x00", time.Second, tickonce.ErrInvalidName},
		{"no TTL", "l", "a", 0, tickonce.ErrInvalidOption},
		{"a negative TTL", "l", "a", -time.Second, tickonce.ErrInvalidOption},
		{"less than a millisecond", "l", "a", time.Millisecond - 1, tickonce.ErrInvalidOption},
		{"a fraction of one", "l", "a", time.Millisecond + 1, tickonce.ErrInvalidOption},
		{"more than a day", "l", "a", 24*time.Hour + time.Millisecond, tickonce.ErrInvalidOption},
		{"the least TTL", "l", "a", time.Millisecond, nil},
		{"the most", "m", "a", 24 * time.Hour, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				w := r.wire()
				l, err := r.Lock(r.ctx, c.lock, c.owner, c.ttl)
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.err == nil, l != nil)
				if c.err != nil {
					require.Empty(t, w.take())
				}
			})
		})
	}
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		l := r.lock("a")
		_, err := l.Renew(r.ctx, 0)
		require.ErrorIs(t, err, tickonce.ErrInvalidOption)
		require.Equal(t, start.Add(10*time.Second), l.ExpiresAt())
	})
}

func TestN7LockErrorsNameTheLock(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		w := r.wire()
		l := r.lock("a")
		w.lose = offline
		_, err := r.Lock(r.ctx, "m", "a", time.Second)
		require.ErrorIs(t, err, faultstore.ErrLost)
		require.Equal(t, `lock "m"`, opError(t, err).Op)
		_, err = l.Renew(r.ctx, time.Second)
		require.Equal(t, `renew lock "l"`, opError(t, err).Op)
		_, err = l.Release(r.ctx)
		require.Equal(t, `release lock "l"`, opError(t, err).Op)
	})
}
