package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/sim"
)

// TestExplainIsNeverLong asks for outages and runs of all lengths, and counts
// what is listed.
func TestExplainIsNeverLong(t *testing.T) {
	for _, spec := range []string{"@every 1s", "@every 7s", "@every 1h", "@every 106751d"} {
		for _, down := range []time.Duration{0, time.Minute, 65 * time.Second, 100 * 24 * time.Hour} {
			for policy := sim.CatchUpAll; policy <= sim.CatchUpNone; policy++ {
				for _, run := range []time.Duration{0, time.Minute, 5 * time.Minute} {
					q := sim.Question{Spec: spec, Down: down, CatchUp: policy, For: run}
					told, err := sim.Explain(q)
					require.NoError(t, err)
					o := explanationJSON(&q, told)
					require.LessOrEqual(t, len(o.Boundaries), 200)
					var fired, skipped int64
					for _, b := range o.Boundaries {
						if b.Fate == "skipped" {
							skipped += max(b.Count, 1)
						} else {
							fired += max(b.Count, 1)
						}
					}
					require.Equal(t, told.Fired, fired)
					require.Equal(t, told.Skipped, skipped)
				}
			}
		}
	}
}

func TestEntries(t *testing.T) {
	at := func(d time.Duration) time.Time { return sim.DefaultStart.Add(d) }
	passage := func(fate sim.Fate, count int64) []sim.Passage {
		return []sim.Passage{{Fate: fate, First: at(time.Second), Count: count, MaxLate: time.Minute}}
	}
	shape := func(list []entry) (shape []int64) {
		for _, e := range list {
			shape = append(shape, e.first, e.count)
		}
		return shape
	}
	require.Empty(t, entries(nil, 4, 1))
	require.Equal(t, []int64{0, 1, 1, 1, 2, 1, 3, 1}, shape(entries(passage(sim.Fired, 4), 4, 1)))
	require.Equal(t, []int64{0, 1, 1, 3, 4, 1}, shape(entries(passage(sim.CaughtUp, 5), 4, 1)))
	require.Equal(t, []int64{0, 5}, shape(entries(passage(sim.CaughtUp, 5), 4, 0)))
	require.Equal(t, []int64{0, 5}, shape(entries(passage(sim.Skipped, 5), 4, 1)), "what was skipped is one range")

	middle := entries(passage(sim.CaughtUp, 5), 4, 1)[1]
	require.Equal(t, at(2*time.Second), middle.at(0, time.Second))
	require.Equal(t, at(4*time.Second), middle.at(middle.count-1, time.Second))
	require.Equal(t, 57*time.Second, middle.late(middle.count-1, time.Second))
}
