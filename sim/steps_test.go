package sim

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// hourly has one job, fired at 1 h, and the handler in Go. What more is said of
// it stands behind its line, as in a file.
func hourly(t *testing.T, handler Steps, more ...string) Scenario {
	t.Helper()
	s := parsed(t, "simulate v1\nrun      1h59m\nschedule a every=1h queue=q "+strings.Join(more, "\n")+"\n")
	s.Handlers = Handlers{"a": handler}
	return *s
}

func ran(t *testing.T, s Scenario) *Result {
	t.Helper()
	r, err := Run(s)
	require.NoError(t, err)
	return r
}

func passedWith(t *testing.T, s Scenario) *Result {
	t.Helper()
	r := ran(t, s)
	require.Equal(t, Pass, r.Verdict, "%+v %v", r.Failures, r.Unmet)
	return r
}

// A handler's time passes by its sleeps alone, in whole milliseconds.
func TestStepsSleep(t *testing.T) {
	var at []time.Duration
	r := passedWith(t, hourly(t, func(c *Call) error {
		at = append(at, c.Elapsed())
		c.Sleep(-time.Second)
		at = append(at, c.Elapsed())
		c.Sleep(1)
		at = append(at, c.Elapsed())
		c.Sleep(3 * time.Second)
		at = append(at, c.Elapsed())
		require.Equal(t, DefaultStart.Add(c.Elapsed()), c.Now())
		return nil
	}))
	require.Equal(t, []time.Duration{time.Hour, time.Hour, time.Hour + time.Millisecond, time.Hour + 3001*time.Millisecond}, at)
	require.EqualValues(t, 1, r.Queues[0].Done)
}

