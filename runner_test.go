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

const (
	leaseTTL      = 60 * time.Second
	schedulerLock = "__alkstore_scheduler"
)

// The table at the top of runner.go, row by row: the calls of the steps until
// the runner rests, waits or ends.
func TestRunnerPhases(t *testing.T) {
	const lookAgain = "renew due"
	for _, c := range []struct {
		name   string
		setup  func(r *rig, w *wire) // of a runner that leads and rests, with a schedule due at 10 s
		at     time.Duration
		calls  string
		next   time.Duration
		ending error
	}{
		{"too soon: nothing", func(*rig, *wire) {}, 9999 * time.Millisecond, "", 10 * time.Second, nil},
		{"due: renew, look, write, rest until the next", func(*rig, *wire) {}, 10 * time.Second, "renew due advance", 20 * time.Second, nil},
		{"nothing due: rest until the renewal", func(r *rig, w *wire) {
			_, err := r.Unschedule(r.ctx, "s")
			require.NoError(r.t, err)
			w.take()
		}, 20 * time.Second, lookAgain, 40 * time.Second, nil},
		{"woken: renew and look at once", func(r *rig, w *wire) {
			r.at(time.Second)
			r.schedule("sooner", "@every 2s", tickonce.ScheduleOptions{})
			w.take()
		}, time.Second, lookAgain, 3 * time.Second, nil},
		{"lapsed at the renewal: contend, look, write", func(*rig, *wire) {}, leaseTTL, "renew acquire due advance", leaseTTL + 10*time.Second, nil},
		{"taken at the renewal: the end", func(r *rig, _ *wire) {
			r.at(leaseTTL)
			r.steal("b")
		}, leaseTTL, "renew acquire", 0, tickonce.ErrLeadershipLost},
		{"fenced at the write: contend, look, write", func(r *rig, w *wire) {
			w.before = once(faultstore.Advance, func() { r.at(2 * leaseTTL) })
		}, 10 * time.Second, "renew due advance acquire due advance", 2*leaseTTL + 10*time.Second, nil},
		{"a stale row: renew and read again", func(r *rig, w *wire) {
			w.before = once(faultstore.Advance, func() {
				r.tamper("s", func(row *store.Schedule) { row.Payload = []byte("new") })
			})
		}, 10 * time.Second, "renew due advance renew due advance", 20 * time.Second, nil},
		{"more due than the budget: renew and read again", func(r *rig, w *wire) {
			for _, name := range []string{"b", "c"} {
				r.schedule(name, "@every 10s", tickonce.ScheduleOptions{})
			}
			w.take()
		}, 10 * time.Second, "renew due advance renew due advance", 20 * time.Second, nil},
		{"the clock went back: inspect behind the renewal, a page after another", func(r *rig, w *wire) {
			r.schedule("t", "@every 10s", tickonce.ScheduleOptions{})
			r.tick(10 * time.Second)
			w.take()
		}, 8999 * time.Millisecond, "renew acquire schedules renew schedules due", 20 * time.Second, nil},
		{"a store error: begun again from the renewal after 100 ms", func(_ *rig, w *wire) {
			w.lose = first(1, faultstore.Due, faultstore.LoseRequest)
		}, 10 * time.Second, lookAgain, 10*time.Second + 100*time.Millisecond, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1, Batch: 2}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
				r.lead()
				w.take()
				c.setup(r, w)
				did := r.tick(c.at)
				require.Equal(t, c.calls, w.take())
				require.ErrorIs(t, did.err, c.ending)
				if c.ending == nil {
					require.Equal(t, c.next, did.next)
				}
			})
		})
	}
}

