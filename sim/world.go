package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
)

// world is one run: true time, the one queue of what is to happen, the store
// that tells its own time, and the processes that use it. Everything happens
// on one goroutine, one store call after the other.
//
//	runner, worker ─▶ tickonce.Engine ─▶ faultstore ─▶ truth ─▶ memengine.Store
//	                                     loses calls   watches and checks
type world struct {
	scenario *Scenario
	now      store.Instant // true time
	end      store.Instant
	quiet    store.Instant // no fault lasts longer
	clock    timeline
	queue    events[event]
	choices  *choices
	digest   Digest
	events   int64

	truth *truth
	disk  disk
	nodes []*node

	faults []faultState // in the scenario's order
	names  map[string]*Schedule

	coverage Coverage
	failures []Failure
	excused  []string
}

// maxEvents bounds a run; the verdict of one that would take more is
// [Budget].
const maxEvents = 100_000_000

// maxFailures is how many failures are kept.
const maxFailures = 100

// sliceMS is within what time a sleeping loop notices that the clock jumped
// (L7).
const sliceMS = 1000

// event is one thing that is to happen. One whose epoch is not that of its
// node, runner or worker any more is void.
type event struct {
	kind  eventKind
	node  int32
	index int32 // of a fault, a worker or a queue
	epoch int64
}

type eventKind uint8

const (
	faultBegins eventKind = iota // index: the fault
	faultEnds
	snapshotDue
	nodeStarts  // node, epoch
	runnerSteps // node, epoch
	workerSteps // node, index, epoch
	queueWakes  // index: of a queue in truth
	livenessTest
)

// The classes of events of one instant: the world before those who live in it.
const (
	classFault class = iota
	classNode
	classTest
)

func (k eventKind) class() class {
	switch k {
	case faultBegins, faultEnds, snapshotDue:
		return classFault
	case livenessTest:
		return classTest
	default:
		return classNode
	}
}

// disk is what outlives the processes and their store.
type disk struct {
	snapshot []byte
	log      []byte
}

// Append implements [memengine.Journal].
func (d *disk) Append(record []byte) error {
	d.log = append(d.log, record...)
	return nil
}

func newWorld(s *Scenario) *world {
	start := s.Start
	if start.IsZero() {
		start = DefaultStart
	}
	w := &world{
		scenario: s,
		now:      store.Instant(start.UnixMilli()),
		choices:  newChoices(s.Engine.Seed),
		names:    map[string]*Schedule{},
		faults:   make([]faultState, len(s.Faults)),
	}
	w.end = w.now.Add(s.For.Milliseconds())
	w.clock = timeline{{from: w.now}}
	w.queue.shuffle, w.queue.seed = s.Engine.Ties == TiesSeeded, s.Engine.Seed
	for i := range s.Schedules {
		w.names[s.Schedules[i].Name] = &s.Schedules[i]
	}
	w.truth = newTruth(w)
	w.restore(FromNothing)
	w.planFaults()
	for i := range max(s.Engine.Runners, 1) {
		n := newNode(w, i)
		w.nodes = append(w.nodes, n)
		n.startAt(w.now)
	}
	if s.Engine.SnapshotEvery > 0 {
		w.at(w.now.Add(s.Engine.SnapshotEvery.Milliseconds()), event{kind: snapshotDue})
	}
	w.at(w.quiet.Add(w.bound()), event{kind: livenessTest})
	return w
}

// at puts an event into the queue; one in the past happens now.
func (w *world) at(t store.Instant, e event) { w.queue.push(max(t, w.now), e.kind.class(), e) }

// shown is what the store's clock shows.
func (w *world) shown() store.Instant { return w.now.Add(w.clock.offset()) }

// whenShown is the true time at which the clock will show the instant, unless
// it jumps.
func (w *world) whenShown(t store.Instant) store.Instant { return t.Add(-w.clock.offset()) }

