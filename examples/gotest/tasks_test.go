package gotest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/sim"
)

// scenario is the tasks for a day on two hosts, with handlers about as slow and
// as faulty as those of the service, and one to six outages in the first 16
// hours. Which they are each seed draws: of the processes, the store and the
// handlers, but not of the clock, which is somebody else's to keep.
func scenario() sim.Scenario {
	policies := map[tickonce.CatchUp]sim.CatchUp{
		tickonce.CatchUpAll: sim.CatchUpAll, tickonce.CatchUpLatest: sim.CatchUpLatest,
		tickonce.CatchUpGrace: sim.CatchUpGrace, tickonce.CatchUpNone: sim.CatchUpNone,
	}
	handlers := map[string]sim.Handler{
		"billing": {Kind: sim.HandlerFails, Fails: sim.Always / 100, Takes: sim.Span{Min: time.Second, Max: 10 * time.Second}},
		"storage": {Takes: sim.Span{Min: 5 * time.Minute, Max: 20 * time.Minute}},
	}
	s := sim.Scenario{
		Engine: sim.Engine{Runners: 2, StandBy: true},
		For:    24 * time.Hour,
		Swarm:  sim.Swarm{Min: 1, Max: 6, Kinds: "down,crash,pause,store-error-burst,handler"},
	}
	for _, t := range Tasks {
		s.Schedules = append(s.Schedules, sim.Schedule{
			Name: t.Name, Spec: t.Spec, Queue: t.Queue, Handler: handlers[t.Queue],
			Anchor: t.Options.Anchor, CatchUp: policies[t.Options.CatchUp], Visibility: t.Options.Visibility,
		})
	}
	return s
}

// TestTasksThroughOutages: whatever goes wrong, each boundary fires once or is
// skipped for a reason, and all comes in time once it is over.
func TestTasksThroughOutages(t *testing.T) {
	seeds := sim.Seeds{First: 1, Last: 50}
	if testing.Short() {
		seeds.Last = 5
	}
	r, err := sim.Sweep(scenario(), seeds)
	if err != nil {
		t.Fatal(err)
	}
	r.Require(t)
}

// FuzzTasksThroughOutages goes on from there for as long as it is let, with seeds
// of Go's choice; one that fails is kept as a test case:
//
//	go test -fuzz TasksThroughOutages -fuzztime 1m ./examples/gotest
func FuzzTasksThroughOutages(f *testing.F) {
	f.Add(uint64(51))
	f.Fuzz(func(t *testing.T, seed uint64) {
		r, err := sim.Sweep(scenario(), sim.Seeds{First: seed, Last: seed})
		if err != nil {
			t.Fatal(err)
		}
		r.Require(t)
	})
}

// TestKept runs what is kept, before more is tried: each file comes to what it
// expects, and to the outcome that is recorded in it.
func TestKept(t *testing.T) {
	files, err := filepath.Glob("testdata/corpus/*.sim")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := sim.Parse(file, string(text))
		if err != nil {
			t.Fatal(err)
		}
		r, err := sim.Run(s)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != sim.Pass || r.Outcome() != s.Outcome {
			t.Errorf("%s: %s %v %v; go tool simulate replay %s says more", file, r.Verdict, r.Failures, r.Unmet, file)
		}
	}
}

// TestMinutesAreChargedOnce runs the code that bills: crashes and lost replies
// have some of its jobs run twice, and yet no minute is charged twice.
func TestMinutesAreChargedOnce(t *testing.T) {
	runs, minutes := 0, 0
	for seed := range uint64(5) {
		ledger := Ledger{} // outside the processes, so no crash of theirs empties it
		s := scenario()
		s.Schedules[0].Handler = sim.Handler{}
		s.Handlers = sim.Handlers{"metering": func(c *sim.Call) error {
			c.Sleep(2 * time.Second) // until the meter answers
			ledger.Charge(c.Job.Boundary)
			runs++
			c.Sleep(time.Second) // until the engine is told
			return nil
		}}
		drawn, err := s.Draw(seed)
		if err != nil {
			t.Fatal(err)
		}
		r, err := sim.Run(drawn)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != sim.Pass {
			t.Fatal(seed, r.Verdict, r.Failures, r.Unmet)
		}
		for minute, charged := range ledger {
			if charged != 1 {
				t.Errorf("seed %d: %s was charged %d times", seed, minute, charged)
			}
		}
		minutes += len(ledger)
	}
	if runs <= minutes {
		t.Errorf("%d runs for %d minutes: no job ran twice, so this shows nothing", runs, minutes)
	}
}

// TestRegister: what is simulated is what the service registers.
func TestRegister(t *testing.T) {
	eng, err := memengine.New(tickonce.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Register(t.Context(), eng.Engine); err != nil {
		t.Fatal(err)
	}
}

// message is a test that keeps what it failed with.
type message struct{ text string }

func (*message) Helper()             {}
func (m *message) Fatal(args ...any) { m.text = fmt.Sprint(args...) }

// TestFailureIsThatOfTheREADME demands that no minute is skipped, which an outage
// of more than an hour refutes. What the test then says stands in the README.
func TestFailureIsThatOfTheREADME(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: twenty days are run, and what fails is made smaller")
	}
	s := scenario()
	s.Expect = []sim.Expect{{Kind: sim.ExpectSkipped, Schedule: "metering", Count: 0}}
	r, err := sim.Sweep(s, sim.Seeds{First: 31, Last: 50})
	if err != nil {
		t.Fatal(err)
	}
	var failed message
	r.Require(&failed)

	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```\n"+failed.text+"```\n") {
		t.Errorf("the README does not have what the test says:\n%s", failed.text)
	}
}
