package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// oneMinute is a scenario with a schedule each minute, in which one fault is
// added.
func oneMinute(f ...Fault) Scenario {
	return Scenario{
		Engine: Engine{StandBy: true}, For: 6 * time.Hour, Faults: f,
		Schedules: []Schedule{{Name: "report", Spec: "@every 1m", Queue: "mail"}},
	}
}

func policy(p CatchUp) func(*Scenario) {
	return func(s *Scenario) { s.Schedules[0].CatchUp = p }
}

// told are the effects on boundaries, and those of the given kinds, as a person
// reads them.
func told(c *Comparison, kinds ...EventKind) (lines []string) {
	for i := range c.Effects {
		e := &c.Effects[i]
		wanted := e.Boundaries()
		for _, k := range kinds {
			wanted = wanted || e.Kind == k
		}
		if wanted {
			lines = append(lines, fmt.Sprintf("fault %d: %s (%s)", e.Fault, e.Text(), e.Rule))
		}
	}
	return lines
}

func TestCompareTellsWhatAFaultChanges(t *testing.T) {
	for _, c := range []struct {
		name     string
		fault    Fault
		change   func(*Scenario)
		headline string
		told     []string
		kinds    []EventKind
	}{
		{
			name:     "nothing",
			headline: "Nothing changes.",
			fault:    Fault{Kind: FaultStoreErrors, Applied: AppliedNo, At: time.Hour, For: time.Second, Op: OpJobs},
		},
		{
			name:     "no boundary",
			headline: "No boundary notices: each has the same fate at the same time in both runs.",
			fault:    Fault{Kind: FaultHandlerSlow, Takes: Span{30 * time.Second, 50 * time.Second}, At: time.Hour, For: time.Hour},
		},
		{
			name:     "late, and too many",
			headline: "57 boundaries never fire and 64 fire late, by up to 2h.",
			told: []string{
				"fault 1: 64 boundaries, 01:00:00 to 02:03:00, fire all at once, 57m to 2h late (T5)",
				"fault 1: 57 boundaries, 02:04:00 to 03:00:00, are skipped and never fire (T6)",
			},
			fault: Fault{Kind: FaultDown, At: time.Hour, For: 2 * time.Hour},
		},
		{
			name:     "only the newest",
			headline: "120 boundaries never fire.",
			told: []string{
				"fault 1: 120 boundaries, 01:00:00 to 02:59:00, are skipped and never fire (T14)",
			},
			fault: Fault{Kind: FaultDown, At: time.Hour, For: 2 * time.Hour}, change: policy(CatchUpLatest),
		},
		{
			name:     "only what is not too late",
			headline: "8 boundaries never fire and 2 fire late, by up to 2m.",
			told: []string{
				"fault 1: 2 boundaries, 01:08:00 to 01:09:00, fire all at once, 1m to 2m late (T14)",
				"fault 1: 8 boundaries, 01:00:00 to 01:07:00, are skipped and never fire (T14)",
			},
			fault: Fault{Kind: FaultDown, At: time.Hour, For: 10 * time.Minute}, change: policy(CatchUpGrace),
		},
		{
			name:     "late by a clock that is behind, to the end",
			headline: "60 boundaries never fire and 240 fire late, by up to 1h.",
			told: []string{
				"fault 1: 240 boundaries, 01:01:00 to 05:00:00, fire 1h late (K1)",
				"fault 1: 60 boundaries, 05:01:00 to 06:00:00, never come (K1)",
			},
			fault: Fault{Kind: FaultClockJump, By: -time.Hour, At: time.Hour},
		},
		{
			name:     "early, and then long silent",
			headline: "69 boundaries fire early, by up to 1h; then report does not fire for 1h1m.",
			told: []string{
				"fault 1: the clock is 1h ahead ()",
				"fault 1: 69 boundaries, 01:01:00 to 02:09:00, fire 59s65ms to 1h early (K1)",
				"fault 1: does not fire for 1h1m (T11)",
				"fault 1: the clock is right ()",
			},
			fault: Fault{Kind: FaultClockJump, By: time.Hour, At: time.Hour, For: 10 * time.Minute}, kinds: []EventKind{EventClockTurned},
		},
		{
			name:     "again",
			headline: "4 boundaries fire late, by up to 4m, and 11 fire a second time.",
			told: []string{
				"fault 1: 11 boundaries, 00:50:00 to 01:00:00, fire a second time (D4)",
				"fault 1: 4 boundaries, 01:01:00 to 01:04:00, fire all at once, 1m to 4m late (T5)",
			},
			fault: Fault{Kind: FaultCrash, Restart: FromSnapshot, At: time.Hour, For: 5 * time.Minute}, change: func(s *Scenario) {
				s.Engine.SnapshotEvery = 50 * time.Minute
			},
		},
		{
			name:     "another grid",
			headline: "300 boundaries never fire and 298 fire on time, unlike in the first run.",
			told: []string{
				"fault 1: 300 boundaries, 01:01:00 to 06:00:00, never come (S5)",
				"fault 1: 298 boundaries, 01:02:30 to 05:59:30, fire on time (S5)",
			},
			fault: Fault{Kind: FaultCrash, Restart: FromNothing, At: time.Hour, For: 90 * time.Second},
		},
		{
			name:     "another interval",
			headline: "40 boundaries never fire and 20 fire on time, unlike in the first run.",
			told: []string{
				"fault 1: 40 boundaries, 05:01:00 to 05:59:00, never come (S5)",
				"fault 1: 20 boundaries, 05:01:30 to 05:58:30, fire on time (S5)",
			},
			fault: Fault{Kind: FaultEditChange, Schedule: "report", Spec: "@every 90s", At: 5 * time.Hour},
		},
		{
			name:     "paused",
			headline: "300 boundaries never fire.",
			told: []string{
				"fault 1: is paused ()",
				"fault 1: 300 boundaries, 01:01:00 to 06:00:00, never come (S7)",
			},
			fault: Fault{Kind: FaultEditPause, Schedule: "report", At: time.Hour}, kinds: []EventKind{EventPaused},
		},
		{
			name:     "removed",
			headline: "300 boundaries never fire.",
			told: []string{
				"fault 1: 300 boundaries, 01:01:00 to 06:00:00, never come (S6)",
			},
			fault: Fault{Kind: FaultEditRemove, Schedule: "report", At: time.Hour},
		},
		{
			name:     "set aside",
			headline: "1 boundary fires late, by 1m.",
			told: []string{
				"fault 1: is set aside for a minute (Q3)",
				"fault 1: the boundary of 01:01:00 fires 1m late (Q5)",
			},
			fault: Fault{Kind: FaultTamper, Schedule: "report", Row: SpoilSpec, At: time.Hour + 10*time.Second, For: 90 * time.Second}, kinds: []EventKind{EventHeld},
		},
		{
			name:     "its jobs die",
			headline: "28 jobs die.",
			told: []string{
				"fault 1: 60 attempts fail and are made again (QU6)",
				"fault 1: 28 jobs die after a failed attempt, with no other to come (QU5)",
			},
			fault: Fault{Kind: FaultHandlerFails, At: time.Hour, For: 30 * time.Minute}, kinds: []EventKind{EventJobRetried, EventJobDied},
		},
		{
			name:     "another takes over",
			headline: "1 boundary fires late, by 1m.",
			told: []string{
				"fault 1: takes the lead (LK1)",
				"fault 1: the boundary of 01:00:00 fires 1m late (T5)",
				"fault 1: a write comes too late and is refused (L6)",
			},
			fault: Fault{Kind: FaultPause, Runner: 1, Point: BetweenReadAndWrite, At: time.Hour, For: 10 * time.Minute}, change: func(s *Scenario) {
				s.Engine.Runners = 2
			}, kinds: []EventKind{EventTickRefused, EventLeaseGranted},
		},
		{
			name:     "a runner ends",
			headline: "301 boundaries never fire.",
			told: []string{
				"fault 1: 301 boundaries, 01:00:00 to 06:00:00, never come (L1)",
				"fault 1: gives up, and runs no schedules until it starts again (L3)",
			},
			fault: Fault{Kind: FaultStoreErrors, Applied: AppliedUnknown, At: time.Hour, For: 5 * time.Minute}, change: func(s *Scenario) {
				s.Engine.StandBy = false
			}, kinds: []EventKind{EventRunnerEnded},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := oneMinute(c.fault)
			if c.change != nil {
				c.change(&s)
			}
			got, err := Compare(s.Calm(), s)
			require.NoError(t, err)
			require.Equal(t, c.headline, got.Headline())
			require.Equal(t, c.told, told(got, c.kinds...))
		})
	}
}

