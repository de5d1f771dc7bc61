package tickonce_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// enqueue puts a job into the queue "q".
func (r *rig) enqueue(payload string, o tickonce.EnqueueOptions) tickonce.JobID {
	r.t.Helper()
	id, err := r.Enqueue(r.ctx, "q", []byte(payload), o)
	require.NoError(r.t, err)
	return id
}

// claim hands out a job of the queue "q" to the worker "w", or nil.
func (r *rig) claim() *tickonce.Job {
	r.t.Helper()
	job, err := r.Claim(r.ctx, "q", "w")
	require.NoError(r.t, err)
	return job
}

// mustClaim is claim where there has to be a job.
func (r *rig) mustClaim() *tickonce.Job {
	r.t.Helper()
	job := r.claim()
	require.NotNil(r.t, job, "no job to claim")
	return job
}

// queue is what is known of the queue "q", and what must always hold of it.
func (r *rig) queue() tickonce.QueueInfo {
	r.t.Helper()
	q, err := r.Queue(r.ctx, "q")
	require.NoError(r.t, err)
	require.Equal(r.t, q.Enqueued, q.Pending+q.Claimed+q.Dead+q.Done+q.Cancelled+q.Requeued+q.Purged, "conservation")
	return q
}

// dead are the dead jobs of the queue "q".
func (r *rig) dead() []tickonce.DeadJob {
	r.t.Helper()
	var jobs []tickonce.DeadJob
	for job, err := range r.Dead(r.ctx, "q") {
		require.NoError(r.t, err)
		jobs = append(jobs, job)
	}
	return jobs
}

// fail makes a dead job.
func (r *rig) fail(payload string) tickonce.JobID {
	r.t.Helper()
	id := r.enqueue(payload, tickonce.EnqueueOptions{Priority: 100})
	job := r.mustClaim()
	require.Equal(r.t, id, job.ID)
	require.NoError(r.t, job.Fail(r.ctx, errBoom))
	return id
}

func TestQU1ClaimOrder(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
		r.enqueue("lapsed", tickonce.EnqueueOptions{RunAt: at(2), Visibility: time.Second})
		r.at(2 * time.Second)
		require.NotNil(t, r.claim())
		r.enqueue("late", tickonce.EnqueueOptions{RunAt: at(5)})
		r.enqueue("first of two", tickonce.EnqueueOptions{RunAt: at(4)})
		r.enqueue("second of two", tickonce.EnqueueOptions{RunAt: at(4)})
		r.enqueue("early", tickonce.EnqueueOptions{RunAt: at(3)})
		r.enqueue("low", tickonce.EnqueueOptions{RunAt: at(2), Priority: -1})
		r.enqueue("high", tickonce.EnqueueOptions{RunAt: at(9), Priority: 1})
		r.enqueue("not yet", tickonce.EnqueueOptions{RunAt: at(11), Priority: 32767})
		r.at(10 * time.Second)
		var order []string
		for job := r.claim(); job != nil; job = r.claim() {
			order = append(order, string(job.Payload))
		}
		require.Equal(t, []string{"high", "lapsed", "early", "first of two", "second of two", "late", "low"}, order)
	})
}

// A claim whose attempts are spent is not handed out again but dies, and so
// does a job that expired; Claim and Sweep move and count them.
func TestQU5ExhaustedJobsDie(t *testing.T) {
	for _, how := range []struct {
		name string
		move func(r *rig) int
	}{
		{"on the way of a claim", func(r *rig) int {
			require.Nil(r.t, r.claim())
			buried := of(tickonce.EventBuried, r.take())
			require.Len(r.t, buried, 1)
			return int(buried[0].Count)
		}},
		{"by a sweep", func(r *rig) int {
			n, err := r.Sweep(r.ctx, "q")
			require.NoError(r.t, err)
			return n
		}},
	} {
		t.Run(how.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				id := r.enqueue("p", tickonce.EnqueueOptions{MaxAttempts: 2, Visibility: time.Second})
				r.claim()
				r.at(1001 * time.Millisecond)
				require.Equal(t, 2, r.mustClaim().Attempt)
				r.at(2002 * time.Millisecond)
				require.Empty(t, r.dead())
				require.Equal(t, 1, how.move(r))
				dead := r.dead()
				require.Len(t, dead, 1)
				require.Equal(t, id, dead[0].ID)
				require.Equal(t, 2, dead[0].Attempts)
				require.Equal(t, store.ErrorExhausted, dead[0].LastError)
				require.Equal(t, start.Add(2002*time.Millisecond), dead[0].Died)
				require.Nil(t, r.claim())
			})
		})
	}
}

