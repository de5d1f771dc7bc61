package tickonce_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

const year = 365 * 24 * time.Hour

// ahead makes n schedules whose cursors were set by a clock a year ahead, and
// one whose anchor lies there by right; the clock is at start again.
func (r *rig) ahead(n int) (names []string) {
	r.t.Helper()
	for i := range n {
		name := "s" + strconv.Itoa(i)
		names = append(names, name)
		r.schedule(name, "@every 1m", tickonce.ScheduleOptions{})
	}
	r.schedule("anchored", "@every 1m", tickonce.ScheduleOptions{Anchor: start.Add(year)})
	r.at(year - time.Second)
	for _, name := range names {
		r.schedule(name, "@every 1m", tickonce.ScheduleOptions{ResetCursor: true})
	}
	r.at(0)
	r.take()
	return names
}

func schedulesOf(events []tickonce.Event) (names []string) {
	for _, event := range events {
		names = append(names, event.Schedule)
	}
	return names
}

// The inspection pages through the schedules with one call a step, behind a
// renewal each, and tells of each row once.
func TestT11InspectionPages(t *testing.T) {
	for _, c := range []struct {
		batch int
		calls string
	}{
		{1, "acquire schedules renew schedules renew schedules renew schedules renew schedules due"},
		{2, "acquire schedules renew schedules renew schedules due"},
		{3, "acquire schedules renew schedules due"},
		{4, "acquire schedules renew schedules due"},
		{5, "acquire schedules due"},
	} {
		t.Run("batch "+strconv.Itoa(c.batch), func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1, Batch: c.batch}, func(t *testing.T, r *rig) {
				w := r.wire()
				names := r.ahead(3)
				before := r.contents()
				w.take()
				did := r.tick(0)
				require.Equal(t, c.calls, w.take())
				reports := of(tickonce.EventCursorAhead, did.events)
				require.Equal(t, names, schedulesOf(reports))
				require.Equal(t, r.lookup("s0").Next, reports[0].Boundary)
				require.Equal(t, before, r.contents(), "hold leaves them")
				require.Empty(t, of(tickonce.EventCursorAhead, r.tick(time.Minute).events), "again")
			})
		})
	}
}

func TestT11InspectionRearms(t *testing.T) {
	for _, batch := range []int{1, 2, 3, 4, 5, 1000} {
		t.Run("batch "+strconv.Itoa(batch), func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1, Batch: batch, ClockRepair: tickonce.RepairRearm}, func(t *testing.T, r *rig) {
				names := r.ahead(3)
				before := r.row("s0").ID
				did := r.tick(0)
				require.Equal(t, names, schedulesOf(of(tickonce.EventCursorAhead, did.events)))
				rearmed := of(tickonce.EventRearmed, did.events)
				require.Equal(t, names, schedulesOf(rearmed))
				for _, name := range names {
					row := r.row(name)
					require.Greater(t, row.ID, before, "a new incarnation")
					require.Equal(t, instant(59*time.Second), row.Cursor, "on the same grid")
					require.Equal(t, start.Add(59*time.Second), rearmed[0].Boundary)
				}
				require.Equal(t, start.Add(year), r.lookup("anchored").Next)
				require.Len(t, r.tick(59*time.Second).fires, 3)
			})
		})
	}
}

// A repair that fails, or meets a row that has changed, is made again from the
// page, which is reported once.
func TestT11RepairThatFailsIsMadeAgain(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(r *rig, w *wire)
		rearmed int // as events tell
	}{
		{"request lost", func(_ *rig, w *wire) { w.lose = first(2, faultstore.Commit, faultstore.LoseRequest) }, 3},
		{"reply lost", func(_ *rig, w *wire) { w.lose = first(1, faultstore.Commit, faultstore.LoseReply) }, 2},
		{"a row changed", func(r *rig, w *wire) {
			w.before = once(faultstore.Commit, func() {
				r.tamper("s0", func(row *store.Schedule) { row.Payload = []byte("new") })
			})
		}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1, Batch: 1, ClockRepair: tickonce.RepairRearm}, func(t *testing.T, r *rig) {
				w := r.wire()
				names := r.ahead(3)
				c.prepare(r, w)
				var events []tickonce.Event
				did := ticked{}
				for did.next < 10*time.Second {
					did = r.tick(did.next)
					require.NoError(t, did.err)
					events = append(events, did.events...)
				}
				require.Equal(t, names, schedulesOf(of(tickonce.EventCursorAhead, events)))
				require.Len(t, of(tickonce.EventRearmed, events), c.rearmed)
				for _, name := range names {
					require.Equal(t, instant(59*time.Second), r.row(name).Cursor, name)
				}
			})
		})
	}
}

