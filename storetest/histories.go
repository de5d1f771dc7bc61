package storetest

import "github.com/tickonce/tickonce/store"

// fireOne makes one tick that fires the boundary of the row, and answers the row
// as it is then and the job.
func (r *rig) fireOne(by store.Lease, row store.Schedule, boundary store.Instant) (store.Schedule, store.JobID) {
	r.Helper()
	t := r.tick(by, []store.Move{move(row, 1)}, store.Fire{Boundary: boundary})
	must(r, "outcomes", outcomes(t), []store.Outcome{store.Moved})
	return r.schedule(row.Name), t.Fires[0].Job
}

// skipOne makes one tick that skips what it is told, and answers the row as it
// is then.
func (r *rig) skipOne(by store.Lease, row store.Schedule, skips ...store.Skip) store.Schedule {
	r.Helper()
	t, held := r.advance(store.Tick{By: by, Now: r.now(), Moves: []store.Move{move(row, 0)}, Skips: skips})
	must(r, "held", held, true)
	must(r, "outcomes", outcomes(t), []store.Outcome{store.Moved})
	return r.schedule(row.Name)
}

func (r *rig) history(name string) kept {
	r.Helper()
	k, err := readHistory(r.Context(), r.store, name)
	if err != nil {
		r.Fatalf("reading the history: %v", err)
	}
	return k
}

// skip is a range of n boundaries, a second apart.
func skip(reason store.SkipReason, first store.Instant, n int64) store.Skip {
	return store.Skip{Reason: reason, EveryMS: 1000, First: first, Last: first.Add((n - 1) * 1000), Count: n}
}

// nothing is the answer for a history from which nothing was dropped.
func nothing(totals ...int64) store.History {
	h := store.History{Since: store.MinInstant, Earlier: store.MinInstant}
	copy(h.Totals[:], totals)
	return h
}