// More doomed jobs than one call of the store buries hide no claimable one.
func TestQU5ClaimBuriesAllThatIsInItsWay(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		const doomed = 2*store.MaxBuried + 5
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			for range doomed {
				if _, err := tx.Enqueue("q", nil, tickonce.EnqueueOptions{Expires: time.Second}); err != nil {
					return err
				}
			}
			return nil
		}))
		r.at(time.Second)
		w := r.wire()
		require.Nil(t, r.claim())
		require.Equal(t, 3, w.count(faultstore.Claim))
		require.Equal(t, int64(doomed), r.queue().Dead)

		r.fail("one more")
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			for range doomed {
				if _, err := tx.Enqueue("q", nil, tickonce.EnqueueOptions{Expires: time.Second}); err != nil {
					return err
				}
			}
			return nil
		}))
		r.at(3 * time.Second)
		n, err := r.Sweep(r.ctx, "q")
		require.NoError(t, err)
		require.Equal(t, doomed, n)
	})
}

func TestQU7CancelRemovesPendingAndClaimed(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		pending, claimed := r.enqueue("p", tickonce.EnqueueOptions{Delay: time.Hour}), r.enqueue("c", tickonce.EnqueueOptions{})
		job := r.mustClaim()
		dead := r.fail("d")
		for _, id := range []tickonce.JobID{pending, claimed} {
			cancelled, err := r.Cancel(r.ctx, "q", id)
			require.NoError(t, err)
			require.True(t, cancelled)
			cancelled, err = r.Cancel(r.ctx, "q", id)
			require.NoError(t, err)
			require.False(t, cancelled)
		}
		require.ErrorIs(t, job.Ack(r.ctx), tickonce.ErrClaimLost)
		require.ErrorIs(t, job.Heartbeat(r.ctx, 0), tickonce.ErrClaimLost)
		before := r.contents()
		for _, ref := range []struct {
			queue string
			id    tickonce.JobID
		}{{"q", dead}, {"q", 999}, {"other", dead}} {
			cancelled, err := r.Cancel(r.ctx, ref.queue, ref.id)
			require.NoError(t, err)
			require.False(t, cancelled)
		}
		require.Equal(t, before, r.contents())
		require.Equal(t, int64(2), r.queue().Cancelled)
	})
}

func TestQU9ExpiredJobsDie(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.enqueue("claimed", tickonce.EnqueueOptions{Expires: 5 * time.Second, Visibility: time.Minute})
		claimed := r.mustClaim()
		r.enqueue("pending", tickonce.EnqueueOptions{Expires: 10 * time.Second, Delay: time.Second})
		r.at(11*time.Second - time.Millisecond)
		n, err := r.Sweep(r.ctx, "q")
		require.NoError(t, err)
		require.Zero(t, n)
		r.at(11 * time.Second)
		require.Nil(t, r.claim())
		require.Equal(t, "pending", string(r.dead()[0].Payload))
		require.NoError(t, claimed.Heartbeat(r.ctx, time.Second), "what has begun may end")
		r.at(12001 * time.Millisecond)
		require.Nil(t, r.claim())
		for _, dead := range r.dead() {
			require.Equal(t, store.ErrorExpired, dead.LastError)
		}
		require.Equal(t, int64(2), r.queue().Dead)
	})
}

