package htmlreport

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
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
	for seed := range uint64(20) {
		s, err := sim.Scenario{
			Engine: sim.Engine{Runners: int(1 + seed%3), StandBy: true, SnapshotEvery: time.Hour, Ties: sim.TiesSeeded}, For: 8 * time.Hour,
			Schedules: []sim.Schedule{
				{Name: "often", Spec: "@every 1m", Queue: "a", Handler: sim.Handler{Takes: sim.Span{Max: 40 * time.Second}}},
				{Name: "seldom", Spec: "@every 30m", Queue: "b", CatchUp: sim.CatchUpLatest},
			},
			Swarm: sim.Swarm{Min: 6, Max: 18},
		}.Draw(seed)
		require.NoError(t, err)
		all[fmt.Sprintf("seed %d", seed)] = s
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
		r := NewRecorder(s)
		strays := false // jobs of no schedule
		result, err := sim.Watch(s, func(e *sim.Event) {
			strays = strays || e.Kind == sim.EventEnqueued
			r.Tell(e)
		})
		require.NoError(t, err)
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
			require.Equal(t, map[string]int64{
				"on time": got.OnTime, "early": got.Early, "late": got.Late, "again": got.FiredAgain,
				"skipped": got.Skipped, "failed": got.Failed, "dead": got.Dead, "undelivered": got.Undelivered,
			}, rows(&got), about)
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
		if forgotten == 0 && !strays {
			require.Equal(t, [2]int64{resultFailed, resultDead}, [2]int64{failed, dead}, name)
		}
		require.Len(t, d.Faults, len(result.Faults))
		require.Len(t, d.Failures, len(result.Failures))
		for i, l := range d.Log {
			require.Less(t, l.Cause, i, "%s: a cause comes before what it led to", name)
		}
	}
}

// rows counts what is drawn, by kind.
func rows(s *schedule) map[string]int64 {
	n := map[string]int64{"on time": 0, "early": 0, "late": 0, "again": 0, "skipped": 0, "failed": 0, "dead": 0, "undelivered": 0}
	for _, q := range s.Runs {
		n["on time"] += q[2]
	}
	for _, f := range s.Fires {
		n[f.kind] += f.count
	}
	for _, q := range s.Skips {
		n["skipped"] += q.count
	}
	for _, a := range s.Tries {
		n[a.kind] += a.count
	}
	return n
}

// moment is a boundary that did not fire on time, and when it did.
type moment struct{ boundary, at int64 }

