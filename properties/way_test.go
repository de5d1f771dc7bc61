package properties_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
)

// way is how a history comes to be played: what must not matter to that which
// fires. The zero way is the plain one: one runner on one store in memory.
type way struct {
	Batch   int    // 0: the default
	Runners int    // each of a process of its own; 0: 1
	Store   string // "": memory
	Restart string // of all processes, at any step; "": none
	ShiftMS int64  // of the whole history
	Skew    span   // of the processes' clocks against the store's
	Losses  bool   // of requests and replies, which are made again
	Late    bool   // edits come when the runner has read, and not written yet
	Pauses  bool   // a runner that has read loses its lease, and the others go on before it writes
}

// The ways to restart.
const (
	cleanly      = "stop"                 // and begin on the same store
	fromJournal  = "journal"              // after a crash
	fromSnapshot = "snapshot and journal" // the same
)

// round is what happens at one instant.
type round struct {
	Move  move
	Edits []operation
}

// player is a world that plays a history in its way.
type player struct {
	*world
	way    way
	draws  *rapid.T
	starts int // of its processes

	onTheirWay []operation // edits
	elsewhere  bool        // what happens now happens while a call is on its way
	mishaps    int         // losses and pauses so far
	most       int         // how many there may be by the end of the round

	journal memengine.MemJournal
	base    []byte // a snapshot
	baseAt  int    // what the journal had then
}

func newPlayer(t *rapid.T, way way) *player {
	began := &clock{now: start}
	p := &player{world: &world{t: t, clock: began, shiftMS: way.ShiftMS}, way: way, draws: t}
	began.now = p.shifted(start)
	p.host = &clock{now: began.now.Add(time.Duration(way.Skew))}
	switch way.Restart {
	case fromJournal, fromSnapshot:
		p.recover()
	default:
		p.store = p.open(cmp.Or(way.Store, memory), tickonce.Config{Clock: p.clock})
	}
	p.begin()
	return p
}

// begin begins the processes.
func (p *player) begin() {
	p.starts++
	var engines []*tickonce.Engine
	for i := range max(p.way.Runners, 1) {
		s := faultstore.New(p.store, p.verdict)
		s.Before = func(o faultstore.Op) {
			if o.Method == faultstore.Advance {
				p.beforeWrite(i)
			}
		}
		c := p.config(tickonce.Config{StandBy: true, Batch: p.way.Batch})
		if p.way.Runners <= 1 {
			c.Poll = -1 // it is woken, or knows when to look
		}
		c.Owner = fmt.Sprintf("process %d.%d", i, p.starts)
		e, err := tickonce.New(s, c)
		require.NoError(p.t, err)
		engines = append(engines, e)
	}
	p.staff(engines...)
}

// recover begins the store at what is durable. What the snapshot has is passed
// over in the log, or was cut off.
func (p *player) recover() {
	log := p.journal.Bytes()
	if p.base != nil && rapid.Bool().Draw(p.draws, "cut") {
		log = log[p.baseAt:]
	}
	e, recovery, err := memengine.Open(tickonce.Config{Clock: p.clock}, memengine.Durable{
		Snapshot: p.base, Log: log, Journal: &p.journal,
	})
	require.NoError(p.t, err)
	require.Empty(p.t, recovery.Torn)
	p.store = e.Store()
}

func (p *player) restart() {
	if p.way.Restart != cleanly {
		p.recover()
		p.begin()
		return
	}
	for i := range p.runners {
		require.NoError(p.t, p.begun(i).Stop(ctx))
	}
	p.free(store.SchedulerLock) // who never knew of its lease, since the reply was lost, has not released it
	p.begin()
}

func (p *player) verdict(o faultstore.Op) faultstore.Verdict {
	if !p.way.Losses || p.mishaps == p.most || o.Method == faultstore.Release { // which nobody makes again
		return faultstore.Pass
	}
	v := choose(p.draws, "verdict", faultstore.Pass, faultstore.Pass, faultstore.Pass, faultstore.LoseRequest, faultstore.LoseReply)
	if v != faultstore.Pass {
		p.mishaps++
	}
	return v
}

// beforeWrite is what happens while the write of a tick is on its way.
func (p *player) beforeWrite(runner int) {
	if p.elsewhere {
		return
	}
	p.elsewhere = true
	defer func() { p.elsewhere = false }()
	p.deliver()
	if p.way.Pauses && p.mishaps < p.most && rapid.Bool().Draw(p.draws, "pause") {
		p.mishaps++
		p.free(store.SchedulerLock)
		p.host.move(standBy)
		for range rapid.IntRange(0, 12).Draw(p.draws, "steps of the others") {
			if other := rapid.IntRange(0, len(p.runners)-1).Draw(p.draws, "runner"); other != runner {
				p.step(other)
			}
		}
	}
}

