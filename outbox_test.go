package tickonce_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

const outboxQueue = "__alkstore_outbox:o"

// post puts an entry into the outbox "o".
func (r *rig) post(payload string) tickonce.JobID {
	r.t.Helper()
	id, err := r.Outbox("o").Enqueue(r.ctx, []byte(payload), tickonce.OutboxOptions{})
	require.NoError(r.t, err)
	return id
}

// deliver runs the outbox "o" once.
func (r *rig) deliver(deliver func(context.Context, *tickonce.Job) error) (bool, error) {
	return r.Outbox("o").RunOnce(r.ctx, "w", deliver)
}

// mustDeliver is deliver where there has to be an entry, and no fault.
func (r *rig) mustDeliver(deliver func(context.Context, *tickonce.Job) error) {
	r.t.Helper()
	found, err := r.deliver(deliver)
	require.NoError(r.t, err)
	require.True(r.t, found)
}

// entry is the only row of the outbox "o".
func (r *rig) entry() store.Job {
	r.t.Helper()
	jobs := r.jobs(outboxQueue)
	require.Len(r.t, jobs, 1)
	return jobs[0]
}

func TestO1RunOnceWithoutADelivery(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	r.post("p")
	r.take()
	r.refusedUnwritten("no delivery", tickonce.ErrInvalidOption, func(e *tickonce.Engine) error {
		_, err := e.Outbox("o").RunOnce(r.ctx, "w", nil)
		return err
	})
}

func undeliverable(context.Context, *tickonce.Job) error { return errBoom }

func TestO1RunOnceWithoutAnEntry(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		found, err := r.deliver(func(context.Context, *tickonce.Job) error {
			require.Fail(t, "nothing to deliver")
			return nil
		})
		require.NoError(t, err)
		require.False(t, found)
	})
}

func TestO1OutboxStampsAndQueue(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.post("p")
		require.Equal(t, store.Stamps{VisibilityMS: 60_000, BaseBackoffMS: 5_000, MaxAttempts: 5}, r.entry().Stamps)
		_, err := r.Outbox("p").Enqueue(r.ctx, nil, tickonce.OutboxOptions{MaxAttempts: 9, Key: "k"})
		require.NoError(t, err)
		row := r.jobs("__alkstore_outbox:p")[0]
		require.Equal(t, store.Stamps{VisibilityMS: 60_000, BaseBackoffMS: 5_000, MaxAttempts: 9}, row.Stamps)
		require.Equal(t, "k", row.Key)

		longest := strings.Repeat("n", 128)
		_, err = r.Outbox(longest).Enqueue(r.ctx, nil, tickonce.OutboxOptions{})
		require.NoError(t, err)
		require.Len(t, "__alkstore_outbox:"+longest, 146)
		require.Len(t, r.jobs("__alkstore_outbox:"+longest), 1)
	})
}

func TestO1BadOutboxNames(t *testing.T) {
	for name, want := range map[string]error{
		"": tickonce.ErrInvalidName, strings.Repeat("n", 129): tickonce.ErrInvalidName, "__alkstore_x": tickonce.ErrReservedName,
	} {
		onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
			w := r.wire()
			o := r.Outbox(name)
			errs := map[string]error{}
			_, errs["Enqueue"] = o.Enqueue(r.ctx, nil, tickonce.OutboxOptions{})
			_, errs["RunOnce"] = o.RunOnce(r.ctx, "w", undeliverable)
			_, _, errs["NextClaimAt"] = o.NextClaimAt(r.ctx)
			_, errs["Info"] = o.Info(r.ctx)
			_, errs["Sweep"] = o.Sweep(r.ctx)
			_, errs["Requeue"] = o.Requeue(r.ctx, 1)
			errs["Purge"] = o.Purge(r.ctx, 1)
			for _, err := range o.Dead(r.ctx) {
				errs["Dead"] = err
			}
			require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
				_, errs["Tx"] = tx.Outbox(name).Enqueue(nil, tickonce.OutboxOptions{})
				return nil
			}))
			require.Len(t, errs, 9)
			for call, err := range errs {
				require.ErrorIs(t, err, want, call)
			}
			require.Empty(t, w.take())
		})
	}
}

func TestO2DeliveredIsDone(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		id := r.post("p")
		r.mustDeliver(func(_ context.Context, job *tickonce.Job) error {
			require.Equal(t, id, job.ID)
			require.Equal(t, "p", string(job.Payload))
			return nil
		})
		require.Empty(t, r.jobs(outboxQueue))
		info, err := r.Outbox("o").Info(r.ctx)
		require.NoError(t, err)
		require.Equal(t, int64(1), info.Done)
	})
}

