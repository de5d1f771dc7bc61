package storetest

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// A bug is a naive store with one method that goes wrong.
type (
	unfenced     struct{ *Naive } // any lease will do
	unguarded    struct{ *Naive } // moves whatever the rev is
	lateSettle   struct{ *Naive } // takes a settle one millisecond after the deadline
	greedyExtend struct{ *Naive } // never shortens a claim
	keepsLeases  struct{ *Naive } // drops no lease but the acquired lock's
	revives      struct{ *Naive } // renews an expired lease that nobody took
	foreign      struct{ *Naive } // releases whatever the term is
	halfWritten  struct{ *Naive } // keeps the inserts of a refused batch
	keyless      struct{ *Naive } // answers every insert with a key as new
	exclusive    struct{ *Naive } // reads schedules from after the name
	unordered    struct{ *Naive } // inserts the jobs of a tick backwards
	deaf         struct{ *Naive } // does not look at its context
)

func (s unfenced) Advance(ctx context.Context, t *store.Tick) (bool, error) {
	for _, l := range s.rows.leases {
		if l.Live(s.now()) {
			t.By = l
		}
	}
	return s.Naive.Advance(ctx, t)
}

func (s unguarded) Advance(ctx context.Context, t *store.Tick) (bool, error) {
	for i := range t.Moves {
		if row := s.rows.scheduleByID(t.Moves[i].ID); row != nil {
			t.Moves[i].Rev = row.Rev
		}
	}
	return s.Naive.Advance(ctx, t)
}

func (s lateSettle) Settle(ctx context.Context, e []store.Settle, out []bool) (store.Instant, error) {
	for i := range s.rows.jobs {
		if j := &s.rows.jobs[i]; j.State == store.Claimed && j.Deadline+1 == s.now() {
			j.Deadline++
			defer func(id store.JobID) {
				if j := s.rows.job(id); j != nil {
					j.Deadline--
				}
			}(j.ID)
		}
	}
	return s.Naive.Settle(ctx, e, out)
}

func (s greedyExtend) Extend(ctx context.Context, e []store.Extend, out []store.Instant) (store.Instant, error) {
	longer := slices.Clone(e)
	for i := range longer {
		if j := s.rows.job(e[i].Job); j != nil && j.Deadline != store.None {
			longer[i].ForMS = max(e[i].ForMS, int64(j.Deadline-s.now()))
		}
	}
	return s.Naive.Extend(ctx, longer, out)
}

func (s keepsLeases) Acquire(ctx context.Context, lock, owner string, ttlMS int64) (store.Grant, error) {
	before := slices.Clone(s.rows.leases)
	g, err := s.Naive.Acquire(ctx, lock, owner, ttlMS)
	for _, l := range before {
		if s.rows.lease(l.Lock) == nil {
			s.rows.leases = append(s.rows.leases, l)
		}
	}
	return g, err
}

func (s revives) Renew(ctx context.Context, l store.Lease, ttlMS int64) (store.Grant, error) {
	if row := s.rows.lease(l.Lock); row != nil && row.Owner == l.Owner && row.Term == l.Term {
		row.TTLMS, row.ExpiresAt = 1, s.now().Add(1)
	}
	return s.Naive.Renew(ctx, l, ttlMS)
}

func (s foreign) Release(ctx context.Context, l store.Lease) (bool, error) {
	if row := s.rows.lease(l.Lock); row != nil && row.Owner == l.Owner {
		l.Term = row.Term
	}
	return s.Naive.Release(ctx, l)
}

func (s halfWritten) Commit(ctx context.Context, b *store.Batch) (store.Committed, error) {
	c, err := s.Naive.Commit(ctx, b)
	if err == nil && c.Refusal.Why != store.NotRefused {
		_, err = s.Naive.Commit(ctx, &store.Batch{Inserts: b.Inserts})
	}
	return c, err
}

func (s keyless) Commit(ctx context.Context, b *store.Batch) (store.Committed, error) {
	c, err := s.Naive.Commit(ctx, b)
	for i := range c.Inserts {
		c.Inserts[i].Existing = false
	}
	return c, err
}

func (s exclusive) Schedules(ctx context.Context, from string, dst []store.Schedule) (int, store.Instant, error) {
	if from != "" {
		from += "\x00"
	}
	return s.Naive.Schedules(ctx, from, dst)
}

func (s unordered) Advance(ctx context.Context, t *store.Tick) (bool, error) {
	slices.Reverse(t.Fires)
	held, err := s.Naive.Advance(ctx, t)
	slices.Reverse(t.Fires)
	return held, err
}

func (s deaf) Claim(ctx context.Context, queue, worker string, dst []store.Job) (store.Claim, error) {
	return s.Naive.Claim(context.WithoutCancel(ctx), queue, worker, dst)
}

