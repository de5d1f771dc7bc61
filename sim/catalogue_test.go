package sim

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// TestThrottle: what falls due at 300 ms past a minute fires when the host next
// lets the process wake.
func TestThrottle(t *testing.T) {
	for _, c := range []struct {
		name, fault string
		late        time.Duration
	}{
		{"a hidden tab, at whole seconds", "during 10m30s..15m30s throttle profile=hidden-tab", 700 * time.Millisecond},
		{"after 5 min at whole minutes", "during 10m30s..1h10m30s throttle profile=hidden-tab", 59*time.Second + 700*time.Millisecond},
		{"after an hour no more", "during 10m30s..2h10m throttle profile=hidden-tab", time.Hour},
		{"a closed laptop wakes for 10 s of each hour", "during 10m30s..9h30m throttle profile=laptop", 59*time.Minute + 20*time.Second},
		{"timers are put together", "during 10m30s..9h30m throttle profile=low-power", 9*time.Second + 700*time.Millisecond},
		{"another process than the one that leads", "during 10m30s..9h30m throttle profile=laptop runner=2", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := passes(t, `simulate v1
engine   runners=2 standby=yes
start    2026-01-01T00:00:00.300Z
run      10h5s
schedule a every=1m queue=q
`+c.fault+"\nexpect no-double-fire a.fires=600\n")
			require.Equal(t, c.late, r.Schedules[0].MaxLate)
			require.Positive(t, r.Faults[0].Effect)
		})
	}
}

// TestThrottleOutlastsAClaim: a handler that ends while its host sleeps comes too
// late with its ack.
func TestThrottleOutlastsAClaim(t *testing.T) {
	passes(t, `simulate v1
run      2h
queue    q workers=1
schedule a every=5m queue=q handler=ok:10s visibility=1m
during 15m1s..1h15m throttle profile=laptop
expect   sometimes:throttle-outlasts-claim sometimes:ack-refused a.fires=24
`)
}

// TestRestartStorm: it crashes as often as it is said to, with a life between.
func TestRestartStorm(t *testing.T) {
	s := parsed(t, `simulate v1
engine   runners=2 standby=yes
run      1h
schedule a every=1m queue=q
at 10m30s restart-storm runner=1 times=5 after=10s
expect   no-double-fire a.fires=60 sometimes:leader-changed
`)
	var stops, starts []time.Duration
	r, err := Watch(*s, func(e *Event) {
		switch at := e.At.Sub(DefaultStart); e.Kind {
		case EventProcessStopped:
			stops = append(stops, at)
		case EventProcessStarted:
			if at > 0 {
				starts = append(starts, at)
			}
		}
	})
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, r.Unmet)
	require.EqualValues(t, 5, r.Faults[0].Effect)
	begin := 10*time.Minute + 30*time.Second
	for i := range time.Duration(5) {
		require.Equal(t, begin+2*i*10*time.Second, stops[i])
		require.Equal(t, begin+(2*i+1)*10*time.Second, starts[i])
	}
	require.Len(t, stops, 5)
	require.Len(t, starts, 5)
}

// TestStoreFull: nothing is written; when there is room again, all is made up for.
func TestStoreFull(t *testing.T) {
	const full = `simulate v1
engine   standby=yes
run      1h50s
schedule a every=1m queue=q handler=ok:40s
during 10m30s..12m45s store full
expect   no-double-fire a.fires=60 sometimes:store-full sometimes:retries-exhausted
`
	r := passes(t, full)
	late := r.Schedules[0].MaxLate
	require.GreaterOrEqual(t, late, 105*time.Second)
	require.LessOrEqual(t, late, 110*time.Second, "stand-by asks every 5 s")
	require.EqualValues(t, 60, r.Queues[0].Done)

	lost := map[string]bool{}
	_, err := Watch(*parsed(t, full), func(e *Event) {
		if e.Kind == EventCallLost {
			lost[e.Op] = true
		}
	})
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"advance": true, "settle": true, "acquire": true}, lost)
}

