package faultstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
	"github.com/tickonce/tickonce/storetest"
)

const now store.Instant = 1_000_000

// world is a naive store with a due schedule, a claimed job, a ready one and a
// lease, behind a store that gives one verdict to every call.
type world struct {
	inner   *storetest.Naive
	store   *faultstore.Store
	ops     []faultstore.Op
	row     store.Schedule
	claimed store.Job
	lease   store.Lease
}

func newWorld(t *testing.T, v faultstore.Verdict) *world {
	t.Helper()
	w := &world{inner: storetest.NewNaive(func() store.Instant { return now }, store.Limits{})}
	in := store.Insert{Queue: "q", RunAt: store.None, Stamps: store.Stamps{VisibilityMS: 100, MaxAttempts: 3}}
	c, err := w.inner.Commit(t.Context(), &store.Batch{
		Puts: []store.Put{{
			Guard: store.Guard{Name: "s"},
			Row:   store.Schedule{Name: "s", Queue: "q", DueAt: now, Stamps: store.Stamps{VisibilityMS: 100, MaxAttempts: 3}},
		}},
		Inserts: []store.Insert{in, in},
	})
	require.NoError(t, err)
	w.row = c.Puts[0]
	jobs := make([]store.Job, 1)
	_, err = w.inner.Claim(t.Context(), "q", "w", jobs)
	require.NoError(t, err)
	w.claimed = jobs[0]
	g, err := w.inner.Acquire(t.Context(), "l", "a", 1000)
	require.NoError(t, err)
	w.lease = g.Lease
	w.store = faultstore.New(w.inner, func(op faultstore.Op) faultstore.Verdict {
		w.ops = append(w.ops, op)
		return v
	})
	return w
}

// dump is all that the inner store tells of its rows.
func (w *world) dump(t *testing.T) []any {
	t.Helper()
	schedules, jobs, queues := make([]store.Schedule, 9), make([]store.Job, 9), make([]store.Queue, 9)
	n, _, err := w.inner.Schedules(t.Context(), "", schedules)
	require.NoError(t, err)
	k, _, err := w.inner.Jobs(t.Context(), store.Filter{Queue: "q"}, jobs)
	require.NoError(t, err)
	m, _, err := w.inner.Queues(t.Context(), "", queues)
	require.NoError(t, err)
	// A lease is read by asking for its lock in another's name.
	held, err := w.inner.Acquire(t.Context(), "l", "reader", 1)
	require.NoError(t, err)
	free, err := w.inner.Acquire(t.Context(), "m", "reader", 1)
	require.NoError(t, err)
	return []any{schedules[:n], jobs[:k], queues[:m], held, free}
}

