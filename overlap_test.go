package tickonce_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

var policiesOfOverlap = []tickonce.Overlap{tickonce.OverlapAllow, tickonce.OverlapSkip, tickonce.OverlapBufferOne}

// handed asks for n jobs of the queue, and answers the boundaries of those that
// it gets.
func (r *rig) handed(queue string, n int) (jobs []*tickonce.Job, boundaries []time.Duration) {
	r.t.Helper()
	jobs, err := r.ClaimBatch(r.ctx, queue, "w", n)
	require.NoError(r.t, err)
	for _, j := range jobs {
		boundaries = append(boundaries, offset(j.Boundary))
	}
	return jobs, boundaries
}

// The boundaries of every 10 s are met as they come; the first run takes from
// 10 s to 45 s.
func TestX9C66C67C70ARunLongerThanItsPeriod(t *testing.T) {
	for overlap, want := range map[tickonce.Overlap]struct {
		fired, skipped, next []time.Duration // next: handed out once the first has ended
	}{
		tickonce.OverlapAllow:     {fired: seconds(10, 20, 30, 40, 50), next: seconds(20, 30, 40)},
		tickonce.OverlapSkip:      {fired: seconds(10, 50), skipped: seconds(20, 30, 40)},
		tickonce.OverlapBufferOne: {fired: seconds(10, 20, 50), skipped: seconds(30, 40), next: seconds(20)},
	} {
		onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
			r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Overlap: overlap})
			require.Equal(t, overlap, r.lookup("s").Options.Overlap)
			var fired, skipped []time.Duration
			var first []*tickonce.Job
			for s := 10; s <= 50; s += 5 {
				did := r.tick(time.Duration(s) * time.Second)
				fired = append(fired, did.fired("s")...)
				for _, skip := range did.skips("s") {
					require.Equal(t, "overlap", skip.Reason)
					require.EqualValues(t, 1, skip.Count)
					skipped = append(skipped, offset(skip.First))
				}
				switch s {
				case 10:
					first, _ = r.handed("q", 1)
					require.Len(t, first, 1)
				case 45:
					require.NoError(t, first[0].Ack(r.ctx))
					jobs, next := r.handed("q", 9)
					require.Equal(t, want.next, next)
					_, err := r.AckAll(r.ctx, jobs)
					require.NoError(t, err)
				}
			}
			require.Equal(t, want.fired, fired)
			require.Equal(t, want.skipped, skipped)
			require.Equal(t, 60*time.Second, offset(r.lookup("s").Next), "the grid is kept")
		})
	}
}

// While the first job backs off it is pending, and so the one that may be.
func TestX9C68APutOffJobIsTheBufferedOne(t *testing.T) {
	for _, overlap := range policiesOfOverlap[1:] {
		onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
			r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Overlap: overlap})
			r.tick(10 * time.Second)
			jobs, _ := r.handed("q", 1)
			require.NoError(t, jobs[0].RetryAfter(r.ctx, errBoom, time.Minute))
			require.EqualValues(t, 1, r.tick(20*time.Second).skipped("s"))
			none, _ := r.handed("q", 9)
			require.Empty(t, none)
			r.at(70 * time.Second)
			again, _ := r.handed("q", 9)
			require.Len(t, again, 1)
			require.Equal(t, 2, again[0].Attempt)
		})
	}
}

// However a job of the schedule comes to be, it is handed out alone.
func TestX9C69WhateverMadeAJobItRunsAlone(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Overlap: tickonce.OverlapBufferOne})
		alone := func(what string) *tickonce.Job {
			t.Helper()
			jobs, _ := r.handed("q", 9)
			require.Len(t, jobs, 1, what)
			return jobs[0]
		}
		none := func(what string) {
			t.Helper()
			jobs, _ := r.handed("q", 9)
			require.Empty(t, jobs, what)
		}
		r.tick(10 * time.Second)
		fired := alone("fired")
		_, err := r.Trigger(r.ctx, "s")
		require.NoError(t, err)
		none("fired by hand, beside it")
		require.NoError(t, fired.Fail(r.ctx, errBoom))
		triggered := alone("fired by hand")
		_, err = r.Requeue(r.ctx, "q", fired.ID)
		require.NoError(t, err)
		none("requeued, beside it")
		require.NoError(t, triggered.Ack(r.ctx))
		requeued := alone("requeued")
		r.at(20 * time.Second)
		require.Equal(t, seconds(20), r.tick(20*time.Second).fired("s"))
		none("fired, beside it")
		cancelled, err := r.Cancel(r.ctx, "q", requeued.ID)
		require.NoError(t, err)
		require.True(t, cancelled)
		alone("fired")
	})
}