// A delivery that cannot decode its payload says so like any failure: the
// entry is not left claimed.
func TestO6UndecodablePayloadIsADeliveryFailure(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.post("{ no JSON")
		r.mustDeliver(func(_ context.Context, job *tickonce.Job) error {
			var decoded map[string]string
			return json.Unmarshal(job.Payload, &decoded)
		})
		require.Equal(t, store.Pending, r.entry().State)
		require.Equal(t, "invalid character 'n' looking for beginning of object key string", r.entry().LastError)
		require.Equal(t, "{ no JSON", string(r.entry().Payload))
	})
}

func TestO3FifthFailureIsDead(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		id := r.post("p")
		for attempt := 1; attempt <= 5; attempt++ {
			before := r.now()
			r.mustDeliver(func(_ context.Context, job *tickonce.Job) error {
				require.Equal(t, attempt, job.Attempt)
				return errors.New("failure " + strings.Repeat("I", attempt))
			})
			if attempt < 5 {
				row := r.entry()
				require.Equal(t, store.Pending, row.State, "not left claimed")
				require.Equal(t, "failure "+strings.Repeat("I", attempt), row.LastError)
				most := 5 * time.Second << (attempt - 1)
				wait := time.Duration(row.RunAt-instant(before)) * time.Millisecond
				require.GreaterOrEqual(t, wait, most/2)
				require.LessOrEqual(t, wait, most)
				r.at(before + wait)
			}
		}
		found, err := r.deliver(undeliverable)
		require.NoError(t, err)
		require.False(t, found)
		var dead []tickonce.DeadJob
		for job, err := range r.Outbox("o").Dead(r.ctx) {
			require.NoError(t, err)
			dead = append(dead, job)
		}
		require.Len(t, dead, 1)
		require.Equal(t, id, dead[0].ID)
		require.Equal(t, "failure IIIII", dead[0].LastError)
		require.Equal(t, 5, dead[0].Attempts)

		again, err := r.Outbox("o").Requeue(r.ctx, id)
		require.NoError(t, err)
		r.mustDeliver(func(_ context.Context, job *tickonce.Job) error {
			require.Equal(t, again, job.ID)
			require.Equal(t, 1, job.Attempt)
			return nil
		})
		require.Empty(t, r.jobs(outboxQueue))
	})
}

// O4: a delivery that takes 61 s without its own heartbeat loses its claim;
// the engine makes no call beside the claim and the settlement.
func TestO4NoHeartbeatOfTheEngine(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.post("p")
		w.take()
		found, err := r.deliver(func(_ context.Context, job *tickonce.Job) error {
			require.Equal(t, start.Add(time.Minute), job.Deadline, "the raw deadline")
			require.Equal(t, "claim", w.take())
			r.at(61 * time.Second)
			r.mustDeliver(func(_ context.Context, other *tickonce.Job) error {
				require.Equal(t, job.ID, other.ID)
				require.Equal(t, 2, other.Attempt)
				return errBoom
			})
			require.Equal(t, "claim settle", w.take())
			return nil
		})
		require.True(t, found)
		require.Equal(t, tickonce.ErrClaimLost, err)
		require.Equal(t, "settle", w.take())
	})
}

func TestO4DeliveryRenewsItsOwnClaim(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.post("p")
		r.mustDeliver(func(_ context.Context, job *tickonce.Job) error {
			for range 5 {
				r.at(r.now() + 59*time.Second)
				require.NoError(t, job.Heartbeat(r.ctx, 0))
			}
			return nil
		})
		require.Empty(t, r.jobs(outboxQueue))
	})
}

func TestO5ClaimLostDuringDelivery(t *testing.T) {
	for _, c := range []struct {
		name    string
		outcome func() error
	}{
		{"delivered", func() error { return nil }},
		{"failed", func() error { return errBoom }},
		{"panicked", func() error { panic("boom") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				r.post("p")
				claimed := store.Job{}
				found, err := r.deliver(func(context.Context, *tickonce.Job) error {
					claimed = r.entry()
					r.at(time.Minute + time.Millisecond)
					return c.outcome()
				})
				require.True(t, found)
				require.Equal(t, tickonce.ErrClaimLost, err)
				require.Equal(t, claimed, r.entry(), "untouched")
			})
		})
	}
}

// spoken is a value with a text, thrown.
type spoken struct{}

func (spoken) String() string { return "spoken" }