// calls has one call for each method. A call returns what the store answered
// and the caller's memory that it may write to.
var calls = []struct {
	op     faultstore.Op
	writes bool
	call   func(ctx context.Context, w *world) (answer, memory any, err error)
}{
	{faultstore.Op{Method: faultstore.Schedules}, false, func(ctx context.Context, w *world) (any, any, error) {
		dst := make([]store.Schedule, 2)
		n, at, err := w.store.Schedules(ctx, "", dst)
		return []any{n, at}, dst, err
	}},
	{faultstore.Op{Method: faultstore.Jobs, Queue: "q"}, false, func(ctx context.Context, w *world) (any, any, error) {
		dst := make([]store.Job, 2)
		n, at, err := w.store.Jobs(ctx, store.Filter{Queue: "q"}, dst)
		return []any{n, at}, dst, err
	}},
	{faultstore.Op{Method: faultstore.Queues}, false, func(ctx context.Context, w *world) (any, any, error) {
		dst := make([]store.Queue, 2)
		n, at, err := w.store.Queues(ctx, "", dst)
		return []any{n, at}, dst, err
	}},
	{faultstore.Op{Method: faultstore.Due}, false, func(ctx context.Context, w *world) (any, any, error) {
		dst := make([]store.Schedule, 2)
		due, err := w.store.Due(ctx, dst)
		return due, dst, err
	}},
	{faultstore.Op{Method: faultstore.Advance, Lock: "l"}, true, func(ctx context.Context, w *world) (any, any, error) {
		t := store.Tick{
			By: w.lease, Now: now,
			Moves: []store.Move{{ID: w.row.ID, Rev: w.row.Rev, DueAt: now + 1000, Fires: 1}},
			Fires: []store.Fire{{Boundary: now}},
		}
		held, err := w.store.Advance(ctx, &t)
		return held, []any{t.Moves[0].Outcome, t.Fires[0].Job}, err
	}},
	{faultstore.Op{Method: faultstore.Claim, Queue: "q"}, true, func(ctx context.Context, w *world) (any, any, error) {
		dst := make([]store.Job, 2)
		c, err := w.store.Claim(ctx, "q", "w", dst)
		return c, dst, err
	}},
	{faultstore.Op{Method: faultstore.Settle}, true, func(ctx context.Context, w *world) (any, any, error) {
		out := make([]bool, 1)
		at, err := w.store.Settle(ctx, []store.Settle{{Job: w.claimed.ID, Attempt: 1, To: store.Done}}, out)
		return at, out, err
	}},
	{faultstore.Op{Method: faultstore.Extend}, true, func(ctx context.Context, w *world) (any, any, error) {
		out := make([]store.Instant, 1)
		at, err := w.store.Extend(ctx, []store.Extend{{Job: w.claimed.ID, Attempt: 1, ForMS: 500}}, out)
		return at, out, err
	}},
	{faultstore.Op{Method: faultstore.Acquire, Lock: "m"}, true, func(ctx context.Context, w *world) (any, any, error) {
		g, err := w.store.Acquire(ctx, "m", "a", 1000)
		return g, nil, err
	}},
	{faultstore.Op{Method: faultstore.Renew, Lock: "l"}, true, func(ctx context.Context, w *world) (any, any, error) {
		g, err := w.store.Renew(ctx, w.lease, 5000)
		return g, nil, err
	}},
	{faultstore.Op{Method: faultstore.Release, Lock: "l"}, true, func(ctx context.Context, w *world) (any, any, error) {
		ok, err := w.store.Release(ctx, w.lease)
		return ok, nil, err
	}},
	{faultstore.Op{Method: faultstore.Commit}, true, func(ctx context.Context, w *world) (any, any, error) {
		c, err := w.store.Commit(ctx, &store.Batch{Inserts: []store.Insert{{Queue: "q", RunAt: store.None}}})
		return []any{c.Now, c.Inserts}, nil, err
	}},
}

// The wrapper against a twin that calls the inner store without it: a passed
// call is the twin's in answer, memory and rows; of a lost one the rows are
// the twin's before or after, and answer and memory those of no call.
func TestVerdicts(t *testing.T) {
	for _, c := range calls {
		t.Run(c.op.Method.String(), func(t *testing.T) {
			untouched := newWorld(t, faultstore.Pass)
			before := untouched.dump(t)
			passed := newWorld(t, faultstore.Pass)
			answer, memory, err := c.call(t.Context(), passed)
			require.NoError(t, err)
			after := passed.dump(t)
			if c.writes {
				require.NotEqual(t, before, after, "the call writes")
			}
			op := c.op
			op.Number = 1
			require.Equal(t, []faultstore.Op{op}, passed.ops)

			for _, lost := range []struct {
				name    string
				verdict faultstore.Verdict
				rows    []any
			}{
				{"request", faultstore.LoseRequest, before},
				{"reply", faultstore.LoseReply, after},
			} {
				w := newWorld(t, lost.verdict)
				none, untouched, err := c.call(t.Context(), w)
				require.ErrorIs(t, err, faultstore.ErrLost, lost.name)
				var e *faultstore.Lost
				require.ErrorAs(t, err, &e, lost.name)
				require.Equal(t, faultstore.Lost{Op: op, Applied: lost.verdict == faultstore.LoseReply}, *e, lost.name)
				require.Equal(t, lost.rows, w.dump(t), lost.name)
				require.NotEqual(t, answer, none, lost.name)
				if memory != nil {
					require.NotEqual(t, memory, untouched, lost.name)
				}
				require.Equal(t, zeroed(t, c.call), [2]any{none, untouched}, lost.name)
			}
		})
	}
}

