package sim

import "github.com/tickonce/tickonce/store"

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
		if e.kind == workerSteps && n.workers[e.index].epoch == e.epoch || e.kind == handlerSteps && n.attempt(e) != nil {
			for _, a := range n.workers[e.index].inHand() {
				w.coverage.sometimes(throttleOutlastsClaim, a.outlastedBy(until))
			}
		}
	}
	w.at(until, e)
}
