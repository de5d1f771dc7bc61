package core_test

import (
	"cmp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// roomy has room in every queue.
func roomy(*store.Schedule) string { return "" }

// named is a row of the name whose grid begins at its cursor.
func named(name, spec string, cursor store.Instant) store.Schedule {
	row := rowOf(spec, cursor)
	row.Name, row.Anchor = name, cursor
	return row
}

// order is a plan's fires as name@second.
func order(p *core.TickPlan, rows []store.Schedule) []string {
	var fires []string
	for _, fire := range p.Tick.Fires {
		fires = append(fires, rows[fire.Move].Name+"@"+strconv.Itoa(int(fire.Boundary/1000)))
	}
	return fires
}

func TestT10FiresAreInBoundaryAndNameOrder(t *testing.T) {
	rows := []store.Schedule{ // in (due, name) order
		named("c", "@every 20s", 10_000),
		named("a", "@every 10s", 20_000),
		named("b", "@every 30s", 20_000),
		named("A", "@every 1h", 30_000),
	}
	var p core.TickPlan
	require.Equal(t, 4, p.Plan(rows, 55_000, 1000, roomy, utc))
	require.Equal(t, []string{"c@10", "a@20", "b@20", "A@30", "a@30", "c@30", "a@40", "a@50", "b@50", "c@50"}, order(&p, rows))
	require.Equal(t, store.Instant(55_000), p.Tick.Now)
	for i, move := range p.Tick.Moves {
		require.Equal(t, p.Plans[i].Move, move)
		require.Equal(t, core.PlanFire(&rows[i], 55_000, "", utc), p.Plans[i])
	}
}

func TestT10OrderDoesNotDependOnTheOrderOfTheRows(t *testing.T) {
	var rows []store.Schedule
	for i := range 40 {
		rows = append(rows, named("s"+strconv.Itoa(i), "@every "+strconv.Itoa(i%7+1)+"s", store.Instant(i%5)*1000))
	}
	var want []string
	for range 2 {
		var p core.TickPlan
		require.Equal(t, 40, p.Plan(rows, 30_000, 100_000, roomy, utc))
		got := order(&p, rows)
		require.True(t, slices.IsSortedFunc(p.Tick.Fires, func(a, b store.Fire) int {
			return cmp.Or(cmp.Compare(a.Boundary, b.Boundary), cmp.Compare(rows[a.Move].Name, rows[b.Move].Name))
		}))
		if want != nil {
			require.Equal(t, want, got)
		}
		want = got
		slices.Reverse(rows)
	}
}

func TestT15ABudgetNeverSplitsASchedule(t *testing.T) {
	for _, c := range []struct {
		name   string
		behind []int // boundaries due, of each row
		budget int
		taken  int
		fires  int
	}{
		{"a row beyond the budget is taken alone", []int{64, 1}, 10, 1, 64},
		{"up to the budget exactly", []int{4, 6, 1}, 10, 2, 10},
		{"the next one would exceed it", []int{4, 7, 1}, 10, 1, 4},
		{"a smaller one behind it does not overtake", []int{4, 7, 1, 1}, 10, 1, 4},
		{"all fit", []int{1, 2, 3}, 10, 3, 6},
		{"budget 1", []int{1, 1}, 1, 1, 1},
		{"a row that only waits costs nothing", []int{10, 0, 1}, 10, 2, 10},
		{"none", nil, 10, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var rows []store.Schedule
			for i, n := range c.behind {
				rows = append(rows, named(strconv.Itoa(i), "@every 1s", store.Instant(101-n)*1000))
			}
			var p core.TickPlan
			require.Equal(t, c.taken, p.Plan(rows, 100_000, c.budget, roomy, utc))
			require.Len(t, p.Tick.Moves, c.taken)
			require.Len(t, p.Plans, c.taken)
			require.Len(t, p.Tick.Fires, c.fires)
		})
	}
}

func TestQ1ABadRowAndAFullQueueStopNoOther(t *testing.T) {
	rows := []store.Schedule{named("a", "@every 10s", 0), named("b", "@daily", 0), named("c", "@every 10s", 0), named("d", "@every 10s", 0)}
	var p core.TickPlan
	full := func(row *store.Schedule) string {
		if row.Name == "c" {
			return "the queue is full"
		}
		return ""
	}
	require.Equal(t, 4, p.Plan(rows, 5000, 1000, full, utc))
	require.Equal(t, []string{"a@0", "d@0"}, order(&p, rows))
	require.NotNil(t, p.Tick.Moves[1].Hold)
	require.Equal(t, "the queue is full", p.Tick.Moves[2].Hold.Reason)
	require.Equal(t, []int32{1, 0, 0, 1}, []int32{p.Tick.Moves[0].Fires, p.Tick.Moves[1].Fires, p.Tick.Moves[2].Fires, p.Tick.Moves[3].Fires})
}

func TestAPlanLeavesNothingOfTheOneBefore(t *testing.T) {
	var p core.TickPlan
	rows := []store.Schedule{named("a", "@every 1s", 0), named("b", "@every 1s", 0)}
	p.Plan(rows, 10_000, 1000, roomy, utc)
	p.Plan(rows[:1], 0, 1000, roomy, utc)
	require.Len(t, p.Tick.Moves, 1)
	require.Len(t, p.Plans, 1)
	require.Equal(t, []string{"a@0"}, order(&p, rows))
}

func BenchmarkTickPlan(b *testing.B) {
	rows := make([]store.Schedule, 1000)
	for i := range rows {
		rows[i] = named("s"+strconv.Itoa(1000+i), "@every 5m", 0)
	}
	var p core.TickPlan
	b.ReportAllocs()
	for b.Loop() {
		p.Plan(rows, 0, 1000, roomy, utc)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/fire")
}

func TestATickPlanAllocatesNothingOnceWarm(t *testing.T) {
	rows := []store.Schedule{named("a", "@every 1s", 0), named("b", "@every 1s", 0)}
	var p core.TickPlan
	p.Plan(rows, 10_000, 1000, roomy, utc)
	require.Zero(t, testing.AllocsPerRun(100, func() { p.Plan(rows, 10_000, 1000, roomy, utc) }))
}
