package metrics_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/metrics"
)

// row is what the manual says of a metric.
type row struct {
	labels []string
	kind   string
	help   string
	from   []string // the kinds of events or the fields of a queue that move it
}

// manual reads the table in the package comment.
func manual(t *testing.T) map[string]row {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	rows := map[string]row{}
	line := regexp.MustCompile(`(?m)^//\t(tickonce_\w+)(?:\{([\w,]+)\})?  (\w+)  ([\w ]+)\n//\t\t(.+)$`)
	for _, m := range line.FindAllStringSubmatch(string(text), -1) {
		require.NotContains(t, rows, m[1])
		r := row{kind: m[3], help: m[5], from: strings.Fields(m[4])}
		if m[2] != "" {
			r.labels = strings.Split(m[2], ",")
		}
		rows[m[1]] = r
	}
	require.NotEmpty(t, rows)
	return rows
}

// Every metric that is there is in the manual with its type, labels and
// meaning, and no other is.
func TestManualNamesEachMetric(t *testing.T) {
	rows := manual(t)
	for _, family := range gather(t, moved(t)) {
		r, ok := rows[family.GetName()]
		require.True(t, ok, "%s is not in the manual", family.GetName())
		delete(rows, family.GetName())
		require.Equal(t, r.kind, strings.ToLower(family.GetType().String()), family.GetName())
		require.Equal(t, r.help, family.GetHelp(), family.GetName())
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName())
			}
			require.ElementsMatch(t, r.labels, labels, family.GetName())
		}
	}
	require.Empty(t, rows, "the manual has metrics that are not there")
}

// The manual names, of each event and each field of a queue, all metrics that it
// moves.
func TestManualNamesWhatMovesAMetric(t *testing.T) {
	rows := manual(t)
	said := func(source string) (names []string) {
		for name, r := range rows {
			if slices.Contains(r.from, source) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	sources := map[string]bool{"Queues": true, "DroppedDetails": true} // the methods of the engine
	unknown := tickonce.EventKind(255)
	for kind := tickonce.EventNone + 1; kind.String() != unknown.String(); kind++ {
		sources[kind.String()] = true
		m := newMetrics(t, metrics.Options{Queues: []string{"mail", outbox}, Schedules: []string{"report"}})
		if kind == tickonce.EventLeadershipLost || kind == tickonce.EventStandBy || kind == tickonce.EventStopped {
			m.Observe(tickonce.Event{Kind: tickonce.EventLeading, Owner: "a/1"})
		}
		before := gather(t, m)
		for _, e := range events(kind) {
			m.Observe(e)
		}
		require.Equal(t, said(kind.String()), differing(before, gather(t, m)), kind)
	}
	fields := reflect.TypeFor[tickonce.QueueInfo]()
	for i := range fields.NumField() {
		field := fields.Field(i)
		if field.Name == "Name" {
			continue
		}
		sources[field.Name] = true
		info := tickonce.QueueInfo{Name: "mail"}
		switch value := reflect.ValueOf(&info).Elem().Field(i); value.Kind() {
		case reflect.Int64:
			value.SetInt(7)
		default:
			value.Set(reflect.ValueOf(at))
		}
		m := newMetrics(t, metrics.Options{Queues: []string{"mail"}})
		m.Watch(queuesOf{{Name: "mail"}})
		before := gather(t, m)
		m.Watch(queuesOf{info})
		require.Equal(t, said(field.Name), slices.DeleteFunc(differing(before, gather(t, m)), func(name string) bool {
			return name == "tickonce_queue_reads_total"
		}), field.Name)
	}
	m := newMetrics(t, metrics.Options{})
	m.Watch(queuesOf{})
	before := gather(t, m)
	m.Watch(dropper{})
	require.Equal(t, append(said("DroppedDetails"), said("Queues")...), differing(before, gather(t, m)))
	for name, r := range rows {
		for _, source := range r.from {
			require.True(t, sources[source], "%s comes from %q, which is nothing", name, source)
		}
	}
}

func TestNamesKeepTheConventions(t *testing.T) {
	problems, err := testutil.CollectAndLint(moved(t))
	require.NoError(t, err)
	require.Empty(t, problems)
}

// The values of labels that the manual lists are those that there are.
func TestManualNamesTheValuesOfLabels(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "# Labels")
	seen := map[string]map[string]bool{}
	for _, family := range gather(t, moved(t)) {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if seen[label.GetName()] == nil {
					seen[label.GetName()] = map[string]bool{}
				}
				seen[label.GetName()][label.GetValue()] = true
			}
		}
	}
	for label, values := range seen {
		m := regexp.MustCompile(`(?m)^//\t` + label + ` +(.*(?:\n//\t {2}.*)*)$`).FindStringSubmatch(section)
		require.NotNil(t, m, "the label %s is not in the manual", label)
		if label == "queue" || label == "schedule" || label == "phase" {
			continue
		}
		for value := range values {
			require.Regexp(t, `\b`+value+`\b`, m[1], "the label %s", label)
		}
	}
}

