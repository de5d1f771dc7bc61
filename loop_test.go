package tickonce_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// machine is a host's clock in a synctest bubble. While the machine sleeps its
// timers stand still; when it resumes its clock has gone on.
type machine struct{ slept atomic.Int64 }

func (m *machine) Now() time.Time                         { return time.Now().Add(time.Duration(m.slept.Load())) }
func (m *machine) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (m *machine) sleep(d time.Duration)                  { m.slept.Add(int64(d)) }

// looped is an engine on a store in a bubble, whose clock is the machine's.
type looped struct {
	*tickonce.Engine
	t       *testing.T
	machine *machine
	begin   time.Time
	store   store.Store

	mu    sync.Mutex
	calls []tickonce.Phase // of the runners, as the store saw them
	times []time.Duration
	lose  func(faultstore.Op) faultstore.Verdict
}

// inBubble runs a test of the loop on each of the stores.
func inBubble(t *testing.T, c tickonce.Config, test func(t *testing.T, l *looped)) {
	t.Helper()
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) { inBubbleOn(t, c, s.open, test) })
	}
}

func inBubbleOn(t *testing.T, c tickonce.Config, open openStore, test func(t *testing.T, l *looped)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &looped{t: t, machine: &machine{}, begin: time.Now()}
		c.Clock, c.Seed = l.machine, 1
		l.store = open(t, c)
		s := faultstore.New(l.store, func(op faultstore.Op) faultstore.Verdict {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.lose == nil {
				return faultstore.Pass
			}
			return l.lose(op)
		})
		s.Before = l.record
		var err error
		l.Engine, err = tickonce.New(s, c)
		require.NoError(t, err)
		test(t, l)
	})
}

var phaseOf = map[faultstore.Method]tickonce.Phase{
	faultstore.Acquire: tickonce.PhaseAcquire, faultstore.Renew: tickonce.PhaseRenew, faultstore.Due: tickonce.PhaseSelect,
	faultstore.Advance: tickonce.PhaseAdvance, faultstore.Release: tickonce.PhaseRelease,
}

func (l *looped) record(op faultstore.Op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if phase := phaseOf[op.Method]; phase != "" {
		l.calls, l.times = append(l.calls, phase), append(l.times, l.now())
	}
}

// now is the time since the test began, of a machine that never slept.
func (l *looped) now() time.Duration { return time.Since(l.begin) }

// take answers the runners' calls since the last take.
func (l *looped) take() ([]tickonce.Phase, []time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls, times := l.calls, l.times
	l.calls, l.times = nil, nil
	return calls, times
}

// failing sets what becomes of the calls from now on.
func (l *looped) failing(lose func(faultstore.Op) faultstore.Verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose = lose
}

// run starts the loop; stop ends it and answers its error.
func (l *looped) run() (stop func() error) {
	ctx, cancel := context.WithCancel(l.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.RunSchedules(ctx) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-ended
	}
}

func (l *looped) schedule(name, spec string) {
	l.t.Helper()
	_, err := l.Schedule(l.t.Context(), name, spec, "q", nil, tickonce.ScheduleOptions{})
	require.NoError(l.t, err)
}

func (l *looped) jobs() []store.Job {
	l.t.Helper()
	jobs := make([]store.Job, 5000)
	n, _, err := l.store.Jobs(l.t.Context(), store.Filter{Queue: "q"}, jobs)
	require.NoError(l.t, err)
	return jobs[:n]
}

func TestL8LoopWakesAtOnce(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
		stop := l.run()
		time.Sleep(300 * time.Millisecond) // within a slice, far from the renewal
		l.take()
		l.schedule("s", "@every 1s")
		synctest.Wait()
		calls, times := l.take()
		require.Equal(t, []tickonce.Phase{tickonce.PhaseRenew, tickonce.PhaseSelect}, calls)
		require.Equal(t, 300*time.Millisecond, times[0])
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, l.jobs(), 1)
		require.Equal(t, store.Instant(l.begin.Add(1300*time.Millisecond).UnixMilli()), l.jobs()[0].EnqueuedAt)
		require.NoError(t, stop())
	})
}

