package tickonce_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

func TestX9TriggerFiresAJobNow(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		before := r.schedule("s", "@every 10s", tickonce.ScheduleOptions{
			Priority: 4, Expires: time.Hour, MaxAttempts: 7, Timeout: time.Minute, ActiveHours: hours("08:00", "09:00", ""),
		})
		r.take()
		r.at(5 * time.Second)
		id, err := r.Trigger(r.ctx, "s")
		require.NoError(t, err)
		require.Equal(t, []store.Job{{
			ID: id, Queue: "q", Payload: []byte("s"), Schedule: "s", ScheduleID: r.row("s").ID, FireAt: store.None,
			Stamps: store.Stamps{VisibilityMS: 300_000, MaxAttempts: 7, BaseBackoffMS: 60_000}, TimeoutMS: 60_000,
			EnqueuedAt: instant(5 * time.Second), RunAt: instant(5 * time.Second), ExpiresAt: instant(time.Hour + 5*time.Second),
			Priority: 4, State: store.Pending, Deadline: store.None, Since: store.None,
		}}, r.jobs("q"))
		require.Equal(t, []tickonce.Event{{
			Kind: tickonce.EventTriggered, At: start.Add(5 * time.Second), Schedule: "s", Queue: "q", Job: id,
		}}, r.take())
		require.Equal(t, before, r.lookup("s"), "its grid goes on")
	})
}

// One turn in all, whoever gives it: by hand, and then the grid.
func TestX8SBD10ATriggeredRunOnceHasHadItsTurn(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{RunOnce: true})
		_, err := r.Trigger(r.ctx, "s")
		require.NoError(t, err)
		require.Equal(t, tickonce.PausedByRunOnce, r.lookup("s").Paused)
		require.EqualValues(t, 1, r.jobs("q")[0].Stamps.MaxAttempts)
		require.Empty(t, r.tick(time.Hour).fires)
		_, err = r.Trigger(r.ctx, "s")
		require.ErrorIs(t, err, tickonce.ErrPaused)
		require.Len(t, r.jobs("q"), 1)
	})
}

func TestX9SBD10TriggerKeepsTheOverlap(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("skip", "@every 10s", tickonce.ScheduleOptions{Overlap: tickonce.OverlapSkip})
		r.schedule("buffer", "@every 10s", tickonce.ScheduleOptions{Overlap: tickonce.OverlapBufferOne})
		for _, name := range []string{"skip", "buffer"} {
			_, err := r.Trigger(r.ctx, name)
			require.NoError(t, err)
			_, err = r.Trigger(r.ctx, name)
			require.ErrorIs(t, err, tickonce.ErrOverlap, "one is pending")
		}
		jobs, err := r.ClaimBatch(r.ctx, "q", "w", 9)
		require.NoError(t, err)
		require.Len(t, jobs, 2)
		_, err = r.Trigger(r.ctx, "skip")
		require.ErrorIs(t, err, tickonce.ErrOverlap, "one is claimed")
		_, err = r.Trigger(r.ctx, "buffer")
		require.NoError(t, err)
		did := r.tick(10 * time.Second)
		require.Empty(t, did.fires)
		require.Equal(t, "overlap", did.skips("skip")[0].Reason)
	})
}

func TestX4TriggerOfWhatIsNotActive(t *testing.T) {
	onEachStore(t, tickonce.Config{Limits: tickonce.Limits{QueueLength: 1}}, func(t *testing.T, r *rig) {
		_, err := r.Trigger(r.ctx, "s")
		require.ErrorIs(t, err, tickonce.ErrNotFound)
		require.EqualError(t, err, `trigger: schedule "s": not found`)
		_, err = r.Trigger(r.ctx, "__alkstore_s")
		require.ErrorIs(t, err, tickonce.ErrReservedName)

		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		_, err = r.Pause(r.ctx, "s")
		require.NoError(t, err)
		_, err = r.Trigger(r.ctx, "s")
		require.ErrorIs(t, err, tickonce.ErrPaused)
		r.tamper("s", func(row *store.Schedule) { row.Paused = store.PausedByBreaker })
		_, err = r.Trigger(r.ctx, "s")
		require.ErrorIs(t, err, tickonce.ErrPaused)
		_, err = r.Resume(r.ctx, "s", tickonce.ResumeOptions{})
		require.NoError(t, err)

		r.tamper("s", func(row *store.Schedule) { row.Queue = "__alkstore_outbox:mail" })
		_, err = r.Trigger(r.ctx, "s")
		require.ErrorIs(t, err, tickonce.ErrInvalidOption, "no way into a reserved queue (N5)")
		r.tamper("s", func(row *store.Schedule) { row.Queue = "q" })

		_, err = r.Trigger(r.ctx, "s")
		require.NoError(t, err)
		before := r.contents()
		_, err = r.Trigger(r.ctx, "s")
		require.ErrorIs(t, err, tickonce.ErrLimit)
		require.Equal(t, before, r.contents())
	})
}

