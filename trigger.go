package tickonce

import (
	"context"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// Trigger fires the schedule now, whatever its grid and its active hours say,
// and returns the job. It has the schedule's payload and options, but no
// boundary. For a run-once it is its turn (X8). Its end counts for the breaker
// like any other's.
//
// [ErrNotFound]: there is no such schedule. [ErrPaused]: it is paused.
// [ErrOverlap]: its policy lets no second job be live (X9). [ErrInvalidOption]:
// the row cannot be decided and would be quarantined. [ErrLimit]: the queue is
// full. [ErrConflict]: others changed the schedule all the while. After another
// error of the store it is unknown whether it fired.
func (e *Engine) Trigger(ctx context.Context, name string) (JobID, error) {
	if err := core.CheckName("schedule name", name); err != nil {
		return 0, err
	}
	_, job, err := e.update(ctx, "trigger", name, planTrigger(name))
	return job, err
}

func planTrigger(name string) planner {
	return func(old *store.Schedule, _ store.Instant) (change, error) {
		switch {
		case old == nil:
			return change{}, opError("trigger", name, ErrNotFound)
		case old.Paused != store.Active:
			return change{}, opError("trigger", name, ErrPaused)
		case old.Overlap.Blocked(old.Live):
			return change{}, opError("trigger", name, ErrOverlap)
		case old.ID == 0: // in a transaction; the job could not name it
			return change{}, &OptionError{Option: "name", Problem: "is of a schedule that the transaction itself makes anew"}
		}
		row, fire, problem := core.PlanTrigger(*old)
		if problem != "" {
			return change{}, &OptionError{Option: "name", Problem: "is of a schedule that cannot be decided: " + problem}
		}
		return change{row: &row, fire: &fire}, nil
	}
}
