package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// watched are runs with all kinds of events, or with -short with most: the example
// scenarios, then of up to a day, and seeds of one that draws its faults.
func watched(t *testing.T, run func(name string, s Scenario)) {
	paths, err := filepath.Glob("../examples/scenarios/*.sim")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	run("a runner that ends", Scenario{
		For: time.Hour, Schedules: []Schedule{{Name: "report", Spec: "@every 1m", Queue: "mail"}},
		Faults: []Fault{{Kind: FaultStoreErrors, Applied: AppliedNo, At: 10 * time.Minute, For: 10 * time.Minute}},
	})
	run("a full queue", Scenario{
		Engine: Engine{QueueLimit: 3}, For: time.Hour, Queues: []Queue{{Name: "mail"}},
		Schedules: []Schedule{{Name: "report", Spec: "@every 1m", Queue: "mail"}},
	})
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		s, err := Parse(filepath.Base(path), string(text))
		require.NoError(t, err)
		if testing.Short() && s.For > 24*time.Hour {
			continue
		}
		run(filepath.Base(path), s)
		if filepath.Base(path) != "interleavings.sim" {
			continue
		}
		seeds := uint64(12)
		if testing.Short() {
			seeds = 2
		}
		for seed := range seeds {
			drawn, err := s.Draw(seed + 1)
			require.NoError(t, err)
			run(fmt.Sprintf("seed %d", seed+1), drawn)
		}
	}
}

// The events of a run account for every boundary and every job of its result,
// and who watches changes nothing.
func TestWatchAccountsForTheResult(t *testing.T) {
	watched(t, func(name string, s Scenario) {
		want, err := Run(s)
		require.NoError(t, err)
		fired, again, held := map[string]int64{}, map[string]int64{}, map[string]int64{}
		skips := map[string]map[string]int64{}
		maxLate := map[string]time.Duration{}
		kinds := map[EventKind]int64{}
		effects := map[int]int64{}
		var digest Digest
		got, err := Watch(s, func(e *Event) {
			kinds[e.Kind]++
			digest = e.Digest
			switch e.Kind {
			case EventFired:
				fired[e.Schedule]++
				maxLate[e.Schedule] = max(maxLate[e.Schedule], e.Late)
				if e.Again {
					again[e.Schedule]++
				}
			case EventSkipped:
				if skips[e.Schedule] == nil {
					skips[e.Schedule] = map[string]int64{}
				}
				skips[e.Schedule][e.Reason] += e.Count
			case EventHeld:
				held[e.Schedule]++
			case EventCallLost:
				effects[e.Fault]++
			}
		})
		require.NoError(t, err)
		require.Equal(t, want, got, name)
		require.NotZero(t, digest)
		require.Equal(t, int64(len(got.Failures)), kinds[EventViolated])
		for _, r := range got.Schedules {
			require.Equal(t, r.Fired, fired[r.Name], "%s: %s fired", name, r.Name)
			require.Equal(t, r.FiredAgain+r.FiredByRepair, again[r.Name], "%s: %s fired again", name, r.Name)
			require.Equal(t, r.Quarantined, held[r.Name], "%s: %s held", name, r.Name)
			require.Equal(t, r.MaxLate, maxLate[r.Name], "%s: %s late", name, r.Name)
			for _, reason := range reasonWords {
				require.Equal(t, r.SkipReasons[reason], skips[r.Name][reason], "%s: %s skipped by %s", name, r.Name, reason)
			}
		}
		for i, f := range got.Faults {
			if f.Fault.Kind == FaultStoreErrors {
				require.Equal(t, f.Effect, effects[i+1], "%s: %s", name, f.Text)
			}
		}
		kept := int64(0)
		for _, q := range got.Queues {
			kept += q.DoneForgotten + q.Lost
		}
		if kept == 0 { // nothing was forgotten
			done, retried, died, claims := int64(0), int64(0), int64(0), int64(0)
			for _, q := range got.Queues {
				done, retried, died, claims = done+q.Done, retried+q.Retried, died+q.Dead, claims+q.Claims
			}
			require.Equal(t, done, kinds[EventJobDone], "%s: done", name)
			require.Equal(t, retried, kinds[EventJobRetried], "%s: retried", name)
			require.Equal(t, died, kinds[EventJobDied], "%s: died", name)
			require.Equal(t, claims, kinds[EventClaimed], "%s: claims", name)
		}
	})
}

