package wire

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/tickonce/tickonce"
)

// TxOp is one op of a transaction.
type TxOp struct {
	Op      Op
	Request Request

	// Seen is, of a lookup, what an earlier answer to it was: if it is another
	// by now, the transaction is in conflict.
	Seen *Reply
}

func visitTxOp(t *TxOp, o *object) {
	name := ""
	if o.writing {
		name = t.Op.String()
	}
	if o.text("op", &name); !o.writing {
		op, known := ParseOp(name)
		if !known || staged(op) == nil {
			o.fault("op", "is no op of a transaction")
			return
		}
		t.Op = op
	}
	ops[t.Op].visit(&t.Request, o)
	switch t.Op {
	case OpLookup:
		maybe(o, "seen", &t.Seen, func(r *Reply, o *object) { maybe(o, "schedule", &r.Schedule, visitSchedule) })
	case OpRequeue, OpPurge:
		if t.Request.Outbox != "" {
			o.fault("outbox", "is no part of this op in a transaction")
		}
	case OpRetry:
		if t.Request.Error.after() != nil {
			o.fault("error.retryAfter", "is no part of a transaction")
		}
	}
}

var errPlanned = errors.New("planned only")

// tx stages the ops one by one, and commits them or, of a plan, does not.
func (s *Server) tx(r *Request, a *Reply) error {
	a.Results = make([]Reply, len(r.Ops))
	jobs := make([]*tickonce.TxJob, len(r.Ops))
	err := s.engine.Tx(background, func(tx *tickonce.Tx) (err error) {
		for i := range r.Ops {
			op := &r.Ops[i]
			if jobs[i], err = staged(op.Op)(s, tx, &op.Request, &a.Results[i]); err != nil {
				e := ErrorOf(err)
				return &Error{e.Code, "op " + strconv.Itoa(i) + ", " + op.Op.String() + ": " + e.Message}
			}
			if op.Seen != nil && !bytes.Equal(op.Seen.Encode(), a.Results[i].Encode()) {
				return tickonce.ErrConflict
			}
		}
		if r.Plan {
			return errPlanned
		}
		return nil
	})
	if err != nil {
		if err == errPlanned {
			return nil
		}
		return err
	}
	for i, job := range jobs {
		if job != nil {
			a.Results[i].Job, a.Results[i].Existing = job.ID(), job.Existing()
		}
	}
	for i := range r.Ops {
		switch r.Ops[i].Op {
		case OpAck:
			for _, c := range r.Ops[i].Request.Claims {
				delete(s.claims.of, c)
			}
		case OpRetry, OpFail:
			delete(s.claims.of, r.Ops[i].Request.Claim)
		}
	}
	return nil
}

// staged is the function that stages an op, or nil.
func staged(op Op) func(*Server, *tickonce.Tx, *Request, *Reply) (*tickonce.TxJob, error) {
	switch op {
	case OpSchedule:
		return func(_ *Server, tx *tickonce.Tx, r *Request, a *Reply) (*tickonce.TxJob, error) {
			row, err := tx.Schedule(r.Name, r.Spec, r.Queue, r.Payload, r.Schedule)
			a.Schedule = &row
			return nil, err
		}
	case OpUnschedule:
		return func(_ *Server, tx *tickonce.Tx, r *Request, a *Reply) (_ *tickonce.TxJob, err error) {
			a.Done, err = tx.Unschedule(r.Name)
			return nil, err
		}
	case OpPause:
		return func(_ *Server, tx *tickonce.Tx, r *Request, a *Reply) (_ *tickonce.TxJob, err error) {
			a.Done, err = tx.Pause(r.Name)
			return nil, err
		}
	case OpResume:
		return func(_ *Server, tx *tickonce.Tx, r *Request, a *Reply) (_ *tickonce.TxJob, err error) {
			a.Done, err = tx.Resume(r.Name, tickonce.ResumeOptions{CatchUp: r.CatchUp})
			return nil, err
		}
	case OpTrigger:
		return func(_ *Server, tx *tickonce.Tx, r *Request, _ *Reply) (*tickonce.TxJob, error) {
			return tx.Trigger(r.Name)
		}
	case OpLookup:
		return func(_ *Server, tx *tickonce.Tx, r *Request, a *Reply) (*tickonce.TxJob, error) {
			row, found, err := tx.Lookup(r.Name)
			if found {
				a.Schedule = &row
			}
			return nil, err
		}
	case OpEnqueue:
		return func(_ *Server, tx *tickonce.Tx, r *Request, _ *Reply) (*tickonce.TxJob, error) {
			if r.Outbox == "" {
				return tx.Enqueue(r.Queue, r.Payload, r.Enqueue)
			}
			o, err := outboxOptions(r.Enqueue)
			if err != nil {
				return nil, err
			}
			return tx.Outbox(r.Outbox).Enqueue(r.Payload, o)
		}
	case OpAck:
		return func(s *Server, tx *tickonce.Tx, r *Request, _ *Reply) (*tickonce.TxJob, error) {
			for _, c := range r.Claims {
				job, err := s.claimed(c)
				if err == nil {
					err = tx.Ack(job)
				}
				if err != nil {
					return nil, err
				}
			}
			return nil, nil
		}
	case OpRetry, OpFail:
		return func(s *Server, tx *tickonce.Tx, r *Request, _ *Reply) (*tickonce.TxJob, error) {
			job, err := s.claimed(r.Claim)
			if err != nil {
				return nil, err
			}
			if op == OpFail {
				return nil, tx.Fail(job, r.Error.cause())
			}
			return nil, tx.Retry(job, r.Error.cause())
		}
	case OpCancel:
		return func(_ *Server, tx *tickonce.Tx, r *Request, _ *Reply) (*tickonce.TxJob, error) {
			return nil, tx.Cancel(r.Queue, r.Job)
		}
	case OpRequeue:
		return func(_ *Server, tx *tickonce.Tx, r *Request, _ *Reply) (*tickonce.TxJob, error) {
			return tx.Requeue(r.Queue, r.Job)
		}
	case OpPurge:
		return func(_ *Server, tx *tickonce.Tx, r *Request, _ *Reply) (*tickonce.TxJob, error) {
			for _, job := range r.Jobs {
				if err := tx.Purge(r.Queue, job); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}
	default:
		return nil
	}
}
