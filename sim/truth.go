package sim

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
)

// truth stands right before the store and sees every call that is made, also
// those whose reply is lost further up. It keeps a model of the rows of its
// own, checks each call against it in constant time, and counts what the
// result tells. Of the engine's rules it uses none but the parser of specs:
// what is checked must not check itself.
type truth struct {
	store.Store             // reads, and what is not watched
	below       store.Store // the one under test, without what a rig has put before it
	open        bool
	w           *world

	schedules []trueSchedule // in the scenario's order
	named     map[string]*trueSchedule
	byID      map[store.ScheduleID]*trueSchedule

	lastSchedule store.ScheduleID
	inspections  int64 // of the schedules, by runners

	queues  []*trueQueue // by name
	byQueue map[string]*trueQueue
	jobs    map[store.JobID]*trueJob // those that are not at their end
	keyed   map[liveKey]store.JobID  // those that have a key
	spare   []*trueJob               // to use again
	lastJob store.JobID
	memory  int64        // bytes of all jobs, about
	ends    []int64      // the events of the jobs that the commit under way has ended
	trips   []store.Trip // of the claim under way: the breakers that it says its burials opened

	compareAt int64 // in events: when a refused call is next compared by the whole state

	// What is read of the store, page by page.
	schedulePage [64]store.Schedule
	jobPage      [64]store.Job

	tick []passed // of the latest tick
	past []past   // of each schedule; nil without a stale read

	lease  store.Lease // the scheduler's
	leader string      // its latest owner
	holder *node       // whose runner that is
	term   store.Term  // the latest
}

// The numbers of the contract that the truth checks by.
const (
	catchUpCap = 64
	slackMS    = 1000 // how much longer than its TTL a lease may last (K2)
)

func newTruth(w *world) *truth {
	t := &truth{
		w: w, open: true,
		schedules: make([]trueSchedule, len(w.scenario.Schedules)),
		named:     map[string]*trueSchedule{},
		byQueue:   map[string]*trueQueue{},
	}
	for i := range w.scenario.Schedules {
		s := &w.scenario.Schedules[i]
		q := t.queue(s.Queue, nil)
		t.schedules[i] = trueSchedule{
			scenario: s, index: int64(i), queue: q, interval: intervalOf(s.Spec), lastFire: store.None, charged: store.MinInstant,
		}
		t.named[s.Name] = &t.schedules[i]
	}
	t.named[""] = &trueSchedule{scenario: &foreign, index: -1}
	if w.scenario.Handlers[""] != nil {
		t.named[""].scenario = new(Schedule)
	}
	for i := range w.scenario.Faults {
		if f := &w.scenario.Faults[i]; f.Kind == FaultEditChange && f.Queue != "" {
			t.queue(f.Queue, nil)
		}
	}
	for i := range w.scenario.Outboxes {
		o := &w.scenario.Outboxes[i]
		q := t.queue(core.OutboxPrefix+o.Name, o)
		q.perProcess, q.concurrency = o.Workers, o.Concurrency
	}
	for _, q := range w.scenario.Queues {
		if known := t.byQueue[q.Name]; known != nil {
			known.perProcess, known.concurrency, known.timeout = q.Workers, q.Concurrency, q.Timeout
		}
	}
	for _, q := range t.queues {
		q.concurrency = max(q.concurrency, 1)
		if q.outbox != nil {
			q.byHand = q.outbox.Heartbeat > 0
		} else {
			q.byHand = w.scenario.worksByHand(q.name)
		}
	}
	slices.SortFunc(t.queues, func(a, b *trueQueue) int { return strings.Compare(a.name, b.name) })
	return t
}

// queue is the queue of that name in the store; it is made if there is none.
func (t *truth) queue(name string, outbox *Outbox) *trueQueue {
	q := t.byQueue[name]
	if q == nil {
		q = &trueQueue{row: store.Queue{Name: name}, name: name, perProcess: 1, outbox: outbox}
		if outbox != nil {
			q.name, q.delivered = outbox.Name, map[store.JobID]bool{}
		}
		t.byQueue[name] = q
		t.queues = append(t.queues, q)
	}
	return q
}

// place is the outbox, or the queue, of that name in the scenario.
func (t *truth) place(name string) *trueQueue {
	if q := t.byQueue[core.OutboxPrefix+name]; q != nil {
		return q
	}
	return t.byQueue[name]
}

