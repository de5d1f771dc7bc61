package host

import (
	"context"
	"iter"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/wire"
)

// Schedule is [tickonce.Engine.Schedule].
func (e *Engine) Schedule(
	ctx context.Context, name, spec, queue string, payload []byte, o tickonce.ScheduleOptions,
) (tickonce.Schedule, error) {
	reply, err := e.call(ctx, wire.OpSchedule, &wire.Request{Name: name, Spec: spec, Queue: queue, Payload: payload, Schedule: o})
	if err != nil {
		return tickonce.Schedule{}, err
	}
	return *reply.Schedule, nil
}

// done makes a call that answers whether it did something.
func (e *Engine) done(ctx context.Context, op wire.Op, r *wire.Request) (bool, error) {
	reply, err := e.call(ctx, op, r)
	if err != nil {
		return false, err
	}
	return reply.Done, nil
}

// job makes a call that answers a job.
func (e *Engine) job(ctx context.Context, op wire.Op, r *wire.Request) (tickonce.JobID, error) {
	reply, err := e.call(ctx, op, r)
	if err != nil {
		return 0, err
	}
	return reply.Job, nil
}

// Unschedule is [tickonce.Engine.Unschedule].
func (e *Engine) Unschedule(ctx context.Context, name string) (bool, error) {
	return e.done(ctx, wire.OpUnschedule, &wire.Request{Name: name})
}

// Pause is [tickonce.Engine.Pause].
func (e *Engine) Pause(ctx context.Context, name string) (bool, error) {
	return e.done(ctx, wire.OpPause, &wire.Request{Name: name})
}

// Resume is [tickonce.Engine.Resume].
func (e *Engine) Resume(ctx context.Context, name string, o tickonce.ResumeOptions) (bool, error) {
	return e.done(ctx, wire.OpResume, &wire.Request{Name: name, CatchUp: o.CatchUp})
}

// Trigger is [tickonce.Engine.Trigger].
func (e *Engine) Trigger(ctx context.Context, name string) (tickonce.JobID, error) {
	return e.job(ctx, wire.OpTrigger, &wire.Request{Name: name})
}

// Lookup is [tickonce.Engine.Lookup].
func (e *Engine) Lookup(ctx context.Context, name string) (tickonce.Schedule, bool, error) {
	reply, err := e.call(ctx, wire.OpLookup, &wire.Request{Name: name})
	if err != nil || reply.Schedule == nil {
		return tickonce.Schedule{}, false, err
	}
	return *reply.Schedule, true, nil
}

// Schedules is [tickonce.Engine.Schedules].
func (e *Engine) Schedules(ctx context.Context) iter.Seq2[tickonce.Schedule, error] {
	return pages(func(last *tickonce.Schedule) ([]tickonce.Schedule, error) {
		r := &wire.Request{}
		if last != nil {
			r.After = last.Name
		}
		reply, err := e.call(ctx, wire.OpSchedules, r)
		if err != nil {
			return nil, err
		}
		return reply.Schedules, nil
	})
}

// pages yields the rows of page after page, each behind the last row of the one
// before. An error ends the sequence.
func pages[T any](read func(last *T) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last *T
		for {
			rows, err := read(last)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			if len(rows) < wire.MaxPage {
				return
			}
			last = &rows[len(rows)-1]
		}
	}
}

// History is [tickonce.Engine.History].
func (e *Engine) History(ctx context.Context, schedule string, o tickonce.HistoryOptions) iter.Seq2[tickonce.PastRun, error] {
	return pages(func(last *tickonce.PastRun) ([]tickonce.PastRun, error) {
		r := &wire.Request{Name: schedule, Before: o.Before}
		if last != nil {
			r.Before = last.ID
		}
		reply, err := e.call(ctx, wire.OpHistory, r)
		if err != nil {
			return nil, err
		}
		return reply.Runs, nil
	})
}

// Skips is [tickonce.Engine.Skips].
func (e *Engine) Skips(ctx context.Context, schedule string, o tickonce.HistoryOptions) iter.Seq2[tickonce.PastSkip, error] {
	return pages(func(last *tickonce.PastSkip) ([]tickonce.PastSkip, error) {
		r := &wire.Request{Name: schedule, Before: o.Before}
		if last != nil {
			r.Before = last.ID
		}
		reply, err := e.call(ctx, wire.OpSkips, r)
		if err != nil {
			return nil, err
		}
		return reply.Skips, nil
	})
}

// Totals are [tickonce.Totals], with the same methods.
type Totals = wire.Totals

// Totals is [tickonce.Engine.Totals].
func (e *Engine) Totals(ctx context.Context, schedule string) (Totals, error) {
	reply, err := e.call(ctx, wire.OpTotals, &wire.Request{Name: schedule})
	if err != nil || reply.Totals == nil {
		return Totals{}, err
	}
	return *reply.Totals, nil
}
