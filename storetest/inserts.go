package storetest

import "github.com/tickonce/tickonce/store"

var insertScenarios = []scenario{
	{name: "QU1 an insert is one pending job with what it says", run: func(r *rig) {
		in := store.Insert{
			Queue: "q", Payload: []byte("p"), Key: "k", Priority: -7,
			Stamps: store.Stamps{VisibilityMS: 2, BaseBackoffMS: 3, MaxAttempts: 4},
			RunAt:  store.None, DelayMS: 5, ExpiresMS: 6,
		}
		id := r.insert(in)[0]
		same(r, "id is positive", id > 0, true)
		same(r, "row", r.job(id), store.Job{
			ID: id, Queue: "q", Payload: []byte("p"), Key: "k", FireAt: store.None, Stamps: in.Stamps,
			EnqueuedAt: start, RunAt: start + 5, ExpiresAt: start + 11, Priority: -7,
			State: store.Pending, Deadline: store.None, Since: store.None,
		})
		same(r, "queue", r.queue(), store.Queue{Name: "q", Pending: 1, Enqueued: 1, NextClaimAt: start + 5})
	}},
	{name: "QU1 ready at its run-at or now, or after its delay; it expires after that", run: func(r *rig) {
		for _, c := range []struct {
			name      string
			in        store.Insert
			ready     store.Instant
			expiresAt store.Instant
		}{
			{"no run-at, no delay", store.Insert{RunAt: store.None}, start, store.None},
			{"a delay", store.Insert{RunAt: store.None, DelayMS: 9}, start + 9, store.None},
			{"a delay and an expiry", store.Insert{RunAt: store.None, DelayMS: 9, ExpiresMS: 1}, start + 9, start + 10},
			{"a run-at ahead", store.Insert{RunAt: start + 3}, start + 3, store.None},
			{"a run-at ahead and an expiry", store.Insert{RunAt: start + 3, ExpiresMS: 4}, start + 3, start + 7},
			{"a run-at now", store.Insert{RunAt: start}, start, store.None},
			{"a run-at in the past is now", store.Insert{RunAt: start - 1, ExpiresMS: 4}, start, start + 4},
			{"the zero run-at is the epoch", store.Insert{}, start, store.None},
			{"the least run-at", store.Insert{RunAt: store.MinInstant}, start, store.None},
			{"the greatest run-at", store.Insert{RunAt: store.MaxInstant, ExpiresMS: 1}, store.MaxInstant, store.MaxInstant},
			{"a delay without end", store.Insert{RunAt: store.None, DelayMS: 1<<63 - 1}, store.MaxInstant, store.None},
			{"an expiry without end", store.Insert{RunAt: store.None, ExpiresMS: 1<<63 - 1}, start, store.MaxInstant},
		} {
			c.in.Queue, c.in.Stamps = "q", stamps
			j := r.job(r.insert(c.in)[0])
			same(r, c.name+": run-at", j.RunAt, c.ready)
			same(r, c.name+": expires at", j.ExpiresAt, c.expiresAt)
			same(r, c.name+": enqueued at", j.EnqueuedAt, start)
		}
	}},
	{name: "QU12 a live job of the queue with the key is answered, and nothing written", run: func(r *rig) {
		keyed := plain()
		keyed.Key = "k"
		id := r.insert(keyed)[0]
		existing := func(what string) {
			r.Helper()
			before := r.rows()
			again := keyed
			again.Payload, again.Priority = []byte("other"), 9
			c := r.write(store.Batch{Inserts: []store.Insert{again}})
			same(r, what, c.Inserts, []store.Inserted{{Job: id, Existing: true}})
			same(r, what+": rows", r.rows(), before)
		}
		existing("pending")
		j := r.claimOne()
		existing("claimed")
		r.at(j.Deadline + 1)
		existing("lapsed")
		j = r.claimOne()
		r.settle(settleTo(store.Pending, j))
		existing("waiting for its retry")
		j = r.claimOne()
		r.at(j.Deadline + 1)
		existing("doomed, but not yet buried")
		r.claim(0)
		fresh := r.insert(keyed)[0]
		same(r, "dead: a new job", fresh > id, true)

		another := keyed
		another.Queue = "other"
		r.insert(another)
		another = keyed
		another.Key = "K"
		r.insert(another)
		another.Key = ""
		r.insert(another, another)
		id = fresh
		existing("beside jobs of other queues, other keys and none")
	}},
	{name: "QU12 the key is free again once its job has ended", run: func(r *rig) {
		keyed := plain()
		keyed.Key = "k"
		for _, end := range []func(j store.Job){
			func(j store.Job) { r.settle(settleTo(store.Done, j)) },
			func(j store.Job) { r.settle(settleTo(store.Dead, j)) },
			func(j store.Job) { r.write(store.Batch{Cancels: []store.JobRef{ref(j)}}) },
			func(j store.Job) {
				r.settle(settleTo(store.Dead, j))
				again := r.write(store.Batch{Requeues: []store.JobRef{ref(j)}}).Requeues[0] // without the key
				r.write(store.Batch{Cancels: []store.JobRef{{Queue: "q", Job: again}}})
			},
			func(j store.Job) { r.at(r.now() + 200); r.settle(settleTo(store.Done, r.claimOne())) },
		} {
			id := r.insert(keyed)[0]
			j := r.claimOne()
			same(r, "id", j.ID, id)
			end(j)
		}
		r.insert(keyed)
	}},
	{name: "QU12 two inserts with one key in a batch: one job", run: func(r *rig) {
		keyed := plain()
		keyed.Key = "k"
		c := r.write(store.Batch{Inserts: []store.Insert{keyed, plain(), keyed}})
		same(r, "first", c.Inserts[0].Existing, false)
		same(r, "second", c.Inserts[2], store.Inserted{Job: c.Inserts[0].Job, Existing: true})
		same(r, "jobs", r.queue().Pending, 2)
	}},
	{name: "QU12 a key that the batch itself frees", run: func(r *rig) {
		keyed := plain()
		keyed.Key = "k"
		id := r.insert(keyed)[0]
		j := r.claimOne()
		c := r.write(store.Batch{Settles: []store.Settle{settleTo(store.Pending, j)}, Inserts: []store.Insert{keyed}})
		same(r, "still live", c.Inserts, []store.Inserted{{Job: id, Existing: true}})
		j = r.claimOne()
		c = r.write(store.Batch{Settles: []store.Settle{settleTo(store.Done, j)}, Inserts: []store.Insert{keyed}})
		same(r, "done", c.Inserts[0].Existing, false)
		c = r.write(store.Batch{Cancels: []store.JobRef{{Queue: "q", Job: c.Inserts[0].Job}}, Inserts: []store.Insert{keyed}})
		same(r, "cancelled", c.Inserts[0].Existing, false)
	}},
	{name: "LIMIT as many jobs as the limit, dead ones included, for each queue", limits: store.Limits{QueueLength: 3}, run: func(r *rig) {
		other := plain()
		other.Queue = "other"
		r.refused(store.Batch{Inserts: []store.Insert{plain(), other, plain(), plain(), plain()}}, store.QueueFull, store.Inserts, 4)
		r.dead(1)
		r.insert(plain(), plain())
		r.claim(1)
		r.refused(store.Batch{Inserts: []store.Insert{other, plain()}}, store.QueueFull, store.Inserts, 1)
		r.insert(other, other, other)
		r.refused(store.Batch{Inserts: []store.Insert{other}}, store.QueueFull, store.Inserts, 0)
	}},
	{name: "LIMIT the room that a batch makes is there for its inserts", limits: store.Limits{QueueLength: 2}, run: func(r *rig) {
		keyed := plain()
		keyed.Key = "k"
		r.insert(keyed, plain())
		c := r.write(store.Batch{Inserts: []store.Insert{keyed}})
		same(r, "an existing job needs none", c.Inserts[0].Existing, true)
		j := r.claimOne()
		for _, to := range []store.State{store.Pending, store.Dead} {
			r.refused(store.Batch{Settles: []store.Settle{settleTo(to, j)}, Inserts: []store.Insert{plain()}}, store.QueueFull, store.Inserts, 0)
		}
		done := store.Batch{Settles: []store.Settle{settleTo(store.Done, j)}, Inserts: []store.Insert{plain(), plain()}}
		r.refused(done, store.QueueFull, store.Inserts, 1)
		done.Inserts = done.Inserts[:1]
		id := r.write(done).Inserts[0].Job
		r.write(store.Batch{Cancels: []store.JobRef{{Queue: "q", Job: id}}, Inserts: []store.Insert{plain()}})
		j = r.claimOne()
		r.settle(settleTo(store.Dead, j))
		r.refused(store.Batch{Requeues: []store.JobRef{ref(j)}, Inserts: []store.Insert{plain()}}, store.QueueFull, store.Inserts, 0)
		r.write(store.Batch{Purges: []store.JobRef{ref(j)}, Inserts: []store.Insert{plain()}})
		j = r.claimOne()
		r.settle(settleTo(store.Dead, j))
		r.write(store.Batch{Requeues: []store.JobRef{ref(j)}}) // takes the dead job's place
	}},
}
