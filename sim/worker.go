package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// worker has the jobs of a queue done in one process, in one of two ways: it is the
// engine's own, [tickonce.Worker], which is stepped as by [tickonce.Engine.RunWorker];
// or its program claims and settles each job itself (byhand.go).
type worker struct {
	loop
	index int
	name  string
	queue *trueQueue
	idle  store.Instant // since when it could take a job
	byHand

	engine    *tickonce.Worker // of this life; nil by hand, and while its process is away
	context   context.Context  // of its steps
	stop      context.CancelCauseFunc
	attempts  []*attempt    // those in hand, in the order of their claims
	numbers   int64         // of attempts, of all lives
	returned  []*attempt    // whose handlers returned during a step
	asked     store.Instant // the reading at the begin of the latest step
	seen      store.Instant // the latest one
	failing   bool          // its latest call failed
	outage    bool          // the call of this step did
	roused    bool          // it has something to do at once
	stopping  bool          // it was told to stop
	leaves    bool          // before this step
	cutAt     store.Instant // of a stop, by the clock of the process
	stopTurns int64         // of all clocks, at its begin
}

// hired is what an attempt in the hands of a worker of the engine's has beside what
// one by hand has. Its instants are by the clock of the process.
type hired struct {
	run       *tickonce.Run // nil by hand
	number    int64
	back      bool          // its handler has returned
	told      bool          // and the worker knows
	err       error         // what it returned
	overdue   bool          // it was not told when the run timed out
	loose     bool          // its end is nothing to the worker any more
	cut       bool          // it was told after the stop had ended its context
	holds     store.Instant // until when its claim does, as the worker knows
	renewBy   store.Instant // when half of that is over
	timeoutAt store.Instant
	turns     int64 // of all clocks, when these were reckoned
	heard     bool  // its handler has heard that its context ended
	calls     bool  // a step of it is under way
	quits     error // why it returns after that; nil without a reason
	acked     bool  // its handler has settled the job, in a transaction
	settled   bool  // as the worker knows, its end was written, or came too late
	noRoom    bool  // there was none in an outbox for its results
}

// stopTime is how long runs go on after a stop, and noticeTime how long they may
// then take to give up (W6).
const (
	stopTime   = 10 * time.Second
	noticeTime = 5 * time.Second
)

// errStopped is the cause of a stop.
const errStopped handlerError = "the process stops"

// worksByHand reports whether the workers of the queue are programs that claim and
// settle by themselves: those that beat by themselves, or whose acks a fault
// has come late, twice, or never.
func (s *Scenario) worksByHand(queue string) bool {
	in := func(name string) bool {
		return slices.ContainsFunc(s.Schedules, func(one Schedule) bool { return one.Name == name && one.Queue == queue })
	}
	return slices.ContainsFunc(s.Schedules, func(one Schedule) bool { return one.Queue == queue && one.Heartbeat > 0 }) ||
		slices.ContainsFunc(s.Faults, func(f Fault) bool {
			switch f.Kind {
			case FaultLateAck, FaultDuplicateAck, FaultLostAck:
				return (f.Queue == "" || f.Queue == queue) && (f.Schedule == "" || in(f.Schedule))
			default:
				return false
			}
		})
}

// start begins a life of the worker.
func (w *worker) start() {
	world, q := w.node.w, w.queue
	if q.byHand {
		w.goOn(claims, world.now)
		return
	}
	c := tickonce.WorkerConfig{Name: w.name, Concurrency: q.concurrency, Timeout: q.timeout, Poll: time.Duration(w.attends()) * time.Millisecond, StopTimeout: stopTime}
	employ := func() (*tickonce.Worker, error) { return w.node.engine.NewWorker(q.row.Name, c) }
	if q.outbox != nil {
		employ = func() (*tickonce.Worker, error) { return w.node.engine.Outbox(q.name).NewWorker(c) }
	}
	engine, err := employ()
	if err != nil {
		panic(fmt.Sprintf("sim: a scenario with an invalid worker passed its check: %v", err))
	}
	w.engine = engine
	w.context, w.stop = context.WithCancelCause(ctx)
	w.seen = w.clock()
	w.idle, w.failing, w.stepping, w.stopping, w.leaves, w.roused = world.now, false, false, false, false, false
	w.stepAt(world.now)
}

