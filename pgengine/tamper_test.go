package pgengine

import (
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
where attrelid = $1::regclass and attnum > 0 and not attisdropped and attname not in ('id', 'rev', 'name') order by 1`, r.table("schedule"))
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
