package storetest

import "github.com/tickonce/tickonce/store"

var batchScenarios = []scenario{
	{name: "S1 a put creates, changes and replaces", run: func(r *rig) {
		want := every("s", start)
		created := r.create(want)[0]
		same(r, "id is positive", created.ID > 0, true)
		want.ID, want.Rev = created.ID, 1
		same(r, "created", created, want)

		want.Queue, want.DueAt, want.Hold = "other", store.None, &store.Hold{Reason: "x", Times: 1}
		want.Rev = 77 // not read
		changed := r.write(store.Batch{Puts: []store.Put{{Guard: guard(created), Row: want}}}).Puts[0]
		want.Rev = 2
		same(r, "changed", changed, want)
		same(r, "read", r.schedule("s"), want)

		want.ID, want.Rev, want.Hold = 0, 77, nil
		replaced := r.write(store.Batch{Puts: []store.Put{{Guard: guard(changed), Row: want}}}).Puts[0]
		same(r, "a new incarnation", replaced.ID > changed.ID, true)
		want.ID, want.Rev = replaced.ID, 1
		same(r, "replaced", replaced, want)
		same(r, "read", r.rows().Schedules, []store.Schedule{want})
	}},
	{name: "S6 ids of incarnations rise and are never used again", run: func(r *rig) {
		var last store.ScheduleID
		for range 3 {
			rows := r.create(every("b", start), every("a", start))
			same(r, "in the order of the puts", last < rows[0].ID && rows[0].ID < rows[1].ID, true)
			last = rows[1].ID
			r.write(store.Batch{Removes: []store.Guard{guard(rows[1]), guard(rows[0])}})
			same(r, "rows", len(r.rows().Schedules), 0)
		}
	}},
	{name: "QU1 ids of jobs rise and are never used again", run: func(r *rig) {
		var last store.JobID
		for range 3 {
			ids := r.insert(plain(), plain())
			same(r, "in the order of the inserts", last < ids[0] && ids[0] < ids[1], true)
			last = ids[1]
			jobs := r.claim(2)
			r.settle(settleTo(store.Done, jobs[0]), settleTo(store.Done, jobs[1]))
		}
	}},
	{name: "T3 a guard holds for the same incarnation and rev, or for absence", run: func(r *rig) {
		old := r.create(every("s", start))[0]
		row := r.write(store.Batch{Puts: []store.Put{{Guard: guard(old), Row: old}}}).Puts[0]
		for _, c := range []struct {
			name  string
			guard store.Guard
			holds bool
		}{
			{"as it is", guard(row), true},
			{"with its live jobs", store.Guard{Name: "s", ID: row.ID, Rev: row.Rev, Live: &store.Live{}}, true},
			{"with other live jobs", store.Guard{Name: "s", ID: row.ID, Rev: row.Rev, Live: &store.Live{Claimed: 1}}, false},
			{"an old rev", guard(old), false},
			{"a rev yet to come", store.Guard{Name: "s", ID: row.ID, Rev: row.Rev + 1}, false},
			{"another incarnation", store.Guard{Name: "s", ID: row.ID + 1, Rev: row.Rev}, false},
			{"absent, but it is there", store.Guard{Name: "s"}, false},
			{"absent", store.Guard{Name: "t"}, true},
			{"there, but it is absent", store.Guard{Name: "t", ID: row.ID, Rev: row.Rev}, false},
			{"another name", store.Guard{Name: "S", ID: row.ID, Rev: row.Rev}, false},
		} {
			put := every(c.guard.Name, start)
			put.ID = c.guard.ID
			if !c.holds {
				b := store.Batch{Guards: []store.Guard{c.guard}, Inserts: []store.Insert{plain()}}
				r.refused(b, store.Conflict, store.Guards, 0)
				b = store.Batch{Puts: []store.Put{{Guard: c.guard, Row: put}}, Inserts: []store.Insert{plain()}}
				r.refused(b, store.Conflict, store.Puts, 0)
				if c.guard.ID != 0 {
					b = store.Batch{Removes: []store.Guard{c.guard}, Inserts: []store.Insert{plain()}}
					r.refused(b, store.Conflict, store.Removes, 0)
				}
				continue
			}
			before := r.rows()
			r.write(store.Batch{Guards: []store.Guard{c.guard, c.guard}})
			same(r, c.name+": a guard alone writes nothing", r.rows(), before)
		}
	}},
	{name: "O7 guards are judged before the batch, which may write what they guard", run: func(r *rig) {
		row := r.create(every("s", start))[0]
		gone := r.create(every("gone", start))[0]
		r.write(store.Batch{
			Guards:  []store.Guard{guard(row), guard(row), {Name: "new"}, guard(gone)},
			Puts:    []store.Put{{Guard: guard(row), Row: row}, {Guard: store.Guard{Name: "new"}, Row: every("new", start)}},
			Removes: []store.Guard{guard(gone)},
		})
		same(r, "rows", namesOf(r.rows().Schedules), []string{"new", "s"})
		same(r, "rev", r.schedule("s").Rev, 2)
	}},
	{name: "O7 a schedule that two elements write: the second comes too late", run: func(r *rig) {
		rows := r.create(every("s", start), every("t", start))
		put := func(row store.Schedule) store.Put { return store.Put{Guard: guard(row), Row: row} }
		fresh := store.Put{Guard: store.Guard{Name: "new"}, Row: every("new", start)}
		after := put(rows[0])
		after.Guard.Rev++
		r.refused(store.Batch{Puts: []store.Put{put(rows[0]), put(rows[1]), put(rows[0])}}, store.Conflict, store.Puts, 2)
		r.refused(store.Batch{Puts: []store.Put{put(rows[0]), after}}, store.Conflict, store.Puts, 1)
		r.refused(store.Batch{Puts: []store.Put{fresh, fresh}}, store.Conflict, store.Puts, 1)
		r.refused(store.Batch{Puts: []store.Put{put(rows[0])}, Removes: []store.Guard{guard(rows[1]), guard(rows[0])}}, store.Conflict, store.Removes, 1)
		r.refused(store.Batch{Removes: []store.Guard{guard(rows[0]), guard(rows[0])}}, store.Conflict, store.Removes, 1)
	}},
	{name: "O7 a job that two elements touch: the second comes too late", run: func(r *rig) {
		dead := r.dead(1)[0]
		r.insert(plain(), plain())
		claimed := r.claimOne()
		pending := r.jobs(store.Filter{Queue: "q", State: store.Pending}, make([]store.Job, 1))[0]
		done, again, kill := settleTo(store.Done, claimed), settleTo(store.Pending, claimed), settleTo(store.Dead, claimed)
		type refs = []store.JobRef
		r.refused(store.Batch{Settles: []store.Settle{done, done}}, store.ClaimLost, store.Settles, 1)
		r.refused(store.Batch{Settles: []store.Settle{again, kill}}, store.ClaimLost, store.Settles, 1)
		r.refused(store.Batch{Settles: []store.Settle{done}, Cancels: refs{ref(claimed)}}, store.NotFound, store.Cancels, 0)
		r.refused(store.Batch{Settles: []store.Settle{again}, Cancels: refs{ref(pending), ref(claimed)}}, store.NotFound, store.Cancels, 1)
		r.refused(store.Batch{Settles: []store.Settle{kill}, Requeues: refs{ref(claimed)}}, store.NotFound, store.Requeues, 0)
		r.refused(store.Batch{Settles: []store.Settle{kill}, Purges: refs{ref(claimed)}}, store.NotFound, store.Purges, 0)
		r.refused(store.Batch{Cancels: refs{ref(pending), ref(pending)}}, store.NotFound, store.Cancels, 1)
		r.refused(store.Batch{Requeues: refs{ref(dead), ref(dead)}}, store.NotFound, store.Requeues, 1)
		r.refused(store.Batch{Requeues: refs{ref(dead)}, Purges: refs{ref(dead)}}, store.NotFound, store.Purges, 0)
		r.refused(store.Batch{Purges: refs{ref(dead), ref(dead)}}, store.NotFound, store.Purges, 1)
	}},
	{name: "O7 all or nothing: the first refusal in the order of the fields, and nothing written", run: refusedInTurn},
	{name: "O7 a whole batch is written at once, in the order of its fields", run: func(r *rig) {
		dead := r.dead(2)
		rows := r.create(every("changes", start), every("goes", start))
		r.insert(plain(), plain(), plain())
		claimed := r.claim(2)
		pending := r.jobs(store.Filter{Queue: "q", State: store.Pending}, make([]store.Job, 1))[0]
		r.at(start + 50)
		c := r.write(store.Batch{
			Guards:   []store.Guard{guard(rows[0]), {Name: "absent"}},
			Puts:     []store.Put{{Guard: guard(rows[0]), Row: rows[0]}, {Guard: store.Guard{Name: "comes"}, Row: every("comes", start)}},
			Removes:  []store.Guard{guard(rows[1])},
			Settles:  []store.Settle{settleTo(store.Done, claimed[0]), {Job: claimed[1].ID, Attempt: 1, To: store.Pending, DelayMS: 5, Error: "e"}},
			Cancels:  []store.JobRef{ref(pending)},
			Requeues: []store.JobRef{ref(dead[1])},
			Purges:   []store.JobRef{ref(dead[0])},
			Inserts:  []store.Insert{plain(), plain()},
		})
		same(r, "schedules", namesOf(r.rows().Schedules), []string{"changes", "comes"})
		same(r, "puts", c.Puts, r.rows().Schedules)
		ids := []store.JobID{claimed[1].ID, c.Requeues[0], c.Inserts[0].Job, c.Inserts[1].Job}
		same(r, "jobs", idsOf(r.rows().Jobs), ids)
		same(r, "retried", r.job(claimed[1].ID).RunAt, start+55)
		same(r, "queue", r.queue(), store.Queue{
			Name: "q", Pending: 4, Enqueued: 8, Claims: 4, Retried: 1,
			Done: 1, Died: 2, Cancelled: 1, Requeued: 1, Purged: 1, NextClaimAt: start + 50,
		})
	}},
	{name: "QU3 a settle in a batch holds up to the deadline", run: func(r *rig) {
		r.insert(plain())
		j := r.claimOne()
		b := store.Batch{Settles: []store.Settle{settleTo(store.Done, j)}, Inserts: []store.Insert{plain()}}
		r.at(j.Deadline + 1)
		r.refused(b, store.ClaimLost, store.Settles, 0)
		r.at(j.Deadline)
		r.write(b)
	}},
	{name: "QU7 cancel removes pending and claimed jobs of the queue, and no other", run: func(r *rig) {
		dead := r.dead(1)[0]
		r.insert(plain(), plain(), plain(), plain())
		claimed := r.claim(2)
		pending := r.jobs(store.Filter{Queue: "q", State: store.Pending}, make([]store.Job, 2))
		pending = append([]store.Job(nil), pending...)
		for _, c := range []store.JobRef{
			ref(dead), {Queue: "other", Job: pending[0].ID}, {Queue: "q", Job: pending[1].ID + 1}, {Queue: "q"}, {},
		} {
			r.refused(store.Batch{Cancels: []store.JobRef{ref(pending[0]), c}}, store.NotFound, store.Cancels, 1)
		}
		r.at(claimed[0].Deadline + 1) // lapsed is claimed still
		r.write(store.Batch{Cancels: []store.JobRef{ref(claimed[0]), ref(pending[0])}})
		r.at(start)
		same(r, "the worker's token", r.settle(settleTo(store.Done, claimed[0])), []bool{false})
		same(r, "left", idsOf(r.rows().Jobs), []store.JobID{dead.ID, claimed[1].ID, pending[1].ID})
		same(r, "cancelled", r.queue().Cancelled, 2)
	}},
	{name: "QU11 requeue puts a new job in the place of a dead one", run: func(r *rig) {
		lease := r.lead()
		row := every("s", start)
		row.Priority, row.ExpiresMS = 4, 1000
		row = r.create(row)[0]
		r.tick(lease, []store.Move{move(row, 1)}, store.Fire{Boundary: start})
		j := r.claimOne()
		r.settle(store.Settle{Job: j.ID, Attempt: 1, To: store.Dead, Error: "broke"})
		dead := r.job(j.ID)
		r.at(start + 60)
		id := r.write(store.Batch{Requeues: []store.JobRef{ref(dead)}}).Requeues[0]
		same(r, "a new id", id > dead.ID, true)
		same(r, "jobs", r.rows().Jobs, []store.Job{store.Requeued(dead, id, start+60)})
		same(r, "queue", r.queue(), store.Queue{
			Name: "q", Pending: 1, Enqueued: 2, Claims: 1, Died: 1, Requeued: 1, NextClaimAt: start + 60,
		})
		again := r.claimOne()
		same(r, "attempts", again.Attempts, 1)
		same(r, "no old token fits", r.settle(settleTo(store.Done, j)), []bool{false})
	}},
	{name: "QU11 requeue and purge take dead jobs of the queue, and no other", run: func(r *rig) {
		dead := r.dead(3)
		r.insert(plain(), plain())
		claimed := r.claimOne()
		pending := r.jobs(store.Filter{Queue: "q", State: store.Pending}, make([]store.Job, 1))[0]
		for _, c := range []store.JobRef{ref(claimed), ref(pending), {Queue: "other", Job: dead[0].ID}, {Queue: "q", Job: pending.ID + 1}, {}} {
			r.refused(store.Batch{Requeues: []store.JobRef{ref(dead[0]), c}}, store.NotFound, store.Requeues, 1)
			r.refused(store.Batch{Purges: []store.JobRef{ref(dead[0]), c}}, store.NotFound, store.Purges, 1)
		}
		r.write(store.Batch{Purges: []store.JobRef{ref(dead[2]), ref(dead[0])}})
		same(r, "dead", idsOf(r.jobs(store.Filter{Queue: "q", State: store.Dead}, make([]store.Job, 9))), []store.JobID{dead[1].ID})
		same(r, "purged", r.queue().Purged, 2)
	}},
	{name: "LIMIT as many schedules as the limit, and replacing needs no room", limits: store.Limits{Schedules: 2}, run: func(r *rig) {
		put := func(name string) store.Put { return store.Put{Guard: store.Guard{Name: name}, Row: every(name, start)} }
		r.refused(store.Batch{Puts: []store.Put{put("a"), put("b"), put("c")}}, store.SchedulesFull, store.Puts, 2)
		a := r.create(every("a", start), every("b", start))[0]
		r.refused(store.Batch{Puts: []store.Put{put("c")}}, store.SchedulesFull, store.Puts, 0)
		r.refused(store.Batch{Puts: []store.Put{put("c"), put("a")}}, store.SchedulesFull, store.Puts, 0)
		r.refused(store.Batch{Puts: []store.Put{put("a"), put("c")}}, store.Conflict, store.Puts, 0)
		// Puts are written before removes.
		r.refused(store.Batch{Puts: []store.Put{put("c")}, Removes: []store.Guard{guard(a)}}, store.SchedulesFull, store.Puts, 0)
		fresh := a
		fresh.ID = 0
		r.write(store.Batch{Puts: []store.Put{{Guard: guard(a), Row: fresh}}})
		r.write(store.Batch{Removes: []store.Guard{guard(r.schedule("a"))}})
		r.create(every("c", start))
	}},
}