// Whatever is done to it, a step makes at most one call; and it makes none
// before the instant that the step before asked for.
func TestL11StepMakesAtMostOneCall(t *testing.T) {
	onEachStore(t, tickonce.Config{StandBy: true, Batch: 3, ClockRepair: tickonce.RepairRearm}, func(t *testing.T, r *rig) {
		w := r.wire()
		draw := newDraw(7)
		w.lose = func(op faultstore.Op) faultstore.Verdict {
			if op.Method == faultstore.Commit || draw(8) > 0 {
				return faultstore.Pass
			}
			return faultstore.Verdict(1 + draw(2))
		}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			r.schedule(name, "@every 5s", tickonce.ScheduleOptions{})
		}
		seen := map[faultstore.Method]int{}
		var next time.Duration
		for range 4_000 {
			switch draw(100) {
			case 0:
				r.at(r.now() + 2*leaseTTL)
			case 1:
				r.at(r.now() - time.Duration(draw(100_000))*time.Millisecond)
			case 2:
				_, _ = r.store.Acquire(t.Context(), schedulerLock, "other", 1000)
			case 3:
				r.tamper("a", func(row *store.Schedule) { row.Spec = "@every 0s" })
			case 4:
				r.tamper("a", func(row *store.Schedule) { row.Spec = "@every 5s" })
			default:
				r.at(max(r.now(), next))
			}
			w.take()
			next, _ = r.step()
			require.LessOrEqual(t, len(w.calls), 1)
			for _, method := range w.calls {
				seen[method]++
			}
		}
		for _, method := range []faultstore.Method{
			faultstore.Acquire, faultstore.Renew, faultstore.Due, faultstore.Schedules, faultstore.Advance, faultstore.Commit,
		} {
			require.Positive(t, seen[method], method.String())
		}
	})
}

func TestL1NothingFiresWithoutARunner(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		before := r.row("s")
		r.at(time.Hour)
		job, err := r.Claim(r.ctx, "q", "w")
		require.NoError(t, err)
		require.Nil(t, job)
		require.Equal(t, before, r.row("s"))
		require.NotEmpty(t, r.tick(time.Hour).fires)
	})
}

// Stopped before each of its steps, by its context or by Stop, a run ends at
// once, cleanly, and another one leads at that instant.
func TestL5CleanStopBeforeEachStep(t *testing.T) {
	const steps = 12 // acquire … write, rest, and again
	for _, how := range []struct {
		name string
		stop func(r *rig) error
	}{
		{"by its context", func(r *rig) error {
			ctx, cancel := context.WithCancel(r.ctx)
			cancel()
			next, _, err := r.runner.Step(ctx)
			require.Zero(r.t, next)
			return err
		}},
		{"by Stop", func(r *rig) error { return r.runner.Stop(r.ctx) }},
	} {
		t.Run(how.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1, Batch: 1}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.schedule("a", "@every 5s", tickonce.ScheduleOptions{})
				r.schedule("b", "@every 5s", tickonce.ScheduleOptions{})
				wrote := 0
				for before := range steps {
					r.runner = r.NewRunner()
					w.take()
					for range before {
						next, _ := r.step()
						r.at(max(r.now(), next))
					}
					wrote += w.count(faultstore.Advance)
					led := len(w.calls) > 0
					kept := r.contents()
					w.take()
					r.take()

					require.NoError(t, how.stop(r))
					require.Equal(t, led, w.take() == "release", "step %d", before)
					require.Equal(t, kept, r.contents())
					require.Zero(t, r.leader(), "step %d", before)
					stopped := of(tickonce.EventStopped, r.take())
					require.Len(t, stopped, 1)
					require.NoError(t, stopped[0].Err)
				}
				require.Positive(t, wrote)
			})
		})
	}
}

func TestL5EndedBeforeTheStart(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		w.take()
		ctx, cancel := context.WithCancel(r.ctx)
		cancel()
		r.ctx = ctx
		did := r.tick(time.Hour)
		require.NoError(t, did.err)
		require.Zero(t, did.next)
		require.Empty(t, w.take(), "calls")
	})
}

func TestL5ReleaseThatFailsIsStillACleanStop(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		w := r.wire()
		lease := r.lead()
		w.take()
		w.lose = offline
		require.NoError(t, r.runner.Stop(r.ctx))
		require.Equal(t, "release", w.take())
		require.Equal(t, lease, r.leader(), "the TTL covers it")
		r.at(leaseTTL)
		require.Zero(t, r.leader())
	})
}

