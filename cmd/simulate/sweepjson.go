package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tickonce/tickonce/sim"
)

// sweepFormat is the version of a [sweepObject].
const sweepFormat = "simulate sweep v1"

// maxPart is how long the file of a part may be, in bytes.
const maxPart = 64 << 20

// sweepObject is a part of a sweep, or the whole, in JSON; docs/SWEEPS.md
// describes it. It has all that people are told but how long it took.
type sweepObject struct {
	Format     string `json:"format"`
	Build      string `json:"build"`
	Scenario   string `json:"scenario"` // the file
	Text       string `json:"text"`     // its words
	Swarm      string `json:"swarm"`
	SwarmGiven bool   `json:"swarm_given"` // by --swarm
	Guests     guests `json:"guests,omitempty"`
	Engine     string `json:"engine,omitempty"` // of --engine, if it is not this program alone

	Seeds    string      `json:"seeds"` // of the whole sweep
	Done     []string    `json:"done"`  // those that were run
	Rest     []string    `json:"rest"`  // those that were to be run and were not
	Verdict  sim.Verdict `json:"verdict"`
	Digest   string      `json:"digest"`
	Runs     int64       `json:"runs"`
	Failed   int64       `json:"failed"`
	Repeated int64       `json:"repeated"`
	Events   int64       `json:"events"`

	Failures  []failureObject  `json:"failures"`
	Unreached []string         `json:"unreached"`
	Excuses   []excuseObject   `json:"excuses"`
	Faults    []faultSumObject `json:"faults"`
	Checks    map[string]int64 `json:"checks"`
	Coverage  []markObject     `json:"coverage"`
	Schedules scheduleCounts   `json:"schedules"`
	Queues    queueCounts      `json:"queues"`

	Checksum string `json:"checksum"` // of all others
}

type failureObject struct {
	Verdict  sim.Verdict `json:"verdict"`
	What     string      `json:"what"`
	Runs     int64       `json:"runs"`
	Seeds    []uint64    `json:"seeds"` // the lowest few
	Schedule string      `json:"schedule"`
	Detail   string      `json:"detail"` // of the first
	Command  string      `json:"command"`
	File     string      `json:"file,omitempty"` // in which it is kept, shrunk
}

type excuseObject struct {
	Kind  string `json:"kind"`
	Runs  int64  `json:"runs"`
	Count int64  `json:"count"`
	Seed  uint64 `json:"seed"` // the lowest
	Text  string `json:"text"` // its first
}

type faultSumObject struct {
	Fault     sim.FaultKind `json:"fault"`
	Count     int64         `json:"count"`
	Effective int64         `json:"effective"`
	Effect    int64         `json:"effect"`
}

type markObject struct {
	Mark      string `json:"mark"`
	Runs      int64  `json:"runs"`
	Reached   int64  `json:"reached"`
	Evaluated int64  `json:"evaluated"`
}

func newSweepObject(r *sweepReport) *sweepObject {
	s, q := &r.Schedules, &r.Queues
	o := &sweepObject{
		Format: sweepFormat, Build: r.build, Scenario: r.file, Text: textOf(r.Scenario), Guests: r.guests,
		Swarm: r.Scenario.Swarm.String(), SwarmGiven: r.swarmGiven,
		Seeds: r.seeds.String(), Done: r.done.words(), Rest: r.rest().words(),
		Verdict: r.verdict(), Digest: r.Digest.String(), Runs: r.Runs, Failed: r.Failed, Repeated: r.Repeated, Events: r.Events,
		Failures: []failureObject{}, Unreached: append([]string{}, r.Unreached()...), Excuses: []excuseObject{}, Faults: []faultSumObject{},
		Checks: checksJSON(r.Checks), Coverage: []markObject{},
		Schedules: scheduleCountsJSON(s),
		Queues:    queueCountsJSON(q),
	}
	if r.engine.wasm {
		o.Engine = engineWasm
	}
	for i, g := range r.Failures {
		file := ""
		if i < len(r.finds) {
			file = r.finds[i]
		}
		o.Failures = append(o.Failures, failureObject{g.Verdict, g.What, g.Runs, g.Seeds, g.Schedule, g.Detail, r.again(g.Seeds[0]), file})
	}
	for _, e := range r.Excuses {
		o.Excuses = append(o.Excuses, excuseObject{e.Kind, e.Runs, e.Count, e.Seed, e.Text})
	}
	for _, f := range r.Faults {
		o.Faults = append(o.Faults, faultSumObject{f.Kind, f.Count, f.Effective, f.Effect})
	}
	for _, m := range r.Marks {
		o.Coverage = append(o.Coverage, markObject{m.ID, m.Runs, m.Reached, m.Evaluated})
	}
	return o
}

// sum is the checksum of all that is not the checksum.
func (o sweepObject) sum() (string, error) {
	o.Checksum = ""
	text, err := json.Marshal(o)
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:16]), err
}

// text is the object with its checksum.
func (o *sweepObject) text() (string, error) {
	var err error
	if o.Checksum, err = o.sum(); err != nil {
		return "", err
	}
	var b strings.Builder
	err = writeJSON(&b, o)
	return b.String(), err
}

// readPart reads a part. Its errors name the file and, where there is one, the
// place.
func readPart(path string) (*part, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPart+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxPart {
		return nil, fmt.Errorf("%s: found more than %d bytes, want a part of a sweep, which has less", path, maxPart)
	}
	p, err := parsePart(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func parsePart(text []byte) (*part, error) {
	var version struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, placed(text, err)
	}
	if version.Format != sweepFormat {
		return nil, fmt.Errorf("found the format %q, want %q: a part of a sweep, as simulate sweep writes it", version.Format, sweepFormat)
	}
	var o sweepObject
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return nil, placed(text, err)
	}
	sum, err := o.sum()
	switch {
	case err != nil:
		return nil, err
	case sum != o.Checksum:
		return nil, fmt.Errorf("found the checksum %q, want %q: the part is damaged, or somebody changed it", o.Checksum, sum)
	}
	return o.part()
}

