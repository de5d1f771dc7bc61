package tickonce_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
	"github.com/tickonce/tickonce/storetest"
)

// start is what a rig's clock says at first. Tests tell the time as an offset
// from it.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// instant is start and the offset as a store has it.
func instant(offset time.Duration) store.Instant {
	return store.Instant(start.Add(offset).UnixMilli())
}

// offset is the time as an offset from start.
func offset(at time.Time) time.Duration { return at.Sub(start) }

// clock says what the test sets. Nothing waits on it: a rig is stepped.
type clock struct{ ms atomic.Int64 }

func (c *clock) Now() time.Time                       { return time.UnixMilli(c.ms.Load()).UTC() }
func (c *clock) After(time.Duration) <-chan time.Time { return nil }

// openStore makes an empty store for a rig.
type openStore func(t *testing.T, c tickonce.Config) store.Store

var stores = []struct {
	name string
	open openStore
}{
	{"memory", openMemory},
	{"naive", openNaive},
}

func openMemory(t *testing.T, c tickonce.Config) store.Store {
	t.Helper()
	s, err := memengine.NewStore(c)
	require.NoError(t, err)
	return s
}

func openNaive(_ *testing.T, c tickonce.Config) store.Store {
	now := func() store.Instant { return store.Instant(c.Clock.Now().UnixMilli()) }
	return storetest.NewNaive(now, c.Limits.Store())
}

// onEachStore runs a test on a rig with each of the stores.
func onEachStore(t *testing.T, c tickonce.Config, test func(t *testing.T, r *rig)) {
	t.Helper()
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) { test(t, newRigOn(t, c, s.open)) })
	}
}

// rig is an engine on a store, under a clock that the test sets, and a runner
// that the test steps.
type rig struct {
	*tickonce.Engine
	t      *testing.T
	ctx    context.Context
	config tickonce.Config
	clock  *clock
	store  store.Store // beneath the engine; what is written here tampers with it
	runner *tickonce.Runner
	events []tickonce.Event // since the last take
	starts int
}

// newRig is a rig on the first of the stores, for what does not depend on it.
func newRig(t *testing.T, c tickonce.Config) *rig {
	t.Helper()
	return newRigOn(t, c, stores[0].open)
}

func newRigOn(t *testing.T, c tickonce.Config, open openStore) *rig {
	t.Helper()
	r := &rig{t: t, ctx: t.Context(), config: c, clock: &clock{}}
	r.at(0)
	r.config.Clock = r.clock
	if r.config.Seed == 0 {
		r.config.Seed = 1
	}
	observer := c.Observer
	r.config.Observer = func(e tickonce.Event) {
		r.events = append(r.events, e)
		if observer != nil {
			observer(e)
		}
	}
	r.store = open(t, r.config)
	r.crash()
	return r
}

// at sets the clock.
func (r *rig) at(offset time.Duration) { r.clock.ms.Store(int64(instant(offset))) }

// now is what the clock says.
func (r *rig) now() time.Duration { return offset(r.clock.Now()) }

// restart ends the process cleanly and begins another one on the same store.
func (r *rig) restart() {
	r.t.Helper()
	require.NoError(r.t, r.runner.Stop(r.ctx))
	r.crash()
}

// crash begins another process on the same store; the lease of the one before
// is left to lapse.
func (r *rig) crash() {
	r.t.Helper()
	r.on(r.store)
}

// restore ends the process and begins another one: on a snapshot where the store
// is gone with it, else on the same store.
func (r *rig) restore() {
	r.t.Helper()
	s, ok := r.store.(*memengine.Store)
	if !ok {
		r.restart()
		return
	}
	snapshot, err := s.Snapshot()
	require.NoError(r.t, err)
	restored, err := memengine.Restore(r.config, snapshot)
	require.NoError(r.t, err)
	r.store = restored.Store()
	r.crash()
}

// eachBoot runs a test with each way in which a process begins again.
func eachBoot(t *testing.T, test func(t *testing.T, r *rig, again func())) {
	t.Helper()
	for name, again := range map[string]func(*rig){"on its store": (*rig).restart, "restored": (*rig).restore} {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) { test(t, r, func() { again(r) }) })
		})
	}
}

// on begins another process on s, which wraps the rig's store.
func (r *rig) on(s store.Store) {
	r.t.Helper()
	r.starts++
	config := r.config
	if config.Owner == "" {
		config.Owner = "process-" + strconv.Itoa(r.starts)
	}
	var err error
	r.Engine, err = tickonce.New(s, config)
	require.NoError(r.t, err)
	r.runner = r.NewRunner()
}

// ticked is what the steps from one rest to the next did.
type ticked struct {
	fires  []tickonce.Fire
	passed []tickonce.Passed
	events []tickonce.Event // since the tick before, those of other calls too
	steps  int
	next   time.Duration // when the runner wants to be called again; 0 after its end
	err    error         // of its end
}

// tick sets the clock and steps the runner until it rests, waits or ends.
func (r *rig) tick(offset time.Duration) ticked {
	r.t.Helper()
	r.at(offset)
	return r.untilRest()
}