var at = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

const outbox = "__alkstore_outbox:chat"

// events are those of the kind, with everything in them: one of a queue, or of
// an outbox, or both.
func events(kind tickonce.EventKind) []tickonce.Event {
	e := tickonce.Event{
		Kind: kind, At: at, Schedule: "report", Queue: "mail", Job: 7, Boundary: at.Add(-time.Minute), Origin: 3,
		Execution: tickonce.ExecutionFailed, Delivery: tickonce.DeliveryTransient,
		First: at.Add(-time.Hour), Last: at, Count: 3, Reason: "cap", Owner: "a/1", Phase: tickonce.PhaseRenew,
		Wait: time.Second, Took: 2 * time.Second, Err: errors.New("connection reset"),
	}
	of := e
	of.Queue = outbox
	switch kind {
	case tickonce.EventStopped:
		e.Queue = "" // of a runner
		return []tickonce.Event{e}
	case tickonce.EventDelivered, tickonce.EventDeliveryRetried, tickonce.EventDeliveryFailed:
		return []tickonce.Event{of}
	case tickonce.EventClaimLost, tickonce.EventAbandoned, tickonce.EventBuried:
		return []tickonce.Event{e, of}
	default:
		return []tickonce.Event{e}
	}
}

// moved has seen each kind of event, and reads a queue.
func moved(t *testing.T) *metrics.Metrics {
	m := newMetrics(t, metrics.Options{Schedules: []string{"report"}})
	for kind := tickonce.EventNone; kind < 255; kind++ {
		for _, e := range events(kind) {
			m.Observe(e)
		}
	}
	m.Watch(queuesOf{{Name: "mail", Pending: 1, NextClaimAt: at}})
	return m
}

// queuesOf is an engine with these queues.
type queuesOf []tickonce.QueueInfo

func (q queuesOf) Queues(context.Context) iter.Seq2[tickonce.QueueInfo, error] {
	return func(yield func(tickonce.QueueInfo, error) bool) {
		for _, info := range q {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (queuesOf) DroppedDetails() int64 { return 0 }

// dropper is an engine that has dropped details.
type dropper struct{ queuesOf }

func (dropper) DroppedDetails() int64 { return 9 }

func newMetrics(t *testing.T, o metrics.Options) *metrics.Metrics {
	m, err := metrics.New(o)
	require.NoError(t, err)
	return m
}

// gather scrapes the metrics from a registry of their own, which checks that
// they are consistent.
func gather(t *testing.T, m *metrics.Metrics) []*dto.MetricFamily {
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m))
	families, err := registry.Gather()
	require.NoError(t, err)
	return families
}

// differing names the families that two scrapes show differently.
func differing(before, after []*dto.MetricFamily) (names []string) {
	texts := map[string]string{}
	for _, family := range before {
		texts[family.GetName()] = family.String()
	}
	for _, family := range after {
		if texts[family.GetName()] != family.String() {
			names = append(names, family.GetName())
		}
	}
	slices.Sort(names)
	return names
}
