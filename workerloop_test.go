package tickonce_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// work starts a worker's loop on the queue "q"; stop ends it and answers its
// error.
func (l *looped) work(c tickonce.WorkerConfig, handle tickonce.Handler) (stop func() error) {
	ctx, cancel := context.WithCancel(l.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.RunWorker(ctx, "q", handle, c) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-ended
	}
}

func (l *looped) enqueue(n int, o tickonce.EnqueueOptions) {
	l.t.Helper()
	for range n {
		_, err := l.Enqueue(l.t.Context(), "q", nil, o)
		require.NoError(l.t, err)
	}
}

func (l *looped) queue() tickonce.QueueInfo {
	l.t.Helper()
	info, err := l.Queue(l.t.Context(), "q")
	require.NoError(l.t, err)
	return info
}

// sleeps is a handler that takes its time, and gives up when its context ends.
func sleeps(d time.Duration) tickonce.Handler {
	return func(ctx context.Context, _ *tickonce.Job) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func TestW3WorkerLoopIsWokenAtOnce(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
		var at []time.Duration
		stop := l.work(tickonce.WorkerConfig{}, func(context.Context, *tickonce.Job) error {
			at = append(at, l.now())
			return nil
		})
		time.Sleep(300 * time.Millisecond)
		l.enqueue(1, tickonce.EnqueueOptions{})
		synctest.Wait()
		l.enqueue(1, tickonce.EnqueueOptions{Delay: 12_345 * time.Millisecond})
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []time.Duration{300 * time.Millisecond, 12_645 * time.Millisecond}, at)
		require.NoError(t, stop())
	})
}

func TestW2WorkerLoopBoundsItsHandlers(t *testing.T) {
	inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
		var mu sync.Mutex
		running, most := 0, 0
		l.enqueue(20, tickonce.EnqueueOptions{})
		stop := l.work(tickonce.WorkerConfig{Concurrency: 4}, func(ctx context.Context, job *tickonce.Job) error {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			defer func() { mu.Lock(); running--; mu.Unlock() }()
			return sleeps(time.Second)(ctx, job)
		})
		time.Sleep(5*time.Second - time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 16, l.queue().Done)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 20, l.queue().Done)
		require.Equal(t, 4, most)
		require.NoError(t, stop())
	})
}

// A handler may do to its goroutine what it likes: its job has failed, and the
// worker works on.
func TestX5W5C93WorkerLoopOutlivesItsHandlers(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func()
		text string
	}{
		{"panic", func() { throws("boom") }, "panic: boom, at "},
		{"panic(nil)", func() { throws(nil) }, "panic: panic called with nil argument"},
		{"runtime.Goexit", runtime.Goexit, "the handler ended its goroutine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, tickonce.Config{Poll: -1}, func(t *testing.T, l *looped) {
				l.enqueue(1, tickonce.EnqueueOptions{})
				stop := l.work(tickonce.WorkerConfig{}, func(_ context.Context, job *tickonce.Job) error {
					if job.Attempt == 1 {
						c.do()
					}
					return nil
				})
				require.Equal(t, store.Pending, l.jobs()[0].State)
				require.Contains(t, l.jobs()[0].LastError, c.text)
				time.Sleep(time.Hour)
				require.EqualValues(t, 1, l.queue().Done)
				require.NoError(t, stop())
			})
		})
	}
}

func TestW4WorkerLoopKeepsItsClaims(t *testing.T) {
	inBubble(t, tickonce.Config{}, func(t *testing.T, l *looped) {
		l.enqueue(1, tickonce.EnqueueOptions{Visibility: 9 * time.Second})
		var deadline time.Time
		stop := l.work(tickonce.WorkerConfig{}, func(ctx context.Context, job *tickonce.Job) error {
			defer func() { deadline = job.Deadline }() // the worker does not write to it
			return sleeps(10*time.Minute)(ctx, job)
		})
		other := l.work(tickonce.WorkerConfig{}, func(context.Context, *tickonce.Job) error {
			t.Error("the claim was let lapse")
			return nil
		})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.EqualValues(t, 1, l.queue().Done)
		require.EqualValues(t, 1, l.queue().Claims)
		require.True(t, deadline.Equal(l.begin.Add(9*time.Second)))
		require.NoError(t, stop())
		require.NoError(t, other())
	})
}

