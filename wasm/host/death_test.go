//go:build !wasm

package host

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/wasm/wire"
)

// kill has the guest ask for more memory than it may have.
func kill(t *testing.T, e *Engine) error {
	var err error
	for range 200 {
		if _, err = e.Enqueue(t.Context(), "heap", make([]byte, 1<<20), tickonce.EnqueueOptions{}); err != nil {
			break
		}
	}
	return err
}

// bury has the guest die of nothing in its log, which would kill the next one.
func bury(e *Engine) {
	e.mu.Lock()
	defer e.unlock()
	e.die(&fault{err: errors.New("out of bounds memory access")})
}

// small is the module with little memory.
func small(t *testing.T) *Module {
	compiled(t) // into the cache
	m, err := Compile(context.Background(), guest(t), Options{Memory: 64 << 20, CacheDir: cache})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close(context.Background())) })
	return m
}

func TestADeadGuestSaysSo(t *testing.T) {
	m := small(t)
	e, _, err := m.Open(t.Context(), Config{})
	require.NoError(t, err)
	l := background(t)
	l.run("schedules", e.RunSchedules)
	err = kill(t, e)
	var dead *DeadError
	require.ErrorAs(t, err, &dead)
	require.ErrorContains(t, err, "out of memory")
	_, err = e.Snapshot()
	require.ErrorAs(t, err, &dead)
	require.Error(t, e.RunSchedules(t.Context()))
	require.ErrorAs(t, l.end()["schedules"], &dead)
	require.NoError(t, e.Close())
	_, _, err = e.Lookup(t.Context(), "report")
	require.Equal(t, ErrClosed, err)
	require.Equal(t, ErrClosed, e.RunSchedules(t.Context()))
	require.NoError(t, e.Close())

	other, _, err := m.Open(t.Context(), Config{})
	require.NoError(t, err, "other instances of the module live")
	require.NoError(t, other.Close())
}

// An argument that the memory has no room for is not refused, it is the end: the
// guest cannot know before it asks for more.
func TestAnArgumentBeyondTheMemoryKillsTheGuest(t *testing.T) {
	i, err := small(t).start(t.Context())
	require.NoError(t, err)
	defer i.discard()
	_, err = i.do(t.Context(), i.exported.alloc, 1<<20)
	require.NoError(t, err)
	_, err = i.do(t.Context(), i.exported.alloc, wire.MaxBlock)
	var dead *fault
	require.ErrorAs(t, err, &dead)
	require.ErrorContains(t, err, "out of memory")
}

func TestADeadGuestIsReopened(t *testing.T) {
	m := small(t)
	inBubble(t, func(t *testing.T) {
		log := &journal{}
		var full atomic.Bool // whoever asks first, this test or the loops
		full.Store(true)
		e, _, err := m.Open(t.Context(), Config{Journal: log, Reopen: func() ([]byte, []byte, error) {
			if full.Load() {
				return nil, nil, errFull
			}
			return nil, log.Bytes(), nil
		}})
		require.NoError(t, err)
		defer e.Close()
		kept, err := e.Enqueue(t.Context(), "kept", nil, tickonce.EnqueueOptions{})
		require.NoError(t, err)
		claim, err := e.Claim(t.Context(), "kept", "w")
		require.NoError(t, err)
		var attempts []int
		lost := make(chan error, 2)
		l := background(t)
		l.run("worker", worker1(e, func(ctx context.Context, job *Job) error {
			if attempts = append(attempts, job.Attempt); job.Attempt == 1 {
				<-ctx.Done()
				lost <- context.Cause(ctx)
			}
			return nil
		}))
		l.run("schedules", e.RunSchedules)
		_, err = e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{Visibility: 10 * time.Second})
		require.NoError(t, err)
		synctest.Wait()

		bury(e)
		_, _, err = e.Lookup(t.Context(), "report")
		require.ErrorIs(t, err, errFull)
		full.Store(false)
		require.Equal(t, tickonce.ErrClaimLost, <-lost)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		require.Equal(t, []int{1, 2}, attempts, "the job is handed out again when its claim has lapsed")
		require.ErrorIs(t, claim.Ack(t.Context()), tickonce.ErrClaimLost)
		cancelled, err := e.Cancel(t.Context(), "kept", kept)
		require.NoError(t, err)
		require.True(t, cancelled)
		require.Equal(t, map[string]error{"worker": nil, "schedules": nil}, l.end())
	})
}