// A host that knows of another engine's writes wakes the loops, which never poll.
func TestL8AHostWakesTheLoops(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
		var mu sync.Mutex
		var worked []string
		for _, queue := range []string{"a", "b"} {
			ctx, stop := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer stop()
			go l.RunWorker(ctx, queue, func(_ context.Context, job *tickonce.Job) error {
				mu.Lock()
				defer mu.Unlock()
				worked = append(worked, job.Queue)
				return nil
			}, tickonce.WorkerConfig{})
		}
		stop := l.run()
		another, err := tickonce.New(l.store, l.Engine.Config())
		require.NoError(t, err)
		_, err = another.Schedule(t.Context(), "s", "@every 1s", "b", nil, tickonce.ScheduleOptions{})
		require.NoError(t, err)
		enqueue := func(queue string) {
			_, err := another.Enqueue(t.Context(), queue, nil, tickonce.EnqueueOptions{})
			require.NoError(t, err)
		}
		enqueue("a")
		enqueue("b")
		time.Sleep(5 * time.Second)
		require.Empty(t, worked, "nobody was woken")
		l.WakeWorkers("a", "none")
		synctest.Wait()
		require.Equal(t, []string{"a"}, worked)
		enqueue("a")
		l.WakeWorkers()
		synctest.Wait()
		require.ElementsMatch(t, []string{"a", "a", "b"}, worked)
		l.WakeRunners()
		synctest.Wait()
		require.Len(t, worked, 3+5, "the boundaries of 5 s")
		require.NoError(t, stop())
	})
}

func TestL8LoopIsWokenByAScheduleAddedBehindTheLook(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
		looks := &looking{Store: l.store}
		var err error
		l.Engine, err = tickonce.New(looks, l.Engine.Config())
		require.NoError(t, err)
		looks.after = func() {
			l.schedule("s", "@every 1s")
			looks.after = func() { require.Zero(t, l.now(), "looked again at once") }
		}
		stop := l.run()
		require.Nil(t, looks.after)
		require.NoError(t, stop())
	})
}

// Between its wakes the loop makes no call, whatever its slices do.
func TestL7LoopMakesNoCallsBetweenItsWakes(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
		stop := l.run()
		time.Sleep(24*time.Hour - time.Millisecond)
		synctest.Wait()
		calls, _ := l.take()
		require.Len(t, calls, 2+2*4_319, "acquire and look; then 4,319 renewals before the last millisecond")
		require.NoError(t, stop())
	})
}

// A machine that sleeps stops its timers: the first step after it resumes
// comes within a slice all the same.
func TestC11SleepOfTheMachineIsNoticedWithinASlice(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
		l.schedule("s", "@every 1h")
		stop := l.run()
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		require.Empty(t, l.jobs())
		l.take()
		l.machine.sleep(8 * time.Hour)
		time.Sleep(time.Second)
		synctest.Wait()
		calls, times := l.take()
		require.Equal(t, []tickonce.Phase{
			tickonce.PhaseRenew, tickonce.PhaseAcquire, tickonce.PhaseSelect, tickonce.PhaseAdvance,
		}, calls)
		require.LessOrEqual(t, times[0], 3500*time.Millisecond)
		require.Len(t, l.jobs(), 8)
		require.NoError(t, stop())
	})
}

func TestL5C135LoopStopsAtOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		until func(l *looped)
	}{
		{"at rest", func(*looped) { time.Sleep(300 * time.Millisecond) }},
		{"at a wake", func(*looped) { time.Sleep(5 * time.Second) }},
		{"in the backoff", func(l *looped) {
			l.failing(first(2, faultstore.Renew, faultstore.LoseRequest))
			time.Sleep(5*time.Second + 150*time.Millisecond)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
				l.schedule("s", "@every 5s")
				stop := l.run()
				c.until(l)
				synctest.Wait()
				at := l.now()
				l.take()
				require.NoError(t, stop())
				require.Equal(t, at, l.now(), "it took no time")
				calls, _ := l.take()
				require.Equal(t, []tickonce.Phase{tickonce.PhaseRelease}, calls)
				grant, err := l.store.Acquire(t.Context(), schedulerLock, "b", 1000)
				require.NoError(t, err)
				require.True(t, grant.OK)
			})
		})
	}
}

