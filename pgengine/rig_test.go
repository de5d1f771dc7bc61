package pgengine

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
	"github.com/tickonce/tickonce/store"
)

// start is what a rig's clock says at first. Tests tell the time as an offset
// from it.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// rig is an engine whose statements go through a proxy, under a clock that the
// test sets and by which all is judged.
type rig struct {
	*Engine
	t      *testing.T
	proxy  *pgtest.Proxy
	admin  *pgxpool.Pool // not through the proxy
	schema string
	ms     atomic.Int64
	events []tickonce.Event
}

func (r *rig) Now() time.Time                       { return time.UnixMilli(r.ms.Load()).UTC() }
func (r *rig) After(time.Duration) <-chan time.Time { return nil } // nothing waits: a rig is stepped

func newRig(t *testing.T, server *pgtest.Server, c tickonce.Config) *rig {
	t.Helper()
	r := &rig{t: t, proxy: server.Proxy(t), admin: server.Pool(t), schema: pgtest.Schema(t)}
	_, err := Migrate(ctx, r.admin, r.schema)
	require.NoError(t, err)
	r.on(r.proxy.Config(t, pgtest.Superuser), c)
	return r
}

// on has the engine begin anew with the connections.
func (r *rig) on(config *pgxpool.Config, c tickonce.Config) {
	r.t.Helper()
	c.Clock, c.Seed, c.Poll = r, 1, -1
	c.Observer = func(e tickonce.Event) { r.events = append(r.events, e) }
	r.ms.Store(start.UnixMilli())
	var err error
	r.Engine, err = New(ctx, pgtest.Open(r.t, config), c, Options{
		Schema: r.schema, Now: func() store.Instant { return store.Instant(r.ms.Load()) },
	})
	require.NoError(r.t, err)
}

// table is the name of one, quoted.
func (r *rig) table(name string) string { return quoted(r.schema, name) }

func (r *rig) schedule(name, spec string) {
	r.t.Helper()
	_, err := r.Schedule(ctx, name, spec, "q", nil, tickonce.ScheduleOptions{})
	require.NoError(r.t, err)
}

// run steps the runner until so long after the start, or to its end.
func (r *rig) run(runner *tickonce.Runner, until time.Duration) error {
	r.t.Helper()
	for {
		next, _, err := runner.Step(ctx)
		if next.IsZero() {
			return err
		}
		if next.After(start.Add(until)) {
			r.ms.Store(start.Add(until).UnixMilli())
			return nil
		}
		r.ms.Store(max(r.ms.Load(), next.UnixMilli()))
	}
}

// fires returns the jobs of the queue, as their schedule and boundary, sorted.
func (r *rig) fires() (fires []string) {
	r.t.Helper()
	s := newStore(r.admin, r.schema, store.Limits{}, nil)
	jobs := make([]store.Job, 2000)
	n, _, err := s.Jobs(ctx, store.Filter{Queue: "q"}, jobs)
	require.NoError(r.t, err)
	for _, job := range jobs[:n] {
		fires = append(fires, fmt.Sprint(job.Schedule, " ", time.UnixMilli(int64(job.FireAt)).Sub(start)))
	}
	slices.Sort(fires)
	return fires
}

// of returns the events of the kind.
func (r *rig) of(kind tickonce.EventKind) []tickonce.Event {
	return slices.DeleteFunc(slices.Clone(r.events), func(e tickonce.Event) bool { return e.Kind != kind })
}
