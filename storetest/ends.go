package storetest

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/tickonce/tickonce/store"
)

const (
	fullName  = 128  // bytes of a name, a key, a worker, an owner
	fullQueue = 146  // bytes of a queue, some of which are derived from names
	fullText  = 1024 // bytes of an error
)

// full is a text of n bytes, of letters of one to four bytes, that ends with
// last.
func full(n int, last string) string {
	letters := strings.Repeat("zé日𝄞", (n-len(last))/10)
	return letters + strings.Repeat("z", n-len(letters)-len(last)) + last
}

// binary is every byte, the zero in the middle too, n times over.
func binary(n int) []byte {
	var b []byte
	for c := range 256 {
		b = append(b, byte(c+128))
	}
	return bytes.Repeat(b, n)
}

// end is one end of the ranges of all fields.
type end struct {
	name     string
	instant  store.Instant
	schedule store.Schedule
	insert   store.Insert
	worker   string
	text     string // of an error
	ms       int64  // of a delay, an extension
}

var ends = []end{
	{
		name:    "least",
		instant: store.MinInstant,
		schedule: store.Schedule{
			Name: "!", Spec: "!", Queue: "!", Payload: []byte{0},
			Stamps:    store.Stamps{VisibilityMS: 1, BaseBackoffMS: 1, MaxAttempts: 1},
			ExpiresMS: 1, CatchUp: store.CatchUp{Max: 1},
			Anchor: store.MinInstant, Cursor: store.MinInstant, DueAt: store.MinInstant, SetAt: store.MinInstant,
			Priority: math.MinInt16, Hold: &store.Hold{Reason: "!", Since: store.MinInstant, Times: 1},
		},
		insert: store.Insert{
			Queue: "!", Payload: []byte{0}, Key: "!",
			Stamps:   store.Stamps{VisibilityMS: 1, BaseBackoffMS: 1, MaxAttempts: 1},
			Priority: math.MinInt16, RunAt: store.MinInstant, ExpiresMS: 1,
		},
		worker: "!", text: "!",
	},
	{
		name:    "greatest",
		instant: store.MaxInstant,
		schedule: store.Schedule{
			Name: full(fullName, "s"), Spec: full(fullName, "x"), Queue: full(fullQueue, "q"), Payload: binary(9),
			Stamps:    store.Stamps{VisibilityMS: math.MaxInt64, BaseBackoffMS: math.MaxInt32, MaxAttempts: math.MaxInt32},
			ExpiresMS: math.MaxInt64, CatchUp: store.CatchUp{WindowMS: math.MaxInt64, Max: 64, Newest: true},
			Anchor: store.MaxInstant, Cursor: store.MaxInstant, DueAt: store.MaxInstant, SetAt: store.MaxInstant,
			Priority: math.MaxInt16, Paused: store.PausedByRunOnce,
			Hold: &store.Hold{Reason: full(fullText, "h"), Since: store.MaxInstant, Times: math.MaxInt32},
		},
		insert: store.Insert{
			Queue: full(fullQueue, "q"), Payload: binary(9), Key: full(fullName, "k"),
			Stamps:   store.Stamps{VisibilityMS: math.MaxInt64, BaseBackoffMS: math.MaxInt32, MaxAttempts: math.MaxInt32},
			Priority: math.MaxInt16, RunAt: store.MaxInstant,
		},
		worker: full(fullName, "w"), text: full(fullText, "e"), ms: math.MaxInt64,
	},
}

// atBothEnds plays one conversation for each end, from start on.
func atBothEnds(play func(r *rig, e end)) func(r *rig) {
	return func(r *rig) {
		for _, e := range ends {
			r.at(start)
			play(r, e)
		}
	}
}

// readsSchedule checks that the row is read as it is, in all ways.
func (r *rig) readsSchedule(what string, want store.Schedule) {
	r.Helper()
	same(r, what+": read", r.schedule(want.Name), want)
	now := r.now()
	r.at(want.DueAt)
	due, _ := r.due(make([]store.Schedule, 1))
	same(r, what+": due", due, []store.Schedule{want})
	r.at(now)
}

