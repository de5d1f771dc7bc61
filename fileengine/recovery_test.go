package fileengine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
)

// written is a simulated disk after the calls of a script, none of them in a
// snapshot, and where the log ended after each.
func written(t testing.TB, script *script, o Options) (d *disk, ends []int) {
	l := &life{t: t, script: script, disk: newDisk(1)}
	require.True(t, l.open(o))
	ends = []int{int(l.journal.end)}
	for i := range len(script.states) - 1 {
		require.NoError(t, script.call(l.Engine.Engine, i))
		ends = append(ends, int(l.journal.end))
	}
	require.NoError(t, l.Close())
	return l.disk.kill(), ends
}

// reopen opens what data makes of a file of the disk.
func reopen(script *script, d *disk, name string, data []byte) (*Engine, Recovery, error) {
	again := newDisk(1)
	for n, f := range d.names {
		again.names[n] = &inode{data: append([]byte(nil), f.data...)}
	}
	again.names[name] = &inode{data: data}
	return open(simulated{again}, script.config(), Options{})
}

const firstLog = "log-00000001"

func TestD3AFileCutAtAnyByteLosesOnlyTheTornRecord(t *testing.T) {
	script := newScript(t, 20)
	d, ends := written(t, script, Options{})
	log := d.names[firstLog].data
	calls := 0
	for cut := range len(log) + 1 {
		e, r, err := reopen(script, d, firstLog, append([]byte(nil), log[:cut]...))
		if cut < headerSize { // which is on disk before the file has its name
			var damaged *DamageError
			require.ErrorAs(t, err, &damaged)
			require.Equal(t, DamageError{File: firstLog, Offset: int64(cut), Found: "ends within its header"}, *damaged)
			continue
		}
		require.NoError(t, err)
		if calls+1 < len(ends) && ends[calls+1] <= cut {
			calls++
		}
		require.Equal(t, calls, script.at(t, e.Engine), "cut at %d", cut)
		require.Equal(t, calls, r.Records)
		if cut == ends[calls] {
			require.Empty(t, r.Dropped)
			continue
		}
		require.Len(t, r.Dropped, 1)
		require.NotEmpty(t, r.Dropped[0].Reason)
		r.Dropped[0].Reason = ""
		require.Equal(t, Tail{File: firstLog, Offset: int64(ends[calls]), Bytes: int64(cut - ends[calls])}, r.Dropped[0])
	}
}

// A flipped bit is found. In the last record it makes a torn tail: nothing tells
// it from a write that a crash has cut short. In any other it is damage, since
// each record says what was on disk before it.
func TestD3EveryFlippedBitOfALogIsFound(t *testing.T) {
	script := newScript(t, 12)
	d, ends := written(t, script, Options{})
	log := d.names[firstLog].data
	last := len(ends) - 2
	for i := range len(log) * 8 {
		flipped := append([]byte(nil), log...)
		flipped[i/8] ^= 1 << (i % 8)
		e, r, err := reopen(script, d, firstLog, flipped)
		if i/8 >= ends[last] {
			require.NoError(t, err)
			require.Equal(t, last, script.at(t, e.Engine))
			require.Equal(t, int64(ends[last]), r.Dropped[0].Offset)
			continue
		}
		require.ErrorIs(t, err, tickonce.ErrSnapshot, "bit %d", i)
		var damaged *DamageError
		require.ErrorAs(t, err, &damaged)
		require.Equal(t, firstLog, damaged.File)
		require.False(t, damaged.Newer)
		if i/8 >= headerSize {
			require.Contains(t, ends, int(damaged.Offset))
			require.LessOrEqual(t, damaged.Offset, int64(i/8))
		}
	}
}

func TestD3EveryFlippedBitAndCutOfASnapshotIsFound(t *testing.T) {
	script := newScript(t, 12)
	l := &life{t: t, script: script, disk: newDisk(1)}
	require.True(t, l.open(Options{}))
	for i := range 12 {
		require.NoError(t, script.call(l.Engine.Engine, i))
	}
	require.NoError(t, l.Rotate())
	require.NoError(t, l.Close())
	require.Equal(t, []string{"log-00000002", "snapshot-00000002"}, l.disk.list())
	name := "snapshot-00000002"
	whole := l.disk.names[name].data
	_, r, err := reopen(script, l.disk, name, whole)
	require.NoError(t, err)
	require.Zero(t, r)
	for i := range len(whole) * 8 {
		flipped := append([]byte(nil), whole...)
		flipped[i/8] ^= 1 << (i % 8)
		_, _, err := reopen(script, l.disk, name, flipped)
		var damaged *DamageError
		require.ErrorAs(t, err, &damaged, "bit %d", i)
		require.Equal(t, name, damaged.File)
	}
	for cut := range len(whole) {
		_, _, err := reopen(script, l.disk, name, whole[:cut])
		var damaged *DamageError
		require.ErrorAs(t, err, &damaged, "cut at %d", cut)
		require.Equal(t, name, damaged.File)
	}
}

