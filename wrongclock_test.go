package tickonce_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// repairs are the policies for a cursor that a wrong clock set.
var repairs = []struct {
	name   string
	policy tickonce.ClockRepair
}{{"hold", tickonce.RepairHold}, {"rearm", tickonce.RepairRearm}}

func onEachRepair(t *testing.T, test func(t *testing.T, r *rig, rearm bool)) {
	t.Helper()
	for _, repair := range repairs {
		t.Run(repair.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{ClockRepair: repair.policy}, func(t *testing.T, r *rig) {
				test(t, r, repair.policy == tickonce.RepairRearm)
			})
		})
	}
}

func TestK1AStepForwardIsCaughtUp(t *testing.T) {
	onEachRepair(t, func(t *testing.T, r *rig, _ bool) {
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
		r.tick(time.Minute)
		did := r.tick(8 * time.Hour)
		require.Equal(t, every(time.Minute, 2*time.Minute, 64), did.fired("s"))
		require.Equal(t, int64(480-1-64), did.skipped("s"))
	})
}

// A schedule fires hourly up to noon; then the clock steps, and time goes on.
func TestT11K1StepsOfEachSize(t *testing.T) {
	const noon = 12 * time.Hour
	for _, c := range []struct {
		name    string
		step    time.Duration
		ahead   bool          // reported as such
		held    time.Duration // the next fire, by the time of the clock
		rearmed time.Duration
	}{
		{"2 ms forward", 2 * time.Millisecond, false, noon + time.Hour, noon + time.Hour},
		{"2 ms back", -2 * time.Millisecond, false, noon + time.Hour, noon + time.Hour},
		{"an interval back", -time.Hour, false, noon + time.Hour, noon + time.Hour},
		{"an interval and a millisecond back", -time.Hour - time.Millisecond, true, noon + time.Hour, noon - time.Hour},
		{"eight hours back", -8 * time.Hour, true, noon + time.Hour, noon - 7*time.Hour},
		{"an hour forward", time.Hour, false, noon + time.Hour, noon + time.Hour},
		{"400 days back: the anchor lies ahead, too", -400 * day, true, noon + time.Hour, noon - 400*day + time.Hour},
		{"400 days forward", 400 * day, false, noon + time.Hour, noon + time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachRepair(t, func(t *testing.T, r *rig, rearm bool) {
				r.schedule("s", "@every 1h", tickonce.ScheduleOptions{})
				for now := time.Hour; now <= noon; now += time.Hour {
					require.Len(t, r.tick(now).fires, 1)
				}
				did := r.tick(noon + c.step)
				require.NoError(t, did.err)
				ahead := of(tickonce.EventCursorAhead, did.events)
				require.Equal(t, c.ahead, len(ahead) == 1)
				require.Equal(t, c.ahead && rearm, len(of(tickonce.EventRearmed, did.events)) == 1)
				if c.ahead {
					require.Equal(t, "s", ahead[0].Schedule)
					require.Equal(t, start.Add(noon+time.Hour), ahead[0].Boundary)
				}
				want := c.held
				if rearm {
					want = c.rearmed
				}
				if len(did.fires) > 0 {
					require.Equal(t, want, did.fired("s")[0])
					return
				}
				require.Equal(t, start.Add(want), r.lookup("s").Next)
				require.Empty(t, r.tick(want-time.Millisecond).fires)
				require.Equal(t, []time.Duration{want}, r.tick(want).fired("s"))
			})
		})
	}
}

// After any step of less than an interval, whatever the policy, what fired
// does not fire again.
func TestT11NoBoundaryFiresTwiceAfterASmallStep(t *testing.T) {
	onEachRepair(t, func(t *testing.T, r *rig, _ bool) {
		r.schedule("s", "@every 1h", tickonce.ScheduleOptions{})
		draw := newDraw(3)
		fired, now := map[time.Duration]int{}, time.Duration(0)
		for range 300 {
			now += time.Duration(draw(4_000)) * time.Second
			back := now - time.Duration(draw(3_600))*time.Second
			for _, at := range []time.Duration{now, back, now} {
				did := r.tick(at)
				require.NoError(t, did.err)
				require.Empty(t, of(tickonce.EventCursorAhead, did.events))
				for _, boundary := range did.fired("s") {
					fired[boundary]++
				}
			}
			if draw(5) == 0 {
				r.restart()
			}
		}
		require.Len(t, fired, int(now/time.Hour))
		for boundary, times := range fired {
			require.Equal(t, 1, times, boundary)
		}
	})
}

