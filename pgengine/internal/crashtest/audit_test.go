package crashtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// audits writes down what becomes of schedules and jobs. What is written of one
// row is in the order in which it happened.
const audits = `
create table app.orders (n bigint generated always as identity primary key);
create table app.handled (job bigint not null, attempt int not null);
create table app.moved (
  id bigint generated always as identity primary key, schedule bigint not null, name text not null, cursor bigint not null
);
create table app.changed (
  id bigint generated always as identity primary key,
  at bigint not null default floor(extract(epoch from clock_timestamp()) * 1000),
  job bigint not null, before smallint not null, after smallint not null, attempts int not null, row jsonb
);
create function app.move() returns trigger language plpgsql security definer as $$
begin
  insert into app.moved (schedule, name, cursor) values (new.id, new.name, new.cursor);
  return null;
end $$;
create function app.change() returns trigger language plpgsql security definer as $$
begin
  case tg_op
  when 'INSERT' then insert into app.changed (job, before, after, attempts, row) values (new.id, 0, new.state, new.attempts,
    to_jsonb(new) || jsonb_build_object('payload', coalesce(convert_from(new.payload, 'UTF8'), '')));
  when 'UPDATE' then insert into app.changed (job, before, after, attempts) values (new.id, old.state, new.state, new.attempts);
  when 'DELETE' then insert into app.changed (job, before, after, attempts) values (old.id, old.state, 4, old.attempts);
  end case;
  return null;
end $$;
create trigger audit after insert or update of cursor on engine.schedule for each row execute function app.move();
create trigger audit after insert or update or delete on engine.job for each row execute function app.change();
grant usage on schema app, engine to role;
grant select, insert, update, delete on all tables in schema engine to role;
grant usage on all sequences in schema engine to role;
grant insert, select on app.orders, app.handled to role;
`

// account is what happened.
type account struct {
	schedules map[int64]*grid
	jobs      map[int64]*life
	orders    map[int64]bool // that were committed
	handled   map[attempt]bool
	runs      map[attempt]int // entries of the history
	counters  map[string]store.Queue
}

// grid is what happened to an incarnation of a schedule.
type grid struct {
	name       string
	every      int64
	from, next int64 // the first cursor and the last
	fired      map[int64]int
	skipped    map[int64]int
	overlap    store.Overlap
	once       bool
}

// attempt is one at a job, by its number.
type attempt struct {
	job int64
	n   int
}

// life is what became of a job.
type life struct {
	id       int64
	Queue    string
	Schedule int64 `json:"schedule_id"`
	FireAt   int64 `json:"fire_at"` // or byHand
	Payload  string
	at       int64 // when it was inserted, by the server's clock
	changes  []change
	kept     store.State // the row that there is; 0: none
}

type change struct {
	id            int64
	before, after store.State // 0: not there yet; store.Done: not there any more
	attempts      int
}

// byHand stands for the boundary of a job that was triggered.
const byHand = int64(store.None)

func readAccount(t *testing.T, pool *pgxpool.Pool, engine, app string) *account {
	t.Helper()
	a := &account{
		schedules: map[int64]*grid{}, jobs: map[int64]*life{}, orders: map[int64]bool{},
		handled: map[attempt]bool{}, runs: map[attempt]int{}, counters: map[string]store.Queue{},
	}
	names := strings.NewReplacer("engine.", pgx.Identifier{engine}.Sanitize()+".", "app.", pgx.Identifier{app}.Sanitize()+".")
	each := func(sql string, targets []any, f func()) {
		t.Helper()
		rows, err := pool.Query(ctx, names.Replace(sql))
		require.NoError(t, err)
		_, err = pgx.ForEachRow(rows, targets, func() error { f(); return nil })
		require.NoError(t, err)
	}
	var id, n, m, k int64
	var spec, name string
	var overlap store.Overlap
	var once bool
	each("select id, name, spec, overlap, run_once from engine.schedule", []any{&id, &name, &spec, &overlap, &once}, func() {
		seconds, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(spec, "@every "), "s"), 10, 64)
		require.NoError(t, err)
		a.schedules[id] = &grid{
			name: name, every: seconds * 1000, overlap: overlap, once: once, fired: map[int64]int{}, skipped: map[int64]int{},
		}
	})
	each("select schedule, cursor from app.moved order by id", []any{&id, &n}, func() {
		if g := a.schedules[id]; g.from == 0 {
			g.from = n
		} else {
			g.next = n
		}
	})
	each("select schedule_id, first, count, every_ms from engine.skip where reason <> "+fmt.Sprint(uint8(store.SkipBefore)), []any{&id, &n, &m, &k}, func() {
		for ; m > 0; m-- {
			a.schedules[id].skipped[n]++
			n += k
		}
	})
	var c change
	var row *life
	each("select id, at, job, before, after, attempts, row from app.changed order by id", []any{&c.id, &n, &id, &c.before, &c.after, &c.attempts, &row}, func() {
		if row != nil {
			row.id, row.at = id, n
			if g := a.schedules[row.Schedule]; g != nil && row.FireAt != byHand {
				g.fired[row.FireAt]++
			}
			a.jobs[id], row = row, nil
		}
		a.jobs[id].changes = append(a.jobs[id].changes, c)
	})
	var state store.State
	each("select id, state from engine.job", []any{&id, &state}, func() { a.jobs[id].kept = state })
	each("select n from app.orders", []any{&n}, func() { a.orders[n] = true })
	var done attempt
	each("select job, attempt from app.handled", []any{&done.job, &done.n}, func() { a.handled[done] = true })
	each("select job, attempt from engine.run", []any{&done.job, &done.n}, func() { a.runs[done]++ })
	var q store.Queue
	each(`select queue, sum(pending)::bigint, sum(claimed)::bigint, sum(dead)::bigint, sum(claims)::bigint, sum(retried)::bigint,
  sum(done)::bigint, sum(died)::bigint from engine.queue_tally group by queue`,
		[]any{&q.Name, &q.Pending, &q.Claimed, &q.Dead, &q.Claims, &q.Retried, &q.Done, &q.Died},
		func() { a.counters[q.Name] = q })
	return a
}

