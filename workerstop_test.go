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

// The stop claims nothing more, lets runs finish, and ends when they have.
func TestW6StopLetsRunsFinish(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Concurrency: 2, StopTimeout: time.Minute}, func(t *testing.T, h *hand) {
		h.enqueue(5, tickonce.EnqueueOptions{Visibility: 30 * time.Second})
		h.work(0)
		h.stop(errOuter)
		h.work(time.Second)
		h.worker.Ended(h.runs[0], nil)
		require.Equal(t, "settle", h.work(2*time.Second), "and no claim")
		require.Equal(t, "extend", h.work(10*time.Second), "claims are kept meanwhile")
		require.NoError(t, h.runs[1].Context().Err())
		h.take()
		h.worker.Ended(h.runs[1], nil)
		require.Equal(t, "settle", h.work(20*time.Second))
		require.True(t, h.ended)
		require.NoError(t, h.err)
		require.EqualValues(t, 2, h.queue().Done)
		stopped := of(tickonce.EventStopped, h.take())
		require.Len(t, stopped, 1)
		require.Equal(t, "q", stopped[0].Queue)
		next, _, err := h.worker.Step(h.ctx)
		require.True(t, next.IsZero())
		require.NoError(t, err, "and stays so")
	})
}

func TestW6StopWithNothingInHandEndsAtOnce(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
		h.stop(nil)
		require.Empty(t, h.work(0))
		require.True(t, h.ended)
		require.NoError(t, h.err)
	})
}

// After the stop timeout the runs are told, with the cause of the stop, and
// what they give back is ready at once.
func TestW6C134StopCutsRuns(t *testing.T) {
	for _, c := range []struct {
		name    string
		timeout time.Duration
		cut     time.Duration
	}{
		{"after the default", 0, 10 * time.Second},
		{"after a time of its own", time.Minute, time.Minute},
		{"at once", -1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachHand(t, tickonce.WorkerConfig{Concurrency: 3, StopTimeout: c.timeout}, func(t *testing.T, h *hand) {
				h.enqueue(3, tickonce.EnqueueOptions{})
				h.work(0)
				h.stop(errOuter)
				h.work(0)
				if c.cut > 0 {
					h.work(c.cut - time.Millisecond)
					require.NoError(t, h.runs[0].Context().Err())
				}
				h.work(c.cut)
				for _, run := range h.runs {
					require.Equal(t, errOuter, context.Cause(run.Context()))
				}
				h.worker.Ended(h.runs[0], context.Cause(h.runs[0].Context()))
				h.worker.Ended(h.runs[1], nil)
				h.worker.Ended(h.runs[2], tickonce.RetryAfter(time.Hour, errBoom))
				h.work(c.cut + time.Second)
				require.True(t, h.ended)
				require.NoError(t, h.err)
				rows := h.jobs("q")
				require.Len(t, rows, 2)
				require.Equal(t, instant(c.cut+time.Second), rows[0].RunAt, "it was not the job's fault")
				require.Equal(t, "outer", rows[0].LastError)
				require.Equal(t, instant(c.cut+time.Second+time.Hour), rows[1].RunAt)
			})
		})
	}
}

// What does not return is left behind: its claim lapses, and the end says so.
func TestW6C134StopAbandonsRuns(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Concurrency: 3}, func(t *testing.T, h *hand) {
		h.enqueue(3, tickonce.EnqueueOptions{Visibility: 30 * time.Second})
		h.work(0)
		h.stop(nil)
		h.work(0)
		h.wire.lose = func(op faultstore.Op) faultstore.Verdict {
			if op.Method == faultstore.Settle {
				return faultstore.LoseRequest
			}
			return faultstore.Pass
		}
		h.worker.Ended(h.runs[0], nil)
		h.take()
		for !h.ended {
			h.work(h.next)
		}
		require.Equal(t, 15*time.Second, h.now())
		require.Equal(t, &tickonce.AbandonedError{Queue: "q", Running: 2, Unsettled: 1}, h.err)
		require.EqualError(t, h.err, `run worker: queue "q": left to lapse: handlers that did not return: 2, settlements that failed: 1`)
		events := h.take()
		require.Len(t, of(tickonce.EventAbandoned, events), 3)
		require.Equal(t, h.err, of(tickonce.EventStopped, events)[0].Err)

		h.worker.Ended(h.runs[1], nil) // nobody listens
		require.Empty(t, h.work(time.Minute))
		h.wire.lose = nil
		jobs, err := h.ClaimBatch(h.rig.ctx, "q", "w", 3)
		require.NoError(t, err)
		require.Len(t, jobs, 3, "the claims lapsed")
	})
}