// A clock that goes back between two pages begins the inspection anew: the
// rows of the pages before were judged by the later now.
func TestT11ClockGoesBackDuringTheInspection(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1, Batch: 1}, func(t *testing.T, r *rig) {
		w := r.wire()
		for _, name := range []string{"a", "b"} {
			r.schedule(name, "@every 1m", tickonce.ScheduleOptions{})
		}
		r.at(time.Hour)
		for _, name := range []string{"a", "b"} {
			r.schedule(name, "@every 1m", tickonce.ScheduleOptions{ResetCursor: true})
		}
		r.take()
		r.step() // acquire
		r.stepTo(w, faultstore.Schedules)
		require.Empty(t, of(tickonce.EventCursorAhead, r.take()))
		w.before = once(faultstore.Schedules, func() { r.at(0) })
		r.stepTo(w, faultstore.Schedules)
		require.Equal(t, []string{"a", "b"}, schedulesOf(of(tickonce.EventCursorAhead, r.tick(0).events)))
	})
}

// A page that was judged by a clock that was ahead, between two right readings,
// is read again before anything fires.
func TestT11ClockIsAheadForThePageAlone(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.at(time.Hour)
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
		r.at(0)
		r.take()
		r.step() // acquire
		w.before = once(faultstore.Schedules, func() { r.at(time.Hour) })
		r.stepTo(w, faultstore.Schedules)
		require.Empty(t, of(tickonce.EventCursorAhead, r.take()))
		require.Equal(t, []string{"s"}, schedulesOf(of(tickonce.EventCursorAhead, r.tick(time.Second).events)))
	})
}

// Whichever call of a tick first sees the clock go back, the schedules are
// inspected before anything is fired.
func TestT11ClockGoesBackBeforeAnyCall(t *testing.T) {
	for _, method := range []faultstore.Method{faultstore.Renew, faultstore.Due} {
		t.Run(method.String(), func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.at(time.Hour)
				r.schedule("fast", "@every 1s", tickonce.ScheduleOptions{})
				r.schedule("slow", "@every 20m", tickonce.ScheduleOptions{})
				r.tick(time.Hour)
				w.take()
				w.before = once(method, func() { r.at(time.Minute) })
				require.Empty(t, r.tick(time.Hour+time.Second).fires)
				did := r.tick(time.Minute)
				require.Contains(t, w.take(), "schedules due")
				require.Empty(t, did.fires)
				ahead := of(tickonce.EventCursorAhead, append(did.events, r.take()...))
				require.Equal(t, []string{"fast", "slow"}, schedulesOf(ahead))
				require.Equal(t, start.Add(time.Minute), ahead[0].At)
			})
		})
	}
}

// The step back is met by a tick that is about to fire: what was due at its
// reading was due, and fires once.
func TestT11ClockGoesBackBeforeTheWrite(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.tick(0)
		w.before = once(faultstore.Advance, func() { r.at(10*time.Second - 2*time.Millisecond) })
		require.Len(t, r.tick(10*time.Second).fires, 1)
		require.Empty(t, r.tick(10*time.Second-time.Millisecond).fires)
		require.Empty(t, r.tick(10*time.Second).fires)
		require.Len(t, r.tick(20*time.Second).fires, 1)
		require.Len(t, r.jobs("q"), 2)
	})
}

