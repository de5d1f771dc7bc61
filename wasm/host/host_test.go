//go:build !wasm

package host

import (
	"archive/zip"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
)

// inBubble runs a test whose clock stands unless all wait for it, with the shared
// module.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	compiled(t)
	synctest.Test(t, test)
}

// open opens an engine that the test closes.
func open(t testing.TB, c Config) *Engine {
	t.Helper()
	if c.Seed == 0 {
		c.Seed = 7
	}
	e, _, err := compiled(t).Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// loops run beside a test until it stops them.
type loops struct {
	stop context.CancelCauseFunc
	ctx  context.Context
	wait sync.WaitGroup
	ends map[string]error
	mu   sync.Mutex
}

func background(t *testing.T) *loops {
	l := &loops{ends: map[string]error{}}
	l.ctx, l.stop = context.WithCancelCause(t.Context())
	return l
}

func (l *loops) run(name string, loop func(ctx context.Context) error) {
	l.wait.Go(func() {
		err := loop(l.ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ends[name] = err
	})
}

var errStop = errors.New("the service stops")

// end stops the loops and answers what they returned.
func (l *loops) end() map[string]error {
	l.stop(errStop)
	l.wait.Wait()
	return l.ends
}

func worker1(e *Engine, handle Handler) func(context.Context) error {
	return func(ctx context.Context) error { return e.RunWorker(ctx, "mail", handle, tickonce.WorkerConfig{}) }
}

func TestLoopsFireAndWork(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		e := open(t, Config{})
		begin := time.Now()
		_, err := e.Schedule(t.Context(), "report", "@every 5s", "mail", []byte("hi"), tickonce.ScheduleOptions{})
		require.NoError(t, err)
		var boundaries []time.Duration
		l := background(t)
		l.run("schedules", e.RunSchedules)
		l.run("worker", worker1(e, func(_ context.Context, job *Job) error {
			require.Equal(t, "hi", string(job.Payload))
			boundaries = append(boundaries, job.Boundary.Sub(begin))
			return nil
		}))
		time.Sleep(17 * time.Second)
		require.Equal(t, map[string]error{"schedules": nil, "worker": nil}, l.end())
		require.Equal(t, []time.Duration{5 * time.Second, 10 * time.Second, 15 * time.Second}, boundaries)
		info, err := e.Queue(t.Context(), "mail")
		require.NoError(t, err)
		require.EqualValues(t, 3, info.Done)
	})
}

// A call of this engine wakes the loops at once (L8): nothing waits for a slice.
func TestL8CallsWakeTheLoops(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		e := open(t, Config{})
		l := background(t)
		begun := make(chan time.Time, 1)
		l.run("worker", worker1(e, func(context.Context, *Job) error {
			begun <- time.Now()
			return nil
		}))
		time.Sleep(300 * time.Millisecond)
		_, err := e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
		require.NoError(t, err)
		now := time.Now()
		require.Equal(t, now, <-begun)
		l.end()
	})
}

func TestX1HandlersErrorsReachTheGuest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		e := open(t, Config{})
		for name, end := range map[string]struct {
			handle Handler
			ended  tickonce.Execution
			text   string
			then   tickonce.JobState
			again  time.Duration
		}{
			"done":        {func(context.Context, *Job) error { return nil }, tickonce.ExecutionOK, "", tickonce.JobDone, 0},
			"permanent":   {func(context.Context, *Job) error { return tickonce.Permanent(errors.New("no such user")) }, tickonce.ExecutionFailed, "no such user", tickonce.JobDead, 0},
			"retry after": {func(context.Context, *Job) error { return tickonce.RetryAfter(7*time.Second, errors.New("busy")) }, tickonce.ExecutionFailed, "busy", tickonce.JobPending, 7 * time.Second},
			"panic":       {func(context.Context, *Job) error { panic("boom") }, tickonce.ExecutionPanicked, "panic: boom", tickonce.JobPending, 0},
			"goexit": {func(context.Context, *Job) error {
				runtime.Goexit()
				return nil
			}, tickonce.ExecutionPanicked, "panic: the handler ended its goroutine", tickonce.JobPending, 0},
			"timeout": {func(ctx context.Context, _ *Job) error {
				<-ctx.Done()
				require.Equal(t, context.DeadlineExceeded, context.Cause(ctx))
				return ctx.Err()
			}, tickonce.ExecutionTimedOut, "timed out after 2s", tickonce.JobPending, 0},
		} {
			_, err := e.Schedule(t.Context(), name, "@every 1h", name, nil, tickonce.ScheduleOptions{})
			require.NoError(t, err)
			job, err := e.Trigger(t.Context(), name)
			require.NoError(t, err)
			l := background(t)
			l.run("worker", func(ctx context.Context) error {
				return e.RunWorker(ctx, name, end.handle, tickonce.WorkerConfig{Timeout: 2 * time.Second})
			})
			time.Sleep(3 * time.Second)
			require.Equal(t, map[string]error{"worker": nil}, l.end(), name)
			for run, err := range e.History(t.Context(), name, tickonce.HistoryOptions{}) {
				require.NoError(t, err)
				require.Equal(t, job, run.Job, name)
				require.Equal(t, end.ended, run.Execution, name)
				require.Equal(t, end.text, run.Error, name)
				require.Equal(t, end.then, run.Then, name)
				if end.again != 0 {
					at, _, err := e.NextClaimAt(t.Context(), name)
					require.NoError(t, err)
					require.Equal(t, end.again, at.Sub(run.Finished))
				}
			}
		}
	})
}

