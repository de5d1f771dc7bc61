//go:build !wasm

package guest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/tickonce/tickonce/sim"
)

// built is testdata/program for WASI.
var built = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "program.wasm")
	build := exec.Command("go", "build", "-o", file, "./testdata/program")
	build.Env = append(build.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(file)
})

func program(t *testing.T, limits Limits, config wazero.RuntimeConfig) *Program {
	t.Helper()
	wasm, err := built()
	require.NoError(t, err)
	p, err := compile(t.Context(), "program.wasm", wasm, limits, config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close(context.Background())) })
	return p
}

// compiled is the program with the default limits, which many tests share.
var compiled = sync.OnceValue(func() *Program {
	wasm, err := built()
	if err != nil {
		panic(err)
	}
	p, err := Compile(context.Background(), "program.wasm", wasm, Limits{})
	if err != nil {
		panic(err)
	}
	return p
})

// job is a run with one job, at 1 h, of which the program has three attempts.
func job(what string, p *Program, faults ...sim.Fault) (s sim.Scenario, attempts *[]string) {
	attempts = new([]string)
	return sim.Scenario{
		For:       119 * time.Minute,
		Schedules: []sim.Schedule{{Name: "a", Spec: "@every 1h", Queue: "q", Payload: []byte(what)}},
		Faults:    faults,
		Handlers: sim.Handlers{"a": func(c *sim.Call) error {
			err := p.Handle(c)
			*attempts = append(*attempts, fmt.Sprint(err))
			return err
		}},
	}, attempts
}

func ran(t *testing.T, s sim.Scenario) *sim.Result {
	t.Helper()
	r, err := sim.Run(s)
	require.NoError(t, err)
	return r
}

func TestProgramsEnd(t *testing.T) {
	for _, c := range []struct {
		what     string
		limits   Limits
		verdict  sim.Verdict
		attempts int
		want     string
	}{
		{what: "done", attempts: 1, want: "<nil>"},
		{what: "exit", attempts: 3, want: "exit code 3: err: out"},
		{what: "panic", attempts: 3, want: "exit code 2: panic: boom"},
		{what: "print", attempts: 3, want: "exit code 1: " + strings.Repeat("a", 256) + " … 1488 bytes … " + strings.Repeat("z", 256)},
		{what: "trap", attempts: 3, verdict: sim.HandlerCrash, want: "the handler crashed: wasm error: out of bounds memory access"},
		{
			what: "spin", attempts: 1, verdict: sim.Budget, limits: Limits{Compute: 100 * time.Millisecond},
			want: "the handler takes more than it may: it computed for 100ms of the host's time without a sleep",
		},
		{
			what: "busy", attempts: 1, verdict: sim.Budget, limits: Limits{Calls: 1000},
			want: "the handler takes more than it may: it made more than 1000 calls of the system without a sleep",
		},
		{what: "calls", attempts: 1, limits: Limits{Calls: 1000}, want: "<nil>"}, // of them, between two sleeps
		{
			what: "eat", attempts: 1, verdict: sim.Budget, limits: Limits{Memory: 20 << 20},
			want: "the handler takes more than it may: it asked for more than 20 MiB of memory",
		},
		{
			what: "shout", attempts: 1, verdict: sim.Budget, limits: Limits{Calls: 1000},
			want: "the handler takes more than it may: it made more than 1000 calls of the system without a sleep",
		},
		{
			what: "recurse", attempts: 1, verdict: sim.Budget, limits: Limits{Memory: 20 << 20},
			want: "the handler takes more than it may: it asked for more than 20 MiB of memory",
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := compiled()
			if c.limits != (Limits{}) {
				p = &Program{name: p.name, runtime: p.runtime, module: p.module, limits: c.limits.withDefaults()}
			}
			s, attempts := job(c.what, p)
			r := ran(t, s)
			require.Equal(t, c.verdict, r.Verdict, "%+v", r.Failures)
			require.Len(t, *attempts, c.attempts)
			for _, got := range *attempts {
				require.Contains(t, got, c.want)
			}
		})
	}
}

