package fileengine

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
)

func enqueue(t testing.TB, e *Engine, payload string) {
	t.Helper()
	_, err := e.Enqueue(context.Background(), "q", []byte(payload), tickonce.EnqueueOptions{})
	require.NoError(t, err)
}

func ready(t testing.TB, e *Engine) int64 {
	t.Helper()
	q, err := e.Queue(context.Background(), "q")
	require.NoError(t, err)
	return q.Pending
}

func unsynced(e *Engine) int64 {
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	return e.journal.end - e.journal.synced
}

func TestD4TheStateLastsInADirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	e, r, err := Open(path, tickonce.Config{}, Options{})
	require.NoError(t, err)
	require.Equal(t, Recovery{Created: true}, r)
	enqueue(t, e, "first")
	require.NoError(t, e.Rotate())
	enqueue(t, e, "second")
	state := stateOf(t, e.Engine)
	require.NoError(t, e.Close())
	require.NoError(t, e.Close(), "once more does nothing")

	_, err = e.Enqueue(context.Background(), "q", nil, tickonce.EnqueueOptions{})
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, e.Rotate(), ErrClosed)

	e, r, err = Open(path, tickonce.Config{}, Options{})
	require.NoError(t, err)
	require.Equal(t, Recovery{Records: 1}, r)
	require.Equal(t, state, stateOf(t, e.Engine))
	require.NoError(t, e.Close())
}

// A torn tail and damage are named by the path of the file.
func TestD3FilesAreNamedByTheirPaths(t *testing.T) {
	path := t.TempDir()
	e, _, err := Open(path, tickonce.Config{}, Options{})
	require.NoError(t, err)
	enqueue(t, e, "first")
	end := e.journal.end
	require.NoError(t, e.Close())

	name := filepath.Join(path, firstLog)
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, append(whole, "torn"...), 0o600))
	e, r, err := Open(path, tickonce.Config{}, Options{})
	require.NoError(t, err)
	require.Equal(t, []Tail{{File: name, Offset: end, Bytes: 4, Reason: "ends within the frame of a record"}}, r.Dropped)
	enqueue(t, e, "second")
	require.NoError(t, e.Close())
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Greater(t, info.Size(), end+4)

	whole, err = os.ReadFile(name)
	require.NoError(t, err)
	whole[end-1]++
	require.NoError(t, os.WriteFile(name, whole, 0o600))
	_, _, err = Open(path, tickonce.Config{}, Options{})
	require.EqualError(t, err, name+" is damaged: at byte 40: record with a wrong checksum, which was on disk when the records"+
		" after it were written (cut to 40 bytes, and without later logs, it holds the state before that); restore a copy of the directory")
}

