package tickonce

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// WorkerConfig configures a worker. Its zero value works.
type WorkerConfig struct {
	// Name is what its claims carry. A name of 1 to 128 bytes. Default: one
	// of its own, from [Config.Owner].
	Name string

	// Concurrency is how many jobs the worker has in hand at most. Default 1;
	// 1 to 10,000.
	Concurrency int

	// Timeout is how long a run may take, from its claim on; then it has
	// failed (X5). A job may have less of its own. Default: no bound. At least
	// 1 ms.
	Timeout time.Duration

	// Poll is how often the worker, with nothing to do, looks for jobs that
	// others wrote to a shared store; those of its own engine it sees at once.
	// Default: [Config.Poll]; at least 10 ms, at most 24 h. Negative: never.
	Poll time.Duration

	// StopTimeout is how long runs may go on after the stop has begun, before
	// their contexts end. Default 10 s; at most 24 h. Negative: not at all.
	StopTimeout time.Duration
}

// noticeTime is how long a run may take to give up, once the stop has ended
// its context.
const noticeTime = 5 * time.Second

func (c WorkerConfig) withDefaults(e Config) (WorkerConfig, error) {
	var f faults
	f.within("Concurrency", &c.Concurrency, 1, 1, maxBatch)
	f.poll(&c.Poll, e.Poll)
	if c.Timeout != 0 {
		f.between("Timeout", &c.Timeout, 0, time.Millisecond, durationOf(core.MaxIntervalMS))
	}
	if c.StopTimeout = max(c.StopTimeout, -1); c.StopTimeout >= 0 {
		f.between("StopTimeout", &c.StopTimeout, 10*time.Second, time.Millisecond, 24*time.Hour)
	}
	if c.Name != "" {
		if err := core.CheckName("worker", c.Name); err != nil {
			f.add("Name", "is refused: "+err.Error())
		}
	}
	return c, errors.Join(f...)
}

// Worker claims the jobs of one queue, keeps their claims alive, and settles
// them. It runs no handler itself: a step answers the runs to begin, and is
// told by [Worker.Ended] of their ends. It only moves when [Worker.Step] is
// called. A Worker is not safe for concurrent use; several workers, on one
// engine or on many, share a queue by their claims.
//
// A step makes one store call, the first of these that has a reason, but no two
// renewals in a row where another has one:
//
//	phase   call    reason                             then
//	extend  Extend  a third of a claim has passed      lost → the run's context ends with ErrClaimLost
//	settle  Settle  runs have ended, or timed out      their slots are free, once their handlers have returned
//	        Commit  or have ended with deliveries      the same; where a run is refused the others go first
//	claim   Claim   a slot is free, a job may be due   as many as there were slots → claim, once one is free · else ask
//	ask     Queues  nothing is left to claim; a poll   claim when the next job is due, or ask at the next poll
//
// After a store error the next call waits 100, 200 and 400 ms, and from then on
// 5 s, until one succeeds (I9). Rounds in which a job is said to be due and
// none is handed out slow down to one a second after the third.
//
// When the ctx of a step has ended the worker stops: it claims nothing more.
// What such a claim brought is given back at once, for an attempt, or runs if
// it has no other. The runs in hand go on for [WorkerConfig.StopTimeout]; then
// their contexts end, and errors give their jobs back at once; 5 s later the
// rest is left to lapse, and the worker ends with an [*AbandonedError].
type Worker struct {
	engine *Engine
	queue  string
	config WorkerConfig
	signal *signal
	outbox bool // claims are not renewed (O4)

	runs  []*Run        // in hand, in the order of their claims
	now   store.Instant // the host's latest reading
	ended bool
	err   error // of the end

	extended bool // by the latest call

	next   store.Instant // when to claim, on the host's clock
	asks   bool          // or then to ask first
	seen   int64         // of the signal, before the latest claim
	barren int           // claims in a row that found nothing

	failures int           // store errors in a row
	retryAt  store.Instant // no call before, on the host's clock

	stopping       bool
	cause          error         // of the stop
	cutAt, leaveAt store.Instant // on the host's clock
	cut            bool

	report WorkerReport

	rows      []store.Job // what calls share with the store, from here on
	settling  []*Run
	settles   []store.Settle
	held      []bool
	extending []*Run
	extends   []store.Extend
	deadlines []store.Instant
	info      [1]store.Queue
}

