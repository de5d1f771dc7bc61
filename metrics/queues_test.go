package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/metrics"
)

// manyQueues is what no label is to grow with.
const manyQueues = 10_000

// 10,000 queues and as many schedules, owners and errors, seen in events of each
// kind and at a scrape, make as many series as the manual says, and what has no
// label of its own is in the sums.
func TestLabelsAreBounded(t *testing.T) {
	m := newMetrics(t, metrics.Options{Queues: []string{"q9999"}, Schedules: []string{"s200"}})
	var queues queuesOf
	for i := range manyQueues {
		name := fmt.Sprint("q", i)
		queues = append(queues, tickonce.QueueInfo{Name: name, Pending: 1, Done: 2, NextClaimAt: at.Add(time.Duration(i) * time.Second)})
		for kind := tickonce.EventNone; kind.String() != tickonce.EventKind(255).String(); kind++ {
			for _, e := range events(kind) {
				e.Schedule, e.Owner, e.Reason = fmt.Sprint("s", i), fmt.Sprint("o", i), fmt.Sprint("r", i)
				e.Phase, e.Err = tickonce.Phase(fmt.Sprint("p", i)), fmt.Errorf("error %d", i)
				e.Execution, e.Delivery = tickonce.Execution(i%256), tickonce.Delivery(i%256)
				if e.Queue != outbox {
					e.Queue = name
					m.Observe(e)
				} else if i >= 200 { // when the queues have taken all values
					e.Queue = outbox + name
					m.Observe(e)
				}
			}
		}
	}
	m.Watch(queues)

	perQueue, perSchedule, besides := bounds(t)
	n := series(gather(t, m), "queue", "schedule")
	require.Equal(t, besides, n[""])
	require.Equal(t, perSchedule, n["schedule s200"])
	delete(n, "")
	delete(n, "schedule s200")
	require.Len(t, n, 1+100+1, "the queue that is named, those that came first, and the rest")
	require.Equal(t, perQueue, slices.Max(slices.Collect(maps.Values(n))))
	require.Equal(t, float64(manyQueues), value(t, m, "tickonce_fires_total"))
	require.Equal(t, float64(manyQueues-101), value(t, m, "tickonce_fires_total", "queue", "other"))
	require.Equal(t, float64(manyQueues-101), value(t, m, "tickonce_queue_jobs", "queue", "other", "state", "pending"))
	require.Equal(t, 1.0, value(t, m, "tickonce_queue_jobs", "queue", "q9999", "state", "pending"))
	require.Equal(t, 2.0*manyQueues, value(t, m, "tickonce_queue_removed_jobs_total"))
	require.Equal(t, float64(at.Unix()+100), value(t, m, "tickonce_queue_next_claim_timestamp_seconds", "queue", "other"), "the earliest")
}

// bounds reads from the manual how many series there are at most.
func bounds(t *testing.T) (perQueue, perSchedule, besides int) {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	words := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "//", "")), " ")
	const said = "at most %d series for each value of queue, %d for each named schedule and %d besides"
	_, words, found := strings.Cut(words, said[:7])
	require.True(t, found)
	n, err := fmt.Sscanf(said[:7]+words, said, &perQueue, &perSchedule, &besides)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	return perQueue, perSchedule, besides
}

// series counts what Prometheus keeps of the families, for each value of these
// labels, as in "queue mail", and for what has none of them.
func series(families []*dto.MetricFamily, labels ...string) map[string]int {
	n := map[string]int{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			of := ""
			for _, label := range metric.GetLabel() {
				if slices.Contains(labels, label.GetName()) {
					of = label.GetName() + " " + label.GetValue()
				}
			}
			n[of]++
			if h := metric.GetHistogram(); h != nil {
				n[of] += len(h.GetBucket()) + len([]string{"+Inf", "sum"})
			}
		}
	}
	return n
}

