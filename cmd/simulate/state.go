package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/gofrs/flock"

	"github.com/tickonce/tickonce/sim"
)

// stateEvery is how often what was done is kept while a sweep goes on, so that
// not more than this is lost with the machine.
const stateEvery = 10 * time.Second

// stateFile is where a sweep keeps what was done; one without a path keeps
// nothing.
type stateFile struct {
	path string
	kept time.Time
	err  error // of the last time
}

// keepAt keeps what was done, if it is time to.
func (f *stateFile) keepAt(now time.Time, r *sweepReport) {
	if now.Sub(f.kept) >= stateEvery {
		f.kept = now
		f.keep(r)
	}
}

// lockState keeps other sweeps from the file until unlock is called or the program
// is gone, however it ends. The lock is on a file beside it, since the file itself
// is replaced each time; that one stays.
func lockState(path string) (unlock func() error, err error) {
	lock := flock.New(path + ".lock")
	switch held, err := lock.TryLock(); {
	case err != nil:
		return nil, err
	case !held:
		return nil, fmt.Errorf("%s: another sweep keeps what it has done in this file, and holds %s.lock: wait until it has ended, or name another file", path, path)
	}
	return lock.Unlock, nil
}

func (f *stateFile) keep(r *sweepReport) {
	if f.path != "" {
		f.err = r.keep(f.path)
	}
}

// keep writes the part to a file: all of it or, on an error, nothing.
func (r *sweepReport) keep(path string) error {
	text, err := newSweepObject(r).text()
	if err != nil {
		return err
	}
	return writeFile(path, text)
}

// resume takes over what the file has of the runs that are asked for; if there
// is no such file, it is written, so that one that cannot be is found out now.
func resume(p *part, path string, asked sim.Seeds) error {
	old, err := readPart(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return (&sweepReport{part: p, asked: asked}).keep(path)
	case err != nil:
		return err
	}
	const anew = "; to begin anew, name another file"
	switch err := p.sameSweep(old); {
	case err != nil:
		return fmt.Errorf("%s: %w%s", path, err, anew)
	case old.seeds != p.seeds:
		return fmt.Errorf("%s: found a sweep of the seeds %s, want %s%s", path, old.seeds, p.seeds, anew)
	case !old.done.within(asked):
		return fmt.Errorf("%s: found runs of the seeds %s, want none but of %s%s", path, old.done, asked, anew)
	}
	p.done = old.done
	p.SweepResult.Merge(old.SweepResult)
	return nil
}
