package sim

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// flight is a step of a process that others' events may interrupt: a coroutine
// that waits while a call of it is on its way to the store, or the reply on its
// way back. The process's other steps go on meanwhile.
type flight struct {
	*coroutine
	node   *node
	steps  event
	ended  bool
	began  store.Instant // by the store's clock
	turns  int64         // of all clocks, by then
	intent intent
	owed   uint64
	losses []loss

	// Of the call under way.
	leg             leg
	life            int   // of the process, when it set out
	openings        int   // of the store, then
	thereMS, backMS int64 // how long request and reply take
	orphaned        bool  // its process is gone, or the store that it was sent to
}

// coroutine takes one step after the other, each as a flight of its own: most
// of what a new one costs is that its stack grows.
type coroutine struct {
	step   func()
	waits  func(until store.Instant) bool
	resume func() (until store.Instant, more bool) // None: the step is done
	stop   func()
}

// leg is where a call is, or that a delivery is under way.
type leg uint8

const (
	request leg = iota
	reply
	delivery
)

// errAbandoned ends a step whose process or run has ended: it unwinds to where
// the step set out, since nobody is there to go on with it.
var errAbandoned = errors.New("abandoned")

// takeOff takes a step as a flight.
func (w *world) takeOff(n *node, e event, step func()) {
	f := &flight{coroutine: w.coroutine(), node: n, steps: e, began: w.shown(), turns: w.turns}
	f.step = step
	w.fly(f)
}

// coroutine is one that has no step to take.
func (w *world) coroutine() *coroutine {
	if last := len(w.idle) - 1; last >= 0 {
		c := w.idle[last]
		w.idle = w.idle[:last]
		return c
	}
	c := new(coroutine)
	c.resume, c.stop = iter.Pull(func(wait func(store.Instant) bool) {
		defer func() {
			if p := recover(); p != nil && p != errAbandoned {
				w.panicked(p)
			}
		}()
		c.waits = wait
		for more := true; more; more = wait(store.None) {
			c.step()
		}
	})
	return c
}

// fly lets the flight go on to its next wait, or to its end.
func (w *world) fly(f *flight) {
	w.acting, w.flying, w.intent, w.owed, w.losses = f.node, f, f.intent, f.owed, f.losses
	until, more := f.resume()
	w.acting, w.flying, f.intent, f.owed, f.losses = nil, nil, w.intent, w.owed, w.losses
	w.intent, w.owed, w.losses = intent{}, 0, nil
	switch {
	case !more: // it was abandoned, or has panicked
		return
	case until == store.None:
		w.idle = append(w.idle, f.coroutine)
		return
	}
	i := 0
	for i < len(w.flights) && w.flights[i] != nil {
		i++
	}
	if i == len(w.flights) {
		w.flights = append(w.flights, nil)
	}
	w.flights[i] = f
	w.at(until, event{kind: callMoves, node: int32(f.node.index), index: int32(i)})
	w.strike(f.node)
}

// move brings a call to the store, or a reply to its process, where it waits
// while that is paused.
func (w *world) move(e event) {
	f := w.flights[e.index]
	if until := f.node.free(); f.leg != request && until > w.now && !f.cutOff() {
		w.defers(f.node, e, until)
		return
	}
	w.flights[e.index] = nil
	if !f.ended {
		w.fly(f)
	}
}

// end abandons a step that waits.
func (f *flight) end() {
	w := f.node.w
	flying := w.flying
	f.ended, w.flying = true, f
	f.stop()
	w.flying = flying
}

// abandon unwinds the step, and again wherever somebody on the way recovers.
func (f *flight) abandon() {
	f.ended = true
	panic(errAbandoned)
}

// flights are the steps of n that wait.
func (n *node) flights() iter.Seq[*flight] {
	return func(yield func(*flight) bool) {
		for _, f := range n.w.flights {
			if f != nil && f.node == n && !f.ended && !f.cutOff() && !yield(f) {
				return
			}
		}
	}
}

// waits reports whether a call of n is on this leg of its way.
func (n *node) waits(on leg) bool {
	for f := range n.flights() {
		if f.leg == on {
			return true
		}
	}
	return false
}

// ground ends all flights and handlers in Go, and their coroutines, at the end
// of the run.
func (w *world) ground() {
	for _, n := range w.nodes {
		for _, worker := range n.workers {
			for _, a := range worker.working() {
				a.call.end()
			}
		}
	}
	for _, f := range w.flights {
		if f != nil {
			f.end()
		}
	}
	for _, c := range w.idle {
		c.stop()
	}
}

// wait lets others' events happen until the instant.
func (f *flight) wait(leg leg, until store.Instant) {
	working, handling := f.node.working, f.node.handling
	f.leg, f.node.working, f.node.handling = leg, nil, nil
	if !f.waits(until) {
		f.abandon()
	}
	f.node.working, f.node.handling = working, handling
}

// cutOff reports whether the process that set out is gone.
func (f *flight) cutOff() bool { return !f.node.up || f.node.lives != f.life }

