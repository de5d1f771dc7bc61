package memengine

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// journaled is a log and the snapshots of the store after each of its records.
type journaled struct {
	log    string
	ends   []int // of the records
	states []string
	clock  *clock
}

func journalOf(t *testing.T, seed uint64, calls int) journaled {
	c := &clock{now: 1000}
	var j MemJournal
	s := newStore(c.read, store.Limits{}, &j)
	w := newWorkload(s, c, seed)
	out := journaled{ends: []int{0}, states: []string{snapshot(t, s)}, clock: c}
	for range calls {
		before := s.last.record
		require.NoError(t, w.plan()())
		if s.last.record != before {
			out.ends = append(out.ends, len(j.Bytes()))
			out.states = append(out.states, snapshot(t, s))
		}
	}
	out.log = string(j.Bytes())
	return out
}

func TestD3TheLogLeadsToTheSameState(t *testing.T) {
	for seed := range uint64(10) {
		j := journalOf(t, seed, 200)
		s, r := restored(t, j.clock, "", j.log, nil)
		require.Equal(t, j.states[len(j.states)-1], snapshot(t, s))
		require.Equal(t, Recovery{Records: len(j.ends) - 1, Offset: int64(len(j.log))}, r)
		checkIndexes(t, s, j.clock.now)
	}
}

func TestD3ASnapshotContainsTheRecordsBeforeIt(t *testing.T) {
	j := journalOf(t, 1, 60)
	for i, state := range j.states {
		s, r := restored(t, j.clock, state, j.log, nil)
		require.Equal(t, j.states[len(j.states)-1], snapshot(t, s))
		require.Equal(t, Recovery{Records: len(j.ends) - 1 - i, Skipped: i, Offset: int64(len(j.log))}, r)

		s, r = restored(t, j.clock, state, j.log[j.ends[i]:], nil)
		require.Equal(t, j.states[len(j.states)-1], snapshot(t, s))
		require.Equal(t, Recovery{Records: len(j.ends) - 1 - i, Offset: int64(len(j.log) - j.ends[i])}, r)
	}
}

func TestD3AMissingRecordIsFound(t *testing.T) {
	j := journalOf(t, 1, 60)
	for i := 1; i < len(j.ends)-1; i++ {
		before, record, next := j.log[:j.ends[i-1]], j.log[j.ends[i-1]:j.ends[i]], j.log[j.ends[i]:]
		for what, log := range map[string]string{
			"lost":         before + next,
			"twice":        before + record + record + next,
			"out of order": before + next[:j.ends[i+1]-j.ends[i]] + record,
		} {
			_, _, err := restoreStore(j.clock.read, store.Limits{}, nil, []byte(log), nil, nil)
			var damaged *SnapshotError
			require.ErrorAs(t, err, &damaged, what)
			require.True(t, damaged.Journal)
		}
	}
}

func TestD3ALogCutAtAnyByteLosesOnlyTheTornRecord(t *testing.T) {
	j := journalOf(t, 2, 40)
	last := 0
	for cut := range len(j.log) + 1 {
		if last+1 < len(j.ends) && j.ends[last+1] <= cut {
			last++
		}
		s, r := restored(t, j.clock, "", j.log[:cut], nil)
		require.Equal(t, j.states[last], snapshot(t, s), "cut at %d", cut)
		require.Equal(t, int64(j.ends[last]), r.Offset)
		require.Equal(t, cut != j.ends[last], r.Torn != "", "cut at %d: %s", cut, r.Torn)
	}
}

