package htmlreport

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/sim"
)

// The page of a what-if says what the comparison says: the headline first, of each
// fault what it led to, and what was counted otherwise.
func TestAWhatIfSaysWhatTheComparisonSays(t *testing.T) {
	without := sim.Scenario{
		For:       4 * time.Hour,
		Schedules: []sim.Schedule{{Name: "sync", Spec: "@every 5m", Queue: "mail"}, {Name: "daily", Spec: "@every 1h", Queue: "mail"}},
		Faults:    []sim.Fault{{Kind: sim.FaultDown, At: 10 * time.Minute, For: 7 * time.Minute}},
	}
	with := without
	with.Faults = append(with.Faults[:1:1], sim.Fault{Kind: sim.FaultDown, At: 2 * time.Hour, For: 30 * time.Minute})
	c, err := sim.Compare(without, with)
	require.NoError(t, err)
	r, result := recorded(t, with)
	d, err := r.run(result, Source{File: "my file.sim", Text: "simulate v1\n", WhatIf: c, Faults: []string{"down for=30m at=2h"}})
	require.NoError(t, err)

	require.Equal(t, c.Headline(), d.Verdict.Says)
	require.Len(t, d.Stories, 3)
	require.NotEmpty(t, d.Stories[1], "of the fault that was added")
	for i, fault := range []int{1, 2, 0} {
		lines := c.Story(fault)
		require.Len(t, d.Stories[i], len(lines))
		for k := range lines {
			require.Contains(t, d.Stories[i][k].Text, lines[k].Text())
		}
	}
	require.False(t, d.Against.Calm)
	require.Contains(t, d.Against.Differences, difference{What: "fired late", First: 2, Second: 9, By: 30 * 60_000})
	require.Contains(t, d.Against.Differences, difference{Schedule: "daily", What: "fired late", First: 0, Second: 1, By: 30 * 60_000})
	const minute = 60_000
	require.Equal(t, [][3]int64{{120 * minute, 5 * minute, 6}}, d.Schedules[0].Ghosts, "where they fired without the fault that was added, and do not with it")
	require.Equal(t, [][3]int64{{120 * minute, 0, 1}}, d.Schedules[1].Ghosts)
	require.Contains(t, d.Scenario, "2h..2h30m down")
	require.Equal(t, "simulate what-if 'my file.sim' --fault 'down for=30m at=2h'", d.Commands[0])
}
