package tickonce_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// mailer is a worker of the outbox "o", on the wire of the rig's newest process.
func (r *rig) mailer(c tickonce.WorkerConfig) *hand {
	r.t.Helper()
	h := &hand{rig: r, wire: r.wire(), gone: map[*tickonce.Run]bool{}}
	h.ctx, h.stop = context.WithCancelCause(r.ctx)
	var err error
	h.worker, err = r.Outbox("o").NewWorker(c)
	require.NoError(r.t, err)
	return h
}

func onEachMailer(t *testing.T, c tickonce.WorkerConfig, test func(t *testing.T, h *hand)) {
	t.Helper()
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) { test(t, r.mailer(c)) })
}

// A worker over an outbox settles entries of both kinds as RunOnce does.
func TestX1X7O2F9WorkerOfAnOutbox(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		kind tickonce.EventKind // of a delivery
		post tickonce.EventKind // of a plain entry
	}{
		{"delivered", nil, tickonce.EventDelivered, tickonce.EventDelivered},
		{"untyped", errBoom, tickonce.EventDeliveryFailed, tickonce.EventDeliveryRetried},
		{"transient", tickonce.Transient(errBoom), tickonce.EventDeliveryRetried, tickonce.EventDeliveryRetried},
		{"permanent", tickonce.Permanent(errBoom), tickonce.EventDeliveryFailed, tickonce.EventDeliveryFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachMailer(t, tickonce.WorkerConfig{Concurrency: 2}, func(t *testing.T, h *hand) {
				h.delivers("p")
				h.post("p")
				h.work(0)
				require.Len(t, h.runs, 2)
				h.take()
				for i, kind := range []tickonce.EventKind{c.kind, c.post} {
					h.worker.Ended(h.runs[i], c.err)
					h.work(0)
					told := h.take()
					require.Equal(t, kind, told[0].Kind)
					require.NotZero(t, told[0].Delivery)
					require.Zero(t, told[0].Execution)
				}
			})
		})
	}
}

// O4: a try is as long as it may be, and no call renews its claim meanwhile.
func TestX7O4TriesMeetTheirDeadline(t *testing.T) {
	for _, c := range []struct {
		name   string
		post   func(r *rig)
		config tickonce.WorkerConfig
		after  time.Duration
		text   string
	}{
		{"a delivery", func(r *rig) { r.delivers("p") }, tickonce.WorkerConfig{}, 30 * time.Second, "timed out after 30s"},
		{"a delivery, of an impatient worker", func(r *rig) { r.delivers("p") }, tickonce.WorkerConfig{Timeout: time.Second}, time.Second, "timed out after 1s"},
		{"a delivery, of a patient worker", func(r *rig) { r.delivers("p") }, tickonce.WorkerConfig{Timeout: time.Hour}, 30 * time.Second, "timed out after 30s"},
		{"a plain entry", func(r *rig) { r.post("p") }, tickonce.WorkerConfig{}, time.Minute, "timed out after 1m0s"},
		{"a plain entry, of a patient worker", func(r *rig) { r.post("p") }, tickonce.WorkerConfig{Timeout: time.Hour}, time.Minute, "timed out after 1m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachMailer(t, c.config, func(t *testing.T, h *hand) {
				c.post(h.rig)
				h.work(0)
				require.Len(t, h.runs, 1)
				require.Equal(t, c.after, h.next, "no renewal before")
				require.Empty(t, h.work(c.after-time.Millisecond))
				require.Equal(t, "settle", h.work(c.after))
				require.ErrorIs(t, context.Cause(h.runs[0].Context()), context.DeadlineExceeded)
				require.Equal(t, store.Pending, h.entry().State, "a timeout is transient")
				require.Equal(t, c.text, h.entry().LastError)
			})
		})
	}
}

