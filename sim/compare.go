package sim

import (
	"cmp"
	"slices"
	"time"
)

// Compare runs two scenarios and tells what is different in the second one. The
// errors are those of [Run]. What the runs are expected to come to is left out of
// account.
func Compare(first, second Scenario) (*Comparison, error) {
	first.Expect, second.Expect = nil, nil
	a, err := newLedger(first)
	if err != nil {
		return nil, err
	}
	b, err := newLedger(second)
	if err != nil {
		return nil, err
	}
	c := comparer{a: a, b: b}
	return c.compare(), nil
}

// Calm is the scenario without what goes wrong in it, and without what it is
// expected to come to.
func (s Scenario) Calm() Scenario {
	s.Faults, s.Swarm, s.QuietAfter, s.Expect, s.Outcome = nil, Swarm{}, 0, nil, ""
	return s
}

// Comparison is what is different in the second of two runs.
type Comparison struct {
	First, Second *Result
	Schedules     []ScheduleComparison // in the second scenario's order, then those of the first alone
	Effects       []Effect             // in the order of true time
}

// ScheduleComparison is what became of the boundaries and jobs of one schedule in
// both runs.
type ScheduleComparison struct {
	Name          string
	First, Second Tally
	Changed       int64 // boundaries that had another fate in the second run, or fired at another time

	// Elsewhere are the fires of the first run that came at another time in the
	// second one, or never; but for boundaries that it skipped. Those at once are one.
	Elsewhere []Fires
}

// Fires are so many, the first of them in true time, and how long each came after
// the one before.
type Fires struct {
	First time.Time
	Every time.Duration // 0 of a single one, and of those at once
	Count int64
}

// Tally counts the fates of a schedule's boundaries, and the jobs that did not
// run as they should. Late and early are meant in true time, by more than the
// second in which a sleeping runner notices a turn of its clock.
type Tally struct {
	OnTime, Late, Early, Skipped int64
	Again                        int64 // fires of boundaries that had fired before
	MaxLate, MaxEarly            time.Duration

	Held    int64 // how often its row was set aside
	Retried int64 // attempts that failed before the last one
	Rerun   int64 // jobs handed out again, since the claim of their worker had lapsed
	Died    int64

	Undelivered int64 // results of jobs whose delivery was given up; it is none of Retried, Rerun and Died
}

// Effect is something that happened in the second run and not, or otherwise, in
// the first: boundaries of a schedule with another fate, or events of a kind.
// Alike ones that one fault led to are one effect.
type Effect struct {
	Fault   int // of the second scenario, from 1: the one that led to it; 0: none
	Kind    EventKind
	Process int // 0: the store, or the operator

	// Of boundaries, whose Kind is [EventFired], [EventSkipped] or, of those that
	// had a fate in the first run alone, 0.
	Schedule     string
	Fate         Fate
	First, Last  time.Time
	MinBy, MaxBy time.Duration // how late they fired, in true time; of early ones how early
	ByClock      bool          // and it was since the store's clock was wrong

	Delivery bool // it happened to deliveries of results, not to the jobs themselves
	Count    int64
	From, To time.Time // true time
	Op       string
	Reason   string
	Event    int64 // the first of them, of the second run
	Note           // the rule that decided it, if one did, and what it says
}

// comparer compares the ledgers of two runs.
type comparer struct {
	a, b    *ledger
	effects []Effect
	at      map[effectKey]int
}

// effectKey is what effects have in common that are told as one.
type effectKey struct {
	fault, process   int
	kind             EventKind
	schedule         string
	fate             Fate
	byClock          bool
	delivery         bool
	op, reason, rule string
}

func (e *Effect) key() effectKey {
	return effectKey{e.Fault, e.Process, e.Kind, e.Schedule, e.Fate, e.ByClock, e.Delivery, e.Op, e.Reason, e.Rule}
}

func (c *comparer) compare() *Comparison {
	r := &Comparison{First: c.a.result, Second: c.b.result}
	c.at = map[effectKey]int{}
	for i := range c.b.pages {
		p := &c.b.pages[i]
		was := c.a.page(p.schedule.Name)
		s := ScheduleComparison{Name: p.schedule.Name, Second: p.tally}
		if was != nil {
			s.First = was.tally
		} else {
			was = &page{}
		}
		c.boundaries(was, p, &s)
		r.Schedules = append(r.Schedules, s)
	}
	for i := range c.a.pages {
		if p := &c.a.pages[i]; c.b.page(p.schedule.Name) == nil {
			s := ScheduleComparison{Name: p.schedule.Name, First: p.tally}
			c.boundaries(p, &page{schedule: p.schedule}, &s)
			r.Schedules = append(r.Schedules, s)
		}
	}
	for i := range c.b.events {
		e := c.b.events[i]
		if j, ok := c.a.at[e.key()]; ok {
			e.Count -= c.a.events[j].Count
		}
		if e.Count > 0 {
			c.add(e)
		}
	}
	slices.SortStableFunc(c.effects, func(a, b Effect) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Event, b.Event))
	})
	r.Effects = c.effects
	return r
}

// add adds an effect to the one that is alike, if there is one.
func (c *comparer) add(e Effect) { merge(&c.effects, c.at, e) }

