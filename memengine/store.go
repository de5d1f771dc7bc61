package memengine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/tickonce/tickonce/store"
)

// Store keeps the rows in memory. It implements [store.Store].
//
// Every write passes one commit point: the clock is read, guards are checked
// and the changed rows staged, a record of them is appended to the journal,
// and the rows change. If the journal refuses, nothing has changed and its
// error is the call's (D2).
//
// A Store is safe for concurrent use.
type Store struct {
	now     func() store.Instant
	limits  store.Limits
	journal Journal // or nil
	longest int64   // record, with its frame, in bytes

	mu    sync.Mutex
	names *btree.BTreeG[*schedule]
	ids   byID[schedule]
	due   dueIndex

	overlap overlapIndex

	queues btree.Map[string, *queue]
	jobs   byID[job]
	spare  []*job // rows to use again

	locks  btree.Map[string, *lease]
	expiry heap[lease]

	runs  history[store.Run]
	skips history[store.SkipRange]

	last  sequences
	c     changes     // of the call that holds mu
	moved []*schedule // the rows of its moves
	probe schedule    // that looks names up for it
	rec   []byte      // its record

	size atomic.Int64 // of the latest snapshot
}

// sequences are the last numbers given.
type sequences struct {
	record   int64
	schedule store.ScheduleID
	job      store.JobID
	term     store.Term
}

var _ store.Store = (*Store)(nil)

func newStore(now func() store.Instant, limits store.Limits, journal Journal) *Store {
	s := &Store{now: now, limits: limits.WithDefaults(), journal: journal, longest: longestRecord}
	s.names = btree.NewBTreeGOptions(
		func(a, b *schedule) bool { return a.Name < b.Name },
		btree.Options{NoLocks: true})
	s.due.rows = &s.ids
	s.overlap.s = s
	s.expiry = heap[lease]{
		before: func(a, b *lease) bool { return a.ExpiresAt < b.ExpiresAt },
		place:  func(l *lease) *int32 { return &l.expiry },
	}
	s.runs = history[store.Run]{about: aboutRun, most: s.limits.Runs, all: s.limits.History}
	s.skips = history[store.SkipRange]{about: aboutSkip, most: s.limits.Skips, all: s.limits.History}
	return s
}

// enter begins a call: it takes the lock and reads the clock once. If the
// context has ended it does neither.
func (s *Store) enter(ctx context.Context) (store.Instant, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	read := false
	defer func() {
		if !read { // the clock panicked
			s.mu.Unlock()
		}
	}()
	now := s.now()
	read = true
	return now, nil
}
