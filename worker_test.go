package tickonce_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// hand is a worker of the rig's queue "q", on a wire, that the test steps.
type hand struct {
	*rig
	wire   *wire
	worker *tickonce.Worker
	ctx    context.Context
	stop   context.CancelCauseFunc

	runs   []*tickonce.Run // begun, since the beginning
	phases []tickonce.Phase
	next   time.Duration // when it wants to be called again
	other  *tickonce.Job // in the hands of another
	gone   map[*tickonce.Run]bool
	ended  bool
	err    error // of its end
}

func (r *rig) hand(c tickonce.WorkerConfig) *hand {
	r.t.Helper()
	h := &hand{rig: r, wire: r.wire(), gone: map[*tickonce.Run]bool{}}
	h.ctx, h.stop = context.WithCancelCause(r.ctx)
	var err error
	h.worker, err = r.NewWorker("q", c)
	require.NoError(r.t, err)
	return h
}

// step makes one step.
func (h *hand) step() *tickonce.WorkerReport {
	h.t.Helper()
	next, report, err := h.worker.Step(h.ctx)
	h.runs = append(h.runs, report.Begun...)
	if report.Phase != "" {
		h.phases = append(h.phases, report.Phase)
	}
	if next.IsZero() {
		h.ended, h.err = true, err
		return report
	}
	require.NoError(h.t, err)
	h.next = offset(next)
	return report
}

// work sets the clock and steps until the worker rests or ends, and answers
// the calls that it made.
func (h *hand) work(at time.Duration) string {
	h.t.Helper()
	h.at(at)
	h.wire.take()
	for range 10_000 {
		h.step()
		if h.ended || h.next > h.now() {
			return h.wire.take()
		}
	}
	require.FailNow(h.t, "the worker does not rest")
	return ""
}

// enqueue puts n jobs into the queue.
func (h *hand) enqueue(n int, o tickonce.EnqueueOptions) {
	h.t.Helper()
	for range n {
		h.rig.enqueue("p", o)
	}
}

// only is the one job that the queue keeps.
func (h *hand) only() store.Job {
	h.t.Helper()
	jobs := h.jobs("q")
	require.Len(h.t, jobs, 1)
	return jobs[0]
}

func onEachHand(t *testing.T, c tickonce.WorkerConfig, test func(t *testing.T, h *hand)) {
	t.Helper()
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) { test(t, r.hand(c)) })
}

func TestW1L11WorkerStepMakesAtMostOneCall(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Concurrency: 2}, func(t *testing.T, h *hand) {
		h.enqueue(3, tickonce.EnqueueOptions{})
		for range 30 {
			h.wire.take()
			report := h.step()
			calls := h.wire.calls
			require.LessOrEqual(t, len(calls), 1)
			require.Equal(t, len(calls) == 1, report.Phase != "")
			for _, run := range report.Begun {
				h.worker.Ended(run, nil)
			}
		}
		require.EqualValues(t, 3, h.queue().Done)
		require.Equal(t, []tickonce.Phase{"claim", "settle", "claim", "settle", "ask"}, h.phases)
	})
}

func TestW1TooSoonAStepDoesNothing(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
		h.enqueue(1, tickonce.EnqueueOptions{Delay: time.Minute})
		require.Equal(t, "claim queues", h.work(0))
		require.Equal(t, time.Minute, h.next)
		require.Empty(t, h.work(59*time.Second))
		require.Equal(t, "claim", h.work(time.Minute))
		require.Len(t, h.runs, 1)
	})
}

func TestW2ClaimsAreUpToTheFreeSlots(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Concurrency: 3}, func(t *testing.T, h *hand) {
		h.enqueue(7, tickonce.EnqueueOptions{})
		require.Equal(t, "claim", h.work(0))
		require.Len(t, h.runs, 3)
		require.Empty(t, h.work(time.Second), "all slots are taken")

		h.worker.Ended(h.runs[1], nil)
		require.Equal(t, "settle claim", h.work(time.Second))
		require.Len(t, h.runs, 4, "a slot was free")
		for _, i := range []int{0, 2, 3} {
			h.worker.Ended(h.runs[i], nil)
		}
		require.Equal(t, "settle claim", h.work(time.Second), "one settlement for all that ended")
		require.Len(t, h.runs, 7)
		require.EqualValues(t, 4, h.queue().Done)
		for i, run := range h.runs {
			require.EqualValues(t, i+1, run.Job.ID, "in the order of QU1")
		}
	})
}

