package pgengine

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
	"github.com/tickonce/tickonce/store"
)

// Statements that do not see each other's writes are rarely so close together.
// Here a transaction of the test's own keeps one waiting after it has begun, and
// the other is made meanwhile.

func newTestStore(t *testing.T) (*Store, *pgxpool.Pool) {
	pool, schema := pgtest.Pool(t), pgtest.Schema(t)
	_, err := Migrate(t.Context(), pool, schema)
	require.NoError(t, err)
	now := func() store.Instant { return 1_000_000 }
	return newStore(pool, schema, store.Limits{}, now), pool
}

// waiting returns when some statement waits for a lock, or done is closed.
func waiting(t *testing.T, pool *pgxpool.Pool, done <-chan struct{}) {
	for n := 0; n == 0; {
		select {
		case <-done:
			return
		default:
			require.NoError(t, pool.QueryRow(t.Context(), "select count(*) from pg_locks where not granted").Scan(&n))
		}
	}
}

// eachWay runs the test with calls that are statements, and with steps.
func eachWay(t *testing.T, test func(t *testing.T, s *Store, pool *pgxpool.Pool)) {
	t.Run("statement", func(t *testing.T) {
		s, pool := newTestStore(t)
		test(t, s, pool)
	})
	t.Run("step", func(t *testing.T) {
		s, pool := newTestStore(t)
		test(t, byStep(t, s), pool)
	})
}

func TestX9ATickThatHasBegunSeesTheTriggerThatCameFirst(t *testing.T) {
	eachWay(t, aTickAndATrigger)
}

func aTickAndATrigger(t *testing.T, s *Store, pool *pgxpool.Pool) {
	row := store.Schedule{
		Name: "s", Spec: "@every 1s", Queue: "q", Overlap: store.SkipLive, CatchUp: store.CatchUp{Max: 64},
		Stamps: store.Stamps{VisibilityMS: 100, MaxAttempts: 3}, Cursor: 1_000_000, DueAt: 1_000_000,
	}
	c, err := s.Commit(t.Context(), &store.Batch{Puts: []store.Put{{Guard: store.Guard{Name: "s"}, Row: row}}})
	require.NoError(t, err)
	row = c.Puts[0]
	lease, err := s.Acquire(t.Context(), store.SchedulerLock, "o", 60_000)
	require.NoError(t, err)

	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context())
	_, err = tx.Exec(t.Context(), s.texts[lockLeaseAlone])
	require.NoError(t, err)
	tick := store.Tick{
		By: lease.Lease, Now: 1_000_000,
		Moves: []store.Move{{ID: row.ID, Rev: row.Rev, Cursor: 1_001_000, DueAt: 1_001_000, Fires: 1}},
		Fires: []store.Fire{{Boundary: 1_000_000}},
	}
	done := make(chan struct{})
	var held bool
	var tickErr error
	go func() {
		held, tickErr = s.Advance(t.Context(), &tick)
		close(done)
	}()
	waiting(t, pool, done)
	c, err = s.Commit(t.Context(), &store.Batch{
		Guards: []store.Guard{{Name: "s", ID: row.ID, Rev: row.Rev, Live: &store.Live{}}},
		Inserts: []store.Insert{{
			Queue: "q", Stamps: row.Stamps, RunAt: store.None,
			From: &store.Source{Schedule: "s", ScheduleID: row.ID, FireAt: store.None, Alone: true},
		}},
	})
	require.NoError(t, err)
	require.Zero(t, c.Refusal)
	require.NoError(t, tx.Rollback(t.Context()))
	<-done
	require.NoError(t, tickErr)
	require.True(t, held)
	require.Equal(t, store.Stale, tick.Moves[0].Outcome)
	require.Zero(t, tick.Fires[0].Job)
}

// passes makes a call that must not wait for a lock that tx holds.
func passes(t *testing.T, pool *pgxpool.Pool, tx pgx.Tx, call func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	waiting(t, pool, done)
	select {
	case <-done:
	default:
		t.Error("it waits for a lock")
		require.NoError(t, tx.Rollback(t.Context()))
		<-done
	}
}

