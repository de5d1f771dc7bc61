package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/sim"
)

// module is the simulator compiled to WebAssembly, which the tests share.
var module = sync.OnceValues(func() ([]byte, error) {
	sources, err := simulatorSources()
	if err != nil {
		return nil, err
	}
	return buildSimulator(context.Background(), sources, testCache)
})

func openTestSimulator(t *testing.T, memory uint32) *simulator {
	t.Helper()
	wasm, err := module()
	require.NoError(t, err)
	s, err := compileSimulator(t.Context(), wasm, testCache, memory)
	require.NoError(t, err)
	t.Cleanup(func() { s.close(context.Background()) })
	return s
}

func scenarioFile(t *testing.T, path string) sim.Scenario {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	s, err := sim.Parse(path, string(text))
	require.NoError(t, err)
	return s
}

// TestModuleComesToTheRecordedOutcomes runs some of the example scenarios by the
// module; what is recorded was recorded natively. scripts/test-wasm compares all.
func TestModuleComesToTheRecordedOutcomes(t *testing.T) {
	files := []string{"outbox.sim", "bad-row.sim", "leader-crash.sim", "policies.sim"}
	if testing.Short() {
		files = files[:1]
	}
	s := openTestSimulator(t, simulatorMemory)
	for _, file := range files {
		scenario := scenarioFile(t, "../../examples/scenarios/"+file)
		require.NotEmpty(t, scenario.Outcome)
		outcome, err := s.ask(t.Context(), &scenario)
		require.NoError(t, err, file)
		require.Equal(t, scenario.Outcome, outcome, file)
	}
}

// TestModuleSweepsToTheSameDigest draws each seed's faults twice, natively and in
// the module.
func TestModuleSweepsToTheSameDigest(t *testing.T) {
	s, scenario := openTestSimulator(t, simulatorMemory), scenarioFile(t, "../../examples/scenarios/portfolio.sim")
	seeds := sim.Seeds{First: 1, Last: 20}
	if testing.Short() {
		seeds.Last = 3
	}
	native, err := sim.Sweep(scenario, seeds)
	require.NoError(t, err)
	answer, err := s.ask(t.Context(), &scenario, seeds.String())
	require.NoError(t, err)
	require.Equal(t, digestWord+native.Digest.String()+"\n", answer)
}

// TestModulesThatDiffer: the verdict is nondeterministic, but where a rule was
// broken; a sweep counts the seed once.
func TestModulesThatDiffer(t *testing.T) {
	s := openTestSimulator(t, simulatorMemory)
	scenario, err := sim.Parse("a.sim", "simulate v1\nrun 1h\nschedule a every=5m queue=q\n")
	require.NoError(t, err)
	for was, want := range map[sim.Verdict]sim.Verdict{
		sim.Pass: sim.Nondeterministic, sim.Liveness: sim.Nondeterministic, sim.Safety: sim.Safety,
	} {
		result, err := sim.Run(scenario)
		require.NoError(t, err)
		digest := result.Digest.String()
		result.Digest++
		r := &report{Result: result, scenario: &scenario, verdict: was}
		require.NoError(t, r.runSecond(t.Context(), s))
		require.Equal(t, want, r.verdict)
		require.Equal(t, digestWord+result.Digest.String(), r.second.difference.was)
		require.Equal(t, digestWord+digest, r.second.difference.is)
		require.Contains(t, strings.Join(r.judgement(), "\n"), "WebAssembly  "+digestWord+digest)
		require.Equal(t, digest, runJSON(r).WasmDigest)
		require.Equal(t, "WebAssembly", runJSON(r).Violations[0].Invariant)

		sweep, err := sim.Sweep(scenario, sim.Seeds{First: 7, Last: 7})
		require.NoError(t, err)
		if was != sim.Pass {
			sweep.Merge(&sim.SweepResult{Failed: 1, Failures: []sim.FailureGroup{{Verdict: was, What: "planted", Runs: 1, Seeds: []uint64{7}}}})
		}
		require.NoError(t, s.sweepSecond(t.Context(), 7, sweep))
		require.Equal(t, was, sweep.Verdict(), "the same digest changes nothing")
		sweep.Digest++
		require.NoError(t, s.sweepSecond(t.Context(), 7, sweep))
		require.Equal(t, want, sweep.Verdict())
		require.EqualValues(t, 1, sweep.Failed)
		require.Len(t, sweep.Failures, 1)
	}
}