// hostClock is the system's. It tells of the sleeps, and makes them so long
// that on a slow machine, too, nothing but a stop ends one.
type hostClock struct{ sleeps chan *time.Timer }

func (hostClock) Now() time.Time { return time.Now() }

func (c hostClock) After(d time.Duration) <-chan time.Time {
	sleep := time.NewTimer(d + time.Minute)
	c.sleeps <- sleep
	return sleep.C
}

// The same without a bubble, on the timers and the scheduler of the host,
// which under WebAssembly has one thread: a stop ends the sleep that the loop
// is in, and begins no other.
func TestL5C135LoopStopsAtOnceOnTheHostsClock(t *testing.T) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			clock := hostClock{make(chan *time.Timer, 1000)}
			l := &looped{begin: time.Now()}
			calls := faultstore.New(s.open(t, tickonce.Config{Clock: clock}), func(faultstore.Op) faultstore.Verdict { return faultstore.Pass })
			calls.Before = l.record
			e, err := tickonce.New(calls, tickonce.Config{Clock: clock, Poll: -1})
			require.NoError(t, err)

			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- e.RunSchedules(ctx) }()
			sleep := <-clock.sleeps
			stop()
			require.NoError(t, <-ended)
			require.True(t, sleep.Stop(), "the loop slept on")
			require.Empty(t, clock.sleeps)
			phases, _ := l.take()
			require.Equal(t, []tickonce.Phase{tickonce.PhaseAcquire, tickonce.PhaseSelect, tickonce.PhaseRelease}, phases)
		})
	}
}

func TestL5LoopEndedBeforeItsStart(t *testing.T) {
	inBubble(t, tickonce.Config{}, func(t *testing.T, l *looped) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, l.RunSchedules(ctx))
		calls, _ := l.take()
		require.Empty(t, calls)
	})
}

// hung is a store whose calls of one kind return only when their context ends.
type hung struct {
	store.Store
	renew bool
}

func (h hung) Renew(ctx context.Context, l store.Lease, ttlMS int64) (store.Grant, error) {
	if !h.renew {
		return h.Store.Renew(ctx, l, ttlMS)
	}
	<-ctx.Done()
	return store.Grant{}, ctx.Err()
}

func (h hung) Release(ctx context.Context, _ store.Lease) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// A store that hangs holds up a stop for a slice at most: whether the loop is
// asleep then, or in the middle of a call.
func TestC134StopDoesNotWaitForAStoreThatHangs(t *testing.T) {
	for _, c := range []struct {
		name string
		hung hung
	}{{"asleep", hung{}}, {"in a call", hung{renew: true}}} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, tickonce.Config{}, func(t *testing.T, l *looped) {
				c.hung.Store = l.store
				var err error
				l.Engine, err = tickonce.New(c.hung, l.Engine.Config())
				require.NoError(t, err)
				stop := l.run()
				time.Sleep(30 * time.Second)
				synctest.Wait()
				require.NoError(t, stop())
				require.Equal(t, 31*time.Second, l.now())
			})
		})
	}
}

// ending is a context that ends while it is asked for the n-th time.
type ending struct {
	context.Context
	cancel context.CancelFunc
	left   int
	ended  func()
}

func (e *ending) Err() error {
	if e.left--; e.left == 0 {
		e.cancel()
		e.ended()
	}
	return e.Context.Err()
}

