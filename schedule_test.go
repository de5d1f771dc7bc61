package tickonce_test

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

func TestS1ScheduleIsAnUpsertByName(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Priority: 1})
		second, err := r.Schedule(r.ctx, "s", "@every 10s", "other", []byte("new"), tickonce.ScheduleOptions{
			Priority: 2, Visibility: time.Minute, MaxAttempts: 9, BaseBackoff: time.Second, Expires: time.Hour,
			CatchUp: tickonce.CatchUpLatest,
		})
		require.NoError(t, err)
		var all []tickonce.Schedule
		for s, err := range r.Schedules(r.ctx) {
			require.NoError(t, err)
			all = append(all, s)
		}
		require.Equal(t, []tickonce.Schedule{second}, all)
		require.Equal(t, tickonce.Schedule{
			Name: "s", Spec: "@every 10s", Queue: "other", Payload: []byte("new"),
			Options: tickonce.ScheduleOptions{
				Priority: 2, Visibility: time.Minute, MaxAttempts: 9, BaseBackoff: time.Second, Expires: time.Hour,
				Anchor: start, CatchUp: tickonce.CatchUpLatest, Breaker: 3,
			},
			Next: start.Add(10 * time.Second), Due: start.Add(10 * time.Second),
		}, second)
	})
}

func TestS2RegisteringNeverFires(t *testing.T) {
	const year = 365 * day
	for _, c := range []struct {
		name   string
		anchor time.Time
		first  time.Duration
	}{
		{"no anchor", time.Time{}, 10 * time.Second},
		{"now", start, 10 * time.Second},
		{"1970", time.Unix(7, 0), 7 * time.Second},
		{"ahead", start.Add(time.Millisecond), time.Millisecond},
		{"a fraction of a millisecond ahead is rounded up", start.Add(1), time.Millisecond},
		{"in a year", start.Add(year), year},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				s := r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Anchor: c.anchor})
				require.Equal(t, start.Add(c.first), s.Next)
				require.Empty(t, r.tick(0).fires)
				r.restart()
				require.Empty(t, r.tick(c.first-time.Millisecond).fires)
				r.restart()
				require.Equal(t, []time.Duration{c.first}, r.tick(c.first).fired("s"))
			})
		})
	}
}

func TestS3OptionsAreResolvedAtRegistration(t *testing.T) {
	onEachStore(t, tickonce.Config{OnTime: 2 * time.Minute}, func(t *testing.T, r *rig) {
		defaults := tickonce.ScheduleOptions{
			Visibility: 5 * time.Minute, MaxAttempts: 3, BaseBackoff: time.Minute,
			Anchor: start, CatchUp: tickonce.CatchUp{Count: 64}, Breaker: 3,
		}
		require.Equal(t, defaults, r.schedule("defaults", "@every 10s", tickonce.ScheduleOptions{}).Options)

		partial := defaults
		partial.MaxAttempts, partial.Expires, partial.Priority = 7, time.Second, -5
		require.Equal(t, partial, r.schedule("partial", "@every 10s", tickonce.ScheduleOptions{
			MaxAttempts: 7, Expires: time.Second, Priority: -5,
		}).Options)
		require.Equal(t, partial, r.lookup("partial").Options, "as read back")

		for _, c := range []struct {
			spec string
			in   tickonce.CatchUp
			want tickonce.CatchUp
		}{
			{"@every 1s", tickonce.CatchUpAll, tickonce.CatchUp{Count: 64}},
			{"@every 1s", tickonce.CatchUpLatest, tickonce.CatchUp{Count: 1, Newest: true}},
			{"@every 1s", tickonce.CatchUpGrace, tickonce.CatchUp{Window: 2 * time.Minute, Count: 64}},
			{"@every 1h", tickonce.CatchUpGrace, tickonce.CatchUp{Window: 30 * time.Minute, Count: 64}},
			{"@every 1d", tickonce.CatchUpGrace, tickonce.CatchUp{Window: 2 * time.Hour, Count: 64}},
			{"@every 1s", tickonce.CatchUpNone, tickonce.CatchUp{Window: 2 * time.Minute, Count: 1, Newest: true}},
			{"@every 1s", tickonce.CatchUp{Window: time.Hour, Count: 2}, tickonce.CatchUp{Window: time.Hour, Count: 2}},
		} {
			require.Equal(t, c.want, r.schedule("p", c.spec, tickonce.ScheduleOptions{CatchUp: c.in}).Options.CatchUp)
		}

		require.Len(t, r.tick(10*time.Second).fires, 4, "two of them of p")
		for _, job := range r.jobs("q") {
			switch job.Schedule {
			case "defaults":
				require.Equal(t, store.Stamps{VisibilityMS: 300_000, MaxAttempts: 3, BaseBackoffMS: 60_000}, job.Stamps)
				require.Equal(t, store.None, job.ExpiresAt)
			case "partial":
				require.Equal(t, store.Stamps{VisibilityMS: 300_000, MaxAttempts: 7, BaseBackoffMS: 60_000}, job.Stamps)
				require.Equal(t, instant(11*time.Second), job.ExpiresAt)
				require.EqualValues(t, -5, job.Priority)
			}
		}
	})
}