// WorkerReport tells what a step of a worker did. It is good until the next
// one.
type WorkerReport struct {
	Phase Phase  // of the call that was made, or "" without one
	Err   error  // of that call, which is made again
	Begun []*Run // whose handlers are to be called
}

// NewWorker returns a worker of the queue. It makes no call before its first
// step. Faults are found in the order queue, config: [ErrInvalidName],
// [ErrReservedName], and joined [*OptionError]s. A worker is stepped until its
// end.
func (e *Engine) NewWorker(queue string, c WorkerConfig) (*Worker, error) {
	if err := core.CheckName("queue", queue); err != nil {
		return nil, err
	}
	c, err := c.withDefaults(e.config)
	if err != nil {
		return nil, err
	}
	return e.newWorker(queue, c), nil
}

func (e *Engine) newWorker(queue string, c WorkerConfig) *Worker {
	if c.Name == "" {
		c.Name = workerName(e.config.Owner, e.workers.Add(1))
	}
	return &Worker{
		engine: e, queue: queue, config: c, signal: e.queues.join(queue),
		now: e.now(), next: store.MinInstant, retryAt: store.MinInstant,
	}
}

// workerName is the default of [WorkerConfig.Name]: of a long owner the end,
// where it is more likely to differ from others.
func workerName(owner string, number int64) string {
	suffix := "/worker-" + strconv.FormatInt(number, 10)
	if cut := len(owner) + len(suffix) - core.MaxName; cut > 0 {
		for ; !utf8.RuneStart(owner[cut]); cut++ {
		}
		owner = strings.TrimSpace(owner[cut:])
	}
	return owner + suffix
}

// Step makes at most one store call and returns when to be called next, on the
// host's clock, which is now or the past when there is more to do. It may be
// called sooner, and is after [Worker.Ended] or after a job was enqueued; too
// soon it does nothing. The handlers of the runs in the report are to be called
// beside the worker or, by a host that has no other way, before the next step.
//
// An ended ctx begins the stop. Calls are not cut short by it, and bounded by
// nothing here.
//
// After the end next is the zero time, and err is nil or an [*AbandonedError].
// Before the end err is nil: errors of the store are in the report.
func (w *Worker) Step(ctx context.Context) (next time.Time, rep *WorkerReport, err error) {
	return w.step(ctx, func() (context.Context, context.CancelFunc) { return context.WithoutCancel(ctx), func() {} })
}

// step is Step with the contexts of its calls.
func (w *Worker) step(ctx context.Context, calls func() (context.Context, context.CancelFunc)) (time.Time, *WorkerReport, error) {
	w.report = WorkerReport{Begun: w.report.Begun[:0]}
	w.pass(ctx)
	if phase, at := w.duty(); phase != "" && at <= w.now {
		w.report.Phase, w.extended = phase, phase == PhaseExtend
		call, done := calls()
		switch phase {
		case PhaseExtend:
			w.extend(call)
		case PhaseSettle:
			w.settle(call)
		case PhaseClaim:
			w.claim(ctx, call)
		case PhaseAsk:
			w.ask(call)
		}
		done()
		w.pass(ctx)
	}
	if w.ended {
		return time.Time{}, &w.report, w.err
	}
	return timeOrBefore(w.wake()), &w.report, nil
}

// duty is the next call to make, and when; or none, and never.
func (w *Worker) duty() (Phase, store.Instant) {
	if w.ended {
		return "", store.None
	}
	phase, at := Phase(""), store.None
	if !w.stopping && len(w.runs) < w.config.Concurrency {
		if phase, at = PhaseClaim, w.next; w.seen != w.signal.seen() {
			at = store.MinInstant
		} else if w.asks {
			phase = PhaseAsk
		}
	}
	beat := store.None
	for _, r := range w.runs {
		switch r.state {
		case runEnded, runOverdue:
			phase, at = PhaseSettle, store.MinInstant
		case runWorking:
			beat = min(beat, r.beatAt)
		}
	}
	turn := w.extended && at <= w.now // of the others, or renewals on a slow store would hold them up for ever
	if !turn && (beat <= w.now || beat < at) {
		phase, at = PhaseExtend, beat
	}
	if phase != "" {
		at = max(at, w.retryAt)
	}
	return phase, at
}