func TestW2ConfigIsChecked(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	for _, c := range []struct {
		name   string
		config tickonce.WorkerConfig
		option string
	}{
		{"no slot", tickonce.WorkerConfig{Concurrency: -1}, "Concurrency is -1, want 1 to 10000"},
		{"a poll too often", tickonce.WorkerConfig{Poll: 9 * time.Millisecond}, "Poll is 9ms, want whole milliseconds from 10ms to 24h0m0s"},
		{"a poll too rare", tickonce.WorkerConfig{Poll: 24*time.Hour + time.Millisecond}, "Poll is 24h0m0.001s, want whole milliseconds from 10ms to 24h0m0s"},
		{"too many slots", tickonce.WorkerConfig{Concurrency: 10_001}, "Concurrency is 10001, want 1 to 10000"},
		{"a negative timeout", tickonce.WorkerConfig{Timeout: -time.Second}, "Timeout is -1s"},
		{"a timeout with a fraction", tickonce.WorkerConfig{Timeout: time.Second + 1}, "Timeout is 1.000000001s"},
		{"a stop that waits too long", tickonce.WorkerConfig{StopTimeout: 25 * time.Hour}, "StopTimeout is 25h0m0s"},
		{"a malformed name", tickonce.WorkerConfig{Name: " w"}, "Name is refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.refusedUnwritten(c.name, tickonce.ErrInvalidOption, func(e *tickonce.Engine) error {
				err := e.RunWorker(r.ctx, "q", nil, c.config)
				require.ErrorContains(t, err, c.option)
				return err
			})
		})
	}
	longest := 106_751 * 24 * time.Hour // of any duration
	_, err := r.NewWorker("q", tickonce.WorkerConfig{Timeout: longest})
	require.NoError(t, err)
	require.Equal(t, longest, newRig(t, tickonce.Config{}).schedule("s", "@every 1m", tickonce.ScheduleOptions{Timeout: longest}).Options.Timeout)
	_, err = r.NewWorker("q", tickonce.WorkerConfig{Concurrency: -1, Timeout: -1})
	require.ErrorContains(t, err, "Concurrency")
	require.ErrorContains(t, err, "Timeout", "all faults at once")
	r.refusedUnwritten("no handler", tickonce.ErrInvalidOption, func(e *tickonce.Engine) error {
		return e.RunWorker(r.ctx, "q", nil, tickonce.WorkerConfig{})
	})
	for _, bad := range badNames {
		r.refusedUnwritten(bad.name, bad.want, func(e *tickonce.Engine) error {
			return e.RunWorker(r.ctx, bad.text, nil, tickonce.WorkerConfig{Concurrency: -1})
		})
	}
}

func TestW2ClaimsCarryTheWorkersName(t *testing.T) {
	onEachStore(t, tickonce.Config{Owner: "host"}, func(t *testing.T, r *rig) {
		for _, c := range []struct{ name, want string }{{"", "host/worker-1"}, {"painter", "painter"}} {
			h := r.hand(tickonce.WorkerConfig{Name: c.name})
			h.enqueue(1, tickonce.EnqueueOptions{})
			h.work(r.now())
			jobs := r.jobs("q")
			require.Equal(t, c.want, jobs[len(jobs)-1].Worker)
		}
	})
}