// readsJob checks that the row is read as it is.
func (r *rig) readsJob(what string, want store.Job) {
	r.Helper()
	same(r, what+": read", r.jobs(store.Filter{Queue: want.Queue, From: want.ID}, make([]store.Job, 1)), []store.Job{want})
}

var endScenarios = []scenario{
	{name: "S1 every field of a schedule at both ends of its range: new, changed, replaced", run: atBothEnds(func(r *rig, e end) {
		want := e.schedule
		created := r.create(want)[0]
		want.ID, want.Rev = created.ID, 1
		same(r, e.name+": new", created, want)
		r.readsSchedule(e.name+": new", want)
		r.write(store.Batch{Removes: []store.Guard{guard(want)}})

		for _, id := range []store.ScheduleID{1, 0} { // changed, replaced
			before := every(e.schedule.Name, start)
			before.Payload = []byte("before")
			before = r.create(before)[0]
			r.at(start + 50)
			want := e.schedule
			want.ID = before.ID * id
			put := r.write(store.Batch{Puts: []store.Put{{Guard: guard(before), Row: want}}}).Puts[0]
			want.ID, want.Rev = put.ID, 1+store.Rev(id)
			same(r, e.name+": written over another", put, want)
			same(r, e.name+": same incarnation", put.ID == before.ID, id == 1)
			r.readsSchedule(e.name+": written over another", want)

			r.at(start + 90)
			after := every(e.schedule.Name, start)
			after.ID = put.ID * id
			again := r.write(store.Batch{Puts: []store.Put{{Guard: guard(put), Row: after}}}).Puts[0]
			after.ID, after.Rev = again.ID, 1+2*store.Rev(id)
			same(r, e.name+": written over by another", again, after)
			r.readsSchedule(e.name+": written over by another", after)
			r.write(store.Batch{Removes: []store.Guard{guard(after)}})
		}
	})},
	{name: "T3 every field of a move at both ends of its range", run: atBothEnds(func(r *rig, e end) {
		lease := r.lead()
		want := every(e.schedule.Name, start)
		want.Hold = &store.Hold{Reason: "before", Since: start, Times: 2}
		want = r.create(want)[0]
		r.at(start + 50)
		s := e.schedule
		r.tick(lease, []store.Move{{ID: want.ID, Rev: want.Rev, Cursor: s.Cursor, DueAt: s.DueAt, SetAt: s.SetAt, Hold: s.Hold}})
		want.Rev++
		want.Cursor, want.DueAt, want.SetAt, want.Hold = s.Cursor, s.DueAt, s.SetAt, s.Hold
		r.readsSchedule(e.name, want)
		r.write(store.Batch{Removes: []store.Guard{guard(want)}})
	})},
	{name: "T2 every field of a fired job at both ends of its range", run: atBothEnds(func(r *rig, e end) {
		lease := r.lead()
		row := r.create(e.schedule)[0]
		planned := min(e.instant, store.MaxInstant-1) // so that it does not expire at once
		tick, held := r.advance(store.Tick{
			By: lease, Now: planned, Moves: []store.Move{move(row, 1)}, Fires: []store.Fire{{Boundary: e.instant}},
		})
		must(r, "held", held, true)
		want := store.Job{
			ID: tick.Fires[0].Job, Queue: row.Queue, Payload: row.Payload,
			Schedule: row.Name, ScheduleID: row.ID, FireAt: e.instant, Stamps: row.Stamps,
			EnqueuedAt: start, RunAt: planned, ExpiresAt: planned + 1, Priority: row.Priority,
			State: store.Pending, Deadline: store.None, Since: store.None,
		}
		r.readsJob(e.name+": fired", want)
		r.at(planned)
		claimed, _ := r.claimAll(row.Queue, e.worker, make([]store.Job, 1))
		want.State, want.Since, want.Worker, want.Attempts, want.Deadline = store.Claimed, planned, e.worker, 1, planned.Add(row.Stamps.VisibilityMS)
		same(r, e.name+": handed out", claimed, []store.Job{want})
		r.readsJob(e.name+": handed out", want)
		r.settle(settleTo(store.Dead, want))
		again := r.write(store.Batch{Requeues: []store.JobRef{ref(want)}}).Requeues[0]
		r.readsJob(e.name+": requeued", store.Requeued(want, again, planned))
	})},
	{name: "QU1 every field of a job at both ends of its range: inserted, handed out, settled, requeued", run: atBothEnds(func(r *rig, e end) {
		r.at(e.instant)
		settle := func(s store.Settle) { same(r, e.name+": settled", r.settle(s), []bool{true}) }
		commit := func(s store.Settle) { r.write(store.Batch{Settles: []store.Settle{s}}) }
		for _, end := range []func(store.Settle){settle, commit} {
			in := e.insert
			want := store.Job{
				ID: r.insert(in)[0], Queue: in.Queue, Payload: in.Payload, Key: in.Key, FireAt: store.None, Stamps: in.Stamps,
				EnqueuedAt: e.instant, RunAt: e.instant, ExpiresAt: store.None, Priority: in.Priority,
				State: store.Pending, Deadline: store.None, Since: store.None,
			}
			if in.ExpiresMS != 0 {
				want.ExpiresAt = e.instant.Add(in.ExpiresMS)
			}
			r.readsJob(e.name+": inserted", want)
			claimed, _ := r.claimAll(in.Queue, e.worker, make([]store.Job, 1))
			want.State, want.Since, want.Worker, want.Attempts, want.Deadline = store.Claimed, e.instant, e.worker, 1, e.instant.Add(in.Stamps.VisibilityMS)
			same(r, e.name+": handed out", claimed, []store.Job{want})
			r.readsJob(e.name+": handed out", want)
			want.Deadline = e.instant.Add(e.ms)
			same(r, e.name+": extended", r.extend(extendBy(e.ms, want)), []store.Instant{want.Deadline})
			r.readsJob(e.name+": extended", want)

			retried := settleTo(store.Pending, want)
			retried.DelayMS, retried.Error = e.ms, e.text
			end(retried)
			want.State, want.Since, want.RunAt, want.LastError = store.Pending, store.None, e.instant.Add(e.ms), e.text
			r.readsJob(e.name+": waiting for its retry", want)
			r.write(store.Batch{Cancels: []store.JobRef{ref(want)}})

			want.ID = r.insert(in)[0]
			r.claimAll(in.Queue, e.worker, make([]store.Job, 1))
			dead := settleTo(store.Dead, want)
			dead.Error = e.text
			end(dead)
			want.State, want.RunAt, want.Since = store.Dead, e.instant, e.instant
			want.Deadline = e.instant.Add(in.Stamps.VisibilityMS)
			r.readsJob(e.name+": dead", want)
			again := r.write(store.Batch{Requeues: []store.JobRef{ref(want)}}).Requeues[0]
			want = store.Requeued(want, again, e.instant)
			r.readsJob(e.name+": requeued", want)
			r.write(store.Batch{Cancels: []store.JobRef{ref(want)}})
		}
	})},
	{name: "QU9 a job that is buried keeps every field at both ends of its range", run: atBothEnds(func(r *rig, e end) {
		in := e.insert
		in.RunAt, in.ExpiresMS = store.None, 1
		id := r.insert(in)[0]
		want := r.jobs(store.Filter{Queue: in.Queue, From: id}, make([]store.Job, 1))[0]
		r.at(start + 1)
		_, c := r.claimAll(in.Queue, e.worker, nil)
		same(r, e.name+": buried", c, store.Claim{Buried: 1, Now: r.now()})
		want.State, want.LastError, want.Since = store.Dead, store.ErrorExpired, start+1
		r.readsJob(e.name, want)
	})},
	{name: "LK1 every field of a lease at both ends of its range: acquired, renewed, in the way", run: func(r *rig) {
		for _, c := range []struct {
			lock, owner string
			ttl         int64
		}{{"!", "!", 1}, {full(fullName, "l"), full(fullName, "o"), 1 << 62}} {
			for _, now := range []store.Instant{store.MinInstant, start, store.MaxInstant - 1} {
				r.at(now)
				g := r.acquire(c.lock, c.owner, c.ttl)
				want := store.Lease{Lock: c.lock, Owner: c.owner, Term: g.Lease.Term, TTLMS: c.ttl, ExpiresAt: now.Add(c.ttl)}
				same(r, "acquired", g, store.Grant{OK: true, Lease: want, Now: now})
				same(r, "acquired again", r.acquire(c.lock, c.owner, 5), store.Grant{OK: true, Lease: want, Now: now})
				same(r, "in the way", r.acquire(c.lock, "another", 5), store.Grant{Lease: want, Now: now})
				same(r, "renewed", r.renew(want, c.ttl), store.Grant{OK: true, Lease: want, Now: now})
				same(r, "fences", r.tick(want, nil).By, want)
				same(r, "released", r.release(want), true)
			}
		}
	}},
	{name: "names of full length that differ in their last byte are different", run: func(r *rig) {
		a, b := full(fullName, "a"), full(fullName, "b")
		r.create(every(a, start), every(b, start))
		same(r, "schedules", namesOf(r.rows().Schedules), []string{a, b})

		in := plain()
		in.Key = a
		other := in
		other.Key = b
		r.insert(in, other)
		in.Queue, other.Queue = full(fullQueue, "a"), full(fullQueue, "b")
		in.Key, other.Key = "k", "k"
		r.insert(in, other)
		_, c := r.claimAll(in.Queue, "w", make([]store.Job, 2))
		same(r, "jobs of a queue", c.N, 1)

		lease := r.acquire(a, a, 100).Lease
		same(r, "another lock", r.acquire(b, b, 100).OK, true)
		same(r, "another owner", r.acquire(a, b, 100), store.Grant{Lease: lease, Now: start})
		foreign := lease
		foreign.Owner = b
		same(r, "another owner renews", r.renew(foreign, 100).OK, false)
		same(r, "another owner releases", r.release(foreign), false)
	}},
	{name: "what is counted grows beyond a byte: revs, terms, attempts, queues", run: beyondBytes},
}