// A tick between the read and the write of a trigger makes it read anew.
func TestX9TriggerIsGuarded(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Overlap: tickonce.OverlapSkip})
		other := *r
		other.Engine, other.runner = r.Engine, r.runner
		w := r.wire()
		r.at(10 * time.Second)
		fired := 0
		w.before = func(op faultstore.Op) {
			if op.Method == faultstore.Commit && fired == 0 {
				fired = len(other.untilRest().fires)
			}
		}
		_, err := r.Trigger(r.ctx, "s")
		require.ErrorIs(t, err, tickonce.ErrOverlap)
		require.Equal(t, 1, fired)
		require.Len(t, r.jobs("q"), 1)
	})
}

func TestX9O7TriggerInATransaction(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Overlap: tickonce.OverlapSkip})
		r.schedule("once", "@every 10s", tickonce.ScheduleOptions{RunOnce: true})
		r.take()
		var job *tickonce.TxJob
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) (err error) {
			job, err = tx.Trigger("s")
			require.NoError(t, err)
			require.Zero(t, job.ID())
			_, err = tx.Trigger("s")
			require.ErrorIs(t, err, tickonce.ErrOverlap, "over what is staged")
			_, err = tx.Trigger("once")
			require.NoError(t, err)
			_, err = tx.Trigger("once")
			require.ErrorIs(t, err, tickonce.ErrPaused)
			_, err = tx.Schedule("new", "@every 10s", "q", nil, tickonce.ScheduleOptions{})
			require.NoError(t, err)
			_, err = tx.Trigger("new")
			require.ErrorIs(t, err, tickonce.ErrInvalidOption)
			return nil
		}))
		jobs := r.jobs("q")
		require.Len(t, jobs, 2)
		require.Equal(t, jobs[0].ID, job.ID())
		require.Equal(t, r.row("s").ID, jobs[0].ScheduleID)
		require.True(t, jobs[0].Alone)
		require.Equal(t, store.Live{Pending: 1}, r.row("s").Live)
		require.Len(t, of(tickonce.EventTriggered, r.take()), 2)
		require.Equal(t, tickonce.PausedByRunOnce, r.lookup("once").Paused)
	})
}

// Resume inside a transaction passes its skip on to the write.
func TestS7X12O7WhatATransactionPassesOverIsWritten(t *testing.T) {
	r := newRig(t, tickonce.Config{})
	r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
	_, err := r.Pause(r.ctx, "s")
	require.NoError(t, err)
	r.at(25 * time.Second)
	puts := r.puts()
	require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
		if _, err := tx.Resume("s", tickonce.ResumeOptions{}); err != nil {
			return err
		}
		_, err := tx.Schedule("s", "@every 7s", "q", nil, tickonce.ScheduleOptions{Anchor: start})
		return err
	}))
	require.Equal(t, []store.Skip{
		{Reason: store.SkipPause, EveryMS: 10_000, First: instant(10 * time.Second), Last: instant(20 * time.Second), Count: 2},
		{Reason: store.SkipBefore, EveryMS: 7000, First: instant(0), Last: instant(21 * time.Second), Count: 4},
	}, (*puts)[0].Skips)
}

