package metrics

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tickonce/tickonce"
)

// Options say what has a label value of its own, and how long a scrape may
// take. The zero value works.
type Options struct {
	// Queues have a value of the label queue of their own, always.
	Queues []string

	// MaxQueues is how many other queues get one, first come, first served.
	// All further ones are "other" for the life of the Metrics. Default 100;
	// at most 10,000. Negative: none.
	MaxQueues int

	// Schedules have the metrics that are labelled by schedule. Default: none.
	Schedules []string

	// ReadTimeout is how long the reading of the queues may take at a scrape.
	// Default 5 s.
	ReadTimeout time.Duration
}

const (
	defaultMaxQueues   = 100
	maxMaxQueues       = 10_000
	defaultReadTimeout = 5 * time.Second

	other = "other" // the label value of all that has none of its own
)

// Metrics counts the events of one engine, and reads its queues at a scrape. It
// is safe for concurrent use.
type Metrics struct {
	events *events
	queues *queues
}

// Engine is what a scrape reads: a [tickonce.Engine], or one that embeds it.
type Engine interface {
	Queues(ctx context.Context) iter.Seq2[tickonce.QueueInfo, error]
	DroppedDetails() int64
}

// New returns metrics that are all zero. It returns a
// [tickonce.ErrInvalidOption] for options out of their range.
func New(o Options) (*Metrics, error) {
	if o.MaxQueues == 0 {
		o.MaxQueues = defaultMaxQueues
	}
	if o.ReadTimeout == 0 {
		o.ReadTimeout = defaultReadTimeout
	}
	var faults []error
	if o.MaxQueues > maxMaxQueues {
		faults = append(faults, &tickonce.OptionError{
			Option: "MaxQueues", Problem: "is " + strconv.Itoa(o.MaxQueues) + ", want at most " + strconv.Itoa(maxMaxQueues),
		})
	}
	if o.ReadTimeout < 0 {
		faults = append(faults, &tickonce.OptionError{
			Option: "ReadTimeout", Problem: "is " + o.ReadTimeout.String() + ", want more than 0s",
		})
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	events := newEvents(o.Schedules)
	events.names = newNames(o.Queues, o.MaxQueues, events.begin)
	return &Metrics{events: events, queues: newQueues(events.names, o.ReadTimeout)}, nil
}

// Observe counts an event. It is what [tickonce.Config.Observer] is set to.
func (m *Metrics) Observe(e tickonce.Event) { m.events.observe(e) }

// Watch has the engine's queues read at each scrape from now on, in place of
// another's. Until it is called there are no metrics of queues.
func (m *Metrics) Watch(engine Engine) { m.queues.engine.Store(&engine) }

// Describe is that of [prometheus.Collector].
func (m *Metrics) Describe(descs chan<- *prometheus.Desc) {
	m.events.describe(descs)
	m.queues.describe(descs)
}

// Collect is that of [prometheus.Collector]. It reads the queues, for as long
// as [Options.ReadTimeout] at most.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	m.queues.collect(metrics) // first: it may meet a new queue
	m.events.collect(metrics)
}

// names gives each queue its value of the label queue. What a queue was once
// given it keeps.
type names struct {
	born func(label string, outbox bool) // is told of each value before its first use

	mu     sync.RWMutex
	own    map[string]string
	spare  int           // how many more get a value of their own
	folded map[bool]bool // whether a queue, or an outbox (true), had to do without
}

// newNames is told of the queues that have a value in any case, and of how many
// more get one.
func newNames(named []string, spare int, born func(label string, outbox bool)) *names {
	n := &names{born: born, own: map[string]string{}, folded: map[bool]bool{}, spare: len(named)}
	for _, name := range named {
		n.label(name)
	}
	n.spare = max(spare, 0)
	return n
}

func (n *names) label(queue string) string {
	name, outbox := tickonce.OutboxName(queue)
	n.mu.RLock()
	label, known := n.own[queue]
	folded := n.folded[outbox]
	n.mu.RUnlock()
	switch {
	case known:
		return label
	case folded:
		return other
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if label, known := n.own[queue]; known {
		return label
	}
	label = other
	if n.spare > 0 {
		n.spare--
		if label = valid(queue); outbox {
			label = "outbox:" + valid(name)
		}
		n.own[queue] = label
	} else {
		n.folded[outbox] = true
	}
	n.born(label, outbox)
	return label
}

// valid is the name as a label may have it: a row that came from outside may
// hold any bytes.
func valid(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
