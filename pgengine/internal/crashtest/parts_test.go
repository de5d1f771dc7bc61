package crashtest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/pgengine"
	"github.com/tickonce/tickonce/store"
)

var ctx = context.Background()

// part is what a process does. It says
//
//	ready                        once it has an engine
//	acquire, renew, due          before the runner's calls
//	advance FIRES                before the write of a tick that fires
//	advanced HELD MOVED STALE    after that of any tick
//	handling JOB ATTEMPT         of a worker; done JOB, when it is settled
//	ordering N, ordered N        of an application, before and after the commit
//	migrated N                   with how many migrations
//	leading OWNER                and so on, of events of the engine
//	freezing                     before it is frozen
//	lost ERROR                   of a call that failed
//	failed ERROR                 before it ends
type part struct {
	Name   string // of its sessions, too
	Conn   string
	Schema string
	App    string // the schema of the application's tables
	Grid   int64  // the anchor of the schedules, in milliseconds

	Migrates bool // and nothing else
	Runs     bool // schedules
	Works    bool // the queues
	Orders   bool // enqueues in transactions of its own, and triggers schedules
	StandBy  bool
	Fails    bool // whatever it handles, for good
	Acks     bool // a job that it claims by hand

	Skew     time.Duration // by which the clock of its machine is wrong
	Register int           // of the load, so many schedules are registered again at its start

	Steps    bool // its queues may be too short for what a tick fires, so that each is a step
	Leads    bool // it takes no notice of other runners: it has a lock of its own, for long
	Careless bool // it takes no notice of what others wrote to the schedules since it read them

	// Where it freezes, once.
	FreezeAdvance bool // between reading schedules and writing them
	FreezeHandler bool // between a claim and its settle
	FreezeStep    int  // in a transaction, after so many round trips
}

var queues = []string{"a", "b"}

// skewed is a clock that is wrong.
type skewed time.Duration

func (c skewed) Now() time.Time                         { return time.Now().Add(time.Duration(c)) }
func (c skewed) After(d time.Duration) <-chan time.Time { return time.After(d) }

func (p part) play(ctx context.Context) error {
	config, err := pgxpool.ParseConfig(p.Conn)
	if err != nil {
		return err
	}
	config.ConnConfig.RuntimeParams["application_name"] = p.Name
	freezer := new(freezer)
	config.ConnConfig.Tracer = freezer
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	if p.Migrates {
		freezer.after = p.FreezeStep
		return p.migrate(ctx, pool)
	}
	e, err := p.open(ctx, pool)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	say("ready")
	freezer.after = p.FreezeStep
	parts := 0
	ended := make(chan error)
	begin := func(f func() error) {
		parts++
		go func() { ended <- f() }()
	}
	if p.Runs {
		begin(func() error { return p.run(ctx, e.Engine) })
	}
	if p.Works {
		for _, queue := range queues {
			begin(func() error {
				return e.RunWorker(ctx, queue, p.handler(pool), tickonce.WorkerConfig{Name: p.Name, Concurrency: 8})
			})
		}
	}
	if p.Acks {
		begin(func() error { return p.ack(ctx, e.Engine) })
	}
	if p.Orders {
		begin(func() error { return p.order(ctx, pool, e) })
	}
	for range parts {
		err = errors.Join(err, <-ended)
	}
	return err
}

func (p part) migrate(ctx context.Context, pool *pgxpool.Pool) error {
	for {
		applied, err := pgengine.Migrate(ctx, pool, p.Schema)
		if err == nil {
			say("migrated", len(applied))
			return nil
		}
		say("lost", err)
		pause(ctx)
	}
}

// open opens the engine, once the server is there.
func (p part) open(ctx context.Context, pool *pgxpool.Pool) (*pgengine.Engine, error) {
	for {
		e, err := p.try(ctx, pool)
		if err == nil || errors.Is(err, store.ErrPermanent) || ctx.Err() != nil {
			return e, err
		}
		say("lost", err)
		pause(ctx)
	}
}