// What is drawn is what happened: each boundary on its own place, at the time at
// which it fired, and each skipped one.
func TestTheRowsAreTheEvents(t *testing.T) {
	for name, s := range scenarios(t) {
		r := NewRecorder(s)
		fired, punctual, dropped := map[string][]moment{}, map[string][]int64{}, map[string][]int64{}
		result, err := sim.Watch(s, func(e *sim.Event) {
			r.Tell(e)
			first := r.since(e.Boundary)
			switch {
			case e.Kind == sim.EventFired && e.Fate() == sim.Fired:
				punctual[e.Schedule] = append(punctual[e.Schedule], first)
			case e.Kind == sim.EventFired:
				fired[e.Schedule] = append(fired[e.Schedule], moment{first, r.since(e.At)})
			case e.Kind == sim.EventSkipped:
				for i := range e.Count {
					dropped[e.Schedule] = append(dropped[e.Schedule], first+i*(r.since(e.Last)-first)/max(e.Count-1, 1))
				}
			}
		})
		require.NoError(t, err)
		for _, d := range r.ofSchedules(result, nil) {
			var drawn []moment
			var onTime, gaps []int64
			for _, q := range d.Runs {
				for i := range q[2] {
					onTime = append(onTime, q[0]+i*q[1])
				}
			}
			for _, f := range d.Fires {
				for i := range f.count {
					at := f.at
					if f.spread {
						at = f.since + i*(f.at-f.since)/(f.count-1)
					}
					drawn = append(drawn, moment{f.first + i*f.step, at})
				}
			}
			for _, q := range d.Skips {
				for i := range q.count {
					gaps = append(gaps, q.first+i*q.step)
				}
			}
			for _, list := range [][]moment{fired[d.Name], drawn} {
				slices.SortFunc(list, func(a, b moment) int { return cmp.Or(cmp.Compare(a.boundary, b.boundary), cmp.Compare(a.at, b.at)) })
			}
			require.Equal(t, fired[d.Name], drawn, "%s: %s", name, d.Name)
			slices.Sort(punctual[d.Name])
			slices.Sort(onTime)
			require.Equal(t, punctual[d.Name], onTime, "%s: %s", name, d.Name)
			require.ElementsMatch(t, dropped[d.Name], gaps, "%s: %s", name, d.Name)
		}
	}
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

// What is merged where it is too much still counts as much, and the first and
// the worst stay as they are.
func TestMergedRowsCountAsMuch(t *testing.T) {
	var s schedule
	for i := range int64(5000) {
		s.Fires = append(s.Fires, fire{first: i * 1000, count: 1, at: i*1000 + 2000, kind: "late"})
		s.Tries = append(s.Tries, attempt{at: i * 1000, kind: "failed", count: 1})
	}
	s.Fires[4000].first -= 3_600_000
	list := []schedule{s}
	require.Nil(t, merge(list, 10_000))
	did := merge(list, 1000)
	require.Equal(t, 10_000, did.Of)
	require.Equal(t, len(list[0].Fires)+len(list[0].Tries), did.Rows)
	require.LessOrEqual(t, did.Rows, 1000)
	require.Equal(t, int64(5000), rows(&list[0])["late"])
	require.Equal(t, int64(5000), rows(&list[0])["failed"])
	require.Contains(t, list[0].Fires, s.Fires[0])
	require.Contains(t, list[0].Fires, s.Fires[4000])
	for i, f := range list[0].Fires {
		require.LessOrEqual(t, f.first, f.last())
		require.True(t, i == 0 || f.at >= list[0].Fires[i-1].at)
	}
}

// Those make one row that lie next to each other on their grid, and fired in one
// tick or each as late as the one before.
func TestFiresOfOneRow(t *testing.T) {
	for _, c := range []struct {
		name  string
		fires [][2]int64 // boundary, at
		rows  int
	}{
		{"in one tick", [][2]int64{{0, 5000}, {1000, 5000}, {2000, 5000}}, 1},
		{"each as late", [][2]int64{{0, 5000}, {1000, 6000}, {2000, 7000}}, 1},
		{"one missing in one tick", [][2]int64{{0, 5000}, {1000, 5000}, {3000, 5000}}, 2},
		{"one missing, each as late", [][2]int64{{0, 5000}, {1000, 6000}, {3000, 8000}}, 2},
		{"later and later", [][2]int64{{0, 5000}, {1000, 6500}, {2000, 8000}}, 3},
		{"a tick, and then one by one", [][2]int64{{0, 5000}, {1000, 5000}, {2000, 6000}}, 2},
		{"again from the first", [][2]int64{{1000, 5000}, {0, 5000}}, 2},
	} {
		var list []fire
		for _, f := range c.fires {
			if n := len(list); n == 0 || !list[n-1].goesOn("late", f[0], f[1]) {
				list = append(list, fire{first: f[0], count: 1, at: f[1], kind: "late"})
			}
		}
		require.Len(t, list, c.rows, c.name)
	}
}

// A job waits from its fire to its claim, from a failed attempt's delay on, and
// after its claim has lapsed.
func TestWhenAJobWaits(t *testing.T) {
	q := newJobs(sim.Scenario{})
	start := sim.DefaultStart
	tell := func(seconds int64, e sim.Event) {
		e.Job, e.Queue, e.Shown = 1, "q", start.Add(time.Duration(seconds)*time.Second)
		q.tell(&e, 1000*seconds, 0)
	}
	tell(0, sim.Event{Kind: sim.EventFired})
	tell(10, sim.Event{Kind: sim.EventClaimed, Until: start.Add(30 * time.Second)})
	tell(20, sim.Event{Kind: sim.EventJobRetried, Until: start.Add(40 * time.Second)})
	tell(50, sim.Event{Kind: sim.EventClaimed, Until: start.Add(60 * time.Second)})
	tell(70, sim.Event{Kind: sim.EventClaimed, Until: start.Add(90 * time.Second)})
	tell(80, sim.Event{Kind: sim.EventJobDone})
	tell(200, sim.Event{Kind: sim.EventRowsRead})
	require.Equal(t, [][2]int64{{0, 1}, {10_000, 0}, {40_000, 1}, {50_000, 0}, {60_001, 1}, {70_000, 0}}, q.queues["q"].steps)
}

// Of too many steps the peaks stay.
func TestThePeakOfAQueueIsKept(t *testing.T) {
	var w waiting
	const n, peak = 10 * mostSteps, 7 * mostSteps / 2
	for i := range int64(n) {
		by := int64(1)
		if i == peak+1 {
			by = 7
		}
		w.step(2*i, by)
		w.step(2*i+1, -by)
	}
	list := w.thinned(2 * n)
	require.LessOrEqual(t, len(list), mostSteps)
	require.Contains(t, list, [2]int64{2*peak + 2, 7})
	require.Equal(t, w.steps[len(w.steps)-1], list[len(list)-1])
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

// A lease is one however often it was asked for, when the answer was lost.
func TestALeaseOfOneTermIsOne(t *testing.T) {
	r, _ := recorded(t, sim.Scenario{
		Engine: sim.Engine{StandBy: true}, For: 4 * time.Hour, Schedules: []sim.Schedule{{Name: "report", Spec: "@every 1h", Queue: "mail"}},
		Faults: []sim.Fault{
			{Kind: sim.FaultDown, At: time.Hour, For: time.Minute},
			{Kind: sim.FaultStoreErrors, At: time.Hour, For: time.Hour, Op: sim.OpAcquire, Applied: sim.AppliedYes},
		},
	})
	leases := r.processes[0].Leases
	require.Greater(t, len(leases), 2)
	for i := range leases[1:] {
		require.Less(t, leases[i].Term, leases[i+1].Term)
	}
}

// TestTitleIsTheFirstSentence of the file's comment, if it is one and not too long.
func TestTitleIsTheFirstSentence(t *testing.T) {
	for text, want := range map[string]string{
		"simulate v1\n# A leader is\n# paused. Nothing is lost.\nrun 1d\n": "A leader is paused",
		"simulate v1\n# What if? This file says.\n":                        "What if?",
		"simulate v1\n# No end\n\n# of another comment.\n":                 "No end",
		"simulate v1\nrun 1d\n":                                            "a.sim",
		"# " + strings.Repeat("long ", 40) + ".\n":                         "a.sim",
	} {
		require.Equal(t, want, title(Source{File: "of/a.sim", Text: text}), text)
	}
}

// A journal knows of no faults, processes and leases: there are none on its page,
// and the rest is as the records have it.
func TestD5TheDataOfARecordingAreOfItsRecords(t *testing.T) {
	var j memengine.MemJournal
	now := sim.DefaultStart
	clock := standing{&now}
	e, _, err := memengine.Open(tickonce.Config{Clock: clock}, memengine.Durable{Journal: &j})
	require.NoError(t, err)
	_, err = e.Schedule(t.Context(), "often", "@every 1m", "q", nil, tickonce.ScheduleOptions{})
	require.NoError(t, err)
	runner := e.NewRunner()
	for _, minutes := range []time.Duration{1, 1, 120} {
		now = now.Add(minutes * time.Minute)
		for {
			next, _, err := runner.Step(t.Context())
			require.NoError(t, err)
			if next.After(now) {
				break
			}
		}
	}
	d := memengine.Durable{Log: j.Bytes()}
	first, err := sim.WatchJournal(d, nil)
	require.NoError(t, err)
	r := NewRecorder(first.Scenario)
	result, err := sim.WatchJournal(d, r.Tell)
	require.NoError(t, err)
	require.Equal(t, first.Result, result.Result)
	page, err := r.run(&result.Result, Source{File: "state", Recording: result})
	require.NoError(t, err)
	require.True(t, page.Verdict.Passed)
	require.Empty(t, page.Processes)
	require.Empty(t, page.Faults)
	require.Empty(t, page.Against.Differences)
	require.Equal(t, []string{"simulate journal state", "simulate journal --report report.html state"}, page.Commands)
	require.Equal(t, "122 boundaries came due in 2\u00a0h 2\u00a0min. Of them 64 fired late, and 56 were skipped, each for a stated reason.", page.Verdict.Lede[0].Text)
	require.Len(t, page.Schedules, 1)
	s := page.Schedules[0]
	require.Equal(t, []int64{2, 64, 56}, []int64{s.OnTime, s.Late, s.Skipped})
	for _, c := range page.Checks {
		require.Positive(t, c.Count)
	}
	require.NoError(t, r.Write(io.Discard, &result.Result, Source{File: "state", Recording: result}))
}

type standing struct{ now *time.Time }

func (c standing) Now() time.Time                     { return *c.now }
func (standing) After(time.Duration) <-chan time.Time { return nil }
