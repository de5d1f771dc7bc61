package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/store"
)

func TestReached(t *testing.T) {
	var forthAndBack timeline = []stretch{{from: 0}}
	forthAndBack.jump(100, 50)  // shows 150 to 250
	forthAndBack.jump(200, -80) // shows 170 on
	for _, c := range []struct {
		name         string
		shown, first store.Instant
	}{
		{"before the jumps", 40, 40},
		{"at the instant of the jump", 100, 100},
		{"jumped over", 120, 100},
		{"where the jump ended", 150, 100},
		{"between the jumps", 160, 110},
		{"shown twice", 240, 190},
		{"the latest before the jump back", 250, 200},
		{"after both", 251, 281},
	} {
		require.Equal(t, c.first, forthAndBack.reached(c.shown), c.name)
	}
}

// Boundaries may be skipped over more centuries than a time.Duration has.
func TestT12SkipsOverCenturies(t *testing.T) {
	r := run(parsed(t, `simulate v1
run 10d
schedule a every=1000d queue=q
at 1d clock-jump by=+100000d for=1d
at 1d clock-jump by=+100000d for=1d
`), rig{budget: maxEvents})
	require.Empty(t, r.Failures)
	require.EqualValues(t, 136, r.Schedules[0].SkipReasons["cap"])
}

// TestReachedIsTheFirstTime compares with a walk along the clock.
func TestReachedIsTheFirstTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := timeline{{from: 0}}
		type reading struct{ now, shown store.Instant }
		var seen []reading
		now := store.Instant(0)
		for range rapid.IntRange(1, 6).Draw(t, "stretches") {
			for range rapid.IntRange(0, 9).Draw(t, "lasts") {
				seen = append(seen, reading{now, clock.at(now)})
				now++
			}
			seen = append(seen, reading{now, clock.at(now)})
			clock.turn(now, rapid.Int64Range(-15, 15).Draw(t, "by"), rapid.SampledFrom([]int64{
				0, -clock.last().drift, -million, -million / 3, million / 7, million, frozen,
			}).Draw(t, "ppm"))
			seen = append(seen, reading{now, clock.at(now)})
		}
		for _, r := range seen {
			first := r
			for _, earlier := range seen {
				if earlier.shown >= r.shown {
					first = earlier
					break
				}
			}
			require.Equal(t, first.now, clock.reached(r.shown), "%d", r.shown)
		}
	})
}

func TestDrift(t *testing.T) {
	clock := timeline{{from: 0}}
	clock.turn(1000, 0, -million/2)
	require.EqualValues(t, 1250, clock.at(1500))
	require.EqualValues(t, 1250, clock.at(1501), "half a millisecond is not shown")
	require.EqualValues(t, 2000, clock.when(1501, 1500))
	clock.turn(2000, 0, frozen)
	require.EqualValues(t, 1500, clock.at(1_000_000))
	require.Equal(t, store.MaxInstant, clock.when(2000, 1501))
	require.EqualValues(t, 1990, clock.when(2000, 1490), "shown before, by the true pace")
	clock.turn(3000, 0, million/2-frozen)
	require.EqualValues(t, 2500, clock.at(4000), "the pace is the true one, what it missed is missed")
	require.EqualValues(t, 3001, clock.reached(1501))
}

// What clocks that run, stand and jump as they like make of schedules.
func TestWrongClocks(t *testing.T) {
	for _, c := range []struct {
		name, runners, fault string
		fires                int64
		late                 time.Duration
	}{
		{"a process alone shares the store's clock, which stands", "", "during 10m30s..20m30s clock-freeze", 50, 0},
		{"the store's clock is fast by half for 20 min", "", "during 10m30s..30m30s clock-drift ppm=+500000", 70, 0},
		{"the store's clock is slow by half for 20 min", "runners=2", "during 10m30s..30m30s clock-drift ppm=-500000", 50, 0},
		{"the leader's clock stands for less than its lease", "runners=2", "during 10m30s..10m55s clock-freeze runner=1", 60, 0},
		{"the clock of the one that stands by", "runners=2", "during 10m30s..20m30s clock-freeze runner=2", 60, 0},
		{"the leader's clock is an hour ahead", "runners=2", "at 10m30s clock-jump runner=1 by=+1h", 60, 0},
		{"the leader's clock is an hour behind", "runners=2", "at 10m30s clock-jump runner=1 by=-1h", 60, 0},
		{"the leader's clock strobes", "runners=2", "during 10m30s..20m30s clock-strobe runner=1 by=+1h", 60, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := passes(t, "simulate v1\nengine standby=yes "+c.runners+"\nrun 1h quiet-after=40m\nschedule a every=1m queue=q\n"+
				c.fault+"\nexpect no-double-fire a.skipped=0\n")
			require.Equal(t, c.fires, r.Schedules[0].Fired)
			require.Positive(t, r.Faults[0].Effect)
			require.LessOrEqual(t, r.Schedules[0].MaxLate, c.late+time.Second)
		})
	}
}

// A leader whose clock stands sleeps for ever; the other one leads once the
// lease has lapsed, and the first contends again when its clock goes on.
func TestLeaderWhoseClockStandsLosesItsLease(t *testing.T) {
	r := passes(t, `simulate v1
engine   runners=2 standby=yes
run      1h quiet-after=40m
schedule a every=1m queue=q
during 10m30s..20m30s clock-freeze runner=1
expect   no-double-fire a.fires=60 sometimes:leader-changed
`)
	require.Equal(t, 20*time.Second, r.Schedules[0].MaxLate, "renewed at 10m20s for a minute, the other one asks every 5 s")
}

func TestStrobeCountsItsJumps(t *testing.T) {
	r := passes(t, "simulate v1\nrun 1h\nschedule a every=1m queue=q\nduring 10m..10m3s clock-strobe by=-1s\n")
	require.EqualValues(t, 3, r.Faults[0].Effect)
}
