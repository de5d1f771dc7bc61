package properties_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce"
)

// Whatever happens between the steps of whichever runner, each of them does
// what the model says: which boundaries fire and are skipped, in which order,
// and under whose lease.
func TestT1T2T3T6T10T12T14T15L6TicksAreTheModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batch := choose(t, "batch", 1, 3, 70, 1000)
		w := newWorld(t, tickonce.Config{Batch: batch}, memory, 3)
		m := newTickModel(batch)
		t.Repeat(map[string]func(*rapid.T){
			"play": func(t *rapid.T) {
				o := draw(t, drawTicking)
				steps, ok := o.play(w).([]took)
				if now := sinceStart(w.clock.now); !ok {
					m.edit(o, now)
				} else {
					for _, step := range steps {
						m.step(t, step, now)
					}
					if o == (rest{}) {
						m.rested(t, w.runs, now)
					}
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(m.rows), len(w.schedules()))
				for s, err := range w.engine().Schedules(ctx) {
					require.NoError(t, err)
					row := m.rows[s.Name]
					require.Equal(t, atMS(row.cursor), s.Next, s.Name)
					require.Equal(t, atMS(row.anchor), s.Options.Anchor, s.Name)
					require.Equal(t, row.paused, s.Due.IsZero(), s.Name)
					require.Nil(t, s.Hold)
				}
			},
		})
	})
}

// Two stores under the same calls tell the same engine the same things.
func TestT3T11T12Q6O7MemoryIsTheNaiveStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := tickonce.Config{
			Batch: choose(t, "batch", 1, 3, 1000), StandBy: choose(t, "stand-by", false, true), ClockRepair: choose(t, "repair", tickonce.RepairHold, tickonce.RepairRearm),
			Limits: tickonce.Limits{QueueLength: choose(t, "queue length", 3, 70, 1000), Schedules: choose(t, "most schedules", 2, 100)},
		}
		a, b := newWorld(t, c, memory, 3), newWorld(t, c, naive, 3)
		t.Repeat(map[string]func(*rapid.T){
			"play": func(t *rapid.T) {
				o := draw(t, either(drawTicking, drawWork))
				require.Equal(t, o.play(a), o.play(b))
				require.Equal(t, a.take(), b.take(), "events")
			},
			"": func(t *rapid.T) { require.Equal(t, b.rows(), a.rows()) },
		})
	})
}

// drawGap draws how long nobody runs a schedule: so many of its intervals, and
// a little more or less.
func drawGap(t *rapid.T, interval time.Duration) time.Duration {
	missed := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(62, 67), rapid.Int64Range(0, 3e7)).Draw(t, "missed")
	off := choose(t, "and", 0, 0, -time.Millisecond, time.Millisecond, 500*time.Millisecond)
	return max(0, time.Duration(missed)*interval+off)
}

func drawInterval(t *rapid.T) tickonce.Spec {
	spec, err := tickonce.Every(time.Duration(rapid.Int64Range(1, 100).Draw(t, "seconds")) * time.Second)
	require.NoError(t, err)
	return spec
}

func TestI2T4T5T7AtMostSixtyFourFireInATick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, tickonce.Config{Batch: choose(t, "batch", 1, 64, 65, 1000)}, memory, 1)
		var specs []tickonce.Spec
		for i := range rapid.IntRange(1, 4).Draw(t, "schedules") {
			specs = append(specs, drawInterval(t))
			_, err := w.engine().Schedule(ctx, scheduleNames[i], specs[i].String(), "q", nil, tickonce.ScheduleOptions{})
			require.NoError(t, err)
		}
		gap := drawGap(t, specs[0].Interval())
		w.clock.move(gap)

		fired := map[string]int{}
		for _, step := range w.rest() {
			inTick := map[string]int{}
			for _, fire := range step.Fires {
				inTick[fire.Schedule]++
			}
			for name, n := range inTick {
				require.LessOrEqual(t, n, 64, name)
				require.Zero(t, fired[name], "%s fired in two ticks of one instant", name)
				fired[name] = n
			}
		}
		for i, spec := range specs {
			require.EqualValues(t, min(64, gap/spec.Interval()), fired[scheduleNames[i]], "of %s", spec)
		}
	})
}

// The fires and skips of a tick are the boundaries from the old cursor to the
// new one, without a gap and without an overlap, and the new one is the first
// boundary of the grid after now.
func TestI3T6T12SkippingGoesForwardOnTheGrid(t *testing.T) {
	type passage struct{ first, last time.Time }
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, tickonce.Config{}, memory, 1)
		spec := drawInterval(t)
		policy := tickonce.CatchUp{Count: rapid.IntRange(1, 64).Draw(t, "count"), Newest: rapid.Bool().Draw(t, "newest")}
		anchor := start.Add(-time.Duration(rapid.Int64Range(0, 1e6).Draw(t, "anchor, ms ago")) * time.Millisecond)
		s, err := w.engine().Schedule(ctx, "a", spec.String(), "q", nil, tickonce.ScheduleOptions{Anchor: anchor, CatchUp: policy})
		require.NoError(t, err)
		require.Equal(t, spec.Next(anchor, start), s.Next)

		for range 3 {
			cursor := s.Next
			w.clock.move(drawGap(t, spec.Interval()))
			var passages []passage
			for _, step := range w.rest() {
				for _, fire := range step.Fires {
					passages = append(passages, passage{fire.Boundary, fire.Boundary})
				}
				for _, passed := range step.Passed {
					for _, skip := range passed.Skips {
						require.Equal(t, policy.Count, passed.Fired, "skipped without need")
						require.Equal(t, map[bool]string{true: "cap", false: "policy"}[policy.Count == 64], skip.Reason)
						require.Equal(t, skip.Last, skip.First.Add(time.Duration(skip.Count-1)*spec.Interval()))
						passages = append(passages, passage{skip.First, skip.Last})
					}
				}
			}
			slices.SortFunc(passages, func(a, b passage) int { return a.first.Compare(b.first) })
			next := cursor
			for _, p := range passages {
				require.Equal(t, next, p.first)
				next = p.last.Add(spec.Interval())
			}
			s, _, err = w.engine().Lookup(ctx, "a")
			require.NoError(t, err)
			require.Equal(t, next, s.Next)
			if !cursor.After(w.clock.now) {
				require.Equal(t, spec.Next(anchor, w.clock.now), s.Next)
			}
		}
	})
}