// The contexts of runs end when the guest says so, with the cause that a native
// worker's would have, and a handler that does not heed it is left behind.
func TestI9TwoPhasesOfAStop(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		e := open(t, Config{})
		for range 2 {
			_, err := e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
			require.NoError(t, err)
		}
		causes := make(chan error, 2)
		release := make(chan struct{})
		l := background(t)
		l.run("worker", func(ctx context.Context) error {
			return e.RunWorker(ctx, "mail", func(ctx context.Context, job *Job) error {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				if job.ID == 1 {
					<-release
				}
				return ctx.Err()
			}, tickonce.WorkerConfig{Concurrency: 2, StopTimeout: 3 * time.Second})
		})
		time.Sleep(time.Second)
		begin := time.Now()
		ends := l.end()
		require.Equal(t, 8*time.Second, time.Since(begin), "3 s for the runs, 5 s to notice")
		require.Equal(t, map[string]error{"worker": &tickonce.AbandonedError{Queue: "mail", Running: 1}}, ends)
		require.Equal(t, errStop, <-causes)
		require.Equal(t, errStop, <-causes)
		close(release)
	})
}

func TestQU7CancelEndsTheRun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		e := open(t, Config{})
		job, err := e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{Visibility: 3 * time.Second})
		require.NoError(t, err)
		lost := make(chan error, 1)
		l := background(t)
		l.run("worker", worker1(e, func(ctx context.Context, _ *Job) error {
			<-ctx.Done()
			lost <- context.Cause(ctx)
			return nil
		}))
		time.Sleep(100 * time.Millisecond)
		cancelled, err := e.Cancel(t.Context(), "mail", job)
		require.NoError(t, err)
		require.True(t, cancelled)
		require.Equal(t, tickonce.ErrClaimLost, <-lost)
		require.Equal(t, map[string]error{"worker": nil}, l.end())
	})
}

func TestL3OneRunnerLeads(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		e := open(t, Config{})
		l := background(t)
		l.run("schedules", e.RunSchedules)
		synctest.Wait()
		require.ErrorIs(t, e.RunSchedules(t.Context()), tickonce.ErrLeadershipLost)
		require.Equal(t, map[string]error{"schedules": nil}, l.end())

		e = open(t, Config{Config: tickonce.Config{StandBy: true}})
		_, err := e.Schedule(t.Context(), "report", "@every 5s", "mail", nil, tickonce.ScheduleOptions{})
		require.NoError(t, err)
		first, second := background(t), background(t)
		first.run("schedules", e.RunSchedules)
		synctest.Wait()
		second.run("schedules", e.RunSchedules)
		synctest.Wait()
		first.end()
		time.Sleep(6 * time.Second)
		require.Equal(t, map[string]error{"schedules": nil}, second.end())
		info, err := e.Queue(t.Context(), "mail")
		require.NoError(t, err)
		require.EqualValues(t, 1, info.Pending)
	})
}

// journal refuses when it is told to.
type journal struct {
	memengine.MemJournal
	mu   sync.Mutex
	full error
}

func (j *journal) refuse(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.full = err
}

