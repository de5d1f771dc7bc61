package storetest

import "github.com/tickonce/tickonce/store"

var settleScenarios = []scenario{
	{name: "QU3 settle and extend hold up to the deadline", run: func(r *rig) {
		for i, c := range []struct {
			name  string
			after store.Instant // since the deadline
			want  bool
		}{
			{"before", -1, true}, {"at", 0, true}, {"after", 1, false}, {"long after", 1_000_000, false},
		} {
			r.at(start + store.Instant(i)*10_000_000)
			r.insert(plain(), plain(), plain(), plain())
			jobs := r.claim(4)
			must(r, "jobs handed out", len(jobs), 4)
			r.at(jobs[0].Deadline + c.after)
			same(r, c.name, r.settle(
				settleTo(store.Done, jobs[0]), settleTo(store.Pending, jobs[1]), settleTo(store.Dead, jobs[2]),
			), []bool{c.want, c.want, c.want})
			extended := store.None
			if c.want {
				extended = r.now() + 5
			}
			same(r, c.name+": extended", r.extend(extendBy(5, jobs[3])), []store.Instant{extended})
			var left store.Batch
			for _, j := range r.jobs(store.Filter{Queue: "q"}, make([]store.Job, 9)) {
				if j.State == store.Dead {
					left.Purges = append(left.Purges, ref(j))
				} else {
					left.Cancels = append(left.Cancels, ref(j))
				}
			}
			r.write(left)
		}
	}},
	{name: "QU4 a token that is not the live one changes nothing", run: func(r *rig) {
		r.insert(plain(), plain(), plain(), plain())
		jobs := r.claim(4)
		r.settle(settleTo(store.Done, jobs[0]), settleTo(store.Dead, jobs[1]), settleTo(store.Pending, jobs[2]))
		r.at(jobs[3].Deadline + 1)
		second := r.claim(9)
		same(r, "handed out again", idsOf(second), []store.JobID{jobs[2].ID, jobs[3].ID})
		r.settle(settleTo(store.Pending, second[0]))
		fresh := r.insert(plain())[0]
		before := r.rows()
		for _, c := range []struct {
			name    string
			job     store.JobID
			attempt int32
		}{
			{"of a done job", jobs[0].ID, 1},
			{"of a dead job", jobs[1].ID, 1},
			{"of a job that waits for its retry", jobs[2].ID, 2},
			{"of an earlier attempt", jobs[3].ID, 1},
			{"of an attempt yet to come", jobs[3].ID, 3},
			{"of no attempt", jobs[3].ID, 0},
			{"of a job never claimed", fresh, 0},
			{"of a job never claimed, attempt 1", fresh, 1},
			{"of an unknown job", fresh + 1, 1},
			{"of job 0", 0, 0},
			{"of a negative job", -1, 1},
		} {
			for _, to := range []store.State{store.Done, store.Pending, store.Dead} {
				same(r, c.name, r.settle(store.Settle{Job: c.job, Attempt: c.attempt, To: to}), []bool{false})
			}
			same(r, c.name+": extend", r.extend(store.Extend{Job: c.job, Attempt: c.attempt, ForMS: 9}), []store.Instant{store.None})
		}
		same(r, "rows", r.rows(), before)
	}},
	{name: "QU13 done: the row is gone, counted; a second ack is refused", run: func(r *rig) {
		r.insert(plain())
		j := r.claimOne()
		same(r, "first", r.settle(settleTo(store.Done, j)), []bool{true})
		same(r, "second", r.settle(settleTo(store.Done, j)), []bool{false})
		same(r, "rows", len(r.rows().Jobs), 0)
		same(r, "queue", r.queue(), store.Queue{Name: "q", Enqueued: 1, Claims: 1, Done: 1, NextClaimAt: store.None})
	}},
	{name: "QU6 pending: it keeps its attempts and is ready after the delay", run: func(r *rig) {
		in := plain()
		in.Key, in.ExpiresMS = "k", 5000
		r.insert(in)
		want := r.claimOne()
		r.at(start + 60)
		same(r, "settled", r.settle(store.Settle{Job: want.ID, Attempt: 1, To: store.Pending, DelayMS: 20, Error: "broke"}), []bool{true})
		want.State, want.Since, want.RunAt, want.LastError = store.Pending, store.None, start+80, "broke"
		same(r, "row: worker and deadline are of the latest claim", r.job(want.ID), want)
		same(r, "queue", r.queue(), store.Queue{Name: "q", Pending: 1, Enqueued: 1, Claims: 1, Retried: 1, NextClaimAt: start + 80})
		r.at(start + 79)
		same(r, "early", len(r.claim(1)), 0)
		r.at(start + 80)
		second := r.claimOne()
		same(r, "attempts", second.Attempts, 2)
		same(r, "last error", second.LastError, "broke")
		r.settle(store.Settle{Job: want.ID, Attempt: 2, To: store.Pending})
		same(r, "without a delay it is ready at once", r.job(want.ID).RunAt, start+80)
		same(r, "without an error none is left", r.job(want.ID).LastError, "")
	}},
	{name: "QU6 a delay stays within the range of instants", run: func(r *rig) {
		r.insert(plain())
		j := r.claimOne()
		r.settle(store.Settle{Job: j.ID, Attempt: 1, To: store.Pending, DelayMS: 1<<63 - 1})
		same(r, "run-at", r.job(j.ID).RunAt, store.MaxInstant)
	}},
	{name: "QU7 dead at once, with the caller's error", run: func(r *rig) {
		r.insert(plain())
		want := r.claimOne()
		r.at(start + 60)
		same(r, "settled", r.settle(store.Settle{Job: want.ID, Attempt: 1, To: store.Dead, Error: "broke"}), []bool{true})
		want.State, want.LastError, want.Since = store.Dead, "broke", start+60
		same(r, "row", r.job(want.ID), want)
		same(r, "queue", r.queue(), store.Queue{Name: "q", Dead: 1, Enqueued: 1, Claims: 1, Died: 1, NextClaimAt: store.None})
		r.at(start + 1_000_000)
		_, c := r.claimAll("q", "w", make([]store.Job, 1))
		same(r, "never again", c, store.Claim{Now: r.now()})
	}},
	{name: "QU14 an outcome for each: a hundred claimed, three of them stale", run: func(r *rig) {
		other := plain()
		other.Queue = "other"
		for range 50 {
			r.insert(plain(), other)
		}
		jobs := r.claim(100)
		others, _ := r.claimAll("other", "w", make([]store.Job, 100))
		jobs = append(jobs, others...) // a settle goes over queues
		must(r, "jobs handed out", len(jobs), 100)
		var settles []store.Settle
		want := make([]bool, len(jobs))
		for i, j := range jobs {
			s := settleTo(store.Done, j)
			if want[i] = i != 0 && i != 42 && i != 99; !want[i] {
				s.Attempt++
			}
			settles = append(settles, s)
		}
		same(r, "settled", r.settle(settles...), want)
		same(r, "left", idsOf(r.rows().Jobs), []store.JobID{jobs[99].ID, jobs[0].ID, jobs[42].ID})
	}},
	{name: "QU14 one by one: the second of two settles of a claim finds it ended", run: func(r *rig) {
		r.insert(plain(), plain())
		jobs := r.claim(2)
		same(r, "settled", r.settle(
			settleTo(store.Pending, jobs[0]), settleTo(store.Done, jobs[1]), settleTo(store.Done, jobs[0]), settleTo(store.Dead, jobs[1]),
		), []bool{true, true, false, false})
		same(r, "left", idsOf(r.rows().Jobs), []store.JobID{jobs[0].ID})
	}},
	{name: "QU8 the deadline becomes now and the extension, later or sooner", run: func(r *rig) {
		r.insert(plain())
		want := r.claimOne()
		for _, ms := range []int64{500, 20, 1 << 62, 0} {
			r.at(r.now() + 7)
			want.Deadline = r.now().Add(ms)
			same(r, "answer", r.extend(extendBy(ms, want)), []store.Instant{want.Deadline})
			same(r, "row", r.job(want.ID), want)
		}
	}},
	{name: "QU8 a late heartbeat does not steal back", run: func(r *rig) {
		r.insert(plain())
		first := r.claimOne()
		r.at(first.Deadline + 1)
		second := r.claimOne()
		same(r, "answer", r.extend(extendBy(500, first)), []store.Instant{store.None})
		same(r, "row", r.job(first.ID), second)
	}},
	{name: "QU8 one by one, an answer for each", run: func(r *rig) {
		r.insert(plain(), plain())
		jobs := r.claim(2)
		lost := extendBy(9, jobs[0])
		lost.Attempt++
		same(r, "answers", r.extend(extendBy(50, jobs[0]), lost, extendBy(70, jobs[1]), extendBy(60, jobs[0])),
			[]store.Instant{start + 50, store.None, start + 70, start + 60})
		same(r, "deadline", r.job(jobs[0].ID).Deadline, start+60)
	}},
	{name: "O4 an extended claim lapses after its new deadline", run: func(r *rig) {
		r.insert(plain())
		j := r.claimOne()
		r.extend(extendBy(10, j))
		r.at(start + 10)
		same(r, "at the deadline", len(r.claim(1)), 0)
		r.at(start + 11)
		same(r, "lapsed", r.claimOne().Attempts, 2)
	}},
}
