package storetest

import (
	"bytes"
	"context"
	"time"

	"github.com/tickonce/tickonce/store"
)

var callScenarios = []scenario{
	{name: "a canceled context: an error and nothing done", run: func(r *rig) {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		callsOfEndedContext(r, ctx)
	}},
	{name: "a context past its deadline: an error and nothing done", run: func(r *rig) {
		ctx, cancel := context.WithDeadline(r.Context(), time.Unix(0, 0))
		defer cancel()
		callsOfEndedContext(r, ctx)
	}},
	{name: "calls on an empty store", run: func(r *rig) {
		same(r, "schedules", len(r.schedules("", make([]store.Schedule, 1))), 0)
		same(r, "queues", len(r.queues("", make([]store.Queue, 1))), 0)
		same(r, "jobs", len(r.jobs(store.Filter{Queue: "q"}, make([]store.Job, 1))), 0)
		_, due := r.due(make([]store.Schedule, 1))
		same(r, "due", due, store.Due{Now: start, Next: store.None})
		_, claim := r.claimAll("q", "w", make([]store.Job, 1))
		same(r, "claim", claim, store.Claim{Now: start})
		same(r, "settled", r.settle(), []bool{})
		same(r, "settled", r.settle(store.Settle{Job: 1, Attempt: 1, To: store.Done}), []bool{false})
		same(r, "extended", r.extend(), []store.Instant{})
		same(r, "extended", r.extend(store.Extend{Job: 1, Attempt: 1, ForMS: 1}), []store.Instant{store.None})
		same(r, "renewed", r.renew(store.Lease{Lock: "l", Owner: "a", Term: 1}, 10), store.Grant{Now: start})
		same(r, "released", r.release(store.Lease{Lock: "l", Owner: "a", Term: 1}), false)
		r.write(store.Batch{})
	}},
	{name: "the clock may step between any two calls", run: func(r *rig) {
		for _, now := range []store.Instant{start + 1, start - 1, 0, -1, store.MinInstant, store.MaxInstant, start} {
			r.at(now) // each call checks that it answers this
			r.schedules("", nil)
			r.queues("", nil)
			r.jobs(store.Filter{Queue: "q"}, nil)
			r.due(nil)
			r.claim(0)
			r.settle()
			r.extend()
			r.acquire("l", "a", 10)
			r.renew(store.Lease{}, 10)
			r.commit(store.Batch{})
		}
	}},
	{name: "payloads come back byte by byte, and an empty one as nil", run: func(r *rig) {
		binary := make([]byte, 256)
		for i := range binary {
			binary[i] = byte(i)
		}
		lease := r.acquire("l", "a", 1000).Lease
		for _, given := range [][]byte{nil, {}, {0}, binary, bytes.Repeat([]byte("x"), 1<<20)} {
			want := given
			if len(given) == 0 {
				want = nil
			}
			row := every("s", start)
			row.Payload = given
			row = r.create(row)[0]
			same(r, "schedule written", row.Payload, want)
			same(r, "schedule read", r.schedule("s").Payload, want)
			due, _ := r.due(make([]store.Schedule, 1))
			must(r, "due", len(due), 1)
			same(r, "schedule due", due[0].Payload, want)

			in := plain()
			in.Payload = given
			ids := r.insert(in)
			_, held := r.advance(store.Tick{By: lease, Now: start, Moves: []store.Move{move(row, 1)}, Fires: []store.Fire{{Boundary: start}}})
			must(r, "held", held, true)
			same(r, "job read", r.job(ids[0]).Payload, want)
			jobs := r.claim(3)
			must(r, "jobs handed out", len(jobs), 2)
			for _, j := range jobs {
				same(r, "job handed out", j.Payload, want)
			}
			same(r, "settled", r.settle(settleTo(store.Dead, jobs[0]), settleTo(store.Done, jobs[1])), []bool{true, true})
			again := r.write(store.Batch{Requeues: []store.JobRef{ref(jobs[0])}}).Requeues
			same(r, "job requeued", r.job(again[0]).Payload, want)
			r.write(store.Batch{
				Removes: []store.Guard{guard(r.schedule("s"))},
				Cancels: []store.JobRef{{Queue: "q", Job: again[0]}},
			})
		}
	}},
	{name: "slices belong to the caller again after the call, but for payloads", run: func(r *rig) {
		b := store.Batch{
			Puts:    []store.Put{{Guard: store.Guard{Name: "s"}, Row: every("s", start)}},
			Inserts: []store.Insert{plain(), plain()},
		}
		r.write(b)
		before := r.rows()
		clear(b.Puts)
		clear(b.Inserts)
		same(r, "rows", r.rows(), before)
		jobs := r.claim(2)
		clear(jobs)
		read := r.schedules("", make([]store.Schedule, 1))
		clear(read)
		same(r, "schedules", r.rows().Schedules, before.Schedules)
		same(r, "jobs", len(r.rows().Jobs), 2)
		same(r, "worker", r.rows().Jobs[0].Worker, "w")
	}},
}

// callsOfEndedContext makes each call with a context that has ended: all of
// them would change something.
func callsOfEndedContext(r *rig, ctx context.Context) {
	lease := r.acquire("l", "a", 1000).Lease
	row := r.create(every("s", start))[0]
	r.insert(plain(), plain())
	claimed := r.claimOne()
	before := r.rows()

	var err error
	fails := func(method string) {
		r.Helper()
		if err == nil {
			r.Errorf("%s with an ended context: no error", method)
		}
	}
	_, _, err = r.store.Schedules(ctx, "", make([]store.Schedule, 1))
	fails("Schedules")
	_, _, err = r.store.Jobs(ctx, store.Filter{Queue: "q"}, make([]store.Job, 1))
	fails("Jobs")
	_, _, err = r.store.Queues(ctx, "", make([]store.Queue, 1))
	fails("Queues")
	_, err = r.store.Due(ctx, make([]store.Schedule, 1))
	fails("Due")
	tick := store.Tick{By: lease, Now: start, Moves: []store.Move{move(row, 1)}, Fires: []store.Fire{{Boundary: start}}}
	_, err = r.store.Advance(ctx, &tick)
	fails("Advance")
	_, err = r.store.Claim(ctx, "q", "w", make([]store.Job, 1))
	fails("Claim")
	_, err = r.store.Settle(ctx, []store.Settle{settleTo(store.Done, claimed)}, make([]bool, 1))
	fails("Settle")
	_, err = r.store.Extend(ctx, []store.Extend{extendBy(500, claimed)}, make([]store.Instant, 1))
	fails("Extend")
	_, err = r.store.Acquire(ctx, "free", "b", 1000)
	fails("Acquire")
	_, err = r.store.Renew(ctx, lease, 5000)
	fails("Renew")
	_, err = r.store.Release(ctx, lease)
	fails("Release")
	_, err = r.store.Commit(ctx, &store.Batch{Inserts: []store.Insert{plain()}})
	fails("Commit")

	same(r, "rows", r.rows(), before)
	same(r, "lease", r.acquire("l", "a", 1).Lease, lease)
	same(r, "the free lock is granted to another", r.acquire("free", "c", 1000).OK, true)
}
