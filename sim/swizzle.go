package sim

import (
	"slices"

	"github.com/tickonce/tickonce/store"
)

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
