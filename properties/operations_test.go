package properties_test

import (
	"errors"
	"time"

	"pgregory.net/rapid"

	"github.com/tickonce/tickonce"
)

// operation is one thing that happens in a world. It is a plain value, which
// prints as it reads, and answers all that it was told.
type operation interface{ play(w *world) any }

// span prints as in Go's durations.
type span time.Duration

func (s span) GoString() string { return time.Duration(s).String() }

// The operations on schedules and runners.
type (
	schedule struct {
		Name, Every, Queue string
		CatchUp            string
		Anchor             span // from start; 0: none
		Expires            span
		Reset              bool
	}
	unschedule struct{ Name string }
	pause      struct{ Name string }
	resume     struct {
		Name    string
		CatchUp bool
	}
	move  struct{ By span }
	step  struct{ Runner, Times int }
	rest  struct{}
	stop  struct{ Runner int }
	crash struct{ Runner int }
)

// The operations on jobs and locks. Which counts back from the latest claim,
// dead job or lock.
type (
	enqueue struct {
		Queue, Key             string
		Delay, Expires         span
		Priority               int16
		Visibility, Backoff    span
		MaxAttempts, SizeBytes int
	}
	claim struct {
		Queue string
		N     int
	}
	settle struct {
		How   string
		Which int
	}
	ackAll  struct{}
	cancel  struct{ Which int }
	requeue struct{ Which int }
	purge   struct{ Which int }
	sweep   struct{ Queue string }
	lock    struct {
		Name, Owner string
		TTL         span
	}
	renew   struct{ Which int }
	release struct{ Which int }
)

// catchUps are policies that resolve without knowing a schedule's interval.
var catchUps = map[string]tickonce.CatchUp{
	"all":        tickonce.CatchUpAll,
	"latest":     tickonce.CatchUpLatest,
	"on time":    tickonce.CatchUpNone,
	"3 oldest":   {Count: 3},
	"64 newest":  {Newest: true},
	"2 in 1 min": {Window: time.Minute, Count: 2},
}

func (o schedule) options() tickonce.ScheduleOptions {
	options := tickonce.ScheduleOptions{CatchUp: catchUps[o.CatchUp], Expires: time.Duration(o.Expires), ResetCursor: o.Reset}
	if o.Anchor != 0 {
		options.Anchor = start.Add(time.Duration(o.Anchor))
	}
	return options
}

// answer is what a call answered.
type answer struct {
	Value any
	Err   string
}

func answered(value any, err error) answer { return answer{value, text(err)} }

func (o schedule) play(w *world) any {
	options := o.options()
	options.Anchor = w.shifted(options.Anchor)
	return answered(w.engine().Schedule(ctx, o.Name, "@every "+o.Every, o.Queue, []byte(o.Name), options))
}
func (o unschedule) play(w *world) any { return answered(w.engine().Unschedule(ctx, o.Name)) }
func (o pause) play(w *world) any      { return answered(w.engine().Pause(ctx, o.Name)) }
func (o resume) play(w *world) any {
	return answered(w.engine().Resume(ctx, o.Name, tickonce.ResumeOptions{CatchUp: o.CatchUp}))
}

func (o move) play(w *world) any {
	w.move(time.Duration(o.By))
	return nil
}

func (o step) play(w *world) any {
	var all []took
	for range o.Times {
		all = append(all, w.step(o.Runner%len(w.runners)))
	}
	return all
}
func (rest) play(w *world) any { return w.rest() }

// A stop gives the lease back, a crash leaves it.
func (o stop) play(w *world) any {
	i := o.Runner % len(w.runners)
	err := w.begun(i).Stop(ctx)
	w.runners[i] = nil
	return []took{{Run: w.runs[i], Phase: tickonce.PhaseRelease, Err: text(err)}}
}

func (o crash) play(w *world) any {
	w.runners[o.Runner%len(w.runners)] = nil
	return nil
}

func (o enqueue) play(w *world) any {
	return answered(w.engine().Enqueue(ctx, o.Queue, make([]byte, o.SizeBytes), o.options()))
}

func (o enqueue) options() tickonce.EnqueueOptions {
	return tickonce.EnqueueOptions{
		Key: o.Key, Delay: time.Duration(o.Delay), Expires: time.Duration(o.Expires), Priority: o.Priority,
		Visibility: time.Duration(o.Visibility), BaseBackoff: time.Duration(o.Backoff), MaxAttempts: o.MaxAttempts,
	}
}