// A context that ends during a call is a stop, not a store error to retry.
func TestL5ContextThatEndsDuringACall(t *testing.T) {
	for _, method := range []faultstore.Method{faultstore.Renew, faultstore.Due, faultstore.Advance} {
		t.Run(method.String(), func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
				r.lead()
				ctx, cancel := context.WithCancel(r.ctx)
				w.before = once(method, cancel)
				r.ctx = ctx
				before := r.contents()
				did := r.tick(time.Second)
				require.NoError(t, did.err)
				require.Zero(t, did.next)
				require.Equal(t, before, r.contents())
				require.Empty(t, of(tickonce.EventRetrying, did.events))
				require.Zero(t, r.leader())
			})
		})
	}
}

func TestL5AfterTheEndNothingHappens(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		w := r.wire()
		for _, end := range []struct {
			name string
			end  func()
			err  error
		}{
			{"stopped", func() { require.NoError(t, r.runner.Stop(r.ctx)) }, nil},
			{"lost", func() { r.at(r.now() + leaseTTL); r.steal("b"); r.tick(r.now()) }, tickonce.ErrLeadershipLost},
		} {
			r.runner = r.NewRunner()
			r.lead()
			end.end()
			w.take()
			r.take()
			did := r.tick(r.now() + time.Hour)
			require.ErrorIs(t, did.err, end.err, end.name)
			require.ErrorIs(t, r.runner.Stop(r.ctx), end.err, end.name)
			require.Empty(t, w.take(), end.name)
			require.Empty(t, did.events, end.name)
		}
	})
}

func TestL7QuietDayRenewsAndWritesNothingElse(t *testing.T) {
	writes := []faultstore.Method{faultstore.Renew, faultstore.Acquire, faultstore.Advance, faultstore.Commit, faultstore.Release}
	for _, c := range []struct {
		name  string
		poll  time.Duration
		looks int
	}{
		{"a store of its own", -1, 4_320},
		{"a shared store", time.Second, 86_400},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: c.poll}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.schedule("weekly", "@every 7d", tickonce.ScheduleOptions{})
				r.lead()
				w.take()
				for next := r.tick(0).next; next <= 24*time.Hour; {
					next = r.tick(next).next
				}
				require.Equal(t, 4_320, w.count(faultstore.Renew))
				require.Equal(t, 4_320, w.count(writes...), "writes")
				require.Equal(t, c.looks, w.count(faultstore.Due))
				require.Equal(t, 4_320+c.looks, len(w.calls))
			})
		})
	}
}

func TestL7WakeIsTheLeastOfDueRenewalAndPoll(t *testing.T) {
	for _, c := range []struct {
		name   string
		config tickonce.Config
		spec   string
		next   time.Duration
	}{
		{"due", tickonce.Config{Poll: -1}, "@every 19s", 19 * time.Second},
		{"due with the renewal", tickonce.Config{Poll: -1}, "@every 20s", 20 * time.Second},
		{"renewal", tickonce.Config{Poll: -1}, "@every 21s", 20 * time.Second},
		{"renewal of another TTL", tickonce.Config{Poll: -1, LeaseTTL: 30 * time.Second}, "@every 21s", 10 * time.Second},
		{"renewal of a TTL that three does not divide", tickonce.Config{Poll: -1, LeaseTTL: time.Second}, "@every 21s", 334 * time.Millisecond},
		{"poll", tickonce.Config{}, "@every 2s", time.Second},
		{"another poll", tickonce.Config{Poll: 10 * time.Millisecond}, "@every 2s", 10 * time.Millisecond},
		{"due before the poll", tickonce.Config{Poll: time.Minute}, "@every 19s", 19 * time.Second},
		{"renewal before the poll", tickonce.Config{Poll: time.Minute}, "@every 21s", 20 * time.Second},
		{"nothing scheduled", tickonce.Config{Poll: -1}, "", 20 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, c.config, func(t *testing.T, r *rig) {
				if c.spec != "" {
					r.schedule("s", c.spec, tickonce.ScheduleOptions{})
				}
				require.Equal(t, c.next, r.tick(0).next)
			})
		})
	}
}

