package tickonce

import (
	"context"
	"time"
)

// RunSchedules runs the schedules until ctx ends, and then releases its lease
// and returns nil (L5). It returns [ErrLeadershipLost] when another runner
// leads (L3, L4), and the store's error, as an [*OpError] with phase and
// schedule, when the retries are exhausted (R1, R7); with [Config.StandBy] it
// returns only when ctx ends. Nothing fires while nobody runs the schedules
// (L1).
//
// It is the goroutine's driver of [Runner.Step]: it sleeps on the engine's
// clock in slices of at most 1 s, since timers stand still while a machine
// sleeps (L7), and is woken at once by a schedule that this engine adds (L8), or
// by [Engine.WakeRunners].
func (e *Engine) RunSchedules(ctx context.Context) error {
	r := e.NewRunner()
	for ctx.Err() == nil {
		woken := e.woken.next() // before the step, so that no wake is missed
		next, report, err := r.step(ctx)
		if err != nil {
			return err
		}
		sleep := min(next.Sub(e.config.Clock.Now()), sliceTime)
		if report.Phase == "" { // no call was made: sleep, whatever the host's clock says by now
			sleep = max(sleep, time.Millisecond)
		}
		if sleep > 0 {
			select {
			case <-ctx.Done():
			case <-woken:
			case <-e.config.Clock.After(sleep):
			}
		}
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), sliceTime)
	defer cancel()
	return r.Stop(release)
}

// RunWorker calls the handler for the jobs of the queue, until ctx ends and the
// jobs in hand are done. It keeps their claims alive, and settles each by what
// its handler returned, whatever that is: a panic, or a handler that ends its
// goroutine, is a failure of the job's. Errors of the store are told to the
// observer and outlasted (I9).
//
// It stops in two phases: no job is claimed any more, and those in hand have
// [WorkerConfig.StopTimeout]; then the handlers' contexts end, with the cause of
// ctx, and have 5 s to return. After that RunWorker returns an
// [*AbandonedError], and their goroutines are left behind; else nil. At once it
// returns the errors of [Engine.NewWorker], and [ErrInvalidOption] without a
// handler.
//
// The handler's context is that of [Run.Context]. [Job.Deadline] stays that of
// the claim, and is past when the claim has been renewed. The handler is called
// on goroutines, as many as [WorkerConfig.Concurrency] at once; jobs begin in
// the order in which the store hands them out (QU1).
//
// It is the goroutine's driver of [Worker.Step], as [Engine.RunSchedules] is of
// [Runner.Step], and woken at once by a job that this engine enqueues, fires or
// retries, or by [Engine.WakeWorkers]; by others within [WorkerConfig.Poll].
func (e *Engine) RunWorker(ctx context.Context, queue string, handle Handler, c WorkerConfig) error {
	w, err := e.NewWorker(queue, c)
	if err != nil {
		return err
	}
	return w.run(ctx, "handle", handle)
}

// run steps the worker to its end, beside the calls of its handlers.
func (w *Worker) run(ctx context.Context, option string, handle Handler) error {
	if handle == nil { // it would fail all jobs
		w.engine.queues.leave(w.queue)
		return &OptionError{Option: option, Problem: "is nil, want a function"}
	}
	type end struct {
		run *Run
		err error
	}
	ends := make(chan end, w.config.Concurrency)
	call := func(r *Run) {
		var err error = exitError("the handler ended its goroutine")
		defer func() { ends <- end{r, err} }()
		err = r.Call(handle)
	}
	endless := context.WithoutCancel(ctx)
	calls := func() (context.Context, context.CancelFunc) { return context.WithTimeout(endless, standByTime) }
	stop := ctx.Done()
	for {
		woken := w.signal.next() // before the step, so that no wake is missed
		next, report, err := w.step(ctx, calls)
		if next.IsZero() {
			return err
		}
		for _, r := range report.Begun {
			go call(r)
		}
		if w.stopping {
			stop = nil
		}
		if len(w.runs) == w.config.Concurrency {
			woken = nil
		}
		sleep := min(next.Sub(w.engine.config.Clock.Now()), sliceTime)
		if report.Phase == "" {
			sleep = max(sleep, time.Millisecond)
		}
		if sleep > 0 {
			select {
			case <-stop:
			case <-woken:
			case <-w.engine.config.Clock.After(sleep):
			case ended := <-ends:
				w.Ended(ended.run, ended.err)
			}
		}
		for more := true; more; {
			select {
			case ended := <-ends:
				w.Ended(ended.run, ended.err)
			default:
				more = false
			}
		}
	}
}

// within is ctx with the bound that the job sets to a run (X5), if there is one.
func (j *Job) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if j.timeoutMS == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, durationOf(j.timeoutMS))
}
