package sim

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
)

// readings is a clock that shows what a store is to be shown.
type readings func() store.Instant

func (c readings) Now() time.Time                     { return timeOf(c()) }
func (readings) After(time.Duration) <-chan time.Time { return nil }

// recordedRun is a run on a store with a journal, which it answers with the state
// that the store was left in.
func recordedRun(t *testing.T, s Scenario) (r *Result, log []byte, state string) {
	var j *memengine.MemJournal
	var e *memengine.Engine
	s.Store = func(now func() store.Instant, limits store.Limits) store.Store {
		var err error
		j = new(memengine.MemJournal)
		limit := tickonce.Limits{QueueLength: int(limits.QueueLength)}
		e, _, err = memengine.Open(tickonce.Config{Clock: readings(now), Limits: limit}, memengine.Durable{Journal: j})
		require.NoError(t, err)
		return e.Store()
	}
	r, err := Run(s)
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	left, err := e.Snapshot()
	require.NoError(t, err)
	return r, j.Bytes(), string(left)
}

// TestD5AJournalIsARecording: from what a store has written alone come the state
// that it was left in and the boundaries that fired and were skipped, by way of an
// outage, retries and deaths.
func TestD5AJournalIsARecording(t *testing.T) {
	was, log, state := recordedRun(t, *parsed(t, `simulate v1
engine   standby=yes
run      2h
schedule a every=1m  queue=q handler=fail:30% backoff=5s attempts=2
schedule b every=10s queue=r catch-up=latest
schedule c every=1s  queue=s
schedule d every=1m  queue=q catch-up=grace
schedule e every=7s  queue=r catch-up=none
schedule f every=1m  queue=f overlap=skip hours=00:20-01:40 handler=ok:150s
schedule g every=1m  queue=q run-once=yes
at 30m down for=20m
at 70m edit pause schedule=a
at 80m edit resume schedule=a
at 40m edit change schedule=b every=20s
`))
	fired, skipped := map[string]int64{}, map[string]int64{}
	last := Event{}
	r, err := WatchJournal(memengine.Durable{Log: log}, func(e *Event) {
		require.Equal(t, last.ID+1, e.ID)
		require.False(t, e.At.Before(last.At))
		last = *e
		switch e.Kind {
		case EventFired:
			fired[e.Schedule]++
		case EventSkipped:
			skipped[e.Schedule] += e.Count
		}
	})
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	require.Equal(t, state, string(r.State))
	for i, q := range r.Schedules {
		require.Equal(t, was.Schedules[i].Name, q.Name)
		require.Equal(t, was.Schedules[i].Fired, q.Fired, q.Name)
		require.Equal(t, was.Schedules[i].SkipReasons, q.SkipReasons, q.Name)
		require.Equal(t, was.Schedules[i].MaxLate, q.MaxLate, q.Name)
		require.Equal(t, fired[q.Name], q.Fired)
		require.Equal(t, skipped[q.Name], q.Skipped)
	}
	for i, q := range r.Queues {
		q.Lost = was.Queues[i].Lost
		require.Equal(t, was.Queues[i].DeadReasons, q.DeadReasons)
		require.Equal(t, was.Queues[i], q)
	}
}

// TestD5RecordsOfVersion1NameNoSkips: why boundaries did not fire follows from the
// rows, which had a catch-up policy and pauses then.
func TestD5RecordsOfVersion1NameNoSkips(t *testing.T) {
	was, log, _ := recordedRun(t, *parsed(t, `simulate v1
engine   standby=yes
run      2h
schedule a every=1m  queue=q
schedule b every=10s queue=q catch-up=latest
schedule c every=1s  queue=q
schedule d every=1m  queue=q catch-up=grace
at 30m down for=20m
at 70m edit pause schedule=a
at 80m edit resume schedule=a
`))
	r := newRecording(nil)
	_, _, err := memengine.Replay(memengine.Durable{Log: log}, func(rec *memengine.Record) {
		old := *rec
		old.Skips = nil
		r.record(&old)
	})
	require.NoError(t, err)
	require.Empty(t, r.result.Failures)
	for _, s := range was.Schedules {
		require.NotEmpty(t, s.SkipReasons, s.Name)
		require.Equal(t, s.SkipReasons, r.schedules[s.Name].SkipReasons, s.Name)
	}
}