func TestComparisonFindsPlantedBugs(t *testing.T) {
	for name, plant := range map[string]func(*Naive) store.Store{
		"unfenced":      func(s *Naive) store.Store { return unfenced{s} },
		"unguarded":     func(s *Naive) store.Store { return unguarded{s} },
		"late settle":   func(s *Naive) store.Store { return lateSettle{s} },
		"greedy extend": func(s *Naive) store.Store { return greedyExtend{s} },
		"keeps leases":  func(s *Naive) store.Store { return keepsLeases{s} },
		"revives":       func(s *Naive) store.Store { return revives{s} },
		"foreign":       func(s *Naive) store.Store { return foreign{s} },
		"half written":  func(s *Naive) store.Store { return halfWritten{s} },
		"keyless":       func(s *Naive) store.Store { return keyless{s} },
		"exclusive":     func(s *Naive) store.Store { return exclusive{s} },
		"unordered":     func(s *Naive) store.Store { return unordered{s} },
		"deaf":          func(s *Naive) store.Store { return deaf{s} },
	} {
		t.Run(name, func(t *testing.T) {
			found(t, plant)
		})
	}
}

// found checks that as many seeds as a short run has find what is planted.
func found(t *testing.T, plant func(*Naive) store.Store) {
	t.Helper()
	for seed := range uint64(seedsShort) {
		err := compare(t.Context(), seed, func(now func() store.Instant, limits store.Limits) store.Store {
			return plant(NewNaive(now, limits))
		})
		if err != nil {
			t.Logf("found by seed %d", seed)
			return
		}
	}
	t.Errorf("not found by %d seeds, as many as a short run has", seedsShort)
}

// The same seed makes the same calls, in text too, so that a report can be
// compared with that of another run.
func TestComparisonIsDeterministic(t *testing.T) {
	report := func() string {
		err := compare(t.Context(), 0, func(now func() store.Instant, limits store.Limits) store.Store {
			return halfWritten{NewNaive(now, limits)}
		})
		require.Error(t, err)
		return err.Error()
	}
	first := report()
	require.Contains(t, first, "seed 0, step ")
	require.Equal(t, first, report())
}

func TestDiceAreSplitmix64(t *testing.T) {
	d := dice(0)
	require.Equal(t, []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f}, []uint64{d.next(), d.next(), d.next()})
}

// Rows that break invariant 4, one by one.
func TestInvariant4IsChecked(t *testing.T) {
	good := func() rows {
		pending := store.Job{ID: 1, Queue: "q", State: store.Pending, Stamps: stamps, RunAt: start, ExpiresAt: store.None, Deadline: store.None, Since: store.None, Key: "k"}
		dead := pending
		dead.ID, dead.State, dead.Since = 2, store.Dead, start
		return rows{
			Schedules: []store.Schedule{{Name: "a"}, {Name: "b"}},
			Queues:    []store.Queue{{Name: "q", Pending: 1, Dead: 1, Enqueued: 3, Done: 1, NextClaimAt: start}},
			Jobs:      []store.Job{pending, dead},
		}
	}
	all := good()
	require.NoError(t, all.check())
	for name, spoil := range map[string]func(*rows){
		"a job lost":                func(all *rows) { all.Queues[0].Enqueued++ },
		"a state miscounted":        func(all *rows) { all.Queues[0].Pending, all.Queues[0].Dead = 2, 0 },
		"NextClaimAt late":          func(all *rows) { all.Queues[0].NextClaimAt++ },
		"NextClaimAt early":         func(all *rows) { all.Queues[0].NextClaimAt-- },
		"jobs out of order":         func(all *rows) { all.Jobs[0].ID = 3 },
		"too many attempts":         func(all *rows) { all.Jobs[1].Attempts = 4 },
		"dead without an instant":   func(all *rows) { all.Jobs[1].Since = store.None },
		"done, but kept":            func(all *rows) { all.Jobs[0].State = store.Done },
		"a job of another queue":    func(all *rows) { all.Jobs[1].Queue = "r" },
		"two live jobs with a key":  func(all *rows) { all.Jobs[1].State, all.Jobs[1].Since = store.Claimed, 0 },
		"schedules out of order":    func(all *rows) { slices.Reverse(all.Schedules) },
		"one schedule twice":        func(all *rows) { all.Schedules[1].Name = "a" },
		"one queue twice":           func(all *rows) { all.Queues = append(all.Queues, all.Queues[0]) },
		"a queue that nobody knows": func(all *rows) { all.Queues = nil },
	} {
		all := good()
		spoil(&all)
		require.Error(t, all.check(), name)
	}
}