// What this engine does to the queue wakes the worker, though it would sleep
// for ever.
func TestW3WorkerIsWokenByItsEngine(t *testing.T) {
	for _, c := range []struct {
		name string
		wake func(h *hand)
	}{
		{"enqueue", func(h *hand) { h.enqueue(1, tickonce.EnqueueOptions{}) }},
		{"enqueue in a transaction", func(h *hand) {
			require.NoError(h.t, h.Tx(h.rig.ctx, func(tx *tickonce.Tx) error {
				_, err := tx.Enqueue("q", nil, tickonce.EnqueueOptions{})
				return err
			}))
		}},
		{"requeue", func(h *hand) {
			_, err := h.Requeue(h.rig.ctx, "q", h.dead()[0].ID)
			require.NoError(h.t, err)
		}},
		{"fire", func(h *hand) { require.Len(h.t, h.tick(h.now()+time.Minute).fires, 1) }},
		{"retry", func(h *hand) { require.NoError(h.t, h.other.RetryAfter(h.rig.ctx, errBoom, 0)) }},
		{"retry in a transaction", func(h *hand) {
			require.NoError(h.t, h.Tx(h.rig.ctx, func(tx *tickonce.Tx) error { return tx.Retry(h.other, errBoom) }))
			h.at(h.now() + 2*time.Minute)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
				h.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
				h.tick(0)
				h.fail("dead")
				h.enqueue(1, tickonce.EnqueueOptions{Visibility: 24 * time.Hour})
				h.other = h.mustClaim()
				h.work(0)
				require.Greater(t, h.next, 30*time.Minute)
				require.Empty(t, h.work(time.Second))
				c.wake(h)
				require.Contains(t, h.work(h.now()), "claim")
				if len(h.runs) == 0 { // it is not ready yet
					h.work(h.next)
				}
				require.Len(t, h.runs, 1)
			})
		})
	}
}

// Signals are of a queue: what goes into another wakes nobody.
func TestW3WorkerIsNotWokenByOtherQueues(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
		h.work(0)
		_, err := h.Enqueue(h.rig.ctx, "other", nil, tickonce.EnqueueOptions{})
		require.NoError(t, err)
		require.Empty(t, h.work(0))
	})
}

// A job that another process enqueues is met within the poll, which only
// reads.
func TestW3PollFindsWhatOthersEnqueue(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		h := r.hand(tickonce.WorkerConfig{})
		require.Equal(t, "claim queues", h.work(0))
		for s := 1; s < 10; s++ {
			require.Equal(t, "queues", h.work(time.Duration(s)*time.Second), "a poll")
			require.Equal(t, time.Duration(s+1)*time.Second, h.next)
		}
		other := r.another()
		other.enqueue("p", tickonce.EnqueueOptions{Delay: 1300 * time.Millisecond})
		require.Equal(t, "queues", h.work(10*time.Second))
		require.Equal(t, 10_300*time.Millisecond, h.next)
		require.Equal(t, "claim", h.work(h.next))
		require.Len(t, h.runs, 1)
	})
}

// A worker polls as it is told, whatever the others of its engine do.
func TestW3WorkerPollsInATimeOfItsOwn(t *testing.T) {
	for _, each := range [...]struct {
		name              string
		engine, own, want time.Duration
	}{
		{"the engine's", 3 * time.Second, 0, 3 * time.Second},
		{"rarer", 3 * time.Second, time.Minute, time.Minute},
		{"more often", time.Minute, 20 * time.Millisecond, 20 * time.Millisecond},
		{"where the engine does not", -1, time.Minute, time.Minute},
		{"not at all", time.Second, -1, time.Hour},
		{"nobody does", -1, 0, time.Hour},
	} {
		t.Run(each.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: each.engine}, func(t *testing.T, r *rig) {
				h := r.hand(tickonce.WorkerConfig{Poll: each.own})
				require.Equal(t, "claim queues", h.work(0))
				require.Equal(t, each.want, h.next)
			})
		})
	}
}

// The answer to a poll is slept on to the millisecond.
func TestW3WorkerSleepsUntilTheNextJob(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		h := r.hand(tickonce.WorkerConfig{})
		r.another().enqueue("p", tickonce.EnqueueOptions{Delay: 300 * time.Millisecond})
		require.Equal(t, "claim queues", h.work(0))
		require.Equal(t, 300*time.Millisecond, h.next)
		require.Equal(t, "claim", h.work(300*time.Millisecond))
		require.Len(t, h.runs, 1)
	})
}

