package storetest

import (
	"context"
	"math"
	"slices"

	"github.com/tickonce/tickonce/store"
)

// dice are a stream of splitmix64.
type dice uint64

func (d *dice) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below is a number in [0, n).
func (d *dice) below(n int) int { return int(d.next() % uint64(n)) }

func (d *dice) percent(p int) bool { return d.below(100) < p }

func pick[E any](d *dice, from ...E) E { return from[d.below(len(from))] }

// call is one call that can be printed and made on any store. Its answer is
// all that the call answered, and whether it failed.
type call struct {
	method string
	args   any
	answer func(ctx context.Context, s store.Store) any
}

// failed is the answer of a call that returned an error.
type failed struct{ Failed bool }

// answered is v or, with an error, failed.
func answered(v any, err error) any {
	if err != nil {
		return failed{true}
	}
	return v
}

// player makes up calls. It reads the rows of the model, so that its calls are
// about rows that exist, and its clock stands next to instants that matter.
type player struct {
	dice
	at     store.Instant
	limits store.Limits
	model  *Naive
	fired  map[store.ScheduleID]store.Instant // the latest boundary
}

func newPlayer(seed uint64) *player {
	p := &player{dice: dice(seed), limits: store.Limits{}.WithDefaults(), fired: map[store.ScheduleID]store.Instant{}}
	p.at = pick(&p.dice, start, start, start, 0, -500, store.MaxInstant-300, store.MinInstant+3000)
	if p.percent(60) {
		p.limits = store.Limits{
			QueueLength: int64(3 + p.below(5)), Schedules: int64(2 + p.below(2)),
			Runs: int64(1 + p.below(3)), Skips: int64(1 + p.below(3)), History: int64(2 + p.below(5)),
		}
	}
	p.model = NewNaive(p.now, p.limits)
	return p
}

func (p *player) now() store.Instant { return p.at }

// stepClock steps the clock, now and then, and reports whether it did.
func (p *player) stepClock() bool {
	from := p.at
	switch n := p.below(100); {
	case n < 50:
		return false
	case n < 65:
		p.at = p.at.Add(int64(p.below(20)))
	case n < 68:
		p.at = p.at.Add(-int64(p.below(20)))
	case n < 70:
		p.at = p.at.Add(pick(&p.dice, -2000, -1000, 1000, 2000, int64(400*86_400_000)))
	default:
		if edges := p.edges(); len(edges) > 0 {
			p.at = pick(&p.dice, edges...).Add(pick[int64](&p.dice, -1, 0, 0, 1))
		}
	}
	return p.at != from
}

