package tickonce_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// wire stands between a rig's engine and its store.
type wire struct {
	before func(faultstore.Op)                    // nil: nothing
	lose   func(faultstore.Op) faultstore.Verdict // nil: none
	calls  []faultstore.Method                    // since the last take
	times  []time.Duration                        // when they were made
}

// wire begins another process that reaches the store over a wire.
func (r *rig) wire() *wire {
	r.t.Helper()
	w := &wire{}
	s := faultstore.New(r.store, func(op faultstore.Op) faultstore.Verdict {
		if w.lose == nil {
			return faultstore.Pass
		}
		return w.lose(op)
	})
	s.Before = func(op faultstore.Op) {
		w.calls, w.times = append(w.calls, op.Method), append(w.times, r.now())
		if w.before != nil {
			w.before(op)
		}
	}
	r.on(s)
	return w
}

// take answers the calls since the last take as one line.
func (w *wire) take() string {
	var names []string
	for _, method := range w.calls {
		names = append(names, method.String())
	}
	w.calls, w.times = nil, nil
	return strings.Join(names, " ")
}

// count is how many of the calls are of the methods.
func (w *wire) count(methods ...faultstore.Method) int {
	n := 0
	for _, call := range w.calls {
		for _, method := range methods {
			if call == method {
				n++
			}
		}
	}
	return n
}

// lead steps the rig's runner until it leads and rests.
func (r *rig) lead() store.Lease {
	r.t.Helper()
	require.NoError(r.t, r.tick(r.now()).err)
	lease := r.leader()
	require.NotZero(r.t, lease, "nobody leads")
	return lease
}

// leader is the live lease of the scheduler's lock, or zero.
func (r *rig) leader() store.Lease {
	r.t.Helper()
	grant, err := r.store.Acquire(r.t.Context(), schedulerLock, "probe", 1)
	require.NoError(r.t, err)
	if !grant.OK {
		return grant.Lease
	}
	_, err = r.store.Release(r.t.Context(), grant.Lease)
	require.NoError(r.t, err)
	return store.Lease{}
}

// step makes one step, which must not be the last.
func (r *rig) step() (next time.Duration, report *tickonce.Report) {
	r.t.Helper()
	at, report, err := r.runner.Step(r.ctx)
	require.NoError(r.t, err)
	require.False(r.t, at.IsZero(), "the runner ended")
	return offset(at), report
}

// stepTo steps until the runner has just made the call.
func (r *rig) stepTo(w *wire, method faultstore.Method) {
	r.t.Helper()
	for range 100 {
		w.take()
		r.step()
		if w.count(method) > 0 {
			w.take()
			return
		}
	}
	require.FailNow(r.t, "the runner never made the call", method.String())
}

// another is another process on the same store, under the same clock.
func (r *rig) another() *rig {
	r.t.Helper()
	other := &rig{t: r.t, ctx: r.ctx, config: r.config, clock: r.clock, store: r.store, starts: r.starts + 100}
	other.config.Observer = func(e tickonce.Event) { other.events = append(other.events, e) }
	other.on(r.store)
	return other
}

// steal acquires the scheduler's lock, which must be free.
func (r *rig) steal(owner string) store.Lease {
	r.t.Helper()
	grant, err := r.store.Acquire(r.t.Context(), schedulerLock, owner, leaseTTL.Milliseconds())
	require.NoError(r.t, err)
	require.True(r.t, grant.OK, "the lock is held")
	return grant.Lease
}

// offline is a store error of every call.
func offline(faultstore.Op) faultstore.Verdict { return faultstore.LoseRequest }

// once is a hook that runs do before the first call of the method.
func once(method faultstore.Method, do func()) func(faultstore.Op) {
	done := false
	return func(op faultstore.Op) {
		if op.Method == method && !done {
			done = true
			do()
		}
	}
}

// first loses the first n calls of the method.
func first(n int, method faultstore.Method, verdict faultstore.Verdict) func(faultstore.Op) faultstore.Verdict {
	return func(op faultstore.Op) faultstore.Verdict {
		if op.Method != method || n == 0 {
			return faultstore.Pass
		}
		n--
		return verdict
	}
}

// newDraw draws whole numbers below n from a sequence of its own.
func newDraw(seed uint64) func(n int) int {
	return func(n int) int {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int(seed >> 33 % uint64(n))
	}
}

func opError(t *testing.T, err error) *tickonce.OpError {
	t.Helper()
	var op *tickonce.OpError
	require.True(t, errors.As(err, &op), "%v is no *OpError", err)
	return op
}
