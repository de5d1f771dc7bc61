package crashtest

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/pgengine"
	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
)

// few are schedules that are due at the same instants, so that one tick has all.
func few(queue string, o tickonce.ScheduleOptions) (all []schedule) {
	o.Visibility, o.BaseBackoff = time.Second, 10*time.Millisecond
	for i := range 10 {
		all = append(all, schedule{name: fmt.Sprint("s", i), queue: queue, every: time.Second, options: o})
	}
	return all
}

// held is what the sessions of a process hold: the states of those that are in a
// transaction.
func (w *world) held(p *process) (states []string) {
	w.t.Helper()
	rows, err := w.admin.Query(ctx, "select state from pg_stat_activity where application_name = $1 and usename = $2 and state <> 'idle'", p.part.Name, w.role())
	require.NoError(w.t, err)
	states, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(w.t, err)
	return states
}

var inTransaction = []string{"idle in transaction"}

// A leader that is frozen between reading schedules and writing them holds no
// lock: another leads when its lease has lapsed, and fires what the first had
// read and more. Continued, the first is fenced. Where no lease fences it, the
// cursor's guard does; where nothing does, it fires all of it again.
func TestALeaderFrozenBetweenReadAndWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		frozen  part
		says    string
		doubles bool
	}{
		{"lease", part{}, "false 0 ", false},
		{"no lease", part{Leads: true}, "true 0 ", false},
		{"no guard", part{Leads: true, Careless: true}, "true ", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := shared(t)
			w.exec("drop index " + w.table("job_fire"))
			w.register(few("a", tickonce.ScheduleOptions{}))
			c.frozen.Name, c.frozen.Runs, c.frozen.FreezeAdvance = "frozen", true, true
			frozen := w.begin(c.frozen)
			w.until(frozen, "freezing")
			w.stopped(frozen)
			read := w.now()
			require.Empty(t, w.held(frozen))

			other := w.begin(part{Name: "other", Runs: true})
			w.until(other, "leading")
			for w.behind(read+1000) > 0 { // what the first has read, and one more of each
				w.until(other, "advanced")
			}
			w.signal(frozen, syscall.SIGCONT)
			l := w.until(frozen, "advanced")
			require.True(t, strings.HasPrefix(l.more, c.says), l)
			w.dismiss(func(line) {})

			_, v := w.judged()
			if c.doubles {
				require.NotZero(t, v.faults[doubleFire])
				return
			}
			require.Empty(t, v.faults, strings.Join(v.told, "\n"))
		})
	}
}

// A leader that is frozen in the middle of a step has its schedules and its lease
// locked. Workers go on, and so does who writes other schedules. Nobody else can
// lead until the server ends the transaction after ten seconds; then all fires
// that was due, and the first one, continued, is told that its session is gone.
func TestALeaderFrozenInAStep(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the ten seconds after which the server ends a transaction")
	}
	t.Parallel()
	w := shared(t)
	w.register(few("a", tickonce.ScheduleOptions{}))
	frozen := w.begin(part{Name: "frozen", Runs: true, Steps: true, FreezeStep: 4})
	w.until(frozen, "freezing")
	w.stopped(frozen)
	require.Equal(t, inTransaction, w.held(frozen))

	// What is not locked goes on.
	worker := w.begin(part{Name: "worker", Works: true, Orders: true})
	w.until(worker, "ordered")
	w.until(worker, "done")
	e := w.engine(false)
	_, err := e.Schedule(ctx, "new", "@every 1s", "a", []byte("new"), tickonce.ScheduleOptions{})
	require.NoError(t, err)
	require.Equal(t, inTransaction, w.held(frozen), "it has held its locks all the while")

	other := w.begin(part{Name: "other", Runs: true})
	for l := w.next(); l.by != other || l.what != "leading"; l = w.next() {
		require.False(t, l.by == other && l.what == "retrying", "the server has not ended the transaction: %v", l)
	}
	read := w.now()
	for w.behind(read) > 0 {
		w.until(other, "advanced")
	}
	w.signal(frozen, syscall.SIGCONT)
	w.until(frozen, "retrying")
	w.until(frozen, "acquire")
	w.dismiss(func(line) {})

	_, v := w.judged()
	require.Empty(t, v.faults, strings.Join(v.told, "\n"))
}