// A waiter that sleeps until NextClaimAt meets a job there that is handed out
// or buried, and none before.
func TestQU10NextClaimAtNeverLies(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		next := func() (time.Duration, bool) {
			at, ok, err := r.NextClaimAt(r.ctx, "q")
			require.NoError(t, err)
			require.Equal(t, ok, !at.IsZero())
			return offset(at), ok
		}
		_, ok := next()
		require.False(t, ok, "no such queue")
		draw := newDraw(10)
		for range 60 {
			r.enqueue("p", tickonce.EnqueueOptions{
				Delay: time.Duration(draw(30_000)) * time.Millisecond, Visibility: time.Duration(1+draw(5_000)) * time.Millisecond,
				Expires: time.Duration(draw(3)*5_000) * time.Millisecond, MaxAttempts: 1 + draw(3), Priority: int16(draw(3)),
			})
		}
		for {
			at, ok := next()
			if !ok {
				break
			}
			if at > r.now() {
				r.at(at - time.Millisecond)
				require.Nil(t, r.claim(), "one was claimable before")
				r.at(at)
			}
			died := r.queue().Died
			job := r.claim()
			if job == nil {
				require.Greater(t, r.queue().Died, died, "neither handed out nor buried")
				continue
			}
			switch draw(3) {
			case 0:
				require.NoError(t, job.Ack(r.ctx))
			case 1:
				require.NoError(t, job.Retry(r.ctx, errBoom))
			}
		}
		_, err := r.Sweep(r.ctx, "q")
		require.NoError(t, err)
		q := r.queue()
		require.Zero(t, q.Pending)
	})
}

func TestQU11DeadJobsAreListedRequeuedAndPurged(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.at(time.Second)
		id := r.enqueue("p", tickonce.EnqueueOptions{Expires: time.Hour, Key: "k"})
		r.at(2 * time.Second)
		old := r.mustClaim()
		r.at(3 * time.Second)
		require.NoError(t, old.Fail(r.ctx, errBoom))
		require.Equal(t, []tickonce.DeadJob{{
			ID: id, Queue: "q", Payload: []byte("p"), Attempts: 1, LastError: "boom",
			Enqueued: start.Add(time.Second), Died: start.Add(3 * time.Second),
		}}, r.dead())

		r.at(4 * time.Second)
		again, err := r.Requeue(r.ctx, "q", id)
		require.NoError(t, err)
		require.Greater(t, again, id)
		require.Empty(t, r.dead())
		r.at(5 * time.Hour) // no expiry
		job := r.mustClaim()
		require.Equal(t, again, job.ID)
		require.Equal(t, 1, job.Attempt)
		require.Equal(t, "boom", job.LastError)
		require.Equal(t, start.Add(4*time.Second), job.RunAt)
		require.ErrorIs(t, old.Ack(r.ctx), tickonce.ErrClaimLost, "an old token fits nothing")
		require.NoError(t, job.Fail(r.ctx, errBoom))

		require.NoError(t, r.Purge(r.ctx, "q", again))
		require.Empty(t, r.dead())
		q := r.queue()
		require.Equal(t, [...]int64{2, 2, 1, 1}, [...]int64{q.Enqueued, q.Died, q.Requeued, q.Purged})
		require.Zero(t, q.Pending+q.Claimed+q.Dead)
	})
}

func TestQU11DeadJobsAreReadPageByPage(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 257, 600} {
		onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
			require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
				for range n {
					if _, err := tx.Enqueue("q", nil, tickonce.EnqueueOptions{Expires: time.Second}); err != nil {
						return err
					}
				}
				return nil
			}))
			r.at(time.Second)
			_, err := r.Sweep(r.ctx, "q")
			require.NoError(t, err)
			dead := r.dead()
			require.Len(t, dead, n)
			for i := 1; i < n; i++ {
				require.Greater(t, dead[i].ID, dead[i-1].ID)
			}
			for range r.Dead(r.ctx, "q") {
				break // may end early
			}
		})
	}
}

func TestQU11WhatIsNotDeadIsNotFound(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		dead, pending := r.fail("d"), r.enqueue("p", tickonce.EnqueueOptions{})
		before := r.contents()
		for _, ref := range []struct {
			queue string
			id    tickonce.JobID
		}{{"q", pending}, {"q", 999}, {"q", 0}, {"other", dead}} {
			_, err := r.Requeue(r.ctx, ref.queue, ref.id)
			require.ErrorIs(t, err, tickonce.ErrNotFound)
			require.Equal(t, ref.queue, opError(t, err).Queue)
			require.ErrorIs(t, r.Purge(r.ctx, ref.queue, ref.id), tickonce.ErrNotFound)
		}
		require.ErrorIs(t, r.Purge(r.ctx, "q", dead, pending), tickonce.ErrNotFound, "all or none")
		require.ErrorIs(t, r.Purge(r.ctx, "q", dead, dead), tickonce.ErrNotFound, "twice")
		require.NoError(t, r.Purge(r.ctx, "q"))
		require.Equal(t, before, r.contents())
	})
}