// Without syncs a power cut may take any part of the log. What is whole behind a
// hole is dropped with it, and counted.
func TestD3AHoleInWhatWasNotSyncedIsTheTail(t *testing.T) {
	script := newScript(t, 10)
	d, ends := written(t, script, Options{SyncEvery: -1})
	log := append([]byte(nil), d.names[firstLog].data...)
	clear(log[ends[4]:ends[5]])
	e, r, err := reopen(script, d, firstLog, log)
	require.NoError(t, err)
	require.Equal(t, 4, script.at(t, e.Engine))
	require.Equal(t, []Tail{{
		File: firstLog, Offset: int64(ends[4]), Bytes: int64(len(log) - ends[4]),
		Records: 5, Reason: "no frame of a record",
	}}, r.Dropped)
}

// Records behind a hole are no part of the log once it is filled, though it is by
// one that is as long.
func TestD3WhatWasDroppedDoesNotComeBack(t *testing.T) {
	script := newScript(t, 10)
	d, ends := written(t, script, Options{SyncEvery: -1})
	log := append([]byte(nil), d.names[firstLog].data...)
	clear(log[ends[4]:ends[5]])
	again := newDisk(1)
	again.names[firstLog] = &inode{data: log}
	e, _, err := open(simulated{again}, script.config(), Options{})
	require.NoError(t, err)
	require.NoError(t, script.call(e.Engine, 4))
	require.EqualValues(t, ends[5], e.journal.end)
	require.NoError(t, e.Close())
	e, _, err = open(simulated{again}, script.config(), Options{})
	require.NoError(t, err)
	require.Equal(t, 5, script.at(t, e.Engine))
}

// A payload may hold a log, even this one. Torn, it is still no record.
func TestD3ALogInAPayloadIsNoRecord(t *testing.T) {
	script := newScript(t, 5)
	d, ends := written(t, script, Options{})
	log := d.names[firstLog].data
	for shift := range 30 {
		torn := append(append([]byte(nil), log...), make([]byte, frameSize+shift)...)
		torn = append(torn, log[ends[1]:]...)
		e, r, err := reopen(script, d, firstLog, torn)
		require.NoError(t, err)
		require.Equal(t, 5, script.at(t, e.Engine))
		require.Zero(t, r.Dropped[0].Records)
	}
}

// rotated is a disk whose directory went through two rotations.
func rotated(t *testing.T, script *script) *disk {
	l := &life{t: t, script: script, disk: newDisk(1)}
	require.True(t, l.open(Options{}))
	for i := range 6 {
		require.NoError(t, script.call(l.Engine.Engine, i))
		if i == 1 || i == 3 {
			require.NoError(t, l.Rotate())
		}
	}
	require.NoError(t, l.Close())
	return l.disk.kill()
}

func TestD3WhatDoesNotBelongTogetherIsRefused(t *testing.T) {
	script := newScript(t, 8)
	for name, c := range map[string]struct {
		spoil func(d, other *disk)
		file  string
		found string
	}{
		"no log behind the snapshot": {
			func(d, _ *disk) { delete(d.names, "log-00000003") },
			"log-00000003", "no such file",
		},
		"no snapshot before the log": {
			func(d, _ *disk) { delete(d.names, "snapshot-00000003") },
			firstLog, "no such file",
		},
		"a gap between logs": {
			func(d, other *disk) { d.names["log-00000005"] = other.names["log-00000003"] },
			"log-00000004", "no such file",
		},
		"the log of another store": {
			func(d, other *disk) { d.names["log-00000003"] = other.names["log-00000003"] },
			"log-00000003", "belongs to store",
		},
		"the snapshot of another store": {
			func(d, other *disk) { d.names["snapshot-00000003"] = other.names["snapshot-00000003"] },
			"log-00000003", "belongs to store",
		},
		"a log under another's name": {
			func(d, _ *disk) { d.names["log-00000004"] = d.names["log-00000003"] },
			"log-00000004", "is number 3",
		},
		"a log as a snapshot": {
			func(d, _ *disk) { d.names["snapshot-00000003"] = d.names["log-00000003"] },
			"snapshot-00000003", "does not begin like",
		},
		"a newer log": {
			func(d, _ *disk) {
				b := d.names["log-00000003"].data
				b[magicSize]++
				copy(b[headerSize-4:], leaf(checksum(b[:headerSize-4])))
			},
			"log-00000003", "version 2",
		},
		"an end that is torn though a later log goes on": {
			func(d, _ *disk) {
				head := header(logMagic, identity(d.names["log-00000003"].data[magicSize+4:]), 4)
				d.names["log-00000003"].data = append(d.names["log-00000003"].data, 1)
				d.names["log-00000004"] = &inode{data: appendRecord(head, []byte("record"), sum(head), int64(headerSize), int64(headerSize))}
			},
			"log-00000003", "though a later log goes on",
		},
		"a whole record that says nothing": {
			func(d, _ *disk) {
				b := d.names["log-00000003"].data
				d.names["log-00000003"].data = appendRecord(b, []byte("record"), sum(b), int64(len(b)), int64(headerSize))
			},
			"log-00000003", "ends within the frame of a record",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := rotated(t, script)
			c.spoil(d, rotated(t, script))
			before := map[string]string{}
			for n, f := range d.names {
				before[n] = string(f.data)
			}
			_, _, err := open(simulated{d}, script.config(), Options{})
			var damaged *DamageError
			require.ErrorAs(t, err, &damaged)
			require.Equal(t, c.file, damaged.File)
			require.Contains(t, damaged.Found, c.found)
			require.Equal(t, name == "a newer log", damaged.Newer)
			require.False(t, d.held)
			for n, f := range d.names {
				require.Equal(t, before[n], string(f.data), "what cannot be opened stays as it is")
			}
			require.Len(t, d.names, len(before))
		})
	}
}

