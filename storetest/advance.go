package storetest

import "github.com/tickonce/tickonce/store"

// lead acquires the rig's lock for a long time.
func (r *rig) lead() store.Lease {
	r.Helper()
	g := r.acquire("leader", "a", 1_000_000)
	must(r, "granted", g.OK, true)
	return g.Lease
}

// tick makes one tick that has to find its lease live, and answers it.
func (r *rig) tick(by store.Lease, moves []store.Move, fires ...store.Fire) store.Tick {
	r.Helper()
	t, held := r.advance(store.Tick{By: by, Now: r.now(), Moves: moves, Fires: fires})
	must(r, "held", held, true)
	return t
}

func outcomes(t store.Tick) []store.Outcome {
	var all []store.Outcome
	for _, m := range t.Moves {
		all = append(all, m.Outcome)
	}
	return all
}

var advanceScenarios = []scenario{
	{name: "T2 a fire is one pending job with all that its row stamps on it", run: func(r *rig) {
		lease := r.lead()
		plain, expiring := every("plain", start-5), every("expiring", start-3)
		expiring.Queue, expiring.Payload = "other", []byte("other payload")
		expiring.Stamps = store.Stamps{VisibilityMS: 7, BaseBackoffMS: 8, MaxAttempts: 9}
		expiring.Priority, expiring.ExpiresMS = -3, 50
		rows := r.create(plain, expiring)
		r.at(start + 20) // the write comes later than the reading of its plan
		tick, held := r.advance(store.Tick{
			By: lease, Now: start,
			Moves: []store.Move{move(rows[0], 1), move(rows[1], 1)},
			Fires: []store.Fire{{Move: 0, Boundary: start - 5}, {Move: 1, Boundary: start - 3}},
		})
		must(r, "held", held, true)
		same(r, "outcomes", outcomes(tick), []store.Outcome{store.Moved, store.Moved})
		same(r, "jobs", r.rows().Jobs, []store.Job{
			{
				ID: tick.Fires[1].Job, Queue: "other", Payload: []byte("other payload"),
				Schedule: "expiring", ScheduleID: rows[1].ID, FireAt: start - 3, Stamps: expiring.Stamps,
				EnqueuedAt: start + 20, RunAt: start, ExpiresAt: start + 50, Priority: -3,
				State: store.Pending, Deadline: store.None, Since: store.None,
			},
			{
				ID: tick.Fires[0].Job, Queue: "q", Payload: []byte("plain"),
				Schedule: "plain", ScheduleID: rows[0].ID, FireAt: start - 5, Stamps: stamps,
				EnqueuedAt: start + 20, RunAt: start, ExpiresAt: store.None,
				State: store.Pending, Deadline: store.None, Since: store.None,
			},
		})
		same(r, "queue", r.queue(), store.Queue{Name: "q", Pending: 1, Enqueued: 1, NextClaimAt: start})
	}},
	{name: "T2 a fired job is ready at the tick's now, whatever the clock of the write", run: func(r *rig) {
		lease := r.lead()
		row := r.create(every("s", start))[0]
		r.at(start - 10) // it stepped back between read and write
		_, held := r.advance(store.Tick{By: lease, Now: start, Moves: []store.Move{move(row, 1)}, Fires: []store.Fire{{Boundary: start}}})
		must(r, "held", held, true)
		r.at(start - 1)
		same(r, "jobs handed out early", len(r.claim(1)), 0)
		r.at(start)
		same(r, "run-at", r.claimOne().RunAt, start)
	}},
	{name: "T3 a move writes cursor, due-at, set-at, hold and the rev, and nothing else", run: func(r *rig) {
		lease := r.lead()
		row := every("s", start)
		row.Paused, row.Priority, row.ExpiresMS = store.PausedByRunOnce, 5, 9
		want := r.create(row, every("other", start))[0]
		other := r.schedule("other")
		for _, m := range []store.Move{
			{Cursor: start + 1, DueAt: start + 2, SetAt: start + 3},
			{Cursor: start + 1, DueAt: store.None, SetAt: start - 3, Hold: &store.Hold{Reason: "full", Since: start, Times: 1}},
			{Cursor: start - 9, DueAt: start, SetAt: start, Hold: &store.Hold{Reason: "full", Since: start, Times: 2}},
			{Cursor: start, DueAt: start, SetAt: start},
		} {
			m.ID, m.Rev = want.ID, want.Rev
			tick := r.tick(lease, []store.Move{m})
			same(r, "outcomes", outcomes(tick), []store.Outcome{store.Moved})
			want.Rev++
			want.Cursor, want.DueAt, want.SetAt, want.Hold = m.Cursor, m.DueAt, m.SetAt, m.Hold
			same(r, "row", r.schedule("s"), want)
		}
		same(r, "T8 another row", r.schedule("other"), other)
	}},
	{name: "T3 the same tick again finds its moves stale", run: func(r *rig) {
		lease := r.lead()
		row := r.create(every("s", start))[0]
		moves := []store.Move{move(row, 2)}
		r.tick(lease, moves, store.Fire{Boundary: start - 1}, store.Fire{Boundary: start})
		before := r.rows()
		again := r.tick(lease, moves, store.Fire{Boundary: start - 1}, store.Fire{Boundary: start})
		same(r, "outcomes", outcomes(again), []store.Outcome{store.Stale})
		same(r, "fires", again.Fires, []store.Fire{{Boundary: start - 1}, {Boundary: start}})
		same(r, "rows", r.rows(), before)
	}},
	{name: "T3 every write of a row between read and write makes its move stale", run: func(r *rig) {
		lease := r.lead()
		for _, c := range []struct {
			name string
			edit func(row store.Schedule)
		}{
			{"an edit", func(row store.Schedule) {
				row.Queue = "other"
				r.write(store.Batch{Puts: []store.Put{{Guard: guard(row), Row: row}}})
			}},
			{"an edit that writes the same", func(row store.Schedule) {
				r.write(store.Batch{Puts: []store.Put{{Guard: guard(row), Row: row}}})
			}},
			{"another tick", func(row store.Schedule) { r.tick(lease, []store.Move{move(row, 0)}) }},
			{"removal", func(row store.Schedule) { r.write(store.Batch{Removes: []store.Guard{guard(row)}}) }},
			{"a new incarnation", func(row store.Schedule) {
				fresh := row
				fresh.ID = 0
				r.write(store.Batch{Puts: []store.Put{{Guard: guard(row), Row: fresh}}})
			}},
			{"removal and the same name anew", func(row store.Schedule) {
				r.write(store.Batch{Removes: []store.Guard{guard(row)}})
				r.create(every(row.Name, start))
			}},
		} {
			row := r.create(every(c.name, start))[0]
			c.edit(row)
			before := r.rows()
			tick := r.tick(lease, []store.Move{move(row, 1)}, store.Fire{Boundary: start})
			same(r, c.name, outcomes(tick), []store.Outcome{store.Stale})
			same(r, c.name+": job", tick.Fires[0].Job, 0)
			same(r, c.name+": rows", r.rows(), before)
		}
		row := r.create(every("ahead", start))[0]
		row.Rev++
		same(r, "a rev that is yet to come", outcomes(r.tick(lease, []store.Move{move(row, 0)})), []store.Outcome{store.Stale})
		row.ID, row.Rev = row.ID+100, 1
		same(r, "an id that is yet to come", outcomes(r.tick(lease, []store.Move{move(row, 0)})), []store.Outcome{store.Stale})
	}},
	{name: "T3 stale, moved and full in one tick", limits: store.Limits{QueueLength: 3}, run: func(r *rig) {
		lease := r.lead()
		small := every("small", start)
		small.Queue = "other"
		rows := r.create(every("fits", start), every("stale", start), every("full", start), small, every("fits too", start), every("no fires", start), every("full too", start))
		gone := rows[1]
		gone.Rev += 7
		r.insert(plain())
		moves := []store.Move{
			move(rows[0], 1), move(gone, 1), move(rows[2], 2), move(rows[3], 3), move(rows[4], 1), move(rows[5], 0), move(rows[6], 1),
		}
		var fires []store.Fire
		for i, m := range moves {
			for k := range m.Fires {
				fires = append(fires, store.Fire{Move: int32(i), Boundary: start + store.Instant(k)})
			}
		}
		tick := r.tick(lease, moves, fires...)
		same(r, "outcomes", outcomes(tick), []store.Outcome{
			store.Moved, store.Stale, store.Full, store.Moved, store.Moved, store.Moved, store.Full,
		})
		for i, m := range moves {
			read := r.schedule(rows[i].Name)
			if tick.Moves[i].Outcome == store.Moved {
				same(r, "a moved row's cursor", read.Cursor, m.Cursor)
			} else {
				same(r, "a row that was not moved", read, rows[i])
			}
		}
		var fired []store.JobID
		for _, f := range tick.Fires {
			if tick.Moves[f.Move].Outcome == store.Moved {
				fired = append(fired, f.Job)
			} else {
				same(r, "the job of a move that was not made", f.Job, 0)
			}
		}
		var ids []store.JobID
		for _, j := range r.rows().Jobs {
			if j.Schedule != "" {
				ids = append(ids, j.ID)
			}
		}
		same(r, "jobs fired", len(fired), 5)
		for _, id := range ids {
			found := false
			for _, f := range fired {
				found = found || f == id
			}
			same(r, "a fired job is answered", found, true)
		}
		same(r, "jobs kept", len(ids), len(fired))
		same(r, "jobs in the full queue", r.queue().Pending, 3)
	}},
	{name: "T3 a move is full by one job too many, and dead jobs count", limits: store.Limits{QueueLength: 4}, run: func(r *rig) {
		lease := r.lead()
		r.dead(2)
		row := r.create(every("s", start))[0]
		fires := []store.Fire{{Boundary: start}, {Boundary: start + 1}, {Boundary: start + 2}}
		same(r, "three into room for two", outcomes(r.tick(lease, []store.Move{move(row, 3)}, fires...)), []store.Outcome{store.Full})
		same(r, "two into room for two", outcomes(r.tick(lease, []store.Move{move(row, 2)}, fires[:2]...)), []store.Outcome{store.Moved})
		row = r.schedule("s")
		same(r, "one into no room", outcomes(r.tick(lease, []store.Move{move(row, 1)}, fires[:1]...)), []store.Outcome{store.Full})
		same(r, "none into no room", outcomes(r.tick(lease, []store.Move{move(row, 0)})), []store.Outcome{store.Moved})
	}},
	{name: "T10 jobs are inserted in the order of the fires", run: func(r *rig) {
		lease := r.lead()
		rows := r.create(every("a", start), every("b", start), every("c", start))
		rows[1].Rev += 3 // stale
		fires := []store.Fire{
			{Move: 2, Boundary: start - 30},
			{Move: 0, Boundary: start - 20},
			{Move: 1, Boundary: start - 20},
			{Move: 2, Boundary: start - 20},
			{Move: 0, Boundary: start - 10},
			{Move: 2, Boundary: start - 10},
		}
		tick := r.tick(lease, []store.Move{move(rows[0], 2), move(rows[1], 1), move(rows[2], 3)}, fires...)
		jobs := r.rows().Jobs
		must(r, "jobs", len(jobs), 5)
		want := []store.Fire{tick.Fires[0], tick.Fires[1], tick.Fires[3], tick.Fires[4], tick.Fires[5]}
		for i, j := range jobs {
			same(r, "id", j.ID, want[i].Job)
			same(r, "boundary", j.FireAt, want[i].Boundary)
			same(r, "schedule", j.Schedule, rows[want[i].Move].Name)
		}
		same(r, "the job of a stale move", tick.Fires[2].Job, 0)
		same(r, "handed out in this order", idsOf(r.claim(9)), idsOf(jobs))
	}},
	{name: "S6 jobs outlive the schedule that fired them", run: func(r *rig) {
		lease := r.lead()
		row := r.create(every("s", start))[0]
		r.tick(lease, []store.Move{move(row, 1)}, store.Fire{Boundary: start})
		r.write(store.Batch{Removes: []store.Guard{guard(r.schedule("s"))}})
		j := r.claimOne()
		same(r, "schedule", j.Schedule, "s")
		same(r, "incarnation", j.ScheduleID, row.ID)
	}},
	{name: "S4 a change of the row leaves the jobs that it fired as they are", run: func(r *rig) {
		lease := r.lead()
		row := r.create(every("s", start))[0]
		r.tick(lease, []store.Move{move(row, 1)}, store.Fire{Boundary: start})
		before := r.rows().Jobs
		row = r.schedule("s")
		row.Queue, row.Payload, row.Priority, row.ExpiresMS = "other", []byte("new"), 7, 1
		row.Stamps = store.Stamps{VisibilityMS: 1, BaseBackoffMS: 1, MaxAttempts: 1}
		r.write(store.Batch{Puts: []store.Put{{Guard: guard(row), Row: row}}})
		same(r, "jobs", r.rows().Jobs, before)
	}},
	{name: "L6 a tick is refused unless its lease is the live one", run: fencedTicks},
	{name: "L6 the lease is judged by its row, not by the caller's copy", run: func(r *rig) {
		lease := r.acquire("leader", "a", 100).Lease
		r.renew(lease, 500)
		row := r.create(every("s", start))[0]
		r.at(start + 300)
		lease.ExpiresAt, lease.TTLMS = start-1, 1
		same(r, "outcomes", outcomes(r.tick(lease, []store.Move{move(row, 0)})), []store.Outcome{store.Moved})
		r.at(start + 500)
		lease.ExpiresAt, lease.TTLMS = start+900, 900
		_, held := r.advance(store.Tick{By: lease, Now: r.now()})
		same(r, "held", held, false)
	}},
	{name: "L6 a tick without moves answers whether the lease is live", run: func(r *rig) {
		lease := r.lead()
		_, held := r.advance(store.Tick{By: lease, Now: start})
		same(r, "held", held, true)
		r.release(lease)
		_, held = r.advance(store.Tick{By: lease, Now: start})
		same(r, "held after the release", held, false)
	}},
}

