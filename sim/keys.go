package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/internal/faultstore"
)

// key is one key=value of a line of the text format, for reading and writing.
type key[T any] struct {
	name string
	of   func(*T) value
}

var engineKeys = []key[Engine]{
	{"runners", func(e *Engine) value { return numberValue[int]{n: &e.Runners, least: 1, most: MaxRunners} }},
	{"lease", func(e *Engine) value { return durationValue{d: &e.Lease} }},
	{"batch", func(e *Engine) value { return numberValue[int]{n: &e.Batch, least: 1, most: math.MaxInt32} }},
	{"on-time", func(e *Engine) value { return durationValue{d: &e.OnTime} }},
	{"standby", func(e *Engine) value { return yesValue{&e.StandBy} }},
	{"clock-repair", func(e *Engine) value {
		return wordValue[ClockRepair]{&e.ClockRepair, []string{RepairHold: "hold", RepairRearm: "rearm"}}
	}},
	{"queue-limit", func(e *Engine) value { return numberValue[int]{n: &e.QueueLimit, least: 1, most: math.MaxInt32} }},
	{"snapshot-every", func(e *Engine) value { return durationValue{d: &e.SnapshotEvery} }},
	{"ties", func(e *Engine) value {
		return wordValue[Ties]{&e.Ties, []string{TiesFIFO: "fifo", TiesSeeded: "seeded"}}
	}},
	{"seed", func(e *Engine) value { return numberValue[uint64]{n: &e.Seed, most: math.MaxUint64} }},
}

// engineOptions are the keys whose limits the engine knows, by their names in
// [tickonce.OptionError].
var engineOptions = map[string]string{"LeaseTTL": "lease", "Batch": "batch", "OnTime": "on-time"}

var runKeys = []key[Scenario]{
	{"quiet-after", func(s *Scenario) value { return durationValue{d: &s.QuietAfter} }},
}

// swarmWord is the first word of the line of [Scenario.Swarm].
const swarmWord = "swarm"

var swarmKeys = []key[Swarm]{
	{"faults", func(s *Swarm) value { return rangeValue{&s.Min, &s.Max, MaxFaults} }},
	{"kinds", func(s *Swarm) value { return kindsValue{&s.Kinds} }},
}

var queueKeys = []key[Queue]{
	{"workers", func(q *Queue) value { return numberValue[int]{n: &q.Workers, most: MaxWorkers, always: true} }},
	{"concurrency", func(q *Queue) value { return numberValue[int]{n: &q.Concurrency, least: 1, most: MaxWorkers} }},
	{"timeout", func(q *Queue) value { return durationValue{d: &q.Timeout} }},
}

var outboxKeys = []key[Outbox]{
	{"workers", func(o *Outbox) value { return numberValue[int]{n: &o.Workers, most: MaxWorkers, always: true} }},
	{"concurrency", func(o *Outbox) value { return numberValue[int]{n: &o.Concurrency, least: 1, most: MaxWorkers} }},
	{"deliver", func(o *Outbox) value { return handlerValue{&o.Deliver} }},
	{"heartbeat", func(o *Outbox) value { return durationValue{d: &o.Heartbeat} }},
	{"attempts", func(o *Outbox) value { return numberValue[int]{n: &o.MaxAttempts, least: 1, most: math.MaxInt32} }},
}

var catchUpWords = []string{
	CatchUpAll: "all", CatchUpLatest: "latest", CatchUpGrace: "grace", CatchUpNone: "none",
}

// String is the policy's word in scenario files.
func (c CatchUp) String() string {
	if int(c) < len(catchUpWords) {
		return catchUpWords[c]
	}
	return fmt.Sprintf("catch-up(%d)", uint8(c))
}

var scheduleKeys = append([]key[Schedule]{
	{"every", func(s *Schedule) value { return everyValue{&s.Spec} }},
	{"queue", func(s *Schedule) value { return nameValue{"a queue name", &s.Queue} }},
	{"catch-up", func(s *Schedule) value {
		return wordValue[CatchUp]{&s.CatchUp, catchUpWords}
	}},
	{"anchor", func(s *Schedule) value { return instantValue{&s.Anchor} }},
	{"handler", func(s *Schedule) value { return handlerValue{&s.Handler} }},
	{"heartbeat", func(s *Schedule) value { return durationValue{d: &s.Heartbeat} }},
	{"deliver", func(s *Schedule) value { return nameValue{"an outbox name", &s.Deliver} }},
	{"outbox", func(s *Schedule) value { return nameValue{"an outbox name", &s.Outbox} }},
	{"priority", func(s *Schedule) value {
		return numberValue[int16]{n: &s.Priority, least: math.MinInt16, most: math.MaxInt16}
	}},
	{"expires", func(s *Schedule) value { return durationValue{d: &s.Expires} }},
	{"visibility", func(s *Schedule) value { return durationValue{d: &s.Visibility} }},
	{"attempts", func(s *Schedule) value { return numberValue[int]{n: &s.MaxAttempts, least: 1, most: math.MaxInt32} }},
	{"backoff", func(s *Schedule) value {
		return durationValue{d: &s.BaseBackoff, most: core.MaxBackoffMS * time.Millisecond}
	}},
	{"payload", func(s *Schedule) value { return bytesValue{&s.Payload} }},
}, policyKeysOf(func(s *Schedule) *Policies { return &s.Policies })...)

