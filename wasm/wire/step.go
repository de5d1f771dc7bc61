package wire

import (
	"cmp"
	"context"
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

// run is one that the host has in hand, or had, and has not ended.
type run struct {
	*tickonce.Run
	id     int64
	worker *worker
	told   bool // that its context has ended
}

// begin puts out a run, and keeps it until it has ended.
func (s *Server) begin(begun *tickonce.Run, w *worker) {
	s.lastRun++
	r := &run{Run: begun, id: s.lastRun, worker: w}
	s.runs = append(s.runs, r)
	s.inHand[tokenOf(r.Job)] = r.Job
	s.begun(r.Job, w.id, r.id)
}

// over forgets the runs from one to another.
func (s *Server) over(from, to int) {
	for _, r := range s.runs[from:to] {
		delete(s.inHand, tokenOf(r.Job))
	}
	s.runs = slices.Delete(s.runs, from, to)
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

// stopped puts out the end of a worker, behind those of its runs, or, as 0, of
// the runner.
func (s *Server) stopped(id int32, err error) {
	s.ended()
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
	for i := len(s.runs) - 1; i >= 0; i-- {
		if s.runs[i].worker.id == id {
			s.over(i, i+1)
		}
	}
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

// stopWork stops a worker, unless that has ended.
func (s *Server) stopWork(r *Request, _ *Reply) error {
	if r.WorkerID < 1 || r.WorkerID > s.lastID {
		return &RequestError{"worker", "is " + strconv.Itoa(int(r.WorkerID)) + ", which no worker has been"}
	}
	for _, w := range s.workers {
		if w.id == r.WorkerID {
			w.stop()
		}
	}
	return nil
}

// end ends a run, unless its worker has left it behind.
func (s *Server) end(r *Request, _ *Reply) error {
	if r.Run < 1 || r.Run > s.lastRun {
		return &RequestError{"run", "is " + strconv.FormatInt(r.Run, 10) + ", which no run has been"}
	}
	i, found := slices.BinarySearchFunc(s.runs, r.Run, func(of *run, id int64) int { return cmp.Compare(of.id, id) })
	if !found {
		return tickonce.ErrClaimLost
	}
	ended := s.runs[i]
	s.over(i, i+1)
	ended.worker.Ended(ended.Run, r.Error.Err())
	return nil
}

// Step sets the clock, and steps the runner and the workers until they rest, or
// until at least so many boundaries have fired, of whole ticks; with most 0 or
// less there is no bound. It answers when to be called next, in milliseconds
// since the epoch: not after now if there is more to do, and +Inf if there is
// nothing to wait for. What happened is in Out. An error is an [*Error], and
// next then NaN.
func (s *Server) Step(now float64, most int32) (next float64, err error) {
	next = math.NaN()
	err = s.guarded(func() error {
		if err := s.set(now); err != nil {
			return err
		}
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
				s.out = appendFired(s.out, fire)
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
				s.begin(begun, w)
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
	for _, r := range s.runs {
		if r.told {
			continue
		}
		if cause := r.Cause(); cause != nil {
			r.told = true
			s.out = (&Record{Kind: RecordEnded, Run: r.id, Err: ErrorOf(cause)}).Append(s.out)
		}
	}
}
