package fileengine

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tickonce/tickonce/memengine"
)

// Recording is the state that was found in a directory, read without opening it,
// as a recording of what led to it (D5).
type Recording struct {
	// Durable is what [memengine.Replay] goes through. It has no journal.
	memengine.Durable

	// Dropped are the ends of logs that are no whole records, as in [Recovery]. The
	// last one may be a record that was being written.
	Dropped []Tail

	path  string
	plain string // the name of a log that is none of a directory
	contents
}

// Read reads the state in a directory, or that of a log alone: one of a directory,
// or a file that holds what a [memengine.Journal] was given. Nothing is changed,
// and no lock is asked for or waited for: another process may have the directory
// open, and what is read then is its state at some instant meanwhile.
//
// Its errors are those of the files, and a [*DamageError].
func Read(path string) (*Recording, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	r := &Recording{path: path}
	if info.IsDir() {
		err = r.readAll(folder(path))
	} else {
		r.path = filepath.Dir(path)
		err = r.readOne(folder(r.path), filepath.Base(path))
	}
	if err != nil {
		return nil, named(r.path, err)
	}
	r.Snapshot = r.snapshot
	r.Dropped = nameTails(r.path, r.dropped())
	return r, nil
}

// readAll reads the directory, and once more if a rotation took files away while
// it was read.
func (r *Recording) readAll(dir directory) error {
	for {
		before, err := dir.names()
		if err != nil {
			return err
		}
		c, err := readDirectory(dir)
		if err == nil && len(c.logs) == 0 {
			return &fs.PathError{Op: "read", Path: r.path, Err: errors.New("no engine has kept its state there")}
		}
		if err == nil {
			r.contents = *c
			r.Log = c.log()
			return nil
		}
		if after, listed := dir.names(); listed != nil || slices.Equal(before, after) {
			return err
		}
	}
}

// readOne reads a log alone, of whatever name.
func (r *Recording) readOne(dir directory, name string) error {
	b, err := dir.read(name)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(b, []byte(logMagic)) {
		r.plain, r.Log = name, b
		return nil
	}
	generation := uint64(0)
	if len(b) >= headerSize {
		generation = generationIn(b)
	}
	if r.id, err = checkHeader(name, b, logMagic, generation); err != nil {
		return err
	}
	l, err := scanLog(name, b)
	r.logs = []logFile{l}
	r.Log = r.log()
	return err
}

// Judge says in terms of the files what a replay of the recording has found,
// which came to this: a [*DamageError], or what was dropped.
func (r *Recording) Judge(replayed memengine.Recovery, err error) error {
	var damaged *memengine.SnapshotError
	switch {
	case r.plain == "":
		err = r.judge(replayed, err)
	case errors.As(err, &damaged):
		err = &DamageError{File: r.plain, Offset: damaged.Offset, Newer: damaged.Newer, Found: damaged.Reason}
	case err == nil && replayed.Torn != "" && replayed.Offset == 0:
		err = &fs.PathError{Op: "read", Path: filepath.Join(r.path, r.plain), Err: errors.New("no journal of an engine: it does not begin with a record")}
	case err == nil && replayed.Torn != "":
		rest := int64(len(r.Log)) - replayed.Offset
		r.Dropped = []Tail{{File: filepath.Join(r.path, r.plain), Offset: replayed.Offset, Bytes: rest, Reason: replayed.Torn}}
	}
	return named(r.path, err)
}
