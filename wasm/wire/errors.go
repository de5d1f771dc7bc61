package wire

import (
	"context"
	"errors"

	"github.com/tickonce/tickonce"
)

// Error is a refusal on the wire, or why something ended. It matches the
// sentinel that its code stands for.
type Error struct {
	Code    string
	Message string
}

func (e *Error) Error() string { return e.Message }

// Is makes the error match its sentinel.
func (e *Error) Is(target error) bool {
	for _, c := range codes {
		if c.code == e.Code {
			return c.sentinel == target
		}
	}
	return false
}

// The codes that stand for no sentinel of package tickonce.
const (
	CodeRequest   = "invalid_request" // the request, or an argument, is malformed
	CodeClosed    = "closed"          // there is no such handle
	CodeInternal  = "internal"        // a fault of the guest: the handle is of no more use
	CodeAbandoned = "abandoned"       // a worker left jobs behind
	CodeTimeout   = "timeout"         // of the end of a run's context: [context.DeadlineExceeded]
	CodeStopped   = "stopped"         // the same, since its worker stops: [context.Canceled]
	CodeOther     = "error"           // any other
)

// codes are those of the sentinels.
var codes = [...]struct {
	code     string
	sentinel error
}{
	{"invalid_spec", tickonce.ErrInvalidSpec},
	{"invalid_name", tickonce.ErrInvalidName},
	{"reserved_name", tickonce.ErrReservedName},
	{"invalid_worker", tickonce.ErrInvalidWorker},
	{"invalid_option", tickonce.ErrInvalidOption},
	{"limit", tickonce.ErrLimit},
	{"not_found", tickonce.ErrNotFound},
	{"paused", tickonce.ErrPaused},
	{"overlap", tickonce.ErrOverlap},
	{"claim_lost", tickonce.ErrClaimLost},
	{"leadership_lost", tickonce.ErrLeadershipLost},
	{"conflict", tickonce.ErrConflict},
	{"snapshot", tickonce.ErrSnapshot},
	{"tx_done", tickonce.ErrTxDone},
	{CodeTimeout, context.DeadlineExceeded},
	{CodeStopped, context.Canceled},
}

// ErrorOf is the error as it goes over the wire.
func ErrorOf(err error) *Error {
	var sent *Error
	if errors.As(err, &sent) {
		return sent
	}
	e := &Error{Code: CodeOther, Message: err.Error()}
	var abandoned *tickonce.AbandonedError
	switch {
	case errors.As(err, new(*RequestError)):
		e.Code = CodeRequest
	case errors.As(err, &abandoned):
		e.Code = CodeAbandoned
	default:
		for _, c := range codes {
			if errors.Is(err, c.sentinel) {
				e.Code = c.code
				break
			}
		}
	}
	return e
}

func visitError(e *Error, o *object) {
	o.text("code", &e.Code)
	o.text("message", &e.Message)
}

// Text is the error as JSON.
func (e *Error) Text() []byte { return encode(nil, e, visitError) }

// ParseError reads what [Error.Text] wrote.
func ParseError(text []byte) (*Error, error) {
	e := &Error{}
	if err := decode(text, e, visitError); err != nil {
		return nil, err
	}
	return e, nil
}

// RequestError says what of a request is malformed, and what is allowed.
type RequestError struct {
	Where   string // as "options.timeoutMS"; "": the request itself
	Problem string
}

func (e *RequestError) Error() string {
	if e.Where == "" {
		return "invalid request: it " + e.Problem
	}
	return "invalid request: " + e.Where + " " + e.Problem
}
