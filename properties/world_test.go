package properties_test

import (
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
	"github.com/tickonce/tickonce/storetest"
)

var ctx = context.Background()

// start is what every clock says at first.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// clock says what a property sets. Nothing waits on it.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time                       { return c.now }
func (c *clock) After(time.Duration) <-chan time.Time { panic("a stepped runner waits for nothing") }
func (c *clock) read() store.Instant                  { return store.Instant(c.now.UnixMilli()) }
func (c *clock) move(d time.Duration)                 { c.now = c.now.Add(d) }

// world is engines on one store, and runners that are stepped, under one clock.
type world struct {
	t       require.TestingT
	clock   *clock // of the store
	host    *clock // of the engines; nil: the store's
	shiftMS int64  // by how much later than elsewhere it does the same
	store   store.Store
	engines []*tickonce.Engine // the first one makes the calls that are no steps
	runners []*tickonce.Runner // the i-th is of the i-th engine; nil before its first step
	runs    []int              // which of all the runs it is
	run     int                // the latest
	events  []tickonce.Event   // since the last take

	claims []*tickonce.Job // all that were ever claimed
	locks  []*tickonce.Lock
}

// config is the configuration of every engine, before what a property is about.
func (w *world) config(c tickonce.Config) tickonce.Config {
	c.Clock, c.Seed, c.Owner = w.hostClock(), 1, "engine"
	c.Observer = func(e tickonce.Event) { w.events = append(w.events, e) }
	return c
}

func (w *world) hostClock() *clock {
	if w.host != nil {
		return w.host
	}
	return w.clock
}

// move moves all clocks.
func (w *world) move(d time.Duration) {
	w.clock.move(d)
	if w.host != nil {
		w.host.move(d)
	}
}

// shifted is when this world does what others do at that time.
func (w *world) shifted(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return time.UnixMilli(at.UnixMilli() + w.shiftMS).UTC()
}

// The stores of worlds.
const (
	memory = "memory"
	naive  = "naive"
)

func (w *world) open(kind string, c tickonce.Config) store.Store {
	if kind == naive {
		return storetest.NewNaive(w.clock.read, c.Limits.Store())
	}
	s, err := memengine.NewStore(c)
	require.NoError(w.t, err)
	return s
}

// newWorld is a world of one engine with so many runners.
func newWorld(t require.TestingT, c tickonce.Config, kind string, runners int) *world {
	w := &world{t: t, clock: &clock{now: start}}
	c = w.config(c)
	w.store = w.open(kind, c)
	e, err := tickonce.New(w.store, c)
	require.NoError(t, err)
	w.staff(slices.Repeat([]*tickonce.Engine{e}, runners)...)
	return w
}

// staff gives the world its engines, each with a runner to come.
func (w *world) staff(engines ...*tickonce.Engine) {
	w.engines = engines
	w.runners, w.runs = make([]*tickonce.Runner, len(engines)), make([]int, len(engines))
}

func (w *world) engine() *tickonce.Engine { return w.engines[0] }

// took is what one step did.
type took struct {
	Run    int
	Phase  tickonce.Phase
	Next   time.Time
	Fires  []tickonce.Fire
	Passed []tickonce.Passed
	Err    string
}

// step steps a runner, a new one where the last has ended.
func (w *world) step(runner int) took {
	r := w.begun(runner)
	next, report, err := r.Step(ctx)
	if next.IsZero() {
		w.runners[runner] = nil
	}
	return took{
		Run: w.runs[runner], Phase: report.Phase, Next: next, Err: text(err),
		Fires: slices.Collect(report.Fires()), Passed: slices.Collect(report.Passed()),
	}
}

func (w *world) begun(runner int) *tickonce.Runner {
	if w.runners[runner] == nil {
		w.run++
		w.runners[runner], w.runs[runner] = w.engines[runner].NewRunner(), w.run
	}
	return w.runners[runner]
}

// rest steps the runners in turns until all of them sleep or have ended, and
// answers what the steps did.
func (w *world) rest() []took {
	const most = 20_000
	var all []took
	for asleep := 0; asleep < len(w.runners); {
		for i := range w.runners {
			took := w.step(i)
			all = append(all, took)
			if asleep++; !took.Next.IsZero() && !took.Next.After(w.hostClock().now) {
				asleep = 0
			}
		}
		require.Less(w.t, len(all), most, "the runners find no rest")
	}
	return all
}

// free takes a lock from whoever has it, and gives it back; and with it goes
// what has expired.
func (w *world) free(lock string) {
	for taken := false; !taken; {
		grant, err := w.store.Acquire(ctx, lock, "usurper", 1000)
		require.NoError(w.t, err)
		_, err = w.store.Release(ctx, grant.Lease)
		require.NoError(w.t, err)
		taken = grant.OK
	}
}

// schedules, queues and jobs are the rows of the store.
func (w *world) schedules() []store.Schedule {
	rows := make([]store.Schedule, 20)
	n, _, err := w.store.Schedules(ctx, "", rows)
	require.NoError(w.t, err)
	require.Less(w.t, n, len(rows))
	return rows[:n]
}

func (w *world) queues() []store.Queue {
	rows := make([]store.Queue, 20)
	n, _, err := w.store.Queues(ctx, "", rows)
	require.NoError(w.t, err)
	require.Less(w.t, n, len(rows))
	return rows[:n]
}

func (w *world) jobs(queue string, from store.JobID) []store.Job {
	var all []store.Job
	page := make([]store.Job, 100)
	for {
		n, _, err := w.store.Jobs(ctx, store.Filter{Queue: queue, From: from}, page)
		require.NoError(w.t, err)
		all = append(all, page[:n]...)
		if n < len(page) {
			return all
		}
		from = page[n-1].ID + 1
	}
}

// rows is all that the store keeps, but for leases.
func (w *world) rows() any {
	var jobs []store.Job
	for _, q := range w.queues() {
		jobs = append(jobs, w.jobs(q.Name, 0)...)
	}
	return []any{w.schedules(), w.queues(), jobs}
}

// snapshot is all that a store in memory keeps, as bytes.
func (w *world) snapshot() []byte {
	b, err := w.store.(*memengine.Store).Snapshot()
	require.NoError(w.t, err)
	return b
}

// take answers the events since the last take.
func (w *world) take() []tickonce.Event {
	events := w.events
	w.events = nil
	return events
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
