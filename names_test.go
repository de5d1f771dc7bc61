package tickonce_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
)

// badNames are malformed, reserved, or both: then the syntax is what counts.
var badNames = []struct {
	name, text string
	want       error
}{
	{"empty", "", tickonce.ErrInvalidName},
	{"too long", strings.Repeat("a", 129), tickonce.ErrInvalidName},
	{"a control character", "a\x00b", tickonce.ErrInvalidName},
	{"invalid UTF-8", "a\xff", tickonce.ErrInvalidName},
	{"a leading space", " a", tickonce.ErrInvalidName},
	{"reserved", "__alkstore_scheduler", tickonce.ErrReservedName},
	{"the prefix alone", "__alkstore_", tickonce.ErrReservedName},
	{"reserved and malformed", "__alkstore_x ", tickonce.ErrInvalidName},
}

// furnished is a rig with a schedule, a pending, a claimed and a dead job.
func furnished(t *testing.T) *rig {
	r := newRig(t, tickonce.Config{})
	r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
	for range 3 {
		_, err := r.Enqueue(r.ctx, "q", nil, tickonce.EnqueueOptions{})
		require.NoError(t, err)
	}
	job, err := r.Claim(r.ctx, "q", "w")
	require.NoError(t, err)
	require.NoError(t, job.Fail(r.ctx, errors.New("x")))
	_, err = r.Claim(r.ctx, "q", "w")
	require.NoError(t, err)
	r.take()
	return r
}

// refusedUnwritten checks that a call fails as wanted, reaches no store and
// changes and tells nothing (N3).
func (r *rig) refusedUnwritten(what string, want error, call func(e *tickonce.Engine) error) {
	r.t.Helper()
	before := r.contents()
	w := r.wire()
	err := call(r.Engine)
	require.ErrorIs(r.t, err, want, what)
	require.Empty(r.t, w.calls, what)
	require.Equal(r.t, before, r.contents(), what)
	require.Empty(r.t, r.take(), what)
}

func TestN1N2N3EveryNameIsCheckedBeforeStorage(t *testing.T) {
	ctx := context.Background()
	calls := map[string]func(e *tickonce.Engine, name string) error{
		"Schedule, its name": func(e *tickonce.Engine, name string) error {
			_, err := e.Schedule(ctx, name, "@every 1s", "q", nil, tickonce.ScheduleOptions{})
			return err
		},
		"Schedule, its queue": func(e *tickonce.Engine, name string) error {
			_, err := e.Schedule(ctx, "s", "@every 1s", name, nil, tickonce.ScheduleOptions{})
			return err
		},
		"Unschedule": func(e *tickonce.Engine, name string) error {
			_, err := e.Unschedule(ctx, name)
			return err
		},
		"Pause": func(e *tickonce.Engine, name string) error {
			_, err := e.Pause(ctx, name)
			return err
		},
		"Resume": func(e *tickonce.Engine, name string) error {
			_, err := e.Resume(ctx, name, tickonce.ResumeOptions{})
			return err
		},
		"Enqueue": func(e *tickonce.Engine, name string) error {
			_, err := e.Enqueue(ctx, name, nil, tickonce.EnqueueOptions{})
			return err
		},
		"Claim": func(e *tickonce.Engine, name string) error {
			_, err := e.Claim(ctx, name, "w")
			return err
		},
		"ClaimBatch": func(e *tickonce.Engine, name string) error {
			_, err := e.ClaimBatch(ctx, name, "w", 1)
			return err
		},
		"Sweep": func(e *tickonce.Engine, name string) error {
			_, err := e.Sweep(ctx, name)
			return err
		},
		"Queue": func(e *tickonce.Engine, name string) error {
			_, err := e.Queue(ctx, name)
			return err
		},
		"NextClaimAt": func(e *tickonce.Engine, name string) error {
			_, _, err := e.NextClaimAt(ctx, name)
			return err
		},
		"Dead": func(e *tickonce.Engine, name string) error {
			for _, err := range e.Dead(ctx, name) {
				return err
			}
			return nil
		},
		"Requeue": func(e *tickonce.Engine, name string) error {
			_, err := e.Requeue(ctx, name, 1)
			return err
		},
		"Purge": func(e *tickonce.Engine, name string) error { return e.Purge(ctx, name, 1) },
		"Cancel": func(e *tickonce.Engine, name string) error {
			_, err := e.Cancel(ctx, name, 2)
			return err
		},
		"Lock": func(e *tickonce.Engine, name string) error {
			_, err := e.Lock(ctx, name, "o", time.Second)
			return err
		},
		"Outbox": func(e *tickonce.Engine, name string) error {
			_, err := e.Outbox(name).Enqueue(ctx, nil, tickonce.OutboxOptions{})
			return err
		},
		"Outbox, RunOnce": func(e *tickonce.Engine, name string) error {
			_, err := e.Outbox(name).RunOnce(ctx, "w", nil)
			return err
		},
		"Tx.Schedule, its name": func(e *tickonce.Engine, name string) error {
			return e.Tx(ctx, func(tx *tickonce.Tx) error {
				_, err := tx.Schedule(name, "@every 1s", "q", nil, tickonce.ScheduleOptions{})
				return err
			})
		},
		"Tx.Schedule, its queue": func(e *tickonce.Engine, name string) error {
			return e.Tx(ctx, func(tx *tickonce.Tx) error {
				_, err := tx.Schedule("s", "@every 1s", name, nil, tickonce.ScheduleOptions{})
				return err
			})
		},
		"Tx.Enqueue": func(e *tickonce.Engine, name string) error {
			return e.Tx(ctx, func(tx *tickonce.Tx) error {
				_, err := tx.Enqueue(name, nil, tickonce.EnqueueOptions{})
				return err
			})
		},
		"Tx.Outbox": func(e *tickonce.Engine, name string) error {
			return e.Tx(ctx, func(tx *tickonce.Tx) error {
				_, err := tx.Outbox(name).Enqueue(nil, tickonce.OutboxOptions{})
				return err
			})
		},
	}
	r := furnished(t)
	for what, call := range calls {
		for _, bad := range badNames {
			r.refusedUnwritten(what+": "+bad.name, bad.want, func(e *tickonce.Engine) error { return call(e, bad.text) })
		}
	}
}

