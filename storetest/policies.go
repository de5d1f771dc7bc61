package storetest

import "github.com/tickonce/tickonce/store"

// fire has the row fire n boundaries, and answers it and its claimed jobs.
func (r *rig) fire(by store.Lease, row store.Schedule, n int) (store.Schedule, []store.Job) {
	r.Helper()
	var fires []store.Fire
	for k := range n {
		fires = append(fires, store.Fire{Boundary: row.Cursor + store.Instant(k)})
	}
	must(r, "moved", outcomes(r.tick(by, []store.Move{move(row, int32(n))}, fires...)), []store.Outcome{store.Moved})
	jobs := r.claim(n)
	must(r, "jobs handed out", len(jobs), n)
	return r.schedule(row.Name), jobs
}

// breaking is a schedule whose breaker opens at the third failure.
func breaking(name string) store.Schedule {
	row := every(name, start)
	row.Breaker = 3
	return row
}

// trips ends claims and answers what that did to breakers.
func (r *rig) trips(settles ...store.Settle) (tripped []uint8) {
	r.Helper()
	for _, held := range r.settle(settles...) {
		same(r, "settled", held, true)
	}
	for _, s := range settles {
		tripped = append(tripped, s.Tripped)
	}
	return tripped
}

// counts checks the row's breaker.
func (r *rig) counts(what string, name string, failures uint8, paused store.Pause, rev store.Rev) {
	r.Helper()
	row := r.schedule(name)
	same(r, what+": failures in a row", row.Failures, failures)
	same(r, what+": paused by", row.Paused, paused)
	same(r, what+": rev", row.Rev, rev)
	due := row.Cursor
	if paused != store.Active {
		due = store.None
	}
	same(r, what+": due at", row.DueAt, due)
}

