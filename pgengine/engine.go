package pgengine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// Engine is the engine over the tables of one schema: a [tickonce.Engine] on a
// [Store]. Any number of engines, in any number of processes, may share them. It
// is safe for concurrent use.
type Engine struct {
	*tickonce.Engine
	store *Store
}

// Options say where an engine keeps its rows, and by which clock it judges.
type Options struct {
	Schema string // "": [DefaultSchema]

	// Now is the clock by which all is judged, for tests. nil: the server's, as
	// it has to be where several processes share the schema. The clock of the
	// [tickonce.Config] arms timers alone.
	Now func() store.Instant

	// Notify has what this engine writes wake, by NOTIFY, the loops of engines
	// that run [Engine.Listen]: by a statement of its own after the write, at most
	// one each 20 ms, or, with [Engine.In], as part of the caller's transaction. A
	// commit that notifies waits for all others of the server that do.
	Notify bool
}

// maxPayload is the longest payload in bytes.
const maxPayload = 256 << 20

// New returns an engine in a schema that [Migrate] has made. It reports all that
// would keep it from running there: a schema of another version is a
// [*VersionError]. Payloads of more than 256 MiB are refused as a
// [*tickonce.OptionError]. The pool stays the caller's, who closes it when the engine's
// loops have ended.
func New(ctx context.Context, pool *pgxpool.Pool, c tickonce.Config, o Options) (*Engine, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	if c.Limits.Payload > maxPayload {
		return nil, &tickonce.OptionError{Option: "Limits.Payload", Problem: fmt.Sprintf("is %d, want at most %d: PostgreSQL takes no message of a gigabyte", c.Limits.Payload, maxPayload)}
	}
	if pool == nil {
		return nil, &tickonce.OptionError{Option: "pool", Problem: "is nil, want a pool of connections"}
	}
	schema, err := checkedSchema(o.Schema)
	if err == nil {
		err = check(ctx, pool, schema, len(migrations))
	}
	if err != nil {
		return nil, fmt.Errorf("pgengine: %w", err)
	}
	s := newStore(pool, schema, c.Limits.Store(), o.Now)
	if o.Notify {
		s.notifier = newNotifier()
	}
	e, err := tickonce.New(s, c)
	if err != nil {
		return nil, err
	}
	return &Engine{Engine: e, store: s}, nil
}

// Store returns the store, for tests.
func (e *Engine) Store() *Store { return e.store }