// A claim whose answer comes after the stop has begun is given back: it has
// cost an attempt, and is ready at once. A job without another attempt runs, or
// the stop would be its death.
func TestW6StopGivesBackWhatItHasNotBegun(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Concurrency: 3}, func(t *testing.T, h *hand) {
		h.enqueue(1, tickonce.EnqueueOptions{})
		h.enqueue(1, tickonce.EnqueueOptions{MaxAttempts: 1})
		job, err := h.Claim(h.rig.ctx, "q", "other")
		require.NoError(t, err)
		require.NoError(t, job.RetryAfter(h.rig.ctx, errBoom, 0))
		h.wire.before = func(op faultstore.Op) {
			if op.Method == faultstore.Claim {
				h.stop(nil)
			}
		}
		require.Equal(t, "claim settle", h.work(0))
		require.Len(t, h.runs, 1)
		require.EqualValues(t, 2, h.runs[0].Job.ID)
		row := h.jobs("q")[0]
		require.Equal(t, store.Pending, row.State)
		require.Equal(t, instant(0), row.RunAt)
		require.EqualValues(t, 2, row.Attempts)
		require.Equal(t, "boom", row.LastError, "of the attempt that failed")

		h.worker.Ended(h.runs[0], nil)
		h.work(0)
		require.True(t, h.ended)
		require.NoError(t, h.err)
		require.EqualValues(t, 1, h.queue().Done)
	})
}

// A settlement that fails is made again until the store answers: after 100,
// 200 and 400 ms, and then every 5 s.
func TestW7SettlementsAreMadeAgain(t *testing.T) {
	for _, verdict := range []faultstore.Verdict{faultstore.LoseRequest, faultstore.LoseReply} {
		onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
			h.enqueue(1, tickonce.EnqueueOptions{})
			h.work(0)
			h.worker.Ended(h.runs[0], nil)
			h.wire.lose = first(6, faultstore.Settle, verdict)
			h.take()
			var waits []time.Duration
			for range 6 {
				at := h.now()
				require.Contains(t, h.work(at), "settle")
				waits = append(waits, h.next-at)
				h.at(h.next)
			}
			require.Equal(t, append(append([]time.Duration(nil), retryWaits...), 5*time.Second, 5*time.Second, 5*time.Second), waits)
			retrying := of(tickonce.EventRetrying, h.take())
			require.Len(t, retrying, 6)
			require.Equal(t, tickonce.PhaseSettle, retrying[0].Phase)
			require.Equal(t, "q", retrying[0].Queue)
			require.Contains(t, h.work(h.now()), "settle")
			require.EqualValues(t, 1, h.queue().Done)
			lost := len(of(tickonce.EventClaimLost, h.take()))
			require.Equal(t, verdict == faultstore.LoseReply, lost == 1, "an ack asked again after a lost reply (QU13)")
			require.NotContains(t, h.work(h.now()+time.Minute), "settle")
		})
	}
}

