package pgengine

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// callTime is how long a call may take, so that neither a pool that is exhausted
// nor a server that hangs holds anybody up for good.
const callTime = 30 * time.Second

// call makes a call on the database that ends in time, with an error that says
// what it waited for and what to do. One whose connection broke takes the idle
// ones of the pool along, which are likely to have broken with it, so that who
// asks again gets a new one.
func (s *Store) call(ctx context.Context, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, s.callTime)
	defer cancel()
	err := f(bounded)
	pool, pooled := s.db.(*pgxpool.Pool)
	switch {
	case err == nil || ctx.Err() != nil:
		return explain(err)
	case bounded.Err() != nil:
		text := fmt.Sprintf("no answer within %v", s.callTime)
		if pooled && pool.Stat().AcquiredConns() == pool.Stat().MaxConns() {
			text = fmt.Sprintf("within %v none of the pool's %d connections became free: raise its MaxConns, or give the engine a pool of its own",
				s.callTime, pool.Stat().MaxConns())
		}
		return &storeError{err, remedy{text: text}}
	case pooled && broken(err):
		pool.Reset()
	}
	return explain(err)
}