func TestHostileNamesAreLabels(t *testing.T) {
	m := newMetrics(t, metrics.Options{Queues: []string{"other"}, MaxQueues: 2})
	for _, name := range []string{"\xff", "a\"}\n# TYPE evil counter", "third", "fourth", "other"} {
		m.Observe(tickonce.Event{Kind: tickonce.EventFired, At: at, Boundary: at, Queue: name})
	}
	m.Watch(queuesOf{{Name: "\xff", Pending: 1}, {Name: "other", Pending: 2}, {Name: "third", Pending: 4}, {Name: "fourth", Pending: 8}})
	require.Equal(t, 1.0, value(t, m, "tickonce_fires_total", "queue", "\uFFFD"))
	require.Equal(t, 1.0, value(t, m, "tickonce_fires_total", "queue", "a\"}\n# TYPE evil counter"))
	require.Equal(t, 3.0, value(t, m, "tickonce_fires_total", "queue", "other"), "a queue of that name among the rest")
	require.Equal(t, 14.0, value(t, m, "tickonce_queue_jobs", "queue", "other"))
	_, families := scrape(t, m)
	require.Contains(t, families, "tickonce_fires_total")
	require.NotContains(t, families, "evil")
}

// unreachable is an engine whose store fails after a page.
type unreachable struct{ queuesOf }

func (unreachable) Queues(context.Context) iter.Seq2[tickonce.QueueInfo, error] {
	return func(yield func(tickonce.QueueInfo, error) bool) {
		if yield(tickonce.QueueInfo{Name: "mail", Pending: 5}, nil) {
			yield(tickonce.QueueInfo{}, &tickonce.OpError{Op: "queues", Err: errors.New("connection reset")})
		}
	}
}

// A scrape over loopback succeeds while the store fails. It shows no half of the
// queues, counts the failure, and all else.
func TestScrapeSurvivesTheStore(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	m.Observe(tickonce.Event{Kind: tickonce.EventFired, At: at, Boundary: at, Queue: "mail"})

	status, families := scrape(t, m)
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, families, "tickonce_queue_jobs", "nothing is watched")
	require.Equal(t, 0.0, value(t, m, "tickonce_queue_reads_total"))

	m.Watch(unreachable{})
	status, families = scrape(t, m)
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, families, "tickonce_queue_jobs")
	require.Contains(t, families, "tickonce_fires_total")
	require.Equal(t, 2.0, value(t, m, "tickonce_queue_reads_total", "outcome", "failed"), "this scrape included")

	m.Watch(queuesOf{{Name: "mail", Pending: 5}})
	status, families = scrape(t, m)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, families, "tickonce_queue_jobs")
	require.Equal(t, 2.0, value(t, m, "tickonce_queue_reads_total", "outcome", "failed"))
}

// hung is an engine whose store does not answer, whatever its ctx says, before
// it is told to.
type hung struct {
	queuesOf
	answer chan struct{}
	calls  *atomic.Int64
}

func (h hung) Queues(context.Context) iter.Seq2[tickonce.QueueInfo, error] {
	return func(yield func(tickonce.QueueInfo, error) bool) {
		h.calls.Add(1)
		<-h.answer
		yield(tickonce.QueueInfo{Name: "mail", Pending: 5}, nil)
	}
}

// A store that hangs holds no scrape up for longer than the limit, and has one
// reading to answer, however many scrapes there are.
func TestScrapeDoesNotWaitForAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(t, metrics.Options{ReadTimeout: 3 * time.Second})
		engine := hung{answer: make(chan struct{}), calls: &atomic.Int64{}}
		m.Watch(engine)
		start := time.Now()
		for i := 1; i <= 3; i++ {
			require.Equal(t, float64(i), value(t, m, "tickonce_queue_reads_total", "outcome", "failed"))
			require.Equal(t, time.Duration(i)*3*time.Second, time.Since(start))
		}
		require.EqualValues(t, 1, engine.calls.Load())

		close(engine.answer)
		synctest.Wait()
		require.Equal(t, 5.0, value(t, m, "tickonce_queue_jobs", "state", "pending"))
		require.EqualValues(t, 2, engine.calls.Load())
	})
}

// scrape gets the metrics over loopback, and reads the text as Prometheus does.
func scrape(t *testing.T, m *metrics.Metrics) (int, map[string]*dto.MetricFamily) {
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m))
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	response, err := server.Client().Get(server.URL)
	require.NoError(t, err)
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(io.Reader(response.Body))
	require.NoError(t, err)
	return response.StatusCode, families
}