// TestStepsEnd has one job, and says what becomes of it.
func TestStepsEnd(t *testing.T) {
	var unnamed map[string]int
	lapsed := QueueResult{Dead: 1, Claims: 3, DeadReasons: map[string]int64{"lapsed": 1}}
	failed := QueueResult{Dead: 1, Claims: 3, Retried: 2, DeadReasons: map[string]int64{"failed": 1}}
	for _, c := range []struct {
		name    string
		more    string
		handler Steps
		want    QueueResult
		verdict Verdict
		failure string
	}{
		{
			name: "an error is tried again, and is kept", want: QueueResult{Dead: 1, Claims: 3, Retried: 2, DeadReasons: map[string]int64{"failed": 1}},
			handler: func(c *Call) error {
				if c.Job.Attempt > 1 {
					require.Equal(t, fmt.Sprintf("no: %d \uFFFD", c.Job.Attempt-1), c.Job.LastError)
				}
				return fmt.Errorf("no: %d \x00", c.Job.Attempt)
			},
		},
		{
			name: "a panic is a crash", want: failed, verdict: HandlerCrash,
			handler: func(*Call) error { unnamed["a"]++; return nil },
			failure: "the job of 2026-01-01 01:00:00, attempt 1: the handler crashed: assignment to entry in nil map, in sim.TestStepsEnd.func2 (steps_test.go:",
		},
		{
			name: "a panic with an address has none in its text", want: failed, verdict: HandlerCrash,
			handler: func(*Call) error { panic(&unnamed) }, failure: "the handler crashed: a *map[string]int, in sim.TestStepsEnd",
		},
		{
			name: "C89 a panic that is meant is none", want: failed,
			handler: func(c *Call) error { c.Panic("poison"); return nil },
		},
		{
			name: "C89 by hand nobody settles its claim", more: "heartbeat=1h", want: lapsed,
			handler: func(c *Call) error { c.Panic("poison"); return nil },
		},
		{
			name: "a panic that is recovered is none", want: QueueResult{Done: 1, Claims: 1},
			handler: func(c *Call) (err error) {
				defer func() { _ = recover() }()
				c.Panic("poison")
				return errors.New("not reached")
			},
		},
		{
			name: "an error may be a crash", want: failed, verdict: HandlerCrash,
			handler: func(*Call) error { return fmt.Errorf("%w: a trap", ErrCrash) }, failure: "crashed: a trap",
		},
		{
			name: "an error may be a budget, and breaks the run off", want: QueueResult{Claimed: 1, Claims: 1}, verdict: Budget,
			handler: func(*Call) error { return fmt.Errorf("%w: memory", ErrBudget) }, failure: "more than it may: memory",
		},
		{
			name: "steps have a budget", want: QueueResult{Claimed: 1, Claims: 1}, verdict: Budget,
			handler: func(c *Call) error {
				for {
					c.Sleep(0)
				}
			},
			failure: "more than it may: more than 1000000 sleeps, heartbeats and jobs for one job",
		},
		{
			name: "QU3 too late", more: "visibility=10s heartbeat=1h", want: QueueResult{Done: 1, Claims: 2},
			handler: func(c *Call) error {
				if c.Job.Attempt == 1 {
					c.Sleep(10*time.Second + 1)
				}
				return nil
			},
		},
		{
			name: "QU8 heartbeats of its own keep a claim", more: "visibility=10s heartbeat=1h", want: QueueResult{Done: 1, Claims: 1},
			handler: func(c *Call) error {
				for range 9 {
					c.Sleep(5 * time.Second)
					if err := c.Heartbeat(); err != nil {
						return err
					}
					require.Equal(t, c.Now().Add(10*time.Second), c.Job.Deadline)
				}
				return nil
			},
		},
		{
			name: "QU8 automatic ones do, between sleeps that are shorter", more: "visibility=10s heartbeat=10s", want: QueueResult{Done: 1, Claims: 1},
			handler: func(c *Call) error {
				for range 9 {
					c.Sleep(5 * time.Second)
				}
				return nil
			},
		},
		{
			name: "QU8 a heartbeat learns that it is too late", more: "visibility=10s heartbeat=1h", want: QueueResult{Done: 1, Claims: 2},
			handler: func(c *Call) error {
				if c.Job.Attempt > 1 {
					return nil
				}
				c.Sleep(11 * time.Second)
				require.ErrorIs(t, c.Heartbeat(), tickonce.ErrClaimLost)
				c.Sleep(time.Second)
				return nil
			},
		},
		{
			name: "a fault fails it", more: "\nduring 59m..1h1s handler failing", want: QueueResult{Done: 1, Claims: 2, Retried: 1},
			handler: func(*Call) error { return nil },
		},
		{
			name: "a fault has it panic", more: "\nduring 59m..1h1s handler panicking", want: QueueResult{Done: 1, Claims: 2, Retried: 1},
			handler: func(*Call) error { return nil },
		},
		{
			name: "a panic by a fault weighs more than an error", more: "\nduring 59m..1h1s handler panicking", want: QueueResult{Done: 1, Claims: 2, Retried: 1},
			handler: func(c *Call) error {
				if c.Job.Attempt == 1 {
					return errors.New("no")
				}
				return nil
			},
		},
		{
			name: "a fault holds it up", more: "visibility=10s heartbeat=1h\nduring 59m..1h1s handler slow takes=9s..9s", want: QueueResult{Done: 1, Claims: 2},
			handler: func(c *Call) error { c.Sleep(1001 * time.Millisecond); return nil },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ran(t, hourly(t, c.handler, c.more))
			require.Equal(t, c.verdict, r.Verdict, "%+v", r.Failures)
			c.want.Name, c.want.Enqueued = "q", 1
			if c.want.DeadReasons == nil {
				c.want.DeadReasons = map[string]int64{}
			}
			require.Equal(t, c.want, r.Queues[0])
			if c.verdict == Pass {
				require.Empty(t, r.Failures)
				return
			}
			require.Len(t, r.Failures, 1)
			require.Contains(t, r.Failures[0].Detail, c.failure)
			require.Equal(t, "a", r.Failures[0].Schedule)
		})
	}
}

// A handler enqueues jobs of no schedule, which have what it asked for, and a
// handler of their own.
func TestStepsEnqueue(t *testing.T) {
	type seen struct {
		after   time.Duration
		payload string
		attempt int
		prior   int16
	}
	var got []seen
	s := hourly(t, func(c *Call) error {
		for _, of := range []struct {
			payload string
			o       tickonce.EnqueueOptions
		}{
			{"late", tickonce.EnqueueOptions{Delay: time.Minute, MaxAttempts: 1}},
			{"at", tickonce.EnqueueOptions{RunAt: DefaultStart.Add(time.Hour + 30*time.Second)}},
			{"low", tickonce.EnqueueOptions{Priority: -1}},
			{"high", tickonce.EnqueueOptions{Priority: 1, BaseBackoff: 10 * time.Second}},
			{"expires", tickonce.EnqueueOptions{Priority: -2, Expires: time.Second}},
		} {
			id, err := c.Enqueue("q", []byte(of.payload), of.o)
			require.NoError(t, err)
			require.NotZero(t, id)
		}
		c.Sleep(time.Second)
		return nil
	})
	s.Handlers[""] = func(c *Call) error {
		require.Empty(t, c.Job.Schedule)
		require.Zero(t, c.Job.Boundary)
		got = append(got, seen{c.Elapsed() - time.Hour, string(c.Job.Payload), c.Job.Attempt, c.Job.Priority})
		if string(c.Job.Payload) == "high" && c.Job.Attempt == 1 {
			return errors.New("not yet")
		}
		return nil
	}
	r := passedWith(t, s)
	require.Equal(t, []seen{
		{time.Second, "high", 1, 1},
		{time.Second, "low", 1, -1},
		{got[2].after, "high", 2, 1},
		{30 * time.Second, "at", 1, 0},
		{time.Minute, "late", 1, 0},
	}, got)
	require.Equal(t, QueueResult{
		Name: "q", Enqueued: 6, Done: 5, Dead: 1, Claims: 6, Retried: 1, DeadReasons: map[string]int64{"expired": 1},
	}, r.Queues[0])
}