// K2: the leader's own lease does not outlive a step back by more than its TTL
// and a second, and the runner then acquires anew.
func TestK2LeaderAcquiresAnewAfterAStepBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		to    time.Duration
		anew  bool
		calls string
	}{
		{"by the slack", time.Hour - time.Second, false, "renew due"},
		{"by a millisecond more", time.Hour - 1001*time.Millisecond, true, "renew acquire schedules due"},
		{"by a year", time.Hour - year, true, "renew acquire schedules due"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.at(time.Hour)
				lease := r.lead()
				w.take()
				did := r.tick(c.to)
				require.NoError(t, did.err)
				require.Equal(t, c.calls, w.take())
				require.Equal(t, c.anew, r.leader().Term > lease.Term)
				require.Equal(t, c.anew, len(of(tickonce.EventLeaseLapsed, did.events)) == 1)
				require.Equal(t, instant(c.to+leaseTTL), r.leader().ExpiresAt)
				require.Equal(t, c.to+20*time.Second, did.next)
			})
		})
	}
}

// K2, LK5: a crashed leader keeps others out no longer than its TTL and a
// second from the step.
func TestK2CrashedLeaderDoesNotBlockPastAStepBack(t *testing.T) {
	for _, back := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, time.Minute, time.Hour, year} {
		t.Run(back.String(), func(t *testing.T) {
			onEachStore(t, tickonce.Config{StandBy: true}, func(t *testing.T, r *rig) {
				r.lead()
				r.crash()
				did := r.tick(-back)
				for did.next+back <= leaseTTL+time.Second+5*time.Second {
					did = r.tick(did.next)
				}
				require.Equal(t, "process-2/1", r.leader().Owner)
			})
		})
	}
}

// K1: small steps to and fro around a boundary fire it once.
func TestK1StepsAroundABoundary(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		draw := newDraw(11)
		var boundaries []time.Duration
		for range 3000 {
			at := 100*time.Second + time.Duration(draw(16_000)-8_000)*time.Millisecond
			boundaries = append(boundaries, r.tick(at).fired("s")...)
		}
		require.Equal(t, every(10*time.Second, 10*time.Second, 10), boundaries)
	})
}

// The budget is in fires. A schedule is never split, what exceeds the budget
// stays due, and everybody fires before anybody fires again.
func TestT15Budget(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1, Batch: 10}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.schedule("far", "@every 1s", tickonce.ScheduleOptions{})
		r.tick(0)
		w.take()
		did := r.tick(64 * time.Second)
		require.Len(t, did.fires, 64, "a schedule is taken whole")
		require.Equal(t, "renew acquire due advance", w.take())
	})
	for _, c := range []struct {
		name      string
		schedules int
		behind    int // boundaries of each
		ticks     []int
	}{
		{"as many as the budget", 10, 1, []int{10}},
		{"one more", 11, 1, []int{10, 1}},
		{"three each: three schedules fit", 7, 3, []int{9, 9, 3}},
		{"ten each", 3, 10, []int{10, 10, 10}},
		{"eleven each: one at a time", 3, 11, []int{11, 11, 11}},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1, Batch: 10}, func(t *testing.T, r *rig) {
				for i := range c.schedules {
					r.schedule("s"+strconv.Itoa(i), "@every 1s", tickonce.ScheduleOptions{})
				}
				r.tick(0)
				r.at(time.Duration(c.behind) * time.Second)
				var ticks []int
				for {
					next, report := r.step()
					n := 0
					for range report.Fires() {
						n++
					}
					if n > 0 {
						ticks = append(ticks, n)
					}
					if next > r.now() {
						break
					}
				}
				require.Equal(t, c.ticks, ticks)
			})
		})
	}
}

func TestC12TenThousandDueAtOnce(t *testing.T) {
	r := newRig(t, tickonce.Config{Poll: -1})
	const schedules = 10_000
	require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
		for i := range schedules {
			if _, err := tx.Schedule("s"+strconv.Itoa(i), "@every 1s", "q", nil, tickonce.ScheduleOptions{}); err != nil {
				return err
			}
		}
		return nil
	}))
	r.tick(0)
	r.at(time.Second)
	seen := map[string]int{}
	var order []string
	for {
		next, report := r.step()
		fires := 0
		for fire := range report.Fires() {
			seen[fire.Schedule]++
			order = append(order, fire.Schedule)
			fires++
		}
		require.LessOrEqual(t, fires, 1000)
		r.at(r.now() + time.Millisecond) // time goes on: the first are due again before the last have fired
		if len(seen) == schedules {
			break
		}
		require.LessOrEqual(t, next, r.now())
	}
	for name, times := range seen {
		require.Equal(t, 1, times, name)
	}
	require.True(t, slices.IsSorted(order), "what is due at the same instant fires in the order of its names")
}

