package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestO7HandlersWriteAllOrNothing: each ack brings its jobs, whatever calls are lost,
// slow or refused meanwhile.
func TestO7HandlersWriteAllOrNothing(t *testing.T) {
	const text = `simulate v1
engine   runners=2 standby=yes
run      2h30s
schedule a every=1m queue=q handler=ok:1s visibility=2m attempts=99 backoff=1s
during 10m..40m handler spawning tx=yes jobs=2
`
	for _, fault := range []string{
		"during 5m..50m store error-burst applied=yes p=0.3 op=commit",
		"during 5m..50m store error-burst applied=no p=0.3",
		"during 5m..50m store slow takes=1s..70s op=commit",
		"during 5m..50m store journal-error p=0.3",
		"during 5m..50m store journal-error torn=yes p=0.05",
		"during 5m..50m handler failing p=0.3",
		"at 12m crash restart=journal after=5s",
	} {
		r := passes(t, text+fault+"\n")
		q := &r.Queues[0]
		require.EqualValues(t, q.Enqueued, q.Done, fault)
		require.Zero(t, (q.Enqueued-r.Schedules[0].Fired)%2, fault)
	}
}
