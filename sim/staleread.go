package sim

import (
	"cmp"
	"slices"

	"github.com/tickonce/tickonce/store"
)

// past is a schedule as it was before it was last written.
type past struct {
	row   store.Schedule
	known bool // it was there
}

// keepPast keeps the row that is about to be written, for stale reads.
func (t *truth) keepPast(s *trueSchedule) {
	if t.past != nil {
		t.past[s.index] = past{s.row, s.known}
	}
}

// misread spoils the answer of a read of due rows by the faults that are on.
func (t *truth) misread(n *node, dst []store.Schedule, due *store.Due) {
	n.misled = false
	for _, i := range t.w.readFaults {
		f := &t.w.scenario.Faults[i]
		if !n.named(f.Runner) || f.Chance != 0 && !t.w.draws.misread.happens(f.Chance) {
			continue
		}
		t.w.faults[i].effect++
		if f.Kind == FaultStaleRead {
			n.misled = true
			t.readStale(dst, due)
		} else {
			repeatRows(dst, due)
		}
	}
}

// readStale answers the rows that were due before the last write of each.
func (t *truth) readStale(dst []store.Schedule, due *store.Due) {
	var rows []store.Schedule
	for i := range t.schedules {
		if p := &t.past[i]; p.known && p.row.DueAt != store.None {
			rows = append(rows, p.row)
		}
	}
	slices.SortFunc(rows, func(a, b store.Schedule) int {
		return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), cmp.Compare(a.Name, b.Name))
	})
	*due = store.Due{Now: due.Now, Next: store.None}
	for i := range rows {
		if due.N == len(dst) || rows[i].DueAt > due.Now {
			due.Next = rows[i].DueAt
			return
		}
		dst[due.N] = rows[i]
		due.N++
	}
}

// repeatRows answers each row twice, as far as there is room.
func repeatRows(dst []store.Schedule, due *store.Due) {
	n := min(due.N, len(dst)/2)
	if n < due.N {
		due.Next = dst[n].DueAt
	}
	for i := n - 1; i >= 0; i-- {
		dst[2*i], dst[2*i+1] = dst[i], dst[i]
	}
	due.N = 2 * n
}