func (j *journal) Append(record []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.full != nil {
		return j.full
	}
	return j.MemJournal.Append(record)
}

var errFull = errors.New("no space left on device")

// Nothing that a call brought is told or done before the journal has it: no
// answer, no event, no handler.
func TestD2TheJournalComesFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var told []tickonce.EventKind
		log := &journal{}
		e := open(t, Config{Journal: log, Config: tickonce.Config{Observer: func(event tickonce.Event) { told = append(told, event.Kind) }}})
		_, err := e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
		require.NoError(t, err)
		stored := log.Bytes()
		log.refuse(errFull)
		told = nil

		_, err = e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
		var lost *tickonce.OpError
		require.ErrorAs(t, err, &lost)
		require.Equal(t, &tickonce.OpError{Op: "enqueue", Err: errFull}, lost)
		_, err = e.Claim(t.Context(), "mail", "w")
		require.ErrorIs(t, err, errFull, "no other call is made")
		_, err = e.Snapshot()
		require.ErrorIs(t, err, errFull)

		begun := 0
		l := background(t)
		l.run("worker", worker1(e, func(context.Context, *Job) error { begun++; return nil }))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Zero(t, begun)
		require.Equal(t, []tickonce.EventKind{tickonce.EventRetrying}, slices.Compact(slices.Clone(told)))
		require.Len(t, told, 4, "at 0, 100, 300 and 700 ms, and then after 5 s")
		require.Equal(t, stored, log.Bytes())

		log.refuse(nil)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 2, begun, "what was held goes on, and once")
		require.Equal(t, map[string]error{"worker": nil}, l.end())
		require.Equal(t, 1, count(told, tickonce.EventEnqueued))

		native, recovery, err := memengine.Open(tickonce.Config{Seed: 7}, memengine.Durable{Log: log.Bytes()})
		require.NoError(t, err)
		require.Empty(t, recovery.Torn)
		same(t, native, e)
	})
}

func count(told []tickonce.EventKind, kind tickonce.EventKind) (n int) {
	for _, k := range told {
		if k == kind {
			n++
		}
	}
	return n
}

// same demands that the two have the same state, to the byte.
func same(t *testing.T, native *memengine.Engine, e *Engine) {
	t.Helper()
	want, err := native.Snapshot()
	require.NoError(t, err)
	found, err := e.Snapshot()
	require.NoError(t, err)
	require.Equal(t, want, found)
}

// stutter refuses every other record.
type stutter struct {
	memengine.MemJournal
	calls int
}

func (j *stutter) Append(record []byte) error {
	if j.calls++; j.calls%2 == 1 {
		return errFull
	}
	return j.MemJournal.Append(record)
}

// What the journal has taken it is not given again.
func TestD2EachRecordIsStoredOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		log := &stutter{}
		e := open(t, Config{Journal: log})
		_, err := e.Schedule(t.Context(), "report", "@every 5s", "mail", nil, tickonce.ScheduleOptions{})
		require.ErrorIs(t, err, errFull)
		var jobs []tickonce.JobID
		l := background(t)
		l.run("schedules", e.RunSchedules)
		l.run("worker", worker1(e, func(_ context.Context, job *Job) error {
			jobs = append(jobs, job.ID)
			return nil
		}))
		time.Sleep(17 * time.Second)
		require.Equal(t, map[string]error{"schedules": nil, "worker": nil}, l.end())
		require.Equal(t, []tickonce.JobID{1, 2, 3}, jobs)
		state, err := e.Snapshot()
		if err != nil { // the last record was refused
			state, err = e.Snapshot()
		}
		require.NoError(t, err)
		native, _, err := memengine.Open(tickonce.Config{Seed: 7}, memengine.Durable{Log: log.Bytes()})
		require.NoError(t, err)
		replayed, err := native.Snapshot()
		require.NoError(t, err)
		require.Equal(t, replayed, state)
	})
}

