package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// node is one process: it registers the schedules at its start, as programs
// do, and then runs them and the workers of all queues.
type node struct {
	w           *world
	index       int
	epoch       int64
	lives       int
	up          bool
	away        int // how many faults keep it away, but those of the store
	pausedUntil store.Instant
	throttles   []int     // faults of its host that are on
	clock       *timeline // its own, or of a single process the store's

	engine     *tickonce.Engine
	owner      string // begins the owner tokens of its runners
	registered int    // schedules, in this life
	workers    []*worker
	working    *worker          // whose step it is; nil: the process's own, or its runner's
	handling   *attempt         // whose handler's step it is; nil: none's
	lost       map[claimID]bool // whose loss its engine has told
	rouses     bool             // its operation has something to do for its workers
	leaving    bool             // it was told to stop, and its workers go on with what they have in hand

	runner *tickonce.Runner // nil unless the schedules are run
	loop   loop             // its

	// What the process knows from the answers that it got.
	reply       faultstore.Verdict // what becomes of the call under way
	leads       bool               // it was granted the lease, and not refused since
	term        store.Term         // of the latest grant
	refused     bool               // its latest call for the lease was, since another led
	held        bool               // in this step a tick of it was written
	renewed     bool               // it was granted the lease, or again, since it last looked for due rows
	midTick     bool               // after that it has read due rows, and it has not written yet
	stalled     bool               // it was paused since it read them
	misled      bool               // they were stale
	renewalLost bool               // the latest renewal failed
	readAt      store.Instant      // the reading of its latest look
	due         int                // how many rows that was answered
	inspectedAt store.Instant      // and of its latest list of schedules
	failures    int                // of the runner's calls since its last whole tick

	// The events that explain what the runner does next: the latest, that of its
	// lease, and that of its latest look.
	cause, grant, read int64
}

// pollMS is how often a process looks for what others have put into the store,
// where there are others. Its workers do so more rarely, for most of what a run did
// would else be to look into empty queues.
const (
	pollMS       = 1000
	workerPollMS = 30_000
)

// errorBackoffMS is how long a process waits after a failed call of its own.
const errorBackoffMS = 5000

// retries is how many calls of a tick may fail before its runner ends (R1).
const retries = 3

func newNode(w *world, index int) *node {
	n := &node{w: w, index: index, pausedUntil: w.start, clock: &w.clock}
	if w.scenario.Engine.Runners > 1 {
		n.clock = &timeline{{from: w.start}}
	}
	n.loop = loop{node: n, steps: event{kind: runnerSteps, node: int32(index)}}
	for _, q := range w.truth.queues {
		for range q.perProcess {
			i := len(n.workers)
			worker := &worker{
				loop:  loop{node: n, steps: event{kind: workerSteps, node: int32(index), index: int32(i)}},
				index: i, queue: q, name: fmt.Sprintf("worker-%d-%d", index+1, i+1),
			}
			worker.has.worker = worker
			n.workers = append(n.workers, worker)
			q.workers = append(q.workers, worker)
		}
	}
	return n
}

func (n *node) String() string { return fmt.Sprintf("process %d", n.index+1) }

// named reports whether a fault of that runner= means this process.
func (n *node) named(runner int) bool { return runner == 0 || runner == n.index+1 }

func (n *node) startAt(t store.Instant) {
	n.epoch++
	n.w.at(t, event{kind: nodeStarts, node: int32(n.index), epoch: n.epoch})
}

// start begins a life, and then goes on with registering, one schedule at each
// event.
func (n *node) start() {
	if !n.up {
		n.boot()
	}
	if n.registered < len(n.w.scenario.Schedules) {
		wait := int64(0)
		if n.register(&n.w.scenario.Schedules[n.registered]) {
			n.registered++
		} else {
			wait = errorBackoffMS
		}
		n.startAt(n.w.now.Add(wait))
		return
	}
	n.runner = n.engine.NewRunner()
	n.loop.stepAt(n.w.now)
	for _, worker := range n.workers {
		worker.start()
	}
}

func (n *node) boot() {
	n.lives++
	n.owner = fmt.Sprintf("process-%d.%d", n.index+1, n.lives)
	n.up, n.registered, n.failures, n.renewalLost, n.refused = true, 0, 0, false, false
	n.w.digest.Int(tagNode, int64(n.index))
	if n != n.w.operator {
		n.cause = n.w.tell(Event{Kind: EventProcessStarted, Cause: n.cause, Process: n.number()})
	}
	calls := faultstore.New(n.w.truth, n.fate)
	calls.Before, calls.After = n.sends, n.receives
	var s store.Store = calls
	if n.w.rig.above != nil {
		s = n.w.rig.above(s)
	}
	n.lost = map[claimID]bool{}
	engine, err := tickonce.New(s, n.config())
	if err != nil {
		panic(fmt.Sprintf("sim: a scenario with an invalid configuration passed its check: %v", err))
	}
	n.engine = engine
}

