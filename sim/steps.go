package sim

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// Steps is a handler in Go. It runs as a coroutine in virtual time: each of its
// sleeps gives the run to others, and whatever it does in between takes no time.
// nil ends its job as done; with an error the job is tried again, or dies.
//
// A handler that calls [Call.Sleep] never, or that waits for something else,
// such as a channel, a lock or another goroutine, stops the whole run: nothing
// can interrupt it. So let it start no goroutine, and ask no clock and no source
// of randomness but those of its [Call], or equal seeds come to different
// digests. It has to keep what it knows to itself: a variable that outlives the
// call is shared with other processes, with the past of a process that has
// crashed, and with the other runs of a [Sweep].
type Steps func(c *Call) error

// Handlers are the handlers in Go of schedules, by the schedules' names. They
// take the place of [Schedule.Handler], which has to be the zero one there. That
// of "" handles the jobs of no schedule, as [Call.Enqueue] makes them; without
// it they take a second, and are done.
type Handlers map[string]Steps

// of is the handlers of these schedules.
func (h Handlers) of(schedules []Schedule) Handlers {
	some := Handlers{}
	if handler := h[""]; handler != nil {
		some[""] = handler
	}
	for i := range schedules {
		if handler := h[schedules[i].Name]; handler != nil {
			some[schedules[i].Name] = handler
		}
	}
	return some
}

// What an error of a [Steps] may wrap.
var (
	// ErrCrash has the run judged as one in which the handler panicked.
	ErrCrash = errors.New("the handler crashed")

	// ErrBudget breaks the run off, because the handler takes more than it may.
	ErrBudget = errors.New("the handler takes more than it may")
)

// MaxSteps is how many sleeps, heartbeats and jobs a [Steps] may make for one attempt
// of a job; the verdict of a run in which it makes more is [Budget].
const MaxSteps = 1_000_000

// Call is one attempt of a job, as its handler has it. It is of that handler
// alone: its methods panic when another, or one that has ended, calls them.
//
// When the process stops or crashes, when its time is over, or when the claim is
// lost, as an automatic heartbeat learns, the handler is given up: the method that it is in panics, so
// its deferred calls run, which those of a process that crashed would not. There
// is no harm in that: the methods of the Call panic again, and how the handler
// ends is ignored. One that recovers this panic, and goes on for ever, hangs.
type Call struct {
	// Job is the job, as it was claimed; its methods refuse to work, since the
	// worker settles it. A heartbeat changes its Deadline.
	Job tickonce.Job

	of      *attempt
	random  *rand.Rand
	suspend func(until store.Instant) bool
	resume  func() (until store.Instant, more bool)
	stop    func()

	steps   int
	running bool
	ended   bool   // by itself
	gone    bool   // given up
	asks    func() // the call to the store that it waits for
	err     error  // how the handler ended
}

// meant is a panic that a handler means.
type meant struct{ value any }

var errMeant = errors.New("the handler panicked, and meant it")

// newCall is the handler in Go of an attempt, which begins once it goes on.
func newCall(of *attempt, handler Steps) *Call {
	j := of.job
	c := &Call{of: of, Job: tickonce.Job{
		ID: j.ID, Queue: j.Queue, Payload: j.Payload, Schedule: j.Schedule, Boundary: j.Boundary,
		Enqueued: j.Enqueued, RunAt: j.RunAt, Attempt: j.Attempt, MaxAttempts: j.MaxAttempts, Priority: j.Priority,
		LastError: j.LastError, Deadline: j.Deadline,
	}}
	c.resume, c.stop = iter.Pull(func(suspend func(store.Instant) bool) {
		defer c.recovered()
		c.suspend = suspend
		c.err = handler(c)
	})
	return c
}

// recovered takes a panic of the handler, if there is one, as its error.
func (c *Call) recovered() {
	p := recover()
	switch _, meant := p.(meant); {
	case c.steps > MaxSteps:
		c.err = fmt.Errorf("%w: more than %d sleeps, heartbeats and jobs for one job", ErrBudget, MaxSteps)
	case meant:
		c.err = errMeant
	case p != nil:
		c.err = fmt.Errorf("%w: %s, in %s", ErrCrash, textOf(p), panickedIn())
	}
}

// goOn lets the handler go on until it waits, or ends.
func (c *Call) goOn() (until store.Instant, more bool) {
	c.running = true
	until, more = c.resume()
	c.running, c.ended = false, !more
	return until, more
}

// end gives the handler up, unless it has ended.
func (c *Call) end() {
	if c == nil || c.ended || c.gone {
		return
	}
	c.gone, c.running = true, true
	c.stop()
	c.running = false
}

// wait lets others' events happen until the instant.
func (c *Call) wait(until store.Instant) {
	if !c.running {
		panic("sim: a Call is used outside of its handler")
	}
	if c.steps++; c.steps > MaxSteps || !c.suspend(until) {
		panic(errAbandoned)
	}
}

// Sleep lets the time pass: at least d, in whole milliseconds, and longer while
// the process is paused. It goes by the true time, as a timer does. 0 or less
// lets whatever else happens at this instant happen.
func (c *Call) Sleep(d time.Duration) {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	c.wait(c.of.worker.node.w.now.Add(max(ms, 0)))
}

// Now is what the process's own clock shows, in UTC: it jumps and drifts as
// faults have it. With a single process it is the store's, too.
func (c *Call) Now() time.Time {
	n := c.of.worker.node
	return timeOf(n.clock.at(n.w.now))
}

// Elapsed is the true time since the run began, by which to measure how long
// something takes: no fault moves it.
func (c *Call) Elapsed() time.Duration {
	w := c.of.worker.node.w
	return time.Duration(w.now-w.start) * time.Millisecond
}

