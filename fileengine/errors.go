package fileengine

import (
	"errors"
	"fmt"

	"github.com/tickonce/tickonce"
)

var (
	// ErrLocked says that another engine, of this process or another, has the
	// directory open.
	ErrLocked = errors.New("the directory is in use by another engine")

	// ErrClosed is the error of a write after [Engine.Close].
	ErrClosed = errors.New("the engine is closed")
)

// DamageError says which file of a directory cannot be used, and why. It is
// damaged or, if Newer, was written by a later version. It matches
// [tickonce.ErrSnapshot]. Nothing in the directory has been changed.
type DamageError struct {
	File   string // its path
	Offset int64  // in bytes, of what is wrong
	Newer  bool
	Found  string
}

func (e *DamageError) Error() string {
	if e.Newer {
		return fmt.Sprintf("%s is newer than this version: at byte %d: %s", e.File, e.Offset, e.Found)
	}
	return fmt.Sprintf("%s is damaged: at byte %d: %s; restore a copy of the directory", e.File, e.Offset, e.Found)
}

// Is makes the error match [tickonce.ErrSnapshot].
func (e *DamageError) Is(target error) bool { return target == tickonce.ErrSnapshot }
