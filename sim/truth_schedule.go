package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tickonce/tickonce/store"
)

// trueSchedule is the model of one schedule, and what is counted of it.
type trueSchedule struct {
	scenario *Schedule
	index    int64
	queue    *trueQueue

	known    bool // the store has it
	removed  bool // by an edit
	row      store.Schedule
	interval int64         // of the row's spec, or of the last one that parsed
	next     store.Instant // nothing before may fire
	tampered bool          // since this incarnation began
	others   store.Rev     // the latest that another than a runner wrote
	begun    int64         // inspections by then
	lostBy   *faultState   // the fault that has made its row disappear, if nobody wrote it since
	moving   bool          // a move of the tick under way has written it
	fullAt   store.Rev     // the revision at which its queue had no room
	tick     fates         // of the tick under way
	since    int64         // the event that changed it or kept it, since it fired last

	live    store.Live    // its jobs, of all incarnations and in all queues, but for deliveries (X9)
	waiting []store.JobID // those that wait for the claimed one to end, and some that do not any more
	freedAt store.Instant // when that last happened, in true time
	starts  int64         // of jobs of this incarnation, since the store opened
	fate    fateOfGrid    // of this incarnation

	fired, quarantined  int64
	skips               [store.SkipBefore + 1]int64 // by reason
	firstFire, lastFire store.Instant
	firedAt             store.Instant // the last one, in true time
	maxLateMS           int64

	charged                   store.Instant // the boundaries before
	have                      boundaries    // that have fired
	undoneBy                  *Cost         // of the fault after which they may fire again
	rearmed                   bool          // it is a repair that allows it, not a restart
	firedAgain, firedByRepair int64
	left, forgotten           int64

	crashed   bool   // its handler in Go has, in this run
	lastError string // of that handler
}

// know takes in a row and its queue, nil if that is none of the scenario's.
func (s *trueSchedule) know(row *store.Schedule, q *trueQueue) {
	if q != nil {
		s.queue = q
	}
	interval := intervalOf(row.Spec)
	if interval == 0 {
		interval = s.interval
	}
	if interval != s.interval || int64(row.Anchor-s.row.Anchor)%interval != 0 {
		s.have = nil
	}
	if row.ID != s.row.ID {
		s.fullAt, s.tampered, s.starts = 0, false, 0
		s.fate.begins(row.Cursor)
	}
	s.lostBy = nil
	s.known, s.removed, s.interval, s.next, s.row = true, false, interval, row.Cursor, *row
}

// writtenByOthers notes that another than a runner wrote the row as it is.
func (t *truth) writtenByOthers(s *trueSchedule) { s.others, s.begun = s.row.Rev, t.inspections }

// unseen reports whether no runner could know what a clock that was ahead set in
// the row: another wrote it, and none has inspected the schedules since (T11).
func (t *truth) unseen(s *trueSchedule) bool {
	return s.row.Rev == s.others && s.begun == t.inspections
}

// undecidable reports whether the row has to be held as it is (Q1, Q6).
func (s *trueSchedule) undecidable() bool {
	most := s.row.CatchUp.Max
	return intervalOf(s.row.Spec) == 0 || strings.HasPrefix(s.row.Queue, reservedPrefix) || most < 1 || most > catchUpCap
}

// reservedPrefix begins the names that belong to the engine (N2).
const reservedPrefix = "__alkstore_"

// onGrid reports whether the instant is a boundary.
func (s *trueSchedule) onGrid(t store.Instant) bool { return onGrid(&s.row, t) }

func onGrid(row *store.Schedule, t store.Instant) bool {
	interval := intervalOf(row.Spec)
	return interval != 0 && t >= row.Anchor && int64(t-row.Anchor)%interval == 0
}

// after is the first boundary after the instant.
func (s *trueSchedule) after(t store.Instant) store.Instant {
	return after(s.row.Anchor, s.interval, t)
}

func after(anchor store.Instant, intervalMS int64, t store.Instant) store.Instant {
	if t < anchor {
		return anchor
	}
	every := store.Instant(intervalMS)
	return t - (t-anchor)%every + every
}

// boundaryAfter is the row's first boundary after the instant; the row's spec
// parses.
func boundaryAfter(row *store.Schedule, t store.Instant) store.Instant {
	return after(row.Anchor, intervalOf(row.Spec), t)
}

