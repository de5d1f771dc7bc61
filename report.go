package tickonce

import (
	"iter"
	"time"

	"github.com/tickonce/tickonce/store"
)

// Report tells what a step did. It is good until the next step of its runner.
type Report struct {
	Phase Phase // of the call that was made, or "" without one
	Err   error // of a failed call that is retried, or why the runner stands by

	runner *Runner
	wrote  bool
}

// Fire is one boundary that fired.
type Fire struct {
	Schedule string
	Queue    string
	Boundary time.Time
	Job      JobID
}

// Skip is a range of boundaries of one schedule that were dropped unfired, for
// one reason: "hours", "policy", "overlap", "cap" or "missed".
type Skip struct {
	Reason      string
	First, Last time.Time
	Count       int64
}

// Passed tells what a tick made of one schedule. Fired and the counts of Skips
// add up to the boundaries that its cursor passed (T12).
type Passed struct {
	Schedule string
	Fired    int
	Skips    []Skip
	Hold     *Hold     // why it was quarantined, or nil
	Next     time.Time // the cursor
}

// Fires returns what the step fired, in (boundary, name) order.
func (p *Report) Fires() iter.Seq[Fire] {
	return func(yield func(Fire) bool) {
		if !p.wrote {
			return
		}
		r := p.runner
		for i := range r.plan.Tick.Fires {
			fire := &r.plan.Tick.Fires[i]
			if fire.Job == 0 {
				continue
			}
			row := &r.rows[fire.Move]
			if !yield(Fire{row.Name, row.Queue, timeOf(fire.Boundary), fire.Job}) {
				return
			}
		}
	}
}

// Passed returns what the step made of each schedule it wrote, in (due, name)
// order.
func (p *Report) Passed() iter.Seq[Passed] {
	return func(yield func(Passed) bool) {
		if !p.wrote {
			return
		}
		r := p.runner
		for i := range r.plan.Plans {
			move := &r.plan.Tick.Moves[i]
			if move.Outcome != store.Moved {
				continue
			}
			passed := Passed{Schedule: r.rows[i].Name, Fired: int(move.Fires), Next: timeOf(move.Cursor)}
			for _, skip := range r.plan.Plans[i].Skips {
				if skip.Count > 0 {
					passed.Skips = append(passed.Skips, Skip{skip.Reason.String(), timeOf(skip.First), timeOf(skip.Last), skip.Count})
				}
			}
			if move.Hold != nil {
				passed.Hold = &Hold{move.Hold.Reason, timeOf(move.Hold.Since), int(move.Hold.Times)}
			}
			if !yield(passed) {
				return
			}
		}
	}
}

// announce emits the events of a written tick.
func (r *Runner) announce() {
	at := timeOf(r.now)
	for fire := range r.report.Fires() {
		r.engine.emit(Event{
			Kind: EventFired, At: at, Schedule: fire.Schedule, Queue: fire.Queue, Boundary: fire.Boundary, Job: fire.Job,
		})
	}
	for i := range r.plan.Plans {
		move := &r.plan.Tick.Moves[i]
		if move.Outcome != store.Moved {
			continue
		}
		for _, skip := range r.plan.Plans[i].Skips {
			if skip.Count > 0 {
				r.engine.emit(skipEvent(r.now, r.rows[i].Name, skip))
			}
		}
		if move.Hold != nil {
			r.engine.emit(Event{
				Kind: EventQuarantined, At: at, Schedule: r.rows[i].Name, Queue: r.rows[i].Queue,
				Reason: move.Hold.Reason, Count: int64(move.Hold.Times),
			})
		}
	}
}
