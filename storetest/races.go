package storetest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tickonce/tickonce/store"
)

var raceScenarios = []scenario{
	{name: "T3 ten tickers under one lease fire every boundary once", run: raceTickers},
	{name: "QU4 workers racing for jobs get each attempt once", run: raceWorkers},
	{name: "T3 of edits racing for one revision one wins", run: raceEdits},
	{name: "LK1 of owners racing for a lock one gets it", run: raceOwners},
	{name: "QU12 inserts racing with one key make one job", run: raceInserts},
	{name: "X9 of jobs that are to be alone racing workers have one at a time", run: raceAlone},
	{name: "X9 of ticks and triggers racing for a schedule that minds its live jobs one fires", run: raceTriggers},
}

// race runs n goroutines from one starting signal on and waits for their end.
func race(r *rig, n int, run func(ctx context.Context, i int) error) {
	r.Helper()
	var (
		gate = make(chan struct{})
		all  sync.WaitGroup
		errs = make([]error, n)
	)
	for i := range n {
		all.Go(func() {
			<-gate
			errs[i] = run(r.Context(), i)
		})
	}
	close(gate)
	all.Wait()
	for i, err := range errs {
		if err != nil {
			r.Errorf("goroutine %d: %v", i, err)
		}
	}
	if r.Failed() {
		r.FailNow()
	}
}

func raceTickers(r *rig) {
	const tickers, schedules, boundaries = 10, 5, 40
	lease := r.lead()
	var created []store.Schedule
	for i := range schedules {
		created = append(created, every(fmt.Sprintf("s%d", i), start))
	}
	r.create(created...)
	r.at(start + (boundaries-1)*1000)
	now := r.now()

	// A move may be stale, but then another ticker has moved the row, or is about
	// to: no ticker needs more ticks than there are boundaries, but for those.
	fired := make([][]store.Fire, tickers)
	race(r, tickers, func(ctx context.Context, i int) error {
		rows := make([]store.Schedule, schedules)
		for made, stale := 0, 0; made <= schedules*boundaries && stale < 100_000; {
			due, err := r.store.Due(ctx, rows)
			if err != nil || due.N == 0 {
				return err
			}
			t := store.Tick{By: lease, Now: due.Now}
			for k, row := range rows[:due.N] {
				t.Moves = append(t.Moves, move(row, 1))
				t.Fires = append(t.Fires, store.Fire{Move: int32(k), Boundary: row.Cursor})
			}
			held, err := r.store.Advance(ctx, &t)
			if err != nil {
				return err
			}
			if !held {
				return fmt.Errorf("the lease is not live")
			}
			before := len(fired[i])
			for _, f := range t.Fires {
				moved := t.Moves[f.Move].Outcome == store.Moved
				if moved != (f.Job != 0) {
					return fmt.Errorf("outcome %d with job %d", t.Moves[f.Move].Outcome, f.Job)
				}
				if moved {
					fired[i] = append(fired[i], f)
				}
			}
			if len(fired[i]) > before {
				made++
			} else {
				stale++
			}
		}
		return fmt.Errorf("still due after a tick for every boundary")
	})

	answered := map[store.JobID]store.Instant{}
	for _, fires := range fired {
		for _, f := range fires {
			if _, twice := answered[f.Job]; twice {
				r.Errorf("job %d was answered twice", f.Job)
			}
			answered[f.Job] = f.Boundary
		}
	}
	type boundary struct {
		schedule string
		at       store.Instant
	}
	times := map[boundary]int{}
	jobs := r.rows().Jobs
	for _, j := range jobs {
		times[boundary{j.Schedule, j.FireAt}]++
		same(r, "boundary answered for the job", answered[j.ID], j.FireAt)
	}
	same(r, "jobs", len(jobs), schedules*boundaries)
	same(r, "jobs answered", len(answered), schedules*boundaries)
	same(r, "boundaries fired", len(times), schedules*boundaries)
	for _, row := range r.rows().Schedules {
		same(r, "cursor of "+row.Name, row.Cursor, now+1000)
		same(r, "rev of "+row.Name, row.Rev, boundaries+1)
	}
}

