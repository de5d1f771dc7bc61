package pgengine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
)

// listening is an engine whose loops never poll, so that only its own writes, or
// a notification, wake them.
type listening struct {
	*Engine
	proxy  *pgtest.Proxy
	looked chan struct{} // by its loops, before they rest
	told   chan tickonce.Event
	worked chan string // payloads
}

// pair returns an engine that writes and one that listens, each with a pool of
// its own, in one schema.
func pair(t *testing.T) (*Engine, *listening) {
	t.Helper()
	server, schema := pgtest.Shared(t), pgtest.Schema(t)
	pool := server.Pool(t)
	_, err := Migrate(ctx, pool, schema)
	require.NoError(t, err)
	writer, err := New(ctx, pool, tickonce.Config{Poll: -1}, Options{Schema: schema, Notify: true})
	require.NoError(t, err)

	l := &listening{
		proxy: server.Proxy(t), looked: make(chan struct{}, 1000), told: make(chan tickonce.Event, 1000), worked: make(chan string, 1000),
	}
	l.proxy.Decide(func(sql string) pgtest.Verdict {
		if strings.Contains(sql, "page as (select queue") || strings.Contains(sql, "order by due_at, name limit") {
			l.looked <- struct{}{}
		}
		return pgtest.Pass
	})
	l.Engine, err = New(ctx, pgtest.Open(t, l.proxy.Config(t, pgtest.Superuser)), tickonce.Config{
		Poll: -1, LeaseTTL: time.Hour, Observer: func(e tickonce.Event) { l.told <- e },
	}, Options{Schema: schema})
	require.NoError(t, err)
	return writer, l
}

// inBackground runs loops until the test ends.
func inBackground(t *testing.T, loops ...func(context.Context)) {
	stop, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{}, len(loops))
	for _, loop := range loops {
		go func() { loop(stop); ended <- struct{}{} }()
	}
	t.Cleanup(func() {
		cancel()
		for range loops {
			<-ended
		}
	})
}

// work is the worker of a queue.
func (l *listening) work(queue string) func(context.Context) {
	return func(ctx context.Context) {
		_ = l.RunWorker(ctx, queue, func(_ context.Context, job *tickonce.Job) error {
			l.worked <- string(job.Payload)
			return nil
		}, tickonce.WorkerConfig{})
	}
}

// result is the payload that was worked next.
func (l *listening) result(t *testing.T) string {
	t.Helper()
	select {
	case payload := <-l.worked:
		return payload
	case <-time.After(30 * time.Second):
		require.FailNow(t, "nobody was woken")
		return ""
	}
}

// idle waits until the loops have looked for something to do, and rest. Were the
// wait too short, a loop might find by itself what it is to be woken by.
func (l *listening) idle() {
	<-l.looked
	for {
		select {
		case <-l.looked:
		case <-time.After(50 * time.Millisecond):
			return
		}
	}
}

// raw hears all notifications of the schema.
func raw(t *testing.T, schema string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(ctx, pgtest.Shared(t).Config(t, pgtest.Superuser).ConnConfig)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	_, err = conn.Exec(ctx, "listen "+quoted(schema))
	require.NoError(t, err)
	return conn
}

func next(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	bounded, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	n, err := conn.WaitForNotification(bounded)
	require.NoError(t, err, "nothing was told")
	return n.Payload
}

// What gives others something to do is told, and what does not is not. An end
// that delivers tells of its own queue as well.
func TestL8WhatIsTold(t *testing.T) {
	e, _ := pair(t)
	e.store.notifier.gap = 0
	heard := raw(t, e.store.schema)
	jobs := make(map[string]*tickonce.Job)
	claim := func(queue string) error {
		job, err := e.Claim(ctx, queue, "w")
		jobs[queue] = job
		return err
	}
	for _, write := range []struct {
		name string
		call func() error
		told []string
	}{
		{"enqueue", func() error { return enqueue(e.Engine, "a") }, []string{"q a"}},
		{"claim", func() error { return claim("a") }, nil},
		{"retry", func() error { return jobs["a"].RetryAfter(ctx, nil, 0) }, []string{"q a"}},
		{"claim again", func() error { return claim("a") }, nil},
		{"beat", func() error { return jobs["a"].Heartbeat(ctx, time.Hour) }, nil},
		{"fail", func() error { return jobs["a"].Fail(ctx, nil) }, nil},
		{"requeue", func() error { _, err := e.Requeue(ctx, "a", jobs["a"].ID); return err }, []string{"q a"}},
		{"claim once more", func() error { return claim("a") }, nil},
		{"deliver", func() error { return errors.Join(jobs["a"].Deliver("out", nil), jobs["a"].Ack(ctx)) }, []string{"q __alkstore_outbox:out", "q a"}},
		{"enqueue and cancel", func() error {
			id, err := e.Enqueue(ctx, "b", nil, tickonce.EnqueueOptions{})
			require.NoError(t, err)
			_, err = e.Cancel(ctx, "b", id)
			return err
		}, []string{"q b"}},
		{"schedule", func() error {
			_, err := e.Schedule(ctx, "s", "@every 1s", "c", nil, tickonce.ScheduleOptions{})
			return err
		}, []string{"s"}},
		{"trigger", func() error { _, err := e.Trigger(ctx, "s"); return err }, []string{"q c", "s"}},
		{"lock", func() error { _, err := e.Lock(ctx, "l", "o", time.Hour); return err }, nil},
		{"fire", func() error {
			exec(t, e.store.db.(*pgxpool.Pool), "update "+quoted(e.store.schema, "schedule")+" set cursor = cursor - 1000, due_at = due_at - 1000")
			r := e.NewRunner()
			for range 5 {
				if _, _, err := r.Step(ctx); err != nil {
					return err
				}
			}
			return r.Stop(ctx)
		}, []string{"q c"}},
		{"unschedule", func() error { _, err := e.Unschedule(ctx, "s"); return err }, nil},
		{"the last", func() error { return enqueue(e.Engine, "z") }, []string{"q z"}},
	} {
		require.NoError(t, write.call(), write.name)
		for _, notice := range write.told {
			require.Equal(t, e.store.notifier.origin+" "+notice, next(t, heard), write.name)
		}
	}
}