// What the comparison counts is what the results say, and each boundary that is
// different has one effect.
func TestCompareAccountsForBothRuns(t *testing.T) {
	watched(t, func(name string, s Scenario) {
		c, err := Compare(s.Calm(), s)
		require.NoError(t, err)
		changed := map[string]int64{}
		for _, e := range c.Effects {
			if e.Boundaries() {
				changed[e.Schedule] += e.Count
			}
			require.NotEmpty(t, e.Text())
		}
		for i, got := range c.Schedules {
			for _, run := range []struct {
				r *Result
				t Tally
			}{{c.First, got.First}, {c.Second, got.Second}} {
				want := run.r.Schedules[i]
				require.Equal(t, want.Name, got.Name)
				require.Equal(t, want.Fired, run.t.OnTime+run.t.Late+run.t.Early+run.t.Again, "%s: %s fired", name, got.Name)
				require.Equal(t, want.Skipped, run.t.Skipped, "%s: %s skipped", name, got.Name)
				require.Equal(t, want.FiredAgain+want.FiredByRepair, run.t.Again, "%s: %s again", name, got.Name)
				require.Equal(t, want.Quarantined, run.t.Held, "%s: %s held", name, got.Name)
			}
			require.Equal(t, got.Changed, changed[got.Name], "%s: %s", name, got.Name)
		}
		same, err := Compare(s, s)
		require.NoError(t, err)
		require.Empty(t, same.Effects, name)
	})
}