// The fields of an event.
const (
	hasFault = 1 << iota
	hasProcess
	hasWorker
	hasSchedule
	hasQueue
	hasBoundary
	hasLast
	hasCount
	hasJob
	hasAttempt
	hasTerm
	hasUntil
	hasOp
	hasReason
	hasCause
)

// fields are those of the event that are not zero.
func fields(e *Event) (set int) {
	for i, there := range [...]bool{
		e.Fault != 0, e.Process != 0, e.Worker != "", e.Schedule != "", e.Queue != "", !e.Boundary.IsZero(), !e.Last.IsZero(),
		e.Count != 0, e.Job != 0, e.Attempt != 0, e.Term != 0, !e.Until.IsZero(), e.Op != "", e.Reason != "", e.Cause != 0,
	} {
		if there {
			set |= 1 << i
		}
	}
	return set
}

// Every kind of event happens, has the fields that it is said to have, and a
// cause that came before it.
func TestEventsAreAsTheirKindSays(t *testing.T) {
	const ofJob = hasSchedule | hasQueue | hasBoundary | hasJob | hasAttempt | hasCause
	has := map[EventKind]int{
		EventFaultBegan: hasFault, EventFaultEnded: hasFault | hasCause, EventStoreOpened: hasReason,
		EventProcessStarted: hasProcess, EventProcessStopped: hasProcess | hasReason | hasCause, EventProcessPaused: hasProcess | hasLast | hasCause,
		EventClockTurned: hasCause, EventLeaseGranted: hasProcess | hasTerm | hasUntil | hasCause, EventLeaseRenewed: hasProcess | hasTerm | hasUntil | hasCause,
		EventLeaseRefused: hasProcess | hasOp | hasCause, EventLeaseReleased: hasProcess | hasTerm | hasCause, EventRunnerEnded: hasProcess | hasReason | hasCause,
		EventCallLost: hasOp | hasFault | hasReason | hasCause, EventCallDelayed: hasOp | hasFault | hasCause,
		EventRowsRead: hasProcess | hasCount | hasCause, EventTickWritten: hasProcess | hasTerm | hasCause, EventTickRefused: hasProcess | hasTerm | hasCause,
		EventFired: hasProcess | hasSchedule | hasQueue | hasBoundary | hasJob | hasCause, EventSkipped: hasSchedule | hasBoundary | hasLast | hasCount | hasReason | hasCause,
		EventHeld: hasProcess | hasSchedule | hasBoundary | hasUntil | hasCause, EventStale: hasProcess | hasSchedule | hasCause,
		EventQueueFull:  hasProcess | hasSchedule | hasQueue | hasBoundary | hasCount | hasCause,
		EventRegistered: hasSchedule | hasBoundary | hasCause, EventRepaired: hasProcess | hasSchedule | hasBoundary | hasCause,
		EventPaused: hasSchedule | hasCause, EventResumed: hasSchedule | hasBoundary | hasCause, EventRemoved: hasSchedule | hasCause,
		EventBreakerOpened: hasSchedule | hasQueue | hasBoundary | hasCount | hasCause, EventTriggered: hasSchedule | hasQueue | hasJob | hasCause,
		EventTampered: hasSchedule | hasBoundary | hasCause, EventEnqueued: hasQueue | hasJob | hasCause,
		EventClaimed: ofJob | hasProcess | hasWorker | hasUntil, EventHandlerEnded: ofJob | hasProcess | hasWorker | hasReason,
		EventHandlerCut: ofJob | hasProcess | hasWorker | hasReason, EventJobDone: ofJob, EventJobRetried: ofJob | hasUntil,
		EventJobDied: ofJob&^hasAttempt | hasReason, EventClaimLost: hasProcess | hasJob | hasAttempt, EventViolated: hasReason,
	}
	require.Len(t, has, len(eventWords)-1)
	seen := map[EventKind]bool{}
	watched(t, func(name string, s Scenario) {
		ids, byHand := int64(0), map[int64]bool{}
		_, err := Watch(s, func(e *Event) {
			ids++
			seen[e.Kind] = true
			if e.Kind == EventTriggered {
				byHand[int64(e.Job)] = true
			}
			if e.ID != ids || e.Cause >= e.ID || e.Since >= e.ID || e.At.IsZero() || e.Shown.IsZero() {
				require.Fail(t, "not in order", "%s: event %d: %+v", name, ids, *e)
			}
			wants := has[e.Kind]
			if e.Job != 0 && e.Schedule == "" {
				wants &^= hasSchedule | hasBoundary
			}
			if byHand[int64(e.Job)] {
				wants &^= hasBoundary
			}
			if lacks := wants &^ fields(e); lacks != 0 {
				require.Fail(t, "fields are missing", "%s: %s has not %b: %+v", name, e.Kind, lacks, *e)
			}
		})
		require.NoError(t, err)
	})
	for kind := EventFaultBegan; kind < EventViolated; kind++ {
		require.True(t, seen[kind] || testing.Short(), kind.String())
	}
}