func TestS4AChangeAffectsFutureFiresOnly(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{MaxAttempts: 2})
		r.tick(10 * time.Second)
		before := r.jobs("q")
		_, err := r.Schedule(r.ctx, "s", "@every 10s", "q2", []byte("new"), tickonce.ScheduleOptions{MaxAttempts: 5})
		require.NoError(t, err)
		require.Equal(t, before, r.jobs("q"))
		r.tick(20 * time.Second)
		require.Equal(t, before, r.jobs("q"))
		fired := r.jobs("q2")
		require.Len(t, fired, 1)
		require.Equal(t, int32(5), fired[0].Stamps.MaxAttempts)
		require.Equal(t, []byte("new"), fired[0].Payload)
	})
}

func TestS5RegisteringAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		spec string
		o    tickonce.ScheduleOptions
		next time.Duration // after registering at 0 and, again, at 15 s
	}{
		{"the same", "@every 60s", tickonce.ScheduleOptions{}, time.Minute},
		{"the same in another unit", "@every 1m", tickonce.ScheduleOptions{}, time.Minute},
		{"the same anchor", "@every 60s", tickonce.ScheduleOptions{Anchor: start}, time.Minute},
		{"other options", "@every 60s", tickonce.ScheduleOptions{Priority: 9, CatchUp: tickonce.CatchUpLatest}, time.Minute},
		{"another interval", "@every 61s", tickonce.ScheduleOptions{}, 76 * time.Second},
		{"another anchor", "@every 60s", tickonce.ScheduleOptions{Anchor: start.Add(time.Second)}, 61 * time.Second},
		{"ResetCursor", "@every 60s", tickonce.ScheduleOptions{ResetCursor: true}, 75 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				r.schedule("s", "@every 60s", tickonce.ScheduleOptions{})
				id := r.row("s").ID
				r.at(15 * time.Second)
				s := r.schedule("s", c.spec, c.o)
				require.Equal(t, c.next, offset(s.Next))
				require.Equal(t, s, r.lookup("s"))
				require.Equal(t, c.next == time.Minute, r.row("s").ID == id, "a new grid is a new incarnation (S6)")
				require.Empty(t, r.tick(c.next-time.Millisecond).fires)
				require.Equal(t, []time.Duration{c.next}, r.tick(c.next).fired("s"))
			})
		})
	}
}

func TestS5PausedStaysPausedAndAHoldEnds(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("paused", "@every 10s", tickonce.ScheduleOptions{})
		r.schedule("held", "@every 10s", tickonce.ScheduleOptions{})
		_, err := r.Pause(r.ctx, "paused")
		require.NoError(t, err)
		r.tamper("held", func(row *store.Schedule) { row.Spec = "@daily" })
		require.Contains(t, r.tick(10*time.Second).holds(), "held")

		require.Equal(t, tickonce.PausedByUser, r.schedule("paused", "@every 10s", tickonce.ScheduleOptions{Priority: 1}).Paused)
		require.Equal(t, tickonce.PausedByUser, r.schedule("paused", "@every 20s", tickonce.ScheduleOptions{}).Paused)
		require.Nil(t, r.schedule("held", "@every 10s", tickonce.ScheduleOptions{}).Hold)
		require.Equal(t, seconds(10), r.tick(11*time.Second).fired("held"))
		require.Empty(t, r.tick(time.Hour).fired("paused"))
	})
}

