package htmlreport

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/sim"
)

func scenarios(t *testing.T) map[string]sim.Scenario {
	paths, err := filepath.Glob("../../examples/scenarios/*.sim")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	all := map[string]sim.Scenario{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		s, err := sim.Parse(path, string(text))
		require.NoError(t, err)
		if s.Swarm != (sim.Swarm{}) {
			s, err = s.Draw(7)
			require.NoError(t, err)
		}
		if testing.Short() && s.For > 24*time.Hour {
			continue
		}
		all[filepath.Base(path)] = s
	}
	return all
}

func recorded(t *testing.T, s sim.Scenario) (*Recorder, *sim.Result) {
	r := NewRecorder(s)
	result, err := sim.Watch(s, r.Tell)
	require.NoError(t, err)
	return r, result
}

// Every figure of the page is of the run: fired and skipped boundaries, failed
// tries and dead jobs are those of the result, and the rows that are drawn are as
// many as the figures say.
func TestTheDataReconcileWithTheResult(t *testing.T) {
	for name, s := range scenarios(t) {
		r, result := recorded(t, s)
		d, err := r.run(result, Source{File: name})
		require.NoError(t, err)
		require.Len(t, d.Schedules, len(result.Schedules))
		var failed, dead int64
		for i, got := range d.Schedules {
			want := result.Schedules[i]
			about := name + ": " + want.Name
			require.Equal(t, want.Name, got.Name)
			require.Equal(t, want.Boundaries, got.Due, about)
			require.Equal(t, want.Fired, got.OnTime+got.Early+got.Late+got.FiredAgain, about)
			require.Equal(t, want.FiredAgain+want.FiredByRepair, got.FiredAgain, about)
			require.Equal(t, want.Skipped, got.Skipped, about)
			require.Equal(t, rows(&got), [4]int64{got.OnTime, got.Early + got.Late + got.FiredAgain, got.Skipped, got.Failed + got.Dead}, about)
			if !wrongClock(s) {
				require.Equal(t, want.MaxLate.Milliseconds(), got.Longest, about)
			}
			failed, dead = failed+got.Failed, dead+got.Dead
		}
		var forgotten, resultFailed, resultDead int64
		for i, q := range result.Queues {
			forgotten += q.DoneForgotten + q.Lost
			resultFailed, resultDead = resultFailed+q.Retried, resultDead+q.Dead
			require.Equal(t, q.Done, d.Queues[i].Done)
		}
		if forgotten == 0 {
			require.Equal(t, [2]int64{resultFailed, resultDead}, [2]int64{failed, dead}, name)
		}
		require.Len(t, d.Faults, len(result.Faults))
		require.Len(t, d.Failures, len(result.Failures))
		for i, l := range d.Log {
			require.Less(t, l.Cause, i, "%s: a cause comes before what it led to", name)
		}
	}
}

// rows counts what is drawn: on time, other fires, skips, tries.
func rows(s *schedule) (n [4]int64) {
	for _, q := range s.Runs {
		n[0] += q[2]
	}
	for _, f := range s.Fires {
		n[1] += f.count
	}
	for _, q := range s.Skips {
		n[2] += q.count
	}
	n[3] = int64(len(s.Tries))
	return n
}

func wrongClock(s sim.Scenario) bool {
	for _, f := range s.Faults {
		switch f.Kind {
		case sim.FaultClockJump, sim.FaultClockDrift, sim.FaultClockFreeze, sim.FaultClockStrobe:
			return true
		}
	}
	return false
}

// How many jobs are drawn to wait at the end is how many the queue has pending.
func TestAsManyJobsWaitAsArePending(t *testing.T) {
	s := sim.Scenario{
		For:    2 * time.Hour,
		Queues: []sim.Queue{{Name: "slow", Workers: 1}, {Name: "idle", Workers: 0}},
		Schedules: []sim.Schedule{
			{Name: "slow", Spec: "@every 1m", Queue: "slow", Handler: sim.Handler{Takes: sim.Span{Min: 90 * time.Second, Max: 90 * time.Second}}},
			{Name: "idle", Spec: "@every 10m", Queue: "idle"},
		},
	}
	r, result := recorded(t, s)
	d, err := r.run(result, Source{})
	require.NoError(t, err)
	for i, q := range result.Queues {
		require.NotZero(t, q.Pending)
		depth := d.Queues[i].Depth
		require.Equal(t, q.Pending, depth[len(depth)-1][1], q.Name)
	}
}

func written(t *testing.T, s sim.Scenario, source Source) string {
	r, result := recorded(t, s)
	var b bytes.Buffer
	require.NoError(t, r.Write(&b, result, source))
	return b.String()
}

func TestEqualRunsHaveEqualPages(t *testing.T) {
	s := scenarios(t)["paused-leader.sim"]
	require.Equal(t, written(t, s, Source{File: "a.sim"}), written(t, s, Source{File: "a.sim"}))
}

// hostile are names that would be more than text if they were not escaped.
var hostile = []string{
	`</script><img src=x onerror=alert(1)>`, `<!--<script>`, `"'` + "`" + `&amp;${7*7}`, "\u202egnp.exe", "a\u2028b\u200fc", strings.Repeat("ä", 64),
	"%DATA%", "{{.}}", `\u003c/script\u003e`,
}

func hostileScenario() sim.Scenario {
	s := sim.Scenario{For: 2 * time.Hour, Faults: []sim.Fault{{Kind: sim.FaultDown, At: 30 * time.Minute, For: time.Hour}}}
	for _, name := range hostile {
		s.Schedules = append(s.Schedules, sim.Schedule{Name: name, Spec: "@every 5m", Queue: name, CatchUp: sim.CatchUpLatest})
	}
	return s
}

func TestHostileNamesEndNoElement(t *testing.T) {
	source := Source{File: `</script>"x.sim`, Text: "# </script><b>\u202e\n"}
	text := written(t, hostileScenario(), source)
	before, rest, _ := strings.Cut(string(page), place)
	data, found := strings.CutPrefix(text, before)
	require.True(t, found)
	data, found = strings.CutSuffix(data, rest)
	require.True(t, found, "nothing but the data differs from the page")
	require.NotContains(t, data, "<")
	require.NotContains(t, data, "\u2028")
	var shown struct {
		File      string
		Scenario  string
		Schedules []struct{ Name, Queue string }
	}
	require.NoError(t, json.Unmarshal([]byte(data), &shown))
	require.Equal(t, source.File, shown.File)
	require.Equal(t, source.Text, shown.Scenario)
	for i, name := range hostile {
		require.Equal(t, name, shown.Schedules[i].Name)
		require.Equal(t, name, shown.Schedules[i].Queue)
	}
}
