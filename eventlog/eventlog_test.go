package eventlog_test

import (
	"bytes"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/eventlog"
)

var (
	at       = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	hourAgo  = at.Add(-time.Hour)
	errStore = errors.New("connection reset")
)

// cases hold one event of each kind and more of those whose level depends on
// what is in them, with the line that is written of them.
var cases = []struct {
	event tickonce.Event
	line  string
}{
	{
		tickonce.Event{Kind: tickonce.EventScheduled, Schedule: "report", Queue: "mail", Boundary: at},
		`level=INFO msg=scheduled schedule=report queue=mail boundary=2026-03-01T12:00:00.000Z`,
	},
	{
		tickonce.Event{Kind: tickonce.EventUnscheduled, Schedule: "report"},
		`level=INFO msg=unscheduled schedule=report`,
	},
	{
		tickonce.Event{Kind: tickonce.EventPaused, Schedule: "report"},
		`level=INFO msg=paused schedule=report`,
	},
	{
		tickonce.Event{Kind: tickonce.EventResumed, Schedule: "report", Boundary: at},
		`level=INFO msg=resumed schedule=report boundary=2026-03-01T12:00:00.000Z`,
	},
	{
		tickonce.Event{Kind: tickonce.EventFired, Schedule: "report", Queue: "mail", Job: 7, Boundary: at},
		`level=DEBUG msg=fired schedule=report queue=mail job=7 boundary=2026-03-01T12:00:00.000Z`,
	},
	{
		tickonce.Event{Kind: tickonce.EventSkipped, Schedule: "report", First: hourAgo, Last: at, Count: 61, Reason: "cap"},
		`level=WARN msg=skipped schedule=report first=2026-03-01T11:00:00.000Z last=2026-03-01T12:00:00.000Z count=61 reason=cap`,
	},
	{
		tickonce.Event{Kind: tickonce.EventSkipped, Schedule: "report", First: at, Last: at, Count: 1, Reason: "overlap"},
		`level=INFO msg=skipped schedule=report first=2026-03-01T12:00:00.000Z last=2026-03-01T12:00:00.000Z count=1 reason=overlap`,
	},
	{
		tickonce.Event{Kind: tickonce.EventQuarantined, Schedule: "report", Queue: "mail", Reason: "the queue is full", Count: 2},
		`level=WARN msg=quarantined schedule=report queue=mail count=2 reason="the queue is full"`,
	},
	{
		tickonce.Event{Kind: tickonce.EventCursorAhead, Schedule: "report", Boundary: at},
		`level=WARN msg="cursor ahead" schedule=report boundary=2026-03-01T12:00:00.000Z`,
	},
	{
		tickonce.Event{Kind: tickonce.EventRearmed, Schedule: "report", Boundary: at},
		`level=WARN msg=rearmed schedule=report boundary=2026-03-01T12:00:00.000Z`,
	},
	{
		tickonce.Event{Kind: tickonce.EventLeading, Owner: "a/1"},
		`level=INFO msg=leading owner=a/1`,
	},
	{
		tickonce.Event{Kind: tickonce.EventLeaseLapsed, Owner: "a/1"},
		`level=WARN msg="lease lapsed" owner=a/1`,
	},
	{
		tickonce.Event{Kind: tickonce.EventLeadershipLost, Owner: "a/1"},
		`level=WARN msg="leadership lost" owner=a/1`,
	},
	{
		tickonce.Event{
			Kind: tickonce.EventStandBy, Owner: "a/1", Wait: 5 * time.Second,
			Err: &tickonce.OpError{Op: "run schedules", Phase: tickonce.PhaseRenew, Err: errStore},
		},
		`level=WARN msg="stand by" owner=a/1 wait=5s error="run schedules: renew: connection reset"`,
	},
	{
		tickonce.Event{
			Kind: tickonce.EventStandBy, Owner: "a/1", Wait: 5 * time.Second,
			Err: &tickonce.OpError{Op: "run schedules", Phase: tickonce.PhaseAcquire, Err: tickonce.ErrLeadershipLost},
		},
		`level=DEBUG msg="stand by" owner=a/1 wait=5s error="run schedules: acquire: leadership lost: another runner holds the scheduler's lock"`,
	},
	{
		tickonce.Event{
			Kind: tickonce.EventRetrying, Owner: "a/1", Phase: tickonce.PhaseAdvance, Count: 2,
			Wait: 200 * time.Millisecond, Err: errStore,
		},
		`level=WARN msg=retrying count=2 owner=a/1 phase=advance wait=200ms error="connection reset"`,
	},
	{
		tickonce.Event{Kind: tickonce.EventStopped, Owner: "a/1"},
		`level=INFO msg=stopped owner=a/1`,
	},
	{
		tickonce.Event{Kind: tickonce.EventStopped, Owner: "a/1", Err: errStore},
		`level=ERROR msg=stopped owner=a/1 error="connection reset"`,
	},
	{
		tickonce.Event{Kind: tickonce.EventEnqueued, Queue: "mail", Job: 7},
		`level=DEBUG msg=enqueued queue=mail job=7`,
	},
	{
		tickonce.Event{Kind: tickonce.EventClaimed, Queue: "mail", Job: 7, Count: 1},
		`level=DEBUG msg=claimed queue=mail job=7 count=1`,
	},
	{
		tickonce.Event{Kind: tickonce.EventBuried, Queue: "mail", Count: 3},
		`level=WARN msg=buried queue=mail count=3`,
	},
	{
		tickonce.Event{Kind: tickonce.EventDone, Queue: "mail", Job: 7, Schedule: "report", Boundary: at, Execution: tickonce.ExecutionOK, Took: 1500 * time.Millisecond},
		`level=DEBUG msg=done schedule=report queue=mail job=7 boundary=2026-03-01T12:00:00.000Z execution=ok took=1.5s`,
	},
	{
		tickonce.Event{Kind: tickonce.EventRetried, Queue: "mail", Job: 7, Count: 1, Wait: 40 * time.Second, Execution: tickonce.ExecutionFailed, Reason: "no route"},
		`level=INFO msg=retried queue=mail job=7 count=1 execution=failed reason="no route" wait=40s`,
	},
	{
		tickonce.Event{Kind: tickonce.EventDied, Queue: "mail", Job: 7, Count: 3, Execution: tickonce.ExecutionTimedOut, Reason: "no route"},
		`level=WARN msg=died queue=mail job=7 count=3 execution=timed_out reason="no route"`,
	},
	{
		tickonce.Event{Kind: tickonce.EventClaimLost, Queue: "mail", Job: 7},
		`level=WARN msg="claim lost" queue=mail job=7`,
	},
	{
		tickonce.Event{Kind: tickonce.EventCancelled, Queue: "mail", Job: 7},
		`level=INFO msg=cancelled queue=mail job=7`,
	},
	{
		tickonce.Event{Kind: tickonce.EventRequeued, Queue: "mail", Job: 8},
		`level=INFO msg=requeued queue=mail job=8`,
	},
	{
		tickonce.Event{Kind: tickonce.EventPurged, Queue: "mail", Count: 2},
		`level=INFO msg=purged queue=mail count=2`,
	},
	{
		tickonce.Event{Kind: tickonce.EventAbandoned, Owner: "worker-1", Queue: "mail", Job: 7},
		`level=WARN msg=abandoned queue=mail job=7 owner=worker-1`,
	},
	{
		tickonce.Event{Kind: tickonce.EventBreakerOpened, Schedule: "report", Queue: "mail", Job: 7, Count: 3},
		`level=WARN msg="breaker opened" schedule=report queue=mail job=7 count=3`,
	},
	{
		tickonce.Event{Kind: tickonce.EventTriggered, Schedule: "report", Queue: "mail", Job: 7},
		`level=INFO msg=triggered schedule=report queue=mail job=7`,
	},
	{
		tickonce.Event{Kind: tickonce.EventDelivered, Queue: "__alkstore_outbox:chat", Job: 8, Origin: 7, Delivery: tickonce.Delivered},
		`level=DEBUG msg=delivered outbox=chat job=8 origin=7 delivery=delivered`,
	},
	{
		tickonce.Event{
			Kind: tickonce.EventDeliveryRetried, Queue: "__alkstore_outbox:chat", Job: 8, Origin: 7, Delivery: tickonce.DeliveryTransient,
			Count: 1, Wait: time.Second, Reason: "no route",
		},
		`level=INFO msg="delivery retried" outbox=chat job=8 count=1 origin=7 delivery=transient reason="no route" wait=1s`,
	},
	{
		tickonce.Event{
			Kind: tickonce.EventDeliveryFailed, Queue: "__alkstore_outbox:chat", Job: 8, Origin: 7, Delivery: tickonce.DeliveryPermanent,
			Count: 1, Reason: "no such channel",
		},
		`level=WARN msg="delivery failed" outbox=chat job=8 count=1 origin=7 delivery=permanent reason="no such channel"`,
	},
}

