package memengine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// worked answers a store that has seen n calls.
func worked(t *testing.T, seed uint64, n int) (*Store, *clock) {
	c := &clock{now: 1000}
	s := newStore(c.read, store.Limits{}, nil)
	w := newWorkload(s, c, seed)
	for range n {
		require.NoError(t, w.plan()())
	}
	return s, c
}

func restored(t *testing.T, c *clock, snapshot, log string, j Journal) (*Store, Recovery) {
	t.Helper()
	var b []byte
	if snapshot != "" {
		b = []byte(snapshot)
	}
	s, r, err := restoreStore(c.read, store.Limits{}, b, []byte(log), j, nil)
	require.NoError(t, err)
	return s, r
}

func TestD1SnapshotOfARestoredStoreIsTheSnapshot(t *testing.T) {
	for seed := range uint64(20) {
		s, c := worked(t, seed, 300)
		b := snapshot(t, s)
		again, r := restored(t, c, b, "", nil)
		require.Equal(t, b, snapshot(t, again))
		require.Zero(t, r)
		checkIndexes(t, again, c.now)
	}
}

// A restored store answers every later call like the one it was taken from, so
// nothing but the rows matters: no layout of an index, no scratch.
func TestD1ARestoredStoreGoesOnLikeTheFirst(t *testing.T) {
	for seed := range uint64(20) {
		s, c := worked(t, seed, 200)
		_, err := s.Release(ctx, leaseOf(s, store.SchedulerLock))
		require.NoError(t, err)
		twinClock := &clock{now: c.now}
		twin, _ := restored(t, twinClock, snapshot(t, s), "", nil)
		a, b := newWorkload(s, c, seed+100), newWorkload(twin, twinClock, seed+100)
		for range 200 {
			require.NoError(t, a.plan()())
			require.NoError(t, b.plan()())
			require.Equal(t, snapshot(t, s), snapshot(t, twin))
		}
	}
}

func leaseOf(s *Store, lock string) store.Lease {
	if l := s.lease(lock); l != nil {
		return l.Lease
	}
	return store.Lease{}
}

func TestD1EveryFlippedBitIsFound(t *testing.T) {
	s, c := worked(t, 3, 60)
	b := []byte(snapshot(t, s))
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		_, _, err := restoreStore(c.read, store.Limits{}, b, nil, nil, nil)
		var damaged *SnapshotError
		require.ErrorAs(t, err, &damaged, "bit %d", i)
		require.False(t, damaged.Newer)
		b[i/8] ^= 1 << (i % 8)
	}
	for i := range b {
		_, _, err := restoreStore(c.read, store.Limits{}, b[:i], nil, nil, nil)
		require.Error(t, err, "cut at %d", i)
	}
}

func TestD1ANewerSnapshotIsRefused(t *testing.T) {
	b := []byte(snapshot(t, newStore(new(clock).read, store.Limits{}, nil)))
	b[len(magic)]++
	b = appendUint32(b[:len(b)-checksumSize], checksum(b[:len(b)-checksumSize]))
	_, _, err := restoreStore(new(clock).read, store.Limits{}, b, nil, nil, nil)
	var newer *SnapshotError
	require.ErrorAs(t, err, &newer)
	require.True(t, newer.Newer)
	require.ErrorIs(t, err, tickonce.ErrSnapshot)
	require.EqualError(t, err, "snapshot is newer than this version: at byte 8: version 3")
}

// sealed answers a snapshot of these rows, right or wrong.
func sealed(last sequences, queues []store.Queue, schedules []store.Schedule, jobs []store.Job, leases []store.Lease) []byte {
	b := unsealed(last, queues, schedules, jobs, leases)
	b = appendHistory(b, savedHistory[store.Run]{}, appendRun)
	b = appendHistory(b, savedHistory[store.SkipRange]{}, appendSkip)
	return appendUint32(b, checksum(b))
}

// unsealed is what a snapshot of these rows begins with: all but their history.
func unsealed(last sequences, queues []store.Queue, schedules []store.Schedule, jobs []store.Job, leases []store.Lease) []byte {
	b := append([]byte(magic), snapshotVersion)
	b = appendSequences(b, last)
	b = appendRows(b, queues, appendQueue)
	b = appendRows(b, schedules, appendSchedule)
	b = appendRows(b, jobs, appendJob)
	return appendRows(b, leases, appendLease)
}

func goodSchedule() store.Schedule {
	r := row("a", 50)
	r.ID, r.Rev = 1, 1
	return r
}

func goodJob() store.Job {
	return store.Job{
		ID: 1, Queue: "q", Stamps: stamps, State: store.Pending,
		FireAt: store.None, ExpiresAt: store.None, Deadline: store.None, Since: store.None,
	}
}

