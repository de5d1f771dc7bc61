package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
)

// truth stands right before the store and sees every call that is made, also
// those whose reply is lost further up. It keeps a model of the rows of its
// own, checks each call against it in constant time, and counts what the
// result tells.
type truth struct {
	store.Store // reads, and what is not watched
	memory      *memengine.Store
	open        bool
	w           *world

	order  []*trueSchedule // by name
	byID   map[store.ScheduleID]*trueSchedule
	queues []*trueQueue
	jobs   map[store.JobID]*store.Job
	lease  store.Lease // the scheduler's
	leader string      // its latest owner
	term   store.Term  // the largest

	counts map[string]*ScheduleResult
}

// trueSchedule is the model of one schedule.
type trueSchedule struct {
	row      store.Schedule
	interval int64
	fired    store.Instant // nothing at or before may fire
}

// trueQueue is the model of one queue: its open jobs in the order of their
// ids, among them some that have ended since.
type trueQueue struct {
	name string
	open []store.JobID
}

func newTruth(w *world) *truth {
	t := &truth{w: w, open: true, counts: map[string]*ScheduleResult{}}
	for _, s := range w.scenario.Schedules {
		t.counts[s.Name] = &ScheduleResult{Name: s.Name, Spec: s.Spec, Queue: s.Queue, SkipReasons: map[string]int64{}}
		if t.queue(s.Queue) == nil {
			t.queues = append(t.queues, &trueQueue{name: s.Queue})
		}
	}
	slices.SortFunc(t.queues, func(a, b *trueQueue) int { return compare(a.name, b.name) })
	return t
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (t *truth) queue(name string) *trueQueue {
	for _, q := range t.queues {
		if q.name == name {
			return q
		}
	}
	return nil
}

// restored reads the model anew from a store that was opened again. Boundaries
// before a cursor must not fire again (invariant 11); a cursor that lies
// before the one that was known tells of fires that the restart forgot.
func (t *truth) restored(memory *memengine.Store) {
	known := t.order
	t.memory, t.Store = memory, memory
	t.order, t.byID = nil, map[store.ScheduleID]*trueSchedule{}
	t.jobs, t.lease = map[store.JobID]*store.Job{}, store.Lease{}
	t.term, t.leader = 0, "" // the sequence of a restored store is checked from here on
	var rows [64]store.Schedule
	for from := ""; ; {
		n, _, err := memory.Schedules(ctx, from, rows[:])
		if err != nil {
			panic(err)
		}
		for i := range rows[:n] {
			t.put(&rows[i])
		}
		if n < len(rows) {
			break
		}
		from = rows[n-1].Name + "\x00"
	}
	for _, q := range t.queues {
		q.open = q.open[:0]
		filter := store.Filter{Queue: q.name}
		var jobs [64]store.Job
		for {
			n, _, err := memory.Jobs(ctx, filter, jobs[:])
			if err != nil {
				panic(err)
			}
			for i := range jobs[:n] {
				t.insert(jobs[i])
			}
			if n < len(jobs) {
				break
			}
			filter.From = jobs[n-1].ID + 1
		}
	}
	for _, before := range known {
		i := t.find(before.row.Name)
		t.w.coverage.sometimes(restoreLostTail, i < 0 || t.order[i].row.Cursor < before.row.Cursor)
	}
}

// find is the index of the schedule in order, or -1.
func (t *truth) find(name string) int {
	i, ok := slices.BinarySearchFunc(t.order, name, func(s *trueSchedule, name string) int { return compare(s.row.Name, name) })
	if !ok {
		return -1
	}
	return i
}

// put takes a written schedule row into the model. A new incarnation may fire
// from its cursor on.
func (t *truth) put(row *store.Schedule) *trueSchedule {
	s := t.byID[row.ID]
	if s == nil {
		s = &trueSchedule{fired: row.Cursor - 1}
		if i := t.find(row.Name); i >= 0 {
			delete(t.byID, t.order[i].row.ID)
			t.order[i] = s
		} else {
			i, _ := slices.BinarySearchFunc(t.order, row.Name, func(s *trueSchedule, name string) int { return compare(s.row.Name, name) })
			t.order = slices.Insert(t.order, i, s)
		}
		t.byID[row.ID] = s
	}
	s.row = *row
	if spec, err := core.ParseSpec(row.Spec); err == nil {
		s.interval = spec.IntervalMS()
	}
	return s
}

func (t *truth) insert(job store.Job) {
	t.jobs[job.ID] = &job
	q := t.queue(job.Queue)
	q.open = append(q.open, job.ID)
}

// Commit watches [store.Store.Commit].
func (t *truth) Commit(ctx context.Context, b *store.Batch) (store.Committed, error) {
	done, err := t.Store.Commit(ctx, b)
	if err != nil || done.Refusal.Why != store.NotRefused {
		return done, err
	}
	for i := range done.Puts {
		row := &done.Puts[i]
		t.w.digest.Text(tagCommit, row.Name)
		t.w.digest.Int(tagCommit, int64(row.Cursor))
		t.put(row)
	}
	return done, nil
}

// Acquire watches [store.Store.Acquire] of the scheduler's lock (invariant 6).
func (t *truth) Acquire(ctx context.Context, lock, owner string, ttlMS int64) (store.Grant, error) {
	grant, err := t.Store.Acquire(ctx, lock, owner, ttlMS)
	if err != nil || !grant.OK {
		return grant, err
	}
	now := t.w.shown()
	switch live := t.lease.Live(now); {
	case live && t.lease.Owner != owner:
		t.w.fail("6 one lease", "", fmt.Sprintf("%s got the lease that %s holds until %s", owner, t.lease.Owner, timeOf(t.lease.ExpiresAt)))
	case live && grant.Lease.Term != t.lease.Term:
		t.w.fail("6 one lease", "", fmt.Sprintf("%s got another term for the lease it holds", owner))
	case !live && grant.Lease.Term <= t.term:
		t.w.fail("6 terms rise", "", fmt.Sprintf("term %d was given after term %d", grant.Lease.Term, t.term))
	}
	t.w.coverage.sometimes(leaderChanged, t.leader != "" && t.leader != owner)
	t.w.coverage.sometimes(leaseLapsed, t.leader == owner && grant.Lease.Term != t.lease.Term)
	t.lease, t.term, t.leader = grant.Lease, grant.Lease.Term, owner
	t.w.digest.Int(tagLease, int64(now))
	t.w.digest.Text(tagLease, owner)
	return grant, nil
}

// Renew watches [store.Store.Renew] (LK3).
func (t *truth) Renew(ctx context.Context, l store.Lease, ttlMS int64) (store.Grant, error) {
	mine := t.holds(l)
	grant, err := t.Store.Renew(ctx, l, ttlMS)
	if err != nil {
		return grant, err
	}
	if grant.OK != mine {
		t.w.fail("6 one lease", "", fmt.Sprintf("a renewal by %s answered %v, the lease is %+v", l.Owner, grant.OK, t.lease))
	}
	if grant.OK {
		t.lease = grant.Lease
	}
	t.w.digest.Int(tagLease, int64(grant.Now))
	return grant, nil
}

// holds reports whether l is the live lease.
func (t *truth) holds(l store.Lease) bool {
	return t.lease.Owner == l.Owner && t.lease.Term == l.Term && t.lease.Live(t.w.shown())
}

// Release watches [store.Store.Release].
func (t *truth) Release(ctx context.Context, l store.Lease) (bool, error) {
	released, err := t.Store.Release(ctx, l)
	if err == nil && released {
		t.lease = store.Lease{}
	}
	return released, err
}

// Advance watches [store.Store.Advance]: invariants 1, 2, 3, 6 and 7.
func (t *truth) Advance(ctx context.Context, tick *store.Tick) (bool, error) {
	live := t.holds(tick.By)
	var before []byte
	if !live {
		before = t.w.bytes()
	}
	held, err := t.Store.Advance(ctx, tick)
	t.w.coverage.sometimes(staleWriteRefused, err == nil && !held)
	if err != nil || !held {
		if before != nil && !slices.Equal(before, t.w.bytes()) {
			t.w.fail("7 failed tick", "", "a refused tick changed the state")
		}
		return held, err
	}
	if !live {
		t.w.fail("6 fence", "", fmt.Sprintf("a tick under %+v was written, the lease is %+v", tick.By, t.lease))
	}
	for i := range tick.Moves {
		t.moved(tick, &tick.Moves[i])
	}
	for i := range tick.Fires {
		t.fire(tick, &tick.Fires[i])
	}
	for i := range tick.Moves {
		t.counted(tick, &tick.Moves[i])
	}
	return true, nil
}

// moved checks one move and takes it into the model.
func (t *truth) moved(tick *store.Tick, move *store.Move) {
	s := t.byID[move.ID]
	current := s != nil && s.row.Rev == move.Rev
	switch {
	case move.Outcome == store.Stale && current:
		t.w.fail("T3 guard", s.row.Name, "a move was refused as stale though its row is unchanged")
		return
	case move.Outcome != store.Stale && !current:
		t.w.fail("T3 guard", "", fmt.Sprintf("a move of schedule id %d was made though its row has changed", move.ID))
		return
	case move.Outcome != store.Moved:
		return
	}
	name := s.row.Name
	t.w.digest.Text(tagMove, name)
	t.w.digest.Int(tagMove, int64(move.Cursor))
	t.w.digest.Int(tagMove, int64(move.DueAt))
	if move.Fires > core.CatchUpCap {
		t.w.fail("2 cap", name, fmt.Sprintf("%d boundaries fired in one tick", move.Fires))
	}
	if move.DueAt <= tick.Now || move.Hold == nil && move.Cursor <= tick.Now {
		t.w.fail("2 moves on", name, fmt.Sprintf("cursor %s and due-at %s are not after now %s", timeOf(move.Cursor), timeOf(move.DueAt), timeOf(tick.Now)))
	}
	counts := t.counts[name]
	if move.Hold != nil {
		counts.Quarantined++
		if move.Cursor != s.row.Cursor || move.Fires > 0 {
			t.w.fail("Q3 hold", name, "a held row moved its cursor or fired")
		}
	}
	t.w.coverage.sometimes(quarantined, move.Hold != nil)
}

// fire checks one fire and takes its job into the model.
func (t *truth) fire(tick *store.Tick, fire *store.Fire) {
	move := &tick.Moves[fire.Move]
	s := t.byID[move.ID]
	if move.Outcome != store.Moved || s == nil {
		if fire.Job != 0 {
			t.w.fail("5 stale", "", "a move that was not made gave a job")
		}
		return
	}
	name := s.row.Name
	t.w.digest.Text(tagFire, name)
	t.w.digest.Int(tagFire, int64(fire.Boundary))
	if fire.Boundary <= s.fired {
		t.w.fail("1 fires once", name, "boundary "+timeOf(fire.Boundary).String()+" fired again")
	}
	if fire.Boundary < s.row.Anchor || int64(fire.Boundary-s.row.Anchor)%s.interval != 0 {
		t.w.fail("1 on the grid", name, timeOf(fire.Boundary).String()+" is no boundary of its grid")
	}
	if fire.Boundary > tick.Now {
		t.w.fail("1 not early", name, timeOf(fire.Boundary).String()+" fired at "+timeOf(tick.Now).String())
	}
	s.fired = fire.Boundary
	counts := t.counts[name]
	counts.Fired++
	if counts.Fired == 1 {
		counts.FirstFire = timeOf(fire.Boundary)
	}
	counts.LastFire = timeOf(fire.Boundary)
	late := time.Duration(t.w.now-t.w.clock.reached(fire.Boundary)) * time.Millisecond
	counts.MaxLate = max(counts.MaxLate, late)
	job := store.Job{
		ID: fire.Job, Queue: s.row.Queue, Schedule: name, FireAt: fire.Boundary, Stamps: s.row.Stamps,
		RunAt: tick.Now, ExpiresAt: store.None, State: store.Pending, Deadline: store.None,
	}
	if s.row.ExpiresMS > 0 {
		job.ExpiresAt = tick.Now.Add(s.row.ExpiresMS)
	}
	t.insert(job)
	t.w.wakeQueue(s.row.Queue)
}

// counted checks that the boundaries which the cursor passed are the fired and
// the skipped ones (invariant 3), and moves the model on.
func (t *truth) counted(tick *store.Tick, move *store.Move) {
	s := t.byID[move.ID]
	if move.Outcome != store.Moved || s == nil {
		return
	}
	passed := int64(move.Cursor-s.row.Cursor) / s.interval
	skips := passed - int64(move.Fires)
	counts := t.counts[s.row.Name]
	if skips < 0 {
		t.w.fail("3 one fate", s.row.Name, fmt.Sprintf("%d boundaries passed, %d fired", passed, move.Fires))
	}
	tooOld := int64(0)
	if edge := tick.Now.Add(-s.row.CatchUp.WindowMS); s.row.CatchUp.WindowMS > 0 && s.row.Cursor < edge {
		tooOld = min(passed, (int64(edge-s.row.Cursor)+s.interval-1)/s.interval)
	}
	reason := "policy"
	if s.row.CatchUp.Max == core.CatchUpCap {
		reason = "cap"
	}
	add := func(reason string, count int64) {
		if count > 0 {
			counts.SkipReasons[reason] += count
		}
	}
	add("policy", tooOld)
	add(reason, skips-tooOld)
	if skips > tooOld && move.Fires != s.row.CatchUp.Max {
		t.w.fail("3 reasons", s.row.Name, fmt.Sprintf("%d boundaries were skipped for the count beside %d fires", skips-tooOld, move.Fires))
	}
	counts.Skipped += skips
	t.w.coverage.sometimes(skipped, skips > 0)
	t.w.coverage.sometimes(skipOnGrid, skips > 0 && int64(tick.Now-s.row.Anchor)%s.interval == 0)
	t.w.coverage.sometimes(capHit, move.Fires == core.CatchUpCap && skips == 0)
	t.w.coverage.sometimes(capExceeded, move.Fires == core.CatchUpCap && skips > 0)
	s.row.Rev++
	s.row.Cursor, s.row.DueAt, s.row.SetAt, s.row.Hold = move.Cursor, move.DueAt, move.SetAt, move.Hold
	s.fired = max(s.fired, move.Cursor-1)
}

// firedSince reports whether a boundary in (from, to] has fired.
func (t *truth) firedSince(from, to store.Instant) bool {
	for _, s := range t.order {
		if s.row.Cursor > from && s.row.Cursor-store.Instant(s.interval) > from && s.row.Cursor-store.Instant(s.interval) <= to {
			return true
		}
	}
	return false
}
