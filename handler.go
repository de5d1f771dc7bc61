package tickonce

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Handler does a job. What it returns ends the job's attempt: nil acks it, an
// error retries it after the job's curve (QU6), and [Permanent], [Transient] and
// [RetryAfter] mark an error that does otherwise. A panic counts as an error.
// A handler leaves the settlement to whoever calls it, must bear running twice
// for one job, and returns soon after its context has ended, whose cause tells
// why.
type Handler func(ctx context.Context, job *Job) error

// mark says what a marked error makes of its job.
type mark struct {
	err       error
	permanent bool
	delayMS   int64 // -1: after the curve
}

func (m *mark) Error() string { return m.err.Error() }
func (m *mark) Unwrap() error { return m.err }

// Permanent marks an error for which another attempt would be in vain: the job
// is dead at once, with the error's text (QU7). It returns nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &mark{err: err, permanent: true}
}

// Transient marks an error after which another attempt may do: the job is
// retried after its curve, whatever the error wraps. That is what an unmarked
// error does, but for one of a delivery (X6). It returns nil for nil.
func Transient(err error) error {
	if err == nil {
		return nil
	}
	return &mark{err: err, delayMS: -1}
}

// RetryAfter marks an error after which the job is ready again d later, rounded
// up to a millisecond as far as a [time.Duration] goes, and at once where d is
// negative; at the last attempt it is dead (QU6). It returns nil for a nil error.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	ms := max(d.Milliseconds(), 0)
	if d > 0 && d%time.Millisecond != 0 && ms < time.Duration(1<<63-1).Milliseconds() {
		ms++
	}
	return &mark{err: err, delayMS: ms}
}

// Panicked is the error of a handler that panicked where no [Run.Call] was, as
// in another process, with the text of the panic.
func Panicked(text string) error { return &panicError{text: text} }

// markOf is the first mark along the error's chain, or nil. A chain that
// panics when it is asked bears none.
func markOf(err error) (m *mark) {
	defer func() { _ = recover() }()
	if errors.As(err, &m) {
		return m
	}
	return nil
}

// Mark says how a marked error has its job tried again.
type Mark struct {
	Permanent bool          // not at all
	After     time.Duration // of [RetryAfter]: the wait; else -1: after the job's curve
}

// MarkOf returns the mark of an error, the first along its chain, for a host
// that hands it on to an engine elsewhere. False: it has none.
func MarkOf(err error) (Mark, bool) {
	m := markOf(err)
	switch {
	case m == nil:
		return Mark{}, false
	case m.permanent || m.delayMS < 0:
		return Mark{Permanent: m.permanent, After: -1}, true
	}
	return Mark{After: durationOf(m.delayMS)}, true
}

// panicError is a panic of a handler.
type panicError struct {
	text  string
	place string // where it arose, or ""
}

func (e *panicError) Error() string { return "panic: " + e.text }

// exitError is of a handler that ended its goroutine.
type exitError string

func (e exitError) Error() string { return string(e) }

// timeoutError is of a run that met its deadline (X5).
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return "timed out after " + e.after.String() }
func (e *timeoutError) Timeout() bool { return true }

// contained calls the handler and turns a panic into a [*panicError] (O2).
func contained(ctx context.Context, job *Job, handle Handler) (err error) {
	returned := false
	defer func() {
		if !returned {
			p := recover() // nil, too, may have been thrown
			err = &panicError{textOf(p), panicPlace()}
		}
	}()
	err = handle(ctx, job)
	returned = true
	return err
}

// panicPlace is where the panic arose that a deferred caller recovered from,
// as "example.com/mail.send (send.go:42)", or "".
func panicPlace() string {
	var stack [64]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(1, stack[:])])
	for thrown := false; ; {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			thrown = true
		case thrown && !strings.HasPrefix(frame.Function, "runtime."):
			file := frame.File[strings.LastIndexAny(frame.File, `/\`)+1:]
			return frame.Function + " (" + file + ":" + strconv.Itoa(frame.Line) + ")"
		}
		if !more {
			return ""
		}
	}
}

// textOf is the text of an error, or of what was thrown, without package fmt.
// It may panic itself, as that of a nil pointer does.
func textOf(p any) (text string) {
	defer func() {
		if recover() != nil {
			text = "an error without a text: asking for it panics"
		}
	}()
	switch p := p.(type) {
	case nil:
		return "nil"
	case error:
		return p.Error()
	case string:
		return p
	case interface{ String() string }:
		return p.String()
	case int:
		return strconv.Itoa(p)
	default:
		return "a value that is neither an error nor a string"
	}
}
