package memengine

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

var ctx = context.Background()

// clock is a store's clock that a test sets.
type clock struct{ now store.Instant }

func (c *clock) read() store.Instant { return c.now }

var stamps = store.Stamps{VisibilityMS: 50, BaseBackoffMS: 10, MaxAttempts: 3}

func row(name string, due store.Instant) store.Schedule {
	return store.Schedule{
		Name: name, Spec: "@every 1s", Queue: "q", Payload: []byte("p"),
		Stamps: stamps, CatchUp: store.CatchUp{Max: 64}, Cursor: due, DueAt: due,
	}
}

// put writes schedules that are not there yet.
func put(t testing.TB, s *Store, rows ...store.Schedule) []store.Schedule {
	t.Helper()
	var b store.Batch
	for _, r := range rows {
		b.Puts = append(b.Puts, store.Put{Guard: store.Guard{Name: r.Name}, Row: r})
	}
	return commit(t, s, b).Puts
}

func commit(t testing.TB, s *Store, b store.Batch) store.Committed {
	t.Helper()
	c, err := s.Commit(ctx, &b)
	require.NoError(t, err)
	require.Zero(t, c.Refusal)
	return c
}

func snapshot(t testing.TB, s *Store) string {
	t.Helper()
	b, err := s.Snapshot()
	require.NoError(t, err)
	return string(b)
}

// workload makes calls of every kind but renewals, chosen at random, and moves
// the clock both ways. The same seed makes the same calls.
type workload struct {
	s     *Store
	clock *clock
	rng   *rand.Rand
	lead  store.Lease
	held  []store.Job
}

func newWorkload(s *Store, c *clock, seed uint64) *workload {
	return &workload{s: s, clock: c, rng: rand.New(rand.NewPCG(seed, 1))}
}

func (w *workload) name(prefix string, n int) string { return prefix + strconv.Itoa(w.rng.IntN(n)) }

// plan moves the clock and chooses the next call, which changes the store at
// most once. It may be made again and then asks for the same.
func (w *workload) plan() func() error {
	s, rng := w.s, w.rng
	switch w.clock.now += store.Instant(rng.IntN(40)); rng.IntN(30) {
	case 0:
		w.clock.now -= store.Instant(rng.IntN(200))
	case 1:
		w.clock.now += store.Instant(rng.IntN(400))
	}
	switch rng.IntN(12) {
	case 0, 1: // schedules
		var b store.Batch
		for range 1 + rng.IntN(4) {
			r := row(w.name("s", 30), w.clock.now+store.Instant(rng.IntN(100)))
			r.Queue = w.name("q", 3)
			r.ExpiresMS = int64(rng.IntN(3) * 40)
			r.Overlap = store.Overlap(rng.IntN(3))
			if rng.IntN(9) == 0 {
				r.DueAt = store.None
			}
			g := store.Guard{Name: r.Name}
			if old := s.named(r.Name); old != nil {
				g.ID, g.Rev = old.ID, old.Rev
				if rng.IntN(2) == 0 {
					r.ID = old.ID
				}
			}
			if g.ID != 0 && rng.IntN(3) == 0 {
				b.Removes = append(b.Removes, g)
			} else {
				b.Puts = append(b.Puts, store.Put{Guard: g, Row: r})
			}
		}
		return func() error { _, err := s.Commit(ctx, &b); return err }
	case 2: // jobs
		var b store.Batch
		for range 1 + rng.IntN(6) {
			in := store.Insert{
				Queue: w.name("q", 3), Stamps: stamps, RunAt: store.None,
				DelayMS: int64(rng.IntN(2) * rng.IntN(90)), Priority: int16(rng.IntN(3)), ExpiresMS: int64(rng.IntN(2) * rng.IntN(300)),
			}
			if rng.IntN(3) == 0 {
				in.Key = w.name("k", 5)
			}
			if rng.IntN(2) == 0 { // of a few names, so that they wait for each other; "gone" never has a row
				in.From = &store.Source{Schedule: []string{"s0", "s1", "gone"}[rng.IntN(3)], FireAt: w.clock.now, Alone: rng.IntN(4) > 0}
				if old := s.named(in.From.Schedule); old != nil {
					in.From.ScheduleID = old.ID
				}
				if rng.IntN(8) == 0 {
					in.From.Origin = 1
				}
			}
			b.Inserts = append(b.Inserts, in)
		}
		return func() error { _, err := s.Commit(ctx, &b); return err }
	case 3: // single jobs
		var b store.Batch
		for j := range s.jobs.from(int64(1 + rng.IntN(int(s.last.job)+1))) {
			ref := store.JobRef{Queue: j.Queue, Job: j.ID}
			switch {
			case j.State != store.Dead:
				b.Cancels = append(b.Cancels, ref)
			case rng.IntN(2) == 0:
				b.Requeues = append(b.Requeues, ref)
			default:
				b.Purges = append(b.Purges, ref)
			}
			if rng.IntN(2) == 0 {
				break
			}
		}
		return func() error { _, err := s.Commit(ctx, &b); return err }
	case 4: // the lease of the ticks
		owner := w.name("o", 2)
		return func() error {
			g, err := s.Acquire(ctx, store.SchedulerLock, owner, 100)
			if g.OK {
				w.lead = g.Lease
			}
			return err
		}
	case 5, 10, 11: // a tick
		return func() error {
			rows := make([]store.Schedule, 8)
			d, err := s.Due(ctx, rows)
			if err != nil {
				return err
			}
			tick := store.Tick{By: w.lead, Now: d.Now}
			for i, r := range rows[:d.N] {
				n := i % 3
				next := d.Now + store.Instant(10+i*7)
				tick.Moves = append(tick.Moves, store.Move{ID: r.ID, Rev: r.Rev, Cursor: next, DueAt: next, SetAt: d.Now, Live: r.Live, Fires: int32(n)})
				for k := range n {
					tick.Fires = append(tick.Fires, store.Fire{Move: int32(i), Boundary: r.Cursor + store.Instant(k)})
				}
			}
			_, err = s.Advance(ctx, &tick)
			return err
		}
	case 6, 7: // claims
		queue, dst := w.name("q", 3), make([]store.Job, rng.IntN(5))
		return func() error {
			c, err := s.Claim(ctx, queue, "w", dst)
			w.held = append(w.held, dst[:c.N]...)
			return err
		}
	case 8: // ends of claims
		var settles []store.Settle
		var extends []store.Extend
		for range rng.IntN(4) {
			if len(w.held) > 0 {
				j := w.held[rng.IntN(len(w.held))]
				settles = append(settles, store.Settle{
					Job: j.ID, Attempt: j.Attempts,
					To: []store.State{store.Done, store.Pending, store.Dead}[rng.IntN(3)], DelayMS: int64(rng.IntN(80)), Error: "e",
				})
				extends = append(extends, store.Extend{Job: j.ID, Attempt: j.Attempts, ForMS: int64(rng.IntN(100))})
			}
		}
		if rng.IntN(3) == 0 {
			return func() error { _, err := s.Extend(ctx, extends, make([]store.Instant, len(extends))); return err }
		}
		return func() error { _, err := s.Settle(ctx, settles, make([]bool, len(settles))); return err }
	default: // locks
		lock, owner := w.name("l", 4), w.name("o", 2)
		old := s.lease(lock)
		if old != nil && rng.IntN(3) == 0 {
			lease, ttl := old.Lease, 1+int64(rng.IntN(200))
			return func() error { _, err := s.Renew(ctx, lease, ttl); return err }
		}
		if old != nil && rng.IntN(2) == 0 {
			l := old.Lease
			return func() error { _, err := s.Release(ctx, l); return err }
		}
		return func() error { _, err := s.Acquire(ctx, lock, owner, 100); return err }
	}
}

