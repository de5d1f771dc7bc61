package sim

import (
	"errors"
	"fmt"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// node is one process: it registers the schedules at its start, as programs
// do, and then runs them and the workers of all queues.
type node struct {
	w     *world
	index int
	lives int
	epoch int64
	up    bool

	engine  *tickonce.Engine
	calls   int // since the latest that did not fail
	begun   int // schedules registered in this life
	workers []*worker

	runner      *tickonce.Runner // nil unless the schedules are run
	runnerEpoch int64
	read        bool // the runner's latest step read due rows; the next one writes
}

const storeErrorBackoffMS = 5000

func newNode(w *world, index int) *node {
	n := &node{w: w, index: index}
	for i := range w.scenario.Schedules {
		queue := w.scenario.Schedules[i].Queue
		if n.has(queue) {
			continue
		}
		for range w.workersOf(queue) {
			n.workers = append(n.workers, &worker{node: n, index: len(n.workers), queue: queue})
		}
	}
	return n
}

func (n *node) has(queue string) bool {
	for _, worker := range n.workers {
		if worker.queue == queue {
			return true
		}
	}
	return false
}

// workersOf is how many workers each process has for the queue.
func (w *world) workersOf(queue string) int {
	for _, q := range w.scenario.Queues {
		if q.Name == queue {
			return q.Workers
		}
	}
	return 1
}

func (n *node) startAt(t store.Instant) {
	n.epoch++
	n.w.at(t, event{kind: nodeStarts, node: int32(n.index), epoch: n.epoch})
}

// start begins a life, or goes on with registering: one schedule for each
// event.
func (n *node) start() {
	if !n.up {
		n.up, n.begun, n.calls = true, 0, 0
		n.lives++
		n.w.digest.Int(tagNode, int64(n.index))
		engine, err := tickonce.New(faultstore.New(n.w.truth, n.verdict), n.w.config(n))
		if err != nil {
			panic(fmt.Sprintf("sim: a scenario with an invalid configuration passed its check: %v", err))
		}
		n.engine = engine
	}
	if n.begun < len(n.w.scenario.Schedules) {
		again := n.w.now
		if err := n.register(&n.w.scenario.Schedules[n.begun]); err != nil {
			again = again.Add(storeErrorBackoffMS)
		} else {
			n.begun++
		}
		n.startAt(again)
		return
	}
	n.runner = n.engine.NewRunner()
	n.stepAt(n.w.now)
	for _, worker := range n.workers {
		worker.wakeAt(n.w.now)
	}
}

func (n *node) register(s *Schedule) error {
	_, err := n.engine.Schedule(ctx, s.Name, s.Spec, s.Queue, s.Payload, tickonce.ScheduleOptions{
		Visibility: s.Visibility, MaxAttempts: s.MaxAttempts, BaseBackoff: s.BaseBackoff,
		Priority: s.Priority, Expires: s.Expires, Anchor: s.Anchor, CatchUp: catchUps[s.CatchUp],
	})
	if err != nil && !errors.Is(err, faultstore.ErrLost) {
		panic(fmt.Sprintf("sim: schedule %q: %v", s.Name, err))
	}
	return err
}

var catchUps = [...]tickonce.CatchUp{
	CatchUpAll: tickonce.CatchUpAll, CatchUpLatest: tickonce.CatchUpLatest,
	CatchUpGrace: tickonce.CatchUpGrace, CatchUpNone: tickonce.CatchUpNone,
}

// stop ends a life: in good order the lease is released, else nothing more
// happens. Handlers are cut off either way.
func (n *node) stop(goodOrder bool) {
	if goodOrder && n.runner != nil {
		if err := n.runner.Stop(ctx); err != nil {
			n.w.fail("8 exits", "", fmt.Sprintf("process %d: a clean stop returned %v", n.index+1, err))
		}
	}
	if n.read && !goodOrder {
		n.w.coverage.sometimes(crashMidTick, true)
	}
	n.up, n.runner, n.read = false, nil, false
	n.epoch++
	n.runnerEpoch++
	for _, worker := range n.workers {
		worker.cutOff()
	}
}

func (n *node) stepAt(t store.Instant) {
	n.runnerEpoch++
	n.w.at(t, event{kind: runnerSteps, node: int32(n.index), epoch: n.runnerEpoch})
}

// step steps the runner and sleeps until it wants to be called again.
func (n *node) step() {
	next, report, err := n.runner.Step(ctx)
	n.w.digest.Int(tagRunner, int64(n.index))
	n.read = report.Phase == tickonce.PhaseSelect && !next.After(timeOf(n.w.shown()))
	n.w.coverage.sometimes(renewalLostYetKept, report.Phase == tickonce.PhaseRenew && report.Err != nil)
	if !next.IsZero() {
		n.stepAt(n.w.whenShown(store.Instant(next.UnixMilli())))
		return
	}
	n.ended(err)
	n.runner = nil
}

// ended checks why a runner ended by itself (invariant 8).
func (n *node) ended(err error) {
	var why string
	switch {
	case n.w.scenario.Engine.StandBy:
		why = "although it stands by"
	case err == nil:
		why = "without being stopped"
	case errors.Is(err, tickonce.ErrLeadershipLost):
		if lease := n.w.truth.lease; !lease.Live(n.w.shown()) {
			why = "although nobody else leads"
		}
	case n.calls <= 3:
		why = fmt.Sprintf("after %d failed calls", n.calls)
	}
	if why != "" {
		n.w.fail("8 exits", "", fmt.Sprintf("the runner of process %d ended %s: %v", n.index+1, why, err))
		return
	}
	n.w.excused = append(n.w.excused, fmt.Sprintf(
		"the runner of process %d ended at %s: %v; nothing runs its schedules until the process starts again (engine standby=yes tries again every 5 s)",
		n.index+1, timeOf(n.w.now).Format("2006-01-02 15:04:05"), err))
}

// verdict decides what becomes of a call to the store.
func (n *node) verdict(faultstore.Op) faultstore.Verdict {
	verdict := n.w.loseCall()
	if verdict == faultstore.Pass {
		n.calls = 0
	} else {
		n.calls++
	}
	return verdict
}
