package storetest

import (
	"cmp"
	"context"
	"slices"

	"github.com/tickonce/tickonce/store"
)

func (p *player) acquire() call {
	type args struct {
		Lock, Owner string
		TTLMS       int64
	}
	a := args{pick(&p.dice, "l", "l", "m"), p.owner(), p.ttl()}
	return call{"Acquire", a, func(ctx context.Context, s store.Store) any {
		return answered(s.Acquire(ctx, a.Lock, a.Owner, a.TTLMS))
	}}
}

func (p *player) renew() call {
	type args struct {
		Lease store.Lease
		TTLMS int64
	}
	a := args{p.lease(), p.ttl()}
	return call{"Renew", a, func(ctx context.Context, s store.Store) any {
		return answered(s.Renew(ctx, a.Lease, a.TTLMS))
	}}
}

func (p *player) release() call {
	l := p.lease()
	return call{"Release", l, func(ctx context.Context, s store.Store) any {
		return answered(s.Release(ctx, l))
	}}
}

func (p *player) claim() call {
	type args struct {
		Queue, Worker string
		N             int
	}
	type answer struct {
		Claim store.Claim
		Jobs  []store.Job
	}
	a := args{p.queue(), p.one(fullName, "v", "w"), p.below(4)}
	return call{"Claim", a, func(ctx context.Context, s store.Store) any {
		dst := make([]store.Job, a.N)
		c, err := s.Claim(ctx, a.Queue, a.Worker, dst)
		return answered(answer{c, dst}, err)
	}}
}

func (p *player) settleOne() store.Settle {
	j := p.claimed()
	s := store.Settle{Job: j.ID, Attempt: j.Attempts, To: pick(&p.dice, store.Done, store.Pending, store.Pending, store.Dead)}
	if p.percent(60) {
		s.Ended = store.OK + store.Execution(p.below(int(store.Lost)))
	}
	if s.To != store.Done {
		s.Error = p.one(fullText, "", "broke", "broke", "broke")
	}
	if s.To == store.Pending {
		s.DelayMS = p.delay()
	}
	return s
}

func (p *player) settle() call {
	type answer struct {
		Now     store.Instant
		Out     []bool
		Settles []store.Settle
	}
	settles := make([]store.Settle, p.below(4))
	for i := range settles {
		settles[i] = p.settleOne()
	}
	return call{"Settle", settles, func(ctx context.Context, s store.Store) any {
		out, own := make([]bool, len(settles)), slices.Clone(settles)
		now, err := s.Settle(ctx, own, out)
		return answered(answer{now, out, own}, err)
	}}
}

func (p *player) extend() call {
	type answer struct {
		Now store.Instant
		Out []store.Instant
	}
	extends := make([]store.Extend, p.below(3))
	for i := range extends {
		j := p.claimed()
		extends[i] = store.Extend{Job: j.ID, Attempt: j.Attempts, ForMS: pick[int64](&p.dice, 0, 1, 20, 200, 1<<62)}
	}
	return call{"Extend", extends, func(ctx context.Context, s store.Store) any {
		out := make([]store.Instant, len(extends))
		now, err := s.Extend(ctx, extends, out)
		return answered(answer{now, out}, err)
	}}
}

func (p *player) due() call {
	type answer struct {
		Due  store.Due
		Rows []store.Schedule
	}
	n := p.below(4)
	return call{"Due", n, func(ctx context.Context, s store.Store) any {
		dst := make([]store.Schedule, n)
		d, err := s.Due(ctx, dst)
		return answered(answer{d, dst}, err)
	}}
}

