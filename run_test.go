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
	"github.com/tickonce/tickonce/store"
)

func TestX5TimeoutIsAFailure(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Timeout: 20 * time.Second}, func(t *testing.T, h *hand) {
		h.enqueue(2, tickonce.EnqueueOptions{Visibility: 30 * time.Second})
		h.work(0)
		run := h.runs[0]
		h.work(10 * time.Second) // renewals move no timeout
		h.work(19_999 * time.Millisecond)
		require.NoError(t, run.Context().Err())
		require.Equal(t, 20*time.Second, h.next)

		require.Equal(t, "settle", h.work(20*time.Second))
		require.ErrorIs(t, context.Cause(run.Context()), context.DeadlineExceeded)
		row := h.jobs("q")[0]
		require.Equal(t, store.Pending, row.State)
		require.Equal(t, "timed out after 20s", row.LastError)
		require.Greater(t, row.RunAt, instant(20*time.Second), "after the curve")

		require.Empty(t, h.work(21*time.Second), "its handler has the slot still")
		h.worker.Ended(run, nil) // too late
		require.Equal(t, "claim", h.work(21*time.Second))
		require.Zero(t, h.queue().Done)
	})
}

// A timeout at the last attempt is death, with its text.
func TestX5TimeoutAtTheLastAttempt(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Timeout: 20 * time.Second}, func(t *testing.T, h *hand) {
		h.enqueue(1, tickonce.EnqueueOptions{MaxAttempts: 1})
		h.work(0)
		h.work(20 * time.Second)
		require.Equal(t, store.Dead, h.only().State)
		require.Equal(t, "timed out after 20s", h.only().LastError)
	})
}

// An outcome that is there at the timeout is the outcome, whenever it comes to
// be settled.
func TestX5OutcomeBeforeTheTimeoutCounts(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Timeout: 20 * time.Second}, func(t *testing.T, h *hand) {
		h.enqueue(1, tickonce.EnqueueOptions{})
		h.work(0)
		h.at(20 * time.Second)
		h.worker.Ended(h.runs[0], nil)
		h.work(time.Minute)
		require.EqualValues(t, 1, h.queue().Done)
	})
}

// X5 counts from the claim, whose answer may be slow to come.
func TestX5TimeoutCountsFromTheClaim(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Timeout: 20 * time.Second}, func(t *testing.T, h *hand) {
		h.enqueue(1, tickonce.EnqueueOptions{})
		h.wire.before = func(op faultstore.Op) {
			if op.Method == faultstore.Claim {
				h.at(8 * time.Second)
			}
		}
		h.work(0)
		require.Equal(t, 20*time.Second, h.next)
	})
}

// A timed-out handler that returns before its end is settled is settled once.
func TestX5ReturnWhileTheTimeoutIsUnsettled(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Timeout: 20 * time.Second}, func(t *testing.T, h *hand) {
		h.enqueue(1, tickonce.EnqueueOptions{})
		h.work(0)
		h.wire.lose = first(1, faultstore.Settle, faultstore.LoseRequest)
		require.Equal(t, "settle", h.work(20*time.Second))
		h.worker.Ended(h.runs[0], nil)
		require.Contains(t, h.work(h.next), "settle")
		require.Equal(t, "timed out after 20s", h.only().LastError)
		require.EqualValues(t, 1, h.queue().Retried)
	})
}

var errOuter = errors.New("outer")

// hostile is an error that panics when its chain is asked.
type hostile struct{}

func (hostile) Error() string { return "hostile" }
func (hostile) As(any) bool   { panic("asked") }

