package tickonce_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// summer is a zone of one hour east of UTC and, from the second day of a rig on,
// of two: so on that day the hour from 01:00 on is left out.
var summer = func() *time.Location {
	data := []byte("TZif2" + string(make([]byte, 15)))
	counts := []uint32{0, 0, 0, 1, 2, 4}
	local := append([]byte{0, 0, 0x0e, 0x10, 0, 0, 0, 0, 0x1c, 0x20, 1, 2}, "A\x00B\x00"...)
	for _, size := range []int{4, 8} {
		if size == 8 {
			data = append(data, "TZif2"+string(make([]byte, 15))...)
		}
		for _, n := range counts {
			data = append(data, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		}
		at := start.Add(day).Unix()
		for i := size - 1; i >= 0; i-- {
			data = append(data, byte(at>>(8*i)))
		}
		data = append(append(data, 1), local...)
	}
	loc, err := time.LoadLocationFromTZData("Summer", append(data, "\n\n"...))
	if err != nil {
		panic(err)
	}
	return loc
}()

// zones is a source of zones that counts what it is asked for.
type zones struct {
	asked []string
	fails bool
}

func (z *zones) find(name string) (*time.Location, error) {
	z.asked = append(z.asked, name)
	if z.fails || name != "Summer" {
		return nil, errors.New("no such zone")
	}
	return summer, nil
}

func hours(from, to, zone string) tickonce.ActiveHours {
	return tickonce.ActiveHours{From: from, To: to, Zone: zone}
}

func TestX10HoursAreResolvedAndReadBack(t *testing.T) {
	onEachStore(t, tickonce.Config{Zones: (&zones{}).find}, func(t *testing.T, r *rig) {
		for _, c := range []struct {
			in, want tickonce.ActiveHours
		}{
			{hours("08:00", "17:30", ""), hours("08:00", "17:30", "UTC")},
			{hours("08:00", "17:30", "UTC"), hours("08:00", "17:30", "UTC")},
			{hours("22:00", "06:00", "Summer"), hours("22:00", "06:00", "Summer")},
			{hours("22:00", "24:00", ""), hours("22:00", "00:00", "UTC")},
			{hours("12:00", "12:00", "Summer"), tickonce.ActiveHours{}},
			{hours("00:00", "24:00", ""), tickonce.ActiveHours{}},
			{tickonce.ActiveHours{}, tickonce.ActiveHours{}},
		} {
			s := r.schedule("s", "@every 1m", tickonce.ScheduleOptions{ActiveHours: c.in})
			require.Equal(t, c.want, s.Options.ActiveHours, c.in)
			require.Equal(t, s, r.lookup("s"))
			r.take()
			require.Equal(t, s, r.schedule("s", "@every 1m", s.Options))
			require.Empty(t, r.take(), "what was read back changes nothing (C25)")
		}
	})
}

func TestX10S10BadHoursAreRefused(t *testing.T) {
	r := newRig(t, tickonce.Config{Zones: (&zones{}).find})
	for _, c := range []struct {
		in   tickonce.ActiveHours
		want string
	}{
		{hours("08:00", "", ""), `ActiveHours.To is "", want hh:mm from 00:00 to 24:00`},
		{hours("", "08:00", ""), `ActiveHours.From is "", want hh:mm from 00:00 to 23:59`},
		{hours("", "", "Summer"), "ActiveHours.From"},
		{hours("8:00", "17:30", ""), "ActiveHours.From"},
		{hours("08:00", "17:60", ""), "ActiveHours.To"},
		{hours("24:00", "08:00", ""), "ActiveHours.From"},
		{hours("08:00", "24:01", ""), "ActiveHours.To"},
		{hours("08.00", "17:30", ""), "ActiveHours.From"},
		{hours("08:00pm", "17:30", ""), "ActiveHours.From"},
		{hours("-8:00", "17:30", ""), "ActiveHours.From"},
		{hours("٠٨:00", "17:30", ""), "ActiveHours.From"},
		{hours("08:00", "17:30", "Sumer"), `ActiveHours.Zone is "Sumer": no such zone`},
		{hours("08:00", "17:30", "Local"), `ActiveHours.Zone is "Local": it means another zone on another host`},
	} {
		_, err := r.Schedule(r.ctx, "s", "@every 1m", "q", nil, tickonce.ScheduleOptions{ActiveHours: c.in})
		require.ErrorIs(t, err, tickonce.ErrInvalidOption, c.in)
		require.ErrorContains(t, err, c.want)
		require.Empty(t, r.contents().Schedules)
	}
}

func TestS10OptionsOfPoliciesOutOfRange(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	for want, o := range map[string]tickonce.ScheduleOptions{
		"Breaker is -2, want -1 to 255":              {Breaker: -2},
		"Breaker is 256":                             {Breaker: 256},
		"Timeout is -1s, want 0 or more":             {Timeout: -time.Second},
		"Timeout is 1µs, want whole milliseconds":    {Timeout: time.Microsecond},
		"Overlap is 3, want OverlapAllow":            {Overlap: 3},
		"MaxAttempts is 3, want 1 or 0 with RunOnce": {RunOnce: true, MaxAttempts: 3},
	} {
		_, err := r.Schedule(r.ctx, "s", "@every 1m", "q", nil, o)
		require.ErrorIs(t, err, tickonce.ErrInvalidOption)
		require.ErrorContains(t, err, want)
	}
}

func TestS3PoliciesAreResolved(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		o := r.schedule("s", "@every 1m", tickonce.ScheduleOptions{
			Overlap: tickonce.OverlapSkip, RunOnce: true, Breaker: -1, Timeout: 30 * time.Second,
		}).Options
		require.Equal(t, []any{tickonce.OverlapSkip, true, 1, -1, 30 * time.Second}, []any{o.Overlap, o.RunOnce, o.MaxAttempts, o.Breaker, o.Timeout})
		require.Equal(t, 255, r.schedule("s", "@every 1m", tickonce.ScheduleOptions{Breaker: 255}).Options.Breaker)
	})
}

