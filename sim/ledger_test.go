package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Of several faults one has kept boundaries from coming: what was
// over by then, or began later, is not blamed for it.
func TestCompareBlamesWhatKeptABoundaryFromComing(t *testing.T) {
	hour := func(n int) time.Duration { return time.Duration(n) * time.Hour }
	for _, c := range []struct {
		name   string
		faults []Fault
		change func(*Scenario)
		told   []string
	}{
		{
			name: "a pause of the schedule, and a process that stands still meanwhile",
			faults: []Fault{
				{Kind: FaultEditPause, Schedule: "report", At: hour(1)},
				{Kind: FaultPause, At: hour(2), For: 10 * time.Minute},
			},
			told: []string{"fault 1: 300 boundaries, 01:01:00 to 06:00:00, never come (S7)"},
		},
		{
			name: "a pause of the schedule, which a restart forgets",
			faults: []Fault{
				{Kind: FaultEditPause, Schedule: "report", At: hour(1)},
				{Kind: FaultCrash, Restart: FromNothing, At: hour(5), For: time.Minute},
			},
			told: []string{
				"fault 1: 239 boundaries, 01:01:00 to 04:59:00, never come (S7)",
				"fault 2: 2 boundaries, 05:00:00 to 05:01:00, never come (S5)",
			},
		},
		{
			name: "a schedule that is removed while nobody runs it",
			faults: []Fault{
				{Kind: FaultPause, At: hour(1), For: 10 * time.Minute},
				{Kind: FaultEditRemove, Schedule: "report", At: hour(1) + 5*time.Minute},
			},
			told: []string{"fault 2: 300 boundaries, 01:01:00 to 06:00:00, never come (S6)"},
		},
		{
			name: "another grid, and a clock that was wrong for a while",
			faults: []Fault{
				{Kind: FaultCrash, Restart: FromNothing, At: 10 * time.Minute, For: 5 * time.Minute},
				{Kind: FaultClockJump, By: hour(1), At: hour(1), For: 30 * time.Minute},
			},
			change: func(s *Scenario) { s.Schedules[0].Spec = "@every 1h" },
			told: []string{
				"fault 1: 6 boundaries, 01:00:00 to 06:00:00, never come (S5)",
				"fault 2: 2 boundaries, 01:15:00 to 02:15:00, fire 14m59s65ms to 1h early (K1)",
				"fault 1: 3 boundaries, 03:15:00 to 05:15:00, fire on time (S5)",
			},
		},
		{
			name: "a runner that has ended, and a process that stands still after that",
			faults: []Fault{
				{Kind: FaultStoreErrors, Applied: AppliedNo, At: hour(1), For: time.Minute},
				{Kind: FaultPause, At: hour(2), For: 10 * time.Minute},
			},
			change: func(s *Scenario) { s.Engine.StandBy = false },
			told:   []string{"fault 1: 301 boundaries, 01:00:00 to 06:00:00, never come (L1)"},
		},
		{
			name: "a process that was away, and calls that fail to the end",
			faults: []Fault{
				{Kind: FaultDown, At: hour(1), For: 10 * time.Minute},
				{Kind: FaultStoreErrors, Applied: AppliedNo, At: hour(5) + 59*time.Minute, For: time.Minute},
			},
			told: []string{
				"fault 1: 10 boundaries, 01:00:00 to 01:09:00, fire all at once, 1m to 10m late (T5)",
				"fault 2: 2 boundaries, 05:59:00 to 06:00:00, never come (R1)",
			},
		},
		{
			name: "a clock that is behind, and a schedule that is away when it comes to a boundary",
			faults: []Fault{
				{Kind: FaultClockJump, By: -hour(1), At: hour(3)},
				{Kind: FaultEditRemove, Schedule: "report", At: hour(4) + 10*time.Minute + time.Second},
				{Kind: FaultEditAdd, Schedule: "report", At: hour(4) + 30*time.Minute + time.Second},
			},
			told: []string{
				"fault 2: 20 boundaries, 03:11:00 to 03:30:00, never come (S6)",
				"fault 3: 89 boundaries, 03:31:00 to 04:59:00, never come (S5)",
				"fault 1: 99 boundaries, 03:01:00 to 04:59:01, fire 1h late (K1)",
				"fault 1: 61 boundaries, 05:00:00 to 06:00:00, never come (K1)",
			},
		},
		{
			name: "a clock that was slow, and is right but for what it lost",
			faults: []Fault{
				{Kind: FaultClockDrift, Drift: -million / 2, At: hour(5), For: 50 * time.Minute},
			},
			change: func(s *Scenario) { s.Schedules[0].Spec = "@every 20m" },
			told: []string{
				"fault 1: 2 boundaries, 05:40:00 to 06:00:00, never come (K1)",
				"fault 1: the boundary of 05:20:00 fires 20m late (K1)",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := oneMinute(c.faults...)
			if c.change != nil {
				c.change(&s)
			}
			got, err := Compare(s.Calm(), s)
			require.NoError(t, err)
			require.Equal(t, c.told, told(got))
		})
	}
}

// What fires in the second run alone is told to be resumed, if it was; and that
// it did not fire before is said where no rule says why it does now.
func TestCompareTellsWhyMoreFires(t *testing.T) {
	paused := oneMinute(Fault{Kind: FaultEditPause, Schedule: "report", At: time.Hour})
	resumed := paused
	resumed.Faults = append(resumed.Faults[:1:1], Fault{Kind: FaultEditResume, Schedule: "report", At: 2*time.Hour + time.Second})
	c, err := Compare(paused, resumed)
	require.NoError(t, err)
	require.Contains(t, told(c), "fault 2: 240 boundaries, 02:01:00 to 06:00:00, fire on time (S7)")

	stalled := oneMinute(Fault{Kind: FaultPause, Runner: 1, At: 2*time.Hour - 10*time.Second, For: 30 * time.Second})
	stalled.Engine.Runners = 2
	led := stalled // by process 2, by then
	led.Faults = append([]Fault{{Kind: FaultDown, Runner: 1, At: time.Hour + time.Second, For: 2 * time.Minute}}, led.Faults...)
	c, err = Compare(stalled, led)
	require.NoError(t, err)
	require.Contains(t, told(c), "fault 0: the boundary of 02:00:00 fires on time, though not in the first run ()")
}

// A schedule that does not fire for hours since nobody runs it is not said to wait
// for a clock that is ahead, and stays so.
func TestCompareTellsAnOutageFromTheWaitForAClock(t *testing.T) {
	s := oneMinute(
		Fault{Kind: FaultClockJump, By: time.Hour, At: time.Hour},
		Fault{Kind: FaultDown, At: 2 * time.Hour, For: 2 * time.Hour})
	c, err := Compare(s.Calm(), s)
	require.NoError(t, err)
	require.NotContains(t, c.Headline(), "does not fire")
}