// Three tries that hang release all that they held, each at its deadline.
func TestX7SBD6HungDeliveryReleasesEverything(t *testing.T) {
	onEachMailer(t, tickonce.WorkerConfig{Concurrency: 3}, func(t *testing.T, h *hand) {
		job := h.delivers("p")
		h.take()
		var at []time.Duration
		for h.now() < time.Hour {
			h.work(h.next)
			for len(at) < len(h.runs) {
				at = append(at, h.now())
			}
		}
		require.Equal(t, []time.Duration{0, 31 * time.Second, 63 * time.Second}, at, "30 s each, and waits of 1 s and 2 s")
		require.Equal(t, store.Dead, h.entry().State)
		failed := of(tickonce.EventDeliveryFailed, h.take())
		require.Len(t, failed, 1)
		require.Equal(t, tickonce.DeliveryTransient, failed[0].Delivery)
		require.Equal(t, job.ID, failed[0].Origin)
		var origins []tickonce.JobID
		for dead, err := range h.Outbox("o").Dead(h.ctx) {
			require.NoError(t, err)
			origins = append(origins, dead.Origin)
		}
		require.Equal(t, []tickonce.JobID{job.ID}, origins)
		for _, run := range h.runs {
			h.worker.Ended(run, nil) // too late
		}
		h.stop(nil)
		h.work(h.now())
		require.True(t, h.ended)
		require.NoError(t, h.err)
	})
}

// What a stop cuts short is delivered again, whatever it says: a context that
// ended is no reason to give up for good.
func TestX6W6StopGivesDeliveriesBack(t *testing.T) {
	onEachMailer(t, tickonce.WorkerConfig{StopTimeout: time.Second}, func(t *testing.T, h *hand) {
		h.delivers("p")
		h.work(0)
		h.stop(nil)
		h.work(0)
		h.work(time.Second)
		h.worker.Ended(h.runs[0], context.Cause(h.runs[0].Context()))
		h.work(time.Second)
		require.True(t, h.ended)
		require.Equal(t, store.Pending, h.entry().State)
		require.Equal(t, instant(time.Second), h.entry().RunAt)
	})
}

func TestX6StoppedRunOnceGivesDeliveriesBack(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.delivers("p")
		ctx, cancel := context.WithCancel(r.ctx)
		found, err := r.Outbox("o").RunOnce(ctx, "w", func(ctx context.Context, _ *tickonce.Job) error {
			cancel()
			return ctx.Err()
		})
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, store.Pending, r.entry().State)
	})
}

// A worker of the outbox wakes at once when a run of the same engine delivers.
func TestX2W3DeliveriesWakeTheOutbox(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
		var at []time.Duration
		stopMail := l.mail(tickonce.WorkerConfig{}, func(_ context.Context, entry *tickonce.Job) error {
			require.Equal(t, "result", string(entry.Payload))
			at = append(at, l.now())
			return nil
		})
		stop := l.work(tickonce.WorkerConfig{}, func(_ context.Context, job *tickonce.Job) error {
			time.Sleep(3 * time.Second)
			return job.Deliver("o", []byte("result"))
		})
		l.enqueue(2, tickonce.EnqueueOptions{})
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []time.Duration{3 * time.Second, 6 * time.Second}, at)
		require.NoError(t, stop())
		require.NoError(t, stopMail())
	})
}

// A delivery that hangs, and does not heed its context, holds up nothing but its
// slot: others are delivered, and the stop ends with what is left behind.
func TestX7OutboxRunOutlivesAHungDelivery(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
		var delivered []time.Duration
		stop := l.mail(tickonce.WorkerConfig{Concurrency: 2}, func(_ context.Context, entry *tickonce.Job) error {
			if string(entry.Payload) == "hangs" {
				time.Sleep(time.Hour)
				return nil
			}
			delivered = append(delivered, l.now())
			return nil
		})
		l.delivers("hangs")
		time.Sleep(10 * time.Second)
		l.delivers("does not")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, []time.Duration{10 * time.Second}, delivered)
		info, err := l.Outbox("o").Info(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, info.Retried, "at 30 s")
		require.EqualValues(t, 1, info.Claimed, "its second try")
		var left *tickonce.AbandonedError
		require.ErrorAs(t, stop(), &left)
		require.Equal(t, 2, left.Running)
		time.Sleep(2 * time.Hour) // the bubble waits for what was left
	})
}