// cutOff ends whatever the worker does, as the end of its process does.
func (w *worker) cutOff() {
	w.epoch++
	w.state, w.engine = away, nil
	for _, a := range w.working() {
		a.tell(EventHandlerCut, "stop")
		a.call.end()
	}
	w.leave()
	w.attempts, w.returned = nil, nil
}

// inHand are the attempts that are not at their end.
func (w *worker) inHand() []*attempt {
	if w.state == works {
		return []*attempt{&w.has}
	}
	return w.attempts
}

// working are those of them whose handlers are at work.
func (w *worker) working() []*attempt {
	return slices.DeleteFunc(slices.Clone(w.inHand()), func(a *attempt) bool { return a.back })
}

// flies reports whether the worker's next step is one that others interrupt.
func (w *worker) flies() bool {
	return w.state == works && w.has.flies() || w.queue.outbox != nil && w.engine == nil
}

// flies reports whether the handler's next step is one, as a transaction is.
func (a *attempt) flies() bool { return a != nil && a.tx }

func (w *worker) step() {
	w.node.working = w
	defer func() { w.node.working = nil }()
	if w.engine == nil {
		w.stepByHand()
	} else {
		w.stepEngine()
	}
}

// stepEngine steps the engine's worker, and takes note of what it says.
func (w *worker) stepEngine() {
	full := len(w.attempts) == w.queue.concurrency
	w.roused, w.outage, w.leaves = false, false, w.stopping
	w.asked = w.clock()
	w.hearsStop()
	w.age()
	w.stepping = true
	next, report, err := w.engine.Step(w.context)
	w.stepping = false
	w.hearsStop()
	if report.Phase != "" {
		w.failing = report.Err != nil
		w.check(report.Err)
	}
	if report.Phase == tickonce.PhaseSettle && report.Err == nil {
		w.settled()
	}
	for _, run := range report.Begun {
		w.begin(run)
	}
	w.age()
	for _, a := range w.returned {
		a.ended()
	}
	w.returned = w.returned[:0]
	w.hear()
	if next.IsZero() {
		w.finished(err)
		return
	}
	if full && len(w.attempts) < w.queue.concurrency {
		w.idle = w.node.w.now
	}
	until := store.Instant(next.UnixMilli())
	if w.roused { // by what its runs did when they heard of their end
		until = w.clock()
	} else {
		w.rests(until)
	}
	w.sleep(until, report.Phase != "")
}

// clock is what the process's own clock shows.
func (w *worker) clock() store.Instant { return w.node.clock.at(w.node.w.now) }

// wakeUp has the worker of the engine's look for jobs at once.
func (w *worker) wakeUp() {
	if w.engine != nil && !w.stepping {
		w.stepAt(w.node.w.now)
	}
}

// begin has the handler of a run begin.
func (w *worker) begin(run *tickonce.Run) {
	w.numbers++
	a := &attempt{worker: w, hired: hired{run: run, number: w.numbers, timeoutAt: store.None, holds: store.None, renewBy: store.None, turns: -1}}
	w.attempts = append(w.attempts, a)
	a.take(run.Job)
	if j := w.node.w.truth.jobs[run.Job.ID]; j != nil { // or it has ended on the way here
		a.renewed(j.stamps.VisibilityMS)
		bounds := []int64{w.queue.timeout.Milliseconds(), j.timeoutMS}
		if w.queue.outbox != nil { // nothing renews its claim (O4)
			a.renewBy = store.None
			bounds = append(bounds, j.stamps.VisibilityMS)
		}
		for _, ms := range bounds {
			if ms > 0 {
				a.timeoutAt = min(a.timeoutAt, w.asked.Add(ms))
			}
		}
	}
	a.begins()
	a.again(a.endsAt)
}

// renewed notes that the claim was made, or renewed, by the call under way.
func (a *attempt) renewed(visibilityMS int64) {
	asked := a.worker.asked
	a.holds, a.renewBy, a.turns = asked.Add(visibilityMS), asked.Add(max(visibilityMS/2, 1)), a.worker.node.w.turns
}

// attempt is the one whose handler the event lets go on; nil if it has returned.
func (n *node) attempt(e event) *attempt {
	for _, a := range n.workers[e.index].attempts {
		if a.number == e.epoch && !a.back {
			return a
		}
	}
	return nil
}

// step has the handler go on.
func (a *attempt) step() {
	n := a.worker.node
	n.working, n.handling, a.calls = a.worker, a, true
	defer func() { n.working, n.handling = nil, nil }() // also where it is abandoned
	a.goesOn()
	if a.calls = false; a.quits != nil && !a.back {
		a.giveUp(a.quits)
	}
}