func TestC25RegisteringTheSameWritesNothing(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		o := tickonce.ScheduleOptions{Priority: 3, CatchUp: tickonce.CatchUpGrace, Expires: time.Hour}
		first := r.schedule("s", "@every 10s", o)
		r.take()
		before := r.contents()
		for _, now := range seconds(0, 5, 10, 3600) {
			r.at(now)
			require.Equal(t, first, r.schedule("s", "@every 10s", o))
		}
		require.Equal(t, before, r.contents())
		require.Empty(t, r.take())
		require.Len(t, r.tick(time.Hour).fired("s"), 13, "those within the grace window are not lost")
	})
}

func TestS6FiredJobsStay(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.tick(20 * time.Second)
		before := r.jobs("q")
		require.Len(t, before, 2)
		removed, err := r.Unschedule(r.ctx, "s")
		require.NoError(t, err)
		require.True(t, removed)
		_, ok, err := r.Lookup(r.ctx, "s")
		require.NoError(t, err)
		require.False(t, ok)
		require.Empty(t, r.tick(time.Hour).fires)
		require.Equal(t, before, r.jobs("q"))
	})
}

func TestS6NoBoundaryOfAnOldIncarnationFires(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		old := r.row("s").ID
		r.at(9 * time.Second)
		_, err := r.Unschedule(r.ctx, "s")
		require.NoError(t, err)
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		require.Greater(t, r.row("s").ID, old)
		require.Empty(t, r.tick(10*time.Second).fires)
		require.Empty(t, r.tick(19*time.Second-time.Millisecond).fires)
		require.Equal(t, seconds(19), r.tick(19*time.Second).fired("s"))
	})
}

func TestS7PauseAndResume(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.tick(10 * time.Second)
		r.take()
		r.at(12 * time.Second)
		changed, err := r.Pause(r.ctx, "s")
		require.NoError(t, err)
		require.True(t, changed)
		require.Len(t, of(tickonce.EventPaused, r.take()), 1)
		changed, err = r.Pause(r.ctx, "s")
		require.NoError(t, err)
		require.False(t, changed, "paused already")
		require.Empty(t, r.take())
		s := r.lookup("s")
		require.Equal(t, tickonce.PausedByUser, s.Paused)
		require.Zero(t, s.Due)
		require.Equal(t, start.Add(20*time.Second), s.Next)
		require.Empty(t, r.tick(time.Hour).fires)
		r.take()

		r.at(time.Hour + 12*time.Second)
		changed, err = r.Resume(r.ctx, "s", tickonce.ResumeOptions{})
		require.NoError(t, err)
		require.True(t, changed)
		require.Equal(t, []tickonce.Event{
			{Kind: tickonce.EventResumed, At: start.Add(r.now()), Schedule: "s", Boundary: start.Add(3620 * time.Second)},
			{
				Kind: tickonce.EventSkipped, At: start.Add(r.now()), Schedule: "s", Reason: "pause",
				First: start.Add(20 * time.Second), Last: start.Add(3610 * time.Second), Count: 360,
			},
		}, r.take())
		changed, err = r.Resume(r.ctx, "s", tickonce.ResumeOptions{})
		require.NoError(t, err)
		require.False(t, changed, "active already")
		require.Empty(t, r.take())
		require.Empty(t, r.tick(r.now()).fires, "no burst")
		require.Equal(t, seconds(3620), r.tick(3625*time.Second).fired("s"), "on the grid")
	})
}

func TestS7ResumeWithCatchUp(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		_, err := r.Pause(r.ctx, "s")
		require.NoError(t, err)
		require.Empty(t, r.tick(time.Hour).fires)
		changed, err := r.Resume(r.ctx, "s", tickonce.ResumeOptions{CatchUp: true})
		require.NoError(t, err)
		require.True(t, changed)
		did := r.tick(time.Hour)
		require.Equal(t, every(10*time.Second, 10*time.Second, 64), did.fired("s"))
		require.Equal(t, int64(296), did.skipped("s"))
	})
}

func TestS7AbsentSchedules(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	changed, err := r.Pause(r.ctx, "s")
	require.NoError(t, err)
	require.False(t, changed)
	changed, err = r.Resume(r.ctx, "s", tickonce.ResumeOptions{})
	require.NoError(t, err)
	require.False(t, changed)
	require.Empty(t, r.take())
}

