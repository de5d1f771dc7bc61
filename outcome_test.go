package tickonce_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// endings keeps the ends of claims that a store is told.
type endings struct {
	store.Store
	told []store.Settle
}

func (s *endings) Settle(ctx context.Context, settles []store.Settle, out []bool) (store.Instant, error) {
	s.told = append(s.told, settles...)
	return s.Store.Settle(ctx, settles, out)
}

func (s *endings) Commit(ctx context.Context, b *store.Batch) (store.Committed, error) {
	s.told = append(s.told, b.Settles...)
	return s.Store.Commit(ctx, b)
}

// ends puts a recorder of ends beneath the engines of the rig to come.
func (r *rig) ends() *endings {
	s := &endings{Store: r.store}
	r.store = s
	return s
}

// Whoever ends a run says how it ended, to the store and in the event, whatever
// becomes of the job by that.
func TestX1TruthTableOfExecutions(t *testing.T) {
	calls := func(then time.Duration, handle tickonce.Handler) func(h *hand) {
		return func(h *hand) {
			h.worker.Ended(h.runs[0], h.runs[0].Call(handle))
			h.work(then)
		}
	}
	returns := func(err error) func(h *hand) {
		return calls(time.Second, func(context.Context, *tickonce.Job) error { return err })
	}
	panics := func(context.Context, *tickonce.Job) error { panic("boom") }
	cutShort := func(handle tickonce.Handler) func(h *hand) {
		return func(h *hand) {
			h.stop(nil)
			h.work(time.Second)
			h.work(11 * time.Second)
			calls(11*time.Second, handle)(h)
		}
	}
	byHand := func(settle func(ctx context.Context, j *tickonce.Job) error) func(h *hand) {
		return func(h *hand) { require.NoError(h.t, settle(h.ctx, h.runs[0].Job)) }
	}
	for _, c := range []struct {
		name string
		end  func(h *hand)
		want tickonce.Execution
		kind tickonce.EventKind
	}{
		{"nil", returns(nil), tickonce.ExecutionOK, tickonce.EventDone},
		{"an error", returns(errBoom), tickonce.ExecutionFailed, tickonce.EventRetried},
		{"a transient error", returns(tickonce.Transient(errBoom)), tickonce.ExecutionFailed, tickonce.EventRetried},
		{"a permanent error", returns(tickonce.Permanent(errBoom)), tickonce.ExecutionFailed, tickonce.EventDied},
		{"an error with a wait", returns(tickonce.RetryAfter(time.Hour, errBoom)), tickonce.ExecutionFailed, tickonce.EventRetried},
		{"a timeout of something in it", returns(context.DeadlineExceeded), tickonce.ExecutionFailed, tickonce.EventRetried},
		{"a panic", calls(time.Second, panics), tickonce.ExecutionPanicked, tickonce.EventRetried},
		{"a panic elsewhere", func(h *hand) {
			h.worker.Ended(h.runs[0], tickonce.Panicked("boom"))
			h.work(time.Second)
		}, tickonce.ExecutionPanicked, tickonce.EventRetried},
		{"its timeout", func(h *hand) { h.work(20 * time.Second) }, tickonce.ExecutionTimedOut, tickonce.EventRetried},
		{"a stop that cuts it short", cutShort(func(context.Context, *tickonce.Job) error { return errBoom }), tickonce.ExecutionCancelled, tickonce.EventRetried},
		{"a panic after the stop has cut it short", cutShort(panics), tickonce.ExecutionPanicked, tickonce.EventRetried},
		{"done after the stop has cut it short", cutShort(delivered), tickonce.ExecutionOK, tickonce.EventDone},
		{"Job.Ack", byHand(func(ctx context.Context, j *tickonce.Job) error { return j.Ack(ctx) }), tickonce.ExecutionOK, tickonce.EventDone},
		{"Job.Retry", byHand(func(ctx context.Context, j *tickonce.Job) error { return j.Retry(ctx, errBoom) }), tickonce.ExecutionFailed, tickonce.EventRetried},
		{"Job.Fail", byHand(func(ctx context.Context, j *tickonce.Job) error { return j.Fail(ctx, nil) }), tickonce.ExecutionFailed, tickonce.EventDied},
		{"AckAll", func(h *hand) {
			_, err := h.AckAll(h.ctx, []*tickonce.Job{h.runs[0].Job})
			require.NoError(h.t, err)
		}, tickonce.ExecutionOK, tickonce.EventDone},
		{"Tx.Ack", func(h *hand) {
			require.NoError(h.t, h.Tx(h.ctx, func(tx *tickonce.Tx) error { return tx.Ack(h.runs[0].Job) }))
		}, tickonce.ExecutionOK, tickonce.EventDone},
		{"Tx.Fail", func(h *hand) {
			require.NoError(h.t, h.Tx(h.ctx, func(tx *tickonce.Tx) error { return tx.Fail(h.runs[0].Job, errBoom) }))
		}, tickonce.ExecutionFailed, tickonce.EventDied},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
				ends := r.ends()
				h := r.hand(tickonce.WorkerConfig{Timeout: 20 * time.Second})
				h.enqueue(1, tickonce.EnqueueOptions{})
				h.work(0)
				h.take()
				c.end(h)
				require.Len(t, ends.told, 1)
				require.Equal(t, c.want, ends.told[0].Ended)
				told := of(c.kind, h.take())
				require.Len(t, told, 1)
				require.Equal(t, c.want, told[0].Execution)
				require.Equal(t, tickonce.DeliveryNone, told[0].Delivery, "X3: there was nothing to deliver")
			})
		})
	}
}