// The same wherever in the loop the context ends.
func TestC134StopIsBoundedWhereverTheContextEnds(t *testing.T) {
	for n := 1; n <= 30; n++ {
		inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
			l.schedule("s", "@every 5s")
			var err error
			l.Engine, err = tickonce.New(hung{Store: l.store}, l.Engine.Config())
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			var at time.Duration
			end := &ending{Context: ctx, cancel: cancel, left: n, ended: func() { at = l.now() }}
			require.NoError(t, l.RunSchedules(end))
			require.LessOrEqual(t, l.now()-at, time.Second)
			require.Error(t, ctx.Err())
		})
	}
}

func TestR1LoopReturnsTheErrorThatOutlastsItsRetries(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
		l.failing(offline)
		err := l.RunSchedules(t.Context())
		require.ErrorIs(t, err, faultstore.ErrLost)
		require.Equal(t, tickonce.PhaseAcquire, opError(t, err).Phase)
		_, times := l.take()
		require.Equal(t, []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond, 700 * time.Millisecond}, times)
	})
}

func TestL3LoopLosesToAnother(t *testing.T) {
	inBubble(t, tickonce.Config{}, func(t *testing.T, l *looped) {
		stop := l.run()
		require.ErrorIs(t, l.RunSchedules(t.Context()), tickonce.ErrLeadershipLost)
		require.Zero(t, l.now())
		require.NoError(t, stop())
	})
}

// Invariants 8 and 9 of the loop: it outlasts an outage without a hot spin.
func TestL3LoopStandsByThroughAnOutage(t *testing.T) {
	inBubble(t, tickonce.Config{StandBy: true, Poll: -1}, func(t *testing.T, l *looped) {
		l.schedule("s", "@every 1s")
		stop := l.run()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		l.failing(offline)
		l.take()
		const outage = 90 * time.Second
		time.Sleep(outage)
		synctest.Wait()
		calls, _ := l.take()
		require.LessOrEqual(t, len(calls), int(outage/(5*time.Second))+5)
		require.Greater(t, len(calls), 10)
		l.failing(nil)
		before := len(l.jobs())
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.GreaterOrEqual(t, len(l.jobs())-before, 64)
		require.NoError(t, stop())
	})
}

// The loop and a host that steps the runner itself make the same calls at the
// same times, and fire the same.
func TestL11LoopAndStepsLeaveTheSameTrace(t *testing.T) {
	type call struct {
		phase tickonce.Phase
		at    time.Duration
	}
	const lasts = 10 * time.Minute
	faults := func() func(op faultstore.Op) faultstore.Verdict {
		return func(op faultstore.Op) faultstore.Verdict {
			if op.Number%41 == 7 && phaseOf[op.Method] != "" {
				return faultstore.Verdict(1 + op.Number%2)
			}
			return faultstore.Pass
		}
	}
	trace := func(t *testing.T, drive func(l *looped)) (calls []call, jobs []store.Job) {
		inBubbleOn(t, tickonce.Config{Poll: -1, Batch: 2, Owner: "o"}, openMemory, func(t *testing.T, l *looped) {
			for _, spec := range []string{"1s", "7s", "13s", "60s"} {
				l.schedule(spec, "@every "+spec)
			}
			l.failing(faults())
			drive(l)
			phases, times := l.take()
			for i := range phases {
				calls = append(calls, call{phases[i], times[i]})
			}
			jobs = l.jobs()
		})
		return calls, jobs
	}
	loopCalls, loopJobs := trace(t, func(l *looped) {
		stop := l.run()
		time.Sleep(lasts)
		synctest.Wait()
		require.NoError(l.t, stop())
	})
	stepCalls, stepJobs := trace(t, func(l *looped) {
		runner := l.NewRunner()
		for {
			next, _, err := runner.Step(l.t.Context())
			require.NoError(l.t, err)
			if next.Sub(l.begin) > lasts {
				break
			}
			time.Sleep(time.Until(next))
		}
		time.Sleep(lasts - l.now())
		require.NoError(l.t, runner.Stop(l.t.Context()))
	})
	require.Greater(t, len(loopCalls), 1000)
	require.Equal(t, stepCalls, loopCalls)
	require.Equal(t, stepJobs, loopJobs)
}

