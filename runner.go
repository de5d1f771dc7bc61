package tickonce

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// Runner is one run of the schedules: it leads by the scheduler's lock, looks
// for due schedules, and fires them. It only moves when [Runner.Step] is
// called. A Runner is not safe for concurrent use; several runners, on one
// engine or on many, contend by the lock (L2).
//
//	phase    call      answer → next phase, when
//	contend  Acquire   granted → look, now · refused → end with ErrLeadershipLost (stand-by: contend, +5 s)
//	renew    Renew     live → look, now · lapsed → contend, now (L4)
//	look     Due       none → rest · some → plan, write, now · the clock went back → inspect after a renewal (T11)
//	inspect  Schedules a page: rows ahead of the clock → repair or the next page, after a renewal · the last page → look
//	repair   Commit    → inspect, after a renewal
//	write    Advance   more due, or stale rows → renew, now · done → rest · fenced → contend, now
//	rest     none      woken, or the wake reached → renew · only the poll reached → look, and renew if some are due
//	stop     Release   end, nil
//
// A store error in any phase leads back to renew (without a lease: contend)
// after 100, 200 and 400 ms; the next one, or a permanent one, ends the runner,
// with its lease left to lapse (R8), or makes it stand by. Rounds that find something due and move
// nothing slow down to one a second after the third (L7).
type Runner struct {
	engine *Engine
	owner  string
	ttlMS  int64

	phase phase
	lease store.Lease // zero while the runner surely does not lead
	term  store.Term  // of the latest lease, until another is seen to lead
	led   store.Term  // of the latest lease
	err   error       // of the end

	now      store.Instant // the store's latest reading
	high     store.Instant // the highest since the latest inspection
	hostNow  store.Instant // the host's clock when it came
	failures int           // store errors since the last whole tick (R6)
	standing bool          // without retries of its own until a tick succeeds (L3)
	lost     bool          // because another leads, not because the store fails
	barren   int           // rounds in a row that found something due and moved nothing

	inspecting bool          // before the next look, as at the start (T11)
	inspected  string        // the name from which the next page begins
	reported   string        // the rows before this name are
	page       int           // the length of the latest page
	low        store.Instant // the lowest reading of this inspection
	judged     store.Instant // the highest one that a page of it was judged by
	repairs    store.Batch

	rows   []store.Schedule
	used   int // how many of rows may hold a row
	plan   core.TickPlan
	due    store.Instant                // the least due-at that the tick leaves behind
	unmade map[store.ScheduleID]refusal // moves that were not made, until the next plan of their rows
	seen   int64                        // of the engine's signal, before the look

	wake   store.Instant // the next step does nothing before, on the host's clock
	rested store.Instant // the host's clock when that was said
	polls  bool          // the wake is a poll's, and so is the next look: it only reads

	report Report
}

// errEndOfTime: no lease lasts at the last instant, where a clock that tells
// nonsense may stand for ever.
var errEndOfTime = errors.New("the store's clock is at the last instant")

type phase uint8

const (
	phaseContend phase = iota
	phaseRenew
	phaseLook
	phaseWrite
	phaseRepair
	phaseRest
	phaseEnded
)

// NewRunner returns a runner with an owner token of its own (L10). It makes no
// call before its first step.
func (e *Engine) NewRunner() *Runner {
	run := e.runs.Add(1)
	return &Runner{
		engine: e,
		owner:  e.config.Owner + "/" + strconv.FormatInt(run, 10),
		ttlMS:  e.config.LeaseTTL.Milliseconds(),
		due:    store.None,
		now:    store.MinInstant,
		high:   store.MinInstant,
		low:    store.MaxInstant,
		judged: store.MinInstant,
		rows:   make([]store.Schedule, e.config.Batch),
		unmade: map[store.ScheduleID]refusal{},

		inspecting: true,
	}
}

