package tickonce_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

func (r *rig) history(schedule string) []tickonce.PastRun {
	r.t.Helper()
	var runs []tickonce.PastRun
	for run, err := range r.History(r.ctx, schedule, tickonce.HistoryOptions{}) {
		require.NoError(r.t, err)
		runs = append(runs, run)
	}
	return runs
}

func (r *rig) why(schedule string, boundary time.Duration) tickonce.Why {
	r.t.Helper()
	why, err := r.Why(r.ctx, schedule, start.Add(boundary))
	require.NoError(r.t, err)
	require.True(r.t, why.Boundary.Equal(start.Add(boundary)))
	return why
}

func (r *rig) totals(schedule string) tickonce.Totals {
	r.t.Helper()
	totals, err := r.Totals(r.ctx, schedule)
	require.NoError(r.t, err)
	return totals
}

// An entry says whose it is, when, and how it ended, of execution alone (ME3,
// F11); a failed run is not a done one, and has its own counter (C87, ME1, F9).
func TestX11C87ME1ME3F9F11AnEntryOfTheHistory(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{MaxAttempts: 2})
		r.tick(time.Minute + 20*time.Second)
		job := r.claim()
		r.at(90 * time.Second)
		require.NoError(t, job.RetryAfter(r.ctx, errors.New("broke"), time.Second))
		r.at(91 * time.Second)
		again := r.claim()
		r.at(95 * time.Second)
		require.NoError(t, again.Ack(r.ctx))
		runs := r.history("s")
		require.Len(t, runs, 2)
		require.Equal(t, []int64{2, 1}, []int64{runs[0].ID, runs[1].ID})
		first, second := runs[1], runs[0]
		require.Equal(t, []any{"s", job.ID, 1}, []any{first.Schedule, first.Job, first.Attempt})
		require.Equal(t, seconds(60, 80, 80, 90),
			[]time.Duration{offset(first.Boundary), offset(first.Fired), offset(first.Started), offset(first.Finished)})
		require.Equal(t, 20*time.Second, first.Late)
		require.Equal(t, []any{tickonce.ExecutionFailed, "broke", tickonce.JobPending}, []any{first.Execution, first.Error, first.Then})
		require.Equal(t, []any{2, tickonce.ExecutionOK, "", tickonce.JobDone}, []any{second.Attempt, second.Execution, second.Error, second.Then})
		totals := r.totals("s")
		require.Equal(t, []int64{1, 1, 0}, []int64{
			totals.Runs(tickonce.ExecutionOK), totals.Runs(tickonce.ExecutionFailed), totals.Runs(tickonce.ExecutionLost),
		})
		require.Equal(t,
			`fired late, by 20s; attempt 1 of job 1: failed, at 2026-01-01T00:01:30Z: "broke"; attempt 2 of job 1: ok, at 2026-01-01T00:01:35Z; job 1 is done`,
			r.why("s", time.Minute).String())
	})
}

// Newest first, page by page, and stable where many end at one instant (ME7);
// the counters are of the same runs, dropped or not (SBD11).
func TestX11ME7SBD11TheHistoryIsPaged(t *testing.T) {
	onEachStore(t, tickonce.Config{Limits: tickonce.Limits{Runs: 150}}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		for range 3 {
			r.tick(r.now() + 60*time.Second)
			for job := r.claim(); job != nil; job, _ = r.Claim(r.ctx, "q", "w") {
				require.NoError(t, job.Ack(r.ctx))
			}
		}
		runs := r.history("s")
		require.Len(t, runs, 150, "of 180")
		for i, run := range runs {
			require.Equal(t, int64(180-i), run.ID)
			require.Equal(t, tickonce.JobID(180-i), run.Job)
		}
		for run, err := range r.History(r.ctx, "s", tickonce.HistoryOptions{Before: 100}) {
			require.NoError(t, err)
			require.Equal(t, int64(99), run.ID)
			break
		}
		totals := r.totals("s")
		require.Equal(t, int64(180), totals.Runs(tickonce.ExecutionOK), "and what was dropped is counted")
		require.Empty(t, r.history("another"))
	})
}

