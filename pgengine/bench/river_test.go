package bench

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/require"
)

// riverQueue is River with the settings that its own benchmark has.
type riverQueue struct {
	b       *testing.B
	pool    *pgxpool.Pool
	inserts *river.Client[pgx.Tx]
}

type riverArgs struct {
	N int `json:"n"`
}

func (riverArgs) Kind() string { return "bench" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
}

func (riverWorker) Work(context.Context, *river.Job[riverArgs]) error { return nil }

func newRiver(b *testing.B, pool *pgxpool.Pool) *riverQueue {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	_, err = migrator.Migrate(b.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(b, err)
	r := &riverQueue{b: b, pool: pool}
	r.inserts = r.client(nil)
	return r
}

func (r *riverQueue) client(queues map[string]river.QueueConfig) *river.Client[pgx.Tx] {
	registered := river.NewWorkers()
	river.AddWorker(registered, riverWorker{})
	c, err := river.NewClient(riverpgxv5.New(r.pool), &river.Config{
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
		Queues: queues, Workers: registered, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(r.b, err)
	return c
}

func params(n int) []river.InsertManyParams {
	all := make([]river.InsertManyParams, n)
	for i := range all {
		all[i].Args = riverArgs{N: i}
	}
	return all
}

func (r *riverQueue) insert(tx pgx.Tx, n int) error {
	_, err := r.inserts.InsertManyTx(r.b.Context(), tx, params(n))
	return err
}

func (r *riverQueue) insertFast(tx pgx.Tx, n int) error {
	_, err := r.inserts.InsertManyFastTx(r.b.Context(), tx, params(n))
	return err
}

// fire is a tick of a scheduler over River: a transaction that moves what is due
// and inserts its jobs.
func (r *riverQueue) fire(n int, move, insert func(pgx.Tx, int) error) int {
	require.NoError(r.b, pgx.BeginFunc(r.b.Context(), r.pool, func(tx pgx.Tx) error {
		if err := move(tx, n); err != nil {
			return err
		}
		return insert(tx, n)
	}))
	return n
}

func (r *riverQueue) enqueue(n int) {
	for range n / 1000 {
		_, err := r.inserts.InsertManyFast(r.b.Context(), params(1000))
		require.NoError(r.b, err)
	}
}

// work has a client work off so many jobs, up to the last one that is completed.
func (r *riverQueue) work(n int) int {
	c := r.client(map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}})
	ended, cancel := c.SubscribeConfig(&river.SubscribeConfig{ChanSize: n, Kinds: []river.EventKind{river.EventKindJobCompleted, river.EventKindJobFailed}})
	defer cancel()
	require.NoError(r.b, c.Start(r.b.Context()))
	for range n {
		e := <-ended
		require.Equal(r.b, river.EventKindJobCompleted, e.Kind)
	}
	require.NoError(r.b, c.Stop(r.b.Context()))
	return n
}