// Each request has every fault from its place on; the first one is reported.
func TestN1TheFirstFaultIsReported(t *testing.T) {
	r := newRig(t, tickonce.Config{Limits: tickonce.Limits{Payload: 3}})
	badOptions := tickonce.ScheduleOptions{Priority: 1, Visibility: -1}
	for _, c := range []struct {
		name, schedule, queue, spec string
		payload                     string
		want                        error
		message                     string
	}{
		{"name", "", "", "", "four", tickonce.ErrInvalidName, "schedule name"},
		{"queue", "s", "__alkstore_q", "", "four", tickonce.ErrReservedName, "queue"},
		{"spec", "s", "q", "@daily", "four", tickonce.ErrInvalidSpec, "@daily"},
		{"payload", "s", "q", "@every 1s", "four", tickonce.ErrLimit, "Payload is 3, this would make 4"},
		{"options", "s", "q", "@every 1s", "one", tickonce.ErrInvalidOption, "Visibility"},
	} {
		r.refusedUnwritten(c.name, c.want, func(e *tickonce.Engine) error {
			_, err := e.Schedule(r.ctx, c.schedule, c.spec, c.queue, []byte(c.payload), badOptions)
			require.ErrorContains(t, err, c.message, c.name)
			return err
		})
	}
}

func TestN1BothNamesFollowTheSameRule(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	for _, name := range []string{"a", strings.Repeat("a", 128), "__ALKSTORE_x", "x__alkstore_", "a b", "⏰"} {
		s, err := r.Schedule(r.ctx, name, "@every 1s", name, nil, tickonce.ScheduleOptions{})
		require.NoError(t, err)
		require.Equal(t, name, s.Name)
		require.Equal(t, name, s.Queue)
	}
}

func TestN4UnscheduleOfAnAbsentName(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("b", "@every 1s", tickonce.ScheduleOptions{})
		r.take()
		for _, name := range []string{"a", "b2", "c"} {
			removed, err := r.Unschedule(r.ctx, name)
			require.NoError(t, err)
			require.False(t, removed)
		}
		require.Empty(t, r.take())
		removed, err := r.Unschedule(r.ctx, "b")
		require.NoError(t, err)
		require.True(t, removed)
		require.Len(t, of(tickonce.EventUnscheduled, r.take()), 1)
	})
}