// untilRest is tick at what the clock says, which may be too far from start
// for an offset.
func (r *rig) untilRest() ticked {
	r.t.Helper()
	const most = 10_000
	var did ticked
	for did.steps < most {
		next, report, err := r.runner.Step(r.ctx)
		did.steps++
		for fire := range report.Fires() {
			did.fires = append(did.fires, fire)
		}
		for passed := range report.Passed() {
			did.passed = append(did.passed, passed)
		}
		if err != nil || next.IsZero() {
			did.err, did.events = err, r.take()
			return did
		}
		if next.After(r.clock.Now()) {
			did.next, did.events = next.Sub(start), r.take()
			return did
		}
	}
	require.FailNow(r.t, "the runner does not rest", "%d steps at %s", most, r.clock.Now())
	return did
}

// take answers the events since the last take.
func (r *rig) take() []tickonce.Event {
	events := r.events
	r.events = nil
	return events
}

// fired are the boundaries of the schedule that fired, as offsets.
func (d ticked) fired(schedule string) []time.Duration {
	var boundaries []time.Duration
	for _, fire := range d.fires {
		if fire.Schedule == schedule {
			boundaries = append(boundaries, offset(fire.Boundary))
		}
	}
	return boundaries
}

// skips are the ranges of the schedule that were skipped.
func (d ticked) skips(schedule string) []tickonce.Skip {
	var skips []tickonce.Skip
	for _, passed := range d.passed {
		if passed.Schedule == schedule {
			skips = append(skips, passed.Skips...)
		}
	}
	return skips
}

// skipped is how many boundaries of the schedule were skipped.
func (d ticked) skipped(schedule string) int64 {
	var n int64
	for _, skip := range d.skips(schedule) {
		n += skip.Count
	}
	return n
}

// holds are the quarantined schedules, by name.
func (d ticked) holds() map[string]tickonce.Hold {
	holds := map[string]tickonce.Hold{}
	for _, passed := range d.passed {
		if passed.Hold != nil {
			holds[passed.Schedule] = *passed.Hold
		}
	}
	return holds
}

// of are the events of the kind.
func of(kind tickonce.EventKind, events []tickonce.Event) []tickonce.Event {
	var some []tickonce.Event
	for _, event := range events {
		if event.Kind == kind {
			some = append(some, event)
		}
	}
	return some
}

// schedule registers a schedule that fires into the queue "q".
func (r *rig) schedule(name, spec string, o tickonce.ScheduleOptions) tickonce.Schedule {
	r.t.Helper()
	s, err := r.Schedule(r.ctx, name, spec, "q", []byte(name), o)
	require.NoError(r.t, err)
	return s
}

// lookup reads a schedule that must be there.
func (r *rig) lookup(name string) tickonce.Schedule {
	r.t.Helper()
	s, ok, err := r.Lookup(r.ctx, name)
	require.NoError(r.t, err)
	require.True(r.t, ok, "schedule %q", name)
	return s
}

// row reads a row that must be there.
func (r *rig) row(name string) store.Schedule {
	r.t.Helper()
	var row [1]store.Schedule
	n, _, err := r.store.Schedules(r.t.Context(), name, row[:])
	require.NoError(r.t, err)
	require.Equal(r.t, 1, n, "schedule %q", name)
	require.Equal(r.t, name, row[0].Name)
	return row[0]
}

// jobs reads the jobs that the queue keeps.
func (r *rig) jobs(queue string) []store.Job {
	r.t.Helper()
	jobs := make([]store.Job, 5000)
	n, _, err := r.store.Jobs(r.t.Context(), store.Filter{Queue: queue}, jobs)
	require.NoError(r.t, err)
	require.Less(r.t, n, len(jobs))
	return jobs[:n]
}

// tamper changes a row behind the engine's back.
func (r *rig) tamper(name string, change func(row *store.Schedule)) {
	r.t.Helper()
	row := r.row(name)
	guard := store.Guard{Name: name, ID: row.ID, Rev: row.Rev}
	change(&row)
	done, err := r.store.Commit(r.t.Context(), &store.Batch{Puts: []store.Put{{Guard: guard, Row: row}}})
	require.NoError(r.t, err)
	require.Zero(r.t, done.Refusal)
}

// contents is all that the store keeps but for leases: equal before and after
// what must change nothing.
type contents struct {
	Schedules []store.Schedule
	Jobs      []store.Job
	Queues    []store.Queue
}

func (r *rig) contents() contents {
	r.t.Helper()
	ctx := r.t.Context()
	c := contents{make([]store.Schedule, 200), nil, make([]store.Queue, 200)}
	n, _, err := r.store.Schedules(ctx, "", c.Schedules)
	require.NoError(r.t, err)
	require.Less(r.t, n, len(c.Schedules))
	c.Schedules = c.Schedules[:n]
	n, _, err = r.store.Queues(ctx, "", c.Queues)
	require.NoError(r.t, err)
	require.Less(r.t, n, len(c.Queues))
	c.Queues = c.Queues[:n]
	for _, q := range c.Queues {
		c.Jobs = append(c.Jobs, r.jobs(q.Name)...)
	}
	return c
}

// seconds are offsets in seconds.
func seconds(s ...int) []time.Duration {
	var offsets []time.Duration
	for _, n := range s {
		offsets = append(offsets, time.Duration(n)*time.Second)
	}
	return offsets
}

// every are n offsets, the first at from.
func every(interval, from time.Duration, n int) []time.Duration {
	var offsets []time.Duration
	for i := range n {
		offsets = append(offsets, from+time.Duration(i)*interval)
	}
	return offsets
}