// TestSwizzle: in the first half of the fault one process after the other is cut
// off, and in the second they come back, in orders that have nothing to do with
// each other.
func TestSwizzle(t *testing.T) {
	s := parsed(t, `simulate v1
engine   runners=3 standby=yes
run      1h
schedule a every=1m queue=q
during 10m..19m store swizzle
expect   no-double-fire a.fires=60
`)
	sameOrder, orders := 0, map[string]bool{}
	for s.Engine.Seed = range uint64(20) {
		first, last := map[int]time.Duration{}, map[int]time.Duration{}
		r, err := Watch(*s, func(e *Event) {
			if e.Kind == EventCallLost {
				at := e.At.Sub(DefaultStart) - 10*time.Minute
				if first[e.Process] == 0 {
					first[e.Process] = max(at, time.Millisecond)
				}
				last[e.Process] = at
			}
		})
		require.NoError(t, err)
		require.Equal(t, Pass, r.Verdict, r.Failures)
		require.Len(t, first, 3)
		byFirst, byLast := []int{1, 2, 3}, []int{1, 2, 3}
		slices.SortFunc(byFirst, func(a, b int) int { return int(first[a] - first[b]) })
		slices.SortFunc(byLast, func(a, b int) int { return int(last[a] - last[b]) })
		for i := range 3 {
			// 4 min 30 s in three steps; an idle process asks every 5 s.
			require.InDelta(t, float64(time.Duration(i)*90*time.Second), float64(first[byFirst[i]]), float64(25*time.Second))
			require.InDelta(t, float64(270*time.Second+time.Duration(i)*90*time.Second), float64(last[byLast[i]]), float64(25*time.Second))
		}
		orders[fmt.Sprint(byFirst)] = true
		if slices.Equal(byFirst, byLast) {
			sameOrder++
		}
	}
	require.Greater(t, len(orders), 2)
	require.Less(t, sameOrder, 15)
}

const misread = `simulate v1
run      1h
schedule a every=1m queue=q
schedule b every=90s queue=q
`

// TestT3StaleReadsDelayAndDoNotRepeat: as long as each read is one write behind,
// nothing moves; afterwards all fires, once.
func TestT3StaleReadsDelayAndDoNotRepeat(t *testing.T) {
	r := passes(t, misread+"during 10m30s..20m30s store stale-read\nexpect no-double-fire a.fires=60 b.fires=40 sometimes:stale-read-caught\n")
	require.GreaterOrEqual(t, r.Schedules[0].MaxLate, 9*time.Minute+30*time.Second)
	require.Less(t, r.Faults[0].Effect, int64(2000), "it does not spin")
	r = passes(t, misread+"during 10m30s..20m30s store stale-read p=0.5\nexpect no-double-fire a.fires=60 b.fires=40 sometimes:stale-read-caught\n")
	require.Less(t, r.Schedules[0].MaxLate, 10*time.Second)
}

// TestT3RowsReadTwiceFireOnce: the second move of a row in a tick is stale.
func TestT3RowsReadTwiceFireOnce(t *testing.T) {
	r := passes(t, misread+"during 10m30s..20m30s store repeated-row\nexpect no-double-fire a.fires=60 b.fires=40 sometimes:stale-move\n")
	require.Zero(t, r.Schedules[0].MaxLate)
	require.EqualValues(t, 10+7, r.Coverage.counts[staleMove].reached)
}

// TestMisreadsFindAMissingGuard: without the guard of revisions both kinds of bad
// reads fire a boundary twice, which is seen.
func TestMisreadsFindAMissingGuard(t *testing.T) {
	for _, fault := range []string{"store stale-read", "store repeated-row"} {
		s := parsed(t, misread+"during 10m30s..20m30s "+fault+"\n")
		r := run(s, rig{budget: maxEvents, below: func(honest store.Store) store.Store {
			return liar{Store: honest, advance: unguarded}
		}})
		require.Equal(t, Safety, r.Verdict, fault)
	}
}

// unguarded is Advance without the guard of revisions.
func unguarded(honest store.Store, t *store.Tick) (bool, error) {
	for i := range t.Moves {
		rows := make([]store.Schedule, 8)
		n, _, err := honest.Schedules(context.Background(), "", rows)
		if err != nil {
			return false, err
		}
		for _, row := range rows[:n] {
			if row.ID == t.Moves[i].ID {
				t.Moves[i].Rev = row.Rev
			}
		}
		one := store.Tick{By: t.By, Now: t.Now, Moves: t.Moves[i : i+1]}
		var at []int
		for f := range t.Fires {
			if int(t.Fires[f].Move) == i {
				fire := t.Fires[f]
				fire.Move = 0
				one.Fires, at = append(one.Fires, fire), append(at, f)
			}
		}
		if held, err := honest.Advance(context.Background(), &one); !held || err != nil {
			return held, err
		}
		for k, f := range at {
			t.Fires[f].Job = one.Fires[k].Job
		}
	}
	return true, nil
}