// miserly is a store that says a job is due, and hands out none.
type miserly struct{ store.Store }

func (m miserly) Claim(ctx context.Context, queue, worker string, _ []store.Job) (store.Claim, error) {
	return m.Store.Claim(ctx, queue, worker, nil)
}

func TestW3SBD12RoundsThatFindNothingSlowDown(t *testing.T) {
	r := newRig(t, tickonce.Config{Poll: -1})
	r.enqueue("p", tickonce.EnqueueOptions{})
	r.on(miserly{r.store})
	w, err := r.NewWorker("q", tickonce.WorkerConfig{})
	require.NoError(t, err)
	steps := 0
	for at := time.Duration(0); at < time.Minute; steps++ {
		r.at(at)
		next, _, err := w.Step(r.ctx)
		require.NoError(t, err)
		at = max(at, offset(next))
	}
	require.LessOrEqual(t, steps, 2*(60+8))
}

func TestW4ClaimsAreRenewedAtAThird(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Concurrency: 2}, func(t *testing.T, h *hand) {
		h.enqueue(1, tickonce.EnqueueOptions{Visibility: 30 * time.Second})
		h.enqueue(1, tickonce.EnqueueOptions{Visibility: time.Minute})
		h.work(0)
		require.Equal(t, 10*time.Second, h.next)
		require.Empty(t, h.work(9_999*time.Millisecond))
		require.Equal(t, "extend", h.work(10*time.Second))
		require.Equal(t, instant(40*time.Second), h.jobs("q")[0].Deadline)
		require.Equal(t, instant(time.Minute), h.jobs("q")[1].Deadline, "its third has not passed")
		require.Equal(t, "extend", h.work(20*time.Second), "one call for both")
		require.Equal(t, instant(50*time.Second), h.jobs("q")[0].Deadline)
		require.Equal(t, instant(80*time.Second), h.jobs("q")[1].Deadline)
		for s := 30; s <= 600; s += 10 {
			h.work(time.Duration(s) * time.Second)
		}
		for _, run := range h.runs {
			require.NoError(t, run.Context().Err())
			require.Equal(t, 1, run.Job.Attempt)
			h.worker.Ended(run, nil)
		}
		h.work(h.now())
		require.EqualValues(t, 2, h.queue().Done)
		require.EqualValues(t, 2, h.queue().Claims)
	})
}

// Renewals on a slow store, of which the next is due when one has been made, hold
// up neither a settlement nor a claim.
func TestW4RenewalsHoldUpNothingElse(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Concurrency: 20}, func(t *testing.T, h *hand) {
		h.wire.before = func(faultstore.Op) { h.at(h.now() + 100*time.Millisecond) }
		for i := range 15 {
			h.enqueue(1, tickonce.EnqueueOptions{Visibility: 3 * time.Second})
			for range 100 {
				if h.step(); len(h.runs) > i {
					break
				}
			}
			require.Len(t, h.runs, i+1)
		}
		h.phases = nil
		for range 10 {
			h.step()
		}
		require.Contains(t, h.phases, tickonce.PhaseExtend)
		h.worker.Ended(h.runs[0], nil)
		h.enqueue(1, tickonce.EnqueueOptions{Visibility: 3 * time.Second})
		h.phases = nil
		for range 4 {
			h.step()
		}
		require.Equal(t, []tickonce.Phase{"settle", "extend", "claim", "extend"}, h.phases)
		for range 100 {
			h.step()
		}
		for _, run := range h.runs[1:] {
			require.NoError(t, context.Cause(run.Context()))
		}
	})
}