var policyKeys = []key[Policies]{
	{"overlap", func(p *Policies) value {
		return wordValue[Overlap]{&p.Overlap, []string{OverlapAllow: "allow", OverlapSkip: "skip", OverlapBufferOne: "buffer-one"}}
	}},
	{"hours", func(p *Policies) value { return hoursValue{&p.Hours} }},
	{"run-once", func(p *Policies) value { return yesValue{&p.RunOnce} }},
	{"breaker", func(p *Policies) value { return breakerValue{&p.Breaker} }},
	{"timeout", func(p *Policies) value { return durationValue{d: &p.Timeout} }},
}

// policyKeysOf are the keys of the policies that something has.
func policyKeysOf[T any](policies func(*T) *Policies) (keys []key[T]) {
	for _, k := range policyKeys {
		keys = append(keys, key[T]{k.name, func(t *T) value { return k.of(policies(t)) }})
	}
	return keys
}

var faultKeys = append([]key[Fault]{
	{"runner", func(f *Fault) value { return numberValue[int]{n: &f.Runner, least: 1, most: MaxRunners} }},
	{pointKey, func(f *Fault) value {
		return wordValue[Point]{&f.Point, []string{
			Anywhere: "anywhere", BetweenReadAndWrite: "between-read-and-write", MidRequest: "mid-request", MidReply: "mid-reply",
		}}
	}},
	{"restart", func(f *Fault) value {
		return wordValue[Restart]{&f.Restart, []string{FromJournal: "journal", FromSnapshot: "snapshot", FromNothing: "empty"}}
	}},
	{"times", func(f *Fault) value { return numberValue[int]{n: &f.Times, least: 1, most: MaxTimes} }},
	{"profile", func(f *Fault) value {
		return wordValue[Profile]{&f.Profile, []string{"", HiddenTab: "hidden-tab", Laptop: "laptop", LowPower: "low-power"}}
	}},
	{"by", func(f *Fault) value { return offsetValue{&f.By} }},
	{"ppm", func(f *Fault) value { return driftValue{&f.Drift} }},
	{"p", func(f *Fault) value { return chanceValue{&f.Chance} }},
	{"applied", func(f *Fault) value {
		return wordValue[Applied]{&f.Applied, []string{AppliedNo: "no", AppliedYes: "yes", AppliedUnknown: "unknown"}}
	}},
	{"error", func(f *Fault) value { return classValue{&f.Error} }},
	{"torn", func(f *Fault) value { return yesValue{&f.Torn} }},
	{"late", func(f *Fault) value {
		return wordValue[Late]{&f.Late, []string{LateEither: "either", LateRequest: "request", LateReply: "reply"}}
	}},
	{"op", func(f *Fault) value { return wordValue[Op]{&f.Op, opWords} }},
	{"takes", func(f *Fault) value { return spanValue{s: &f.Takes, least: time.Millisecond} }},
	{"tx", func(f *Fault) value { return yesValue{&f.Tx} }},
	{"jobs", func(f *Fault) value { return numberValue[int]{n: &f.Jobs, least: 1, most: MaxJobs} }},
	{"schedule", func(f *Fault) value { return nameValue{"a schedule name", &f.Schedule} }},
	{"to", func(f *Fault) value { return nameValue{"a schedule name", &f.To} }},
	{"into", func(f *Fault) value { return nameValue{"a queue name", &f.Into} }},
	{"queue", func(f *Fault) value { return nameValue{"a queue name", &f.Queue} }},
	{"every", func(f *Fault) value { return everyValue{&f.Spec} }},
	{"catch-up", func(f *Fault) value { return wordValue[CatchUp]{&f.CatchUp, catchUpWords} }},
	{"row", func(f *Fault) value {
		return wordValue[Spoiling]{&f.Row, []string{
			SpoilSpec: "bad-spec", SpoilCutSpec: "cut-spec", SpoilQueue: "reserved-queue", SpoilPolicy: "no-catch-up",
			SpoilOffGrid: "cursor-off-grid", SpoilAhead: "cursor-ahead", SpoilEndOfTime: "cursor-at-end",
		}}
	}},
	{forKey, func(f *Fault) value { return durationValue{d: &f.For} }},
	{afterKey, func(f *Fault) value { return durationValue{d: &f.For} }},
}, policyKeysOf(func(f *Fault) *Policies { return &f.Policies })...)

// opWords are the words of the store's calls.
var opWords = func() []string {
	words := []string{""}
	for op := OpSchedules; op <= OpSkips; op++ {
		words = append(words, faultstore.Method(op-1).String())
	}
	return words
}()

// The two names of a fault's duration.
const (
	forKey   = "for"   // it lasts so long
	afterKey = "after" // it is over in an instant, and so much later the process is back
)

// pointKey is a key of the faults that happen at an instant, wherever the
// processes stand then.
const pointKey = "point"