// An error of the store ends the sequence, and is told.
func TestX11AFailedReadEndsTheSequence(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
	r.on(faultstore.New(r.store, func(op faultstore.Op) faultstore.Verdict {
		if op.Method == faultstore.Runs || op.Method == faultstore.Skips {
			return faultstore.LoseReply
		}
		return faultstore.Pass
	}))
	n := 0
	for _, err := range r.History(r.ctx, "s", tickonce.HistoryOptions{}) {
		require.ErrorIs(t, err, faultstore.ErrLost)
		n++
	}
	for _, err := range r.Skips(r.ctx, "s", tickonce.HistoryOptions{}) {
		require.ErrorIs(t, err, faultstore.ErrLost)
		n++
	}
	require.Equal(t, 2, n)
	_, err := r.Totals(r.ctx, "s")
	require.ErrorIs(t, err, faultstore.ErrLost)
	_, err = r.Why(r.ctx, "s", start)
	require.ErrorIs(t, err, faultstore.ErrLost)
	for _, err := range r.History(r.ctx, "", tickonce.HistoryOptions{}) {
		require.ErrorIs(t, err, tickonce.ErrInvalidName)
	}
}

// Skips have reasons and counters of their own (C37, ME9), in ranges whatever
// their number.
func TestX12C37ME9EveryReasonHasItsCounter(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		r.tick(1_000_000_064 * time.Second)
		for job := r.claim(); job != nil; job, _ = r.Claim(r.ctx, "q", "w") {
			require.NoError(t, job.Ack(r.ctx))
		}
		_, err := r.Pause(r.ctx, "s")
		require.NoError(t, err)
		r.at(1_000_000_100 * time.Second)
		_, err = r.Resume(r.ctx, "s", tickonce.ResumeOptions{})
		require.NoError(t, err)
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{CatchUp: tickonce.CatchUpLatest})
		r.tick(1_000_000_110 * time.Second)
		totals := r.totals("s")
		require.Equal(t, []int64{1_000_000_000, 36, 9, 0}, []int64{
			totals.Skipped(tickonce.SkippedByCap), totals.Skipped(tickonce.SkippedByPause),
			totals.Skipped(tickonce.SkippedByPolicy), totals.Skipped(tickonce.SkippedByOverlap),
		})
		var reasons []tickonce.SkipReason
		for skip, err := range r.Skips(r.ctx, "s", tickonce.HistoryOptions{}) {
			require.NoError(t, err)
			reasons = append(reasons, skip.Reason)
		}
		require.Equal(t, []tickonce.SkipReason{tickonce.SkippedByPolicy, tickonce.SkippedByPause, tickonce.SkippedByCap}, reasons)
		why := r.why("s", 500_000_000*time.Second)
		require.Equal(t, tickonce.WhySkipped, why.Kind)
		require.Equal(t, int64(1_000_000_000), why.Skip.Count, "one range")
		require.Equal(t,
			"skipped, as more than 64 were due, one of 1000000000 from 2026-01-01T00:01:05Z to 2057-09-09T01:47:44Z, at 2057-09-09T01:47:44Z",
			why.String())
	})
}

// While the store is down nothing passes: the boundary is late, and not lost,
// and that can be asked for (C84).
func TestX12C84AnOutageMakesABoundaryLate(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1h", tickonce.ScheduleOptions{})
		require.Equal(t, tickonce.WhyNotYet, r.why("s", time.Hour).Kind)
		r.at(time.Hour + 30*time.Minute)
		require.Equal(t, "not yet: it has neither fired nor been skipped", r.why("s", time.Hour).String())
		r.tick(time.Hour + 30*time.Minute)
		why := r.why("s", time.Hour)
		require.Equal(t, []any{tickonce.WhyFired, tickonce.JobPending, 30 * time.Minute, tickonce.FiredLate},
			[]any{why.Kind, why.State, why.Late, why.Lateness})
		require.Equal(t, "fired late, by 30m0s; job 1 is pending", why.String())
		r.tick(4*time.Hour + time.Second)
		require.Equal(t, tickonce.FiredCaughtUp, r.why("s", 2*time.Hour).Lateness)
		require.Equal(t, tickonce.FiredOnTime, r.why("s", 4*time.Hour).Lateness)
	})
}