// verdict counts what must not be, by its kind, and tells of some.
type verdict struct {
	faults map[string]int
	told   []string
}

func (v *verdict) fault(kind, format string, args ...any) {
	v.faults[kind]++
	if v.faults[kind] <= 5 {
		v.told = append(v.told, kind+": "+fmt.Sprintf(format, args...))
	}
}

// The kinds of faults.
const (
	doubleFire = "double fire"
	gap        = "gap"
	offGrid    = "off the grid"
	early      = "early fire"
	overlaps   = "overlap"
	impossible = "impossible change"
	wrongJob   = "job without its order, or order without its job"
	unhandled  = "done without having been handled"
	wrongRuns  = "runs that the history does not have, or has twice"
	miscounted = "counter"
	lostAnswer = "answered, and lost"
)

func (a *account) judge() verdict {
	v := verdict{faults: map[string]int{}}
	a.judgeGrids(&v)
	a.judgeLives(&v)
	a.judgeOverlaps(&v)
	a.judgeOrders(&v)
	return v
}

// judgeGrids: the boundaries from the first cursor to the last have fired, or
// were skipped, once, and no others have.
func (a *account) judgeGrids(v *verdict) {
	for _, id := range slices.Sorted(maps.Keys(a.schedules)) {
		g := a.schedules[id]
		on := 0
		for at := g.from; at < g.next; at += g.every {
			n := g.fired[at] + g.skipped[at]
			switch {
			case n == 0:
				v.fault(gap, "%s of %d", g.name, at)
				continue
			case n > 1:
				v.fault(doubleFire, "%s of %d: %d times fired, %d times skipped", g.name, at, g.fired[at], g.skipped[at])
			}
			if g.fired[at] > 0 {
				on++
			}
			if g.skipped[at] > 0 {
				on++
			}
		}
		if off := len(g.fired) + len(g.skipped) - on; off > 0 {
			v.fault(offGrid, "%s: %d boundaries", g.name, off)
		}
		if g.once && len(g.fired) > 1 {
			v.fault(doubleFire, "%s fires once, and has fired %d times", g.name, len(g.fired))
		}
	}
}

