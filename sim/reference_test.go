package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/store"
)

// outage is when nobody runs the schedules, in milliseconds: from its begin on,
// and at its end they are run again. The zero outage is none.
type outage struct{ begin, end int64 }

// reference lists the boundaries of a schedule that fire, by nothing but the
// schedule, its registration, the end of the run and one outage.
func reference(s *Schedule, registered, end int64, o outage) (fired []int64, skipped int64) {
	every := everyOf(s)
	anchor := registered
	if !s.Anchor.IsZero() {
		anchor = s.Anchor.UnixMilli()
	}
	var missed []int64
	for at := anchor; at <= end; at += every {
		switch {
		case at <= registered:
		case o.begin <= at && at <= o.end && o != (outage{}):
			missed = append(missed, at)
		default:
			fired = append(fired, at)
		}
	}
	caughtUp := catchUp(s.CatchUp, every, missed, o.end)
	fired = append(fired, caughtUp...)
	slices.Sort(fired)
	return fired, int64(len(missed) - len(caughtUp))
}

func everyOf(s *Schedule) int64 {
	text := strings.TrimPrefix(s.Spec, "@every ")
	times := int64(1)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		text, times = days+"h", 24
	}
	every, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return times * every.Milliseconds()
}

// catchUp picks the missed boundaries that fire when they are met at now.
func catchUp(policy CatchUp, every int64, missed []int64, now int64) []int64 {
	window := map[CatchUp]int64{CatchUpGrace: min(max(every/2, 120_000), 7_200_000), CatchUpNone: 10_000}[policy]
	if window > 0 {
		missed = slices.DeleteFunc(slices.Clone(missed), func(at int64) bool { return now-at > window })
	}
	if policy == CatchUpLatest || policy == CatchUpNone {
		return missed[max(len(missed)-1, 0):]
	}
	return missed[:min(len(missed), 64)]
}

// fires runs the scenario and lists the boundaries that fire, as the store
// below the truth is told them.
func fires(t require.TestingT, s *Scenario) (map[string][]int64, *Result) {
	names := map[store.ScheduleID]string{}
	fired := map[string][]int64{}
	r := run(s, rig{budget: maxEvents, below: func(s store.Store) store.Store {
		return liar{
			Store: s,
			commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
				done, err := s.Commit(ctx, b)
				for _, row := range done.Puts {
					names[row.ID] = row.Name
				}
				return done, err
			},
			advance: func(s store.Store, tick *store.Tick) (bool, error) {
				held, err := s.Advance(ctx, tick)
				for _, f := range tick.Fires {
					if held && f.Job != 0 {
						name := names[tick.Moves[f.Move].ID]
						fired[name] = append(fired[name], int64(f.Boundary))
					}
				}
				return held, err
			},
		}
	}})
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	return fired, r
}

// drawCalm draws schedules, and how many processes run them, over a time in
// which none of them has more than a few hundred boundaries.
func drawCalm(t *rapid.T) *Scenario {
	s := &Scenario{Engine: Engine{
		StandBy: true,
		Runners: rapid.IntRange(1, 3).Draw(t, "runners"),
		Batch:   rapid.SampledFrom([]int{0, 1, 50}).Draw(t, "batch"),
		Ties:    rapid.SampledFrom([]Ties{TiesFIFO, TiesSeeded}).Draw(t, "ties"),
	}}
	least := int64(1 << 60)
	for i := range rapid.IntRange(1, 4).Draw(t, "schedules") {
		every := rapid.Int64Range(1, 4000).Draw(t, "every")
		least = min(least, every)
		schedule := Schedule{
			Name: fmt.Sprintf("s%d", i), Spec: fmt.Sprintf("@every %ds", every), Queue: "q",
			CatchUp: rapid.SampledFrom([]CatchUp{CatchUpAll, CatchUpLatest, CatchUpGrace, CatchUpNone}).Draw(t, "catch-up"),
		}
		if rapid.Bool().Draw(t, "anchored") {
			offset := rapid.Int64Range(-50_000_000, 5_000_000).Draw(t, "anchor")
			schedule.Anchor = DefaultStart.Add(time.Duration(offset) * time.Millisecond)
		}
		s.Schedules = append(s.Schedules, schedule)
	}
	s.For = time.Duration(least*rapid.Int64Range(100, 300).Draw(t, "for")) * time.Second
	if s.Engine.Runners > 1 {
		s.For = min(s.For, time.Hour) // each of them looks every second
	}
	return s
}

func requireReference(t require.TestingT, s *Scenario, o outage) {
	fired, r := fires(t, s)
	start := int64(newWorld(s, rig{}).start)
	for i := range s.Schedules {
		c := &s.Schedules[i]
		want, skipped := reference(c, start, start+s.For.Milliseconds(), o)
		require.Equal(t, want, fired[c.Name], c.Name)
		require.EqualValues(t, len(want), r.Schedules[i].Fired)
		require.Equal(t, skipped, r.Schedules[i].Skipped)
		if o == (outage{}) {
			require.Zero(t, r.Schedules[i].MaxLate)
		}
	}
}

// TestReferenceCalm: without faults every boundary fires, and nothing else,
// however many processes there are.
func TestReferenceCalm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { requireReference(t, drawCalm(t), outage{}) })
}

// calmExamples are the first day of the example scenarios, without what goes
// wrong in them, and without policies.
func calmExamples(t *testing.T) map[string]*Scenario {
	paths, err := filepath.Glob("../examples/scenarios/*.sim")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	examples := map[string]*Scenario{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		s, err := Parse(path, string(text))
		require.NoError(t, err)
		s.For, s.QuietAfter = min(s.For, 24*time.Hour), 0
		s.Faults, s.Swarm, s.Expect, s.Outcome = nil, Swarm{}, nil, ""
		s.Engine.StandBy, s.Engine.QueueLimit = true, 0
		for i := range s.Schedules {
			s.Schedules[i].Policies = Policies{} // of which the reference knows none
		}
		examples[filepath.Base(path)] = &s
	}
	return examples
}

// TestReferenceExamples: the example scenarios fire as the reference says, where
// nothing goes wrong.
func TestReferenceExamples(t *testing.T) {
	for name, s := range calmExamples(t) {
		t.Run(name, func(t *testing.T) { requireReference(t, s, outage{}) })
	}
}

// TestReferenceDown: after an outage each schedule catches up by its policy and
// the cap. The outage begins and ends at boundaries as often as beside them.
func TestReferenceDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCalm(t)
		every := everyOf(&s.Schedules[0])
		near := func(label string, most int64) int64 {
			at := rapid.Int64Range(1, most/every).Draw(t, label) * every
			return min(max(at+rapid.SampledFrom([]int64{-1, 0, 0, 1, 500}).Draw(t, label+" beside"), 1), most)
		}
		s.For = max(s.For, time.Duration(6*every)*time.Millisecond)
		length := s.For.Milliseconds()
		begin := near("begin", length/2)
		lasts := near("lasts", length/3)
		s.Faults = []Fault{{Kind: FaultDown, At: time.Duration(begin) * time.Millisecond, For: time.Duration(lasts) * time.Millisecond}}
		start := DefaultStart.UnixMilli()
		requireReference(t, s, outage{start + begin, start + begin + lasts})
	})
}
