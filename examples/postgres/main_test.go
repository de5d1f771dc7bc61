package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The demonstration starts its program again, which here is that of the tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestAKilledLeaderLosesNothing(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	out := &healthy{codes: make(map[string]int)}
	require.NoError(t, demonstrate(t.Context(), out, 1))
	text := out.text.String()
	t.Log(text)

	leaders := regexp.MustCompile(`(?m)^== (\w+) leads`).FindAllStringSubmatch(text, -1)
	require.Len(t, leaders, 2)
	require.NotEqual(t, leaders[0][1], leaders[1][1])
	require.Regexp(t, `== kill -9 `+leaders[0][1], text)
	require.Regexp(t, `== (\d+) boundaries were due: .*, [1-9]\d* of them at the second attempt; .* 0 fired twice, 0 are lost`, text)
	require.Regexp(t, `(?m)^`+leaders[1][1]+` .* msg=stopped owner=`, text, "it released its lease")
	out.asked.Wait()
	require.Equal(t, map[string]int{"anna": 200, "bert": 200, "carl": 200}, out.codes)
}

// Who is told to stop while the server starts does not wait for it.
func TestAStopDuringTheStart(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	folder, err := os.MkdirTemp("", "")
	require.NoError(t, err)
	defer os.RemoveAll(folder)
	require.NoError(t, os.Chmod(folder, 0o755)) // the server may be another user's
	t.Setenv("TMPDIR", folder)
	ctx, cancel := context.WithCancelCause(t.Context())
	told := errors.New("told to stop")
	cancel(told)
	require.ErrorIs(t, demonstrate(ctx, io.Discard, 1), told)
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}

// healthy asks each process that says where for its health.
type healthy struct {
	text  bytes.Buffer
	asked sync.WaitGroup
	mu    sync.Mutex
	codes map[string]int
}

var said = regexp.MustCompile(`^(\w+) .* health=(\S+)`)

func (h *healthy) Write(line []byte) (int, error) {
	if m := said.FindStringSubmatch(string(line)); m != nil {
		h.asked.Go(func() {
			if answer, err := http.Get(m[2]); err == nil {
				answer.Body.Close()
				h.mu.Lock()
				defer h.mu.Unlock()
				h.codes[m[1]] = answer.StatusCode
			}
		})
	}
	return h.text.Write(line)
}

func TestWithoutADatabaseTheServiceSaysSo(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := serve(ctx, settings{database: "host=/nowhere user=nobody", health: "127.0.0.1:0"}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "check the address, and whether the server runs")
}