func raceWorkers(r *rig) {
	const workers, jobs = 8, 120
	for range jobs {
		r.insert(plain())
	}
	type token struct {
		job     store.JobID
		attempt int32
	}
	claimed := make([][]token, workers)
	race(r, workers+2, func(ctx context.Context, i int) error {
		switch i {
		case workers:
			return watchCounters(ctx, r.store)
		case workers + 1:
			return heartbeats(ctx, r.store)
		}
		dst := make([]store.Job, 1+i%3)
		for {
			c, err := r.store.Claim(ctx, "q", fmt.Sprint("w", i), dst)
			if err != nil || c.N == 0 {
				return err
			}
			var settles []store.Settle
			for _, j := range dst[:c.N] {
				claimed[i] = append(claimed[i], token{j.ID, j.Attempts})
				to := store.Done
				if j.Attempts == 1 {
					to = store.Pending
				}
				settles = append(settles, settleTo(to, j))
			}
			out := make([]bool, len(settles))
			if _, err := r.store.Settle(ctx, settles, out); err != nil {
				return err
			}
			for k, ok := range out {
				if !ok {
					return fmt.Errorf("the claim of job %d was lost", settles[k].Job)
				}
			}
		}
	})
	times := map[token]int{}
	for _, tokens := range claimed {
		for _, t := range tokens {
			times[t]++
			same(r, "times that an attempt was handed out", times[t], 1)
		}
	}
	same(r, "attempts", len(times), 2*jobs)
	same(r, "queue", r.queue(), store.Queue{
		Name: "q", Enqueued: jobs, Claims: 2 * jobs, Retried: jobs, Done: jobs, NextClaimAt: store.None,
	})
}

// watchCounters checks that no read sees half of a step.
func watchCounters(ctx context.Context, s store.Store) error {
	dst := make([]store.Queue, 1)
	for range 200 {
		if _, _, err := s.Queues(ctx, "q", dst); err != nil {
			return err
		}
		if q := dst[0]; q.Enqueued != q.Len()+q.Done || q.Claims != q.Claimed+q.Retried+q.Done {
			return fmt.Errorf("counters of half a step: %+v", q)
		}
	}
	return nil
}

// heartbeats sends heartbeats with tokens that nobody was given.
func heartbeats(ctx context.Context, s store.Store) error {
	out := make([]store.Instant, 1)
	for i := range 200 {
		if _, err := s.Extend(ctx, []store.Extend{{Job: store.JobID(i), Attempt: 3, ForMS: 1}}, out); err != nil {
			return err
		}
		if out[0] != store.None {
			return fmt.Errorf("a token that nobody was given extended job %d", i)
		}
	}
	return nil
}

func raceEdits(r *rig) {
	const editors, edits = 8, 25
	r.create(every("s", start))
	won := make([]int, editors)
	race(r, editors, func(ctx context.Context, i int) error {
		dst := make([]store.Schedule, 1)
		for range edits {
			if _, _, err := r.store.Schedules(ctx, "s", dst); err != nil {
				return err
			}
			row := dst[0]
			row.Priority++
			c, err := r.store.Commit(ctx, &store.Batch{Puts: []store.Put{{Guard: guard(dst[0]), Row: row}}})
			if err != nil {
				return err
			}
			if c.Refusal.Why == store.NotRefused {
				won[i]++
			}
		}
		return nil
	})
	total := 0
	for _, n := range won {
		total += n
	}
	row := r.schedule("s")
	same(r, "edits in the row", int(row.Priority), total)
	same(r, "rev", row.Rev, store.Rev(1+total))
	same(r, "somebody won", total >= edits, true)
}

func raceOwners(r *rig) {
	const owners = 8
	var last store.Term
	for range 20 {
		grants := make([]store.Grant, owners)
		race(r, owners, func(ctx context.Context, i int) (err error) {
			grants[i], err = r.store.Acquire(ctx, "l", fmt.Sprint("o", i), 1000)
			return err
		})
		granted := 0
		for _, g := range grants {
			if g.OK {
				granted++
			}
			same(r, "lease answered", g.Lease, grants[0].Lease)
		}
		must(r, "granted", granted, 1)
		same(r, "a larger term", grants[0].Lease.Term > last, true)
		last = grants[0].Lease.Term
		same(r, "released", r.release(grants[0].Lease), true)
	}
}