// A program in WebAssembly itself has none of a language's own bounds.
func TestModulesEnd(t *testing.T) {
	for _, c := range []struct {
		name, body string
		compute    time.Duration
		verdict    sim.Verdict
		want       string
	}{
		{"a call of itself", "\x10\x00\x0b", 0, sim.HandlerCrash, "the handler crashed: stack overflow"},
		{"a loop", "\x03\x40\x0c\x00\x0b\x0b", 100 * time.Millisecond, sim.Budget, "it computed for 100ms of the host's time without a sleep"},
		{"memory that is refused", "\x03\x40\x41\x01\x40\x00\x41\x00\x4e\x0d\x00\x0b\x0b", 0, sim.Budget, "it asked for more than 1 MiB of memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := "\x00" + c.body
			code = "\x01" + string(rune(len(code))) + code
			wasm := module("\x03\x02\x01\x00" + "\x05\x03\x01\x00\x01" + "\x07\x13\x02\x06_start\x00\x00\x06memory\x02\x00" + "\x0a" + string(rune(len(code))) + code)
			p, err := Compile(t.Context(), "my.wasm", wasm, Limits{Compute: c.compute, Memory: 1 << 20})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, p.Close(context.Background())) })
			s, attempts := job("", p)
			r := ran(t, s)
			require.Equal(t, c.verdict, r.Verdict, "%+v", r.Failures)
			require.Contains(t, (*attempts)[0], c.want)
		})
	}
}

// A program has what there is to know of its job, and of the world only its time.
func TestProgramsSeeTheirJob(t *testing.T) {
	s, attempts := job("environment", compiled())
	s.Schedules[0].Priority = 7
	ran(t, s)
	require.Equal(t, strings.Join([]string{
		"exit code 1: TICKONCE_JOB=1", "TICKONCE_SCHEDULE=a", "TICKONCE_QUEUE=q",
		"TICKONCE_BOUNDARY=2026-01-01T01:00:00Z", "TICKONCE_DEADLINE=2026-01-01T01:05:00Z",
		"TICKONCE_ATTEMPT=1", "TICKONCE_MAX_ATTEMPTS=3", "TICKONCE_PRIORITY=7", "TICKONCE_LAST_ERROR=",
		"[program.wasm] 2026-01-01 01:00:00 +0000 UTC", "open /: Bad file number",
	}, "\n"), (*attempts)[0])
	require.Contains(t, (*attempts)[1], "TICKONCE_ATTEMPT=2\n")
	require.Contains(t, (*attempts)[1], "TICKONCE_LAST_ERROR=exit code 1: TICKONCE_JOB=1\n")
}

// The wall clock jumps with that of the process, the monotonic one does not, and
// both stand still with a paused one only as long as the program does.
func TestProgramsSleepInVirtualTime(t *testing.T) {
	s, attempts := job("sleep", compiled(), sim.Fault{Kind: sim.FaultClockJump, At: time.Hour + 30*time.Second, By: time.Hour, Runner: 1},
		sim.Fault{Kind: sim.FaultPause, At: time.Hour + time.Minute, For: time.Minute, Runner: 1})
	s.Engine.Runners = 2
	s.Queues = []sim.Queue{{Name: "q", Workers: 1}}
	ran(t, s)
	require.Contains(t, *attempts, "exit code 1: 1h2m0s 2m0s")
}

// An instance is gone with its process, in the middle of a sleep.
func TestProgramsEndWithTheirProcess(t *testing.T) {
	s, attempts := job("sleep", compiled(), sim.Fault{Kind: sim.FaultCrash, At: time.Hour + 30*time.Second, For: time.Second, Restart: sim.FromJournal})
	s.Schedules[0].MaxAttempts = 2
	r := ran(t, s)
	require.Equal(t, sim.Pass, r.Verdict, "%+v", r.Failures)
	require.Len(t, *attempts, 2)
	require.Contains(t, (*attempts)[0], "abandoned")
	require.Equal(t, "exit code 1: 1m30s 1m30s", (*attempts)[1])
}