// A queue without room holds its schedules in the next tick, which comes at
// once; the others of the tick fire.
func TestQ6FullQueueIsHeldInTheNextTick(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1, Limits: tickonce.Limits{QueueLength: 2}}, func(t *testing.T, r *rig) {
		w := r.wire()
		for _, name := range []string{"a", "b", "c"} {
			r.schedule(name, "@every 10s", tickonce.ScheduleOptions{})
		}
		_, err := r.Schedule(r.ctx, "roomy", "@every 10s", "other", nil, tickonce.ScheduleOptions{})
		require.NoError(t, err)
		r.tick(0)
		w.take()
		did := r.tick(10 * time.Second)
		require.Equal(t, "renew due advance renew due advance", w.take())
		require.Len(t, did.fires, 3)
		require.Empty(t, did.fired("c"))
		hold := did.holds()["c"]
		require.Equal(t, tickonce.Hold{Reason: "the queue is full", Since: start.Add(10 * time.Second), Times: 1}, hold)
		require.Equal(t, start.Add(10*time.Second), r.lookup("c").Next, "the cursor stays")
		require.Equal(t, start.Add(70*time.Second), r.lookup("c").Due)

		jobs, err := r.ClaimBatch(r.ctx, "q", "w", 2)
		require.NoError(t, err)
		_, err = r.AckAll(r.ctx, jobs)
		require.NoError(t, err)
		require.NoError(t, r.Purge(r.ctx, "q"))
		_, err = r.Unschedule(r.ctx, "a")
		require.NoError(t, err)
		_, err = r.Unschedule(r.ctx, "b")
		require.NoError(t, err)
		did = r.tick(70 * time.Second)
		require.NotContains(t, did.holds(), "c", "seven are due, but no more are planned than the queue keeps")
		require.Equal(t, []time.Duration{10 * time.Second, 20 * time.Second}, did.fired("c"))
	})
}

// A catch-up count that the queue's limit has no room for would hold its
// schedule for ever.
func TestQ5ACatchUpFitsTheQueue(t *testing.T) {
	onEachStore(t, tickonce.Config{Limits: tickonce.Limits{QueueLength: 5}}, func(t *testing.T, r *rig) {
		r.schedule("a", "@every 10s", tickonce.ScheduleOptions{})
		require.Equal(t, 5, r.lookup("a").Options.CatchUp.Count)
		_, err := r.Schedule(r.ctx, "b", "@every 10s", "q", nil, tickonce.ScheduleOptions{CatchUp: tickonce.CatchUp{Count: 6}})
		require.EqualError(t, err, "invalid option: CatchUp.Count is 6, want 0 to 5")
	})
}

// Shortly before the last instant the lease is cut short, but not renewed at
// once; at it no lease lasts.
func TestL4AtTheEndOfTimeNoLeaseLasts(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		now := store.MaxInstant - 30_000
		r.clock.ms.Store(int64(now))
		require.NoError(t, r.untilRest().err)
		next, _, err := r.runner.Step(r.ctx)
		require.NoError(t, err)
		require.Equal(t, int64(15_000), next.UnixMilli()-int64(now))

		r.clock.ms.Store(int64(store.MaxInstant))
		var report *tickonce.Report
		for range 2 { // the renewal is refused, then the new lease
			next, report, err = r.runner.Step(r.ctx)
			require.NoError(t, err)
		}
		require.EqualError(t, report.Err, "run schedules: acquire: the store's clock is at the last instant")
		require.Equal(t, int64(100), next.UnixMilli()-int64(store.MaxInstant))
	})
}

