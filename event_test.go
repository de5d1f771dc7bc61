package tickonce_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

func TestEventKindsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for kind := tickonce.EventNone; kind <= tickonce.EventDeliveryFailed; kind++ {
		name := kind.String()
		require.NotEqual(t, "unknown", name)
		require.False(t, seen[name], name)
		seen[name] = true
	}
	require.Equal(t, "none", tickonce.EventNone.String())
	require.Equal(t, "retrying", tickonce.EventRetrying.String())
	require.Equal(t, "abandoned", tickonce.EventAbandoned.String())
	require.Equal(t, "unknown", (tickonce.EventDeliveryFailed + 1).String())
}

func TestPoliciesAndLatenessHaveWords(t *testing.T) {
	for kind, want := range map[fmt.Stringer]string{
		tickonce.FiredOnTime: "on_time", tickonce.FiredLate: "late", tickonce.FiredCaughtUp: "caught_up",
		tickonce.Lateness(3): "unknown",
		tickonce.RepairHold:  "hold", tickonce.RepairRearm: "rearm", tickonce.ClockRepair(2): "unknown",
		tickonce.OverlapBufferOne: "buffer_one", tickonce.PausedByRunOnce: "run_once", tickonce.JobPending: "pending",
	} {
		require.Equal(t, want, kind.String())
	}
}

// Each change is told once, with the fields that its kind promises.
func TestEventsCarryTheFieldsOfTheirKind(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1, Limits: tickonce.Limits{QueueLength: 66}}, func(t *testing.T, r *rig) {
		at := func(d time.Duration) time.Time { return start.Add(d) }
		told := func(want ...tickonce.Event) {
			t.Helper()
			require.Equal(t, want, r.take())
		}
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
		told(tickonce.Event{Kind: tickonce.EventScheduled, At: at(0), Schedule: "s", Queue: "q", Boundary: at(time.Minute)})
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
		told(nil...)
		_, err := r.Pause(r.ctx, "s")
		require.NoError(t, err)
		told(tickonce.Event{Kind: tickonce.EventPaused, At: at(0), Schedule: "s"})
		_, err = r.Pause(r.ctx, "s")
		require.NoError(t, err)
		told(nil...)
		r.at(150 * time.Second)
		_, err = r.Resume(r.ctx, "s", tickonce.ResumeOptions{})
		require.NoError(t, err)
		told(
			tickonce.Event{Kind: tickonce.EventResumed, At: at(150 * time.Second), Schedule: "s", Boundary: at(3 * time.Minute)},
			tickonce.Event{
				Kind: tickonce.EventSkipped, At: at(150 * time.Second), Schedule: "s", Reason: "pause",
				First: at(time.Minute), Last: at(2 * time.Minute), Count: 2,
			},
		)

		const late = 3*time.Minute + 65*time.Minute
		did := r.tick(late)
		require.Len(t, did.events, 66)
		owner := did.events[0].Owner
		require.Equal(t, tickonce.Event{Kind: tickonce.EventLeading, At: at(late), Owner: owner}, did.events[0])
		require.Equal(t, tickonce.Event{
			Kind: tickonce.EventFired, At: at(late), Schedule: "s", Queue: "q", Job: 1, Boundary: at(3 * time.Minute),
		}, did.events[1])
		require.Equal(t, tickonce.Event{
			Kind: tickonce.EventSkipped, At: at(late), Schedule: "s", Reason: "cap",
			First: at(67 * time.Minute), Last: at(68 * time.Minute), Count: 2,
		}, did.events[65])

		did = r.tick(late + 3*time.Minute)
		require.Equal(t, []tickonce.Event{
			{Kind: tickonce.EventLeaseLapsed, At: at(r.now()), Owner: owner},
			{Kind: tickonce.EventLeading, At: at(r.now()), Owner: owner},
			{Kind: tickonce.EventQuarantined, At: at(r.now()), Schedule: "s", Queue: "q", Reason: "the queue is full", Count: 1},
		}, did.events)
		require.NoError(t, r.runner.Stop(r.ctx))
		told(tickonce.Event{Kind: tickonce.EventStopped, At: at(r.now()), Owner: owner})
		_, err = r.Unschedule(r.ctx, "s")
		require.NoError(t, err)
		told(tickonce.Event{Kind: tickonce.EventUnscheduled, At: at(r.now()), Schedule: "s"})
	})
}