func leaf(v uint32) []byte { return []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)} }

// A rotation has begun a log and has not come to its snapshot. Each byte of each
// file is flipped, and each file is cut before each of its bytes: the state is
// one that there was, the last one unless the last log says what was dropped or
// ends with a record; or the file is named that cannot be used.
func TestD3WhateverByteIsFlippedOrCutTheStateIsNoGuess(t *testing.T) {
	script := newScript(t, 10)
	l := &life{t: t, script: script, disk: rotated(t, script), calls: 6}
	require.True(t, l.open(Options{}))
	require.NoError(t, l.journal.startLog())
	ends := []int64{l.journal.end}
	for i := 6; i < 10; i++ {
		require.NoError(t, script.call(l.Engine.Engine, i))
		ends = append(ends, l.journal.end)
	}
	require.NoError(t, l.Close())
	files := []string{"log-00000003", "log-00000004", "snapshot-00000003"}
	require.Equal(t, files, l.disk.list())

	for _, name := range files {
		whole := l.disk.names[name].data
		check := func(data []byte, what string) {
			e, r, err := reopen(script, l.disk, name, data)
			if err != nil {
				var damaged *DamageError
				require.ErrorAs(t, err, &damaged, "%s %s", name, what)
				require.Contains(t, files, damaged.File)
				require.False(t, damaged.Newer)
				return
			}
			require.Less(t, script.at(t, e.Engine), 10)
			require.Equal(t, files[1], name, what)
			require.True(t, len(r.Dropped) == 1 || slices.Contains(ends, int64(len(data))), "%s %s", name, what)
		}
		for i := range whole {
			flipped := slices.Clone(whole)
			flipped[i] ^= 0x10
			check(flipped, fmt.Sprint("flipped at ", i))
			check(slices.Clone(whole[:i]), fmt.Sprint("cut at ", i))
		}
	}
}

// What a rotation did not come to remove is removed by the next process.
func TestD3LeftoversAreRemoved(t *testing.T) {
	script := newScript(t, 8)
	d := rotated(t, script)
	for _, name := range []string{"log-00000002", "snapshot-00000002", "log-00000004.tmp", "snapshot-00000004.tmp", "notes.tmp"} {
		d.names[name] = &inode{data: []byte("whatever")}
	}
	e, _, err := open(simulated{d}, script.config(), Options{})
	require.NoError(t, err)
	require.Equal(t, 6, script.at(t, e.Engine))
	require.Equal(t, []string{"log-00000003", "notes.tmp", "snapshot-00000003"}, d.list())
}

