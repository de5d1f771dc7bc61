//go:build !wasm

package fileengine_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/fileengine"
)

// The test of a killed process starts its own binary as the process, which says
// on its standard output what it does:
//
//	time SECOND              before the clock comes to it
//	enqueued JOB             once it is
//	acking JOB SCHEDULE- SECOND   before, "-" and 0 for a job of no schedule
//	acked JOB                once it is
//	failed ERROR             and ends

var kills = flag.Int("kills", 20, "how often the process is killed")

const (
	envDir    = "FILEENGINE_KILLED_DIR"
	envSecond = "FILEENGINE_KILLED_SECOND"
	schedules = 3
	queue     = "q"
)

// processes are what this binary does in the place of tests, by the variable of
// the environment that has it do so, which is the directory.
var processes = map[string]func(dir string) error{envDir: work}

func TestMain(m *testing.M) {
	for variable, process := range processes {
		if dir := os.Getenv(variable); dir != "" {
			if err := process(dir); err != nil {
				fmt.Println("failed", err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// seconds is a clock that only its owner moves.
type seconds struct{ now atomic.Int64 }

func (c *seconds) Now() time.Time                     { return time.Unix(c.now.Load(), 0) }
func (*seconds) After(time.Duration) <-chan time.Time { return nil }

// options are of all kinds, since what is written survives the process whether
// it is synced or not.
func options(life int64) fileengine.Options {
	return fileengine.Options{
		SyncEvery: [...]time.Duration{0, time.Millisecond, -1}[life%3],
		RotateAt:  [...]int64{2_000, 20_000}[life%2],
	}
}

// work fires schedules, enqueues, claims and acks until it is killed.
func work(dir string) error {
	var second, life int64
	if _, err := fmt.Sscan(os.Getenv(envSecond), &second, &life); err != nil {
		return err
	}
	var c seconds
	c.now.Store(second)
	ctx := context.Background()
	eng, _, err := fileengine.Open(dir, tickonce.Config{Clock: &c}, options(life))
	if err != nil {
		return err
	}
	for i := range schedules {
		name := fmt.Sprint("s", i)
		if _, err := eng.Schedule(ctx, name, "@every 1s", queue, nil, tickonce.ScheduleOptions{Anchor: time.Unix(0, 0)}); err != nil {
			return err
		}
	}
	ended := make(chan error)
	toFire, toAdd := make(chan bool, 1), make(chan bool, 1)
	go func() { ended <- fire(ctx, eng, &c, toFire) }()
	go func() { ended <- add(ctx, eng, toAdd) }()
	go func() { ended <- drain(ctx, eng, toFire, toAdd) }()
	return <-ended
}

// fire moves the clock on whenever a worker asks for more.
func fire(ctx context.Context, eng *fileengine.Engine, c *seconds, more <-chan bool) error {
	for runner := eng.NewRunner(); ; {
		next, _, err := runner.Step(ctx)
		if err != nil {
			return err
		}
		if now := c.now.Load(); next.Unix() > now {
			fmt.Println("time", now+1)
			c.now.Store(now + 1)
			<-more
		}
	}
}

func add(ctx context.Context, eng *fileengine.Engine, more <-chan bool) error {
	for {
		<-more
		job, err := eng.Enqueue(ctx, queue, []byte("payload"), tickonce.EnqueueOptions{})
		if err != nil {
			return err
		}
		fmt.Println("enqueued", job)
	}
}

func drain(ctx context.Context, eng *fileengine.Engine, asks ...chan<- bool) error {
	for {
		for _, more := range asks {
			select {
			case more <- true:
			default: // asked already
			}
		}
		jobs, err := eng.ClaimBatch(ctx, queue, "w", 100)
		if err != nil {
			return err
		}
		for _, j := range jobs {
			second := int64(0)
			if j.Schedule != "" {
				second = j.Boundary.Unix()
			}
			fmt.Println("acking", j.ID, j.Schedule+"-", second)
		}
		acked, err := eng.AckAll(ctx, jobs)
		if err != nil && !errors.Is(err, tickonce.ErrClaimLost) {
			return err
		}
		for i, j := range jobs {
			if acked[i] {
				fmt.Println("acked", j.ID)
			}
		}
	}
}

// boundary is one of a schedule.
type boundary struct {
	schedule string
	second   int64
}

// account is what the processes have said.
type account struct {
	second   int64
	enqueued map[tickonce.JobID]bool
	seen     map[tickonce.JobID]bool // by a worker
	acked    map[tickonce.JobID]bool
	fired    map[boundary]tickonce.JobID
	twice    []boundary
}

func (a *account) read(line string) error {
	var what, schedule string
	var n, second int64
	if _, err := fmt.Sscan(line, &what, &n); err != nil {
		return errors.New(line)
	}
	job := tickonce.JobID(n)
	switch what {
	case "time":
		a.second = max(a.second, n)
	case "enqueued":
		a.enqueued[job] = true
	case "acking":
		if _, err := fmt.Sscan(line, &what, &n, &schedule, &second); err != nil {
			return nil // cut off, before the ack began
		}
		a.see(job, boundary{schedule, second})
	case "acked":
		a.acked[job] = true
	default:
		return errors.New(line)
	}
	return nil
}

func (a *account) see(job tickonce.JobID, b boundary) {
	a.seen[job] = true
	if b.second == 0 {
		return
	}
	if other, ok := a.fired[b]; ok && other != job {
		a.twice = append(a.twice, b)
	}
	a.fired[b] = job
}

// A process with work in every goroutine is killed again and again. Its
// directory opens each time, and in the end each boundary has fired once, and
// each job that was answered for is there or was handed to a worker.
func TestD4AKilledProcessLosesNothingAndFiresNothingTwice(t *testing.T) {
	dir := t.TempDir()
	a := account{
		second:   1,
		enqueued: map[tickonce.JobID]bool{},
		seen:     map[tickonce.JobID]bool{},
		acked:    map[tickonce.JobID]bool{},
		fired:    map[boundary]tickonce.JobID{},
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for life := range *kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envDir+"="+dir, fmt.Sprintf("%s=%d %d", envSecond, a.second+20, life))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		lines := 1 + rng.IntN(300)
		var look, kill sync.Once
		for said := bufio.NewScanner(out); said.Scan(); lines-- {
			look.Do(func() {
				_, _, err := fileengine.Open(dir, tickonce.Config{}, fileengine.Options{})
				require.ErrorIs(t, err, fileengine.ErrLocked)
				require.EqualError(t, err, dir+": the directory is in use by another engine")
			})
			if err := a.read(said.Text()); err != nil {
				require.NoError(t, cmd.Process.Kill())
				require.NoError(t, err)
			}
			if lines <= 0 {
				kill.Do(func() {
					for n := rng.IntN(1 << 20); n > 0; n-- { // to an instant between two lines
						_ = n
					}
					require.NoError(t, cmd.Process.Kill())
				})
			}
		}
		require.Error(t, cmd.Wait(), "it was killed")
	}

	ctx := context.Background()
	var c seconds
	c.now.Store(a.second + 3600) // every claim has lapsed
	eng, _, err := fileengine.Open(dir, tickonce.Config{Clock: &c}, fileengine.Options{SyncEvery: -1})
	require.NoError(t, err)
	left := map[tickonce.JobID]bool{}
	for {
		jobs, err := eng.ClaimBatch(ctx, queue, "w", 100)
		require.NoError(t, err)
		if len(jobs) == 0 {
			break
		}
		for _, j := range jobs {
			left[j.ID] = true
			b := boundary{}
			if j.Schedule != "" {
				b = boundary{j.Schedule + "-", j.Boundary.Unix()}
			}
			a.see(j.ID, b)
		}
	}
	for j, err := range eng.Dead(ctx, queue) {
		require.NoError(t, err)
		left[j.ID] = true
		b := boundary{}
		if j.Schedule != "" {
			b = boundary{j.Schedule + "-", j.Boundary.Unix()}
		}
		a.see(j.ID, b)
	}

	require.Empty(t, a.twice, "fired twice")
	for job := range a.enqueued {
		require.True(t, a.seen[job], "job %d was enqueued, and is lost", job)
	}
	for job := range a.acked {
		require.False(t, left[job], "job %d was acked, and is there again", job)
	}
	boundaries := 0
	for s, err := range eng.Schedules(ctx) {
		require.NoError(t, err)
		for second := int64(22); second < s.Next.Unix(); second++ {
			require.NotZero(t, a.fired[boundary{s.Name + "-", second}], "%s of second %d did not fire", s.Name, second)
			boundaries++
		}
	}
	require.Len(t, a.fired, boundaries)
	require.Positive(t, boundaries)
	t.Logf("%d kills: %d boundaries, %d jobs enqueued, %d acked", *kills, boundaries, len(a.enqueued), len(a.acked))
	require.NoError(t, eng.Close())
}
