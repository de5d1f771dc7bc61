package memengine

import (
	"context"

	"github.com/tickonce/tickonce/store"
)

// history keeps the latest entries of each schedule, runs or skip ranges, in
// two lists that every entry is in: that of its name and that of all, the
// oldest first in both. To append one and to drop the oldest is O(1). A name
// takes memory from its first entry on.
type history[E any] struct {
	about func(*E) (store.ScheduleID, store.Instant, int64) // the last boundary, or None, and the weight
	most  int64                                             // entries of one name
	all   int64                                             // weight of all

	names          byID[past[E]] // by the present incarnation
	oldest, newest *entry[E]
	weight         int64
	last           store.EntryID
	spare          *entry[E]    // to use again
	reads          [8]*entry[E] // what pages of the latest readers ended with, unless it has been dropped: their next ones begin there
	reader         uint8        // whose place the next one takes
}

// past is what is known of one name.
type past[E any] struct {
	id             store.ScheduleID // the present incarnation
	oldest, newest *entry[E]
	n              int64
	since, earlier store.Instant
	totals         [store.HistoryTotals]int64
}

type entry[E any] struct {
	row          E
	id           store.EntryID
	of           *past[E]
	older, newer *entry[E] // of the name
	prev, next   *entry[E] // of all
}

func aboutRun(r *store.Run) (store.ScheduleID, store.Instant, int64) {
	return r.ScheduleID, r.FireAt, r.Weight()
}

func aboutSkip(r *store.SkipRange) (store.ScheduleID, store.Instant, int64) {
	return r.ScheduleID, r.Last, 1
}

// of answers what is known of the name whose present incarnation is id.
func (h *history[E]) of(id store.ScheduleID) *past[E] {
	p := h.names.find(int64(id))
	if p == nil {
		p = &past[E]{id: id, since: store.MinInstant, earlier: store.MinInstant}
		h.names.put(int64(id), p)
	}
	return p
}

// add appends an entry with the id, and drops the oldest beyond the bounds.
func (h *history[E]) add(p *past[E], id store.EntryID, row *E) {
	h.last = id
	e := h.spare
	if h.spare = nil; e == nil {
		e = new(entry[E])
	}
	*e = entry[E]{row: *row, id: id, of: p, older: p.newest, prev: h.newest}
	if p.newest = e; e.older == nil {
		p.oldest = e
	} else {
		e.older.newer = e
	}
	if h.newest = e; e.prev == nil {
		h.oldest = e
	} else {
		e.prev.next = e
	}
	p.n++
	_, _, weight := h.about(row)
	h.weight += weight
	if p.n > h.most {
		h.drop(p.oldest)
	}
	for h.weight > h.all {
		h.drop(h.oldest)
	}
}

// drop forgets the oldest entry of a name, and notes from when on its present
// incarnation is known wholly, or up to when there were earlier ones.
func (h *history[E]) drop(e *entry[E]) {
	id, last, _ := h.about(&e.row)
	switch p := e.of; {
	case last == store.None:
	case id == p.id:
		p.since = max(p.since, last.Add(1))
	default:
		p.earlier = max(p.earlier, last.Add(1))
	}
	h.unlink(e)
}

func (h *history[E]) unlink(e *entry[E]) {
	p := e.of
	if p.oldest = e.newer; p.oldest == nil {
		p.newest = nil
	} else {
		p.oldest.older = nil
	}
	if e.prev == nil {
		h.oldest = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		h.newest = e.prev
	} else {
		e.next.prev = e.prev
	}
	p.n--
	_, _, weight := h.about(&e.row)
	h.weight -= weight
	*e = entry[E]{}
	h.spare = e
}

// forget drops all of a name.
func (h *history[E]) forget(id store.ScheduleID) {
	p := h.names.find(int64(id))
	if p == nil {
		return
	}
	for p.oldest != nil {
		h.unlink(p.oldest)
	}
	h.names.drop(int64(id))
}

// began notes that the incarnation next has taken the place of old, whose
// boundaries before the instant have passed.
func (h *history[E]) began(next, old store.ScheduleID, before store.Instant) {
	p := h.of(old)
	h.names.drop(int64(old))
	p.id, p.since, p.earlier = next, store.MinInstant, max(p.earlier, before)
	h.names.put(int64(next), p)
}

