package tickonce_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

func TestT1DueIffDueAtHasCome(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.tick(0)
		require.Empty(t, r.tick(10*time.Second-time.Millisecond).passed)
		require.Equal(t, seconds(10), r.tick(10*time.Second).fired("s"))
	})
}

func TestT2C33C40AFireIsAnOrdinaryJobWithItsBoundary(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Priority: 4, Expires: time.Hour})
		did := r.tick(25 * time.Second)
		require.Equal(t, seconds(10, 20), did.fired("s"))
		jobs := r.jobs("q")
		require.Len(t, jobs, 2)
		for i, job := range jobs {
			require.Equal(t, store.Job{
				ID: did.fires[i].Job, Queue: "q", Payload: []byte("s"), Schedule: "s", ScheduleID: r.row("s").ID,
				FireAt: instant(time.Duration(i+1) * 10 * time.Second), Stamps: core.PlainStamps,
				EnqueuedAt: instant(25 * time.Second), RunAt: instant(25 * time.Second),
				ExpiresAt: instant(time.Hour + 25*time.Second), Priority: 4, State: store.Pending,
				Deadline: store.None, Since: store.None,
			}, job, "ready at the tick's now, not at the boundary")
		}
		for _, boundary := range seconds(10, 20) {
			job, err := r.Claim(r.ctx, "q", "w")
			require.NoError(t, err)
			require.Equal(t, "s", job.Schedule)
			require.Equal(t, start.Add(boundary), job.Boundary)
			require.Equal(t, start.Add(25*time.Second), job.Enqueued)
			require.NoError(t, job.Ack(r.ctx))
		}
		job, err := r.Claim(r.ctx, "q", "w")
		require.NoError(t, err)
		require.Nil(t, job)
	})
}

// Jobs are ready at the now that the tick read, though it is written later.
func TestT2JobsAreReadyAtTheReadingOfTheTick(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.tick(0)
		w.before = func(op faultstore.Op) {
			if op.Method == faultstore.Advance {
				r.at(13 * time.Second)
			}
		}
		r.tick(12 * time.Second)
		jobs := r.jobs("q")
		require.Len(t, jobs, 1)
		require.Equal(t, instant(12*time.Second), jobs[0].RunAt)
		require.Equal(t, instant(13*time.Second), jobs[0].EnqueuedAt)
	})
}

// Each change comes between the read and the write of one tick: the move is
// stale, and the next tick decides on the row as it then is.
func TestT3AChangeBetweenReadAndWriteMakesTheMoveStale(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *rig)
		queue  string // of the fire that follows
		fired  []time.Duration
	}{
		{"another queue and payload", func(r *rig) {
			_, err := r.Schedule(r.ctx, "s", "@every 10s", "new", []byte("new"), tickonce.ScheduleOptions{})
			require.NoError(r.t, err)
		}, "new", seconds(10, 20, 30)},
		{"another policy", func(r *rig) {
			r.schedule("s", "@every 10s", tickonce.ScheduleOptions{CatchUp: tickonce.CatchUpLatest})
		}, "q", seconds(30)},
		{"pause", func(r *rig) {
			_, err := r.Pause(r.ctx, "s")
			require.NoError(r.t, err)
		}, "", nil},
		{"pause and resume", func(r *rig) {
			_, err := r.Pause(r.ctx, "s")
			require.NoError(r.t, err)
			_, err = r.Resume(r.ctx, "s", tickonce.ResumeOptions{})
			require.NoError(r.t, err)
		}, "", nil},
		{"removal", func(r *rig) {
			_, err := r.Unschedule(r.ctx, "s")
			require.NoError(r.t, err)
		}, "", nil},
		{"removal and the same again with the same anchor", func(r *rig) {
			_, err := r.Unschedule(r.ctx, "s")
			require.NoError(r.t, err)
			r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Anchor: start})
		}, "", nil},
		{"a new grid", func(r *rig) {
			r.schedule("s", "@every 10s", tickonce.ScheduleOptions{ResetCursor: true})
		}, "", nil},
		{"a write that changes nothing", func(r *rig) { r.tamper("s", func(*store.Schedule) {}) }, "q", seconds(10, 20, 30)},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
				r.tick(0)
				writes := 0
				w.before = func(op faultstore.Op) {
					if op.Method == faultstore.Advance {
						if writes++; writes == 1 {
							c.change(r)
						}
					}
				}
				did := r.tick(35 * time.Second)
				require.Equal(t, c.fired, did.fired("s"))
				for _, fire := range did.fires {
					require.Equal(t, c.queue, fire.Queue)
				}
				total := 0
				for _, q := range r.contents().Queues {
					total += int(q.Enqueued)
				}
				require.Equal(t, len(c.fired), total, "reported fires are the jobs there are")
				require.NoError(t, did.err)
			})
		})
	}
}