func (p part) try(ctx context.Context, pool *pgxpool.Pool) (*pgengine.Engine, error) {
	limits := tickonce.Limits{Runs: 1 << 20, Skips: 1 << 20}
	if p.Steps {
		limits.QueueLength = 5
	}
	c := tickonce.Config{
		Clock: skewed(p.Skew), LeaseTTL: time.Second, Poll: 50 * time.Millisecond, StandBy: p.StandBy,
		Limits: limits,
		Observer: func(e tickonce.Event) {
			switch e.Kind {
			case tickonce.EventDone:
				say(e.Kind.String(), e.Job)
			case tickonce.EventLeading, tickonce.EventLeadershipLost, tickonce.EventClaimLost, tickonce.EventStandBy, tickonce.EventRetrying:
				say(e.Kind.String(), e.Owner, e.Err)
			}
		},
	}
	e, err := pgengine.New(ctx, pool, c, pgengine.Options{Schema: p.Schema})
	if err != nil {
		return nil, err
	}
	e.Engine, err = tickonce.New(&talking{Store: e.Store(), part: p, pool: pool}, e.Config())
	if err != nil {
		return nil, err
	}
	for _, s := range load[:p.Register] {
		if err := s.register(ctx, e.Engine, p.Grid); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// pause is how long a process waits before it asks again.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}

// run runs the schedules, and begins again when others lead or calls fail.
func (p part) run(ctx context.Context, e *tickonce.Engine) error {
	for {
		err := e.RunSchedules(ctx)
		if err == nil {
			return nil
		}
		if errors.Is(err, store.ErrPermanent) || p.StandBy {
			return err
		}
		if !errors.Is(err, tickonce.ErrLeadershipLost) {
			say("lost", err)
		}
		pause(ctx)
	}
}

// handler notes what it handles. What becomes of a job follows from its id.
func (p part) handler(pool *pgxpool.Pool) tickonce.Handler {
	var frozen atomic.Bool
	handled := "insert into " + quoted(p.App, "handled") + " values ($1, $2)"
	return func(ctx context.Context, job *tickonce.Job) error {
		say("handling", job.ID, job.Attempt)
		if _, err := pool.Exec(ctx, handled, job.ID, job.Attempt); err != nil {
			return tickonce.RetryAfter(10*time.Millisecond, err)
		}
		if p.FreezeHandler && frozen.CompareAndSwap(false, true) {
			say("freezing")
			freeze()
			return nil
		}
		switch {
		case p.Fails || job.ID%97 == 0:
			return tickonce.Permanent(errors.New("in vain"))
		case job.ID%7 == 0 && job.Attempt == 1:
			return tickonce.RetryAfter(10*time.Millisecond, errors.New("not yet"))
		}
		return nil
	}
}

// ack claims one job and acks it.
func (p part) ack(ctx context.Context, e *tickonce.Engine) error {
	jobs, err := e.ClaimBatch(ctx, queues[0], p.Name, 1)
	if err != nil || len(jobs) == 0 {
		return errors.Join(err, errors.New("no job"))
	}
	say("handling", jobs[0].ID, jobs[0].Attempt)
	if p.FreezeHandler {
		say("freezing")
		freeze()
	}
	switch err := jobs[0].Ack(ctx); {
	case errors.Is(err, tickonce.ErrClaimLost):
		return nil // an event has told it
	default:
		return err
	}
}

// order takes orders, each with a job in the transaction that it is written in.
// Every fifth is given up. Between them it triggers schedules that mind their live
// jobs.
func (p part) order(ctx context.Context, pool *pgxpool.Pool, e *pgengine.Engine) error {
	endless := context.WithoutCancel(ctx)
	for n := 0; ctx.Err() == nil; n++ {
		err := p.orderOnce(endless, pool, e)
		if s := load[n%len(load)]; err == nil && s.options.Overlap != tickonce.OverlapAllow {
			_, err = e.Trigger(endless, s.name)
		}
		if err != nil && !errors.Is(err, tickonce.ErrOverlap) && !errors.Is(err, tickonce.ErrConflict) && !errors.Is(err, tickonce.ErrNotFound) {
			say("lost", err)
			pause(ctx)
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

func (p part) orderOnce(ctx context.Context, pool *pgxpool.Pool, e *pgengine.Engine) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	var n int64
	if err := tx.QueryRow(ctx, "insert into "+quoted(p.App, "orders")+" default values returning n").Scan(&n); err != nil {
		return err
	}
	in, err := e.In(tx)
	if err != nil {
		return err
	}
	options := tickonce.EnqueueOptions{Visibility: time.Second, BaseBackoff: 10 * time.Millisecond, MaxAttempts: 100}
	if _, err := in.Enqueue(ctx, queues[n%2], []byte(strconv.FormatInt(n, 10)), options); err != nil {
		return err
	}
	say("ordering", n)
	if n%5 == 0 {
		return nil
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	say("ordered", n)
	return nil
}

func quoted(schema, name string) string { return pgx.Identifier{schema, name}.Sanitize() }

// talking is a store that tells of the runner's calls, and leaves out guards.
type talking struct {
	*pgengine.Store
	part   part
	pool   *pgxpool.Pool
	frozen bool
}

func (s *talking) Acquire(ctx context.Context, lock, owner string, ttlMS int64) (store.Grant, error) {
	say("acquire")
	if s.part.Leads {
		lock += " of " + owner
		ttlMS *= 1000
	}
	return s.Store.Acquire(ctx, lock, owner, ttlMS)
}

func (s *talking) Renew(ctx context.Context, l store.Lease, ttlMS int64) (store.Grant, error) {
	say("renew")
	if s.part.Leads {
		ttlMS *= 1000
	}
	return s.Store.Renew(ctx, l, ttlMS)
}

func (s *talking) Due(ctx context.Context, dst []store.Schedule) (store.Due, error) {
	say("due")
	return s.Store.Due(ctx, dst)
}

func (s *talking) Advance(ctx context.Context, t *store.Tick) (bool, error) {
	if len(t.Fires) > 0 {
		say("advance", len(t.Fires))
		if s.part.FreezeAdvance && !s.frozen {
			s.frozen = true
			say("freezing")
			freeze()
		}
	}
	advance := s.Store.Advance
	if s.part.Careless {
		advance = s.advanceCarelessly
	}
	held, err := advance(ctx, t)
	if err != nil {
		return held, err
	}
	var outcomes [5]int
	for _, m := range t.Moves {
		outcomes[m.Outcome]++
	}
	say("advanced", held, outcomes[store.Moved], outcomes[store.Stale])
	return held, nil
}

// careless writes a tick by the ids of the schedules alone.
const careless = `
with moved as (
  update engine.schedule s set rev = s.rev + 1, cursor = v.cursor, due_at = v.due_at, set_at = v.set_at,
    paused = case when v.ends then 3 else s.paused end
  from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[]) v(id, cursor, due_at, set_at, ends)
  where s.id = v.id
), skipped as (
  insert into engine.skip (schedule, schedule_id, reason, every_ms, first, last, count, from_at, until_at)
  select s.name, s.id, v.reason, v.every_ms, v.first, v.first, v.count, 0, 0
  from unnest($8::bigint[], $9::smallint[], $10::bigint[], $11::bigint[], $12::bigint[]) v(id, reason, every_ms, first, count)
  join engine.schedule s using (id)
)
insert into engine.job (queue, payload, schedule, schedule_id, fire_at, visibility_ms, base_backoff_ms, max_attempts, enqueued_at, run_at, priority)
select s.queue, s.payload, s.name, s.id, v.fire_at, s.visibility_ms, s.base_backoff_ms, s.max_attempts, 0, 0, s.priority
from unnest($6::bigint[], $7::bigint[]) v(id, fire_at) join engine.schedule s using (id)`

func (s *talking) advanceCarelessly(ctx context.Context, t *store.Tick) (bool, error) {
	var ids, cursors, dueAts, setAts, fires, boundaries, skips, everyMS, firsts, counts []int64
	var ends []bool
	var reasons []int16
	for i := range t.Moves {
		m := &t.Moves[i]
		ids, cursors, dueAts = append(ids, int64(m.ID)), append(cursors, int64(m.Cursor)), append(dueAts, int64(m.DueAt))
		setAts, ends = append(setAts, int64(m.SetAt)), append(ends, m.Ends)
		m.Outcome = store.Moved
	}
	for _, f := range t.Fires {
		fires, boundaries = append(fires, int64(t.Moves[f.Move].ID)), append(boundaries, int64(f.Boundary))
	}
	for _, k := range t.Skips {
		skips, reasons, everyMS = append(skips, int64(t.Moves[k.Move].ID)), append(reasons, int16(k.Reason)), append(everyMS, k.EveryMS)
		firsts, counts = append(firsts, int64(k.First)), append(counts, k.Count)
	}
	_, err := s.pool.Exec(ctx, strings.ReplaceAll(careless, "engine.", pgx.Identifier{s.part.Schema}.Sanitize()+"."),
		ids, cursors, dueAts, setAts, ends, fires, boundaries, skips, reasons, everyMS, firsts, counts)
	return true, err
}

// freezer freezes the process within a transaction, once so many round trips of it
// have been made.
type freezer struct {
	after int
	once  sync.Once
}

func (f *freezer) TraceBatchEnd(_ context.Context, conn *pgx.Conn, _ pgx.TraceBatchEndData) {
	f.trip(conn)
}

func (f *freezer) TraceQueryEnd(_ context.Context, conn *pgx.Conn, _ pgx.TraceQueryEndData) {
	f.trip(conn)
}

func (f *freezer) trip(conn *pgx.Conn) {
	const trips = "trips"
	data := conn.PgConn().CustomData()
	n, _ := data[trips].(int)
	if n++; conn.PgConn().TxStatus() != 'T' {
		n = 0
	}
	data[trips] = n
	if n > 0 && n == f.after {
		f.once.Do(func() {
			say("freezing")
			freeze()
		})
	}
}

func (*freezer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (*freezer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (*freezer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
