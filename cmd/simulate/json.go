package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tickonce/tickonce/sim"
)

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// instantOrNull is null for the zero time.
func instantOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := instant(t)
	return &s
}

type runObject struct {
	Scenario    string            `json:"scenario"`
	Start       string            `json:"start"`
	RunMS       int64             `json:"run_ms"`
	Seed        uint64            `json:"seed"`
	Verdict     sim.Verdict       `json:"verdict"`
	Outcome     outcome           `json:"outcome"`
	Digest      string            `json:"digest"`
	WasmDigest  string            `json:"wasm_digest,omitempty"`
	SimulatedMS int64             `json:"simulated_ms"`
	Events      int64             `json:"events"`
	Spent       string            `json:"spent,omitempty"`
	Schedules   []scheduleObject  `json:"schedules"`
	Queues      []queueObject     `json:"queues"`
	Faults      []faultObject     `json:"faults"`
	Checks      map[string]int64  `json:"checks"`
	Violations  []violationObject `json:"violations"`
	Excused     []string          `json:"excused"`
	Coverage    map[string]int64  `json:"coverage"`
}

type scheduleObject struct {
	Name    string `json:"name"`
	Spec    string `json:"spec"`
	Queue   string `json:"queue"`
	CatchUp string `json:"catch_up"`
	scheduleCounts
	FirstFireAt *string `json:"first_fire_at"`
	LastFireAt  *string `json:"last_fire_at"`
	LastError   string  `json:"last_error,omitempty"`
}

type queueObject struct {
	Name   string `json:"name"`
	Outbox bool   `json:"outbox,omitempty"`
	queueCounts
}

// scheduleCounts is of a schedule or, of a sweep, the sum over all of them.
type scheduleCounts struct {
	Boundaries  int64            `json:"boundaries"`
	Fired       int64            `json:"fired"`
	Skipped     int64            `json:"skipped"`
	SkipReasons map[string]int64 `json:"skip_reasons"`
	Quarantined int64            `json:"quarantined"`
	FiredAgain  int64            `json:"fired_again"`
	Repaired    int64            `json:"fired_by_repair"`
	Left        int64            `json:"left"`
	Forgotten   int64            `json:"forgotten"`
	MaxLateMS   int64            `json:"max_late_ms"`
}

// queueCounts is of a queue or, of a sweep, the sum over all of them.
type queueCounts struct {
	Enqueued    int64            `json:"enqueued"`
	Done        int64            `json:"done"`
	Dead        int64            `json:"dead"`
	Pending     int64            `json:"pending"`
	Claimed     int64            `json:"claimed"`
	Cancelled   int64            `json:"cancelled"`
	DeadReasons map[string]int64 `json:"dead_reasons"`
	Claims      int64            `json:"claims"`
	Retried     int64            `json:"retried"`
	DoneForgot  int64            `json:"done_forgotten"`
	Lost        int64            `json:"lost"`
	Delivered   int64            `json:"delivered,omitempty"`       // of outboxes
	Redelivered int64            `json:"delivered_again,omitempty"` // of outboxes
}

func scheduleCountsJSON(s *sim.ScheduleResult) scheduleCounts {
	return scheduleCounts{
		s.Boundaries, s.Fired, s.Skipped, s.SkipReasons, s.Quarantined, s.FiredAgain, s.FiredByRepair, s.Left, s.Forgotten, s.MaxLate.Milliseconds(),
	}
}

func queueCountsJSON(q *sim.QueueResult) queueCounts {
	return queueCounts{
		q.Enqueued, q.Done, q.Dead, q.Pending, q.Claimed, q.Cancelled, q.DeadReasons, q.Claims, q.Retried, q.DoneForgotten, q.Lost,
		q.Delivered, q.DeliveredAgain,
	}
}

type faultObject struct {
	Fault  string        `json:"fault"`
	AtMS   int64         `json:"at_ms"`
	Effect int64         `json:"effect"`
	Outage *outageObject `json:"outage,omitempty"`
	Clock  *clockObject  `json:"clock,omitempty"`
}

// outageObject is what became of the boundaries that came due in an outage.
type outageObject struct {
	Due        int64 `json:"due"`
	OnTime     int64 `json:"on_time"`
	Late       int64 `json:"late"`
	Skipped    int64 `json:"skipped"`
	Left       int64 `json:"left"`
	Forgotten  int64 `json:"forgotten"`
	FiredAgain int64 `json:"fired_again"`
}

// clockObject is what a wrong clock did.
type clockObject struct {
	FiredEarly     int64  `json:"fired_early"`
	MaxEarlyMS     int64  `json:"max_early_ms"`
	FiredAgain     int64  `json:"fired_again"`
	SilenceMS      int64  `json:"silence_ms"`
	SilentSchedule string `json:"silent_schedule"`
}

func faultJSON(f *sim.FaultResult) faultObject {
	o, c := faultObject{Fault: f.Text, AtMS: f.Fault.At.Milliseconds(), Effect: f.Effect}, &f.Cost
	switch f.Fault.Kind {
	case sim.FaultDown, sim.FaultCrash, sim.FaultRestartStorm, sim.FaultPause, sim.FaultThrottle:
		o.Outage = &outageObject{c.Due, c.OnTime, c.Late, c.Skipped, c.Left, c.Forgotten, c.FiredAgain}
	case sim.FaultClockJump, sim.FaultClockDrift, sim.FaultClockFreeze, sim.FaultClockStrobe:
		o.Clock = &clockObject{c.FiredEarly, c.MaxEarly.Milliseconds(), c.FiredAgain, c.Silence.Milliseconds(), c.Silent}
	}
	return o
}

