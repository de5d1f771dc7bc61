package sim

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// intent is what the operation under way is to make of a schedule or a job;
// zero: the runner's repair of what a wrong clock did (T11).
type intent struct {
	edit   FaultKind    // FaultEditAdd for every registration
	as     *Schedule    // of a registration
	ends   ending       // of a settlement
	reason handlerError // of one that fails
	class  Class        // and of what class that is
	tx     *transaction // of a handler
}

// Commit watches [store.Store.Commit]: a batch is written if its guards and claims
// hold and its jobs find room, as a whole, and only then (O7).
func (t *truth) Commit(ctx context.Context, b *store.Batch) (store.Committed, error) {
	want := t.refusalOf(b)
	var before []byte
	if want != store.NotRefused {
		before = t.before()
	}
	done, err := t.Store.Commit(ctx, b)
	if err != nil {
		return done, err
	}
	why := done.Refusal.Why
	for _, of := range [...]struct {
		why    store.Why
		broken invariant
		holds  string
	}{
		{store.Conflict, revGuard, "its rows are as they were read"},
		{store.ClaimLost, staleToken, "the claims that it settles hold"},
		{store.QueueFull, queueBound, "there is room for its jobs"},
	} {
		if (why == of.why) != (want == of.why) {
			t.w.fail(of.broken, "", fmt.Sprintf("a write was refused: %s; %s: %s", yesNo(why == of.why), of.holds, yesNo(want != of.why)))
		}
	}
	if t.w.acting == t.w.operator {
		t.w.coverage.sometimes(editConflict, why == store.Conflict)
	}
	if why != store.NotRefused {
		if t.changedSince(before) {
			t.w.fail(failedWrite, "", "a write that was refused changed something")
		}
		t.refused(b, &done)
		return done, nil
	}
	t.w.checked[aCommit]++
	if want != store.NotRefused {
		return done, nil
	}
	t.transacted(b)
	t.checkResults(b)
	for i := range done.Puts {
		t.put(&done.Puts[i], b.Puts[i].Skips, done.Now)
	}
	for _, g := range b.Removes {
		t.w.owes(tickonce.EventUnscheduled, done.Now, t.named[g.Name].index, 1)
		t.remove(g.Name, Event{Kind: EventRemoved})
	}
	t.ends = t.ends[:0]
	for i := range b.Settles {
		j := t.jobs[b.Settles[i].Job]
		t.settled(&b.Settles[i], true, done.Now)
		t.ends = append(t.ends, j.cause)
	}
	t.inserted(b, &done)
	if t.w.acting == t.w.operator {
		t.w.overloaded = t.w.intent.edit == FaultOverload || t.w.intent.edit == FaultEditTrigger
		t.w.coverage.sometimes(editMidTick, slices.ContainsFunc(t.w.nodes, func(n *node) bool { return n.midTick }))
	}
	return done, nil
}

// guards reports whether the guard holds.
func (t *truth) guards(g store.Guard) bool {
	s := t.named[g.Name]
	if s == nil || !s.known {
		return g.ID == 0
	}
	return s.row.ID == g.ID && s.row.Rev == g.Rev && (g.Live == nil || s.live == *g.Live)
}

// put checks a written schedule row, and the boundaries that the write names as
// passed over, and takes it into the model.
func (t *truth) put(row *store.Schedule, skips []store.Skip, now store.Instant) {
	s := t.named[row.Name]
	t.w.digest.Int(tagCommit, s.index)
	t.w.digest.Int(tagCommit, int64(row.Cursor))
	t.w.coverage.sometimes(rowHealed, s.row.Hold != nil && row.Hold == nil)
	switch same := s.known && row.ID == s.row.ID; {
	case same && row.Rev != s.row.Rev+1:
		t.w.fail(revGuard, row.Name, fmt.Sprintf("its row was written, and its rev went from %d to %d", s.row.Rev, row.Rev))
	case !same && row.ID <= t.lastSchedule:
		t.w.fail(keepsGrid, row.Name, fmt.Sprintf("it began anew under id %d, after id %d was given", row.ID, t.lastSchedule))
	}
	switch t.w.intent.edit {
	case FaultEditPause:
		t.w.owes(tickonce.EventPaused, now, s.index, 1)
		t.paused(s, row)
	case FaultEditResume:
		t.w.owes(tickonce.EventResumed, now, s.index, 1)
		t.resumed(s, row, skips, now)
	case FaultEditTrigger:
		t.triggered(s, row)
	default:
		t.registered(s, row, skips, now)
	}
	t.keepPast(s)
	if !s.known { // an empty store gives ids again
		s.fate.begins(row.Cursor)
	}
	s.know(row, t.byQueue[row.Queue])
	if t.w.intent != (intent{}) {
		t.writtenByOthers(s)
	}
	if kind := t.w.intent.event(); kind != EventTriggered { // of which the job tells
		t.w.tellOf(s, Event{Kind: kind, Boundary: timeOf(row.Cursor)})
	}
}

