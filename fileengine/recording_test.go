package fileengine

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
)

// files are all there is in a directory.
func files(t *testing.T, path string) map[string]string {
	found := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(path), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(path, name))
		found[name] = string(b)
		return err
	}))
	return found
}

// replayed is the state that a recording leads to.
func replayed(t *testing.T, path string) (string, *Recording) {
	r, err := Read(path)
	require.NoError(t, err)
	require.Nil(t, r.Journal)
	s, found, err := memengine.Replay(r.Durable, func(*memengine.Record) {})
	require.NoError(t, r.Judge(found, err))
	b, err := s.Snapshot()
	require.NoError(t, err)
	return string(b), r
}

// An engine has the directory open, whose log ends in what is no record.
func TestD5ADirectoryIsReadAndLeftAsItIs(t *testing.T) {
	path := t.TempDir()
	e, _, err := Open(path, tickonce.Config{}, Options{})
	require.NoError(t, err)
	for i := range 5 {
		enqueue(t, e, strconv.Itoa(i))
		if i == 2 {
			require.NoError(t, e.Rotate())
		}
	}
	state := stateOf(t, e.Engine)
	log := filepath.Join(path, "log-00000002")
	whole, err := os.ReadFile(log)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(log, append(whole, "torn"...), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(path, "snapshot-00000003.tmp"), []byte("unfinished"), 0o600))

	before := files(t, path)
	found, r := replayed(t, path)
	require.Equal(t, state, found)
	require.Equal(t, []Tail{{File: log, Offset: int64(len(whole)), Bytes: 4, Reason: "ends within the frame of a record"}}, r.Dropped)
	require.Equal(t, before, files(t, path))
	require.NoError(t, e.Close())
}

// What is read beside writes and rotations is a state that there was, and never
// an older one than was read before.
func TestD5ADirectoryIsReadWhileItIsWritten(t *testing.T) {
	path := t.TempDir()
	e, _, err := Open(path, tickonce.Config{}, Options{SyncEvery: -1, RotateAt: -1})
	require.NoError(t, err)
	var acknowledged atomic.Int64
	done := make(chan error)
	go func() {
		for i := range 300 {
			_, err := e.Enqueue(context.Background(), "q", make([]byte, 50), tickonce.EnqueueOptions{})
			if err == nil && i%5 == 0 {
				err = e.Rotate()
			}
			if err != nil {
				done <- err
				return
			}
			acknowledged.Add(1)
		}
		done <- nil
	}()
	for reads, writing := 0, true; writing || reads < 2; reads++ {
		select {
		case err := <-done:
			require.NoError(t, err)
			writing = false
		default:
		}
		runtime.Gosched() // where there is one thread, nothing else lets the other have its turn
		least := acknowledged.Load()
		r, err := Read(path)
		require.NoError(t, err)
		s, found, err := memengine.Replay(r.Durable, func(*memengine.Record) {})
		require.NoError(t, r.Judge(found, err))
		queues := make([]store.Queue, 1)
		n, _, err := s.Queues(context.Background(), "", queues)
		require.NoError(t, err)
		if n == 0 {
			require.Zero(t, least)
			continue
		}
		require.GreaterOrEqual(t, queues[0].Enqueued, least)
		require.LessOrEqual(t, queues[0].Enqueued, acknowledged.Load()+1)
	}
	require.NoError(t, e.Close())
}

// A log alone is its records from the first on; a later one needs its snapshot.
func TestD5ALogIsReadAlone(t *testing.T) {
	script := newScript(t, 8)
	path := t.TempDir()
	e, _, err := Open(path, script.config(), Options{})
	require.NoError(t, err)
	for i := range 4 {
		require.NoError(t, script.call(e.Engine, i))
	}
	first := filepath.Join(path, firstLog)
	state, _ := replayed(t, first)
	require.Equal(t, script.states[4], state)
	require.NoError(t, e.Rotate())
	require.NoError(t, script.call(e.Engine, 4))
	require.NoError(t, e.Close())

	second := filepath.Join(path, "log-00000002")
	r, err := Read(second)
	require.NoError(t, err)
	_, found, err := memengine.Replay(r.Durable, func(*memengine.Record) {})
	require.EqualError(t, r.Judge(found, err), second+" is damaged: at byte 72: the records before it are missing; restore a copy of the directory")
	state, _ = replayed(t, path)
	require.Equal(t, script.states[5], state)

	b, err := os.ReadFile(second)
	require.NoError(t, err)
	b[5]++
	copied := filepath.Join(path, "copy")
	require.NoError(t, os.WriteFile(copied, b[:20], 0o600))
	_, err = Read(copied)
	require.NoError(t, err, "it is no log of a directory")
	b[5]--
	require.NoError(t, os.WriteFile(copied, b[:20], 0o600))
	_, err = Read(copied)
	require.EqualError(t, err, copied+" is damaged: at byte 20: ends within its header; restore a copy of the directory")
}

// A file that holds what a journal was given.
func TestD5AFileOfRecordsIsRead(t *testing.T) {
	script := newScript(t, 0)
	var j memengine.MemJournal
	e, _, err := memengine.Open(script.config(), memengine.Durable{Journal: &j})
	require.NoError(t, err)
	_, err = e.Enqueue(context.Background(), "q", nil, tickonce.EnqueueOptions{})
	require.NoError(t, err)
	end := int64(len(j.Bytes()))
	_, err = e.Enqueue(context.Background(), "q", nil, tickonce.EnqueueOptions{})
	require.NoError(t, err)

	path := filepath.Join(t.TempDir(), "records")
	require.NoError(t, os.WriteFile(path, j.Bytes(), 0o600))
	state, r := replayed(t, path)
	require.Equal(t, stateOf(t, e), state)
	require.Empty(t, r.Dropped)

	require.NoError(t, os.WriteFile(path, j.Bytes()[:end+5], 0o600))
	_, r = replayed(t, path)
	require.Equal(t, []Tail{{File: path, Offset: end, Bytes: 5, Reason: "ends within the frame of a record"}}, r.Dropped)

	b := j.Bytes()
	b[20]++
	require.NoError(t, os.WriteFile(path, b, 0o600))
	r, err = Read(path)
	require.NoError(t, err)
	_, found, err := memengine.Replay(r.Durable, func(*memengine.Record) {})
	require.EqualError(t, r.Judge(found, err), path+" is damaged: at byte 0: record with a wrong checksum, with whole records after it; restore a copy of the directory")
}

func TestD5WhatIsNoRecordingIsRefused(t *testing.T) {
	path := t.TempDir()
	_, err := Read(path)
	require.EqualError(t, err, "read "+path+": no engine has kept its state there")
	require.Empty(t, files(t, path))
	_, err = Read(filepath.Join(path, "nothing"))
	require.ErrorIs(t, err, fs.ErrNotExist)

	e, _, err := Open(path, tickonce.Config{}, Options{})
	require.NoError(t, err)
	enqueue(t, e, "first")
	require.NoError(t, e.Rotate())
	require.NoError(t, e.Close())
	name := filepath.Join(path, "snapshot-00000002")
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	b[50]++
	require.NoError(t, os.WriteFile(name, b, 0o600))
	r, err := Read(path)
	require.NoError(t, err)
	_, found, err := memengine.Replay(r.Durable, func(*memengine.Record) {})
	err = r.Judge(found, err)
	var damaged *DamageError
	require.ErrorAs(t, err, &damaged)
	require.Equal(t, name, damaged.File)
}