func TestQU14BatchesAreOneCall(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		for range 120 {
			r.enqueue("p", tickonce.EnqueueOptions{Visibility: time.Minute})
		}
		w := r.wire()
		jobs, err := r.ClaimBatch(r.ctx, "q", "w", 100)
		require.NoError(t, err)
		require.Len(t, jobs, 100)
		require.Equal(t, "claim", w.take())
		require.NoError(t, jobs[10].Ack(r.ctx))
		require.NoError(t, jobs[20].Fail(r.ctx, nil))
		_, err = r.Cancel(r.ctx, "q", jobs[30].ID)
		require.NoError(t, err)
		w.take()
		r.take()
		acked, err := r.AckAll(r.ctx, jobs)
		require.NoError(t, err)
		require.Equal(t, "settle", w.take())
		live := 0
		for i, ok := range acked {
			require.Equal(t, i != 10 && i != 20 && i != 30, ok, i)
			if ok {
				live++
			}
		}
		require.Equal(t, 97, live)
		events := r.take()
		require.Len(t, of(tickonce.EventDone, events), 97)
		require.Len(t, of(tickonce.EventClaimLost, events), 3)
		require.Equal(t, int64(98), r.queue().Done)

		again, err := r.AckAll(r.ctx, jobs)
		require.NoError(t, err)
		require.NotContains(t, again, true)

		jobs, err = r.ClaimBatch(r.ctx, "q", "w", 100)
		require.NoError(t, err)
		require.Len(t, jobs, 20, "fewer when there are no more")
		none, err := r.ClaimBatch(r.ctx, "q", "w", 100)
		require.NoError(t, err)
		require.Nil(t, none)
		acked, err = r.AckAll(r.ctx, []*tickonce.Job{jobs[0], jobs[0]})
		require.NoError(t, err)
		require.Equal(t, []bool{true, false}, acked)
		acked, err = r.AckAll(r.ctx, nil)
		require.NoError(t, err)
		require.Empty(t, acked)
	})
}

func TestQU14BatchesRefuseBadInput(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.enqueue("p", tickonce.EnqueueOptions{})
		before := r.contents()
		for _, n := range []int{-1, 0, 10_001} {
			_, err := r.ClaimBatch(r.ctx, "q", "w", n)
			require.ErrorIs(t, err, tickonce.ErrInvalidOption)
		}
		_, err := r.ClaimBatch(r.ctx, "q", "", 1)
		require.ErrorIs(t, err, tickonce.ErrInvalidWorker)
		_, err = r.AckAll(r.ctx, make([]*tickonce.Job, 10_001))
		require.ErrorIs(t, err, tickonce.ErrInvalidOption)
		require.Equal(t, before, r.contents())

		job := r.mustClaim()
		before = r.contents()
		_, err = r.another().AckAll(r.ctx, []*tickonce.Job{job})
		require.ErrorIs(t, err, tickonce.ErrInvalidOption, "a handle dies with its engine")
		require.Equal(t, before, r.contents())
	})
}

