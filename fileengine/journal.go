package fileengine

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// journal appends records to the last log of a directory. It implements
// [memengine.Journal].
//
// The engine calls Append under its store's lock, so the locks are taken in the
// order rotating, the store's (for a snapshot), syncing, mu.
type journal struct {
	dir       directory
	id        identity
	syncEvery time.Duration
	rotateAt  int64
	rotate    func()              // what a rotation does in the background
	after     func(time.Duration) // calls syncNow after so long

	rotating sync.Mutex // held by a rotation
	syncing  sync.Mutex // held while the last log is synced or replaced

	mu         sync.Mutex
	closed     bool
	generation uint64 // of the last log
	log        file
	head       uint32 // the checksum of its header
	untouched  bool   // nothing was written behind that
	end        int64  // where the next record goes
	synced     int64  // up to where it is certainly on disk
	timed      bool   // syncNow will be called
	rotates    bool   // a rotation has begun, or is about to
	rotateEnd  int64  // where the log is long enough for one
	buffer     []byte

	// distrusted is why the logs may not hold what was acknowledged, or hold
	// more. Nothing is appended until a snapshot has taken their place.
	distrusted error
	failures   int // that led to distrust
}

// remedy ends every error of the disk, behind what has become of the state.
const remedy = ": make room on the disk, or mend it; no restart is needed"

// Append implements [memengine.Journal].
func (j *journal) Append(record []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return ErrClosed
	case j.distrusted != nil:
		j.beginRotation()
		return j.distrusted
	}
	if err := j.write(record); err != nil {
		return err
	}
	switch {
	case j.syncEvery == 0:
		if err := j.log.Sync(); err != nil {
			return j.distrust(err)
		}
		j.synced = j.end
	case j.syncEvery > 0 && !j.timed:
		j.timed = true
		j.after(j.syncEvery)
	}
	if j.rotateAt > 0 && j.end >= j.rotateEnd {
		j.beginRotation()
	}
	return nil
}

// write writes a record behind the last one. If that fails, as on a full disk,
// what came to the file is cut off again.
func (j *journal) write(record []byte) error {
	b := appendRecord(j.buffer[:0], record, j.head, j.end, j.synced)
	if cap(b) <= 1<<20 {
		j.buffer = b
	}
	j.untouched = false
	if _, err := j.log.WriteAt(b, j.end); err != nil {
		if cut := errors.Join(j.log.Truncate(j.end), j.log.Sync()); cut != nil {
			return j.distrust(errors.Join(err, cut))
		}
		return fmt.Errorf("%w; nothing has changed, and the next call is tried again%s", err, remedy)
	}
	j.end += int64(len(b))
	return nil
}

// distrust ends the use of the logs. After a failed sync nobody knows what is on
// disk: the system may have dropped what it could not write, and then answers
// that the next sync has succeeded.
func (j *journal) distrust(err error) error {
	j.failures++
	err = fmt.Errorf("%w; nothing is recorded until a snapshot has taken the place of the log, which each call begins%s", err, remedy)
	if j.distrusted == nil {
		j.distrusted = err
	}
	return err
}

func (j *journal) beginRotation() {
	if !j.rotates && !j.closed {
		j.rotates = true
		j.rotate()
	}
}

// syncNow syncs what a timer was set for.
func (j *journal) syncNow() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	j.timed = false
	closed := j.closed
	j.mu.Unlock()
	if closed {
		return nil
	}
	return j.flush()
}

// flush syncs what has been appended, while more may be. The caller holds
// syncing.
func (j *journal) flush() error {
	j.mu.Lock()
	log, end, dirty := j.log, j.end, j.end > j.synced && j.distrusted == nil
	j.mu.Unlock()
	if !dirty {
		return nil
	}
	err := log.Sync()
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		return j.distrust(err)
	}
	j.synced = max(j.synced, end)
	return nil
}

// place makes a whole file, or none, that lasts.
func (j *journal) place(name string, parts ...[]byte) error {
	err := j.fill(name+temporary, parts)
	if err == nil {
		err = j.dir.rename(name+temporary, name)
	}
	if err != nil {
		_ = j.dir.remove(name + temporary)
		return err
	}
	return j.dir.sync()
}

func (j *journal) fill(name string, parts [][]byte) error {
	f, err := j.dir.create(name)
	if err != nil {
		return err
	}
	at := int64(0)
	for _, part := range parts {
		if err == nil {
			_, err = f.WriteAt(part, at)
			at += int64(len(part))
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// startLog makes a new log and has what comes go to it. What is in the one
// before is on disk then, unless that is distrusted. An untouched log is as good as
// a new one, or a disk without room for a snapshot would be filled with logs. The
// caller holds rotating.
func (j *journal) startLog() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	_ = j.flush() // the most of it, while more is appended
	j.mu.Lock()
	untouched := j.untouched
	j.mu.Unlock()
	if untouched {
		return nil
	}

	generation := j.generation + 1
	name, head := fileName(logPrefix, generation), header(logMagic, j.id, generation)
	if err := j.place(name, head); err != nil {
		return err
	}
	log, err := j.dir.open(name)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.log != nil {
		if j.end > j.synced && j.distrusted == nil {
			if err := j.log.Sync(); err != nil {
				_ = j.distrust(err)
			}
		}
		_ = j.log.Close()
	}
	j.generation, j.log, j.head, j.untouched = generation, log, sum(head), true
	j.end, j.synced = int64(headerSize), int64(headerSize)
	return nil
}

// goOn has what comes go to the end of a log that is there.
func (j *journal) goOn(l *logFile) (err error) {
	j.log, err = j.dir.open(l.name)
	j.generation, j.head = l.generation, sum(l.data)
	j.end, j.synced = int64(l.end), int64(l.end)
	return err
}

// replaceLogs puts a snapshot in the place of the logs.
func (j *journal) replaceLogs(snapshot func() ([]byte, error)) (err error) {
	j.rotating.Lock()
	defer j.rotating.Unlock()
	size := 0
	defer func() {
		if err != nil && err != ErrClosed {
			err = fmt.Errorf("%w; the state stays in the logs, in the place of which no snapshot has come%s", err, remedy)
		}
		j.mu.Lock()
		j.rotates = false
		j.rotateEnd = j.end + min(max(j.rotateAt, int64(size)), math.MaxInt64-j.end)
		j.mu.Unlock()
	}()
	j.mu.Lock()
	closed := j.closed
	j.mu.Unlock()
	if closed {
		return ErrClosed
	}
	if err := j.startLog(); err != nil {
		return err
	}
	j.mu.Lock()
	failures := j.failures
	j.mu.Unlock()
	state, err := snapshot()
	if err != nil {
		return err
	}
	size = len(state)
	if err := j.place(fileName(snapshotPrefix, j.generation), header(snapshotMagic, j.id, j.generation), state); err != nil {
		return err
	}
	j.mu.Lock()
	if j.failures == failures { // none since before the snapshot
		j.distrusted = nil
	}
	j.mu.Unlock()
	removeBefore(j.dir, j.generation)
	return nil
}

// close syncs what was appended, unless that is left to the system.
func (j *journal) close() error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.rotating.Lock()
	defer j.rotating.Unlock()
	j.syncing.Lock()
	defer j.syncing.Unlock()
	var err error
	if j.syncEvery >= 0 {
		err = j.flush()
	}
	return errors.Join(err, j.log.Close())
}
