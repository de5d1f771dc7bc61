package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tickonce/tickonce/internal/core"
)

// Draw is the scenario as a sweep runs it with the seed: with the faults that
// its swarm draws, each written out, and without a swarm. What is expected of
// a sweep as a whole, the marks, is left out. The error is [*Mistakes], where
// [Scenario.Validate] refuses the scenario; it refuses none that was drawn.
//
// The same scenario and seed draw the same faults in every version that has
// the same kinds of faults to draw from (docs/SWARM.md).
func (s Scenario) Draw(seed uint64) (Scenario, error) {
	if err := s.Validate(); err != nil {
		return Scenario{}, err
	}
	return s.draw(seed), nil
}

func (s Scenario) draw(seed uint64) Scenario {
	s.Engine.Seed, s.Outcome = seed, ""
	s.Expect = slices.DeleteFunc(slices.Clone(s.Expect), func(e Expect) bool { return e.Kind == ExpectMark })
	if s.Swarm == (Swarm{}) {
		return s
	}
	if s.QuietAfter == 0 {
		s.QuietAfter = max(wholeMS(s.For/3*2), time.Millisecond)
	}
	d := drawing{scenario: &s, choices: newChoices(seed)}
	if d.n("ties", 2) == 1 {
		s.Engine.Ties = TiesSeeded
	}
	var nth uint64
	if d.mode, nth = s.Swarm.Mode.of(seed); d.mode == ModeExhaustive {
		d.enumerate(nth)
	} else {
		kinds := d.kinds()
		for range d.count() {
			d.add(kinds[d.n("kind", len(kinds))], d.instant)
		}
	}
	slices.SortStableFunc(s.Faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	s.Swarm = Swarm{}
	return s
}

// add draws a fault of the kind at the instant.
func (d *drawing) add(kind FaultKind, instant func() time.Duration) {
	d.kind = kind.word()
	f := Fault{Kind: kind, At: instant()}
	drawings[kind].draw(d, &f)
	f.For = min(f.For, wholeMS(f.longest(d.scenario.QuietAfter)))
	if d.mode == ModeLite {
		f.For = min(f.For, wholeMS(d.lease()))
	}
	d.scenario.Faults = append(d.scenario.Faults, f)
	d.kind = ""
}

// drawings says of each kind of fault its group, whether it keeps processes or
// the store from doing what other faults might spoil, and how what it has beside
// its kind and instant is drawn. A duration that lasts too long is cut.
var drawings = [...]struct {
	group string
	masks bool
	draw  func(*drawing, *Fault)
}{
	FaultDown: {"process", true, func(d *drawing, f *Fault) {
		f.Runner, f.Point, f.For = d.runner(), d.point(), d.lasts()
	}},
	FaultCrash: {"process", true, func(d *drawing, f *Fault) {
		f.Runner, f.Point, f.For = d.runner(), d.point(), d.lasts()
		if d.n("mid-call", 4) == 0 { // which needs a slow store
			f.Point = one(d, "leg", MidRequest, MidReply)
		}
		if f.Runner == 0 {
			f.Restart = one(d, "restart", FromJournal, FromJournal, FromSnapshot, FromNothing)
		}
	}},
	FaultRestartStorm: {"process", true, func(d *drawing, f *Fault) {
		f.Runner, f.Point, f.For = d.runner(), d.point(), min(d.lasts(), 5*time.Second)
		if f.Runner == 0 {
			f.Restart = one(d, "restart", FromJournal, FromJournal, FromSnapshot, FromNothing)
		}
		f.Times = 2 + d.n("times", 19)
		if f.longest(d.scenario.QuietAfter) < time.Millisecond {
			f.Kind, f.Times = FaultCrash, 0
		}
	}},
	FaultPause: {"process", true, func(d *drawing, f *Fault) {
		f.Runner, f.Point, f.For = d.runner(), d.point(), d.lasts()
	}},
	FaultThrottle: {"process", true, func(d *drawing, f *Fault) {
		f.Runner, f.Profile, f.For = d.runner(), one(d, "profile", HiddenTab, Laptop, LowPower), d.lasts()
		if d.n("long", 2) == 1 {
			f.For += one(d, "stage", 5*time.Minute, time.Hour)
		}
	}},
	FaultClockJump: {"clock", false, func(d *drawing, f *Fault) {
		f.By, f.Point = one[time.Duration](d, "sign", -1, 1)*d.jump(), d.point()
		if d.n("back", 2) == 1 {
			f.For = d.lasts()
		}
		f.Runner = d.runner()
	}},
	FaultClockDrift: {"clock", false, func(d *drawing, f *Fault) {
		f.Runner, f.For = d.runner(), d.lasts()
		f.Drift = one[int64](d, "ppm", -900_000, -500_000, -200, 200, 500_000, million)
	}},
	FaultClockFreeze: {"clock", false, func(d *drawing, f *Fault) { f.Runner, f.For = d.runner(), d.lasts() }},
	FaultClockStrobe: {"clock", false, func(d *drawing, f *Fault) {
		f.Runner, f.For = d.runner(), min(d.lasts(), 5*time.Minute) // for each second of it everybody wakes
		f.By = one[time.Duration](d, "sign", -1, 1) * d.jump()
	}},
	FaultStoreErrors: {"store", false, func(d *drawing, f *Fault) {
		f.Applied = one(d, "applied", AppliedNo, AppliedYes, AppliedUnknown, AppliedUnknown)
		f.Runner, f.Op, f.Chance, f.For = d.runner(), d.op(), d.chance(), d.lasts()
	}},
	FaultStoreSlow: {"store", false, func(d *drawing, f *Fault) {
		f.Runner, f.Op, f.Chance, f.For = d.runner(), d.op(), d.chance(), d.lasts()
		f.Takes, f.Late = d.slow(), one(d, "late", LateEither, LateEither, LateRequest, LateReply)
	}},
	FaultStoreFull: {"store", true, func(d *drawing, f *Fault) { f.For = d.lasts() }},
	FaultJournalErrors: {"store", false, func(d *drawing, f *Fault) {
		f.Torn, f.Chance, f.For = one(d, "torn", false, true), d.chance(), d.lasts()
	}},
	FaultSwizzle: {"store", false, func(d *drawing, f *Fault) {
		f.For, f.Applied = d.lasts(), one(d, "applied", AppliedNo, AppliedYes, AppliedUnknown)
	}},
	FaultStaleRead: {"store", false, func(d *drawing, f *Fault) {
		f.Runner, f.Chance, f.For = d.runner(), d.chance(), d.lasts()
	}},
	FaultRepeatedRow: {"store", false, func(d *drawing, f *Fault) {
		f.Runner, f.Chance, f.For = d.runner(), d.chance(), d.lasts()
	}},
	FaultLostRow: {"store", false, func(d *drawing, f *Fault) {
		f.Schedule, f.Point, f.For = d.schedule().Name, d.point(), d.lasts()
	}},
	FaultHandlerSlow: {"handler", false, func(d *drawing, f *Fault) {
		f.Chance, f.For, f.Schedule = d.chance(), d.lasts(), d.anySchedule()
		if v := d.visibility(); d.n("takes", 2) == 1 {
			f.Takes = Span{v - time.Millisecond, v + time.Millisecond}
		}
		ofResults(d, f)
	}},
	FaultHandlerFails: {"handler", false, func(d *drawing, f *Fault) {
		f.Chance, f.For, f.Schedule = d.chance(), d.lasts(), d.anySchedule()
		if len(d.scenario.Outboxes) > 0 {
			f.Applied = one(d, "applied", 0, AppliedYes)
		}
		ofResults(d, f)
	}},
	FaultHandlerPanics: {"handler", false, func(d *drawing, f *Fault) {
		f.Chance, f.For, f.Schedule = d.chance(), d.lasts(), d.anySchedule()
		ofResults(d, f)
	}},
	FaultHandlerHangs: {"handler", false, func(d *drawing, f *Fault) {
		f.Chance, f.For, f.Schedule = d.chance(), d.lasts(), d.anySchedule()
		ofResults(d, f)
	}},
	FaultPoison: {"handler", false, func(d *drawing, f *Fault) {
		f.Chance, f.For, f.Schedule = d.chance(), d.lasts(), d.anySchedule()
		ofResults(d, f)
	}},
	FaultHandlerSpawns: {"handler", false, func(d *drawing, f *Fault) {
		f.Chance, f.For, f.Schedule, f.Jobs = d.chance(), d.lasts(), d.anySchedule(), one(d, "jobs", 1, 2, 10)
		if outboxes := d.scenario.Outboxes; len(outboxes) > 0 {
			f.Tx = d.n("tx", 2) == 1
			if into := d.n("into", len(outboxes)+1); into > 0 {
				f.Into = outboxes[into-1].Name
			}
		}
	}},
	FaultLateAck: {"queue", false, func(d *drawing, f *Fault) {
		f.Chance, f.For, f.Schedule, f.Takes = d.chance(), d.lasts(), d.anySchedule(), d.later()
	}},
	FaultDuplicateAck: {"queue", false, func(d *drawing, f *Fault) {
		f.Chance, f.For, f.Schedule, f.Takes = d.chance(), d.lasts(), d.anySchedule(), d.later()
	}},
	FaultLostAck: {"queue", false, func(d *drawing, f *Fault) {
		f.Chance, f.For, f.Schedule = d.chance(), d.lasts(), d.anySchedule()
	}},
	FaultOverload: {"queue", false, func(d *drawing, f *Fault) {
		f.Queue, f.Jobs, f.Point = d.schedule().Queue, one(d, "jobs", 1, 10, catchUpCap, MaxJobs), d.point()
	}},
	FaultEditAdd: {"edit", false, edited},
	FaultEditChange: {"edit", false, func(d *drawing, f *Fault) {
		edited(d, f)
		if d.n("every", 2) == 1 {
			f.Spec = d.spec()
		}
		f.Queue = d.schedule().Queue
		f.CatchUp = one(d, "catch-up", CatchUpAll, CatchUpLatest, CatchUpGrace, CatchUpNone)
	}},
	FaultEditPause:  {"edit", false, edited},
	FaultEditResume: {"edit", false, edited},
	FaultEditRemove: {"edit", false, edited},
	FaultEditRename: {"edit", false, func(d *drawing, f *Fault) {
		edited(d, f)
		others := slices.DeleteFunc(slices.Clone(d.scenario.Schedules), func(s Schedule) bool { return s.Name == f.Schedule })
		if len(others) == 0 {
			f.Kind = FaultEditRemove
			return
		}
		f.To = others[d.n("to", len(others))].Name
	}},
	FaultEditPolicies: {"edit", false, func(d *drawing, f *Fault) {
		edited(d, f)
		f.Policies = d.policies()
	}},
	FaultEditTrigger: {"edit", false, edited},
	FaultTamper: {"store", false, func(d *drawing, f *Fault) {
		f.Schedule, f.Point, f.For = d.schedule().Name, d.point(), d.lasts()
		if f.Row = Spoiling(d.n("row", int(SpoilEndOfTime)+1)); f.Row == 0 {
			f.Spec = d.spec()
		}
	}},
}

// ofResults draws what a fault of handlers has beside, where handlers deliver
// results: half of them are of deliveries alone.
func ofResults(d *drawing, f *Fault) {
	outboxes := d.scenario.Outboxes
	if !slices.ContainsFunc(d.scenario.Schedules, func(s Schedule) bool { return s.Deliver != "" }) {
		return
	}
	if d.n("of", 2) == 1 {
		f.Queue = outboxes[d.n("outbox", len(outboxes))].Name
	}
	switch f.Kind {
	case FaultHandlerFails, FaultPoison:
		f.Error = one(d, "error", Class{}, Class{Kind: ClassTransient}, Class{Kind: ClassPermanent}, Class{Kind: ClassTimeout}, Class{ClassRetryAfter, 10 * time.Second})
	case FaultHandlerSlow, FaultHandlerHangs:
		f.Applied = one(d, "applied", 0, AppliedYes)
		if try := tryTimeoutMS * time.Millisecond; f.Queue != "" && f.Takes != (Span{}) {
			f.Takes = Span{try - time.Millisecond, try + time.Millisecond}
		}
	}
}

// edited draws of which schedule an edit is: half of them are of the one that
// the edit before was of, since what one leaves is what the next may break.
func edited(d *drawing, f *Fault) {
	if d.edited == "" || d.n("again", 2) == 0 {
		d.edited = d.schedule().Name
	}
	f.Schedule, f.Point = d.edited, d.point()
}

// policies draws policies: each of them by even chance.
func (d *drawing) policies() (p Policies) {
	has := func(policy string) bool { return d.n("has "+policy, 2) == 1 }
	if has("overlap") {
		p.Overlap = one(d, "overlap", OverlapSkip, OverlapBufferOne)
	}
	if has("hours") {
		start := d.upTo("hours from", 24*time.Hour-time.Minute).Truncate(time.Minute)
		length := one(d, "hours for", time.Minute, time.Hour, 12*time.Hour, 24*time.Hour-time.Minute)
		p.Hours = Hours{start, (start + length) % (24 * time.Hour), one(d, "zone", "", "Europe/Berlin", "America/New_York", "Asia/Kathmandu")}
	}
	p.RunOnce = has("run-once")
	if has("breaker") {
		p.Breaker = one(d, "breaker", 1, 2, 3)
	}
	if has("timeout") {
		v := d.visibility()
		p.Timeout = one(d, "timeout", time.Second, max(wholeMS(v/2), time.Millisecond), v+time.Second)
	}
	return p
}

// drawing draws the faults of one run. Each kind of fault has streams of its
// own, so that one draw more for a kind moves no draw of another, and none is
// a stream of the run itself.
type drawing struct {
	scenario *Scenario // with the faults drawn so far
	choices  *choices
	mode     Mode
	kind     string // whose faults are drawn
	edited   string // the schedule of the latest edit
}

func (d *drawing) site(name string) *site { return d.choices.at("swarm/" + d.kind + "/" + name) }

// n draws a number in [0, n).
func (d *drawing) n(site string, n int) int { return int(d.site(site).choice(int64(n))) }

// upTo draws a duration of at most so much.
func (d *drawing) upTo(site string, most time.Duration) time.Duration {
	return d.site(site).within(Span{0, max(wholeMS(most), 0)})
}

// one draws one of the values.
func one[T any](d *drawing, site string, of ...T) T { return of[d.n(site, len(of))] }

func (s *Scenario) kindsText() string {
	if s.Swarm.Kinds == "" {
		return allKinds
	}
	return s.Swarm.Kinds
}

// instant draws when a fault begins: half of them at a boundary of a schedule,
// an eighth where a lease may be renewed or lapse, a quarter where another
// fault begins or ends, or a lease or a renewal later, or a little before or
// after any of these; the others anywhere.
func (d *drawing) instant() time.Duration {
	last := d.scenario.QuietAfter - time.Millisecond
	at := time.Duration(-1)
	way := d.n("at", 8)
	if d.mode == ModePairs && len(d.scenario.Faults)%2 == 1 {
		way = 5
	}
	switch way {
	case 0, 1, 2, 3:
		at = d.boundary(last) + one(d, "beside", 0, 0, -time.Millisecond, time.Millisecond, -time.Second, time.Second)
	case 4:
		renewal := d.lease() / 3
		at = time.Duration(d.n("lease", int(last/renewal)+1))*renewal + d.edge()
	case 5, 6:
		if before := d.scenario.Faults; len(before) > 0 {
			f := &before[d.n("after", len(before))]
			at = f.At + one(d, "side", 0, f.For) + one(d, "later", 0, 0, d.lease()/3, d.lease()) + d.edge()
		}
	}
	if at < 0 || at > last {
		return d.upTo("anywhere", last)
	}
	return wholeMS(at)
}

// boundary draws a boundary of a schedule; negative if there is none by then.
func (d *drawing) boundary(last time.Duration) time.Duration {
	first, every := d.grid(d.schedule())
	if first > last.Milliseconds() {
		return -1
	}
	nth := d.site("boundary").choice((last.Milliseconds()-first)/every + 1)
	return time.Duration(first+nth*every) * time.Millisecond
}

// grid is the first boundary of the schedule that is not before the start, and
// its interval, in milliseconds.
func (d *drawing) grid(s *Schedule) (first, every int64) {
	start, every := d.scenario.Start, intervalOf(s.Spec)
	if start.IsZero() {
		start = DefaultStart
	}
	if s.Anchor.IsZero() {
		return every, every // anchored where it is registered
	}
	if first = s.Anchor.UnixMilli() - start.UnixMilli(); first < 0 {
		first = (first%every + every) % every
	}
	return first, every
}

// lasts draws how long a fault lasts: as long as something else does, or a
// little more or less, or anything; long ones are rare.
func (d *drawing) lasts() time.Duration {
	drawn := time.Duration(0)
	switch d.n("lasts", 8) {
	case 0:
		return one(d, "short", time.Millisecond, time.Second)
	case 1:
		drawn = one(d, "leases", d.lease()/3, d.lease()) + d.edge()
	case 2:
		drawn = d.visibility() + d.edge()
	case 3:
		drawn = one[time.Duration](d, "intervals", 1, 2)*d.every() + d.edge()
	case 4: // the most that is caught up, and one more
		drawn = one[time.Duration](d, "cap", catchUpCap, catchUpCap+1)*d.every() + d.edge()
	case 5:
		return time.Millisecond + d.upTo("seconds", 10*time.Second)
	case 6:
		return time.Millisecond + d.upTo("minutes", 5*time.Minute)
	}
	if drawn <= 0 || drawn > d.scenario.QuietAfter/8 {
		return time.Millisecond + d.upTo("long", d.scenario.QuietAfter/16)
	}
	return wholeMS(drawn)
}

// jump draws by how much a clock jumps.
func (d *drawing) jump() time.Duration {
	const day = 24 * time.Hour
	switch d.n("jump", 8) {
	case 0:
		return one(d, "small", time.Millisecond, time.Second)
	case 1, 2:
		return wholeMS(d.lease() + d.edge())
	case 3, 4:
		return d.every() + d.edge()
	case 5:
		return min(catchUpCap*d.every(), day) + d.edge()
	case 6:
		return one(d, "large", time.Hour, 8*time.Hour, day, 400*day)
	default:
		return time.Millisecond + d.upTo("jumps", 10*time.Minute)
	}
}

// runner draws a process; 0, which is all of them, always where there is one.
func (d *drawing) runner() int {
	if runners := d.scenario.Engine.Runners; runners > 1 {
		return max(d.n("runner", runners+2)-1, 0)
	}
	return 0
}

func (d *drawing) point() Point {
	return one(d, "point", Anywhere, BetweenReadAndWrite)
}

// later draws how much later an ack is sent: most often while the claim holds.
func (d *drawing) later() Span {
	v := d.visibility()
	return Span{0, one(d, "later", time.Millisecond, 5*time.Second, max(wholeMS(v/2), time.Millisecond), v+time.Second)}
}

// op draws which of the store's calls a fault hits: all, twice in three.
func (d *drawing) op() Op {
	if d.n("ops", 3) > 0 {
		return 0
	}
	return one(d, "op", OpRenew, OpAdvance, OpDue, OpAcquire, OpClaim, OpSettle, OpCommit)
}

// slow draws how long a slow call takes: a moment, or about as long as a lease,
// a renewal or a claim may.
func (d *drawing) slow() Span {
	most := one(d, "slow", 100*time.Millisecond, 5*time.Second, d.lease()/3, d.lease(), d.visibility())
	most = max(wholeMS(most)+d.edge(), time.Millisecond)
	return Span{one(d, "slow from", time.Millisecond, most), most}
}

func (d *drawing) chance() PPM { return one(d, "chance", 0, Always/2, Always/10, Always/100) }

// edge is a millisecond before, at, or after something.
func (d *drawing) edge() time.Duration { return time.Duration(d.n("edge", 3)-1) * time.Millisecond }

func (d *drawing) schedule() *Schedule {
	return &d.scenario.Schedules[d.n("schedule", len(d.scenario.Schedules))]
}

// anySchedule draws whose handlers a fault hits: "", which is all, twice in
// three.
func (d *drawing) anySchedule() string {
	if d.n("whose", 3) > 0 {
		return ""
	}
	return d.schedule().Name
}

// longest bounds what an interval or a visibility counts for.
const longest = 365 * 24 * time.Hour

func (d *drawing) every() time.Duration {
	return min(time.Duration(intervalOf(d.schedule().Spec))*time.Millisecond, longest)
}

// spec draws another spec, about as frequent as the schedules are.
func (d *drawing) spec() string {
	every := d.every()
	return fmt.Sprintf("%s%ds", specPrefix, one[int64](d, "times", 1, 3)*int64(every/time.Second))
}

func (d *drawing) lease() time.Duration {
	if d.scenario.Engine.Lease > 0 {
		return d.scenario.Engine.Lease
	}
	return time.Minute
}

func (d *drawing) visibility() time.Duration {
	if v := d.schedule().Visibility; v > 0 {
		return min(v, longest)
	}
	return time.Duration(core.PlainStamps.VisibilityMS) * time.Millisecond
}

func wholeMS(d time.Duration) time.Duration { return d.Truncate(time.Millisecond) }
