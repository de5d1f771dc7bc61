package sim

import (
	"fmt"

	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// asked is what a loop of a process has asked of a store that fails all of its
// calls, in one life of the process.
type asked struct {
	life  int
	since store.Instant
	turns int64 // of the clocks, by then
	pace  int64 // the fastest of its clock, in parts of a million
	calls int64
}

// countCall counts a call that failed in an outage: each loop of a process, its
// runner or a worker, may make one every 5 s, and 5 more (invariant 9): 5 s by
// its clock, if that is fast.
// Whoever sleeps is awake again when a clock is turned, and how often a handler
// calls the store, or somebody settles or beats by hand, is not a loop's to say.
func (w *world) countCall(fault int, n *node, op faultstore.Op) {
	f, state := &w.scenario.Faults[fault], &w.faults[fault]
	byHand := (n.working == nil || n.working.engine == nil) && (op.Method == faultstore.Settle || op.Method == faultstore.Extend)
	if f.Chance != 0 || f.Op != 0 || f.Kind == FaultStoreFull || n == w.operator || n.handling != nil || byHand {
		return
	}
	if state.outages == nil {
		state.outages = make([][]asked, len(w.nodes))
	}
	loops := state.outages[n.index]
	if loops == nil {
		loops = make([]asked, 1+len(n.workers))
		state.outages[n.index] = loops
	}
	o, loop := &loops[0], "its runner"
	if n.working != nil {
		o, loop = &loops[1+n.working.index], n.working.name
	}
	if o.life != n.lives {
		*o = asked{life: n.lives, since: w.now, turns: w.turns, pace: million}
	}
	w.checked[aFailedCall]++
	o.calls++
	o.pace = max(o.pace, n.clock.last().pace())
	lasts := int64(w.now - o.since)
	byClock := lasts/million*o.pace + lasts%million*o.pace/million
	if most := byClock/errorBackoffMS + 5 + w.turns - o.turns; o.calls == most+1 { // or it is told again and again
		w.fail(noSpin, "", fmt.Sprintf("%s: %s made %d calls in an outage of %d ms", n, loop, o.calls, lasts))
	}
}
