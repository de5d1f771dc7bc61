package sim

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// scenarios draws valid scenarios, with each field at its default now and then.
var scenarios = rapid.Custom(func(t *rapid.T) Scenario {
	s := Scenario{
		For: span1.Draw(t, "for"),
		Engine: Engine{
			Runners: rapid.IntRange(0, MaxRunners).Draw(t, "runners"), Lease: within(t, "lease", time.Second, time.Hour),
			QueueLimit: rapid.IntRange(0, math.MaxInt32).Draw(t, "queue limit"),
			Batch:      rapid.IntRange(0, 100_000).Draw(t, "batch"), OnTime: within(t, "on-time", time.Millisecond, 24*time.Hour),
			StandBy:       rapid.Bool().Draw(t, "standby"),
			ClockRepair:   rapid.SampledFrom([]ClockRepair{RepairHold, RepairRearm}).Draw(t, "repair"),
			SnapshotEvery: span0.Draw(t, "snapshots"), Ties: rapid.SampledFrom([]Ties{TiesFIFO, TiesSeeded}).Draw(t, "ties"),
			Seed: rapid.Uint64().Draw(t, "seed"),
		},
		Start:   instants.Draw(t, "start"),
		Outcome: rapid.SampledFrom([]string{"", "x", "x\n", "----\n", "\r\n# \x00\n"}).Draw(t, "outcome"),
	}
	s.QuietAfter = time.Duration(rapid.Int64Range(0, int64(s.For/time.Millisecond)).Draw(t, "quiet")) * time.Millisecond
	names := rapid.SliceOfNDistinct(scheduleNames, 1, 5, rapid.ID).Draw(t, "names")
	for _, name := range names {
		schedule := schedules.Draw(t, "schedule").named(name)
		if s.For/time.Second*time.Duration(len(names)) > maxEvents {
			schedule.Spec = "@every 168h"
		}
		s.Schedules = append(s.Schedules, schedule)
	}
	if q := s.Schedules[0].Queue; rapid.Bool().Draw(t, "describe") {
		s.Queues = []Queue{{
			Name: q, Workers: rapid.IntRange(0, MaxWorkers).Draw(t, "workers"),
			Concurrency: rapid.IntRange(0, MaxWorkers).Draw(t, "concurrency"), Timeout: min(span0.Draw(t, "timeout"), 365*24*time.Hour),
		}}
	}
	if rapid.Bool().Draw(t, "an outbox") {
		s.Outboxes = []Outbox{{
			Name: "out box", Workers: rapid.IntRange(0, MaxWorkers).Draw(t, "deliverers"), Deliver: schedules.Draw(t, "delivery").Handler,
			Heartbeat: span0.Draw(t, "heartbeat"), MaxAttempts: rapid.IntRange(0, math.MaxInt32).Draw(t, "attempts"),
		}}
		s.Schedules[0].Outbox = rapid.SampledFrom([]string{"", "out box"}).Draw(t, "outbox")
	}
	for range rapid.IntRange(0, 5).Draw(t, "faults") {
		if f, ok := drawFault(t, &s); ok {
			s.Faults = append(s.Faults, f)
		}
	}
	if len(s.Faults) == 0 {
		s.Swarm = rapid.SampledFrom([]Swarm{
			{},
			{Max: 1},
			{Min: 7, Max: 7, Kinds: "all"},
			{Min: 8, Max: MaxFaults, Kinds: "clock,-clock-jump,down"},
			{Mode: ModePortfolio},
			{Mode: ModeExhaustive, Max: 3},
			{Mode: ModePairs, Min: 2, Max: 4, Kinds: "store"},
		}).Draw(t, "swarm")
	}
	for range rapid.IntRange(0, 5).Draw(t, "expects") {
		e := Expect{Kind: rapid.SampledFrom([]ExpectKind{
			ExpectNoDoubleFire, ExpectFires, ExpectSkipped, ExpectQuarantined, ExpectVerdict, ExpectMark,
		}).Draw(t, "expect")}
		switch e.Kind {
		case ExpectFires, ExpectSkipped, ExpectQuarantined:
			e.Schedule, e.Count = rapid.SampledFrom(names).Draw(t, "of"), rapid.Int64Min(0).Draw(t, "count")
		case ExpectVerdict:
			e.Verdict = Verdict(rapid.IntRange(0, int(HandlerCrash)).Draw(t, "verdict"))
		case ExpectMark:
			e.Mark = rapid.SampledFrom(append(markIDs(), "all", "all,-cap-hit,-skipped")).Draw(t, "mark")
		}
		s.Expect = append(s.Expect, e)
	}
	return s
})

