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

// within makes a call on the database that ends within so long, with an error
// that says what it waited for.
func within(ctx context.Context, limit time.Duration, db any, call func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := call(bounded)
	if err == nil || bounded.Err() == nil || ctx.Err() != nil {
		return err
	}
	text := fmt.Sprintf("no answer within %v", limit)
	if pool, ok := db.(*pgxpool.Pool); ok {
		if most := pool.Stat().MaxConns(); pool.Stat().AcquiredConns() == most {
			text = fmt.Sprintf("within %v none of the pool's %d connections became free: raise its MaxConns, or give the engine a pool of its own", limit, most)
		}
	}
	return &storeError{err, remedy{text: text}}
}
