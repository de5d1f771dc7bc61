package crashtest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process whose loops run the schedules, work and enqueue lives through crashes
// of the server: one that is over before the retries are, and one after which it
// stands by. It goes on by itself each time, and nothing is lost or done twice.
func TestAWholeProcessOutlivesTheServer(t *testing.T) {
	t.Parallel()
	w := alone(t)
	w.register(load[:50])
	whole := w.begin(part{Name: "whole", Runs: true, Works: true, Orders: true, StandBy: true})
	goesOn := func() {
		t.Helper()
		now := w.now()
		for w.behind(now) > 0 {
			w.until(whole, "advanced")
		}
		w.until(whole, "done")
		w.until(whole, "ordered")
	}
	goesOn()

	w.server.Kill(t)
	w.until(whole, "retrying")
	w.server.Run(t)
	w.admin.Reset()
	goesOn()

	w.server.Kill(t)
	w.until(whole, "stand_by")
	w.server.Run(t)
	w.admin.Reset()
	w.until(whole, "leading")
	goesOn()

	w.dismiss(func(line) {})
	a, v := w.judged()
	require.Empty(t, v.faults, strings.Join(v.told, "\n"))
	require.NotEmpty(t, a.orders)
}