// The zone's day has no hour from 01:00 to 02:00, so 00:30 to 01:30 is half an
// hour of it.
func TestX10HoursFollowTheClocksOfTheZone(t *testing.T) {
	z := &zones{}
	onEachStore(t, tickonce.Config{Zones: z.find}, func(t *testing.T, r *rig) {
		z.asked = nil
		r.schedule("s", "@every 15m", tickonce.ScheduleOptions{Anchor: start, ActiveHours: hours("00:30", "01:30", "Summer")})
		var fired []time.Duration
		for at := time.Duration(0); at < 3*day; at += 15 * time.Minute {
			fired = append(fired, r.tick(at).fired("s")...)
		}
		want := func(offsets ...time.Duration) []time.Duration { return offsets }
		require.Equal(t, want(
			15*time.Minute,                         // 01:15
			day-30*time.Minute, day-15*time.Minute, // 00:30, 00:45 in winter; 01:00 is 02:00
			2*day-90*time.Minute, 2*day-75*time.Minute, 2*day-time.Hour, 2*day-45*time.Minute, // 00:30 to 01:15
			3*day-90*time.Minute, 3*day-75*time.Minute, 3*day-time.Hour, 3*day-45*time.Minute,
		), fired)
		require.Equal(t, []string{"Summer"}, z.asked, "once")
	})
}

func TestX10BoundariesOutsideTheHoursAreOneSkip(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{ActiveHours: hours("08:00", "17:00", "")})
		r.take()
		did := r.tick(7 * time.Hour)
		require.Empty(t, did.fires)
		require.Equal(t, []tickonce.Skip{{
			Reason: "hours", First: start.Add(time.Second), Last: start.Add(7 * time.Hour), Count: 25_200,
		}}, did.skips("s"))
		require.Len(t, of(tickonce.EventSkipped, did.events), 1)
		require.Zero(t, r.lookup("s").Failures, "no failure")
		require.Equal(t, seconds(7*3600+1), r.tick(8 * time.Hour).fired("s")[:1], "as old as it is: now counts")
	})
}

