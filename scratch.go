package tickonce

import (
	"sync"

	"github.com/tickonce/tickonce/store"
)

// scratch is what a call about one row shares with the store. The compiler
// cannot tell that no store keeps it, so it would be allocated for each call.
type scratch struct {
	job    [1]store.Job
	queue  [1]store.Queue
	settle [1]store.Settle
	held   [1]bool
}

var spare = sync.Pool{New: func() any { return new(scratch) }}

func takeScratch() *scratch { return spare.Get().(*scratch) }

// drop gives s back, without what it would keep alive.
func (s *scratch) drop() {
	*s = scratch{}
	spare.Put(s)
}