// Ten goroutines read, plan and write under one live lease.
func TestT3TenTickersFireEachBoundaryOnce(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		for i := range 20 {
			r.schedule("s"+strconv.Itoa(i), "@every "+strconv.Itoa(i%5+1)+"s", tickonce.ScheduleOptions{})
		}
		grant, err := r.store.Acquire(r.ctx, store.SchedulerLock, "ten", 3_600_000)
		require.NoError(t, err)
		require.True(t, grant.OK)
		ticker := func() {
			var plan core.TickPlan
			rows := make([]store.Schedule, 20)
			for now := range 61 {
				r.at(time.Duration(now) * time.Second) // they set it back, too
				due, err := r.store.Due(t.Context(), rows)
				if err != nil || due.N == 0 {
					continue
				}
				plan.Plan(rows[:due.N], due.Now, 1000, func(*store.Schedule) string { return "" },
					func(string, store.Instant) (uint16, string) { return 0, "" })
				plan.Tick.By = grant.Lease
				_, _ = r.store.Advance(t.Context(), &plan.Tick)
			}
		}
		var tickers sync.WaitGroup
		for range 10 {
			tickers.Go(ticker)
		}
		tickers.Wait()
		ticker() // what the last of them found stale
		fired := map[string][]time.Duration{}
		for _, job := range r.jobs("q") {
			fired[job.Schedule] = append(fired[job.Schedule], offset(time.UnixMilli(int64(job.FireAt))))
		}
		for i := range 20 {
			interval := time.Duration(i%5+1) * time.Second
			boundaries := fired["s"+strconv.Itoa(i)]
			require.Equal(t, every(interval, interval, int(time.Minute/interval)), boundaries, "each once, and in order")
		}
	})
}

func TestT4ASecondTickAtTheSameNowDoesNothing(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		require.NotEmpty(t, r.tick(25*time.Second).fires)
		before := r.contents()
		for range 3 {
			r.restart() // the same runner would sleep
			did := r.tick(25 * time.Second)
			require.Positive(t, did.steps)
			require.Empty(t, did.passed)
			require.Equal(t, before, r.contents())
		}
	})
}

func TestT5T7TheCapIsPerSchedule(t *testing.T) {
	for due, skipped := range map[int]int64{63: 0, 64: 0, 65: 1, 66: 2, 300: 236} {
		t.Run(strconv.Itoa(due), func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				r.schedule("a", "@every 2s", tickonce.ScheduleOptions{})
				r.schedule("b", "@every 2s", tickonce.ScheduleOptions{})
				did := r.tick(time.Duration(due) * 2 * time.Second)
				for _, name := range []string{"a", "b"} {
					require.Equal(t, every(2*time.Second, 2*time.Second, min(due, 64)), did.fired(name))
					require.Equal(t, skipped, did.skipped(name))
				}
				require.Len(t, r.jobs("q"), 2*min(due, 64))
			})
		})
	}
}