// first is the boundary that the cursor stands for: a row that was tampered
// with may have it between two (Q5).
func (s *trueSchedule) first() store.Instant { return s.after(s.row.Cursor - 1) }

// nextAfter is where the cursor has to be after a tick at now (T6).
func (s *trueSchedule) nextAfter(now store.Instant) store.Instant {
	if first := s.first(); first > now {
		return first
	}
	return s.after(now)
}

// policyOf is the catch-up policy of the schedule in numbers (T14).
func (w *world) policyOf(s *Schedule) store.CatchUp {
	most, window := int32(min(catchUpCap, w.queueLimit())), s.window(w.scenario).Milliseconds()
	switch s.CatchUp {
	case CatchUpLatest:
		return store.CatchUp{Max: 1, Newest: true}
	case CatchUpGrace:
		return store.CatchUp{WindowMS: window, Max: most}
	case CatchUpNone:
		return store.CatchUp{WindowMS: window, Max: 1, Newest: true}
	default:
		return store.CatchUp{Max: most}
	}
}

// window is how late a boundary may fire by the schedule's policy; 0: however
// late.
func (s *Schedule) window(of *Scenario) time.Duration {
	switch s.CatchUp {
	case CatchUpGrace:
		half := time.Duration(intervalOf(s.Spec)/2) * time.Millisecond
		return min(max(half, 2*time.Minute), 2*time.Hour)
	case CatchUpNone:
		return cmp.Or(of.Engine.OnTime, 10*time.Second)
	default:
		return 0
	}
}

// queueLimit is how many jobs a queue keeps at most.
func (w *world) queueLimit() int64 {
	if limit := w.scenario.Engine.QueueLimit; limit > 0 {
		return int64(limit)
	}
	return 1_000_000
}

func (s *trueSchedule) countFire(boundary store.Instant, lateMS int64) {
	if s.fired++; s.fired == 1 {
		s.firstFire = boundary
	}
	s.lastFire = boundary
	s.maxLateMS = max(s.maxLateMS, lateMS)
}

func (s *trueSchedule) result() ScheduleResult {
	skips := int64(0)
	for _, n := range s.skips {
		skips += n
	}
	r := ScheduleResult{
		Name: s.scenario.Name, Spec: s.scenario.Spec, Queue: s.scenario.Queue,
		Boundaries: s.fired + skips, Fired: s.fired, Skipped: skips,
		SkipReasons: map[string]int64{}, Quarantined: s.quarantined, FiredAgain: s.firedAgain, FiredByRepair: s.firedByRepair,
		Left: s.left, Forgotten: s.forgotten,
		MaxLate: time.Duration(s.maxLateMS) * time.Millisecond, LastError: s.lastError,
	}
	if s.fired > 0 {
		r.FirstFire, r.LastFire = timeOf(s.firstFire), timeOf(s.lastFire)
	}
	for reason, n := range s.skips {
		if n > 0 {
			r.SkipReasons[store.SkipReason(reason).String()] = n
		}
	}
	return r
}

// isTrue reports whether the row is the one of the model.
func (t *truth) isTrue(row *store.Schedule) bool {
	s := t.byID[row.ID]
	return s != nil && sameRow(row, &s.row) && row.Live == s.live
}

func sameRow(a, b *store.Schedule) bool {
	sameHold := a.Hold == b.Hold || a.Hold != nil && b.Hold != nil && *a.Hold == *b.Hold
	return a.ID == b.ID && a.Rev == b.Rev && a.Name == b.Name && a.Spec == b.Spec && a.Queue == b.Queue &&
		bytes.Equal(a.Payload, b.Payload) && a.Stamps == b.Stamps && a.ExpiresMS == b.ExpiresMS && a.CatchUp == b.CatchUp &&
		a.Anchor == b.Anchor && a.Cursor == b.Cursor && a.DueAt == b.DueAt && a.SetAt == b.SetAt &&
		a.Priority == b.Priority && a.Paused == b.Paused && a.Overlap == b.Overlap && a.RunOnce == b.RunOnce &&
		a.AtAnchor == b.AtAnchor && a.Breaker == b.Breaker && a.Failures == b.Failures && rare(a.Rare) == rare(b.Rare) && sameHold
}