// wake is when the next step has something to do.
func (w *Worker) wake() store.Instant {
	_, at := w.duty()
	for _, r := range w.runs {
		if r.state == runWorking {
			at = min(at, r.timeoutAt)
		}
	}
	if w.stopping && !w.cut {
		at = min(at, w.cutAt)
	} else if w.stopping {
		at = min(at, w.leaveAt)
	}
	if at == store.None { // only what wakes it can give it something to do
		at = w.now.Add(time.Hour.Milliseconds())
	}
	return at
}

// pass does what the host's time and the ctx alone bring about.
func (w *Worker) pass(ctx context.Context) {
	if w.ended {
		return
	}
	now := w.engine.now()
	if now < w.now { // the clock has gone back, and less time is left (K5)
		w.shift(now - w.now)
	}
	w.now = now
	if ctx.Err() != nil && !w.stopping {
		w.stopping, w.cause = true, context.Cause(ctx)
		w.cutAt = now.Add(max(w.config.StopTimeout, 0).Milliseconds())
		w.leaveAt = w.cutAt.Add(noticeTime.Milliseconds())
	}
	for _, r := range w.runs {
		if r.state == runWorking && r.timeoutAt <= now {
			r.state, r.end = runOverdue, r.Job.outcome(&timeoutError{r.timeout}, false)
			r.finish(context.DeadlineExceeded)
		}
	}
	if w.stopping && !w.cut && w.cutAt <= now {
		w.cut = true
		for _, r := range w.runs {
			r.finish(w.cause)
		}
	}
	switch {
	case w.stopping && len(w.runs) == 0:
		w.finish(nil)
	case w.stopping && w.leaveAt <= now:
		w.abandon()
	}
}

// shift moves every instant on the host's clock.
func (w *Worker) shift(ms store.Instant) {
	instants := []*store.Instant{&w.next, &w.retryAt, &w.cutAt, &w.leaveAt}
	for _, r := range w.runs {
		instants = append(instants, &r.beatAt, &r.lapsesAt, &r.timeoutAt)
	}
	for _, at := range instants {
		*at = at.Add(int64(ms))
	}
}

// abandon leaves all that is in hand.
func (w *Worker) abandon() {
	left := &AbandonedError{Queue: w.queue}
	for _, r := range w.runs {
		if r.state == runEnded {
			left.Unsettled++
		} else {
			left.Running++
		}
		if r.state != runLoose {
			w.emitHosted(Event{Kind: EventAbandoned, Job: r.Job.ID, Schedule: r.Job.Schedule, Boundary: r.Job.Boundary})
		}
		r.state = runLoose
	}
	w.runs = nil
	w.finish(left)
}

func (w *Worker) finish(err error) {
	w.ended, w.err = true, err
	w.engine.queues.leave(w.queue)
	w.emitHosted(Event{Kind: EventStopped, Err: err})
}

// emitHosted tells of what no call answered, at the host's clock.
func (w *Worker) emitHosted(event Event) {
	event.At, event.Owner, event.Queue = timeOf(w.engine.now()), w.config.Name, w.queue
	w.engine.emit(event)
}

// Ended tells the worker that the handler of a run which it began has returned,
// and what: an error as from [Run.Call]. The next step settles the job. A run
// ends once.
func (w *Worker) Ended(r *Run, err error) {
	switch r.state {
	case runWorking:
		r.state, r.end = runEnded, r.Job.outcome(err, w.cut)
	case runOverdue:
		r.state = runEnded
	case runLoose:
		w.drop(r)
	case runEnded:
		panic("tickonce: a run of a worker ended twice")
	}
	r.finish(context.Canceled)
}

func (w *Worker) drop(r *Run) {
	if i := slices.Index(w.runs, r); i >= 0 {
		w.runs = slices.Delete(w.runs, i, i+1)
	}
}