// registered checks a registration or a repair. A new incarnation begins after
// now, on its grid; the same one keeps its grid and its cursor (S2, S5, S6).
func (t *truth) registered(s *trueSchedule, row *store.Schedule, skips []store.Skip, now store.Instant) {
	as, w := t.w.intent.as, t.w
	anew := t.byID[row.ID] == nil
	from, to := w.read(now)
	switch {
	case as != nil:
		w.checked[aRegistration]++
		w.owes(tickonce.EventScheduled, now, s.index, 1)
	case anew:
		w.owes(tickonce.EventRearmed, now, s.index, 1)
		fallthrough
	default:
		w.checked[aRepair]++
	}
	switch {
	case s.known && anew != w.beginsAnew(s, row):
		w.fail(keepsGrid, row.Name, fmt.Sprintf("at %s it began anew: %s, from the boundary of %s", text(now), yesNo(anew), text(row.Cursor)))
	case anew && row.Cursor <= from:
		w.fail(notEarly, row.Name, "a registration at "+text(now)+" leaves the boundary of "+text(row.Cursor)+" to fire")
	case anew && !onGrid(row, row.Cursor):
		w.fail(onGridOnly, row.Name, "its cursor "+text(row.Cursor)+" is no boundary")
	case anew && (row.SetAt < from || to < row.SetAt || row.Cursor != boundaryAfter(row, row.SetAt)):
		w.fail(firstOfGrid, row.Name, fmt.Sprintf("at %s it began with the boundary of %s, set at %s", text(now), text(row.Cursor), text(row.SetAt)))
	case !anew && row.Cursor != s.row.Cursor:
		w.fail(firesOnce, row.Name, "its cursor moved from "+text(s.row.Cursor)+" to "+text(row.Cursor)+" without a tick")
	case !anew && (row.SetAt != s.row.SetAt || row.Anchor != s.row.Anchor):
		w.fail(keepsGrid, row.Name, fmt.Sprintf("its anchor went from %s to %s, and the time at which its cursor was set from %s to %s",
			text(s.row.Anchor), text(row.Anchor), text(s.row.SetAt), text(row.SetAt)))
	}
	pause, failures := store.Active, uint8(0)
	if s.known {
		pause, failures = s.row.Paused, min(s.row.Failures, row.Breaker)
	}
	if anew && as != nil && pause == store.PausedByRunOnce {
		pause = store.Active
	}
	t.passesOver(s, row, skips, anew)
	switch {
	case as == nil:
		t.repaired(s, row, anew, from)
	case row.Paused != pause || row.Hold != nil || row.DueAt != dueAt(row) || row.Failures != failures:
		w.fail(asAsked, row.Name, fmt.Sprintf("its registration left it paused: %s, due at %s, with %d failures in a row",
			pauseWords[row.Paused], text(row.DueAt), row.Failures))
	case !asWanted(row, as) || anew && row.Anchor != anchorOf(as) && (anchorOf(as) != store.None || row.Anchor != row.SetAt):
		w.fail(asAsked, row.Name, "its row is not what was registered")
	case row.CatchUp != w.policyOf(as):
		w.fail(rightPolicy, row.Name, "its policy is "+policyText(row.CatchUp)+", not "+policyText(w.policyOf(as)))
	}
	if !anew {
		return
	}
	if s.known {
		if as != nil && s.leavesDue(row.SetAt) {
			w.owes(tickonce.EventSkipped, now, s.index, int64(row.SetAt-s.first())/s.interval+1)
		}
		w.chargeUnfired(s, left)
		delete(t.byID, s.row.ID)
		if as == nil {
			s.undoneBy, s.rearmed = w.jumped, true
		}
	}
	t.identify(row.ID, s)
}

