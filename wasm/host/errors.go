package host

import (
	"errors"

	"github.com/tickonce/tickonce"
)

// ErrClosed: the engine was closed.
var ErrClosed = errors.New("the engine is closed")

// DeadError says that the engine's instance of the guest is gone, and why: it
// trapped, met a limit of [Options], or found a fault of its own. What it had not
// yet told is undone. With [Config.Reopen] the next call opens another one; else
// every call answers this error, and the state is to be opened anew from the last
// snapshot and the journal's log behind it.
type DeadError struct{ Cause error }

func (e *DeadError) Error() string {
	return "the guest is dead, open its last snapshot and log anew: " + e.Cause.Error()
}

func (e *DeadError) Unwrap() error { return e.Cause }

func optionError(option, problem string) error {
	return &tickonce.OptionError{Option: option, Problem: problem}
}