// Step makes at most one store call and returns when to be called next, on the
// host's clock, which is now or the past when there is more to do. It may be
// called sooner, as after a schedule was added; too soon it does nothing. The
// report tells what the step did and is good until the next one, or [Runner.Stop].
//
// A host that also works the queues has two wakes, this one and
// [Engine.NextClaimAt] of each queue.
//
// The release that an ended ctx brings about is bounded by nothing here: a host
// whose store may hang calls [Runner.Stop] with a deadline instead.
//
// After the end next is the zero time: err is nil after a clean stop, which an
// ended ctx brings about (L5), [ErrLeadershipLost], or the store's error that
// outlasted the retries. Before the end err is nil.
func (r *Runner) Step(ctx context.Context) (next time.Time, rep *Report, err error) {
	if ctx.Err() != nil {
		r.report = Report{runner: r}
		return time.Time{}, &r.report, r.Stop(context.WithoutCancel(ctx))
	}
	return r.step(ctx)
}

// step is Step under a ctx that has not ended, or ends at this moment.
func (r *Runner) step(ctx context.Context) (next time.Time, rep *Report, err error) {
	r.report = Report{runner: r}
	if r.phase == phaseEnded {
		return time.Time{}, &r.report, r.err
	}
	if r.phase == phaseRest {
		clear(r.rows[:r.used]) // or they would keep payloads of rows that are gone
		r.used = 0
	}
	host := r.engine.now()
	if r.asleep(host) {
		return r.next(), &r.report, nil
	}
	if r.phase == phaseRest {
		if r.phase = phaseRenew; r.polls {
			r.phase = phaseLook
		}
	}
	r.rested, r.wake = host, host
	switch r.phase {
	case phaseContend:
		r.contend(ctx)
	case phaseRenew:
		r.renew(ctx)
	case phaseLook:
		if r.inspecting {
			r.inspect(ctx)
		} else {
			r.look(ctx)
		}
	case phaseRepair:
		r.repair(ctx)
	case phaseWrite:
		r.write(ctx)
	}
	if r.phase == phaseEnded {
		return time.Time{}, &r.report, r.err
	}
	return r.next(), &r.report, nil
}

// next is the wake as Step answers it.
func (r *Runner) next() time.Time { return timeOrBefore(r.wake) }

// timeOrBefore is a wake as steps answer it: never the zero time, which is the
// end.
func timeOrBefore(wake store.Instant) time.Time {
	if t := timeOf(wake); !t.IsZero() {
		return t
	}
	return timeOf(wake - 1)
}

// asleep reports whether it is too soon for a step at the host's now. A host's
// clock that has gone back ends the sleep (K5), a woken engine ends a rest (L8).
func (r *Runner) asleep(host store.Instant) bool {
	return r.rested <= host && host < r.wake && (r.phase != phaseRest || r.seen == r.engine.woken.seen())
}

// wait makes the next step do nothing for so long.
func (r *Runner) wait(d time.Duration) {
	r.rested = r.engine.now()
	r.wake = r.rested + store.Instant(d.Milliseconds()) // past the last instant, if need be
}

// Stop ends the run and releases the lease (L5). It returns nil: if the
// release fails, the lease lapses. After the end it does nothing and returns
// what the run ended with. It is not to be called by an observer of the run.
func (r *Runner) Stop(ctx context.Context) error {
	if r.phase == phaseEnded {
		return r.err
	}
	if r.lease.Term != 0 {
		r.report = Report{runner: r, Phase: PhaseRelease}
		_, _ = r.engine.store.Release(ctx, r.lease)
		r.lease = store.Lease{}
	}
	r.end(nil)
	return nil
}

func (r *Runner) end(err error) {
	r.phase, r.err = phaseEnded, err
	r.emitHosted(Event{Kind: EventStopped, Err: err})
}

// emit tells of what a call has shown, at its reading.
func (r *Runner) emit(event Event) {
	event.At, event.Owner = timeOf(r.now), r.owner
	r.engine.emit(event)
}

// emitHosted tells of what no call answered, at the host's clock.
func (r *Runner) emitHosted(event Event) {
	event.At, event.Owner = timeOf(r.engine.now()), r.owner
	r.engine.emit(event)
}

