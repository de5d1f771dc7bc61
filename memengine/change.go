package memengine

import (
	"errors"
	"slices"
	"strconv"

	"github.com/tickonce/tickonce/store"
)

// op names the store call that a record comes from.
type op byte

// The operations. Their numbers are part of the journal's format.
const (
	opCommit op = iota + 1
	opAdvance
	opClaim
	opSettle
	opExtend
	opAcquire
	opRelease
	opRenew
)

var opNames = [...]string{"", "commit", "advance", "claim", "settle", "extend", "acquire", "release", "renew"}

// changes are what one call is about to change: rows as they will be. A call
// stages them while it checks its guards and sees through [changes.view] what
// it staged before; nothing else sees them until [Store.commit].
type changes struct {
	op   op
	now  store.Instant
	last sequences

	removed []*schedule
	put     []putSchedule
	gone    []*job
	turned  []turnedJob
	born    []*job   // filled, but in no index
	queues  []*queue // whose counters change
	granted []store.Lease
	dropped []string // locks
	runs    []store.Run
	skips   []store.SkipRange
	unknown bool // of a version that kept no history
}

// putSchedule is a row as it will be: next or, for a move, what the move makes
// of it, which saves copying all of it twice.
type putSchedule struct {
	row  *schedule // nil: a new one
	next *store.Schedule
	move *store.Move
}

func (p *putSchedule) after() store.Schedule {
	if p.move == nil {
		return *p.next
	}
	next := p.row.Schedule
	moved(&next, p.move)
	return next
}

// moved makes row what it is after the move.
func moved(row *store.Schedule, m *store.Move) {
	row.Rev++
	row.Cursor, row.DueAt, row.SetAt, row.Hold = m.Cursor, m.DueAt, m.SetAt, m.Hold
	if m.Ends {
		row.Paused = store.PausedByRunOnce
	}
}

type turnedJob struct {
	row  *job
	next store.Job
}

// stage begins the changes of a call.
func (s *Store) stage(op op, now store.Instant) *changes {
	s.c.op, s.c.now, s.c.last = op, now, s.last
	return &s.c
}

// empty reports whether there is nothing to apply.
func (c *changes) empty() bool {
	return len(c.removed)+len(c.put)+len(c.gone)+len(c.turned)+len(c.born)+
		len(c.queues)+len(c.granted)+len(c.dropped)+len(c.runs)+len(c.skips) == 0
}

// recorded reports whether the changes belong in the journal (D6): the
// scheduler's lease does not, but its term.
func (c *changes) recorded(last sequences) bool {
	return c.last != last ||
		len(c.removed)+len(c.put)+len(c.gone)+len(c.turned)+len(c.born)+len(c.queues) > 0 ||
		slices.ContainsFunc(c.dropped, func(lock string) bool { return lock != store.SchedulerLock }) ||
		slices.ContainsFunc(c.granted, func(l store.Lease) bool { return l.Lock != store.SchedulerLock })
}

// counters answers what the queue's counters will be, to be changed.
func (c *changes) counters(q *queue) *store.Queue {
	if !q.staged {
		q.staged = true
		q.next = q.Queue
		c.queues = append(c.queues, q)
	}
	return &q.next
}

// putOver stages the row's next one.
func (c *changes) putOver(row *schedule, p putSchedule) {
	c.put = append(c.put, p)
	row.staged = int32(len(c.put))
}

// remove stages the removal of a row.
func (c *changes) remove(row *schedule) {
	row.staged = -1
	c.removed = append(c.removed, row)
}

// view answers the job's row as it will be, or nil if it will be gone.
func (c *changes) view(j *job) *store.Job {
	switch {
	case j.staged == 0:
		return &j.Job
	case j.staged > 0:
		return &c.turned[j.staged-1].next
	default:
		return nil
	}
}

// turn stages the job's next row.
func (c *changes) turn(j *job, next store.Job) {
	n, from := c.counters(j.q), c.view(j).State
	*inState(n, from)--
	*inState(n, next.State)++
	j.q.overlap.count(&j.Job, from, next.State)
	if j.staged > 0 {
		c.turned[j.staged-1].next = next
		return
	}
	c.turned = append(c.turned, turnedJob{j, next})
	j.staged = int32(len(c.turned))
}