// What a fault adds is told beside what goes wrong in the file already.
func TestCompareTellsOfTheAddedFaultAlone(t *testing.T) {
	s := oneMinute(
		Fault{Kind: FaultDown, At: time.Hour, For: 10 * time.Minute},
		Fault{Kind: FaultCrash, Restart: FromSnapshot, At: 2 * time.Hour, For: time.Minute})
	s.Engine.SnapshotEvery = 50 * time.Minute
	more := s
	more.Faults = append(more.Faults[:2:2], Fault{Kind: FaultDown, At: 4 * time.Hour, For: 3 * time.Minute})
	c, err := Compare(s, more)
	require.NoError(t, err)
	require.Equal(t, "3 boundaries fire late, by up to 3m.", c.Headline())
	for _, e := range c.Effects {
		require.Equal(t, 3, e.Fault, e.Text())
	}
}

// A boundary that the clock has not come to by the end is not laid to the process
// that stood still, and went on long before.
func TestCompareTellsWhatTheClockHasNotComeTo(t *testing.T) {
	slept := oneMinute(Fault{Kind: FaultPause, At: 2 * time.Hour, For: time.Hour})
	clocked := slept
	clocked.Faults = append(clocked.Faults[:1:1], Fault{Kind: FaultClockJump, By: -30 * time.Minute, At: time.Hour})
	c, err := Compare(slept, clocked)
	require.NoError(t, err)
	require.Contains(t, told(c), "fault 2: 30 boundaries, 05:31:00 to 06:00:00, never come (K1)")
}

// How late is told beside how many more are late, if it is as late as before, too.
func TestDifferencesSayHowLate(t *testing.T) {
	one := oneMinute(Fault{Kind: FaultDown, At: time.Hour, For: 10 * time.Minute})
	two := one
	two.Faults = append(two.Faults[:1:1], Fault{Kind: FaultDown, At: 2 * time.Hour, For: 10 * time.Minute})
	c, err := Compare(one, two)
	require.NoError(t, err)
	require.Equal(t, []Difference{
		{What: "fired on time", First: 350, Second: 340},
		{What: "fired late", First: 10, Second: 20, By: 10 * time.Minute},
	}, c.Schedules[0].Differences())
}

// What is late by a wrong clock, and what by the outage meanwhile, is told apart:
// what the outage made late is late by that clock as well.
func TestCompareTellsAWrongClockFromTheOutageMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		by   time.Duration
		told []string
	}{
		"behind": {-30 * time.Minute, []string{
			"fault 2: 149 boundaries, 01:01:00 to 05:30:00, fire 30m late (K1)",
			"fault 1: 30 boundaries, 01:30:00 to 01:59:00, fire all at once, 2h1m to 2h30m late (T5)",
			"fault 1: 30 boundaries, 02:34:00 to 03:03:00, are skipped and never fire (T6)",
			"fault 2: 30 boundaries, 05:31:00 to 06:00:00, never come (K1)",
		}},
		"ahead": {30 * time.Minute, []string{
			"fault 2: 209 boundaries, 01:01:00 to 06:30:00, fire 59s65ms to 30m early (K1)",
			"fault 1: 30 boundaries, 03:04:00 to 03:33:00, fire all at once, 27m to 56m late (T5)",
			"fault 1: 30 boundaries, 04:01:00 to 04:30:00, are skipped and never fire (T6)",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			outage := oneMinute(Fault{Kind: FaultDown, At: 2 * time.Hour, For: 2 * time.Hour})
			clocked := outage
			clocked.Faults = append(clocked.Faults[:1:1], Fault{Kind: FaultClockJump, By: c.by, At: time.Hour})
			r, err := Compare(outage, clocked)
			require.NoError(t, err)
			require.Equal(t, c.told, told(r))
		})
	}
}