func (r *Runner) contend(ctx context.Context) {
	r.report.Phase = PhaseAcquire
	grant, err := r.engine.store.Acquire(ctx, store.SchedulerLock, r.owner, r.ttlMS)
	if err != nil {
		r.failed(ctx, PhaseAcquire, err)
		return
	}
	r.read(grant.Now)
	if !grant.OK {
		r.lease = store.Lease{}
		if r.term != 0 {
			r.emit(Event{Kind: EventLeadershipLost})
			r.term = 0
		}
		r.refused(&OpError{Op: "run schedules", Phase: PhaseAcquire, Err: ErrLeadershipLost})
		return
	}
	if !grant.Lease.Live(grant.Now) {
		r.failed(ctx, PhaseAcquire, errEndOfTime)
		return
	}
	if r.term != 0 && r.term != grant.Lease.Term {
		r.emit(Event{Kind: EventLeaseLapsed})
	}
	if term := grant.Lease.Term; r.led != 0 && term != r.led && term != r.led+1 {
		r.inspectAfterOthers()
	}
	r.lease, r.term, r.led = grant.Lease, grant.Lease.Term, grant.Lease.Term
	if !r.standing {
		r.emit(Event{Kind: EventLeading})
	}
	r.phase = phaseLook
}

func (r *Runner) renew(ctx context.Context) {
	r.report.Phase = PhaseRenew
	r.polls = false
	grant, err := r.engine.store.Renew(ctx, r.lease, r.ttlMS)
	if err != nil {
		r.failed(ctx, PhaseRenew, err)
		return
	}
	r.read(grant.Now)
	if !grant.OK {
		r.lapsed()
		return
	}
	r.lease = grant.Lease
	r.phase = phaseLook
}

// lapsed drops what was planned and acquires anew (L4).
func (r *Runner) lapsed() {
	r.lease = store.Lease{}
	r.phase = phaseContend
	r.stall()
}

func (r *Runner) look(ctx context.Context) {
	r.report.Phase = PhaseSelect
	seen := r.engine.woken.seen()
	due, err := r.engine.store.Due(ctx, r.rows)
	if err != nil {
		r.failed(ctx, PhaseSelect, err)
		return
	}
	r.seen = seen
	r.read(due.Now)
	if r.inspecting {
		r.phase = phaseRenew // before it fires anything
		return
	}
	r.due, r.used = due.Next, max(r.used, due.N)
	if due.N == 0 {
		r.ticked(due.Next > due.Now)
		return
	}
	if r.polls {
		r.phase = phaseRenew // precedes every tick (L6)
		return
	}
	rows := r.rows[:due.N]
	taken := r.plan.Plan(rows, due.Now, r.engine.config.Batch, r.refusal, r.engine.minute)
	clear(r.unmade)
	if taken < len(rows) {
		r.due = min(r.due, rows[taken].DueAt)
	}
	r.phase = phaseWrite
}

// refusal is why the move of a row was not made at its revision.
type refusal struct {
	rev     store.Rev
	problem string
}

func (r *Runner) refusal(row *store.Schedule) string {
	if last := r.unmade[row.ID]; last.rev == row.Rev {
		return last.problem
	}
	return ""
}

func (r *Runner) write(ctx context.Context) {
	r.report.Phase = PhaseAdvance
	defer r.wakeWorkers() // after an error, too: it may be done
	r.plan.Tick.By = r.lease
	held, err := r.engine.store.Advance(ctx, &r.plan.Tick)
	if err != nil {
		r.failed(ctx, PhaseAdvance, err)
		return
	}
	if !held {
		r.lapsed()
		return
	}
	r.report.wrote = true
	moved := false
	for i := range r.plan.Tick.Moves {
		move := &r.plan.Tick.Moves[i]
		switch move.Outcome {
		case store.Moved:
			moved = true
			r.due = min(r.due, move.DueAt)
		case store.Full:
			r.unmade[move.ID] = refusal{move.Rev, "the queue is full"}
			r.due = store.MinInstant
		case store.Refused:
			r.unmade[move.ID] = refusal{move.Rev, "the store refuses what it would write"}
			r.due = store.MinInstant
		case store.Stale:
			r.due = store.MinInstant
		}
	}
	if r.engine.config.Observer != nil {
		r.announce()
	}
	r.ticked(moved)
}

// wakeWorkers wakes those of the queues into which the tick fires.
func (r *Runner) wakeWorkers() {
	for i := range r.plan.Tick.Moves {
		if r.plan.Tick.Moves[i].Fires > 0 {
			r.engine.queues.raise(r.rows[i].Queue)
		}
	}
}