// settle writes the ends that there are or, where some of them have deliveries,
// those.
func (w *Worker) settle(ctx context.Context) {
	delivers := slices.ContainsFunc(w.runs, func(r *Run) bool { return r.state == runEnded && len(r.end.deliver) > 0 })
	w.settling, w.settles, w.held = w.settling[:0], w.settles[:0], w.held[:0]
	for _, r := range w.runs {
		if (r.state == runEnded || r.state == runOverdue) && len(r.end.deliver) > 0 == delivers {
			w.settling, w.settles, w.held = append(w.settling, r), append(w.settles, r.end.Settle), append(w.held, false)
		}
	}
	if slices.ContainsFunc(w.settling, func(r *Run) bool { return r.Job.Schedule != "" }) {
		defer w.engine.queues.ended() // after an error, too: it may be done
	}
	if delivers {
		w.deliver(ctx)
	} else {
		w.settleAll(ctx)
	}
	clear(w.settling)
	clear(w.settles)
}

func (w *Worker) settleAll(ctx context.Context) {
	if slices.ContainsFunc(w.settles, func(s store.Settle) bool { return s.To == store.Pending }) {
		defer w.engine.queues.raise(w.queue) // after an error, too: it may be done
	}
	now, err := w.engine.store.Settle(ctx, w.settles, w.held)
	if err != nil {
		w.failed(PhaseSettle, err)
		return
	}
	w.failures = 0
	for i, r := range w.settling {
		r.end.Settle = w.settles[i] // as the store answered it
		w.settled(r, now, w.held[i])
	}
}

// settled frees the slot of a run whose end was written, or came too late.
func (w *Worker) settled(r *Run, now store.Instant, held bool) {
	if r.state == runOverdue {
		r.state = runLoose
	} else {
		w.drop(r)
	}
	r.Job.settled(now, r.end, held)
}

// deliver writes ends and their deliveries as one. A run that keeps them from
// being written has ended otherwise, and the next step does without it.
func (w *Worker) deliver(ctx context.Context) {
	b, bytes := &store.Batch{}, int64(0)
	for i, r := range w.settling {
		bytes += payloadBytes(r.end.deliver)
		if i > 0 && (i+1+len(b.Inserts)+len(r.end.deliver) > maxBatch || bytes > w.engine.batchPayload) {
			break
		}
		b.Settles, b.Inserts = w.settles[:i+1], append(b.Inserts, r.end.deliver...)
	}
	defer w.engine.raiseAll(b.Inserts) // after an error, too: they may be there
	done, err := w.engine.store.Commit(ctx, b)
	if err != nil {
		w.failed(PhaseSettle, err)
		return
	}
	w.failures = 0
	switch at := done.Refusal; {
	case at.Why == store.NotRefused:
		for i, r := range w.settling[:len(b.Settles)] {
			r.end.Settle = b.Settles[i]
			w.settled(r, done.Now, true)
		}
		w.engine.enqueued(done.Now, b.Inserts, done.Inserts)
	case at.Part == store.Settles:
		w.settled(w.settling[at.Index], done.Now, false)
	default: // an outbox is full
		first := 0
		for _, r := range w.settling {
			if first += len(r.end.deliver); at.Index < first {
				r.end = r.Job.outcome(w.engine.refused("deliver", b, at), false)
				break
			}
		}
	}
}

func (w *Worker) extend(ctx context.Context) {
	asked := w.now
	w.extending, w.extends, w.deadlines = w.extending[:0], w.extends[:0], w.deadlines[:0]
	for _, r := range w.runs {
		if r.state == runWorking && r.beatAt <= asked {
			w.extending = append(w.extending, r)
			w.extends = append(w.extends, store.Extend{Job: r.Job.ID, Attempt: r.Job.token, ForMS: r.Job.stamps.VisibilityMS})
			w.deadlines = append(w.deadlines, store.None)
		}
	}
	now, err := w.engine.store.Extend(ctx, w.extends, w.deadlines)
	if err != nil {
		w.failed(PhaseExtend, err)
		return
	}
	w.failures = 0
	for i, r := range w.extending {
		if w.deadlines[i] == store.None {
			w.lost(r, timeOf(now))
		} else {
			r.claimedAt(asked)
		}
	}
	clear(w.extending)
}

