package wire

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tickonce/tickonce"
)

// worker is a worker of the handle.
type worker struct {
	*tickonce.Worker
	id   int32
	ctx  context.Context
	stop context.CancelFunc
}

// run is one that the host has in hand.
type run struct {
	*tickonce.Run
	id     int64
	worker *worker
	told   bool // that its context has ended
}

func (s *Server) start(*Request, *Reply) error {
	if s.runner == nil {
		s.runner = s.engine.NewRunner()
	}
	return nil
}

func (s *Server) stop(*Request, *Reply) error {
	if s.runner == nil {
		return nil
	}
	err := s.runner.Stop(background)
	s.stopped(0, err)
	return nil
}

// stopped puts out the end of a worker or, as 0, of the runner.
func (s *Server) stopped(id int32, err error) {
	record := Record{Kind: RecordStopped, Worker: id}
	if err != nil {
		record.Err = ErrorOf(err)
	}
	s.out = record.Append(s.out)
	if id == 0 {
		s.runner = nil
		return
	}
	s.workers = slices.DeleteFunc(s.workers, func(w *worker) bool { return w.id == id })
	for _, r := range s.order {
		if r.worker.id == id {
			delete(s.runs, r.id)
		}
	}
	s.order = slices.DeleteFunc(s.order, func(r *run) bool { return r.worker.id == id })
}

func (s *Server) work(r *Request, a *Reply) error {
	var w *tickonce.Worker
	var err error
	if r.Outbox != "" {
		w, err = s.engine.Outbox(r.Outbox).NewWorker(r.Work)
	} else {
		w, err = s.engine.NewWorker(r.Queue, r.Work)
	}
	if err != nil {
		return err
	}
	s.lastID++
	added := &worker{Worker: w, id: s.lastID}
	added.ctx, added.stop = context.WithCancel(background)
	s.workers = append(s.workers, added)
	a.Worker = s.lastID
	return nil
}

func (s *Server) stopWork(r *Request, _ *Reply) error {
	for _, w := range s.workers {
		if w.id == r.WorkerID {
			w.stop()
			return nil
		}
	}
	return &RequestError{"worker", "is " + strconv.Itoa(int(r.WorkerID)) + ", of which there is none"}
}

func (s *Server) end(r *Request, _ *Reply) error {
	ended := s.runs[r.Run]
	if ended == nil {
		return &RequestError{"run", "is " + strconv.FormatInt(r.Run, 10) + ", which is not in hand"}
	}
	delete(s.runs, ended.id)
	s.order = slices.DeleteFunc(s.order, func(other *run) bool { return other.id == r.Run })
	err := r.Error.marked()
	if r.Error != nil && r.Error.Panicked {
		err = ended.Call(func(context.Context, *tickonce.Job) error { panic(r.Error.Message) })
	}
	ended.worker.Ended(ended.Run, err)
	return nil
}

// Step sets the clock, and steps the runner and the workers until they rest, or
// until at least so many boundaries have fired; with most 0 there is no bound.
// It answers when to be called next, in milliseconds since the epoch: not after
// now if there is more to do, and +Inf if there is nothing to wait for. What
// happened is in Out. An error is an [*Error].
func (s *Server) Step(now float64, most int32) (next float64, err error) {
	next = math.NaN()
	err = s.guarded(now, func() error {
		next = s.step(int(most))
		return nil
	})
	return next, err
}

func (s *Server) step(most int) float64 {
	fired := 0
	full := func() bool { return most > 0 && fired >= most || len(s.out) >= fullOut }
	for {
		wake := math.Inf(1)
		due := func(next time.Time) { wake = min(wake, float64(next.UnixMilli())) }
		if s.runner != nil {
			next, report, err := s.runner.Step(background)
			for fire := range report.Fires() {
				fired++
				s.fired(fire)
			}
			if next.IsZero() {
				s.stopped(0, err)
			} else {
				due(next)
			}
		}
		for _, w := range slices.Clone(s.workers) {
			next, report, err := w.Step(w.ctx)
			for _, begun := range report.Begun {
				s.lastRun++
				r := &run{Run: begun, id: s.lastRun, worker: w}
				s.runs[r.id] = r
				s.order = append(s.order, r)
				s.begun(begun.Job, w.id, r.id)
			}
			if next.IsZero() {
				s.stopped(w.id, err)
			} else {
				due(next)
			}
		}
		s.ended()
		if full() || wake > float64(s.now.at.UnixMilli()) {
			return wake
		}
	}
}

// ended puts out the runs whose contexts have ended.
func (s *Server) ended() {
	for _, r := range s.order {
		if r.told {
			continue
		}
		if cause := r.Cause(); cause != nil {
			r.told = true
			e := ErrorOf(cause)
			if errors.Is(cause, context.DeadlineExceeded) {
				e.Code = CodeTimeout
			} else if errors.Is(cause, context.Canceled) {
				e.Code = CodeStopped
			}
			s.out = (&Record{Kind: RecordEnded, Run: r.id, Err: e}).Append(s.out)
		}
	}
}

// fired puts out a boundary that fired.
func (s *Server) fired(f tickonce.Fire) {
	s.out = (&Record{Kind: RecordFired, Job: f.Job, Boundary: f.Boundary, Schedule: f.Schedule, Queue: f.Queue}).Append(s.out)
}