// zeroed is the answer and the memory of a call that reached no store.
func zeroed(t *testing.T, call func(ctx context.Context, w *world) (answer, memory any, err error)) [2]any {
	t.Helper()
	w := newWorld(t, faultstore.Pass)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	answer, memory, err := call(ended, w)
	require.ErrorIs(t, err, context.Canceled)
	return [2]any{answer, memory}
}

func TestLostReplyOfAFailedCallWasNotApplied(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newWorld(t, faultstore.LoseReply).store.Due(ended, nil)
	var e *faultstore.Lost
	require.ErrorAs(t, err, &e)
	require.False(t, e.Applied)
}

// What runs before a call may change what the call finds, and may itself call
// the store.
func TestBeforeRunsBetweenCallAndStore(t *testing.T) {
	w := newWorld(t, faultstore.Pass)
	var seen []string
	w.store.Before = func(op faultstore.Op) {
		seen = append(seen, op.String())
		if op.Method == faultstore.Advance {
			ok, err := w.store.Release(t.Context(), w.lease)
			require.NoError(t, err)
			require.True(t, ok)
		}
	}
	held, err := w.store.Advance(t.Context(), &store.Tick{By: w.lease, Now: now})
	require.NoError(t, err)
	require.False(t, held)
	require.Equal(t, []string{"advance l #1", "release l #2"}, seen)
	require.Equal(t, []faultstore.Op{
		{Method: faultstore.Release, Lock: "l", Number: 2}, {Method: faultstore.Advance, Lock: "l", Number: 1},
	}, w.ops)
}

// What runs after a call finds what it did, before its caller is told.
func TestAfterRunsBetweenStoreAndCaller(t *testing.T) {
	for _, c := range []struct {
		verdict faultstore.Verdict
		ready   int64
	}{{faultstore.Pass, 2}, {faultstore.LoseReply, 2}, {faultstore.LoseRequest, 1}} {
		w := newWorld(t, c.verdict)
		ran := false
		w.store.After = func(op faultstore.Op) {
			ran = true
			require.Equal(t, faultstore.Op{Method: faultstore.Commit, Number: 1}, op)
			rows := make([]store.Queue, 1)
			_, _, err := w.inner.Queues(t.Context(), "", rows)
			require.NoError(t, err)
			require.Equal(t, c.ready, rows[0].Pending)
		}
		_, err := w.store.Commit(t.Context(), &store.Batch{Inserts: []store.Insert{{Queue: "q", RunAt: store.None}}})
		require.Equal(t, c.verdict != faultstore.Pass, err != nil)
		require.True(t, ran)
	}
}

func TestBeforeRunsForALostCallToo(t *testing.T) {
	w := newWorld(t, faultstore.LoseRequest)
	ran := false
	w.store.Before = func(faultstore.Op) { ran = true }
	_, err := w.store.Commit(t.Context(), &store.Batch{})
	require.True(t, errors.Is(err, faultstore.ErrLost))
	require.True(t, ran)
}

func TestText(t *testing.T) {
	for op, want := range map[faultstore.Op]string{
		{Method: faultstore.Claim, Queue: "mail", Number: 7}: "claim mail #7",
		{Method: faultstore.Renew, Lock: "l", Number: 12}:    "renew l #12",
		{Method: faultstore.Commit, Number: 1}:               "commit #1",
		{Method: 99}:                                         "method 99 #0",
	} {
		require.Equal(t, want, op.String())
	}
	request, reply := faultstore.Lost{Applied: false}, faultstore.Lost{Applied: true}
	require.Equal(t, "store call lost: schedules #0", request.Error())
	require.Equal(t, request.Error(), reply.Error())
}

// A store that loses nothing is one like any other.
func TestPassConforms(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, at func() store.Instant, limits store.Limits) store.Store {
		return faultstore.New(storetest.NewNaive(at, limits), func(faultstore.Op) faultstore.Verdict { return faultstore.Pass })
	})
}