// Heartbeat renews the claim, for its visibility from now on. The error is that
// of [tickonce.Job.Heartbeat]: [tickonce.ErrClaimLost], or that of a call which a
// fault made fail. With [Schedule.Heartbeat] the worker makes heartbeats by
// itself, too.
func (c *Call) Heartbeat() (err error) {
	c.ask(func() { err = c.of.heartbeat() })
	return err
}

// Enqueue puts a job of no schedule into a queue, which has to be that of a
// schedule, too. It is [tickonce.Engine.Enqueue], and has its errors, or that of a
// call which a fault made fail, whose outcome is unknown: with
// [tickonce.EnqueueOptions.Key] it is safe to ask again. A handler that fails after
// it asks again in its next attempt, too.
func (c *Call) Enqueue(queue string, payload []byte, o tickonce.EnqueueOptions) (id tickonce.JobID, err error) {
	n := c.of.worker.node
	if n.w.truth.byQueue[queue] == nil {
		panic(fmt.Sprintf("sim: a job for the queue %q, want that of a schedule", queue))
	}
	c.ask(func() {
		id, err = n.engine.Enqueue(ctx, queue, payload, o)
		n.w.coverage.sometimes(enqueueRefused, errors.Is(err, tickonce.ErrLimit))
	})
	return id, err
}

// EnqueueOutbox puts an entry into an outbox of the scenario, as
// [tickonce.Outbox.Enqueue] does; see [Call.Enqueue].
func (c *Call) EnqueueOutbox(outbox string, payload []byte, o tickonce.OutboxOptions) (id tickonce.JobID, err error) {
	n := c.of.worker.node
	if q := n.w.truth.place(outbox); q == nil || q.outbox == nil {
		panic(fmt.Sprintf("sim: an entry for %q, want an outbox of the scenario", outbox))
	}
	c.ask(func() {
		id, err = n.engine.Outbox(outbox).Enqueue(ctx, payload, o)
		n.w.coverage.sometimes(enqueueRefused, errors.Is(err, tickonce.ErrLimit))
	})
	return id, err
}

// Deliver delivers a result of the job to an outbox of the scenario: it is written with
// the ack of the job, if the handler succeeds. It is [tickonce.Job.Deliver], and has its
// errors.
func (c *Call) Deliver(outbox string, payload []byte) error {
	q := c.of.worker.node.w.truth.place(outbox)
	if q == nil || q.outbox == nil || q.byHand {
		panic(fmt.Sprintf("sim: a result for %q, want an outbox of the scenario without a heartbeat", outbox))
	}
	if !c.running {
		panic("sim: a Call is used outside of its handler")
	}
	return c.of.deliver(q, payload)
}

// ask has the worker make a call to the store, in a step of its own.
func (c *Call) ask(call func()) {
	c.asks = call
	c.wait(c.of.worker.node.w.now)
}

// Rand is a source of randomness of this attempt, the same for equal seeds, jobs
// and attempts.
func (c *Call) Rand() *rand.Rand {
	if c.random == nil {
		key := core.Mix64(c.of.worker.node.w.scenario.Engine.Seed) ^ uint64(c.Job.ID)
		c.random = rand.New(rand.NewPCG(core.Mix64(key), uint64(c.Job.Attempt)))
	}
	return c.random
}

// Process is the process that runs the handler, from 1, and in which of its lives
// it is: each start of the process begins one.
func (c *Call) Process() (number, life int) {
	return c.of.worker.node.index + 1, c.of.worker.node.lives
}

// Panic panics, and means it: the run is not judged for it. As with handler=panic
// the worker goes on, and nobody settles the claim.
func (c *Call) Panic(value any) { panic(meant{value}) }

// proceed lets the handler in Go go on until it waits, or until its end, which it
// reports.
func (a *attempt) proceed() bool {
	c, world := a.call, a.worker.node.w
	until, more := c.goOn()
	world.digest.Int(tagHandler, int64(until))
	switch {
	case !more:
		a.call = nil
		a.judge(c)
		return !world.broken
	case a.run == nil:
		a.endsAt = until
		a.worker.work()
	default:
		a.endsAt = until
		a.again(until)
	}
	return false
}

// judge takes how the handler in Go ended as the ending, unless a fault has a
// worse one. Of the crashes of a schedule's handler the first is a failure; one
// that takes more than it may breaks the run off.
func (a *attempt) judge(c *Call) {
	world, s := a.worker.node.w, a.worker.node.w.truth.named[a.job.Schedule]
	if c.err == nil {
		return
	}
	s.lastError = textOf(c.err)
	detail := func() string {
		return fmt.Sprintf("%s, attempt %d: %s", jobOf(store.Instant(a.job.Boundary.UnixMilli())), a.job.Attempt, s.lastError)
	}
	switch {
	case errors.Is(c.err, ErrBudget):
		world.note(Budget, "handler budget", s.scenario.Name, detail())
		world.broken = true
	case errors.Is(c.err, ErrCrash):
		if a.ends = panics; !s.crashed {
			world.note(HandlerCrash, "handler crash", s.scenario.Name, detail())
		}
		s.crashed = true
	case c.err == errMeant:
		a.ends = panics
	case a.ends == succeeds:
		a.ends, a.reason = fails, handlerError(s.lastError)
	}
}

// textOf is what is kept of an error, or of the value of a panic: a text without
// addresses.
func textOf(v any) string {
	switch v.(type) {
	case error, fmt.Stringer, string, bool, int, int64, uint64:
		return core.CleanText(fmt.Sprint(v), 1<<10)
	default:
		return fmt.Sprintf("a %T", v)
	}
}