func TestD1ARowThatBreaksItsOwnRuleIsLoaded(t *testing.T) {
	last := sequences{schedule: 5, job: 5, term: 5}
	queues := []store.Queue{{Name: "q", Enqueued: 1}}

	for _, tc := range []struct {
		rule   string
		mutate func(*store.Schedule)
	}{
		{"name", func(r *store.Schedule) { r.Name = "" }},
		{"queue", func(r *store.Schedule) { r.Queue = "\xff" }},
		{"rev", func(r *store.Schedule) { r.Rev = 0 }},
		{"stamps", func(r *store.Schedule) { r.Stamps.VisibilityMS = 0 }},
		{"stamps", func(r *store.Schedule) { r.Stamps.MaxAttempts = 0 }},
		{"stamps", func(r *store.Schedule) { r.Stamps.BaseBackoffMS = -1 }},
		{"expiry", func(r *store.Schedule) { r.ExpiresMS = -1 }},
		{"catch-up", func(r *store.Schedule) { r.CatchUp.Max = 65 }},
		{"catch-up", func(r *store.Schedule) { r.CatchUp.Max = 0 }},
		{"anchor", func(r *store.Schedule) { r.Anchor = store.MinInstant - 1 }},
		{"cursor", func(r *store.Schedule) { r.Cursor = store.MaxInstant + 1 }},
		{"due-at", func(r *store.Schedule) { r.DueAt = store.MaxInstant + 1 }},
		{"set-at", func(r *store.Schedule) { r.SetAt = store.None }},
		{"pause", func(r *store.Schedule) { r.Paused = 9 }},
	} {
		r := goodSchedule()
		tc.mutate(&r)
		c := &clock{now: 77}
		s, rec, err := restoreStore(c.read, store.Limits{}, sealed(last, nil, []store.Schedule{r}, nil, nil), nil, nil, nil)
		require.NoError(t, err, tc.rule)
		require.Equal(t, 1, rec.Invalid)
		got := s.ids.find(1).Schedule
		require.Equal(t, &store.Hold{Reason: "invalid row: " + tc.rule, Since: 77, Times: 1}, got.Hold)
		got.Hold = nil
		require.Equal(t, r, got)

		b := snapshot(t, s)
		c.now++
		again, _ := restored(t, c, b, "", nil)
		require.Equal(t, b, snapshot(t, again), "the hold stays as it is")
	}

	for _, tc := range []struct {
		rule   string
		mutate func(*store.Job)
	}{
		{"state", func(j *store.Job) { j.State = 0 }},
		{"state", func(j *store.Job) { j.State = store.Done }},
		{"stamps", func(j *store.Job) { j.Stamps.VisibilityMS = -1 }},
		{"attempts", func(j *store.Job) { j.Attempts = 4 }},
		{"attempts", func(j *store.Job) { j.Attempts = -1 }},
		{"boundary", func(j *store.Job) { j.FireAt = store.MaxInstant + 1 }},
		{"enqueued-at", func(j *store.Job) { j.EnqueuedAt = store.None }},
		{"run-at", func(j *store.Job) { j.RunAt = store.None }},
		{"expiry", func(j *store.Job) { j.ExpiresAt = store.MinInstant - 1 }},
		{"deadline", func(j *store.Job) { j.State, j.Attempts, j.Since = store.Claimed, 1, 5 }},
		{"since", func(j *store.Job) { j.State = store.Dead }},
		{"since", func(j *store.Job) { j.Since = 5 }},
		{"state", func(j *store.Job) { j.State, j.Deadline = 0, store.MaxInstant+1 }},
	} {
		j := goodJob()
		tc.mutate(&j)
		c := &clock{now: 77}
		s, rec, err := restoreStore(c.read, store.Limits{}, sealed(last, queues, nil, []store.Job{j}, nil), nil, nil, nil)
		require.NoError(t, err, tc.rule)
		require.Equal(t, 1, rec.Invalid)
		got := s.jobs.find(1).Job
		require.Equal(t, "invalid row: "+tc.rule, got.LastError)
		require.Equal(t, store.Dead, got.State)
		require.Equal(t, store.Instant(77), got.Since)
		checkIndexes(t, s, c.now)

		b := snapshot(t, s)
		c.now++
		again, _ := restored(t, c, b, "", nil)
		require.Equal(t, b, snapshot(t, again), "the job stays as it is")
	}
}

