package memengine

import (
	"unicode/utf8"

	"github.com/tickonce/tickonce/store"
)

// The history in snapshots and records. A record has the runs and the skips of
// its call, without ids, since to remember them again gives the same history.

func appendRun(b []byte, r *store.Run, id store.EntryID) []byte {
	b = appendUint(b, uint64(id))
	b = appendString(b, r.Schedule)
	b = appendUint(b, uint64(r.ScheduleID))
	b = appendUint(b, uint64(r.Job))
	b = appendInstant(b, r.FireAt)
	b = appendInstant(b, r.FiredAt)
	b = appendInstant(b, r.StartedAt)
	b = appendInstant(b, r.EndedAt)
	b = appendInt(b, int64(r.Attempt))
	b = append(b, byte(r.Ended), byte(r.To))
	return appendString(b, r.Error)
}

func (d *decoder) run() store.Run {
	return store.Run{
		ID:         store.EntryID(d.sequence()),
		Schedule:   d.string(),
		ScheduleID: store.ScheduleID(d.count()),
		Job:        store.JobID(d.id()),
		FireAt:     d.instant(),
		FiredAt:    d.instant(),
		StartedAt:  d.instant(),
		EndedAt:    d.instant(),
		Attempt:    d.int32(),
		Ended:      store.Execution(d.byte()),
		To:         store.State(d.byte()),
		Error:      d.string(),
	}
}

func appendSkip(b []byte, r *store.SkipRange, id store.EntryID) []byte {
	b = appendUint(b, uint64(id))
	b = appendString(b, r.Schedule)
	b = appendUint(b, uint64(r.ScheduleID))
	b = append(b, byte(r.Reason))
	b = appendInt(b, r.EveryMS)
	b = appendInstant(b, r.First)
	b = appendInstant(b, r.Last)
	b = appendInt(b, r.Count)
	b = appendInstant(b, r.From)
	return appendInstant(b, r.Until)
}

func (d *decoder) skip() store.SkipRange {
	return store.SkipRange{
		ID:         store.EntryID(d.sequence()),
		Schedule:   d.string(),
		ScheduleID: store.ScheduleID(d.count()),
		Reason:     store.SkipReason(d.byte()),
		EveryMS:    d.int(),
		First:      d.instant(),
		Last:       d.instant(),
		Count:      d.int(),
		From:       d.instant(),
		Until:      d.instant(),
	}
}

// invalidRun says which rule of its own the entry breaks, or "".
func invalidRun(r *store.Run) string {
	switch {
	case r.Ended < store.OK || r.Ended > store.Lost:
		return "outcome"
	case r.To > store.Done:
		return "state"
	case r.Attempt < 1:
		return "attempt"
	case !r.FireAt.Valid() && r.FireAt != store.None:
		return "boundary"
	case !r.FiredAt.Valid() || !r.StartedAt.Valid() || !r.EndedAt.Valid():
		return "instant"
	case !utf8.ValidString(r.Error):
		return "error"
	default:
		return ""
	}
}

// invalidSkip says which rule of its own the entry breaks, or "".
func invalidSkip(r *store.SkipRange) string {
	switch {
	case r.Reason < store.SkipPause || r.Reason > store.SkipBefore:
		return "reason"
	case !r.First.Valid() || !r.Last.Valid() || r.EveryMS < 1 || r.Count < 1 ||
		r.Last < r.First || int64(r.Last-r.First)/r.EveryMS != r.Count-1 || int64(r.Last-r.First)%r.EveryMS != 0:
		return "range"
	case !r.From.Valid() || !r.Until.Valid():
		return "instant"
	default:
		return ""
	}
}

// savedPast is what a snapshot keeps of one name, by its present incarnation.
type savedPast struct {
	id             store.ScheduleID
	since, earlier store.Instant
	totals         [store.HistoryTotals]int64
}

// appendSince makes MinInstant, the commonest, 0.
func appendSince(b []byte, t store.Instant) []byte { return appendUint(b, uint64(t-store.MinInstant)) }