func TestD3DamageIsToldFromATornTail(t *testing.T) {
	j := journalOf(t, 2, 40)
	lastRecord := j.ends[len(j.ends)-2]
	for i := range len(j.log) {
		b := []byte(j.log)
		b[i] ^= 0x10
		s, r, err := restoreStore(j.clock.read, store.Limits{}, nil, b, nil, nil)
		if i < lastRecord {
			var damaged *SnapshotError
			require.ErrorAs(t, err, &damaged, "byte %d", i)
			require.Contains(t, damaged.Reason, "with whole records after it")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, j.states[len(j.states)-2], snapshot(t, s))
		require.Equal(t, int64(lastRecord), r.Offset)
		require.NotEmpty(t, r.Torn)
	}
	_, r := restored(t, j.clock, "", j.log+string(make([]byte, 4096)), nil)
	require.Equal(t, "no frame of a record", r.Torn, "a tail of zeros")
}

func TestD3ANewerRecordIsRefused(t *testing.T) {
	frame := append(make([]byte, frameSize), recordVersion+1)
	putFrame(frame)
	_, _, err := restoreStore(new(clock).read, store.Limits{}, nil, frame, nil, nil)
	var newer *SnapshotError
	require.ErrorAs(t, err, &newer)
	require.True(t, newer.Newer)
}

// A restored store goes on with the log where it ends.
func TestD3ARecoveredLogCanBeAppendedTo(t *testing.T) {
	j := journalOf(t, 5, 60)
	cut := j.log[:len(j.log)-3]
	_, r := restored(t, j.clock, "", cut, nil)
	again := &MemJournal{log: []byte(cut[:r.Offset])}
	s, _ := restored(t, j.clock, "", cut, again)
	w := newWorkload(s, j.clock, 6)
	for range 60 {
		require.NoError(t, w.plan()())
	}
	twin, r := restored(t, j.clock, "", string(again.Bytes()), nil)
	require.Empty(t, r.Torn)
	require.Equal(t, snapshot(t, s), snapshot(t, twin))
}

// brokenJournal fails while it is told to.
type brokenJournal struct {
	MemJournal
	broken bool
}

var errBroken = errors.New("disk full")

func (j *brokenJournal) Append(record []byte) error {
	if j.broken {
		return errBroken
	}
	return j.MemJournal.Append(record)
}

// Each call is made twice, first with a journal that fails: it must answer
// that error, leave the state as it was, and afterwards do what it does in a
// store that never failed.
func TestD2R5AFailedAppendChangesNothing(t *testing.T) {
	failed := map[op]int{}
	for seed := range uint64(8) {
		c, twinClock := &clock{now: 1000}, &clock{now: 1000}
		var j brokenJournal
		s := newStore(c.read, store.Limits{QueueLength: 20}, &j)
		twin := newStore(twinClock.read, store.Limits{QueueLength: 20}, new(MemJournal))
		a, b := newWorkload(s, c, seed), newWorkload(twin, twinClock, seed)
		for range 300 {
			call, twinCall := a.plan(), b.plan()
			before := snapshot(t, s)
			j.broken = true
			if err := call(); err != nil {
				require.ErrorIs(t, err, errBroken)
				failed[s.c.op]++
			}
			j.broken = false
			require.Equal(t, before, snapshot(t, s))
			checkIndexes(t, s, c.now)
			require.NoError(t, call())
			require.NoError(t, twinCall())
			require.Equal(t, snapshot(t, twin), snapshot(t, s))
		}
	}
	for op := opCommit; op <= opRenew; op++ {
		require.Positive(t, failed[op], opNames[op])
	}
}