func (p *player) read() call {
	type args struct {
		From   string
		Filter store.Filter
		N      int
	}
	type answer struct {
		N    int
		Now  store.Instant
		Rows any
	}
	a := args{N: p.below(4)}
	switch p.below(5) {
	case 0:
		a.From = p.name()
		return call{"Schedules", a, func(ctx context.Context, s store.Store) any {
			dst := make([]store.Schedule, a.N)
			n, now, err := s.Schedules(ctx, a.From, dst)
			return answered(answer{n, now, dst}, err)
		}}
	case 1:
		a.From = pick(&p.dice, "", "q", "r", "s")
		return call{"Queues", a, func(ctx context.Context, s store.Store) any {
			dst := make([]store.Queue, a.N)
			n, now, err := s.Queues(ctx, a.From, dst)
			return answered(answer{n, now, dst}, err)
		}}
	case 2:
		page := p.page()
		return call{"Runs", page, func(ctx context.Context, s store.Store) any {
			dst := make([]store.Run, a.N)
			h, err := s.Runs(ctx, page, dst)
			return answered(answer{h.N, h.Now, []any{h, dst}}, err)
		}}
	case 3:
		page := p.page()
		return call{"Skips", page, func(ctx context.Context, s store.Store) any {
			dst := make([]store.SkipRange, a.N)
			h, err := s.Skips(ctx, page, dst)
			return answered(answer{h.N, h.Now, []any{h, dst}}, err)
		}}
	default:
		a.Filter = store.Filter{Queue: p.queue(), State: store.State(p.below(5)), From: p.job().ID}
		return call{"Jobs", a, func(ctx context.Context, s store.Store) any {
			dst := make([]store.Job, a.N)
			n, now, err := s.Jobs(ctx, a.Filter, dst)
			return answered(answer{n, now, dst}, err)
		}}
	}
}

func (p *player) page() store.Page {
	return store.Page{Schedule: p.name(), Before: store.EntryID(p.below(9))}
}

// skip is a range of the incarnation, which often goes on where its newest one
// ends.
func (p *player) skip(id store.ScheduleID) store.Skip {
	s := store.Skip{
		Reason:  store.SkipPause + store.SkipReason(p.below(int(store.SkipBefore))),
		EveryMS: pick[int64](&p.dice, 10, 10, 20), First: start, Count: int64(1 + p.below(4)),
	}
	for _, r := range p.model.rows.skips.entries {
		if r.ScheduleID == id && p.percent(80) {
			s.Reason, s.EveryMS, s.First = r.Reason, r.EveryMS, r.Last.Add(pick(&p.dice, r.EveryMS, r.EveryMS, r.EveryMS, 2*r.EveryMS, 0))
		}
	}
	s.Last = s.First.Add((s.Count - 1) * s.EveryMS)
	return s
}

func (p *player) advance() call {
	type answer struct {
		Held bool
		Tick store.Tick
	}
	t := store.Tick{By: p.lease(), Now: p.at}
	if p.percent(20) {
		t.Now = p.instant()
	}
	for _, row := range p.model.rows.schedules {
		if p.percent(30) {
			continue
		}
		m := store.Move{ID: row.ID, Rev: row.Rev, Cursor: p.instant(), DueAt: p.instant(), SetAt: p.instant(), Hold: p.hold(), Fires: int32(p.below(3))}
		if m.Live = p.model.rows.live(row.Name); p.percent(15) {
			m.Live = store.Live{Pending: int32(p.below(2)), Claimed: int32(p.below(2))}
		}
		switch p.below(20) {
		case 0:
			m.Rev += pick[store.Rev](&p.dice, -1, 1)
		case 1:
			m.ID += 1000
		case 2:
			m.DueAt = store.None
		}
		for k := range m.Fires {
			boundary, ok := p.boundary(&row)
			if !ok {
				m.Fires = k
				break
			}
			t.Fires = append(t.Fires, store.Fire{Move: int32(len(t.Moves)), Boundary: boundary})
		}
		for range p.below(3) {
			skip := p.skip(row.ID)
			skip.Move = int32(len(t.Moves))
			t.Skips = append(t.Skips, skip)
		}
		t.Moves = append(t.Moves, m)
	}
	slices.SortStableFunc(t.Fires, func(a, b store.Fire) int { return cmp.Compare(a.Boundary, b.Boundary) })
	return call{"Advance", t, func(ctx context.Context, s store.Store) any {
		own := t
		own.Moves, own.Fires = slices.Clone(t.Moves), slices.Clone(t.Fires)
		held, err := s.Advance(ctx, &own)
		if !held {
			return answered(answer{}, err)
		}
		return answered(answer{held, own}, err)
	}}
}

// boundary is the next one of an incarnation to fire: mostly the row's cursor,
// and always later than those before. It answers false if there is no later one.
func (p *player) boundary(row *store.Schedule) (next store.Instant, ok bool) {
	next = row.Cursor
	if last, fired := p.fired[row.ID]; fired {
		next = max(next, last.Add(10))
		ok = next > last
	} else {
		ok = true
	}
	p.fired[row.ID] = next
	return next, ok
}

