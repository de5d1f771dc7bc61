package memengine

import (
	"slices"

	"github.com/tickonce/tickonce/store"
)

// overlapIndex counts the live jobs of every schedule's name and keeps those
// back that have to be alone (X9). The count of a name stands in its row.
//
// It follows the changes as they are staged, so that a claim sees what it has
// done itself; where they are discarded, the opposite is counted.
type overlapIndex struct {
	s        *Store
	siblings map[string]*siblings
}

// siblings are the live jobs of one name. They are kept where the name has no
// row, and where some of them have to be alone.
type siblings struct {
	store.Live
	lines []*line
}

// line is the jobs of one queue and one name that have to be alone and have as
// many claims of the name themselves: a pending one none, a claimed one its
// own. While the name has more claims than that, none of them may be handed
// out; else the first of them may. So of a line the heaps of its queue have
// only the first job, or none, and what a claim costs does not depend on how
// many are behind it.
type line struct {
	q     *queue
	own   int32
	waits bool
	n     int // jobs in waiting or come
	at    int // in the queue's lines

	first [3]*job // by heap: waiting, come, ready
	rest  [3]heap[job]
}

// turns is a heap of jobs that may be handed out one day, see [line].
type turns struct {
	heap[job]
	part int
}

func (t *turns) push(j *job) {
	l := j.q.line(j)
	if l == nil {
		t.heap.push(j)
		return
	}
	first := l.first[t.part]
	if l.waits || first != nil && t.before(first, j) {
		l.rest[t.part].push(j)
		return
	}
	if first != nil {
		t.heap.remove(first)
		l.rest[t.part].push(first)
	}
	l.first[t.part] = j
	t.heap.push(j)
}

func (t *turns) pop() *job {
	j := t.rows[0]
	t.remove(j)
	return j
}

// remove takes the job out, if it is in.
func (t *turns) remove(j *job) {
	if !t.has(j) {
		return
	}
	switch l := j.q.line(j); {
	case l == nil:
		t.heap.remove(j)
	case l.first[t.part] == j:
		t.heap.remove(j)
		l.first[t.part] = nil
		l.lead(t)
	default:
		l.rest[t.part].remove(j)
	}
}

// lead lets the first job of the line into the heap.
func (l *line) lead(t *turns) {
	rest := &l.rest[t.part]
	if l.waits || len(rest.rows) == 0 {
		return
	}
	l.first[t.part] = rest.pop()
	t.heap.push(l.first[t.part])
}

// turn lets the first jobs of the line into the heaps of the queue, or takes
// them out, when the name has so many claims.
func (l *line) turn(claims int32) {
	waits := claims > l.own
	if l.waits == waits {
		return
	}
	l.waits = waits
	if !waits {
		l.q.waits -= int64(l.n)
		for _, t := range l.q.turns() {
			l.lead(t)
		}
		return
	}
	l.q.waits += int64(l.n)
	for _, t := range l.q.turns() {
		if first := l.first[t.part]; first != nil {
			t.heap.remove(first)
			l.first[t.part] = nil
			l.rest[t.part].push(first)
		}
	}
}

// count counts that the job leaves a state for another. The state of a job
// that is not kept is 0.
func (x *overlapIndex) count(j *store.Job, from, to store.State) {
	if from != to && j.Counts() {
		x.countFor(x.s.row(j.Schedule, j.ScheduleID), j.Schedule, from, to)
	}
}

// countFor is count for a job of the name, whose row is there or nil.
func (x *overlapIndex) countFor(row *schedule, name string, from, to store.State) {
	if row != nil {
		tally(&row.Live, from, to)
	}
	s := x.siblings[name]
	if s == nil {
		if row != nil {
			return
		}
		s = x.add(name, store.Live{})
	}
	tally(&s.Live, from, to)
	for _, l := range s.lines {
		l.turn(s.Claimed)
	}
	x.forget(name, s, row)
}

