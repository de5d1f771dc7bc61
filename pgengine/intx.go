package pgengine

import (
	"context"
	database "database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tickonce/tickonce"
)

// In returns an engine whose calls are part of the caller's transaction: what
// they write is there if that is committed, and with all else that it writes.
// Until then nobody else sees it, and neither do the calls of e.
//
//	tx, err := pool.Begin(ctx)
//	...
//	in, err := e.In(tx)
//	_, err = in.Enqueue(ctx, "mail", payload, tickonce.EnqueueOptions{})
//	_, err = tx.Exec(ctx, "insert into orders ...")
//	err = tx.Commit(ctx)
//
// A job that is enqueued keeps nobody else from the queue, but for those who
// enqueue one with the same key; a schedule that is written waits for nobody but
// those who write it too, and is not due meanwhile; the end of a job of a
// schedule keeps nobody but those who end another one of that schedule, as what
// became of them is counted, and a claim, where its runs do not overlap, nobody
// but those who claim another one. They wait until the transaction ends. A
// refused call writes nothing, and leaves the transaction as it was; an error of
// the server's may undo it. No [tickonce.Event] tells of these calls, since they
// may be undone. No loop is woken by them, unless by [Options.Notify] when the
// transaction is committed: it looks at its next poll.
//
// The engine is for writes and reads, not for loops; it is of no use once the
// transaction has ended, and not safe for concurrent use.
func (e *Engine) In(tx pgx.Tx) (*tickonce.Engine, error) {
	if tx == nil {
		return nil, &tickonce.OptionError{Option: "tx", Problem: "is nil, want a transaction"}
	}
	return e.on(tx)
}

// InSQL is [Engine.In] for a transaction of database/sql that was begun on the
// connection, which has to be one of pgx's stdlib: it calls f with an engine
// whose calls are part of it. While f runs the connection is the engine's:
// statements of the caller's own come before, or after.
//
//	conn, err := db.Conn(ctx)
//	tx, err := conn.BeginTx(ctx, nil)
//	...
//	err = e.InSQL(conn, func(in *tickonce.Engine) error {
//		_, err := in.Enqueue(ctx, "mail", payload, tickonce.EnqueueOptions{})
//		return err
//	})
//	err = tx.Commit()
func (e *Engine) InSQL(conn *database.Conn, f func(*tickonce.Engine) error) error {
	switch {
	case conn == nil:
		return &tickonce.OptionError{Option: "conn", Problem: "is nil, want a connection"}
	case f == nil:
		return &tickonce.OptionError{Option: "f", Problem: "is nil, want a function"}
	}
	return conn.Raw(func(driver any) error {
		c, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("pgengine: the connection is a %T, want one of github.com/jackc/pgx/v5/stdlib", driver)
		}
		if c.Conn().PgConn().TxStatus() == 'I' {
			return errors.New("pgengine: no transaction was begun on the connection")
		}
		in, err := e.on(begun{c.Conn()})
		if err != nil {
			return err
		}
		return f(in)
	})
}

// on returns the engine over another DB, which is in a transaction.
func (e *Engine) on(db DB) (*tickonce.Engine, error) {
	s := *e.store
	s.db, s.unfolded = db, nil
	c := e.Config()
	c.Observer = nil
	return tickonce.New(&s, c)
}

// begun is a connection on which somebody else has begun a transaction: a step
// is a savepoint there.
type begun struct{ *pgx.Conn }

// Begin implements [DB].
func (c begun) Begin(ctx context.Context) (pgx.Tx, error) {
	_, err := c.Exec(ctx, "savepoint tickonce")
	return savepoint{conn: c.Conn}, err
}

type savepoint struct {
	pgx.Tx // nil: a step sends, commits and rolls back
	conn   *pgx.Conn
}

func (s savepoint) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return s.conn.SendBatch(ctx, b)
}

func (s savepoint) Commit(ctx context.Context) error {
	_, err := s.conn.Exec(ctx, "release savepoint tickonce")
	return err
}

func (s savepoint) Rollback(ctx context.Context) error {
	_, err := s.conn.Exec(ctx, "rollback to savepoint tickonce")
	return err
}
