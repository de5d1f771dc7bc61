package tickonce

import (
	"context"
	"errors"
	"time"

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
	delivery Delivery       // where the job is an outbox's
	deliver  []store.Insert // what is written with it
}

func (j *Job) ack() ending {
	return ending{
		Settle:   store.Settle{Job: j.ID, Attempt: j.token, To: store.Done, Ended: store.OK},
		delivery: Delivered, deliver: j.deliveries(),
	}
}

func (j *Job) retry(cause error, delayMS int64) ending {
	end, text := ending{delivery: DeliveryTransient}, j.engine.errorText(cause)
	if j.Origin != 0 {
		end.Settle = core.PlanDelivery(j.ID, j.token, j.stamps, delayMS, text)
	} else {
		end.Settle = core.PlanRetry(j.engine.config.Seed, j.ID, j.token, j.stamps, delayMS, text)
	}
	end.Ended = executionOf(cause)
	return end
}

func (j *Job) fail(cause error) ending {
	return ending{delivery: DeliveryPermanent, Settle: store.Settle{
		Job: j.ID, Attempt: j.token, To: store.Dead, Ended: executionOf(cause), Error: j.engine.errorText(cause),
	}}
}

// outcome is what a handler's error makes of the job, whose run then has no more
// to say: what it tries to deliver from now on would be lost. Without a mark, it is
// retried at once where a stop has cut the run short, for which the job cannot
// help; else after the curve, but for a delivery that did not time out (X6).
func (j *Job) outcome(err error, cut bool) ending {
	j.end()
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
	case j.Origin != 0 && !timedOut(err):
		return j.fail(err)
	default:
		return j.retry(err, -1)
	}
}

// timedOut reports whether the error, or one that it wraps, is a timeout: a
// deadline that passed, or what a net.Error says to be one. A chain that panics
// when it is asked is none.
func timedOut(err error) (is bool) {
	defer func() { _ = recover() }()
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
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

// settled tells of a settlement.
func (j *Job) settled(now store.Instant, end ending, ok bool) {
	if !ok {
		j.lost(timeOf(now))
		return
	}
	j.end()
	j.engine.details.settled(j, now, end)
	j.engine.emit(j.ended(now, end))
	j.engine.tripped(now, j.Schedule, j.Queue, j.ID, end.Tripped)
}

// tripped tells of a breaker that the end of the job, or of one that is not
// known, opened after so many failures in a row (X4), if it did.
func (e *Engine) tripped(now store.Instant, schedule, queue string, job JobID, failures uint8) {
	if failures > 0 {
		e.emit(Event{Kind: EventBreakerOpened, At: timeOf(now), Schedule: schedule, Queue: queue, Job: job, Count: int64(failures)})
	}
}

// event is one of the job's, of the kind.
func (j *Job) event(kind EventKind, at time.Time) Event {
	return Event{Kind: kind, At: at, Queue: j.Queue, Job: j.ID, Schedule: j.Schedule, Boundary: j.Boundary}
}

// lost tells, once, that the claim is not the live one any more.
func (j *Job) lost(at time.Time) {
	j.said.mu.Lock()
	told := j.said.lost
	j.said.lost = true
	j.said.mu.Unlock()
	if !told {
		j.engine.emit(j.event(EventClaimLost, at))
	}
}

// ended is the event of a settlement.
func (j *Job) ended(now store.Instant, end ending) Event {
	kinds := [...]EventKind{store.Pending: EventRetried, store.Done: EventDone, store.Dead: EventDied}
	_, outbox := OutboxName(j.Queue)
	if outbox {
		kinds = [...]EventKind{store.Pending: EventDeliveryRetried, store.Done: EventDelivered, store.Dead: EventDeliveryFailed}
	}
	event := j.event(kinds[end.To], timeOf(now))
	event.Took = durationOf(max(int64(now-j.claimed), 0)) // the clock may have gone back
	if outbox {
		event.Delivery, event.Origin = end.delivery, j.Origin
	} else {
		event.Execution = end.Ended
	}
	if end.To != store.Done {
		event.Count, event.Wait, event.Reason = int64(end.Attempt), durationOf(end.DelayMS), end.Error
	}
	return event
}
