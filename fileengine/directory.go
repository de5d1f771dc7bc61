package fileengine

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gofrs/flock"
)

// directory is what an engine asks of the disk. Names are those of files in it.
type directory interface {
	// lock keeps other engines out until it is undone.
	lock() (unlock func() error, err error)
	names() ([]string, error)
	read(name string) ([]byte, error)
	create(name string) (file, error) // empty, also if it was there
	open(name string) (file, error)   // to write
	rename(from, to string) error
	remove(name string) error
	sync() error // makes created, renamed and removed names last
}

// file is one that is written.
type file interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// folder is a directory of the operating system.
type folder string

// openFolder makes the directory if it is not there. Its parent has to be.
func openFolder(path string) (folder, error) {
	if path == "" { // which filepath takes for the working directory
		return "", &fs.PathError{Op: "mkdir", Path: path, Err: fs.ErrNotExist}
	}
	made := os.Mkdir(path, 0o700)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return "", made
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	// One that is there may have been made by a process that was killed here.
	if err := folder(filepath.Dir(path)).sync(); err != nil && made == nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return folder(path), nil
}

func (d folder) path(name string) string { return filepath.Join(string(d), name) }

// lock holds nobody off on a platform without locks, which has one process.
func (d folder) lock() (func() error, error) {
	l := flock.New(d.path(lockName), flock.SetPermissions(0o600))
	locked, err := l.TryLock()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return func() error { return nil }, nil
	case err != nil:
		return nil, err
	case !locked:
		return nil, ErrLocked
	}
	return l.Unlock, nil
}

func (d folder) names() (names []string, err error) {
	entries, err := os.ReadDir(string(d))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (d folder) read(name string) ([]byte, error) { return os.ReadFile(d.path(name)) }

func (d folder) create(name string) (file, error) {
	return os.OpenFile(d.path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

func (d folder) open(name string) (file, error) { return os.OpenFile(d.path(name), os.O_WRONLY, 0) }

func (d folder) rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

func (d folder) remove(name string) error { return os.Remove(d.path(name)) }

// sync does nothing where a directory cannot be synced.
func (d folder) sync() error {
	if runtime.GOOS == "windows" || runtime.GOOS == "wasip1" {
		return nil
	}
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