// violationObject is a broken invariant, or an expectation that was not met.
type violationObject struct {
	Invariant string `json:"invariant"`
	AtMS      int64  `json:"at_ms"` // from the start
	Schedule  string `json:"schedule"`
	Detail    string `json:"detail"`
}

// runJSON is what run --json prints: all that people are told but how long it
// took, so that equal runs print equal texts.
func runJSON(r *report) runObject {
	o := runObject{
		Scenario: r.file, Start: instant(r.start()), RunMS: r.scenario.For.Milliseconds(), Seed: r.Seed,
		Verdict: r.verdict, Outcome: r.outcome, Digest: r.Digest.String(),
		SimulatedMS: r.Simulated.Milliseconds(), Events: r.Events, Spent: r.Spent,
		Schedules: []scheduleObject{}, Queues: []queueObject{}, Faults: []faultObject{}, Checks: checksJSON(r.Checks), Violations: []violationObject{},
		Excused: []string{}, Coverage: map[string]int64{},
	}
	if r.second != nil {
		o.WasmDigest = r.second.digest
	}
	for _, e := range r.Excused {
		o.Excused = append(o.Excused, e.Text)
	}
	policies := r.policies()
	for i := range r.Schedules {
		s := &r.Schedules[i]
		o.Schedules = append(o.Schedules, scheduleObject{
			s.Name, s.Spec, s.Queue, policies[s.Name].String(), scheduleCountsJSON(s), instantOrNull(s.FirstFire), instantOrNull(s.LastFire), s.LastError,
		})
	}
	for i := range r.Queues {
		o.Queues = append(o.Queues, queueObject{r.Queues[i].Name, r.Queues[i].Outbox, queueCountsJSON(&r.Queues[i])})
	}
	for i := range r.Faults {
		o.Faults = append(o.Faults, faultJSON(&r.Faults[i]))
	}
	for _, f := range r.Failures {
		o.Violations = append(o.Violations, violationObject{f.Invariant, f.At.Sub(r.start()).Milliseconds(), f.Schedule, f.Detail})
	}
	for _, detail := range r.unmet() {
		o.Violations = append(o.Violations, violationObject{Invariant: "expectation", AtMS: r.Simulated.Milliseconds(), Detail: detail})
	}
	if r.second != nil && r.second.difference != nil {
		o.Violations = append(o.Violations, violationObject{
			Invariant: "WebAssembly", AtMS: r.Simulated.Milliseconds(), Detail: strings.Join(r.second.words(), " "),
		})
	}
	for _, m := range r.Coverage.Marks() {
		o.Coverage[m.ID] = m.Reached
	}
	return o
}

// checksJSON is how often each invariant was checked.
func checksJSON(checks []sim.Check) map[string]int64 {
	o := map[string]int64{}
	for _, c := range checks {
		o[c.Invariant] = c.Count
	}
	return o
}

// rulesObject is what the rules that are cited say, by their ids.
type rulesObject map[string][]string

func (o rulesObject) add(rule, text string) {
	if !slices.Contains(o[rule], text) {
		o[rule] = append(o[rule], text)
	}
}

type explanationObject struct {
	Spec       string           `json:"spec"`
	IntervalMS int64            `json:"interval_ms"`
	From       string           `json:"from"`
	Anchor     string           `json:"anchor"`
	CatchUp    string           `json:"catch_up"`
	DownMS     int64            `json:"down_ms"`
	JumpMS     int64            `json:"jump_ms"`
	TakesMS    int64            `json:"takes_ms,omitempty"`
	Policies   string           `json:"policies,omitempty"`
	Boundaries []boundaryObject `json:"boundaries"`
	Fired      int64            `json:"fired"`
	Skipped    int64            `json:"skipped"`
	Next       *string          `json:"next"`
	Notes      []string         `json:"notes,omitempty"`
	Rules      rulesObject      `json:"rules"`
}

// boundaryObject is a boundary or, with count and last, a run of them.
type boundaryObject struct {
	At     string `json:"at"`
	Fate   string `json:"fate"`
	Rule   string `json:"rule"`
	LateMS int64  `json:"late_ms"`
	Count  int64  `json:"count,omitempty"`
	Last   string `json:"last,omitempty"`
}

// explanationJSON is what explain --json prints. A run of more boundaries than
// a tick can fire is summed up.
func explanationJSON(q *sim.Question, told *sim.Explanation) explanationObject {
	const most = 64
	o := explanationObject{
		Spec: told.Spec, IntervalMS: told.Interval.Milliseconds(), From: instant(told.From),
		Anchor: instant(told.Anchor), CatchUp: q.CatchUp.String(), DownMS: q.Down.Milliseconds(), JumpMS: q.Jump.Milliseconds(),
		TakesMS: q.Takes.Milliseconds(), Policies: q.Policies.String(),
		Boundaries: []boundaryObject{}, Fired: told.Fired, Skipped: told.Skipped, Next: instantOrNull(told.Next), Rules: rulesObject{},
	}
	for _, e := range entries(told.Passages, most, 0) {
		p := e.passage
		b := boundaryObject{
			At: instant(e.at(0, told.Interval)), Fate: p.Fate.String(), Rule: p.Rule,
		}
		if p.Fate != sim.Fired {
			b.LateMS = e.late(0, told.Interval).Milliseconds()
		}
		if e.count > 1 {
			b.Count, b.Last = e.count, instant(e.at(e.count-1, told.Interval))
		}
		o.Boundaries = append(o.Boundaries, b)
		o.Rules.add(p.Rule, p.Text)
	}
	for _, n := range told.Notes {
		o.Notes = append(o.Notes, n.Rule+": "+n.Text)
	}
	return o
}