func TestD1RowsThatContradictEachOtherAreRefused(t *testing.T) {
	last := sequences{schedule: 5, job: 5, term: 5}
	one := []store.Queue{{Name: "q", Enqueued: 1}}
	two := []store.Queue{{Name: "q", Enqueued: 2}}
	sched := func(id store.ScheduleID, name string) store.Schedule {
		r := goodSchedule()
		r.ID, r.Name = id, name
		return r
	}
	job := func(id store.JobID, queue, key string) store.Job {
		j := goodJob()
		j.ID, j.Queue, j.Key = id, queue, key
		return j
	}
	for _, tc := range []struct {
		reason string
		b      []byte
	}{
		{"queues out of order", sealed(last, []store.Queue{{Name: "q", Enqueued: 1, Done: 1}, {Name: "q", Enqueued: 1, Done: 1}}, nil, nil, nil)},
		{"queue that was never used", sealed(last, []store.Queue{{Name: "q"}}, nil, nil, nil)},
		{`counters of queue "q" do not add up`, sealed(last, one, nil, nil, nil)},
		{"schedules out of order", sealed(last, nil, []store.Schedule{sched(1, "a"), sched(2, "a")}, nil, nil)},
		{"schedules out of order", sealed(last, nil, []store.Schedule{sched(1, "b"), sched(2, "a")}, nil, nil)},
		{"two schedules with one id", sealed(last, nil, []store.Schedule{sched(1, "a"), sched(1, "b")}, nil, nil)},
		{"schedule id above its sequence", sealed(last, nil, []store.Schedule{sched(6, "a")}, nil, nil)},
		{"id is 0", sealed(last, nil, []store.Schedule{sched(0, "a")}, nil, nil)},
		{"jobs out of order", sealed(last, two, nil, []store.Job{job(1, "q", ""), job(1, "q", "")}, nil)},
		{"job id above its sequence", sealed(last, one, nil, []store.Job{job(6, "q", "")}, nil)},
		{"job of an unknown queue", sealed(last, one, nil, []store.Job{job(1, "r", "")}, nil)},
		{`two live jobs with one key in queue "q"`, sealed(last, two, nil, []store.Job{job(1, "q", "k"), job(2, "q", "k")}, nil)},
		{"locks out of order", sealed(last, nil, nil, nil, []store.Lease{{Lock: "l", Term: 1}, {Lock: "l", Term: 2}})},
		{"term above its sequence", sealed(last, nil, nil, nil, []store.Lease{{Lock: "l", Term: 6}})},
		{"lease of the scheduler", sealed(last, nil, nil, nil, []store.Lease{{Lock: store.SchedulerLock, Term: 1}})},
	} {
		_, _, err := restoreStore(new(clock).read, store.Limits{}, tc.b, nil, nil, nil)
		var damaged *SnapshotError
		require.ErrorAs(t, err, &damaged, tc.reason)
		require.Equal(t, tc.reason, damaged.Reason)
		require.Positive(t, damaged.Offset)
	}
}

func TestD1ALengthThatLiesTakesNoMemory(t *testing.T) {
	for _, body := range [][]byte{
		{},
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},                       // sequence
		{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},           // number of queues
		{0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},        // length of a name
		{0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2},     // beyond 64 bits
		{0x80, 0, 0, 0, 0, 0, 0, 0, 0},                                               // 0 in two bytes
		{0, 0, 0, 0, 0, 0, 0, 0, 0},                                                  // one too many
		append([]byte{0, 0, 0, 0, 1, 1, 'q', 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, 0xff), // after the end
	} {
		b := append(append([]byte(magic), snapshotVersion), body...)
		b = appendUint32(b, checksum(b))
		allocs := testing.AllocsPerRun(1, func() {
			_, _, err := restoreStore(new(clock).read, store.Limits{}, b, nil, nil, nil)
			var damaged *SnapshotError
			require.ErrorAs(t, err, &damaged)
		})
		require.Less(t, allocs, 100.0)
	}
}

func TestD6TheSchedulersLeaseIsInNoSnapshot(t *testing.T) {
	c := &clock{now: 5}
	s := newStore(c.read, store.Limits{}, nil)
	before := snapshot(t, s)
	g, err := s.Acquire(ctx, store.SchedulerLock, "a", 100)
	require.NoError(t, err)
	require.NotEqual(t, before, snapshot(t, s), "the term is")
	twin, _ := restored(t, c, snapshot(t, s), "", nil)
	require.Nil(t, twin.lease(store.SchedulerLock))
	again, err := twin.Acquire(ctx, store.SchedulerLock, "b", 100)
	require.NoError(t, err)
	require.Greater(t, again.Lease.Term, g.Lease.Term)

	_, err = s.Acquire(ctx, "user", "a", 100)
	require.NoError(t, err)
	twin, _ = restored(t, c, snapshot(t, s), "", nil)
	require.Equal(t, s.lease("user").Lease, twin.lease("user").Lease)
}