func TestQ2EachEventIsOneLine(t *testing.T) {
	for _, c := range cases {
		var out bytes.Buffer
		c.event.At = at
		eventlog.New(textLogger(&out, slog.LevelDebug))(c.event)
		require.Equal(t, "time=2026-03-01T12:00:00.000Z "+c.line+"\n", out.String(), c.event.Kind)
	}
}

// A kind that the engine gains must get a level, and a line in the table.
func TestEveryKindHasALevel(t *testing.T) {
	unknown := tickonce.EventKind(255)
	for kind := tickonce.EventNone + 1; kind.String() != unknown.String(); kind++ {
		require.True(t, eventlog.HasLevel(kind), "package eventlog has no level for %q", kind)
		written := false
		for _, c := range cases {
			written = written || c.event.Kind == kind
		}
		require.True(t, written, "the table of this test has no %q", kind)
	}
	require.False(t, eventlog.HasLevel(unknown))
}

// A field that an event gains must be written.
func TestEachFieldIsWritten(t *testing.T) {
	fields := reflect.TypeFor[tickonce.Event]()
	for i := range fields.NumField() {
		name := strings.ToLower(fields.Field(i).Name)
		if name == "kind" || name == "at" { // the message and the time
			continue
		}
		if name == "err" {
			name = "error"
		}
		var event tickonce.Event
		switch field := reflect.ValueOf(&event).Elem().Field(i); field.Interface().(type) {
		case string, tickonce.Phase:
			field.SetString("report")
		case time.Time:
			field.Set(reflect.ValueOf(at))
		case error, nil:
			field.Set(reflect.ValueOf(&errStore).Elem())
		default:
			if field.CanUint() {
				field.SetUint(2)
			} else {
				field.SetInt(2)
			}
		}
		var out bytes.Buffer
		eventlog.New(textLogger(&out, slog.LevelDebug))(event)
		require.Contains(t, out.String(), " "+name+"=")
	}
}

