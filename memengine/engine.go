package memengine

import (
	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// Engine is the engine in memory: a [tickonce.Engine] on a [Store] of its own,
// and what only memory can do. It is safe for concurrent use.
type Engine struct {
	*tickonce.Engine
	store *Store
}

// Durable is what an engine is opened from, and where its writes go.
type Durable struct {
	// Snapshot is what [Engine.Snapshot] returned; nil: begin empty.
	Snapshot []byte

	// Log is what a journal was given, from before or after the snapshot:
	// records that the snapshot contains are passed over.
	Log []byte

	// Journal gets a record of every write from now on; nil: none is kept.
	// The new records continue Log.
	Journal Journal
}

// New returns an empty engine. The clock of c is the clock of its store as
// well, and no other engine writes to it, so [tickonce.Config.Poll] is off
// unless it is set.
func New(c tickonce.Config) (*Engine, error) {
	e, _, err := Open(c, Durable{})
	return e, err
}

// Restore returns a new engine with the state of a snapshot (D1). A damaged
// snapshot, or one of a newer version, is an [*SnapshotError], which matches
// [tickonce.ErrSnapshot], and makes no engine. The scheduler's lease is no part
// of it (D6).
func Restore(c tickonce.Config, snapshot []byte) (*Engine, error) {
	if snapshot == nil {
		snapshot = []byte{} // no bytes are damaged bytes, not a new engine
	}
	e, _, err := Open(c, Durable{Snapshot: snapshot})
	return e, err
}

// Open returns a new engine with the state of a snapshot and the journal's log
// behind it (D3, D4), and reports how much of the log was used. A log that
// breaks off in the middle of a record, as after a crash, is used up to there.
// Its errors are those of [New] and [Restore].
func Open(c tickonce.Config, d Durable) (*Engine, Recovery, error) {
	if c.Poll == 0 {
		c.Poll = -1
	}
	c, err := c.WithDefaults()
	if err != nil {
		return nil, Recovery{}, err
	}
	s, recovery, err := restoreStore(readings(c.Clock), c.Limits.Store(), d.Snapshot, d.Log, d.Journal, nil)
	if err != nil {
		return nil, recovery, err
	}
	e, err := tickonce.New(s, c)
	if err != nil {
		return nil, recovery, err
	}
	return &Engine{Engine: e, store: s}, recovery, nil
}

// Snapshot returns the state in a canonical form: the same state is the same
// bytes on every platform (D1). It may be called at any time; the rows are
// copied under the store's lock and encoded outside it.
func (e *Engine) Snapshot() ([]byte, error) { return e.store.Snapshot() }

// Store returns the store, for engines that share it and for tests.
func (e *Engine) Store() *Store { return e.store }

// NewStore returns an empty store with the clock and the limits of c, for
// several engines over one memory: each is made by [tickonce.New], and its
// Poll is on.
func NewStore(c tickonce.Config) (*Store, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	return newStore(readings(c.Clock), c.Limits.Store(), nil), nil
}

// readings reads the clock in whole milliseconds, held within the instants.
func readings(clock tickonce.Clock) func() store.Instant {
	return func() store.Instant {
		now := store.Instant(clock.Now().UnixMilli())
		return min(max(now, store.MinInstant), store.MaxInstant)
	}
}