// A refusal inside of a transaction stages nothing, even where the function
// goes on.
func TestN5NothingIsStagedAfterARefusal(t *testing.T) {
	r := furnished(t)
	before := r.contents()
	require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
		_, err := tx.Enqueue("__alkstore_outbox:mail", nil, tickonce.EnqueueOptions{})
		require.ErrorIs(t, err, tickonce.ErrReservedName)
		_, err = tx.Schedule("t", "@every 1s", "__alkstore_q", nil, tickonce.ScheduleOptions{})
		require.ErrorIs(t, err, tickonce.ErrReservedName)
		_, err = tx.Schedule("s", "@daily", "q", nil, tickonce.ScheduleOptions{})
		require.ErrorIs(t, err, tickonce.ErrInvalidSpec)
		require.ErrorIs(t, tx.Cancel("__alkstore_q", 2), tickonce.ErrReservedName)
		require.ErrorIs(t, tx.Purge("__alkstore_q", 1), tickonce.ErrReservedName)
		_, err = tx.Requeue("__alkstore_q", 1)
		require.ErrorIs(t, err, tickonce.ErrReservedName)
		return nil
	}))
	require.Equal(t, before, r.contents())
}

func TestN5AnOutboxQueueIsReachedOnlyThroughItsOutbox(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		box := r.Outbox("mail")
		id, err := box.Enqueue(r.ctx, []byte("p"), tickonce.OutboxOptions{MaxAttempts: 1})
		require.NoError(t, err)
		_, err = r.Cancel(r.ctx, "__alkstore_outbox:mail", id)
		require.ErrorIs(t, err, tickonce.ErrReservedName)
		_, err = r.Claim(r.ctx, "__alkstore_outbox:mail", "w")
		require.ErrorIs(t, err, tickonce.ErrReservedName)
		found, err := box.RunOnce(r.ctx, "w", func(context.Context, *tickonce.Job) error { return errors.New("no") })
		require.NoError(t, err)
		require.True(t, found)
		for dead, err := range box.Dead(r.ctx) {
			require.NoError(t, err)
			require.Equal(t, id, dead.ID)
		}
		_, err = box.Requeue(r.ctx, id)
		require.NoError(t, err)
	})
}

func TestN6AnEmptyWorkerConsumesNoAttempt(t *testing.T) {
	r := furnished(t)
	_, err := r.Outbox("mail").Enqueue(r.ctx, nil, tickonce.OutboxOptions{})
	require.NoError(t, err)
	r.take()
	for what, call := range map[string]func(e *tickonce.Engine) error{
		"Claim": func(e *tickonce.Engine) error {
			_, err := e.Claim(r.ctx, "q", "")
			return err
		},
		"ClaimBatch": func(e *tickonce.Engine) error {
			_, err := e.ClaimBatch(r.ctx, "q", "", 2)
			return err
		},
		"RunOnce": func(e *tickonce.Engine) error {
			_, err := e.Outbox("mail").RunOnce(r.ctx, "", nil)
			return err
		},
		"Lock": func(e *tickonce.Engine) error {
			_, err := e.Lock(r.ctx, "l", "", time.Second)
			return err
		},
	} {
		r.refusedUnwritten(what, tickonce.ErrInvalidWorker, call)
	}
	job, err := r.Claim(r.ctx, "q", "w")
	require.NoError(t, err)
	require.Equal(t, 1, job.Attempt)
}

func TestN7DetailsRideTheChain(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
	r.wire().lose = func(op faultstore.Op) faultstore.Verdict {
		if op.Method == faultstore.Commit {
			return faultstore.LoseRequest
		}
		return faultstore.Pass
	}
	_, pause := r.Pause(r.ctx, "s")
	_, unschedule := r.Unschedule(r.ctx, "s")
	_, schedule := r.Schedule(r.ctx, "t", "@every 1s", "q", nil, tickonce.ScheduleOptions{})
	_, enqueue := r.Enqueue(r.ctx, "q", nil, tickonce.EnqueueOptions{})
	for _, c := range []struct {
		err  error
		want tickonce.OpError
	}{
		{pause, tickonce.OpError{Op: "pause", Schedule: "s", Rows: 1}},
		{unschedule, tickonce.OpError{Op: "unschedule", Schedule: "s", Rows: 1}},
		{schedule, tickonce.OpError{Op: "schedule", Schedule: "t", Rows: 1}},
		{enqueue, tickonce.OpError{Op: "enqueue", Queue: "q"}},
	} {
		var lost *faultstore.Lost
		require.ErrorAs(t, c.err, &lost, "the store's own error is the cause")
		var details *tickonce.OpError
		require.ErrorAs(t, c.err, &details)
		c.want.Err = details.Err
		require.Equal(t, c.want, *details)
	}
}