func (d *decoder) since() store.Instant {
	at := d.at
	t := store.Instant(d.count()) + store.MinInstant
	if !t.Valid() {
		d.fail(at, "instant of the history out of range")
	}
	return t
}

func appendPast(b []byte, p *savedPast) []byte {
	b = appendUint(b, uint64(p.id))
	b = appendSince(b, p.since)
	b = appendSince(b, p.earlier)
	for _, n := range p.totals {
		b = appendUint(b, uint64(n))
	}
	return b
}

// savedHistory is a copy of a history.
type savedHistory[E any] struct {
	last    store.EntryID
	names   []savedPast
	ids     []store.EntryID
	entries []E
}

// save copies the history, while its store is locked.
func (h *history[E]) save() savedHistory[E] {
	saved := savedHistory[E]{last: h.last, names: make([]savedPast, 0, h.names.n)}
	for p := range h.names.from(0) {
		saved.names = append(saved.names, savedPast{p.id, p.since, p.earlier, p.totals})
	}
	for e := h.oldest; e != nil; e = e.next {
		saved.ids, saved.entries = append(saved.ids, e.id), append(saved.entries, e.row)
	}
	return saved
}

func appendHistory[E any](b []byte, h savedHistory[E], one func([]byte, *E, store.EntryID) []byte) []byte {
	b = appendUint(b, uint64(h.last))
	b = appendRows(b, h.names, appendPast)
	b = appendUint(b, uint64(len(h.entries)))
	for i := range h.entries {
		b = one(b, &h.entries[i], h.ids[i])
	}
	return b
}

// loadHistory fills an empty history, whose schedules are there. An entry that
// breaks a rule of its own is left out.
func loadHistory[E any](s *Store, h *history[E], d *decoder, r *Recovery, one func() (row E, id store.EntryID, name, broken string)) {
	last := store.EntryID(d.sequence())
	each(d, func() { h.loadPast(s, d) })
	each(d, func() {
		at := d.at
		row, id, name, broken := one()
		if d.err != nil {
			return
		}
		schedule := s.named(name)
		switch {
		case id <= h.last:
			d.fail(at, "history out of order")
		case id > last:
			d.fail(at, "entry of the history above its sequence")
		case schedule == nil || h.names.find(int64(schedule.ID)) == nil:
			d.fail(at, "history of an unknown schedule")
		case broken != "":
			r.Invalid++
		default:
			h.add(h.of(schedule.ID), id, &row)
		}
	})
	h.last = last
}

func (h *history[E]) loadPast(s *Store, d *decoder) {
	at := d.at
	id, since, earlier := store.ScheduleID(d.id()), d.since(), d.since()
	var totals [store.HistoryTotals]int64
	for i := range totals {
		totals[i] = d.count()
	}
	switch {
	case d.err != nil:
	case h.names.n > 0 && int64(id) <= h.names.lastID():
		d.fail(at, "history out of order")
	case s.ids.find(int64(id)) == nil:
		d.fail(at, "history of an unknown schedule")
	default:
		p := h.of(id)
		p.since, p.earlier, p.totals = since, earlier, totals
	}
}

func (d *decoder) savedRun() (row store.Run, id store.EntryID, name, broken string) {
	row = d.run()
	id, row.ID = row.ID, 0
	return row, id, row.Schedule, invalidRun(&row)
}

func (d *decoder) savedSkip() (row store.SkipRange, id store.EntryID, name, broken string) {
	row = d.skip()
	id, row.ID = row.ID, 0
	return row, id, row.Schedule, invalidSkip(&row)
}

// unknown notes that version 1 wrote the row and kept no history: its
// boundaries up to the latest that may have passed may have been skipped, and
// may have been those of an earlier incarnation.
func (s *Store) unknown(row *store.Schedule) {
	p := s.skips.of(row.ID)
	p.since = row.SetAt.Add(1)
	p.earlier = p.since
}
