package tickonce

import (
	"strconv"
	"sync/atomic"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// Engine runs schedules and queues on a store. It holds no rows of its own and
// no lock during a call: it reads, decides and writes once under a guard. It
// is safe for concurrent use.
type Engine struct {
	store   store.Store
	config  Config // with its defaults
	runs    atomic.Int64
	woken   signal // of the schedules
	workers atomic.Int64
	queues  queueSignals // of the jobs
	details details
	zones   zones

	batchPayload int64 // [store.BatchPayload]
}

// New returns an engine on a store. The errors of a configuration are joined
// [*OptionError]s. Package memengine has the engine in memory.
func New(s store.Store, c Config) (*Engine, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	return &Engine{store: s, config: c, details: details{most: c.Details}, batchPayload: store.BatchPayload}, nil
}

// Config returns the configuration with its defaults filled in.
func (e *Engine) Config() Config { return e.config }

// now is the host's clock. It only arms timers.
func (e *Engine) now() store.Instant { return instantOf(e.config.Clock.Now()) }

// refused turns the refusal of a batch into an error.
func (e *Engine) refused(op string, b *store.Batch, r store.Refusal) error {
	opErr := &OpError{Op: op}
	switch r.Part {
	case store.Guards:
		opErr.Schedule = b.Guards[r.Index].Name
	case store.Puts:
		opErr.Schedule = b.Puts[r.Index].Guard.Name
	case store.Removes:
		opErr.Schedule = b.Removes[r.Index].Name
	case store.Cancels:
		opErr.Queue = b.Cancels[r.Index].Queue
	case store.Requeues:
		opErr.Queue = b.Requeues[r.Index].Queue
	case store.Purges:
		opErr.Queue = b.Purges[r.Index].Queue
	case store.Inserts:
		opErr.Queue = b.Inserts[r.Index].Queue
	}
	limits := e.config.Limits
	switch r.Why {
	case store.Conflict:
		opErr.Err = ErrConflict
	case store.ClaimLost:
		opErr.Err = ErrClaimLost
	case store.NotFound:
		opErr.Err = ErrNotFound
	case store.QueueFull:
		most := int64(limits.QueueLength)
		opErr.Err = &LimitError{Limit: "QueueLength", Max: most, Got: most + 1, Where: opErr.Queue}
	case store.SchedulesFull:
		most := int64(limits.Schedules)
		opErr.Err = &LimitError{Limit: "Schedules", Max: most, Got: most + 1}
	default:
		panic("tickonce: a store refused a batch for the unknown reason " + strconv.Itoa(int(r.Why)))
	}
	return opErr
}

func (e *Engine) checkPayload(payload []byte) error {
	if len(payload) > e.config.Limits.Payload {
		return &LimitError{Limit: "Payload", Max: int64(e.config.Limits.Payload), Got: int64(len(payload))}
	}
	return nil
}

// payloadBytes is how long the payloads of the inserts are together.
func payloadBytes(inserts []store.Insert) (n int64) {
	for i := range inserts {
		n += int64(len(inserts[i].Payload))
	}
	return n
}

func checkWorker(worker string) error {
	if worker == "" {
		return ErrInvalidWorker
	}
	if err := core.CheckName("worker", worker); err != nil {
		return err
	}
	return nil
}

func cloneBytes(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}
