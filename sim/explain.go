package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
)

// MaxRunOn is how many boundaries [Explain] runs on for after the outage.
const MaxRunOn = 100_000

// fewBoundaries is how many it runs on for if the question does not say.
const fewBoundaries = 3

// Question asks what becomes of one schedule that nobody runs for a while. A worker
// does its jobs as soon as they are there, 64 at once if its policies let them.
type Question struct {
	Spec    string
	From    time.Time     // when it is registered; zero: [DefaultStart]
	Anchor  time.Time     // a boundary of its grid; zero: From
	Down    time.Duration // how long nobody runs it from then on
	Jump    time.Duration // by how much the clock jumps after that
	CatchUp CatchUp
	For     time.Duration // how long it is run after that; 0: three boundaries
	Takes   time.Duration // how long each of its jobs does

	Policies
}

// Set sets from, anchor, down, jump, policy, which is also called catch-up, for,
// takes, or one of the policies by its key, to what the text says, in the grammar of
// scenario files; a jump may do without its sign.
func (q *Question) Set(name, text string) error {
	var v value
	switch name {
	case "from":
		v = instantValue{&q.From}
	case "anchor":
		v = instantValue{&q.Anchor}
	case "down":
		v = durationValue{d: &q.Down, orZero: true}
	case "jump":
		if text != "" && '0' <= text[0] && text[0] <= '9' {
			text = "+" + text
		}
		v = offsetValue{&q.Jump}
	case "policy", "catch-up":
		v = wordValue[CatchUp]{&q.CatchUp, catchUpWords}
	case "for":
		v = durationValue{d: &q.For}
	case "takes":
		v = durationValue{d: &q.Takes, orZero: true}
	default:
		i := slices.IndexFunc(policyKeys, func(k key[Policies]) bool { return k.name == name })
		if i < 0 {
			panic("sim: a question has no " + name)
		}
		v = policyKeys[i].of(&q.Policies)
	}
	if r := v.parse(text); r != nil {
		return fmt.Errorf("found %s, want %s%s", r.found, r.allowed, strings.TrimSuffix("; "+r.hint, "; "))
	}
	return nil
}

// Explanation tells what became of the schedule. Its instants are the clock's.
type Explanation struct {
	Spec     string
	Interval time.Duration
	From     time.Time
	Anchor   time.Time // a boundary of the grid
	Tick     time.Time // the first tick
	Passages []Passage // in the order of what happened; in a tick in that of the boundaries
	Notes    []Note
	Fired    int64 // those that were caught up, too
	Skipped  int64
	Next     time.Time // the boundary that comes next
}

// Passage is a run of boundaries, an interval apart, that had the same fate
// for the same reason.
type Passage struct {
	Fate        Fate
	First, Last time.Time
	Count       int64
	MaxLate     time.Duration // of the first, by the clock: 0 where each was met when it was due
	MinLate     time.Duration // of the last, an interval less for each one before it
	Note
}

// Note is a rule of the contract and what it says here.
type Note struct{ Rule, Text string }

// Fate is what became of a boundary.
type Fate uint8

// The fates.
const (
	Fired      Fate = iota // on time
	CaughtUp               // fired, but late
	Skipped                // dropped unfired
	FiredEarly             // before its time, by a clock that was ahead
	FiredAgain             // although it had fired before
	NeverCame              // neither fired nor skipped
)

var fateWords = [...]string{
	Fired: "fired", CaughtUp: "caught-up", Skipped: "skipped", FiredEarly: "early", FiredAgain: "again", NeverCame: "never",
}

func (f Fate) String() string { return fateWords[f] }

// OptionError is what [Explain] answers for a question with a bad setting: its
// option is one of the names that [Question.Set] knows.
type OptionError = tickonce.OptionError

