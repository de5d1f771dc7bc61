package tickonce_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// run fires the schedule "s", which is due every 10 s, and ends its job.
func (r *rig) run(end func(j *tickonce.Job) error) {
	r.t.Helper()
	at := r.now().Truncate(10*time.Second) + 10*time.Second
	require.Len(r.t, r.tick(at).fired("s"), 1)
	job, err := r.Claim(r.ctx, "q", "w")
	require.NoError(r.t, err)
	require.NotNil(r.t, job)
	require.NoError(r.t, end(job))
}

func (r *rig) fails() {
	r.t.Helper()
	r.run(func(j *tickonce.Job) error { return j.Fail(r.ctx, errors.New("boom")) })
}

func (r *rig) works() {
	r.t.Helper()
	r.run(func(j *tickonce.Job) error { return j.Ack(r.ctx) })
}

func TestX4I10BreakerOpensAtThreeFailuresInARow(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.fails()
		r.fails()
		require.Equal(t, 2, r.lookup("s").Failures)
		r.works()
		require.Zero(t, r.lookup("s").Failures)
		r.fails()
		r.fails()
		require.Empty(t, of(tickonce.EventBreakerOpened, r.take()))
		require.Equal(t, tickonce.Active, r.lookup("s").Paused)
		var last tickonce.JobID
		r.run(func(j *tickonce.Job) error {
			last = j.ID
			return j.Fail(r.ctx, errors.New("boom"))
		})
		require.Equal(t, []tickonce.Event{{
			Kind: tickonce.EventBreakerOpened, At: start.Add(r.now()), Schedule: "s", Queue: "q", Job: last, Count: 3,
		}}, of(tickonce.EventBreakerOpened, r.take()), "one event")
		s := r.lookup("s")
		require.Equal(t, []any{tickonce.PausedByBreaker, 3}, []any{s.Paused, s.Failures})
		require.Zero(t, s.Due)
		require.Empty(t, r.tick(time.Hour).fires)
	})
}

// A run that failed is not done, and has a budget of its own.
func TestX4C87BreakerCountsJobsAndNotAttempts(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{MaxAttempts: 3, Breaker: 1})
		r.run(func(j *tickonce.Job) error { return j.RetryAfter(r.ctx, errors.New("boom"), 0) })
		for attempt := 2; attempt <= 3; attempt++ {
			require.Zero(t, r.lookup("s").Failures, "before attempt %d", attempt)
			job, err := r.Claim(r.ctx, "q", "w")
			require.NoError(t, err)
			require.Equal(t, attempt, job.Attempt)
			require.NoError(t, job.RetryAfter(r.ctx, errors.New("boom"), 0))
		}
		require.Equal(t, tickonce.PausedByBreaker, r.lookup("s").Paused)
		q, err := r.Queue(r.ctx, "q")
		require.NoError(t, err)
		require.Equal(t, []int64{0, 2, 1}, []int64{q.Done, q.Retried, q.Died})
	})
}

func TestX4SBD7TheBreakersCountSurvivesARestart(t *testing.T) {
	eachBoot(t, func(t *testing.T, r *rig, again func()) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.fails()
		r.fails()
		again()
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{}) // as at each start
		require.Equal(t, 2, r.lookup("s").Failures)
		r.fails()
		require.Equal(t, tickonce.PausedByBreaker, r.lookup("s").Paused)
		again()
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		require.Equal(t, tickonce.PausedByBreaker, r.lookup("s").Paused, "registering does not resume it (F6)")
	})
}

func TestX4SBD8ResumeBeginsTheCountAnew(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		for range 3 {
			r.fails()
		}
		changed, err := r.Resume(r.ctx, "s", tickonce.ResumeOptions{})
		require.NoError(t, err)
		require.True(t, changed)
		require.Zero(t, r.lookup("s").Failures)
		r.fails()
		r.fails()
		require.Equal(t, tickonce.Active, r.lookup("s").Paused)
		r.fails()
		require.Equal(t, tickonce.PausedByBreaker, r.lookup("s").Paused)
	})
}

