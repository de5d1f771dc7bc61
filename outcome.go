package tickonce

import (
	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// Execution is how a run of a job ended (X1). What became of its deliveries is
// told apart, by [Delivery].
type Execution = store.Execution

// How a run ends.
const (
	ExecutionOK        = store.OK
	ExecutionFailed    = store.Failed    // with an error
	ExecutionTimedOut  = store.TimedOut  // at its deadline (X5)
	ExecutionPanicked  = store.Panicked  // or ended its goroutine
	ExecutionCancelled = store.Cancelled // by the stop of its worker, or with its job (QU7)
	ExecutionLost      = store.Lost      // its claim lapsed
)

// Delivery is what became of a try to deliver an entry of an outbox (X1).
type Delivery uint8

// What becomes of a delivery.
const (
	DeliveryNone      Delivery = iota // there was none
	Delivered                         //
	DeliveryTransient                 // it failed, and another try may do
	DeliveryPermanent                 // it failed, and another try would be in vain
)

var deliveries = [...]string{"none", "delivered", "transient", "permanent"}

func (d Delivery) String() string {
	if int(d) < len(deliveries) {
		return deliveries[d]
	}
	return "unknown"
}

// ending is the end of a claim.
type ending struct {
	store.Settle
	delivery Delivery // where the job is an outbox's
}

func (j *Job) ack() ending {
	return ending{store.Settle{Job: j.ID, Attempt: j.token, To: store.Done, Ended: store.OK}, Delivered}
}

func (j *Job) retry(cause error, delayMS int64) ending {
	s := core.PlanRetry(j.engine.config.Seed, j.ID, j.token, j.stamps, delayMS, j.engine.errorText(cause))
	s.Ended = executionOf(cause)
	return ending{s, DeliveryTransient}
}

func (j *Job) fail(cause error) ending {
	return ending{store.Settle{
		Job: j.ID, Attempt: j.token, To: store.Dead, Ended: executionOf(cause), Error: j.engine.errorText(cause),
	}, DeliveryPermanent}
}

// outcome is what a handler's error makes of the job. Without a mark, it is
// retried after the curve or, where the stop of its worker has cut the run
// short, at once: it was not the job's fault.
func (j *Job) outcome(err error, cut bool) ending {
	if err == nil {
		return j.ack()
	}
	switch m := markOf(err); {
	case m != nil && m.permanent:
		return j.fail(err)
	case m != nil:
		return j.retry(err, m.delayMS)
	case cut:
		end := j.retry(err, 0)
		if end.Ended == store.Failed {
			end.Ended = store.Cancelled
		}
		return end
	default:
		return j.retry(err, -1)
	}
}

// executionOf is how the run ended that the error is of.
func executionOf(err error) Execution {
	switch err.(type) {
	case *timeoutError:
		return store.TimedOut
	case *panicError, exitError:
		return store.Panicked
	default:
		return store.Failed
	}
}

// settled is the event of a settlement.
func (j *Job) settled(now store.Instant, end ending, ok bool) Event {
	event := Event{At: timeOf(now), Queue: j.Queue, Job: j.ID, Schedule: j.Schedule, Boundary: j.Boundary}
	if !ok {
		event.Kind = EventClaimLost
		return event
	}
	event.Took = durationOf(max(int64(now-j.claimed), 0)) // the clock may have gone back
	kinds := [...]EventKind{store.Pending: EventRetried, store.Done: EventDone, store.Dead: EventDied}
	if _, outbox := OutboxName(j.Queue); outbox {
		kinds = [...]EventKind{store.Pending: EventDeliveryRetried, store.Done: EventDelivered, store.Dead: EventDeliveryFailed}
		event.Delivery, event.Origin = end.delivery, j.Origin
	} else {
		event.Execution = end.Ended
	}
	event.Kind = kinds[end.To]
	if end.To != store.Done {
		event.Count, event.Wait, event.Reason = int64(end.Attempt), durationOf(end.DelayMS), end.Error
	}
	return event
}