// standBy is how long a runner that does not lead sleeps at most.
const standBy = 5 * time.Second

func (p *player) deliver() {
	edits := p.onTheirWay
	p.onTheirWay = nil
	p.insist(edits...)
}

// insist plays operations, each again as long as calls of it are lost.
func (p *player) insist(all ...operation) {
	for _, o := range all {
		for before := -1; before != p.mishaps; {
			before = p.mishaps
			o.play(p.world)
		}
	}
}

// round moves the clock, edits schedules, and lets the runners come to rest, in
// the player's way.
func (p *player) round(r round) {
	p.most = p.mishaps + 8
	r.Move.play(p.world)
	inTime := len(r.Edits)
	if p.way.Late {
		inTime = rapid.IntRange(0, inTime).Draw(p.draws, "edits in time")
	}
	p.insist(r.Edits[:inTime]...)
	p.onTheirWay = r.Edits[inTime:]
	if p.way.Runners > 1 || p.way.Restart != "" {
		for range rapid.IntRange(0, 6).Draw(p.draws, "steps") {
			p.step(rapid.IntRange(0, len(p.runners)-1).Draw(p.draws, "runner"))
		}
	}
	if p.way.Restart == fromSnapshot && rapid.Bool().Draw(p.draws, "snapshot") {
		p.base, p.baseAt = p.snapshot(), len(p.journal.Bytes())
	}
	if p.way.Restart != "" && rapid.Bool().Draw(p.draws, "restart") {
		p.restart()
	}
	p.calm()
	p.deliver()
	p.calm()
}

// calm lets the runners come to rest, and those who sleep look again, until
// there are no more mishaps.
func (p *player) calm() {
	for before := -1; before != p.mishaps; {
		before = p.mishaps
		p.host.move(standBy)
		p.rest()
	}
}

// back is an instant as the plain world has it.
func (p *player) back(at store.Instant) store.Instant {
	if at == store.None {
		return at
	}
	return at - store.Instant(p.shiftMS)
}

// plainRows are the schedules, without what depends on how often they were
// written.
func (p *player) plainRows() []store.Schedule {
	rows := p.schedules()
	for i := range rows {
		r := &rows[i]
		r.ID, r.Rev = 0, 0
		r.Anchor, r.Cursor, r.DueAt, r.SetAt = p.back(r.Anchor), p.back(r.Cursor), p.back(r.DueAt), p.back(r.SetAt)
	}
	return rows
}

// plainFires are the jobs, without what depends on the order of ticks. Nobody
// claims them.
func (p *player) plainFires() []store.Job {
	var all []store.Job
	for _, q := range p.queues() {
		all = append(all, p.jobs(q.Name, 0)...)
	}
	for i := range all {
		j := &all[i]
		j.ID, j.ScheduleID = 0, 0
		j.FireAt, j.EnqueuedAt, j.RunAt, j.ExpiresAt = p.back(j.FireAt), p.back(j.EnqueuedAt), p.back(j.RunAt), p.back(j.ExpiresAt)
	}
	slices.SortFunc(all, func(a, b store.Job) int {
		return cmp.Or(cmp.Compare(a.Schedule, b.Schedule), cmp.Compare(a.FireAt, b.FireAt), cmp.Compare(a.RunAt, b.RunAt), cmp.Compare(a.Queue, b.Queue))
	})
	return all
}

// skip is a range of boundaries that was skipped.
type skip struct {
	Schedule    string
	First, Last time.Time
	Count       int64
	Reason      string
}

// plainSkips are those since the last call.
func (p *player) plainSkips() []skip {
	var all []skip
	for _, e := range p.take() {
		if e.Kind == tickonce.EventSkipped {
			first, last := time.UnixMilli(e.First.UnixMilli()-p.shiftMS), time.UnixMilli(e.Last.UnixMilli()-p.shiftMS)
			all = append(all, skip{e.Schedule, first, last, e.Count, e.Reason})
		}
	}
	slices.SortFunc(all, func(a, b skip) int {
		return cmp.Or(cmp.Compare(a.Schedule, b.Schedule), a.First.Compare(b.First), cmp.Compare(a.Count, b.Count))
	})
	return all
}