// opened reads the model from a store that was opened: from its state on,
// boundaries before a cursor must not fire (invariant 11).
func (t *truth) opened(s store.Store) {
	if s != t.below { // the same one has kept it
		t.lease = store.Lease{}
	}
	t.open, t.below, t.Store = true, s, s
	if t.w.rig.below != nil {
		t.Store = t.w.rig.below(s)
	}
	t.byID, t.lastSchedule = map[store.ScheduleID]*trueSchedule{}, 0
	for i := range t.schedules {
		t.schedules[i].known = false
	}
	t.eachSchedule(func(row *store.Schedule) {
		if s := t.named[row.Name]; s != nil {
			t.identify(row.ID, s)
			s.know(row, t.byQueue[row.Queue])
			s.fate.begins(row.Cursor)
		}
	})
	for i := range t.schedules {
		s := &t.schedules[i]
		lost := s.lastFire != store.None && (s.known && s.row.Cursor <= s.lastFire || !s.known && s.row.ID != 0)
		if lost {
			s.since = t.w.causes.opened
		}
		t.w.coverage.sometimes(restoreLostTail, lost)
		if lost {
			s.undoneBy, s.rearmed = t.w.forgot, false
		}
		if !s.known && s.row.ID != 0 {
			s.forgotten += t.w.chargeUnfired(s, forgotten)
			s.charged = max(s.charged, t.w.shown()+1)
		}
	}
	t.openJobs()
	t.w.digest.Int(tagRestore, int64(len(t.jobs)))
}

// Due watches [store.Store.Due]: it answers rows as they are, and due.
func (t *truth) Due(ctx context.Context, dst []store.Schedule) (store.Due, error) {
	due, err := t.Store.Due(ctx, dst)
	if err != nil {
		return due, err
	}
	for i := range dst[:due.N] {
		row := &dst[i]
		t.w.checked[aDueRow]++
		if row.DueAt > due.Now || !t.isTrue(row) {
			t.w.fail(rightRows, row.Name, "it was read as due with another row than was written")
		}
		if i > 0 && cmp.Or(cmp.Compare(dst[i-1].DueAt, row.DueAt), cmp.Compare(dst[i-1].Name, row.Name)) >= 0 {
			t.w.fail(fireOrder, row.Name, "it was read as due behind "+dst[i-1].Name)
		}
	}
	if n := t.w.acting; n.reply == faultstore.Pass {
		t.misread(n, dst, &due)
		n.readAt, n.due = due.Now, due.N
		n.midTick = n.renewed && due.N > 0
		n.renewed, n.stalled = false, false
	}
	if due.N > 0 {
		t.w.acting.read = t.w.tell(Event{Kind: EventRowsRead, Cause: t.w.causeOfCall(), Process: t.w.acting.number(), Count: int64(due.N)})
	}
	return due, nil
}

// Schedules notes when a process reads them.
func (t *truth) Schedules(ctx context.Context, from string, dst []store.Schedule) (int, store.Instant, error) {
	n, now, err := t.Store.Schedules(ctx, from, dst)
	if by := t.w.acting; err == nil && by != nil && by.reply == faultstore.Pass {
		by.inspectedAt = now
		if from == "" && t.w.intent == (intent{}) {
			t.inspections++
		}
	}
	if tx := t.w.intent.tx; err == nil && tx != nil {
		read := t.guardOf(t.named[tx.schedule])
		tx.read = &read
	}
	return n, now, err
}