// However the wakes fall, a lease that is slept on has half its TTL left.
func TestL7LeaseIsNeverCloserToItsEndThanHalfItsTTL(t *testing.T) {
	for _, poll := range []time.Duration{-1, time.Second, 13 * time.Second} {
		onEachStore(t, tickonce.Config{Poll: poll}, func(t *testing.T, r *rig) {
			r.schedule("a", "@every 7s", tickonce.ScheduleOptions{})
			r.schedule("b", "@every 29s", tickonce.ScheduleOptions{})
			r.schedule("c", "@every 61s", tickonce.ScheduleOptions{})
			for next := r.tick(0).next; next < time.Hour; {
				left := r.leader().ExpiresAt - instant(next)
				require.GreaterOrEqual(t, int64(left), (leaseTTL / 2).Milliseconds(), "at %s", next)
				next = r.tick(next).next
			}
		})
	}
}

// A poll only reads; what it finds is fired behind a renewal.
func TestL6RenewalPrecedesEveryTick(t *testing.T) {
	for _, c := range []struct {
		poll  time.Duration
		calls string // of the first poll, which finds a schedule of another process due
	}{
		{-1, "renew due advance"},
		{time.Second, "due"},
		{15 * time.Second, "due renew due advance"},
	} {
		onEachStore(t, tickonce.Config{Poll: c.poll}, func(t *testing.T, r *rig) {
			w := r.wire()
			r.lead()
			next := r.tick(0).next
			r.at(500 * time.Millisecond)
			r.another().schedule("other's", "@every 3s", tickonce.ScheduleOptions{})
			w.take()
			did := r.tick(next)
			require.Equal(t, c.calls, w.take())
			for did.next < time.Hour {
				did = r.tick(did.next)
			}
			renewed, ticks := false, 0
			for _, call := range w.calls {
				switch call {
				case faultstore.Renew, faultstore.Acquire:
					renewed = true
				case faultstore.Advance:
					require.True(t, renewed, "a tick without a renewal before it")
					renewed = false
					ticks++
				}
			}
			require.Greater(t, ticks, 1100)
		})
	}
}

// A change whose reply is lost may have been done, and nobody makes it again
// who finds it done.
func TestL8AChangeWhoseReplyIsLostWakesTheRunner(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		w := r.wire()
		require.Equal(t, 20*time.Second, r.tick(0).next)
		w.lose = first(1, faultstore.Commit, faultstore.LoseReply)
		_, err := r.Schedule(r.ctx, "s", "@every 5s", "q", nil, tickonce.ScheduleOptions{})
		require.ErrorIs(t, err, faultstore.ErrLost)
		require.Equal(t, 5*time.Second, r.tick(0).next)
	})
}

func TestL8SoonerScheduleWakesTheRunner(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.schedule("s", "@every 1h", tickonce.ScheduleOptions{})
		require.Equal(t, 20*time.Second, r.tick(0).next)
		w.take()

		for _, wake := range []struct {
			name string
			wake func()
			next time.Duration
		}{
			{"a new schedule", func() { r.schedule("new", "@every 5s", tickonce.ScheduleOptions{}) }, 5 * time.Second},
			{"a changed one", func() { r.schedule("new", "@every 4s", tickonce.ScheduleOptions{}) }, 4 * time.Second},
			{"in a transaction", func() {
				require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
					_, err := tx.Schedule("new", "@every 3s", "q", nil, tickonce.ScheduleOptions{})
					return err
				}))
			}, 3 * time.Second},
			{"a pause that ends", func() {
				for _, change := range []func() (bool, error){
					func() (bool, error) { return r.Pause(r.ctx, "new") },
					func() (bool, error) { return r.Resume(r.ctx, "new", tickonce.ResumeOptions{}) },
				} {
					changed, err := change()
					require.NoError(t, err)
					require.True(t, changed)
				}
			}, 3 * time.Second},
		} {
			wake.wake()
			w.take()
			require.Equal(t, wake.next, r.tick(0).next, wake.name)
			require.Equal(t, "renew due", w.take(), wake.name)
		}
	})
}