// A claim that is lost ends the run's context, and nothing is settled. Its
// slot is free when the handler has returned.
func TestW4LostClaimEndsTheRun(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
		h.enqueue(2, tickonce.EnqueueOptions{Visibility: 30 * time.Second})
		h.work(0)
		run := h.runs[0]
		_, err := h.Cancel(h.rig.ctx, "q", run.Job.ID)
		require.NoError(t, err)
		h.take()
		require.Equal(t, "extend", h.work(10*time.Second))
		require.ErrorIs(t, context.Cause(run.Context()), tickonce.ErrClaimLost)
		require.Len(t, of(tickonce.EventClaimLost, h.take()), 1)
		require.Empty(t, h.work(15*time.Minute), "the handler has the slot")
		require.Len(t, h.runs, 1)
		h.worker.Ended(run, nil)
		require.Equal(t, "claim", h.work(h.now()))
		require.Len(t, h.runs, 2)
		require.Zero(t, h.queue().Done)
	})
}

// While the store does not answer, a run is told when its claim must have
// lapsed, and not before.
func TestW4OutageEndsTheRunWhenItsClaimLapses(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
		h.enqueue(1, tickonce.EnqueueOptions{Visibility: 30 * time.Second})
		h.work(0)
		h.wire.lose = always(faultstore.LoseRequest)
		for h.now() <= 30*time.Second {
			require.NoError(t, h.runs[0].Context().Err(), "at %s", h.now())
			h.work(h.next)
		}
		require.ErrorIs(t, context.Cause(h.runs[0].Context()), tickonce.ErrClaimLost)
		require.LessOrEqual(t, h.now(), 36*time.Second)
	})
}

// A machine that slept past the claim asks before it ends the run: another
// clock may be the store's.
func TestW4SleepPastTheClaimAsksTheStore(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
		h.enqueue(1, tickonce.EnqueueOptions{Visibility: 30 * time.Second})
		h.work(0)
		require.Equal(t, "extend", h.work(time.Hour))
		require.ErrorIs(t, context.Cause(h.runs[0].Context()), tickonce.ErrClaimLost)
		h.worker.Ended(h.runs[0], nil)
		h.work(h.now())
		require.Len(t, h.runs, 2)
		require.Equal(t, 2, h.runs[1].Job.Attempt)
		require.Zero(t, h.queue().Done)
	})
}

// A clock that goes back delays no renewal, no timeout and no wake.
func TestW4K5ClockThatGoesBack(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Timeout: time.Minute}, func(t *testing.T, h *hand) {
		h.enqueue(1, tickonce.EnqueueOptions{Visibility: 30 * time.Second})
		h.work(0)
		h.work(9 * time.Second)
		h.work(-time.Hour) // no time has passed
		require.Equal(t, -time.Hour+time.Second, h.next)
		require.Equal(t, "extend", h.work(h.next))
		for h.next < -time.Hour+51*time.Second {
			h.work(h.next)
			require.NoError(t, h.runs[0].Context().Err())
		}
		require.Equal(t, -time.Hour+51*time.Second, h.next, "a minute but for the nine seconds that had passed")
		h.work(h.next)
		require.ErrorIs(t, context.Cause(h.runs[0].Context()), context.DeadlineExceeded)
	})
}

// behind is a store behind whose next claim something happens.
type behind struct {
	store.Store
	claim func()
}

func (b *behind) Claim(ctx context.Context, queue, worker string, dst []store.Job) (store.Claim, error) {
	claim, err := b.Store.Claim(ctx, queue, worker, dst)
	if do := b.claim; do != nil {
		b.claim = nil
		do()
	}
	return claim, err
}

// A job that is enqueued while an answer is on its way that knows nothing of
// it is met at once nevertheless.
func TestW3JobEnqueuedBehindTheClaim(t *testing.T) {
	r := newRig(t, tickonce.Config{Poll: -1})
	b := &behind{Store: r.store}
	r.on(b)
	w, err := r.NewWorker("q", tickonce.WorkerConfig{})
	require.NoError(t, err)
	b.claim = func() { r.enqueue("p", tickonce.EnqueueOptions{Delay: time.Minute}) }
	_, _, err = w.Step(r.ctx)
	require.NoError(t, err)
	_, report, err := w.Step(r.ctx)
	require.NoError(t, err)
	require.Equal(t, tickonce.PhaseClaim, report.Phase)
}