func tally(n *store.Live, from, to store.State) {
	switch from {
	case store.Pending:
		n.Pending--
	case store.Claimed:
		n.Claimed--
	}
	switch to {
	case store.Pending:
		n.Pending++
	case store.Claimed:
		n.Claimed++
	}
}

func (x *overlapIndex) add(name string, live store.Live) *siblings {
	if x.siblings == nil {
		x.siblings = make(map[string]*siblings)
	}
	s := &siblings{Live: live}
	x.siblings[name] = s
	return s
}

// forget drops the siblings if the row, or nothing, says as much.
func (x *overlapIndex) forget(name string, s *siblings, row *schedule) {
	if len(s.lines) == 0 && (row != nil || s.Live == store.Live{}) {
		delete(x.siblings, name)
	}
}

// arrived gives a new row the count of its name.
func (x *overlapIndex) arrived(row *schedule) {
	row.Live = store.Live{}
	if s := x.siblings[row.Name]; s != nil {
		row.Live = s.Live
		x.forget(row.Name, s, row)
	}
}

// left keeps the count of a row that is removed.
func (x *overlapIndex) left(row *schedule) {
	if (row.Live != store.Live{}) && x.siblings[row.Name] == nil {
		x.add(row.Name, row.Live)
	}
}

// ownClaims is how many claims of its schedule's name the job has itself.
func ownClaims(j *job) int32 {
	if j.State == store.Claimed && j.Counts() {
		return 1
	}
	return 0
}

// line answers the line that the job stands in, or nil.
func (q *queue) line(j *job) *line {
	if !j.Alone {
		return nil
	}
	if s := q.overlap.siblings[j.Schedule]; s != nil {
		return s.line(q, ownClaims(j))
	}
	return nil
}

func (s *siblings) line(q *queue, own int32) *line {
	for _, l := range s.lines {
		if l.q == q && l.own == own {
			return l
		}
	}
	return nil
}

// join puts the job, which is in no heap, in its line.
func (q *queue) join(j *job) {
	if !j.Alone || j.Schedule == "" {
		return
	}
	s := q.overlap.siblings[j.Schedule]
	if s == nil {
		live := store.Live{}
		if row := q.overlap.s.row(j.Schedule, j.ScheduleID); row != nil {
			live = row.Live
		}
		s = q.overlap.add(j.Schedule, live)
	}
	own := ownClaims(j)
	l := s.line(q, own)
	if l == nil {
		l = &line{q: q, own: own, waits: s.Claimed > own, at: len(q.lines)}
		for i, t := range q.turns() {
			l.rest[i] = heap[job]{before: t.before, place: t.place}
		}
		q.lines = append(q.lines, l)
		s.lines = append(s.lines, l)
	}
	l.n++
	if l.waits {
		q.waits++
	}
}

// leave takes the job, which is in no heap any more, out of its line.
func (q *queue) leave(j *job) {
	l := q.line(j)
	if l == nil {
		return
	}
	l.n--
	if l.waits {
		q.waits--
	}
	if l.n > 0 {
		return
	}
	last := q.lines[len(q.lines)-1]
	q.lines[l.at], last.at = last, l.at
	q.lines[len(q.lines)-1] = nil
	q.lines = q.lines[:len(q.lines)-1]

	s := q.overlap.siblings[j.Schedule]
	s.lines = slices.DeleteFunc(s.lines, func(other *line) bool { return other == l })
	q.overlap.forget(j.Schedule, s, q.overlap.s.row(j.Schedule, j.ScheduleID))
}

// stuck reports whether the job has a claim, and another of its name as well,
// although both have to be alone: then neither could be handed out again.
func (x *overlapIndex) stuck(j *job) bool {
	if !j.Alone || ownClaims(j) == 0 {
		return false
	}
	n := 0
	if s := x.siblings[j.Schedule]; s != nil {
		for _, l := range s.lines {
			n += l.n * int(l.own)
		}
	}
	return n > 1
}