// checkIndexes compares what the indexes say with what the rows say.
func checkIndexes(t testing.TB, s *Store, now store.Instant) {
	t.Helper()
	counts := checkOverlap(t, s)
	var want []store.Schedule
	s.names.Scan(func(r *schedule) bool {
		require.Equal(t, counts[r.Name], r.Live, r.Name)
		want = append(want, r.Schedule)
		require.Same(t, r, s.ids.find(int64(r.ID)))
		require.Zero(t, r.staged)
		return true
	})
	require.Equal(t, len(want), s.ids.n)
	slices.SortFunc(want, func(a, b store.Schedule) int {
		return byDue(&schedule{Schedule: a}, &schedule{Schedule: b})
	})
	due := 0
	for due < len(want) && want[due].DueAt <= now {
		due++
	}
	for _, k := range []int{0, 3, len(want)} {
		dst := make([]store.Schedule, k)
		n, next := s.due.read(now, dst)
		require.Equal(t, min(k, due), n)
		for i := range n {
			require.Equal(t, want[i], dst[i])
		}
		if n < len(want) {
			require.Equal(t, want[n].DueAt, next)
		} else {
			require.Equal(t, store.None, next)
		}
	}

	s.queues.Scan(func(name string, q *queue) bool {
		require.True(t, q.used() || q.schedules > 0, name)
		require.False(t, q.staged)
		var count store.Queue
		next, keys, last, waiting := store.None, 0, store.JobID(0), int64(0)
		for j := q.first; j != nil; j = j.next {
			require.Same(t, j, s.jobs.find(int64(j.ID)))
			require.Greater(t, j.ID, last)
			require.Zero(t, j.staged)
			last = j.ID
			*inState(&count, j.State)++
			if j.Key != "" && live(j.State) {
				keys++
				require.Same(t, j, q.keys[j.Key])
			}
			next = min(next, j.DoomedAt())
			if !j.Alone || counts[j.Schedule].Claimed == ownClaims(j) {
				next = min(next, j.ReadyAt())
			} else if j.ReadyAt() < j.DoomedAt() {
				waiting++
			}
			if j.ReadyAt() < j.DoomedAt() {
				require.True(t, q.waiting.has(j) != q.come.has(j))
			}
			require.Equal(t, j.DoomedAt() != store.None, q.doom.has(j))
		}
		require.Len(t, q.keys, keys)
		require.Equal(t, next, q.nextClaimAt(), name)
		require.Equal(t, waiting, q.waits, name)
		require.Equal(t, [3]int64{count.Pending, count.Claimed, count.Dead}, [3]int64{q.Pending, q.Claimed, q.Dead})
		return true
	})
	require.Empty(t, s.audit())
}

func TestIndexesFollowTheRows(t *testing.T) {
	seeds := uint64(10)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		c := &clock{now: 1000}
		s := newStore(c.read, store.Limits{QueueLength: 20, Schedules: 25}, nil)
		w := newWorkload(s, c, seed)
		for range 300 {
			require.NoError(t, w.plan()())
			checkIndexes(t, s, c.now)
		}
		require.Positive(t, s.last.job)
	}
}
