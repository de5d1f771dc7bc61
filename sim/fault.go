package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// String is the kind's words in a scenario file.
func (k FaultKind) String() string {
	if k > 0 && int(k) < len(faultRules) {
		return faultRules[k].words
	}
	return fmt.Sprintf("fault-%d", uint8(k))
}

// MarshalText makes the kind its words in JSON.
func (k FaultKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the kind's words.
func (k *FaultKind) UnmarshalText(text []byte) error {
	i := slices.Index(faultWords, string(text))
	if i < 0 {
		return fmt.Errorf("found the fault %s, want %s", shown(string(text)), oneOf(faultWords))
	}
	*k = FaultDown + FaultKind(i)
	return nil
}

// longest is how long a fault may be so that it ends by the quiet.
func (f *Fault) longest(quiet time.Duration) time.Duration {
	return (quiet - f.At) / time.Duration(2*max(f.Times, 1)-1)
}

// lastsMS is how long it lasts in all.
func (f *Fault) lastsMS() int64 { return f.For.Milliseconds() * int64(2*max(f.Times, 1)-1) }

// faultState is what a fault of the scenario has done so far.
type faultState struct {
	effect  int64
	cost    Cost
	outages [][]asked            // of an outage of the store, of the loops of each process
	ahead   bool                 // of a strobe: the clock
	before  *store.Schedule      // of FaultTamper: what the row was that is spoilt
	after   *store.Schedule      // and what it became
	over    bool                 // it has ended
	struck  int                  // of FaultRestartStorm: how often
	poison  map[store.JobID]bool // of FaultPoison: which jobs it was drawn for, and whether it struck
	cutOff  []cutOff             // of FaultSwizzle, for each process
	told    int64                // the event of its begin, or its end
}

// strikeRounds bounds how many rounds of the steps of its instant go before a
// fault that strikes at a point in time. A tick takes three steps after the
// lease is there, so the fault may strike between any two of them.
const strikeRounds = 4

func (w *world) planFaults() {
	w.quiet = w.start
	for i := range w.scenario.Faults {
		f := &w.scenario.Faults[i]
		from := w.start.Add(f.At.Milliseconds())
		begins := event{kind: faultBegins, index: int32(i)}
		switch f.Kind {
		case FaultDown, FaultCrash, FaultRestartStorm:
			w.disk.kept = w.disk.kept || f.Runner == 0
		case FaultJournalErrors:
			w.disk.kept = true
		case FaultStaleRead:
			w.truth.past = make([]past, len(w.truth.schedules))
		}
		switch f.Kind {
		case FaultCrash, FaultRestartStorm, FaultClockJump, FaultPause, FaultTamper, FaultLostRow,
			FaultOverload, FaultEditAdd, FaultEditChange, FaultEditPause, FaultEditResume, FaultEditRemove, FaultEditRename,
			FaultEditPolicies, FaultEditTrigger:
			if f.Point == Anywhere {
				begins.epoch = w.draws.strike.choice(strikeRounds)
			}
		}
		w.at(from, begins)
		w.quiet = max(w.quiet, from.Add(f.lastsMS()))
	}
	if w.scenario.QuietAfter > 0 {
		w.quiet = w.start.Add(w.scenario.QuietAfter.Milliseconds())
	}
}

// strike lets the faults strike that wait until n stands where it stands now.
func (w *world) strike(n *node) {
	if len(w.armed) == 0 || !n.midTick && !n.waits(request) && !n.waits(reply) { // as it mostly is
		return
	}
	w.armed = slices.DeleteFunc(w.armed, func(i int) bool {
		f := &w.scenario.Faults[i]
		if !n.named(f.Runner) || !n.stands(f.Point) {
			return false
		}
		w.at(w.now, event{kind: faultBegins, index: int32(i)})
		return true
	})
}

// stands reports whether a process that the fault may strike stands at its
// point.
func (w *world) stands(f *Fault) bool {
	return f.Point == Anywhere || slices.ContainsFunc(w.nodes, func(n *node) bool {
		return n.named(f.Runner) && n.stands(f.Point)
	})
}

// stands reports whether the process stands at the point.
func (n *node) stands(at Point) bool {
	switch at {
	case MidRequest:
		return n.waits(request)
	case MidReply:
		return n.waits(reply)
	default:
		return n.midTick
	}
}

// tooLate reports whether a fault that waited for its point would last for too
// long; if it would not, the quiet begins no sooner than it ends.
func (w *world) tooLate(f *Fault) bool {
	end := w.now.Add(f.For.Milliseconds())
	if f.Point == Anywhere || end <= w.quiet {
		return false
	}
	if w.scenario.QuietAfter > 0 || end > w.end {
		return true
	}
	w.quiet = end
	return false
}

func (w *world) beginFault(i int) {
	f := &w.scenario.Faults[i]
	switch {
	case w.tooLate(f):
		return
	case !w.stands(f):
		w.armed = append(w.armed, i)
		return
	}
	w.digest.Int(tagFault, int64(i))
	w.tellOfFault(i, EventFaultBegan)
	switch f.Kind {
	case FaultDown:
		w.faults[i].effect++
		w.beginAbsence(i)
		w.stop(f.Runner, true, FromJournal)
	case FaultCrash, FaultRestartStorm:
		w.faults[i].effect++
		w.beginAbsence(i)
		restart := w.restart(f)
		if restart == FromSnapshot || restart == FromNothing {
			w.forgot = &w.faults[i].cost
		}
		w.stop(f.Runner, false, restart)
	case FaultClockJump:
		w.faults[i].effect++
		w.turn(i, f.By.Milliseconds(), 0)
		if f.For == 0 {
			return
		}
	case FaultPause:
		w.beginAbsence(i)
		for _, n := range w.nodes {
			if n.up && n.named(f.Runner) {
				w.faults[i].effect++
				n.pause(w.now.Add(f.For.Milliseconds()))
			}
		}
	case FaultThrottle:
		w.beginAbsence(i)
		w.throttle(i, true)
	case FaultClockDrift, FaultClockFreeze:
		w.faults[i].effect++
		w.turn(i, 0, f.driftPPM())
	case FaultClockStrobe:
		w.strobe(i)
	case FaultSwizzle:
		w.swizzle(i)
		w.storeFaults = append(w.storeFaults, i)
	case FaultStoreErrors, FaultStoreFull:
		w.storeFaults = append(w.storeFaults, i)
	case FaultStoreSlow:
		w.slowFaults = append(w.slowFaults, i)
	case FaultJournalErrors:
		w.journal.faults = append(w.journal.faults, i)
	case FaultStaleRead, FaultRepeatedRow:
		w.readFaults = append(w.readFaults, i)
	case FaultHandlerSlow, FaultHandlerFails, FaultHandlerPanics, FaultHandlerHangs, FaultPoison, FaultHandlerSpawns:
		w.handlerFaults = append(w.handlerFaults, i)
	case FaultLateAck, FaultDuplicateAck, FaultLostAck:
		w.ackFaults = append(w.ackFaults, i)
	case FaultTamper, FaultLostRow:
		w.tamper(i)
		if f.For == 0 {
			return
		}
	case FaultOverload, FaultEditAdd, FaultEditChange, FaultEditPause, FaultEditResume, FaultEditRemove, FaultEditRename,
		FaultEditPolicies, FaultEditTrigger:
		w.beginEdit(i)
		return
	}
	w.at(w.now.Add(f.For.Milliseconds()), event{kind: faultEnds, index: int32(i)})
}

func (w *world) endFault(i int) {
	f := &w.scenario.Faults[i]
	w.digest.Int(tagFault, ^int64(i))
	w.tellOfFault(i, EventFaultEnded)
	switch f.Kind {
	case FaultDown, FaultCrash, FaultRestartStorm:
		w.comeBack(f.Runner)
		if w.faults[i].struck++; w.faults[i].struck < f.Times {
			w.at(w.now.Add(f.For.Milliseconds()), event{kind: faultBegins, index: int32(i)})
		}
	case FaultThrottle:
		w.throttle(i, false)
	case FaultClockJump:
		w.turn(i, -f.By.Milliseconds(), 0)
	case FaultClockDrift, FaultClockFreeze:
		w.turn(i, 0, -f.driftPPM())
	case FaultClockStrobe:
		w.faults[i].over = true
		w.endStrobe(i)
	case FaultStoreErrors, FaultStoreFull, FaultSwizzle:
		w.storeFaults = without(w.storeFaults, i)
	case FaultStoreSlow:
		w.slowFaults = without(w.slowFaults, i)
	case FaultJournalErrors:
		w.journal.end(i)
	case FaultStaleRead, FaultRepeatedRow:
		w.readFaults = without(w.readFaults, i)
	case FaultHandlerSlow, FaultHandlerFails, FaultHandlerPanics, FaultHandlerHangs, FaultPoison, FaultHandlerSpawns:
		w.handlerFaults = without(w.handlerFaults, i)
	case FaultLateAck, FaultDuplicateAck, FaultLostAck:
		w.ackFaults = without(w.ackFaults, i)
	case FaultTamper, FaultLostRow:
		w.faults[i].over = true
		w.mend(i)
	}
}

func without(list []int, i int) []int {
	at := slices.Index(list, i)
	return slices.Delete(list, at, at+1)
}

// stop takes one process away, or all of them and the store with them.
func (w *world) stop(runner int, goodOrder bool, restart Restart) {
	for _, n := range w.nodes {
		if n.named(runner) {
			if n.up {
				n.stop(goodOrder, runner != 0)
			}
			n.epoch++ // it does not start now, either
		}
	}
	if runner == 0 {
		w.storeAway++
		w.close(restart)
	} else {
		w.nodes[runner-1].away++
	}
}

// comeBack brings back what no other fault keeps away.
func (w *world) comeBack(runner int) {
	if runner == 0 {
		w.storeAway--
	} else {
		w.nodes[runner-1].away--
	}
	if w.storeAway > 0 {
		return
	}
	if !w.truth.open {
		w.open()
	}
	for _, n := range w.nodes {
		if n.leaving && n.away == 0 {
			n.end()
		}
		if !n.up && n.away == 0 {
			n.cause = w.causes.fault
			n.startAt(w.now)
		}
	}
}

// clockOf is the clock that a fault is about: of the process that it names, or
// the store's, which a single process shares.
func (w *world) clockOf(f *Fault) *timeline {
	if f.Runner == 0 {
		return &w.clock
	}
	return w.nodes[f.Runner-1].clock
}

// turn moves a fault's clock, and makes it run faster by parts per million.
// Whoever sleeps by it notices at the end of its slice; a worker sleeps by the
// store's.
func (w *world) turn(fault int, ms, ppm int64) {
	clock := w.clockOf(&w.scenario.Faults[fault])
	before := clock.at(w.now)
	w.turns++
	clock.turn(w.now, ms, ppm)
	ofStore := clock == &w.clock
	turned := w.tell(Event{
		Kind: EventClockTurned, Cause: w.faults[fault].told, Process: w.scenario.Faults[fault].Runner,
		By: time.Duration(clock.at(w.now)-w.now) * time.Millisecond, Drift: clock.last().drift,
	})
	if ofStore {
		w.jumped, w.jumpedAt = &w.faults[fault].cost, w.now
		w.coverage.sometimes(clockBackOverBoundary, w.truth.firedWithin(w.shown(), before))
	}
	for _, n := range w.nodes {
		if ofStore || n.clock == clock {
			n.disturbed(turned)
		}
		if n.clock == clock && n.runner != nil {
			n.loop.turned = n.loop.turned || n.midTick || n.loop.stepping
			if !n.loop.stepping {
				n.loop.stepAt(min(n.loop.wakes, w.noticed()))
			}
		}
		for _, worker := range n.workers {
			switch {
			case worker.engine == nil && ofStore:
				worker.wake(w.noticed())
			case worker.engine != nil && n.clock == clock && !worker.stepping:
				worker.stepAt(min(worker.wakes, w.noticed()))
			}
		}
	}
}

// driftPPM is by how much faster the fault makes its clock.
func (f *Fault) driftPPM() int64 {
	if f.Kind == FaultClockFreeze {
		return frozen
	}
	return f.Drift
}

// strobe moves a fault's clock forth and back, at its begin, each second, and
// back at its end.
func (w *world) strobe(fault int) {
	f, state := &w.scenario.Faults[fault], &w.faults[fault]
	by := f.By.Milliseconds()
	if state.ahead {
		by = -by
	}
	state.ahead = !state.ahead
	state.effect++
	w.turn(fault, by, 0)
	w.at(w.now.Add(sliceMS), event{kind: clockStrobes, index: int32(fault)})
}

// endStrobe leaves the clock as it would be without the fault.
func (w *world) endStrobe(fault int) {
	if state := &w.faults[fault]; state.ahead {
		state.ahead = false
		w.turn(fault, -w.scenario.Faults[fault].By.Milliseconds(), 0)
	}
}

// noticed draws when a sleeper notices that the clock jumped now.
func (w *world) noticed() store.Instant { return w.now.Add(w.draws.slice.choice(sliceMS + 1)) }

// loseCall decides by the store faults that are on what becomes of a call.
func (w *world) loseCall(n *node, op faultstore.Op) faultstore.Verdict {
	for _, i := range w.storeFaults {
		f := &w.scenario.Faults[i]
		if !f.concernsCall(n, op) || !w.faults[i].cuts(n) || f.Chance != 0 && !w.draws.storeFault.happens(f.Chance) {
			continue
		}
		w.faults[i].effect++
		w.countCall(i, n, op)
		applied := f.Applied == AppliedYes || f.Applied == AppliedUnknown && w.draws.storeApplied.choice(2) == 1
		w.coverage.sometimes(unknownApplied, applied)
		w.coverage.sometimes(unknownNotApplied, !applied)
		w.coverage.sometimes(storeFull, f.Kind == FaultStoreFull)
		if applied {
			w.tellOfCall(n, op, i, Event{Kind: EventCallLost, Reason: "reply"})
			return faultstore.LoseReply
		}
		w.tellOfCall(n, op, i, Event{Kind: EventCallLost, Reason: "request"})
		return faultstore.LoseRequest
	}
	return faultstore.Pass
}