func TestEventsOfJobs(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		told := func(want ...tickonce.Event) {
			t.Helper()
			for i := range want {
				want[i].At, want[i].Queue = start.Add(r.now()), "q"
			}
			require.Equal(t, want, r.take())
		}
		for range 4 {
			r.enqueue("p", tickonce.EnqueueOptions{Visibility: time.Minute})
		}
		told(
			tickonce.Event{Kind: tickonce.EventEnqueued, Job: 1}, tickonce.Event{Kind: tickonce.EventEnqueued, Job: 2},
			tickonce.Event{Kind: tickonce.EventEnqueued, Job: 3}, tickonce.Event{Kind: tickonce.EventEnqueued, Job: 4},
		)
		jobs, err := r.ClaimBatch(r.ctx, "q", "w", 3)
		require.NoError(t, err)
		told(
			tickonce.Event{Kind: tickonce.EventClaimed, Job: 1, Count: 1}, tickonce.Event{Kind: tickonce.EventClaimed, Job: 2, Count: 1},
			tickonce.Event{Kind: tickonce.EventClaimed, Job: 3, Count: 1},
		)
		require.NoError(t, jobs[0].Ack(r.ctx))
		told(tickonce.Event{Kind: tickonce.EventDone, Job: 1, Execution: tickonce.ExecutionOK})
		require.NoError(t, jobs[1].RetryAfter(r.ctx, errBoom, time.Hour))
		told(tickonce.Event{Kind: tickonce.EventRetried, Job: 2, Execution: tickonce.ExecutionFailed, Count: 1, Wait: time.Hour, Reason: "boom"})
		require.NoError(t, jobs[2].Fail(r.ctx, errBoom))
		told(tickonce.Event{Kind: tickonce.EventDied, Job: 3, Execution: tickonce.ExecutionFailed, Count: 1, Reason: "boom"})
		require.ErrorIs(t, jobs[0].Ack(r.ctx), tickonce.ErrClaimLost)
		told(tickonce.Event{Kind: tickonce.EventClaimLost, Job: 1})
		_, err = r.Cancel(r.ctx, "q", 4)
		require.NoError(t, err)
		told(tickonce.Event{Kind: tickonce.EventCancelled, Job: 4})
		_, err = r.Requeue(r.ctx, "q", 3)
		require.NoError(t, err)
		told(tickonce.Event{Kind: tickonce.EventRequeued, Job: 5})
		require.NoError(t, r.mustClaim().Fail(r.ctx, nil))
		r.take()
		require.NoError(t, r.Purge(r.ctx, "q", 5))
		told(tickonce.Event{Kind: tickonce.EventPurged, Count: 1})
		r.enqueue("p", tickonce.EnqueueOptions{Expires: time.Second})
		r.at(time.Minute)
		r.take()
		require.Nil(t, r.claim())
		told(tickonce.Event{Kind: tickonce.EventBuried, Count: 1})
	})
}

// Fired jobs carry their schedule and boundary through the events of their
// life.
func TestEventsOfAFiredJobNameItsSchedule(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
		r.tick(0)
		r.tick(time.Minute)
		job := r.mustClaim()
		r.take()
		require.NoError(t, job.Ack(r.ctx))
		require.Equal(t, []tickonce.Event{{
			Kind: tickonce.EventDone, At: start.Add(time.Minute), Queue: "q", Job: job.ID, Schedule: "s", Boundary: start.Add(time.Minute),
			Execution: tickonce.ExecutionOK,
		}}, r.take())

		r.tick(2 * time.Minute)
		job = r.mustClaim()
		r.at(time.Hour)
		r.take()
		require.ErrorIs(t, job.Heartbeat(r.ctx, 0), tickonce.ErrClaimLost)
		require.Equal(t, []tickonce.Event{{
			Kind: tickonce.EventClaimLost, At: start.Add(time.Hour), Queue: "q", Job: job.ID, Schedule: "s", Boundary: start.Add(2 * time.Minute),
		}}, r.take())
		require.ErrorIs(t, job.Heartbeat(r.ctx, 0), tickonce.ErrClaimLost)
		require.ErrorIs(t, job.Ack(r.ctx), tickonce.ErrClaimLost)
		require.Empty(t, r.take(), "it is told once")
	})
}

// The end of a run says how long it took since its claim, whose renewals change
// nothing; of a clock that went back nothing less than zero.
func TestEventsOfAnEndTellHowLongTheRunTook(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		for end, settle := range map[tickonce.EventKind]func(*tickonce.Job) error{
			tickonce.EventDone:    func(job *tickonce.Job) error { return job.Ack(r.ctx) },
			tickonce.EventRetried: func(job *tickonce.Job) error { return job.RetryAfter(r.ctx, errBoom, time.Hour) },
			tickonce.EventDied:    func(job *tickonce.Job) error { return job.Fail(r.ctx, errBoom) },
		} {
			for after, took := range map[time.Duration]time.Duration{1500 * time.Millisecond: 1500 * time.Millisecond, -time.Second: 0} {
				r.at(time.Minute)
				r.enqueue("p", tickonce.EnqueueOptions{})
				r.at(2 * time.Minute)
				job := r.mustClaim()
				r.at(2*time.Minute + after/2)
				require.NoError(t, job.Heartbeat(r.ctx, time.Hour))
				r.at(2*time.Minute + after)
				r.take()
				require.NoError(t, settle(job))
				told := r.take()
				require.Len(t, told, 1)
				require.Equal(t, end, told[0].Kind)
				require.Equal(t, took, told[0].Took, "%v after %s", end, after)
			}
		}
	})
}

