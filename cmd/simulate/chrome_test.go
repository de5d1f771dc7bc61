package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/sim"
)

// timelineOf is the timeline of a scenario file, as text and read back.
func timelineOf(t *testing.T, path string, seed uint64) (string, []chromeEvent) {
	in := input{}
	s, _, err := in.scenario(path)
	require.NoError(t, err)
	s, err = s.Draw(seed)
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

// A timeline keeps to Chrome's trace format, whatever happens in the run.
func TestChromeTimelinesAreWellFormed(t *testing.T) {
	phases := map[string]int{}
	files, err := filepath.Glob("../../examples/scenarios/*.sim")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	seeds := uint64(20) // of a swarm
	if testing.Short() {
		seeds = 4
	}
	for _, path := range files {
		s, _, err := (&input{}).scenario(path)
		require.NoError(t, err)
		if s.For > 48*time.Hour && testing.Short() {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			for seed := range seeds {
				text, _ := timelineOf(t, path, seed)
				if seed == 0 {
					again, _ := timelineOf(t, path, seed)
					require.True(t, text == again, "equal runs have other bytes")
				}
				for phase, n := range checkTimeline(t, text) {
					phases[phase] += n
				}
				if s.Swarm == (sim.Swarm{}) {
					break
				}
			}
		})
	}
	for _, ph := range []string{"M", "X", "i", "C", "s", "f"} {
		require.Positive(t, phases[ph], ph)
	}
}

// phaseFields are the fields that an event of a phase must have and, after the
// bar, those that it may have.
var phaseFields = map[string]string{
	"M": "name ph ts pid tid args |",
	"X": "name cat ph ts dur pid tid args |",
	"i": "name cat ph ts s pid tid args |",
	"C": "name cat ph ts pid tid args |",
	"s": "name cat ph ts id pid tid |",
	"f": "name cat ph ts id pid tid |",
}

// checkTimeline checks a file event by event against the format: the fields of each
// phase and their types; times in whole microseconds that do not go back; slices
// of a thread that do not overlap; threads and processes that have a name;
// counters whose values are numbers; and flows of which each has two ends, the
// first within a slice and the second just before a slice or an instant of its
// thread, which is where a viewer binds it. It answers the number of events of
// each phase.
func checkTimeline(t *testing.T, text string) map[string]int {
	t.Helper()
	type thread struct{ pid, tid int64 }
	type end struct {
		name, cat string
		ts        int64
	}
	var file struct {
		DisplayTimeUnit string           `json:"displayTimeUnit"`
		TraceEvents     []map[string]any `json:"traceEvents"`
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&file))
	require.Equal(t, "ms", file.DisplayTimeUnit)
	phases := map[string]int{}
	var last int64
	processes, threads := map[int64]bool{}, map[thread]bool{}
	slices := map[thread][2]int64{} // the latest
	begun, bound := map[int64]end{}, map[int64]bool{}
	waiting := map[thread][]int64{} // when flows end there that are not yet bound
	for _, e := range file.TraceEvents {
		text := func(key string) string {
			s, ok := e[key].(string)
			require.True(t, ok && s != "", "%s of %v", key, e)
			return s
		}
		whole := func(key string) int64 {
			number, ok := e[key].(json.Number)
			require.True(t, ok, "%s of %v", key, e)
			n, err := number.Int64()
			require.NoError(t, err, "%v", e)
			require.True(t, 0 <= n && n < 1<<53, "%s of %v", key, e)
			return n
		}
		ph := text("ph")
		phases[ph]++
		must, may, known := strings.Cut(phaseFields[ph], "|")
		require.True(t, known, "%v", e)
		for _, key := range strings.Fields(must) {
			require.Contains(t, e, key)
		}
		for key := range e {
			require.Contains(t, strings.Fields(must+may), key, "%v", e)
		}
		name, ts, at := text("name"), whole("ts"), thread{whole("pid"), whole("tid")}
		require.Positive(t, at.pid)
		require.GreaterOrEqual(t, ts, last, "%v", e)
		last = ts
		if ph != "M" {
			require.True(t, processes[at.pid], "a process without a name: %v", e)
			require.True(t, ph == "C" || threads[at] || e["s"] == "g", "a thread without a name: %v", e)
		}
		args, _ := e["args"].(map[string]any)
		switch ph {
		case "M":
			_, numeric := args["sort_index"].(json.Number)
			_, named := args["name"].(string)
			switch name {
			case "process_name":
				require.True(t, named && !processes[at.pid], "%v", e)
				processes[at.pid] = true
			case "thread_name":
				require.True(t, named && !threads[at], "%v", e)
				threads[at] = true
			default:
				require.Contains(t, []string{"process_sort_index", "thread_sort_index"}, name)
				require.True(t, numeric, "%v", e)
			}
		case "X":
			require.LessOrEqual(t, slices[at][1], ts, "overlaps %v", e)
			slices[at] = [2]int64{ts, ts + whole("dur")}
		case "i":
			require.Contains(t, []any{"t", "g"}, e["s"])
		case "C":
			require.NotEmpty(t, args)
			for _, value := range args {
				require.IsType(t, json.Number(""), value, "%v", e)
			}
		case "s":
			id := whole("id")
			require.NotContains(t, begun, id)
			require.True(t, slices[at][0] <= ts && ts < slices[at][1], "begins outside of a slice, %v: %v", slices[at], e)
			begun[id] = end{name, text("cat"), ts}
		case "f":
			id := whole("id")
			require.Contains(t, begun, id)
			require.False(t, bound[id])
			bound[id] = true
			require.Equal(t, [2]string{begun[id].name, begun[id].cat}, [2]string{name, text("cat")})
			require.GreaterOrEqual(t, ts, begun[id].ts)
			waiting[at] = append(waiting[at], ts)
		}
		if ph == "X" || ph == "i" && e["s"] == "t" {
			for _, since := range waiting[at] {
				require.Equal(t, ts, since, "a flow is bound to what is later: %v", e)
			}
			delete(waiting, at)
		}
	}
	require.Empty(t, waiting)
	require.Len(t, bound, len(begun))
	return phases
}

// Late fires are arrived at by a flow from the lease under which they fired, and
// that lease by one from what had kept it away.
func TestChromeFlowsLeadFromFaultToFire(t *testing.T) {
	_, events := timelineOf(t, "../../examples/scenarios/regional-outage.sim", 0)
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

// An outbox has a thread of its own, on which each of its tries ends as the result
// counts it.
func TestAnOutboxHasAThreadOfItsTimeline(t *testing.T) {
	const path = "../../examples/scenarios/outbox.sim"
	s, _, err := (&input{}).scenario(path)
	require.NoError(t, err)
	r, err := sim.Run(s)
	require.NoError(t, err)
	_, events := timelineOf(t, path, s.Engine.Seed)
	ends := map[string]int64{}
	for _, e := range events {
		if e.PID == chromeOutboxes && e.Ph == "i" {
			ends[e.Name]++
		}
	}
	i := slices.IndexFunc(r.Queues, func(q sim.QueueResult) bool { return q.Outbox })
	require.Equal(t, map[string]int64{"delivered": r.Queues[i].Done, "delivery failed, tried again": r.Queues[i].Retried}, ends)
}
