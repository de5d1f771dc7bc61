package storetest

import (
	"context"
	"fmt"
	"slices"

	"github.com/tickonce/tickonce/store"
)

// rows is all that can be read of a store.
type rows struct {
	Schedules []store.Schedule
	Queues    []store.Queue
	Jobs      []store.Job // queue by queue
	Histories []kept      // of the schedules
}

// kept is the history of a schedule.
type kept struct {
	Runs    []store.Run
	Skips   []store.SkipRange
	OfRuns  store.History // the answer, but for N and Now
	OfSkips store.History
}

// page is how many rows one call reads.
const page = 64

// readRows pages through all rows of a store.
func readRows(ctx context.Context, s store.Store) (all rows, err error) {
	all.Schedules, err = readAll(func(from string, dst []store.Schedule) (int, string, error) {
		n, _, err := s.Schedules(ctx, from, dst)
		return n, after(dst[:n], func(row store.Schedule) string { return row.Name }), err
	})
	if err != nil {
		return rows{}, err
	}
	all.Queues, err = readAll(func(from string, dst []store.Queue) (int, string, error) {
		n, _, err := s.Queues(ctx, from, dst)
		return n, after(dst[:n], func(q store.Queue) string { return q.Name }), err
	})
	if err != nil {
		return rows{}, err
	}
	for _, row := range all.Schedules {
		k, err := readHistory(ctx, s, row.Name)
		if err != nil {
			return rows{}, err
		}
		all.Histories = append(all.Histories, k)
	}
	for _, q := range all.Queues {
		jobs, err := readAll(func(from store.JobID, dst []store.Job) (next int, id store.JobID, err error) {
			n, _, err := s.Jobs(ctx, store.Filter{Queue: q.Name, From: from}, dst)
			if n > 0 {
				id = dst[n-1].ID + 1
			}
			return n, id, err
		})
		if err != nil {
			return rows{}, err
		}
		all.Jobs = append(all.Jobs, jobs...)
	}
	return all, nil
}

// readHistory pages through the history of a schedule.
func readHistory(ctx context.Context, s store.Store, schedule string) (k kept, err error) {
	k.Runs, k.OfRuns, err = readPast(ctx, schedule, s.Runs, func(r store.Run) store.EntryID { return r.ID })
	if err != nil {
		return kept{}, err
	}
	k.Skips, k.OfSkips, err = readPast(ctx, schedule, s.Skips, func(r store.SkipRange) store.EntryID { return r.ID })
	return k, err
}

func readPast[E any](
	ctx context.Context, schedule string, read func(context.Context, store.Page, []E) (store.History, error), id func(E) store.EntryID,
) (all []E, of store.History, err error) {
	for p := (store.Page{Schedule: schedule}); ; p.Before = id(all[len(all)-1]) {
		dst := make([]E, 3)
		if of, err = read(ctx, p, dst); err != nil {
			return nil, of, err
		}
		n := of.N
		all = append(all, dst[:n]...)
		of.N, of.Now = 0, 0
		if n < len(dst) {
			return all, of, nil
		}
	}
}

// readAll reads page after page; read answers how many rows it read and from
// where the next page starts.
func readAll[R any, K any](read func(from K, dst []R) (n int, next K, err error)) (all []R, err error) {
	var from K
	for {
		dst := make([]R, page)
		n, next, err := read(from, dst)
		if err != nil {
			return nil, err
		}
		all = append(all, dst[:n]...)
		if n < page {
			return all, nil
		}
		from = next
	}
}

// after is the least name after that of the last row.
func after[R any](page []R, name func(R) string) string {
	if len(page) == 0 {
		return ""
	}
	return name(page[len(page)-1]) + "\x00"
}