// A row from elsewhere, under a zone that this host does not know, is held, and
// heals when it does (Q5).
func TestX10Q5UnknownZoneIsQuarantined(t *testing.T) {
	z := &zones{fails: true}
	onEachStore(t, tickonce.Config{Zones: z.find}, func(t *testing.T, r *rig) {
		z.fails = true
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.schedule("other", "@every 10s", tickonce.ScheduleOptions{})
		r.tamper("s", func(row *store.Schedule) {
			row.Rare = &store.Rare{Hours: store.Hours{Start: 0, End: 720, Zone: "Summer"}}
		})
		did := r.tick(10 * time.Second)
		require.Equal(t, `the zone of the active hours is "Summer": no such zone`, did.holds()["s"].Reason)
		require.Equal(t, seconds(10), did.fired("other"))
		z.fails = false
		require.Equal(t, every(10*time.Second, 10*time.Second, 7), r.tick(70*time.Second).fired("s"))
		require.Nil(t, r.lookup("s").Hold)
	})
}

// A store that is down at the edge of the hours costs a bounded number of
// calls, and what is to be skipped is skipped when it is back.
func TestX10I9F2AnOutageAtTheEdgeOfTheHoursDoesNotSpin(t *testing.T) {
	onEachStore(t, tickonce.Config{StandBy: true, Poll: -1}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{ActiveHours: hours("08:00", "17:00", "")})
		r.tick(0)
		w.take()
		w.lose = func(op faultstore.Op) faultstore.Verdict {
			if op.Method == faultstore.Advance {
				return faultstore.LoseRequest
			}
			return faultstore.Pass
		}
		for at := 10 * time.Second; at < 70*time.Second; at += 100 * time.Millisecond {
			r.tick(at)
		}
		require.LessOrEqual(t, w.count(faultstore.Advance), 60/5+5, "I9")
		require.Greater(t, w.count(faultstore.Advance), 0)
		w.lose = nil
		var skipped int64
		for at := 70 * time.Second; at < 90*time.Second; at += 100 * time.Millisecond {
			did := r.tick(at)
			require.Empty(t, did.fires)
			skipped += did.skipped("s")
		}
		require.EqualValues(t, 8, skipped, "each once")
	})
}

// A run-once is paused by the write that fires it, before anyone can start it
// (F6), and its claim is the one that counts here, not a recurring one's (F20).
func TestX8F6F20I10ARunOnceStartsOnce(t *testing.T) {
	for name, again := range map[string]func(*rig){"goes on": func(*rig) {}, "restarted": (*rig).restart, "restored": (*rig).restore} {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				r.schedule("s", "@every 10s", tickonce.ScheduleOptions{RunOnce: true})
				require.Equal(t, seconds(10), r.tick(10*time.Second).fired("s"))
				s := r.lookup("s")
				require.Equal(t, tickonce.PausedByRunOnce, s.Paused)
				require.Zero(t, s.Due)
				require.Empty(t, r.tick(time.Minute).fires)
				job, err := r.Claim(r.ctx, "q", "w")
				require.NoError(t, err)
				require.Equal(t, 1, job.MaxAttempts)
				again(r)
				r.at(time.Hour) // the worker is gone, and its claim has lapsed
				second, err := r.Claim(r.ctx, "q", "w")
				require.NoError(t, err)
				require.Nil(t, second, "it starts once, ever")
				require.Equal(t, store.ErrorExhausted, r.jobs("q")[0].LastError)
				require.Empty(t, r.tick(2*time.Hour).fires)

				changed, err := r.Resume(r.ctx, "s", tickonce.ResumeOptions{})
				require.NoError(t, err)
				require.False(t, changed)
				r.schedule("s", "@every 10s", tickonce.ScheduleOptions{RunOnce: true})
				require.Equal(t, tickonce.PausedByRunOnce, r.lookup("s").Paused, "the same again does not arm it")
				r.schedule("s", "@every 10s", tickonce.ScheduleOptions{RunOnce: true, ResetCursor: true})
				require.Len(t, r.tick(3*time.Hour).fires, 1, "a new grid does")
				require.Empty(t, r.tick(4*time.Hour).fires)
			})
		})
	}
}

