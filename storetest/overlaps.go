package storetest

import "github.com/tickonce/tickonce/store"

// from is a job of the schedule's name, ready at once, that has to be alone.
func from(name string) store.Insert {
	in := plain()
	in.From = &store.Source{Schedule: name, FireAt: start, Alone: true}
	return in
}

// beside is from for a job that need not be alone.
func beside(name string) store.Insert {
	in := from(name)
	in.From.Alone = false
	return in
}

// waits checks what the queue "q" says of its jobs that wait.
func (r *rig) waits(what string, waiting int64, next store.Instant) {
	r.Helper()
	q := r.queue()
	same(r, what+": waiting", q.Waiting, waiting)
	same(r, what+": the next claim", q.NextClaimAt, next)
}

// clear removes all schedules, and the jobs that are not dead.
func (r *rig) clear() {
	r.Helper()
	var b store.Batch
	all := r.rows()
	for _, row := range all.Schedules {
		b.Removes = append(b.Removes, guard(row))
	}
	for _, j := range all.Jobs {
		if j.State != store.Dead {
			b.Cancels = append(b.Cancels, ref(j))
		}
	}
	r.write(b)
}

var overlapScenarios = []scenario{
	{name: "X9 S6 a row counts the live jobs of its name, through all incarnations and queues", run: func(r *rig) {
		lease := r.lead()
		live := func(what string, pending, claimed int32) store.Schedule {
			r.Helper()
			row := r.schedule("s")
			same(r, what, row.Live, store.Live{Pending: pending, Claimed: claimed})
			due, _ := r.due(make([]store.Schedule, 1))
			same(r, what+": by due", due, []store.Schedule{row})
			return row
		}
		long := every("s", start)
		long.Stamps.VisibilityMS = 10_000
		r.create(long)
		row := live("none", 0, 0)
		r.tick(lease, []store.Move{move(row, 2)}, store.Fire{Boundary: start}, store.Fire{Boundary: start + 1})
		r.at(start + 1000)
		row = live("fired", 2, 0)
		first := r.claimOne()
		row.Live = store.Live{Pending: 7}
		row.Queue = "other"
		put := r.write(store.Batch{Puts: []store.Put{{Guard: guard(row), Row: row}}}).Puts[0]
		same(r, "a put does not read it, and answers it", put.Live, store.Live{Pending: 1, Claimed: 1})
		live("changed", 1, 1)

		put.ID = 0
		anew := r.write(store.Batch{Puts: []store.Put{{Guard: guard(live("to be", 1, 1)), Row: put}}}).Puts[0]
		same(r, "a new incarnation", anew.Live, store.Live{Pending: 1, Claimed: 1})
		r.tick(lease, []store.Move{move(live("anew", 1, 1), 1)}, store.Fire{Boundary: start})
		r.at(start + 2000)
		live("fired into the other queue", 2, 1)
		r.write(store.Batch{Removes: []store.Guard{guard(r.schedule("s"))}})
		r.settle(settleTo(store.Pending, first))
		again := r.create(every("s", r.now()))[0]
		same(r, "a row removed and created", again.Live, store.Live{Pending: 3})
		delivery := from("s")
		delivery.From.Origin = first.ID
		r.insert(delivery, from("other"), from("s"))
		live("a delivery does not count, nor another name, one fired by hand does", 4, 0)
		second := r.claimOne()
		same(r, "of the schedule", second.Schedule, "s")
		r.settle(settleTo(store.Dead, second))
		live("dead", 3, 0)
		requeued := r.write(store.Batch{Requeues: []store.JobRef{ref(second)}}).Requeues[0]
		live("requeued", 4, 0)
		third := r.claimOne()
		live("claimed", 3, 1)
		r.settle(settleTo(store.Done, third))
		live("done", 3, 0)
		r.write(store.Batch{Cancels: []store.JobRef{{Queue: "q", Job: requeued}}})
		live("cancelled", 2, 0)
	}},
	{name: "X9 a batch answers the count as it leaves it", run: func(r *rig) {
		put := store.Put{Guard: store.Guard{Name: "s"}, Row: every("s", start)}
		done := r.write(store.Batch{Puts: []store.Put{put}, Inserts: []store.Insert{from("s"), beside("s")}})
		same(r, "live", done.Puts[0].Live, store.Live{Pending: 2})
		job := r.claimOne()
		row := r.schedule("s")
		done = r.write(store.Batch{
			Puts: []store.Put{{Guard: guard(row), Row: row}}, Settles: []store.Settle{settleTo(store.Done, job)}, Inserts: []store.Insert{from("s")},
		})
		same(r, "live", done.Puts[0].Live, store.Live{Pending: 2})
		r.refused(store.Batch{Removes: []store.Guard{guard(row)}, Inserts: []store.Insert{from("s")}}, store.Conflict, store.Removes, 0)
		same(r, "a refused batch counts nothing", r.schedule("s").Live, store.Live{Pending: 2})
	}},
	{name: "X9 T3 a move of a row that minds is stale once its live jobs are others", run: func(r *rig) {
		lease := r.lead()
		for _, change := range []struct {
			what string
			make func()
			same bool // as many are live as before
		}{
			{"inserted", func() { r.insert(from("s")) }, false},
			{"claimed", func() { r.claimOne() }, false},
			{"inserted and claimed", func() { r.insert(from("s")); r.claimOne() }, false},
			{"done", func() { r.settle(settleTo(store.Done, r.claimOne())) }, false},
			{"dead", func() { r.settle(settleTo(store.Dead, r.claimOne())) }, false},
			{"retried", func() { r.settle(settleTo(store.Pending, r.claimOne())) }, true},
			{"another name's", func() { r.insert(from("t")) }, true},
		} {
			for _, overlap := range []store.Overlap{store.Allow, store.SkipLive, store.BufferOne} {
				r.insert(from("s"))
				row := every("s", start)
				row.Overlap = overlap
				row = r.create(row)[0]
				change.make()
				before := r.rows()
				tick := r.tick(lease, []store.Move{move(row, 1)}, store.Fire{Boundary: start})
				if overlap == store.Allow || change.same {
					same(r, change.what, outcomes(tick), []store.Outcome{store.Moved})
				} else {
					same(r, change.what, outcomes(tick), []store.Outcome{store.Stale})
					same(r, change.what+": job", tick.Fires[0].Job, 0)
					same(r, change.what+": rows", r.rows(), before)
				}
				r.clear()
			}
		}
	}},
	{name: "X9 S4 the fired job of a row that minds is alone, and stays so", run: func(r *rig) {
		lease := r.lead()
		for _, overlap := range []store.Overlap{store.Allow, store.SkipLive, store.BufferOne} {
			row := every("s", start)
			row.Overlap = overlap
			row = r.create(row)[0]
			tick := r.tick(lease, []store.Move{move(row, 1)}, store.Fire{Boundary: start})
			same(r, "outcome", outcomes(tick), []store.Outcome{store.Moved})
			row = r.schedule("s")
			row.Overlap = store.Allow
			r.write(store.Batch{Puts: []store.Put{{Guard: guard(row), Row: row}}})
			same(r, "alone", r.job(tick.Fires[0].Job).Alone, overlap != store.Allow)
			r.settle(settleTo(store.Dead, r.claimOne()))
			again := r.write(store.Batch{Requeues: []store.JobRef{{Queue: "q", Job: tick.Fires[0].Job}}}).Requeues[0]
			same(r, "requeued", r.job(again).Alone, overlap != store.Allow)
			r.clear()
		}
	}},
	{name: "X9 one alone at a time, by one claim or several, from any queue", run: func(r *rig) {
		elsewhere := from("s")
		elsewhere.Queue = "other"
		ids := r.insert(from("s"), from("s"), from("t"), plain(), elsewhere)
		jobs := r.claim(9)
		same(r, "one of each name", idsOf(jobs), []store.JobID{ids[0], ids[2], ids[3]})
		same(r, "no more", len(r.claim(9)), 0)
		other, c := r.claimAll("other", "w", make([]store.Job, 9))
		same(r, "nor from another queue", len(other), 0)
		same(r, "the answer", c, store.Claim{Now: r.now()})
		r.settle(settleTo(store.Done, jobs[0]))
		other, _ = r.claimAll("other", "w", make([]store.Job, 9))
		same(r, "whoever comes first", idsOf(other), ids[4:])
		same(r, "then not the other", len(r.claim(9)), 0)
	}},
	{name: "X9 QU1 the first in the order of claims has the next turn", run: func(r *rig) {
		late, urgent := from("s"), from("s")
		late.DelayMS, urgent.DelayMS, urgent.Priority = 10, 20, 5
		ids := r.insert(late, from("s"), urgent, from("s"))
		var order []store.JobID
		r.at(start + 20)
		for range ids {
			j := r.claimOne()
			order = append(order, j.ID)
			r.settle(settleTo(store.Done, j))
		}
		same(r, "order", order, []store.JobID{ids[2], ids[1], ids[3], ids[0]})
	}},
	{name: "X9 whatever ends a claim lets the next one have its turn, in whatever queue", run: func(r *rig) {
		for _, end := range []struct {
			what string
			make func(j store.Job)
		}{
			{"done", func(j store.Job) { r.settle(settleTo(store.Done, j)) }},
			{"failed", func(j store.Job) { r.settle(settleTo(store.Dead, j)) }},
			{"retried later", func(j store.Job) {
				r.settle(store.Settle{Job: j.ID, Attempt: j.Attempts, To: store.Pending, DelayMS: 1000})
			}},
			{"in a batch", func(j store.Job) { r.write(store.Batch{Settles: []store.Settle{settleTo(store.Done, j)}}) }},
			{"cancelled", func(j store.Job) { r.write(store.Batch{Cancels: []store.JobRef{ref(j)}}) }},
			{"buried", func(j store.Job) {
				r.at(j.Deadline + 1)
				_, c := r.claimAll("q", "w", nil)
				same(r, "buried", c.Buried, 1)
			}},
		} {
			once, elsewhere := from("s"), from("s")
			once.Stamps.MaxAttempts, elsewhere.Queue = 1, "other"
			r.insert(once)
			first := r.claimOne()
			id := r.insert(elsewhere)[0]
			waiting, _ := r.claimAll("other", "w", make([]store.Job, 1))
			same(r, end.what+": before", len(waiting), 0)
			end.make(first)
			jobs, _ := r.claimAll("other", "w", make([]store.Job, 1))
			same(r, end.what, idsOf(jobs), []store.JobID{id})
			r.clear()
		}
	}},
	{name: "X9 one claim buries the job that was in the way, and hands out the next", run: func(r *rig) {
		once := from("s")
		once.Stamps.MaxAttempts = 1
		ids := r.insert(once, from("s"))
		r.claimOne()
		r.at(start + 101)
		jobs, c := r.claimAll("q", "w", make([]store.Job, 2))
		same(r, "answer", c, store.Claim{N: 1, Buried: 1, Now: r.now()})
		same(r, "the next", idsOf(jobs), ids[1:])
	}},
	{name: "X9 C68 a job that is put off, or whose claim has lapsed, is still in the way or still waits", run: func(r *rig) {
		ids := r.insert(from("s"), from("s"))
		first := r.claimOne()
		r.at(start + 101)
		r.waits("a lapsed claim", 1, start+101)
		same(r, "it alone is handed out again", idsOf(r.claim(2)), ids[:1])
		first = r.job(first.ID)
		r.settle(store.Settle{Job: first.ID, Attempt: first.Attempts, To: store.Pending, DelayMS: 50})
		second := r.claim(2)
		same(r, "while the first is put off", idsOf(second), ids[1:])
		r.at(start + 160)
		r.waits("the first is ready, and waits", 1, start+202)
		same(r, "not beside the second", len(r.claim(2)), 0)
		r.settle(settleTo(store.Done, second[0]))
		same(r, "after it", idsOf(r.claim(2)), ids[:1])
	}},
	{name: "X9 S4 a job that need not be alone goes beside one that is, which then waits for it", run: func(r *rig) {
		ids := r.insert(from("s"), beside("s"), beside("s"), from("s"))
		same(r, "at once", idsOf(r.claim(9)), ids[:3])
		second, third := r.job(ids[1]), r.job(ids[2])
		r.settle(settleTo(store.Done, r.job(ids[0])))
		same(r, "alone among them: none", len(r.claim(9)), 0)
		r.settle(settleTo(store.Done, second))
		same(r, "one is left", len(r.claim(9)), 0)
		r.settle(settleTo(store.Done, third))
		alone := r.claimOne()
		same(r, "alone", alone.ID, ids[3])

		beside := r.insert(beside("s"))
		same(r, "beside", idsOf(r.claim(9)), beside)
		r.at(start + 50)
		same(r, "renewed", r.extend(extendBy(1000, r.job(beside[0]))), []store.Instant{start + 1050})
		r.at(start + 101)
		r.waits("the lapsed one waits for the other, too", 1, start+1051)
		same(r, "none", len(r.claim(9)), 0)
		r.settle(settleTo(store.Done, r.job(beside[0])))
		r.waits("alone again", 0, start+101)
		same(r, "then", idsOf(r.claim(9)), []store.JobID{alone.ID})
	}},
	{name: "X9 a delivery neither counts nor is in the way", run: func(r *rig) {
		delivery := beside("s")
		delivery.From.Origin = 77
		ids := r.insert(delivery, from("s"))
		same(r, "both", idsOf(r.claim(9)), ids)
		alone := from("s")
		alone.From.Origin = 77
		waiting := r.insert(alone)
		same(r, "one that is to be alone waits for the job", len(r.claim(9)), 0)
		r.settle(settleTo(store.Done, r.job(ids[1])))
		same(r, "and not for a delivery", idsOf(r.claim(9)), waiting)
	}},
	{name: "X9 QU10 the next claim leaves out those that wait, but not their burial", run: func(r *rig) {
		late, mortal := from("s"), from("s")
		late.DelayMS, mortal.ExpiresMS = 30, 70
		r.insert(from("s"))
		r.insert(late, mortal, mortal)
		r.waits("none is claimed", 0, start)
		first := r.claimOne()
		r.waits("the expiry", 3, start+70)
		r.settle(store.Settle{Job: first.ID, Attempt: first.Attempts, To: store.Pending, DelayMS: 500})
		r.waits("free", 0, start)
		second := r.claimOne()
		r.waits("the other expiry", 3, start+70)
		r.at(start + 70)
		_, c := r.claimAll("q", "w", make([]store.Job, 9))
		same(r, "buried while it waited", c, store.Claim{Buried: 1, Now: r.now()})
		r.waits("the claim's lapse", 2, start+101)
		r.settle(settleTo(store.Done, second))
		r.waits("the one that was put off", 0, start+30)
	}},
	{name: "X9 QU9 a job that expires before its turn may not have it", run: func(r *rig) {
		mortal := from("s")
		mortal.ExpiresMS = 50
		ids := r.insert(from("s"), mortal, from("s"))
		first := r.claimOne()
		r.at(start + 60)
		r.settle(settleTo(store.Done, first))
		same(r, "the third", idsOf(r.claim(1)), ids[2:])
		same(r, "buried", r.job(ids[1]).LastError, store.ErrorExpired)
	}},
	{name: "X9 K4 a step back takes ready jobs back that wait", run: func(r *rig) {
		urgent := from("s")
		urgent.DelayMS, urgent.Priority = 40, 5
		ids := r.insert(from("s"), urgent, from("s"))
		first := r.claimOne()
		r.at(start + 40)
		same(r, "two are ready, and wait", len(r.claim(9)), 0)
		r.at(start + 39)
		r.settle(settleTo(store.Done, first))
		r.waits("by the earlier clock one is", 0, start)
		third := r.claim(9)
		same(r, "by the earlier clock", idsOf(third), ids[2:])
		r.at(start + 41)
		same(r, "ready once more, and waits", len(r.claim(9)), 0)
		r.at(start + 39)
		same(r, "and back once more", len(r.claim(9)), 0)
		r.settle(settleTo(store.Done, third[0]))
		r.waits("by the earlier clock none is", 0, start+40)
		same(r, "none", len(r.claim(9)), 0)
		r.at(start + 40)
		same(r, "then", idsOf(r.claim(9)), ids[1:2])
	}},
}