func TestT6C46C31SkippedBoundariesNeverFireAndTheGridStays(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 7s", tickonce.ScheduleOptions{Anchor: start})
		did := r.tick(1000 * time.Second)
		require.Equal(t, every(7*time.Second, 7*time.Second, 64), did.fired("s"))
		require.Equal(t, []tickonce.Skip{{
			Reason: "cap", First: start.Add(455 * time.Second), Last: start.Add(994 * time.Second), Count: 78,
		}}, did.skips("s"))
		require.Equal(t, start.Add(1001*time.Second), r.lookup("s").Next, "not 1007 s")
		require.Equal(t, seconds(1001), r.tick(1001*time.Second).fired("s"))
		require.Equal(t, seconds(1008), r.tick(1014*time.Second-1).fired("s"))
		require.Len(t, r.jobs("q"), 66)
	})
}

func TestT8AScheduleThatIsNotDueIsNotTouched(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("due", "@every 10s", tickonce.ScheduleOptions{})
		r.schedule("not due", "@every 11s", tickonce.ScheduleOptions{})
		before := r.row("not due")
		require.NotEmpty(t, r.tick(10*time.Second).fired("due"))
		require.Equal(t, before, r.row("not due"))
	})
}

func TestT10OneTickIsInTimeOrder(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("b", "@every 10s", tickonce.ScheduleOptions{})
		r.schedule("c", "@every 15s", tickonce.ScheduleOptions{})
		r.schedule("a", "@every 30s", tickonce.ScheduleOptions{})
		did := r.tick(30 * time.Second)
		type fire struct {
			schedule string
			boundary time.Duration
		}
		want := []fire{
			{"b", 10 * time.Second},
			{"c", 15 * time.Second},
			{"b", 20 * time.Second},
			{"a", 30 * time.Second},
			{"b", 30 * time.Second},
			{"c", 30 * time.Second},
		}
		var reported, queued, told []fire
		for _, f := range did.fires {
			reported = append(reported, fire{f.Schedule, offset(f.Boundary)})
		}
		for _, job := range r.jobs("q") { // in the order of ids
			queued = append(queued, fire{job.Schedule, offset(time.UnixMilli(int64(job.FireAt)))})
		}
		for _, e := range of(tickonce.EventFired, did.events) {
			told = append(told, fire{e.Schedule, offset(e.Boundary)})
		}
		require.Equal(t, want, reported)
		require.Equal(t, want, queued)
		require.Equal(t, want, told)
		var passed []string
		for _, p := range did.passed {
			passed = append(passed, p.Schedule)
		}
		require.Equal(t, []string{"b", "c", "a"}, passed, "in (due, name) order")
	})
}

func TestT12C42TheReportReconcilesWithTheQueue(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		intervals := map[string]time.Duration{"a": time.Second, "b": 7 * time.Second, "c": time.Minute, "bad": time.Second}
		policies := map[string]tickonce.CatchUp{"b": tickonce.CatchUpLatest, "c": tickonce.CatchUpNone}
		for name, interval := range intervals {
			spec, err := tickonce.Every(interval)
			require.NoError(t, err)
			r.schedule(name, spec.String(), tickonce.ScheduleOptions{CatchUp: policies[name]})
		}
		r.tamper("bad", func(row *store.Schedule) { row.Spec = "@daily" })
		passed, jobs := map[string]int64{}, 0
		for _, now := range seconds(1, 2, 10, 100, 101, 5000, 5001, 5060) {
			did := r.tick(now)
			for _, p := range did.passed {
				passed[p.Schedule] += int64(p.Fired)
				require.Len(t, did.fired(p.Schedule), p.Fired)
				for _, skip := range p.Skips {
					require.Equal(t, skip.Count, int64(skip.Last.Sub(skip.First)/intervals[p.Schedule])+1)
					passed[p.Schedule] += skip.Count
				}
				require.Equal(t, p.Schedule == "bad", p.Hold != nil)
				require.Equal(t, r.lookup(p.Schedule).Next, p.Next)
			}
			jobs += len(did.fires)
			for _, fire := range did.fires {
				require.NotZero(t, fire.Job)
				require.Equal(t, "q", fire.Queue)
			}
			require.Len(t, r.jobs("q"), jobs)
			require.Len(t, of(tickonce.EventFired, did.events), len(did.fires))
			var told int64
			for _, e := range of(tickonce.EventSkipped, did.events) {
				told += e.Count
			}
			require.Equal(t, did.skipped("a")+did.skipped("b")+did.skipped("c"), told)
		}
		require.Equal(t, map[string]int64{"a": 5060, "b": 5060 / 7, "c": 5060 / 60, "bad": 0}, passed)
	})
}