// A stop is not held up for ever by a journal that refuses: what it did not take
// is given up, and was never told to anybody.
func TestD2AStopOutlastsTheJournal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		log := &journal{}
		e := open(t, Config{Journal: log, Reopen: func() ([]byte, []byte, error) { return nil, log.Bytes(), nil }})
		begun := false
		l := background(t)
		l.run("worker", worker1(e, func(context.Context, *Job) error { begun = true; return nil }))
		l.run("schedules", e.RunSchedules)
		time.Sleep(time.Second)
		log.refuse(errFull)
		_, err := e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
		require.ErrorIs(t, err, errFull)
		begin := time.Now()
		ends := l.end()
		require.LessOrEqual(t, time.Since(begin), 20*time.Second)
		for name, err := range ends {
			require.ErrorIs(t, err, errFull, name)
			require.ErrorAs(t, err, new(*DeadError), name)
		}
		require.False(t, begun)

		log.refuse(nil)
		_, err = e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
		require.NoError(t, err)
		info, err := e.Queue(t.Context(), "mail")
		require.NoError(t, err)
		require.EqualValues(t, 1, info.Enqueued, "of the two")
		native, _, err := memengine.Open(tickonce.Config{Seed: 7}, memengine.Durable{Log: log.Bytes()})
		require.NoError(t, err)
		same(t, native, e)
	})
}

func TestD1StatesOfNativeEnginesAreTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx := t.Context()
		native, _, err := memengine.Open(tickonce.Config{Seed: 7}, memengine.Durable{Journal: &journal{}})
		require.NoError(t, err)
		log := &journal{}
		e := open(t, Config{Journal: log})
		for _, name := range []string{"b", "a"} {
			_, err := native.Schedule(ctx, name, "@every 1m", "mail", []byte(name), tickonce.ScheduleOptions{})
			require.NoError(t, err)
			_, err = e.Schedule(ctx, name, "@every 1m", "mail", []byte(name), tickonce.ScheduleOptions{})
			require.NoError(t, err)
		}
		same(t, native, e)

		state, err := native.Snapshot()
		require.NoError(t, err)
		restored := open(t, Config{Snapshot: state})
		same(t, native, restored)
		replayed := open(t, Config{Log: log.Bytes()})
		same(t, native, replayed)

		_, _, err = compiled(t).Open(ctx, Config{Snapshot: state[:len(state)-1]})
		require.ErrorIs(t, err, tickonce.ErrSnapshot)
		_, torn, err := compiled(t).Open(ctx, Config{Log: log.Bytes()[:len(log.Bytes())-1]})
		require.NoError(t, err)
		require.Equal(t, memengine.Recovery{Records: 1, Offset: int64(len(log.Bytes())) / 2, Torn: "ends within a record"}, torn)
	})
}

// kill has the guest ask for more memory than it may have.
func kill(t *testing.T, e *Engine) error {
	var err error
	for range 200 {
		if _, err = e.Enqueue(t.Context(), "heap", make([]byte, 1<<20), tickonce.EnqueueOptions{}); err != nil {
			break
		}
	}
	return err
}

// small is the module with little memory.
func small(t *testing.T) *Module {
	compiled(t) // into the cache
	m, err := Compile(context.Background(), guest(t), Options{Memory: 64 << 20, CacheDir: cache})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close(context.Background())) })
	return m
}

func TestADeadGuestSaysSo(t *testing.T) {
	m := small(t)
	e, _, err := m.Open(t.Context(), Config{})
	require.NoError(t, err)
	l := background(t)
	l.run("schedules", e.RunSchedules)
	err = kill(t, e)
	var dead *DeadError
	require.ErrorAs(t, err, &dead)
	require.ErrorContains(t, err, "out of memory")
	_, err = e.Snapshot()
	require.ErrorAs(t, err, &dead)
	require.Error(t, e.RunSchedules(t.Context()))
	require.ErrorAs(t, l.end()["schedules"], &dead)
	require.NoError(t, e.Close())
	_, _, err = e.Lookup(t.Context(), "report")
	require.Equal(t, ErrClosed, err)
	require.Equal(t, ErrClosed, e.RunSchedules(t.Context()))
	require.NoError(t, e.Close())

	other, _, err := m.Open(t.Context(), Config{})
	require.NoError(t, err, "other instances of the module live")
	require.NoError(t, other.Close())
}

