package tickonce_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// reports begins a run of a job that the schedule "s" fired at one minute.
func (h *hand) reports() *tickonce.Run {
	h.t.Helper()
	h.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
	h.tick(0)
	h.tick(time.Minute)
	h.work(time.Minute)
	require.Len(h.t, h.runs, 1)
	h.rig.take()
	h.wire.take()
	return h.runs[0]
}

func delivered(context.Context, *tickonce.Job) error { return nil }

// delivers runs a job whose result goes to the outbox "o".
func (r *rig) delivers(payload string) *tickonce.Job {
	r.t.Helper()
	r.enqueue("p", tickonce.EnqueueOptions{})
	job := r.mustClaim()
	require.NoError(r.t, job.Deliver("o", []byte(payload)))
	require.NoError(r.t, job.Ack(r.ctx))
	return job
}

// While the end of a run is judged it delivers nothing more: what came too late
// to be written is refused, not lost.
func TestX2NothingIsDeliveredWhileTheEndIsJudged(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
		run := h.reports()
		var late error
		h.worker.Ended(run, textError(func() string {
			late = run.Job.Deliver("o", nil)
			return "boom"
		}))
		require.ErrorIs(t, late, tickonce.ErrClaimLost)
	})
}

// While the end of a run is on its way to the store, another goroutine's
// delivery would not be in it: it is refused, and taken again if the end was not
// written.
func TestX2NothingIsDeliveredWhileTheEndIsWritten(t *testing.T) {
	for name, ack := range map[string]func(*rig, *tickonce.Job) error{
		"Ack": func(r *rig, job *tickonce.Job) error { return job.Ack(r.ctx) },
		"AckAll": func(r *rig, job *tickonce.Job) error {
			_, err := r.AckAll(r.ctx, []*tickonce.Job{job})
			return err
		},
		"Tx.Ack": func(r *rig, job *tickonce.Job) error {
			return r.Tx(r.ctx, func(tx *tickonce.Tx) error { return tx.Ack(job) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.enqueue("p", tickonce.EnqueueOptions{})
				job := r.mustClaim()
				var late []error
				w.before = func(op faultstore.Op) { late = append(late, job.Deliver("o", []byte(op.Method.String()))) }
				w.lose = func(faultstore.Op) faultstore.Verdict { return faultstore.LoseRequest }
				require.ErrorIs(t, ack(r, job), faultstore.ErrLost)
				require.Equal(t, []error{tickonce.ErrClaimLost}, late)

				w.before, w.lose = nil, nil
				require.NoError(t, job.Deliver("o", []byte("again")), "the run goes on")
				require.NoError(t, job.Ack(r.ctx))
				require.Equal(t, "again", string(r.jobs(outboxQueue)[0].Payload))
				require.Len(t, r.jobs(outboxQueue), 1)
				require.Equal(t, tickonce.ErrClaimLost, job.Deliver("o", nil), "the run is over")
			})
		})
	}
}

// What a run would deliver after its end was staged is refused, for as long as
// the transaction may still be written.
func TestX2NothingIsDeliveredBehindAStagedAck(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	r.enqueue("p", tickonce.EnqueueOptions{})
	job := r.mustClaim()
	stage := func(result error) error {
		return r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			require.NoError(t, tx.Ack(job))
			require.Equal(t, tickonce.ErrClaimLost, job.Deliver("o", nil))
			return result
		})
	}
	require.ErrorIs(t, stage(errBoom), errBoom)
	require.NoError(t, job.Deliver("o", []byte("p")), "it was rolled back")
	require.NoError(t, stage(nil))
	require.Len(t, r.jobs(outboxQueue), 1)
}

// textError is an error whose text is asked for.
type textError func() string

func (e textError) Error() string { return e() }