// end stages the removal of a job that has nothing staged.
func (c *changes) end(j *job) {
	*inState(c.counters(j.q), j.State)--
	j.q.overlap.count(&j.Job, j.State, 0)
	j.staged = -1
	c.gone = append(c.gone, j)
}

// bear stages a new job.
func (c *changes) bear(j *job) {
	*inState(c.counters(j.q), j.State)++
	j.q.overlap.count(&j.Job, 0, j.State)
	c.born = append(c.born, j)
}

// inState answers the counter of a queue's jobs in the state.
func inState(q *store.Queue, s store.State) *int64 {
	switch s {
	case store.Pending:
		return &q.Pending
	case store.Claimed:
		return &q.Claimed
	default:
		return &q.Dead
	}
}

// commit is the one commit point: it records what is staged, and applies it.
// On an error nothing has changed.
func (s *Store) commit() error {
	c := &s.c
	if c.empty() {
		return nil
	}
	if s.journal != nil && c.recorded(s.last) {
		c.last.record++
		s.rec = s.appendRecord(s.rec[:0])
		if err := s.append(); err != nil {
			return err
		}
	}
	s.apply()
	return nil
}

// append gives the record to the journal. If it fails, or panics, what is
// staged is forgotten.
func (s *Store) append() (err error) {
	appended := false
	defer func() {
		if !appended {
			s.discard()
		}
	}()
	if size := int64(len(s.rec)); size > s.longest {
		s.rec = nil // nobody else needs so much room
		return errors.New("the record of the call would be " + strconv.FormatInt(size, 10) +
			" bytes long, and " + strconv.FormatInt(s.longest, 10) + " are allowed: write less in one call")
	}
	err = s.journal.Append(s.rec)
	appended = err == nil
	return err
}

// apply makes the staged changes. A call and the replay of its record both
// end here.
func (s *Store) apply() {
	c := &s.c
	for _, row := range c.removed {
		s.removeSchedule(row)
	}
	for i := range c.put {
		s.putSchedule(&c.put[i])
	}
	if len(c.removed)+len(c.runs)+len(c.skips) > 0 || c.unknown {
		s.remember(c)
	}
	for _, j := range c.gone {
		s.dropJob(j)
	}
	for i := range c.turned {
		t := &c.turned[i]
		t.row.staged = 0
		t.row.q.turn(t.row, &t.next)
	}
	for _, j := range c.born {
		s.addJob(j)
	}
	for _, q := range c.queues {
		q.staged = false
		q.Queue = q.next
	}
	for _, lock := range c.dropped {
		s.dropLease(lock)
	}
	for i := range c.granted {
		s.putLease(&c.granted[i])
	}
	s.last = c.last
	s.due.sweep()
	c.reset()
}

// discard forgets what is staged.
func (s *Store) discard() {
	c := &s.c
	for _, row := range c.removed {
		row.staged = 0
	}
	for i := range c.put {
		if row := c.put[i].row; row != nil {
			row.staged = 0
		}
	}
	for _, j := range c.gone {
		j.staged = 0
		s.overlap.count(&j.Job, 0, j.State)
	}
	for i := range c.turned {
		j := c.turned[i].row
		j.staged = 0
		s.overlap.count(&j.Job, c.turned[i].next.State, j.State)
		j.q.unindex(j) // a claim has taken it out of some heaps
		j.q.index(j)
	}
	for _, j := range c.born {
		s.overlap.count(&j.Job, j.State, 0)
		s.recycle(j)
	}
	for _, q := range c.queues {
		q.staged = false
		s.forget(q)
	}
	c.reset()
}

func (c *changes) reset() {
	empty(&c.removed)
	empty(&c.put)
	empty(&c.gone)
	empty(&c.turned)
	empty(&c.born)
	empty(&c.queues)
	empty(&c.granted)
	empty(&c.dropped)
	c.unknown = false
	empty(&c.runs)
	empty(&c.skips)
}

// empty takes the elements out of s and keeps its room for use again, unless it
// has grown beyond what a usual call needs.
func empty[T any](s *[]T) {
	switch {
	case len(*s) == 0: // as most are in a call
	case cap(*s) > 1<<14:
		*s = nil
	default:
		clear(*s)
		*s = (*s)[:0]
	}
}
