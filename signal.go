package tickonce

import (
	"sync"
	"sync/atomic"

	"github.com/tickonce/tickonce/store"
)

// signal wakes those of this engine who wait for work: the runners, when a
// schedule may have become due sooner (L8).
type signal struct {
	mu    sync.Mutex
	count int64
	wait  chan struct{}
}

// raise wakes whoever waits.
func (s *signal) raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if s.wait != nil {
		close(s.wait)
		s.wait = nil
	}
}

// seen is how often the signal was raised.
func (s *signal) seen() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// next is closed at the next raise.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wait == nil {
		s.wait = make(chan struct{})
	}
	return s.wait
}

// queueSignals are the signals of the queues that have workers, each raised
// when the queue may have got a job to claim.
type queueSignals struct {
	workers atomic.Int64 // of all queues: without one there is nobody to wake
	mu      sync.Mutex
	byName  map[string]*queueSignal
}

type queueSignal struct {
	signal
	workers int
}

// join returns the signal of the queue to one more worker.
func (q *queueSignals) join(queue string) *signal {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.byName[queue]
	if s == nil {
		if q.byName == nil {
			q.byName = map[string]*queueSignal{}
		}
		s = &queueSignal{}
		q.byName[queue] = s
	}
	s.workers++
	q.workers.Add(1)
	return &s.signal
}

// leave takes the signal back from a worker.
func (q *queueSignals) leave(queue string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.workers.Add(-1)
	if s := q.byName[queue]; s.workers > 1 {
		s.workers--
	} else {
		delete(q.byName, queue)
	}
}

// raise wakes the queue's workers.
func (q *queueSignals) raise(queue string) {
	if q.workers.Load() == 0 {
		return
	}
	q.mu.Lock()
	s := q.byName[queue]
	q.mu.Unlock()
	if s != nil {
		s.raise()
	}
}

// raiseAll wakes the workers of the queues that jobs are inserted into.
func (e *Engine) raiseAll(inserts []store.Insert) {
	for i := range inserts {
		e.queues.raise(inserts[i].Queue)
	}
}