// job is a job without what ties it to its engine.
type job struct {
	ID       tickonce.JobID
	Attempt  int
	Deadline time.Time
	Boundary time.Time
	Error    string
}

func (o claim) play(w *world) any {
	claimed, err := w.engine().ClaimBatch(ctx, o.Queue, "worker", o.N)
	w.claims = append(w.claims, claimed...)
	var jobs []job
	for _, j := range claimed {
		jobs = append(jobs, job{j.ID, j.Attempt, j.Deadline, j.Boundary, j.LastError})
	}
	return answered(jobs, err)
}

func (o settle) play(w *world) any {
	j, ok := latest(w.claims, o.Which)
	if !ok {
		return nil
	}
	err := map[string]func() error{
		"ack":         func() error { return j.Ack(ctx) },
		"retry":       func() error { return j.Retry(ctx, errFailed) },
		"retry after": func() error { return j.RetryAfter(ctx, errFailed, retryAfter) },
		"fail":        func() error { return j.Fail(ctx, errFailed) },
		"heartbeat":   func() error { return j.Heartbeat(ctx, 0) },
	}[o.How]()
	return answered(j.Deadline, err)
}

var errFailed = errors.New("failed")

const retryAfter = 7 * time.Millisecond

func (ackAll) play(w *world) any {
	return answered(w.engine().AckAll(ctx, w.claims[max(0, len(w.claims)-4):]))
}

func (o cancel) play(w *world) any {
	j, ok := latest(w.claims, o.Which)
	if !ok {
		return nil
	}
	return answered(w.engine().Cancel(ctx, j.Queue, j.ID))
}

func (o requeue) play(w *world) any {
	j, ok := w.dead(o.Which)
	if !ok {
		return nil
	}
	return answered(w.engine().Requeue(ctx, j.Queue, j.ID))
}

func (o purge) play(w *world) any {
	j, ok := w.dead(o.Which)
	if !ok {
		return nil
	}
	return text(w.engine().Purge(ctx, j.Queue, j.ID))
}

// dead is a dead job of the first queue.
func (w *world) dead(which int) (tickonce.DeadJob, bool) {
	var dead []tickonce.DeadJob
	for j := range w.engine().Dead(ctx, queueNames[0]) {
		dead = append(dead, j)
	}
	return latest(dead, which)
}

func (o sweep) play(w *world) any { return answered(w.engine().Sweep(ctx, o.Queue)) }

func (o lock) play(w *world) any {
	l, err := w.engine().Lock(ctx, o.Name, o.Owner, time.Duration(o.TTL))
	if l == nil {
		return text(err)
	}
	w.locks = append(w.locks, l)
	return []any{l.Term(), l.ExpiresAt()}
}

func (o renew) play(w *world) any {
	l, ok := latest(w.locks, o.Which)
	if !ok {
		return nil
	}
	return answered(l.Renew(ctx, 20*time.Millisecond))
}

func (o release) play(w *world) any {
	l, ok := latest(w.locks, o.Which)
	if !ok {
		return nil
	}
	return answered(l.Release(ctx))
}

// latest is the one so many before the last.
func latest[T any](all []T, which int) (T, bool) {
	if which >= len(all) {
		var none T
		return none, false
	}
	return all[len(all)-1-which], true
}

var (
	scheduleNames = []string{"a", "b", "c", "d"}
	queueNames    = []string{"mail", "ops"}
	intervals     = []string{"1s", "2s", "7s", "60s", "1m", "1h", "1d"}
)

const day = 24 * time.Hour

// The spans by which clocks move. The grids of the intervals meet the instants
// that they lead to, and miss them by a millisecond.
var moves = []time.Duration{
	time.Millisecond, time.Second - time.Millisecond, time.Second, time.Second + time.Millisecond,
	7 * time.Second, 20 * time.Second, time.Minute - time.Millisecond, time.Minute, 64 * time.Second, 65 * time.Second,
	10 * time.Minute, time.Hour, day, 2 * day,
}

// either draws what one of the others does.
func either(kinds ...func(*rapid.T) operation) func(*rapid.T) operation {
	return func(t *rapid.T) operation { return pick(t, kinds...)(t) }
}

// draw draws an operation, and prints nothing else.
func draw(t *rapid.T, kind func(*rapid.T) operation) operation {
	return rapid.Custom(kind).Draw(t, "op")
}