func TestADeadGuestIsReopened(t *testing.T) {
	m := small(t)
	inBubble(t, func(t *testing.T) {
		log := &journal{}
		var full atomic.Bool // whoever asks first, this test or the loops
		full.Store(true)
		e, _, err := m.Open(t.Context(), Config{Journal: log, Reopen: func() ([]byte, []byte, error) {
			if full.Load() {
				return nil, nil, errFull
			}
			return nil, log.Bytes(), nil
		}})
		require.NoError(t, err)
		defer e.Close()
		kept, err := e.Enqueue(t.Context(), "kept", nil, tickonce.EnqueueOptions{})
		require.NoError(t, err)
		claim, err := e.Claim(t.Context(), "kept", "w")
		require.NoError(t, err)
		var attempts []int
		lost := make(chan error, 2)
		l := background(t)
		l.run("worker", worker1(e, func(ctx context.Context, job *Job) error {
			if attempts = append(attempts, job.Attempt); job.Attempt == 1 {
				<-ctx.Done()
				lost <- context.Cause(ctx)
			}
			return nil
		}))
		l.run("schedules", e.RunSchedules)
		_, err = e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{Visibility: 10 * time.Second})
		require.NoError(t, err)
		synctest.Wait()

		e.mu.Lock() // since a log of what kills it would do so again
		e.die(&fault{err: errors.New("out of bounds memory access")})
		e.unlock()
		_, _, err = e.Lookup(t.Context(), "report")
		require.ErrorIs(t, err, errFull)
		full.Store(false)
		require.Equal(t, tickonce.ErrClaimLost, <-lost)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		require.Equal(t, []int{1, 2}, attempts, "the job is handed out again when its claim has lapsed")
		require.ErrorIs(t, claim.Ack(t.Context()), tickonce.ErrClaimLost)
		cancelled, err := e.Cancel(t.Context(), "kept", kept)
		require.NoError(t, err)
		require.True(t, cancelled)
		require.Equal(t, map[string]error{"worker": nil, "schedules": nil}, l.end())
	})
}

func TestCallTimeout(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: code that can be stopped takes seconds to compile, for this test alone")
	}
	m, err := Compile(t.Context(), guest(t), Options{CallTimeout: time.Nanosecond})
	require.NoError(t, err)
	defer m.Close(t.Context())
	_, _, err = m.Open(t.Context(), Config{})
	require.ErrorContains(t, err, "a call of the guest took longer than 1ns")
}

func TestClose(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var observed sync.Map
		e := open(t, Config{Config: tickonce.Config{Observer: func(e tickonce.Event) { observed.Store(e.Kind, true) }}})
		_, err := e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
		require.NoError(t, err)
		cause := make(chan error, 1)
		l := background(t)
		l.run("schedules", e.RunSchedules)
		l.run("worker", worker1(e, func(ctx context.Context, _ *Job) error {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return nil
		}))
		l.run("details", func(ctx context.Context) error {
			for range e.Details(ctx) {
				return errFull
			}
			return nil
		})
		time.Sleep(time.Second)
		require.NoError(t, e.Close())
		require.Equal(t, ErrClosed, <-cause)
		l.wait.Wait()
		require.Equal(t, map[string]error{"schedules": ErrClosed, "worker": ErrClosed, "details": nil}, l.ends)
		require.Equal(t, ErrClosed, e.RunSchedules(t.Context()))
		_, retried := observed.Load(tickonce.EventRetrying)
		require.False(t, retried, "nothing is tried again")
	})
}

