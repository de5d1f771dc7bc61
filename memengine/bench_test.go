package memengine

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

const budget = 1000 // fires a tick

var sizes = []int{10_000, 100_000, 1_000_000}

// interval spreads the schedules over intervals of a minute to a day, in whole
// seconds, and phase over the milliseconds of it.
func spread(rng *rand.Rand) (intervalMS, phase int64) {
	intervalMS = 1000 * (60 + rng.Int64N(86_400))
	return intervalMS, rng.Int64N(intervalMS)
}

// BenchmarkBareHeap is the least that firing takes: the first entry of a 4-ary
// heap of (when, which) gets its next instant and sinks.
func BenchmarkBareHeap(b *testing.B) {
	type entry struct {
		at  int64
		row int32
	}
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			var d dueIndex
			every := make([]int64, n)
			for i := range n {
				ms, phase := spread(rng)
				every[i] = ms
				d.push(dueKey{store.Instant(phase), store.ScheduleID(i)})
			}
			h := make([]entry, n)
			for i, k := range d.keys {
				h[i] = entry{int64(k.at), int32(k.id)}
			}
			for b.Loop() {
				e := h[0]
				e.at += every[e.row]
				i := 0
				for {
					first := 4*i + 1
					if first >= len(h) {
						break
					}
					least := first
					for c := first + 1; c < min(first+4, len(h)); c++ {
						if h[c].at < h[least].at {
							least = c
						}
					}
					if e.at <= h[least].at {
						break
					}
					h[i] = h[least]
					i = least
				}
				h[i] = e
			}
		})
	}
}

// filled answers a store with n schedules.
func filled(tb testing.TB, n int, spread func(i int) store.Instant) (*Store, *clock) {
	c := &clock{}
	s := newStore(c.read, store.Limits{Schedules: int64(n)}, nil)
	for i := 0; i < n; i += budget {
		rows := make([]store.Schedule, 0, budget)
		for k := i; k < min(n, i+budget); k++ {
			rows = append(rows, row(fmt.Sprintf("schedule-%07d", k), spread(k)))
		}
		put(tb, s, rows...)
	}
	return s, c
}

// BenchmarkAdvance reports the time of one fire: its share of Due and Advance,
// in ticks of 1,000 schedules with one fire each. The jobs are claimed and
// settled outside the measured time.
func BenchmarkAdvance(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			every := make([]int64, n)
			perMS := 0.0
			s, c := filled(b, n, func(i int) store.Instant {
				ms, phase := spread(rng)
				every[i] = ms
				perMS += 1 / float64(ms)
				return store.Instant(phase)
			})
			benchTicks(b, s, c, int64(budget/perMS), func(r *store.Schedule) store.Instant {
				return r.DueAt + store.Instant(every[r.ID-1])
			})
		})
	}
}

// BenchmarkAdvanceTies is the same with every schedule due at the same
// instants, so that only the names are in order.
func BenchmarkAdvanceTies(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, c := filled(b, n, func(int) store.Instant { return 60_000 })
			benchTicks(b, s, c, 60_000*budget/int64(n), func(r *store.Schedule) store.Instant { return r.DueAt + 60_000 })
		})
	}
}

// benchTicks ticks every stepMS, in which about 1,000 schedules come due.
func benchTicks(b *testing.B, s *Store, c *clock, stepMS int64, next func(*store.Schedule) store.Instant) {
	rows := make([]store.Schedule, budget)
	moves := make([]store.Move, budget)
	fires := make([]store.Fire, budget)
	jobs := make([]store.Job, budget)
	settles := make([]store.Settle, budget)
	out := make([]bool, budget)
	g, err := s.Acquire(ctx, store.SchedulerLock, "o", 1<<50)
	require.NoError(b, err)

	tick := func() int {
		d, _ := s.Due(ctx, rows)
		t := store.Tick{By: g.Lease, Now: d.Now, Moves: moves[:d.N], Fires: fires[:d.N]}
		for i := range d.N {
			r := &rows[i]
			at := next(r)
			moves[i] = store.Move{ID: r.ID, Rev: r.Rev, Cursor: at, DueAt: at, SetAt: d.Now, Fires: 1}
			fires[i] = store.Fire{Move: int32(i), Boundary: r.Cursor}
		}
		_, _ = s.Advance(ctx, &t)
		return d.N
	}
	work := func() {
		claim, err := s.Claim(ctx, "q", "w", jobs)
		require.NoError(b, err)
		for i, j := range jobs[:claim.N] {
			settles[i] = store.Settle{Job: j.ID, Attempt: j.Attempts, To: store.Done}
		}
		_, err = s.Settle(ctx, settles[:claim.N], out)
		require.NoError(b, err)
	}
	for range 3 {
		c.now += store.Instant(stepMS)
		tick()
		work()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		c.now += store.Instant(stepMS)
		n += tick()
		b.StopTimer()
		work()
		b.StartTimer()
	}
}

// BenchmarkClaimSettle reports the time of one job from claim to done.
func BenchmarkClaimSettle(b *testing.B) {
	c := &clock{}
	s := newStore(c.read, store.Limits{QueueLength: int64(b.N + 1)}, nil)
	var batch store.Batch
	for range b.N {
		batch.Inserts = append(batch.Inserts, store.Insert{Queue: "q", Stamps: stamps, RunAt: store.None})
	}
	commit(b, s, batch)
	job, out := make([]store.Job, 1), make([]bool, 1)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		_, _ = s.Claim(ctx, "q", "w", job)
		_, _ = s.Settle(ctx, []store.Settle{{Job: job[0].ID, Attempt: job[0].Attempts, To: store.Done}}, out)
	}
}

// BenchmarkMemory reports the bytes of a schedule, beyond those of its strings
// and payload, with its place in the indexes.
func BenchmarkMemory(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			names := make([]string, n)
			for i, k := range rand.New(rand.NewPCG(1, 1)).Perm(n) {
				names[i] = fmt.Sprintf("schedule-%07d", k)
			}
			c := &clock{}
			var before, after runtime.MemStats
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				s := newStore(c.read, store.Limits{Schedules: int64(n)}, nil)
				for i, name := range names {
					put(b, s, row(name, store.Instant(i)))
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(s)
			}
			runtime.KeepAlive(names)
			// row makes a payload of one byte for each, eight with the rounding.
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n)-8, "B/schedule")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkC132Remove reports the time of one removal among so many schedules.
func BenchmarkC132Remove(b *testing.B) {
	for _, n := range []int{12_500, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var s *Store
			var removes []store.Guard
			for b.Loop() {
				if len(removes) < n/2 { // while most are there
					b.StopTimer()
					s, _ = filled(b, n, func(i int) store.Instant { return store.Instant(i) })
					removes = shuffledRemoves(s)
					b.StartTimer()
				}
				if _, err := s.Commit(ctx, &store.Batch{Removes: removes[:1]}); err != nil {
					b.Fatal(err)
				}
				removes = removes[1:]
			}
		})
	}
}