func merge(list *[]Effect, at map[effectKey]int, e Effect) {
	i, ok := at[e.key()]
	if !ok {
		at[e.key()] = len(*list)
		*list = append(*list, e)
		return
	}
	o := &(*list)[i]
	o.Count += e.Count
	o.To = later(o.To, e.To)
	o.Last = later(o.Last, e.Last)
	if e.First.Before(o.First) {
		o.First = e.First
	}
	o.MinBy, o.MaxBy = min(o.MinBy, e.MinBy), max(o.MaxBy, e.MaxBy)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// boundaries compares what became of a schedule's boundaries, and enters how many
// are different.
func (c *comparer) boundaries(was, is *page, s *ScheduleComparison) {
	slices.SortStableFunc(was.runs, func(a, b fateRun) int { return cmp.Compare(a.first, b.first) })
	slices.SortStableFunc(is.runs, func(a, b fateRun) int { return cmp.Compare(a.first, b.first) })
	a, b := cursor{runs: was.runs}, cursor{runs: is.runs}
	for a.more() || b.more() {
		switch {
		case !b.more() || a.more() && a.next() < b.next():
			n := a.before(&b)
			old := a.take(n)
			s.Changed += n
			s.elsewhere(&old)
			c.b.parted(is, old, func(r fateRun) { c.gone(is, r) })
		case !a.more() || b.next() < a.next():
			n := b.before(&a)
			s.Changed += n
			c.b.parted(is, b.take(n), func(r fateRun) { c.came(is, r) })
		default:
			n := a.beside(&b)
			if old, new := a.take(n), b.take(n); !old.like(&new) {
				s.Changed += n
				if new.fate != Skipped {
					s.elsewhere(&old)
				}
				c.came(is, new)
			}
		}
	}
	for i := range is.again {
		r := &is.again[i]
		if !slices.ContainsFunc(was.again, func(o fateRun) bool { return o.first == r.first && o.count == r.count && o.like(r) }) {
			s.Changed += r.count
			c.came(is, *r)
		}
	}
}

// elsewhere adds boundaries of the first run, if they fired.
func (s *ScheduleComparison) elsewhere(r *fateRun) {
	if r.fate == Skipped {
		return
	}
	f := Fires{First: timeOf(r.firedAt(0)), Count: r.count}
	if !r.atOnce() && r.count > 1 {
		f.Every = time.Duration(r.every) * time.Millisecond
	}
	if n := len(s.Elsewhere); n > 0 && s.Elsewhere[n-1].extend(&f) {
		return
	}
	s.Elsewhere = append(s.Elsewhere, f)
}

// extend adds fires behind f, if they go on with it.
func (f *Fires) extend(o *Fires) bool {
	every := o.First.Sub(f.First.Add(f.Every * time.Duration(f.Count-1)))
	if every <= 0 || f.Count > 1 && every != f.Every || o.Count > 1 && every != o.Every {
		return false
	}
	f.Every = every
	f.Count += o.Count
	return true
}

// came adds what became of boundaries.
func (c *comparer) came(p *page, r fateRun) {
	e := Effect{
		Fault: r.fault, Kind: EventFired, Schedule: p.schedule.Name, Fate: r.fate, ByClock: r.byClock,
		First: timeOf(r.first), Last: timeOf(r.at(r.count - 1)), Count: r.count,
		From: timeOf(r.firedAt(0)), To: timeOf(r.firedAt(r.count - 1)), Reason: r.reason, Event: r.event,
	}
	if r.fate == Skipped {
		e.Kind = EventSkipped
	}
	by, last := r.by(0), r.by(r.count-1)
	if r.fate == FiredEarly {
		by, last = -by, -last
	}
	if r.fate == CaughtUp || r.fate == FiredEarly || r.fate == FiredAgain {
		e.MinBy, e.MaxBy = min(by, last), max(by, last)
	}
	if e.Note = c.b.scenario.why(p.schedule, r.fate, r.byClock, r.reason); r.fate == Fired {
		b := c.b.blowOf(p, e.Last, true)
		if p.resumed.kind != 0 && p.resumed.at.After(b.at) && !p.resumed.at.After(e.Last) {
			b = p.resumed
		}
		e.Fault, e.Note = b.fault, whyNever(b.kind)
	}
	c.add(e)
}

// gone adds boundaries that had a fate in the first run alone.
func (c *comparer) gone(p *page, r fateRun) {
	first, last := timeOf(r.first), timeOf(r.at(r.count-1))
	b := c.b.blowOf(p, last, len(p.runs) > 0 && timeOf(p.runs[len(p.runs)-1].first).After(last))
	if b.kind == 0 {
		b = c.b.blowOf(p, last, false)
	}
	if b.kind != EventRemoved && b.kind != EventPaused && b.kind != EventBreakerOpened && c.b.isAhead(last) {
		b = blow{kind: EventClockTurned, fault: c.b.turned}
	}
	e := Effect{
		Fault: b.fault, Schedule: p.schedule.Name, Fate: NeverCame, First: first, Last: last, Count: r.count,
		From: first, To: last,
	}
	e.Note = whyNever(b.kind)
	c.add(e)
}