// With a key asking again makes no second job while the first one lives, in the
// same attempt or after a crash; without one it does.
func TestQU12StepsEnqueueOnce(t *testing.T) {
	for key, want := range map[string]int64{"": 3, "k": 1} {
		s := hourly(t, func(c *Call) error {
			first, err := c.Enqueue("q", nil, tickonce.EnqueueOptions{Key: key, Delay: 30 * time.Minute})
			require.NoError(t, err)
			if c.Job.Attempt == 1 {
				again, err := c.Enqueue("q", nil, tickonce.EnqueueOptions{Key: key, Delay: time.Minute})
				require.NoError(t, err)
				require.Equal(t, key != "", first == again)
				c.Sleep(time.Minute)
			}
			return nil
		}, "visibility=10s", "at 1h5s crash restart=journal after=1s")
		ended := 0
		s.Handlers[""] = func(c *Call) error {
			ended++
			if key != "" {
				_, err := c.Enqueue("q", nil, tickonce.EnqueueOptions{Key: key}) // its own, which is claimed
				require.NoError(t, err)
			}
			return nil
		}
		r := passedWith(t, s)
		require.EqualValues(t, want, ended)
		require.Equal(t, 1+want, r.Queues[0].Done)
		require.Zero(t, r.Queues[0].Pending)
	}
}

// A key is free again once its job is done.
func TestQU12StepsEnqueueAgain(t *testing.T) {
	s := hourly(t, func(c *Call) error { _, err := c.Enqueue("q", nil, tickonce.EnqueueOptions{Key: "k"}); return err })
	s.For += time.Hour
	r := passedWith(t, s)
	require.EqualValues(t, 4, r.Queues[0].Done)
}