// TestD5WhateverHappensTheRecordingIsTheState: faults of all kinds, but for rows
// that are spoilt behind the engine's back, break no rule that rows can tell of.
func TestD5WhateverHappensTheRecordingIsTheState(t *testing.T) {
	s := *parsed(t, `simulate v1
engine   standby=yes runners=2
run      1h
queue    q workers=2
outbox   o workers=1
schedule a every=1m queue=q handler=fail:20% backoff=5s
schedule b every=7s queue=r catch-up=latest
schedule c every=5m queue=q catch-up=grace outbox=o
`)
	swarm, err := ParseSwarm("faults=4..20 kinds=all,-tamper")
	require.NoError(t, err)
	s = s.WithSwarm(swarm)
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		drawn, err := s.Draw(seed)
		require.NoError(t, err)
		_, log, state := recordedRun(t, drawn)
		r, err := WatchJournal(memengine.Durable{Log: log}, nil)
		require.NoError(t, err)
		require.Equal(t, Pass, r.Verdict, "seed %d: %+v", seed, r.Failures)
		require.Equal(t, state, string(r.State))
	}
}

// A scheduled minute of two records, in which one of the things is wrong that an
// engine has to see to.
func TestD5ARecordingIsJudged(t *testing.T) {
	const minute = 60_000
	type (
		schedules = []memengine.Change[store.Schedule]
		jobs      = []memengine.Change[store.Job]
		queues    = []memengine.Change[store.Queue]
		locks     = []memengine.Change[store.Lease]
	)
	row := store.Schedule{ID: 1, Rev: 1, Name: "a", Spec: "@every 1m", Queue: "q", CatchUp: store.CatchUp{Max: 64}, Cursor: minute, DueAt: minute}
	skip := store.SkipRange{Schedule: "a", ScheduleID: 1, Reason: store.SkipCap, EveryMS: minute, First: minute, Last: minute, Count: 1}
	moved := row
	moved.Rev, moved.Cursor, moved.DueAt, moved.SetAt = 2, 2*minute, 2*minute, minute+1
	job := store.Job{
		ID: 1, Queue: "q", Schedule: "a", ScheduleID: 1, FireAt: minute, RunAt: minute + 1, Stamps: store.Stamps{MaxAttempts: 2, VisibilityMS: 1000},
		EnqueuedAt: minute + 1, ExpiresAt: store.None, State: store.Pending, Deadline: store.None, Since: store.None,
	}
	claimed := job
	claimed.State, claimed.Attempts, claimed.Deadline = store.Claimed, 1, minute+1001
	again := claimed
	again.Attempts, again.Deadline = 2, minute+2003
	none := (*store.Job)(nil)
	lease := store.Lease{Lock: "l", Owner: "o", Term: 2, TTLMS: 1000, ExpiresAt: minute + 2000}
	other := lease
	other.Owner, other.Term = "p", 3

	// The records of a minute that is well: registered, fired, claimed, lapsed and
	// claimed again, done; a lock that another takes once it has lapsed.
	records := func() []*memengine.Record {
		q := func(pending, claimed, claims, done int64) *store.Queue {
			return &store.Queue{Name: "q", Pending: pending, Claimed: claimed, Enqueued: 1, Claims: claims, Done: done}
		}
		copied := func(j store.Job) *store.Job { return &j }
		a, b, l, o := row, moved, lease, other
		return []*memengine.Record{
			{Op: "commit", Now: 1, Term: 1, Schedules: schedules{{After: &a}}},
			{Op: "advance", Now: minute + 1, Term: 1, Schedules: schedules{{Before: &a, After: &b}}, Jobs: jobs{{After: copied(job)}}, Queues: queues{{After: q(1, 0, 0, 0)}}},
			{Op: "claim", Now: minute + 1, Term: 1, Jobs: jobs{{Before: copied(job), After: copied(claimed)}}, Queues: queues{{Before: q(1, 0, 0, 0), After: q(0, 1, 1, 0)}}},
			{Op: "acquire", Now: minute + 1000, Term: 2, Locks: locks{{After: &l}}},
			{Op: "claim", Now: minute + 1002, Term: 2, Jobs: jobs{{Before: copied(claimed), After: copied(again)}}, Queues: queues{{Before: q(0, 1, 1, 0), After: q(0, 1, 2, 0)}}},
			{Op: "settle", Now: minute + 2003, Term: 2, Jobs: jobs{{Before: copied(again), After: none}}, Queues: queues{{Before: q(0, 1, 2, 0), After: q(0, 0, 2, 1)}}},
			{Op: "acquire", Now: minute + 2004, Term: 3, Locks: locks{{Before: &l}, {After: &o}}},
		}
	}
	const (
		registers = iota
		fires
		claims
		locksIt
		claimsAgain
		settles
		locksAnew
	)
	for name, c := range map[string]struct {
		spoil func(r []*memengine.Record)
		is    invariant
	}{
		"fires twice in a record": {func(r []*memengine.Record) {
			twice := job
			twice.ID = 2
			r[fires].Jobs = append(r[fires].Jobs, memengine.Change[store.Job]{After: &twice})
		}, firesOnce},
		"fires off the grid": {func(r []*memengine.Record) { r[fires].Jobs[0].After.FireAt-- }, onGridOnly},
		"fires what the cursor is at": {func(r []*memengine.Record) {
			r[fires].Jobs[0].After.FireAt, r[fires].Jobs[0].After.RunAt = 2*minute, 2*minute
		}, onGridOnly},
		"fires before its time":      {func(r []*memengine.Record) { r[fires].Jobs[0].After.RunAt = minute - 1 }, notEarly},
		"fires for another schedule": {func(r []*memengine.Record) { r[fires].Jobs[0].After.ScheduleID = 2 }, firesOnce},
		"fires into another queue": {func(r []*memengine.Record) {
			r[registers].Schedules[0].After.Queue = "p"
			r[fires].Schedules[0].After.Queue = "p"
		}, rightJob},
		"moves off the grid":              {func(r []*memengine.Record) { r[fires].Schedules[0].After.Cursor++ }, oneFate},
		"moves to now":                    {func(r []*memengine.Record) { r[fires].Schedules[0].After.SetAt = 2 * minute }, movesOn},
		"skips what fires":                {func(r []*memengine.Record) { r[fires].Skips = []store.SkipRange{skip} }, namedSkips},
		"skips without a move":            {func(r []*memengine.Record) { r[claims].Skips = []store.SkipRange{{Schedule: "b"}} }, namedSkips},
		"stays where it was":              {func(r []*memengine.Record) { r[fires].Schedules[0].After.Cursor = minute }, oneFate},
		"is written over":                 {func(r []*memengine.Record) { r[fires].Schedules[0].After.Rev = 3 }, revGuard},
		"is claimed before it is ready":   {func(r []*memengine.Record) { r[claims].Now-- }, notEarly},
		"is claimed while it is":          {func(r []*memengine.Record) { r[claimsAgain].Now-- }, oneClaim},
		"is claimed too often":            {func(r []*memengine.Record) { r[claimsAgain].Jobs[0].After.Attempts = 3 }, attemptsHeld},
		"loses an attempt":                {func(r []*memengine.Record) { r[claimsAgain].Jobs[0].After.Attempts = 0 }, attemptsHeld},
		"is settled by a late worker":     {func(r []*memengine.Record) { r[settles].Now++ }, staleToken},
		"ends without being counted":      {func(r []*memengine.Record) { r[settles].Queues[0].After.Done = 0 }, conservation},
		"is counted and does not end":     {func(r []*memengine.Record) { r[settles].Jobs = nil }, oneState},
		"is counted where it is not":      {func(r []*memengine.Record) { r[claims].Queues[0].After.Pending = 1 }, oneState},
		"rises from the dead":             {func(r []*memengine.Record) { r[claims].Jobs[0].Before.State = store.Dead }, oneState},
		"a term that falls":               {func(r []*memengine.Record) { r[claims].Term = 0 }, termsRise},
		"a lock with a term that was had": {func(r []*memengine.Record) { r[locksAnew].Locks[1].After.Term = 2 }, termsRise},
		"a lock that is held": {func(r []*memengine.Record) {
			r[locksAnew].Locks = locks{{Before: &lease, After: &other}}
			r[locksAnew].Now = minute + 1999
		}, oneLease},
		"a lock that lapsed and goes on": {func(r []*memengine.Record) { r[locksAnew].Locks = locks{{Before: &lease, After: &lease}} }, oneLease},
	} {
		t.Run(name, func(t *testing.T) {
			list := records()
			c.spoil(list)
			told := 0
			r := newRecording(func(e *Event) {
				if e.Kind == EventViolated {
					told++
				}
			})
			for _, rec := range list {
				r.record(rec)
			}
			require.True(t, slices.ContainsFunc(r.result.Failures, func(f Failure) bool { return f.Invariant == c.is.String() }), "%+v", r.result.Failures)
			require.Equal(t, Safety, r.result.Verdict)
			require.Len(t, r.result.Failures, told)
		})
	}
	r := newRecording(nil)
	for _, rec := range records() {
		r.record(rec)
	}
	require.Empty(t, r.result.Failures)
	require.EqualValues(t, 7, r.result.Events)
}