// An instance that is opened from an older state gives the tokens of the one
// before again, to others. Those who had them from that have lost them.
func TestD6TheTokensOfADeadGuestAreLost(t *testing.T) {
	var state []byte
	e := open(t, Config{Reopen: func() ([]byte, []byte, error) { return state, nil, nil }})
	ctx := t.Context()
	for range 2 {
		_, err := e.Enqueue(ctx, "mail", nil, tickonce.EnqueueOptions{})
		require.NoError(t, err)
	}
	state, err := e.Snapshot()
	require.NoError(t, err)
	take := func(owner string) ([]*Job, *Lock) {
		jobs, err := e.ClaimBatch(ctx, "mail", owner, 2)
		require.NoError(t, err)
		require.Len(t, jobs, 2)
		lock, err := e.Lock(ctx, "database", owner, time.Hour)
		require.NoError(t, err)
		return jobs, lock
	}
	lost, lostLock := take("a")
	bury(e)
	jobs, lock := take("b")
	require.Equal(t, lost[0].claim, jobs[0].claim)
	require.Equal(t, lostLock.Term(), lock.Term())

	for what, err := range map[string]error{
		"ack": lost[0].Ack(ctx), "retry": lost[0].Retry(ctx, nil), "fail": lost[0].Fail(ctx, nil),
		"heartbeat": lost[0].Heartbeat(ctx, time.Hour), "deliver": lost[0].Deliver("post", nil),
		"in a transaction": e.Tx(ctx, func(tx *Tx) error { return tx.Ack(lost[0]) }),
		"beside one that is live": e.Tx(ctx, func(tx *Tx) error {
			return errors.Join(tx.Ack(jobs[0]), tx.Ack(lost[1]))
		}),
	} {
		require.ErrorIs(t, err, tickonce.ErrClaimLost, what)
	}
	acked, err := e.AckAll(ctx, []*Job{lost[1], jobs[0], lost[0]})
	require.NoError(t, err)
	require.Equal(t, []bool{false, true, false}, acked)
	require.NoError(t, e.Tx(ctx, func(tx *Tx) error {
		require.ErrorIs(t, tx.Ack(lost[1]), tickonce.ErrClaimLost)
		return tx.Ack(jobs[1])
	}))
	for _, held := range []func(context.Context) (bool, error){
		func(ctx context.Context) (bool, error) { return lostLock.Renew(ctx, time.Hour) }, lostLock.Release,
	} {
		done, err := held(ctx)
		require.NoError(t, err)
		require.False(t, done)
	}
	held, err := lock.Release(ctx)
	require.NoError(t, err)
	require.True(t, held)

	err = e.Tx(ctx, func(tx *Tx) error { // it dies before the commit
		bury(e)
		jobs, _ := take("a")
		require.NoError(t, tx.Ack(jobs[0]))
		bury(e)
		jobs, _ = take("b")
		require.ErrorIs(t, tx.Ack(jobs[1]), tickonce.ErrClaimLost, "no commit can have both")
		return nil
	})
	require.ErrorIs(t, err, tickonce.ErrClaimLost)
	info, err := e.Queue(ctx, "mail")
	require.NoError(t, err)
	require.EqualValues(t, 2, info.Claimed)
}

// Nothing is appended behind a record that is torn, where it would not be found:
// the instance goes on once that is cut off.
func TestD3ADeadGuestIsNotReopenedBehindATornRecord(t *testing.T) {
	log := &journal{}
	torn := []byte{1}
	e := open(t, Config{Journal: log, Reopen: func() ([]byte, []byte, error) { return nil, append(log.Bytes(), torn...), nil }})
	enqueue := func() error {
		_, err := e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
		return err
	}
	require.NoError(t, enqueue())
	stored := log.Bytes()
	bury(e)
	for range 2 {
		err := enqueue()
		require.ErrorAs(t, err, new(*DeadError))
		require.ErrorContains(t, err, "the log ends within the frame of a record: cut it at byte "+strconv.Itoa(len(stored)))
		require.Equal(t, stored, log.Bytes())
	}
	torn = nil
	require.NoError(t, enqueue())
	native, found, err := memengine.Open(tickonce.Config{Seed: 7}, memengine.Durable{Log: log.Bytes()})
	require.NoError(t, err)
	require.Empty(t, found.Torn)
	same(t, native, e)
}

// endless is a module with the exports of the guest, of which no call returns.
func endless() []byte {
	functions := []byte{byte(len(exports)) + 1}
	for i, name := range append([]string{"_initialize"}, exports[:]...) {
		functions = append(append(functions, byte(len(name))), name...)
		functions = append(functions, 0, byte(min(i, 1))) // a function, its index
	}
	module := []byte("\x00asm\x01\x00\x00\x00")
	for _, section := range []struct {
		id   byte
		body []byte
	}{
		{1, []byte{2, 0x60, 0, 0, 0x60, 0, 1, 0x7f}}, // types: () and () i32
		{3, []byte{2, 0, 1}},                         // functions: of the one, and of the other
		{7, functions},                               // exports
		{10, []byte{2, 2, 0, 0x0b, 8, 0, 0x03, 0x40, 0x0c, 0, 0x0b, 0x00, 0x0b}}, // code: none, and loop br 0 end unreachable
	} {
		module = append(append(module, section.id, byte(len(section.body)), byte(len(section.body)>>7)), section.body...)
		module[len(module)-len(section.body)-2] |= 0x80 // more of the length follows
	}
	return module
}

func TestCallTimeout(t *testing.T) {
	m, err := Compile(t.Context(), endless(), Options{CallTimeout: time.Millisecond})
	require.NoError(t, err)
	defer m.Close(t.Context())
	_, _, err = m.Open(t.Context(), Config{})
	require.ErrorContains(t, err, "a call of the guest took longer than 1ms")
}

func TestClose(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var observed sync.Map
		e := open(t, Config{Config: tickonce.Config{Observer: func(e tickonce.Event) { observed.Store(e.Kind, true) }}})
		_, err := e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
		require.NoError(t, err)
		cause := make(chan error, 1)
		l := background(t)
		l.run("schedules", e.RunSchedules)
		l.run("worker", worker1(e, func(ctx context.Context, _ *Job) error {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return nil
		}))
		l.run("details", func(ctx context.Context) error {
			for range e.Details(ctx) {
				return errFull
			}
			return nil
		})
		time.Sleep(time.Second)
		require.NoError(t, e.Close())
		require.Equal(t, ErrClosed, <-cause)
		l.wait.Wait()
		require.Equal(t, map[string]error{"schedules": ErrClosed, "worker": ErrClosed, "details": nil}, l.ends)
		require.Equal(t, ErrClosed, e.RunSchedules(t.Context()))
		_, retried := observed.Load(tickonce.EventRetrying)
		require.False(t, retried, "nothing is tried again")
	})
}
