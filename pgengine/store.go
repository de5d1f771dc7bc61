package pgengine

import (
	"context"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce/store"
)

// DB is what a [Store] makes its calls on: a pgxpool.Pool or, for calls that
// are part of a transaction, a [pgx.Tx].
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Store keeps the rows in the tables of one schema. It implements
// [store.Store]. It is safe for concurrent use if its DB is.
type Store struct {
	db       DB
	schema   string
	now      func() store.Instant // nil: the server's clock
	limits   store.Limits
	texts    []string // of the statements
	callTime time.Duration
	unfolded *unfolded    // nil: the transaction is somebody else's
	notifier *notifier    // nil: nobody is told of what is written
	passed   *atomic.Bool // the latest ticks have passed over rows
}

var _ store.Store = (*Store)(nil)

func newStore(db DB, schema string, limits store.Limits, now func() store.Instant) *Store {
	return &Store{db: db, schema: schema, now: now, limits: limits.WithDefaults(), texts: inSchema(schema), callTime: callTime, unfolded: &unfolded{queues: make(map[string]bool)}, passed: new(atomic.Bool)}
}

// reading begins a call: it reads the clock, if that is not the server's. If
// the context has ended it does not.
func (s *Store) reading(ctx context.Context) (given *int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.now == nil {
		return nil, nil
	}
	now := int64(s.now())
	return &now, nil
}

// planning is how the statements of a transaction are to be planned: each once,
// whatever its arguments are, and by indexes, however short the tables were when
// that was done. To plan one takes longer than to execute it, and to compile it,
// or to start workers for it, far longer.
const planning = `set_config('plan_cache_mode', 'force_generic_plan', true) once, set_config('enable_seqscan', 'off', true) by,
  set_config('enable_bitmapscan', 'off', true) indexes, set_config('jit', 'off', true) uncompiled,
  set_config('max_parallel_workers_per_gather', '0', true) alone`

var planOnce, readClock = sql(`select from ` + planning), sql(`select tickonce.instant($1)`)

// batch begins the statements of a call. Where they are in a transaction of
// somebody else's they do not touch its settings.
func (s *Store) batch() *pgx.Batch {
	b := new(pgx.Batch)
	if s.unfolded != nil {
		b.Queue(s.texts[planOnce])
	}
	return b
}

// read makes a call that only reads: one statement, with each of whose rows f is
// called.
func (s *Store) read(ctx context.Context, q statement, args []any, f func(pgx.CollectableRow) error) (now store.Instant, err error) {
	given, err := s.reading(ctx)
	if err != nil {
		return 0, err
	}
	return s.readAt(ctx, given, q, args, f)
}

// readAt is read for a call that has read the clock.
func (s *Store) readAt(ctx context.Context, given *int64, q statement, args []any, f func(pgx.CollectableRow) error) (now store.Instant, err error) {
	b := s.batch()
	if given == nil {
		b.Queue(s.texts[readClock], given).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	} else {
		now = store.Instant(*given)
	}
	each(b.Queue(s.texts[q], args...), f)
	return now, s.call(ctx, func(ctx context.Context) error { return s.db.SendBatch(ctx, b).Close() })
}

// from is where an index is to be entered to read from the name on: at the
// longest part of it that PostgreSQL takes for a text, whose bytes those of the
// names are compared with from there on.
func from(name string) (text string, bytes []byte) {
	text, _, _ = strings.Cut(name, "\x00")
	if i := strings.IndexRune(text, utf8.RuneError); i >= 0 {
		text = text[:i]
	}
	return text, []byte(name)
}

// one makes a call that is one statement, with each of whose rows f is called.
func (s *Store) one(ctx context.Context, q statement, args []any, f func(pgx.CollectableRow) error) error {
	return s.call(ctx, func(ctx context.Context) error { return s.ask(ctx, q, args, f) })
}

func (s *Store) ask(ctx context.Context, q statement, args []any, f func(pgx.CollectableRow) error) error {
	b := s.batch()
	each(b.Queue(s.texts[q], args...), f)
	return s.db.SendBatch(ctx, b).Close()
}