func enqueue(e *tickonce.Engine, queue string) error {
	_, err := e.Enqueue(ctx, queue, []byte(queue), tickonce.EnqueueOptions{})
	return err
}

// The workers of one process, which never poll, are woken by the writes of
// another.
func TestL8WritesOfOneProcessWakeTheWorkersOfAnother(t *testing.T) {
	writer, l := pair(t)
	inBackground(t, l.Listen, l.work("q"), l.work("r"))
	for _, queue := range []string{"q", "r", "q"} {
		l.idle()
		require.NoError(t, enqueue(writer.Engine, queue))
		require.Equal(t, queue, l.result(t))
	}
	l.idle()
	require.NoError(t, pgx.BeginFunc(ctx, writer.store.db.(*pgxpool.Pool), func(tx pgx.Tx) error {
		in, err := writer.In(tx)
		require.NoError(t, err)
		return enqueue(in, "r")
	}))
	require.Equal(t, "r", l.result(t))
}

// A schedule of one process is fired by the runner of another, which rests for
// longer than the test takes.
func TestL8AScheduleOfOneProcessWakesTheRunnerOfAnother(t *testing.T) {
	writer, l := pair(t)
	inBackground(t, l.Listen, func(ctx context.Context) { _ = l.RunSchedules(ctx) })
	l.idle()
	_, err := writer.Schedule(ctx, "s", "@every 1s", "q", nil, tickonce.ScheduleOptions{})
	require.NoError(t, err)
	for e := range l.told {
		if e.Kind == tickonce.EventFired {
			break
		}
	}
}

// What a listener missed while it had no connection it finds when it has one
// again, and meanwhile the observer is told why.
func TestL8AListenerThatWasCutMissesNothing(t *testing.T) {
	writer, l := pair(t)
	inBackground(t, l.Listen, l.work("q"))
	l.idle()
	l.proxy.Refuse(true)
	l.proxy.Cut()
	for e := range l.told {
		if e.Kind == tickonce.EventRetrying && e.Phase == tickonce.PhaseListen {
			require.Error(t, e.Err)
			break
		}
	}
	require.NoError(t, enqueue(writer.Engine, "q"))
	l.proxy.Refuse(false)
	require.Equal(t, "q", l.result(t))
}

// A transaction of the user's tells when it is committed, and nothing if it is
// not.
func TestO7ATransactionTellsWhenItIsCommitted(t *testing.T) {
	writer, _ := pair(t)
	pool, heard := writer.store.db.(*pgxpool.Pool), raw(t, writer.store.schema)
	for _, commit := range []bool{false, true} {
		tx, err := pool.Begin(ctx)
		require.NoError(t, err)
		in, err := writer.In(tx)
		require.NoError(t, err)
		for range 2 {
			_, err = in.Enqueue(ctx, "q", nil, tickonce.EnqueueOptions{})
			require.NoError(t, err)
		}
		exec(t, pool, "select pg_notify($1, 'before')", writer.store.schema)
		require.Equal(t, "before", next(t, heard))
		if commit {
			require.NoError(t, tx.Commit(ctx))
			require.Equal(t, "- q q", next(t, heard))
		} else {
			require.NoError(t, tx.Rollback(ctx))
		}
		exec(t, pool, "select pg_notify($1, 'after')", writer.store.schema)
		require.Equal(t, "after", next(t, heard), "each notice comes once")
	}
}

// Of many writes the first is told at once, and the others together.
func TestL8NotificationsAreCoalesced(t *testing.T) {
	writer, _ := pair(t)
	writer.store.notifier.gap = time.Hour
	heard := raw(t, writer.store.schema)
	require.NoError(t, enqueue(writer.Engine, "q"))
	notice := writer.store.notifier.origin + " q q"
	require.Equal(t, notice, next(t, heard))
	for range 100 {
		require.NoError(t, enqueue(writer.Engine, "q"))
	}
	_, err := writer.Schedule(ctx, "s", "@every 1h", "q", nil, tickonce.ScheduleOptions{})
	require.NoError(t, err)
	writer.store.tell() // as when the gap is over
	require.Equal(t, notice, next(t, heard))
	require.Equal(t, writer.store.notifier.origin+" s", next(t, heard))
	exec(t, writer.store.db.(*pgxpool.Pool), "select pg_notify($1, 'end')", writer.store.schema)
	require.Equal(t, "end", next(t, heard))
}

// Behind a pooler in transaction mode a connection hears nothing but what it has
// notified itself of. That is an error, which says so, and the session of the
// server is left as it was.
func TestL8AConnectionThatHearsNothing(t *testing.T) {
	_, l := pair(t)
	defer func(before time.Duration) { answerTime = before }(answerTime)
	answerTime = 500 * time.Millisecond
	var last string
	l.proxy.Decide(func(sql string) pgtest.Verdict {
		last = sql
		return pgtest.Pass
	})
	l.proxy.Deafen()
	bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := l.store.listen(bounded, func(string) { require.Fail(t, "it heard something") })
	require.ErrorContains(t, err, "LISTEN takes a session of its own")
	l.proxy.Decide(nil)
	require.Equal(t, "unlisten *", last)
}