// What a stop gives back before it began was cancelled, not failed.
func TestX1GivenBackIsCancelled(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		ends := r.ends()
		h := r.hand(tickonce.WorkerConfig{})
		h.enqueue(1, tickonce.EnqueueOptions{})
		h.wire.before = once(faultstore.Claim, func() { h.stop(nil) })
		h.work(0)
		require.Len(t, ends.told, 1)
		require.Equal(t, tickonce.ExecutionCancelled, ends.told[0].Ended)
	})
}

func TestX1GoexitHasPanicked(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
		var told []tickonce.Execution
		config := l.Engine.Config()
		config.Observer = func(e tickonce.Event) {
			if e.Kind == tickonce.EventDied {
				told = append(told, e.Execution)
			}
		}
		var err error
		l.Engine, err = tickonce.New(l.store, config)
		require.NoError(t, err)
		l.enqueue(1, tickonce.EnqueueOptions{MaxAttempts: 1})
		stop := l.work(tickonce.WorkerConfig{}, func(context.Context, *tickonce.Job) error {
			runtime.Goexit()
			return nil
		})
		require.NoError(t, stop())
		require.Equal(t, []tickonce.Execution{tickonce.ExecutionPanicked}, told)
	})
}

func TestX1OutcomesHaveNames(t *testing.T) {
	for d, name := range map[tickonce.Delivery]string{
		tickonce.DeliveryNone: "none", tickonce.Delivered: "delivered", tickonce.DeliveryTransient: "transient",
		tickonce.DeliveryPermanent: "permanent", 200: "unknown",
	} {
		require.Equal(t, name, d.String())
	}
}

// notNow is a failure that says of itself whether it is a timeout, as a
// net.Error does.
type notNow bool

func (notNow) Error() string   { return "not now" }
func (e notNow) Timeout() bool { return bool(e) }