// However long payloads are, and however many: what is fired, claimed, renewed,
// retried and buried needs no room for them, nor do the moves of their schedules.
func TestD2APayloadThatIsThereIsNotWrittenAgain(t *testing.T) {
	const size = 1 << 20
	c := &clock{now: 1000}
	var j MemJournal
	s := newStore(c.read, store.Limits{}, &j)
	record := func(call func() error) {
		t.Helper()
		before := len(j.Bytes())
		require.NoError(t, call())
		require.Greater(t, len(j.Bytes()), before)
		require.Less(t, len(j.Bytes())-before, 64*300)
	}
	large := row("s", 1000)
	large.Payload = make([]byte, size)
	large.Breaker = 200
	rows := put(t, s, large)
	commit(t, s, store.Batch{Inserts: []store.Insert{{Queue: "q", Payload: []byte("p"), Stamps: stamps, RunAt: store.None}}})
	require.Greater(t, len(j.Bytes()), size)

	lead, err := s.Acquire(ctx, store.SchedulerLock, "o", 1000)
	require.NoError(t, err)
	tick := store.Tick{By: lead.Lease, Now: c.now, Moves: []store.Move{{
		ID: rows[0].ID, Rev: rows[0].Rev, Cursor: 65_000, DueAt: 65_000, SetAt: c.now, Fires: 64,
	}}}
	for k := range 64 {
		tick.Fires = append(tick.Fires, store.Fire{Boundary: store.Instant(1000 * k)})
	}
	record(func() error { _, err := s.Advance(ctx, &tick); return err })
	claimed := make([]store.Job, 65)
	record(func() error { _, err := s.Claim(ctx, "q", "w", claimed); return err })
	extends := make([]store.Extend, 64)
	var settles []store.Settle
	for i, job := range claimed[1:] {
		require.Len(t, job.Payload, size)
		extends[i] = store.Extend{Job: job.ID, Attempt: 1, ForMS: 60}
		settles = append(settles, store.Settle{Job: job.ID, Attempt: 1, To: store.State(1 + 2*(i%2))})
	}
	record(func() error { _, err := s.Extend(ctx, extends, make([]store.Instant, 64)); return err })
	record(func() error { _, err := s.Settle(ctx, settles, make([]bool, 64)); return err })
	c.now += 1000
	record(func() error { _, err := s.Claim(ctx, "q", "w", claimed[:3]); return err })
	s.names.Scan(func(r *schedule) bool { rows[0] = r.Schedule; return true })
	rows[0].Priority++
	record(func() error {
		_, err := s.Commit(ctx, &store.Batch{
			Puts: []store.Put{{Guard: store.Guard{Name: "s", ID: rows[0].ID, Rev: rows[0].Rev}, Row: rows[0]}},
			Inserts: []store.Insert{{Queue: "q", Payload: rows[0].Payload, Stamps: stamps, RunAt: store.None, From: &store.Source{
				Schedule: "s", ScheduleID: rows[0].ID, FireAt: store.None,
			}}},
		})
		return err
	})

	record(func() error { // a new incarnation
		guard := store.Guard{Name: "s", ID: rows[0].ID, Rev: rows[0].Rev + 1}
		rows[0].ID = 0
		_, err := s.Commit(ctx, &store.Batch{Puts: []store.Put{{Guard: guard, Row: rows[0]}}})
		return err
	})

	// A put may change the payload beside a job that has the old or the new one.
	for i, payload := range []string{"old", "new", "new"} {
		s.names.Scan(func(r *schedule) bool { rows[0] = r.Schedule; return true })
		guard := store.Guard{Name: "s", ID: rows[0].ID, Rev: rows[0].Rev}
		rows[0].Payload = []byte([]string{"old", "new", "last"}[i])
		commit(t, s, store.Batch{Puts: []store.Put{{Guard: guard, Row: rows[0]}}, Inserts: []store.Insert{{
			Queue: "other", Payload: []byte(payload), Stamps: stamps, RunAt: store.None,
			From: &store.Source{Schedule: "s", ScheduleID: rows[0].ID, FireAt: store.None},
		}}})
	}
	twin, _ := restored(t, c, "", string(j.Bytes()), nil)
	require.Equal(t, snapshot(t, s), snapshot(t, twin))
}