// chain is the chain of causes of the last event that fits, in words.
func chain(t *testing.T, s Scenario, fits func(*Event) bool) string {
	var all []Event
	at := int64(0)
	_, err := Watch(s, func(e *Event) {
		all = append(all, *e)
		if fits(e) {
			at = e.ID
		}
	})
	require.NoError(t, err)
	require.NotZero(t, at, "no event fits")
	var words []string
	for ; at > 0; at = all[at-1].Cause {
		words = append(words, all[at-1].Kind.String())
	}
	return strings.Join(words, " < ")
}

func TestTheChainOfCausesEndsAtTheFault(t *testing.T) {
	base := Scenario{
		Engine: Engine{Runners: 2, StandBy: true}, For: 3 * time.Hour,
		Schedules: []Schedule{{Name: "report", Spec: "@every 1m", Queue: "mail"}},
	}
	late := func(e *Event) bool { return e.Kind == EventFired && e.Late > time.Second }
	for _, c := range []struct {
		name, want string
		fault      Fault
		fits       func(*Event) bool
	}{
		{
			"late, since the leader crashed", "fired < tick-written < rows-read < lease-granted < process-stopped < fault-began",
			Fault{Kind: FaultCrash, Runner: 1, At: 30*time.Minute + 40*time.Second, For: time.Hour},
			late,
		},
		{
			"late, since the leader was paused for longer than its lease", "fired < tick-written < rows-read < lease-granted < process-paused < fault-began",
			Fault{Kind: FaultPause, Runner: 1, At: 30*time.Minute + 40*time.Second, For: 10 * time.Minute},
			late,
		},
		{
			"late, since the store failed", "fired < tick-written < rows-read < lease-granted < call-lost < fault-began",
			Fault{Kind: FaultStoreErrors, Applied: AppliedNo, At: 30 * time.Minute, For: 10 * time.Second},
			late,
		},
		{
			"late, since all processes were down", "fired < tick-written < rows-read < lease-granted < process-started < fault-ended < fault-began",
			Fault{Kind: FaultDown, At: 30 * time.Minute, For: time.Hour},
			late,
		},
		{
			"skipped, since all processes were down for too long", "skipped < tick-written < rows-read < lease-granted < process-started < fault-ended < fault-began",
			Fault{Kind: FaultDown, At: 30 * time.Minute, For: 2 * time.Hour},
			func(e *Event) bool { return e.Kind == EventSkipped },
		},
		{
			"early, since the store's clock jumped ahead", "fired < tick-written < rows-read < lease-granted < lease-refused < clock-turned < fault-began",
			Fault{Kind: FaultClockJump, By: 10 * time.Minute, At: 30*time.Minute + 10*time.Second, For: 2 * time.Minute},
			func(e *Event) bool { return e.Kind == EventFired && e.Boundary.After(e.At) },
		},
		{
			"refused, since the leader was paused between read and write", "tick-refused < rows-read < lease-granted < process-started",
			Fault{Kind: FaultPause, Runner: 1, Point: BetweenReadAndWrite, At: 30 * time.Minute, For: 10 * time.Minute},
			func(e *Event) bool { return e.Kind == EventTickRefused },
		},
		{
			"died, since its handler failed", "job-died < handler-ended < claimed < job-retried < handler-ended < claimed < job-retried < handler-ended < claimed < fired < tick-written < rows-read < lease-granted < process-started",
			Fault{Kind: FaultHandlerFails, At: 30 * time.Minute, For: time.Hour},
			func(e *Event) bool { return e.Kind == EventJobDied },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := base
			s.Faults = []Fault{c.fault}
			require.Equal(t, c.want, chain(t, s, c.fits))
		})
	}
}