// sends has a call of n set out, if its step is a flight: it comes to the store
// later if that is slow, and while a registration is being made others take
// some of their steps of this instant.
func (n *node) sends(op faultstore.Op) {
	w, f := n.w, n.w.flying
	if f == nil {
		return
	}
	if f.ended {
		f.abandon()
	}
	f.life, f.openings = n.lives, w.openings
	if op.Method == faultstore.Commit {
		for range w.roundsBefore(n) {
			f.wait(request, w.now)
		}
	}
	if f.thereMS, f.backMS = w.travel(n, op); f.thereMS > 0 {
		f.wait(request, w.now.Add(f.thereMS))
	}
	f.orphaned = f.cutOff() || !w.truth.open || f.openings != w.openings
}

// roundsBefore is how many rounds of others' steps of its instant go before a
// write of n, which is one of an operation that reads and then writes. A process
// still stands at the point of an edit if there is none.
func (w *world) roundsBefore(n *node) int64 {
	const most = 3
	edits := n == w.operator
	switch {
	case edits && !w.queue.shuffle:
		return 0
	case edits && w.scenario.Faults[w.edits[0]].Point != Anywhere:
		return w.draws.interleave.choice(2)
	case w.queue.shuffle:
		return w.draws.interleave.choice(most + 1)
	default:
		return 1
	}
}

// read is between which readings of the store's clock the operation under way
// that writes at now has read what it rests on: a repair at one, any other
// since it began, and at whatever a clock showed that was turned meanwhile.
func (w *world) read(now store.Instant) (from, to store.Instant) {
	switch f := w.flying; {
	case w.intent == intent{} && !w.orphaned():
		return w.acting.inspectedAt, w.acting.inspectedAt
	case w.orphaned() || f != nil && f.turns != w.turns:
		return store.MinInstant, store.MaxInstant
	case f != nil:
		return f.began, now
	default:
		return now, now
	}
}

// orphaned reports whether the call under way is one of a process that is gone,
// or comes to a store that is.
func (w *world) orphaned() bool { return w.flying != nil && w.flying.orphaned }

// fateOfOrphan decides what becomes of a call that comes to the store when its
// process, or the store that it was sent to, is gone.
func (f *flight) fateOfOrphan() faultstore.Verdict {
	w := f.node.w
	applied := w.truth.open && w.journal.torn == nil && f.openings == w.openings && w.draws.orphan.choice(2) == 1
	w.coverage.sometimes(orphanApplied, applied)
	if applied {
		return faultstore.LoseReply
	}
	return faultstore.LoseRequest
}

// receives has the reply come to n. Nobody is there to take it if the process
// is gone.
func (n *node) receives(faultstore.Op) {
	n.w.checked[anAnswer]++
	if len(n.w.journal.faults) > 0 || n.w.journal.failed {
		n.w.journal.receives()
	}
	f := n.w.flying
	if f == nil {
		return
	}
	if !f.cutOff() && f.backMS > 0 {
		f.wait(reply, n.w.now.Add(f.backMS))
	}
	if f.cutOff() {
		f.abandon()
	}
}

// travel draws how long a call of n takes to the store and back, by the faults
// that are on. What is on its way when the fault ends arrives then.
func (w *world) travel(n *node, op faultstore.Op) (there, back int64) {
	for _, i := range w.slowFaults {
		f := &w.scenario.Faults[i]
		if !f.concernsCall(n, op) || f.Chance != 0 && !w.draws.slowCall.happens(f.Chance) {
			continue
		}
		w.faults[i].effect++
		left := int64(w.start.Add((f.At + f.For).Milliseconds()) - w.now)
		takes := min(w.draws.slowTakes.within(f.Takes).Milliseconds(), left)
		w.tellOfCall(n, op, i, Event{Kind: EventCallDelayed, By: time.Duration(takes) * time.Millisecond})
		switch f.Late {
		case LateRequest:
			return takes, 0
		case LateReply:
			return 0, takes
		}
		there = w.draws.slowRequest.choice(takes + 1)
		return there, takes - there
	}
	return 0, 0
}

// concernsCall reports whether the fault is one of this call of n.
func (f *Fault) concernsCall(n *node, op faultstore.Op) bool {
	return n.named(f.Runner) && (f.Op == 0 || f.Op == Op(op.Method)+1) && (f.Kind != FaultStoreFull || writes(op))
}

// writes reports whether the call would leave a row more, or a longer one.
func writes(op faultstore.Op) bool {
	switch op.Method {
	case faultstore.Advance, faultstore.Claim, faultstore.Settle, faultstore.Extend, faultstore.Acquire, faultstore.Commit:
		return true
	default:
		return false
	}
}

// panicked notes that the engine panicked, which ends the run. The deferred
// function that recovered calls it.
func (w *world) panicked(p any) {
	w.broken = true
	w.fail(panicked, "", fmt.Sprintf("%v, in %s; seed %d", p, panickedIn(), w.scenario.Engine.Seed))
}