func TestS7APauseOfTheBreakerIsNotTheUsers(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.tamper("s", func(row *store.Schedule) { row.Paused, row.DueAt = store.PausedByBreaker, store.None })
		changed, err := r.Pause(r.ctx, "s")
		require.NoError(t, err)
		require.False(t, changed)
		require.Equal(t, tickonce.PausedByBreaker, r.lookup("s").Paused)
		changed, err = r.Resume(r.ctx, "s", tickonce.ResumeOptions{})
		require.NoError(t, err)
		require.True(t, changed)
		require.Equal(t, tickonce.Active, r.lookup("s").Paused)
	})
}

// After each change with each of its store calls lost, on the way there or on
// the way back, the row is wholly old or wholly new, and due iff active.
func TestS8F1F13F17F18NoFailureLeavesAHalf(t *testing.T) {
	changes := map[string]func(e *tickonce.Engine) error{
		"pause": func(e *tickonce.Engine) error {
			_, err := e.Pause(context.Background(), "s")
			return err
		},
		"resume": func(e *tickonce.Engine) error {
			_, err := e.Resume(context.Background(), "p", tickonce.ResumeOptions{})
			return err
		},
		"schedule": func(e *tickonce.Engine) error {
			_, err := e.Schedule(context.Background(), "s", "@every 7s", "new", []byte("new"), tickonce.ScheduleOptions{Priority: 5})
			return err
		},
		"reset a paused one": func(e *tickonce.Engine) error {
			_, err := e.Schedule(context.Background(), "p", "@every 10s", "q", nil, tickonce.ScheduleOptions{ResetCursor: true})
			return err
		},
		"unschedule": func(e *tickonce.Engine) error {
			_, err := e.Unschedule(context.Background(), "s")
			return err
		},
	}
	prepare := func(t *testing.T, open openStore) *rig {
		r := newRigOn(t, tickonce.Config{}, open)
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.schedule("p", "@every 10s", tickonce.ScheduleOptions{})
		_, err := r.Pause(r.ctx, "p")
		require.NoError(t, err)
		r.at(25 * time.Second)
		return r
	}
	for _, s := range stores {
		for name, change := range changes {
			wholly := prepare(t, s.open)
			old := wholly.contents()
			require.NoError(t, change(wholly.Engine))
			changed := wholly.contents()
			require.NotEqual(t, old, changed, name)
			for _, verdict := range []faultstore.Verdict{faultstore.LoseRequest, faultstore.LoseReply} {
				for failing := 1; ; failing++ {
					r := prepare(t, s.open)
					calls, applied := 0, false
					r.wire().lose = func(op faultstore.Op) faultstore.Verdict {
						if calls++; calls != failing {
							return faultstore.Pass
						}
						applied = op.Method == faultstore.Commit && verdict == faultstore.LoseReply
						return verdict
					}
					err := change(r.Engine)
					if calls < failing {
						require.NoError(t, err)
						require.Equal(t, 3, failing, "a change is a read and a write")
						break
					}
					require.Error(t, err, "%s: call %d", name, failing)
					want := old
					if applied {
						want = changed
					}
					require.Equal(t, want, r.contents(), "%s: call %d, applied: %t", name, failing, applied)
					for _, row := range r.contents().Schedules {
						require.Equal(t, row.Paused == store.Active, row.DueAt == row.Cursor, row.Name)
					}
				}
			}
		}
	}
}

func TestS9F14AFailedReRegistrationLeavesTheScheduleFiring(t *testing.T) {
	onEachStore(t, tickonce.Config{Limits: tickonce.Limits{Payload: 3}}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		before := r.contents()
		for _, c := range []struct {
			spec, queue, payload string
			o                    tickonce.ScheduleOptions
			want                 error
		}{
			{"@daily", "q", "", tickonce.ScheduleOptions{}, tickonce.ErrInvalidSpec},
			{"@every 0s", "q", "", tickonce.ScheduleOptions{}, tickonce.ErrInvalidSpec},
			{"@every 1s", "", "", tickonce.ScheduleOptions{}, tickonce.ErrInvalidName},
			{"@every 1s", "q", "four", tickonce.ScheduleOptions{}, tickonce.ErrLimit},
			{"@every 1s", "q", "", tickonce.ScheduleOptions{Expires: -1}, tickonce.ErrInvalidOption},
		} {
			_, err := r.Schedule(r.ctx, "s", c.spec, c.queue, []byte(c.payload), c.o)
			require.ErrorIs(t, err, c.want)
		}
		require.Equal(t, before, r.contents())
		require.Equal(t, seconds(10), r.tick(10*time.Second).fired("s"))
	})
}