// looking is a store that runs a function once a look has been answered.
type looking struct {
	store.Store
	after func()
}

func (l *looking) Due(ctx context.Context, dst []store.Schedule) (store.Due, error) {
	due, err := l.Store.Due(ctx, dst)
	if after := l.after; after != nil {
		l.after = nil
		after()
	}
	return due, err
}

// A schedule that is added between the look and the rest wakes it, too.
func TestL8ScheduleAddedBehindTheLook(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		l := &looking{Store: r.store}
		r.on(l)
		l.after = func() { r.schedule("s", "@every 2s", tickonce.ScheduleOptions{}) }
		r.step()
		r.step()
		next, _ := r.step()
		require.Equal(t, 20*time.Second, next, "what the look saw")
		require.Equal(t, 2*time.Second, r.tick(0).next)
	})
}

func TestL8AnotherProcessIsNoticedWithinThePoll(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		next := r.tick(0).next
		r.at(time.Millisecond)
		r.another().schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		require.Equal(t, time.Second, next, "the poll")
		next = r.tick(next).next
		require.Equal(t, time.Second+time.Millisecond, next)
		require.Len(t, r.tick(next).fires, 1)
	})
}

func TestL9WithoutSchedulesTheRunnerKeepsLeading(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		term := r.lead().Term
		for next := r.tick(0).next; next < 24*time.Hour; {
			did := r.tick(next)
			require.NoError(t, did.err)
			require.Empty(t, did.events)
			next = did.next
		}
		require.Equal(t, term, r.leader().Term)
	})
}

// A host's clock only arms timers: however it runs, what the store's clock
// says decides what is due.
func TestK5HostClockArmsTimersOnly(t *testing.T) {
	host := &clock{}
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		r.config.Clock = host
		host.ms.Store(int64(instant(-1000 * time.Hour)))
		r.crash()
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		step := func() time.Duration {
			next, _ := r.step()
			return next
		}
		step()
		step()
		require.Equal(t, -1000*time.Hour+10*time.Second, step(), "acquire, inspect, look; in the host's time")
		r.at(10 * time.Second)
		require.Equal(t, -1000*time.Hour+10*time.Second, step(), "asleep")
		host.ms.Add(-1)
		require.Equal(t, host.ms.Load(), int64(instant(step())), "a clock that goes back ends the sleep")
		step()
		_, report, err := r.runner.Step(r.ctx)
		require.NoError(t, err)
		for fire := range report.Fires() {
			require.Equal(t, 10*time.Second, offset(fire.Boundary))
		}
		require.Len(t, r.jobs("q"), 1)
	})
}

// A wake in the past is no wake: after each step the runner either has more
// to do, or sleeps until a boundary of the grid, a renewal or a poll to come.
func TestC136WakeLiesOnTheGridToCome(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 7s", tickonce.ScheduleOptions{})
		draw := newDraw(3)
		r.tick(0)
		for range 500 {
			at := r.now() + time.Duration(draw(90_000))*time.Millisecond
			did := r.tick(at)
			require.NoError(t, did.err)
			require.Greater(t, did.next, at)
			s := r.lookup("s")
			require.Zero(t, offset(s.Next)%(7*time.Second), "on the grid")
			require.Greater(t, offset(s.Next), at)
			require.LessOrEqual(t, offset(s.Next), at+7*time.Second)
			require.Equal(t, s.Next, s.Due)
			require.LessOrEqual(t, did.next, offset(s.Due))
		}
	})
}

// A step that answers a later time has nothing left to do: called again and
// again it makes no call, so that a test never has to wait for a loop.
func TestC140NothingToWaitFor(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
		require.Empty(t, r.tick(0).fires)
		did := r.tick(time.Minute)
		require.Len(t, did.fires, 1)
		w.take()
		for range 100 {
			next, report := r.step()
			require.Equal(t, did.next, next)
			require.Empty(t, report.Phase)
			for range report.Passed() {
				require.Fail(t, "a report of an earlier step")
			}
		}
		require.Empty(t, w.take())
	})
}
