package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/eventlog"
)

// The service runs in a bubble, where time passes as soon as all of it sleeps.

func TestStopLetsTheJobInHandFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ctx, interrupt := context.WithTimeout(t.Context(), 12*time.Second)
		defer interrupt()
		require.NoError(t, serve(ctx, tickonce.Config{Owner: "service", Observer: eventlog.New(untimed(&out))}, sendReport))

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
		require.NoError(t, serve(ctx, tickonce.Config{Observer: eventlog.New(untimed(&out))}, func(ctx context.Context, _ *tickonce.Job) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		require.Equal(t, 8*time.Second+10*time.Second, time.Since(start))
		require.Contains(t, out.String(), `level=INFO msg=retried`)
		require.Contains(t, out.String(), `reason="context deadline exceeded"`)
	})
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithTimeout(t.Context(), 8*time.Second)
		defer interrupt()
		start := time.Now()
		err := serve(ctx, tickonce.Config{}, func(context.Context, *tickonce.Job) error {
			time.Sleep(time.Hour)
			return nil
		})
		require.Equal(t, 8*time.Second+15*time.Second, time.Since(start))
		var left *tickonce.AbandonedError
		require.ErrorAs(t, err, &left)
		require.Equal(t, 1, left.Running)
		time.Sleep(time.Hour) // the bubble waits for the job
	})
}

func TestBadConfigIsReported(t *testing.T) {
	err := serve(t.Context(), tickonce.Config{Batch: -1}, sendReport)
	require.ErrorIs(t, err, tickonce.ErrInvalidOption)
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