// A worker that is frozen in the middle of a settle has its job locked, and the
// schedule whose breaker is told of the end. Ticks and claims pass over these
// rows, also when the job can only be buried, until the server ends the
// transaction.
func TestAWorkerFrozenInAStep(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the ten seconds after which the server ends a transaction")
	}
	t.Parallel()
	w := shared(t)
	w.register(append(
		few("b", tickonce.ScheduleOptions{Breaker: -1})[1:],
		few("a", tickonce.ScheduleOptions{Breaker: 255, MaxAttempts: 1})[0],
	))
	frozen := w.begin(part{Name: "frozen", Works: true, Fails: true, FreezeStep: 3})
	runner := w.begin(part{Name: "runner", Runs: true})
	w.until(frozen, "freezing")
	w.stopped(frozen)
	read := w.now()

	for w.behind(read+2000) > 1 { // by then the claim has lapsed
		w.until(runner, "advanced")
	}
	worker := w.begin(part{Name: "worker", Works: true})
	for _, queue := range queues {
		id := w.order(queue, tickonce.EnqueueOptions{})
		for w.until(worker, "done").more != fmt.Sprint(id) {
		}
	}
	require.Equal(t, inTransaction, w.held(frozen), "it has held its locks all the while")
	require.Equal(t, 1, w.behind(read+2000))

	for w.behind(read+2000) > 0 {
		w.until(runner, "advanced")
		require.Less(t, w.now(), read+60_000, "the server has not ended the transaction")
	}
	w.signal(frozen, syscall.SIGCONT)
	w.until(frozen, "retrying")
	w.dismiss(func(line) {})

	_, v := w.judged()
	require.Empty(t, v.faults, strings.Join(v.told, "\n"))
}

// A process that is frozen while it migrates keeps the others from it until the
// server ends its transaction; then one of them does it.
func TestAMigrationThatIsFrozen(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the ten seconds after which the server ends a transaction")
	}
	t.Parallel()
	c, schema := newCrew(t), pgtest.Schema(t)
	config := pgtest.Shared(t).Config(t, pgtest.Superuser)
	frozen := c.start(part{Name: "frozen", Conn: config.ConnString(), Schema: schema, Migrates: true, FreezeStep: 6})
	c.until(frozen, "freezing")
	c.stopped(frozen)
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	applied, err := pgengine.Migrate(bounded, pgtest.Pool(t), schema)
	require.NoError(t, err)
	require.NotEmpty(t, applied)
	c.signal(frozen, syscall.SIGCONT)
	require.Contains(t, c.until(frozen, "lost").more, "the connection to the server was lost")
	require.Equal(t, "0", c.until(frozen, "migrated").more)
	c.dismiss(func(line) {})
}

// Who is frozen between a claim and its settle loses the claim when that lapses:
// another has the job in hand, and what the first does is refused, since it is of
// an earlier attempt. A worker asks first whether it still has the claim.
func TestAWorkerFrozenBetweenClaimAndSettle(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]part{"a worker": {Works: true}, "by hand": {Acks: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := shared(t)
			id := w.order("a", tickonce.EnqueueOptions{Visibility: time.Second})
			p.Name, p.FreezeHandler = "frozen", true
			frozen := w.begin(p)
			require.Equal(t, fmt.Sprint(id, " 1"), w.until(frozen, "handling").more)
			w.until(frozen, "freezing")
			w.stopped(frozen)

			e := w.engine(false)
			var jobs []*tickonce.Job
			for len(jobs) == 0 {
				var err error
				jobs, err = e.ClaimBatch(ctx, "a", "other", 1)
				require.NoError(t, err)
			}
			require.Equal(t, id, jobs[0].ID)
			require.Equal(t, 2, jobs[0].Attempt)
			w.signal(frozen, syscall.SIGCONT)
			for l := w.next(); l.what != "claim_lost"; l = w.next() {
				require.NotEqual(t, "done", l.what)
			}
			w.dismiss(func(line) {})

			a, v := w.judged()
			require.Empty(t, v.faults, strings.Join(v.told, "\n"))
			require.Len(t, a.jobs, 1)
		})
	}
}