// The clock is wrongly at 17:00 (C04), or eight hours ahead for a while (C07),
// and then fixed.
func TestC04C07AClockThatWasAheadAndIsFixed(t *testing.T) {
	for _, c := range []struct {
		name         string
		wrong, right time.Duration
	}{
		{"C04", 17 * time.Hour, 15*time.Hour + time.Minute},
		{"C07", 8 * time.Hour, 20 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachRepair(t, func(t *testing.T, r *rig, rearm bool) {
				r.schedule("s", "@every 10m", tickonce.ScheduleOptions{})
				times := map[time.Duration]int{}
				count := func(did ticked) {
					require.NoError(t, did.err)
					require.LessOrEqual(t, did.next, r.now()+time.Second, "the wake is computed anew")
					for _, boundary := range did.fired("s") {
						times[boundary]++
					}
				}
				count(r.tick(c.wrong))
				before := len(times)
				count(r.tick(c.right))
				next := c.wrong.Truncate(10*time.Minute) + 10*time.Minute
				if rearm {
					next = c.right.Truncate(10*time.Minute) + 10*time.Minute
				}
				require.Equal(t, start.Add(next), r.lookup("s").Next)
				require.Len(t, times, before, "nothing fires by the step itself")
				count(r.tick(next - time.Millisecond))
				require.Len(t, times, before)
				count(r.tick(next))
				if !rearm {
					require.Len(t, times, before+1)
					for boundary, n := range times {
						require.Equal(t, 1, n, "%s fired again", boundary)
					}
				}
			})
		})
	}
}

// The machine boots in 2098, registers or fires its schedules, and then its
// clock is fixed.
func TestC05ACursorIn2098(t *testing.T) {
	wrong := time.Date(2098, 1, 1, 0, 0, 3, 0, time.UTC).Sub(start)
	for _, c := range []struct {
		name     string
		register time.Duration
		boot     func(*rig)
	}{
		{"registered before", 0, (*rig).crash},
		{"registered by the wrong clock", wrong, (*rig).crash},
		{"registered before, and restored", 0, (*rig).restore},
		{"registered by the wrong clock, and restored", wrong, (*rig).restore},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachRepair(t, func(t *testing.T, r *rig, rearm bool) {
				r.at(c.register)
				r.schedule("s", "@every 1h", tickonce.ScheduleOptions{})
				require.NotEmpty(t, r.tick(wrong+2*time.Hour).fires)
				c.boot(r)
				r.at(day)
				r.schedule("s", "@every 1h", tickonce.ScheduleOptions{}) // as at each boot
				did := r.tick(day)
				require.NoError(t, did.err, "the lease of 2098 does not live on (K2)")
				require.Len(t, of(tickonce.EventCursorAhead, did.events), 1)
				next := r.lookup("s").Next
				if !rearm {
					require.Equal(t, 2098, next.Year())
					return
				}
				require.LessOrEqual(t, offset(next), day+time.Hour)
				require.Empty(t, r.tick(offset(next)-time.Millisecond).fires)
				require.Equal(t, []time.Duration{offset(next)}, r.tick(offset(next)).fired("s"))
				require.Equal(t, []time.Duration{offset(next) + time.Hour}, r.tick(offset(next)+time.Hour).fired("s"))
			})
		})
	}
}

func TestT11AnAnchorAYearAheadIsNotReported(t *testing.T) {
	onEachRepair(t, func(t *testing.T, r *rig, _ bool) {
		r.schedule("s", "@every 1h", tickonce.ScheduleOptions{Anchor: start.Add(year)})
		for _, now := range []time.Duration{0, -2 * time.Millisecond, -time.Hour, 0} {
			did := r.tick(now)
			require.NoError(t, did.err)
			require.Empty(t, of(tickonce.EventCursorAhead, did.events))
			r.restart()
		}
		require.Equal(t, start.Add(year), r.lookup("s").Next)
	})
}

// A rearmed schedule is a new incarnation, so that an instant that the wrong
// clock used can fire again, and no plan of the old one is written.
// Another has led for a moment, by a clock that was ahead then. The runner that
// leads again has seen nothing of it but that terms are missing.
func TestT11ARunnerThatLeadsAfterAnotherInspects(t *testing.T) {
	c := tickonce.Config{StandBy: true, ClockRepair: tickonce.RepairRearm}
	onEachStore(t, c, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10m", tickonce.ScheduleOptions{})
		require.Equal(t, []time.Duration{10 * time.Minute}, r.tick(10*time.Minute).fired("s"))
		r.at(8 * time.Hour)
		r.steal("b")
		r.tamper("s", func(row *store.Schedule) {
			row.Cursor, row.DueAt = instant(8*time.Hour+10*time.Minute), instant(8*time.Hour+10*time.Minute)
			row.SetAt = instant(8 * time.Hour)
		})
		require.Len(t, of(tickonce.EventCursorAhead, r.tick(11*time.Minute).events), 1)
		require.Equal(t, instant(20*time.Minute), r.row("s").Cursor)
	})
}

func TestT11S6RearmStartsANewIncarnation(t *testing.T) {
	onEachStore(t, tickonce.Config{ClockRepair: tickonce.RepairRearm}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10m", tickonce.ScheduleOptions{Priority: 3})
		require.Contains(t, r.tick(8*time.Hour).fired("s"), 20*time.Minute)
		old := r.row("s")
		r.tick(15 * time.Minute)
		row := r.row("s")
		require.Greater(t, row.ID, old.ID)
		want := old
		want.ID, want.Rev = row.ID, 1
		want.Cursor, want.DueAt, want.SetAt = instant(20*time.Minute), instant(20*time.Minute), instant(15*time.Minute)
		require.Equal(t, want, row, "the same but for the cursor")
		require.Equal(t, []time.Duration{20 * time.Minute}, r.tick(20*time.Minute).fired("s"))
		require.NotEqual(t, store.ScheduleID(0), r.jobs("q")[0].ScheduleID)
	})
}