// A grid that a transaction begins and replaces by another never was: the history
// has what lies before the last one, once.
func TestX12O7AGridThatATransactionReplacesIsNowhere(t *testing.T) {
	due := store.Skip{Reason: store.SkipMissed, EveryMS: 10_000, First: instant(10 * time.Second), Last: instant(20 * time.Second), Count: 2}
	before := func(every int64, last, count time.Duration) store.Skip {
		return store.Skip{Reason: store.SkipBefore, EveryMS: every, First: instant(0), Last: instant(last * time.Second), Count: int64(count)}
	}
	anchored := tickonce.ScheduleOptions{Anchor: start}
	type call func(tx *tickonce.Tx, name string)
	put := func(spec string, o tickonce.ScheduleOptions) call {
		return func(tx *tickonce.Tx, name string) {
			_, err := tx.Schedule(name, spec, "q", nil, o)
			require.NoError(t, err)
		}
	}
	remove := func(tx *tickonce.Tx, name string) {
		_, err := tx.Unschedule(name)
		require.NoError(t, err)
	}
	pause := func(tx *tickonce.Tx, name string) {
		_, err := tx.Pause(name)
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		calls []call
		want  []store.Skip
	}{
		"another interval":             {[]call{put("@every 7s", anchored), put("@every 8s", anchored)}, []store.Skip{before(8000, 24, 4)}},
		"one that begins now":          {[]call{put("@every 7s", anchored), put("@every 8s", tickonce.ScheduleOptions{Anchor: start.Add(25 * time.Second)})}, nil},
		"removed in between":           {[]call{put("@every 7s", anchored), remove, put("@every 8s", anchored)}, []store.Skip{before(8000, 24, 4)}},
		"the same again":               {[]call{put("@every 7s", anchored), put("@every 7s", tickonce.ScheduleOptions{Priority: 1})}, []store.Skip{before(7000, 21, 4)}},
		"the same, its cursor reset":   {[]call{put("@every 7s", anchored), put("@every 7s", tickonce.ScheduleOptions{Anchor: start, ResetCursor: true})}, []store.Skip{before(7000, 21, 4)}},
		"paused after it":              {[]call{put("@every 7s", anchored), pause}, []store.Skip{before(7000, 21, 4)}},
		"an interval and back, in all": {[]call{put("@every 7s", anchored), put("@every 8s", anchored), put("@every 7s", anchored)}, []store.Skip{before(7000, 21, 4)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tickonce.Config{})
			r.schedule("old", "@every 10s", tickonce.ScheduleOptions{})
			r.at(25 * time.Second)
			puts := r.puts()
			require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
				for _, call := range c.calls {
					call(tx, "old")
					call(tx, "new")
				}
				return nil
			}))
			require.Equal(t, append([]store.Skip{due}, c.want...), (*puts)[0].Skips)
			require.ElementsMatch(t, c.want, (*puts)[1].Skips)
		})
	}
}

// puts begins another process, and keeps what it puts.
func (r *rig) puts() *[]store.Put {
	var puts []store.Put
	r.on(putsOf{r.store, &puts})
	return &puts
}

type putsOf struct {
	store.Store
	puts *[]store.Put
}

func (s putsOf) Commit(ctx context.Context, b *store.Batch) (store.Committed, error) {
	*s.puts = append(*s.puts, b.Puts...)
	return s.Store.Commit(ctx, b)
}

// What comes between the look of a trigger and its write, and makes another job
// of the schedule live, is noticed: a job that is retried or requeued, another
// trigger, a tick.
func TestX9NothingComesBetweenATriggerAndItsJob(t *testing.T) {
	for name, trigger := range map[string]func(r *rig) error{
		"Trigger": func(r *rig) error { _, err := r.Trigger(r.ctx, "s"); return err },
		"Tx.Trigger": func(r *rig) error {
			return r.Tx(r.ctx, func(tx *tickonce.Tx) error { _, err := tx.Trigger("s"); return err })
		},
	} {
		for between, first := range map[string]func(r *rig, other *tickonce.Engine) func(){
			"a retry": func(r *rig, other *tickonce.Engine) func() {
				_, err := other.Trigger(r.ctx, "s")
				require.NoError(r.t, err)
				job, err := other.Claim(r.ctx, "q", "w")
				require.NoError(r.t, err)
				return func() { require.NoError(r.t, job.RetryAfter(r.ctx, errBoom, time.Hour)) }
			},
			"a requeue": func(r *rig, other *tickonce.Engine) func() {
				_, err := other.Trigger(r.ctx, "s")
				require.NoError(r.t, err)
				job, err := other.Claim(r.ctx, "q", "w")
				require.NoError(r.t, err)
				require.NoError(r.t, job.Fail(r.ctx, errBoom))
				return func() { _, err := other.Requeue(r.ctx, "q", job.ID); require.NoError(r.t, err) }
			},
			"another trigger": func(r *rig, other *tickonce.Engine) func() {
				return func() { _, err := other.Trigger(r.ctx, "s"); require.NoError(r.t, err) }
			},
		} {
			t.Run(name+", "+between, func(t *testing.T) {
				onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
					other := r.Engine // on the store itself
					r.schedule("s", "@every 1h", tickonce.ScheduleOptions{Overlap: tickonce.OverlapBufferOne})
					comes := first(r, other)
					w := r.wire()
					w.before = func(op faultstore.Op) {
						if op.Method == faultstore.Commit {
							w.before = nil
							comes()
						}
					}
					err := trigger(r)
					require.Error(t, err)
					if name == "Trigger" {
						require.ErrorIs(t, err, tickonce.ErrOverlap, "it has looked again")
					} else {
						require.ErrorIs(t, err, tickonce.ErrConflict)
					}
					require.Equal(t, store.Live{Pending: 1}, r.row("s").Live)
				})
			})
		}
	}
}