// check returns the first fault in what has to hold of any rows (invariant 4).
func (all *rows) check() error {
	live, alone := map[string]store.Live{}, map[string]store.JobID{}
	for _, j := range all.Jobs {
		if !j.Counts() {
			continue
		}
		n := live[j.Schedule]
		switch j.State {
		case store.Pending:
			n.Pending++
		case store.Claimed:
			n.Claimed++
			if other := alone[j.Schedule]; j.Alone && other != 0 {
				return fmt.Errorf("jobs %d and %d of schedule %q are claimed, and each alone (X9)", other, j.ID, j.Schedule)
			} else if j.Alone {
				alone[j.Schedule] = j.ID
			}
		}
		live[j.Schedule] = n
	}
	for i, row := range all.Schedules {
		if i > 0 && row.Name <= all.Schedules[i-1].Name {
			return fmt.Errorf("schedule %q comes after %q", row.Name, all.Schedules[i-1].Name)
		}
		if row.Live != live[row.Name] {
			return fmt.Errorf("schedule %q: live jobs %+v, counted %+v", row.Name, live[row.Name], row.Live)
		}
	}
	for i, q := range all.Queues {
		if i > 0 && q.Name <= all.Queues[i-1].Name {
			return fmt.Errorf("queue %q comes after %q", q.Name, all.Queues[i-1].Name)
		}
	}
	kept := all.Jobs
	for _, q := range all.Queues {
		n := 0
		for n < len(kept) && kept[n].Queue == q.Name {
			n++
		}
		if err := checkQueue(q, kept[:n], live); err != nil {
			return fmt.Errorf("queue %q: %w", q.Name, err)
		}
		kept = kept[n:]
	}
	if len(kept) > 0 {
		return fmt.Errorf("job %d is read from another queue than its own", kept[0].ID)
	}
	return nil
}

// checkQueue checks a queue against the jobs that it keeps. Live counts those of
// each schedule's name, in all queues.
func checkQueue(q store.Queue, jobs []store.Job, live map[string]store.Live) error {
	counted := q
	counted.Pending, counted.Claimed, counted.Dead, counted.NextClaimAt, counted.Waiting = 0, 0, 0, store.None, 0
	var keys []string
	for i, j := range jobs {
		if i > 0 && j.ID <= jobs[i-1].ID {
			return fmt.Errorf("job %d comes after job %d", j.ID, jobs[i-1].ID)
		}
		if j.Attempts > j.Stamps.MaxAttempts {
			return fmt.Errorf("job %d: %d attempts of at most %d", j.ID, j.Attempts, j.Stamps.MaxAttempts)
		}
		if (j.State == store.Pending) != (j.Since == store.None) {
			return fmt.Errorf("job %d: state %d, since %d", j.ID, j.State, j.Since)
		}
		if j.Key != "" && j.State != store.Dead {
			if slices.Contains(keys, j.Key) {
				return fmt.Errorf("job %d: another live job has the key %q (QU12)", j.ID, j.Key)
			}
			keys = append(keys, j.Key)
		}
		claims := live[j.Schedule].Claimed
		switch j.State {
		case store.Pending:
			counted.Pending++
		case store.Claimed:
			counted.Claimed++
			if j.Counts() {
				claims-- // its own
			}
		case store.Dead:
			counted.Dead++
		default:
			return fmt.Errorf("job %d: state %d", j.ID, j.State)
		}
		counted.NextClaimAt = min(counted.NextClaimAt, j.DoomedAt())
		if !j.Alone || claims == 0 {
			counted.NextClaimAt = min(counted.NextClaimAt, j.ReadyAt())
		} else if j.ReadyAt() < j.DoomedAt() {
			counted.Waiting++
		}
	}
	if q != counted {
		return fmt.Errorf("counters that the jobs do not bear out:\n got %+v\nwant %+v", q, counted)
	}
	if sum := q.Len() + q.Done + q.Cancelled + q.Requeued + q.Purged; q.Enqueued != sum {
		return fmt.Errorf("enqueued %d, but %d kept, done, cancelled, requeued or purged: %+v", q.Enqueued, sum, q)
	}
	return nil
}

// rows reads everything.
func (r *rig) rows() rows {
	r.Helper()
	all, err := readRows(r.Context(), r.store)
	if err != nil {
		r.Fatalf("reading all rows: %v", err)
	}
	return all
}

// audit checks what has to hold of the rows after every scenario.
func (r *rig) audit() {
	r.Helper()
	all := r.rows()
	if err := all.check(); err != nil {
		r.Error(err)
	}
}