func TestN5ReservedQueuesAreOutOfReach(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		const queue = "__alkstore_outbox:o"
		id, err := r.Outbox("o").Enqueue(r.ctx, []byte("p"), tickonce.OutboxOptions{})
		require.NoError(t, err)
		w := r.wire()
		errs := map[string]error{}
		_, errs["Enqueue"] = r.Enqueue(r.ctx, queue, nil, tickonce.EnqueueOptions{})
		_, errs["Claim"] = r.Claim(r.ctx, queue, "w")
		_, errs["ClaimBatch"] = r.ClaimBatch(r.ctx, queue, "w", 1)
		_, errs["Sweep"] = r.Sweep(r.ctx, queue)
		_, errs["Queue"] = r.Queue(r.ctx, queue)
		_, _, errs["NextClaimAt"] = r.NextClaimAt(r.ctx, queue)
		_, errs["Requeue"] = r.Requeue(r.ctx, queue, id)
		errs["Purge"] = r.Purge(r.ctx, queue, id)
		_, errs["Cancel"] = r.Cancel(r.ctx, queue, id)
		_, errs["Schedule"] = r.Schedule(r.ctx, "s", "@every 1s", queue, nil, tickonce.ScheduleOptions{})
		for _, err := range r.Dead(r.ctx, queue) {
			errs["Dead"] = err
		}
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			_, errs["Tx.Enqueue"] = tx.Enqueue(queue, nil, tickonce.EnqueueOptions{})
			_, errs["Tx.Requeue"] = tx.Requeue(queue, id)
			_, errs["Tx.Schedule"] = tx.Schedule("s", "@every 1s", queue, nil, tickonce.ScheduleOptions{})
			errs["Tx.Purge"] = tx.Purge(queue, id)
			errs["Tx.Cancel"] = tx.Cancel(queue, id)
			return nil
		}))
		require.Len(t, errs, 16)
		for call, err := range errs {
			require.ErrorIs(t, err, tickonce.ErrReservedName, call)
		}
		require.Empty(t, w.take(), "nothing staged, nothing called")
	})
}

func TestN6EmptyWorkerConsumesNoAttempt(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.enqueue("p", tickonce.EnqueueOptions{})
		_, err := r.Outbox("o").Enqueue(r.ctx, nil, tickonce.OutboxOptions{})
		require.NoError(t, err)
		before := r.contents()
		_, err = r.Claim(r.ctx, "q", "")
		require.ErrorIs(t, err, tickonce.ErrInvalidWorker)
		_, err = r.Outbox("o").RunOnce(r.ctx, "", nil)
		require.ErrorIs(t, err, tickonce.ErrInvalidWorker)
		_, err = r.Claim(r.ctx, "q", "a\nb")
		require.ErrorIs(t, err, tickonce.ErrInvalidName)
		require.Equal(t, before, r.contents())
	})
}

func TestQueuesAreListedWithTheirOutboxes(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		var want []string
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			_, err := tx.Outbox("o").Enqueue(nil, tickonce.OutboxOptions{})
			want = append(want, "__alkstore_outbox:o")
			for i := range 300 {
				name := "q" + strconv.Itoa(1000+i)
				want = append(want, name)
				if _, err := tx.Enqueue(name, nil, tickonce.EnqueueOptions{}); err != nil {
					return err
				}
			}
			return err
		}))
		var names []string
		for q, err := range r.Queues(r.ctx) {
			require.NoError(t, err)
			require.Equal(t, int64(1), q.Pending)
			names = append(names, q.Name)
			outbox, ok := tickonce.OutboxName(q.Name)
			require.Equal(t, q.Name == "__alkstore_outbox:o", ok)
			require.Equal(t, ok, outbox == "o")
		}
		require.Equal(t, want, names)
		q, err := r.Queue(r.ctx, "q")
		require.NoError(t, err)
		require.Equal(t, tickonce.QueueInfo{Name: "q"}, q, "one that was never used")
	})
}

func TestN7QueueErrorsNameTheQueue(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.enqueue("p", tickonce.EnqueueOptions{})
		w := r.wire()
		job := r.mustClaim()
		w.lose = offline
		errs := map[string]error{}
		_, errs["enqueue"] = r.Enqueue(r.ctx, "q", nil, tickonce.EnqueueOptions{})
		_, errs["claim"] = r.Claim(r.ctx, "q", "w")
		_, errs["sweep"] = r.Sweep(r.ctx, "q")
		_, errs["queue"] = r.Queue(r.ctx, "q")
		_, errs["cancel"] = r.Cancel(r.ctx, "q", 1)
		errs["ack"] = job.Ack(r.ctx)
		errs["retry"] = job.Retry(r.ctx, nil)
		errs["fail"] = job.Fail(r.ctx, nil)
		errs["heartbeat"] = job.Heartbeat(r.ctx, 0)
		for _, err := range r.Dead(r.ctx, "q") {
			errs["dead"] = err
		}
		for op, err := range errs {
			require.ErrorIs(t, err, faultstore.ErrLost, op)
			require.Equal(t, op, opError(t, err).Op)
			require.Equal(t, "q", opError(t, err).Queue, op)
		}
		var failed error
		for _, err := range r.Queues(r.ctx) {
			failed = err
		}
		require.ErrorIs(t, failed, faultstore.ErrLost)
	})
}