func TestS10C97F16ZeroIntervalsAreRefusedOnEveryPath(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	for _, spec := range []string{"@every 0s", "@every -1s", "@every 00m", ""} {
		_, err := tickonce.ParseSpec(spec)
		require.ErrorIs(t, err, tickonce.ErrInvalidSpec)
		_, err = r.Schedule(r.ctx, "s", spec, "q", nil, tickonce.ScheduleOptions{})
		require.ErrorIs(t, err, tickonce.ErrInvalidSpec)
		err = r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			_, err := tx.Schedule("s", spec, "q", nil, tickonce.ScheduleOptions{})
			return err
		})
		require.ErrorIs(t, err, tickonce.ErrInvalidSpec)
		require.Empty(t, r.contents().Schedules)

		r.schedule("tampered", "@every 1s", tickonce.ScheduleOptions{})
		r.tamper("tampered", func(row *store.Schedule) { row.Spec = spec })
		require.Contains(t, r.tick(time.Second).holds(), "tampered")
		_, err = r.Unschedule(r.ctx, "tampered")
		require.NoError(t, err)
		r.at(0)
		r.restart()
	}
}

func TestS10BadOptionsAreRefused(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	for _, c := range []struct {
		o    tickonce.ScheduleOptions
		want string
	}{
		{tickonce.ScheduleOptions{Visibility: -time.Second}, "Visibility is -1s, want 0 or more"},
		{tickonce.ScheduleOptions{Visibility: time.Microsecond}, "Visibility is 1µs, want whole milliseconds"},
		{tickonce.ScheduleOptions{BaseBackoff: -1}, "BaseBackoff"},
		{tickonce.ScheduleOptions{BaseBackoff: time.Hour + time.Millisecond}, "BaseBackoff is 1h0m0.001s, want at most 1h0m0s"},
		{tickonce.ScheduleOptions{MaxAttempts: -1}, "MaxAttempts is -1"},
		{tickonce.ScheduleOptions{MaxAttempts: 1 << 31}, "MaxAttempts is 2147483648"},
		{tickonce.ScheduleOptions{Expires: -time.Second}, "Expires"},
		{tickonce.ScheduleOptions{Expires: time.Millisecond + 1}, "Expires"},
		{tickonce.ScheduleOptions{CatchUp: tickonce.CatchUp{Count: 65}}, "CatchUp.Count is 65, want 0 to 64"},
		{tickonce.ScheduleOptions{CatchUp: tickonce.CatchUp{Window: -3}}, "CatchUp.Window is -3ns, want 0 or more, GraceWindow or OnTimeWindow"},
		{tickonce.ScheduleOptions{CatchUp: tickonce.CatchUp{Count: -1}}, "CatchUp.Count is -1"},
		{tickonce.ScheduleOptions{CatchUp: tickonce.CatchUp{Window: -3}}, "CatchUp.Window"},
		{tickonce.ScheduleOptions{CatchUp: tickonce.CatchUp{Window: time.Microsecond}}, "CatchUp.Window"},
		{tickonce.ScheduleOptions{Anchor: time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC)}, "Anchor is in the year 300000"},
		{tickonce.ScheduleOptions{Anchor: time.Date(-300_000, 1, 1, 0, 0, 0, 0, time.UTC)}, "Anchor is in the year -300000"},
	} {
		r.refusedUnwritten(c.want, tickonce.ErrInvalidOption, func(e *tickonce.Engine) error {
			_, err := e.Schedule(r.ctx, "s", "@every 1s", "q", nil, c.o)
			require.ErrorContains(t, err, c.want)
			var details *tickonce.OptionError
			require.ErrorAs(t, err, &details)
			return err
		})
	}
}

func TestG6ARegistrationAtTheEndOfTimeIsRefused(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.clock.ms.Store(1<<53 - 1)
		_, err := r.Schedule(r.ctx, "s", "@every 1s", "q", nil, tickonce.ScheduleOptions{})
		require.ErrorIs(t, err, tickonce.ErrInvalidOption)
		require.ErrorContains(t, err, "Anchor puts the first boundary past the last instant")
		require.Empty(t, r.contents().Schedules)
	})
}

