//go:build !wasm

package host

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/wasm/wire"
)

const (
	fires = 10_000 // of a round, each of another schedule
	batch = 1000
)

// contestant is an engine that is measured.
type contestant struct {
	*clock
	schedule func(name string) error
	step     func() error // until nothing is due
	enqueue  func() error
	claim    func() (ack func() error, err error)
	drain    func() (jobs int, err error)
}

var contestants = []struct {
	name string
	open func(b *testing.B) contestant
}{
	{"native", func(b *testing.B) contestant {
		ctx, c := b.Context(), &clock{}
		e, err := memengine.New(tickonce.Config{Clock: c, Seed: 7})
		require.NoError(b, err)
		runner := e.NewRunner()
		return contestant{
			clock: c,
			schedule: func(name string) error {
				_, err := e.Schedule(ctx, name, "@every 1m", "mail", nil, tickonce.ScheduleOptions{})
				return err
			},
			step: func() error {
				for {
					if next, _, err := runner.Step(ctx); err != nil || next.After(c.Now()) {
						return err
					}
				}
			},
			enqueue: func() error { return second(e.Enqueue(ctx, "mail", nil, tickonce.EnqueueOptions{})) },
			claim: func() (func() error, error) {
				job, err := e.Claim(ctx, "mail", "w")
				return func() error { return job.Ack(ctx) }, err
			},
			drain: func() (int, error) {
				jobs, err := e.ClaimBatch(ctx, "mail", "w", fires)
				if err != nil {
					return 0, err
				}
				return len(jobs), second(e.AckAll(ctx, jobs))
			},
		}
	}},
	{"wazero", func(b *testing.B) contestant {
		ctx, c := context.Background(), &clock{} // the cleanup closes the engine
		e := open(b, Config{Config: tickonce.Config{Clock: c}})
		require.NoError(b, second(e.call(ctx, wire.OpStart, &wire.Request{})))
		return contestant{
			clock: c,
			schedule: func(name string) error {
				_, err := e.Schedule(ctx, name, "@every 1m", "mail", nil, tickonce.ScheduleOptions{})
				return err
			},
			step: func() error {
				for {
					if rest, err := e.turn(ctx); err != nil || rest > 0 {
						return err
					}
				}
			},
			enqueue: func() error { return second(e.Enqueue(ctx, "mail", nil, tickonce.EnqueueOptions{})) },
			claim: func() (func() error, error) {
				job, err := e.Claim(ctx, "mail", "w")
				return func() error { return job.Ack(ctx) }, err
			},
			drain: func() (int, error) {
				jobs, err := e.ClaimBatch(ctx, "mail", "w", fires)
				if err != nil {
					return 0, err
				}
				return len(jobs), second(e.AckAll(ctx, jobs))
			},
		}
	}},
}

// BenchmarkFire fires 10,000 schedules, each once in a minute, a second of that at
// a time.
func BenchmarkFire(b *testing.B) {
	for _, of := range contestants {
		b.Run("by="+of.name, func(b *testing.B) {
			e := of.open(b)
			for i := range fires {
				e.ms.Store(int64(i) * time.Minute.Milliseconds() / fires)
				require.NoError(b, e.schedule("s"+strconv.Itoa(i)))
			}
			e.ms.Store(time.Minute.Milliseconds() - 1)
			rounds := 0
			for b.Loop() {
				for range 60 {
					e.ms.Add(1000)
					require.NoError(b, e.step())
				}
				b.StopTimer()
				fired, err := e.drain()
				require.NoError(b, err)
				require.Equal(b, fires, fired)
				rounds++
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rounds*fires), "ns/fire")
		})
	}
}

// BenchmarkClaimAck claims jobs and acks them, one by one.
func BenchmarkClaimAck(b *testing.B) {
	for _, of := range contestants {
		b.Run("by="+of.name, func(b *testing.B) {
			e := of.open(b)
			for left := 0; b.Loop(); left-- {
				if left == 0 {
					b.StopTimer()
					for range batch {
						require.NoError(b, e.enqueue())
					}
					left = batch
					b.StartTimer()
				}
				ack, err := e.claim()
				if err == nil {
					err = ack()
				}
				require.NoError(b, err)
			}
		})
	}
}
