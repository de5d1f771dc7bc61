package sim

import (
	"slices"
	"time"

	"github.com/tickonce/tickonce/store"
)

// wake is when a process may take a step that is due now, in true time: its host
// has throttled it since begin.
func (p Profile) wake(begin, now store.Instant) store.Instant {
	const second, minute, hour = 1000, 60_000, 3_600_000
	since := int64(now - begin)
	switch {
	case p == LowPower:
		return aligned(now, 10*second)
	case p == Laptop:
		return now.Add(max(hour-10*second-since%hour, 0))
	case since < 5*minute:
		return aligned(now, second)
	case since < hour:
		return aligned(now, minute)
	default:
		return store.MaxInstant
	}
}

// aligned is the first multiple of ms from now on.
func aligned(now store.Instant, ms int64) store.Instant {
	return now.Add((ms - int64(now)%ms) % ms)
}

// throttle has the hosts of a fault's processes throttle them, or do so no more.
func (w *world) throttle(fault int, on bool) {
	for _, n := range w.nodes {
		switch {
		case !n.named(w.scenario.Faults[fault].Runner):
		case on:
			n.throttles = append(n.throttles, fault)
		default:
			n.throttles = without(n.throttles, fault)
		}
	}
}

// free is when the process may take its next step.
func (n *node) free() store.Instant {
	at := max(n.pausedUntil, n.w.now)
	for _, i := range n.throttles {
		f := &n.w.scenario.Faults[i]
		begin := n.w.start.Add(f.At.Milliseconds())
		at = max(at, min(f.Profile.wake(begin, n.w.now), begin.Add(f.For.Milliseconds())))
	}
	return at
}

// defers has a step of the process wait until it is free.
func (w *world) defers(n *node, e event, until store.Instant) {
	if !n.paused() {
		for _, i := range n.throttles {
			w.faults[i].effect++
		}
		n.stalled = n.stalled || n.midTick
		if e.kind == workerSteps && n.workers[e.index].epoch == e.epoch {
			w.coverage.sometimes(throttleOutlastsClaim, n.workers[e.index].outlastedBy(until))
		}
	}
	w.at(until, e)
}

// outlastedBy reports whether the worker's claim lapses before the instant, in true
// time, unless the clock is turned.
func (w *worker) outlastedBy(until store.Instant) bool {
	world := w.node.w
	return w.state == works && w.job.Deadline.Before(timeOf(world.shown().Add(int64(until-world.now))))
}

// cutOff is for how long a process is cut off from the store.
type cutOff struct{ from, to store.Instant }

// swizzle draws when each process is cut off and comes back: one after the other
// in the first half of the fault, and in another order in the second.
func (w *world) swizzle(fault int) {
	state, half := &w.faults[fault], w.scenario.Faults[fault].For.Milliseconds()/2
	state.cutOff = make([]cutOff, len(w.nodes))
	cut, back := w.shuffled(len(w.nodes)), w.shuffled(len(w.nodes))
	for i := range w.nodes {
		step := half * int64(i) / int64(len(w.nodes))
		state.cutOff[cut[i]].from = w.now.Add(step)
		state.cutOff[back[i]].to = w.now.Add(half + step)
	}
}

// shuffled draws an order of n things.
func (w *world) shuffled(n int) []int {
	order := make([]int, n)
	for i := range order {
		at := int(w.draws.swizzle.choice(int64(i + 1)))
		order = slices.Insert(order[:i], at, i)
	}
	return order
}

// cuts reports whether the fault fails calls of n now, if it is one that does.
func (s *faultState) cuts(n *node) bool {
	if s.cutOff == nil {
		return true
	}
	if n.index >= len(s.cutOff) {
		return false // the operator
	}
	cut := s.cutOff[n.index]
	return cut.from <= n.w.now && n.w.now < cut.to
}

// longest is how long a fault may be so that it ends by the quiet.
func (f *Fault) longest(quiet time.Duration) time.Duration {
	return (quiet - f.At) / time.Duration(2*max(f.Times, 1)-1)
}

// lastsMS is how long it lasts in all.
func (f *Fault) lastsMS() int64 { return f.For.Milliseconds() * int64(2*max(f.Times, 1)-1) }