// Panics and lapsed claims count, three of each (SB-D14), and so do timeouts
// (SB-D2).
func TestX4X5SBD2SBD14PanicsTimeoutsAndCrashesOpenTheBreaker(t *testing.T) {
	for name, end := range map[string]func(h *hand, run *tickonce.Run){
		"panic": func(h *hand, run *tickonce.Run) {
			h.worker.Ended(run, run.Call(func(_ context.Context, _ *tickonce.Job) error { panic("boom") }))
			h.work(h.now())
		},
		"timeout": func(h *hand, run *tickonce.Run) { h.work(h.now() + time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			onEachHand(t, tickonce.WorkerConfig{Concurrency: 9}, func(t *testing.T, h *hand) {
				h.runner = h.NewRunner()
				h.schedule("s", "@every 10s", tickonce.ScheduleOptions{MaxAttempts: 1, Timeout: time.Second})
				for i := range 3 {
					require.Equal(t, tickonce.Active, h.lookup("s").Paused)
					h.tick(time.Duration(i+1) * 10 * time.Second)
					h.work(h.now())
					require.Len(t, h.runs, i+1)
					end(h, h.runs[i])
				}
				require.Equal(t, tickonce.PausedByBreaker, h.lookup("s").Paused)
				opened := of(tickonce.EventBreakerOpened, h.events)
				require.Len(t, opened, 1)
				require.Equal(t, []any{h.runs[2].Job.ID, int64(3)}, []any{opened[0].Job, opened[0].Count})
			})
		})
	}
	t.Run("crash", func(t *testing.T) {
		onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
			r.schedule("s", "@every 10s", tickonce.ScheduleOptions{MaxAttempts: 1, Visibility: time.Second, Breaker: 3})
			for range 3 {
				r.run(func(*tickonce.Job) error { return nil }) // and dies
			}
			r.take()
			r.at(r.now() + time.Minute)
			died, err := r.Sweep(r.ctx, "q")
			require.NoError(t, err)
			require.Equal(t, 1, died, "those before were met by claims")
			require.Equal(t, []tickonce.Event{{
				Kind: tickonce.EventBreakerOpened, At: start.Add(r.now()), Schedule: "s", Queue: "q", Count: 3,
			}}, of(tickonce.EventBreakerOpened, r.take()))
			require.Equal(t, tickonce.PausedByBreaker, r.lookup("s").Paused)
		})
	})
}

// A transaction that ends a job tells of the breaker too.
func TestX4O7BreakerInATransaction(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Breaker: 1})
		r.run(func(j *tickonce.Job) error {
			return r.Tx(r.ctx, func(tx *tickonce.Tx) error { return tx.Fail(j, errors.New("boom")) })
		})
		require.Len(t, of(tickonce.EventBreakerOpened, r.take()), 1)
		require.Equal(t, tickonce.PausedByBreaker, r.lookup("s").Paused)
	})
}

// A run ends at the least of the schedule's timeout and the worker's.
func TestX5ScheduleHasATimeoutOfItsOwn(t *testing.T) {
	for _, c := range []struct {
		schedule, worker, want time.Duration
	}{
		{5 * time.Second, 0, 5 * time.Second},
		{5 * time.Second, 3 * time.Second, 3 * time.Second},
		{5 * time.Second, time.Hour, 5 * time.Second},
		{0, 3 * time.Second, 3 * time.Second},
	} {
		onEachHand(t, tickonce.WorkerConfig{Timeout: c.worker}, func(t *testing.T, h *hand) {
			h.runner = h.NewRunner()
			h.schedule("s", "@every 10s", tickonce.ScheduleOptions{Timeout: c.schedule})
			h.schedule("s", "@every 10s", tickonce.ScheduleOptions{Timeout: c.schedule})
			h.tick(10 * time.Second)
			h.schedule("s", "@every 10s", tickonce.ScheduleOptions{}) // later: the job keeps its own (S4)
			h.work(10 * time.Second)
			h.work(10*time.Second + c.want - time.Millisecond)
			require.Equal(t, store.Claimed, h.only().State)
			h.work(10*time.Second + c.want)
			require.Equal(t, store.Pending, h.only().State)
			require.Equal(t, "timed out after "+c.want.String(), h.only().LastError)
		})
	}
}
