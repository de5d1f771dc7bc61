package sim

import (
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
	ttl := w.scenario.Engine.Lease.Milliseconds()
	if ttl == 0 {
		ttl = 60_000
	}
	return 2*sliceMS + ttl + errorBackoffMS
}

// late checks that what is due since the clock showed that instant, or since
// the true time from which somebody could attend to it, is not late.
func (w *world) late(schedule, what string, due, from store.Instant, allowed int64) {
	since := max(w.whenShown(due), from, w.quiet)
	if late := int64(w.now - since); late > allowed {
		w.fail(liveness, schedule, fmt.Sprintf("%s is late by %s after the faults, allowed are %s",
			what, span(late), span(allowed)))
	}
}

// passes checks that the boundaries of a row are attended to in time: as a move
// passes them, and those that are due at the end.
func (w *world) passes(s *trueSchedule) {
	allowed := w.bound()
	if s.row.Hold != nil {
		allowed += heldMS
	}
	w.late(s.row.Name, "the boundary of "+text(s.row.Cursor), s.row.DueAt, w.start, allowed)
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
		switch {
		case !s.known:
			w.late(s.scenario.Name, "its registration", store.MinInstant, w.quiet, w.bound())
		case s.row.DueAt > w.shown():
		case leaderless:
			w.excuse("boundaries were left because no runner runs any more")
		default:
			w.passes(s)
		}
	}
	for _, q := range w.truth.queues {
		w.judgeQueue(q)
	}
}

// judgeQueue checks that no job waits beside a worker that sleeps.
func (w *world) judgeQueue(q *trueQueue) {
	for _, worker := range q.workers {
		if worker.state != sleeps {
			continue
		}
		w.truth.eachJob(q, func(row *store.Job) {
			if job := w.truth.jobs[row.ID]; job != nil && job.readyAt() <= w.shown() {
				w.late(row.Schedule, jobOf(row.FireAt), job.readyAt(), worker.idle, w.bound())
			}
		})
		return
	}
}

func jobOf(boundary store.Instant) string { return "the job of " + text(boundary) }

// text is an instant for people, span a duration.
func text(t store.Instant) string { return timeOf(t).Format("2006-01-02 15:04:05.999") }
func span(ms int64) string        { return (time.Duration(ms) * time.Millisecond).String() }
