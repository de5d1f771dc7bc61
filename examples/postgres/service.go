package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/eventlog"
	"github.com/tickonce/tickonce/pgengine"
)

// schema is that of the engine's tables. The service's own are elsewhere.
const schema = "tickonce_example"

// settings are what differs from one installation to the next.
type settings struct {
	database string        // a connection string or URL
	name     string        // of this process
	health   string        // the address of /healthz
	lease    time.Duration // how long a leader that is gone keeps others from leading
}

// serve is the service: any number of processes run it on one database. It ends
// when ctx does and the jobs in hand are done, or when it cannot run any more.
func serve(ctx context.Context, s settings, log *slog.Logger) error {
	pool, err := pgxpool.New(ctx, s.database)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrate(ctx, pool); err != nil {
		return err
	}

	eng, err := pgengine.New(ctx, pool, tickonce.Config{
		Owner:    s.name + "-" + strconv.FormatInt(time.Now().UnixMilli(), 36), // another one at each start
		StandBy:  true,                                                         // who does not lead waits to
		LeaseTTL: s.lease,
		Observer: eventlog.New(log),
	}, pgengine.Options{Schema: schema, Notify: true})
	if err != nil {
		return err
	}
	// Each process says what there is to be; it is there once.
	if _, err := eng.Schedule(ctx, "report", "@every 1s", "reports", nil, tickonce.ScheduleOptions{
		Anchor:     time.Unix(0, 0),
		Visibility: 3 * time.Second, // so long after a process was killed another one takes its jobs; a worker renews it
	}); err != nil {
		return err
	}

	loops, ctx := errgroup.WithContext(ctx)
	loops.Go(func() error { eng.Listen(ctx); return nil })
	loops.Go(func() error { return eng.RunSchedules(ctx) })
	loops.Go(func() error {
		return eng.RunWorker(ctx, "reports", sender(pool, s.name), tickonce.WorkerConfig{
			Concurrency: 2,
			Timeout:     time.Minute,
			StopTimeout: 10 * time.Second, // and then 5 s: less than the 30 s that Kubernetes gives
		})
	})
	loops.Go(func() error { return serveHealth(ctx, s.health, pool, log) })
	return loops.Wait()
}

// migrate makes the tables, those of the engine and those of the service. Any
// number of processes may do so at once.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pgengine.Migrate(ctx, pool, schema); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
select pg_advisory_xact_lock(20260101);
create table if not exists tickonce_example_sent (
  job      bigint primary key, -- so that a report is sent once, however often its job is begun
  boundary timestamptz not null,
  attempt  int not null,
  process  text not null
)`)
		return err
	})
}

// sender returns the work itself. It may run twice for one job, as when a
// process is killed in the middle of it, and writes what it does once.
func sender(pool *pgxpool.Pool, process string) tickonce.Handler {
	return func(ctx context.Context, job *tickonce.Job) error {
		select {
		case <-time.After(800 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		_, err := pool.Exec(ctx, `
insert into tickonce_example_sent (job, boundary, attempt, process) values ($1, $2, $3, $4) on conflict do nothing`,
			int64(job.ID), job.Boundary, job.Attempt, process)
		return err
	}
}

// serveHealth answers 200 at /healthz while the database answers, until ctx ends.
func serveHealth(ctx context.Context, address string, pool *pgxpool.Pool, log *slog.Logger) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	log.Info("serving", "health", "http://"+listener.Addr().String()+"/healthz")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		bounded, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := pool.Ping(bounded); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// settingsFromEnvironment are those of a process that is started by itself.
func settingsFromEnvironment() (settings, error) {
	host, _ := os.Hostname()
	lease, err := time.ParseDuration(cmp.Or(os.Getenv("LEASE"), "15s"))
	if err != nil {
		return settings{}, fmt.Errorf("LEASE: %w", err)
	}
	return settings{
		database: os.Getenv("DATABASE_URL"),
		name:     cmp.Or(os.Getenv("NAME"), host),
		health:   cmp.Or(os.Getenv("HEALTH"), "127.0.0.1:0"),
		lease:    lease,
	}, nil
}