// fencedTicks tries one tick under every kind of lease.
func fencedTicks(r *rig) {
	const ttl = 1000
	for i, c := range []struct {
		name string
		held bool
		by   func(l store.Lease) store.Lease // what happens to the lease, and what the tick carries
	}{
		{"fresh", true, func(l store.Lease) store.Lease { return l }},
		{"one millisecond before it expires", true, func(l store.Lease) store.Lease {
			r.at(l.ExpiresAt - 1)
			return l
		}},
		{"at its expiry", false, func(l store.Lease) store.Lease {
			r.at(l.ExpiresAt)
			return l
		}},
		{"long expired", false, func(l store.Lease) store.Lease {
			r.at(l.ExpiresAt + 1_000_000)
			return l
		}},
		{"renewed", true, func(l store.Lease) store.Lease {
			r.at(l.ExpiresAt - 1)
			r.renew(l, ttl)
			r.at(l.ExpiresAt + ttl - 2)
			return l
		}},
		{"K2 a clock one second back", true, func(l store.Lease) store.Lease {
			r.at(l.ExpiresAt - ttl - store.LeaseSlackMS)
			return l
		}},
		{"K2 a clock further back", false, func(l store.Lease) store.Lease {
			r.at(l.ExpiresAt - ttl - store.LeaseSlackMS - 1)
			return l
		}},
		{"released", false, func(l store.Lease) store.Lease {
			r.release(l)
			return l
		}},
		{"taken by another after expiry", false, func(l store.Lease) store.Lease {
			r.at(l.ExpiresAt)
			r.acquire(l.Lock, "b", ttl)
			return l
		}},
		{"another owner's", false, func(l store.Lease) store.Lease {
			l.Owner = "b"
			return l
		}},
		{"an earlier term of the same owner", false, func(l store.Lease) store.Lease {
			r.at(l.ExpiresAt)
			r.acquire(l.Lock, l.Owner, ttl)
			return l
		}},
		{"the term of the same owner's new acquisition", true, func(l store.Lease) store.Lease {
			r.at(l.ExpiresAt)
			return r.acquire(l.Lock, l.Owner, ttl).Lease
		}},
		{"a term that is yet to come", false, func(l store.Lease) store.Lease {
			l.Term++
			return l
		}},
		{"of another lock", false, func(l store.Lease) store.Lease {
			l.Lock = "other"
			return l
		}},
		{"zero", false, func(store.Lease) store.Lease { return store.Lease{} }},
	} {
		r.at(start + store.Instant(i)*10_000_000)
		lease := r.acquire("leader", "a", ttl).Lease
		row := r.create(every(c.name, r.now()))[0]
		by := c.by(lease)
		before := r.rows()
		_, held := r.advance(store.Tick{
			By: by, Now: row.DueAt, Moves: []store.Move{move(row, 1)}, Fires: []store.Fire{{Boundary: row.DueAt}},
		})
		same(r, c.name, held, c.held)
		if !c.held {
			same(r, c.name+": rows", r.rows(), before)
		} else {
			same(r, c.name+": cursor", r.schedule(c.name).Cursor, row.Cursor+1000)
		}
		r.write(store.Batch{Removes: []store.Guard{guard(r.schedule(c.name))}})
		r.release(lease)
	}
}
