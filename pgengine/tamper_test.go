package pgengine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
)

// What somebody did to a row, as far as the table takes it, stops no other
// schedule, and the runner neither.
func TestQ1Q6ATamperedColumnStopsNoOther(t *testing.T) {
	r := newRig(t, pgtest.Shared(t), tickonce.Config{})
	rows, err := r.admin.Query(ctx, `
select attname::text, typname::text from pg_attribute a join pg_type t on t.oid = atttypid
where attrelid = $1::regclass and attnum > 0 and not attisdropped and attname not in ('id', 'name') order by 1`, r.table("schedule"))
	require.NoError(t, err)
	type column struct{ Name, Type string }
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	require.NoError(t, err)
	require.NotEmpty(t, columns)

	extremes := map[string][]string{
		"int2":  {"-32768", "32767", "-1", "0"},
		"int4":  {"-2147483648", "2147483647", "-1", "0"},
		"int8":  {"-9223372036854775808", "9223372036854775807", "-1", "0", "9007199254740992"},
		"bool":  {"true", "false"},
		"text":  {"''", "'@every 1000000000d'", "repeat('x', 100000)", `E'\x01'`},
		"bytea": {"''", `'\x00'`},
	}
	refused := 0
	for _, c := range columns {
		require.Contains(t, extremes, c.Type)
		for _, value := range append(extremes[c.Type], "null") {
			empty(t, r.admin, r.schema)
			r.ms.Store(start.UnixMilli())
			r.schedule("a", "@every 10s")
			r.schedule("b", "@every 10s")
			_, err := r.admin.Exec(ctx, "update "+r.table("schedule")+" set "+c.Name+" = "+value+" where name = 'a'")
			if err != nil {
				require.ErrorContains(t, err, "(SQLSTATE 23", "%s = %s", c.Name, value)
				refused++
				continue
			}
			runner := r.NewRunner()
			if err := r.run(runner, 25*time.Second); err != nil {
				t.Errorf("%s = %s: %v", c.Name, value, err)
				continue
			}
			fires := r.fires()
			require.Contains(t, fires, "b 10s", "%s = %s", c.Name, value)
			require.Contains(t, fires, "b 20s", "%s = %s", c.Name, value)
			require.NoError(t, runner.Stop(ctx))
		}
	}
	require.Positive(t, refused)
}

// A row whose write the tables refuse is found among many, and held with the
// reason; the others fire in the same round. It heals when it can be written.
func TestQ1Q6ARowThatCannotBeWritten(t *testing.T) {
	const schedules = 100
	r := newRig(t, pgtest.Shared(t), tickonce.Config{})
	for i := range schedules {
		r.schedule(fmt.Sprintf("s%02d", i), "@every 10s")
	}
	runner := r.NewRunner()
	require.NoError(t, r.run(runner, 15*time.Second))
	require.Len(t, r.fires(), schedules)
	exec(t, r.admin, "update "+r.table("schedule")+" set cursor = cursor - 10000, rev = rev + 1 where name = 's42'")

	statements := 0
	r.proxy.Decide(func(sql string) pgtest.Verdict {
		if strings.Contains(sql, "held as") {
			statements++
		}
		return pgtest.Pass
	})
	require.NoError(t, r.run(runner, 25*time.Second))
	require.Len(t, r.fires(), 2*schedules-1)
	require.NotContains(t, r.fires(), "s42 20s")
	quarantined := r.of(tickonce.EventQuarantined)
	require.Len(t, quarantined, 1)
	require.Equal(t, "s42", quarantined[0].Schedule)
	require.Equal(t, "the store refuses what it would write", quarantined[0].Reason)
	require.LessOrEqual(t, statements, 20, "one bad row took too many statements")

	exec(t, r.admin, "delete from "+r.table("job")+" where schedule = 's42'")
	require.NoError(t, r.run(runner, 100*time.Second))
	require.Contains(t, r.fires(), "s42 10s")
	require.Contains(t, r.fires(), "s42 20s")
	require.NoError(t, runner.Stop(ctx))
}
