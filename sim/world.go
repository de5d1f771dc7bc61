package sim

import (
	"cmp"
	"context"
	"slices"

	"github.com/tickonce/tickonce"
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
	rig      rig
	start    store.Instant
	now      store.Instant // true time
	end      store.Instant
	quiet    store.Instant // no fault lasts longer
	clock    timeline
	queue    events[event]
	draws    sites
	digest   Digest
	events   int64
	auditAt  int64 // in events

	truth   *truth
	disk    disk
	journal journal
	nodes   []*node
	acting  *node              // whose step it is, or nil
	intent  intent             // of its operation on a schedule
	owed    uint64             // the sum of the events that its operation has yet to tell of
	losses  []loss             // of claims, that it was answered
	heard   tickonce.EventKind // the last that it told of

	flying   *flight      // the step under way, if it is one
	flights  []*flight    // those that wait, at free indices nil
	idle     []*coroutine // those without a flight
	alone    bool         // a single process, and nobody else puts jobs into the store
	openings int          // of the store
	turns    int64        // of all clocks

	faults        []faultState      // in the scenario's order
	armed         []int             // those that wait for their point
	storeFaults   []int             // those that lose store calls that are on
	slowFaults    []int             // those that slow store calls down that are on
	readFaults    []int             // those that spoil reads of due rows that are on
	handlerFaults []int             // those of handlers that are on
	ackFaults     []int             // those of acks that are on
	operator      *node             // outside the processes; nil without an edit
	overloaded    bool              // its overload is in the store, whatever it was told
	edits         []int             // that it has yet to do, the first at once
	sent          map[int32]sentAck // acks that are on their way
	sends         int32             // how many there ever were
	sentMemory    int64             // bytes of their jobs, about
	storeAway     int               // how many faults keep the store away
	absences      []absence         // those that have begun
	answers       int               // the fault by which an ack that comes is late, from 1
	jumped        *Cost             // of the fault that moved the clock last
	jumpedAt      store.Instant
	forgot        *Cost // of the fault that made the store forget last

	spoilt bool // whether a row ever was

	causes   causes
	coverage Coverage
	checked  [occasions]int64 // how often there was each occasion to check
	failures []Failure
	excused  []Excuse
	spent    string // of its budget: what
	broken   bool   // by a panic
}

// rig is what is changed about a run, by tests of the simulator and by those who
// watch.
type rig struct {
	budget int64                         // events a run may take
	memory int64                         // and bytes; 0: maxMemory
	below  func(store.Store) store.Store // comes between the truth and the store
	above  func(store.Store) store.Store // comes between an engine and its calls' fate
	tell   func(*Event)                  // is told of everything that happens
	deck   *deck                         // records the choices, or plays them
}

// maxFailures is after how many failures a run is broken off, and how many
// excuses are kept.
const maxFailures = 100

// sliceMS is within what time a sleeping loop notices that the clock jumped
// (L7).
const sliceMS = 1000

// event is one thing that is to happen.
type event struct {
	kind  eventKind
	node  int32
	index int32 // of a fault, a worker, an ack or a flight
	// Of a node, a runner or a worker: void if it is not its epoch any more. Of
	// a fault that begins: how many rounds of its instant's steps go first.
	epoch int64
}

type eventKind uint8

const (
	faultBegins eventKind = iota // index, epoch
	faultEnds                    // index
	operatorActs
	snapshotDue
	clockStrobes // index
	nodeStarts   // node, epoch
	runnerSteps  // node, epoch
	workerSteps  // node, index, epoch
	handlerSteps // node, index of the worker, epoch: the number of the attempt
	ackComes     // node, index
	callMoves    // node, index
)

// The classes of events of one instant: the world before those who live in it.
const (
	classWorld class = iota
	classNode
)

func (k eventKind) class() class {
	if k < nodeStarts {
		return classWorld
	}
	return classNode
}

// sites are those of the run's random choices.
type sites struct {
	handlerTakes, handlerFails, handlerFault, handlerSlow *site
	handlerApplied                                        *site
	ackFault, ackLater                                    *site
	storeFault, storeApplied                              *site
	slowCall, slowTakes, slowRequest, orphan              *site
	slice, strike, interleave, swizzle, misread, poison   *site
	journalFault, journalTorn                             *site
}

func newSites(seed uint64, d *deck) sites {
	c := newChoices(seed)
	c.deck = d
	return sites{
		handlerTakes: c.at("handler takes"), handlerFails: c.at("handler fails"),
		handlerFault: c.at("handler fault"), handlerSlow: c.at("handler slow"),
		handlerApplied: c.at("handler applied"),
		ackFault:       c.at("ack fault"), ackLater: c.at("ack later"),
		storeFault: c.at("store fault"), storeApplied: c.at("store applied"),
		slowCall: c.at("slow call"), slowTakes: c.at("slow takes"), slowRequest: c.at("slow request"), orphan: c.at("orphan"),
		slice: c.at("slice"), strike: c.at("strike"), interleave: c.at("interleave"),
		swizzle: c.at("swizzle"), misread: c.at("misread"), poison: c.at("poison"),
		journalFault: c.at("journal fault"), journalTorn: c.at("journal torn"),
	}
}