// What a program leaves to chance is the seed's to decide, compiled or
// interpreted: what it draws, the order of a map, the case of a select. The order
// in which goroutines begin, and wake from equal sleeps, is not.
func TestProgramsRepeat(t *testing.T) {
	const order = " [0 1 2 3 4 5] [0 5 4 3 2 1]"
	draw := func(p *Program, seed uint64) []string {
		s, attempts := job("draw", p)
		s.Engine.Seed = seed
		r := ran(t, s)
		require.Equal(t, sim.Pass, r.Verdict)
		return append(*attempts, r.Digest.String())
	}
	interpreted := program(t, Limits{}, wazero.NewRuntimeConfigInterpreter())
	seen := [3]map[string]bool{{}, {}, {}}
	for seed := range uint64(4) {
		drawn := draw(compiled(), seed)
		require.Equal(t, drawn, draw(compiled(), seed))
		require.Equal(t, drawn, draw(interpreted, seed))
		for _, attempt := range drawn[:3] {
			chance, fixed := attempt[:len(attempt)-len(order)], attempt[len(attempt)-len(order):]
			require.Equal(t, order, fixed)
			for i, part := range strings.SplitN(strings.ReplaceAll(chance, " [", "|["), "|", 3) {
				seen[i][part] = true
			}
		}
	}
	require.Len(t, seen[0], 12)
	require.Greater(t, len(seen[1]), 1)
	require.Greater(t, len(seen[2]), 6)
}

func TestCompileSaysWhatItFound(t *testing.T) {
	const function, code = "\x03\x02\x01\x00", "\x0a\x04\x01\x02\x00\x0b"
	for _, c := range []struct {
		name string
		wasm []byte
		want string
	}{
		{"nothing", nil, "found an empty file, want a program compiled to WebAssembly for WASI preview 1"},
		{"a text", []byte("simulate v1\nrun 1d"), `found no WebAssembly, but what begins with "simulate v1\nrun ", want a program`},
		{"a cut header", []byte("\x00asm\x01"), "found a WebAssembly module that is cut off after 5 bytes, want a program"},
		{"a component", []byte("\x00asm\x0d\x00\x01\x00"), "found a WebAssembly component, as for WASI preview 2, want a program"},
		{"another version", []byte("\x00asm\x02\x00\x00\x00"), "found WebAssembly of version 2, want 1"},
		{"a cut module", module("\x03\x02\x01"), "found a WebAssembly module that is not valid"},
		{"a module for js", importing("gojs", "runtime.wasmExit"), "found a Go program for GOOS=js, want a program"},
		{"the WASI before the first", importing("wasi_unstable", "fd_write"), "imports wasi_unstable.fd_write, which is not there"},
		{"a host's own functions", importing("env", "f"), "imports env.f, which is not there"},
		{"what the WASI does not have", importing("wasi_snapshot_preview1", "sock_open"), "imports wasi_snapshot_preview1.sock_open, which is not there"},
		{"no program", module(""), "found a module that does not export _start"},
		{"a library", module(function + "\x07\x0f\x01\x0b_initialize\x00\x00" + code), "found a library, which exports _initialize"},
		{"a program without memory", module(function + "\x07\x0a\x01\x06_start\x00\x00" + code), "found a program that does not export its memory"},
		{
			"a program with too much of it", module(function + "\x05\x04\x01\x00\x80\x40" + "\x07\x13\x02\x06_start\x00\x00\x06memory\x02\x00" + code),
			"found a program that begins with 512 MiB of memory, want at most 256 MiB",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Compile(t.Context(), "my.wasm", c.wasm, Limits{})
			require.Nil(t, p)
			require.ErrorContains(t, err, "my.wasm: ")
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "my.wasm: found "), err)
		})
	}
}

// module is a module of one type of function, that takes and returns nothing, and
// these sections.
func module(sections string) []byte {
	return []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + sections)
}

func importing(from, name string) []byte {
	text := func(s string) string { return string(rune(len(s))) + s }
	section := "\x01" + text(from) + text(name) + "\x00\x00"
	return module("\x02" + text(section))
}