func raceInserts(r *rig) {
	const clients = 8
	for round := range 10 {
		keyed := plain()
		keyed.Key = fmt.Sprint("k", round)
		answers := make([]store.Inserted, clients)
		race(r, clients, func(ctx context.Context, i int) error {
			c, err := r.store.Commit(ctx, &store.Batch{Inserts: []store.Insert{keyed}})
			if err != nil {
				return err
			}
			answers[i] = c.Inserts[0]
			return nil
		})
		written := 0
		for _, a := range answers {
			if !a.Existing {
				written++
			}
			same(r, "job", a.Job, answers[0].Job)
		}
		same(r, "written", written, 1)
	}
}

func raceAlone(r *rig) {
	const workers, jobs = 6, 40
	for i := range jobs {
		in := plain()
		in.From = &store.Source{Schedule: "s", FireAt: store.None, Alone: true}
		if i%2 > 0 {
			in.Queue = "other"
		}
		r.insert(in)
	}
	var held, done atomic.Int64
	var failed atomic.Bool
	race(r, workers, func(ctx context.Context, i int) (err error) {
		defer func() {
			if err != nil {
				failed.Store(true)
			}
		}()
		queue := []string{"q", "other"}[i%2]
		for dst := make([]store.Job, 1+i%3); done.Load() < jobs && !failed.Load(); {
			c, err := r.store.Claim(ctx, queue, fmt.Sprint("w", i), dst)
			if err != nil {
				return err
			}
			if c.N == 0 {
				runtime.Gosched() // a single-threaded host runs no other else
				continue
			}
			if n := held.Add(int64(c.N)); n > 1 {
				return fmt.Errorf("%d jobs are claimed, and each is to be alone", n)
			}
			held.Add(-1)
			out := make([]bool, 1)
			if _, err = r.store.Settle(ctx, []store.Settle{settleTo(store.Done, dst[0])}, out); err != nil {
				return err
			}
			if !out[0] {
				return fmt.Errorf("job %d was not settled", dst[0].ID)
			}
			done.Add(1)
		}
		return nil
	})
	same(r, "done", done.Load(), jobs)
}

func raceTriggers(r *rig) {
	const tickers, triggers, rounds = 4, 4, 15
	lease := r.lead()
	row := every("s", start)
	row.Overlap = store.SkipLive
	r.create(row)
	for range rounds {
		row := r.schedule("s")
		must(r, "live jobs before the race", row.Live, store.Live{})
		var fired atomic.Int64
		race(r, tickers+triggers, func(ctx context.Context, i int) error {
			if i < tickers {
				t := store.Tick{By: lease, Now: r.now(), Moves: []store.Move{move(row, 1)}, Fires: []store.Fire{{Boundary: row.Cursor}}}
				_, err := r.store.Advance(ctx, &t)
				if t.Moves[0].Outcome == store.Moved {
					fired.Add(1)
				}
				return err
			}
			g := guard(row)
			g.Live = &store.Live{}
			in := plain()
			in.From = &store.Source{Schedule: row.Name, ScheduleID: row.ID, FireAt: store.None, Alone: true}
			c, err := r.store.Commit(ctx, &store.Batch{Guards: []store.Guard{g}, Inserts: []store.Insert{in}})
			if err == nil && c.Refusal.Why == store.NotRefused {
				fired.Add(1)
			}
			return err
		})
		// A tick may find the row in the hands of somebody who then is refused:
		// nobody need fire, but who did was the only one.
		same(r, "at most one fired", fired.Load() <= 1, true)
		live := r.schedule("s").Live
		must(r, "live jobs", live, store.Live{Pending: int32(fired.Load())})
		for _, j := range r.claim(1) {
			r.settle(settleTo(store.Done, j))
		}
	}
}