// TestModuleOutOfMemory ends with an error, not with this program.
func TestModuleOutOfMemory(t *testing.T) {
	text := "simulate v1\nrun 10m\n"
	for i := range 5000 {
		text += fmt.Sprintf("schedule a%d every=1m queue=q\n", i)
	}
	scenario, err := sim.Parse("large.sim", text)
	require.NoError(t, err)
	_, err = openTestSimulator(t, 16<<20).ask(t.Context(), &scenario)
	require.ErrorContains(t, err, "the simulator compiled to WebAssembly ended with exit code 2: ")
	require.ErrorContains(t, err, "out of memory")
}

// TestModulesThatAreNoSimulator: the message says what was found, and what to do.
func TestModulesThatAreNoSimulator(t *testing.T) {
	const header = "\x00asm\x01\x00\x00\x00"
	program := func(code string) string {
		return header + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x07\x0a\x01\x06_start\x00\x00" + code
	}
	for name, c := range map[string]struct{ wasm, want string }{
		"an empty file":        {"", "found no WebAssembly module that can run, want the simulator: "},
		"a page of a server":   {"<!doctype html>", "found no WebAssembly module that can run, want the simulator: "},
		"a component":          {"\x00asm\x0d\x00\x01\x00", "found no WebAssembly module that can run, want the simulator: "},
		"one that ends":        {program("\x0a\x04\x01\x02\x00\x0b"), `found a module that answers "", want the simulator`},
		"one without _start":   {header, `found a module that answers "", want the simulator`},
		"one that traps":       {program("\x0a\x05\x01\x03\x00\x00\x0b"), "the simulator compiled to WebAssembly: "},
		"one with other needs": {header + "\x01\x04\x01\x60\x00\x00" + "\x02\x07\x01\x01a\x01b\x00\x00", "the simulator compiled to WebAssembly: "},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := compileSimulator(t.Context(), []byte(c.wasm), t.TempDir(), simulatorMemory)
			if err == nil {
				defer s.close(t.Context())
				_, err = s.ask(t.Context(), &sim.Scenario{})
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestModuleCannotBeBuilt: the message says why, and how it is built by hand.
func TestModuleCannotBeBuilt(t *testing.T) {
	const byHand = "give it as --engine wasm=simulator.wasm"
	for name, file := range map[string]string{
		"a build with -trimpath": "github.com/tickonce/tickonce/cmd/simulate/simulator.go",
		"a program on its own":   filepath.Join(t.TempDir(), "cmd", "simulate", "simulator.go"),
	} {
		_, err := sourcesBeside(file)
		require.ErrorContains(t, err, "the sources from which this program was built are not at hand", name)
		require.ErrorContains(t, err, byHand, name)
	}

	sources := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(sources, "go.mod"), []byte("module broken\n"), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(sources, "main.go"), []byte("package main\n"), 0o666))
	_, err := buildSimulator(t.Context(), sources, t.TempDir())
	require.ErrorContains(t, err, "function main is undeclared")

	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err = buildSimulator(stopped, sources, t.TempDir())
	require.ErrorIs(t, err, context.Canceled)

	t.Setenv("PATH", "")
	_, err = buildSimulator(t.Context(), sources, t.TempDir())
	require.ErrorContains(t, err, "found no go command")
	require.ErrorContains(t, err, byHand)
}

// TestCacheKeepsOneModule: what was compiled of an earlier one goes, and nothing else.
func TestCacheKeepsOneModule(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"compiled-1", "compiled-2", "lock"} {
		require.NoError(t, os.Mkdir(filepath.Join(folder, name), 0o777))
	}
	require.NoError(t, keepOnly(folder, "compiled-*", filepath.Join(folder, "compiled-2")))
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 2)
	require.Equal(t, "compiled-2", left[0].Name())
}
