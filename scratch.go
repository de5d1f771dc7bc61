package tickonce

import (
	"slices"
	"sync"

	"github.com/tickonce/tickonce/store"
)

// scratch is what a call shares with the store. The compiler cannot tell that
// no store keeps it, so it would be allocated for each call.
type scratch struct {
	jobs   []store.Job
	queue  [1]store.Queue
	settle [1]store.Settle
	held   [1]bool
	batch  store.Batch
	insert [1]store.Insert
	put    [1]store.Put
}

var spare = sync.Pool{New: func() any { return new(scratch) }}

func takeScratch() *scratch { return spare.Get().(*scratch) }

// room is room for n jobs.
func (s *scratch) room(n int) []store.Job {
	s.jobs = slices.Grow(s.jobs[:0], n)[:n]
	return s.jobs
}

// drop gives s back, without what it would keep alive.
func (s *scratch) drop() {
	clear(s.jobs)
	*s = scratch{jobs: s.jobs[:0]}
	spare.Put(s)
}
