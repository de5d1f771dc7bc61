package fileengine

import (
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
)

// Engine is an engine in memory whose state lasts in a directory. It is safe
// for concurrent use.
type Engine struct {
	*memengine.Engine
	journal *journal
	unlock  func() error
	onError func(error)
	closing sync.Once
}

// Options say how the state is kept. The zero value loses nothing.
type Options struct {
	// SyncEvery is how long what was written may wait until it is synced, which
	// is when it survives the fall of the machine: of the system, or of its
	// power. What was written survives the end of the process in any case.
	//
	// 0: it does not wait: a call returns, and others see what it changed, once
	// it is synced. More: that long, and as long as the sync takes. Less: it
	// waits for as long as the operating system keeps it waiting; only a
	// rotation syncs.
	SyncEvery time.Duration

	// RotateAt is how many bytes of log begin a rotation, which happens in the
	// background: a snapshot takes the place of the log. The log also has to be
	// longer than the last snapshot. 0: 64 MiB; less than 0: only
	// [Engine.Rotate] begins one.
	RotateAt int64

	// OnError gets the errors that no call returns, those of a rotation and of a
	// sync that waited, on a goroutine of their own, from which the engine may be
	// closed. It goes on otherwise, or the next write says that it does not. nil:
	// they are dropped.
	OnError func(error)
}

const defaultRotateAt = 64 << 20

// Open returns an engine with the state that is kept in the directory, and
// reports what it found there. If there is no directory it is made; its parent
// has to be there. A later change of the working directory moves nothing.
//
// Its errors are those of [memengine.New], those of the files, [ErrLocked], and
// a [*DamageError], which matches [tickonce.ErrSnapshot]. None of them changes
// the state in the directory.
func Open(path string, c tickonce.Config, o Options) (*Engine, Recovery, error) {
	dir, err := openFolder(path)
	if err != nil {
		return nil, Recovery{}, err
	}
	e, r, err := open(dir, c, o)
	r.Dropped = nameTails(path, r.Dropped)
	return e, r, named(path, err)
}

func open(dir directory, c tickonce.Config, o Options) (_ *Engine, r Recovery, err error) {
	unlock, err := dir.lock()
	if err != nil {
		return nil, r, err
	}
	e := &Engine{unlock: unlock, onError: o.OnError}
	e.journal = &journal{dir: dir, syncEvery: o.SyncEvery, rotateAt: o.RotateAt}
	if o.RotateAt == 0 {
		e.journal.rotateAt = defaultRotateAt
	}
	e.journal.rotate = func() {
		go func() { e.report(e.Rotate()) }()
	}
	e.journal.after = func(d time.Duration) {
		time.AfterFunc(d, func() { e.report(e.journal.syncNow()) })
	}
	if r, err = e.restore(c); err != nil {
		return nil, Recovery{}, errors.Join(err, unlock())
	}
	return e, r, nil
}

// restore makes the engine in memory of what the directory holds, and has it
// go on behind that.
func (e *Engine) restore(c tickonce.Config) (r Recovery, err error) {
	j := e.journal
	found, err := readDirectory(j.dir)
	if err != nil {
		return r, err
	}
	eng, recovered, err := memengine.Open(c, memengine.Durable{Snapshot: found.snapshot, Log: found.log(), Journal: j})
	if err := found.judge(recovered, err); err != nil {
		return r, err
	}
	e.Engine = eng
	r = Recovery{Created: len(found.logs) == 0, Records: recovered.Records, Invalid: recovered.Invalid, Dropped: found.dropped()}
	j.rotateEnd = max(j.rotateAt, int64(len(found.snapshot)))
	if r.Created {
		if _, err := rand.Read(j.id[:]); err != nil {
			return r, err
		}
		return r, j.startLog()
	}
	if err := found.mend(j.dir); err != nil {
		return r, err
	}
	j.id = found.id
	if err := j.goOn(&found.logs[len(found.logs)-1]); err != nil {
		return r, err
	}
	removeBefore(j.dir, found.first)
	return r, nil
}

// Rotate puts a snapshot of the state in the place of the logs, and then
// deletes them. Writes go on meanwhile, to a new log. If it fails the state is
// kept all the same, in the files that there are. It is safe to call at any
// time; a rotation that has begun ends first.
func (e *Engine) Rotate() error { return e.journal.replaceLogs(e.Snapshot) }

// Close ends the use of the directory: later writes answer [ErrClosed]. End the
// runners before. It waits for a rotation that has begun, and syncs what waits
// by [Options.SyncEvery]; its error is that of the sync. A second Close waits for
// the first, and does nothing.
func (e *Engine) Close() (err error) {
	e.closing.Do(func() { err = errors.Join(e.journal.close(), e.unlock()) })
	return err
}

func (e *Engine) report(err error) {
	if err != nil && !errors.Is(err, ErrClosed) && e.onError != nil {
		e.onError(err)
	}
}