func TestUnknownKindIsAWarning(t *testing.T) {
	var out bytes.Buffer
	eventlog.New(textLogger(&out, slog.LevelWarn))(tickonce.Event{Kind: 255, At: at, Queue: "mail"})
	require.Equal(t, "time=2026-03-01T12:00:00.000Z level=WARN msg=unknown queue=mail\n", out.String())
}

func TestDisabledLevelCostsNothing(t *testing.T) {
	var out bytes.Buffer
	observe := eventlog.New(textLogger(&out, slog.LevelInfo))
	event := tickonce.Event{Kind: tickonce.EventClaimed, At: at, Queue: "mail", Job: 7, Count: 1}
	require.Zero(t, testing.AllocsPerRun(100, func() { observe(event) }))
	require.Empty(t, out.String())
}

func TestNamesCannotForgeALine(t *testing.T) {
	var out bytes.Buffer
	eventlog.New(textLogger(&out, slog.LevelInfo))(tickonce.Event{
		Kind: tickonce.EventDied, At: at, Queue: "mail", Job: 7, Reason: "no route\nlevel=ERROR msg=forged",
	})
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
}

func TestNilLoggerIsRefusedAtOnce(t *testing.T) {
	require.Panics(t, func() { eventlog.New(nil) })
}

func TestAttributesOfTheLoggerAreKept(t *testing.T) {
	var out bytes.Buffer
	logger := textLogger(&out, slog.LevelInfo).With("service", "billing")
	eventlog.New(logger)(tickonce.Event{Kind: tickonce.EventPaused, At: at, Schedule: "report"})
	require.Equal(t, "time=2026-03-01T12:00:00.000Z level=INFO msg=paused service=billing schedule=report\n", out.String())
}

func textLogger(out *bytes.Buffer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
}
