package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// writeFile gives a file another text, or makes one: all of it or, on an error,
// nothing. What is there and is no file, as a pipe or /dev/null, is written to and
// stays what it is.
func writeFile(path, text string) error {
	mode := fs.FileMode(0o644)
	info, err := os.Stat(path)
	switch {
	case err != nil:
	case info.IsDir():
		return fmt.Errorf("%s is a folder, want the name of a file", path)
	case !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Close())
	default:
		mode = info.Mode()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