// page fills dst with the entries of the name before the id, newest first.
func (h *history[E]) page(p *past[E], before store.EntryID, dst []E, number func(*E) *store.EntryID) (n int) {
	e, reader := p.newest, -1
	for i, end := range h.reads { // or to read them all would take the square of their number
		if end != nil && end.of == p && end.id == before {
			e, reader = end.older, i
		}
	}
	if reader < 0 {
		reader = int(h.reader)
		h.reader = (h.reader + 1) % uint8(len(h.reads))
	}
	for ; e != nil && n < len(dst); e = e.older {
		if before == 0 || e.id < before {
			dst[n] = e.row
			*number(&dst[n]) = e.id
			h.reads[reader] = e
			n++
		}
	}
	return n
}

// ran stages the end of the run that the latest claim of the job's row was (X11).
func (c *changes) ran(j *store.Job, ended store.Execution, to store.State, lastError string) {
	if j.Counts() {
		c.runs = append(c.runs, j.Ends(ended, to, lastError, c.now))
	}
}

// lost stages a lost run if the job's claim has lapsed.
func (c *changes) lost(j *store.Job, to store.State, lastError string) {
	if j.State == store.Claimed {
		c.ran(j, store.Lost, to, lastError)
	}
}

// skipped stages a skip of an incarnation (X12).
func (c *changes) skipped(name string, id store.ScheduleID, skip *store.Skip) {
	c.skips = append(c.skips, skip.Range(name, id, c.now))
}

// remember applies what is staged for the history, when the schedules are as
// they will be.
func (s *Store) remember(c *changes) {
	if c.unknown {
		for _, old := range c.removed {
			s.skips.forget(old.ID)
		}
		for i := range c.put {
			s.unknown(c.put[i].next)
		}
		return
	}
	for _, old := range c.removed {
		if row := s.named(old.Name); row != nil {
			s.runs.began(row.ID, old.ID, old.Cursor)
			s.skips.began(row.ID, old.ID, old.Cursor)
		} else {
			s.runs.forget(old.ID)
			s.skips.forget(old.ID)
		}
	}
	for i := range c.runs {
		run := &c.runs[i]
		if row := s.row(run.Schedule, run.ScheduleID); row != nil {
			run.Schedule = row.Name
			p := s.runs.of(row.ID)
			p.totals[run.Ended]++
			s.runs.add(p, s.runs.last+1, run)
		}
	}
	for i := range c.skips {
		next := &c.skips[i]
		if row := s.row(next.Schedule, next.ScheduleID); row != nil {
			next.Schedule = row.Name
			p := s.skips.of(row.ID)
			p.totals[next.Reason] += next.Count
			if p.newest == nil || !p.newest.row.TakeIn(next) {
				s.skips.add(p, s.skips.last+1, next)
			}
		}
	}
}

// Runs implements [store.Store].
func (s *Store) Runs(ctx context.Context, p store.Page, dst []store.Run) (store.History, error) {
	return readHistory(ctx, s, &s.runs, p, dst, func(r *store.Run) *store.EntryID { return &r.ID })
}

// Skips implements [store.Store].
func (s *Store) Skips(ctx context.Context, p store.Page, dst []store.SkipRange) (store.History, error) {
	return readHistory(ctx, s, &s.skips, p, dst, func(r *store.SkipRange) *store.EntryID { return &r.ID })
}

func readHistory[E any](ctx context.Context, s *Store, h *history[E], page store.Page, dst []E, number func(*E) *store.EntryID) (store.History, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return store.History{}, err
	}
	defer s.mu.Unlock()
	a := store.History{Now: now, Since: store.MinInstant, Earlier: store.MinInstant}
	row := s.named(page.Schedule)
	if row == nil {
		return a, nil
	}
	if p := h.names.find(int64(row.ID)); p != nil {
		a.N = h.page(p, page.Before, dst, number)
		a.Since, a.Earlier, a.Totals = p.since, p.earlier, p.totals
	}
	return a, nil
}