// Advance watches [store.Store.Advance]: invariants 1, 2, 3, 6 and 7.
func (t *truth) Advance(ctx context.Context, tick *store.Tick) (bool, error) {
	n, live := t.w.acting, t.holds(tick.By)
	var before []byte
	if !live {
		before = t.before()
	}
	held, err := t.Store.Advance(ctx, tick)
	if n.reply == faultstore.Pass && err == nil {
		n.held = held
		n.leads = n.leads && held
	}
	if err != nil || !held {
		t.w.checked[aRefusedTick]++
		t.w.coverage.sometimes(staleWriteRefused, err == nil)
		t.w.coverage.sometimes(pausedLeaderRefused, err == nil && n.stalled)
		if err == nil {
			t.w.tellOfTick(n, tick, EventTickRefused)
		}
		switch {
		case live && err == nil:
			t.w.fail(fence, "", fmt.Sprintf("a tick under the live lease of %s was refused", tick.By.Owner))
		case !live && t.changedSince(before):
			t.w.fail(failedWrite, "", "a refused tick changed the state")
		}
		return held, err
	}
	t.w.checked[aTick]++
	t.w.coverage.sometimes(staleWriteRefused, false)
	t.w.coverage.sometimes(pausedLeaderRefused, false)
	if !live {
		t.w.fail(fence, "", fmt.Sprintf("a tick under term %d of %s was written, while %s", tick.By.Term, tick.By.Owner, leaseOf(t.lease)))
	}
	if tick.Now != n.readAt && !t.w.orphaned() {
		t.w.fail(rightRows, "", "a tick rests on "+text(tick.Now)+", the rows were read at "+text(n.readAt))
	}
	t.w.causes.tick = t.w.tellOfTick(n, tick, EventTickWritten)
	t.w.coverage.sometimes(budgetFull, len(tick.Moves) < n.due)
	t.tick = t.tick[:0]
	if t.overBudget(tick) {
		t.w.fail(budgetHeld, "", fmt.Sprintf("a tick fires %d boundaries of several schedules, its budget is %d", len(tick.Fires), t.w.batch()))
	}
	skips := tick.Skips
	for i := range tick.Moves {
		t.move(tick, &tick.Moves[i], skipsOf(i, &skips))
	}
	if len(skips) > 0 {
		t.w.fail(namedSkips, "", "a tick names skips behind those of its moves, or in another order")
	}
	for i := range tick.Fires {
		if i > 0 && t.disordered(tick, &tick.Fires[i-1], &tick.Fires[i]) {
			t.w.fail(fireOrder, "", "the boundary of "+text(tick.Fires[i].Boundary)+" came too late in its tick")
		}
		t.fire(tick, &tick.Fires[i])
	}
	for i := range tick.Moves {
		t.moved(tick, &tick.Moves[i])
	}
	return true, nil
}

// overBudget reports whether the tick fires more than it may, but for its first
// schedule alone (T15).
func (t *truth) overBudget(tick *store.Tick) bool {
	return len(tick.Fires) > t.w.batch() &&
		slices.ContainsFunc(tick.Fires, func(f store.Fire) bool { return f.Move != 0 })
}

// batch is how many boundaries a tick fires at most.
func (w *world) batch() int { return cmp.Or(w.scenario.Engine.Batch, 1000) }

// disordered reports whether b should have come before a (T10).
func (t *truth) disordered(tick *store.Tick, a, b *store.Fire) bool {
	if a.Boundary != b.Boundary {
		return a.Boundary > b.Boundary
	}
	first, second := t.byID[tick.Moves[a.Move].ID], t.byID[tick.Moves[b.Move].ID]
	return first != nil && second != nil && first != second && first.row.Name >= second.row.Name
}