// A settlement that the store does not take, of whatever reason, lets no other
// claim lapse.
func TestW4W7FailingSettlementHoldsUpNoRenewal(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Concurrency: 2}, func(t *testing.T, h *hand) {
		h.enqueue(1, tickonce.EnqueueOptions{})
		h.enqueue(1, tickonce.EnqueueOptions{Visibility: 30 * time.Second})
		h.work(0)
		h.worker.Ended(h.runs[0], nil)
		h.wire.lose = func(op faultstore.Op) faultstore.Verdict {
			if op.Method == faultstore.Settle {
				return faultstore.LoseRequest
			}
			return faultstore.Pass
		}
		for h.now() < 2*time.Minute {
			h.work(max(h.next, h.now()))
			require.NoError(t, h.runs[1].Context().Err(), "at %s", h.now())
		}
	})
}

// The settlement is made though the stop has ended every context.
func TestW7SettlementsOutliveTheStop(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{StopTimeout: -1}, func(t *testing.T, h *hand) {
		h.enqueue(1, tickonce.EnqueueOptions{})
		h.work(0)
		h.stop(nil)
		h.work(0)
		require.Error(t, h.runs[0].Context().Err())
		h.worker.Ended(h.runs[0], nil)
		h.work(0)
		require.True(t, h.ended)
		require.EqualValues(t, 1, h.queue().Done)
	})
}

// Whatever the worker has in hand, an outage costs few calls.
func TestI9W7F15OutageCostsFewCalls(t *testing.T) {
	for _, c := range []struct {
		name string
		busy func(h *hand)
	}{
		{"idle", func(*hand) {}},
		{"a run in hand", func(h *hand) { h.enqueue(1, tickonce.EnqueueOptions{Visibility: 3 * time.Second}) }},
		{"an unsettled run", func(h *hand) {
			h.enqueue(1, tickonce.EnqueueOptions{})
			h.work(0)
			h.worker.Ended(h.runs[0], nil)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				h := r.hand(tickonce.WorkerConfig{Concurrency: 2})
				c.busy(h)
				const outage = 10 * time.Minute
				h.wire.lose = always(faultstore.LoseRequest)
				before := len(h.phases)
				for h.now() < outage {
					_ = h.work(h.now())
					h.at(max(h.next, h.now()+time.Millisecond))
				}
				require.LessOrEqual(t, len(h.phases)-before, int(outage/(5*time.Second))+5)
				h.wire.lose = nil
				h.enqueue(1, tickonce.EnqueueOptions{})
				at := h.now()
				for len(h.jobsOf(store.Pending)) > 0 {
					h.work(max(h.next, h.now()))
				}
				require.LessOrEqual(t, h.now(), at+5*time.Second, "it works again")
			})
		})
	}
}

// jobsOf are the queue's jobs of the state.
func (h *hand) jobsOf(state store.State) (some []store.Job) {
	for _, job := range h.jobs("q") {
		if job.State == state {
			some = append(some, job)
		}
	}
	return some
}

// A schedule whose runs hang holds up the jobs of others by no more than the
// timeouts of those before them.
func TestW8C73HangingRunsDelayOthersByTheirTimeout(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Concurrency: 2, Timeout: 10 * time.Second}, func(t *testing.T, h *hand) {
		h.schedule("hangs", "@every 1s", tickonce.ScheduleOptions{})
		h.schedule("daily", "@every 20s", tickonce.ScheduleOptions{})
		h.tick(0)
		require.Len(t, h.tick(20*time.Second).fired("hangs"), 20)
		h.work(20 * time.Second)
		for h.now() < 10*time.Minute {
			for _, run := range h.runs {
				if run.Job.Schedule == "daily" {
					require.LessOrEqual(t, h.now(), 20*time.Second+(20/2+1)*10*time.Second)
					return
				}
				if run.Context().Err() != nil && !h.gone[run] {
					h.gone[run] = true
					h.worker.Ended(run, run.Context().Err())
					h.next = h.now()
				}
			}
			h.work(h.next)
		}
		require.Fail(t, "starved")
	})
}

func always(v faultstore.Verdict) func(faultstore.Op) faultstore.Verdict {
	return func(faultstore.Op) faultstore.Verdict { return v }
}
