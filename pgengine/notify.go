package pgengine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tickonce/tickonce"
)

// A notice is the payload of a notification, on the channel that has the
// schema's name: who tells of a write, a space, and then one of
//
//	s          a schedule may have become due sooner
//	q <queue>  the queue may have got a job to claim
//	e          nothing: a listener hears whether it hears
//
// Who tells is an engine that has woken its own loops already, or "-".
const (
	ofSchedules = "s"
	ofQueue     = "q "
	ofNothing   = "e"
)

// gapTime is how long an engine waits from one notification to the next. Each
// takes a lock that all databases of the server share.
const gapTime = 20 * time.Millisecond

// notifier tells the engines that listen what an engine has written. What is
// written while it waits it tells at once.
type notifier struct {
	origin string
	gap    time.Duration

	mu      sync.Mutex
	waiting bool // to tell again
	notices map[string]bool
}

func newNotifier() *notifier {
	return &notifier{origin: fmt.Sprintf("%016x", rand.Uint64()), gap: gapTime, notices: make(map[string]bool)}
}

var notify = sql(`select from unnest($2::text[]) n(notice), pg_notify($1, notice)`)

// wrote has others told of what this store has written: schedules, and jobs to
// claim in the queues. Within a transaction of somebody else's it is that which
// tells, when it is committed; else an error is of no account, since who is not
// told looks at the next poll.
func (s *Store) wrote(ctx context.Context, schedules bool, queues []string) error {
	n := s.notifier
	if n == nil || !schedules && len(queues) == 0 {
		return nil
	}
	notices := make([]string, 0, len(queues)+1)
	if schedules {
		notices = append(notices, ofSchedules)
	}
	for _, queue := range queues {
		notices = append(notices, ofQueue+queue)
	}
	if s.unfolded == nil {
		return s.notify(ctx, "-", notices)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, notice := range notices {
		n.notices[notice] = true
	}
	if !n.waiting {
		n.waiting = true
		time.AfterFunc(0, s.tell)
	}
	return nil
}

// tell tells of what was written, and again after the gap, as long as there is
// something to tell.
func (s *Store) tell() {
	n := s.notifier
	n.mu.Lock()
	notices := slices.Sorted(maps.Keys(n.notices))
	clear(n.notices)
	n.waiting = len(notices) > 0
	n.mu.Unlock()
	if len(notices) == 0 {
		return
	}
	_ = s.notify(context.Background(), n.origin, notices)
	time.AfterFunc(n.gap, s.tell)
}

func (s *Store) notify(ctx context.Context, origin string, notices []string) error {
	told := make([]string, len(notices))
	for i, notice := range notices {
		told[i] = origin + " " + notice
	}
	return s.one(ctx, notify, []any{s.schema, told}, func(pgx.CollectableRow) error { return nil })
}

// The times of a listener.
var (
	probeTime   = 30 * time.Second // so long without a notification it asks for one
	answerTime  = 5 * time.Second  // so long that may take
	longestWait = 5 * time.Second  // between two attempts to connect
)

// Listen wakes the loops of this engine, until ctx ends, when others have
// written what concerns them: other engines with [Options.Notify], in whatever
// process, and transactions of [Engine.In]. Run it beside the loops:
//
//	go e.Listen(ctx)
//	go e.RunSchedules(ctx)
//	err := e.RunWorker(ctx, "mail", handle, tickonce.WorkerConfig{})
//
// It wakes and does nothing else. Whatever notification is lost, the loops look
// at their next poll, so with Listen [tickonce.Config.Poll] may be long. What an
// ended run lets begin, where schedules do not overlap, is noticed by the poll
// alone, unless this engine ended it.
//
// It takes a connection from the pool, which is the listener's from then on and
// counts to the pool's MaxConns no longer. If that breaks, or hears nothing of a
// notification that is sent to try it, as behind a pooler in transaction mode, it
// connects again after 0.1 s, doubling up to 5 s, and wakes all loops once, since
// something may have been missed. The observer is told by an event of the kind
// [tickonce.EventRetrying] with the phase [tickonce.PhaseListen].
//
// It is safe for concurrent use, and of use once for each engine.
func (e *Engine) Listen(ctx context.Context) {
	for failures := int64(0); ; failures++ {
		err := e.store.listen(ctx, func(notice string) {
			failures = 0
			e.hear(notice)
		})
		if ctx.Err() != nil {
			return
		}
		wait := min(100*time.Millisecond<<min(failures, 10), longestWait)
		e.observe(tickonce.Event{
			Kind: tickonce.EventRetrying, At: e.Config().Clock.Now(), Phase: tickonce.PhaseListen, Count: failures + 1, Wait: wait, Err: err,
		})
		select {
		case <-ctx.Done():
			return
		case <-e.Config().Clock.After(wait):
		}
	}
}

// hear wakes those whom a notice concerns. The nothing that a listener hears
// first wakes all.
func (e *Engine) hear(notice string) {
	queue, ofJobs := strings.CutPrefix(notice, ofQueue)
	switch {
	case notice == ofNothing:
		e.WakeRunners()
		e.WakeWorkers()
	case notice == ofSchedules:
		e.WakeRunners()
	case ofJobs:
		e.WakeWorkers(queue)
	}
}

func (e *Engine) observe(event tickonce.Event) {
	if observer := e.Config().Observer; observer != nil {
		defer func() { _ = recover() }() // what happened has happened
		observer(event)
	}
}

// listen has heard called with the notices of others, and with [ofNothing] when
// it has begun to hear, until it does not any more.
func (s *Store) listen(ctx context.Context, heard func(notice string)) error {
	conn, err := s.own(ctx)
	if err != nil {
		return err
	}
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
		defer cancel()
		_, _ = conn.Exec(bounded, "unlisten *") // a pooler keeps the session
		_ = conn.Close(bounded)
	}()
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{s.schema}.Sanitize()); err != nil {
		return explain(err)
	}
	origin := newNotifier().origin
	hear := func(notice string) {
		by, notice, _ := strings.Cut(notice, " ")
		if notice != ofNothing && (s.notifier == nil || by != s.notifier.origin) {
			heard(notice)
		}
	}
	// A pooler in transaction mode gives to a connection what that has notified
	// itself of, and nothing else: so another one asks first.
	err = s.probe(ctx, conn, origin, hear, func(ctx context.Context) error {
		return s.notify(ctx, origin, []string{ofNothing})
	})
	if err != nil {
		return err
	}
	heard(ofNothing)
	for {
		quiet, cancel := context.WithTimeout(ctx, probeTime)
		n, err := conn.WaitForNotification(quiet)
		cancel()
		switch {
		case err == nil:
			hear(n.Payload)
			continue
		case ctx.Err() != nil || quiet.Err() == nil:
			return explain(err)
		}
		err = s.probe(ctx, conn, origin, hear, func(ctx context.Context) error {
			bounded, cancel := context.WithTimeout(ctx, answerTime)
			defer cancel()
			_, err := conn.Exec(bounded, "select pg_notify($1, $2)", s.schema, origin+" "+ofNothing)
			return explain(err)
		})
		if err != nil {
			return err
		}
	}
}

// own takes a connection out of the pool.
func (s *Store) own(ctx context.Context) (conn *pgx.Conn, err error) {
	pool, ok := s.db.(*pgxpool.Pool)
	if !ok {
		return nil, errors.New("a transaction does not listen")
	}
	err = s.call(ctx, func(ctx context.Context) error {
		pooled, err := pool.Acquire(ctx)
		if err == nil {
			conn = pooled.Hijack()
		}
		return err
	})
	return conn, err
}

// probe asks for a notification of nothing by the listener, and hears what comes
// until that does.
func (s *Store) probe(ctx context.Context, conn *pgx.Conn, origin string, hear func(notice string), ask func(context.Context) error) error {
	if err := ask(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for {
		n, err := conn.WaitForNotification(bounded)
		switch {
		case err == nil && n.Payload == origin+" "+ofNothing:
			return nil
		case err == nil:
			hear(n.Payload)
		case ctx.Err() == nil && bounded.Err() != nil:
			return &storeError{err, remedy{text: fmt.Sprintf("a notification that was sent to try it did not come within %v: "+
				"LISTEN takes a session of its own, which no pooler in transaction mode gives: give it a direct connection, or do without", answerTime)}}
		default:
			return explain(err)
		}
	}
}
