package storetest

import "github.com/tickonce/tickonce/store"

var claimScenarios = []scenario{
	{name: "QU1 by priority descending, run-at, id; lapsed claims among the rest", run: func(r *rig) {
		in := func(priority int16, runAt store.Instant) store.Insert {
			i := plain()
			i.Priority, i.RunAt = priority, runAt
			return i
		}
		ids := r.insert(in(0, start), in(5, start), in(0, start), in(-1, start)) // 0…3
		lapsed := idsOf(r.claim(2))
		same(r, "first", lapsed, []store.JobID{ids[1], ids[0]})
		r.at(start + 50)
		ids = append(ids, r.insert(
			in(5, start+60), in(5, start+55), in(0, start+60), in(0, start+55), // 4…7
			in(-1, start+50), in(7, start+2000), in(0, start+55), // 8…10
		)...)
		r.at(start + 101)
		same(r, "all", idsOf(r.claim(20)), []store.JobID{
			ids[1], ids[5], ids[4], // priority 5: a lapsed claim keeps its run-at
			ids[0], ids[2], ids[7], ids[10], ids[6], // priority 0
			ids[3], ids[8], // priority -1
		})
	}},
	{name: "QU1 as many as dst holds, the rest later", run: func(r *rig) {
		ids := r.insert(plain(), plain(), plain(), plain())
		same(r, "none", len(r.claim(0)), 0)
		same(r, "two", idsOf(r.claim(2)), ids[:2])
		same(r, "the rest", idsOf(r.claim(9)), ids[2:])
		same(r, "no more", len(r.claim(9)), 0)
	}},
	{name: "QU1 dst beyond the jobs handed out is untouched", run: func(r *rig) {
		r.insert(plain())
		dst := []store.Job{{ID: -1}, {ID: -1}}
		r.claimAll("q", "w", dst)
		same(r, "beyond", dst[1], store.Job{ID: -1})
	}},
	{name: "QU2 a claim writes worker, deadline and one attempt more, and answers the row", run: func(r *rig) {
		id := r.insert(plain())[0]
		want := r.job(id)
		for attempt := range int32(3) {
			r.at(start + store.Instant(attempt)*101)
			worker := []string{"w1", "w2", "w2"}[attempt]
			jobs, c := r.claimAll("q", worker, make([]store.Job, 2))
			same(r, "answer", c, store.Claim{N: 1, Now: r.now()})
			want.State, want.Since, want.Worker, want.Deadline, want.Attempts = store.Claimed, r.now(), worker, r.now()+100, attempt+1
			same(r, "handed out", jobs, []store.Job{want})
			same(r, "read", r.job(id), want)
		}
		same(r, "queue", r.queue(), store.Queue{Name: "q", Claimed: 1, Enqueued: 1, Claims: 3, NextClaimAt: r.now() + 101})
	}},
	{name: "QU1 only jobs of the queue", run: func(r *rig) {
		other := plain()
		other.Queue = "other"
		ids := r.insert(other, plain(), other)
		same(r, "q", idsOf(r.claim(9)), ids[1:2])
		jobs, _ := r.claimAll("other", "w", make([]store.Job, 9))
		same(r, "other", idsOf(jobs), []store.JobID{ids[0], ids[2]})
	}},
	{name: "QU1 ready from its run-at on, one millisecond earlier not", run: func(r *rig) {
		in := plain()
		in.RunAt = start + 10
		r.insert(in)
		r.at(start + 9)
		same(r, "early", len(r.claim(1)), 0)
		r.at(start + 10)
		same(r, "on time", len(r.claim(1)), 1)
	}},
	{name: "QU3 a claim lapses one millisecond after its deadline", run: func(r *rig) {
		r.insert(plain())
		first := r.claimOne()
		r.at(first.Deadline)
		same(r, "at the deadline", len(r.claim(1)), 0)
		r.at(first.Deadline + 1)
		second := r.claimOne()
		same(r, "attempts", second.Attempts, 2)
		same(r, "QU4 the first token", r.settle(settleTo(store.Done, first)), []bool{false})
		same(r, "the second token", r.settle(settleTo(store.Done, second)), []bool{true})
	}},
	{name: "K3 a lapsed claim that nobody took is live again after a step back", run: func(r *rig) {
		r.insert(plain())
		j := r.claimOne()
		r.at(j.Deadline + 1)
		same(r, "lapsed", r.settle(settleTo(store.Done, j)), []bool{false})
		r.at(j.Deadline)
		same(r, "not handed out", len(r.claim(1)), 0)
		same(r, "live", r.settle(settleTo(store.Done, j)), []bool{true})
	}},
	{name: "K3 a claim taken after a step forward stays taken after a step back", run: func(r *rig) {
		r.insert(plain())
		first := r.claimOne()
		r.at(first.Deadline + 1_000_000)
		second := r.claimOne()
		r.at(start)
		same(r, "the first token", r.settle(settleTo(store.Done, first)), []bool{false})
		same(r, "not handed out", len(r.claim(1)), 0)
		same(r, "the second token", r.settle(settleTo(store.Done, second)), []bool{true})
	}},
	{name: "K4 a ready job is not ready any more after a step back", run: func(r *rig) {
		in := plain()
		in.DelayMS = 10
		r.insert(in, plain())
		r.at(start + 10)
		r.claim(0) // a store may well have noticed by now that they are ready
		r.at(start - 1)
		same(r, "queue", r.queue().NextClaimAt, start)
		same(r, "none", len(r.claim(9)), 0)
		r.at(start)
		same(r, "one", len(r.claim(9)), 1)
		r.at(start + 10)
		same(r, "the other", len(r.claim(9)), 1)
	}},
	{name: "QU2 a deadline stays within the range of instants", run: func(r *rig) {
		in := plain()
		in.Stamps.VisibilityMS = 1 << 60
		r.insert(in)
		same(r, "deadline", r.claimOne().Deadline, store.MaxInstant)
	}},
	{name: "QU3 a claim whose deadline is the last instant never lapses", run: func(r *rig) {
		endless := plain()
		endless.Stamps.VisibilityMS = 1 << 60
		last, expiring := endless, endless
		last.Stamps.MaxAttempts, expiring.ExpiresMS = 1, 1000
		r.insert(endless, last, expiring)
		jobs := r.claim(3)
		r.at(store.MaxInstant)
		same(r, "not handed out", len(r.claim(9)), 0)
		same(r, "queue", r.queue().NextClaimAt, store.None)
		same(r, "the tokens", r.settle(settleTo(store.Done, jobs[0]), settleTo(store.Done, jobs[1]), settleTo(store.Done, jobs[2])),
			[]bool{true, true, true})
	}},
	{name: "QU10 NextClaimAt is the least instant at which a job is to be handed out", run: func(r *rig) {
		next := func(what string, want store.Instant) {
			r.Helper()
			same(r, what, r.queue().NextClaimAt, want)
		}
		late := plain()
		late.RunAt = start + 500
		ids := r.insert(late)
		next("a delayed job", start+500)
		ids = append(ids, r.insert(plain())...)
		next("a job that is ready", start)
		r.at(start + 70)
		next("an instant that has passed", start)
		j := r.claimOne()
		next("a claim lapses before the delayed job is ready", j.Deadline+1)
		r.extend(extendBy(1000, j))
		next("a claim extended beyond it", start+500)
		r.extend(extendBy(30, j))
		next("a claim cut short", start+101)
		r.settle(store.Settle{Job: j.ID, Attempt: 1, To: store.Pending, DelayMS: 40})
		next("a retry", start+110)
		r.write(store.Batch{Cancels: []store.JobRef{{Queue: "q", Job: j.ID}}})
		next("a cancelled job", start+500)
		r.write(store.Batch{Cancels: []store.JobRef{{Queue: "q", Job: ids[0]}}})
		next("no job", store.None)
		dead := r.dead(1)
		next("a dead job", store.None)
		r.write(store.Batch{Requeues: []store.JobRef{ref(dead[0])}})
		next("a requeued job", start+70)
	}},
	{name: "QU10 NextClaimAt is also the instant at which a job is to be buried", run: func(r *rig) {
		next := func(what string, want store.Instant) {
			r.Helper()
			same(r, what, r.queue().NextClaimAt, want)
		}
		once := plain()
		once.Stamps.MaxAttempts = 1
		r.insert(once)
		j := r.claimOne()
		next("the last attempt lapses", start+101)
		r.settle(store.Settle{Job: j.ID, Attempt: 1, To: store.Pending, DelayMS: 500})
		next("a retry that no attempt is left for", start+500)

		expiring := plain()
		expiring.ExpiresMS = 300
		r.insert(expiring)
		next("a job that is ready before it expires", start)
		j = r.claimOne()
		next("a claim lapses before the job expires", start+101)
		r.extend(extendBy(350, j))
		next("a claim outlives the expiry, and lapses", start+351)
		r.settle(store.Settle{Job: j.ID, Attempt: 1, To: store.Pending, DelayMS: 400})
		next("it expires before it is ready", start+300)
		r.at(start + 600)
		next("an instant that has passed", start+300)
		_, c := r.claimAll("q", "w", nil)
		same(r, "buried", c, store.Claim{Buried: 2, Now: r.now()})
		next("nothing is left", store.None)
	}},
	{name: "QU10 the key of a job whose worker is gone is free at NextClaimAt", run: func(r *rig) {
		in := plain()
		in.Key, in.Stamps.MaxAttempts = "k", 1
		id := r.insert(in)[0]
		r.claimOne()
		next := r.queue().NextClaimAt
		must(r, "the claim lapses", next, start+101)
		r.at(next - 1)
		_, c := r.claimAll("q", "w", make([]store.Job, 1))
		same(r, "one millisecond earlier", c, store.Claim{Now: r.now()})
		r.at(next)
		again := r.write(store.Batch{Inserts: []store.Insert{in}}).Inserts
		same(r, "the key is still taken", again, []store.Inserted{{Job: id, Existing: true}})
		_, c = r.claimAll("q", "w", make([]store.Job, 1))
		same(r, "the claim", c, store.Claim{Buried: 1, Now: r.now()})
		r.insert(in)
	}},
	{name: "QU10 a waiter that sleeps until NextClaimAt finds something to do, and never earlier", run: func(r *rig) {
		for _, delay := range []int64{300, 0, 7, 300, 120} {
			in := plain()
			in.DelayMS = delay
			r.insert(in)
		}
		handedOut := 0
		for {
			next := r.queue().NextClaimAt
			if next == store.None {
				break
			}
			if next > r.now() {
				r.at(next - 1)
				_, c := r.claimAll("q", "w", make([]store.Job, 9))
				same(r, "early", c, store.Claim{Now: r.now()})
				r.at(next)
			}
			_, c := r.claimAll("q", "w", make([]store.Job, 1))
			must(r, "something to do", c.N+c.Buried > 0, true)
			handedOut += c.N
		}
		same(r, "handed out, each job its three attempts", handedOut, 3*5)
		same(r, "buried", r.queue().Dead, 5)
	}},
}

