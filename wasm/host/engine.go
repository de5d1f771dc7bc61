package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/wasm/wire"
)

// Engine is an engine in an instance of the guest. Its methods are those of a
// native one, see [tickonce.Engine], and so are their errors, as far as the
// sentinels go; a native error's type does not pass out of the guest. An option
// that cannot pass in, such as a fraction of a millisecond, is
// [tickonce.ErrInvalidOption].
//
// One call at a time is in the guest. A ctx is looked at before a call, which
// then goes on to its end. Beside what they have natively, methods return
// [ErrClosed], a [*DeadError], and the journal's error in a
// [*tickonce.OpError]. It is safe for concurrent use.
type Engine struct {
	module *Module
	config Config // with its defaults
	setup  []byte // the same for the guest

	mu     sync.Mutex
	guest  *instance // nil: dead or closed
	opened int       // instances so far
	dead   error     // of what
	closed bool

	held   []wire.Record    // what the journal has not taken, and what comes behind that
	events []tickonce.Event // that the observer is to be told, outside the lock
	over   []chan struct{}  // of loops that have ended, to be closed behind them

	woken signal // there may be more to do for the loops
	moved signal // there may be details to read

	runner  *runner
	workers []*worker // in the order of their calls
	runs    map[int64]*run
	ends    []end // of runs, which the guest is to be told
	driven  bool  // a goroutine steps the guest
}

// signal wakes whoever waits. The engine's lock guards it.
type signal struct{ wait chan struct{} }

// next is closed at the next raise.
func (s *signal) next() <-chan struct{} {
	if s.wait == nil {
		s.wait = make(chan struct{})
	}
	return s.wait
}

func (s *signal) raise() {
	if s.wait != nil {
		close(s.wait)
		s.wait = nil
	}
}

// Config returns the configuration with its defaults filled in.
func (e *Engine) Config() Config { return e.config }

// reads tells the calls that write nothing, and wake nobody.
func reads(op wire.Op) bool {
	switch op {
	case wire.OpLookup, wire.OpSchedules, wire.OpDeliver, wire.OpSummarize, wire.OpDead, wire.OpNextClaim, wire.OpQueue,
		wire.OpQueues, wire.OpHistory, wire.OpSkips, wire.OpTotals, wire.OpWhy, wire.OpDetails:
		return true
	default:
		return false
	}
}

// call makes a call of the guest.
func (e *Engine) call(ctx context.Context, op wire.Op, r *wire.Request) (*wire.Reply, error) {
	a, err := e.exchange(ctx, op, r, 0)
	return a.Reply, err
}

// answer is what a call brings.
type answer struct {
	*wire.Reply
	jobs []*Job // that it claimed
	from int    // which of the instances answered
}

// exchange makes a call of the guest. One that has claims or the term of a lock is
// of the instance that gave them, and is ErrClaimLost if another took its place:
// where that has an older state it gives the same tokens again, to others (D6).
// Of 0 is of any.
func (e *Engine) exchange(ctx context.Context, op wire.Op, r *wire.Request, of int) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	if err := sendable(r); err != nil {
		return answer{}, err
	}
	request := r.Encode(op)
	e.mu.Lock()
	defer e.unlock()
	if err := e.ready(ctx); err != nil {
		return answer{}, refused(op.String(), err)
	}
	if of != 0 && of != e.opened {
		return answer{}, tickonce.ErrClaimLost
	}
	var reply *wire.Reply
	claimed, err := e.do(ctx, func(i *instance) error {
		text, err := i.call(ctx, e.now(), op, request)
		if err == nil {
			if reply, err = wire.ParseReply(text); err != nil {
				err = i.died(err)
			}
		}
		return err
	})
	if !reads(op) && !(op == wire.OpTx && r.Plan) { // after an error, too: it may be done
		e.woken.raise()
		e.moved.raise()
	}
	if err != nil {
		return answer{}, refused(op.String(), err)
	}
	a := answer{Reply: reply, from: e.opened}
	for i := range claimed {
		a.jobs = append(a.jobs, e.jobOf(&claimed[i]))
	}
	return a, nil
}

// unlock gives the lock back, and then tells of what happened under it.
func (e *Engine) unlock() {
	events, over := e.events, e.over
	e.events, e.over = nil, nil
	e.mu.Unlock()
	for _, event := range events {
		e.tell(event)
	}
	for _, done := range over {
		close(done)
	}
}

// tell tells the observer. Its panic is contained: what happened has happened.
func (e *Engine) tell(event tickonce.Event) {
	defer func() { _ = recover() }()
	e.config.Observer(event)
}

// sendable refuses names that do not pass into the guest as they are.
func sendable(r *wire.Request) error {
	for _, name := range [...]struct{ what, text string }{
		{"name", r.Name},
		{"queue", r.Queue},
		{"outbox", r.Outbox},
		{"worker", r.Worker},
		{"owner", r.Owner},
		{"key", r.Enqueue.Key},
		{"worker", r.Work.Name},
	} {
		if !utf8.ValidString(name.text) {
			return &tickonce.NameError{What: name.what, Name: name.text, Problem: "is not valid UTF-8", Kind: tickonce.ErrInvalidName}
		}
	}
	return nil
}