// The files of each version can be opened by every later one, which goes on behind
// them in the log, and writes its own snapshots. A directory was made by six
// calls of the script with a rotation after the fourth, and holds half a seventh.
func TestD3FilesOfOldVersionsAreRead(t *testing.T) {
	for _, by := range []string{"v1", "v2"} {
		t.Run(by, func(t *testing.T) {
			script := newScript(t, 0)
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", by))))
			e, r, err := Open(dir, script.config(), Options{})
			require.NoError(t, err)
			require.Equal(t, 2, r.Records)
			require.Len(t, r.Dropped, 1)
			q, err := e.Queue(t.Context(), "q")
			require.NoError(t, err)
			require.Equal(t, []int64{3, 1, 2, 1}, []int64{q.Enqueued, q.Claims, q.Pending, q.Claimed})
			s, found, err := e.Lookup(t.Context(), "s0")
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, "@every 4s", s.Spec)
			script.clock.now = time.Unix(6, 0)
			lock, err := e.Lock(t.Context(), "l4", "another", time.Hour)
			require.NoError(t, err)
			require.Nil(t, lock, "it is held")
			for i := 5; i < 9; i++ {
				require.NoError(t, script.call(e.Engine, i))
			}
			state := stateOf(t, e.Engine)
			require.NoError(t, e.Close())

			e, r, err = Open(dir, script.config(), Options{})
			require.NoError(t, err)
			require.Empty(t, r.Dropped)
			require.Greater(t, r.Records, 2)
			require.Equal(t, state, stateOf(t, e.Engine))
			old, err := os.ReadFile(filepath.Join(dir, "snapshot-00000002"))
			require.NoError(t, err)
			require.NoError(t, e.Rotate())
			require.NoError(t, e.Close())
			latest, err := os.ReadFile(filepath.Join(dir, "snapshot-00000003"))
			require.NoError(t, err)
			require.NotEqual(t, old, latest)
			require.Equal(t, state, string(latest[headerSize:]), "as this version writes it")
			e, _, err = Open(dir, script.config(), Options{})
			require.NoError(t, err)
			require.Equal(t, state, stateOf(t, e.Engine))
			require.NoError(t, e.Close())
		})
	}
}

// What a later version has written is named by its file, and left as it is.
func TestD3ALaterVersionsSnapshotOrRecordIsRefused(t *testing.T) {
	script := newScript(t, 8)
	d := rotated(t, script)
	log, snapshot := d.names["log-00000003"].data, d.names["snapshot-00000003"].data

	later := slices.Clone(snapshot)
	later[headerSize+8]++
	copy(later[len(later)-4:], leaf(checksum(later[headerSize:len(later)-4])))
	_, _, err := reopen(script, d, "snapshot-00000003", later)
	require.ErrorIs(t, err, tickonce.ErrSnapshot)
	require.EqualError(t, err, fmt.Sprintf("snapshot-00000003 is newer than this version: at byte %d: version %d", headerSize+8, later[headerSize+8]))

	record, _, _ := recordAt(log, headerSize)
	record = slices.Clone(record)
	const inFrame = 12 // of memengine
	record[inFrame]++
	copy(record[4:], leaf(checksum(record[inFrame:])))
	copy(record[8:], leaf(checksum(record[:8])))
	_, _, err = reopen(script, d, "log-00000003", appendRecord(slices.Clone(log[:headerSize]), record, sum(log), int64(headerSize), int64(headerSize)))
	require.ErrorIs(t, err, tickonce.ErrSnapshot)
	require.EqualError(t, err, fmt.Sprintf("log-00000003 is newer than this version: at byte %d: record of a newer version", headerSize+frameSize+inFrame))
}

// Whatever the bytes behind a log's header are, they are read as records and a
// tail, or refused; and what was read stays what it was when it is read again.
func FuzzLog(f *testing.F) {
	script := newScript(f, 6)
	d, _ := written(f, script, Options{})
	l, err := scanLog(firstLog, d.names[firstLog].data)
	require.NoError(f, err)
	log, ends := header(logMagic, identity{1}, 1), []int(nil) // the same in each run
	for record := range l.records() {
		ends = append(ends, len(log))
		log = appendRecord(log, record, sum(log), int64(len(log)), int64(len(log)))
	}
	f.Add(log[headerSize:])
	f.Add(log[headerSize : len(log)-5])
	f.Add(append(append([]byte(nil), log[headerSize:ends[2]]...), log[ends[3]:]...))
	f.Fuzz(func(t *testing.T, rest []byte) {
		data := append(append([]byte(nil), log[:headerSize]...), rest...)
		l, err := scanLog(firstLog, data)
		if err != nil {
			require.ErrorIs(t, err, tickonce.ErrSnapshot)
			return
		}
		end := headerSize
		for record, at := range l.records() {
			require.Equal(t, end+frameSize, at)
			end = at + len(record)
		}
		require.Equal(t, l.end, end)
		require.Equal(t, l.tail == nil, l.end == len(data))
		again, err := scanLog(firstLog, data[:l.end])
		require.NoError(t, err)
		require.Nil(t, again.tail)
		require.Equal(t, l.end, again.end)

		_, _, err = reopen(script, d, firstLog, data)
		var damaged *DamageError
		if err != nil {
			require.ErrorAs(t, err, &damaged)
		}
	})
}
