package sim

import (
	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// class orders the events of one instant before anything else does.
type class uint8

// events is the queue of what is to happen, in the order (at, class, tie,
// seq): seq numbers the pushes; tie is 0 or, where ties are shuffled, a hash of
// seq, so that the events of one instant and class come in an order drawn anew
// for every run. It is a 4-ary heap of values: a push allocates only where the
// heap outgrows its array.
type events[E any] struct {
	heap    []entry[E]
	seq     uint64
	shuffle bool
	seed    uint64
}

type entry[E any] struct {
	at  store.Instant
	tie uint64 // class in the top byte, the tie below
	seq uint64
	e   E
}

const heapArity = 4

func (a *entry[E]) before(b *entry[E]) bool {
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.tie != b.tie:
		return a.tie < b.tie
	default:
		return a.seq < b.seq
	}
}

func (q *events[E]) len() int { return len(q.heap) }

// next is the instant of the first event; store.None without one.
func (q *events[E]) next() store.Instant {
	if len(q.heap) == 0 {
		return store.None
	}
	return q.heap[0].at
}

// push adds an event. One in the past would come first; the caller sees to it
// that there is none.
func (q *events[E]) push(at store.Instant, c class, e E) {
	q.seq++
	x := entry[E]{at: at, tie: uint64(c) << 56, seq: q.seq, e: e}
	if q.shuffle {
		x.tie |= core.Mix64(q.seed^q.seq) >> 8
	}
	q.insert(x)
}

// insert adds an entry.
func (q *events[E]) insert(x entry[E]) {
	q.heap = append(q.heap, x)
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / heapArity
		if !x.before(&q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = x
}

// pop removes the first event. The queue must not be empty.
func (q *events[E]) pop() (store.Instant, E) {
	first := q.heap[0]
	last := len(q.heap) - 1
	x := q.heap[last]
	q.heap[last] = entry[E]{}
	q.heap = q.heap[:last]
	if last > 0 {
		q.sink(x)
	}
	return first.at, first.e
}

// sink puts x where the hole at the root goes down to.
func (q *events[E]) sink(x entry[E]) {
	i := 0
	for {
		least := heapArity*i + 1
		if least >= len(q.heap) {
			break
		}
		end := min(least+heapArity, len(q.heap))
		for child := least + 1; child < end; child++ {
			if q.heap[child].before(&q.heap[least]) {
				least = child
			}
		}
		if !q.heap[least].before(&x) {
			break
		}
		q.heap[i] = q.heap[least]
		i = least
	}
	q.heap[i] = x
}