// What becomes of a job names the fault that it met, though no cause leads there.
func TestEventsOfAJobNameItsFault(t *testing.T) {
	for _, c := range []struct {
		fault Fault
		kinds []EventKind
	}{
		{Fault{Kind: FaultHandlerFails}, []EventKind{EventHandlerEnded, EventJobRetried, EventJobDied}},
		{Fault{Kind: FaultHandlerSlow, Takes: Span{10 * time.Minute, 10 * time.Minute}}, []EventKind{EventHandlerEnded, EventJobDone}},
		{Fault{Kind: FaultLateAck, Takes: Span{10 * time.Minute, 10 * time.Minute}}, []EventKind{EventClaimLost, EventJobDied}},
		{Fault{Kind: FaultDuplicateAck}, []EventKind{EventClaimLost}},
	} {
		c.fault.At, c.fault.For = time.Hour, 30*time.Minute
		s := oneMinute(Fault{Kind: FaultDown, At: time.Minute, For: time.Second}, c.fault)
		named := map[EventKind]int{}
		_, err := Watch(s, func(e *Event) {
			if e.Job > 0 && e.Fault > 0 {
				require.Equal(t, 2, e.Fault, "%s: %+v", c.fault, *e)
				named[e.Kind]++
			}
			if e.Kind == EventClaimLost || e.Kind == EventJobDied || e.Kind == EventJobRetried {
				require.NotZero(t, e.Fault, "%s: %+v", c.fault, *e)
			}
		})
		require.NoError(t, err)
		for _, kind := range c.kinds {
			require.Positive(t, named[kind], "%s: %s", c.fault, kind)
		}
	}
}

// A tick that is refused says what befell its process since the read.
func TestARefusedTickNamesThePause(t *testing.T) {
	s := oneMinute(Fault{Kind: FaultPause, Runner: 1, Point: BetweenReadAndWrite, At: 30 * time.Minute, For: 10 * time.Minute})
	s.Engine.Runners = 2
	paused := int64(0)
	refused := false
	_, err := Watch(s, func(e *Event) {
		switch e.Kind {
		case EventProcessPaused:
			paused = e.ID
		case EventTickRefused:
			refused = true
			require.Equal(t, paused, e.Since)
		}
	})
	require.NoError(t, err)
	require.True(t, refused)
}

// A store opens with its journal however often that was made shorter.
func TestAStoreOpensWithWhatItLost(t *testing.T) {
	s := oneMinute(
		Fault{Kind: FaultDown, At: 4 * time.Hour, For: time.Minute},
		Fault{Kind: FaultCrash, Restart: FromSnapshot, At: 5 * time.Hour, For: time.Minute})
	s.Engine.SnapshotEvery = time.Hour
	s.Schedules[0].Payload = []byte(strings.Repeat("x", 3000))
	var reasons []string
	_, err := Watch(s, func(e *Event) {
		if e.Kind == EventStoreOpened {
			reasons = append(reasons, e.Reason)
		}
	})
	require.NoError(t, err)
	require.Equal(t, []string{"empty", "journal", "snapshot"}, reasons)
}