// goesOn has the handler go on, and return if it is at its end.
func (a *attempt) goesOn() {
	if !a.goOn() || !a.writes() {
		return
	}
	a.worker.node.w.coverage.sometimes(handlerPanicked, a.ends == panics)
	a.comesThrough(a.ends == succeeds)
	a.tell(EventHandlerEnded, a.ends.String())
	switch a.ends {
	case succeeds:
		a.returns(nil)
	case fails:
		a.returns(a.class.of(a.reason))
	default:
		a.returns(a.run.Call(func(context.Context, *tickonce.Job) error { panic(string(a.reason)) }))
	}
}

// giveUp has the handler return since its context has ended.
func (a *attempt) giveUp(cause error) {
	reason := "timeout"
	switch cause {
	case tickonce.ErrClaimLost:
		reason = "claim-lost"
	case errStopped:
		reason = "stop"
	}
	a.comesThrough(false)
	a.tell(EventHandlerCut, reason)
	a.call.end()
	a.call, a.ends, a.class = nil, fails, Class{}
	a.returns(handlerError(textOf(cause)))
}

// returns has the handler return, which the worker is told when its step is over.
func (a *attempt) returns(err error) {
	w := a.worker
	a.back, a.err = true, err
	if w.stepping {
		w.returned = append(w.returned, a)
		return
	}
	a.ended()
	w.stepAt(w.node.w.now)
}

// ended tells the worker that the handler has returned.
func (a *attempt) ended() {
	w, cause := a.worker, a.run.Cause()
	a.told, a.cut = true, cause == errStopped
	a.loose = a.loose || cause == tickonce.ErrClaimLost
	w.engine.Ended(a.run, a.err)
	w.roused = true
	if a.loose {
		w.drop(a)
	}
}

func (w *worker) drop(a *attempt) {
	i := slices.Index(w.attempts, a)
	w.attempts = slices.Delete(w.attempts, i, i+1)
}

// age notes which runs have timed out. Where the clock has gone back, as much time
// is left as was (K5).
func (w *worker) age() {
	now := w.clock()
	if back := int64(now - w.seen); back < 0 {
		w.cutAt = w.cutAt.Add(back)
		for _, a := range w.attempts {
			a.holds, a.renewBy, a.timeoutAt = a.holds.Add(back), a.renewBy.Add(back), a.timeoutAt.Add(back)
		}
	}
	w.seen = now
	for _, a := range w.attempts {
		a.overdue = a.overdue || !a.told && !a.loose && a.timeoutAt <= w.clock()
	}
}

// settled lets go of the runs whose ends the step has written.
func (w *worker) settled() {
	for _, a := range slices.Clone(w.attempts) {
		switch {
		case a.loose || !a.settled:
		case a.told:
			w.drop(a)
		default:
			a.loose = true
		}
	}
}

// isSettled notes an answer to the settlement of the run, and whether it was
// written.
func (a *attempt) isSettled(done bool) {
	world, late := a.worker.node.w, ackRefused
	if a.worker.queue.outbox != nil {
		late = lateDeliveryRefused
	}
	a.settled = a.settled || world.acting.reply == faultstore.Pass
	if !a.acked && a.told && a.err == nil {
		world.coverage.sometimes(late, !done)
	}
	world.coverage.sometimes(deliveryPanicked, done && a.worker.queue.outbox != nil && a.ends == panics)
}

// hear has the handlers hear that their contexts have ended, and checks that
// this was right.
func (w *worker) hear() {
	world, now := w.node.w, w.clock()
	for _, a := range slices.Clone(w.attempts) {
		cause := a.run.Cause()
		known := a.turns == world.turns // or it was reckoned by another clock
		switch {
		case a.back || a.heard:
			continue
		case cause == nil:
			if w.outage && known && a.holds < now && !a.overdue && !a.loose {
				a.fail(keepsClaims, "goes on although its claim could not be renewed in time")
			}
			continue
		case cause == tickonce.ErrClaimLost:
			a.loose = true
			a.hears(cause)
		case cause == error(errStopped):
			if known && now < w.cutAt {
				a.fail(stops, "was cut off before its time")
			}
			a.hears(cause)
		default:
			if known && !a.overdue {
				a.fail(timesOut, "timed out before its time")
			}
			a.hears(cause)
		}
	}
}

