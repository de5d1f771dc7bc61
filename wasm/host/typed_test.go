//go:build !wasm

package host

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/conversation"
	"github.com/tickonce/tickonce/wasm/wire"
)

// clock says what the test sets. Nothing waits on it.
type clock struct{ ms atomic.Int64 }

func (c *clock) Now() time.Time                       { return time.UnixMilli(c.ms.Load()).UTC() }
func (c *clock) After(time.Duration) <-chan time.Time { return nil }

// typed speaks with an engine: what an op asks for is asked of the method of that
// name. Steps, and what only the engine's own loops ask for, are as they are.
type typed struct{ *testing.T }

type typedHandle struct {
	typed
	*Engine
	clock *clock
}

func (p typed) Open(now float64, config, snapshot, log []byte) (conversation.Handle, error) {
	h := &typedHandle{typed: p, clock: &clock{}}
	h.clock.ms.Store(int64(now))
	h.Engine = &Engine{module: compiled(p), setup: config, runs: map[int64]*run{}}
	h.config.Clock, h.config.Observer = h.clock, func(tickonce.Event) {}
	if _, err := h.open(p.Context(), snapshot, log); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *typedHandle) Step(now float64, most int32) (next float64, err error) {
	h.clock.ms.Store(int64(now))
	h.mu.Lock()
	defer h.unlock()
	_, err = h.do(h.Context(), func(i *instance) (err error) {
		next, err = i.step(h.Context(), now, most)
		return err
	})
	return next, err
}

func (h *typedHandle) Out() []byte {
	b, err := h.guest.out(h.Context())
	require.NoError(h, err)
	return b
}

func (h *typedHandle) Call(now float64, op wire.Op, request []byte) ([]byte, error) {
	h.clock.ms.Store(int64(now))
	if !h.speaks(op) || now != float64(int64(now)) {
		return h.guest.call(h.Context(), now, op, request)
	}
	r, err := wire.ParseRequest(op, request)
	if err != nil || !says(op, r) {
		return h.guest.call(h.Context(), now, op, request)
	}
	a := &wire.Reply{}
	if err := h.ask(h.Context(), op, r, a); err != nil {
		return nil, wire.ErrorOf(err)
	}
	return a.Encode(), nil
}

// says reports whether the methods can say the request.
func says(op wire.Op, r *wire.Request) bool {
	few := tickonce.EnqueueOptions{MaxAttempts: r.Enqueue.MaxAttempts, Key: r.Enqueue.Key}
	return (r.Outbox == "" || r.Enqueue == few) && (op == wire.OpClaim || r.Max >= 0 && r.Max <= wire.MaxPage)
}

// speaks tells the ops that methods stand for.
func (h *typedHandle) speaks(op wire.Op) bool {
	switch op {
	case wire.OpStart, wire.OpStop, wire.OpWork, wire.OpStopWork, wire.OpEnd, wire.OpRecovery, wire.OpSummarize:
		return false
	default:
		return true
	}
}

func (h *typedHandle) jobs(claims ...wire.Claim) (jobs []*Job) {
	for _, c := range claims {
		jobs = append(jobs, &Job{ID: c.Job, engine: h.Engine, claim: c})
	}
	return jobs
}