// unlike says in which fields a row is not the one that it should be.
func unlike(row, want *store.Schedule) string {
	var f mismatches
	f.note("id", row.ID, want.ID)
	f.note("rev", row.Rev, want.Rev)
	f.note("spec", row.Spec, want.Spec)
	f.note("queue", row.Queue, want.Queue)
	f.note("payload", shown(string(row.Payload)), shown(string(want.Payload)))
	f.note("visibility in ms", row.Stamps.VisibilityMS, want.Stamps.VisibilityMS)
	f.note("backoff in ms", row.Stamps.BaseBackoffMS, want.Stamps.BaseBackoffMS)
	f.note("attempts", row.Stamps.MaxAttempts, want.Stamps.MaxAttempts)
	f.note("expires in ms", row.ExpiresMS, want.ExpiresMS)
	f.note("catch-up at most", row.CatchUp.Max, want.CatchUp.Max)
	f.note("catch-up window in ms", row.CatchUp.WindowMS, want.CatchUp.WindowMS)
	f.note("catch-up of the newest", row.CatchUp.Newest, want.CatchUp.Newest)
	f.note("anchor", text(row.Anchor), text(want.Anchor))
	f.note("cursor", text(row.Cursor), text(want.Cursor))
	f.note("due-at", text(row.DueAt), text(want.DueAt))
	f.note("set-at", text(row.SetAt), text(want.SetAt))
	f.note("priority", row.Priority, want.Priority)
	f.note("paused", pauseWords[row.Paused], pauseWords[want.Paused])
	f.note("overlap", row.Overlap, want.Overlap)
	f.note("run-once", row.RunOnce, want.RunOnce)
	f.note("begins at its anchor", row.AtAnchor, want.AtAnchor)
	f.note("breaker", row.Breaker, want.Breaker)
	f.note("failures in a row", row.Failures, want.Failures)
	f.note("hours", rare(row.Rare).Hours, rare(want.Rare).Hours)
	f.note("timeout in ms", rare(row.Rare).TimeoutMS, rare(want.Rare).TimeoutMS)
	has, wants := held(row.Hold), held(want.Hold)
	f.note("held", row.Hold != nil, want.Hold != nil)
	f.note("reason of the hold", shown(has.Reason), shown(wants.Reason))
	f.note("held since", text(has.Since), text(wants.Since))
	f.note("times held", has.Times, wants.Times)
	return f.String()
}

// pauseWords and outcomeWords are what failures say.
var (
	pauseWords   = [...]string{store.Active: "no", store.PausedByUser: "by the user", store.PausedByBreaker: "by the breaker", store.PausedByRunOnce: "by run-once"}
	outcomeWords = [...]string{store.Stale: "stale", store.Moved: "moved", store.Full: "full"}
)

// mismatches say in words in which fields something is not what it should be.
type mismatches []string

// note adds a field if it is not as it should be.
func (f *mismatches) note(field string, has, wants any) {
	if has == wants {
		return
	}
	if b, ok := has.(bool); ok {
		has, wants = yesNo(b), yesNo(!b)
	}
	*f = append(*f, fmt.Sprintf("%s %v, not %v", field, has, wants))
}

func (f mismatches) String() string { return strings.Join(f, "; ") }

func yesNo(b bool) string { return pick(b, "yes", "no") }

// held is the hold, empty if there is none.
func held(h *store.Hold) store.Hold {
	if h == nil {
		return store.Hold{}
	}
	return *h
}

// rare is what few rows have, empty where this one has none of it.
func rare(r *store.Rare) store.Rare {
	if r == nil {
		return store.Rare{}
	}
	return *r
}

// eachSchedule reads all schedules of the store in name order.
func (t *truth) eachSchedule(f func(*store.Schedule)) {
	page := t.schedulePage[:]
	for from, n := "", len(page); n == len(page); from = page[n-1].Name + "\x00" {
		var err error
		if n, _, err = t.Store.Schedules(ctx, from, page); err != nil {
			panic(err)
		}
		if n == 0 {
			return
		}
		for i := range page[:n] {
			f(&page[i])
		}
	}
}