func TestT12EventsOfATick(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{CatchUp: tickonce.CatchUpLatest})
		r.tick(0)
		did := r.tick(31 * time.Second)
		at := start.Add(31 * time.Second)
		require.Equal(t, []tickonce.Event{
			{Kind: tickonce.EventFired, At: at, Schedule: "s", Queue: "q", Job: 1, Boundary: start.Add(30 * time.Second)},
			{
				Kind: tickonce.EventSkipped, At: at, Schedule: "s", Reason: "policy",
				First: start.Add(10 * time.Second), Last: start.Add(20 * time.Second), Count: 2,
			},
		}, did.events)
	})
}

func TestT13C41TheNextWakeIsTheSoonestDue(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1, LeaseTTL: time.Hour}, func(t *testing.T, r *rig) {
		require.Equal(t, 20*time.Minute, r.tick(0).next, "no schedule: the renewal")
		r.schedule("a", "@every 90s", tickonce.ScheduleOptions{})
		require.Equal(t, 90*time.Second, r.tick(0).next)
		r.schedule("b", "@every 40s", tickonce.ScheduleOptions{})
		require.Equal(t, 40*time.Second, r.tick(0).next)
		require.Equal(t, 80*time.Second, r.tick(40*time.Second).next)
		require.Equal(t, 90*time.Second, r.tick(85*time.Second).next)
		_, err := r.Unschedule(r.ctx, "b")
		require.NoError(t, err)
		require.Equal(t, 180*time.Second, r.tick(90*time.Second).next)
		r.tamper("a", func(row *store.Schedule) { row.Spec = "" })
		require.Equal(t, 240*time.Second, r.tick(180*time.Second).next, "the end of a hold")
	})
}

func TestT14C09C13TheSameGapUnderEachPolicy(t *testing.T) {
	for _, c := range []struct {
		name    string
		policy  tickonce.CatchUp
		fired   []time.Duration
		skipped []tickonce.Skip
	}{
		{"all", tickonce.CatchUpAll, every(time.Second, time.Second, 64), []tickonce.Skip{
			{Reason: "cap", First: start.Add(65 * time.Second), Last: start.Add(600 * time.Second), Count: 536},
		}},
		{"latest", tickonce.CatchUpLatest, seconds(600), []tickonce.Skip{
			{Reason: "policy", First: start.Add(time.Second), Last: start.Add(599 * time.Second), Count: 599},
		}},
		{"grace", tickonce.CatchUpGrace, every(time.Second, 480*time.Second, 64), []tickonce.Skip{
			{Reason: "policy", First: start.Add(time.Second), Last: start.Add(479 * time.Second), Count: 479},
			{Reason: "cap", First: start.Add(544 * time.Second), Last: start.Add(600 * time.Second), Count: 57},
		}},
		{"none", tickonce.CatchUpNone, seconds(600), []tickonce.Skip{
			{Reason: "policy", First: start.Add(time.Second), Last: start.Add(589 * time.Second), Count: 589},
			{Reason: "policy", First: start.Add(590 * time.Second), Last: start.Add(599 * time.Second), Count: 10},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				r.schedule("s", "@every 1s", tickonce.ScheduleOptions{CatchUp: c.policy})
				did := r.tick(600 * time.Second)
				require.Equal(t, c.fired, did.fired("s"))
				require.Equal(t, c.skipped, did.skips("s"))
			})
		})
	}
}

