package tickonce_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/core"
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
