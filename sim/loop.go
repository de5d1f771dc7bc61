package sim

import "github.com/tickonce/tickonce/store"

// loop steps a part of a process that goes by the process's own clock: its runner, or
// a worker of the engine's.
type loop struct {
	node  *node
	steps event // but for its epoch
	epoch int64 // of the event that is to come; any other is void

	wakes    store.Instant // when it is stepped next
	stepping bool          // it is being stepped
	turned   bool          // its clock was, and it sleeps by a reading before that
}

func (l *loop) stepAt(t store.Instant) {
	l.epoch++
	l.wakes = t
	e := l.steps
	e.epoch = l.epoch
	l.node.w.at(t, e)
}

// sleep steps it again when the process's clock shows the instant, as the loops
// of [tickonce.Engine.RunSchedules] and [tickonce.Engine.RunWorker] do: they sleep in
// slices by a timer that a wrong clock does not move, and one millisecond at least
// if no call was made. While the clock runs at the true pace, the steps between make
// no difference, but for the first after a turn that the reading which it sleeps by
// has missed; nor do those while it stands still, of which there is one for each
// slice here, however near the instant is.
func (l *loop) sleep(until store.Instant, called bool) {
	now, clock := l.node.w.now, l.node.clock
	if clock.last().drift == 0 {
		wakes := clock.when(now, until)
		if l.turned {
			wakes, l.turned = min(wakes, now.Add(sliceMS)), false
		}
		l.stepAt(wakes)
		return
	}
	slice := min(int64(until-clock.at(now)), sliceMS)
	switch {
	case slice > 0 && clock.last().pace() == 0:
		slice = sliceMS
	case !called:
		slice = max(slice, 1)
	}
	l.stepAt(now.Add(max(slice, 0)))
}