// beyondBytes counts everything that a store counts to 300 at least.
func beyondBytes(r *rig) {
	const n = 300
	row := r.create(every("s", start))[0]
	lease := r.acquire("l", "a", 1).Lease
	in := plain()
	in.Queue, in.Stamps.MaxAttempts = "other", n+1
	r.insert(in)
	for i := range store.Rev(n) {
		r.at(r.now() + 101)
		row = r.write(store.Batch{Puts: []store.Put{{Guard: guard(row), Row: row}}}).Puts[0]
		must(r, "rev", row.Rev, i+2)
		g := r.acquire("l", "a", 1)
		must(r, "a larger term", g.Lease.Term > lease.Term, true)
		lease = g.Lease
		jobs, _ := r.claimAll("other", "w", make([]store.Job, 1))
		must(r, "attempts", jobs[0].Attempts, int32(i)+1)
	}
	same(r, "revs read", r.schedule("s").Rev, n+1)
	r.tick(lease, nil)

	r.insert(slices.Repeat([]store.Insert{plain()}, 7*n)...)
	jobs := r.claim(6 * n)
	must(r, "jobs handed out", len(jobs), 6*n)
	nth := func(i int) []store.Job { return jobs[i*n : (i+1)*n] }
	refs := func(jobs []store.Job) (all []store.JobRef) {
		for _, j := range jobs {
			all = append(all, ref(j))
		}
		return all
	}
	var settles []store.Settle
	for i, to := range []store.State{store.Done, store.Pending, store.Dead, store.Dead, store.Dead} {
		for _, j := range nth(i) {
			settles = append(settles, settleTo(to, j))
		}
	}
	r.write(store.Batch{Settles: settles})
	r.write(store.Batch{Cancels: refs(nth(1)), Requeues: refs(nth(2)), Purges: refs(nth(3))})
	same(r, "queue", r.queue(), store.Queue{
		Name: "q", Pending: 2 * n, Claimed: n, Dead: n, Enqueued: 8 * n, Claims: 6 * n, Retried: n,
		Done: n, Died: 3 * n, Cancelled: n, Requeued: n, Purged: n, NextClaimAt: r.now(),
	})
}