// A transaction that ends a run says at its commit how long the run took.
func TestO7EventsOfATransactionTellHowLongTheRunTook(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		r.enqueue("first", tickonce.EnqueueOptions{})
		r.enqueue("second", tickonce.EnqueueOptions{})
		first, second := r.mustClaim(), r.mustClaim()
		r.take()
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			require.NoError(t, tx.Fail(second, errBoom))
			_, err := tx.Schedule("s", "@every 1m", "q", nil, tickonce.ScheduleOptions{})
			require.NoError(t, err)
			require.NoError(t, tx.Ack(first))
			r.at(3 * time.Second)
			return nil
		}))
		told := r.take()
		require.Equal(t, []tickonce.EventKind{tickonce.EventDied, tickonce.EventScheduled, tickonce.EventDone},
			[]tickonce.EventKind{told[0].Kind, told[1].Kind, told[2].Kind})
		for _, event := range []tickonce.Event{told[0], told[2]} {
			require.Equal(t, start.Add(3*time.Second), event.At)
			require.Equal(t, 3*time.Second, event.Took)
		}
		require.Equal(t, []tickonce.JobID{second.ID, first.ID}, []tickonce.JobID{told[0].Job, told[2].Job})
	})
}

// Events come after the write, and the observer may call the engine.
func TestObserverMayCallTheEngine(t *testing.T) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			var r *rig
			var fired []tickonce.JobID
			busy := false
			r = newRigOn(t, tickonce.Config{Poll: -1, Observer: func(e tickonce.Event) {
				if busy || r == nil {
					return
				}
				busy = true
				defer func() { busy = false }()
				switch e.Kind {
				case tickonce.EventFired:
					job := r.mustClaim()
					require.Equal(t, e.Job, job.ID, "it is there when it is told")
					require.NoError(t, job.Ack(r.ctx))
					fired = append(fired, job.ID)
				case tickonce.EventScheduled:
					require.Equal(t, e.Boundary, r.lookup(e.Schedule).Next)
				case tickonce.EventLeading:
					r.schedule("added", "@every 1s", tickonce.ScheduleOptions{})
				case tickonce.EventDone:
					require.NotContains(t, r.jobs("q"), store.Job{ID: e.Job})
				}
			}}, s.open)
			r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
			r.tick(0)
			did := r.tick(3 * time.Second)
			require.Len(t, did.fires, 6)
			require.Len(t, fired, 6)
		})
	}
}

// An observer that panics at every event changes nothing.
func TestC94ObserverThatPanics(t *testing.T) {
	run := func(t *testing.T, open openStore, observer func(tickonce.Event)) contents {
		r := newRigOn(t, tickonce.Config{Poll: -1, Owner: "o", Observer: observer}, open)
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		did := ticked{}
		for did.next < time.Minute {
			did = r.tick(did.next)
			require.NoError(t, did.err)
		}
		require.NoError(t, r.mustClaim().Ack(r.ctx))
		require.NoError(t, r.mustClaim().Retry(r.ctx, errBoom))
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			_, err := tx.Unschedule("s")
			return err
		}))
		require.NoError(t, r.runner.Stop(r.ctx))
		return r.contents()
	}
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			calm := run(t, s.open, nil)
			require.Equal(t, calm, run(t, s.open, func(tickonce.Event) { panic("observer") }))
		})
	}
}

// What a lost reply hid is told by no event: it stands in the store.
func TestEventsAreToldAtMostOnce(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		w := r.wire()
		r.lead()
		n := 0
		w.lose = lostAtRandom(newDraw(5), &n)
		told := map[tickonce.JobID]int{}
		did := ticked{next: time.Second}
		for did.next < 10*time.Minute {
			did = r.tick(did.next)
			require.NoError(t, did.err)
			for _, event := range of(tickonce.EventFired, did.events) {
				told[event.Job]++
			}
		}
		for job, times := range told {
			require.Equal(t, 1, times, job)
		}
		require.Positive(t, n)
		require.Len(t, r.jobs("q"), 599)
		require.Equal(t, 599-n, len(told))
	})
}

// lostAtRandom loses replies of ticks now and then, never two in a row, and
// counts them.
func lostAtRandom(draw func(int) int, n *int) func(faultstore.Op) faultstore.Verdict {
	last := false
	return func(op faultstore.Op) faultstore.Verdict {
		if op.Method != faultstore.Advance {
			return faultstore.Pass
		}
		if last = !last && draw(10) == 0; last {
			*n++
			return faultstore.LoseReply
		}
		return faultstore.Pass
	}
}
