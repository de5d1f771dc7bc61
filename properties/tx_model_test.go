package properties_test

import (
	"maps"
	"slices"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// txRow is a schedule as a transaction cares for it.
type txRow struct {
	as     schedule
	paused bool
	write  int // which of all writes; as long as it is the same, nobody changed the row
}

// txModel applies a transaction to copies, and gives them back if nothing
// stands in the way.
type txModel struct {
	rows  map[string]txRow // as staged
	read  map[string]int   // the write of each row that was touched, 0 without a row
	wrote map[string]bool

	settles                   []modelSettle
	cancels, requeues, purges []tickonce.JobID
	inserts                   []modelJob
	ended                     map[tickonce.JobID]bool
}

type modelSettle struct {
	id      tickonce.JobID
	attempt int
	fail    bool
}

func newTxModel() *txModel {
	return &txModel{rows: map[string]txRow{}, read: map[string]int{}, wrote: map[string]bool{}, ended: map[tickonce.JobID]bool{}}
}

// touch copies a row at its first use.
func (m *txModel) touch(base map[string]txRow, name string) {
	if _, touched := m.read[name]; touched {
		return
	}
	row, ok := base[name]
	if ok {
		m.rows[name] = row
	}
	m.read[name] = row.write
}

// edit applies an operation to rows, and answers what the call answers and
// whether it writes.
func edit(rows map[string]txRow, o operation) (told, wrote bool) {
	switch o := o.(type) {
	case schedule:
		row, ok := rows[o.Name]
		wrote = !ok || row.as != o
		row.as = o
		rows[o.Name] = row
		return true, wrote
	case unschedule:
		_, ok := rows[o.Name]
		delete(rows, o.Name)
		return ok, ok
	case pause:
		return turn(rows, o.Name, true)
	case resume:
		return turn(rows, o.Name, false)
	}
	panic("no edit")
}

func turn(rows map[string]txRow, name string, paused bool) (told, wrote bool) {
	row, ok := rows[name]
	if !ok || row.paused == paused {
		return false, false
	}
	row.paused = paused
	rows[name] = row
	return true, true
}

// end notes that the transaction ends a job; false if it has already.
func (m *txModel) end(id tickonce.JobID) bool {
	again := m.ended[id]
	m.ended[id] = true
	return !again
}

// commit answers what base and queue become, or why they stay as they are. New
// jobs have no id yet. Every guard is judged by what was before.
func (m *txModel) commit(base map[string]txRow, queue queueModel, now int64, writes *int) (map[string]txRow, queueModel, error) {
	for name, write := range m.read {
		if base[name].write != write {
			return nil, queue, tickonce.ErrConflict
		}
	}
	for _, s := range m.settles {
		if queue.held(s.id, s.attempt, now) == nil {
			return nil, queue, tickonce.ErrClaimLost
		}
	}
	dead := func(id tickonce.JobID) bool { j := queue.find(id); return j != nil && j.state == store.Dead }
	live := func(id tickonce.JobID) bool { j := queue.find(id); return j != nil && j.state != store.Dead }
	if !all(m.cancels, live) || !all(m.requeues, dead) || !all(m.purges, dead) {
		return nil, queue, tickonce.ErrNotFound
	}

	base = maps.Clone(base)
	for name := range m.wrote {
		delete(base, name)
		if row, ok := m.rows[name]; ok {
			*writes++
			row.write = *writes
			base[name] = row
		}
	}
	jobs := queue.jobs
	queue.jobs = nil
	for _, j := range jobs {
		again := *j
		queue.jobs = append(queue.jobs, &again)
	}
	for _, s := range m.settles {
		if j := queue.find(s.id); s.fail {
			queue.die(j, "failed")
		} else {
			queue.counts.Done++
			queue.remove(s.id)
		}
	}
	for _, id := range m.cancels {
		queue.counts.Cancelled++
		queue.remove(id)
	}
	for _, id := range m.requeues {
		queue.requeue(id, 0, now)
	}
	for _, id := range m.purges {
		queue.counts.Purged++
		queue.remove(id)
	}
	for _, j := range m.inserts {
		switch {
		case queue.keyed(j.key) != nil:
		case len(queue.jobs) >= queueLimit:
			return nil, queue, tickonce.ErrLimit
		default:
			j.runAt = now
			queue.add(j)
		}
	}
	return base, queue, nil
}

func all(ids []tickonce.JobID, is func(tickonce.JobID) bool) bool {
	return !slices.ContainsFunc(ids, func(id tickonce.JobID) bool { return !is(id) })
}