func TestScheduleLimits(t *testing.T) {
	onEachStore(t, tickonce.Config{Limits: tickonce.Limits{Schedules: 2}}, func(t *testing.T, r *rig) {
		r.schedule("a", "@every 1s", tickonce.ScheduleOptions{})
		r.schedule("b", "@every 1s", tickonce.ScheduleOptions{})
		before := r.contents()
		_, err := r.Schedule(r.ctx, "c", "@every 1s", "q", nil, tickonce.ScheduleOptions{})
		require.ErrorIs(t, err, tickonce.ErrLimit)
		require.EqualError(t, err, `schedule: schedule "c": limit exceeded: Schedules is 2, this would make 3`)
		require.Equal(t, before, r.contents())
		r.schedule("b", "@every 2s", tickonce.ScheduleOptions{})
		_, err = r.Unschedule(r.ctx, "a")
		require.NoError(t, err)
		r.schedule("c", "@every 1s", tickonce.ScheduleOptions{})
	})
}

// A schedule that others change between each read and write is read anew, a
// bounded number of times.
func TestScheduleConflicts(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
	meddles := 0
	r.wire().before = func(op faultstore.Op) {
		if op.Method == faultstore.Commit && meddles > 0 {
			meddles--
			r.tamper("s", func(*store.Schedule) {})
		}
	}
	meddles = 3
	changed, err := r.Pause(r.ctx, "s")
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, tickonce.PausedByUser, r.lookup("s").Paused)

	meddles = 1000
	_, err = r.Resume(r.ctx, "s", tickonce.ResumeOptions{})
	require.ErrorIs(t, err, tickonce.ErrConflict)
	_, err = r.Unschedule(r.ctx, "s")
	require.ErrorIs(t, err, tickonce.ErrConflict)
	require.Equal(t, tickonce.PausedByUser, r.lookup("s").Paused)
	require.Greater(t, meddles, 900, "bounded")
}

func TestSchedulesArePagedInNameOrder(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		for _, n := range []int{0, 1, 255, 256, 257, 512, 600} {
			for i := len(r.names()); i < n; i++ {
				// Of 600, the first page ends at s33, and the next begins at s330.
				r.schedule("s"+strconv.Itoa(2+i*7%600), "@every 1s", tickonce.ScheduleOptions{})
			}
			names := r.names()
			require.Len(t, names, n)
			require.IsIncreasing(t, append([]string{""}, names...))
		}
		for s, err := range r.Schedules(r.ctx) {
			require.NoError(t, err)
			require.Equal(t, "s10", s.Name)
			break
		}
		ended, end := context.WithCancel(r.ctx)
		end()
		errs := 0
		for _, err := range r.Schedules(ended) {
			require.ErrorIs(t, err, context.Canceled)
			errs++
		}
		require.Equal(t, 1, errs)
	})
}

func (r *rig) names() []string {
	r.t.Helper()
	var names []string
	for s, err := range r.Schedules(r.ctx) {
		require.NoError(r.t, err)
		names = append(names, s.Name)
	}
	return names
}

func TestC38ANewRowDoesNotBackfillItsPast(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{Anchor: start.Add(-365 * day)})
		require.Empty(t, r.tick(0).passed)
		did := r.tick(time.Minute)
		require.Equal(t, []time.Duration{time.Minute}, did.fired("s"))
		require.Zero(t, did.skipped("s"))
	})
}

// A 6-h interval on a process that starts anew every 4 h, and registers its
// schedule each time.
func TestC22RegisteringAtEachBootStarvesNoLongInterval(t *testing.T) {
	eachBoot(t, func(t *testing.T, r *rig, boot func()) {
		var fired []time.Duration
		r.schedule("s", "@every 6h", tickonce.ScheduleOptions{})
		for now := time.Duration(0); now <= 30*day; now += 2 * time.Hour {
			if now%(4*time.Hour) == 0 {
				boot()
				r.at(now)
				r.schedule("s", "@every 6h", tickonce.ScheduleOptions{})
			}
			fired = append(fired, r.tick(now).fired("s")...)
		}
		require.Equal(t, every(6*time.Hour, 6*time.Hour, 120), fired)
	})
}

