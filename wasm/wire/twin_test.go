package wire_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/wasm/wire"
)

// twin is an engine that is called directly, and another that is called over
// the wire alike: they answer and fail alike, and their states are the same.
type twin struct {
	*rapid.T
	now    time.Time
	engine *memengine.Engine
	server *wire.Server

	given   []wire.Claim
	jobs    map[wire.Claim]*tickonce.Job // of the claims that are not known to be over
	locks   map[int64]*tickonce.Lock
	runner  *tickonce.Runner
	workers []*tickonce.Worker
	runs    map[int64]*tickonce.Run
	of      map[*tickonce.Run]*tickonce.Worker
	lastRun int64
}

func (w *twin) Now() time.Time                       { return w.now }
func (w *twin) After(time.Duration) <-chan time.Time { panic("nothing waits") }

func newTwin(t *rapid.T) *twin {
	w := &twin{
		T: t, now: at(1000), jobs: map[wire.Claim]*tickonce.Job{}, locks: map[int64]*tickonce.Lock{},
		runs: map[int64]*tickonce.Run{}, of: map[*tickonce.Run]*tickonce.Worker{},
	}
	limits := tickonce.Limits{QueueLength: 9, Schedules: 2, Payload: 3, Runs: 2, Skips: 2}
	var err error
	w.engine, err = memengine.New(tickonce.Config{Clock: w, Seed: 7, Owner: "twin", Details: 3, Limits: limits})
	require.NoError(t, err)
	w.server, err = wire.Open(1000, (&wire.Config{Seed: 7, Owner: "twin", Details: 3, Limits: limits}).Encode(), nil, nil)
	require.NoError(t, err)
	return w
}

// call asks both, and demands one answer.
func (w *twin) call(op wire.Op, r wire.Request, native func(a *wire.Reply) error) []wire.Record {
	var want wire.Reply
	wantErr := native(&want)
	got, err := w.server.Call(float64(w.now.UnixMilli()), op, r.Encode(op))
	if wantErr != nil {
		require.Equal(w, wire.ErrorOf(wantErr), err, op)
		return nil
	}
	require.NoError(w, err, op)
	require.Equal(w, string(want.Encode()), string(got), op)
	records, err := wire.ParseRecords(w.server.Out())
	require.NoError(w, err)
	return records
}

func (w *twin) draw(names ...string) string { return rapid.SampledFrom(names).Draw(w.T, "name") }

func (w *twin) span(least, most int64) time.Duration {
	return time.Duration(rapid.Int64Range(least, most).Draw(w.T, "ms")) * time.Millisecond
}

func (w *twin) schedule() string { return w.draw("a", "b", "c", "") }
func (w *twin) queue() string    { return w.draw("q", "r", "__alkstore_x") }
func (w *twin) payload() []byte  { return rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(w.T, "payload") }
func (w *twin) job() tickonce.JobID {
	return tickonce.JobID(rapid.Int64Range(1, 12).Draw(w.T, "job"))
}

// claim is one that was given, or one that nobody has.
func (w *twin) claim() wire.Claim {
	return rapid.SampledFrom(append(slices.Clone(w.given), wire.Claim{Job: 99, Attempt: 1})).Draw(w.T, "claim")
}

func keys[K comparable, V any](of map[K]V) iter.Seq[K] {
	return func(yield func(K) bool) {
		for k := range of {
			if !yield(k) {
				return
			}
		}
	}
}

// with calls the method of the job of a claim.
func (w *twin) with(c wire.Claim, method func(*tickonce.Job) error) error {
	if job := w.jobs[c]; job != nil {
		return method(job)
	}
	return tickonce.ErrClaimLost
}

var ctx = context.Background()