func (p *player) put() store.Put {
	g := p.guard(p.name())
	row := store.Schedule{
		Name: g.Name, Spec: "@every 1s", Queue: p.queue(), Payload: p.payload(), Stamps: p.stamps(),
		ExpiresMS: p.expiry(), CatchUp: pick(&p.dice, ends...).schedule.CatchUp,
		Anchor: p.instant(), Cursor: p.instant(), DueAt: p.instant(), SetAt: p.instant(),
		Priority: p.priority(), Hold: p.hold(),
		Live: store.Live{Pending: 9}, Overlap: pick(&p.dice, store.Allow, store.Allow, store.SkipLive, store.BufferOne),
	}
	if p.percent(70) {
		row.ID = g.ID
	}
	if p.percent(10) {
		row.DueAt, row.Paused = store.None, store.PausedByUser
	}
	row.Breaker = uint8(p.below(3))
	row.Failures = uint8(p.below(int(row.Breaker) + 1))
	put := store.Put{Guard: g, Row: row}
	if g.ID != 0 && p.percent(30) {
		put.Skips = append(put.Skips, p.skip(g.ID))
	}
	if row.ID == 0 && p.percent(20) {
		before := p.skip(0)
		before.Reason = store.SkipBefore
		put.Skips = append(put.Skips, before)
	}
	return put
}

func (p *player) insert() store.Insert {
	in := store.Insert{
		Queue: p.queue(), Payload: p.payload(), Key: p.key(), Stamps: p.stamps(),
		Priority: p.priority(), RunAt: store.None, ExpiresMS: p.expiry(),
	}
	if p.percent(20) {
		in.RunAt = p.instant()
	} else {
		in.DelayMS = p.delay()
	}
	if p.percent(40) {
		in.From = p.source()
	}
	return in
}

// source is mostly that of a job which counts for its schedule's name, with or
// without a row, and often has to be alone.
func (p *player) source() *store.Source {
	f := store.Source{Schedule: pick(&p.dice, "a", "a", "b", "gone"), FireAt: store.None, Alone: p.percent(70)}
	if row := p.model.rows.schedule(f.Schedule); row != nil && p.percent(80) {
		f.ScheduleID = row.ID
	} else {
		f.ScheduleID = store.ScheduleID(p.below(int(p.model.rows.lastSchedule) + 1))
	}
	if p.percent(10) {
		f.FireAt, f.Origin = p.instant(), p.job().ID
	}
	return &f
}

// several are mostly none, else one to three.
func several[E any](p *player, percent int, one func() E) (all []E) {
	if p.percent(percent) {
		for range pick(&p.dice, 1, 1, 1, 2, 3) {
			all = append(all, one())
		}
	}
	return all
}

func (p *player) commit() call {
	b := store.Batch{
		Guards: several(p, 10, func() store.Guard { return p.guard(p.name()) }),
		Puts:   several(p, 25, p.put),
		Removes: several(p, 6, func() store.Guard {
			g := p.guard(p.name())
			g.ID = max(g.ID, 1) // what is removed has to be there
			return g
		}),
		Settles:  several(p, 12, p.settleOne),
		Cancels:  several(p, 10, func() store.JobRef { return p.ref(store.Pending, store.Claimed) }),
		Requeues: several(p, 12, func() store.JobRef { return p.ref(store.Dead) }),
		Purges:   several(p, 12, func() store.JobRef { return p.ref(store.Dead) }),
		Inserts:  several(p, 60, p.insert),
	}
	type answer struct {
		Committed store.Committed
		Settles   []store.Settle
	}
	return call{"Commit", b, func(ctx context.Context, s store.Store) any {
		own := b
		own.Settles = slices.Clone(b.Settles)
		c, err := s.Commit(ctx, &own)
		// An empty list and none are the same.
		if len(c.Puts) == 0 {
			c.Puts = nil
		}
		if len(c.Requeues) == 0 {
			c.Requeues = nil
		}
		if len(c.Inserts) == 0 {
			c.Inserts = nil
		}
		return answered(answer{c, own.Settles}, err)
	}}
}