func TestX8SBD4AnOverdueRunOnceIsNotPutOff(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("late", "@every 1h", tickonce.ScheduleOptions{RunOnce: true})
		r.schedule("missed", "@every 1h", tickonce.ScheduleOptions{RunOnce: true, CatchUp: tickonce.CatchUpNone})
		r.take()
		did := r.tick(10*time.Hour + time.Minute)
		require.Equal(t, []time.Duration{time.Hour}, did.fired("late"), "once, late")
		require.Empty(t, did.fired("missed"))
		require.Equal(t, []tickonce.Skip{{
			Reason: "missed", First: start.Add(time.Hour), Last: start.Add(10 * time.Hour), Count: 10,
		}}, did.skips("missed"), "recorded, not moved")
		for _, name := range []string{"late", "missed"} {
			require.Equal(t, tickonce.PausedByRunOnce, r.lookup(name).Paused)
		}
		require.Empty(t, r.tick(20*time.Hour).fires)
	})
}

func TestX8X10ARunOnceOutsideItsHoursIsNotConsumed(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1h", tickonce.ScheduleOptions{RunOnce: true, ActiveHours: hours("08:00", "17:00", "")})
		require.Equal(t, "hours", r.tick(7 * time.Hour).skips("s")[0].Reason)
		require.Equal(t, tickonce.Active, r.lookup("s").Paused)
		require.Equal(t, []time.Duration{8 * time.Hour}, r.tick(8*time.Hour).fired("s"))
		require.Equal(t, tickonce.PausedByRunOnce, r.lookup("s").Paused)
	})
}

// Off and on again before a boundary loses nothing: the cursor is the row's,
// and only there.
func TestS7SBD1OffAndOnBeforeABoundaryLosesNothing(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
		r.tick(0)
		r.at(50 * time.Second)
		for _, toggle := range []func() (bool, error){
			func() (bool, error) { return r.Pause(r.ctx, "s") },
			func() (bool, error) { return r.Resume(r.ctx, "s", tickonce.ResumeOptions{}) },
		} {
			changed, err := toggle()
			require.NoError(t, err)
			require.True(t, changed)
		}
		require.Equal(t, []time.Duration{time.Minute}, r.tick(time.Minute).fired("s"))
	})
}

// A pause between the read of a tick and its write is not undone by it.
func TestS7T3SBD13ATickDoesNotUndoAPause(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{RunOnce: true})
		r.tick(0)
		r.at(10 * time.Second)
		r.stepTo(w, faultstore.Due)
		_, err := r.Pause(r.ctx, "s")
		require.NoError(t, err)
		require.Empty(t, r.untilRest().fires)
		s := r.lookup("s")
		require.Equal(t, tickonce.PausedByUser, s.Paused)
		require.Equal(t, start.Add(10*time.Second), s.Next)
		require.Zero(t, s.Due)
	})
}

// After an outage of 1,000½ periods the next boundary is one of the grid.
func TestT6SBD5AnOutageKeepsTheGrid(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{CatchUp: tickonce.CatchUpLatest})
		require.Equal(t, seconds(10_000), r.tick(10_005*time.Second).fired("s"))
		require.Equal(t, start.Add(10_010*time.Second), r.lookup("s").Next)
	})
}
