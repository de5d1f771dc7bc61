package wire_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/wasm/wire"
)

const fires = 10_000 // of a round, each of another schedule

// BenchmarkFire fires 10,000 schedules, each once in a minute, a second of that at
// a time: by the engine, and by the server with its records, as the guest does.
// scripts/test-wasm fires compares the hosts by it.
func BenchmarkFire(b *testing.B) {
	at := func(i int) int64 { return int64(i) * time.Minute.Milliseconds() / fires }
	b.Run("by=engine", func(b *testing.B) {
		ctx, clock := b.Context(), &clock{}
		e, err := memengine.New(tickonce.Config{Clock: clock, Seed: 7})
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
		}, func(int64) {
			jobs, err := e.ClaimBatch(ctx, "mail", "w", fires)
			require.NoError(b, err)
			require.Len(b, jobs, fires)
			_, err = e.AckAll(ctx, jobs)
			require.NoError(b, err)
		})
	})
	b.Run("by=server", func(b *testing.B) {
		s, err := wire.Open(0, (&wire.Config{Seed: 7}).Encode(), nil, nil)
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
		}, func(ms int64) {
			call(ms, wire.OpClaim, wire.Request{Queue: "mail", Worker: "w", Max: fires})
			records, err := wire.ParseRecords(s.Out())
			require.NoError(b, err)
			require.Len(b, records, fires)
			var claims []wire.Claim
			for _, r := range records {
				claims = append(claims, wire.Claim{Job: r.Job, Attempt: r.Attempt})
			}
			call(ms, wire.OpAck, wire.Request{Claims: claims})
		})
	})
}

// measure steps through minutes, and drains the queue after each. It reports the
// median of the steps, which what else the machine does hardly moves.
func measure(b *testing.B, step, drain func(ms int64)) {
	const seconds = 60
	var took []time.Duration
	ms := seconds*time.Second.Milliseconds() - 1
	for b.Loop() {
		for range seconds {
			ms += 1000
			begun := time.Now()
			step(ms)
			took = append(took, time.Since(begun))
		}
		b.StopTimer()
		drain(ms)
		b.StartTimer()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())*seconds/fires, "ns/fire")
}

// clock stands where it is set.
type clock struct{ ms int64 }

func (c *clock) Now() time.Time { return time.UnixMilli(c.ms) }

func (c *clock) After(time.Duration) <-chan time.Time { panic("nothing waits here") }