// Explain has the engine run the schedule of the question and tells what it
// did. The engine decides; how long the outage was makes no difference to the
// cost. The errors are [tickonce.ErrInvalidSpec] and, as an [*OptionError],
// [tickonce.ErrInvalidOption], for a question that runs on for more than
// [MaxRunOn] boundaries, too.
func Explain(q Question) (*Explanation, error) {
	if q.From.IsZero() {
		q.From = DefaultStart
	}
	x := explainer{question: &q, clock: q.From}
	engine, err := memengine.New(tickonce.Config{Clock: &x, Seed: 1, Owner: "explain", Zones: zone, Observer: x.observe})
	if err != nil {
		return nil, err
	}
	x.engine = engine
	as := Schedule{Anchor: q.Anchor, CatchUp: q.CatchUp, Policies: q.Policies, Visibility: longest} // or its worker renews for ever
	schedule, err := engine.Schedule(ctx, explained, q.Spec, explained, nil, as.options())
	if err != nil {
		return nil, err
	}
	spec, err := tickonce.ParseSpec(q.Spec)
	if err != nil {
		return nil, err
	}
	if n := q.For / spec.Interval(); n > MaxRunOn {
		return nil, &OptionError{Option: "for", Problem: fmt.Sprintf(
			"is %s, want at most %s, in which %s has %d boundaries", formatDuration(q.For),
			formatDuration(MaxRunOn*spec.Interval()), q.Spec, MaxRunOn)}
	}
	if q.Jump > 0 && q.Down > math.MaxInt64-q.Jump {
		return nil, &OptionError{Option: "jump", Problem: fmt.Sprintf(
			"is %s after %s, want at most 106751d in all", formatDuration(q.Jump), formatDuration(q.Down))}
	}
	x.window = schedule.Options.CatchUp.Window
	x.told = Explanation{Spec: q.Spec, Interval: spec.Interval(), From: q.From, Anchor: q.Anchor, Next: schedule.Next}
	if q.Anchor.IsZero() {
		x.told.Anchor = q.From
	}
	x.told.Tick = q.From.Add(q.Down).Add(q.Jump)
	x.told.Notes = q.Notes()
	x.runner = engine.NewRunner()
	if x.worker, err = engine.NewWorker(explained, tickonce.WorkerConfig{Concurrency: catchUpCap}); err != nil {
		return nil, err
	}
	if err := x.run(); err != nil {
		return nil, err
	}
	return &x.told, nil
}

// explained is the name of the schedule, and of its queue.
const explained = "explained"

// explainer steps one runner from boundary to boundary, and a worker in between. It
// is the engine's clock.
type explainer struct {
	question *Question
	clock    time.Time
	engine   *memengine.Engine
	runner   *tickonce.Runner
	worker   *tickonce.Worker
	runs     []explainedRun // in the order of their ends
	window   time.Duration  // of the policy, resolved
	told     Explanation
}

func (x *explainer) Now() time.Time { return x.clock }

func (*explainer) After(time.Duration) <-chan time.Time { return new(simClock).After(0) }

func (x *explainer) run() error {
	if err := x.tick(x.told.Tick); err != nil {
		return err
	}
	if x.question.Jump < 0 && x.told.Fired+x.told.Skipped == 0 {
		x.told.Notes = append(x.told.Notes, Note{
			"K1", "after the step back nothing fires for " + formatDuration(x.told.Next.Sub(x.told.Tick)) + ", until the next boundary comes",
		})
	}
	end := x.told.Tick.Add(x.question.For)
	for n := 0; !x.told.Next.IsZero(); n++ {
		if x.question.For == 0 && n == fewBoundaries || x.question.For > 0 && x.told.Next.After(end) {
			break
		}
		if err := x.tick(x.told.Next); err != nil {
			return err
		}
	}
	return nil
}

// explainedRun is a run of a job, and when and how it ends.
type explainedRun struct {
	*tickonce.Run
	ends time.Time
	err  error
}

// works reports whether what becomes of jobs can make a difference.
func (x *explainer) works() bool { return x.question.Takes > 0 || x.question.Overlap != OverlapAllow }

// mostSteps bounds the steps at one instant: what the engine and the worker do at
// once takes some hundreds.
const mostSteps = 10_000

func restless(what string, at time.Time) error {
	return fmt.Errorf("the %s does not rest at %s, after %d steps", what, at.Format(time.RFC3339), mostSteps)
}

// work steps the worker to an instant.
func (x *explainer) work(until time.Time) error {
	steps := 0
	for next := x.clock; x.works() && !next.After(until); {
		if next.After(x.clock) {
			steps = 0
		}
		if steps++; steps > mostSteps {
			return restless("worker", x.clock)
		}
		x.clock = next
		for len(x.runs) > 0 && !x.runs[0].ends.After(x.clock) {
			x.worker.Ended(x.runs[0].Run, x.runs[0].err)
			x.runs = x.runs[1:]
		}
		at, report, err := x.worker.Step(ctx)
		if err != nil {
			return err
		}
		for _, run := range report.Begun {
			takes, bound, err := x.question.Takes, x.question.Timeout, error(nil)
			if bound > 0 && takes > bound {
				takes, err = bound, context.DeadlineExceeded
			}
			x.runs = append(x.runs, explainedRun{run, x.clock.Add(takes), err})
		}
		next = at
		if len(x.runs) > 0 && x.runs[0].ends.Before(next) {
			next = x.runs[0].ends
		}
		if next.Before(x.clock) { // there is more to do at once
			next = x.clock
		}
	}
	x.clock = until
	return nil
}

// tick steps the runner at an instant until it rests, after what the worker does
// before it and before what it does then.
func (x *explainer) tick(at time.Time) error {
	if err := x.work(at); err != nil {
		return err
	}
	if x.told.Next.IsZero() { // it was paused meanwhile
		return nil
	}
	for range mostSteps {
		next, report, err := x.runner.Step(ctx)
		if err != nil {
			return err
		}
		for passed := range report.Passed() {
			x.tell(report, &passed)
		}
		if next.After(at) {
			return x.work(at)
		}
	}
	return restless("runner", at)
}