// A clock that stands at the end of time, or shortly before it, makes no runner
// spin: each ends, or rests.
func TestL7NothingSpinsAtTheEndOfTime(t *testing.T) {
	for _, config := range []tickonce.Config{
		{}, {Poll: -1}, {StandBy: true}, {ClockRepair: tickonce.RepairRearm}, {StandBy: true, Poll: -1, ClockRepair: tickonce.RepairRearm},
	} {
		for _, before := range []store.Instant{0, 1, 500, 2000, 30_000, 70_000} {
			onEachStore(t, config, func(t *testing.T, r *rig) {
				now := store.MaxInstant - before
				r.clock.ms.Store(int64(now - 100_000))
				for name, spec := range map[string]string{"a": "@every 1s", "b": "@every 1h", "c": "@every 7d"} {
					_, _ = r.Schedule(r.ctx, name, spec, "q", nil, tickonce.ScheduleOptions{}) // refused past the end
				}
				require.NoError(t, r.untilRest().err)
				r.clock.ms.Store(int64(now))
				busy := 0
				for range 1000 {
					next, _, err := r.runner.Step(r.ctx)
					if err != nil {
						break
					}
					if next.UnixMilli() <= int64(now) {
						busy++
					}
				}
				require.Less(t, busy, 50, "%d ms before the end", before)
			})
		}
	}
}

// An error between the full queue and the hold forgets nothing that matters.
func TestQ6StoreErrorBeforeTheHold(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1, Limits: tickonce.Limits{QueueLength: 1}}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.schedule("a", "@every 10s", tickonce.ScheduleOptions{})
		r.schedule("b", "@every 10s", tickonce.ScheduleOptions{})
		r.tick(0)
		advances := 0
		w.lose = func(op faultstore.Op) faultstore.Verdict {
			if op.Method == faultstore.Advance {
				if advances++; advances == 2 {
					return faultstore.LoseRequest
				}
			}
			return faultstore.Pass
		}
		did := r.tick(10 * time.Second)
		require.Empty(t, did.holds())
		did = r.tick(did.next)
		require.Contains(t, did.holds(), "b")
		require.Greater(t, did.next, r.now())
		require.Len(t, r.jobs("q"), 1)
	})
}

// The wake is counted from the host's clock at the look, not at the write that
// follows.
func TestL7C41ALateWriteDelaysNoWake(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		r.schedule("a", "@every 10s", tickonce.ScheduleOptions{})
		r.schedule("b", "@every 15s", tickonce.ScheduleOptions{})
		r.tick(0)
		r.at(10 * time.Second)
		for range 2 { // renew, look
			_, _, err := r.runner.Step(r.ctx)
			require.NoError(t, err)
		}
		r.at(12 * time.Second)
		next, report, err := r.runner.Step(r.ctx)
		require.NoError(t, err)
		require.Equal(t, tickonce.PhaseAdvance, report.Phase)
		require.Equal(t, start.Add(15*time.Second), next)
	})
}

// Two nodes of a database whose clocks differ by less than a second answer in
// turn. Nothing is inspected for that, and everything fires.
func TestT11AStrobingClockStopsNothing(t *testing.T) {
	for _, by := range []int64{2, 999} {
		onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
			r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
			w := r.wire()
			base, ahead := int64(instant(0)), false
			w.lose = func(faultstore.Op) faultstore.Verdict { // before each call
				if ahead = !ahead; ahead {
					r.clock.ms.Store(base + by)
				} else {
					r.clock.ms.Store(base)
				}
				return faultstore.Pass
			}
			steps, fires := 0, 0
			for ; base < int64(instant(100*time.Second)); base += 500 {
				r.clock.ms.Store(base)
				for range 100 {
					next, report, err := r.runner.Step(r.ctx)
					require.NoError(t, err)
					steps++
					for range report.Fires() {
						fires++
					}
					if next.UnixMilli() > base+by {
						break
					}
				}
			}
			require.GreaterOrEqual(t, fires, 98, "%d ms, %d steps", by, steps)
			require.Less(t, steps, 200*60)
		})
	}
}