func TestC26FiveDeploysFireNoBoundaryTwice(t *testing.T) {
	eachBoot(t, func(t *testing.T, r *rig, boot func()) {
		r.schedule("s", "@every 1d", tickonce.ScheduleOptions{})
		fired := r.tick(day).fired("s")
		for range 5 {
			boot()
			r.schedule("s", "@every 1d", tickonce.ScheduleOptions{})
			fired = append(fired, r.tick(r.now()+time.Minute).fired("s")...)
		}
		fired = append(fired, r.tick(2*day).fired("s")...)
		require.Equal(t, every(day, day, 2), fired)
	})
}

func TestC27ARestartJustBeforeTheSlotDoesNotMoveIt(t *testing.T) {
	eachBoot(t, func(t *testing.T, r *rig, boot func()) {
		r.schedule("s", "@every 1h", tickonce.ScheduleOptions{})
		r.tick(time.Hour - time.Second)
		boot()
		r.schedule("s", "@every 1h", tickonce.ScheduleOptions{})
		require.Empty(t, r.tick(time.Hour-time.Second).fires)
		require.Equal(t, []time.Duration{time.Hour}, r.tick(time.Hour).fired("s"))
	})
}

func TestC63TwoSchedulesOfOneSpecAreTwo(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("a", "@every 1m", tickonce.ScheduleOptions{})
		r.schedule("b", "@every 1m", tickonce.ScheduleOptions{})
		did := r.tick(time.Minute)
		require.Len(t, did.fired("a"), 1)
		require.Len(t, did.fired("b"), 1)
		require.Len(t, r.jobs("q"), 2)
	})
}

func TestC78EveryPayloadSurvivesTheRoundTrip(t *testing.T) {
	for name, payload := range map[string][]byte{
		"nil": nil, "empty": {}, "a NUL": {0}, "invalid UTF-8": []byte("\xff\xfe{"), "1 MiB": bytes.Repeat([]byte("x"), 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				s, err := r.Schedule(r.ctx, "s", "@every 1s", "q", payload, tickonce.ScheduleOptions{})
				require.NoError(t, err)
				require.True(t, bytes.Equal(payload, s.Payload))
				require.True(t, bytes.Equal(payload, r.lookup("s").Payload))
				r.restore()
				require.True(t, bytes.Equal(payload, r.lookup("s").Payload))
				r.tick(time.Second)
				r.restore()
				job, err := r.Claim(r.ctx, "q", "w")
				require.NoError(t, err)
				require.True(t, bytes.Equal(payload, job.Payload))
			})
		})
	}
	r := newRig(t, tickonce.Config{})
	_, err := r.Schedule(r.ctx, "s", "@every 1s", "q", make([]byte, 1<<20+1), tickonce.ScheduleOptions{})
	require.ErrorIs(t, err, tickonce.ErrLimit)
}

func TestPayloadsAreCopies(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		payload := []byte("abc")
		s, err := r.Schedule(r.ctx, "s", "@every 1s", "q", payload, tickonce.ScheduleOptions{})
		require.NoError(t, err)
		payload[0], s.Payload[1] = 'X', 'X'
		require.Equal(t, "abc", string(r.lookup("s").Payload))
		r.lookup("s").Payload[2] = 'X'
		require.Equal(t, "abc", string(r.lookup("s").Payload))
	})
}

func TestC79AnEmptySpecIsRefusedAndQuarantined(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		_, err := r.Schedule(r.ctx, "s", "", "q", nil, tickonce.ScheduleOptions{})
		require.ErrorIs(t, err, tickonce.ErrInvalidSpec)
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		r.tamper("s", func(row *store.Schedule) { row.Spec = "" })
		r.restore()
		require.True(t, strings.HasPrefix(r.tick(time.Second).holds()["s"].Reason, `invalid spec ""`))
		require.Empty(t, r.jobs("q"))
	})
}

func TestC102C103C34LongIntervalsAreKept(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("ninety days", "@every 90d", tickonce.ScheduleOptions{})
		r.schedule("longest", "@every 106751d", tickonce.ScheduleOptions{})
		require.Empty(t, r.tick(90*day-time.Millisecond).fires)
		require.Equal(t, []time.Duration{90 * day}, r.tick(90*day).fired("ninety days"))
		require.Equal(t, start.AddDate(0, 0, 106_751), r.lookup("longest").Next)
		_, err := r.Schedule(r.ctx, "longer", "@every 106752d", "q", nil, tickonce.ScheduleOptions{})
		require.ErrorIs(t, err, tickonce.ErrInvalidSpec)
	})
}