// Whatever a delivery throws or does to its goroutine is the entry's failure,
// and the outbox works on.
func TestC93DeliveryThatDoesNotReturn(t *testing.T) {
	const noText = "a value that is neither an error nor a string"
	none := len("")
	for _, c := range []struct {
		name string
		do   func()
		kept string
	}{
		{"panic with an error", func() { panic(errBoom) }, "panic: boom"},
		{"panic with a text", func() { panic("text") }, "panic: text"},
		{"panic(nil)", func() { panic(nil) }, "panic: " + new(runtime.PanicNilError).Error()},
		{"panic with a number", func() { panic(7) }, "panic: 7"},
		{"panic with what has a text", func() { panic(spoken{}) }, "panic: spoken"},
		{"panic with what has none", func() { panic(struct{}{}) }, "panic: " + noText},
		{"panic with an error whose text panics", func() { panic((*mute)(nil)) }, "panic: an error without a text: asking for it panics"},
		{"a fault of the runtime", func() { _ = make([]int, none)[none] }, "panic: runtime error: index out of range [0] with length 0"},
		{"runtime.Goexit", runtime.Goexit, "deliver ended its goroutine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				r.post("p")
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					found, err := r.deliver(func(context.Context, *tickonce.Job) error {
						c.do()
						return nil
					})
					if err != nil || !found {
						t.Error(found, err)
					}
				}()
				<-ended
				require.Equal(t, store.Pending, r.entry().State)
				require.Equal(t, c.kept, r.entry().LastError)
				r.at(time.Hour)
				r.mustDeliver(func(context.Context, *tickonce.Job) error { return nil })
				require.Empty(t, r.jobs(outboxQueue))
			})
		})
	}
}

func TestO2ErrorWhoseTextPanics(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.post("p")
		r.mustDeliver(func(context.Context, *tickonce.Job) error { return (*mute)(nil) })
		require.Equal(t, store.Pending, r.entry().State)
		r.at(time.Hour)
		r.mustDeliver(func(ctx context.Context, job *tickonce.Job) error { return tickonce.Handler(nil)(ctx, job) })
		require.Equal(t, "panic: runtime error: invalid memory address or nil pointer dereference", r.entry().LastError)
	})
}

func TestO2MarkedErrors(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.post("p")
		r.mustDeliver(func(context.Context, *tickonce.Job) error { return tickonce.RetryAfter(time.Hour, errBoom) })
		require.Equal(t, instant(time.Hour), r.entry().RunAt)
		r.at(time.Hour)
		r.mustDeliver(func(context.Context, *tickonce.Job) error { return tickonce.Permanent(errBoom) })
		require.Equal(t, store.Dead, r.entry().State)
		require.Equal(t, "boom", r.entry().LastError)
	})
}

// A context that ends during the delivery does not leave the entry claimed.
func TestO2SettlementOutlivesItsContext(t *testing.T) {
	for _, outcome := range []error{nil, errBoom} {
		onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
			r.post("p")
			ctx, cancel := context.WithCancel(r.ctx)
			found, err := r.Outbox("o").RunOnce(ctx, "w", func(got context.Context, _ *tickonce.Job) error {
				cancel()
				require.ErrorIs(t, got.Err(), context.Canceled)
				return outcome
			})
			require.NoError(t, err)
			require.True(t, found)
			info, err := r.Outbox("o").Info(r.ctx)
			require.NoError(t, err)
			require.Zero(t, info.Claimed)
		})
	}
}

// Only the engine's own faults are returned; an entry whose settlement is lost
// is delivered again, if it was not done.
func TestO1FaultsOfTheStore(t *testing.T) {
	for _, c := range []struct {
		name    string
		method  faultstore.Method
		verdict faultstore.Verdict
		found   bool
		op      string
		again   bool
	}{
		{"the claim's request", faultstore.Claim, faultstore.LoseRequest, false, "claim", true},
		{"the claim's reply", faultstore.Claim, faultstore.LoseReply, false, "claim", true},
		{"the settlement's request", faultstore.Settle, faultstore.LoseRequest, true, "ack", true},
		{"the settlement's reply", faultstore.Settle, faultstore.LoseReply, true, "ack", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.post("p")
				w.lose = first(1, c.method, c.verdict)
				deliver := func(context.Context, *tickonce.Job) error { return nil }
				found, err := r.deliver(deliver)
				require.Equal(t, c.found, found)
				require.ErrorIs(t, err, faultstore.ErrLost)
				require.Equal(t, c.op, opError(t, err).Op)
				require.Equal(t, outboxQueue, opError(t, err).Queue)
				r.at(time.Minute + time.Millisecond)
				found, err = r.deliver(deliver)
				require.NoError(t, err)
				require.Equal(t, c.again, found)
				require.Empty(t, r.jobs(outboxQueue))
			})
		})
	}
}

func TestOutboxSweepNextClaimAtAndPurge(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		o := r.Outbox("o")
		_, err := o.Enqueue(r.ctx, nil, tickonce.OutboxOptions{MaxAttempts: 1})
		require.NoError(t, err)
		at, ok, err := o.NextClaimAt(r.ctx)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, start, at)
		found, err := o.RunOnce(r.ctx, "w", func(context.Context, *tickonce.Job) error {
			r.at(2 * time.Minute)
			n, err := o.Sweep(r.ctx)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			return nil
		})
		require.True(t, found)
		require.Equal(t, tickonce.ErrClaimLost, err)
		require.NoError(t, o.Purge(r.ctx, r.entry().ID))
		_, ok, err = o.NextClaimAt(r.ctx)
		require.NoError(t, err)
		require.False(t, ok)
	})
}
