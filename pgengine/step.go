package pgengine

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tickonce/tickonce/store"
)

// step is a call that is a transaction: it locks and reads the rows that it is
// about, judges them, and writes. Rows are locked in one order by all: the
// lease, schedules by id, jobs by id, totals of the history by name. What many
// write at once is only ever added to.
type step struct {
	*Store
	ctx context.Context
	tx  pgx.Tx
	now store.Instant

	queues []string // to whose counters it adds
}

// attempts is how often a step is made that others kept from being written.
const attempts = 10

// step makes a step, for a call that has read the clock: f in a transaction which
// is committed unless f, or the commit, returns an error.
func (s *Store) step(ctx context.Context, given *int64, f func(*step) error) error {
	return s.call(ctx, func(ctx context.Context) error {
		return again(func() error { return s.try(ctx, given, f) })
	})
}

// again makes an attempt, and others as long as what others write keeps it from
// being written.
func again(attempt func() error) (err error) {
	for range attempts {
		if err = attempt(); !overtaken(err) {
			break
		}
	}
	return err
}

// unlessFrozen sees to it that a process which freezes in the middle of a
// transaction, or whose machine is gone, holds nothing for long.
const unlessFrozen = `set_config('idle_in_transaction_session_timeout', '10s', true)`

var beginStep = sql(`
select tickonce.instant($1) from ` + planning + `, ` + unlessFrozen + ` unless_frozen`)

func (s *Store) try(ctx context.Context, given *int64, f func(*step) error) error {
	tx, err := s.db.Begin(ctx)
	if err != nil {
		return err
	}
	t := &step{Store: s, ctx: ctx, tx: tx}
	var b pgx.Batch
	first := beginStep
	if s.unfolded == nil {
		first = readClock // the transaction is another's
	}
	b.Queue(s.texts[first], given).QueryRow(func(row pgx.Row) error { return row.Scan(&t.now) })
	err = t.send(&b)
	if err == nil {
		err = f(t)
	}
	if err != nil {
		_ = tx.Rollback(context.WithoutCancel(ctx)) // one that fails ends the connection, and the transaction with it
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	s.fold(ctx, t.queues)
	return nil
}

// overtaken reports whether the transaction was undone because of what others
// wrote meanwhile: begun again, it sees that, and judges anew.
func overtaken(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case "40001", "40P01": // a serialization failure, a deadlock
		return true
	case "23505": // two of one name, of one key, or alone of one schedule
		return e.ConstraintName == "schedule_name" || e.ConstraintName == "job_key" || e.ConstraintName == "job_alone"
	default:
		return false
	}
}

// send sends the statements of the batch, if any, in one round trip.
func (t *step) send(b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	return t.tx.SendBatch(t.ctx, b).Close()
}

// each has f called with every row of a statement.
func each(q *pgx.QueuedQuery, f func(pgx.CollectableRow) error) {
	q.Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := f(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// eachID has f called with every row of a statement that answers ids.
func eachID(q *pgx.QueuedQuery, f func(id int64)) {
	each(q, func(row pgx.CollectableRow) error {
		var id int64
		err := row.Scan(&id)
		f(id)
		return err
	})
}