// A run's deliveries are written with its ack, in one call, and carry what the
// job carried.
func TestX1X2DeliveriesAreWrittenWithTheAck(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
		run := h.reports()
		payload := []byte("first")
		require.NoError(t, run.Job.Deliver("o", payload))
		copy(payload, "dirty")
		require.NoError(t, run.Job.Deliver("p", nil))
		require.Empty(t, h.wire.take(), "nothing is written before the end")

		h.worker.Ended(run, nil)
		require.Equal(t, "commit claim queues", h.work(time.Minute))
		require.EqualValues(t, 1, h.queue().Done)
		entry := h.entry()
		require.Equal(t, store.Job{
			ID: entry.ID, Queue: outboxQueue, Payload: []byte("first"), Schedule: "s", ScheduleID: h.row("s").ID,
			FireAt: instant(time.Minute), Origin: run.Job.ID, Stamps: core.DeliveryStamps, TimeoutMS: 30_000,
			EnqueuedAt: instant(time.Minute), RunAt: instant(time.Minute), ExpiresAt: store.None, State: store.Pending,
			Deadline: store.None, Since: store.None,
		}, entry)
		require.Len(t, h.jobs("__alkstore_outbox:p"), 1)

		told := h.take()
		require.Equal(t, tickonce.Event{
			Kind: tickonce.EventDone, At: start.Add(time.Minute), Queue: "q", Job: run.Job.ID, Schedule: "s",
			Boundary: start.Add(time.Minute), Execution: tickonce.ExecutionOK,
		}, told[0])
		require.Equal(t, tickonce.Event{
			Kind: tickonce.EventEnqueued, At: start.Add(time.Minute), Queue: outboxQueue, Job: entry.ID, Schedule: "s",
			Boundary: start.Add(time.Minute), Origin: run.Job.ID,
		}, told[1])
	})
}

// Nothing to deliver is a success like any other, settled as ever.
func TestX3NothingToDeliver(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
		run := h.reports()
		h.worker.Ended(run, nil)
		require.Equal(t, "settle claim queues", h.work(time.Minute))
		done := of(tickonce.EventDone, h.take())
		require.Len(t, done, 1)
		require.Equal(t, tickonce.ExecutionOK, done[0].Execution)
		require.Equal(t, tickonce.DeliveryNone, done[0].Delivery)
	})
}

// A run that did not succeed delivers nothing of what it staged, and its next
// attempt starts from nothing.
func TestX1FailedRunDeliversNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(h *hand, run *tickonce.Run)
	}{
		{"an error", func(h *hand, run *tickonce.Run) { h.worker.Ended(run, errBoom) }},
		{"a permanent error", func(h *hand, run *tickonce.Run) { h.worker.Ended(run, tickonce.Permanent(errBoom)) }},
		{"its timeout", func(h *hand, run *tickonce.Run) { h.work(2 * time.Minute) }},
		{"its timeout, and then it returns", func(h *hand, run *tickonce.Run) { h.work(2 * time.Minute); h.worker.Ended(run, nil) }},
		{"Job.Retry", func(h *hand, run *tickonce.Run) { require.NoError(h.t, run.Job.Retry(h.ctx, errBoom)) }},
		{"Job.Fail", func(h *hand, run *tickonce.Run) { require.NoError(h.t, run.Job.Fail(h.ctx, errBoom)) }},
		{"Tx.Retry", func(h *hand, run *tickonce.Run) {
			require.NoError(h.t, h.Tx(h.ctx, func(tx *tickonce.Tx) error { return tx.Retry(run.Job, errBoom) }))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachHand(t, tickonce.WorkerConfig{Timeout: 30 * time.Second}, func(t *testing.T, h *hand) {
				run := h.reports()
				require.NoError(t, run.Job.Deliver("o", []byte("p")))
				c.end(h, run)
				h.work(3 * time.Minute)
				require.Zero(t, h.wire.count(faultstore.Commit))
				require.Empty(t, h.jobs(outboxQueue))
				require.Equal(t, tickonce.ErrClaimLost, run.Job.Deliver("o", nil), "the run is over")

				if jobs := h.jobs("q"); len(jobs) > 0 && jobs[0].State == store.Pending && len(h.runs) == 1 {
					h.work(time.Hour)
				}
				for _, again := range h.runs[1:] {
					h.worker.Ended(again, nil)
					h.work(time.Hour)
					require.Empty(t, h.jobs(outboxQueue))
				}
			})
		})
	}
}

// One of two runs has lost its claim: nothing of it is there, and the other is
// done and delivered.
func TestX1LostClaimDeliversNothing(t *testing.T) {
	for lost := range 3 {
		onEachHand(t, tickonce.WorkerConfig{Concurrency: 3}, func(t *testing.T, h *hand) {
			h.enqueue(3, tickonce.EnqueueOptions{})
			h.work(0)
			for i, run := range h.runs {
				require.NoError(t, run.Job.Deliver("o", []byte{byte(i)}))
				require.NoError(t, run.Job.Deliver("o", []byte{byte(i)}))
				h.worker.Ended(run, nil)
			}
			_, err := h.Cancel(h.ctx, "q", h.runs[lost].Job.ID)
			require.NoError(t, err)
			h.take()
			require.Equal(t, "commit commit claim queues", h.work(0), "the others go together")
			require.Len(t, h.jobs(outboxQueue), 4)
			for _, entry := range h.jobs(outboxQueue) {
				require.NotEqual(t, h.runs[lost].Job.ID, entry.Origin)
			}
			require.EqualValues(t, 2, h.queue().Done)
			told := h.take()
			require.Len(t, of(tickonce.EventClaimLost, told), 1)
			require.Equal(t, h.runs[lost].Job.ID, of(tickonce.EventClaimLost, told)[0].Job)
			require.Len(t, of(tickonce.EventDone, told), 2)
			require.Len(t, of(tickonce.EventEnqueued, told), 4)
		})
	}
}

