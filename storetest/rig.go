package storetest

import (
	"context"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/tickonce/tickonce/store"
)

// start is what a rig's clock says at first.
const start store.Instant = 1_000_000

// clock is what a store under test reads. It counts its readings.
type clock struct{ now, readings atomic.Int64 }

func (c *clock) read() store.Instant {
	c.readings.Add(1)
	return store.Instant(c.now.Load())
}

// rig is a store under test with its clock. Each of its methods makes one call
// and checks what holds of every call: no error, one reading of the clock, and
// the reading answered.
type rig struct {
	*testing.T
	store store.Store
	clock clock
}

func newRig(t *testing.T, open Open, limits store.Limits) *rig {
	t.Helper()
	r := &rig{T: t}
	r.at(start)
	r.store = open(t, r.clock.read, limits.WithDefaults())
	return r
}

// at sets the clock.
func (r *rig) at(now store.Instant) { r.clock.now.Store(int64(now)) }

func (r *rig) now() store.Instant { return store.Instant(r.clock.now.Load()) }

// once makes a call of the named method, which answers a reading of the clock
// where it has one to answer.
func (r *rig) once(method string, call func(ctx context.Context) (now store.Instant, err error)) {
	r.Helper()
	before := r.clock.readings.Load()
	now, err := call(r.Context())
	if err != nil {
		r.Fatalf("%s: %v", method, err)
	}
	same(r, method+": readings of the clock", r.clock.readings.Load()-before, 1)
	same(r, method+": now", now, r.now())
}

// same fails the test unless got is deeply equal to want, and reports it.
func same[V any](t testing.TB, what string, got, want V) bool {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return true
	}
	t.Errorf("%s:\n got %s\nwant %s", what, text(got), text(want))
	return false
}

// must is same for what the rest of a test stands on.
func must[V any](t testing.TB, what string, got, want V) {
	t.Helper()
	if !same(t, what, got, want) {
		t.FailNow()
	}
}

func (r *rig) schedules(from string, dst []store.Schedule) []store.Schedule {
	r.Helper()
	var n int
	r.once("Schedules", func(ctx context.Context) (now store.Instant, err error) {
		n, now, err = r.store.Schedules(ctx, from, dst)
		return now, err
	})
	return dst[:n]
}

func (r *rig) jobs(f store.Filter, dst []store.Job) []store.Job {
	r.Helper()
	var n int
	r.once("Jobs", func(ctx context.Context) (now store.Instant, err error) {
		n, now, err = r.store.Jobs(ctx, f, dst)
		return now, err
	})
	return dst[:n]
}

func (r *rig) queues(from string, dst []store.Queue) []store.Queue {
	r.Helper()
	var n int
	r.once("Queues", func(ctx context.Context) (now store.Instant, err error) {
		n, now, err = r.store.Queues(ctx, from, dst)
		return now, err
	})
	return dst[:n]
}

func (r *rig) due(dst []store.Schedule) ([]store.Schedule, store.Due) {
	r.Helper()
	var d store.Due
	r.once("Due", func(ctx context.Context) (now store.Instant, err error) {
		d, err = r.store.Due(ctx, dst)
		return d.Now, err
	})
	return dst[:d.N], d
}

// advance makes one tick and answers it with what the store set.
func (r *rig) advance(t store.Tick) (store.Tick, bool) {
	r.Helper()
	for i := range t.Moves { // what an earlier tick may have left there
		t.Moves[i].Outcome = store.Outcome(9)
	}
	for i := range t.Fires {
		t.Fires[i].Job = -9
	}
	var held bool
	r.once("Advance", func(ctx context.Context) (now store.Instant, err error) {
		held, err = r.store.Advance(ctx, &t)
		return r.now(), err
	})
	return t, held
}

// claimAll is Claim with its whole answer.
func (r *rig) claimAll(queue, worker string, dst []store.Job) ([]store.Job, store.Claim) {
	r.Helper()
	var c store.Claim
	r.once("Claim", func(ctx context.Context) (now store.Instant, err error) {
		c, err = r.store.Claim(ctx, queue, worker, dst)
		return c.Now, err
	})
	return dst[:c.N], c
}

// claim hands out up to n jobs of the queue "q" to the worker "w".
func (r *rig) claim(n int) []store.Job {
	r.Helper()
	jobs, _ := r.claimAll("q", "w", make([]store.Job, n))
	return jobs
}

// claimOne is claim where there has to be a job.
func (r *rig) claimOne() store.Job {
	r.Helper()
	jobs := r.claim(1)
	must(r, "jobs handed out", len(jobs), 1)
	return jobs[0]
}

func (r *rig) settle(s ...store.Settle) []bool {
	r.Helper()
	out := make([]bool, len(s))
	r.once("Settle", func(ctx context.Context) (store.Instant, error) { return r.store.Settle(ctx, s, out) })
	return out
}

func (r *rig) extend(e ...store.Extend) []store.Instant {
	r.Helper()
	out := make([]store.Instant, len(e))
	r.once("Extend", func(ctx context.Context) (store.Instant, error) { return r.store.Extend(ctx, e, out) })
	return out
}

func (r *rig) acquire(lock, owner string, ttlMS int64) store.Grant {
	r.Helper()
	var g store.Grant
	r.once("Acquire", func(ctx context.Context) (now store.Instant, err error) {
		g, err = r.store.Acquire(ctx, lock, owner, ttlMS)
		return g.Now, err
	})
	return g
}

func (r *rig) renew(l store.Lease, ttlMS int64) store.Grant {
	r.Helper()
	var g store.Grant
	r.once("Renew", func(ctx context.Context) (now store.Instant, err error) {
		g, err = r.store.Renew(ctx, l, ttlMS)
		return g.Now, err
	})
	return g
}