// Behind a slow worker there is no backlog, and what it finds is the newest.
func TestX9C71BehindASlowWorkerNothingPilesUp(t *testing.T) {
	for overlap, most := range map[tickonce.Overlap]int{tickonce.OverlapSkip: 1, tickonce.OverlapBufferOne: 2} {
		onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
			r.schedule("s", "@every 1s", tickonce.ScheduleOptions{Overlap: overlap, CatchUp: tickonce.CatchUpLatest})
			var hands []*tickonce.Job
			for s := 10; s < 600; s += 10 {
				r.tick(time.Duration(s) * time.Second)
				require.LessOrEqual(t, len(r.jobs("q")), most)
				for _, j := range hands {
					require.NoError(t, j.Ack(r.ctx))
				}
				hands, _ = r.handed("q", 1)
				for _, j := range hands {
					late := r.now() - offset(j.Boundary)
					require.LessOrEqual(t, late, 10*time.Second*time.Duration(most-1))
				}
			}
		})
	}
}

// A skip costs nobody else anything, and moves the cursor: no store call more
// than for a fire, and none until the next boundary.
func TestX9ALongRunDelaysNobodyElse(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("slow", "@every 10s", tickonce.ScheduleOptions{Overlap: tickonce.OverlapSkip})
		r.schedule("other", "@every 10s", tickonce.ScheduleOptions{})
		r.tick(10 * time.Second)
		slow, _ := r.handed("q", 9)
		require.Len(t, slow, 2)
		for s := 20; s <= 60; s += 10 {
			at := time.Duration(s) * time.Second
			did := r.tick(at)
			require.Equal(t, []time.Duration{at}, did.fired("other"))
			require.Empty(t, did.fired("slow"))
			require.Equal(t, at+10*time.Second, offset(r.lookup("slow").Next))
			require.LessOrEqual(t, did.steps, 4)
		}
	})
}

// A panic ends the run like any other error: the next one has its turn.
func TestX9APanicIsNotInTheWay(t *testing.T) {
	onEachHand(t, tickonce.WorkerConfig{Concurrency: 5}, func(t *testing.T, h *hand) {
		h.schedule("s", "@every 10s", tickonce.ScheduleOptions{Overlap: tickonce.OverlapSkip, MaxAttempts: 1})
		for n, s := range []int{10, 20, 30} {
			require.Len(t, h.tick(time.Duration(s)*time.Second).fires, 1)
			h.work(h.now())
			require.Len(t, h.runs, n+1)
			run := h.runs[n]
			h.worker.Ended(run, run.Call(func(context.Context, *tickonce.Job) error { panic("boom") }))
			h.work(h.now())
			require.EqualValues(t, n+1, h.queue().Dead)
		}
	})
}

// What a job delivers is delivered on its own: a delivery that hangs is not in
// the way of the next run.
func TestX9X1ADeliveryIsNotInTheWay(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Overlap: tickonce.OverlapSkip})
		for _, s := range []int{10, 20, 30} {
			at := time.Duration(s) * time.Second
			require.Equal(t, []time.Duration{at}, r.tick(at).fired("s"))
			jobs, _ := r.handed("q", 9)
			require.Len(t, jobs, 1)
			require.NoError(t, jobs[0].Deliver("o", []byte("result")))
			require.NoError(t, jobs[0].Ack(r.ctx))
		}
		info, err := r.Outbox("o").Info(r.ctx)
		require.NoError(t, err)
		require.EqualValues(t, 3, info.Pending)
		require.Zero(t, r.row("s").Live)
	})
}