var policyScenarios = []scenario{
	{name: "X4 failures in a row open the breaker once, and each is a write of the row", run: func(r *rig) {
		row, jobs := r.fire(r.lead(), r.create(breaking("s"))[0], 5)
		same(r, "one by one", r.trips(settleTo(store.Dead, jobs[0])), []uint8{0})
		r.counts("one", "s", 1, store.Active, row.Rev+1)
		same(r, "two in a call", r.trips(settleTo(store.Dead, jobs[1]), settleTo(store.Dead, jobs[2]), settleTo(store.Dead, jobs[3])), []uint8{0, 3, 0})
		r.counts("at three, and not beyond", "s", 3, store.PausedByBreaker, row.Rev+3)
		same(r, "a success after that", r.trips(settleTo(store.Done, jobs[4])), []uint8{0})
		r.counts("still paused", "s", 0, store.PausedByBreaker, row.Rev+4)
	}},
	{name: "X4 what is done begins the count anew, a retry counts nothing", run: func(r *rig) {
		row, jobs := r.fire(r.lead(), r.create(breaking("s"))[0], 7)
		r.trips(settleTo(store.Dead, jobs[0]), settleTo(store.Dead, jobs[1]))
		r.trips(settleTo(store.Pending, jobs[2]))
		r.counts("a retry", "s", 2, store.Active, row.Rev+2)
		r.trips(settleTo(store.Done, jobs[3]))
		r.counts("done", "s", 0, store.Active, row.Rev+3)
		r.trips(settleTo(store.Done, jobs[4]))
		r.counts("done again changes nothing", "s", 0, store.Active, row.Rev+3)
		same(r, "two more", r.trips(settleTo(store.Dead, jobs[5]), settleTo(store.Dead, jobs[6])), []uint8{0, 0})
		r.counts("two more", "s", 2, store.Active, row.Rev+5)
	}},
	{name: "X4 a settle that does not hold its claim counts nothing", run: func(r *rig) {
		row, jobs := r.fire(r.lead(), r.create(breaking("s"))[0], 1)
		late := settleTo(store.Dead, jobs[0])
		late.Attempt++
		late.Tripped = 7
		s := []store.Settle{late}
		same(r, "settled", r.settle(s...), []bool{false})
		same(r, "tripped", s[0].Tripped, 0)
		r.counts("refused", "s", 0, store.Active, row.Rev)
	}},
	{name: "X4 a breaker of 0 never opens", run: func(r *rig) {
		row, jobs := r.fire(r.lead(), r.create(every("s", start))[0], 4)
		for _, j := range jobs {
			same(r, "tripped", r.trips(settleTo(store.Dead, j)), []uint8{0})
		}
		r.counts("four failures", "s", 0, store.Active, row.Rev)
	}},
	{name: "X4 the burial of an exhausted job counts, that of an expired one does not", run: func(r *rig) {
		lease := r.lead()
		row := breaking("s")
		row.Breaker, row.Stamps.MaxAttempts = 2, 1
		expiring := breaking("t")
		expiring.Breaker, expiring.ExpiresMS = 1, 5
		rows := r.create(row, expiring)
		row, jobs := r.fire(lease, rows[0], 2)
		r.tick(lease, []store.Move{move(rows[1], 1)}, store.Fire{Boundary: start})
		r.at(jobs[0].Deadline + 1)
		handed, c := r.claimAll("q", "w", make([]store.Job, 9))
		same(r, "handed out", len(handed), 0)
		same(r, "answer", c, store.Claim{Buried: 3, Now: r.now(), Tripped: []store.Trip{{Schedule: "s", Failures: 2}}})
		r.counts("exhausted", "s", 2, store.PausedByBreaker, row.Rev+2)
		r.counts("expired", "t", 0, store.Active, 2)
	}},
	{name: "X4 a job that is cancelled, claimed or not, counts nothing", run: func(r *rig) {
		lease := r.lead()
		row, jobs := r.fire(lease, r.create(breaking("s"))[0], 1)
		r.tick(lease, []store.Move{move(row, 1)}, store.Fire{Boundary: row.Cursor})
		all := r.rows().Jobs
		must(r, "jobs", len(all), 2)
		r.write(store.Batch{Cancels: []store.JobRef{ref(jobs[0]), ref(all[1])}})
		r.counts("cancelled", "s", 0, store.Active, row.Rev+1)
	}},
	{name: "X4 jobs of an incarnation that is gone, of no schedule, and deliveries count nothing", run: func(r *rig) {
		row, jobs := r.fire(r.lead(), r.create(breaking("s"))[0], 1)
		row = r.write(store.Batch{Puts: []store.Put{{Guard: guard(row), Row: breaking("s")}}}).Puts[0] // anew
		delivery := plain()
		delivery.From = &store.Source{Schedule: "s", ScheduleID: row.ID, FireAt: start, Origin: jobs[0].ID}
		r.insert(plain(), delivery)
		jobs = append(jobs, r.claim(2)...)
		must(r, "jobs", len(jobs), 3)
		for _, j := range jobs {
			r.trips(settleTo(store.Dead, j))
		}
		r.counts("three that do not count", "s", 0, store.Active, row.Rev)
	}},
	{name: "X4 a job that was fired by hand counts like any other", run: func(r *rig) {
		row := breaking("s")
		row.Breaker = 1
		row = r.create(row)[0]
		byHand := plain()
		byHand.From = &store.Source{Schedule: "s", ScheduleID: row.ID, FireAt: store.None, TimeoutMS: 70, Alone: true}
		r.insert(byHand)
		j := r.claimOne()
		same(r, "of", []any{j.Schedule, j.ScheduleID, j.FireAt, j.Origin, j.TimeoutMS, j.Alone},
			[]any{"s", row.ID, store.None, store.JobID(0), int64(70), true})
		same(r, "tripped", r.trips(settleTo(store.Dead, j)), []uint8{1})
		r.counts("by hand", "s", 1, store.PausedByBreaker, 2)
	}},
	{name: "X4 it is the schedule id of a job that says who is told, not its name", run: func(r *rig) {
		row := breaking("s")
		row.Breaker = 2
		row = r.create(row, breaking("t"))[0]
		for i, name := range []string{"t", "gone"} {
			in := plain()
			in.From = &store.Source{Schedule: name, ScheduleID: row.ID, FireAt: store.None}
			r.insert(in)
			same(r, "tripped", r.trips(settleTo(store.Dead, r.claimOne())), []uint8{uint8(2 * i)})
		}
		r.counts("both", "s", 2, store.PausedByBreaker, 3)
		r.counts("none", "t", 0, store.Active, 1)
	}},
	{name: "X4 O7 in a batch the ends count after the puts, whose answers stand", run: func(r *rig) {
		row, jobs := r.fire(r.lead(), r.create(breaking("s"))[0], 3)
		changed := row
		changed.Breaker, changed.Queue = 2, "r"
		settles := []store.Settle{settleTo(store.Dead, jobs[0]), settleTo(store.Dead, jobs[1])}
		put := r.write(store.Batch{Puts: []store.Put{{Guard: guard(row), Row: changed}}, Settles: settles}).Puts[0]
		same(r, "the put's answer", []any{put.Rev, put.Failures, put.Paused}, []any{row.Rev + 1, uint8(0), store.Active})
		same(r, "tripped", []uint8{settles[0].Tripped, settles[1].Tripped}, []uint8{0, 2})
		r.counts("after both", "s", 2, store.PausedByBreaker, row.Rev+3)
		same(r, "queue", r.schedule("s").Queue, "r")
		r.write(store.Batch{Removes: []store.Guard{guard(r.schedule("s"))}, Settles: []store.Settle{settleTo(store.Dead, jobs[2])}})
		same(r, "removed before the end counts", len(r.rows().Schedules), 0)
	}},
	{name: "X4 O7 a batch that is refused counts nothing and trips nothing", run: func(r *rig) {
		row := breaking("s")
		row.Breaker = 1
		_, jobs := r.fire(r.lead(), r.create(row)[0], 1)
		settles := []store.Settle{settleTo(store.Dead, jobs[0])}
		r.refused(store.Batch{Settles: settles, Cancels: []store.JobRef{{Queue: "q", Job: 999}}}, store.NotFound, store.Cancels, 0)
		same(r, "tripped", settles[0].Tripped, 0)
	}},
	{name: "X4 T3 a count between read and write makes the move stale", run: func(r *rig) {
		lease := r.lead()
		read, jobs := r.fire(lease, r.create(breaking("s"))[0], 1)
		r.trips(settleTo(store.Dead, jobs[0]))
		same(r, "moved", outcomes(r.tick(lease, []store.Move{move(read, 0)})), []store.Outcome{store.Stale})
	}},
	{name: "X8 the fire of a run-once pauses it for good, and its job starts once", run: func(r *rig) {
		lease := r.lead()
		row := every("s", start)
		row.RunOnce = true
		row.Rare = &store.Rare{TimeoutMS: 50}
		row = r.create(row)[0]
		m := move(row, 1)
		m.DueAt, m.Ends = store.None, true
		r.tick(lease, []store.Move{m}, store.Fire{Boundary: start})
		row.Rev, row.Cursor, row.DueAt, row.Paused = row.Rev+1, m.Cursor, store.None, store.PausedByRunOnce
		row.Live = r.schedule("s").Live
		same(r, "row", r.schedule("s"), row)
		j := r.claimOne()
		same(r, "of its job: attempts at most, timeout", []int64{int64(j.Stamps.MaxAttempts), j.TimeoutMS}, []int64{1, 50})
		r.at(j.Deadline + 1) // the worker is gone
		_, c := r.claimAll("q", "w", make([]store.Job, 1))
		same(r, "a second start", c, store.Claim{Buried: 1, Now: r.now()})
		same(r, "dead", r.job(j.ID).LastError, store.ErrorExhausted)
	}},
	{name: "X8 a run-once that was too late ends without a job", run: func(r *rig) {
		lease := r.lead()
		row := every("s", start)
		row.RunOnce = true
		row = r.create(row)[0]
		m := move(row, 0)
		m.DueAt, m.Ends = store.None, true
		t, held := r.advance(store.Tick{By: lease, Now: r.now(), Moves: []store.Move{m}, Skips: []store.Skip{
			{Reason: store.SkipMissed, First: start, Last: start, Count: 1},
		}})
		must(r, "held", held, true)
		same(r, "moved", outcomes(t), []store.Outcome{store.Moved})
		same(r, "paused by", r.schedule("s").Paused, store.PausedByRunOnce)
		same(r, "jobs", len(r.rows().Jobs), 0)
	}},
}
