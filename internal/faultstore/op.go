package faultstore

import (
	"errors"
	"strconv"
)

// Method names a method of [store.Store].
type Method uint8

// The methods.
const (
	Schedules Method = iota
	Jobs
	Queues
	Due
	Advance
	Claim
	Settle
	Extend
	Acquire
	Renew
	Release
	Commit
	Runs
	Skips
)

var methods = [...]string{
	Schedules: "schedules",
	Jobs:      "jobs",
	Queues:    "queues",
	Due:       "due",
	Advance:   "advance",
	Claim:     "claim",
	Settle:    "settle",
	Extend:    "extend",
	Acquire:   "acquire",
	Renew:     "renew",
	Release:   "release",
	Commit:    "commit",
	Runs:      "runs",
	Skips:     "skips",
}

// String returns the name in lower case.
func (m Method) String() string {
	if int(m) < len(methods) {
		return methods[m]
	}
	return "method " + strconv.Itoa(int(m))
}

// Op is one call.
type Op struct {
	Method Method
	Queue  string // of Jobs and Claim
	Lock   string // of Advance, Acquire, Renew and Release
	Number int64  // counts the calls of the [Store], from 1
}

// String returns the op as in "claim mail #7".
func (op Op) String() string {
	s := op.Method.String()
	if about := op.Queue + op.Lock; about != "" {
		s += " " + about
	}
	return s + " #" + strconv.FormatInt(op.Number, 10)
}

// ErrLost is what every [Lost] matches.
var ErrLost = errors.New("store call lost")

// Lost is the error of a call whose request or reply was lost.
type Lost struct {
	Op      Op
	Applied bool // the store made the call and returned no error
}

// Error returns the same text whether the call was applied or not.
func (e *Lost) Error() string { return ErrLost.Error() + ": " + e.Op.String() }

// Is reports whether target is [ErrLost].
func (e *Lost) Is(target error) bool { return target == ErrLost }
