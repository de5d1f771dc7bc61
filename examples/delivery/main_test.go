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
func TestOutputIsThatOfTheREADME(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindTime || strings.HasPrefix(a.Value.String(), "report/") {
				return slog.Attr{}
			}
			return a
		}}))
		observe := eventlog.New(logger)
		config := tickonce.Config{Owner: "report", Observer: func(e tickonce.Event) {
			if e.Kind != tickonce.EventStopped { // the three stop side by side
				observe(e)
			}
		}}
		ctx, interrupt := context.WithTimeout(t.Context(), 25*time.Second)
		defer interrupt()
		require.NoError(t, serve(ctx, config, &chat{}, &out))

		readme, err := os.ReadFile("README.md")
		require.NoError(t, err)
		_, section, _ := strings.Cut(string(readme), "\n## Output\n")
		blocks := strings.Split(section, "```\n")
		require.Len(t, blocks, 3)
		require.Equal(t, blocks[1], out.String())
	})
}

func TestBadConfigIsReported(t *testing.T) {
	require.ErrorIs(t, serve(t.Context(), tickonce.Config{Batch: -1}, &chat{}, nil), tickonce.ErrInvalidOption)
}
