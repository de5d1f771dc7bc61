package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tickonce/tickonce/store"
)

// heldMS is how long a quarantined row is left alone (Q3).
const heldMS = 60_000

// bound is how late something may be once it is quiet (invariant 13): two
// slices, the lease's TTL, and 5 s.
func (w *world) bound() int64 {
	return 2*sliceMS + w.leaseMS() + errorBackoffMS
}

// leaseMS is how long the scheduler's lease lasts without a renewal.
func (w *world) leaseMS() int64 { return cmp.Or(w.scenario.Engine.Lease.Milliseconds(), 60_000) }

// calm is from when on nothing is left of the faults: the one that is to lead
// does, and has looked at whatever they delayed.
func (w *world) calm() store.Instant { return w.quiet.Add(w.bound() + heldMS) }

// late is by how much longer than allowed something is due, 0 if it is not:
// since the clock showed that instant, or since the true time from which
// somebody could attend to it. What the faults delayed counts from their end;
// once it is calm nothing is late, for whoever sleeps wakes at the instant (L7).
func (w *world) late(due, from store.Instant, allowed int64) int64 {
	since := max(w.whenShown(due), from, w.quiet)
	if since > w.calm() {
		allowed = 0
	}
	return max(int64(w.now-since)-allowed, 0)
}

func (w *world) failLate(schedule, what string, late int64) {
	if late > 0 {
		w.fail(liveness, schedule, fmt.Sprintf("%s is late by %s more than allowed, with no fault to blame", what,
			time.Duration(late)*time.Millisecond))
	}
}

// passes checks that the boundaries of a row are attended to in time: as a move
// passes them, and those that are due at the end.
func (w *world) passes(s *trueSchedule) {
	allowed := w.bound()
	if s.row.Hold != nil {
		allowed += heldMS
	}
	if late := w.late(s.row.DueAt, w.start, allowed); late > 0 {
		w.failLate(s.row.Name, "the boundary of "+text(s.row.Cursor), late)
	}
}

// judgeLiveness checks at the end that nothing is left that has been due for
// too long.
func (w *world) judgeLiveness() {
	if w.end < w.quiet.Add(w.bound()) {
		return
	}
	leaderless := !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.runner != nil })
	for i := range w.truth.schedules {
		s := &w.truth.schedules[i]
		w.checked[aScheduleLeft]++
		switch {
		case s.removed:
		case !s.known:
			w.failLate(s.scenario.Name, "its registration", w.late(store.MinInstant, w.quiet, w.bound()))
		case w.leftAhead(s) == "" && s.row.DueAt > w.shown():
		case leaderless && !w.scenario.Engine.StandBy:
			w.excuse(noRunner, noRunner)
		case w.leftAhead(s) != "":
			w.fail(liveness, s.row.Name, w.leftAhead(s)+" by a clock that was ahead")
		default:
			w.passes(s)
		}
	}
	for _, q := range w.truth.queues {
		w.judgeQueue(q)
	}
}

// leftAhead says what of the row a clock that was ahead has set and nobody has
// repaired: the end of a hold (Q3) or, where that is asked for, the cursor
// (T11).
func (w *world) leftAhead(s *trueSchedule) string {
	held := s.row.Hold != nil && s.row.Paused == store.Active && s.row.DueAt != store.None
	ahead := int64(s.row.Cursor-w.shown()) > 2*s.interval && s.row.Cursor != anchorOf(s.scenario) && !s.tampered
	switch {
	case w.truth.unseen(s):
		return ""
	case held && s.row.DueAt > w.shown().Add(heldMS+slackMS):
		return "it is held until " + text(s.row.DueAt)
	case ahead && w.scenario.Engine.ClockRepair == RepairRearm:
		return "its cursor was left at " + text(s.row.Cursor)
	default:
		return ""
	}
}

// anchorOf is where the schedule is anchored by its scenario.
func anchorOf(s *Schedule) store.Instant {
	if s.Anchor.IsZero() {
		return store.None
	}
	return store.Instant(s.Anchor.UnixMilli())
}

// judgeQueue checks that no job waits beside a worker that sleeps.
func (w *world) judgeQueue(q *trueQueue) {
	for _, worker := range q.workers {
		if worker.state != sleeps && (worker.engine == nil || worker.stepping || worker.stopping || len(worker.attempts) == q.concurrency) {
			continue
		}
		w.truth.eachJob(q, func(row *store.Job) {
			if job := w.truth.jobs[row.ID]; job != nil && job.readyAt() <= w.shown() && !job.waits() {
				w.failLate(row.Schedule, jobOf(row.FireAt), w.late(job.readyAt(), max(worker.idle, job.freedAt()), w.bound())-worker.attends())
			}
		})
		return
	}
}

func jobOf(boundary store.Instant) string {
	if timeOf(boundary).IsZero() {
		return "a job of no schedule"
	}
	return "the job of " + text(boundary)
}

// text is an instant for people; "none" if there is none.
func text(t store.Instant) string {
	if t == store.None {
		return "none"
	}
	return timeOf(t).Format("2006-01-02 15:04:05.999")
}