func TestW5ReturnedErrorsEndTheAttempt(t *testing.T) {
	wrap := func(err error) error { return errors.Join(errOuter, err) }
	for _, c := range []struct {
		name  string
		err   error
		state store.State // 0: done
		after time.Duration
		text  string
	}{
		{"nil", nil, 0, 0, ""},
		{"an error", errBoom, store.Pending, -1, "boom"},
		{"permanent", tickonce.Permanent(errBoom), store.Dead, 0, "boom"},
		{"permanent, wrapped", wrap(tickonce.Permanent(errBoom)), store.Dead, 0, "outer\nboom"},
		{"permanent nil", tickonce.Permanent(nil), 0, 0, ""},
		{"retry after", tickonce.RetryAfter(7*time.Second, errBoom), store.Pending, 7 * time.Second, "boom"},
		{"retry after, wrapped twice", wrap(wrap(tickonce.RetryAfter(time.Hour, errBoom))), store.Pending, time.Hour, "outer\nouter\nboom"},
		{"retry at once", tickonce.RetryAfter(0, errBoom), store.Pending, 0, "boom"},
		{"retry before now", tickonce.RetryAfter(-time.Hour, errBoom), store.Pending, 0, "boom"},
		{"a fraction of a millisecond later", tickonce.RetryAfter(1, errBoom), store.Pending, time.Millisecond, "boom"},
		{"retry after nothing", tickonce.RetryAfter(time.Second, nil), 0, 0, ""},
		{"the outer mark wins", tickonce.RetryAfter(time.Second, wrap(tickonce.Permanent(errBoom))), store.Pending, time.Second, "outer\nboom"},
		{"the first mark wins", tickonce.Permanent(tickonce.RetryAfter(time.Second, errBoom)), store.Dead, 0, "boom"},
		{"an error that cannot be asked", hostile{}, store.Pending, -1, "hostile"},
		{"an error whose text panics", (*mute)(nil), store.Pending, -1, "an error without a text: asking for it panics"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
				h.enqueue(1, tickonce.EnqueueOptions{BaseBackoff: time.Minute})
				h.work(0)
				h.step()
				h.worker.Ended(h.runs[0], h.runs[0].Call(func(context.Context, *tickonce.Job) error { return c.err }))
				require.Equal(t, tickonce.PhaseSettle, h.step().Phase)
				if c.state == 0 {
					require.Empty(t, h.jobs("q"))
					require.EqualValues(t, 1, h.queue().Done)
					return
				}
				row := h.only()
				require.Equal(t, c.state, row.State)
				require.Equal(t, c.text, row.LastError)
				switch {
				case c.state == store.Dead:
				case c.after < 0:
					require.GreaterOrEqual(t, row.RunAt, instant(30*time.Second))
					require.LessOrEqual(t, row.RunAt, instant(time.Minute))
				default:
					require.Equal(t, instant(c.after), row.RunAt)
				}
			})
		})
	}
}

func TestW5RetryAfterAtTheLastAttemptIsDeath(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
		h.enqueue(1, tickonce.EnqueueOptions{MaxAttempts: 1})
		h.work(0)
		h.worker.Ended(h.runs[0], tickonce.RetryAfter(time.Second, errBoom))
		h.work(0)
		require.Equal(t, store.Dead, h.only().State)
	})
}

// throws panics where a test can find it.
func throws(p any) { panic(p) }

func TestX5W5C93PanicIsAFailureWithItsPlace(t *testing.T) {
	none := len("")
	for _, c := range []struct {
		name string
		do   func()
		text string
		at   string
	}{
		{"a text", func() { throws("boom") }, "panic: boom", "throws"},
		{"an error", func() { throws(errBoom) }, "panic: boom", "throws"},
		{"nil", func() { throws(nil) }, "panic: panic called with nil argument", "throws"},
		{"a fault of the runtime", func() { _ = make([]int, none)[none] }, "panic: runtime error: index out of range [0] with length 0", "PanicIsAFailureWithItsPlace"},
		{"a panic in a panic", func() { defer throws("second"); panic("first") }, "panic: second", "throws"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
				h.enqueue(1, tickonce.EnqueueOptions{})
				h.work(0)
				h.worker.Ended(h.runs[0], h.runs[0].Call(func(context.Context, *tickonce.Job) error { c.do(); return nil }))
				h.work(0)
				require.Equal(t, store.Pending, h.only().State)
				text, place, _ := strings.Cut(h.only().LastError, ", at github.com/tickonce/tickonce_test.")
				require.True(t, strings.HasPrefix(text, c.text), text)
				require.Contains(t, place, c.at)
				require.Contains(t, place, "(run_test.go:")
			})
		})
	}
}

func TestW5RunEndsOnce(t *testing.T) {
	h := newRig(t, tickonce.Config{}).hand(tickonce.WorkerConfig{})
	h.enqueue(1, tickonce.EnqueueOptions{})
	h.work(0)
	h.worker.Ended(h.runs[0], nil)
	require.Panics(t, func() { h.worker.Ended(h.runs[0], nil) })
}
