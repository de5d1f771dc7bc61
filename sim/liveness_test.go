package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestT11RearmAfterTwoSteps: a clock that steps back twice leaves no schedule
// behind, where the repair is asked for.
func TestT11RearmAfterTwoSteps(t *testing.T) {
	r, err := Run(*parsed(t, `simulate v1
engine standby=yes clock-repair=rearm
run 2h
schedule a every=1m queue=q
at 30s clock-jump by=-1d
at 90s clock-jump by=-1d
`))
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	require.EqualValues(t, 120, r.Schedules[0].Fired)
}