// unstored is the journal's error.
type unstored struct{ error }

// refused is an error as a method answers it.
func refused(op string, err error) error {
	if lost, ok := err.(unstored); ok {
		return &tickonce.OpError{Op: op, Err: lost.error}
	}
	var refusal *wire.Error
	if errors.As(err, &refusal) && refusal.Code == wire.CodeRequest {
		return fmt.Errorf("%w: %w", tickonce.ErrInvalidOption, refusal)
	}
	return err
}

// ready makes the guest ready for a call, under the lock: the instance is alive,
// and has nothing that the journal did not take. Otherwise no call may be made.
func (e *Engine) ready(ctx context.Context) error {
	if e.closed {
		return ErrClosed
	}
	if e.guest == nil {
		if e.config.Reopen == nil {
			return &DeadError{e.dead}
		}
		snapshot, log, err := e.config.Reopen()
		var found memengine.Recovery
		if err == nil {
			found, err = e.open(ctx, snapshot, log)
		}
		if err == nil && found.Torn != "" && e.config.Journal != nil { // it would append behind that
			e.guest.discard()
			e.guest = nil
			err = fmt.Errorf("the log %s: cut it at byte %d", found.Torn, found.Offset)
		}
		if err != nil {
			return &DeadError{errors.Join(e.dead, fmt.Errorf("open it anew: %w", err))}
		}
		e.dead = nil
	}
	_, err := e.flush() // what a call claimed whose answer was lost is left to lapse
	return err
}

// do makes a call of the guest that is ready, under the lock, and then does what
// the records of the call say, once the journal has them.
func (e *Engine) do(ctx context.Context, call func(*instance) error) ([]wire.Record, error) {
	err := call(e.guest)
	if e.buried(err) {
		return nil, &DeadError{e.dead}
	}
	out, outErr := e.guest.out(ctx)
	if outErr == nil {
		var records []wire.Record
		records, outErr = wire.ParseRecords(out, wire.RecordFired) // which nobody asks for
		e.held = append(e.held, records...)
		if outErr != nil {
			outErr = e.guest.died(outErr)
		}
	}
	if e.buried(outErr) {
		return nil, &DeadError{e.dead}
	}
	claimed, lost := e.flush()
	if lost != nil {
		return nil, lost
	}
	return claimed, err
}

// flush appends the records of the journal that are held, and then does what the
// others say. It answers the jobs that were claimed by a call.
func (e *Engine) flush() (claimed []wire.Record, err error) {
	if e.config.Journal != nil {
		for i := range e.held {
			r := &e.held[i]
			if r.Kind != wire.RecordJournal || r.Data == nil {
				continue
			}
			if err := e.config.Journal.Append(r.Data); err != nil {
				return nil, unstored{err}
			}
			r.Data = nil // taken
		}
	}
	for i := range e.held {
		switch r := &e.held[i]; r.Kind {
		case wire.RecordBegun:
			if r.Run == 0 {
				claimed = append(claimed, *r)
			} else {
				e.begin(r)
			}
		case wire.RecordEnded:
			if begun := e.runs[r.Run]; begun != nil {
				begun.cancel(begun.cause(r.Err))
			}
		case wire.RecordStopped:
			e.stopped(r)
		case wire.RecordEvent:
			event := r.Event.Event
			if r.Event.Error != "" {
				event.Err = errors.New(r.Event.Error)
			}
			e.events = append(e.events, event)
		}
	}
	clear(e.held)
	e.held = e.held[:0]
	return claimed, nil
}

// buried reports whether the error is the end of the instance, and then discards
// that.
func (e *Engine) buried(err error) bool {
	var f *fault
	if !errors.As(err, &f) {
		return false
	}
	e.die(f)
	return true
}

// die discards the instance, and all that it has not yet told.
func (e *Engine) die(cause error) {
	e.guest.discard()
	e.guest, e.dead = nil, cause
	e.held = nil
	e.leave(&DeadError{cause})
	e.woken.raise()
	e.moved.raise()
}

// Snapshot returns the state in a canonical form, the same as a native engine's
// (D1). It may be called at any time; what the journal has not taken is appended
// first.
func (e *Engine) Snapshot() ([]byte, error) {
	ctx := context.Background()
	e.mu.Lock()
	defer e.unlock()
	if err := e.ready(ctx); err != nil {
		return nil, refused("snapshot", err)
	}
	b, err := e.guest.snapshot(ctx)
	if e.buried(err) {
		return nil, &DeadError{e.dead}
	}
	return append([]byte(nil), b...), err
}

// Close frees the instance. Loops that run on the engine end with [ErrClosed],
// and the contexts of their handlers with it as the cause: to stop in peace, end
// their contexts first. The error is the journal's, if it did not take what was
// written last. A second Close does nothing.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.unlock()
	if e.closed {
		return nil
	}
	var err error
	if e.guest != nil {
		if _, err = e.flush(); err != nil {
			err = refused("close", err)
		}
		e.guest.discard()
	}
	e.guest, e.closed, e.held = nil, true, nil
	e.leave(ErrClosed)
	e.woken.raise()
	e.moved.raise()
	return err
}