// A tick and a claim pass over what somebody else has locked, and nobody waits
// for them but who takes the lease: who freezes keeps nobody from the rest.
func TestTicksAndClaimsPassOverLockedRows(t *testing.T) {
	eachWay(t, func(t *testing.T, s *Store, pool *pgxpool.Pool) {
		now := store.Instant(1_000_000)
		s.now = func() store.Instant { return now }
		stamps := store.Stamps{VisibilityMS: 100, MaxAttempts: 3}
		var b store.Batch
		for _, name := range []string{"a", "b"} {
			b.Puts = append(b.Puts, store.Put{Guard: store.Guard{Name: name}, Row: store.Schedule{
				Name: name, Spec: "@every 1s", Queue: "fired", CatchUp: store.CatchUp{Max: 64}, Stamps: stamps, Cursor: now, DueAt: now,
			}})
		}
		in := store.Insert{Queue: "q", Stamps: stamps, RunAt: store.None}
		expires, other := in, in
		expires.ExpiresMS = 1
		other.Queue = "r"
		b.Inserts = []store.Insert{in, in, in, in, expires, expires, other, other}
		b.Inserts[0].Priority, b.Inserts[1].Priority = 1, 1
		c, err := s.Commit(t.Context(), &b)
		require.NoError(t, err)
		lease, err := s.Acquire(t.Context(), store.SchedulerLock, "o", 60_000)
		require.NoError(t, err)
		_, err = s.Claim(t.Context(), "q", "w", make([]store.Job, 2)) // lapses
		require.NoError(t, err)

		// Of each two one is locked: schedules, lapsed claims, what is pending, and what is to be buried.
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		defer tx.Rollback(t.Context())
		_, err = tx.Exec(t.Context(), s.texts[lockSome])
		require.NoError(t, err)

		tick := store.Tick{By: lease.Lease, Now: now, Moves: []store.Move{
			{ID: c.Puts[0].ID, Rev: 1, Cursor: now + 1000, DueAt: now + 1000},
			{ID: c.Puts[1].ID, Rev: 1, Cursor: now + 1000, DueAt: now + 1000},
		}}
		passes(t, pool, tx, func() { _, err = s.Advance(t.Context(), &tick) })
		require.NoError(t, err)
		require.Equal(t, []store.Outcome{store.Stale, store.Moved}, []store.Outcome{tick.Moves[0].Outcome, tick.Moves[1].Outcome})

		now += 200
		for queue, want := range map[string][]store.JobID{"q": {c.Inserts[1].Job, c.Inserts[3].Job}, "r": {c.Inserts[7].Job}} {
			dst := make([]store.Job, 10)
			var claim store.Claim
			passes(t, pool, tx, func() { claim, err = s.Claim(t.Context(), queue, "w", dst) })
			require.NoError(t, err)
			var got []store.JobID
			for _, j := range dst[:claim.N] {
				got = append(got, j.ID)
			}
			require.Equal(t, want, got)
			require.EqualValues(t, len(want)-1, claim.Buried)
		}
	})
}

// Until a tick is written nobody else gets its lease, though that has expired
// meanwhile.
func TestL6ALeaseIsNotTakenUnderATick(t *testing.T) {
	eachWay(t, func(t *testing.T, s *Store, pool *pgxpool.Pool) {
		c, err := s.Commit(t.Context(), &store.Batch{Puts: []store.Put{{Guard: store.Guard{Name: "s"}, Row: store.Schedule{
			Name: "s", Spec: "@every 1s", Queue: "q", CatchUp: store.CatchUp{Max: 64}, Cursor: 1_000_000, DueAt: 1_000_000,
		}}}})
		require.NoError(t, err)
		lease, err := s.Acquire(t.Context(), store.SchedulerLock, "o", 60_000)
		require.NoError(t, err)
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		defer tx.Rollback(t.Context())
		_, err = tx.Exec(t.Context(), s.texts[insertFires], []store.ScheduleID{c.Puts[0].ID}, []int64{1_000_000}, 0, 0)
		require.NoError(t, err)

		ticked, taken := make(chan struct{}), make(chan struct{})
		go func() { // waits for tx to know whether the boundary has fired
			defer close(ticked)
			_, err = s.Advance(t.Context(), &store.Tick{
				By: lease.Lease, Now: 1_000_000, Moves: []store.Move{{ID: c.Puts[0].ID, Rev: 1, DueAt: store.None, Fires: 1}},
				Fires: []store.Fire{{Boundary: 1_000_000}},
			})
		}()
		waiting(t, pool, ticked)
		later := *s
		later.now = func() store.Instant { return 2_000_000 }
		var g store.Grant
		var takeErr error
		go func() {
			defer close(taken)
			g, takeErr = later.Acquire(t.Context(), store.SchedulerLock, "other", 60_000)
		}()
		for waits := 0; waits < 2; {
			select {
			case <-taken:
				t.Error("the lease was taken under a tick")
				waits = 2
			default:
				require.NoError(t, pool.QueryRow(t.Context(), "select count(*) from pg_locks where not granted").Scan(&waits))
			}
		}
		require.NoError(t, tx.Rollback(t.Context()))
		<-ticked
		<-taken
		require.NoError(t, errors.Join(err, takeErr))
		require.True(t, g.OK)
	})
}