// Each answer, and what it says to people.
func TestX12WhatBecomesOfABoundary(t *testing.T) {
	onEachStore(t, tickonce.Config{Limits: tickonce.Limits{Skips: 1, Runs: 1}}, func(t *testing.T, r *rig) {
		say := func(boundary time.Duration, kind tickonce.WhyKind, text string) {
			t.Helper()
			why := r.why("s", boundary)
			require.Equal(t, kind, why.Kind, why)
			require.Equal(t, text, why.String())
		}
		_, err := r.Why(r.ctx, "s", start)
		require.ErrorIs(t, err, tickonce.ErrNotFound)
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Anchor: start.Add(-time.Minute), CatchUp: tickonce.CatchUpLatest})
		say(0, tickonce.WhyBefore, "never due: the schedule was not yet on this grid")
		say(time.Second, tickonce.WhyNoBoundary, "not a boundary of the schedule")
		say(-70*time.Second, tickonce.WhyNoBoundary, "not a boundary of the schedule")
		say(10*time.Second+time.Nanosecond, tickonce.WhyNoBoundary, "not a boundary of the schedule")
		r.tick(30 * time.Second)
		say(20*time.Second, tickonce.WhySkipped, "skipped by the catch-up policy, one of 2 from 2026-01-01T00:00:10Z to 2026-01-01T00:00:20Z, at 2026-01-01T00:00:30Z")
		say(0, tickonce.WhyForgotten, "forgotten: the history goes back to 2026-01-01T00:00:00.001Z")
		job := r.claim()
		say(30*time.Second, tickonce.WhyFired, "fired; job 1 is claimed")
		require.NoError(t, job.Fail(r.ctx, errors.New("no")))
		say(30*time.Second, tickonce.WhyRan, `fired; attempt 1 of job 1: failed, at 2026-01-01T00:00:30Z: "no"; job 1 is dead`)
		r.tick(40 * time.Second)
		require.NoError(t, r.claim().Ack(r.ctx))
		require.NoError(t, r.Purge(r.ctx, "q", job.ID))
		say(30*time.Second, tickonce.WhyFired, "fired; how it ended is forgotten: runs are known from 2026-01-01T00:00:30.001Z on")
		r.tick(50 * time.Second)
		_, err = r.Cancel(r.ctx, "q", 3)
		require.NoError(t, err)
		say(50*time.Second, tickonce.WhyFired, "fired; its job was removed before it ran")
		_, err = r.Pause(r.ctx, "s")
		require.NoError(t, err)
		say(time.Minute, tickonce.WhyNotYet, "not yet: it has neither fired nor been skipped; the schedule is paused")
		r.at(time.Minute)
		r.schedule("s", "@every 7s", tickonce.ScheduleOptions{})
		say(time.Minute, tickonce.WhySkipped, "skipped by the end of a pause, at 2026-01-01T00:01:00Z")
		say(20*time.Second, tickonce.WhyForgotten, "forgotten: the history goes back to 2026-01-01T00:01:00Z")
		r.tamper("s", func(row *store.Schedule) {
			row.Spec, row.Paused, row.DueAt = "@daily", store.Active, instant(time.Minute)
		})
		r.tick(time.Minute)
		require.Contains(t, r.why("s", time.Hour).String(), "; the schedule is held since 2026-01-01T00:01:00Z: ")
	})
}

