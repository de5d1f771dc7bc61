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

// TestI9CallsAreOfTheLoopThatMakesThem: while a worker's call is on its way, its
// process's runner makes calls of its own.
func TestI9CallsAreOfTheLoopThatMakesThem(t *testing.T) {
	r, err := Run(*parsed(t, `simulate v1
engine   standby=yes
run      1m
schedule s every=5s queue=q
during   0s..1m  store slow p=0.5 takes=2s
during   11s..1m store error-burst applied=unknown
`))
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, r.Failures)
}