// durations of whole milliseconds: any, and any but 0.
var (
	span0 = spans(0)
	span1 = spans(1)
)

func spans(least int64) *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		most := rapid.SampledFrom([]int64{least, 10_000, 100_000_000, math.MaxInt64 / 1_000_000}).Draw(t, "most")
		return time.Duration(rapid.Int64Range(least, most).Draw(t, "ms")) * time.Millisecond
	})
}

// within draws a duration of whole milliseconds, or 0.
func within(t *rapid.T, label string, least, most time.Duration) time.Duration {
	if rapid.Bool().Draw(t, label+" by default") {
		return 0
	}
	ms := rapid.Int64Range(int64(least/time.Millisecond), int64(most/time.Millisecond)).Draw(t, label)
	return time.Duration(ms) * time.Millisecond
}

var instants = rapid.Custom(func(t *rapid.T) time.Time {
	if rapid.Bool().Draw(t, "zero") {
		return time.Time{}
	}
	return time.UnixMilli(rapid.Int64Range(-62135596799000, 253402300799999).Draw(t, "at")).UTC()
})

var scheduleNames = rapid.SampledFrom([]string{
	"report", "a.b", "a.fires", "#x", "a#b", `"q"`, `\`, "a=b", "ä ö", "x y", "verdict", "-", "sometimes:skipped", strings.Repeat("n", 128),
})

func (s Schedule) named(name string) Schedule {
	s.Name = name
	return s
}

var schedules = rapid.Custom(func(t *rapid.T) Schedule {
	s := Schedule{
		Spec:     rapid.SampledFrom([]string{"@every 1s", "@every 168h", "@every 106751d"}).Draw(t, "spec"),
		Queue:    scheduleNames.Draw(t, "queue"),
		CatchUp:  rapid.SampledFrom([]CatchUp{CatchUpAll, CatchUpLatest, CatchUpGrace, CatchUpNone}).Draw(t, "catch-up"),
		Anchor:   instants.Draw(t, "anchor"),
		Priority: rapid.Int16().Draw(t, "priority"), Expires: span0.Draw(t, "expires"), Visibility: span0.Draw(t, "visibility"),
		Heartbeat:   span0.Draw(t, "heartbeat"),
		MaxAttempts: rapid.IntRange(0, math.MaxInt32).Draw(t, "attempts"), BaseBackoff: within(t, "backoff", time.Millisecond, time.Hour),
	}
	if s.Policies = policies.Draw(t, "policies"); s.RunOnce {
		s.MaxAttempts = min(s.MaxAttempts, 1)
	}
	if payload := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "payload"); len(payload) > 0 {
		s.Payload = payload
	}
	switch s.Handler.Kind = rapid.SampledFrom([]HandlerKind{HandlerSucceeds, HandlerFails, HandlerOverruns, HandlerPanics}).Draw(t, "handler"); s.Handler.Kind {
	case HandlerFails, HandlerPanics:
		s.Handler.Fails = PPM(rapid.Int32Range(0, int32(Always)).Draw(t, "p"))
		fallthrough
	case HandlerSucceeds:
		s.Handler.Takes = drawSpan(t)
	}
	return s
})

var policies = rapid.Custom(func(t *rapid.T) Policies {
	p := Policies{
		Overlap: rapid.SampledFrom([]Overlap{OverlapAllow, OverlapSkip, OverlapBufferOne}).Draw(t, "overlap"),
		RunOnce: rapid.Bool().Draw(t, "run-once"), Breaker: rapid.IntRange(NoBreaker, math.MaxUint8).Draw(t, "breaker"),
		Timeout: span0.Draw(t, "timeout"),
	}
	if rapid.Bool().Draw(t, "hours") {
		start, length := rapid.IntRange(0, 24*60-1).Draw(t, "from"), rapid.IntRange(1, 24*60-1).Draw(t, "for")
		p.Hours.Start = time.Duration(start) * time.Minute
		p.Hours.End = time.Duration((start+length)%(24*60)) * time.Minute
		p.Hours.Zone = rapid.SampledFrom([]string{"", "UTC", "Europe/Berlin", "Etc/GMT+12"}).Draw(t, "zone")
	}
	return p
})

func drawSpan(t *rapid.T) Span {
	a, b := span0.Draw(t, "a"), span0.Draw(t, "b")
	return Span{min(a, b), max(a, b)}
}

// drawFault draws a fault that fits into the run, if there is room for one.
func drawFault(t *rapid.T, s *Scenario) (Fault, bool) {
	end := s.For
	if s.QuietAfter > 0 {
		end = s.QuietAfter
	}
	ms := int64(end / time.Millisecond)
	if ms < 2 {
		return Fault{}, false
	}
	at := rapid.Int64Range(0, ms-1).Draw(t, "at")
	lasting := time.Duration(rapid.Int64Range(1, ms-at).Draw(t, "lasting")) * time.Millisecond
	f := Fault{
		At:   time.Duration(at) * time.Millisecond,
		Kind: FaultDown + FaultKind(rapid.IntRange(0, len(faultWords)-1).Draw(t, "kind")),
	}
	maybe := rapid.Bool().Draw(t, "maybe")
	runner := rapid.IntRange(0, max(s.Engine.Runners, 1)).Draw(t, "runner")
	of := rapid.SampledFrom(s.Schedules).Draw(t, "of")
	switch f.Kind {
	case FaultDown, FaultPause, FaultCrash, FaultRestartStorm, FaultClockJump, FaultLostRow, FaultOverload:
		f.Point = rapid.SampledFrom([]Point{Anywhere, BetweenReadAndWrite, MidRequest, MidReply}).Draw(t, "point")
	}
	switch f.Kind {
	case FaultDown, FaultPause:
		f.For, f.Runner = lasting, runner
	case FaultCrash:
		f.Runner = runner
		if runner == 0 {
			f.Restart = rapid.SampledFrom([]Restart{FromJournal, FromSnapshot, FromNothing}).Draw(t, "restart")
		}
		if maybe {
			f.For = lasting
		}
	case FaultRestartStorm:
		if f.Runner = runner; runner == 0 {
			f.Restart = FromJournal
		}
		f.Times = rapid.IntRange(2, 9).Draw(t, "times")
		f.For = min(lasting, wholeMS(f.longest(end)))
		if f.For == 0 {
			return Fault{}, false
		}
	case FaultThrottle:
		f.For, f.Runner, f.Profile = lasting, runner, rapid.SampledFrom([]Profile{HiddenTab, Laptop, LowPower}).Draw(t, "profile")
	case FaultStoreFull:
		f.For = lasting
	case FaultJournalErrors:
		f.For, f.Torn, f.Chance = lasting, maybe, PPM(rapid.Int32Range(0, int32(Always)).Draw(t, "chance"))
	case FaultSwizzle:
		f.For, f.Applied = lasting, rapid.SampledFrom([]Applied{0, AppliedNo, AppliedYes, AppliedUnknown}).Draw(t, "applied")
	case FaultLostRow:
		if f.Schedule = of.Name; maybe {
			f.For = lasting
		}
	case FaultOverload:
		f.Queue, f.Jobs = of.Queue, rapid.IntRange(1, MaxJobs).Draw(t, "jobs")
	case FaultEditRename:
		f.Schedule = of.Name
		for i := range s.Schedules {
			if s.Schedules[i].Name != of.Name {
				f.To = s.Schedules[i].Name
			}
		}
		return f, f.To != ""
	case FaultClockDrift:
		f.For, f.Runner = lasting, runner
		f.Drift = rapid.SampledFrom([]int64{-million, -1, 1, 50, million}).Draw(t, "ppm")
	case FaultClockFreeze:
		f.For, f.Runner = lasting, runner
	case FaultClockStrobe:
		f.For, f.Runner, f.By = lasting, runner, span1.Draw(t, "by")
	case FaultClockJump:
		f.Runner = runner
		f.By = span1.Draw(t, "by") * time.Duration(rapid.SampledFrom([]int{-1, 1}).Draw(t, "sign"))
		if maybe {
			f.For = lasting
		}
	case FaultHandlerSlow, FaultLateAck, FaultDuplicateAck:
		if maybe || f.Kind == FaultLateAck {
			f.Takes = Span{0, span1.Draw(t, "takes")}
		}
		fallthrough
	case FaultHandlerFails, FaultHandlerPanics, FaultHandlerHangs, FaultPoison, FaultHandlerSpawns, FaultLostAck:
		if f.Kind == FaultHandlerSpawns && maybe {
			f.Jobs, f.Tx = rapid.IntRange(1, MaxJobs).Draw(t, "jobs"), rapid.Bool().Draw(t, "tx")
		}
		f.Schedule = of.Name
		if maybe {
			f.Schedule, f.Queue = "", of.Queue
		}
		if len(s.Outboxes) > 0 {
			switch f.Kind {
			case FaultHandlerSpawns:
				f.Into = rapid.SampledFrom([]string{"", of.Queue, "out box"}).Draw(t, "into")
			case FaultHandlerFails:
				f.Schedule, f.Queue, f.Applied = "", "out box", rapid.SampledFrom([]Applied{0, AppliedNo, AppliedYes}).Draw(t, "came through")
			}
		}
		fallthrough
	case FaultStoreErrors, FaultStoreSlow, FaultStaleRead, FaultRepeatedRow:
		f.For, f.Chance = lasting, PPM(rapid.Int32Range(0, int32(Always)).Draw(t, "chance"))
		if f.Kind == FaultStoreErrors || f.Kind == FaultStoreSlow {
			f.Runner, f.Op = runner, Op(rapid.IntRange(0, len(opWords)-1).Draw(t, "op"))
		}
		switch f.Kind {
		case FaultStaleRead, FaultRepeatedRow:
			f.Runner = runner
		case FaultStoreSlow:
			f.Takes = Span{time.Millisecond, span1.Draw(t, "takes")}
			f.Late = rapid.SampledFrom([]Late{LateEither, LateRequest, LateReply}).Draw(t, "late")
		case FaultStoreErrors:
			f.Applied = rapid.SampledFrom([]Applied{AppliedNo, AppliedYes, AppliedUnknown}).Draw(t, "applied")
		}
	case FaultEditPolicies:
		f.Schedule, f.Policies = of.Name, policies.Draw(t, "policies")
	case FaultEditChange:
		f.Spec, f.Queue = "@every 1h", scheduleNames.Draw(t, "other queue")
		f.CatchUp = rapid.SampledFrom([]CatchUp{CatchUpAll, CatchUpLatest, CatchUpGrace, CatchUpNone}).Draw(t, "other policy")
		fallthrough
	case FaultEditAdd, FaultEditPause, FaultEditResume, FaultEditRemove, FaultEditTrigger:
		f.Schedule = of.Name
	case FaultTamper:
		f.Schedule = of.Name
		if f.Row = Spoiling(rapid.IntRange(0, int(SpoilEndOfTime)).Draw(t, "row")); f.Row == 0 {
			f.Spec = "@every 7m"
		}
		if maybe {
			f.For = lasting
		}
	}
	return f, true
}

func TestScenarioReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		text := s.String()
		back, err := Parse("a.sim", text)
		require.NoError(t, err, text)
		require.Equal(t, s, back, text)
		require.Equal(t, text, back.String())
		require.NoError(t, s.Validate())
	})
}

func TestScenarioText(t *testing.T) {
	s := Scenario{
		For:       90 * time.Minute,
		Engine:    Engine{Lease: 30 * time.Second},
		Queues:    []Queue{{Name: "mail"}},
		Schedules: []Schedule{{Name: "a b", Spec: "@every 72h", Queue: "mail", Payload: []byte("{}")}},
		Faults: []Fault{
			{Kind: FaultClockJump, At: time.Minute, By: -time.Hour, For: time.Minute},
			{Kind: FaultCrash, At: time.Minute, Restart: FromJournal, For: time.Second},
		},
		Expect:  []Expect{{Kind: ExpectFires, Schedule: "a b", Count: 3}},
		Outcome: "verdict pass\n",
	}
	require.Equal(t, `simulate v1
engine   lease=30s
run      1h30m
queue    mail workers=0
schedule "a b" every=72h queue=mail payload="{}"
during 1m..2m clock-jump by=-1h
at 1m crash restart=journal after=1s
expect   "a b".fires=3
----
verdict pass
`, s.String())
}

// TestValidate: what the format cannot say, or forbids, is refused in a
// scenario built in Go, too, and never written as something else.
func TestValidate(t *testing.T) {
	good := func() Scenario {
		return Scenario{
			For: time.Hour, Schedules: []Schedule{{Name: "a", Spec: "@every 5m", Queue: "q"}},
			Faults: []Fault{{Kind: FaultClockJump, By: time.Second}},
			Expect: []Expect{{Kind: ExpectFires, Schedule: "a"}},
		}
	}
	s := good()
	require.NoError(t, s.Validate())
	s.Schedules, s.Expect = nil, nil
	require.EqualError(t, s.Validate(), "scenario:4:1: found the end of the scenario, want a line: schedule NAME every=SPEC queue=NAME")
	for name, c := range map[string]struct {
		spoil func(*Scenario)
		want  string
	}{
		"no duration":            {func(s *Scenario) { s.For = 0 }, "scenario:2:10: found \"0s\", want a duration of at least 1ms; the line is `run      0s`"},
		"a negative duration":    {func(s *Scenario) { s.For = -time.Second }, `found "-1s"`},
		"half a millisecond":     {func(s *Scenario) { s.Engine.Lease = 500 * time.Microsecond }, `found "µs", want one of the units`},
		"a start of nanoseconds": {func(s *Scenario) { s.Start = time.Unix(0, 1) }, `found "1970-01-01T00:00:00.000000001Z"`},
		"too many runners":       {func(s *Scenario) { s.Engine.Runners = 17 }, `found "17", want a whole number from 1 to 16`},
		"negative runners":       {func(s *Scenario) { s.Engine.Runners = -1 }, `found "-1", want a whole number from 1 to 16`},
		"no such order of ties":  {func(s *Scenario) { s.Engine.Ties = 9 }, `found "9", want one of fifo, seeded`},
		"no spec":                {func(s *Scenario) { s.Schedules[0].Spec = "" }, `want every=`},
		"a bare interval":        {func(s *Scenario) { s.Schedules[0].Spec = "5m" }, `found "(", want a whole number`},
		"a word that is missing": {func(s *Scenario) { s.Schedules[0].Spec = "every 5m" }, `found "e", want a whole number`},
		"a cron spec":            {func(s *Scenario) { s.Schedules[0].Spec = "*/5 * * * *" }, "cron expressions are not in this grammar: write every=\"5m\""},
		"no name":                {func(s *Scenario) { s.Schedules[0].Name = "" }, `found "", want a schedule name`},
		"no queue":               {func(s *Scenario) { s.Schedules[0].Queue = "" }, `want queue=`},
		"no such policy":         {func(s *Scenario) { s.Schedules[0].CatchUp = 4 }, `found "4", want one of all, latest, grace, none`},
		"too long a lease":       {func(s *Scenario) { s.Engine.Lease = 2 * time.Hour }, `found "2h", want the engine's LeaseTTL`},
		"ok that fails":          {func(s *Scenario) { s.Schedules[0].Handler.Fails = 5 }, `found "0.000005", want a handler`},
		"slow by so much":        {func(s *Scenario) { s.Schedules[0].Handler = Handler{Kind: HandlerOverruns, Takes: Span{1e9, 1e9}} }, `found "1s", want a handler`},
		"a span upside down":     {func(s *Scenario) { s.Schedules[0].Handler.Takes = Span{2e9, 1e9} }, `found "2s..1s", want a`},
		"no such handler":        {func(s *Scenario) { s.Schedules[0].Handler.Kind = 4 }, `found "4", want ok, `},
		"more than always":       {func(s *Scenario) { s.Schedules[0].Handler = Handler{Kind: HandlerFails, Fails: Always + 1} }, `found "1000001ppm"`},
		"no kind of fault":       {func(s *Scenario) { s.Faults[0].Kind = 0 }, `found "fault-0", want one of down`},
		"no such kind of fault":  {func(s *Scenario) { s.Faults[0].Kind = 99 }, `found "fault-99", want one of down`},
		"a fault in the past":    {func(s *Scenario) { s.Faults[0].At = -time.Second }, `found "-1s"`},
		"a fault too long":       {func(s *Scenario) { s.Faults[0].For = 2 * time.Hour }, `found a fault from 0s for 2h`},
		"a fault of any length":  {func(s *Scenario) { s.Faults[0].At, s.Faults[0].For = math.MaxInt64, math.MaxInt64 }, `want one of the units`},
		"a key of another kind":  {func(s *Scenario) { s.Faults[0].Restart = FromJournal }, `found "restart=", want one of runner=, point=, by=, for=`},
		"a jump by nothing":      {func(s *Scenario) { s.Faults[0].By = 0 }, `want by=`},
		"no expectation":         {func(s *Scenario) { s.Expect[0].Kind = 0 }, `found "expect-0", want one of fires`},
		"no such expectation":    {func(s *Scenario) { s.Expect[0].Kind = 99 }, `found "expect-99", want one of fires`},
		"a negative count":       {func(s *Scenario) { s.Expect[0].Count = -1 }, `found "-1", want a whole number`},
		"no such schedule":       {func(s *Scenario) { s.Expect[0].Schedule = "b" }, `found "b", want a schedule: a`},
		"no such verdict":        {func(s *Scenario) { s.Expect[0] = Expect{Kind: ExpectVerdict, Verdict: 8} }, `found "unmet"`},
		"no such mark":           {func(s *Scenario) { s.Expect[0] = Expect{Kind: ExpectMark, Mark: "x y"} }, `found "x"`},
		"a line break in a mark": {func(s *Scenario) { s.Expect[0] = Expect{Kind: ExpectMark, Mark: "skipped\nexpect"} }, `want one of`},
	} {
		s := good()
		c.spoil(&s)
		require.ErrorContains(t, s.Validate(), c.want, name)
	}
}

func TestWithOutcome(t *testing.T) {
	for name, c := range map[string]struct{ text, outcome, want string }{
		"none yet":            {"simulate v1\nrun  1h # x\n", "a\n", "simulate v1\nrun  1h # x\n----\na\n"},
		"no line end":         {"simulate v1\nrun 1h", "a\n", "simulate v1\nrun 1h\n----\na\n"},
		"another":             {"simulate v1\nrun 1h\n\n---- \nold\n----\n", "a\n", "simulate v1\nrun 1h\n\n----\na\n"},
		"another, at the end": {"simulate v1\n----", "a\n", "simulate v1\n----\na\n"},
		"no more":             {"simulate v1\n----\nold", "", "simulate v1\n"},
		"of nothing":          {"", "a\n", "----\na\n"},
		"five dashes":         {"-----\n", "a\n", "-----\n----\na\n"},
	} {
		require.Equal(t, c.want, WithOutcome(c.text, c.outcome), name)
	}
}