func (h *typedHandle) ask(ctx context.Context, op wire.Op, r *wire.Request, a *wire.Reply) (err error) {
	most := r.Max
	if most == 0 {
		most = wire.MaxPage
	}
	box, job := h.Outbox(r.Outbox), h.jobs(r.Claim)[0]
	switch op {
	case wire.OpSchedule:
		var s tickonce.Schedule
		s, err = h.Schedule(ctx, r.Name, r.Spec, r.Queue, r.Payload, r.Schedule)
		a.Schedule = &s
	case wire.OpUnschedule:
		a.Done, err = h.Unschedule(ctx, r.Name)
	case wire.OpPause:
		a.Done, err = h.Pause(ctx, r.Name)
	case wire.OpResume:
		a.Done, err = h.Resume(ctx, r.Name, tickonce.ResumeOptions{CatchUp: r.CatchUp})
	case wire.OpTrigger:
		a.Job, err = h.Trigger(ctx, r.Name)
	case wire.OpLookup:
		a.Schedule, err = h.lookup(h.Engine.Lookup(ctx, r.Name))
	case wire.OpSchedules:
		for s, failure := range h.Schedules(ctx) {
			if err = failure; err == nil && s.Name > r.After && len(a.Schedules) < most {
				a.Schedules = append(a.Schedules, s)
			}
		}
	case wire.OpEnqueue:
		if r.Outbox == "" {
			a.Job, err = h.Enqueue(ctx, r.Queue, r.Payload, r.Enqueue)
		} else {
			a.Job, err = box.Enqueue(ctx, r.Payload, tickonce.OutboxOptions{MaxAttempts: r.Enqueue.MaxAttempts, Key: r.Enqueue.Key})
		}
	case wire.OpClaim:
		if r.Max == 0 {
			_, err = h.Claim(ctx, r.Queue, r.Worker)
		} else {
			_, err = h.ClaimBatch(ctx, r.Queue, r.Worker, r.Max)
		}
	case wire.OpAck:
		if len(r.Claims) == 1 {
			err = h.jobs(r.Claims...)[0].Ack(ctx)
			if a.Acked = []bool{err == nil}; errors.Is(err, tickonce.ErrClaimLost) {
				err = nil
			}
		} else {
			a.Acked, err = h.AckAll(ctx, h.jobs(r.Claims...))
		}
	case wire.OpRetry:
		if r.Error != nil && r.Error.RetryAfter != nil {
			err = job.RetryAfter(ctx, errors.New(r.Error.Message), r.Error.RetryAfter.For)
		} else {
			err = job.Retry(ctx, cause(r.Error))
		}
	case wire.OpFail:
		err = job.Fail(ctx, cause(r.Error))
	case wire.OpHeartbeat:
		err = job.Heartbeat(ctx, r.For)
		a.At = job.Deadline
	case wire.OpDeliver:
		err = job.Deliver(r.Outbox, r.Payload)
	case wire.OpCancel:
		a.Done, err = h.Cancel(ctx, r.Queue, r.Job)
	case wire.OpRequeue:
		if r.Outbox == "" {
			a.Job, err = h.Requeue(ctx, r.Queue, r.Job)
		} else {
			a.Job, err = box.Requeue(ctx, r.Job)
		}
	case wire.OpPurge:
		if r.Outbox == "" {
			err = h.Purge(ctx, r.Queue, r.Jobs...)
		} else {
			err = box.Purge(ctx, r.Jobs...)
		}
	case wire.OpSweep:
		var n int
		if r.Outbox == "" {
			n, err = h.Sweep(ctx, r.Queue)
		} else {
			n, err = box.Sweep(ctx)
		}
		a.Count = int64(n)
	case wire.OpDead:
		dead := box.Dead(ctx)
		if r.Outbox == "" {
			dead = h.Dead(ctx, r.Queue)
		}
		for d, failure := range dead {
			if err = failure; err == nil && int64(d.ID) >= r.From && len(a.Dead) < most {
				a.Dead = append(a.Dead, d)
			}
		}
	case wire.OpNextClaim:
		if r.Outbox == "" {
			a.At, _, err = h.NextClaimAt(ctx, r.Queue)
		} else {
			a.At, _, err = box.NextClaimAt(ctx)
		}
	case wire.OpQueue:
		var info tickonce.QueueInfo
		if r.Outbox == "" {
			info, err = h.Queue(ctx, r.Queue)
		} else {
			info, err = box.Info(ctx)
		}
		a.Queue = &info
	case wire.OpQueues:
		for q, failure := range h.Queues(ctx) {
			if err = failure; err == nil && q.Name > r.After && len(a.Queues) < most {
				a.Queues = append(a.Queues, q)
			}
		}
	case wire.OpLock:
		var l *Lock
		if l, err = h.Lock(ctx, r.Name, r.Owner, r.For); l != nil {
			a.Term, a.At = l.Term(), l.ExpiresAt()
		}
	case wire.OpRenewLock:
		l := &Lock{engine: h.Engine, term: r.Term}
		a.Done, err = l.Renew(ctx, r.For)
		a.At = l.ExpiresAt()
	case wire.OpReleaseLock:
		a.Done, err = (&Lock{engine: h.Engine, term: r.Term}).Release(ctx)
	case wire.OpHistory:
		for run, failure := range h.History(ctx, r.Name, tickonce.HistoryOptions{Before: r.Before}) {
			if err = failure; err == nil && len(a.Runs) < most {
				a.Runs = append(a.Runs, run)
			}
		}
	case wire.OpSkips:
		for skip, failure := range h.Skips(ctx, r.Name, tickonce.HistoryOptions{Before: r.Before}) {
			if err = failure; err == nil && len(a.Skips) < most {
				a.Skips = append(a.Skips, skip)
			}
		}
	case wire.OpTotals:
		var totals Totals
		totals, err = h.Totals(ctx, r.Name)
		a.Totals = &totals
	case wire.OpWhy:
		var why tickonce.Why
		why, err = h.Why(ctx, r.Name, r.Boundary)
		a.Why, a.WhyText = &why, why.String()
	case wire.OpDetails:
		over, cancel := context.WithCancel(ctx)
		cancel()
		for d := range h.Details(over) {
			if d.Number >= r.From && len(a.Details) < most {
				a.Details = append(a.Details, d)
			}
		}
		a.Count = h.DroppedDetails()
	case wire.OpTx:
		err = h.transact(ctx, r, a)
	}
	return err
}

