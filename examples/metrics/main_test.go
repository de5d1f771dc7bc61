package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/metrics"
)

// The engine runs in a bubble, where time passes as soon as all of it sleeps.
func TestTenMinutesOfWork(t *testing.T) {
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		m, err := metrics.New(metrics.Options{Schedules: []string{"report"}})
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute+time.Second)
		defer stop()
		require.NoError(t, work(ctx, m))
		require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(`
# HELP tickonce_fires_total Boundaries that fired.
# TYPE tickonce_fires_total counter
tickonce_fires_total{queue="work"} 420
# HELP tickonce_schedule_fires_total Boundaries of a schedule that fired.
# TYPE tickonce_schedule_fires_total counter
tickonce_schedule_fires_total{schedule="report"} 120
# HELP tickonce_executions_total Attempts at jobs that ended, by outcome; of outboxes see tickonce_deliveries_total.
# TYPE tickonce_executions_total counter
tickonce_executions_total{outcome="cancelled",queue="work"} 0
tickonce_executions_total{outcome="failed",queue="work"} 84
tickonce_executions_total{outcome="lost",queue="work"} 0
tickonce_executions_total{outcome="ok",queue="work"} 420
tickonce_executions_total{outcome="panicked",queue="work"} 0
tickonce_executions_total{outcome="timed_out",queue="work"} 0
# HELP tickonce_leading_runners Runners of this process that lead, as far as they know.
# TYPE tickonce_leading_runners gauge
tickonce_leading_runners 0
# HELP tickonce_stops_total Ends of runners and workers, by outcome.
# TYPE tickonce_stops_total counter
tickonce_stops_total{outcome="failed",role="runner"} 0
tickonce_stops_total{outcome="failed",role="worker"} 0
tickonce_stops_total{outcome="ok",role="runner"} 1
tickonce_stops_total{outcome="ok",role="worker"} 1
`), "tickonce_fires_total", "tickonce_schedule_fires_total", "tickonce_executions_total",
			"tickonce_leading_runners", "tickonce_stops_total"))
	})
}

// The page is there while the service runs, and the service ends with its ctx.
func TestServeShowsThePage(t *testing.T) {
	quiet(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener) }()

	url := "http://" + listener.Addr().String() + "/metrics"
	response, err := http.Get(url)
	require.NoError(t, err)
	page, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, string(page), "\ntickonce_schedule_fires_total{schedule=\"report\"} ")

	stop()
	require.NoError(t, <-ended)
}

// A server that fails ends the work.
func TestServeReportsAListenerThatFails(t *testing.T) {
	quiet(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	require.ErrorIs(t, serve(t.Context(), listener), net.ErrClosed)
}

// quiet keeps the log out of the test's output.
func quiet(t *testing.T) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(before) })
}
