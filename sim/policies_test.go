package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each policy is one note with its rule, and its word is the one of a scenario.
func TestPoliciesAreSaid(t *testing.T) {
	require.Empty(t, Policies{Breaker: NoBreaker}.Notes())
	require.Empty(t, Policies{}.String())
	p := Policies{
		Overlap: OverlapBufferOne, Hours: Hours{Start: 22 * time.Hour, End: 6 * time.Hour}, RunOnce: true, Breaker: 1, Timeout: 90 * time.Second,
	}
	require.Equal(t, "overlap=buffer-one hours=22:00-06:00 run-once=yes breaker=1 timeout=1m30s", p.String())
	require.Equal(t, []Note{
		{"X9", "one job of it runs at a time, and while another one waits, what comes due is skipped"},
		{"X10", "outside of 22:00-06:00, UTC, what comes due is skipped"},
		{"X8", "it fires once, and its job is tried once"},
		{"X4", "a job that died pauses it, until it is resumed"},
		{"X5", "a run that takes longer than 1m30s has failed"},
	}, p.Notes())
	require.Equal(t, []Note{{"X4", "3 jobs in a row that died pause it, until it is resumed"}}, Policies{Breaker: 3}.Notes())
}
