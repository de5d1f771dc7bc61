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

// The engine runs in a bubble, where time passes as soon as all of it sleeps: 120
// reports, of which each fourth fails once, and 24 are not to be delivered and 32
// have to be sent twice; and a cleanup every 2 s that is skipped while one runs.
func TestTenMinutesOfWork(t *testing.T) {
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		m, err := metrics.New(metrics.Options{Schedules: []string{"report"}})
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute+3*time.Second)
		defer stop()
		require.NoError(t, work(ctx, m))
		require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(`
# HELP tickonce_fires_total Boundaries that fired.
# TYPE tickonce_fires_total counter
tickonce_fires_total{queue="work"} 271
# HELP tickonce_schedule_fires_total Boundaries of a schedule that fired.
# TYPE tickonce_schedule_fires_total counter
tickonce_schedule_fires_total{schedule="report"} 120
# HELP tickonce_schedule_executions_total Attempts at a schedule's jobs that ended, by outcome.
# TYPE tickonce_schedule_executions_total counter
tickonce_schedule_executions_total{outcome="cancelled",schedule="report"} 0
tickonce_schedule_executions_total{outcome="failed",schedule="report"} 30
tickonce_schedule_executions_total{outcome="lost",schedule="report"} 0
tickonce_schedule_executions_total{outcome="ok",schedule="report"} 120
tickonce_schedule_executions_total{outcome="panicked",schedule="report"} 0
tickonce_schedule_executions_total{outcome="timed_out",schedule="report"} 0
# HELP tickonce_deliveries_total Tries to deliver an entry of an outbox that ended, by outcome.
# TYPE tickonce_deliveries_total counter
tickonce_deliveries_total{outcome="delivered",queue="outbox:mail"} 96
tickonce_deliveries_total{outcome="lost",queue="outbox:mail"} 0
tickonce_deliveries_total{outcome="permanent",queue="outbox:mail"} 24
tickonce_deliveries_total{outcome="transient",queue="outbox:mail"} 32
# HELP tickonce_skipped_boundaries_total Boundaries that were dropped unfired, by reason.
# TYPE tickonce_skipped_boundaries_total counter
tickonce_skipped_boundaries_total{reason="cap"} 0
tickonce_skipped_boundaries_total{reason="hours"} 0
tickonce_skipped_boundaries_total{reason="missed"} 0
tickonce_skipped_boundaries_total{reason="overlap"} 150
tickonce_skipped_boundaries_total{reason="pause"} 0
tickonce_skipped_boundaries_total{reason="policy"} 0
# HELP tickonce_leading_runners Runners of this process that lead, as far as they know.
# TYPE tickonce_leading_runners gauge
tickonce_leading_runners 0
# HELP tickonce_stops_total Ends of runners and workers, by outcome.
# TYPE tickonce_stops_total counter
tickonce_stops_total{outcome="failed",role="runner"} 0
tickonce_stops_total{outcome="failed",role="worker"} 0
tickonce_stops_total{outcome="ok",role="runner"} 1
tickonce_stops_total{outcome="ok",role="worker"} 2
`), "tickonce_fires_total", "tickonce_schedule_fires_total", "tickonce_schedule_executions_total", "tickonce_deliveries_total", "tickonce_skipped_boundaries_total",
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