func TestO7Transactions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx := t.Context()
		e := open(t, Config{})
		_, err := e.Schedule(ctx, "report", "@every 1m", "mail", nil, tickonce.ScheduleOptions{})
		require.NoError(t, err)

		var job *TxJob
		var kept *Tx
		require.NoError(t, e.Tx(ctx, func(tx *Tx) error {
			kept = tx
			paused, err := tx.Pause("report")
			require.NoError(t, err)
			require.True(t, paused)
			_, err = tx.Trigger("report")
			require.ErrorIs(t, err, tickonce.ErrPaused, "a method sees what was staged")
			require.NotContains(t, err.Error(), "op ")
			resumed, err := tx.Resume("report", tickonce.ResumeOptions{})
			require.NoError(t, err)
			require.True(t, resumed)
			job, err = tx.Enqueue("mail", nil, tickonce.EnqueueOptions{})
			require.Zero(t, job.ID())
			info, failure := e.Queue(ctx, "mail")
			require.NoError(t, failure)
			require.Zero(t, info.Pending, "nothing is there before the commit")
			time.Sleep(time.Second)
			return err
		}))
		require.NotZero(t, job.ID())
		_, err = kept.Pause("report")
		require.Equal(t, tickonce.ErrTxDone, err)

		for name, touch := range map[string]func(*Tx) error{
			"read":  func(tx *Tx) error { _, _, err := tx.Lookup("report"); return err },
			"write": func(tx *Tx) error { _, err := tx.Pause("report"); return err },
		} {
			require.ErrorIs(t, e.Tx(ctx, func(tx *Tx) error {
				require.NoError(t, touch(tx), name)
				_, err := e.Schedule(ctx, "report", "@every 1m", "mail", []byte(name), tickonce.ScheduleOptions{})
				require.NoError(t, err)
				_, err = tx.Enqueue("mail", nil, tickonce.EnqueueOptions{})
				return err
			}), tickonce.ErrConflict, name)
		}
		require.Equal(t, errFull, e.Tx(ctx, func(tx *Tx) error {
			_, err := tx.Unschedule("report")
			require.NoError(t, err)
			return errFull
		}))
		info, err := e.Queue(ctx, "mail")
		require.NoError(t, err)
		require.EqualValues(t, 1, info.Pending)

		claimed, err := e.Claim(ctx, "mail", "w")
		require.NoError(t, err)
		require.NoError(t, claimed.Deliver("chat", []byte("done")))
		require.NoError(t, e.Tx(ctx, func(tx *Tx) error {
			require.NoError(t, tx.Ack(claimed))
			require.ErrorIs(t, tx.Ack(claimed), tickonce.ErrClaimLost)
			return nil
		}))
		require.ErrorIs(t, claimed.Ack(ctx), tickonce.ErrClaimLost)
		info, err = e.Outbox("chat").Info(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1, info.Pending)
		require.NoError(t, e.Tx(ctx, func(*Tx) error { return nil }))
	})
}

func TestX2Details(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		e := open(t, Config{})
		var said []string
		l := background(t)
		l.run("details", func(ctx context.Context) error {
			for detail := range e.Details(ctx) {
				said = append(said, detail.Summary+detail.Outbox)
			}
			return nil
		})
		l.run("worker", worker1(e, func(_ context.Context, job *Job) error {
			job.Summarize("3 rows")
			return job.Deliver("chat", []byte("3"))
		}))
		l.run("outbox", func(ctx context.Context) error {
			return e.Outbox("chat").Run(ctx, func(_ context.Context, entry *Job) error {
				require.EqualValues(t, 1, entry.Origin)
				if entry.Attempt == 1 {
					return context.DeadlineExceeded // which is transient
				}
				return nil
			}, tickonce.WorkerConfig{})
		})
		_, err := e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		l.end()
		require.Equal(t, []string{"3 rows", "chat", "chat"}, said)
		require.Zero(t, e.DroppedDetails())
	})
}

func TestN2NamesPassAsTheyAre(t *testing.T) {
	e := open(t, Config{})
	ctx := t.Context()
	for what, err := range map[string]error{
		"queue":    second(e.Enqueue(ctx, "a\xff", nil, tickonce.EnqueueOptions{})),
		"key":      second(e.Enqueue(ctx, "mail", nil, tickonce.EnqueueOptions{Key: "a\xff"})),
		"schedule": second(e.Pause(ctx, "a\xff")),
		"outbox":   second(e.Outbox("a\xff").Enqueue(ctx, nil, tickonce.OutboxOptions{})),
		"empty":    second(e.Outbox("").Enqueue(ctx, nil, tickonce.OutboxOptions{})),
		"worker":   e.RunWorker(ctx, "mail", func(context.Context, *Job) error { return nil }, tickonce.WorkerConfig{Name: "a\xff"}),
		"of a tx":  e.Tx(ctx, func(tx *Tx) error { return second(tx.Pause("a\xff")) }),
	} {
		require.ErrorIs(t, err, tickonce.ErrInvalidName, what)
	}
	for what, err := range map[string]error{
		"a fraction":  second(e.Enqueue(ctx, "mail", nil, tickonce.EnqueueOptions{Delay: 1500 * time.Microsecond})),
		"none":        second(e.ClaimBatch(ctx, "mail", "w", 0)),
		"concurrency": e.RunWorker(ctx, "mail", func(context.Context, *Job) error { return nil }, tickonce.WorkerConfig{Concurrency: -1}),
		"no handler":  e.RunWorker(ctx, "mail", nil, tickonce.WorkerConfig{}),
		"no claim":    (&Job{}).Ack(ctx),
	} {
		require.ErrorIs(t, err, tickonce.ErrInvalidOption, what)
	}
	_, err := e.Claim(ctx, "mail", "")
	require.ErrorIs(t, err, tickonce.ErrInvalidWorker)
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err = e.Enqueue(over, "mail", nil, tickonce.EnqueueOptions{})
	require.Equal(t, context.Canceled, err)
}