// A backlog of identical jobs behind a slow worker is bounded: by the catch-up
// policy with the newest kept, and by a key.
func TestC71BacklogIsBounded(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{CatchUp: tickonce.CatchUpLatest, Expires: 2 * time.Second})
		r.tick(0)
		for at := time.Minute; at <= 10*time.Minute; at += time.Minute {
			r.tick(at)
			r.enqueue("p", tickonce.EnqueueOptions{Key: "k", Priority: -1})
		}
		job := r.mustClaim()
		require.Equal(t, 10*time.Minute, offset(job.Boundary), "the newest")
		require.Equal(t, int64(9), r.queue().Dead, "the others expired")
		require.Equal(t, int64(1), r.queue().Pending)
	})
}

// A job that is stuck with its worker keeps nobody else waiting.
func TestC73StuckJobStarvesNobody(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		r.enqueue("stuck", tickonce.EnqueueOptions{Priority: 32767, Visibility: 100 * time.Hour})
		require.Equal(t, "stuck", string(r.mustClaim().Payload))
		r.schedule("daily", "@every 24h", tickonce.ScheduleOptions{})
		r.tick(0)
		for day := 1; day <= 3; day++ {
			r.tick(time.Duration(day) * 24 * time.Hour)
			job := r.mustClaim()
			require.Equal(t, "daily", job.Schedule)
			require.Equal(t, r.now(), offset(job.Boundary))
			require.NoError(t, job.Ack(r.ctx))
		}
	})
}

// A consumer that blocks, and a queue that is full because of it, keep no
// other schedule from firing.
func TestC86BlockedConsumerLosesNoSchedule(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1, Batch: 4, Limits: tickonce.Limits{QueueLength: 10}}, func(t *testing.T, r *rig) {
		for i := range 25 {
			queue := "own" + strconv.Itoa(i)
			if i%5 == 0 {
				queue = "blocked"
			}
			_, err := r.Schedule(r.ctx, "s"+strconv.Itoa(i), "@every 1m", queue, nil, tickonce.ScheduleOptions{})
			require.NoError(t, err)
		}
		fires := map[string]int{}
		did := r.tick(0)
		for did.next < 11*time.Minute {
			did = r.tick(did.next)
			require.NoError(t, did.err)
			for _, fire := range did.fires {
				fires[fire.Schedule]++
			}
		}
		for i := range 25 {
			if name := "s" + strconv.Itoa(i); i%5 != 0 {
				require.Equal(t, 10, fires[name], name)
			} else {
				require.NotNil(t, r.lookup(name).Hold, name)
			}
		}
		require.Len(t, r.jobs("blocked"), 10)
		jobs, err := r.ClaimBatch(r.ctx, "blocked", "w", 10)
		require.NoError(t, err)
		require.Len(t, jobs, 10)
	})
}

// Each counter means one thing, and they add up.
func TestC90CountersOfAttemptsAndOutcomesAreSeparate(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		var ids []tickonce.JobID
		for range 7 {
			ids = append(ids, r.enqueue("p", tickonce.EnqueueOptions{MaxAttempts: 2, Visibility: time.Minute}))
		}
		require.NoError(t, r.mustClaim().Ack(r.ctx))
		require.NoError(t, r.mustClaim().Fail(r.ctx, errBoom))
		require.NoError(t, r.mustClaim().RetryAfter(r.ctx, errBoom, 0))
		require.NoError(t, r.mustClaim().Fail(r.ctx, errBoom))
		require.NoError(t, r.Purge(r.ctx, "q", ids[1]))
		_, err := r.Requeue(r.ctx, "q", ids[2])
		require.NoError(t, err)
		_, err = r.Cancel(r.ctx, "q", ids[6])
		require.NoError(t, err)
		require.NotNil(t, r.claim())
		require.Equal(t, tickonce.QueueInfo{
			Name: "q", Pending: 3, Claimed: 1, Dead: 0, Enqueued: 8, Claims: 5, Retried: 1, Done: 1, Died: 2,
			Cancelled: 1, Requeued: 1, Purged: 1, NextClaimAt: start,
		}, r.queue())
	})
}