// TestD5ARecordingGoesOnBehindASnapshot: what the disk of a run has left, of which a
// newer snapshot has taken the place of records.
func TestD5ARecordingGoesOnBehindASnapshot(t *testing.T) {
	w := newWorld(parsed(t, "simulate v1\nrun 3h\nschedule a every=5s queue=q\n"), rig{budget: maxEvents})
	w.disk.kept = true
	w.run()
	require.NotEmpty(t, w.disk.base)
	require.NotEmpty(t, w.disk.log)
	r, err := WatchJournal(memengine.Durable{Snapshot: w.disk.base, Log: w.disk.log}, nil)
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	require.Equal(t, string(w.truth.bytes()), string(r.State))
	require.Less(t, r.Schedules[0].Fired, w.result().Schedules[0].Fired)
	require.Equal(t, w.result().Queues[0].Done, r.Queues[0].Done)
}

// TestD5ARecordingHasPoliciesAndOutcomes: what a row says of its schedule comes out as
// the words of a scenario; of a fire by hand, a run that failed, one that is done and
// its delivery it is told apart what became of each.
func TestD5ARecordingHasPoliciesAndOutcomes(t *testing.T) {
	now := store.Instant(0)
	var j memengine.MemJournal
	e, _, err := memengine.Open(tickonce.Config{Clock: readings(func() store.Instant { return now })}, memengine.Durable{Journal: &j})
	require.NoError(t, err)
	options := tickonce.ScheduleOptions{
		CatchUp: tickonce.CatchUp{Count: 3, Newest: true}, Overlap: tickonce.OverlapSkip, Breaker: 2, Timeout: time.Minute,
		ActiveHours: tickonce.ActiveHours{From: "00:00", To: "17:30", Zone: "Africa/Abidjan"},
	}
	_, err = e.Schedule(t.Context(), "report", "@every 1h", "mail", nil, options)
	require.NoError(t, err)
	id, err := e.Trigger(t.Context(), "report")
	require.NoError(t, err)
	claimed := func(w *tickonce.Worker) *tickonce.Run {
		_, report, err := w.Step(t.Context())
		require.NoError(t, err)
		require.Len(t, report.Begun, 1)
		return report.Begun[0]
	}
	ended := func(w *tickonce.Worker, r *tickonce.Run, err error) {
		w.Ended(r, err)
		_, _, err = w.Step(t.Context())
		require.NoError(t, err)
	}
	w, err := e.NewWorker("mail", tickonce.WorkerConfig{})
	require.NoError(t, err)
	ended(w, claimed(w), errors.New("no paper"))
	now += 2 * 60_000
	run := claimed(w)
	require.NoError(t, run.Job.Deliver("chat", []byte("figures")))
	ended(w, run, nil)
	w, err = e.Outbox("chat").NewWorker(tickonce.WorkerConfig{})
	require.NoError(t, err)
	ended(w, claimed(w), errors.New("no such channel"))

	type told struct {
		kind            EventKind
		schedule, queue string
		job, origin     int64
		attempt         int
		reason, err     string
		execution       tickonce.Execution
		delivery        tickonce.Delivery
	}
	texts := map[EventKind]string{}
	var events []told
	r, err := WatchJournal(memengine.Durable{Log: j.Bytes()}, func(e *Event) {
		events = append(events, told{e.Kind, e.Schedule, e.Queue, e.Job, e.Origin, e.Attempt, e.Reason, e.Error, e.Execution, e.Delivery})
		texts[e.Kind] = e.Text()
	})
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	job, entry := int64(id), int64(id)+1
	require.Equal(t, []told{
		{kind: EventRegistered, schedule: "report"},
		{kind: EventTriggered, schedule: "report", queue: "mail", job: job},
		{kind: EventClaimed, schedule: "report", queue: "mail", job: job, attempt: 1},
		{kind: EventHandlerEnded, schedule: "report", queue: "mail", job: job, attempt: 1, reason: "fail"},
		{kind: EventJobRetried, schedule: "report", queue: "mail", job: job, attempt: 1, err: "no paper", execution: tickonce.ExecutionFailed},
		{kind: EventClaimed, schedule: "report", queue: "mail", job: job, attempt: 2},
		{kind: EventHandlerEnded, schedule: "report", queue: "mail", job: job, attempt: 2, reason: "ok"},
		{kind: EventJobDone, schedule: "report", queue: "mail", job: job, attempt: 2, execution: tickonce.ExecutionOK},
		{kind: EventEnqueued, schedule: "report", queue: "chat", job: entry, origin: job},
		{kind: EventClaimed, schedule: "report", queue: "chat", job: entry, origin: job, attempt: 1},
		{kind: EventJobDied, schedule: "report", queue: "chat", job: entry, origin: job, attempt: 1, reason: "failed", err: "no such channel", delivery: tickonce.DeliveryPermanent},
	}, events)
	require.Equal(t, `job 1 (attempt 2) is done`, texts[EventJobDone])
	require.Equal(t, `delivery 2 of job 1 dies, since another try would be in vain: "no such channel"`, texts[EventJobDied])
	require.Equal(t, []Schedule{{
		Name: "report", Spec: "@every 1h", Queue: "mail", Anchor: timeOf(0), CatchUp: CatchUpAll, Policies: Policies{
			Overlap: OverlapSkip, Breaker: 2, Timeout: time.Minute, Hours: Hours{End: 17*time.Hour + 30*time.Minute, Zone: "Africa/Abidjan"},
		},
	}}, r.Scenario.Schedules)
	require.Equal(t, []tickonce.CatchUp{options.CatchUp}, r.CatchUps)
	require.Equal(t, []Outbox{{Name: "chat"}}, r.Scenario.Outboxes)
	require.True(t, r.Queues[0].Outbox, "%+v", r.Queues[0])
}

