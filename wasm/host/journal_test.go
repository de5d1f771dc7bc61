//go:build !wasm

package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
)

// journal refuses when it is told to.
type journal struct {
	memengine.MemJournal
	mu   sync.Mutex
	full error
}

func (j *journal) refuse(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.full = err
}

func (j *journal) Append(record []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.full != nil {
		return j.full
	}
	return j.MemJournal.Append(record)
}

var errFull = errors.New("no space left on device")

// Nothing that a call brought is told or done before the journal has it: no
// answer, no event, no handler.
func TestD2TheJournalComesFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var told []tickonce.EventKind
		log := &journal{}
		e := open(t, Config{Journal: log, Config: tickonce.Config{Observer: func(event tickonce.Event) { told = append(told, event.Kind) }}})
		_, err := e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
		require.NoError(t, err)
		stored := log.Bytes()
		log.refuse(errFull)
		told = nil

		_, err = e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
		var lost *tickonce.OpError
		require.ErrorAs(t, err, &lost)
		require.Equal(t, &tickonce.OpError{Op: "enqueue", Err: errFull}, lost)
		_, err = e.Claim(t.Context(), "mail", "w")
		require.ErrorIs(t, err, errFull, "no other call is made")
		_, err = e.Snapshot()
		require.ErrorIs(t, err, errFull)

		begun := 0
		l := background(t)
		l.run("worker", worker1(e, func(context.Context, *Job) error { begun++; return nil }))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Zero(t, begun)
		require.Equal(t, []tickonce.EventKind{tickonce.EventRetrying}, slices.Compact(slices.Clone(told)))
		require.Len(t, told, 4, "at 0, 100, 300 and 700 ms, and then after 5 s")
		require.Equal(t, stored, log.Bytes())

		log.refuse(nil)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 2, begun, "what was held goes on, and once")
		require.Equal(t, map[string]error{"worker": nil}, l.end())
		require.Equal(t, 1, count(told, tickonce.EventEnqueued))

		native, recovery, err := memengine.Open(tickonce.Config{Seed: 7}, memengine.Durable{Log: log.Bytes()})
		require.NoError(t, err)
		require.Empty(t, recovery.Torn)
		same(t, native, e)
	})
}

func count(told []tickonce.EventKind, kind tickonce.EventKind) (n int) {
	for _, k := range told {
		if k == kind {
			n++
		}
	}
	return n
}

// same demands that the two have the same state, to the byte.
func same(t *testing.T, native *memengine.Engine, e *Engine) {
	t.Helper()
	want, err := native.Snapshot()
	require.NoError(t, err)
	found, err := e.Snapshot()
	require.NoError(t, err)
	require.Equal(t, want, found)
}

// stutter refuses every other record.
type stutter struct {
	memengine.MemJournal
	calls int
}

func (j *stutter) Append(record []byte) error {
	if j.calls++; j.calls%2 == 1 {
		return errFull
	}
	return j.MemJournal.Append(record)
}

// What the journal has taken it is not given again.
func TestD2EachRecordIsStoredOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		log := &stutter{}
		e := open(t, Config{Journal: log})
		_, err := e.Schedule(t.Context(), "report", "@every 5s", "mail", nil, tickonce.ScheduleOptions{})
		require.ErrorIs(t, err, errFull)
		var jobs []tickonce.JobID
		l := background(t)
		l.run("schedules", e.RunSchedules)
		l.run("worker", worker1(e, func(_ context.Context, job *Job) error {
			jobs = append(jobs, job.ID)
			return nil
		}))
		time.Sleep(17 * time.Second)
		require.Equal(t, map[string]error{"schedules": nil, "worker": nil}, l.end())
		require.Equal(t, []tickonce.JobID{1, 2, 3}, jobs)
		state, err := e.Snapshot()
		if err != nil { // the last record was refused
			state, err = e.Snapshot()
		}
		require.NoError(t, err)
		native, _, err := memengine.Open(tickonce.Config{Seed: 7}, memengine.Durable{Log: log.Bytes()})
		require.NoError(t, err)
		replayed, err := native.Snapshot()
		require.NoError(t, err)
		require.Equal(t, replayed, state)
	})
}

// A stop is not held up for ever by a journal that refuses: what it did not take
// is given up, and was never told to anybody.
func TestD2AStopOutlastsTheJournal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		log := &journal{}
		e := open(t, Config{Journal: log, Reopen: func() ([]byte, []byte, error) { return nil, log.Bytes(), nil }})
		begun := false
		l := background(t)
		l.run("worker", worker1(e, func(context.Context, *Job) error { begun = true; return nil }))
		l.run("schedules", e.RunSchedules)
		time.Sleep(time.Second)
		log.refuse(errFull)
		_, err := e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
		require.ErrorIs(t, err, errFull)
		begin := time.Now()
		ends := l.end()
		require.LessOrEqual(t, time.Since(begin), 20*time.Second)
		for name, err := range ends {
			require.ErrorIs(t, err, errFull, name)
			require.ErrorAs(t, err, new(*DeadError), name)
		}
		require.False(t, begun)

		log.refuse(nil)
		_, err = e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
		require.NoError(t, err)
		info, err := e.Queue(t.Context(), "mail")
		require.NoError(t, err)
		require.EqualValues(t, 1, info.Enqueued, "of the two")
		native, _, err := memengine.Open(tickonce.Config{Seed: 7}, memengine.Durable{Log: log.Bytes()})
		require.NoError(t, err)
		same(t, native, e)
	})
}

func TestD1StatesOfNativeEnginesAreTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx := t.Context()
		native, _, err := memengine.Open(tickonce.Config{Seed: 7}, memengine.Durable{Journal: &journal{}})
		require.NoError(t, err)
		log := &journal{}
		e := open(t, Config{Journal: log})
		for _, name := range []string{"b", "a"} {
			_, err := native.Schedule(ctx, name, "@every 1m", "mail", []byte(name), tickonce.ScheduleOptions{})
			require.NoError(t, err)
			_, err = e.Schedule(ctx, name, "@every 1m", "mail", []byte(name), tickonce.ScheduleOptions{})
			require.NoError(t, err)
		}
		same(t, native, e)

		state, err := native.Snapshot()
		require.NoError(t, err)
		restored := open(t, Config{Snapshot: state})
		same(t, native, restored)
		replayed := open(t, Config{Log: log.Bytes()})
		same(t, native, replayed)

		_, _, err = compiled(t).Open(ctx, Config{Snapshot: state[:len(state)-1]})
		require.ErrorIs(t, err, tickonce.ErrSnapshot)
		_, torn, err := compiled(t).Open(ctx, Config{Log: log.Bytes()[:len(log.Bytes())-1]})
		require.NoError(t, err)
		require.Equal(t, memengine.Recovery{Records: 1, Offset: int64(len(log.Bytes())) / 2, Torn: "ends within a record"}, torn)
	})
}