// hears has the handler hear that its context has ended, and return as soon as it
// is not in the middle of a call. One that hangs hears nothing.
func (a *attempt) hears(cause error) {
	a.heard = true
	switch {
	case a.hangs:
	case a.calls:
		a.quits = cause
	default:
		a.giveUp(cause)
	}
}

// rests checks what the worker leaves as it sleeps until the instant (W4, W6, X5).
func (w *worker) rests(until store.Instant) {
	world, now := w.node.w, w.clock()
	if until <= now {
		return
	}
	world.checked[aRest]++
	for _, a := range w.attempts {
		switch {
		case a.loose || a.turns != world.turns:
		case a.told || a.overdue:
			if !w.failing {
				a.fail(timesOut, "has come to its end, and is left unsettled")
			}
		case a.timeoutAt < until:
			a.fail(timesOut, "times out at "+text(a.timeoutAt)+", and its worker sleeps until "+text(until))
		case a.renewBy < until && !w.failing:
			a.fail(keepsClaims, "has a claim until "+text(a.holds)+", and its worker sleeps until "+text(until))
		}
	}
	if leaves := w.cutAt.Add(noticeTime.Milliseconds()); w.stopping && w.stopTurns == world.turns && leaves < until {
		world.fail(stops, "", fmt.Sprintf("%s has to end by %s, and sleeps until %s", w.name, text(leaves), text(until)))
	}
}

// fail notes what is wrong with the run.
func (a *attempt) fail(broken invariant, what string) {
	a.worker.node.w.fail(broken, a.job.Schedule, jobOf(store.Instant(a.job.Boundary.UnixMilli()))+" "+what)
}

// leaveOff begins the stop of a worker of the engine's.
func (w *worker) leaveOff() {
	w.stopping, w.cutAt = true, store.None
	w.stop(errStopped)
	if !w.stepping {
		w.stepAt(w.node.w.now)
	}
}

// hearsStop has the stop begin for the worker, at the first step in which it can
// hear of it: its host may have it wait.
func (w *worker) hearsStop() {
	if w.stopping && w.cutAt == store.None {
		w.cutAt, w.stopTurns = w.clock().Add(stopTime.Milliseconds()), w.node.w.turns
	}
}

// finished takes note of the worker's end.
func (w *worker) finished(err error) {
	world := w.node.w
	var left *tickonce.AbandonedError
	working := len(w.working())
	switch {
	case !w.stopping:
		world.fail(stops, "", w.name+" ended without being stopped")
	case !errors.As(err, &left):
		if len(w.attempts) > 0 || err != nil {
			world.fail(stops, "", fmt.Sprintf("%s ended with %d runs in hand, and the error %v", w.name, len(w.attempts), err))
		}
	case left.Running != working || w.stopTurns == world.turns && w.clock() < w.cutAt.Add(noticeTime.Milliseconds()):
		world.fail(stops, "", fmt.Sprintf("%s left %d of %d runs behind", w.name, left.Running, working))
	}
	w.cutOff()
	w.node.leave()
}

// endsAs checks that the job of a run ends as the run did (W5, W6, X5).
func (a *attempt) endsAs(s *store.Settle, j *trueJob) bool {
	ended, class := a.outcome()
	switch {
	case s.Ended != ended:
		return false
	case a.overdue:
		return j.fails(s, class) && strings.HasPrefix(s.Error, "timed out after ")
	case !a.told:
		return false
	case a.noRoom:
		return j.fails(s, class) && strings.Contains(s.Error, "limit")
	case a.err == nil:
		return s.To == store.Done
	default:
		return j.fails(s, class) && s.Error == a.err.Error()
	}
}

// givesBack reports whether the settlement gives back a job that the worker claimed
// as its stop began, and has not begun (W6).
func (w *worker) givesBack(s *store.Settle, j *trueJob) bool {
	return w.stopping && s.To == store.Pending && s.DelayMS == 0 && s.Error == j.lastError
}

// attends is by how much later than others the worker may notice a job: one that its
// process did not put there it finds when it polls.
func (w *worker) attends() int64 {
	if w.queue.byHand || w.node.w.alone {
		return 0
	}
	return workerPollMS
}

// check refuses an error that is not a lost call's.
func (w *worker) check(err error) {
	if err != nil && !errors.Is(err, faultstore.ErrLost) {
		w.node.w.fail(noError, "", fmt.Sprintf("%s of queue %q: %v", w.name, w.queue.name, err))
	}
}
