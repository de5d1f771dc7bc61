package fileengine

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
)

// fails makes calls until they fail again and again, and says that each error
// names a file, wraps what the system said, and says what to do. A state that
// could be read can be read all the while.
func (l *life) fails(says syscall.Errno) {
	l.errors = nil
	l.live()
	require.Less(l.t, l.calls, len(l.script.states)-1, "it fails until the end")
	for _, err := range l.errors {
		require.ErrorIs(l.t, err, says)
		var of *fs.PathError
		require.ErrorAs(l.t, err, &of)
		require.Regexp(l.t, `^((log|snapshot)-\d{8}(\.tmp)?|\.)$`, of.Path)
		require.ErrorContains(l.t, err, "; no restart is needed")
	}
	require.Equal(l.t, l.calls, l.script.at(l.t, l.Engine.Engine))
	if l.journal.distrusted == nil {
		log := fileName(logPrefix, l.journal.generation)
		_, r, err := reopen(l.script, l.disk, log, slices.Clone(l.disk.names[log].data))
		require.NoError(l.t, err)
		require.Empty(l.t, r.Dropped, "of a write that failed nothing is left")
	}
}

// goesOn makes the calls that are left, in the same process, and says that the
// directory holds the state.
func (l *life) goesOn(o Options) {
	l.live()
	require.Equal(l.t, len(l.script.states)-1, l.calls)
	require.NoError(l.t, l.Close())
	if o.SyncEvery == 0 {
		l.disk = l.disk.fall()
	} else {
		l.disk = l.disk.kill()
	}
	require.True(l.t, l.open(o))
	require.Equal(l.t, len(l.script.states)-1, l.calls)
}

// The disk has room for so many bytes, which end anywhere: in a record, in the
// header of a new log, in a snapshot.
func TestD2AFullDiskKeepsTheStateUntilThereIsRoom(t *testing.T) {
	script := newScript(t, 40)
	for name, options := range policies {
		t.Run(name, func(t *testing.T) {
			filled := 0
			for room := 1; room < 3000; room += 23 {
				l := &life{t: t, script: script, disk: newDisk(uint64(room)), rng: rand.New(rand.NewPCG(1, 2))}
				l.disk.room = room
				if _, _, err := open(simulated{l.disk}, script.config(), options); err != nil {
					require.ErrorIs(t, err, syscall.ENOSPC)
					require.Less(t, room, headerSize)
					continue
				}
				l.disk = l.disk.kill()
				l.disk.room = room
				require.True(t, l.open(options))
				l.live()
				if l.calls < len(script.states)-1 {
					filled++
					l.fails(syscall.ENOSPC)
				}
				l.disk.room = 0
				l.goesOn(options)
			}
			require.Greater(t, filled, 30)
		})
	}
}

// The disk becomes read-only after so many calls, as some do when they fail.
func TestD2AReadOnlyDiskKeepsTheStateUntilItCanBeWritten(t *testing.T) {
	script := newScript(t, 40)
	for name, options := range policies {
		t.Run(name, func(t *testing.T) {
			for after := range 30 {
				l := &life{t: t, script: script, disk: newDisk(uint64(after)), rng: rand.New(rand.NewPCG(1, 2))}
				require.True(t, l.open(options))
				from := l.disk.calls + after
				l.disk.fails = func(call int) error {
					l.disk.readOnly = call > from
					return nil
				}
				l.fails(syscall.EROFS)
				l.disk.readOnly, l.disk.fails = false, nil
				l.goesOn(options)
			}
		})
	}
}

// What cannot be written cannot be opened, and stays as it is.
func TestD3AReadOnlyDiskIsNotOpened(t *testing.T) {
	script := newScript(t, 8)
	d := rotated(t, script)
	d.readOnly = true
	_, _, err := open(simulated{d}, script.config(), Options{})
	require.ErrorIs(t, err, syscall.EROFS)
	d.readOnly = false
	e, _, err := open(simulated{d}, script.config(), Options{})
	require.NoError(t, err)
	require.Equal(t, 6, script.at(t, e.Engine))
}

// As long as no snapshot fits on the disk, rotations add nothing to it.
func TestD2RotationsThatFailDoNotFillTheDisk(t *testing.T) {
	l := &life{t: t, script: newScript(t, 0), disk: newDisk(1)}
	require.True(t, l.open(Options{}))
	enqueue(t, l.Engine, "first")
	call := 0
	l.disk.fails = func(int) error {
		if call++; call == 2 || l.disk.names["snapshot-00000002.tmp"] != nil { // the sync of a write, and snapshots
			return syscall.ENOSPC
		}
		return nil
	}
	for range 5 {
		_, err := l.Enqueue(context.Background(), "q", nil, tickonce.EnqueueOptions{})
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorIs(t, l.Rotate(), syscall.ENOSPC)
		delete(l.disk.names, "snapshot-00000002.tmp") // the removal failed as well
		require.Equal(t, []string{"log-00000001", "log-00000002"}, l.disk.list())
	}
	l.disk.fails = nil
	require.NoError(t, l.Rotate())
	require.Equal(t, []string{"log-00000002", "snapshot-00000002"}, l.disk.list())
	enqueue(t, l.Engine, "second")
	require.NoError(t, l.Close())
	e, _, err := open(simulated{l.disk.fall()}, tickonce.Config{}, Options{})
	require.NoError(t, err)
	require.Equal(t, int64(2), ready(t, e))
}

// A rotation that fails is reported, and leaves what there is.
func TestD2AFailedRotationIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(1)
		var failures []error
		e, _, err := open(simulated{d}, tickonce.Config{}, Options{SyncEvery: -1, RotateAt: 1, OnError: func(err error) { failures = append(failures, err) }})
		require.NoError(t, err)
		call := 0
		d.fails = func(int) error {
			if call++; call > 1 { // not the first write
				return syscall.EROFS
			}
			return nil
		}
		enqueue(t, e, "first")
		synctest.Wait()
		require.Len(t, failures, 1)
		require.ErrorIs(t, failures[0], syscall.EROFS)
		require.ErrorIs(t, e.Rotate(), syscall.EROFS)
		d.fails = nil
		require.NoError(t, e.Rotate())
		enqueue(t, e, "second")
		synctest.Wait()
		require.NoError(t, e.Close())
		e, _, err = open(simulated{d}, tickonce.Config{}, Options{})
		require.NoError(t, err)
		require.Equal(t, int64(2), ready(t, e))
		require.NoError(t, e.Close())
	})
}
