package memengine

import (
	"slices"

	"github.com/tickonce/tickonce/store"
)

// Record is what one call of the store has changed, as the log has it (D2): rows
// as they were and as they became. The scheduler's lease is in none (D6).
type Record struct {
	Number int64         // from 1, without a gap
	Op     string        // the call: commit, advance, claim, settle, extend, acquire, release, renew
	Now    store.Instant // the store's reading
	Term   store.Term    // the last that was given, to the scheduler or to another lock
	Bytes  int           // how long it is, with its frame

	Schedules []Change[store.Schedule] // without their Live, which follows from the jobs
	Jobs      []Change[store.Job]
	Queues    []Change[store.Queue]
	Locks     []Change[store.Lease]
	Runs      []store.Run       // for the history, without ids
	Skips     []store.SkipRange // as they were before a range took them in
}

// Change is a row before and after: nil where there was, or is, none.
type Change[T any] struct{ Before, After *T }

// Replay goes through a recording: the records of a log behind a snapshot, or
// behind nothing, in their order (D5). It tells of each after it was read and
// before it is applied; record and rows are tell's only until that returns, and
// to be read alone. The store that it answers has the state that the engine had
// which wrote the log, and no journal; that of d is not used. Its clock stands at
// the last record. Of the history it keeps as much as the default limits do, since
// no record has the engine's.
//
// A log that breaks off, and one that is damaged, are treated as by [Open].
func Replay(d Durable, tell func(*Record)) (*Store, Recovery, error) {
	var now store.Instant
	return restoreStore(func() store.Instant { return now }, store.Limits{}, d.Snapshot, d.Log, nil, func(r *Record) {
		now = r.Now
		tell(r)
	})
}

// record is what the staged changes come to, to be told.
func (s *Store) record(bytes int) *Record {
	c := &s.c
	r := &Record{
		Number: c.last.record, Op: opNames[c.op], Now: c.now, Term: c.last.term, Bytes: bytes, Runs: c.runs, Skips: c.skips,
	}
	for _, row := range c.removed {
		r.Schedules = append(r.Schedules, Change[store.Schedule]{Before: uncounted(row)})
	}
	for i := range c.put {
		change := Change[store.Schedule]{After: c.put[i].next}
		if row := c.put[i].row; row != nil {
			change.Before = uncounted(row)
		}
		r.Schedules = append(r.Schedules, change)
	}
	for _, j := range c.gone {
		r.Jobs = append(r.Jobs, Change[store.Job]{Before: &j.Job})
	}
	for i := range c.turned {
		r.Jobs = append(r.Jobs, Change[store.Job]{Before: &c.turned[i].row.Job, After: &c.turned[i].next})
	}
	for _, j := range c.born {
		r.Jobs = append(r.Jobs, Change[store.Job]{After: &j.Job})
	}
	for _, q := range c.queues {
		change := Change[store.Queue]{After: &q.next}
		if q.used() {
			change.Before = &q.Queue
		}
		r.Queues = append(r.Queues, change)
	}
	for _, lock := range c.dropped {
		if l := s.lease(lock); l != nil {
			r.Locks = append(r.Locks, Change[store.Lease]{Before: &l.Lease})
		}
	}
	for i := range c.granted {
		change := Change[store.Lease]{After: &c.granted[i]}
		if l := s.lease(c.granted[i].Lock); l != nil && !slices.Contains(c.dropped, l.Lock) {
			change.Before = &l.Lease
		}
		r.Locks = append(r.Locks, change)
	}
	return r
}

func uncounted(row *schedule) *store.Schedule {
	before := row.Schedule
	before.Live = store.Live{}
	return &before
}