// judgeLives: each job goes from state to state as it may, is handed out with
// one attempt more at a time, and ends once. The counters and the history say
// the same.
func (a *account) judgeLives(v *verdict) {
	counters := map[string]store.Queue{}
	for _, id := range slices.Sorted(maps.Keys(a.jobs)) {
		j := a.jobs[id]
		if g := a.schedules[j.Schedule]; g != nil && j.at < j.FireAt && j.FireAt != byHand {
			v.fault(early, "%s of %d: %d ms", g.name, j.FireAt, j.FireAt-j.at)
		}
		q := counters[j.Queue]
		q.Name = j.Queue
		var state store.State
		attempts := 0
		runs := map[attempt]int{}
		for _, c := range j.changes {
			if c.before != state || c.attempts < attempts || c.attempts > attempts+1 {
				v.fault(impossible, "job %d: from state %d to %d at attempt %d, after %d and %d", id, c.before, c.after, c.attempts, state, attempts)
			}
			claimed := c.after == store.Claimed && c.attempts == attempts+1
			ended := c.before == store.Claimed && (c.after != store.Claimed || claimed)
			if ended {
				runs[attempt{id, attempts}]++
			}
			switch {
			case claimed && c.before == store.Pending:
				q.Claims++
				q.Pending--
				q.Claimed++
			case claimed && c.before == store.Claimed: // that one has lapsed
				q.Claims++
			case c.attempts != attempts:
				v.fault(impossible, "job %d: attempt %d without a claim", id, c.attempts)
			case c.before == 0 && c.after == store.Pending:
				q.Pending++
			case c.before == store.Claimed && c.after == store.Claimed: // extended
			case c.before == store.Claimed && c.after == store.Pending:
				q.Claimed--
				q.Pending++
				q.Retried++
			case c.before == store.Claimed && c.after == store.Done:
				q.Claimed--
				q.Done++
				if !a.handled[attempt{id, attempts}] {
					v.fault(unhandled, "attempt %d at job %d", attempts, id)
				}
			case c.before == store.Claimed && c.after == store.Dead:
				q.Claimed--
				q.Dead++
				q.Died++
			case c.before == store.Pending && c.after == store.Dead:
				q.Pending--
				q.Dead++
				q.Died++
			default:
				v.fault(impossible, "job %d: from state %d to %d", id, c.before, c.after)
			}
			state, attempts = c.after, c.attempts
		}
		if kept := state % store.Done; kept != j.kept {
			v.fault(impossible, "job %d: its last change was to state %d, and its row has %d", id, state, j.kept)
		}
		counters[j.Queue] = q
		for n := range attempts {
			one := attempt{id, n + 1}
			if a.schedules[j.Schedule] == nil {
				runs[one] = 0
			}
			if a.runs[one] != runs[one] {
				v.fault(wrongRuns, "attempt %d at job %d: ended %d times, recorded %d times", one.n, id, runs[one], a.runs[one])
			}
		}
	}
	for name, q := range a.counters {
		if counters[name] != q {
			v.fault(miscounted, "%+v, want %+v", q, counters[name])
		}
	}
	if len(a.counters) != len(counters) {
		v.fault(miscounted, "%d queues, want %d", len(a.counters), len(counters))
	}
}

// judgeOverlaps: a schedule that does not let its jobs overlap has one in hand at
// most, and has not fired beside one that is in the way. That a job which was in
// hand is to be tried again may be written before a fire that did not see it: what
// ends a claim is not kept from it by the fires. So for a schedule that lets one
// wait, only those are in the way that nobody has claimed yet.
func (a *account) judgeOverlaps(v *verdict) {
	type step struct {
		change
		job *life
	}
	var steps []step
	for _, j := range a.jobs {
		if g := a.schedules[j.Schedule]; g != nil && g.overlap != store.Allow {
			for _, c := range j.changes {
				steps = append(steps, step{c, j})
			}
		}
	}
	slices.SortFunc(steps, func(x, y step) int { return cmp.Compare(x.id, y.id) })
	live := map[int64]map[int64]change{} // the jobs of a schedule, as they were changed last
	for _, s := range steps {
		g, jobs := a.schedules[s.job.Schedule], live[s.job.Schedule]
		if jobs == nil {
			jobs = map[int64]change{}
			live[s.job.Schedule] = jobs
		}
		for id, c := range jobs {
			if s.before == 0 && (g.overlap == store.SkipLive || c.after == store.Pending && c.attempts == 0) {
				v.fault(overlaps, "%s fired job %d beside job %d, of state %d at attempt %d", g.name, s.job.id, id, c.after, c.attempts)
			}
			if s.after == store.Claimed && c.after == store.Claimed && id != s.job.id {
				v.fault(overlaps, "%s has jobs %d and %d in hand", g.name, s.job.id, id)
			}
		}
		if jobs[s.job.id] = s.change; s.after != store.Pending && s.after != store.Claimed {
			delete(jobs, s.job.id)
		}
	}
}

// judgeOrders: each order has one job, and no job is without its order.
func (a *account) judgeOrders(v *verdict) {
	jobs := map[int64]int{}
	for _, j := range a.jobs {
		if j.Schedule != 0 {
			continue
		}
		n, err := strconv.ParseInt(j.Payload, 10, 64)
		if err != nil || !a.orders[n] {
			v.fault(wrongJob, "job %d of order %q", j.id, j.Payload)
		}
		jobs[n]++
	}
	for n := range a.orders {
		if jobs[n] != 1 {
			v.fault(wrongJob, "order %d has %d jobs", n, jobs[n])
		}
	}
}