// identify notes which schedule has the id, which was not given before.
func (t *truth) identify(id store.ScheduleID, s *trueSchedule) {
	t.byID[id] = s
	t.lastSchedule = max(t.lastSchedule, id)
}

// policyText is a policy for people (T14).
func policyText(c store.CatchUp) string {
	which := "oldest"
	if c.Newest {
		which = "newest"
	}
	if c.WindowMS == 0 {
		return fmt.Sprintf("the %d %s", c.Max, which)
	}
	return fmt.Sprintf("the %d %s of the last %d ms", c.Max, which, c.WindowMS)
}

// dueAt is when a row is due that is not held.
func dueAt(row *store.Schedule) store.Instant {
	if row.Paused != store.Active {
		return store.None
	}
	return row.Cursor
}

// repaired checks a repair by a runner that read the row at: of a hold that
// ends at once, or of a cursor that begins anew. Each was set by a clock that
// was ahead, and nothing else changes (T11, Q3).
func (t *truth) repaired(s *trueSchedule, row *store.Schedule, anew bool, at store.Instant) {
	was := &s.row
	t.w.coverage.sometimes(rearmed, anew)
	ahead := was.Hold != nil && was.DueAt > at.Add(heldMS)
	want := *was
	want.Rev, want.DueAt = row.Rev, at
	if anew {
		ahead = was.SetAt > at && int64(was.Cursor-at) > 2*s.interval
		want.ID, want.Anchor, want.Cursor, want.SetAt, want.Hold = row.ID, row.Anchor, row.Cursor, row.SetAt, nil
		want.AtAnchor = row.Cursor == row.Anchor
		want.DueAt = dueAt(row)
	}
	if !t.w.orphaned() && (!ahead || !sameRow(row, &want)) {
		t.w.fail(repairs, row.Name, fmt.Sprintf("read at %s with the cursor %s, set at %s, due at %s, it was repaired, to %s",
			text(at), text(was.Cursor), text(was.SetAt), text(was.DueAt), unlike(row, was)))
	}
}

// beginsAnew reports whether the row has to be another incarnation of s: of a
// registration with another interval or anchor (S5), or to repair, on the same
// grid, what a wrong clock did (T11).
func (w *world) beginsAnew(s *trueSchedule, row *store.Schedule) bool {
	as, before := w.intent.as, intervalOf(s.row.Spec)
	switch {
	case as == nil && row.ID == s.row.ID:
		return false
	case as == nil:
		return w.scenario.Engine.ClockRepair == RepairRearm && row.Spec == s.row.Spec && int64(row.Anchor-s.row.Anchor)%s.interval == 0
	case before != 0 && before != intervalOf(as.Spec), s.row.Paused == store.PausedByRunOnce && !as.RunOnce:
		return true
	default:
		return anchorOf(as) != store.None && anchorOf(as) != s.row.Anchor || !s.row.Cursor.Valid()
	}
}

// plainStamps are those of a job for which nothing else was asked.
var plainStamps = store.Stamps{VisibilityMS: 300_000, BaseBackoffMS: 60_000, MaxAttempts: 3}

// asWanted reports whether the row has what was registered (S1, S3).
func asWanted(row *store.Schedule, as *Schedule) bool {
	stamps := plainStamps
	if as.Visibility > 0 {
		stamps.VisibilityMS = as.Visibility.Milliseconds()
	}
	if as.BaseBackoff > 0 {
		stamps.BaseBackoffMS = int32(as.BaseBackoff.Milliseconds())
	}
	if as.MaxAttempts > 0 {
		stamps.MaxAttempts = int32(as.MaxAttempts)
	}
	if as.RunOnce {
		stamps.MaxAttempts = 1
	}
	return samePolicies(row, as) && row.Spec == as.Spec && row.Queue == as.Queue && bytes.Equal(row.Payload, as.Payload) && row.Stamps == stamps &&
		row.Priority == as.Priority && row.ExpiresMS == as.Expires.Milliseconds()
}

// paused checks a pause: nothing but that changes (S7).
func (t *truth) paused(s *trueSchedule, row *store.Schedule) {
	t.w.checked[aPause]++
	want := s.row
	want.Rev, want.Paused, want.DueAt = row.Rev, store.PausedByUser, store.None
	if !sameRow(row, &want) {
		t.w.fail(pauses, row.Name, "its pause left "+unlike(row, &want))
	}
}