func (w *twin) actions() map[string]func(*rapid.T) {
	e := w.engine
	return map[string]func(*rapid.T){
		"": func(*rapid.T) {
			want, err := e.Snapshot()
			require.NoError(w, err)
			got, err := w.server.Snapshot()
			require.NoError(w, err)
			require.Equal(w, want, got)
		},
		"pass": func(*rapid.T) { w.now = w.now.Add(w.span(-2000, 40_000)) },
		"schedule": func(*rapid.T) {
			r := wire.Request{Name: w.schedule(), Spec: w.draw("@every 1s", "@every 10s", "hourly"), Queue: w.queue(), Payload: w.payload()}
			r.Schedule.Overlap = tickonce.Overlap(rapid.IntRange(0, 2).Draw(w.T, "overlap"))
			r.Schedule.RunOnce, r.Schedule.MaxAttempts = rapid.Bool().Draw(w.T, "once"), rapid.IntRange(-1, 2).Draw(w.T, "attempts")
			r.Schedule.CatchUp = rapid.SampledFrom([]tickonce.CatchUp{tickonce.CatchUpAll, tickonce.CatchUpLatest, tickonce.CatchUpGrace, tickonce.CatchUpNone}).Draw(w.T, "policy")
			r.Schedule.Visibility = w.span(0, 1) * 5000
			w.call(wire.OpSchedule, r, func(a *wire.Reply) error {
				row, err := e.Schedule(ctx, r.Name, r.Spec, r.Queue, r.Payload, r.Schedule)
				a.Schedule = &row
				return err
			})
		},
		"schedules": func(*rapid.T) {
			r := wire.Request{Name: w.schedule()}
			r.CatchUp = rapid.Bool().Draw(w.T, "catch up")
			at := w.now.Add(w.span(-20, 0).Truncate(time.Second))
			ops := map[wire.Op]func(a *wire.Reply) error{
				wire.OpUnschedule: func(a *wire.Reply) (err error) { a.Done, err = e.Unschedule(ctx, r.Name); return err },
				wire.OpPause:      func(a *wire.Reply) (err error) { a.Done, err = e.Pause(ctx, r.Name); return err },
				wire.OpTrigger:    func(a *wire.Reply) (err error) { a.Job, err = e.Trigger(ctx, r.Name); return err },
				wire.OpResume: func(a *wire.Reply) (err error) {
					a.Done, err = e.Resume(ctx, r.Name, tickonce.ResumeOptions{CatchUp: r.CatchUp})
					return err
				},
				wire.OpLookup: func(a *wire.Reply) error {
					row, found, err := e.Lookup(ctx, r.Name)
					if found {
						a.Schedule = &row
					}
					return err
				},
				wire.OpHistory: func(a *wire.Reply) (err error) {
					a.Runs, err = all(e.History(ctx, r.Name, tickonce.HistoryOptions{}))
					return err
				},
				wire.OpSkips: func(a *wire.Reply) (err error) {
					a.Skips, err = all(e.Skips(ctx, r.Name, tickonce.HistoryOptions{}))
					return err
				},
				wire.OpWhy: func(a *wire.Reply) error {
					why, err := e.Why(ctx, r.Name, at)
					a.Why, a.WhyText = &why, why.String()
					return err
				},
			}
			r.Boundary = at
			op := rapid.SampledFrom(slices.Sorted(keys(ops))).Draw(w.T, "op")
			w.call(op, r, ops[op])
		},
		"enqueue": func(*rapid.T) {
			r := wire.Request{Queue: w.queue(), Payload: w.payload()}
			r.Enqueue = tickonce.EnqueueOptions{Delay: w.span(-1, 3), Priority: rapid.Int16Range(0, 1).Draw(w.T, "priority"), Key: w.draw("", "k"), Expires: 10 * w.span(0, 1000), MaxAttempts: 2}
			w.call(wire.OpEnqueue, r, func(a *wire.Reply) (err error) {
				a.Job, err = e.Enqueue(ctx, r.Queue, r.Payload, r.Enqueue)
				return err
			})
		},
		"claim": func(*rapid.T) {
			r := wire.Request{Queue: w.queue(), Worker: w.draw("w", ""), Max: rapid.IntRange(0, 3).Draw(w.T, "max")}
			var jobs []*tickonce.Job
			records := w.call(wire.OpClaim, r, func(*wire.Reply) (err error) {
				jobs, err = e.ClaimBatch(ctx, r.Queue, r.Worker, max(r.Max, 1))
				return err
			})
			require.Len(w, records, len(jobs))
			for i, job := range jobs {
				c := wire.Claim{Job: job.ID, Attempt: int32(job.Attempt)}
				w.given, w.jobs[c] = append(w.given, c), job
				w.begun(records[i], job, 0)
			}
		},
		"ack": func(*rapid.T) {
			r := wire.Request{Claims: []wire.Claim{w.claim(), w.claim()}[:rapid.IntRange(1, 2).Draw(w.T, "claims")]}
			w.call(wire.OpAck, r, func(a *wire.Reply) error {
				a.Acked = make([]bool, len(r.Claims))
				var jobs []*tickonce.Job
				var of []int
				for i, c := range r.Claims {
					if job := w.jobs[c]; job != nil {
						jobs, of = append(jobs, job), append(of, i)
					}
				}
				var acked []bool
				var err error
				if len(jobs) == 1 {
					err = jobs[0].Ack(ctx)
					if acked = []bool{err == nil}; errors.Is(err, tickonce.ErrClaimLost) {
						err = nil
					}
				} else {
					acked, err = e.AckAll(ctx, jobs)
				}
				if err != nil {
					return err
				}
				for i, yes := range acked {
					if a.Acked[of[i]] = yes; yes {
						delete(w.jobs, r.Claims[of[i]])
					}
				}
				return nil
			})
		},
		"settle": func(*rapid.T) {
			r := wire.Request{Claim: w.claim(), Error: &wire.Failure{Message: "boom"}, For: w.span(-1, 4) * 1000, Outbox: w.draw("o", ""), Payload: w.payload(), Text: "text"}
			if rapid.Bool().Draw(w.T, "after") {
				r.Error.RetryAfter = &wire.RetryAfter{For: w.span(0, 2000)}
			}
			cause := errors.New("boom")
			ops := map[wire.Op]func(job *tickonce.Job, a *wire.Reply) error{
				wire.OpRetry: func(job *tickonce.Job, _ *wire.Reply) error {
					if r.Error.RetryAfter != nil {
						return job.RetryAfter(ctx, cause, r.Error.RetryAfter.For)
					}
					return job.Retry(ctx, cause)
				},
				wire.OpFail:      func(job *tickonce.Job, _ *wire.Reply) error { return job.Fail(ctx, cause) },
				wire.OpDeliver:   func(job *tickonce.Job, _ *wire.Reply) error { return job.Deliver(r.Outbox, r.Payload) },
				wire.OpSummarize: func(job *tickonce.Job, _ *wire.Reply) error { job.Summarize(r.Text); return nil },
				wire.OpHeartbeat: func(job *tickonce.Job, a *wire.Reply) error {
					err := job.Heartbeat(ctx, r.For)
					a.At = job.Deadline
					return err
				},
			}
			op := rapid.SampledFrom(slices.Sorted(keys(ops))).Draw(w.T, "op")
			if op == wire.OpFail {
				r.Error.RetryAfter = nil
			}
			w.call(op, r, func(a *wire.Reply) error {
				err := w.with(r.Claim, func(job *tickonce.Job) error { return ops[op](job, a) })
				if err == nil && (op == wire.OpRetry || op == wire.OpFail) {
					delete(w.jobs, r.Claim)
				}
				return err
			})
		},
		"queues": func(*rapid.T) {
			r := wire.Request{Queue: w.queue(), Job: w.job()}
			r.Jobs = []tickonce.JobID{r.Job}
			ops := map[wire.Op]func(a *wire.Reply) error{
				wire.OpCancel:  func(a *wire.Reply) (err error) { a.Done, err = e.Cancel(ctx, r.Queue, r.Job); return err },
				wire.OpRequeue: func(a *wire.Reply) (err error) { a.Job, err = e.Requeue(ctx, r.Queue, r.Job); return err },
				wire.OpPurge:   func(*wire.Reply) error { return e.Purge(ctx, r.Queue, r.Jobs...) },
				wire.OpDead:    func(a *wire.Reply) (err error) { a.Dead, err = all(e.Dead(ctx, r.Queue)); return err },
				wire.OpQueues:  func(a *wire.Reply) (err error) { a.Queues, err = all(e.Queues(ctx)); return err },
				wire.OpSweep: func(a *wire.Reply) error {
					n, err := e.Sweep(ctx, r.Queue)
					a.Count = int64(n)
					return err
				},
				wire.OpNextClaim: func(a *wire.Reply) (err error) {
					a.At, _, err = e.NextClaimAt(ctx, r.Queue)
					return err
				},
			}
			op := rapid.SampledFrom(slices.Sorted(keys(ops))).Draw(w.T, "op")
			w.call(op, r, ops[op])
		},
		"lock": func(*rapid.T) {
			r := wire.Request{Name: w.draw("l", "m", ""), Owner: w.draw("a", "b"), For: w.span(0, 3) * 1000}
			w.call(wire.OpLock, r, func(a *wire.Reply) error {
				lock, err := e.Lock(ctx, r.Name, r.Owner, r.For)
				if lock != nil {
					a.Term, a.At = lock.Term(), lock.ExpiresAt()
					w.locks[a.Term] = lock
				}
				return err
			})
		},
		"renew": func(*rapid.T) {
			r := wire.Request{Term: rapid.Int64Range(1, 6).Draw(w.T, "term"), For: 1000 * w.span(1, 3)}
			lock := w.locks[r.Term]
			w.call(wire.OpRenewLock, r, func(a *wire.Reply) (err error) {
				if lock != nil {
					if a.Done, err = lock.Renew(ctx, r.For); a.Done {
						a.At = lock.ExpiresAt()
					}
				}
				return err
			})
		},
		"transaction": func(*rapid.T) {
			c, queue, plan := w.claim(), w.queue(), rapid.Bool().Draw(w.T, "plan")
			r := wire.Request{Plan: plan, Ops: []wire.TxOp{
				{Op: wire.OpEnqueue, Request: wire.Request{Queue: queue}},
				{Op: wire.OpAck, Request: wire.Request{Claims: []wire.Claim{c}}},
			}}
			w.call(wire.OpTx, r, func(a *wire.Reply) error {
				var queued *tickonce.TxJob
				planned := errors.New("planned")
				a.Results = make([]wire.Reply, 2)
				err := e.Tx(ctx, func(tx *tickonce.Tx) (err error) {
					if queued, err = tx.Enqueue(queue, nil, tickonce.EnqueueOptions{}); err != nil {
						return &wire.Error{Code: wire.ErrorOf(err).Code, Message: "op 0, enqueue: " + err.Error()}
					}
					if err = w.with(c, tx.Ack); err != nil {
						return &wire.Error{Code: wire.ErrorOf(err).Code, Message: "op 1, ack: " + err.Error()}
					}
					if plan {
						return planned
					}
					return nil
				})
				if err == planned {
					return nil
				}
				if err == nil {
					a.Results[0].Job = queued.ID()
					delete(w.jobs, c)
				}
				return err
			})
		},
		"start": func(*rapid.T) {
			w.call(wire.OpStart, wire.Request{}, func(*wire.Reply) error {
				if w.runner == nil {
					w.runner = e.NewRunner()
				}
				return nil
			})
		},
		"work": func(*rapid.T) {
			if len(w.workers) == 2 {
				return
			}
			r := wire.Request{Queue: w.queue(), Work: tickonce.WorkerConfig{Concurrency: rapid.IntRange(-1, 2).Draw(w.T, "concurrency"), Timeout: w.span(0, 1) * 5000}}
			w.call(wire.OpWork, r, func(a *wire.Reply) error {
				worker, err := e.NewWorker(r.Queue, r.Work)
				if err == nil {
					w.workers = append(w.workers, worker)
					a.Worker = int32(len(w.workers))
				}
				return err
			})
		},
		"end": func(*rapid.T) {
			if len(w.runs) == 0 {
				return
			}
			id := rapid.SampledFrom(slices.Sorted(keys(w.runs))).Draw(w.T, "run")
			failure := rapid.SampledFrom([]*wire.Failure{
				nil,
				{Message: "boom"},
				{Message: "never", Permanent: true},
				{Message: "soon", Transient: true},
				{Message: "then", RetryAfter: &wire.RetryAfter{For: time.Second}},
				{Message: "bang", Panicked: true},
			}).Draw(w.T, "failure")
			w.call(wire.OpEnd, wire.Request{Run: id, Error: failure}, func(*wire.Reply) error {
				run := w.runs[id]
				delete(w.runs, id)
				w.of[run].Ended(run, run.Call(func(context.Context, *tickonce.Job) error {
					switch {
					case failure == nil:
						return nil
					case failure.Permanent:
						return tickonce.Permanent(errors.New(failure.Message))
					case failure.Transient:
						return tickonce.Transient(errors.New(failure.Message))
					case failure.RetryAfter != nil:
						return tickonce.RetryAfter(failure.RetryAfter.For, errors.New(failure.Message))
					case failure.Panicked:
						return tickonce.Panicked(failure.Message)
					default:
						return errors.New(failure.Message)
					}
				}))
				return nil
			})
		},
		"step": func(*rapid.T) { w.step() },
	}
}

