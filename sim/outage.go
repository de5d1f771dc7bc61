package sim

import (
	"fmt"

	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// asked is what a life of a process has asked of a store that fails all of its
// calls.
type asked struct {
	life  int
	since store.Instant
	turns int64 // of the clocks, by then
	pace  int64 // the fastest of its clock, in parts of a million
	calls int64
}

// countCall counts a call that failed in an outage: each loop of the process, its
// runner and its workers, may make one every 5 s, and 5 more (invariant 9): 5 s by
// its clock, if that is fast.
// Whoever sleeps is awake again when a clock is turned, and how often a handler
// settles or beats is not a loop's to say.
func (w *world) countCall(fault int, n *node, op faultstore.Op) {
	f, state := &w.scenario.Faults[fault], &w.faults[fault]
	if f.Chance != 0 || f.Op != 0 || n == w.operator || op.Method == faultstore.Settle || op.Method == faultstore.Extend {
		return
	}
	if state.outages == nil {
		state.outages = make([]asked, len(w.nodes))
	}
	o := &state.outages[n.index]
	if o.life != n.lives {
		*o = asked{life: n.lives, since: w.now, turns: w.turns, pace: million}
	}
	w.checked[aFailedCall]++
	o.calls++
	o.pace = max(o.pace, n.clock.last().pace())
	loops := int64(1 + len(n.workers))
	lasts := int64(w.now - o.since)
	byClock := lasts/million*o.pace + lasts%million*o.pace/million
	if most := (byClock/errorBackoffMS + 5 + w.turns - o.turns) * loops; o.calls == most+1 { // or it is told again and again
		w.fail(noSpin, "", fmt.Sprintf("%s made %d calls in an outage of %d ms, with %d loops", n, o.calls, w.now-o.since, loops))
	}
}