// config is the configuration of the node's engine.
func (n *node) config() tickonce.Config {
	e := n.w.scenario.Engine
	c := tickonce.Config{
		Clock: newClock(n.w, n.clock), Seed: max(e.Seed, 1), Owner: n.owner, Observer: n.hears,
		Zones: zone, StandBy: e.StandBy, Batch: e.Batch, LeaseTTL: e.Lease, OnTime: e.OnTime, Poll: -1,
		Limits: tickonce.Limits{QueueLength: e.QueueLimit},
	}
	if len(n.w.nodes) > 1 {
		c.Poll = pollMS * time.Millisecond
	}
	if e.ClockRepair == RepairRearm {
		c.ClockRepair = tickonce.RepairRearm
	}
	return c
}

var catchUpPolicies = [...]tickonce.CatchUp{
	CatchUpAll: tickonce.CatchUpAll, CatchUpLatest: tickonce.CatchUpLatest,
	CatchUpGrace: tickonce.CatchUpGrace, CatchUpNone: tickonce.CatchUpNone,
}

// register registers a schedule, and reports whether that is done.
func (n *node) register(s *Schedule) bool {
	err := n.registers(s)
	if err != nil && !errors.Is(err, faultstore.ErrLost) {
		n.w.fail(noError, s.Name, fmt.Sprintf("%s: its registration returned %v", n, err))
	}
	return err == nil
}

// pause lets the process take no step until the instant.
func (n *node) pause(until store.Instant) {
	n.pausedUntil = max(n.pausedUntil, until)
	n.stalled = n.midTick
	n.disturbed(n.w.tell(Event{Kind: EventProcessPaused, Cause: n.w.causes.fault, Process: n.number(), Last: timeOf(n.pausedUntil)}))
	for _, worker := range n.workers {
		for _, a := range worker.inHand() {
			n.w.coverage.sometimes(pauseOutlastsClaim, a.outlastedBy(until))
		}
	}
}

func (n *node) paused() bool { return n.w.now < n.pausedUntil }

// options are those that the schedule is registered with.
func (s *Schedule) options() tickonce.ScheduleOptions {
	return tickonce.ScheduleOptions{
		Visibility: s.Visibility, MaxAttempts: s.MaxAttempts, BaseBackoff: s.BaseBackoff,
		Priority: s.Priority, Expires: s.Expires, Anchor: s.Anchor, CatchUp: catchUpPolicies[s.CatchUp],
		Overlap: overlaps[s.Overlap], ActiveHours: s.Hours.options(), RunOnce: s.RunOnce, Breaker: cmp.Or(s.Breaker, NoBreaker), Timeout: s.Timeout,
	}
}

var overlaps = [...]tickonce.Overlap{
	OverlapAllow: tickonce.OverlapAllow, OverlapSkip: tickonce.OverlapSkip, OverlapBufferOne: tickonce.OverlapBufferOne,
}

func (h Hours) options() tickonce.ActiveHours {
	if h == (Hours{}) {
		return tickonce.ActiveHours{}
	}
	return tickonce.ActiveHours{From: clockOf(h.Start), To: clockOf(h.End), Zone: h.Zone}
}

// clockOf is a time of day as hh:mm.
func clockOf(sinceMidnight time.Duration) string {
	return time.Time{}.Add(sinceMidnight).Format("15:04")
}

func (n *node) registers(s *Schedule) error {
	began := n.w.now
	n.w.intent = intent{edit: FaultEditAdd, as: s}
	_, err := n.engine.Schedule(ctx, s.Name, s.Spec, s.Queue, s.Payload, s.options())
	n.w.intent = intent{}
	if err == nil && n.w.now == began { // or others may have changed it again
		n.w.truth.checkEdit(FaultEditAdd, s.Name, s)
	}
	return err
}