// TestLostRow: a row that is gone does not fire; put back it catches up, and
// registered anew it begins anew.
func TestLostRow(t *testing.T) {
	r := passes(t, misread+"at 10m30s store lost-row schedule=a for=5m\nexpect no-double-fire a.fires=60 b.fires=40\n")
	require.Equal(t, 4*time.Minute+40*time.Second, r.Schedules[0].MaxLate, "the leader looks again when it renews")

	passes(t, misread+"at 10m30s store lost-row schedule=a\nexpect no-double-fire a.fires=10 b.fires=40\n")

	// Registered at 20m45s, between two boundaries; put back it is not.
	passes(t, misread+"at 10m30s store lost-row schedule=a for=30m\nat 20m30s crash restart=journal after=15s\nexpect no-double-fire a.fires=49 a.skipped=0\n")
}

// TestHandlerHangs: a handler that hangs does not beat, its claim lapses, and its
// late ack is refused.
func TestHandlerHangs(t *testing.T) {
	r := passes(t, `simulate v1
run      1h30s
schedule a every=5m queue=q handler=ok:50s heartbeat=20s visibility=1m
during 14m..17m30s handler hanging
expect   a.fires=12 sometimes:ack-refused sometimes:claim-reclaimed
`)
	require.EqualValues(t, 1, r.Faults[0].Effect)
	require.EqualValues(t, 11, r.Queues[0].Done)
	require.EqualValues(t, 1, r.Queues[0].Claimed)
	require.EqualValues(t, 13, r.Queues[0].Claims)
}

// TestPoison: a job is poisoned or not, whatever the attempt.
func TestPoison(t *testing.T) {
	s := parsed(t, `simulate v1
run      2h
schedule a every=1m queue=q backoff=2s attempts=3
during 10m30s..1h50m handler poisoned p=0.3
`)
	fails, ends := map[int64]int{}, map[int64]int{}
	r, err := Watch(*s, func(e *Event) {
		if e.Kind == EventHandlerEnded {
			ends[e.Job]++
			if e.Reason == "fail" {
				fails[e.Job]++
			}
		}
	})
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict)
	dead := int64(0)
	for job, n := range ends {
		if fails[job] > 0 {
			dead++
			require.Equal(t, 3, n)
			require.Equal(t, 3, fails[job])
		} else {
			require.Equal(t, 1, n)
		}
	}
	require.Equal(t, r.Queues[0].Dead, dead)
	require.Greater(t, dead, int64(15))
	require.Less(t, dead, int64(45))
	require.Equal(t, 3*dead, r.Faults[0].Effect)
}

// TestHandlerSpawns: what handlers put into their queue is done like other jobs;
// it does not multiply itself.
func TestHandlerSpawns(t *testing.T) {
	r := passes(t, `simulate v1
run      1h30s
schedule a every=5m queue=q handler=ok:1s
during 14m..21m handler spawning jobs=3
expect   a.fires=12
`)
	require.EqualValues(t, 2, r.Faults[0].Effect)
	require.EqualValues(t, 12+6, r.Queues[0].Enqueued)
	require.EqualValues(t, 12+6, r.Queues[0].Done)
}

// TestHandlerSpawnsIntoAFullQueue: a handler that cannot fails.
func TestHandlerSpawnsIntoAFullQueue(t *testing.T) {
	r := passes(t, `simulate v1
engine   queue-limit=2
run      1h30s
schedule a every=5m queue=q attempts=1
during 14m..16m handler spawning jobs=2
expect   a.fires=12 sometimes:enqueue-refused sometimes:dead-letter
`)
	require.EqualValues(t, 1, r.Queues[0].Dead)
	require.EqualValues(t, 11, r.Queues[0].Done)
	require.EqualValues(t, 12, r.Queues[0].Enqueued)
}

// TestLostAck: nobody hears that the handler is done, and it runs again.
func TestLostAck(t *testing.T) {
	r := passes(t, `simulate v1
run      1h30s
schedule a every=5m queue=q visibility=1m
during 14m..15m30s queue lost-ack
expect   a.fires=12 sometimes:claim-reclaimed
`)
	require.EqualValues(t, 1, r.Faults[0].Effect)
	require.EqualValues(t, 12, r.Queues[0].Done)
	require.EqualValues(t, 13, r.Queues[0].Claims)
}