func TestC128StopAndStartDoubleNothing(t *testing.T) {
	inBubble(t, tickonce.Config{}, func(t *testing.T, l *looped) {
		l.schedule("s", "@every 3s")
		for range 10 {
			stop := l.run()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			require.NoError(t, stop())
		}
		var boundaries []time.Duration
		for _, job := range l.jobs() {
			boundaries = append(boundaries, time.UnixMilli(int64(job.FireAt)).Sub(l.begin))
		}
		require.Equal(t, every(3*time.Second, 3*time.Second, 33), boundaries)
	})
}

// Eight goroutines add, change, list and remove schedules, claim, settle and
// transact beside two loops that stand by: nothing races, and every job that
// was enqueued is accounted for.
func TestC133EverythingBesideTheLoop(t *testing.T) {
	inBubble(t, tickonce.Config{StandBy: true, Poll: 10 * time.Millisecond}, func(t *testing.T, l *looped) {
		l.schedule("steady", "@every 1s")
		stop, stopOther := l.run(), l.run()
		ctx := t.Context()
		var wait sync.WaitGroup
		for g := range 8 {
			wait.Go(func() {
				name := "s" + strconv.Itoa(g%4)
				for i := range 40 {
					_, err := l.Schedule(ctx, name, "@every "+strconv.Itoa(1+i%3)+"s", "q", nil, tickonce.ScheduleOptions{})
					requireNoErrorBut(t, err, tickonce.ErrConflict)
					for _, err := range l.Schedules(ctx) {
						requireNoErrorBut(t, err)
					}
					_, err = l.Pause(ctx, name)
					requireNoErrorBut(t, err, tickonce.ErrConflict)
					_, err = l.Resume(ctx, name, tickonce.ResumeOptions{CatchUp: true})
					requireNoErrorBut(t, err, tickonce.ErrConflict)
					time.Sleep(time.Duration(100+g) * time.Millisecond)
					job, err := l.Claim(ctx, "q", name)
					requireNoErrorBut(t, err)
					if job != nil {
						requireNoErrorBut(t, job.Ack(ctx))
					}
					err = l.Tx(ctx, func(tx *tickonce.Tx) error {
						if _, _, err := tx.Lookup("steady"); err != nil {
							return err
						}
						_, err := tx.Enqueue("q", nil, tickonce.EnqueueOptions{})
						return err
					})
					requireNoErrorBut(t, err, tickonce.ErrConflict)
					if i%8 == 7 {
						_, err = l.Unschedule(ctx, name)
						requireNoErrorBut(t, err, tickonce.ErrConflict)
					}
				}
			})
		}
		wait.Wait()
		require.NoError(t, stop())
		require.NoError(t, stopOther())
		q, err := l.Queue(ctx, "q")
		require.NoError(t, err)
		require.Equal(t, q.Enqueued, q.Pending+q.Claimed+q.Dead+q.Done+q.Cancelled+q.Requeued+q.Purged)
		require.Equal(t, q.Claims, q.Done)
		steady := 0
		for _, job := range l.jobs() {
			if job.Schedule == "steady" {
				steady++
			}
		}
		require.LessOrEqual(t, steady, int(l.now()/time.Second))
	})
}

// requireNoErrorBut marks the test as failed from any goroutine.
func requireNoErrorBut(t *testing.T, err error, but ...error) {
	t.Helper()
	for _, allowed := range but {
		if errors.Is(err, allowed) {
			return
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// An observer that panics, or that calls the engine, holds up no loop.
func TestC94ObserverThatPanicsBesideTheLoop(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1, Observer: func(tickonce.Event) { panic("observer") }}, func(t *testing.T, l *looped) {
		l.schedule("s", "@every 1s")
		stop := l.run()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, l.jobs(), 10)
		require.NoError(t, stop())
	})
}