// stop ends a life: in good order the lease is released and, if the store stays,
// the engine's workers stop as they do (W6); else nothing more happens, as where a
// process that is paused has to be killed.
func (n *node) stop(goodOrder, storeStays bool) {
	goodOrder = goodOrder && !n.paused() && !n.leaving
	n.pausedUntil = n.w.now
	if n.runner != nil && goodOrder {
		sure := true // that it knows of the lease
		for f := range n.flights() {
			if f.steps.kind == runnerSteps {
				f.end()
				sure = false
			}
		}
		n.w.checked[aStop]++
		n.w.acting, n.reply = n, faultstore.Pass
		if err := n.runner.Stop(ctx); err != nil {
			n.w.fail(exits, "", fmt.Sprintf("%s: a clean stop returned %v", n, err))
		}
		n.w.acting = nil
		if t := n.w.truth; sure && n.leads && n.reply == faultstore.Pass && t.live() && t.lease.Term == n.term {
			n.w.fail(releases, "", fmt.Sprintf("%s kept the lease at its clean stop", n))
		}
	}
	if !goodOrder {
		n.w.coverage.sometimes(crashMidTick, n.midTick)
		n.w.coverage.sometimes(crashMidRequest, n.waits(request))
		n.w.coverage.sometimes(crashMidReply, n.waits(reply))
		n.w.coverage.sometimes(crashMidJob, slices.ContainsFunc(n.workers, func(worker *worker) bool { return len(worker.inHand()) > 0 }))
	}
	reason := "crash"
	if goodOrder {
		reason = "down"
	}
	n.disturbed(n.w.tell(Event{Kind: EventProcessStopped, Cause: n.w.causes.fault, Process: n.number(), Reason: reason}))
	n.runner, n.loop.stepping = nil, false
	n.leads, n.renewed, n.midTick = false, false, false
	n.epoch++
	n.loop.epoch++
	if n.leaving = goodOrder && storeStays; !n.leaving {
		n.end()
		return
	}
	for f := range n.flights() {
		if f.steps.kind < workerSteps || n.workers[f.steps.index].engine == nil {
			f.end()
		}
	}
	for _, worker := range n.workers {
		if worker.engine == nil {
			worker.cutOff()
		} else {
			worker.leaveOff()
		}
	}
	n.leave()
}

// leave ends the life of a process that stops, once its workers have ended.
func (n *node) leave() {
	if n.leaving && !slices.ContainsFunc(n.workers, func(worker *worker) bool { return worker.engine != nil }) {
		n.end()
	}
}

// end ends the life at once. Handlers are cut off.
func (n *node) end() {
	n.up, n.leaving = false, false
	for _, worker := range n.workers {
		worker.cutOff()
	}
}

// step steps the runner and sleeps until it wants to be called again.
func (n *node) step() {
	n.held, n.loop.stepping = false, true
	next, report, err := n.runner.Step(ctx)
	n.loop.stepping = false
	n.w.digest.Int(tagRunner, int64(n.index))
	wakes := store.Instant(next.UnixMilli())
	rests := wakes > n.clock.at(n.w.now)
	switch {
	case report.Err != nil:
		n.failures++
		n.w.coverage.sometimes(retriesExhausted, n.leads && n.failures == retries+1)
	case n.leads && (n.held || rests && report.Phase != ""):
		n.failures, n.cause = 0, n.grant
	}
	if report.Phase == tickonce.PhaseRenew {
		kept := report.Err == nil && n.leads
		n.w.coverage.sometimes(renewalLostYetKept, n.renewalLost && kept)
		n.renewalLost = report.Err != nil
	}
	if f := n.w.flying; n.held && (f == nil || f.backMS == 0) { // or others have gone on since
		n.w.truth.checkReport(report)
	}
	if next.IsZero() {
		n.ended(err)
		return
	}
	n.loop.sleep(wakes, report.Phase != "")
}

// ended checks why a runner ended by itself (invariant 8).
func (n *node) ended(err error) {
	n.w.checked[anEnd]++
	n.runner, n.leads, n.midTick = nil, false, false
	var why string
	switch {
	case n.w.scenario.Engine.StandBy:
		why = "although it stands by"
	case err == nil:
		why = "without being stopped"
	case errors.Is(err, tickonce.ErrLeadershipLost):
		if !n.refused {
			why = "although no other leads"
		}
	case n.failures <= retries:
		why = fmt.Sprintf("after %d failed calls", n.failures)
	}
	if why != "" {
		n.w.fail(exits, "", fmt.Sprintf("the runner of %s ended %s: %v", n, why, err))
	}
	n.disturbed(n.w.tell(Event{Kind: EventRunnerEnded, Cause: n.cause, Process: n.number(), Reason: fmt.Sprint(err)}))
	n.w.excuse(runnerEnded, fmt.Sprintf("the runner of %s ended at %s: %v; until the process starts again "+
		"it runs no schedules (with engine standby=yes it tries again every 5 s)", n, text(n.w.now), err))
}

// fate decides what becomes of a call to the store. A tick is written once, after
// a renewal and a look of its own (R3, L4, L6).
func (n *node) fate(op faultstore.Op) faultstore.Verdict {
	if n.w.orphaned() {
		n.reply = n.w.flying.fateOfOrphan()
		return n.reply
	}
	if op.Method == faultstore.Claim && n.working != nil && n.working.leaves {
		n.w.fail(stops, "", n.working.name+" claims after it was told to stop")
	}
	if op.Method == faultstore.Advance {
		n.w.checked[aTickSent]++
		if !n.midTick {
			n.w.fail(renewsFirst, "", fmt.Sprintf("%s writes a tick without a renewal and a look before it", n))
		}
		n.midTick = false
	}
	n.reply = n.w.loseCall(n, op)
	n.w.journal.sends(op)
	return n.reply
}