// lost deals with a run whose claim is not the live one any more.
func (w *Worker) lost(r *Run, at time.Time) {
	r.state = runLoose
	r.finish(ErrClaimLost)
	r.Job.lost(at)
}

func (w *Worker) claim(ctx, call context.Context) {
	asked, seen := w.now, w.signal.seen()
	free := w.config.Concurrency - len(w.runs)
	w.rows = slices.Grow(w.rows[:0], free)[:free]
	claim, err := w.engine.claimOnce(call, w.queue, w.config.Name, w.rows)
	if err != nil {
		w.failed(PhaseClaim, err)
		return
	}
	w.failures, w.seen = 0, seen
	w.next, w.asks = asked, claim.N < free && claim.Buried < store.MaxBuried
	if w.barren++; claim.N > 0 || claim.Buried > 0 {
		w.barren = 0
	}
	for i := range w.rows[:claim.N] {
		r := &Run{Job: w.engine.jobOf(&w.rows[i]), begun: ctx, timeoutAt: store.None}
		r.claimedAt(asked)
		if r.timeout = w.timeout(r.Job); r.timeout > 0 {
			r.timeoutAt = asked.Add(r.timeout.Milliseconds())
		}
		if w.outbox {
			r.beatAt = store.None
		}
		w.runs = append(w.runs, r)
		if ctx.Err() != nil && r.Job.Attempt < r.Job.MaxAttempts {
			r.state, r.end.Settle = runEnded, store.Settle{
				Job: r.Job.ID, Attempt: r.Job.token, To: store.Pending, Ended: store.Cancelled, Error: r.Job.LastError,
			}
			continue
		}
		w.report.Begun = append(w.report.Begun, r)
	}
	clear(w.rows[:claim.N])
}

// timeout is how long a run may take (X5), or 0: the least of what the worker
// and the job say and, where nothing renews it, of its claim.
func (w *Worker) timeout(j *Job) time.Duration {
	least := w.config.Timeout
	if own := durationOf(j.timeoutMS); own > 0 && (least == 0 || own < least) {
		least = own
	}
	if claim := durationOf(j.stamps.VisibilityMS); w.outbox && (least == 0 || claim < least) {
		least = claim
	}
	return least
}

func (w *Worker) ask(ctx context.Context) {
	ends := w.engine.queues.ends.Load()
	n, now, err := w.engine.store.Queues(ctx, w.queue, w.info[:])
	if err != nil {
		w.failed(PhaseAsk, err)
		return
	}
	w.failures = 0
	due := store.None
	if n > 0 && w.info[0].Name == w.queue {
		due = w.info[0].NextClaimAt
		if w.info[0].Waiting > 0 {
			w.engine.queues.awaitEnd(w.queue, ends)
		}
	}
	if due <= now {
		w.next, w.asks = w.engine.now().Add(stallTime(w.barren).Milliseconds()), false
		return
	}
	w.barren = 0
	w.next, w.asks = store.None, false
	if due != store.None {
		w.next = w.engine.now().Add(int64(due - now))
	}
	if poll := w.config.Poll; poll > 0 && (due == store.None || poll.Milliseconds() < int64(due-now)) {
		w.next, w.asks = w.engine.now().Add(poll.Milliseconds()), true
	}
}

// failed makes the next call later. Claims that could not be renewed in time
// are lost by then, whatever the store will say.
func (w *Worker) failed(phase Phase, err error) {
	w.report.Err = &OpError{Op: "run worker", Phase: phase, Queue: w.queue, Err: err}
	pause := standByTime
	if w.failures++; w.failures <= retries {
		pause = firstRetryTime << (w.failures - 1)
	}
	w.emitHosted(Event{Kind: EventRetrying, Phase: phase, Count: int64(w.failures), Wait: pause, Err: err})
	now := w.engine.now()
	w.retryAt = now.Add(pause.Milliseconds())
	for _, r := range w.runs {
		if r.state == runWorking && r.lapsesAt < now {
			w.lost(r, timeOf(now))
		}
	}
}