// The machine sleeps for a night in the middle of a run. Its claim has lapsed
// then, and within a slice of the resume the handler is told.
func TestW4L7WorkerLoopAfterASleep(t *testing.T) {
	inBubble(t, tickonce.Config{}, func(t *testing.T, l *looped) {
		l.enqueue(1, tickonce.EnqueueOptions{})
		var causes []error
		var told time.Duration
		stop := l.work(tickonce.WorkerConfig{}, func(ctx context.Context, job *tickonce.Job) error {
			if job.Attempt > 1 {
				return nil
			}
			<-ctx.Done()
			causes, told = append(causes, context.Cause(ctx)), l.now()
			return context.Cause(ctx)
		})
		time.Sleep(300 * time.Millisecond)
		l.machine.sleep(8 * time.Hour)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []error{tickonce.ErrClaimLost}, causes)
		require.LessOrEqual(t, told, 1300*time.Millisecond)
		require.EqualValues(t, 1, l.queue().Done)
		require.NoError(t, stop())
	})
}

func TestX5WorkerLoopEndsRunsAtTheirTimeout(t *testing.T) {
	inBubble(t, tickonce.Config{}, func(t *testing.T, l *looped) {
		l.enqueue(1, tickonce.EnqueueOptions{MaxAttempts: 1})
		stop := l.work(tickonce.WorkerConfig{Timeout: 1500 * time.Millisecond}, sleeps(time.Hour))
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, "timed out after 1.5s", l.jobs()[0].LastError)
		require.NoError(t, stop())
		require.Equal(t, 1500*time.Millisecond, l.now())
	})
}

type key struct{}

// The handler's context has the values of RunWorker's, but its end is the
// worker's word.
func TestW6HandlersContext(t *testing.T) {
	inBubble(t, tickonce.Config{}, func(t *testing.T, l *looped) {
		l.enqueue(1, tickonce.EnqueueOptions{})
		ctx, cancel := context.WithTimeoutCause(context.WithValue(t.Context(), key{}, "value"), time.Second, errOuter)
		defer cancel()
		require.NoError(t, l.RunWorker(ctx, "q", func(ctx context.Context, _ *tickonce.Job) error {
			require.Equal(t, "value", ctx.Value(key{}))
			<-ctx.Done()
			require.Equal(t, errOuter, context.Cause(ctx))
			return nil
		}, tickonce.WorkerConfig{}))
		require.Equal(t, 11*time.Second, l.now())
		require.EqualValues(t, 1, l.queue().Done)
	})
}

func TestW6C134WorkerLoopStops(t *testing.T) {
	for _, c := range []struct {
		name   string
		jobs   int
		handle tickonce.Handler
		until  time.Duration
		left   int
	}{
		{"nothing in hand", 0, sleeps(time.Hour), 0, 0},
		{"a run that is soon done", 1, sleeps(3 * time.Second), 2 * time.Second, 0},
		{"a run that gives up", 1, sleeps(time.Hour), 10 * time.Second, 0},
		{"a run that does not return", 1, func(context.Context, *tickonce.Job) error { time.Sleep(time.Hour); return nil }, 15 * time.Second, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, tickonce.Config{}, func(t *testing.T, l *looped) {
				l.enqueue(c.jobs, tickonce.EnqueueOptions{})
				stop := l.work(tickonce.WorkerConfig{}, c.handle)
				time.Sleep(time.Second)
				synctest.Wait()
				err := stop()
				require.Equal(t, time.Second+c.until, l.now())
				var left *tickonce.AbandonedError
				if errors.As(err, &left) {
					require.Equal(t, c.left, left.Running)
				} else {
					require.NoError(t, err)
					require.Zero(t, c.left)
				}
				time.Sleep(time.Hour) // the bubble waits for what was left
			})
		})
	}
}

func TestW6WorkerLoopEndedBeforeItsStart(t *testing.T) {
	inBubble(t, tickonce.Config{}, func(t *testing.T, l *looped) {
		l.enqueue(1, tickonce.EnqueueOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, l.RunWorker(ctx, "q", sleeps(0), tickonce.WorkerConfig{}))
		require.Equal(t, store.Pending, l.jobs()[0].State)
	})
}

// deaf is a store whose claims, renewals and settlements return only when
// their context ends.
type deaf struct{ store.Store }

func (deaf) Claim(ctx context.Context, _, _ string, _ []store.Job) (store.Claim, error) {
	<-ctx.Done()
	return store.Claim{}, ctx.Err()
}

