package tickonce

import (
	"errors"
	"strconv"

	"github.com/tickonce/tickonce/internal/core"
)

// The sentinels on which a caller can decide, matched with errors.Is. Refused
// input (the first five) changes nothing.
var (
	// ErrInvalidSpec: the text is no spec of the grammar; details in
	// [*SpecError].
	ErrInvalidSpec = core.ErrInvalidSpec

	// ErrInvalidName: a name is empty, too long or malformed; details in
	// [*NameError].
	ErrInvalidName = core.ErrInvalidName

	// ErrReservedName: a name begins with "__alkstore_"; details in
	// [*NameError].
	ErrReservedName = core.ErrReservedName

	// ErrInvalidWorker: the name of a worker, or of a lock's owner, is empty.
	ErrInvalidWorker = errors.New("invalid worker: the name is empty")

	// ErrInvalidOption: an option is out of its range; details in
	// [*OptionError].
	ErrInvalidOption = errors.New("invalid option")

	// ErrLimit: a limit would be exceeded; details in [*LimitError].
	ErrLimit = errors.New("limit exceeded")

	// ErrNotFound: there is no such job, in a state that allows the call, or
	// no such schedule.
	ErrNotFound = errors.New("not found")

	// ErrPaused: the schedule is paused, by whatever reason.
	ErrPaused = errors.New("the schedule is paused")

	// ErrOverlap: a job of the schedule is live, and its policy of overlap lets
	// no second one be (X9).
	ErrOverlap = errors.New("a job of the schedule is live")

	// ErrClaimLost: the claim is not the live one any more; another worker may
	// have the job. Drop the work.
	ErrClaimLost = errors.New("claim lost")

	// ErrLeadershipLost: another runner holds the scheduler's lock.
	ErrLeadershipLost = errors.New("leadership lost: another runner holds the scheduler's lock")

	// ErrConflict: a schedule changed since it was read. Read anew.
	ErrConflict = errors.New("conflict: the schedule changed since it was read")

	// ErrSnapshot: a snapshot or journal is damaged, or was written by a newer
	// version.
	ErrSnapshot = errors.New("unusable snapshot")

	// ErrTxDone: the function of the transaction has returned.
	ErrTxDone = errors.New("the transaction is over")
)

// SpecError says where the text of a spec leaves the grammar, what stood there
// and what is allowed (G4). It matches [ErrInvalidSpec].
type SpecError = core.SpecError

// NameError says which name is refused and why (N2). It matches
// [ErrInvalidName] or [ErrReservedName].
type NameError = core.NameError

// OptionError says which option is refused, and what is allowed. It matches
// [ErrInvalidOption].
type OptionError struct {
	Option  string
	Problem string // what it is, and what is allowed
}

func (e *OptionError) Error() string {
	return "invalid option: " + e.Option + " " + e.Problem
}

// Is makes the error match [ErrInvalidOption].
func (e *OptionError) Is(target error) bool { return target == ErrInvalidOption }

// LimitError says which limit was met. It matches [ErrLimit].
type LimitError struct {
	Limit string // the field of [Limits]
	Max   int64
	Got   int64 // what would have come of the call
	Where string
}

func (e *LimitError) Error() string {
	msg := "limit exceeded: " + e.Limit + " is " + strconv.FormatInt(e.Max, 10) +
		", this would make " + strconv.FormatInt(e.Got, 10)
	if e.Where != "" {
		msg += " in " + strconv.Quote(e.Where)
	}
	return msg
}

// Is makes the error match [ErrLimit].
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// Phase is a phase of the runner, a worker or a listener, as errors, events and reports
// name it.
type Phase string

// The phases of the runner that make a store call (N7).
const (
	PhaseAcquire Phase = "acquire"
	PhaseRenew   Phase = "renew"
	PhaseSelect  Phase = "select"
	PhaseAdvance Phase = "advance"
	PhaseRelease Phase = "release"
)

// The phases of a worker.
const (
	PhaseExtend Phase = "extend"
	PhaseSettle Phase = "settle"
	PhaseClaim  Phase = "claim"
	PhaseAsk    Phase = "ask"
)

// PhaseListen is that of pgengine's Listen, which wakes the loops of an engine by
// what others write.
const PhaseListen Phase = "listen"

// OpError is an operation that failed on its store, or lost its place to
// another. It unwraps to the cause. Of a store's error the outcome is unknown:
// what was asked for may or may not have happened.
type OpError struct {
	Op       string // "schedule", "claim", "run schedules", …
	Phase    Phase  // of a runner or worker
	Schedule string // the row at fault, or the first of the batch (R7)
	Rows     int    // the size of that batch
	Queue    string
	Err      error
}

func (e *OpError) Error() string {
	msg := e.Op
	if e.Phase != "" {
		msg += ": " + string(e.Phase)
	}
	if e.Schedule != "" {
		msg += ": schedule " + strconv.Quote(e.Schedule)
		if e.Rows > 1 {
			msg += " and " + strconv.Itoa(e.Rows-1) + " more"
		}
	}
	if e.Queue != "" {
		msg += ": queue " + strconv.Quote(e.Queue)
	}
	return msg + ": " + e.Err.Error()
}

func (e *OpError) Unwrap() error { return e.Err }

// AbandonedError says what a worker left behind when it ended: jobs whose
// claims lapse, so that others get them, each for one of its attempts.
type AbandonedError struct {
	Queue     string
	Running   int // handlers that have not returned, and may go on
	Unsettled int // handlers that have, but the store did not take their ends
}

func (e *AbandonedError) Error() string {
	return "run worker: queue " + strconv.Quote(e.Queue) + ": left to lapse: handlers that did not return: " +
		strconv.Itoa(e.Running) + ", settlements that failed: " + strconv.Itoa(e.Unsettled)
}
