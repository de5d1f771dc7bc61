package htmlreport

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/store"
	"github.com/tickonce/tickonce/storetest"
)

// faulty is a store with a bug in how it writes ticks.
type faulty struct {
	store.Store
	lease   store.Lease
	advance func(s *faulty, t *store.Tick)
}

func (s *faulty) Acquire(ctx context.Context, lock, owner string, ttlMS int64) (store.Grant, error) {
	g, err := s.Store.Acquire(ctx, lock, owner, ttlMS)
	if g.OK {
		s.lease = g.Lease
	}
	return g, err
}

func (s *faulty) Advance(ctx context.Context, t *store.Tick) (bool, error) {
	by := t.By
	s.advance(s, t)
	done, err := s.Store.Advance(ctx, t)
	t.By = by
	return done, err
}

// Of a rule that was broken the page shows the events that contradict each other:
// both leases and the tick of who led no more, or both fires of a boundary.
func TestWhatContradictsEachOtherIsShown(t *testing.T) {
	paused := sim.Scenario{
		Engine: sim.Engine{Runners: 2, StandBy: true}, For: 20 * time.Minute,
		Schedules: []sim.Schedule{{Name: "report", Spec: "@every 1m", Queue: "mail"}},
		Faults:    []sim.Fault{{Kind: sim.FaultPause, Runner: 1, At: 5 * time.Minute, For: 70 * time.Second, Point: sim.BetweenReadAndWrite}},
	}
	calm := paused
	calm.Engine.Runners, calm.Faults = 1, nil
	for _, c := range []struct {
		name, invariant string
		scenario        sim.Scenario
		advance         func(*faulty, *store.Tick)
		sides           []string
	}{
		{
			"a tick of who led", "6 fence", paused, func(s *faulty, t *store.Tick) { t.By = s.lease },
			[]string{"Process 1: takes the lead, term 1, until 00:06:00", "Process 2: takes the lead, term 2", "Process 1: writes what is due"},
		},
		{
			"a boundary twice", "1 fires once", calm, func(_ *faulty, t *store.Tick) {
				t.Fires = slices.Insert(t.Fires, 1, t.Fires[0])
				t.Moves[0].Fires++
			},
			[]string{"report: fires 00:01:00, on time: job 1", "report: fires 00:01:00, a second time: job 2"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.scenario.Store = func(now func() store.Instant, limits store.Limits) store.Store {
				return &faulty{Store: storetest.NewNaive(now, limits), advance: c.advance}
			}
			r, result := recorded(t, c.scenario)
			d, err := r.run(result, Source{})
			require.NoError(t, err)
			var told []string
			for _, f := range d.Failures {
				if f.Invariant == c.invariant && len(f.Sides) > 0 {
					for _, side := range f.Sides {
						told = append(told, side.Text)
					}
					break
				}
			}
			require.Len(t, told, len(c.sides), "%+v", d.Failures)
			for i := range told {
				require.Contains(t, told[i], c.sides[i])
			}
		})
	}
}