// A store is caught that makes a second job under a key, none under a free one, or
// answers with another job than has it.
func TestQU12AKeyIsOneJob(t *testing.T) {
	s := hourly(t, func(c *Call) error {
		for range 2 {
			if _, err := c.Enqueue("q", nil, tickonce.EnqueueOptions{Key: "k", Delay: time.Hour}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, lie := range []func(s store.Store, b *store.Batch) (store.Committed, error){
		func(s store.Store, b *store.Batch) (store.Committed, error) {
			for i := range b.Inserts {
				b.Inserts[i].Key = ""
				defer func() { b.Inserts[i].Key = "k" }()
			}
			return s.Commit(ctx, b)
		},
		func(s store.Store, b *store.Batch) (store.Committed, error) {
			done, err := s.Commit(ctx, b)
			for i := range done.Inserts {
				done.Inserts[i].Existing = true
			}
			return done, err
		},
		func(s store.Store, b *store.Batch) (store.Committed, error) {
			done, err := s.Commit(ctx, b)
			for i := range done.Inserts {
				if done.Inserts[i].Existing {
					done.Inserts[i].Job++
				}
			}
			return done, err
		},
	} {
		r := run(&s, lying(liar{commit: lie}))
		require.Equal(t, oneState.String(), r.Failures[0].Invariant)
		require.Contains(t, r.Failures[0].Detail, "the key")
	}
}

// What is lost on the way, refused for want of room, or asked for wrongly, the
// handler learns.
func TestStepsEnqueueFails(t *testing.T) {
	var errs []error
	enqueues := func(more ...string) *Result {
		errs = nil
		return ran(t, hourly(t, func(c *Call) error {
			for range 2 {
				_, err := c.Enqueue("q", nil, tickonce.EnqueueOptions{Delay: time.Hour})
				errs = append(errs, err)
				c.Sleep(time.Second)
			}
			return nil
		}, more...))
	}
	r := enqueues("\nduring 1h100ms..1h10s store error-burst p=1 applied=no")
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	require.NoError(t, errs[0])
	require.ErrorContains(t, errs[1], "lost")

	s := hourly(t, nil)
	s.Engine.QueueLimit = 2
	s.Handlers["a"] = func(c *Call) error {
		for range 2 {
			_, err := c.Enqueue("q", nil, tickonce.EnqueueOptions{Delay: time.Hour})
			errs = append(errs, err)
		}
		_, err := c.Enqueue("q", nil, tickonce.EnqueueOptions{Delay: -1})
		errs = append(errs, err)
		return nil
	}
	errs = nil
	passedWith(t, s)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], tickonce.ErrLimit)
	require.ErrorContains(t, errs[2], "Delay")

	r = ran(t, hourly(t, func(c *Call) error { _, err := c.Enqueue("r", nil, tickonce.EnqueueOptions{}); return err }))
	require.Equal(t, HandlerCrash, r.Verdict)
	require.Contains(t, r.Failures[0].Detail, `a job for the queue "r", want that of a schedule`)
}

// A handler that is given up does no harm: it goes on nowhere, its deferred calls
// can do nothing, and how it ends is ignored.
func TestStepsAreGivenUp(t *testing.T) {
	for name, more := range map[string]string{
		"at a crash":                        "\nat 1h5s crash restart=journal after=1m",
		"at a stop":                         "\nat 1h5s down for=1m",
		"by a refused heartbeat":            "visibility=4s heartbeat=5s",
		"at a crash while it is held up":    "\nduring 59m..1h1s handler slow takes=2s..2s\nat 1h5s crash restart=journal after=1m",
		"at a crash with calls on the way":  "\nduring 59m..1h10s store slow takes=1s..1s\nat 1h6s crash restart=journal after=1m",
		"at a crash, and begins at nothing": "visibility=1m\nat 1h5s crash restart=empty after=1s",
	} {
		t.Run(name, func(t *testing.T) {
			attempts, deferred, after := 0, 0, 0
			passedWith(t, hourly(t, func(c *Call) error {
				if attempts++; attempts > 1 {
					return nil
				}
				defer func() {
					deferred++
					require.NotNil(t, recover())
					require.Panics(t, func() { c.Sleep(time.Hour) })
					require.Panics(t, func() { _ = c.Heartbeat() })
					panic("ignored")
				}()
				c.Sleep(6 * time.Second)
				after++
				return nil
			}, more))
			require.Equal(t, 1, deferred)
			require.Zero(t, after)
		})
	}
}

// What still runs at the end is given up as well.
func TestStepsEndWithTheRun(t *testing.T) {
	deferred := 0
	r := passedWith(t, hourly(t, func(c *Call) error {
		defer func() { deferred++ }()
		c.Sleep(24 * time.Hour)
		return nil
	}, "visibility=1d"))
	require.Equal(t, 1, deferred)
	require.EqualValues(t, 1, r.Queues[0].Claimed)
}

// A handler stands still with its process, and hears of it by its clocks alone.
func TestStepsStandStillInAPause(t *testing.T) {
	var woke time.Duration
	passedWith(t, hourly(t, func(c *Call) error {
		c.Sleep(10 * time.Second)
		woke = c.Elapsed()
		return nil
	}, "\nat 1h5s pause for=1m"))
	require.Equal(t, time.Hour+65*time.Second, woke)
}

// Of several processes each has a clock of its own, which handlers read; they
// sleep by the true time.
func TestStepsReadTheClockOfTheirProcess(t *testing.T) {
	offsets := map[int]time.Duration{}
	s := hourly(t, func(c *Call) error {
		process, life := c.Process()
		require.Equal(t, 1, life)
		if c.Elapsed() > 30*time.Minute && c.Elapsed() < 118*time.Minute {
			offsets[process] = c.Now().Sub(DefaultStart) - c.Elapsed()
		}
		before := c.Elapsed()
		c.Sleep(time.Minute)
		require.Equal(t, time.Minute, c.Elapsed()-before)
		return nil
	}, "\nengine runners=2\nduring 30m..1h58m clock-jump runner=2 by=-7m")
	s.Schedules[0].Spec = "@every 30s"
	passedWith(t, s)
	require.Equal(t, map[int]time.Duration{1: 0, 2: -7 * time.Minute}, offsets)
}

// Equal seeds, jobs and attempts have equal randomness, and others have other.
func TestStepsRandom(t *testing.T) {
	draw := func(seed uint64) (drawn []uint64) {
		s := hourly(t, func(c *Call) error {
			drawn = append(drawn, c.Rand().Uint64(), c.Rand().Uint64())
			return errors.New("again")
		})
		s.Engine.Seed = seed
		passedWith(t, s)
		return drawn
	}
	one := draw(1)
	require.Len(t, one, 6)
	require.Equal(t, one, draw(1))
	seen := map[uint64]bool{}
	for _, n := range append(one, draw(2)...) {
		require.False(t, seen[n])
		seen[n] = true
	}
}

// A sweep of a handler that keeps to what its Call gives it repeats itself; one
// that does not is found out.
func TestStepsAreAudited(t *testing.T) {
	s := hourly(t, func(c *Call) error {
		c.Sleep(time.Duration(c.Rand().Int64N(int64(10 * time.Minute))))
		return nil
	})
	s.Swarm = Swarm{Min: 1, Max: 5}
	r, err := Sweep(s, Seeds{1, 100})
	require.NoError(t, err)
	r.Require(t)
	require.Positive(t, r.Repeated)

	calls := 0
	s.Handlers["a"] = func(c *Call) error {
		calls++
		c.Sleep(time.Duration(calls) * time.Second)
		return nil
	}
	r, err = Sweep(s, Seeds{1, 100})
	require.NoError(t, err)
	require.Equal(t, Nondeterministic, r.Verdict())
}

// What a handler does to its job, or by a call of another, harms nobody.
func TestStepsKeepToTheirCall(t *testing.T) {
	var first *Call
	r := ran(t, hourly(t, func(c *Call) error {
		require.ErrorIs(t, c.Job.Ack(t.Context()), tickonce.ErrInvalidOption)
		if first == nil {
			first = c
			return errors.New("again")
		}
		first.Sleep(1)
		return nil
	}))
	require.Equal(t, HandlerCrash, r.Verdict)
	require.Contains(t, r.Failures[0].Detail, "attempt 2: the handler crashed: sim: a Call is used outside of its handler")
}

// A scenario with handlers in Go is shown as one that no file can have.
func TestStepsHaveNoText(t *testing.T) {
	s := hourly(t, func(*Call) error { return errors.New("no") })
	s.Expect = []Expect{{Kind: ExpectFires, Schedule: "a", Count: 7}}
	require.Contains(t, s.String(), "schedule a every=1h queue=q handler=go\n")
	_, err := Parse("test.sim", s.String())
	require.ErrorContains(t, err, `test.sim:3:37: found "go", want ok,`)
	require.ErrorContains(t, err, "run the program that has it")

	r, err := Sweep(s, Seeds{3, 3})
	require.NoError(t, err)
	failed := r.failure("TestNight", rig{budget: maxEvents})
	require.Contains(t, failed, "to run seed 3 again, which has handlers in Go, let TestNight sweep sim.Seeds{First: 3, Last: 3}")
	require.NotContains(t, failed, "cmd/simulate")
}

func TestStepsAreValidated(t *testing.T) {
	ok := func(*Call) error { return nil }
	for name, c := range map[string]struct {
		change func(*Scenario)
		want   string
	}{
		"of no schedule": {func(s *Scenario) { s.Handlers["b"] = ok }, `found a handler in Go of "b", want handlers of the schedules`},
		"nil":            {func(s *Scenario) { s.Handlers["a"] = nil }, `scenario:3:10: found a handler in Go of "a", want one that is not nil`},
		"two of them":    {func(s *Scenario) { s.Schedules[0].Handler.Kind = HandlerFails }, `scenario:3:10: found a handler in Go of "a", want one that is not nil, and the zero Schedule.Handler`},
	} {
		t.Run(name, func(t *testing.T) {
			s := hourly(t, ok)
			c.change(&s)
			_, err := Run(s)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// What is shrunk keeps the handlers of the schedules that it keeps.
func TestStepsAreShrunk(t *testing.T) {
	s := hourly(t, func(*Call) error { panic("no") }, "\nschedule b every=1m queue=q")
	s.Handlers["b"] = func(*Call) error { return nil }
	r, err := Shrink(s, Shrinking{})
	require.NoError(t, err)
	require.Equal(t, HandlerCrash, r.Result.Verdict)
	require.Len(t, r.Scenario.Handlers, 1)
	require.Len(t, s.Handlers, 2)
	require.NoError(t, r.Scenario.Validate())
	require.Contains(t, r.Scenario.String(), "schedule a every=1h queue=q handler=go\n")
}
