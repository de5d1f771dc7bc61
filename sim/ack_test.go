package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestClaimsEnd has one job, fired at 1 h and claimed at once, and says what
// becomes of it. Attempts lapse a millisecond after their visibility of 10 s.
func TestClaimsEnd(t *testing.T) {
	for _, c := range []struct {
		name, schedule, fault string
		want                  QueueResult
		marks                 []string
		effect                int64
	}{
		{
			name: "C89 a panic at every attempt ends in death, and the worker lives on", schedule: "handler=panic:100%:1s",
			want: QueueResult{Dead: 1, Claims: 3, Retried: 2, DeadReasons: map[string]int64{"failed": 1}}, marks: []string{"handler-panicked", "dead-letter"},
		},
		{
			name: "C89 a panic by hand leaves the claim to lapse", schedule: "handler=panic:100%:1s heartbeat=1h",
			want: QueueResult{Dead: 1, Claims: 3, DeadReasons: map[string]int64{"lapsed": 1}}, marks: []string{"handler-panicked", "claim-reclaimed", "dead-letter"},
		},
		{
			name: "C89 a panic once costs one attempt", schedule: "handler=ok:1s", fault: "handler panicking", effect: 1,
			want: QueueResult{Done: 1, Claims: 2, Retried: 1}, marks: []string{"handler-panicked"},
		},
		{
			name: "a panic weighs more than a failure", schedule: "handler=fail", fault: "handler panicking schedule=a", effect: 2,
			want: QueueResult{Dead: 1, Claims: 3, Retried: 2, DeadReasons: map[string]int64{"failed": 1}}, marks: []string{"handler-panicked"},
		},
		{
			name: "W4 a worker keeps the claim of a handler that is slow", schedule: "handler=slow",
			want: QueueResult{Done: 1, Claims: 1},
		},
		{
			name: "W4 and that of one that hangs", schedule: "handler=ok:1s", fault: "handler hanging", effect: 1,
			want: QueueResult{Done: 1, Claims: 1},
		},
		{
			name: "QU3 an ack that is late by the whole visibility holds", schedule: "handler=ok:4s", fault: "queue late-ack takes=6s", effect: 1,
			want: QueueResult{Done: 1, Claims: 1},
		},
		{
			name: "QU3 a millisecond later it does not", schedule: "handler=ok:4s", fault: "queue late-ack takes=6001ms", effect: 1,
			want: QueueResult{Done: 1, Claims: 2}, marks: []string{"ack-refused", "claim-reclaimed"},
		},
		{
			name: "QU4 a late retry does not touch the claim of another", schedule: "handler=fail:1s", fault: "queue late-ack takes=9500ms", effect: 1,
			want: QueueResult{Dead: 1, Claims: 3, Retried: 1, DeadReasons: map[string]int64{"failed": 1}}, marks: []string{"claim-reclaimed"},
		},
		{
			name: "QU13 a second ack is refused", schedule: "handler=ok:4s", fault: "queue duplicate-ack queue=q", effect: 1,
			want: QueueResult{Done: 1, Claims: 1}, marks: []string{"duplicate-ack-refused"},
		},
		{
			// Retried at 1 h + 3 s, claimed again 2.5 to 5 s later, for 3 s.
			name: "QU4 a second retry does not touch the next attempt", schedule: "handler=fail:3s", fault: "queue duplicate-ack takes=5001ms", effect: 1,
			want: QueueResult{Dead: 1, Claims: 3, Retried: 2, DeadReasons: map[string]int64{"failed": 1}}, marks: []string{"duplicate-ack-refused"},
		},
		{
			name: "QU4 a second ack that overtakes the first is the one that counts", schedule: "handler=ok:1s", effect: 1,
			fault: "queue late-ack takes=5s\nduring 59m..1h5s queue duplicate-ack takes=2s",
			want:  QueueResult{Done: 1, Claims: 1}, marks: []string{"ack-refused"},
		},
		{
			name: "QU8 heartbeats keep a claim", schedule: "handler=ok:45s heartbeat=10s",
			want: QueueResult{Done: 1, Claims: 1},
		},
		{
			name: "QU8 heartbeats that come too late do not, and the handler gives up", schedule: "handler=ok:45s heartbeat=10001ms",
			want:  QueueResult{Dead: 1, Claims: 3, DeadReasons: map[string]int64{"lapsed": 1}},
			marks: []string{"heartbeat-refused", "claim-reclaimed", "dead-letter"},
		},
		{
			// Its last claim lapses after 50 s, and its worker comes back after 60 s.
			name: "QU9 a job that is out of attempts and has expired died of its expiry", schedule: "handler=slow heartbeat=1h expires=55s",
			want:  QueueResult{Dead: 1, Claims: 3, DeadReasons: map[string]int64{"expired": 1}},
			marks: []string{"ack-refused", "claim-reclaimed", "job-expired"},
		},
		{
			name: "QU5 a millisecond before it has expired, it died of its last claim", schedule: "handler=slow heartbeat=1h expires=60001ms",
			want:  QueueResult{Dead: 1, Claims: 3, DeadReasons: map[string]int64{"lapsed": 1}},
			marks: []string{"ack-refused", "claim-reclaimed", "last-claim-lapsed"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "simulate v1\nrun 90m\nschedule a every=1h queue=q visibility=10s backoff=5s attempts=3 " + c.schedule + "\n"
			if c.fault != "" {
				text += "during 59m..1h5s " + c.fault + "\n"
			}
			r, err := Run(*parsed(t, text))
			require.NoError(t, err)
			require.Equal(t, Pass, r.Verdict, r.Failures)
			got := r.Queues[0]
			c.want.Name, c.want.Enqueued = "q", 1
			if c.want.DeadReasons == nil {
				c.want.DeadReasons = map[string]int64{}
			}
			require.Equal(t, c.want, got)
			for _, id := range c.marks {
				m, ok := markOf(id)
				require.True(t, ok, id)
				require.True(t, r.Coverage.reached(m), id)
			}
			for _, f := range r.Faults {
				require.Equal(t, c.effect, f.Effect, f.Text)
			}
			require.Equal(t, time.Hour, r.Schedules[0].FirstFire.Sub(DefaultStart))
		})
	}
}

// TestAcksDieWithTheirProcess: an ack on its way when its process crashes never
// comes, and the job is handed out again.
func TestAcksDieWithTheirProcess(t *testing.T) {
	r, err := Run(*parsed(t, `simulate v1
run 90m
schedule a every=1h queue=q visibility=10s handler=ok:1s
during 1h..1h2s queue late-ack takes=5s
at 1h3s crash restart=journal
`))
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, r.Failures)
	require.Equal(t, int64(1), r.Queues[0].Done)
	require.Equal(t, int64(2), r.Queues[0].Claims)
}

// TestALateAckIsSentAgain: its call fails at 1 h + 6 s, and comes 5 s later.
func TestALateAckIsSentAgain(t *testing.T) {
	r, err := Run(*parsed(t, `simulate v1
run 90m
schedule a every=1h queue=q visibility=20s handler=ok:1s
during 1h..1h2s queue late-ack takes=5s
during 1h5s..1h7s store error-burst applied=no
`))
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, r.Failures)
	require.Equal(t, int64(1), r.Queues[0].Done)
	require.Equal(t, int64(1), r.Queues[0].Claims)
}