// A record that does not fit into its frame is no record of anything else.
func TestD2ACallWhoseRecordIsTooLongChangesNothing(t *testing.T) {
	c := &clock{now: 5}
	var j MemJournal
	s := newStore(c.read, store.Limits{}, &j)
	insert := func(bytes int) error {
		_, err := s.Commit(ctx, &store.Batch{Inserts: []store.Insert{{Queue: "q", Payload: make([]byte, bytes), Stamps: stamps, RunAt: store.None}}})
		return err
	}
	require.Equal(t, int64(1<<32-1), s.longest)
	require.NoError(t, insert(100))
	state, fits := snapshot(t, s), int64(len(j.Bytes()))

	s.longest = fits
	require.EqualError(t, insert(101), fmt.Sprintf("the record of the call would be %d bytes long, and %d are allowed: write less in one call", fits+1, fits))
	require.Equal(t, state, snapshot(t, s))
	require.Len(t, j.Bytes(), int(fits))
	require.NoError(t, insert(100))
	checkIndexes(t, s, c.now)
}

func TestD6OnlyTheSchedulersRenewalIsNoRecord(t *testing.T) {
	for lock, recorded := range map[string]bool{"l": true, store.SchedulerLock: false} {
		c := &clock{now: 5}
		var j MemJournal
		s := newStore(c.read, store.Limits{}, &j)
		g, err := s.Acquire(ctx, lock, "a", 100)
		require.NoError(t, err)
		before := len(j.Bytes())
		c.now = 50
		renewed, err := s.Renew(ctx, g.Lease, 100)
		require.NoError(t, err)
		require.True(t, renewed.OK)
		require.Equal(t, store.Instant(150), s.lease(lock).ExpiresAt)
		require.Equal(t, recorded, len(j.Bytes()) > before, lock)
		if recorded {
			twin, _ := restored(t, c, "", string(j.Bytes()), nil)
			require.Equal(t, store.Instant(150), twin.lease(lock).ExpiresAt)
		}
	}
}

func TestD6TheSchedulersLeaseIsNoRecordButItsTerm(t *testing.T) {
	c := &clock{now: 5}
	var j MemJournal
	s := newStore(c.read, store.Limits{}, &j)
	g, err := s.Acquire(ctx, store.SchedulerLock, "a", 100)
	require.NoError(t, err)
	acquired := j.Bytes()
	twin, _ := restored(t, c, "", string(acquired), nil)
	require.Nil(t, twin.lease(store.SchedulerLock))
	require.Equal(t, g.Lease.Term, twin.last.term)

	released, err := s.Release(ctx, g.Lease)
	require.NoError(t, err)
	require.True(t, released)
	require.Equal(t, acquired, j.Bytes())
}

// A journal or a clock that panics leaves the store as it was, and open to
// the next call.
func TestD2R5APanicChangesNothing(t *testing.T) {
	c := &clock{now: 5}
	var j MemJournal
	panics := false
	now := func() store.Instant {
		if panics {
			panic("no clock")
		}
		return c.read()
	}
	s := newStore(now, store.Limits{}, journalFunc(func(record []byte) error {
		if bytes.Contains(record, []byte("poison")) {
			panic("no disk")
		}
		return j.Append(record)
	}))
	insert := func(payload string) error {
		_, err := s.Commit(ctx, &store.Batch{Inserts: []store.Insert{{Queue: "q", Payload: []byte(payload), Stamps: stamps, RunAt: store.None}}})
		return err
	}
	require.NoError(t, insert("first"))
	before := snapshot(t, s)
	require.PanicsWithValue(t, "no disk", func() { _ = insert("poison") })
	require.Equal(t, before, snapshot(t, s))
	panics = true
	require.PanicsWithValue(t, "no clock", func() { _ = insert("second") })
	panics = false
	require.NoError(t, insert("third"))
	checkIndexes(t, s, c.now)
	twin, _ := restored(t, c, "", string(j.Bytes()), nil)
	require.Equal(t, snapshot(t, s), snapshot(t, twin))
}

type journalFunc func(record []byte) error

func (f journalFunc) Append(record []byte) error { return f(record) }
