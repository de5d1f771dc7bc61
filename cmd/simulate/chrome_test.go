package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/sim"
)

// timelineOf is the timeline of a scenario file, as text and read back.
func timelineOf(t *testing.T, path string) (string, []chromeEvent) {
	in := input{}
	s, _, err := in.scenario(path)
	require.NoError(t, err)
	s, err = s.Draw(3)
	require.NoError(t, err)
	c := newChrome(&s)
	require.NoError(t, c.watch())
	var text strings.Builder
	require.NoError(t, c.write(&text))
	var file struct {
		DisplayTimeUnit string        `json:"displayTimeUnit"`
		TraceEvents     []chromeEvent `json:"traceEvents"`
	}
	d := json.NewDecoder(strings.NewReader(text.String()))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&file))
	require.Equal(t, "ms", file.DisplayTimeUnit)
	return text.String(), file.TraceEvents
}

// A timeline keeps to Chrome's trace format: each event has the fields of its
// phase, times do not go back, slices of a thread do not overlap, every flow has
// its two ends, the first within a slice and the second at an event.
func TestChromeTimelinesAreWellFormed(t *testing.T) {
	phases := map[string]int{}
	for _, name := range []string{"bad-ntp-rearm", "crash-snapshot", "edited-while-firing", "interleavings", "paused-leader", "skewed-clocks"} {
		path := filepath.Join("../../examples/scenarios", name+".sim")
		text, events := timelineOf(t, path)
		again, _ := timelineOf(t, path)
		require.True(t, text == again, "%s: equal runs have other bytes", path)
		var ts int64
		named := map[[2]int]bool{}
		ends := map[[2]int]int64{}
		begins := map[int64]chromeEvent{}
		at := map[[3]int64]bool{} // where an event stands that is no flow
		for _, e := range events {
			if e.Ph == "i" || e.Ph == "X" {
				at[[3]int64{int64(e.PID), int64(e.TID), e.TS}] = true
			}
		}
		for _, e := range events {
			phases[e.Ph]++
			thread := [2]int{e.PID, e.TID}
			require.NotEmpty(t, e.Name)
			require.Positive(t, e.PID)
			require.GreaterOrEqual(t, e.TS, ts, "%s: %+v", path, e)
			ts = e.TS
			switch e.Ph {
			case "M":
				require.Contains(t, []string{"process_name", "process_sort_index", "thread_name", "thread_sort_index"}, e.Name)
				named[thread] = true
				continue
			case "X":
				require.NotNil(t, e.Dur)
				require.GreaterOrEqual(t, *e.Dur, int64(0), "%s: %+v", path, e)
				if e.PID != chromeFaults {
					require.LessOrEqual(t, ends[thread], e.TS, "%s: overlaps %+v", path, e)
				}
				ends[thread] = max(ends[thread], e.TS+*e.Dur)
			case "i":
				require.Contains(t, []string{"t", "g"}, e.Scope)
			case "C":
				require.Contains(t, e.Args, "value")
				continue
			case "s":
				require.NotZero(t, e.ID)
				require.NotContains(t, begins, e.ID)
				require.LessOrEqual(t, e.TS, ends[thread], "%s: begins outside of a slice: %+v", path, e)
				begins[e.ID] = e
			case "f":
				from, ok := begins[e.ID]
				require.True(t, ok, "%s: %+v", path, e)
				require.Equal(t, from.Name, e.Name)
				require.True(t, at[[3]int64{int64(e.PID), int64(e.TID), e.TS}], "%s: ends at nothing: %+v", path, e)
				delete(begins, e.ID)
			default:
				require.Fail(t, "phase", "%+v", e)
			}
			require.True(t, named[thread] || e.PID == chromeStore, "%s: a thread without a name: %+v", path, e)
		}
		require.Empty(t, begins, path)
	}
	for _, ph := range []string{"M", "X", "i", "C", "s", "f"} {
		require.Positive(t, phases[ph], ph)
	}
}

// Late fires are arrived at by a flow from the lease under which they fired, and
// that lease by one from what had kept it away.
func TestChromeFlowsLeadFromFaultToFire(t *testing.T) {
	_, events := timelineOf(t, "../../examples/scenarios/regional-outage.sim")
	flowTo := func(pid int, name string) chromeEvent {
		i := slices.IndexFunc(events, func(e chromeEvent) bool { return e.PID == pid && e.Name == name && e.TS > 0 })
		require.Positive(t, i, name)
		end := events[i-1]
		require.Equal(t, "f", end.Ph)
		begin := slices.IndexFunc(events, func(e chromeEvent) bool { return e.Ph == "s" && e.ID == end.ID })
		return events[begin]
	}
	late := flowTo(chromeSchedules, "fired late")
	require.Equal(t, [2]int{chromeProcess, chromeLead}, [2]int{late.PID, late.TID})
	lease := flowTo(chromeProcess, "leads, term 2")
	require.Equal(t, [2]int{chromeProcess, chromeAway}, [2]int{lease.PID, lease.TID})
	away := flowTo(chromeProcess, "down")
	require.Equal(t, [2]int{chromeFaults, 1}, [2]int{away.PID, away.TID})
}

func TestChromeTimelinesEscapeNames(t *testing.T) {
	s := sim.Scenario{For: 1e12, Schedules: []sim.Schedule{{Name: "</script>\u202e\"", Spec: "@every 1m", Queue: "q"}}}
	c := newChrome(&s)
	require.NoError(t, c.watch())
	var text strings.Builder
	require.NoError(t, c.write(&text))
	require.NotContains(t, text.String(), "\u202e")
	require.NotContains(t, text.String(), "</script>")
	require.True(t, json.Valid([]byte(text.String())))
}
