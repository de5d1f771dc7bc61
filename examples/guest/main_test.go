//go:build !wasm

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/sim/guest"
)

// TestReports compiles the program and runs the scenario with it, twice.
func TestReports(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.wasm")
	build := exec.Command("go", "build", "-o", file, ".")
	build.Env = append(build.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	program, err := guest.Compile(t.Context(), "report.wasm", wasm, guest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close(t.Context())

	text, err := os.ReadFile("reports.sim")
	if err != nil {
		t.Fatal(err)
	}
	scenario, err := sim.Parse("reports.sim", string(text))
	if err != nil {
		t.Fatal(err)
	}
	scenario.Handlers = sim.Handlers{"report": program.Handle}

	var digest sim.Digest
	for run := range 2 {
		r, err := sim.Run(scenario)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != sim.Pass {
			t.Fatal(r.Verdict, r.Failures, r.Unmet)
		}
		if r.Queues[0].Retried == 0 || r.Schedules[0].LastError == "" {
			t.Error("no attempt failed, so this shows nothing")
		}
		if run > 0 && r.Digest != digest {
			t.Errorf("the digest was %s, and then %s", digest, r.Digest)
		}
		digest = r.Digest
	}
}