// TestOverload: jobs of no schedule come before those that are enqueued later, and
// take the room of others.
func TestOverload(t *testing.T) {
	text := `simulate v1
run      1h30s
schedule a every=5m queue=q
at 14m59s queue overload queue=q jobs=100
expect   a.fires=12
`
	first := func(s *Scenario) (claimed time.Duration, r *Result) {
		r, err := Watch(*s, func(e *Event) {
			if e.Kind == EventClaimed && e.Boundary.Equal(DefaultStart.Add(15*time.Minute)) {
				claimed = e.At.Sub(DefaultStart)
			}
		})
		require.NoError(t, err)
		require.Equal(t, Pass, r.Verdict, r.Failures)
		return claimed, r
	}
	at, r := first(parsed(t, text))
	require.Equal(t, 15*time.Minute+100*time.Second, at, "the worker is woken by what its own process fires")
	require.EqualValues(t, 112, r.Queues[0].Done)

	s := parsed(t, text+"expect sometimes:enqueue-refused\n")
	s.Engine.QueueLimit = 99
	at, r = first(s)
	require.Equal(t, 15*time.Minute, at)
	require.EqualValues(t, 12, r.Queues[0].Enqueued)

	s = parsed(t, text+"expect sometimes:queue-full sometimes:quarantined\n")
	s.Engine.QueueLimit = 100
	s.Faults[0].At, s.Faults[0].Point = 14*time.Minute, BetweenReadAndWrite
	at, _ = first(s)
	require.Equal(t, 17*time.Minute+10*time.Second, at, "the row is held for a minute, by when 70 of the jobs are left, which the worker found by its poll")
}

// An overload whose reply is lost is not made again every 5 s until one comes.
func TestOverloadComesOnce(t *testing.T) {
	s := parsed(t, `simulate v1
run 1h
schedule s every=1d queue=q
during 10m..30m store error-burst op=commit applied=yes
at 10m queue overload queue=q jobs=100
at 20m queue overload queue=q jobs=10
`)
	r := ran(t, *s)
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	require.EqualValues(t, 110, r.Queues[0].Enqueued)
	require.EqualValues(t, 1, r.Faults[1].Effect)
}

// TestT3RenameDuringATick: the boundary that was read under the old name does not
// fire, and the other name goes on with the interval of the first.
func TestT3RenameDuringATick(t *testing.T) {
	passes(t, `simulate v1
run      1h30s
schedule a every=5m queue=q
schedule b every=7m queue=q
at 14m30s edit rename schedule=a to=b point=between-read-and-write
expect   no-double-fire a.fires=2 a.skipped=0 b.fires=11
expect   sometimes:stale-move
`)
}

// TestNewFaultsAreRefusedWhereTheyMeanNothing: of the keys that lean on others.
func TestNewFaultsAreRefusedWhereTheyMeanNothing(t *testing.T) {
	for fault, want := range map[string]string{
		"at 5m restart-storm times=3 runner=1":                    "found the end of the line, want after=",
		"at 5m restart-storm after=1s runner=1":                   "found the end of the line, want times=",
		"at 5m restart-storm times=3 after=1s":                    "found neither restart= nor runner=",
		"at 5m restart-storm times=0 after=1s runner=1":           `found "0", want a whole number from 1 to 1000`,
		"at 5m restart-storm times=1001 after=1s runner=1":        `found "1001", want a whole number from 1 to 1000`,
		"at 5m restart-storm times=100 after=30s restart=journal": "found a fault from 5m for 199 times 30s, want one that ends by the run's 1h",
		"at 5m restart-storm times=1000 after=106751d runner=1":   "found a fault from 5m for 1999 times 106751d, want one that ends by",
		"at 5m throttle for=5m":                                   "found the end of the line, want profile=",
		"at 5m throttle for=5m profile=tab":                       `found "tab", want one of hidden-tab, laptop, low-power`,
		"at 5m throttle profile=laptop":                           "found the end of the line, want for=",
		"at 5m store full for=5m p=0.5":                           `found "p=", want for=`,
		"at 5m store lost-row":                                    "found the end of the line, want schedule=",
		"at 5m store lost-row schedule=c":                         `found "c", want a schedule: one of a, b`,
		"at 5m store swizzle runner=1":                            `found "runner=", want one of applied=, for=`,
		"at 5m handler spawning for=1m jobs=0":                    `found "0", want a whole number from 1 to 1000`,
		"at 5m queue overload jobs=3":                             "found the end of the line, want queue=",
		"at 5m queue overload queue=q":                            "found the end of the line, want jobs=",
		"at 5m queue overload queue=x jobs=3":                     `found "x", want the queue of a schedule: q`,
		"during 5m..6m queue overload queue=q jobs=3":             `found "during", want at TIME queue overload`,
		"at 5m edit rename schedule=a":                            "found the end of the line, want to=",
		"at 5m edit rename schedule=a to=a":                       `found "a", want another schedule: one of a, b`,
		"at 5m edit rename schedule=a to=c":                       `found "c", want another schedule: one of a, b`,
	} {
		_, err := Parse("", misread+fault+"\n")
		require.ErrorContains(t, err, want, fault)
	}
}