func (h *typedHandle) lookup(s tickonce.Schedule, found bool, err error) (*tickonce.Schedule, error) {
	if !found {
		return nil, err
	}
	return &s, err
}

func cause(f *wire.Failure) error {
	if f == nil {
		return nil
	}
	return errors.New(f.Message)
}

var errPlanned = errors.New("planned only")

// transact stages the ops by the methods of a Tx. What was seen before the
// conversation says itself, so such a one goes as it is.
func (h *typedHandle) transact(ctx context.Context, r *wire.Request, a *wire.Reply) error {
	for _, op := range r.Ops {
		if op.Seen != nil || !says(op.Op, &op.Request) {
			reply, err := h.call(ctx, wire.OpTx, r)
			if err == nil {
				*a = *reply
			}
			return err
		}
	}
	a.Results = make([]wire.Reply, len(r.Ops))
	made := make([]*TxJob, len(r.Ops))
	err := h.Tx(ctx, func(tx *Tx) (err error) {
		for i := range r.Ops {
			op, result := &r.Ops[i], &a.Results[i]
			q := &op.Request
			switch op.Op {
			case wire.OpSchedule:
				var s tickonce.Schedule
				s, err = tx.Schedule(q.Name, q.Spec, q.Queue, q.Payload, q.Schedule)
				result.Schedule = &s
			case wire.OpUnschedule:
				result.Done, err = tx.Unschedule(q.Name)
			case wire.OpPause:
				result.Done, err = tx.Pause(q.Name)
			case wire.OpResume:
				result.Done, err = tx.Resume(q.Name, tickonce.ResumeOptions{CatchUp: q.CatchUp})
			case wire.OpTrigger:
				made[i], err = tx.Trigger(q.Name)
			case wire.OpLookup:
				result.Schedule, err = h.lookup(tx.Lookup(q.Name))
			case wire.OpEnqueue:
				if q.Outbox == "" {
					made[i], err = tx.Enqueue(q.Queue, q.Payload, q.Enqueue)
				} else {
					made[i], err = tx.Outbox(q.Outbox).Enqueue(q.Payload, tickonce.OutboxOptions{MaxAttempts: q.Enqueue.MaxAttempts, Key: q.Enqueue.Key})
				}
			case wire.OpAck:
				for _, job := range h.jobs(q.Claims...) {
					if err == nil {
						err = tx.Ack(job)
					}
				}
			case wire.OpRetry:
				err = tx.Retry(h.jobs(q.Claim)[0], cause(q.Error))
			case wire.OpFail:
				err = tx.Fail(h.jobs(q.Claim)[0], cause(q.Error))
			case wire.OpCancel:
				err = tx.Cancel(q.Queue, q.Job)
			case wire.OpRequeue:
				made[i], err = tx.Requeue(q.Queue, q.Job)
			case wire.OpPurge:
				for _, job := range q.Jobs {
					if err == nil {
						err = tx.Purge(q.Queue, job)
					}
				}
			}
			if err != nil {
				return conversationError(i, op.Op, err)
			}
		}
		if r.Plan {
			return errPlanned
		}
		return nil
	})
	for i, job := range made {
		if job != nil {
			a.Results[i].Job, a.Results[i].Existing = job.ID(), job.Existing()
		}
	}
	if err == errPlanned {
		return nil
	}
	return err
}

// conversationError is an error of an op as the wire has it.
func conversationError(i int, op wire.Op, err error) error {
	refused := wire.ErrorOf(err)
	return &wire.Error{Code: refused.Code, Message: "op " + strconv.Itoa(i) + ", " + op.String() + ": " + refused.Message}
}

func TestConversationsWithTheEngine(t *testing.T) {
	conversation.Run(t, conversations, typed{t}, false)
}