// A grid's range of boundaries from before it began says nothing of the grids
// before: what they fired there is forgotten, not said to have never been due.
func TestX12ABoundaryBeforeItsGridMayHaveFiredOnAnother(t *testing.T) {
	onEachStore(t, tickonce.Config{Limits: tickonce.Limits{Runs: 1}}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		for _, boundary := range []time.Duration{10 * time.Second, 20 * time.Second} {
			r.tick(boundary)
			require.NoError(t, r.claim().Ack(r.ctx)) // the second run takes the place of the first
		}
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Anchor: start.Add(-time.Minute)})
		require.Equal(t, tickonce.WhyForgotten, r.why("s", 10*time.Second).Kind)
		r.schedule("s", "@every 1h", tickonce.ScheduleOptions{})

		var skips []tickonce.PastSkip
		for skip, err := range r.Skips(r.ctx, "s", tickonce.HistoryOptions{}) {
			require.NoError(t, err)
			skips = append(skips, skip)
		}
		require.Len(t, skips, 1)
		require.Equal(t, tickonce.SkippedAsBefore, skips[0].Reason)
		require.Equal(t, seconds(-60, 20), []time.Duration{offset(skips[0].First), offset(skips[0].Last)})
		require.Equal(t, tickonce.WhyRan, r.why("s", 20*time.Second).Kind)
		for _, boundary := range []time.Duration{-10 * time.Second, 10 * time.Second} {
			why := r.why("s", boundary)
			require.Equal(t, tickonce.WhyForgotten, why.Kind, boundary)
			require.Equal(t, start.Add(30*time.Second), why.Since, "the cursor of the grid before")
		}
	})
}

// A history write is part of the settle, and its loss is no other thing than
// that of the settle; a removal between drops the entry (F3, SBD15).
func TestX11F3SBD15ARunAfterARemovalIsDropped(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		r.tick(time.Second)
		job := r.claim()
		_, err := r.Unschedule(r.ctx, "s")
		require.NoError(t, err)
		require.NoError(t, job.Ack(r.ctx))
		require.Empty(t, r.history("s"))
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		require.Empty(t, r.history("s"))
		require.Equal(t, tickonce.Totals{}, r.totals("s"))
	})
}

// Why looks where the job is, not where the schedule fires now.
func TestX12TheJobOfABoundaryIsFoundInAnyQueue(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		r.tick(time.Second)
		_, err := r.Schedule(r.ctx, "s", "@every 1s", "other", nil, tickonce.ScheduleOptions{})
		require.NoError(t, err)
		r.tick(2 * time.Second)
		require.Equal(t, tickonce.JobID(1), r.why("s", time.Second).Job)
		require.Equal(t, tickonce.JobID(2), r.why("s", 2*time.Second).Job)
	})
}

// regrids is a store under which the schedule begins a new grid whenever its
// skips are read.
type regrids struct {
	store.Store
	begin func()
}

func (s regrids) Skips(ctx context.Context, p store.Page, dst []store.SkipRange) (store.History, error) {
	h, err := s.Store.Skips(ctx, p, dst)
	s.begin()
	return h, err
}

// An answer never mixes two grids: asked again, and refused in the end.
func TestX12ANewGridInTheMiddleIsAConflict(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	other, err := tickonce.New(r.store, r.config)
	require.NoError(t, err)
	again := 1
	begin := func() {
		if again--; again >= 0 {
			_, err := other.Schedule(r.ctx, "s", "@every 1s", "q", nil, tickonce.ScheduleOptions{ResetCursor: true})
			require.NoError(t, err)
		}
	}
	r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
	r.on(regrids{r.store, begin})
	require.Equal(t, tickonce.WhyNotYet, r.why("s", time.Second).Kind)
	again = 1000
	_, err = r.Why(r.ctx, "s", start)
	require.ErrorIs(t, err, tickonce.ErrConflict)
}

// What is kept survives a restart, and says the same.
func TestX11X12D1TheHistorySurvivesARestart(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
	r.tick(100 * time.Second)
	require.NoError(t, r.claim().Fail(r.ctx, errors.New("no")))
	runs, totals := r.history("s"), r.totals("s")
	skipped := r.why("s", 80*time.Second)
	r.restore()
	require.Equal(t, runs, r.history("s"))
	require.Equal(t, totals, r.totals("s"))
	require.Equal(t, skipped, r.why("s", 80*time.Second))
	require.Equal(t, tickonce.WhySkipped, skipped.Kind)
	require.True(t, slices.ContainsFunc(r.jobs("q"), func(j store.Job) bool { return j.State == store.Dead }))
}
