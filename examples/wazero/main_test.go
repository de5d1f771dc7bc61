//go:build !wasm

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/conversation"
)

// Two runs, with an hour between them: each second's report while they run, and
// one of those that were missed.
func TestARunGoesOnWhereTheLastOneEnded(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tickonce.wasm")
	require.NoError(t, os.WriteFile(file, conversation.Guest(t), 0o666))
	conversation.Cache(t, filepath.Join(dir, "code"))
	synctest.Test(t, func(t *testing.T) {
		reports := func() string {
			ctx, cancel := context.WithTimeout(t.Context(), 3400*time.Millisecond)
			defer cancel()
			var out bytes.Buffer
			require.NoError(t, run(ctx, file, dir, tickonce.Config{}, &out))
			return out.String()
		}
		require.Equal(t, "report of 00:00:01\nreport of 00:00:02\nreport of 00:00:03\n", reports())
		time.Sleep(time.Hour)
		require.Equal(t, "report of 01:00:03\nreport of 01:00:04\nreport of 01:00:05\nreport of 01:00:06\n", reports())
	})
}

func TestWhatIsNoModule(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.wasm")
	require.NoError(t, os.WriteFile(file, []byte("<!doctype html>"), 0o666))
	err := run(t.Context(), file, t.TempDir(), tickonce.Config{}, nil)
	require.ErrorContains(t, err, "want a WebAssembly module")
}
