package tickonce

import (
	"context"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

func (r *Runner) startInspection() {
	r.inspecting, r.inspected, r.reported, r.judged = true, "", "", store.MinInstant
}

// inspectAfterOthers has the schedules inspected by a runner that leads again
// and may not have seen what clock others led by: terms are one sequence, so
// that nobody was between two that follow on each other (LK6).
func (r *Runner) inspectAfterOthers() {
	if !r.inspecting {
		r.low = r.now
	}
	r.startInspection()
}

// inspectedPage moves on to the next page, or ends the inspection. If a page was
// judged by a clock that was ahead, the next reading below begins another one.
func (r *Runner) inspectedPage() {
	if r.page < len(r.rows) {
		r.inspecting, r.high = false, r.judged
		return
	}
	r.inspected = after(r.rows[r.page-1].Name)
}

// inspect reads one page of schedules and looks for what a clock set that was
// ahead: cursors (T11), and holds, which would outlast their minute (Q3).
func (r *Runner) inspect(ctx context.Context) {
	r.report.Phase = PhaseSelect
	n, now, err := r.engine.store.Schedules(ctx, r.inspected, r.rows)
	if err != nil {
		r.failed(ctx, PhaseSelect, err)
		return
	}
	r.used = max(r.used, n)
	from := r.inspected
	if r.read(now); r.inspected != from {
		r.phase = phaseRenew // begins anew: the pages before were judged by a later now
		return
	}
	r.judged = max(r.judged, now)
	rearm := r.engine.config.ClockRepair == RepairRearm
	r.repairs.Puts = r.repairs.Puts[:0]
	for i := range r.rows[:n] {
		row := &r.rows[i]
		repaired, repair := *row, false
		var skips []store.Skip
		if core.HoldAhead(row, now) {
			repaired.DueAt, repair = now, true
		}
		if core.CursorAhead(row, now) {
			if row.Name >= r.reported {
				r.emit(Event{Kind: EventCursorAhead, Schedule: row.Name, Boundary: timeOf(row.Cursor)})
				r.reported = after(row.Name)
			}
			if rearmed, before, ok := core.PlanRearm(*row, now); rearm && ok {
				repaired, repair, skips = rearmed, true, before
			}
		}
		if repair {
			r.repairs.Puts = append(r.repairs.Puts, store.Put{Guard: guardOf(row.Name, row), Row: repaired, Skips: skips})
		}
	}
	r.page = n
	if len(r.repairs.Puts) > 0 {
		r.phase = phaseRepair
		return
	}
	if r.inspectedPage(); r.inspecting {
		r.phase = phaseRenew
	}
}

// repair writes what the page called for. If that fails, or a row has changed
// meanwhile, the page is read again.
func (r *Runner) repair(ctx context.Context) {
	r.report.Phase = PhaseAdvance
	done, err := r.engine.store.Commit(ctx, &r.repairs)
	if err != nil {
		r.failed(ctx, PhaseAdvance, err)
		return
	}
	if done.Refusal.Why == store.NotRefused {
		r.inspectedPage()
	}
	r.read(done.Now)
	for i := range done.Puts {
		if r.repairs.Puts[i].Row.ID == 0 {
			r.emit(Event{Kind: EventRearmed, Schedule: done.Puts[i].Name, Boundary: timeOf(done.Puts[i].Cursor)})
		}
	}
	r.phase = phaseRenew
}