// move checks one move before its fires, and says which of them are right.
func (t *truth) move(tick *store.Tick, move *store.Move, skips []store.Skip) {
	t.w.checked[aMove]++
	s := t.byID[move.ID]
	current := s != nil && s.row.Rev == move.Rev && !s.moving && (s.row.Overlap == store.Allow || s.live == move.Live)
	if current == (move.Outcome == store.Stale) {
		t.w.fail(revGuard, "", fmt.Sprintf("a move of schedule id %d was answered as %s, its row is unchanged: %s", move.ID, outcomeWords[move.Outcome], yesNo(current)))
		move.Outcome = store.Stale // nothing more can be told
	}
	t.w.coverage.sometimes(staleMove, move.Outcome == store.Stale)
	t.w.coverage.sometimes(staleReadCaught, move.Outcome == store.Stale && t.w.acting.misled)
	if move.Outcome == store.Stale {
		if s != nil {
			t.w.tellOf(s, Event{Kind: EventStale, Cause: t.w.causes.tick})
		}
		return
	}
	t.w.checked[aCurrentMove]++
	name, q := s.row.Name, s.queue
	if s.row.DueAt > tick.Now {
		t.w.fail(rightRows, name, "it moved at "+text(tick.Now)+" and is due at "+text(s.row.DueAt))
	}
	setAt := s.row.SetAt
	if move.Cursor != s.row.Cursor {
		setAt = tick.Now
	}
	full := move.Fires > 0 && q.row.Len()+q.incoming+int64(move.Fires) > t.w.queueLimit()
	t.w.coverage.sometimes(queueFull, full)
	if full != (move.Outcome == store.Full) {
		t.w.fail(queueBound, name, fmt.Sprintf("%d jobs for a queue of %d were answered as %s", move.Fires, q.row.Len()+q.incoming, outcomeWords[move.Outcome]))
	}
	if move.Outcome == store.Full {
		s.fullAt = s.row.Rev
		t.w.tellOf(s, Event{
			Kind: EventQueueFull, Cause: t.w.causes.tick, Queue: q.name, Boundary: timeOf(s.row.Cursor), Count: int64(move.Fires),
		})
		return
	}
	s.moving = true
	q.incoming += int64(move.Fires)
	t.w.digest.Int(tagMove, s.index)
	t.w.digest.Int(tagMove, int64(move.Cursor))
	t.w.digest.Int(tagMove, int64(move.DueAt))
	t.w.checked[aMadeMove]++
	t.w.passes(s)
	s.tick = s.judge(tick.Now)
	if move.Fires > catchUpCap {
		t.w.fail(capHeld, name, fmt.Sprintf("%d boundaries fired in one tick", move.Fires))
	}
	t.w.coverage.sometimes(quarantined, move.Hold != nil)
	t.w.coverage.sometimes(rowHealed, move.Hold == nil && s.row.Hold != nil)
	next := s.nextAfter(tick.Now)
	if bad := s.undecidable() || next > store.MaxInstant; bad != (move.Hold != nil) && s.fullAt != s.row.Rev {
		t.w.fail(holdsBad, name, fmt.Sprintf("its row cannot be decided: %s; it was held: %s", yesNo(bad), yesNo(move.Hold != nil)))
	}
	if move.Hold != nil {
		t.w.checked[aHold]++
		s.tick = fates{}
		s.quarantined++
		t.w.tellOf(s, Event{Kind: EventHeld, Cause: t.w.causes.tick, Boundary: timeOf(s.row.Cursor), Until: timeOf(move.DueAt)})
		if move.Cursor != s.row.Cursor || move.DueAt != tick.Now.Add(heldMS) || move.Fires > 0 {
			t.w.fail(holdsStill, name, "a held row moved its cursor, fired, or is held for other than a minute")
		}
		since, times := tick.Now, int32(1)
		if was := s.row.Hold; was != nil {
			since, times = was.Since, was.Times+1
		}
		if move.Hold.Since != since || move.Hold.Times != times {
			t.w.fail(holdsStill, name, fmt.Sprintf("it is held for the %d. time since %s, and was marked as held for the %d. since %s",
				times, text(since), move.Hold.Times, text(move.Hold.Since)))
		}
		return
	}
	t.w.checked[aPass]++
	t.namesSkips(s, skips, s.tick.skips[:])
	t.w.coverage.sometimes(skippedByHours, s.tick.skippedBy(store.SkipHours) > 0)
	t.w.coverage.sometimes(skippedByPolicy, s.tick.skippedBy(store.SkipPolicy) > 0)
	t.w.coverage.sometimes(skippedByOverlap, s.tick.skippedBy(store.SkipOverlap) > 0)
	t.w.coverage.sometimes(missedItsTurn, s.tick.skippedBy(store.SkipMissed) > 0)
	due := next
	if s.tick.ends {
		due = store.None
	}
	if s.tick.ends != move.Ends {
		t.w.fail(runsOnce, name, "a run-once had its turn: "+yesNo(s.tick.ends)+"; its move says so: "+yesNo(move.Ends))
	}
	t.w.coverage.sometimes(ranOnce, move.Ends && s.tick.fires > 0)
	if move.Cursor != next || move.DueAt != due || move.SetAt != setAt {
		t.w.fail(movesOn, name, fmt.Sprintf("at %s the cursor became %s and due-at %s, set at %s",
			text(tick.Now), text(move.Cursor), text(move.DueAt), text(move.SetAt)))
	}
}

// fire checks one fire and takes its job into the model.
func (t *truth) fire(tick *store.Tick, fire *store.Fire) {
	move := &tick.Moves[fire.Move]
	s := t.byID[move.ID]
	if move.Outcome != store.Moved || s == nil {
		if fire.Job != 0 {
			t.w.fail(revGuard, "", "a move that was not made gave a job")
		}
		return
	}
	t.w.checked[aFire]++
	name, at := s.row.Name, fire.Boundary
	t.w.digest.Int(tagFire, s.index)
	t.w.digest.Int(tagFire, int64(at))
	switch {
	case at < s.next:
		t.w.fail(firesOnce, name, "the boundary of "+text(at)+" had fired or been skipped")
	case !s.onGrid(at):
		t.w.fail(onGridOnly, name, text(at)+" is no boundary of its grid")
	case at > tick.Now:
		t.w.fail(notEarly, name, "the boundary of "+text(at)+" fired at "+text(tick.Now))
	case s.tick.fires == 0 || at != s.tick.first:
		t.w.fail(oneFate, name, "the boundary of "+text(at)+" fired, which was to be skipped, or one before it did not")
	}
	s.next = at + 1
	s.tick.fires--
	s.tick.first = at + store.Instant(s.interval)
	lateMS := int64(t.w.now - t.w.clock.reached(at))
	again := s.firedAgain + s.firedByRepair
	t.w.chargeFire(s, at, lateMS)
	s.countFire(at, lateMS)
	if t.w.watched() {
		t.w.tellOf(s, Event{
			Kind: EventFired, Cause: t.w.causes.tick, Queue: s.queue.name, Boundary: timeOf(at), Job: int64(fire.Job),
			Late: time.Duration(lateMS) * time.Millisecond, Again: s.firedAgain+s.firedByRepair > again,
		})
	}
	t.w.owes(tickonce.EventFired, tick.Now, int64(fire.Job), 1)
	t.insert(s, fire, tick.Now)
}

