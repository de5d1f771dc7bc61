package pgengine

import (
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
)

// manual is what docs/POSTGRES.md has of SQL, by the comment that each block
// begins with. Of a file outside of its module go's test cache does not know: who
// changes it runs the test with -count=1.
func manual(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/POSTGRES.md")
	require.NoError(t, err)
	blocks := make(map[string]string)
	for _, m := range regexp.MustCompile("(?s)```sql\n-- ([^\n]*)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		require.NotContains(t, blocks, m[1])
		blocks[m[1]] = m[2]
	}
	require.Len(t, blocks, 15)
	return blocks
}

// operator is a rig, somebody with psql, and the manual.
type operator struct {
	*rig
	conn  *pgx.Conn
	texts map[string]string
}

func newOperator(t *testing.T) *operator {
	o := &operator{newRig(t, pgtest.Shared(t), tickonce.Config{}), nil, manual(t)}
	var err error
	o.conn, err = pgx.ConnectConfig(ctx, pgtest.Shared(t).Config(t, pgtest.Superuser).ConnConfig)
	require.NoError(t, err)
	t.Cleanup(func() { o.conn.Close(ctx) })
	_, err = o.conn.Exec(ctx, "set search_path to "+quoted(o.schema))
	require.NoError(t, err)
	return o
}

// do does what the manual says, and answers what each row of it begins with.
func (o *operator) do(block string) (rows []string) {
	o.t.Helper()
	require.Contains(o.t, o.texts, block)
	answers := o.conn.PgConn().Exec(ctx, o.texts[block])
	for answers.NextResult() {
		for r := answers.ResultReader(); r.NextRow(); {
			rows = append(rows, string(r.Values()[0]))
		}
	}
	require.NoError(o.t, answers.Close(), block)
	return rows
}

// until runs a new runner until so long after the start.
func (o *operator) until(d time.Duration) {
	o.t.Helper()
	r := o.NewRunner()
	require.NoError(o.t, o.run(r, d))
	require.NoError(o.t, r.Stop(ctx))
}

// report answers a column of the schedule "report".
func (o *operator) report(column string) string {
	o.t.Helper()
	var value string
	require.NoError(o.t, o.conn.QueryRow(ctx, "select coalesce(("+column+")::text, '') from schedule where name = 'report'").Scan(&value))
	return value
}

// tallies are the counters of the queue, and what they should be.
func (o *operator) tallies() (counted, kept string) {
	o.t.Helper()
	require.NoError(o.t, o.conn.QueryRow(ctx, `
select (select row(sum(pending), sum(claimed), sum(dead))::text from queue_tally where queue = 'q'),
  (select row(count(*) filter (where state = 1), count(*) filter (where state = 2), count(*) filter (where state = 3))::text
   from job where queue = 'q')`).Scan(&counted, &kept))
	return counted, kept
}

// fail kills a job of the queue.
func (o *operator) fail() {
	o.t.Helper()
	job, err := o.Claim(ctx, "q", "w")
	require.NoError(o.t, err)
	require.NoError(o.t, job.Fail(ctx, nil))
}

func TestTheManualLooksAtWhatThereIs(t *testing.T) {
	o := newOperator(t)
	o.schedule("report", "@every 10s")
	o.schedule("held", "@every 10s")
	exec(t, o.admin, "update "+o.table("schedule")+" set spec = 'x' where name = 'held'")
	require.NoError(t, o.rig.run(o.NewRunner(), 35*time.Second))
	o.fail()
	ended, err := o.Claim(ctx, "q", "w")
	require.NoError(t, err)
	require.NoError(t, ended.Ack(ctx))
	_, err = o.Claim(ctx, "q", "w")
	require.NoError(t, err)
	require.NoError(t, enqueue(o.Engine.Engine, "other"))
	exec(t, o.admin, "analyze")

	require.Equal(t, []string{o.Config().Owner + "/1"}, o.do("who leads"))
	require.Equal(t, []string{"report", "held"}, o.do("next fires"))
	require.Equal(t, []string{"held"}, o.do("held and paused schedules"))
	require.Equal(t, []string{"other", "q"}, o.do("queues"))
	require.Equal(t, []string{"other"}, o.do("oldest pending job of each queue"))
	require.Equal(t, []string{"3"}, o.do("claims, the oldest first"))
	require.Equal(t, []string{"1"}, o.do("dead jobs"))
	require.Len(t, o.do("history of a schedule"), 2)
	require.Len(t, o.do("sizes and dead rows"), 10)
}