var lockSome = sql(`
with s as (select from tickonce.schedule where name = 'a' for update)
select (select count(*) from s), id from tickonce.job where id % 2 = 1 for update`)

var lockLeaseAlone = sql(`select from tickonce.lease for update`)

func TestX9OfTwoClaimsThatDoNotSeeEachOtherOneGetsAJobThatIsAlone(t *testing.T) {
	s, pool := newTestStore(t)
	in := store.Insert{
		Queue: "q", Stamps: store.Stamps{VisibilityMS: 100, MaxAttempts: 3}, RunAt: store.None,
		From: &store.Source{Schedule: "s", FireAt: store.None, Alone: true},
	}
	_, err := s.Commit(t.Context(), &store.Batch{Inserts: []store.Insert{in, in}})
	require.NoError(t, err)

	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context())
	joined := *s
	joined.db, joined.unfolded = tx, nil
	first, err := joined.Claim(t.Context(), "q", "a", make([]store.Job, 1))
	require.NoError(t, err)
	require.Equal(t, 1, first.N)
	done := make(chan struct{})
	var second store.Claim
	var secondErr error
	go func() {
		second, secondErr = s.Claim(t.Context(), "q", "b", make([]store.Job, 1))
		close(done)
	}()
	waiting(t, pool, done)
	require.NoError(t, tx.Commit(t.Context()))
	<-done
	require.NoError(t, secondErr)
	require.Zero(t, second.N)
}

// A claim waits for nobody who has locked the schedule that the end of a doomed
// job is told to: it leaves the job for later.
func TestX4AClaimPassesOverALockedSchedule(t *testing.T) {
	s, pool := newTestStore(t)
	stamps := store.Stamps{VisibilityMS: 100, MaxAttempts: 3}
	insert := func(name string) {
		row := store.Schedule{Name: name, Queue: "q", Stamps: stamps, Breaker: 3, Cursor: store.None, DueAt: store.None}
		c, err := s.Commit(t.Context(), &store.Batch{Puts: []store.Put{{Guard: store.Guard{Name: name}, Row: row}}})
		require.NoError(t, err)
		_, err = s.Commit(t.Context(), &store.Batch{Inserts: []store.Insert{{
			Queue: "q", Stamps: stamps, RunAt: store.None, From: &store.Source{Schedule: name, ScheduleID: c.Puts[0].ID, FireAt: store.None},
		}}})
		require.NoError(t, err)
	}
	insert("free")
	insert("locked")
	_, err := pool.Exec(t.Context(), s.texts[spendAll])
	require.NoError(t, err)
	failures := func() (n []int16) {
		require.NoError(t, pool.QueryRow(t.Context(), s.texts[countFailures]).Scan(&n))
		return n
	}

	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), s.texts[lockByName], "locked")
	require.NoError(t, err)
	done := make(chan struct{})
	var claim store.Claim
	var claimErr error
	go func() {
		claim, claimErr = s.Claim(t.Context(), "q", "w", nil)
		close(done)
	}()
	waiting(t, pool, done)
	early := failures()
	require.NoError(t, tx.Rollback(t.Context()))
	<-done
	require.NoError(t, claimErr)
	require.Equal(t, 1, claim.Buried)
	require.Equal(t, []int16{1, 0}, early)

	claim, err = s.Claim(t.Context(), "q", "w", nil)
	require.NoError(t, err)
	require.Equal(t, 1, claim.Buried)
	require.Equal(t, []int16{1, 1}, failures())
}

