package tickonce_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
)

// The leader's lease is in no snapshot: nobody waits for it after a restore.
func TestD6C27ARestoreUnderALeaderFiresAtTheBoundary(t *testing.T) {
	r := newRigOn(t, tickonce.Config{}, openMemory)
	r.schedule("s", "@every 1h", tickonce.ScheduleOptions{})
	r.tick(time.Hour - time.Second)
	require.NotZero(t, r.leader())
	r.restore()
	require.Zero(t, r.leader())
	did := r.tick(time.Hour)
	require.NoError(t, did.err)
	require.Equal(t, []time.Duration{time.Hour}, did.fired("s"))
}

// A claim that the snapshot has stays taken up to its deadline, and its handle
// A claim that the snapshot has stays taken up to its deadline. A handle of the
// engine before ends nothing of the new one, whether the snapshot has its claim
// or not.
func TestD6QU4HandlesDieWithTheirEngine(t *testing.T) {
	for _, c := range []struct {
		name          string
		claimedBefore bool // the snapshot
		attempt       int  // of the next claim
	}{{"claimed before the snapshot", true, 2}, {"claimed after it", false, 1}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRigOn(t, tickonce.Config{}, openMemory)
			r.enqueue("p", tickonce.EnqueueOptions{Visibility: time.Minute})
			var old *tickonce.Job
			if c.claimedBefore {
				old = r.mustClaim()
			}
			snapshot, err := r.store.(*memengine.Store).Snapshot()
			require.NoError(t, err)
			if !c.claimedBefore {
				old = r.mustClaim()
			}
			restored, err := memengine.Restore(r.config, snapshot)
			require.NoError(t, err)
			r.store = restored.Store()
			r.crash()
			if c.claimedBefore {
				r.at(time.Minute)
				require.Nil(t, r.claim(), "up to its deadline")
				r.at(time.Minute + time.Millisecond)
			}
			again := r.mustClaim()
			require.Equal(t, old.ID, again.ID)
			require.Equal(t, c.attempt, again.Attempt)
			_ = old.Ack(r.ctx)
			require.Equal(t, store.Claimed, r.jobs("q")[0].State, "the old handle ends nothing of the new engine")
			require.NoError(t, again.Ack(r.ctx))
			require.Empty(t, r.jobs("q"))
		})
	}
}
