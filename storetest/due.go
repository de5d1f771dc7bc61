package storetest

import (
	"strings"

	"github.com/tickonce/tickonce/store"
)

var dueScenarios = []scenario{
	{name: "T1 due at its due-at, one millisecond earlier not", run: func(r *rig) {
		row := r.create(every("s", start))[0]
		r.at(start - 1)
		rows, due := r.due(make([]store.Schedule, 2))
		same(r, "rows", len(rows), 0)
		same(r, "due", due, store.Due{Now: start - 1, Next: start})
		for _, now := range []store.Instant{start, start + 1} {
			r.at(now)
			rows, due = r.due(make([]store.Schedule, 2))
			same(r, "rows", rows, []store.Schedule{row})
			same(r, "due", due, store.Due{N: 1, Now: now, Next: store.None})
		}
	}},
	{name: "T1 the due-at counts, not the cursor", run: func(r *rig) {
		held, paused := every("held", start), every("paused", start)
		held.DueAt, held.Hold = start+60_000, &store.Hold{Reason: "x", Since: start, Times: 1}
		paused.DueAt, paused.Paused = store.None, store.PausedByUser
		early := every("early", start+5000)
		early.DueAt = start
		r.create(held, paused, early)
		rows, due := r.due(make([]store.Schedule, 4))
		same(r, "rows", namesOf(rows), []string{"early"})
		same(r, "next", due.Next, start+60_000)
		r.at(store.MaxInstant)
		rows, due = r.due(make([]store.Schedule, 4))
		same(r, "rows at the end of time", namesOf(rows), []string{"early", "held"})
		same(r, "next at the end of time", due.Next, store.None)
	}},
	{name: "T10 in due-at order, names break ties", run: func(r *rig) {
		r.create(every("b", start), every("d", start-1), every("a", start), every("c", start-2), every("é", start), every("Z", start))
		rows, _ := r.due(make([]store.Schedule, 9))
		same(r, "rows", namesOf(rows), []string{"c", "d", "Z", "a", "b", "é"})
	}},
	{name: "T13 next is the least due-at of the rows not answered", run: func(r *rig) {
		r.create(every("a", start-3), every("b", start-1), every("c", start), every("d", start+7), every("e", start+5))
		for n, next := range []store.Instant{start - 3, start - 1, start, start + 5, start + 5} {
			rows, due := r.due(make([]store.Schedule, n))
			same(r, "rows", strings.Join(namesOf(rows), ""), "abc"[:min(n, 3)])
			same(r, "next", due.Next, next)
		}
	}},
	{name: "T8 reading changes nothing", run: func(r *rig) {
		r.create(every("a", start), every("b", start+1))
		before := r.rows()
		first, due := r.due(make([]store.Schedule, 2))
		second, again := r.due(make([]store.Schedule, 2))
		same(r, "rows", second, first)
		same(r, "due", again, due)
		same(r, "rows", r.rows(), before)
	}},
	{name: "K1 not due any more after the clock stepped back", run: func(r *rig) {
		r.create(every("s", start))
		r.due(make([]store.Schedule, 1))
		r.at(start - 1)
		rows, due := r.due(make([]store.Schedule, 1))
		same(r, "rows", len(rows), 0)
		same(r, "next", due.Next, start)
	}},
	{name: "T13 every write moves a row in the order", run: func(r *rig) {
		lease := r.acquire("l", "a", 1000).Lease
		rows := r.create(every("a", start), every("b", start+10), every("c", start+20))
		next := func(want store.Instant) {
			r.Helper()
			_, due := r.due(nil)
			same(r, "next", due.Next, want)
		}
		next(start)
		r.advance(store.Tick{By: lease, Now: start, Moves: []store.Move{move(rows[0], 0)}})
		next(start + 10)
		rows[1].DueAt = store.None
		rows[1] = r.write(store.Batch{Puts: []store.Put{{Guard: guard(rows[1]), Row: rows[1]}}}).Puts[0]
		next(start + 20)
		r.write(store.Batch{Removes: []store.Guard{guard(rows[2])}})
		next(start + 1000)
		rows[1].DueAt = start - 5
		r.write(store.Batch{Puts: []store.Put{{Guard: guard(rows[1]), Row: rows[1]}}})
		next(start - 5)
	}},
}
