package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
)

// The service runs in a bubble, where time passes as soon as all of it sleeps.

func TestStopLetsTheJobInHandFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(300 * time.Millisecond) // off the schedule's grid, so that the workers do not race with the runner
		var out bytes.Buffer
		ctx, interrupt := context.WithTimeout(t.Context(), 12*time.Second)
		defer interrupt()
		require.NoError(t, serve(ctx, tickonce.Config{Owner: "service"}, untimed(&out), sendReport))

		readme, err := os.ReadFile("README.md")
		require.NoError(t, err)
		_, section, _ := strings.Cut(string(readme), "\n## Output\n")
		blocks := strings.Split(section, "```\n")
		require.Len(t, blocks, 3)
		require.Equal(t, blocks[1], out.String())
	})
}

func TestStopAbandonsAJobAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ctx, interrupt := context.WithTimeout(t.Context(), 8*time.Second)
		defer interrupt()
		start := time.Now()
		require.NoError(t, serve(ctx, tickonce.Config{}, untimed(&out), func(ctx context.Context, _ *tickonce.Job) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		require.Equal(t, 8*time.Second+grace, time.Since(start))
		require.Contains(t, out.String(), `level=INFO msg=retried`)
		require.Contains(t, out.String(), `reason="the service stops"`)
	})
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithTimeout(t.Context(), 8*time.Second)
		defer interrupt()
		start := time.Now()
		err := serve(ctx, tickonce.Config{}, slog.New(slog.DiscardHandler), func(context.Context, *tickonce.Job) error {
			time.Sleep(time.Hour)
			return nil
		})
		require.EqualError(t, err, "a job did not give up")
		require.Equal(t, 8*time.Second+grace+lastNotice, time.Since(start))
		time.Sleep(time.Hour) // the bubble waits for the job
	})
}

func TestBadConfigIsReported(t *testing.T) {
	err := serve(t.Context(), tickonce.Config{Batch: -1}, slog.New(slog.DiscardHandler), sendReport)
	require.ErrorIs(t, err, tickonce.ErrInvalidOption)
}

func TestWorkerRidesOutAStoreThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, err := memengine.NewStore(tickonce.Config{})
		require.NoError(t, err)
		down := &downStore{Store: memory}
		eng, err := tickonce.New(down, tickonce.Config{})
		require.NoError(t, err)
		_, err = eng.Enqueue(t.Context(), "reports", nil, tickonce.EnqueueOptions{})
		require.NoError(t, err)

		ctx, stop := context.WithCancel(t.Context())
		var done atomic.Int32
		w := worker{eng, "reports", "worker-1", func(context.Context, *tickonce.Job) error {
			done.Add(1)
			return nil
		}, slog.New(slog.DiscardHandler)}
		go w.run(ctx, t.Context())

		time.Sleep(10 * time.Minute)
		require.LessOrEqual(t, down.claims.Load(), int32(10*time.Minute/maxBackoff+10))
		down.up.Store(true)
		time.Sleep(maxBackoff)
		require.EqualValues(t, 1, done.Load())
		stop()
	})
}

// downStore hands out nothing until it is up.
type downStore struct {
	store.Store
	up     atomic.Bool
	claims atomic.Int32
}

func (s *downStore) Claim(ctx context.Context, queue, worker string, dst []store.Job) (store.Claim, error) {
	s.claims.Add(1)
	if !s.up.Load() {
		return store.Claim{}, errors.New("connection refused")
	}
	return s.Store.Claim(ctx, queue, worker, dst)
}

// untimed logs without the times.
func untimed(out *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindTime {
				return slog.Attr{}
			}
			return a
		},
	}))
}
