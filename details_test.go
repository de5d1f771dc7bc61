package tickonce_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
)

// details are those that the engine keeps.
func (r *rig) details() []tickonce.Detail {
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	var details []tickonce.Detail
	for detail := range r.Details(ctx) {
		details = append(details, detail)
	}
	return details
}

func TestX2DetailsOfRunsAndTries(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
		r.tick(0)
		r.tick(time.Minute)
		job := r.mustClaim()
		job.Summarize("too early")
		job.Summarize("12 rows")
		require.NoError(t, job.Deliver("o", nil))
		require.Empty(t, r.details(), "nothing before the end")
		require.NoError(t, job.Ack(r.ctx))
		job.Summarize("too late")
		entry := r.entry().ID
		r.mustDeliver(func(context.Context, *tickonce.Job) error { return tickonce.Transient(errBoom) })
		r.at(time.Minute + time.Second)
		r.mustDeliver(delivered)

		run := tickonce.Detail{At: start.Add(time.Minute), Schedule: "s", Boundary: start.Add(time.Minute), Job: job.ID}
		try := run
		run.Number, run.Attempt, run.Summary, run.Deliveries = 1, 1, "12 rows", 1
		try.Outbox, try.Entry = "o", entry
		first, second := try, try
		first.Number, first.Try, first.Delivery, first.Error = 2, 1, tickonce.DeliveryTransient, "boom"
		second.Number, second.Try, second.Delivery, second.Last = 3, 2, tickonce.Delivered, true
		second.At = start.Add(time.Minute + time.Second)
		require.Equal(t, []tickonce.Detail{run, first, second}, r.details())
		require.Equal(t, r.details(), r.details(), "reading takes nothing away")
		require.Zero(t, r.DroppedDetails())
	})
}

// Each attempt has its summary, however it ended; one that says nothing, and an
// entry that delivers no job's result, has no detail.
func TestX2DetailsOfAttempts(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Timeout: 20 * time.Second}, func(t *testing.T, h *hand) {
		h.enqueue(1, tickonce.EnqueueOptions{BaseBackoff: time.Second, MaxAttempts: 4})
		h.work(0)
		h.runs[0].Job.Summarize("failed")
		h.worker.Ended(h.runs[0], errBoom)
		h.work(0)
		h.work(time.Minute)
		h.runs[1].Job.Summarize("timed out")
		h.work(2 * time.Minute)
		h.worker.Ended(h.runs[1], nil)
		h.work(3 * time.Minute)
		h.worker.Ended(h.runs[2], errBoom) // and says nothing
		h.work(3 * time.Minute)
		h.work(4 * time.Minute)
		h.runs[3].Job.Summarize("lost")
		_, err := h.Cancel(h.ctx, "q", h.runs[3].Job.ID)
		require.NoError(t, err)
		h.worker.Ended(h.runs[3], nil)
		h.work(4 * time.Minute)
		h.post("p")
		h.mustDeliver(delivered)
		var said []string
		for _, detail := range h.details() {
			require.Equal(t, h.runs[0].Job.ID, detail.Job)
			require.Equal(t, detail.Attempt, int(detail.Number))
			said = append(said, detail.Summary)
		}
		require.Equal(t, []string{"failed", "timed out"}, said)
	})
}

func TestX2O7DetailsOfATransaction(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.enqueue("p", tickonce.EnqueueOptions{})
		job := r.mustClaim()
		job.Summarize("moved")
		ack := func(tx *tickonce.Tx) error { return tx.Ack(job) }
		require.Error(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error { require.NoError(t, ack(tx)); return errBoom }))
		require.Empty(t, r.details())
		require.NoError(t, r.Tx(r.ctx, ack))
		require.Len(t, r.details(), 1)
		require.Equal(t, "moved", r.details()[0].Summary)
	})
}