func TestFaultsAreReadAlone(t *testing.T) {
	s := oneMinute()
	s.Engine.Runners = 2
	for text, want := range map[string]string{
		"pause runner=1 for=10m at=2h":                   "during 2h..2h10m pause runner=1",
		"at 2h pause runner=1 for=10m":                   "during 2h..2h10m pause runner=1",
		"at=2h edit pause schedule=report":               "at 2h edit pause schedule=report",
		"during=1h..2h store error-burst applied=yes":    "during 1h..2h store error-burst applied=yes",
		"during 1h..2h handler failing schedule=report ": "during 1h..2h handler failing schedule=report",
		"down for=10h at=2h":                             "column 17: found a fault from 2h for 10h, want one that ends by the run's 6h",
		"pause runner=1 for=10m":                         "column 23: found the end of the fault, want its time, such as at=2h or during=2h..3h",
		"pause runner=3 for=10m at=2h":                   "column 14: found \"3\", want a runner from 1 to 2 (engine runners=)",
		"edit pause schedule=repord at=1h":               "column 21: found \"repord\", want a schedule: report; did you mean \"report\"?",
		"sleep for=1h":                                   "column 1: found \"sleep\", want one of down, crash,",
		"down from 02:00 to 05:00":                       "column 1: found \"down from 02:00 to 05:00\", want one of down, crash,",
		"pause":                                          "column 6: found the end of the line, want for=",
		"for=1h":                                         "column 1: found no fault, want one of down, crash,",
		"puase for=1m at=1h":                             "column 1: found \"puase\"",
		"pause for=1m at=1x":                             "column 18: found \"x\"",
		"":                                               "column 1: found the end of the fault, want its time, such as at=2h or during=2h..3h",
		"pause \x00":                                     "column 7: found the character",
	} {
		f, err := s.ParseFault(text)
		got := f.String()
		if err != nil {
			got = err.Error()
		}
		require.Contains(t, got, want, text)
		require.Equal(t, err == nil, !strings.HasPrefix(want, "column"), text)
	}
}

// The fires of the first run that the second one does not have at their time are
// those of boundaries that came late, early or never.
func TestCompareTellsWhichFiresCameElsewhere(t *testing.T) {
	minute := func(m int) time.Time { return DefaultStart.Add(time.Duration(m) * time.Minute) }
	late := Fault{Kind: FaultDown, At: 59*time.Minute + 30*time.Second, For: 10 * time.Minute}
	for _, c := range []struct {
		name   string
		first  []Fault
		second []Fault
		change func(*Scenario)
		fires  []Fires
	}{
		{name: "the same", first: []Fault{late}, second: []Fault{late}},
		{name: "late", second: []Fault{late}, fires: []Fires{{minute(60), time.Minute, 10}}},
		{name: "late alone", second: []Fault{{Kind: FaultDown, At: late.At, For: time.Minute}}, fires: []Fires{{minute(60), 0, 1}}},
		{name: "skipped but one", second: []Fault{late}, change: policy(CatchUpLatest), fires: []Fires{{minute(69), 0, 1}}},
		{
			name:   "early",
			second: []Fault{{Kind: FaultClockJump, At: late.At, For: 5 * time.Minute, By: 3 * time.Minute}},
			fires:  []Fires{{minute(60), time.Minute, 8}},
		},
		{
			name:   "never",
			second: []Fault{{Kind: FaultEditRemove, At: 5*time.Hour + 30*time.Second, Schedule: "report"}},
			fires:  []Fires{{minute(301), time.Minute, 60}},
		},
		{name: "late in the first", first: []Fault{late}, fires: []Fires{{minute(69).Add(30 * time.Second), 0, 10}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, second := oneMinute(c.first...), oneMinute(c.second...)
			if c.change != nil {
				c.change(&first)
				c.change(&second)
			}
			compared, err := Compare(first, second)
			require.NoError(t, err)
			require.Equal(t, c.fires, compared.Schedules[0].Elsewhere)
		})
	}
}

// What becomes of the delivery of a result is told apart from what becomes of the job,
// and none of it is counted as the job's.
func TestX1WhatIsNotDeliveredIsNoDeadJob(t *testing.T) {
	s := *parsed(t, `simulate v1
run      2h
outbox   chat workers=1
schedule report every=10m queue=work deliver=chat
`)
	with := *parsed(t, s.String()+"during 1h..1h15m handler failing queue=chat\n")
	c, err := Compare(s, with)
	require.NoError(t, err)
	require.Equal(t, []Difference{{What: "results not delivered", Second: 2}}, c.Schedules[0].Differences())
	require.Equal(t, "2 results are not delivered.", c.Headline())
	story := c.Story(1)
	require.Len(t, story, 1)
	require.Equal(t, "2 results are not delivered", story[0].Text())
	require.Equal(t, "X7", story[0].Rule)
}