// An engine may have an outbox and a queue of one name, which a scenario may not: the
// outbox is called so that the two are told apart, from the first event on.
func TestD5ARecordingTellsAnOutboxFromItsNamesake(t *testing.T) {
	var j memengine.MemJournal
	e, _, err := memengine.Open(tickonce.Config{Clock: readings(func() store.Instant { return 0 })}, memengine.Durable{Journal: &j})
	require.NoError(t, err)
	_, err = e.Outbox("mail").Enqueue(t.Context(), nil, tickonce.OutboxOptions{})
	require.NoError(t, err)
	_, err = e.Outbox("chat").Enqueue(t.Context(), nil, tickonce.OutboxOptions{})
	require.NoError(t, err)
	_, err = e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
	require.NoError(t, err)

	var told []string
	r, err := WatchJournal(memengine.Durable{Log: j.Bytes()}, func(e *Event) { told = append(told, e.Queue) })
	require.NoError(t, err)
	require.Equal(t, []string{"outbox mail", "chat", "mail"}, told)
	require.Equal(t, []Outbox{{Name: "chat"}, {Name: "outbox mail"}}, r.Scenario.Outboxes)
	untold, err := WatchJournal(memengine.Durable{Log: j.Bytes()}, nil)
	require.NoError(t, err)
	require.Equal(t, r.Queues, untold.Queues)
}