// Whatever is done to the schedule during a run, no second job of its name is
// handed out, and each boundary fires once.
func TestX9S5S6ARegistrationDuringARunStartsNoSecondOne(t *testing.T) {
	skip := tickonce.ScheduleOptions{Overlap: tickonce.OverlapSkip}
	anew := skip
	anew.ResetCursor = true
	for what, change := range map[string]func(r *rig) error{
		"the same":      func(r *rig) error { _, err := r.Schedule(r.ctx, "s", "@every 10s", "q", nil, skip); return err },
		"a new grid":    func(r *rig) error { _, err := r.Schedule(r.ctx, "s", "@every 10s", "q", nil, anew); return err },
		"another queue": func(r *rig) error { _, err := r.Schedule(r.ctx, "s", "@every 5s", "other", nil, skip); return err },
		"many times": func(r *rig) error {
			for range 7 {
				if _, err := r.Schedule(r.ctx, "s", "@every 10s", "other", nil, anew); err != nil {
					return err
				}
			}
			return nil
		},
		"off and on": func(r *rig) error {
			_, err := r.Pause(r.ctx, "s")
			_, err2 := r.Resume(r.ctx, "s", tickonce.ResumeOptions{})
			return errors.Join(err, err2)
		},
		"removed and added": func(r *rig) error {
			_, err := r.Unschedule(r.ctx, "s")
			_, err2 := r.Schedule(r.ctx, "s", "@every 10s", "other", nil, skip)
			return errors.Join(err, err2)
		},
	} {
		for _, boot := range []bool{false, true} {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				r.schedule("s", "@every 10s", skip)
				r.tick(10 * time.Second)
				first, _ := r.handed("q", 9)
				require.Len(t, first, 1)
				r.at(15 * time.Second)
				require.NoError(t, change(r), what)
				if boot {
					r.restore()
				}
				for s := 16; s < 50; s++ {
					require.Empty(t, r.tick(time.Duration(s)*time.Second).fires, what)
					for _, queue := range []string{"q", "other"} {
						second, _ := r.handed(queue, 9)
						require.Empty(t, second, what)
					}
				}
				cancelled, err := r.Cancel(r.ctx, "q", first[0].ID)
				require.NoError(t, err)
				require.True(t, cancelled)
				require.Len(t, r.tick(61*time.Second).fires, 1, what)
			})
		}
	}
}

// SkipLive lets nothing in beside a job fired by hand, and nothing by hand
// beside a fired one.
func TestX9TriggerMindsTheOverlap(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Overlap: tickonce.OverlapSkip})
		_, err := r.Trigger(r.ctx, "s")
		require.NoError(t, err)
		_, err = r.Trigger(r.ctx, "s")
		require.ErrorIs(t, err, tickonce.ErrOverlap)
		require.EqualValues(t, 1, r.tick(10*time.Second).skipped("s"))
		jobs, _ := r.handed("q", 9)
		require.Len(t, jobs, 1)
		require.NoError(t, jobs[0].Ack(r.ctx))
		require.Len(t, r.tick(20*time.Second).fires, 1)
		_, err = r.Trigger(r.ctx, "s")
		require.ErrorIs(t, err, tickonce.ErrOverlap)
	})
}

// A job comes in between the read and the write of a tick: the move is stale,
// and decided again.
func TestX9T3AJobBetweenReadAndWrite(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Overlap: tickonce.OverlapSkip})
		r.tick(5 * time.Second)
		r.at(10 * time.Second)
		for {
			_, report, err := r.runner.Step(r.ctx)
			require.NoError(t, err)
			if report.Phase == tickonce.PhaseSelect {
				break
			}
		}
		insert := store.Insert{
			Queue: "q", Stamps: r.row("s").Stamps, RunAt: store.None,
			From: &store.Source{Schedule: "s", ScheduleID: r.row("s").ID, FireAt: store.None, Alone: true},
		}
		_, err := r.store.Commit(r.ctx, &store.Batch{Inserts: []store.Insert{insert}})
		require.NoError(t, err)
		did := r.untilRest()
		require.Empty(t, did.fires)
		require.EqualValues(t, 1, did.skipped("s"))
		require.Len(t, r.jobs("q"), 1)
	})
}