// pick draws a part of an operation, which prints as a whole.
func pick[T any](t *rapid.T, from ...T) T { return rapid.SampledFrom(from).Draw(t, "part") }

// choose draws something that prints under the label.
func choose[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

func drawSchedule(t *rapid.T) operation {
	return schedule{
		Name: pick(t, scheduleNames...), Every: pick(t, intervals...), Queue: pick(t, queueNames...),
		CatchUp: pick(t, "all", "all", "latest", "on time", "3 oldest", "64 newest", "2 in 1 min"),
		Anchor:  span(pick(t, 0, 0, 0, -10*day, time.Second, time.Second+time.Millisecond, day)),
		Expires: span(pick(t, 0, 0, time.Minute)),
		Reset:   pick(t, false, false, false, true),
	}
}

func drawUnschedule(t *rapid.T) operation { return unschedule{pick(t, scheduleNames...)} }
func drawPause(t *rapid.T) operation      { return pause{pick(t, scheduleNames...)} }
func drawResume(t *rapid.T) operation     { return resume{pick(t, scheduleNames...), pick(t, false, true)} }
func drawForward(t *rapid.T) operation    { return move{span(pick(t, moves...))} }
func drawBack(t *rapid.T) operation       { return move{-span(pick(t, moves...))} }
func drawRest(*rapid.T) operation         { return rest{} }
func drawStep(t *rapid.T) operation       { return step{pick(t, 0, 0, 0, 1, 2), pick(t, 1, 1, 2, 3, 4, 5)} }
func drawStop(t *rapid.T) operation       { return stop{pick(t, 0, 1, 2)} }
func drawCrash(t *rapid.T) operation      { return crash{pick(t, 0, 1, 2)} }

// drawEdit draws an operation on schedules, drawTicking one on schedules, the
// clock or runners.
var (
	drawEdit    = either(drawSchedule, drawSchedule, drawPause, drawResume, drawUnschedule)
	drawTicking = either(drawEdit, drawEdit, drawForward, drawForward, drawStep, drawStep, drawStep, drawRest, drawBack, drawStop, drawCrash)
)

// drawMilliseconds moves the clock as jobs and locks are measured.
func drawMilliseconds(t *rapid.T) operation {
	return move{ms(t, 1, 1, 5, 10, 19, 20, 21, 40, -1, -10, -30)}
}

func ms(t *rapid.T, from ...time.Duration) span { return span(pick(t, from...) * time.Millisecond) }

func drawEnqueue(t *rapid.T) operation {
	return enqueue{
		Queue: pick(t, queueNames[0], queueNames[0], queueNames[1]), Key: pick(t, "", "", "key", "other"),
		Delay: ms(t, 0, 0, 1, 10), Expires: ms(t, 0, 0, 0, 5, 20), Priority: pick[int16](t, 0, 0, 1, -1),
		Visibility: ms(t, 1, 10, 20, 200, 300_000, 300_000), Backoff: ms(t, 1, 8), MaxAttempts: pick(t, 1, 2, 3), SizeBytes: pick(t, 0, 1, 40),
	}
}

func drawClaim(t *rapid.T) operation {
	return claim{pick(t, queueNames[0], queueNames[0], queueNames[1]), pick(t, 1, 1, 1, 2, 5)}
}

func drawSettle(t *rapid.T) operation {
	return settle{pick(t, "ack", "retry", "retry after", "fail", "heartbeat", "heartbeat"), pick(t, 0, 0, 0, 1, 2, 5)}
}

func drawJobEnd(t *rapid.T) operation {
	return pick[operation](t,
		cancel{0}, cancel{1}, requeue{0}, requeue{2}, purge{0}, sweep{queueNames[0]}, sweep{queueNames[1]}, ackAll{})
}

func drawLock(t *rapid.T) operation {
	acquire := lock{pick(t, "door", "gate"), pick(t, "ann", "bob"), ms(t, 1, 20, 2000)}
	return pick[operation](t, acquire, acquire, release{pick(t, 0, 0, 1, 3)})
}

func drawRenewal(t *rapid.T) operation { return renew{pick(t, 0, 0, 1, 3)} }

// drawJobs draws an operation on jobs, drawWork one on jobs or locks.
var (
	drawJobs = either(drawEnqueue, drawEnqueue, drawClaim, drawClaim, drawSettle, drawSettle, drawJobEnd, drawMilliseconds)
	drawWork = either(drawJobs, drawJobs, drawJobs, drawJobs, drawLock, drawRenewal)
)
