package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
)

// engine is a flag for whether runs are made a second time, by the simulator as
// a WebAssembly module, and compared.
type engine struct {
	wasm bool
	file string // the module; "" for one that is built
}

const (
	engineNative = "native"
	engineWasm   = "wasm"
)

// addEngine adds the flag --engine.
func addEngine(cmd *cobra.Command, e *engine) {
	cmd.Flags().Var(e, "engine", "native, or wasm to also run the simulator compiled to WebAssembly, and compare")
	completeFlag(cmd, "engine", cobra.FixedCompletions([]string{
		engineNative + "\tthis program alone", engineWasm + "\talso the simulator compiled to WebAssembly, and compare",
	}, cobra.ShellCompDirectiveNoFileComp))
}

// aboutEngine is what a command's help says of the flag.
const aboutEngine = `With --engine wasm a run is made twice: by this program, and by the whole
simulator, engine and all, compiled to WebAssembly. They have to come to the
same digest; if not, the verdict is nondeterministic. That module is built by
the go command of the sources from which this program was built, and kept where
the system keeps caches; --engine wasm=FILE takes one that you have built.`

func (*engine) Type() string { return "native|wasm[=FILE]" }

func (e *engine) String() string {
	if e.file != "" {
		return e.word() + "=" + e.file
	}
	return e.word()
}

// word is the value of the flag without its file.
func (e *engine) word() string {
	if e.wasm {
		return engineWasm
	}
	return engineNative
}

func (e *engine) Set(text string) error {
	word, file, named := strings.Cut(text, "=")
	if named && file == "" || word != engineWasm && text != engineNative {
		return fmt.Errorf("--engine: found %q, want native, wasm, or wasm=FILE", text)
	}
	*e = engine{wasm: word == engineWasm, file: file}
	return nil
}

// flags are the flags as they were given.
func (e *engine) flags() []string {
	if !e.wasm {
		return nil
	}
	return []string{"--engine", shellWord(e.String())}
}

// open makes the module ready; it is nil without --engine wasm. It is to be closed.
func (e *engine) open(ctx context.Context, guests guests, stderr io.Writer) (*simulator, error) {
	switch {
	case !e.wasm:
		return nil, nil
	case len(guests) > 0:
		return nil, fmt.Errorf("--engine wasm and --guest exclude each other: a program in WebAssembly does not run another one")
	}
	arrived := patience(stderr, "the simulator is compiled to WebAssembly, which the next time takes less than a second")
	defer arrived()
	s, err := openSimulator(ctx, e.file)
	if err != nil {
		err = fmt.Errorf("--engine %s: %w", e, err)
	}
	return s, err
}

// second is a run that was made by the module.
type second struct {
	wall       time.Duration
	digest     string
	difference *difference // from this program's, or nil
}

// runSecond makes the run by the module. A difference is graver than all but a
// broken rule.
func (r *report) runSecond(ctx context.Context, s *simulator) error {
	begin := time.Now()
	outcome, err := s.ask(ctx, r.scenario)
	if err != nil {
		return err
	}
	r.second = &second{wall: time.Since(begin), digest: digestOf(outcome), difference: differenceOf(lines(r.Outcome()), lines(outcome))}
	if r.second.difference != nil && r.verdict != sim.Safety {
		r.verdict = sim.Nondeterministic
	}
	return nil
}

// digestOf is the digest in the last line of the module's answer.
func digestOf(answer string) string {
	return strings.TrimSpace(answer[strings.LastIndex(answer, digestWord)+len(digestWord):])
}

// words say how the two runs differ, or that they do not.
func (s *second) words() []string {
	d := s.difference
	if d == nil {
		return []string{fmt.Sprintf("compiled to WebAssembly, the simulator came to the same outcome and digest, in %s", span(s.wall.Round(time.Millisecond)))}
	}
	return []string{
		"compiled to WebAssembly, the simulator came to something else; " + builtAlike,
		whole + "native       " + d.was,
		whole + "WebAssembly  " + d.is,
	}
}

// builtAlike is what to look at first when the two differ.
const builtAlike = "if the sources have changed since either was built, build both anew"

// sweepSecond sweeps the seed by the module, and has r fail if that comes to another
// digest.
func (s *simulator) sweepSecond(ctx context.Context, seed uint64, r *sim.SweepResult) error {
	answer, err := s.ask(ctx, &r.Scenario, sim.Seeds{First: seed, Last: seed}.String())
	if err != nil {
		return fmt.Errorf("seed %d: %w", seed, err)
	}
	if native, digest := r.Digest.String(), digestOf(answer); digest != native && r.Verdict() != sim.Safety {
		r.Failed, r.Failures = 1, []sim.FailureGroup{{
			Verdict: sim.Nondeterministic, What: "WebAssembly", Runs: 1, Seeds: []uint64{seed},
			Detail: fmt.Sprintf("the digest is %s, that of the simulator compiled to WebAssembly %s; %s", native, digest, builtAlike),
		}}
	}
	return nil
}