// moved checks that the boundaries which the cursor passed are the fired and
// the skipped ones (invariant 3), and moves the model on.
func (t *truth) moved(tick *store.Tick, move *store.Move) {
	s := t.byID[move.ID]
	if move.Outcome != store.Moved || s == nil {
		return
	}
	if s.tick.fires != 0 {
		t.w.fail(oneFate, s.row.Name, "fired "+missed(int64(s.tick.fires), "boundary", "boundaries"))
	}
	s.queue.incoming = 0
	skips := s.tick.skipped()
	full := move.Fires == catchUpCap
	t.w.owes(tickonce.EventSkipped, tick.Now, s.index, skips)
	if move.Hold != nil {
		t.w.owes(tickonce.EventQuarantined, tick.Now, s.index, 1)
	}
	t.w.coverage.sometimes(skipped, skips > 0)
	t.w.coverage.sometimes(skipOnGrid, skips > 0 && s.onGrid(tick.Now))
	t.w.coverage.sometimes(capHit, full && skips == 0)
	t.w.coverage.sometimes(capExceeded, s.tick.skippedBy(store.SkipCap) > 0)
	t.passedOver(s, s.tick.skips[:])
	t.keepPast(s)
	s.moving = false
	s.row.Rev++
	s.row.Cursor, s.row.DueAt, s.row.SetAt, s.row.Hold = move.Cursor, move.DueAt, move.SetAt, move.Hold
	if move.Ends {
		s.row.Paused, s.row.DueAt = store.PausedByRunOnce, store.None
	}
	s.next = move.Cursor
	t.tick = append(t.tick, passed{s, s.tick, move.Fires, move.Cursor, move.Hold != nil})
	s.charged = max(s.charged, move.Cursor)
}

// firedWithin reports whether a boundary in (from, to] was the last to fire of
// its schedule.
func (t *truth) firedWithin(from, to store.Instant) bool {
	for i := range t.schedules {
		if last := t.schedules[i].lastFire; from < last && last <= to {
			return true
		}
	}
	return false
}

// before is the state that a refused call must leave as it is. It is nil if it
// was asked for shortly before: a large state may not be compared so often that
// this takes longer than all else.
func (t *truth) before() []byte {
	if t.w.events < t.compareAt {
		return nil
	}
	state := t.bytes()
	t.compareAt = t.w.events + int64(len(state))/bytesPerEvent
	return state
}

// bytesPerEvent is how much of a state is read and compared in about the time of
// an event.
const bytesPerEvent = 32

// changedSince reports whether the state is another than it was before.
func (t *truth) changedSince(before []byte) bool {
	if before == nil {
		return false
	}
	t.w.checked[aComparedState]++
	return !bytes.Equal(before, t.bytes())
}

// bytes is the store's state in canonical bytes: its snapshot, or all rows that
// can be read of it.
func (t *truth) bytes() []byte {
	if memory, ok := t.below.(*memengine.Store); ok {
		b, err := memory.Snapshot()
		if err != nil {
			panic(fmt.Sprintf("sim: no snapshot: %v", err))
		}
		return b
	}
	var b []byte
	t.eachSchedule(func(row *store.Schedule) {
		hold, rare := row.Hold, store.Rare{}
		if row.Rare != nil {
			rare = *row.Rare
		}
		row.Hold, row.Rare = nil, nil // as addresses they tell nothing
		b = fmt.Appendf(b, "%+v %+v %+v\n", *row, held(hold), rare)
	})
	for _, q := range t.queues {
		b = fmt.Appendf(b, "%+v\n", t.queueRow(q.row.Name))
		t.eachJob(q, func(row *store.Job) { b = fmt.Appendf(b, "%+v\n", *row) })
	}
	return b
}

// intervalOf is the interval of a spec; 0 if it does not parse.
func intervalOf(spec string) int64 {
	parsed, _ := core.ParseSpec(spec)
	return parsed.IntervalMS()
}
