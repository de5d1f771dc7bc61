package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/memengine"
)

// TestMeasure runs every measurement once, at its smallest. That contestants
// fire equally often, that every job is acked and that every schedule skips is
// checked while measuring.
func TestMeasure(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, measure([]string{"-n", "1000", "-peers", "", "-jobs", "1000", "-r", "1", "-json"}, &out))
	var rows []row
	require.NoError(t, json.Unmarshal(out.Bytes(), &rows))
	require.Len(t, rows, len(contestants)+5+2*len(keepers)+1)
	for _, r := range rows {
		require.Positive(t, r.NS, r.What)
	}
	out.Reset()
	fmt.Fprintln(&out, newTable(rows).Render())
	require.Contains(t, out.String(), "claim + ack")
}

func TestMeasureRefusesBadSizes(t *testing.T) {
	for _, flag := range []string{"-n", "-peers"} {
		for _, size := range []string{"0", "999", "1000001", "10k", "1000,"} {
			err := measure([]string{"-n", "", "-peers", "", flag, size}, nil)
			require.ErrorContains(t, err, "is not a number from 1000", "%s %q", flag, size)
		}
	}
}

func TestSampleIsRobust(t *testing.T) {
	s := sample{4, 1, 3, 2, 100}
	require.Equal(t, 3.0, s.median())
	require.InDelta(t, 1.0/3, s.spread(), 1e-9)
	require.Equal(t, 2.0, sample{2, 8, 6}.over(sample{1, 4, 1}))
}

var sizes = []int{10_000, 100_000, 1_000_000}

// BenchmarkFire lets every contestant fire. An operation is one fire.
func BenchmarkFire(b *testing.B) {
	for _, n := range sizes {
		for _, c := range contestants {
			w := sync.OnceValue(func() *workload { return newWorkload(n) })
			open := sync.OnceValues(func() (*entrant, error) { return enter(c, w()) })
			b.Run(fmt.Sprintf("schedules=%d/by=%s", n, c.name), func(b *testing.B) {
				e, err := open()
				require.NoError(b, err)
				benchmarkFire(b, e, w())
			})
		}
	}
}

// BenchmarkEnqueue enqueues one job after the other. The queue is emptied each
// time it has 10,000.
func BenchmarkEnqueue(b *testing.B) { benchmarkQueue(b, true, claimBatch) }

// BenchmarkClaimAck claims and acks jobs. An operation is one job.
func BenchmarkClaimAck(b *testing.B) {
	for _, n := range []int{1, claimBatch} {
		b.Run("batch="+strconv.Itoa(n), func(b *testing.B) { benchmarkQueue(b, false, n) })
	}
}

func benchmarkQueue(b *testing.B, enqueue bool, batch int) {
	r, err := newEngine(epoch, time.Minute)
	require.NoError(b, err)
	b.ReportAllocs()
	for left := b.N; left > 0; left -= queued {
		n := min(left, queued)
		toggle(b, enqueue)
		require.NoError(b, enqueueJobs(r.engine, n))
		toggle(b, !enqueue)
		_, err := drainBy(r.engine, batch)
		require.NoError(b, err)
	}
}

// toggle lets the timer run, or not.
func toggle(b *testing.B, on bool) {
	if on {
		b.StartTimer()
	} else {
		b.StopTimer()
	}
}

// BenchmarkSkip misses a few and very many boundaries. An operation is one
// schedule that skips.
func BenchmarkSkip(b *testing.B) {
	for _, boundaries := range []int64{nearSkip, farSkip} {
		b.Run("boundaries="+strconv.FormatInt(boundaries, 10), func(b *testing.B) {
			spent, schedules := time.Duration(0), 0
			for schedules < b.N {
				r, err := openSkip()
				require.NoError(b, err)
				for range farSkips {
					d, err := r.miss(boundaries)
					require.NoError(b, err)
					spent, schedules = spent+d, schedules+skippers
				}
			}
			b.ReportMetric(float64(spent)/float64(schedules), "ns/op")
		})
	}
}

func benchmarkFire(b *testing.B, e *entrant, w *workload) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))
	spent, fires := time.Duration(0), 0
	for fires < b.N {
		d, n, err := e.advance(w, 1)
		require.NoError(b, err)
		spent, fires = spent+d, fires+n
	}
	b.ReportMetric(float64(spent)/float64(fires), "ns/op")
	b.ReportMetric(e.allocs, "allocs/op")
	b.ReportMetric(e.idle, "B/schedule")
}

func TestMeasureRefusesBadUsage(t *testing.T) {
	require.ErrorContains(t, measure([]string{"-n", "", "-peers", "", "-r", "0"}, nil), "-r: 0 is not a number from 1")
	require.ErrorContains(t, measure([]string{"-n", "", "-peers", "", "10000"}, nil), `"10000" is not a flag`)
}

// A worker beside loops by hand that claim and ack as many at a time. The time
// and the allocations are those of one job, without its enqueueing.
func BenchmarkWorker(b *testing.B) {
	for _, c := range []struct {
		name  string
		drain func(*memengine.Engine, int) (int, error)
	}{{"steps", drainWorker}, {"by-hand", drainBy}} {
		for _, n := range []int{1, claimBatch} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				e, err := newEngine(epoch, time.Minute)
				require.NoError(b, err)
				b.ReportAllocs()
				for left := b.N; left > 0; {
					some := min(left, queued)
					b.StopTimer()
					require.NoError(b, enqueueJobs(e.engine, some))
					b.StartTimer()
					done, err := c.drain(e.engine, n)
					require.NoError(b, err)
					require.Equal(b, some, done)
					left -= some
				}
			})
		}
	}
}