// refusedInTurn commits a batch in which an element of every part is refused,
// mends that element, and so on until nothing is.
func refusedInTurn(r *rig) {
	dead := r.dead(2)
	rows := r.create(every("s", start), every("t", start), every("u", start))
	r.insert(plain(), plain(), plain())
	claimed := r.claim(2)
	pending := r.jobs(store.Filter{Queue: "q", State: store.Pending}, make([]store.Job, 1))[0]
	none := store.JobRef{Queue: "q", Job: 1_000_000}
	stale := func(row store.Schedule) store.Guard {
		g := guard(row)
		g.Rev++
		return g
	}
	lost := settleTo(store.Done, claimed[1])
	lost.Attempt++
	b := store.Batch{
		Guards:   []store.Guard{guard(rows[0]), stale(rows[1])},
		Puts:     []store.Put{{Guard: guard(rows[0]), Row: rows[0]}, {Guard: stale(rows[1]), Row: rows[1]}},
		Removes:  []store.Guard{stale(rows[2])},
		Settles:  []store.Settle{settleTo(store.Done, claimed[0]), lost},
		Cancels:  []store.JobRef{ref(pending), none},
		Requeues: []store.JobRef{ref(dead[0]), none},
		Purges:   []store.JobRef{ref(dead[1]), none},
		Inserts:  []store.Insert{plain()},
	}
	r.refused(b, store.Conflict, store.Guards, 1)
	b.Guards = b.Guards[:1]
	r.refused(b, store.Conflict, store.Puts, 1)
	b.Puts = b.Puts[:1]
	r.refused(b, store.Conflict, store.Removes, 0)
	b.Removes[0] = guard(rows[2])
	r.refused(b, store.ClaimLost, store.Settles, 1)
	b.Settles = b.Settles[:1]
	r.refused(b, store.NotFound, store.Cancels, 1)
	b.Cancels = b.Cancels[:1]
	r.refused(b, store.NotFound, store.Requeues, 1)
	b.Requeues = b.Requeues[:1]
	r.refused(b, store.NotFound, store.Purges, 1)
	b.Purges = b.Purges[:1]
	r.write(b)
}