// Runs with deliveries and without them are settled in two calls, and each step
// makes one.
func TestX2W1RunsWithAndWithoutDeliveries(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Concurrency: 4}, func(t *testing.T, h *hand) {
		h.enqueue(4, tickonce.EnqueueOptions{})
		h.work(0)
		for i, run := range h.runs {
			if i%2 == 0 {
				require.NoError(t, run.Job.Deliver("o", nil))
			}
			h.worker.Ended(run, nil)
		}
		h.wire.take()
		require.Equal(t, tickonce.PhaseSettle, h.step().Phase)
		require.Equal(t, "commit", h.wire.take())
		require.Equal(t, tickonce.PhaseSettle, h.step().Phase)
		require.Equal(t, "settle", h.wire.take())
		require.EqualValues(t, 4, h.queue().Done)
		require.Len(t, h.jobs(outboxQueue), 2)
	})
}

// A reply that is lost is asked for again, and delivers nothing twice; a request
// that is lost is made again.
func TestX2W7DeliveriesAreWrittenOnceThoughAReplyIsLost(t *testing.T) {
	for verdict, done := range map[faultstore.Verdict]int{faultstore.LoseReply: 0, faultstore.LoseRequest: 1} {
		onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
			run := h.reports()
			require.NoError(t, run.Job.Deliver("o", nil))
			h.worker.Ended(run, nil)
			h.wire.lose = first(1, faultstore.Commit, verdict)
			require.Equal(t, "commit", h.work(time.Minute))
			require.Equal(t, "commit claim queues", h.work(h.next))
			require.Len(t, h.jobs(outboxQueue), 1)
			require.EqualValues(t, 1, h.queue().Done)
			told := h.take()
			require.Len(t, of(tickonce.EventDone, told), done)
			require.Len(t, of(tickonce.EventClaimLost, told), 1-done)
		})
	}
}

// An outbox without room fails the run that needs it, and no other.
func TestX1FullOutboxFailsTheRun(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1, Limits: tickonce.Limits{QueueLength: 3}}, func(t *testing.T, r *rig) {
		h := r.hand(tickonce.WorkerConfig{Concurrency: 3})
		h.enqueue(3, tickonce.EnqueueOptions{})
		h.work(0)
		for i, run := range h.runs {
			for range i + 1 {
				require.NoError(t, run.Job.Deliver("o", nil))
			}
			h.worker.Ended(run, nil)
		}
		require.Equal(t, "commit commit settle claim queues", h.work(0))
		require.Len(t, h.jobs(outboxQueue), 3, "of the first two")
		require.EqualValues(t, 2, h.queue().Done)
		row := h.only()
		require.Equal(t, h.runs[2].Job.ID, row.ID)
		require.Equal(t, store.Pending, row.State)
		require.Contains(t, row.LastError, `limit exceeded: QueueLength is 3, this would make 4 in "__alkstore_outbox:o"`)
		require.Len(t, of(tickonce.EventRetried, h.take()), 1)
	})
}

// The same by hand: the error is told, and the claim is still there.
func TestX1FullOutboxRefusesTheAck(t *testing.T) {
	onEachStore(t, tickonce.Config{Limits: tickonce.Limits{QueueLength: 1}}, func(t *testing.T, r *rig) {
		entry := r.post("p")
		r.enqueue("p", tickonce.EnqueueOptions{})
		job := r.mustClaim()
		require.NoError(t, job.Deliver("o", nil))
		require.ErrorIs(t, job.Ack(r.ctx), tickonce.ErrLimit)
		require.EqualValues(t, 1, r.queue().Claimed)
		r.mustDeliver(delivered)
		require.NoError(t, job.Ack(r.ctx))
		require.NotEqual(t, entry, r.entry().ID)
	})
}

// An ack by hand delivers what was staged, once.
func TestX2AckByHandDelivers(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		job := r.delivers("p")
		require.Equal(t, job.ID, r.entry().Origin)
		require.Equal(t, tickonce.ErrClaimLost, job.Ack(r.ctx))
		require.Equal(t, tickonce.ErrClaimLost, job.Deliver("o", nil))
		require.Equal(t, job.ID, r.entry().Origin)
	})
}