// edges are instants not far from now at which something changes, mostly the
// next few.
func (p *player) edges() (all []store.Instant) {
	t := &p.model.rows
	for i := range t.jobs {
		j := &t.jobs[i]
		all = append(all, j.ReadyAt(), j.DoomedAt(), j.ExpiresAt)
	}
	for _, s := range t.schedules {
		all = append(all, s.DueAt)
	}
	for _, l := range t.leases {
		all = append(all, l.ExpiresAt, l.ExpiresAt.Add(-l.TTLMS-store.LeaseSlackMS))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	all = slices.DeleteFunc(all, func(at store.Instant) bool { return at < p.at.Add(-5000) || at > p.at.Add(5000) })
	if next, _ := slices.BinarySearch(all, p.at); next < len(all) && p.percent(90) {
		return all[next:min(next+3, len(all))]
	}
	return all
}

// call makes up the next call.
func (p *player) call() call {
	c := p.anyCall()
	if !p.percent(2) {
		return c
	}
	return call{c.method + " with an ended context ", c.args, func(ctx context.Context, s store.Store) any {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return c.answer(ended, s)
	}}
}

func (p *player) anyCall() call {
	switch n := p.below(100); {
	case n < 34:
		return p.commit()
	case n < 52:
		return p.claim()
	case n < 63:
		return p.settle()
	case n < 69:
		return p.extend()
	case n < 82:
		return p.advance()
	case n < 88:
		return p.acquire()
	case n < 92:
		return p.renew()
	case n < 94:
		return p.release()
	case n < 97:
		return p.due()
	default:
		return p.read()
	}
}

func (p *player) queue() string { return pick(&p.dice, "q", "q", "q", "r") }

// extreme reports, now and then, that a field be at an end of its range.
func (p *player) extreme() bool { return p.percent(4) }

func (p *player) stamps() store.Stamps {
	if p.extreme() {
		return pick(&p.dice, ends...).insert.Stamps
	}
	return store.Stamps{
		VisibilityMS: pick[int64](&p.dice, 1, 20, 60), BaseBackoffMS: 5, MaxAttempts: pick[int32](&p.dice, 1, 2, 3),
	}
}

func (p *player) payload() []byte {
	return pick(&p.dice, nil, []byte{}, []byte("p"), []byte("p"), []byte("p\x00\xff"), binary(1))
}

func (p *player) priority() int16 {
	if p.extreme() {
		return pick[int16](&p.dice, math.MinInt16, -129, 128, math.MaxInt16)
	}
	return int16(p.below(3) - 1)
}

// one is mostly one of the texts, else one of them at its full length.
func (p *player) one(length int, of ...string) string {
	s := pick(&p.dice, of...)
	if s != "" && p.extreme() {
		return full(length, s)
	}
	return s
}

func (p *player) owner() string { return p.one(fullName, "x", "x", "y") }

func (p *player) key() string { return p.one(fullName, "", "", "", "j", "k") }

func (p *player) delay() int64 { return pick[int64](&p.dice, 0, 0, 1, 10, 30, 30, 1<<62) }

func (p *player) expiry() int64 { return pick[int64](&p.dice, 0, 0, 0, 1, 15, 60) }

func (p *player) hold() *store.Hold {
	if p.percent(70) {
		return nil
	}
	h := store.Hold{Reason: p.one(fullText, "full"), Since: p.instant(), Times: int32(1 + p.below(3))}
	if p.extreme() {
		h.Times = math.MaxInt32
	}
	return &h
}

// instant is mostly one not far from now.
func (p *player) instant() store.Instant {
	if p.extreme() {
		return pick(&p.dice, ends...).instant
	}
	return p.at.Add(int64(p.below(60) - 20))
}

// job is mostly one of the model's, in one of the states if there is any.
func (p *player) job(states ...store.State) store.Job {
	jobs := p.model.rows.jobs
	fit := slices.DeleteFunc(slices.Clone(jobs), func(j store.Job) bool { return !slices.Contains(states, j.State) })
	switch {
	case len(fit) > 0 && p.percent(90):
		return pick(&p.dice, fit...)
	case len(jobs) > 0 && p.percent(80):
		return pick(&p.dice, jobs...)
	default:
		return store.Job{Queue: p.queue(), ID: store.JobID(p.below(int(p.model.rows.lastJob) + 3)), Attempts: int32(p.below(3))}
	}
}

// claimed is mostly a job with the token of its live claim.
func (p *player) claimed() store.Job {
	j := p.job(store.Claimed)
	for range 3 { // more for a live one
		if !j.Holds(j.Attempts, p.at) {
			j = p.job(store.Claimed)
		}
	}
	if p.percent(7) {
		j.Attempts += pick[int32](&p.dice, -1, 1)
	}
	return j
}

func (p *player) ref(states ...store.State) store.JobRef {
	r := ref(p.job(states...))
	if p.percent(4) {
		r.Queue = "r"
	}
	return r
}

// lease is mostly one of the model's.
func (p *player) lease() store.Lease {
	l := store.Lease{Lock: pick(&p.dice, "l", "m"), Owner: pick(&p.dice, "x", "y"), Term: store.Term(p.below(int(p.model.rows.lastTerm) + 2))}
	if leases := p.model.rows.leases; len(leases) > 0 && p.percent(92) {
		l = pick(&p.dice, leases...)
		if other := pick(&p.dice, leases...); !l.Live(p.at) {
			l = other
		}
	}
	switch p.below(25) {
	case 0:
		l.Owner = p.owner()
	case 1:
		l.Term += pick[store.Term](&p.dice, -1, 1)
	case 2:
		l.ExpiresAt, l.TTLMS = p.instant(), 1
	}
	return l
}

func (p *player) ttl() int64 { return pick[int64](&p.dice, 1, 20, 100, 400, 1500) }

func (p *player) name() string { return pick(&p.dice, "a", "b", "c", "d") }

// guard is mostly one that holds.
func (p *player) guard(name string) store.Guard {
	g := store.Guard{Name: name}
	if row := p.model.rows.schedule(name); row != nil {
		g = guard(*row)
	}
	switch p.below(30) {
	case 0:
		g.Rev += pick[store.Rev](&p.dice, -1, 1)
	case 1:
		g.ID += pick[store.ScheduleID](&p.dice, -1, 1)
	case 2:
		g = store.Guard{Name: name}
	}
	g.ID = max(g.ID, 0)
	return g
}
