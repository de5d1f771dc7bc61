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
	fires    = 10_000 // of a minute, each of another schedule
	seconds  = 60     // of a minute, each of them a step
	most     = 200    // jobs of a claim, which a second does not reach
	kept     = 2      // runs of a schedule, so that the history is full
	warmedUp = 3      // minutes, in which it fills
	batch    = 1000
)

// contestant is an engine that is measured.
type contestant struct {
	*clock
	schedule func(name string) error
	step     func() error // until nothing is due
	enqueue  func() error
	claim    func() (ack func() error, err error)
	work     func() (jobs int, err error) // of a second
}

var contestants = []struct {
	name string
	open func(b *testing.B) contestant
}{
	{"native", func(b *testing.B) contestant {
		ctx, c := b.Context(), &clock{}
		e, err := memengine.New(tickonce.Config{Clock: c, Seed: 7, Limits: tickonce.Limits{Runs: kept}})
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
			work: func() (int, error) {
				jobs, err := e.ClaimBatch(ctx, "mail", "w", most)
				if err != nil {
					return 0, err
				}
				return len(jobs), second(e.AckAll(ctx, jobs))
			},
		}
	}},
	{"wazero", func(b *testing.B) contestant {
		ctx, c := context.Background(), &clock{} // the cleanup closes the engine
		e := open(b, Config{Config: tickonce.Config{Clock: c, Limits: tickonce.Limits{Runs: kept}}})
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
			work: func() (int, error) {
				jobs, err := e.ClaimBatch(ctx, "mail", "w", most)
				if err != nil {
					return 0, err
				}
				return len(jobs), second(e.AckAll(ctx, jobs))
			},
		}
	}},
}

// BenchmarkFire fires 10,000 schedules, each once in a minute, a second of that at
// a time, and works off what each second has fired. It reports the least minute,
// ns/job of all and ns/fire of the steps, with what the guest's collector does.
func BenchmarkFire(b *testing.B) {
	for _, of := range contestants {
		b.Run("by="+of.name, func(b *testing.B) {
			e := of.open(b)
			for i := range fires {
				e.ms.Store(int64(i) * time.Minute.Milliseconds() / fires)
				require.NoError(b, e.schedule("s"+strconv.Itoa(i)))
			}
			e.ms.Store(time.Minute.Milliseconds() - 1)
			minute := func() (stepped, worked time.Duration) {
				jobs := 0
				for range seconds {
					e.ms.Add(1000)
					begun := time.Now()
					require.NoError(b, e.step())
					stepped += time.Since(begun)
					n, err := e.work()
					require.NoError(b, err)
					worked += time.Since(begun)
					jobs += n
				}
				require.Equal(b, fires, jobs)
				return stepped, worked
			}
			for range warmedUp {
				minute()
			}
			stepped, worked := time.Hour, time.Hour
			for b.Loop() {
				s, w := minute()
				stepped, worked = min(stepped, s), min(worked, w)
			}
			b.ReportMetric(float64(stepped.Nanoseconds())/fires, "ns/fire")
			b.ReportMetric(float64(worked.Nanoseconds())/fires, "ns/job")
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

// BenchmarkReady is the first answered call of a process: the compiled code comes
// from the cache, an engine is opened, and answers.
func BenchmarkReady(b *testing.B) {
	wasm := guest(b)
	compiled(b) // fills the cache
	ready := time.Hour
	for b.Loop() {
		begun := time.Now()
		module, err := Compile(b.Context(), wasm, Options{CacheDir: cache})
		require.NoError(b, err)
		e, _, err := module.Open(b.Context(), Config{Config: tickonce.Config{Seed: 7}})
		require.NoError(b, err)
		_, err = e.Enqueue(b.Context(), "mail", nil, tickonce.EnqueueOptions{})
		require.NoError(b, err)
		ready = min(ready, time.Since(begun))
		require.NoError(b, e.Close())
		require.NoError(b, module.Close(b.Context()))
	}
	b.ReportMetric(float64(ready.Microseconds())/1000, "ms/ready")
}