// A transaction that acks a job delivers what it staged; the ack of many at once
// has no room for it, and refuses.
func TestX2O7TransactionDeliversWhatItsJobStaged(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.enqueue("p", tickonce.EnqueueOptions{})
		r.enqueue("p", tickonce.EnqueueOptions{})
		job, other := r.mustClaim(), r.mustClaim()
		for _, j := range []*tickonce.Job{job, other} {
			require.NoError(t, j.Deliver("o", []byte("p")))
		}
		_, err := r.AckAll(r.ctx, []*tickonce.Job{job})
		require.ErrorContains(t, err, "index 0, want it acked by itself")
		require.Equal(t, errBoom, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			require.NoError(t, tx.Ack(job))
			return errBoom
		}))
		require.Empty(t, r.jobs(outboxQueue))
		r.take()
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			require.NoError(t, tx.Fail(other, nil))
			return tx.Ack(job)
		}))
		require.Equal(t, job.ID, r.entry().Origin)
		told := of(tickonce.EventEnqueued, r.take())
		require.Len(t, told, 1)
		require.Equal(t, job.ID, told[0].Origin)
	})
}

func TestX2DeliverIsChecked(t *testing.T) {
	r := newRig(t, tickonce.Config{Limits: tickonce.Limits{Payload: 3}})
	r.enqueue("p", tickonce.EnqueueOptions{})
	job := r.mustClaim()
	for _, bad := range badNames {
		require.ErrorIs(t, job.Deliver(bad.text, nil), bad.want, bad.name)
	}
	require.ErrorIs(t, job.Deliver("o", []byte("four")), tickonce.ErrLimit)
	require.ErrorIs(t, new(tickonce.Job).Deliver("o", nil), tickonce.ErrInvalidOption)
	new(tickonce.Job).Summarize("nothing")
	for range 1000 {
		require.NoError(t, job.Deliver("o", nil))
	}
	require.ErrorIs(t, job.Deliver("o", nil), tickonce.ErrInvalidOption)
	require.NoError(t, job.Ack(r.ctx))
	require.Len(t, r.jobs(outboxQueue), 1000)
}

// Of a hundred runs with 500 deliveries each no commit has more than 10,000
// elements.
func TestX2CommitsOfDeliveriesAreBounded(t *testing.T) {
	h := newRig(t, tickonce.Config{Poll: -1}).hand(tickonce.WorkerConfig{Concurrency: 100})
	h.enqueue(100, tickonce.EnqueueOptions{})
	h.work(0)
	for _, run := range h.runs {
		for range 500 {
			require.NoError(t, run.Job.Deliver("o", nil))
		}
		h.worker.Ended(run, nil)
	}
	require.Equal(t, strings.Repeat("commit ", 6)+"claim queues", h.work(0), "of 19 runs each")
	info, err := h.Outbox("o").Info(h.ctx)
	require.NoError(t, err)
	require.EqualValues(t, 50_000, info.Pending)
}

// What one commit would be too long for goes in several, and what one run would
// deliver beyond it is refused.
func TestX2DeliveriesAreCutByTheirBytes(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Concurrency: 5}, func(t *testing.T, h *hand) {
		tickonce.LimitBatchPayload(h.Engine, 100)
		h.enqueue(5, tickonce.EnqueueOptions{})
		h.work(0)
		for i, size := range []int{40, 60, 100, 1, 99} {
			require.NoError(t, h.runs[i].Job.Deliver("o", make([]byte, size)))
		}
		err := h.runs[0].Job.Deliver("o", make([]byte, 61))
		require.ErrorIs(t, err, tickonce.ErrInvalidOption)
		require.EqualError(t, err, "invalid option: the deliveries of one run would be more than 100 bytes")
		for _, run := range h.runs {
			h.worker.Ended(run, nil)
		}
		require.Equal(t, "commit commit commit claim queues", h.work(0))
		require.Len(t, h.jobs(outboxQueue), 5)
	})
}

