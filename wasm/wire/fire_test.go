package wire_test

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/wasm/wire"
)

const (
	fires    = 10_000 // of a minute, each of another schedule
	seconds  = 60     // of a minute, each of them a step
	kept     = 2      // runs of a schedule, so that the history is full
	most     = 200    // jobs of a claim, which a second does not reach
	warmedUp = 5      // minutes, in which the host compiles and the history fills
)

// BenchmarkFire fires 10,000 schedules, each once in a minute, a second of that at
// a time: by the engine, and by the server with its records, as the guest does.
// What a second has fired is claimed and acked before the next: ns/job is all of
// it, and ns/fire the steps. scripts/test-wasm fires compares the hosts by it.
func BenchmarkFire(b *testing.B) {
	at := func(i int) int64 { return int64(i) * time.Minute.Milliseconds() / fires }
	b.Run("by=engine", func(b *testing.B) {
		ctx, clock := b.Context(), &clock{}
		e, err := memengine.New(tickonce.Config{Clock: clock, Seed: 7, Limits: tickonce.Limits{Runs: kept}})
		require.NoError(b, err)
		for i := range fires {
			clock.ms = at(i)
			_, err := e.Schedule(ctx, fmt.Sprint("s", i), "@every 1m", "mail", nil, tickonce.ScheduleOptions{})
			require.NoError(b, err)
		}
		runner := e.NewRunner()
		measure(b, func(ms int64) {
			clock.ms = ms
			for {
				next, _, err := runner.Step(ctx)
				require.NoError(b, err)
				if next.UnixMilli() > ms {
					return
				}
			}
		}, func(int64) int {
			jobs, err := e.ClaimBatch(ctx, "mail", "w", most)
			require.NoError(b, err)
			_, err = e.AckAll(ctx, jobs)
			require.NoError(b, err)
			return len(jobs)
		})
	})
	b.Run("by=server", func(b *testing.B) {
		s, err := wire.Open(0, (&wire.Config{Seed: 7, Limits: tickonce.Limits{Runs: kept}}).Encode(), nil, nil)
		require.NoError(b, err)
		call := func(ms int64, op wire.Op, r wire.Request) {
			_, err := s.Call(float64(ms), op, r.Encode(op))
			require.NoError(b, err)
		}
		for i := range fires {
			call(at(i), wire.OpSchedule, wire.Request{Name: fmt.Sprint("s", i), Spec: "@every 1m", Queue: "mail"})
		}
		call(at(fires)-1, wire.OpStart, wire.Request{})
		measure(b, func(ms int64) {
			next, err := s.Step(float64(ms), 0)
			require.NoError(b, err)
			require.Greater(b, next, float64(ms))
		}, func(ms int64) int {
			call(ms, wire.OpClaim, wire.Request{Queue: "mail", Worker: "w", Max: most})
			records, err := wire.ParseRecords(s.Out())
			require.NoError(b, err)
			var claims []wire.Claim
			for _, r := range records {
				claims = append(claims, wire.Claim{Job: r.Job, Attempt: r.Attempt})
			}
			call(ms, wire.OpAck, wire.Request{Claims: claims})
			return len(records)
		})
	})
}

// measure steps through minutes, works off what each second has fired, and
// reports the least of both, which what else the machine does hardly moves. A
// minute is long enough for a clock that a browser has made coarse. The collector
// runs between the minutes: a fire leaves nothing to it, and most of the rest is
// the benchmark's own, which a guest does not have.
func measure(b *testing.B, step func(ms int64), work func(ms int64) (jobs int)) {
	ms := time.Minute.Milliseconds() - 1
	minute := func() (stepped, worked time.Duration) {
		jobs := 0
		for range seconds {
			ms += 1000
			begun := time.Now()
			step(ms)
			fired := time.Now()
			jobs += work(ms)
			stepped += fired.Sub(begun)
			worked += time.Since(begun)
		}
		require.Equal(b, fires, jobs)
		return stepped, worked
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for range warmedUp {
		minute()
		runtime.GC()
	}
	stepped, worked := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for b.Loop() {
		s, w := minute()
		stepped, worked = min(stepped, s), min(worked, w)
		b.StopTimer()
		runtime.GC()
		b.StartTimer()
	}
	b.ReportMetric(float64(stepped.Nanoseconds())/fires, "ns/fire")
	b.ReportMetric(float64(worked.Nanoseconds())/fires, "ns/job")
}

// clock stands where it is set.
type clock struct{ ms int64 }

func (c *clock) Now() time.Time { return time.UnixMilli(c.ms) }

func (c *clock) After(time.Duration) <-chan time.Time { panic("nothing waits here") }