// The class of a failed delivery is looked for along the whole chain, and the
// first mark counts.
func TestX6F4ClassesOfDeliveryFailures(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("send: %w", err) }
	const transient, permanent = store.Pending, store.Dead
	for _, c := range []struct {
		name string
		err  error
		to   store.State
	}{
		{"untyped", errBoom, permanent},
		{"marked transient", tickonce.Transient(errBoom), transient},
		{"marked permanent", tickonce.Permanent(errBoom), permanent},
		{"with a wait of its own", tickonce.RetryAfter(time.Second, errBoom), transient},
		{"marked transient, wrapped twice", wrap(wrap(tickonce.Transient(errBoom))), transient},
		{"a permanent timeout, wrapped twice", wrap(wrap(tickonce.Permanent(context.DeadlineExceeded))), permanent},
		{"in one of several", errors.Join(errOuter, wrap(tickonce.Transient(errBoom))), transient},
		{"the outer mark of two", tickonce.Permanent(wrap(tickonce.Transient(errBoom))), permanent},
		{"the outer mark of two, the other way round", tickonce.Transient(wrap(tickonce.Permanent(errBoom))), transient},
		{"the first of two branches", errors.Join(tickonce.Transient(errBoom), tickonce.Permanent(errBoom)), transient},
		{"a deadline", context.DeadlineExceeded, transient},
		{"a deadline, wrapped twice", wrap(wrap(context.DeadlineExceeded)), transient},
		{"a deadline of the system", wrap(os.ErrDeadlineExceeded), transient},
		{"a timeout of the network", wrap(&url.Error{Op: "Post", URL: "/", Err: &net.OpError{Op: "dial", Err: notNow(true)}}), transient},
		{"another error of the network", wrap(&net.OpError{Op: "dial", Err: notNow(false)}), permanent},
		{"no such host", wrap(&net.DNSError{Err: "no such host", IsNotFound: true}), permanent},
		{"a server that did not answer in time", wrap(&net.DNSError{Err: "i/o timeout", IsTimeout: true}), transient},
		{"a context that was cancelled", context.Canceled, permanent},
		{"the end of a stream", io.ErrUnexpectedEOF, permanent},
		{"a chain that cannot be asked", hostile{}, permanent},
		{"an error whose text panics", (*mute)(nil), permanent},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				r.delivers("p")
				r.mustDeliver(func(context.Context, *tickonce.Job) error { return c.err })
				require.Equal(t, c.to, r.entry().State)
			})
		})
	}
}

// A panic of a delivery is no reason to try again.
func TestX6PanicIsPermanent(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.delivers("p")
		r.mustDeliver(func(context.Context, *tickonce.Job) error { panic("boom") })
		require.Equal(t, store.Dead, r.entry().State)
		require.Equal(t, "panic: boom", r.entry().LastError)
	})
}

// An entry that was put into the outbox by itself has no classes (O2).
func TestX6O2PlainEntriesHaveNoClasses(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.post("p")
		r.take()
		r.mustDeliver(undeliverable)
		require.Equal(t, store.Pending, r.entry().State)
		told := of(tickonce.EventDeliveryRetried, r.take())
		require.Len(t, told, 1)
		require.Equal(t, tickonce.DeliveryTransient, told[0].Delivery)
		require.Zero(t, told[0].Execution, "X1: it is no run of a job")
	})
}

func TestMarkOf(t *testing.T) {
	failure := errors.New("no")
	for name, c := range map[string]struct {
		err    error
		mark   tickonce.Mark
		marked bool
	}{
		"none":      {failure, tickonce.Mark{}, false},
		"no error":  {nil, tickonce.Mark{}, false},
		"permanent": {tickonce.Permanent(failure), tickonce.Mark{Permanent: true, After: -1}, true},
		"transient": {tickonce.Transient(failure), tickonce.Mark{After: -1}, true},
		"at once":   {tickonce.RetryAfter(0, failure), tickonce.Mark{}, true},
		"later":     {tickonce.RetryAfter(1500*time.Microsecond, failure), tickonce.Mark{After: 2 * time.Millisecond}, true},
		"as late as can be": {
			tickonce.RetryAfter(math.MaxInt64, failure), tickonce.Mark{After: math.MaxInt64 / time.Millisecond * time.Millisecond}, true,
		},
		"the first counts": {fmt.Errorf("send: %w", tickonce.Permanent(tickonce.Transient(failure))), tickonce.Mark{Permanent: true, After: -1}, true},
	} {
		mark, marked := tickonce.MarkOf(c.err)
		require.Equal(t, c.mark, mark, name)
		require.Equal(t, c.marked, marked, name)
	}
}