// A daily job at 20:30, the machine suspended from 20:00 to 08:00.
func TestC13ADailyJobMissedWhileSuspended(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy tickonce.CatchUp
		fires  int
	}{{"all", tickonce.CatchUpAll, 1}, {"latest", tickonce.CatchUpLatest, 1}, {"grace", tickonce.CatchUpGrace, 0}, {"none", tickonce.CatchUpNone, 0}} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				r.schedule("s", "@every 1d", tickonce.ScheduleOptions{Anchor: start.Add(20*time.Hour + 30*time.Minute), CatchUp: c.policy})
				r.tick(20 * time.Hour)
				did := r.tick(32 * time.Hour)
				require.Len(t, did.fired("s"), c.fires)
				require.Equal(t, int64(1-c.fires), did.skipped("s"))
			})
		})
	}
}

func TestC01ALaptopThatSleptAnHour(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 5s", tickonce.ScheduleOptions{})
		r.tick(0)
		did := r.tick(time.Hour)
		require.Len(t, did.fired("s"), 64)
		require.Equal(t, []tickonce.Skip{{
			Reason: "cap", First: start.Add(325 * time.Second), Last: start.Add(time.Hour), Count: 656,
		}}, did.skips("s"))
		require.Equal(t, int64(656), of(tickonce.EventSkipped, did.events)[0].Count)
	})
}

func TestC02C17ATimerThatPopsEarlyOrLate(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		const boundary = time.Minute
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{CatchUp: tickonce.CatchUpNone})
		var fired []time.Duration
		for _, now := range []time.Duration{
			boundary - 3*time.Second, boundary - time.Millisecond, boundary, boundary, boundary + time.Millisecond,
			2*boundary + 2*time.Second, 2*boundary + 3*time.Second,
		} {
			fired = append(fired, r.tick(now).fired("s")...)
		}
		require.Equal(t, every(boundary, boundary, 2), fired)
	})
}

// At 10^5 random times, equal and reversed ones too, what fires is the grid
// within what the clock has shown.
func TestC18C136RandomTickTimes(t *testing.T) {
	onEachStore(t, tickonce.Config{LeaseTTL: time.Hour}, func(t *testing.T, r *rig) {
		ticks := 100_000
		if testing.Short() || t.Name() != "TestC18C136RandomTickTimes/memory" {
			ticks = 2000 // the naive store scans all jobs at each fire
		}
		draw := rand.New(rand.NewPCG(1, 2))
		r.schedule("s", "@every 7s", tickonce.ScheduleOptions{})
		latest, next := time.Duration(0), 7*time.Second
		for range ticks {
			now := latest - 3*time.Second + time.Duration(draw.IntN(10_000))*time.Millisecond
			if draw.IntN(10) == 0 {
				now = r.now()
			}
			did := r.tick(max(now, 0))
			require.NoError(t, did.err)
			require.Zero(t, did.skipped("s"))
			latest = max(latest, now)
			for _, boundary := range did.fired("s") {
				require.Equal(t, next, boundary)
				next += 7 * time.Second
			}
			require.Greater(t, next, latest, "all of the grid up to the latest time has fired")
			require.LessOrEqual(t, next-7*time.Second, latest, "and nothing beyond")
			if job, err := r.Claim(r.ctx, "q", "w"); job != nil {
				require.NoError(t, err)
				require.NoError(t, job.Ack(r.ctx))
			}
		}
	})
}

func TestC21TheCursorMovesOnlyByAFireOrARecordedSkip(t *testing.T) {
	eachBoot(t, func(t *testing.T, r *rig, boot func()) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		var passed int64
		for _, now := range seconds(5, 10, 300, 301, 2000, 2001) {
			boot()
			r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
			did := r.tick(now)
			passed += int64(len(did.fired("s"))) + did.skipped("s")
			require.Equal(t, start.Add(time.Duration(passed+1)*10*time.Second), r.lookup("s").Next)
		}
	})
}

func TestC31C45AnyNumberOfMissedStarts(t *testing.T) {
	for _, missed := range []time.Duration{101, 1000, 1_000_000_000} {
		onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
			r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
			did := r.tick(missed * time.Second)
			require.Len(t, did.fired("s"), 64)
			require.Equal(t, int64(missed)-64, did.skipped("s"))
			require.Len(t, r.jobs("q"), 64)
			require.Len(t, r.tick((missed+1)*time.Second).fired("s"), 1, "it goes on")
		})
	}
}