// A RunOnce whose delivery heeds its context is bounded, too.
func TestX7RunOnceHasADeadline(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
		l.delivers("p")
		found, err := l.Outbox("o").RunOnce(t.Context(), "w", sleeps(time.Hour))
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, 30*time.Second, l.now())
		info, err := l.Outbox("o").Info(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, info.Retried)

		// A plain entry has none but its claim's.
		_, err = l.Outbox("p").Enqueue(t.Context(), nil, tickonce.OutboxOptions{})
		require.NoError(t, err)
		found, err = l.Outbox("p").RunOnce(t.Context(), "w", func(ctx context.Context, _ *tickonce.Job) error {
			_, bounded := ctx.Deadline()
			require.False(t, bounded)
			return nil
		})
		require.NoError(t, err)
		require.True(t, found)
	})
}

// A deliver that gives up at the deadline of the try was in time for nothing,
// and the failure transient, whatever error it returns but a marked one.
func TestX6RunOnceMeetsTheDeadlineOfTheTry(t *testing.T) {
	for _, c := range []struct {
		failure       error
		retried, dead int64
	}{
		{errors.New("gave up"), 1, 0},
		{tickonce.Permanent(errors.New("gave up")), 0, 1},
	} {
		inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
			l.delivers("p")
			found, err := l.Outbox("o").RunOnce(t.Context(), "w", func(ctx context.Context, _ *tickonce.Job) error {
				<-ctx.Done()
				return c.failure
			})
			require.NoError(t, err)
			require.True(t, found)
			info, err := l.Outbox("o").Info(t.Context())
			require.NoError(t, err)
			require.Equal(t, []int64{c.retried, c.dead}, []int64{info.Retried, info.Dead})
		})
	}
}

func TestX7OutboxWorkerIsChecked(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	for _, bad := range badNames {
		r.refusedUnwritten(bad.name, bad.want, func(e *tickonce.Engine) error {
			return e.Outbox(bad.text).Run(r.ctx, nil, tickonce.WorkerConfig{Concurrency: -1})
		})
	}
	r.refusedUnwritten("no slot", tickonce.ErrInvalidOption, func(e *tickonce.Engine) error {
		return e.Outbox("o").Run(r.ctx, nil, tickonce.WorkerConfig{Concurrency: -1})
	})
	r.refusedUnwritten("no delivery", tickonce.ErrInvalidOption, func(e *tickonce.Engine) error {
		err := e.Outbox("o").Run(r.ctx, nil, tickonce.WorkerConfig{})
		require.ErrorContains(t, err, "deliver is nil")
		return err
	})
}

// The default name of a worker is a name, however long the owner is.
func TestW2DefaultNamesAreNames(t *testing.T) {
	for _, owner := range []string{
		"host", strings.Repeat("o", 119), strings.Repeat("o", 120), strings.Repeat("o", 128), strings.Repeat("é", 64),
		strings.Repeat("⏰", 42), "o" + strings.Repeat(" ", 126) + "o", strings.Repeat("o", 9) + strings.Repeat(" ", 118) + "o",
	} {
		r := newRig(t, tickonce.Config{Owner: owner, Poll: -1})
		h := r.hand(tickonce.WorkerConfig{})
		h.enqueue(1, tickonce.EnqueueOptions{})
		h.work(0)
		name := h.only().Worker
		require.LessOrEqual(t, len(name), 128)
		require.True(t, strings.HasSuffix(name, "/worker-1"), name)
		_, err := r.NewWorker("q", tickonce.WorkerConfig{Name: name})
		require.NoError(t, err)
		if len(owner) <= 119 {
			require.Equal(t, owner+"/worker-1", name)
		}
	}
}

// mail starts the loop of a worker over the outbox "o"; stop ends it and answers
// its error.
func (l *looped) mail(c tickonce.WorkerConfig, deliver tickonce.Handler) (stop func() error) {
	ctx, cancel := context.WithCancel(l.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Outbox("o").Run(ctx, deliver, c) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-ended
	}
}

// delivers runs a job whose result goes to the outbox "o".
func (l *looped) delivers(payload string) {
	l.t.Helper()
	l.enqueue(1, tickonce.EnqueueOptions{})
	job, err := l.Claim(l.t.Context(), "q", "w")
	require.NoError(l.t, err)
	require.NoError(l.t, job.Deliver("o", []byte(payload)))
	require.NoError(l.t, job.Ack(l.t.Context()))
}