// Payloads are copied when they come from the user and when they are handed to
// him, and nowhere between: all tries of an entry come from the same bytes.
func TestX7F8PayloadsAreSharedBetweenTries(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		big := []byte(strings.Repeat("x", 1<<20))
		claims := &claims{Store: r.store}
		r.on(claims)
		r.enqueue("p", tickonce.EnqueueOptions{})
		job := r.mustClaim()
		require.NoError(t, job.Deliver("o", big))
		require.NoError(t, job.Ack(r.ctx))
		var handed []*byte
		for try := range 3 {
			r.at(time.Duration(try) * time.Minute)
			claims.rows = nil
			r.mustDeliver(func(_ context.Context, entry *tickonce.Job) error {
				handed = append(handed, &entry.Payload[0])
				require.Same(t, handed[try], &entry.Payload[0])
				return tickonce.Transient(errBoom)
			})
			require.Len(t, claims.rows, 1)
			require.Same(t, claims.first, &claims.rows[0].Payload[0], "the store copies nothing")
			require.NotSame(t, claims.first, handed[try], "what a handler does to it is its own")
		}
		require.NotSame(t, &big[0], claims.first)
	})
}

// claims keeps the rows that the claims of outboxes answered.
type claims struct {
	store.Store
	first *byte // of the first payload
	rows  []store.Job
}

func (s *claims) Claim(ctx context.Context, queue, worker string, dst []store.Job) (store.Claim, error) {
	claim, err := s.Store.Claim(ctx, queue, worker, dst)
	if queue == outboxQueue {
		if s.rows = append(s.rows, dst[:claim.N]...); s.first == nil && len(s.rows) > 0 {
			s.first = &s.rows[0].Payload[0]
		}
	}
	return claim, err
}

// The tries of a delivery, and what is told of them: exact waits, the class, and
// nothing of the run, which has been a success from the beginning.
func TestX1X7F7TriesOfADelivery(t *testing.T) {
	for _, c := range []struct {
		name  string
		errs  []error // of the tries
		waits []time.Duration
		last  tickonce.EventKind
		class tickonce.Delivery
		text  string
	}{
		{"delivered at once", []error{nil}, nil, tickonce.EventDelivered, tickonce.Delivered, ""},
		{
			"delivered at the second try",
			[]error{tickonce.Transient(errors.New("a")), nil},
			[]time.Duration{time.Second},
			tickonce.EventDelivered, tickonce.Delivered, "",
		},
		{
			"transient at every try",
			[]error{tickonce.Transient(errors.New("a")), context.DeadlineExceeded, tickonce.Transient(errors.New("c"))},
			[]time.Duration{time.Second, 2 * time.Second},
			tickonce.EventDeliveryFailed, tickonce.DeliveryTransient, "c",
		},
		{"permanent", []error{errBoom}, nil, tickonce.EventDeliveryFailed, tickonce.DeliveryPermanent, "boom"},
		{
			"with a wait of its own",
			[]error{tickonce.RetryAfter(time.Minute, errBoom), tickonce.Permanent(errBoom)},
			[]time.Duration{time.Minute},
			tickonce.EventDeliveryFailed, tickonce.DeliveryPermanent, "boom",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
				r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
				r.tick(0)
				r.tick(time.Minute)
				job := r.mustClaim()
				require.NoError(t, job.Deliver("o", []byte("p")))
				require.NoError(t, job.Ack(r.ctx))
				done := r.queue()
				row := r.row("s")
				r.take()
				for try, err := range c.errs {
					r.mustDeliver(func(_ context.Context, entry *tickonce.Job) error {
						require.Equal(t, job.ID, entry.Origin)
						require.Equal(t, "s", entry.Schedule)
						require.Equal(t, job.Boundary, entry.Boundary)
						require.Equal(t, try+1, entry.Attempt)
						return err
					})
					if try < len(c.waits) {
						require.Equal(t, c.waits[try], time.Duration(r.entry().RunAt-instant(r.now()))*time.Millisecond)
						told := of(tickonce.EventDeliveryRetried, r.take())
						require.Len(t, told, 1)
						require.Equal(t, c.waits[try], told[0].Wait)
						require.Equal(t, tickonce.DeliveryTransient, told[0].Delivery)
						r.at(r.now() + c.waits[try] - time.Millisecond)
						found, err := r.deliver(delivered)
						require.NoError(t, err)
						require.False(t, found, "too soon")
						r.at(r.now() + time.Millisecond)
					}
				}
				told := r.take()
				require.Equal(t, c.last, told[len(told)-1].Kind)
				require.Equal(t, c.class, told[len(told)-1].Delivery)
				require.Equal(t, c.text, told[len(told)-1].Reason)
				require.Equal(t, job.ID, told[len(told)-1].Origin)
				require.Zero(t, told[len(told)-1].Execution)
				require.Equal(t, done, r.queue())
				require.Equal(t, row, r.row("s"), "X4: the breaker counts no delivery")
			})
		})
	}
}
