package sim

import (
	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// tamper spoils the row of a schedule, if there is one.
func (w *world) tamper(fault int) {
	f, state := &w.scenario.Faults[fault], &w.faults[fault]
	s := w.truth.named[f.Schedule]
	if !w.truth.open || !s.known {
		return
	}
	before, after := s.row, s.row
	state.effect++
	state.before, state.after = &before, &after
	if f.Kind == FaultLostRow {
		w.truth.lose(s)
		s.lostBy = state
		return
	}
	spoil(&after, f, s.interval)
	w.spoilt = true
	w.truth.overwrite(s, after)
}

func spoil(row *store.Schedule, f *Fault, intervalMS int64) {
	switch f.Row {
	case SpoilSpec:
		row.Spec = "@fortnightly"
	case SpoilCutSpec:
		row.Spec = row.Spec[:max(len(row.Spec)-1, 0)]
	case SpoilQueue:
		row.Queue = core.OutboxPrefix + row.Queue
	case SpoilPolicy:
		row.CatchUp.Max = 0
	case SpoilOffGrid:
		row.Cursor = row.Cursor.Add(-intervalMS / 2)
	case SpoilAhead:
		row.Cursor = row.Cursor.Add(1000 * intervalMS)
	case SpoilEndOfTime:
		row.Cursor = store.MaxInstant
	default:
		row.Spec = f.Spec
	}
}

// mendAll mends the rows whose time for it has come while the store was away, or
// that a restart has brought back.
func (w *world) mendAll() {
	for i := range w.faults {
		if w.faults[i].over {
			w.mend(i)
		}
	}
}

// mend puts back what was spoilt, if it still is.
func (w *world) mend(fault int) {
	before, after := w.faults[fault].before, w.faults[fault].after
	s := w.truth.named[w.scenario.Faults[fault].Schedule]
	if s.lostBy == &w.faults[fault] && w.truth.open {
		row := *before
		row.ID = 0
		w.truth.overwrite(s, row)
		return
	}
	if before == nil || !w.truth.open || !s.known || s.row.ID != before.ID {
		return
	}
	row := s.row
	if row.Spec == after.Spec {
		row.Spec = before.Spec
	}
	if row.Queue == after.Queue {
		row.Queue = before.Queue
	}
	if row.CatchUp == after.CatchUp {
		row.CatchUp = before.CatchUp
	}
	if row.Cursor == after.Cursor && row.Cursor != before.Cursor {
		row.Cursor = before.Cursor
		if row.Hold == nil && row.Paused == store.Active {
			row.DueAt = before.Cursor
		}
	}
	if !sameRow(&row, &s.row) {
		w.truth.overwrite(s, row)
	}
}
