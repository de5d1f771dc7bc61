package storetest

import (
	"context"
	"slices"

	"github.com/tickonce/tickonce/store"
)

// history is what the store remembers of the past: runs, or skip ranges, of all
// schedules, the oldest first.
type history[E any] struct {
	about   func(*E) entry
	entries []E
	last    store.EntryID
	names   []past // those that ever had an entry, or several incarnations
}

// entry is what the bounds of a history have to know of an entry.
type entry struct {
	id         *store.EntryID
	name       string
	scheduleID store.ScheduleID
	last       store.Instant // boundary, or None
	weight     int64
}

// past is what is known of a name beside its entries.
type past struct {
	name    string
	since   store.Instant // in the present incarnation
	earlier store.Instant // of those that are no more
	totals  [store.HistoryTotals]int64
}

func aboutRun(r *store.Run) entry {
	return entry{&r.ID, r.Schedule, r.ScheduleID, r.FireAt, r.Weight()}
}

func aboutSkip(r *store.SkipRange) entry {
	return entry{&r.ID, r.Schedule, r.ScheduleID, r.Last, 1}
}

func (h history[E]) clone() history[E] {
	h.entries, h.names = slices.Clone(h.entries), slices.Clone(h.names)
	return h
}

func (h *history[E]) of(name string) *past {
	match := func(p *past) bool { return p.name == name }
	if find(h.names, match) == nil {
		h.names = append(h.names, past{name: name, since: store.MinInstant, earlier: store.MinInstant})
	}
	return find(h.names, match)
}

// newest answers the newest entry of the name, or nil.
func (h *history[E]) newest(name string) *E {
	for i := len(h.entries) - 1; i >= 0; i-- {
		if h.about(&h.entries[i]).name == name {
			return &h.entries[i]
		}
	}
	return nil
}

// add appends an entry of the row and drops the oldest ones beyond the bounds.
func (h *history[E]) add(t *table, e E, most, all int64) {
	h.last++
	*h.about(&e).id = h.last
	h.entries = append(h.entries, e)
	name := h.about(&e).name
	for h.count(name) > most {
		h.drop(t, slices.IndexFunc(h.entries, func(e E) bool { return h.about(&e).name == name }))
	}
	for h.weight() > all {
		h.drop(t, 0)
	}
}

func (h *history[E]) count(name string) (n int64) {
	for i := range h.entries {
		if h.about(&h.entries[i]).name == name {
			n++
		}
	}
	return n
}

func (h *history[E]) weight() (w int64) {
	for i := range h.entries {
		w += h.about(&h.entries[i]).weight
	}
	return w
}

// drop forgets an entry, and notes from when on the present incarnation is
// known wholly, or up to when there were earlier ones.
func (h *history[E]) drop(t *table, i int) {
	e := h.about(&h.entries[i])
	switch p := h.of(e.name); {
	case e.last == store.None:
	case t.schedule(e.name).ID == e.scheduleID:
		p.since = max(p.since, e.last.Add(1))
	default:
		p.earlier = max(p.earlier, e.last.Add(1))
	}
	h.entries = slices.Delete(h.entries, i, i+1)
}

// forget drops all of a name.
func (h *history[E]) forget(name string) {
	h.entries = slices.DeleteFunc(h.entries, func(e E) bool { return h.about(&e).name == name })
	h.names = slices.DeleteFunc(h.names, func(p past) bool { return p.name == name })
}

// read fills dst with the entries of the name before the id, newest first.
func (h *history[E]) read(p store.Page, dst []E, now store.Instant) store.History {
	a := store.History{Now: now, Since: store.MinInstant, Earlier: store.MinInstant}
	if past := find(h.names, func(e *past) bool { return e.name == p.Schedule }); past != nil {
		a.Since, a.Earlier, a.Totals = past.since, past.earlier, past.totals
	}
	for i := len(h.entries) - 1; i >= 0 && a.N < len(dst); i-- {
		e := h.about(&h.entries[i])
		if e.name == p.Schedule && (p.Before == 0 || *e.id < p.Before) {
			dst[a.N] = h.entries[i]
			a.N++
		}
	}
	return a
}

// began notes that a new incarnation of the name has taken the place of old.
func (h *history[E]) began(old *store.Schedule) {
	p := h.of(old.Name)
	p.since, p.earlier = store.MinInstant, max(p.earlier, old.Cursor)
}

// unscheduled forgets all of a name.
func (t *table) unscheduled(name string) {
	t.runs.forget(name)
	t.skips.forget(name)
}

// ran records the end of the run that the latest claim of j was (X11).
func (t *table) ran(l *store.Limits, j store.Job, ended store.Execution, to store.State, lastError string, now store.Instant) {
	if !j.Counts() || t.schedule(j.Schedule) == nil {
		return
	}
	t.runs.of(j.Schedule).totals[ended]++
	t.runs.add(t, j.Ends(ended, to, lastError, now), l.Runs, l.History)
}

// lost records a lost run if the job's claim has lapsed.
func (t *table) lost(l *store.Limits, j store.Job, to store.State, lastError string, now store.Instant) {
	if j.State == store.Claimed {
		t.ran(l, j, store.Lost, to, lastError, now)
	}
}

// skipped records boundaries that the incarnation skipped (X12).
func (t *table) skipped(l *store.Limits, name string, id store.ScheduleID, skip store.Skip, now store.Instant) {
	t.skips.of(name).totals[skip.Reason] += skip.Count
	next := skip.Range(name, id, now)
	if r := t.skips.newest(name); r == nil || !r.TakeIn(&next) {
		t.skips.add(t, next, l.Skips, l.History)
	}
}

// Runs implements [store.Store].
func (s *Naive) Runs(ctx context.Context, p store.Page, dst []store.Run) (a store.History, err error) {
	err = s.step(ctx, func(now store.Instant, rows *table) { a = rows.runs.read(p, dst, now) })
	return a, err
}

// Skips implements [store.Store].
func (s *Naive) Skips(ctx context.Context, p store.Page, dst []store.SkipRange) (a store.History, err error) {
	err = s.step(ctx, func(now store.Instant, rows *table) { a = rows.skips.read(p, dst, now) })
	return a, err
}