var historyScenarios = []scenario{
	{name: "X11 each way in which a run ends is recorded once", run: func(r *rig) {
		lease := r.lead()
		row := r.create(every("s", start))[0]
		row, a := r.fireOne(lease, row, start)
		_, b := r.fireOne(lease, row, start+1000)
		r.at(start + 5)
		j := r.claimOne()
		must(r, "job", j.ID, a)
		r.at(start + 7)
		failed := settleTo(store.Pending, j)
		failed.Error, failed.Ended = "broke", store.TimedOut
		r.settle(failed)
		r.settle(failed) // its claim is gone
		jobs := r.claim(2)
		must(r, "jobs handed out", idsOf(jobs), []store.JobID{b, a})
		r.at(start + 107)
		r.settle(settleTo(store.Done, jobs[1]))
		r.at(start + 108) // the claim of b has lapsed
		again := r.claimOne()
		must(r, "job", again.ID, b)
		r.write(store.Batch{Cancels: []store.JobRef{ref(again)}})
		k := r.history("s")
		run := func(id store.EntryID, job store.JobID, at store.Instant) store.Run {
			return store.Run{
				ID: id, Schedule: "s", ScheduleID: row.ID, Job: job, FireAt: at, FiredAt: start, Attempt: 1, To: store.Pending,
			}
		}
		first, second, third, fourth := run(1, a, start), run(2, a, start), run(3, b, start+1000), run(4, b, start+1000)
		first.StartedAt, first.EndedAt, first.Ended, first.Error = start+5, start+7, store.TimedOut, "broke"
		second.StartedAt, second.EndedAt, second.Ended, second.To, second.Attempt = start+7, start+107, store.OK, store.Done, 2
		third.StartedAt, third.EndedAt, third.Ended, third.To = start+7, start+108, store.Lost, store.Claimed
		fourth.StartedAt, fourth.EndedAt, fourth.Ended, fourth.To, fourth.Attempt = start+108, start+108, store.Cancelled, 0, 2
		same(r, "runs, newest first", k.Runs, []store.Run{fourth, third, second, first})
		same(r, "answer", k.OfRuns, nothing(0, 1, 0, 1, 0, 1, 1))
	}},
	{name: "X11 a burial is the end of a lapsed claim, and not of a job that waited", run: func(r *rig) {
		lease := r.lead()
		once, expiring := every("once", start), every("expiring", start)
		once.Stamps.MaxAttempts, expiring.ExpiresMS = 1, 50
		rows := r.create(expiring, once)
		r.fireOne(lease, rows[0], start)
		r.fireOne(lease, rows[1], start)
		r.at(start + 49)
		must(r, "jobs handed out", len(r.claim(1)), 1)
		r.at(start + 150)
		_, c := r.claimAll("q", "w", nil)
		same(r, "buried", c.Buried, 1)
		same(r, "of the one that was claimed", r.history("expiring").Runs, []store.Run{{
			ID: 1, Schedule: "expiring", ScheduleID: rows[0].ID, Job: 1, FireAt: start, FiredAt: start,
			StartedAt: start + 49, EndedAt: start + 150, Attempt: 1, Ended: store.Lost, To: store.Dead, Error: store.ErrorExpired,
		}})
		must(r, "jobs handed out", len(r.claim(1)), 1)
		r.at(start + 251)
		_, c = r.claimAll("q", "w", nil)
		same(r, "buried", c.Buried, 1)
		same(r, "last error", r.history("once").Runs[0].Error, store.ErrorExhausted)
	}},
	{name: "X11 jobs of no schedule, deliveries, and a cancel of what waits leave no run", run: func(r *rig) {
		row := r.create(every("s", start))[0]
		delivery, gone := plain(), plain()
		delivery.From = &store.Source{Schedule: "s", ScheduleID: row.ID, FireAt: start, Origin: 9}
		gone.From = &store.Source{Schedule: "unknown", ScheduleID: 77, FireAt: start}
		r.insert(plain(), delivery, gone)
		waits := gone
		waits.From = &store.Source{Schedule: "s", ScheduleID: row.ID, FireAt: start}
		for _, j := range r.claim(3) {
			r.settle(settleTo(store.Done, j))
		}
		id := r.insert(waits)[0]
		r.write(store.Batch{Cancels: []store.JobRef{{Queue: "q", Job: id}}})
		for _, name := range []string{"s", "unknown"} {
			k := r.history(name)
			same(r, "runs of "+name, len(k.Runs), 0)
			same(r, "answer", k.OfRuns, nothing())
		}
	}},
	{name: "X12 a range takes in what goes on where it ends, and nothing else", run: func(r *rig) {
		lease := r.lead()
		row := r.create(every("s", start))[0]
		row = r.skipOne(lease, row, skip(store.SkipPause, start, 3))
		r.at(start + 1)
		row = r.skipOne(lease, row, skip(store.SkipPause, start+3000, 1_000_000_000))
		end := start + 3000 + 1_000_000_000_000
		row = r.skipOne(lease, row, skip(store.SkipPause, end+1000, 1)) // a gap
		row = r.skipOne(lease, row, skip(store.SkipCap, end+2000, 1))   // another reason
		other := skip(store.SkipCap, end+3000, 2)
		other.EveryMS, other.Last = 2000, end+5000 // another grid
		row = r.skipOne(lease, row, other)
		next := r.write(store.Batch{Puts: []store.Put{{Guard: guard(row), Row: every("s", start), Skips: []store.Skip{
			skip(store.SkipMissed, end+7000, 1), skip(store.SkipBefore, end+8000, 1),
		}}}}).Puts[0]
		r.skipOne(lease, next, skip(store.SkipBefore, end+9000, 1))
		k := r.history("s")
		want := func(id store.EntryID, of store.ScheduleID, s store.Skip, from store.Instant) store.SkipRange {
			all := s.Range("s", of, start+1)
			all.ID, all.From = id, from
			return all
		}
		same(r, "ranges, newest first", k.Skips, []store.SkipRange{
			want(6, next.ID, skip(store.SkipBefore, end+8000, 2), start+1),
			want(5, row.ID, skip(store.SkipMissed, end+7000, 1), start+1),
			want(4, row.ID, other, start+1),
			want(3, row.ID, skip(store.SkipCap, end+2000, 1), start+1),
			want(2, row.ID, skip(store.SkipPause, end+1000, 1), start+1),
			want(1, row.ID, skip(store.SkipPause, start, 1_000_000_003), start),
		})
		answer := nothing(0, 1_000_000_004, 0, 0, 0, 3, 1, 2)
		answer.Earlier = row.Cursor
		same(r, "answer", k.OfSkips, answer)
	}},
	{name: "X12 what a move that is not made skips is not recorded", run: func(r *rig) {
		lease := r.lead()
		row := r.create(every("s", start))[0]
		stale := move(row, 0)
		stale.Rev++
		t, held := r.advance(store.Tick{By: lease, Now: r.now(), Moves: []store.Move{stale}, Skips: []store.Skip{skip(store.SkipCap, start, 1)}})
		must(r, "held", held, true)
		must(r, "outcomes", outcomes(t), []store.Outcome{store.Stale})
		same(r, "skips", len(r.history("s").Skips), 0)
	}},
	{name: "LIMIT X12 the oldest of a name is dropped, and it is noted from when on it is known", limits: store.Limits{Skips: 2}, run: func(r *rig) {
		lease := r.lead()
		rows := r.create(every("a", start), every("b", start))
		for i := range store.Instant(3) {
			rows[0] = r.skipOne(lease, rows[0], skip(store.SkipCap, start+i*10_000, 2))
		}
		r.skipOne(lease, rows[1], skip(store.SkipCap, start, 1))
		k := r.history("a")
		same(r, "ranges kept", []store.Instant{k.Skips[0].First, k.Skips[1].First}, []store.Instant{start + 20_000, start + 10_000})
		answer := nothing(0, 0, 0, 0, 0, 6)
		answer.Since = start + 1001
		same(r, "answer", k.OfSkips, answer)
		same(r, "the other name", r.history("b").OfSkips, nothing(0, 0, 0, 0, 0, 1))
	}},
	{name: "LIMIT X11 the oldest of all is dropped, and text counts", limits: store.Limits{History: 3}, run: func(r *rig) {
		lease := r.lead()
		rows := r.create(every("a", start), every("b", start))
		fail := func(i int, text string) {
			boundary := rows[i].Cursor
			rows[i], _ = r.fireOne(lease, rows[i], boundary)
			s := settleTo(store.Dead, r.claimOne())
			s.Error = text
			r.settle(s)
		}
		fail(0, "")
		fail(1, "")
		fail(1, full(2*store.WeighedText, ""))
		same(r, "of a", r.history("a").Runs == nil, true)
		same(r, "of b", len(r.history("b").Runs), 1)
		answer := nothing(0, 0, 1)
		answer.Since = start + 1
		same(r, "answer for a", r.history("a").OfRuns, answer)
		answer = nothing(0, 0, 2)
		answer.Since = start + 1
		same(r, "answer for b", r.history("b").OfRuns, answer)
		fail(0, full(3*store.WeighedText, ""))
		same(r, "what weighs more than all", len(r.history("a").Runs)+len(r.history("b").Runs), 0)
	}},
	{name: "LIMIT X11 of several that come at once each drops what it alone drops", limits: store.Limits{Runs: 2, History: 10}, run: func(r *rig) {
		lease := r.lead()
		rows := r.create(every("a", start), every("b", start), every("c", start), every("d", start))
		fail := func(weights ...[2]int) { // of a row
			var settles []store.Settle
			for _, w := range weights {
				rows[w[0]], _ = r.fireOne(lease, rows[w[0]], rows[w[0]].Cursor)
				s := settleTo(store.Dead, r.claimOne())
				s.Error = full((w[1]-1)*store.WeighedText, "")
				settles = append(settles, s)
			}
			r.settle(settles...)
		}
		for _, w := range [][2]int{{0, 1}, {1, 5}, {1, 1}, {2, 3}} {
			fail(w)
		}
		fail([2]int{3, 1}, [2]int{1, 1}) // the second would make room for the first
		for name, n := range map[string]int{"a": 0, "b": 2, "c": 1, "d": 1} {
			same(r, "runs of "+name, len(r.history(name).Runs), n)
		}
	}},
	{name: "LIMIT X12 a range that a move before has dropped takes in no other", limits: store.Limits{History: 2}, run: func(r *rig) {
		lease := r.lead()
		rows := r.create(every("a", start), every("b", start), every("c", start))
		for i := range 2 {
			rows[i] = r.skipOne(lease, rows[i], skip(store.SkipCap, start, 1))
		}
		goesOn := skip(store.SkipCap, start+1000, 1)
		goesOn.Move = 1
		t, held := r.advance(store.Tick{
			By: lease, Now: r.now(), Moves: []store.Move{move(rows[2], 0), move(rows[0], 0)},
			Skips: []store.Skip{skip(store.SkipCap, start, 1), goesOn},
		})
		must(r, "held", held, true)
		must(r, "outcomes", outcomes(t), []store.Outcome{store.Moved, store.Moved})
		for name, want := range map[string][]int64{"a": {1}, "b": nil, "c": {1}} {
			var counts []int64
			for _, k := range r.history(name).Skips {
				counts = append(counts, k.Count)
			}
			same(r, "ranges of "+name, counts, want)
		}
	}},
	{name: "X11 a removal drops the history, and a late settle records none", run: func(r *rig) {
		lease := r.lead()
		row := r.create(every("s", start))[0]
		row, _ = r.fireOne(lease, row, start)
		row, _ = r.fireOne(lease, row, start+1000)
		jobs := r.claim(2)
		r.settle(settleTo(store.Done, jobs[0]))
		row = r.skipOne(lease, row, skip(store.SkipCap, start, 1))
		r.write(store.Batch{Removes: []store.Guard{guard(row)}})
		r.settle(settleTo(store.Done, jobs[1]))
		r.create(every("s", start))
		same(r, "history", r.history("s"), kept{OfRuns: nothing(), OfSkips: nothing()})
	}},
	{name: "X11 a new incarnation goes on with the history of its name", run: func(r *rig) {
		lease := r.lead()
		row := r.create(every("s", start))[0]
		row, _ = r.fireOne(lease, row, start)
		j := r.claimOne()
		r.write(store.Batch{Puts: []store.Put{{Guard: guard(row), Row: every("s", start+500)}}})
		r.settle(settleTo(store.Done, j))
		k := r.history("s")
		same(r, "incarnation of the run", k.Runs[0].ScheduleID, row.ID)
		answer := nothing(0, 1)
		answer.Earlier = row.Cursor
		same(r, "answer", k.OfRuns, answer)
	}},
}
