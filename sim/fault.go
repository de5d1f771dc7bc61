package sim

import (
	"bytes"
	"fmt"

	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// faultState is what a fault of the scenario has done so far.
type faultState struct {
	on     bool
	effect int64
}

func (w *world) planFaults() {
	w.quiet = w.now
	for i := range w.scenario.Faults {
		f := &w.scenario.Faults[i]
		from := w.now.Add(f.At.Milliseconds())
		w.at(from, event{kind: faultBegins, index: int32(i)})
		w.quiet = max(w.quiet, from.Add(f.For.Milliseconds()))
	}
	if w.scenario.QuietAfter > 0 {
		w.quiet = w.now.Add(w.scenario.QuietAfter.Milliseconds())
	}
}

func (w *world) beginFault(i int) {
	f, state := &w.scenario.Faults[i], &w.faults[i]
	w.digest.Int(tagFault, int64(i))
	state.on = true
	lasts := f.For > 0
	switch f.Kind {
	case FaultDown:
		state.effect++
		w.stop(f.Runner, true)
	case FaultCrash:
		state.effect++
		w.stop(f.Runner, false)
		lasts = true // for no time at all
	case FaultClockJump:
		state.effect++
		w.jump(f.By.Milliseconds())
	}
	if lasts {
		w.at(w.now.Add(f.For.Milliseconds()), event{kind: faultEnds, index: int32(i)})
	}
}

func (w *world) endFault(i int) {
	f, state := &w.scenario.Faults[i], &w.faults[i]
	w.digest.Int(tagFault, ^int64(i))
	state.on = false
	switch f.Kind {
	case FaultDown:
		w.start(f.Runner, FromJournal)
	case FaultCrash:
		w.start(f.Runner, f.Restart)
	case FaultClockJump:
		state.effect++
		w.jump(-f.By.Milliseconds())
	}
}

// stop takes one process away, or all of them and the store with them.
func (w *world) stop(runner int, goodOrder bool) {
	for _, n := range w.nodes {
		if n.up && (runner == 0 || runner == n.index+1) {
			n.stop(goodOrder)
		}
	}
	if runner == 0 {
		w.truth.open = false
	}
}

// start brings back what no other fault keeps away.
func (w *world) start(runner int, from Restart) {
	if w.away(0) {
		return
	}
	if !w.truth.open {
		before := w.bytes()
		w.restore(from)
		w.truth.open = true
		if from == FromJournal && !bytes.Equal(before, w.bytes()) {
			w.fail("11 durable", "", "the state restored from snapshot and journal is not the state before")
		}
	}
	for _, n := range w.nodes {
		if !n.up && !w.away(n.index+1) {
			n.startAt(w.now)
		}
	}
}

// away reports whether a fault keeps the process away; of runner 0, the store.
func (w *world) away(runner int) bool {
	for i := range w.faults {
		f := &w.scenario.Faults[i]
		if w.faults[i].on && (f.Kind == FaultDown || f.Kind == FaultCrash) && (f.Runner == 0 || f.Runner == runner) {
			return true
		}
	}
	return false
}

// jump moves the store's clock. Whoever sleeps notices at the end of its slice.
func (w *world) jump(ms int64) {
	before := w.shown()
	w.clock.jump(w.now, ms)
	w.coverage.sometimes(clockBackOverBoundary, ms < 0 && w.truth.firedSince(w.shown(), before))
	notice := func() store.Instant { return w.now.Add(w.choices.at("slice").choice(sliceMS + 1)) }
	for _, n := range w.nodes {
		if n.runner != nil {
			n.stepAt(notice())
		}
		for _, worker := range n.workers {
			if worker.idle {
				worker.asked = true
				worker.wakeAt(notice())
			}
		}
	}
}

// loseCall decides by the store faults that are on what becomes of a call.
func (w *world) loseCall() faultstore.Verdict {
	for i := range w.faults {
		f, state := &w.scenario.Faults[i], &w.faults[i]
		if !state.on || f.Kind != FaultStoreErrors || f.Chance != 0 && !w.choices.at("store fault").happens(f.Chance) {
			continue
		}
		state.effect++
		applied := f.Applied == AppliedYes
		if f.Applied == AppliedUnknown {
			applied = w.choices.at("store applied").choice(2) == 1
			w.coverage.sometimes(unknownApplied, applied)
			w.coverage.sometimes(unknownNotApplied, !applied)
		}
		if applied {
			return faultstore.LoseReply
		}
		return faultstore.LoseRequest
	}
	return faultstore.Pass
}

// livenessEveryMS is how often liveness is tested once it is quiet.
const livenessEveryMS = 600_000

// bound is how late something may be once it is quiet (invariant 13): two
// slices, the lease's TTL, and 5 s.
func (w *world) bound() int64 {
	ttl := w.scenario.Engine.Lease.Milliseconds()
	if ttl == 0 {
		ttl = 60_000
	}
	return 2*sliceMS + ttl + 5000
}

// testLiveness checks that nothing has been due for longer than that.
func (w *world) testLiveness() {
	settled := w.quiet.Add(w.bound())
	if w.now < settled || w.end < settled {
		return
	}
	stuck := func(schedule, what string, due store.Instant, allowance int64) {
		since := max(w.clock.reached(due), w.quiet)
		if late := int64(w.now - since); late > allowance {
			w.failed(Failure{
				Invariant: "13 liveness", Schedule: schedule, Liveness: true,
				Detail: fmt.Sprintf("%s has been due for %s since it is quiet, allowed are %s", what,
					milliseconds(late), milliseconds(allowance)),
			})
		}
	}
	for _, s := range w.truth.order {
		if s.row.DueAt <= w.shown() {
			allowance := w.bound()
			if s.row.Hold != nil {
				allowance += 60_000
			}
			stuck(s.row.Name, "boundary "+timeOf(s.row.Cursor).Format("2006-01-02 15:04:05"), s.row.DueAt, allowance)
		}
	}
	for _, q := range w.truth.queues {
		if !w.idleAt(q.name) {
			continue
		}
		for _, id := range q.open {
			if job := w.truth.jobs[id]; job != nil && job.ReadyAt() <= w.shown() {
				stuck(job.Schedule, fmt.Sprintf("a job of queue %q", q.name), job.ReadyAt(), w.bound())
			}
		}
	}
}

// idleAt reports whether a worker of the queue has nothing to do.
func (w *world) idleAt(queue string) bool {
	for _, n := range w.nodes {
		for _, worker := range n.workers {
			if n.up && worker.idle && worker.queue == queue {
				return true
			}
		}
	}
	return false
}