// ticked ends a tick (R6). The next one comes at once if more is due, unless
// the store lets no progress be made.
func (r *Runner) ticked(progress bool) {
	r.failures = 0
	if r.standing {
		r.standing = false
		r.emit(Event{Kind: EventLeading})
	}
	if progress {
		r.barren = 0
	}
	if r.due > r.now {
		r.rest()
		return
	}
	r.phase = phaseRenew
	if !progress {
		r.stall()
	}
}

// stall slows down rounds without progress.
func (r *Runner) stall() {
	r.barren++
	if pause := stallTime(r.barren); pause > 0 {
		r.wait(pause)
	}
}

// stallTime is how long to wait after so many rounds in a row that found
// something to do and did nothing: a few of them are races, more are a fault of
// the store's.
func stallTime(barren int) time.Duration {
	const free = 3
	if barren <= free {
		return 0
	}
	return min(firstRetryTime<<min(barren-free-1, 10), sliceTime)
}

// rest sleeps until the least of the next due-at, the renewal and the poll
// (L7): never for longer than a renewal may wait, even if the store's clock
// stepped back since it granted the lease, and shows right again.
func (r *Runner) rest() {
	renewal := r.lease.ExpiresAt.Add(-2 * r.ttlMS / 3)
	if r.lease.ExpiresAt == store.MaxInstant { // cut short by the end of time
		renewal = r.now + (store.MaxInstant-r.now+1)/2
	}
	wake := min(r.due, renewal)
	r.polls = false
	if poll := r.now + store.Instant(r.engine.config.Poll.Milliseconds()); poll > r.now && poll < wake {
		wake, r.polls = poll, true
	}
	r.phase = phaseRest
	r.rested, r.wake = r.hostNow, r.hostNow+min(wake-r.now, store.Instant(r.ttlMS-2*r.ttlMS/3))
}

// clockSlackMS is how far the store's clock may go back and forth without being
// said to have gone back: less than the shortest interval, so that no cursor
// can be ahead by it.
const clockSlackMS = 1000

// read takes note of the store's clock. When it has gone back, the schedules
// are inspected before the next look (T11), from the first one on if it is
// further back than an inspection under way has seen.
func (r *Runner) read(now store.Instant) {
	if r.inspecting {
		if now < r.low {
			r.startInspection()
		}
		r.low = min(r.low, now)
	} else if now < r.high-clockSlackMS {
		r.startInspection()
		r.low = now
	}
	r.now, r.high, r.hostNow = now, max(r.high, now), r.engine.now()
}

// failed deals with a store error: it is retried from the renewal (R1, R3)
// until the retries are exhausted, unless that is of no use (R2).
func (r *Runner) failed(ctx context.Context, phase Phase, err error) {
	opErr := &OpError{Op: "run schedules", Phase: phase, Err: err}
	if phase == PhaseAdvance {
		opErr.Schedule, opErr.Rows = r.batch()
	}
	r.report.Err = opErr
	if ctx.Err() != nil {
		return // the next step stops
	}
	if r.standing {
		r.refused(opErr)
		return
	}
	if r.failures++; r.failures > retries || errors.Is(err, store.ErrPermanent) {
		r.failures = 0
		r.refused(opErr)
		return
	}
	pause := firstRetryTime << (r.failures - 1)
	r.emitHosted(Event{Kind: EventRetrying, Phase: phase, Count: int64(r.failures), Wait: pause, Err: err})
	if r.phase = phaseRenew; r.lease.Term == 0 {
		r.phase = phaseContend
	}
	r.wait(pause)
}

// batch names what a failed write would have written.
func (r *Runner) batch() (first string, rows int) {
	if r.phase == phaseRepair {
		return r.repairs.Puts[0].Guard.Name, len(r.repairs.Puts)
	}
	return r.rows[0].Name, len(r.plan.Tick.Moves)
}

// refused ends the run, or stands by (L3).
func (r *Runner) refused(err error) {
	if !r.engine.config.StandBy {
		r.end(err)
		return
	}
	r.report.Err = err
	lost := errors.Is(err, ErrLeadershipLost)
	if !r.standing || r.lost != lost { // not at every attempt
		r.emitHosted(Event{Kind: EventStandBy, Wait: standByTime, Err: err})
	}
	r.standing, r.lost, r.phase = true, lost, phaseContend // a lease is kept for the stop to release
	r.wait(standByTime)
}