// Two queues, because the schedule has moved: a worker that sleeps although a
// job waits in its queue is woken by whatever lets that have its turn, and by
// nothing else.
func TestX9QU10AWorkerIsWokenWhenAJobHasItsTurn(t *testing.T) {
	buffer := tickonce.ScheduleOptions{Overlap: tickonce.OverlapBufferOne, MaxAttempts: 1, Visibility: time.Hour}
	for what, end := range map[string]func(r *rig, first *tickonce.Job) error{
		"ack":    func(r *rig, first *tickonce.Job) error { return first.Ack(r.ctx) },
		"fail":   func(r *rig, first *tickonce.Job) error { return first.Fail(r.ctx, errBoom) },
		"retry":  func(r *rig, first *tickonce.Job) error { return first.RetryAfter(r.ctx, errBoom, time.Hour) },
		"all":    func(r *rig, first *tickonce.Job) error { _, err := r.AckAll(r.ctx, []*tickonce.Job{first}); return err },
		"cancel": func(r *rig, first *tickonce.Job) error { _, err := r.Cancel(r.ctx, "old", first.ID); return err },
		"a transaction": func(r *rig, first *tickonce.Job) error {
			return r.Tx(r.ctx, func(tx *tickonce.Tx) error { return tx.Ack(first) })
		},
		"a burial": func(r *rig, _ *tickonce.Job) error {
			r.at(r.now() + time.Hour)
			_, err := r.Sweep(r.ctx, "old")
			return err
		},
	} {
		onEachHand(t, tickonce.WorkerConfig{}, func(t *testing.T, h *hand) {
			_, err := h.Schedule(h.ctx, "s", "@every 10s", "old", nil, buffer)
			require.NoError(t, err)
			h.tick(10 * time.Second)
			first, _ := h.handed("old", 9)
			require.Len(t, first, 1)
			h.schedule("s", "@every 10s", buffer)
			require.Len(t, h.tick(20*time.Second).fires, 1)
			require.Equal(t, "claim queues", h.work(20*time.Second))
			require.EqualValues(t, 1, h.queue().Waiting)
			require.Greater(t, h.next, h.now()+time.Minute, what)
			require.Empty(t, h.work(21*time.Second))
			_, err = h.Enqueue(h.ctx, "old", nil, tickonce.EnqueueOptions{})
			require.NoError(t, err)
			plain, _ := h.handed("old", 9)
			require.Len(t, plain, 1)
			require.NoError(t, plain[0].Ack(h.ctx))
			require.Empty(t, h.work(22*time.Second), "by a job that is in nobody's way")

			require.NoError(t, end(h.rig, first[0]))
			require.Equal(t, "claim", h.work(h.now()), what)
			require.Len(t, h.runs, 1, what)
			require.Equal(t, 20*time.Second, offset(h.runs[0].Job.Boundary))
		})
	}
}

// late is a store that does something between its answer and who gets it.
type late struct {
	store.Store
	answered func()
}

func (s *late) Queues(ctx context.Context, from string, dst []store.Queue) (int, store.Instant, error) {
	n, now, err := s.Store.Queues(ctx, from, dst)
	s.answered()
	return n, now, err
}

func TestX9QU10AClaimEndsWhileTheWorkerAsks(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		s := &late{Store: r.store, answered: func() {}}
		r.on(s)
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Overlap: tickonce.OverlapBufferOne})
		r.tick(10 * time.Second)
		first, _ := r.handed("q", 9)
		require.Len(t, first, 1)
		r.tick(20 * time.Second)
		s.answered = func() {
			s.answered = func() {}
			require.NoError(t, first[0].Ack(r.ctx))
		}
		w, err := r.NewWorker("q", tickonce.WorkerConfig{})
		require.NoError(t, err)
		var phases []tickonce.Phase
		for {
			next, report, err := w.Step(r.ctx)
			require.NoError(t, err)
			if report.Phase != "" {
				phases = append(phases, report.Phase)
			}
			if len(report.Begun) > 0 || offset(next) > r.now() {
				break
			}
		}
		require.Equal(t, []tickonce.Phase{tickonce.PhaseClaim, tickonce.PhaseAsk, tickonce.PhaseClaim}, phases)
	})
}

// A run of a worker ends, and the next one begins at once, in another queue.
func TestX9WorkersHandOver(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
		buffer := tickonce.ScheduleOptions{Overlap: tickonce.OverlapBufferOne, MaxAttempts: 1}
		var began []time.Duration
		work := func(queue string, takes time.Duration) {
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			go func() {
				_ = l.RunWorker(ctx, queue, func(context.Context, *tickonce.Job) error {
					began = append(began, l.now())
					time.Sleep(takes)
					return nil
				}, tickonce.WorkerConfig{Concurrency: 3})
			}()
		}
		work("q", 25*time.Second)
		work("other", time.Second)
		_, err := l.Schedule(t.Context(), "s", "@every 10s", "q", nil, buffer)
		require.NoError(t, err)
		l.run()
		time.Sleep(15 * time.Second)
		_, err = l.Schedule(t.Context(), "s", "@every 10s", "other", nil, buffer)
		require.NoError(t, err)
		time.Sleep(22 * time.Second)
		synctest.Wait()
		require.Equal(t, seconds(10, 35), began)
	})
}