// step steps the runner and the workers of both until they rest.
func (w *twin) step() {
	got, err := w.server.Step(float64(w.now.UnixMilli()), 0)
	require.NoError(w, err)
	records, err := wire.ParseRecords(w.server.Out())
	require.NoError(w, err)
	next := func(kind wire.RecordKind) (r wire.Record) {
		i := slices.IndexFunc(records, func(r wire.Record) bool { return r.Kind == kind })
		require.GreaterOrEqual(w, i, 0, kind)
		r = records[i]
		records = slices.Delete(records, i, i+1)
		return r
	}
	wake := math.Inf(1)
	for first := true; first || wake <= float64(w.now.UnixMilli()); first = false {
		wake = math.Inf(1)
		if w.runner != nil {
			due, report, err := w.runner.Step(ctx)
			require.NoError(w, err)
			wake = min(wake, float64(due.UnixMilli()))
			for fire := range report.Fires() {
				r := next(wire.RecordFired)
				require.Equal(w, fire, tickonce.Fire{Schedule: r.Schedule, Queue: r.Queue, Boundary: r.Boundary, Job: r.Job})
			}
		}
		for i, worker := range w.workers {
			due, report, err := worker.Step(ctx)
			require.NoError(w, err)
			wake = min(wake, float64(due.UnixMilli()))
			for _, run := range report.Begun {
				w.lastRun++
				w.runs[w.lastRun], w.of[run] = run, worker
				r := next(wire.RecordBegun)
				require.Equal(w, w.lastRun, r.Run)
				w.begun(r, run.Job, int32(i+1))
			}
		}
	}
	require.Equal(w, wake, got)
	for _, r := range records {
		require.Equal(w, wire.RecordEnded, r.Kind)
		require.ErrorIs(w, r.Err, w.runs[r.Run].Cause())
	}
}

// begun demands that the record tells of the job.
func (w *twin) begun(r wire.Record, job *tickonce.Job, worker int32) {
	require.Equal(w, worker, r.Worker)
	require.Empty(w, r.Origin)
	require.True(w, string(job.Payload) == string(r.Payload))
	r.Payload, r.Run = job.Payload, 0
	require.Equal(w, wire.Record{
		Kind: wire.RecordBegun, Worker: worker, Job: job.ID, Boundary: job.Boundary, Schedule: job.Schedule, Queue: job.Queue,
		Attempt: int32(job.Attempt), MaxAttempts: int32(job.MaxAttempts), Priority: int32(job.Priority), Enqueued: job.Enqueued,
		RunAt: job.RunAt, Deadline: job.Deadline, LastError: job.LastError, Payload: job.Payload,
	}, r)
}

// all is what a sequence has, and its error.
func all[T any](seq iter.Seq2[T, error]) (rows []T, err error) {
	for row, err := range seq {
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func TestServerAnswersAsTheEngineDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { t.Repeat(newTwin(t).actions()) })
}
