package properties_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// fires watches what fires in a world: per incarnation of a schedule, each
// boundary of its grid once, and in order (invariant 1).
type fires struct {
	grids map[store.ScheduleID]store.Schedule
	last  map[store.ScheduleID]store.Instant
	seen  map[string]store.JobID // by queue
}

func watchFires() *fires {
	return &fires{map[store.ScheduleID]store.Schedule{}, map[store.ScheduleID]store.Instant{}, map[string]store.JobID{}}
}

// look judges the jobs that are new since the last look.
func (f *fires) look(t *rapid.T, w *world) {
	for _, row := range w.schedules() {
		f.grids[row.ID] = row
	}
	for _, queue := range queueNames {
		for _, j := range w.jobs(queue, f.seen[queue]+1) {
			f.seen[queue] = j.ID
			grid, ok := f.grids[j.ScheduleID]
			require.True(t, ok, "an incarnation that nobody made")
			spec, err := tickonce.ParseSpec(grid.Spec)
			require.NoError(t, err)
			require.Zero(t, int64(j.FireAt-grid.Anchor)%spec.Interval().Milliseconds(), "not on the grid: %v", j)
			require.GreaterOrEqual(t, j.FireAt, grid.Anchor)
			require.LessOrEqual(t, j.FireAt, j.RunAt, "fired before its time: %v", j)
			if last, ok := f.last[j.ScheduleID]; ok {
				require.Greater(t, j.FireAt, last, "fired twice, or out of order: %v", j)
			}
			f.last[j.ScheduleID] = j.FireAt
		}
	}
}

// wire keeps the ticks that went over it, to deliver them again.
type wire struct {
	store.Store
	sent []store.Tick
}

func (w *wire) Advance(ctx context.Context, t *store.Tick) (bool, error) {
	w.sent = append(w.sent, clone(t))
	return w.Store.Advance(ctx, t)
}

func clone(t *store.Tick) store.Tick {
	again := *t
	again.Moves, again.Fires = slices.Clone(t.Moves), slices.Clone(t.Fires)
	return again
}

// Three nodes on one store, whose calls are late, doubled, or lost on the way
// there or back, with a clock that steps both ways: a boundary fires once,
// whoever thinks to lead.
func TestI1T3T4T11R5S6NoBoundaryFiresTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, clock: &clock{now: start}}
		c := w.config(tickonce.Config{
			StandBy: rapid.Bool().Draw(t, "stand-by"), Batch: choose(t, "batch", 1, 100, 1000),
			ClockRepair: choose(t, "repair", tickonce.RepairHold, tickonce.RepairRearm),
		})
		w.store = w.open(memory, c)
		var nodes []*tickonce.Engine
		var wires []*wire
		late := false
		for i := range 3 {
			faulty := faultstore.New(w.store, func(faultstore.Op) faultstore.Verdict {
				return choose(t, "verdict", 0, 0, 0, 0, 0, 0, faultstore.LoseRequest, faultstore.LoseReply)
			})
			faulty.Before = func(o faultstore.Op) {
				if late || o.Method != faultstore.Advance && o.Method != faultstore.Commit {
					return
				}
				late = true // what happens meanwhile is not late itself
				defer func() { late = false }()
				for range choose(t, "steps meanwhile", 0, 0, 1, 3) {
					if runner := choose(t, "runner", 0, 1, 2); runner != i {
						step{runner, 1}.play(w)
					}
				}
			}
			c.Owner = scheduleNames[i]
			wires = append(wires, &wire{Store: faulty})
			e, err := tickonce.New(wires[i], c)
			require.NoError(t, err)
			nodes = append(nodes, e)
		}
		w.staff(nodes...)
		f := watchFires()
		t.Repeat(map[string]func(*rapid.T){
			"play": func(t *rapid.T) { draw(t, either(drawTicking, drawStep)).play(w) },
			"deliver again": func(t *rapid.T) {
				if sent, ok := latest(wires[choose(t, "from", 0, 1, 2)].sent, choose(t, "which", 0, 0, 1, 2)); ok {
					tick := clone(&sent)
					_, err := w.store.Advance(ctx, &tick)
					require.NoError(t, err)
				}
			},
			"": func(t *rapid.T) { f.look(t, w) },
		})
	})
}