// A store that hangs holds up the stop by the bound of one call, 5 s.
func TestW6C134WorkerStopDoesNotWaitForAStoreThatHangs(t *testing.T) {
	inBubble(t, tickonce.Config{}, func(t *testing.T, l *looped) {
		var err error
		l.Engine, err = tickonce.New(deaf{l.store}, l.Engine.Config())
		require.NoError(t, err)
		stop := l.work(tickonce.WorkerConfig{}, sleeps(0))
		time.Sleep(time.Second)
		require.NoError(t, stop())
		require.Equal(t, 5*time.Second, l.now())
	})
}

// The same without a bubble, on the timers and the scheduler of the host,
// which under WebAssembly has one thread.
func TestW6C135WorkerLoopOnTheHostsClock(t *testing.T) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			clock := hostClock{make(chan *time.Timer, 1000)}
			e, err := tickonce.New(s.open(t, tickonce.Config{Clock: clock}), tickonce.Config{Clock: clock, Poll: -1})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			done := make(chan struct{})
			go func() {
				ended <- e.RunWorker(ctx, "q", func(context.Context, *tickonce.Job) error { close(done); return nil }, tickonce.WorkerConfig{})
			}()
			<-clock.sleeps
			_, err = e.Enqueue(t.Context(), "q", nil, tickonce.EnqueueOptions{})
			require.NoError(t, err)
			<-done
			stop()
			require.NoError(t, <-ended)
			info, err := e.Queue(t.Context(), "q")
			require.NoError(t, err)
			require.EqualValues(t, 1, info.Done)
		})
	}
}

// Three workers on two engines do three thousand jobs while a fifth of all
// calls is lost, and handlers fail in every way: no job is lost, and none is
// done twice.
func TestI4I5W7WorkersLoseNoJob(t *testing.T) {
	const jobs = 3000
	inBubbleOn(t, tickonce.Config{}, openMemory, func(t *testing.T, l *looped) {
		l.enqueue(jobs, tickonce.EnqueueOptions{Visibility: 30 * time.Second, MaxAttempts: 1000, BaseBackoff: time.Second})

		var mu sync.Mutex
		done, succeeded, running := map[tickonce.JobID]int{}, map[tickonce.JobID]int{}, 0
		config := l.Engine.Config()
		config.Observer = func(e tickonce.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == tickonce.EventDone {
				done[e.Job]++
			}
		}
		var engines []*tickonce.Engine
		for seed := range 2 {
			e, err := tickonce.New(faultstore.New(l.store, func(op faultstore.Op) faultstore.Verdict {
				switch core.Mix64(core.Mix64(uint64(op.Number))+uint64(seed)) % 10 {
				case 0:
					return faultstore.LoseRequest
				case 1:
					return faultstore.LoseReply
				default:
					return faultstore.Pass
				}
			}), config)
			require.NoError(t, err)
			engines = append(engines, e)
		}
		handle := func(ctx context.Context, job *tickonce.Job) error {
			draw := core.Mix64(uint64(job.ID)*1_000_003 + uint64(job.Attempt))
			mu.Lock()
			running++
			mu.Unlock()
			defer func() { mu.Lock(); running--; mu.Unlock() }()
			takes := time.Duration(draw%1000) * time.Millisecond
			switch (draw >> 20) % 20 {
			case 0:
				return errBoom
			case 1:
				panic(errBoom)
			case 2:
				runtime.Goexit()
			case 3:
				return tickonce.RetryAfter(takes, errBoom)
			case 4:
				takes = time.Hour // up to its timeout
			case 5:
				takes = 50 * time.Second // longer than its claim
			}
			if err := sleeps(takes)(ctx, job); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			succeeded[job.ID]++
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		for i := range 3 {
			workers.Go(func() {
				err := engines[i%2].RunWorker(ctx, "q", handle, tickonce.WorkerConfig{Concurrency: 10, Timeout: time.Minute})
				if err != nil {
					t.Error(err)
				}
			})
		}
		for info := l.queue(); info.Pending+info.Claimed > 0; info = l.queue() {
			time.Sleep(time.Second)
		}
		cancel()
		workers.Wait()

		info := l.queue()
		require.EqualValues(t, jobs, info.Done)
		require.Zero(t, info.Dead)
		require.Zero(t, running)
		require.Len(t, succeeded, jobs, "each was done by a handler")
		for job, times := range done {
			require.Equal(t, 1, times, "job %d", job)
		}
		require.Greater(t, len(done), jobs*3/4, "but for acks whose replies were lost")
		require.Greater(t, info.Claims, int64(jobs)*5/4, "many took more than one attempt")
	})
}
