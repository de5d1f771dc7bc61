package memengine

import (
	"math"
	"slices"
	"strings"

	"github.com/tickonce/tickonce/store"
)

// dueIndex orders the schedules that have a DueAt by (DueAt, Name). It has two
// parts: the run, a sorted slice of the first rows, from which Due reads, and
// a heap of keys for the others. The heap compares integers alone and touches
// no row; ties are put in the order of their names as they enter the run.
//
// The heap forgets lazily: a row that is changed or removed leaves its key
// behind, which is known by its row having another DueAt or being in the run.
type dueIndex struct {
	rows *byID[schedule]

	run   []*schedule   // nil where a row has left
	head  int           // before it, all have left
	inRun int           // rows in the run
	bound store.Instant // no row of the run is later; every row up to it entered the run when last filled

	popped []dueKey // scratch

	keys  []dueKey // a 4-ary heap by at
	keyed int      // rows that have a key of theirs in it; the other keys are stale
}

type dueKey struct {
	at store.Instant
	id store.ScheduleID
}

// add takes in a row that is not in the index.
func (d *dueIndex) add(row *schedule) {
	if row.DueAt == store.None {
		return
	}
	d.keyed++
	d.push(dueKey{row.DueAt, row.ID})
}

// remove forgets a row, while it still has the DueAt that it was added with.
func (d *dueIndex) remove(row *schedule) {
	switch {
	case row.run != 0:
		d.run[row.run-1] = nil
		row.run = 0
		d.inRun--
	case row.DueAt != store.None:
		d.keyed--
	}
}

// sweep drops the stale keys once they are many. It is called when the rows
// are as the index says.
func (d *dueIndex) sweep() {
	if len(d.keys)-d.keyed <= d.rows.n/2+64 {
		return
	}
	d.keys = d.keys[:0]
	for row := range d.rows.from(0) {
		if row.DueAt != store.None && row.run == 0 {
			d.keys = append(d.keys, dueKey{row.DueAt, row.ID})
		}
	}
	slices.SortFunc(d.keys, func(a, b dueKey) int { return compare(a.at, b.at) })
}

// read fills dst with the rows that are due at now and answers how many, and
// the least DueAt of all others.
func (d *dueIndex) read(now store.Instant, dst []store.Schedule) (n int, next store.Instant) {
	d.fill(now, len(dst))
	for _, row := range d.run[d.head:] {
		if row == nil {
			continue
		}
		if n == len(dst) || row.DueAt > now {
			return n, row.DueAt
		}
		dst[n] = row.Schedule
		n++
	}
	if d.topRow() == nil {
		return n, store.None
	}
	return n, d.keys[0].at
}

// fill moves rows from the heap to the run until it holds want of the rows due
// at now, or all of them, and no row that is left behind ties with its last.
func (d *dueIndex) fill(now store.Instant, want int) {
	if len(d.run) > 2*d.inRun+64 {
		d.compact()
	}
	for d.head < len(d.run) && d.run[d.head] == nil {
		d.head++
	}
	if d.inRun == 0 {
		clear(d.run)
		d.run, d.head, d.bound = d.run[:0], 0, math.MinInt64
	}
	old, bound := len(d.run), d.bound
	for {
		at := len(d.run)
		for len(d.keys) > 0 {
			k := d.keys[0]
			if k.at > d.bound && (k.at > now || d.inRun+len(d.popped) >= want) {
				break
			}
			d.pop()
			d.popped = append(d.popped, k)
			d.bound = max(d.bound, k.at)
		}
		if len(d.popped) == 0 {
			break
		}
		// One loop for each step from a key to its row: so the processor can
		// wait for the memory of many rows at once.
		for _, k := range d.popped {
			d.run = append(d.run, d.rows.find(int64(k.id)))
		}
		kept := d.run[:at]
		for i, row := range d.run[at:] {
			if current(d.popped[i], row) {
				kept = append(kept, row)
				row.run = int32(len(kept))
			}
		}
		d.run = kept
		d.inRun += len(kept) - at
		d.keyed -= len(kept) - at
		d.popped = d.popped[:0]
	}
	fresh := d.run[old:]
	if len(fresh) == 0 {
		return
	}
	sortTies(fresh)
	if fresh[0].DueAt <= bound {
		d.merge(old)
		return
	}
	for i, row := range fresh {
		row.run = int32(old + i + 1)
	}
}

// sortTies sorts by name where rows that are in DueAt order have the same.
func sortTies(rows []*schedule) {
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j].DueAt == rows[i].DueAt {
			j++
		}
		if j-i > 1 {
			slices.SortFunc(rows[i:j], byDue)
		}
		i = j
	}
}

func byDue(a, b *schedule) int {
	if a.DueAt != b.DueAt {
		return compare(a.DueAt, b.DueAt)
	}
	return strings.Compare(a.Name, b.Name)
}

func compare(a, b store.Instant) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

// compact closes the gaps of the run.
func (d *dueIndex) compact() {
	kept := d.run[:0]
	for _, row := range d.run {
		if row != nil {
			kept = append(kept, row)
			row.run = int32(len(kept))
		}
	}
	clear(d.run[len(kept):])
	d.run, d.head = kept, 0
}

// merge puts the run in order, whose parts before and from old on are.
func (d *dueIndex) merge(old int) {
	b := slices.Clone(d.run[old:])
	d.run = d.run[:old]
	d.compact()
	a := slices.Clone(d.run)
	d.run = d.run[:0]
	for len(a)+len(b) > 0 {
		from := &a
		if len(a) == 0 || len(b) > 0 && byDue(b[0], a[0]) < 0 {
			from = &b
		}
		row := (*from)[0]
		*from = (*from)[1:]
		d.run = append(d.run, row)
		row.run = int32(len(d.run))
	}
}

// topRow answers the row of the least key, or nil, and drops the stale keys
// before it.
func (d *dueIndex) topRow() *schedule {
	for len(d.keys) > 0 {
		if row := d.rows.find(int64(d.keys[0].id)); current(d.keys[0], row) {
			return row
		}
		d.pop()
	}
	return nil
}

// current reports whether the row is where its key says.
func current(k dueKey, row *schedule) bool {
	return row != nil && row.DueAt == k.at && row.run == 0
}

func (d *dueIndex) push(k dueKey) {
	d.keys = append(d.keys, k)
	h, i := d.keys, len(d.keys)-1
	for i > 0 {
		parent := (i - 1) / 4
		if h[parent].at <= k.at {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = k
}

// pop removes the least key.
func (d *dueIndex) pop() {
	end := len(d.keys) - 1
	k := d.keys[end]
	h := d.keys[:end]
	d.keys = h
	i := 0
	for {
		first := 4*i + 1
		if first >= end {
			break
		}
		least, at := first, h[first].at
		for c := first + 1; c < min(first+4, end); c++ {
			if h[c].at < at {
				least, at = c, h[c].at
			}
		}
		if at >= k.at {
			break
		}
		h[i] = h[least]
		i = least
	}
	if end > 0 {
		h[i] = k
	}
}