func TestTheManualRepairsASpec(t *testing.T) {
	o := newOperator(t)
	o.schedule("report", "@every 10s")
	exec(t, o.admin, "update "+o.table("schedule")+" set spec = 'x'")
	o.until(15 * time.Second)
	require.NotEmpty(t, o.report("hold_reason"))
	o.do("repair a spec")
	o.until(16 * time.Second)
	require.Empty(t, o.report("hold_reason"))
	require.Equal(t, []string{"report 10s"}, o.fires())
}

func TestTheManualRepairsACursor(t *testing.T) {
	o := newOperator(t)
	o.schedule("report", "@every 10s")
	o.until(25 * time.Second)
	exec(t, o.admin, "update "+o.table("schedule")+" set cursor = cursor - 20000, due_at = cursor - 20000")
	o.until(26 * time.Second)
	require.NotEmpty(t, o.report("hold_reason"))
	require.Equal(t, []string{"report 10s", "report 20s"}, o.fires())
	o.do("repair a cursor")
	o.until(35 * time.Second)
	require.Empty(t, o.report("hold_reason"))
	require.Equal(t, []string{"report 10s", "report 20s", "report 30s"}, o.fires())
	o.do("repair a cursor")
	require.Equal(t, fmt.Sprint(start.Add(40*time.Second).UnixMilli()), o.report("cursor"), "a cursor that is right stays")
}

func TestTheManualRepairsCounters(t *testing.T) {
	o := newOperator(t)
	o.schedule("report", "@every 10s")
	o.schedule("other", "@every 10s")
	o.until(65 * time.Second)
	o.fail()
	for range 2 {
		_, err := o.Claim(ctx, "q", "w")
		require.NoError(t, err)
	}
	counted, kept := o.tallies()
	require.Equal(t, kept, counted)
	queues, totals := "repair the counters of queues", "repair the counters of schedules and the history"
	o.do(queues)
	o.do(totals)
	again, _ := o.tallies()
	require.Equal(t, counted, again, "what is right stays")

	exec(t, o.admin, "delete from "+o.table("job")+" where state = 3 or id in (2, 5, 6)")
	exec(t, o.admin, "delete from "+o.table("schedule")+" where name = 'other'")
	exec(t, o.admin, "delete from "+o.table("run"))
	counted, kept = o.tallies()
	require.NotEqual(t, kept, counted)
	o.do(queues)
	o.do(totals)
	counted, kept = o.tallies()
	require.Equal(t, kept, counted)
	var sums string
	require.NoError(t, o.conn.QueryRow(ctx, "select row(sum(schedules), sum(runs), sum(skips))::text from total_tally").Scan(&sums))
	require.Equal(t, "(1,0,0)", sums)
}

func TestTheManualPurgesTheDead(t *testing.T) {
	o := newOperator(t)
	for range 3 {
		require.NoError(t, enqueue(o.Engine.Engine, "q"))
	}
	o.fail()
	o.ms.Store(time.Now().UnixMilli())
	o.fail()
	o.do("purge the dead of 30 days")
	counted, kept := o.tallies()
	require.Equal(t, "(1,0,1)", kept)
	require.Equal(t, kept, counted)
	info, err := o.Queue(ctx, "q")
	require.NoError(t, err)
	require.EqualValues(t, 1, info.Purged)
}

// What a restored state has given out since its backup is not given out again.
func TestTheManualRaisesIDsAfterARestore(t *testing.T) {
	o := newOperator(t)
	for range 3 {
		require.NoError(t, enqueue(o.Engine.Engine, "q"))
		job, err := o.Claim(ctx, "q", "w")
		require.NoError(t, err)
		require.NoError(t, job.Ack(ctx))
	}
	before, err := o.Lock(ctx, "l", "o", time.Second)
	require.NoError(t, err)
	o.do("after a restore")
	id, err := o.Enqueue(ctx, "q", nil, tickonce.EnqueueOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 3+1_000_000+1, id)
	after, err := o.Lock(ctx, "another", "o", time.Second)
	require.NoError(t, err)
	require.Equal(t, before.Term()+1_000_000+1, after.Term())
}