// resumed checks a resume, and counts what it drops: the boundaries that came
// due meanwhile are skipped, all of them and no other (S7).
func (t *truth) resumed(s *trueSchedule, row *store.Schedule, skips []store.Skip, now store.Instant) {
	t.w.checked[aResume]++
	want := s.row
	want.Rev, want.Paused, want.Hold, want.Failures = row.Rev, store.Active, nil, 0
	var over fates
	from, to := t.w.read(now)
	decided := row.SetAt
	switch {
	case decided == s.row.SetAt:
		decided = from
	case decided < from || to < decided:
		t.w.fail(pauses, row.Name, "its resume was decided at "+text(decided))
	}
	if first := s.first(); !s.undecidable() && first <= decided {
		want.Cursor, want.SetAt = s.after(decided), decided
		over.skip(store.SkipPause, first, want.Cursor, s.interval)
		s.charged = max(s.charged, want.Cursor)
	}
	want.DueAt = want.Cursor
	if !sameRow(row, &want) {
		t.w.fail(pauses, row.Name, "its resume left "+unlike(row, &want))
	}
	missed := over.skipped()
	t.namesSkips(s, skips, over.skips[:])
	t.w.owes(tickonce.EventSkipped, now, s.index, missed)
	t.passedOver(s, over.skips[:])
	t.w.coverage.sometimes(skipped, missed > 0)
	t.w.coverage.sometimes(pauseSkipped, missed > 0)
}

// remove takes a schedule out of the model, and tells of it.
func (t *truth) remove(name string, e Event) {
	s := t.named[name]
	t.w.digest.Int(tagCommit, ^s.index)
	t.w.chargeUnfired(s, left)
	delete(t.byID, s.row.ID)
	t.keepPast(s)
	s.known, s.removed, s.row = false, true, store.Schedule{}
	t.w.tellOf(s, e)
}

// checkEdit checks that what an operation on a schedule answered to have done is
// done; as is what was registered.
func (t *truth) checkEdit(edit FaultKind, name string, as *Schedule) {
	s := t.named[name]
	done := true
	t.w.checked[anEdit]++
	switch edit {
	case FaultEditPause:
		done = !s.known || s.row.Paused != store.Active
	case FaultEditResume:
		done = !s.known || s.row.Paused == store.Active || s.row.Paused == store.PausedByRunOnce
	case FaultEditRemove:
		done = !s.known
	case FaultOverload:
	default:
		done = as == nil || s.known && asWanted(&s.row, as) && s.row.CatchUp == t.w.policyOf(as)
	}
	if !done {
		t.w.fail(asAsked, name, "an operation returned without an error, and is not done")
	}
}

// behind writes to the store behind the engine's back.
func (t *truth) behind(b *store.Batch) store.Committed {
	done, err := t.below.Commit(ctx, b)
	if err != nil || done.Refusal.Why != store.NotRefused {
		panic(fmt.Sprintf("sim: a row could not be overwritten: %+v, %v", done.Refusal, err))
	}
	return done
}

func (t *truth) guardOf(s *trueSchedule) store.Guard {
	return store.Guard{Name: s.scenario.Name, ID: s.row.ID, Rev: s.row.Rev}
}

// lose has the row of a schedule be gone behind the engine's back.
func (t *truth) lose(s *trueSchedule) {
	t.behind(&store.Batch{Removes: []store.Guard{t.guardOf(s)}})
	t.remove(s.scenario.Name, Event{Kind: EventTampered, Cause: t.w.causes.fault, Boundary: timeOf(s.row.Cursor)})
}

// overwrite changes the row of a schedule behind the engine's back.
func (t *truth) overwrite(s *trueSchedule, row store.Schedule) {
	done := t.behind(&store.Batch{Puts: []store.Put{{Guard: t.guardOf(s), Row: row}}})
	t.w.digest.Int(tagCommit, s.index)
	t.w.digest.Int(tagCommit, int64(row.Cursor))
	s.charged = min(s.charged, row.Cursor)
	t.keepPast(s)
	was := s.row.Cursor
	s.know(&done.Puts[0], t.byQueue[row.Queue])
	s.fate.begins(max(was, row.Cursor))
	s.tampered = true
	t.writtenByOthers(s)
	t.identify(s.row.ID, s)
	t.w.tellOf(s, Event{Kind: EventTampered, Cause: t.w.causes.fault, Boundary: timeOf(row.Cursor)})
}
