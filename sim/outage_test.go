package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestI9WaitsAreByTheClock: a process whose clock is fast waits 5 s of it, which
// is no spinning.
func TestI9WaitsAreByTheClock(t *testing.T) {
	r, err := Run(*parsed(t, `simulate v1
engine   standby=yes
run      1h
queue    q workers=0
schedule s every=1m queue=q
during   9m..21m  clock-drift ppm=+1000000
during   10m..20m store error-burst applied=no
`))
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict)
}