func TestOneEngineHasADirectory(t *testing.T) {
	d := newDisk(1)
	e, _, err := open(simulated{d}, tickonce.Config{}, Options{})
	require.NoError(t, err)
	_, _, err = open(simulated{d}, tickonce.Config{}, Options{})
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, e.Close())
	e, _, err = open(simulated{d}, tickonce.Config{}, Options{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

func TestOpenTellsWhatTheFilesSay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no parent", "state")
	_, _, err := Open(path, tickonce.Config{}, Options{})
	require.ErrorIs(t, err, os.ErrNotExist)

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, _, err = Open(file, tickonce.Config{}, Options{})
	require.Error(t, err)

	d := newDisk(1)
	_, _, err = open(simulated{d}, tickonce.Config{Batch: -1}, Options{})
	require.ErrorIs(t, err, tickonce.ErrInvalidOption)
	require.Empty(t, d.list())
	require.False(t, d.held)
}

// A log that has grown is replaced in the background while writes go on.
func TestD4RotationsGoOnBesideWrites(t *testing.T) {
	path := t.TempDir()
	e, _, err := Open(path, tickonce.Config{}, Options{SyncEvery: -1, RotateAt: 1, OnError: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	var writers, rotations sync.WaitGroup
	e.journal.rotate = func() {
		rotations.Go(func() { e.report(e.Rotate()) })
	}
	for range 4 {
		writers.Go(func() {
			for i := range 100 {
				if _, err := e.Enqueue(context.Background(), "q", []byte(strconv.Itoa(i)), tickonce.EnqueueOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	rotations.Wait() // a rotation that Close came before would not be made
	state := stateOf(t, e.Engine)
	require.NoError(t, e.Close())
	require.Greater(t, e.journal.generation, uint64(1))
	_, err = os.Stat(filepath.Join(path, firstLog))
	require.ErrorIs(t, err, os.ErrNotExist)

	e, _, err = Open(path, tickonce.Config{}, Options{})
	require.NoError(t, err)
	require.Equal(t, int64(400), ready(t, e))
	require.Equal(t, state, stateOf(t, e.Engine))
	require.NoError(t, e.Close())
}

// A log that is shorter than the last snapshot is not rotated, so that no more
// is written for rotations than for records.
func TestARotationWaitsForALogAsLongAsTheSnapshot(t *testing.T) {
	d := newDisk(1)
	l := &life{t: t, script: newScript(t, 0), disk: d}
	require.True(t, l.open(Options{RotateAt: 200}))
	for range 20 {
		enqueue(t, l.Engine, string(make([]byte, 100)))
	}
	require.True(t, l.rotate)
	require.NoError(t, l.Rotate())
	snapshot := len(stateOf(t, l.Engine.Engine))
	l.rotate = false
	for int(l.journal.end)+200 < snapshot {
		enqueue(t, l.Engine, "")
		require.False(t, l.rotate)
	}
	for range 4 {
		enqueue(t, l.Engine, string(make([]byte, 100)))
	}
	require.True(t, l.rotate)
}

func TestALogMayGrowForEver(t *testing.T) {
	l := &life{t: t, script: newScript(t, 0), disk: newDisk(1)}
	require.True(t, l.open(Options{RotateAt: math.MaxInt64}))
	for range 3 {
		enqueue(t, l.Engine, "")
		require.False(t, l.rotate)
		require.NoError(t, l.Rotate())
	}
}

func TestWhatWaitsIsSyncedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(1)
		var failure error
		e, _, err := open(simulated{d}, tickonce.Config{}, Options{SyncEvery: time.Second, OnError: func(err error) { failure = err }})
		require.NoError(t, err)
		for range 3 {
			enqueue(t, e, "first")
			require.Positive(t, unsynced(e))
			time.Sleep(time.Second - 1)
			enqueue(t, e, "second")
			require.Positive(t, unsynced(e))
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			require.Zero(t, unsynced(e))
		}

		written := d.calls + 1
		d.fails = func(call int) error {
			if call > written {
				return syscall.EIO
			}
			return nil
		}
		enqueue(t, e, "third")
		time.Sleep(time.Second)
		synctest.Wait()
		require.ErrorIs(t, failure, syscall.EIO)
		d.fails = nil
		_, err = e.Enqueue(context.Background(), "q", nil, tickonce.EnqueueOptions{})
		require.ErrorIs(t, err, syscall.EIO, "what failed to be synced is not trusted")
		require.ErrorContains(t, err, "nothing is recorded until a snapshot has taken the place of the log")
		synctest.Wait()
		enqueue(t, e, "fourth")
		require.Equal(t, int64(8), ready(t, e))
		require.NoError(t, e.Close())

		e, _, err = open(simulated{d.fall()}, tickonce.Config{}, Options{})
		require.NoError(t, err)
		require.Equal(t, int64(8), ready(t, e))
		require.NoError(t, e.Close())
	})
}

// A sync vouches for what was there when it began.
func TestWhatIsWrittenDuringASyncWaitsForTheNext(t *testing.T) {
	l := &life{t: t, script: newScript(t, 0), disk: newDisk(1)}
	require.True(t, l.open(Options{SyncEvery: time.Second}))
	enqueue(t, l.Engine, "before")
	l.disk.fails = func(int) error {
		l.disk.fails = nil
		enqueue(t, l.Engine, "during")
		return nil
	}
	end := l.journal.end
	require.NoError(t, l.journal.syncNow())
	require.Equal(t, end, l.journal.synced)
	require.Positive(t, unsynced(l.Engine))
}

// A snapshot does not hold what is written after it was taken, so it makes up for
// no sync of that.
func TestASyncThatFailsDuringARotationIsNotForgiven(t *testing.T) {
	l := &life{t: t, script: newScript(t, 0), disk: newDisk(1)}
	require.True(t, l.open(Options{SyncEvery: time.Second}))
	enqueue(t, l.Engine, "before")
	l.disk.fails = func(int) error {
		if l.disk.names["snapshot-00000002.tmp"] == nil {
			return nil
		}
		l.disk.fails = nil
		enqueue(t, l.Engine, "during")
		l.disk.fails = func(int) error { return syscall.EIO }
		require.ErrorIs(t, l.journal.syncNow(), syscall.EIO)
		l.disk.fails = nil
		return nil
	}
	require.NoError(t, l.Rotate())
	_, err := l.Enqueue(context.Background(), "q", nil, tickonce.EnqueueOptions{})
	require.ErrorIs(t, err, syscall.EIO)
	require.True(t, l.rotate, "the next rotation is begun")
	require.NoError(t, l.Rotate())
	enqueue(t, l.Engine, "after")
	require.NoError(t, l.Close())
	e, _, err := open(simulated{l.disk.fall()}, tickonce.Config{}, Options{})
	require.NoError(t, err)
	require.Equal(t, int64(3), ready(t, e))
}

// Who hears of an error may well end the engine.
func TestOnErrorMayClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(1)
		var e *Engine
		closed := false
		e, _, err := open(simulated{d}, tickonce.Config{}, Options{SyncEvery: -1, RotateAt: 1, OnError: func(error) {
			d.fails = nil
			closed = e.Close() == nil
		}})
		require.NoError(t, err)
		call := 0
		d.fails = func(int) error {
			if call++; call > 1 { // behind the write
				return syscall.EROFS
			}
			return nil
		}
		enqueue(t, e, "first")
		synctest.Wait()
		require.True(t, closed)
	})
}

// A Close that comes second does not let go of the directory before the first.
func TestTheLockOutlastsARotation(t *testing.T) {
	d := newDisk(1)
	e, _, err := open(simulated{d}, tickonce.Config{}, Options{})
	require.NoError(t, err)
	enqueue(t, e, "first")
	var closes sync.WaitGroup
	d.fails = func(int) error {
		d.fails = nil
		for range 2 {
			closes.Go(func() { _ = e.Close() })
		}
		for range 10_000 {
			runtime.Gosched()
		}
		require.True(t, d.held)
		return nil
	}
	require.NoError(t, e.Rotate())
	closes.Wait()
	require.False(t, d.held)
}

// A process that changes its working directory leaves the state where it is.
func TestTheDirectoryStaysWhereItIs(t *testing.T) {
	t.Chdir(t.TempDir())
	e, _, err := Open("state", tickonce.Config{}, Options{})
	require.NoError(t, err)
	enqueue(t, e, "first")
	here, err := os.Getwd()
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("state", 0o700)) // another's
	require.NoError(t, e.Rotate())
	require.NoError(t, e.Close())
	files, err := os.ReadDir("state")
	require.NoError(t, err)
	require.Empty(t, files)
	e, r, err := Open(filepath.Join(here, "state"), tickonce.Config{}, Options{})
	require.NoError(t, err)
	require.False(t, r.Created)
	require.Equal(t, int64(1), ready(t, e))
	require.NoError(t, e.Close())
}

// A path that was left out is not the working directory.
func TestOpenRefusesNoPath(t *testing.T) {
	t.Chdir(t.TempDir())
	_, _, err := Open("", tickonce.Config{}, Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, files)
}

var _ memengine.Journal = (*journal)(nil)