func second[T any](_ T, err error) error { return err }

func TestX10Zones(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	zones, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib/time/zoneinfo.zip"))
	require.NoError(t, err)
	defer zones.Close()
	e := open(t, Config{ZoneNames: []string{"Europe/Berlin"}, Zoneinfo: zones})
	hours := tickonce.ScheduleOptions{ActiveHours: tickonce.ActiveHours{From: "08:00", To: "18:00", Zone: "Europe/Berlin"}}
	s, err := e.Schedule(t.Context(), "report", "@every 1h", "mail", nil, hours)
	require.NoError(t, err)
	require.Equal(t, hours.ActiveHours, s.Options.ActiveHours)
	hours.ActiveHours.Zone = "Asia/Tokyo"
	_, err = e.Schedule(t.Context(), "report", "@every 1h", "mail", nil, hours)
	require.ErrorIs(t, err, tickonce.ErrInvalidOption)

	for name, c := range map[string]Config{
		"not there":    {ZoneNames: []string{"Mars/Utopia"}, Zoneinfo: fstest.MapFS{}},
		"outside":      {ZoneNames: []string{"../passwd"}},
		"no zone data": {ZoneNames: []string{"Europe/Berlin"}, Zoneinfo: fstest.MapFS{"Europe/Berlin": {Data: []byte("no")}}},
		"a function":   {Config: tickonce.Config{Zones: time.LoadLocation}},
	} {
		_, _, err := compiled(t).Open(t.Context(), c)
		require.ErrorIs(t, err, tickonce.ErrInvalidOption, name)
	}
}

func TestCompile(t *testing.T) {
	ctx := t.Context()
	for name, c := range map[string]struct {
		wasm    []byte
		options Options
		text    string
	}{
		"a web page":    {[]byte("<!doctype html>"), Options{}, `found "<!doctype html>", want a WebAssembly module`},
		"a cut module":  {guest(t)[:100], Options{}, "compile the guest: "},
		"other exports": {[]byte("\x00asm\x01\x00\x00\x00"), Options{}, "no export tk_abi"},
		"memory":        {guest(t), Options{Memory: 1}, "invalid option: Memory is 1"},
		"timeout":       {guest(t), Options{CallTimeout: -1}, "invalid option: CallTimeout"},
	} {
		_, err := Compile(ctx, c.wasm, c.options)
		require.ErrorContains(t, err, c.text, name)
	}

	compiled(t)
	m, err := Compile(ctx, guest(t), Options{CacheDir: cache})
	require.NoError(t, err)
	require.NoError(t, m.Close(ctx))
	files := 0
	require.NoError(t, fs.WalkDir(os.DirFS(cache), ".", func(_ string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			files++
		}
		return err
	}))
	require.NotZero(t, files)
}

// Calls, loops and handlers of many goroutines at once, for the race detector.
func TestEngineIsSafeForConcurrentUse(t *testing.T) {
	e := open(t, Config{Journal: &journal{}, Config: tickonce.Config{Observer: func(tickonce.Event) {}}})
	const jobs = 50
	done := make(chan struct{}, 4*jobs)
	l := background(t)
	l.run("schedules", e.RunSchedules)
	l.run("worker", func(ctx context.Context) error {
		return e.RunWorker(ctx, "mail", func(context.Context, *Job) error {
			done <- struct{}{}
			return nil
		}, tickonce.WorkerConfig{Concurrency: 8})
	})
	var enqueuers sync.WaitGroup
	for range 4 {
		enqueuers.Go(func() {
			for range jobs {
				_, err := e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
				require.NoError(t, err)
			}
		})
	}
	enqueuers.Wait()
	for range 4 * jobs {
		<-done
	}
	require.Equal(t, map[string]error{"schedules": nil, "worker": nil}, l.end())
	info, err := e.Queue(t.Context(), "mail")
	require.NoError(t, err)
	require.EqualValues(t, 4*jobs, info.Done)
}