// tell adds the passages of a tick.
func (x *explainer) tell(report *tickonce.Report, passed *tickonce.Passed) {
	var passages []Passage
	for fire := range report.Fires() {
		passages = x.extend(passages, x.fired(fire.Boundary))
	}
	for _, skip := range passed.Skips {
		why := whySkipped(skip.Reason, x.question.CatchUp, x.window)
		if x.question.RunOnce && x.question.CatchUp == CatchUpAll && skip.Reason == store.SkipPolicy.String() {
			why = Note{"X8", "of what was missed one boundary fires, and the others are dropped"}
		}
		passages = append(passages, Passage{
			Fate: Skipped, First: skip.First, Last: skip.Last, Count: skip.Count,
			MaxLate: x.clock.Sub(skip.First), MinLate: x.clock.Sub(skip.Last), Note: why,
		})
		x.told.Skipped += skip.Count
	}
	x.told.Fired += int64(passed.Fired)
	x.told.Next = passed.Next
	if missed := func(s tickonce.Skip) bool { return s.Reason == store.SkipMissed.String() }; x.question.RunOnce && (passed.Fired > 0 || slices.ContainsFunc(passed.Skips, missed)) {
		x.told.Next = time.Time{}
	}
	slices.SortFunc(passages, func(a, b Passage) int { return a.First.Compare(b.First) })
	for _, p := range passages {
		x.told.Passages = x.extend(x.told.Passages, p)
	}
}

// extend adds a passage, to the last one if it goes on with it.
func (x *explainer) extend(passages []Passage, p Passage) []Passage {
	if last := len(passages) - 1; last >= 0 {
		l := &passages[last]
		goesOn := l.MinLate-p.MaxLate == x.told.Interval || l.MaxLate == 0 && p.MaxLate == 0
		if goesOn && l.Fate == p.Fate && l.Note == p.Note && l.Last.Add(x.told.Interval).Equal(p.First) {
			l.Last, l.MinLate, l.Count = p.Last, p.MinLate, l.Count+p.Count
			return passages
		}
	}
	return append(passages, p)
}

func (x *explainer) fired(boundary time.Time) Passage {
	late := x.clock.Sub(boundary)
	p := Passage{Fate: CaughtUp, First: boundary, Last: boundary, Count: 1, MaxLate: late, MinLate: late}
	if p.Note = whyCaughtUp(x.question.CatchUp, x.window); late == 0 {
		p.Fate, p.Note = Fired, Note{"T2", "due at that very instant: one job is enqueued"}
	}
	return p
}

// whyCaughtUp says by which rule what was missed fires.
func whyCaughtUp(policy CatchUp, window time.Duration) Note {
	if policy == CatchUpAll {
		return Note{"T5", "what was missed fires when the schedules run again: the oldest first, at most 64 of one schedule"}
	}
	return whyPolicy(policy, window)
}

// whySkipped says by which rule what was missed is dropped.
func whySkipped(reason string, policy CatchUp, window time.Duration) Note {
	switch reason {
	case store.SkipHours.String():
		return Note{"X10", "outside its active hours nothing of a schedule fires: what comes due is dropped"}
	case store.SkipOverlap.String():
		return Note{"X9", "a job of the schedule was not done yet, and its policy of overlap drops what would run beside it"}
	case store.SkipMissed.String():
		return Note{"X8", "a run-once that comes too late by its catch-up policy has had its only turn"}
	case store.SkipCap.String():
		return Note{"T6", "more than 64 were missed: those after the oldest 64 are dropped for good, and the schedule goes on at its next boundary"}
	}
	return whyPolicy(policy, window)
}

// whyPolicy says what a policy makes of what was missed.
func whyPolicy(policy CatchUp, window time.Duration) Note {
	switch policy {
	case CatchUpLatest:
		return Note{"T14", "catch-up=latest: of what was missed only the newest fires, the others are dropped"}
	case CatchUpGrace:
		return Note{"T14", "catch-up=grace: what was missed fires, oldest first, if it is at most " + formatDuration(window) + " late, and is dropped if it is later"}
	case CatchUpNone:
		return Note{"T14", "catch-up=none: what was missed is dropped, but for one boundary that is at most " + formatDuration(window) + " late"}
	default:
		return Note{"T14", "dropped by the catch-up policy"}
	}
}

func (x *explainer) observe(e tickonce.Event) {
	switch e.Kind {
	case tickonce.EventBreakerOpened:
		x.told.Next = time.Time{}
		x.told.Notes = append(x.told.Notes, Note{"X4", "its breaker paused it at " + instantValue{&x.clock}.text() + ", and nothing more comes until it is resumed"})
	case tickonce.EventCursorAhead:
		x.told.Notes = append(x.told.Notes, Note{"T11", "reported as cursor_ahead: a clock that was ahead set the next boundary, and it stays unless repaired"})
	}
}
