package tickonce_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

func TestEnqueueOptions(t *testing.T) {
	plain := store.Job{
		ID: 1, Queue: "q", FireAt: store.None, Stamps: store.Stamps{VisibilityMS: 300_000, BaseBackoffMS: 60_000, MaxAttempts: 3},
		EnqueuedAt: instant(0), RunAt: instant(0), ExpiresAt: store.None, State: store.Pending, Deadline: store.None, Since: store.None,
	}
	with := func(change func(*store.Job)) store.Job {
		job := plain
		change(&job)
		return job
	}
	for _, c := range []struct {
		name    string
		options tickonce.EnqueueOptions
		want    store.Job
	}{
		{"defaults", tickonce.EnqueueOptions{}, plain},
		{"a delay", tickonce.EnqueueOptions{Delay: time.Hour}, with(func(j *store.Job) { j.RunAt = instant(time.Hour) })},
		{"run at", tickonce.EnqueueOptions{RunAt: start.Add(time.Hour)}, with(func(j *store.Job) { j.RunAt = instant(time.Hour) })},
		{"run at a fraction, rounded up", tickonce.EnqueueOptions{RunAt: start.Add(1)}, with(func(j *store.Job) { j.RunAt = instant(time.Millisecond) })},
		{"run at in the past is now", tickonce.EnqueueOptions{RunAt: start.Add(-time.Hour)}, plain},
		{"expires from when it is ready", tickonce.EnqueueOptions{Delay: time.Hour, Expires: time.Second}, with(func(j *store.Job) {
			j.RunAt, j.ExpiresAt = instant(time.Hour), instant(time.Hour+time.Second)
		})},
		{"the highest priority", tickonce.EnqueueOptions{Priority: 32767}, with(func(j *store.Job) { j.Priority = 32767 })},
		{"the lowest", tickonce.EnqueueOptions{Priority: -32768}, with(func(j *store.Job) { j.Priority = -32768 })},
		{"a key", tickonce.EnqueueOptions{Key: "k"}, with(func(j *store.Job) { j.Key = "k" })},
		{"stamps", tickonce.EnqueueOptions{Visibility: time.Second, MaxAttempts: 7, BaseBackoff: time.Hour}, with(func(j *store.Job) {
			j.Stamps = store.Stamps{VisibilityMS: 1000, BaseBackoffMS: 3_600_000, MaxAttempts: 7}
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				_, err := r.Enqueue(r.ctx, "q", nil, c.options)
				require.NoError(t, err)
				require.Equal(t, []store.Job{c.want}, r.jobs("q"))
			})
		})
	}
}

func TestEnqueueRefusesBadInput(t *testing.T) {
	for _, c := range []struct {
		name    string
		queue   string
		payload int
		options tickonce.EnqueueOptions
		err     error
	}{
		{"no queue, before all else", "", 101, tickonce.EnqueueOptions{Delay: -1}, tickonce.ErrInvalidName},
		{"a reserved queue", "__alkstore_outbox:o", 0, tickonce.EnqueueOptions{}, tickonce.ErrReservedName},
		{"a payload over the limit, before the options", "q", 101, tickonce.EnqueueOptions{Delay: -1}, tickonce.ErrLimit},
		{"delay and run-at", "q", 100, tickonce.EnqueueOptions{Delay: 1000, RunAt: start}, tickonce.ErrInvalidOption},
		{"a negative delay", "q", 0, tickonce.EnqueueOptions{Delay: -time.Second}, tickonce.ErrInvalidOption},
		{"a fraction of a delay", "q", 0, tickonce.EnqueueOptions{Delay: time.Microsecond}, tickonce.ErrInvalidOption},
		{"run-at past the calendar", "q", 0, tickonce.EnqueueOptions{RunAt: start.AddDate(300_000, 0, 0)}, tickonce.ErrInvalidOption},
		{"a negative expiry", "q", 0, tickonce.EnqueueOptions{Expires: -time.Second}, tickonce.ErrInvalidOption},
		{"a long key", "q", 0, tickonce.EnqueueOptions{Key: strings.Repeat("k", 129)}, tickonce.ErrInvalidName},
		{"a negative visibility", "q", 0, tickonce.EnqueueOptions{Visibility: -time.Second}, tickonce.ErrInvalidOption},
		{"negative attempts", "q", 0, tickonce.EnqueueOptions{MaxAttempts: -1}, tickonce.ErrInvalidOption},
		{"more attempts than are counted", "q", 0, tickonce.EnqueueOptions{MaxAttempts: 1 << 31}, tickonce.ErrInvalidOption},
		{"a backoff over an hour", "q", 0, tickonce.EnqueueOptions{BaseBackoff: time.Hour + time.Millisecond}, tickonce.ErrInvalidOption},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Limits: tickonce.Limits{Payload: 100}}, func(t *testing.T, r *rig) {
				w := r.wire()
				_, err := r.Enqueue(r.ctx, c.queue, make([]byte, c.payload), c.options)
				require.ErrorIs(t, err, c.err)
				require.Empty(t, w.take(), "checks come before the store (N3)")
				err = r.Tx(r.ctx, func(tx *tickonce.Tx) error {
					_, err := tx.Enqueue(c.queue, make([]byte, c.payload), c.options)
					require.ErrorIs(t, err, c.err)
					return nil
				})
				require.NoError(t, err)
				require.Empty(t, w.take(), "nothing is staged")
			})
		})
	}
}

func TestQU12KeyMakesEnqueueSafeToAskAgain(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		w := r.wire()
		w.lose = first(1, faultstore.Commit, faultstore.LoseReply)
		keyed := tickonce.EnqueueOptions{Key: "k"}
		_, err := r.Enqueue(r.ctx, "q", []byte("p"), keyed)
		require.ErrorIs(t, err, faultstore.ErrLost)
		id := r.enqueue("other payload", keyed)
		require.Len(t, r.jobs("q"), 1)
		require.Equal(t, "p", string(r.jobs("q")[0].Payload), "nothing is written")
		require.Empty(t, of(tickonce.EventEnqueued, r.take()), "it was there already")

		job := r.mustClaim()
		require.Equal(t, id, r.enqueue("p", keyed), "while it is claimed")
		elsewhere, err := r.Enqueue(r.ctx, "other", nil, keyed)
		require.NoError(t, err)
		require.NotEqual(t, id, elsewhere, "a key is the queue's")
		require.NoError(t, job.Fail(r.ctx, errBoom))
		second := r.enqueue("p", keyed)
		require.NotEqual(t, id, second, "a dead job has no key any more")
		require.NoError(t, r.mustClaim().Ack(r.ctx))
		require.NotEqual(t, second, r.enqueue("p", keyed))
	})
}