// faultRules says of each kind of fault its words, and which keys it may and
// must have. A kind with the key for may be written as during A..B, too, unless
// it waits for a point.
var faultRules = [...]struct {
	words string
	must  []string
	may   []string
}{
	FaultDown:          {"down", []string{forKey}, []string{"runner", pointKey}},
	FaultCrash:         {"crash", nil, []string{"restart", "runner", pointKey, afterKey}},
	FaultRestartStorm:  {"restart-storm", []string{"times", afterKey}, []string{"restart", "runner", pointKey}},
	FaultPause:         {"pause", []string{forKey}, []string{"runner", pointKey}},
	FaultThrottle:      {"throttle", []string{"profile", forKey}, []string{"runner"}},
	FaultClockJump:     {"clock-jump", []string{"by"}, []string{"runner", pointKey, forKey}},
	FaultClockDrift:    {"clock-drift", []string{"ppm", forKey}, []string{"runner"}},
	FaultClockFreeze:   {"clock-freeze", []string{forKey}, []string{"runner"}},
	FaultClockStrobe:   {"clock-strobe", []string{"by", forKey}, []string{"runner"}},
	FaultStoreErrors:   {"store error-burst", []string{"applied", forKey}, []string{"p", "runner", "op"}},
	FaultStoreSlow:     {"store slow", []string{"takes", forKey}, []string{"late", "p", "runner", "op"}},
	FaultStoreFull:     {"store full", []string{forKey}, nil},
	FaultJournalErrors: {"store journal-error", []string{forKey}, []string{"torn", "p"}},
	FaultSwizzle:       {"store swizzle", []string{forKey}, []string{"applied"}},
	FaultStaleRead:     {"store stale-read", []string{forKey}, []string{"p", "runner"}},
	FaultRepeatedRow:   {"store repeated-row", []string{forKey}, []string{"p", "runner"}},
	FaultLostRow:       {"store lost-row", []string{"schedule"}, []string{pointKey, forKey}},
	FaultHandlerSlow:   {"handler slow", []string{forKey}, []string{"takes", "applied", "p", "schedule", "queue"}},
	FaultHandlerFails:  {"handler failing", []string{forKey}, []string{"error", "applied", "p", "schedule", "queue"}},
	FaultHandlerPanics: {"handler panicking", []string{forKey}, []string{"p", "schedule", "queue"}},
	FaultHandlerHangs:  {"handler hanging", []string{forKey}, []string{"applied", "p", "schedule", "queue"}},
	FaultPoison:        {"handler poisoned", []string{forKey}, []string{"error", "p", "schedule", "queue"}},
	FaultHandlerSpawns: {"handler spawning", []string{forKey}, []string{"tx", "jobs", "into", "p", "schedule", "queue"}},
	FaultLateAck:       {"queue late-ack", []string{"takes", forKey}, []string{"p", "schedule", "queue"}},
	FaultDuplicateAck:  {"queue duplicate-ack", []string{forKey}, []string{"takes", "p", "schedule", "queue"}},
	FaultLostAck:       {"queue lost-ack", []string{forKey}, []string{"p", "schedule", "queue"}},
	FaultOverload:      {"queue overload", []string{"queue", "jobs"}, []string{pointKey}},
	FaultEditAdd:       {"edit add", []string{"schedule"}, []string{pointKey}},
	FaultEditChange:    {"edit change", []string{"schedule"}, []string{"every", "queue", "catch-up", pointKey}},
	FaultEditPause:     {"edit pause", []string{"schedule"}, []string{pointKey}},
	FaultEditResume:    {"edit resume", []string{"schedule"}, []string{pointKey}},
	FaultEditRemove:    {"edit remove", []string{"schedule"}, []string{pointKey}},
	FaultEditRename:    {"edit rename", []string{"schedule", "to"}, []string{pointKey}},
	FaultEditPolicies:  {"edit policies", []string{"schedule"}, append(keyList(policyKeys), pointKey)},
	FaultEditTrigger:   {"edit trigger", []string{"schedule"}, []string{pointKey}},
	FaultTamper:        {"tamper", []string{"schedule"}, []string{"row", "every", pointKey, forKey}},
}

// faultWords are the words of the kinds, from [FaultDown] on.
var faultWords = func() (words []string) {
	for _, rule := range faultRules[FaultDown:] {
		words = append(words, rule.words)
	}
	return words
}()

// keysOf are the keys of a kind of fault.
func keysOf(kind FaultKind) []key[Fault] {
	rule := faultRules[kind]
	var keys []key[Fault]
	for _, k := range faultKeys {
		if slices.Contains(rule.must, k.name) || slices.Contains(rule.may, k.name) {
			keys = append(keys, k)
		}
	}
	return keys
}

// keyList lists what the keys are called.
func keyList[T any](keys []key[T]) (names []string) {
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

func keyNames[T any](keys []key[T]) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name + "="
	}
	return names
}

// The words of expectations. countWords are those of the kinds from
// [ExpectFires] on: NAME.WORD=N.
const (
	noDoubleFire = "no-double-fire"
	markPrefix   = "sometimes:"
	verdictKey   = "verdict"
)

var countWords = []string{"fires", "skipped", "quarantined"}
