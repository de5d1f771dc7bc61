package metrics_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/eventlog"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/metrics"
)

// An engine that writes a log and counts.
func Example() {
	ctx := context.Background()
	m, err := metrics.New(metrics.Options{})
	if err != nil {
		log.Fatal(err)
	}
	write := eventlog.New(slog.New(slog.DiscardHandler))
	eng, err := memengine.New(tickonce.Config{Observer: func(e tickonce.Event) {
		write(e)
		m.Observe(e)
	}})
	if err != nil {
		log.Fatal(err)
	}
	m.Watch(eng)
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{}) // of /metrics

	if _, err := eng.Enqueue(ctx, "mail", []byte("hello"), tickonce.EnqueueOptions{}); err != nil {
		log.Fatal(err)
	}

	page := httptest.NewRecorder()
	handler.ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		if strings.HasPrefix(line, "tickonce_queue_jobs") {
			fmt.Print(line)
		}
	}
	// Output:
	// tickonce_queue_jobs{queue="mail",state="claimed"} 0
	// tickonce_queue_jobs{queue="mail",state="dead"} 0
	// tickonce_queue_jobs{queue="mail",state="pending"} 1
}