var spendAll, countFailures, lockByName = sql(`update tickonce.job set attempts = max_attempts`),
	sql(`select array_agg(failures order by name) from tickonce.schedule`),
	sql(`select from tickonce.schedule where name = $1 for update`)

// PostgreSQL keeps no text with a NUL, and none that is not UTF-8. The engine
// lets none through; who calls the store gets an error, and nothing is written.
func TestTextsThatPostgreSQLDoesNotKeepAreRefused(t *testing.T) {
	s, pool := newTestStore(t)
	insert := func(change func(*store.Insert)) func() error {
		return func() error {
			in := store.Insert{Queue: "q", Stamps: store.Stamps{VisibilityMS: 100, MaxAttempts: 3}, RunAt: store.None}
			change(&in)
			_, err := s.Commit(t.Context(), &store.Batch{Inserts: []store.Insert{in}})
			return err
		}
	}
	for _, text := range []string{"a\x00b", "\xff", "a\xc3", "\xed\xa0\x80"} {
		for what, call := range map[string]func() error{
			"queue": insert(func(in *store.Insert) { in.Queue = text }),
			"key":   insert(func(in *store.Insert) { in.Key = text }),
			"schedule": func() error {
				_, err := s.Commit(t.Context(), &store.Batch{Puts: []store.Put{{Guard: store.Guard{Name: text}, Row: store.Schedule{Name: text, Queue: "q"}}}})
				return err
			},
			"worker": func() error {
				_, err := s.Claim(t.Context(), "q", text, make([]store.Job, 1))
				return err
			},
			"error": func() error {
				_, err := s.Settle(t.Context(), []store.Settle{{Job: 1, Attempt: 1, To: store.Dead, Error: text}}, make([]bool, 1))
				return err
			},
			"lock": func() error {
				_, err := s.Acquire(t.Context(), text, "o", 1000)
				return err
			},
		} {
			require.ErrorContains(t, call(), "22021", "%s %q", what, text)
		}
		// From where to read is no text that is kept.
		_, _, err := s.Schedules(t.Context(), text, make([]store.Schedule, 1))
		require.NoError(t, err)
		_, _, err = s.Queues(t.Context(), text, make([]store.Queue, 1))
		require.NoError(t, err)
	}
	var rows int
	require.NoError(t, pool.QueryRow(t.Context(), s.texts[countAll]).Scan(&rows))
	require.Zero(t, rows)
}

var countAll = sql(`select (select count(*) from tickonce.job) + (select count(*) from tickonce.schedule) + (select count(*) from tickonce.lease)`)

// Of two transactions that each claim a job of one schedule, which is to be
// alone, the second finds nothing when the first has committed, and goes on.
func TestX9ClaimsInTransactionsOfOthers(t *testing.T) {
	s, pool := newTestStore(t)
	in := store.Insert{
		RunAt: store.None, Stamps: store.Stamps{VisibilityMS: 1000, MaxAttempts: 3},
		From: &store.Source{Schedule: "s", FireAt: store.None, Alone: true},
	}
	var txs [2]pgx.Tx
	var stores [2]*Store
	for i := range txs {
		in.Queue = fmt.Sprint(i)
		_, err := s.Commit(t.Context(), &store.Batch{Inserts: []store.Insert{in}})
		require.NoError(t, err)
		txs[i], err = pool.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = txs[i].Rollback(ctx) }()
		joined := *s
		joined.db, joined.unfolded = txs[i], nil
		stores[i] = &joined
	}
	c, err := stores[0].Claim(t.Context(), "0", "w", make([]store.Job, 1))
	require.NoError(t, err)
	require.Equal(t, 1, c.N)
	done := make(chan struct{})
	var second store.Claim
	var secondErr error
	go func() {
		defer close(done)
		second, secondErr = stores[1].Claim(t.Context(), "1", "w", make([]store.Job, 1))
	}()
	waiting(t, pool, done)
	require.NoError(t, txs[0].Commit(t.Context()))
	<-done
	require.NoError(t, secondErr)
	require.Zero(t, second.N)
	require.NoError(t, txs[1].Commit(t.Context()))
}