// A store that never lets a move through is not asked without end.
func TestL7AStoreWithoutProgressIsNotSpunOn(t *testing.T) {
	for name, spoil := range map[string]func(*store.Tick) bool{
		"always stale": func(tick *store.Tick) bool {
			for i := range tick.Moves {
				tick.Moves[i].Outcome = store.Stale
			}
			return true
		},
		"always fenced": func(*store.Tick) bool { return false },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tickonce.Config{})
			r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
			engine, err := tickonce.New(stuck{r.store, spoil}, r.Config())
			require.NoError(t, err)
			runner, calls := engine.NewRunner(), 0
			r.at(10 * time.Second)
			for r.now() < 70*time.Second {
				next, report, err := runner.Step(r.ctx)
				require.NoError(t, err)
				if report.Phase != "" {
					calls++
				}
				if next.After(r.clock.Now()) {
					r.at(next.Sub(start))
				}
			}
			require.Less(t, calls, 4*(60+20), "one round a second, after a few quick ones")
		})
	}
}

// stuck is a store whose ticks are spoiled.
type stuck struct {
	store.Store
	spoil func(*store.Tick) bool
}

func (s stuck) Advance(_ context.Context, tick *store.Tick) (bool, error) { return s.spoil(tick), nil }

// A payload of a schedule that is gone is not kept by a runner that rests.
func TestRunnerKeepsNoRowsThroughARest(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		_, err := r.Schedule(r.ctx, "s", "@every 1s", "q", make([]byte, 1<<10), tickonce.ScheduleOptions{})
		require.NoError(t, err)
		r.tick(time.Second)
		_, _, err = r.runner.Step(r.ctx)
		require.NoError(t, err)
		require.Zero(t, tickonce.RowsKept(r.runner))
	})
}

// A clock that stands at the zero time, as that of a fake clock may, is no end.
func TestL5TheZeroTimeIsNoEnd(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		r.clock.ms.Store(time.Time{}.UnixMilli())
		for range 3 {
			next, _, err := r.runner.Step(r.ctx)
			require.NoError(t, err)
			require.NotZero(t, next)
		}
		require.NoError(t, r.runner.Stop(r.ctx))
	})
}

// K5: a host's clock that steps back while the tick is written does not put
// the runner to sleep for the size of the step: the store's clock is right.
func TestK5AHostThatStepsBackDuringTheWriteDoesNotOversleep(t *testing.T) {
	hosts := &clock{}
	r := newRig(t, tickonce.Config{Poll: -1})
	hosts.ms.Store(int64(instant(0)))
	config := r.Config()
	config.Clock = hosts
	r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
	stepBack := false
	engine, err := tickonce.New(faultstore.New(r.store, func(op faultstore.Op) faultstore.Verdict {
		if stepBack && op.Method == faultstore.Advance {
			hosts.ms.Store(hosts.ms.Load() - time.Hour.Milliseconds())
		}
		return faultstore.Pass
	}), config)
	require.NoError(t, err)
	runner, fires := engine.NewRunner(), 0
	for second := range 60 {
		stepBack = second == 10
		for range 10 {
			next, report, err := runner.Step(r.ctx)
			require.NoError(t, err)
			for range report.Fires() {
				fires++
			}
			if next.After(hosts.Now()) {
				break
			}
		}
		r.at(time.Duration(second+1) * time.Second)
		hosts.ms.Add(1000)
	}
	require.Equal(t, 5, fires)
}

// L7: a look that finds the store's clock a week behind, between a lease and a
// next step by the right clock, does not put the runner to sleep for a week.
func TestL7AClockThatIsBehindForOneLookDoesNotOversleep(t *testing.T) {
	hosts := &clock{}
	hosts.ms.Store(int64(instant(0)))
	r := newRig(t, tickonce.Config{Poll: -1})
	config := r.Config()
	config.Clock = hosts
	r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
	engine, err := tickonce.New(faultstore.New(r.store, func(op faultstore.Op) faultstore.Verdict {
		if op.Method == faultstore.Due {
			r.at(-7 * day)
		}
		return faultstore.Pass
	}), config)
	require.NoError(t, err)
	runner := engine.NewRunner()
	for range 20 {
		next, _, err := runner.Step(r.ctx)
		require.NoError(t, err)
		require.LessOrEqual(t, next.Sub(hosts.Now()), 20*time.Second, "a third of the lease's TTL")
		r.at(0)
	}
}