// An anchor of 1970 and an interval of a second: the steps do not depend on
// how many boundaries lie between.
func TestC32T9ASecondsGridFrom1970(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		s := r.schedule("s", "@every 1s", tickonce.ScheduleOptions{Anchor: time.Unix(0, 0)})
		require.Equal(t, start.Add(time.Second), s.Next)
		r.tamper("s", func(row *store.Schedule) { row.Cursor, row.DueAt = 0, 0 })
		did := r.tick(0)
		require.Equal(t, start.Unix()+1-64, did.skipped("s"))
		require.Len(t, did.fired("s"), 64)
		require.Less(t, did.steps, 10)
	})
}

func TestC35AWindowAndACount(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{CatchUp: tickonce.CatchUp{Window: time.Hour, Count: 3}})
		require.Equal(t, every(time.Minute, 2*day-time.Hour, 3), r.tick(2*day).fired("s"))
	})
}

func TestC37EachSkipHasItsOwnReason(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{CatchUp: tickonce.CatchUp{Window: 100 * time.Second}})
		_, err := r.Pause(r.ctx, "s")
		require.NoError(t, err)
		r.at(50 * time.Second)
		_, err = r.Resume(r.ctx, "s", tickonce.ResumeOptions{})
		require.NoError(t, err)
		counts := map[string]int64{}
		for _, e := range append(r.take(), r.tick(1000*time.Second).events...) {
			if e.Kind == tickonce.EventSkipped {
				counts[e.Reason] += e.Count
			}
		}
		require.Equal(t, map[string]int64{"pause": 50, "policy": 849, "cap": 37}, counts)
		require.Len(t, r.jobs("q"), 1000-50-849-37)
	})
}

func TestC60TheLeaderFiresWhatOthersRegistered(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.tick(0)
		other := r.another()
		other.schedule("of another process", "@every 10s", tickonce.ScheduleOptions{})
		require.Equal(t, seconds(10), r.tick(10*time.Second).fired("of another process"))
	})
}

// The store is down for a minute: the boundaries of that time stay pending and
// fire late, with their boundary and their actual time.
func TestC84AnOutageKeepsItsBoundaries(t *testing.T) {
	onEachStore(t, tickonce.Config{StandBy: true}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.tick(0)
		row := r.row("s")
		w.lose = offline
		for now := 10 * time.Second; now <= time.Minute; now += time.Second {
			require.Empty(t, r.tick(now).fires)
		}
		require.Equal(t, row, r.row("s"))
		w.lose = nil
		fired := r.tick(66 * time.Second).fired("s")
		require.Equal(t, every(10*time.Second, 10*time.Second, 6), fired)
		job := r.jobs("q")[0]
		require.Equal(t, 56*time.Second, time.Duration(job.EnqueuedAt-job.FireAt)*time.Millisecond, "its lateness")
	})
}

// While a fire is under way, as at any time, a lookup finds the schedule, and
// adding it again makes no second one.
func TestC126ReadsAreConsistentDuringAFire(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		calls := 0
		w.before = func(op faultstore.Op) {
			if op.Method == faultstore.Schedules || op.Method == faultstore.Commit {
				return // of the look itself
			}
			calls++
			_, ok, err := r.Lookup(context.Background(), "s")
			require.NoError(t, err)
			require.True(t, ok)
			r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		}
		require.Equal(t, seconds(10), r.tick(10*time.Second).fired("s"))
		require.GreaterOrEqual(t, calls, 3)
		require.Len(t, r.contents().Schedules, 1)
	})
}

func TestC128TenStopsAndStartsFireOnce(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		var fired []time.Duration
		for i := range 11 {
			fired = append(fired, r.tick(time.Duration(i)*10*time.Second).fired("s")...)
			for range 10 {
				r.restart()
				fired = append(fired, r.tick(r.now()).fired("s")...)
			}
		}
		require.Equal(t, every(10*time.Second, 10*time.Second, 10), fired)
	})
}