func TestX2SummariesAreClean(t *testing.T) {
	for _, c := range []struct{ name, text, kept string }{
		{"at the limit", strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		{"past the limit", strings.Repeat("x", 1025), strings.Repeat("x", 1024)},
		{"cut between characters", strings.Repeat("é", 513), strings.Repeat("é", 512)},
		{"invalid UTF-8", "a\xffb\x00", "a\uFFFDb\uFFFD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, tickonce.Config{})
			r.enqueue("p", tickonce.EnqueueOptions{})
			job := r.mustClaim()
			job.Summarize(c.text)
			require.NoError(t, job.Ack(r.ctx))
			require.Equal(t, c.kept, r.details()[0].Summary)
		})
	}
}

// An overrun drops the oldest. What some loop got by then is no loss.
func TestX2DetailsAreBounded(t *testing.T) {
	r := newRig(t, tickonce.Config{Details: 3})
	numbers := func() []int64 {
		var numbers []int64
		for _, detail := range r.details() {
			numbers = append(numbers, detail.Number)
		}
		return numbers
	}
	say := func(n int) {
		for range n {
			r.enqueue("p", tickonce.EnqueueOptions{})
			job := r.mustClaim()
			job.Summarize("x")
			require.NoError(t, job.Ack(r.ctx))
		}
	}
	say(5)
	require.EqualValues(t, 2, r.DroppedDetails())
	require.Equal(t, []int64{3, 4, 5}, numbers())
	say(2)
	require.EqualValues(t, 2, r.DroppedDetails(), "3 and 4 had been read")
	require.Equal(t, []int64{5, 6, 7}, numbers())
	for detail := range r.Details(r.ctx) {
		require.EqualValues(t, 5, detail.Number)
		break // without waiting for more
	}
	say(10)
	require.EqualValues(t, 2+7, r.DroppedDetails())
}

// The loop over the details stalls for an hour at each. Nothing waits for it:
// the jobs go on in time, and what it misses is counted.
func TestX2StalledSinkHoldsNothingUp(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1, Details: 100}, func(t *testing.T, l *looped) {
		ctx, cancel := context.WithCancel(t.Context())
		var got []int64
		sunk := make(chan struct{})
		go func() {
			defer close(sunk)
			for detail := range l.Details(ctx) {
				got = append(got, detail.Number)
				time.Sleep(time.Hour - time.Second/2) // never at the instant of a job
			}
		}()
		var late time.Duration
		stop := l.work(tickonce.WorkerConfig{}, func(_ context.Context, job *tickonce.Job) error {
			late = max(late, time.Since(job.RunAt))
			job.Summarize("x")
			return nil
		})
		for range 5400 { // an hour and a half
			l.enqueue(1, tickonce.EnqueueOptions{})
			time.Sleep(time.Second)
		}
		require.NoError(t, stop())
		require.EqualValues(t, 5400, l.queue().Done)
		require.Zero(t, late)
		synctest.Wait()
		require.Equal(t, []int64{1, 3501}, got, "what was the oldest one after an hour")
		require.EqualValues(t, 5400-100-2, l.DroppedDetails())
		cancel()
		<-sunk
		require.Len(t, got, 2+100, "it catches up after the end")
		require.EqualValues(t, 5400, got[len(got)-1])
	})
}

// A loop over the details waits for the next one.
func TestX2DetailsWait(t *testing.T) {
	inBubble(t, tickonce.Config{}, func(t *testing.T, l *looped) {
		var got []tickonce.Detail
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for detail := range l.Details(ctx) {
				got = append(got, detail)
			}
		}()
		for i := range 3 {
			synctest.Wait()
			require.Len(t, got, i)
			l.enqueue(1, tickonce.EnqueueOptions{})
			job, err := l.Claim(t.Context(), "q", "w")
			require.NoError(t, err)
			job.Summarize("x")
			require.NoError(t, job.Ack(t.Context()))
		}
		synctest.Wait()
		require.Len(t, got, 3)
		cancel()
	})
}
