package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompletionsGoOnFromTheText: of faults, of swarms and of what is expected.
func TestCompletionsGoOnFromTheText(t *testing.T) {
	s := *parsed(t, interleaved)
	for _, c := range []struct {
		complete func(string) []string
		text     string
		want     []string
	}{
		{s.CompleteFault, "clock-j", []string{"clock-jump"}},
		{s.CompleteFault, "store e", []string{"store error-burst"}},
		{s.CompleteFault, "during 1h..2h store e", []string{"during 1h..2h store error-burst"}},
		{s.CompleteFault, "at 5m cra", []string{"at 5m crash"}},
		{s.CompleteFault, "at 5", nil},
		{s.CompleteFault, "crash re", []string{"crash restart="}},
		{s.CompleteFault, "crash restart=", []string{"crash restart=journal", "crash restart=snapshot", "crash restart=empty"}},
		{s.CompleteFault, "crash restart=e after=5m r", []string{"crash restart=e after=5m runner="}},
		{s.CompleteFault, "at 5m edit pause schedule=", []string{"at 5m edit pause schedule=a", "at 5m edit pause schedule=b"}},
		{s.CompleteFault, "queue late-ack queue=", []string{"queue late-ack queue=q"}},
		{s.CompleteFault, "down for=", nil},
		{s.CompleteFault, "throttle profile=h", []string{"throttle profile=hidden-tab"}},
		{s.CompleteFault, "rain", nil},
		{s.CompleteFault, "down ", []string{"down runner=", "down point=", "down for=", "down at=", "down during="}},
		{s.CompleteFault, "down at=2h d", nil},
		{CompleteSwarm, "port", []string{"portfolio"}},
		{CompleteSwarm, "f", []string{"faults="}},
		{CompleteSwarm, "faults=1..8 ", []string{"faults=1..8 kinds="}},
		{CompleteSwarm, "faults=1..8 kinds=clock,-clock-j", []string{"faults=1..8 kinds=clock,-clock-jump"}},
		{CompleteSwarm, "kinds=clo", []string{"kinds=clock", "kinds=clock-jump", "kinds=clock-drift", "kinds=clock-freeze", "kinds=clock-strobe"}},
		{s.CompleteExpect, "sometimes:two", []string{"sometimes:two-leaders"}},
		{s.CompleteExpect, "no-double-fire b.f", []string{"no-double-fire b.fires="}},
		{s.CompleteExpect, "verdict=s", []string{"verdict=safety"}},
	} {
		require.Equal(t, c.want, c.complete(c.text), c.text)
	}
	kinds := s.CompleteFault("")
	require.Len(t, kinds, len(faultWords))
	for _, k := range faultWords {
		require.True(t, slices.ContainsFunc(kinds, func(text string) bool { return strings.HasPrefix(text, k) }))
	}
}