// run lets everything happen until the end.
func (w *world) run() (verdict Verdict) {
	defer func() {
		if p := recover(); p != nil {
			w.fail("panic", "", fmt.Sprint(p))
			verdict = Safety
		}
	}()
	for w.queue.len() > 0 && w.queue.next() <= w.end {
		var e event
		w.now, e = w.queue.pop()
		if w.events++; w.events > maxEvents {
			return Budget
		}
		w.happen(e)
	}
	w.now = w.end
	w.testLiveness()
	w.truth.sweep()
	return Pass
}

func (w *world) happen(e event) {
	switch e.kind {
	case faultBegins:
		w.beginFault(int(e.index))
	case faultEnds:
		w.endFault(int(e.index))
	case snapshotDue:
		w.snapshot()
	case nodeStarts:
		if n := w.nodes[e.node]; n.epoch == e.epoch {
			n.start()
		}
	case runnerSteps:
		if n := w.nodes[e.node]; n.runnerEpoch == e.epoch {
			n.step()
		}
	case workerSteps:
		if worker := w.nodes[e.node].workers[e.index]; worker.epoch == e.epoch {
			worker.step()
		}
	case queueWakes:
		w.wakeQueue(w.truth.queues[e.index].name)
	case livenessTest:
		w.testLiveness()
		w.at(w.now.Add(livenessEveryMS), event{kind: livenessTest})
	}
	if w.events%sweepEvery == 0 {
		w.truth.sweep()
	}
}

// sweepEvery is after how many events the sums of all rows are checked.
const sweepEvery = 1024

// fail notes that an invariant was broken.
func (w *world) fail(invariant, schedule, detail string) {
	w.failed(Failure{Invariant: invariant, Schedule: schedule, Detail: detail})
}

func (w *world) failed(f Failure) {
	f.At = timeOf(w.now)
	w.digest.Text(tagFailure, f.Invariant)
	if len(w.failures) < maxFailures {
		w.failures = append(w.failures, f)
	}
}

// The tags of the digest.
const (
	tagFailure uint8 = iota + 1
	tagFault
	tagRunner
	tagMove
	tagFire
	tagClaim
	tagSettle
	tagLease
	tagCommit
	tagRestore
	tagNode
)

// config is the configuration of the node's engine in its latest life.
func (w *world) config(n *node) tickonce.Config {
	e := w.scenario.Engine
	c := tickonce.Config{
		Clock: storeClock{w}, Seed: max(e.Seed, 1), Owner: fmt.Sprintf("process-%d.%d", n.index+1, n.lives),
		StandBy: e.StandBy, Batch: e.Batch, LeaseTTL: e.Lease, OnTime: e.OnTime, Poll: -1,
	}
	if len(w.nodes) > 1 {
		c.Poll = time.Second
	}
	if e.ClockRepair == RepairRearm {
		c.ClockRepair = tickonce.RepairRearm
	}
	return c
}

// restore makes the store anew from what the disk has.
func (w *world) restore(from Restart) {
	switch from {
	case FromNothing:
		w.disk = disk{}
	case FromSnapshot:
		w.disk.log = nil
	}
	e, recovery, err := memengine.Open(tickonce.Config{Clock: storeClock{w}},
		memengine.Durable{Snapshot: w.disk.snapshot, Log: w.disk.log, Journal: &w.disk})
	if err != nil {
		panic(fmt.Sprintf("sim: the store does not open again: %v", err))
	}
	w.digest.Int(tagRestore, int64(from))
	if recovery.Torn != "" || recovery.Invalid > 0 {
		w.fail("11 durable", "", fmt.Sprintf("restored with %+v", recovery))
	}
	w.truth.restored(e.Store())
}

// snapshot writes the state to the disk, and begins a new log.
func (w *world) snapshot() {
	if w.truth.open {
		w.disk = disk{snapshot: w.bytes()}
	}
	w.at(w.now.Add(w.scenario.Engine.SnapshotEvery.Milliseconds()), event{kind: snapshotDue})
}

// bytes is the store's state in canonical bytes.
func (w *world) bytes() []byte {
	b, err := w.truth.memory.Snapshot()
	if err != nil {
		panic(fmt.Sprintf("sim: no snapshot: %v", err))
	}
	return b
}

// ctx is never cancelled: a node that goes away takes no more steps.
var ctx = context.Background()
