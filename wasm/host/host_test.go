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
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
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

func TestQU2ATransactionHasThePayloadsAsTheyWereStaged(t *testing.T) {
	ctx := t.Context()
	e := open(t, Config{})
	payload := []byte("as staged")
	require.NoError(t, e.Tx(ctx, func(tx *Tx) error {
		_, err := tx.Enqueue("mail", payload, tickonce.EnqueueOptions{})
		require.NoError(t, err)
		_, err = tx.Schedule("report", "@every 1m", "mail", payload, tickonce.ScheduleOptions{})
		copy(payload, "too late!")
		return err
	}))
	job, err := e.Claim(ctx, "mail", "w")
	require.NoError(t, err)
	require.Equal(t, "as staged", string(job.Payload))
	row, _, err := e.Lookup(ctx, "report")
	require.NoError(t, err)
	require.Equal(t, "as staged", string(row.Payload))
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