func (r *rig) release(l store.Lease) bool {
	r.Helper()
	var ok bool
	r.once("Release", func(ctx context.Context) (now store.Instant, err error) {
		ok, err = r.store.Release(ctx, l)
		return r.now(), err
	})
	return ok
}

func (r *rig) commit(b store.Batch) store.Committed {
	r.Helper()
	var c store.Committed
	r.once("Commit", func(ctx context.Context) (now store.Instant, err error) {
		c, err = r.store.Commit(ctx, &b)
		return c.Now, err
	})
	return c
}

// write commits a batch that must not be refused.
func (r *rig) write(b store.Batch) store.Committed {
	r.Helper()
	c := r.commit(b)
	must(r, "refusal", c.Refusal, store.Refusal{})
	must(r, "rows answered, one for each element",
		[]int{len(c.Puts), len(c.Requeues), len(c.Inserts)}, []int{len(b.Puts), len(b.Requeues), len(b.Inserts)})
	return c
}

// refused commits a batch that must be refused as said and change nothing.
func (r *rig) refused(b store.Batch, why store.Why, part store.Part, index int) {
	r.Helper()
	before := r.rows()
	c := r.commit(b)
	same(r, "refusal", c.Refusal, store.Refusal{Why: why, Part: part, Index: index})
	same(r, "rows answered by a refused batch", len(c.Puts)+len(c.Requeues)+len(c.Inserts), 0)
	same(r, "rows after a refused batch", r.rows(), before)
}

// create puts new schedules and answers them as written.
func (r *rig) create(rows ...store.Schedule) []store.Schedule {
	r.Helper()
	var b store.Batch
	for _, row := range rows {
		b.Puts = append(b.Puts, store.Put{Guard: store.Guard{Name: row.Name}, Row: row})
	}
	return r.write(b).Puts
}

// insert inserts new jobs and answers their ids.
func (r *rig) insert(inserts ...store.Insert) []store.JobID {
	r.Helper()
	var ids []store.JobID
	for _, in := range r.write(store.Batch{Inserts: inserts}).Inserts {
		if in.Existing {
			r.Fatalf("job %d existed before", in.Job)
		}
		ids = append(ids, in.Job)
	}
	return ids
}

// job reads the job of the queue "q" with the id.
func (r *rig) job(id store.JobID) store.Job {
	r.Helper()
	jobs := r.jobs(store.Filter{Queue: "q", From: id}, make([]store.Job, 1))
	must(r, "jobs found", len(jobs), 1)
	must(r, "id", jobs[0].ID, id)
	return jobs[0]
}

// queue reads the queue "q".
func (r *rig) queue() store.Queue {
	r.Helper()
	queues := r.queues("q", make([]store.Queue, 1))
	must(r, "queues found", len(queues), 1)
	must(r, "queue", queues[0].Name, "q")
	return queues[0]
}

func (r *rig) schedule(name string) store.Schedule {
	r.Helper()
	rows := r.schedules(name, make([]store.Schedule, 1))
	must(r, "schedules found", len(rows), 1)
	must(r, "schedule", rows[0].Name, name)
	return rows[0]
}

// stamps are those of the rig's jobs: a claim lasts 100 ms, three times.
var stamps = store.Stamps{VisibilityMS: 100, BaseBackoffMS: 10, MaxAttempts: 3}

// plain is a job for the queue "q", ready at once.
func plain() store.Insert {
	return store.Insert{Queue: "q", Payload: []byte("p"), Stamps: stamps, RunAt: store.None}
}

// every is a schedule of the name that fires into the queue "q" and is due at.
func every(name string, dueAt store.Instant) store.Schedule {
	return store.Schedule{
		Name: name, Spec: "@every 1s", Queue: "q", Payload: []byte(name),
		Stamps: stamps, CatchUp: store.CatchUp{Max: 64},
		Anchor: start, Cursor: dueAt, DueAt: dueAt, SetAt: start,
	}
}

// move is a move of the row by one second that fires as often as said.
func move(row store.Schedule, fires int32) store.Move {
	return store.Move{ID: row.ID, Rev: row.Rev, Cursor: row.Cursor + 1000, DueAt: row.Cursor + 1000, SetAt: start, Live: row.Live, Fires: fires}
}

func guard(row store.Schedule) store.Guard {
	return store.Guard{Name: row.Name, ID: row.ID, Rev: row.Rev}
}

func ref(j store.Job) store.JobRef { return store.JobRef{Queue: j.Queue, Job: j.ID} }

// settleTo ends the claim that j is in.
func settleTo(to store.State, j store.Job) store.Settle {
	return store.Settle{Job: j.ID, Attempt: j.Attempts, To: to}
}

func extendBy(ms int64, j store.Job) store.Extend {
	return store.Extend{Job: j.ID, Attempt: j.Attempts, ForMS: ms}
}

func idsOf(jobs []store.Job) []store.JobID {
	var ids []store.JobID
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

func namesOf(rows []store.Schedule) []string {
	var names []string
	for _, row := range rows {
		names = append(names, row.Name)
	}
	return names
}

// dead makes n dead jobs of the queue "q", which must have no other job ready.
func (r *rig) dead(n int) []store.Job {
	r.Helper()
	for range n {
		r.insert(plain())
	}
	jobs := r.claim(n)
	must(r, "jobs handed out", len(jobs), n)
	for i, j := range jobs {
		same(r, "settled", r.settle(settleTo(store.Dead, j)), []bool{true})
		jobs[i] = r.job(j.ID)
	}
	return jobs
}