func newWorld(s *Scenario, r rig) *world {
	w := &world{
		scenario: s,
		rig:      r,
		start:    store.Instant(s.start().UnixMilli()),
		draws:    newSites(s.Engine.Seed, r.deck),
		faults:   make([]faultState, len(s.Faults)),
		sent:     map[int32]sentAck{},
		auditAt:  auditEvery,
	}
	w.journal.w = w
	if r.deck != nil {
		r.deck.world = w
	}
	w.rig.memory = cmp.Or(r.memory, maxMemory)
	w.now, w.end = w.start, w.start.Add(s.For.Milliseconds())
	w.clock = timeline{{from: w.start}}
	w.queue.shuffle, w.queue.seed = s.Engine.Ties == TiesSeeded, s.Engine.Seed
	w.truth = newTruth(w)
	for i := range max(s.Engine.Runners, 1) {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	w.planFaults()
	w.alone = len(w.nodes) == 1 && !slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Kind == FaultOverload || f.Kind == FaultEditTrigger })
	return w
}

// at puts an event into the queue; one in the past happens now.
func (w *world) at(t store.Instant, e event) { w.queue.push(max(t, w.now), e.kind.class(), e) }

// shown is what the store's clock shows.
func (w *world) shown() store.Instant { return w.clock.at(w.now) }

// whenShown is the true time at which the store's clock shows the instant.
func (w *world) whenShown(t store.Instant) store.Instant { return w.clock.when(w.now, t) }

// run lets everything happen until the end. A panic of the engine ends it, as
// a failure.
func (w *world) run() {
	defer w.ground()
	defer func() {
		if p := recover(); p != nil {
			w.panicked(p)
		}
	}()
	w.open()
	for _, n := range w.nodes {
		n.startAt(w.now)
	}
	if every := w.scenario.Engine.SnapshotEvery; every > 0 {
		w.at(w.now.Add(every.Milliseconds()), event{kind: snapshotDue})
	}
	for w.queue.len() > 0 && w.queue.next() <= w.end {
		if w.spent = w.exceeded(); w.spent != "" || w.broken || len(w.failures) == maxFailures {
			return
		}
		w.next()
	}
	w.now = w.end
	w.truth.audit()
	w.judgeLiveness()
	w.chargeRest()
}

// next lets the next event happen.
func (w *world) next() {
	var e event
	w.now, e = w.queue.pop()
	w.events++
	w.checked[anEvent]++
	switch e.kind {
	case faultBegins:
		if e.epoch > 0 {
			e.epoch--
			w.queue.push(w.now, classNode, e)
		} else {
			w.beginFault(int(e.index))
		}
	case faultEnds:
		w.endFault(int(e.index))
	case clockStrobes:
		if !w.faults[e.index].over {
			w.strobe(int(e.index))
		}
	case snapshotDue:
		w.snapshot()
	case operatorActs:
		w.takeOff(w.operator, e, w.edit)
	case callMoves:
		w.move(e)
	default:
		w.act(e)
	}
	w.compact()
	if w.events >= w.auditAt {
		w.auditAt = w.events + max(auditEvery, w.truth.audit())
	}
}

// auditEvery is after how many events all rows are compared with the truth; if
// there are more rows than that, after as many events as there are rows.
const auditEvery = 1024

// act lets a process take a step, or has it wait while it is paused.
func (w *world) act(e event) {
	n := w.nodes[e.node]
	if until := n.free(); until > w.now {
		w.defers(n, e, until)
		return
	}
	if len(w.slowFaults) > 0 || e.kind == nodeStarts && len(w.nodes) > 1 || e.kind == workerSteps && n.workers[e.index].flies() || e.kind == handlerSteps && n.attempt(e).flies() {
		w.takeOff(n, e, func() { w.step(n, e) })
		return
	}
	w.acting = n
	w.step(n, e)
	w.acting = nil
}

// step takes the step, unless it is void.
func (w *world) step(n *node, e event) {
	switch e.kind {
	case nodeStarts:
		if n.epoch == e.epoch {
			n.start()
			w.checkEvents()
		}
	case runnerSteps:
		if n.loop.epoch == e.epoch {
			n.step()
			w.checkEvents()
			w.strike(n)
		}
	case workerSteps:
		if worker := n.workers[e.index]; worker.epoch == e.epoch {
			worker.step()
			w.checkEvents()
		}
	case handlerSteps:
		if a := n.attempt(e); a != nil {
			a.step()
			w.checkEvents()
		}
	case ackComes:
		w.receive(e.index)
		w.checkEvents()
	}
}

// fail notes that an invariant was broken.
func (w *world) fail(broken invariant, schedule, detail string) {
	verdict := Safety
	if broken == liveness {
		verdict = Liveness
	}
	w.note(verdict, broken.String(), schedule, detail)
}

// note notes a failure.
func (w *world) note(verdict Verdict, broken, schedule, detail string) {
	w.digest.Text(tagFailure, broken)
	if len(w.failures) < maxFailures {
		w.failures = append(w.failures, Failure{
			Verdict: verdict, Invariant: broken, Schedule: schedule, Detail: detail, At: timeOf(w.now),
		})
	}
	if w.watched() {
		w.tell(Event{Kind: EventViolated, Cause: w.causes.last, Process: w.acting.number(), Schedule: schedule, Reason: broken + ": " + detail})
	}
}

// The kinds of excuses: why something that is stuck has to be.
const (
	runnerEnded = "a runner ended, by an outage of the store or by another's lease, and none takes its place until its process starts again"
	noRunner    = "boundaries were left because no runner runs any more"
)

// excuse notes that something was stuck and had to be.
func (w *world) excuse(kind, text string) {
	if e := (Excuse{kind, text}); len(w.excused) < maxFailures && !slices.Contains(w.excused, e) {
		w.excused = append(w.excused, e)
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
	tagHandler
)

// ctx is never cancelled: a process that goes away takes no more steps.
var ctx = context.Background()