// placed says where the text is no JSON, or has something else than is wanted.
func placed(text []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	at := -1
	switch {
	case errors.As(err, &syntax):
		at = int(syntax.Offset)
	case errors.As(err, &kind):
		at = int(kind.Offset)
	}
	if at < 0 {
		return err
	}
	above := text[:min(at, len(text))]
	line := bytes.Count(above, []byte("\n")) + 1
	column := len(above) - (bytes.LastIndexByte(above, '\n') + 1)
	return fmt.Errorf("line %d, column %d: %w", line, max(column, 1), err)
}

// part is what the object says, if it is one that a sweep can have come to.
func (o *sweepObject) part() (*part, error) {
	p := &part{build: o.Build, file: o.Scenario, guests: o.Guests, swarmGiven: o.SwarmGiven}
	scenario, err := sim.Parse("text", o.Text)
	if err != nil {
		return nil, err
	}
	switch p.engine.wasm = o.Engine != ""; o.Engine {
	case "", engineWasm:
	default:
		return nil, fmt.Errorf("engine: found %q, want %q, or nothing", o.Engine, engineWasm)
	}
	if p.seeds, err = sim.ParseSeeds(o.Seeds); err != nil {
		return nil, fmt.Errorf("seeds: %w", err)
	}
	if p.done, err = parseSeedSet(o.Done); err != nil {
		return nil, fmt.Errorf("done: %w", err)
	}
	if !p.done.within(p.seeds) {
		return nil, fmt.Errorf("done: found the seeds %s, want none but of %s", p.done, p.seeds)
	}
	if o.Runs < 0 || uint64(o.Runs) != p.done.count() {
		return nil, fmt.Errorf("runs: found %d, want %d, the count of the seeds that were run", o.Runs, p.done.count())
	}
	digest, err := strconv.ParseUint(o.Digest, 16, 64)
	if err != nil {
		return nil, fmt.Errorf("digest: found %q, want 16 hex digits", o.Digest)
	}
	s, q := &o.Schedules, &o.Queues
	r := &sim.SweepResult{
		Scenario: scenario, Runs: o.Runs, Failed: o.Failed, Repeated: o.Repeated, Digest: sim.Digest(digest), Events: o.Events,
		Schedules: sim.ScheduleResult{
			Boundaries: s.Boundaries, Fired: s.Fired, Skipped: s.Skipped, SkipReasons: s.SkipReasons, Quarantined: s.Quarantined,
			FiredAgain: s.FiredAgain, FiredByRepair: s.Repaired, Left: s.Left, Forgotten: s.Forgotten,
			MaxLate: time.Duration(s.MaxLateMS) * time.Millisecond,
		},
		Queues: sim.QueueResult{
			Enqueued: q.Enqueued, Done: q.Done, Dead: q.Dead, Pending: q.Pending, Claimed: q.Claimed, Cancelled: q.Cancelled,
			DeadReasons: q.DeadReasons, Claims: q.Claims, Retried: q.Retried, DoneForgotten: q.DoneForgot, Lost: q.Lost,
			Delivered: q.Delivered, DeliveredAgain: q.Redelivered,
		},
	}
	for i, g := range o.Failures {
		if len(g.Seeds) == 0 || !slices.IsSorted(g.Seeds) || g.Verdict == sim.Pass {
			return nil, fmt.Errorf("failures[%d]: found %s of the seeds %v, want a failure, and at least one seed, in order", i, g.Verdict, g.Seeds)
		}
		r.Failures = append(r.Failures, sim.FailureGroup{
			Verdict: g.Verdict, What: g.What, Runs: g.Runs, Seeds: g.Seeds, Schedule: g.Schedule, Detail: g.Detail,
		})
	}
	for _, e := range o.Excuses {
		r.Excuses = append(r.Excuses, sim.ExcuseGroup{Excuse: sim.Excuse{Kind: e.Kind, Text: e.Text}, Count: e.Count, Runs: e.Runs, Seed: e.Seed})
	}
	for _, f := range o.Faults {
		r.Faults = append(r.Faults, sim.FaultGroup{Kind: f.Fault, Count: f.Count, Effective: f.Effective, Effect: f.Effect})
	}
	p.SweepResult = newResult(scenario)
	if err := o.counts(p.SweepResult, r); err != nil {
		return nil, err
	}
	p.SweepResult.Merge(r) // which puts the groups in their order
	return p, nil
}

// counts takes over the counts of the marks and of the checks, which have to be
// those of this build's catalogues.
func (o *sweepObject) counts(catalogue, to *sim.SweepResult) error {
	for i := range max(len(o.Coverage), len(catalogue.Marks)) {
		if i >= len(o.Coverage) || i >= len(catalogue.Marks) || o.Coverage[i].Mark != catalogue.Marks[i].ID {
			return fmt.Errorf("coverage[%d]: found other marks than this build has, want a part that this build made", i)
		}
		m := catalogue.Marks[i]
		m.Runs, m.Reached, m.Evaluated = o.Coverage[i].Runs, o.Coverage[i].Reached, o.Coverage[i].Evaluated
		to.Marks = append(to.Marks, m)
	}
	for _, c := range catalogue.Checks {
		n, ok := o.Checks[c.Invariant]
		if !ok || len(o.Checks) != len(catalogue.Checks) {
			return errors.New("checks: found others than this build has, want a part that this build made")
		}
		c.Count = n
		to.Checks = append(to.Checks, c)
	}
	return nil
}