var buryScenarios = []scenario{
	{name: "QU5 a job without an attempt left dies as its claim lapses", run: func(r *rig) {
		id := r.insert(plain())[0]
		for range 3 {
			r.at(r.claimOne().Deadline + 1)
		}
		want := r.job(id)
		r.at(want.Deadline)
		_, c := r.claimAll("q", "w", make([]store.Job, 1))
		same(r, "at the deadline", c, store.Claim{Now: r.now()})
		r.at(want.Deadline + 1)
		_, c = r.claimAll("q", "w", make([]store.Job, 1))
		same(r, "past the deadline", c, store.Claim{Buried: 1, Now: r.now()})
		want.State, want.LastError, want.Since = store.Dead, store.ErrorExhausted, r.now()
		same(r, "row: it keeps attempts, worker and deadline (QU11)", r.job(id), want)
		same(r, "queue", r.queue(), store.Queue{Name: "q", Dead: 1, Enqueued: 1, Claims: 3, Died: 1, NextClaimAt: store.None})
	}},
	{name: "QU5 a retry at the last attempt dies when it would be ready", run: func(r *rig) {
		in := plain()
		in.Stamps.MaxAttempts = 1
		in.ExpiresMS = 5
		r.insert(in)
		j := r.claimOne()
		r.settle(store.Settle{Job: j.ID, Attempt: 1, To: store.Pending, DelayMS: 2, Error: "its own"})
		same(r, "next", r.queue().NextClaimAt, start+2)
		r.at(start + 1)
		_, c := r.claimAll("q", "w", make([]store.Job, 1))
		same(r, "early", c, store.Claim{Now: r.now()})
		r.at(start + 2)
		_, c = r.claimAll("q", "w", make([]store.Job, 1))
		same(r, "buried", c, store.Claim{Buried: 1, Now: r.now()})
		same(r, "last error", r.job(j.ID).LastError, store.ErrorExhausted)
	}},
	{name: "QU9 a pending job dies at its expiry, one millisecond earlier it is handed out", run: func(r *rig) {
		in := plain()
		in.ExpiresMS = 10
		ids := r.insert(in, in)
		r.at(start + 9)
		same(r, "early", r.claimOne().ID, ids[0])
		r.at(start + 10)
		_, c := r.claimAll("q", "w", make([]store.Job, 1))
		same(r, "at the expiry", c, store.Claim{Buried: 1, Now: r.now()})
		j := r.job(ids[1])
		same(r, "last error", j.LastError, store.ErrorExpired)
		same(r, "died", j.Since, start+10)
		same(r, "deadline", j.Deadline, store.None)
	}},
	{name: "QU9 a job that expires before it is ready dies unready", run: func(r *rig) {
		in := plain()
		in.ExpiresMS = 10
		r.insert(in)
		j := r.claimOne()
		r.settle(store.Settle{Job: j.ID, Attempt: 1, To: store.Pending, DelayMS: 500})
		same(r, "next", r.queue().NextClaimAt, start+10)
		r.at(start + 10)
		_, c := r.claimAll("q", "w", nil)
		same(r, "at the expiry", c, store.Claim{Buried: 1, Now: r.now()})
	}},
	{name: "QU9 a claim outlives the expiry, and dies of it when it lapses", run: func(r *rig) {
		in := plain()
		in.ExpiresMS = 10
		ids := r.insert(in, in, in)
		jobs := r.claim(3)
		r.at(start + 50)
		_, c := r.claimAll("q", "w", make([]store.Job, 3))
		same(r, "past the expiry", c, store.Claim{Now: r.now()})
		same(r, "settled", r.settle(settleTo(store.Done, jobs[0])), []bool{true})
		same(r, "extended", r.extend(extendBy(100, jobs[1])), []store.Instant{start + 150})
		r.at(start + 100)
		_, c = r.claimAll("q", "w", make([]store.Job, 3))
		same(r, "at the deadline", c, store.Claim{Now: r.now()})
		r.at(start + 101)
		_, c = r.claimAll("q", "w", make([]store.Job, 3))
		same(r, "one lapsed", c, store.Claim{Buried: 1, Now: r.now()})
		same(r, "last error", r.job(ids[2]).LastError, store.ErrorExpired)
		r.at(start + 151)
		_, c = r.claimAll("q", "w", make([]store.Job, 3))
		same(r, "the other lapsed", c, store.Claim{Buried: 1, Now: r.now()})
	}},
	{name: "QU9 expired and out of attempts: it died of its expiry, if that has come", run: func(r *rig) {
		in := plain()
		in.Stamps.MaxAttempts = 1
		expired, spent := in, in
		expired.ExpiresMS, spent.ExpiresMS = 101, 102
		ids := r.insert(expired, spent)
		r.claim(2)
		r.at(start + 101)
		_, c := r.claimAll("q", "w", nil)
		same(r, "buried", c, store.Claim{Buried: 2, Now: r.now()})
		same(r, "expiry has come", r.job(ids[0]).LastError, store.ErrorExpired)
		same(r, "expiry is yet to come", r.job(ids[1]).LastError, store.ErrorExhausted)
	}},
	{name: "QU5 burying and handing out in one call, an empty dst only buries", run: func(r *rig) {
		in := plain()
		in.ExpiresMS = 5
		ids := r.insert(in, plain(), in, plain())
		r.at(start + 5)
		_, c := r.claimAll("q", "w", nil)
		same(r, "nil dst", c, store.Claim{Buried: 2, Now: r.now()})
		more := r.insert(in)
		r.at(start + 10)
		jobs, c := r.claimAll("q", "w", make([]store.Job, 1))
		same(r, "both", c, store.Claim{N: 1, Buried: 1, Now: r.now()})
		same(r, "handed out", idsOf(jobs), ids[1:2])
		same(r, "buried", r.job(more[0]).State, store.Dead)
	}},
	{name: "QU5 only jobs of the queue are buried", run: func(r *rig) {
		in := plain()
		in.ExpiresMS = 5
		r.insert(in)
		r.at(start + 5)
		_, c := r.claimAll("other", "w", make([]store.Job, 1))
		same(r, "answer", c, store.Claim{Now: r.now()})
		same(r, "state", r.rows().Jobs[0].State, store.Pending)
	}},
	{name: "K4 a job past its expiry that was not buried is ready again after a step back", run: func(r *rig) {
		in := plain()
		in.ExpiresMS = 5
		r.insert(in, in)
		r.at(start + 5)
		r.queue() // reads bury nothing
		r.at(start + 4)
		r.claimOne()
		r.at(start + 5)
		r.claim(1)
		r.at(start)
		same(r, "what is buried stays so", r.queue().Dead, 1)
		same(r, "nothing left", len(r.claim(9)), 0)
	}},
	{name: "QU5 at most MaxBuried in one call, in (doomed-at, id) order, and no doomed job is handed out", run: func(r *rig) {
		// Ids rise as the doom comes earlier, in pairs.
		var inserts []store.Insert
		const n = store.MaxBuried + 4
		for i := range n {
			in := plain()
			in.ExpiresMS = int64(1 + (n-1-i)/2)
			in.Priority = 1
			inserts = append(inserts, in)
		}
		ids := r.insert(inserts...)
		last := r.insert(plain())
		r.at(start + n)
		jobs, c := r.claimAll("q", "w", make([]store.Job, 9))
		same(r, "first", c, store.Claim{N: 1, Buried: store.MaxBuried, Now: r.now()})
		same(r, "handed out", idsOf(jobs), last)
		var left []store.JobID
		for _, j := range r.rows().Jobs {
			if j.State == store.Pending {
				left = append(left, j.ID)
			}
		}
		same(r, "left", left, ids[:4])
		same(r, "next", r.queue().NextClaimAt, start)
		_, c = r.claimAll("q", "w", make([]store.Job, 9))
		same(r, "second", c, store.Claim{Buried: 4, Now: r.now()})
	}},
	{name: "QU5 of jobs doomed at once the lower ids are buried first", run: func(r *rig) {
		var inserts []store.Insert
		for range store.MaxBuried + 2 {
			in := plain()
			in.ExpiresMS = 1
			inserts = append(inserts, in)
		}
		ids := r.insert(inserts...)
		r.at(start + 1)
		_, c := r.claimAll("q", "w", nil)
		same(r, "first", c, store.Claim{Buried: store.MaxBuried, Now: r.now()})
		same(r, "left", idsOf(r.jobs(store.Filter{Queue: "q", State: store.Pending}, make([]store.Job, 9))), ids[store.MaxBuried:])
	}},
}
