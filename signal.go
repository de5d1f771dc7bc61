package tickonce

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tickonce/tickonce/store"
)

// signal wakes those of this engine who wait for something: its runners, when a
// schedule may have become due sooner (L8), the workers of a queue, and who
// reads its details.
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
	ends    atomic.Int64 // claims of schedules' jobs that this engine may have ended
	await   atomic.Bool  // there are awaiting ones
	mu      sync.Mutex
	byName  map[string]*queueSignal

	awaiting []*queueSignal // an end: their queues have jobs that wait to be alone (X9)
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
	s := q.byName[queue]
	if s.workers--; s.workers == 0 {
		delete(q.byName, queue)
		q.awaiting = slices.DeleteFunc(q.awaiting, func(other *queueSignal) bool { return other == s })
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

// raiseEach wakes the workers of all queues.
func (q *queueSignals) raiseEach() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(q.byName)) {
		q.byName[name].raise()
	}
}

// awaitEnd has the queue's workers woken at the next end of a claim, or now if
// there were more than that many by now.
func (q *queueSignals) awaitEnd(queue string, ends int64) {
	q.mu.Lock()
	if s := q.byName[queue]; !slices.Contains(q.awaiting, s) {
		q.awaiting = append(q.awaiting, s)
	}
	q.await.Store(true)
	q.mu.Unlock()
	if q.ends.Load() != ends {
		q.wakeAwaiting()
	}
}

// ended tells that the claim of a schedule's job may have ended, so that
// another one may have its turn, in whatever queue.
func (q *queueSignals) ended() {
	q.ends.Add(1)
	if q.await.Load() {
		q.wakeAwaiting()
	}
}

func (q *queueSignals) wakeAwaiting() {
	q.mu.Lock()
	woken := q.awaiting
	q.awaiting = nil
	q.await.Store(false)
	q.mu.Unlock()
	for _, s := range woken {
		s.raise()
	}
}

// raiseAll wakes the workers of the queues that jobs are inserted into.
func (e *Engine) raiseAll(inserts []store.Insert) {
	for i := range inserts {
		e.queues.raise(inserts[i].Queue)
	}
}

// WakeRunners has the runners of this engine look for schedules at once, as they
// do after a write of its own. It is for a host that knows of the writes of other
// engines to the store sooner than [Config.Poll] finds them, as pgengine's Listen
// does. It makes no call, and one that was for nothing costs a renewal and a look.
// It is safe for concurrent use.
func (e *Engine) WakeRunners() { e.woken.raise() }

// WakeWorkers is [Engine.WakeRunners] for the workers of the queues, by the names
// that events have, or without one for those of all. Those of a queue that has
// none here are nobody's concern.
func (e *Engine) WakeWorkers(queues ...string) {
	if len(queues) == 0 {
		e.queues.raiseEach()
	}
	for _, queue := range queues {
		e.queues.raise(queue)
	}
}
