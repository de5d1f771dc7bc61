package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/sim/guest"
)

// guests are the programs that a command runs as handlers, of the flag --guest:
// by the names of schedules, or by "" of all the others.
type guests map[string]string

// add adds the flag --guest.
func (g *guests) add(cmd *cobra.Command) {
	cmd.Flags().Var(g, "guest", "a program compiled to WebAssembly as the handler of a schedule, or without a name of all others")
	completeExt(cmd, "guest", "wasm")
}

// flags are the flags as they were given.
func (g guests) flags() (words []string) {
	for _, name := range slices.Sorted(maps.Keys(g)) {
		text := g[name]
		if name != "" {
			text = name + "=" + text
		}
		words = append(words, "--guest", shellWord(text))
	}
	return words
}

func (g *guests) String() string { return "" }

func (*guests) Type() string { return "[NAME=]FILE" }

func (g *guests) Set(text string) error {
	name, file, ok := strings.Cut(text, "=")
	if !ok {
		name, file = "", text
	}
	if _, twice := (*g)[name]; twice || file == "" || ok && name == "" {
		return fmt.Errorf("--guest: found %q, want FILE, or NAME=FILE of a schedule, once of each", text)
	}
	if *g == nil {
		*g = guests{}
	}
	(*g)[name] = file
	return nil
}

// handle has the programs be the handlers of the scenario. They are to be closed
// when it has run.
func (g guests) handle(ctx context.Context, s *sim.Scenario) (io.Closer, error) {
	all := programs{}
	s.Handlers = sim.Handlers{}
	for i := range s.Schedules {
		schedule := &s.Schedules[i]
		file, named := g[schedule.Name]
		if !named {
			file = g[""]
		}
		if file == "" {
			continue
		}
		program, err := all.compiled(ctx, file)
		if err != nil {
			_ = all.Close()
			return nil, err
		}
		schedule.Handler, s.Handlers[schedule.Name] = sim.Handler{}, program.Handle
	}
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if s.Handlers[name] == nil && name != "" {
			_ = all.Close()
			return nil, fmt.Errorf("--guest: found %q, which is no schedule of the scenario", name+"="+g[name])
		}
	}
	return all, nil
}

// programs are those that are compiled, by their files.
type programs map[string]*guest.Program

// mostGuest is how large a module may be.
const mostGuest = 256 << 20

func (p programs) compiled(ctx context.Context, file string) (*guest.Program, error) {
	if p[file] != nil {
		return p[file], nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--guest: %w", err)
	}
	defer f.Close()
	wasm, err := io.ReadAll(io.LimitReader(f, mostGuest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--guest: %w", err)
	case len(wasm) > mostGuest:
		return nil, fmt.Errorf("--guest: %s: found more than %d MiB, want a program in WebAssembly of at most so much", file, mostGuest>>20)
	}
	program, err := guest.Compile(ctx, file, wasm, guest.Limits{})
	if err != nil {
		return nil, fmt.Errorf("--guest: %w", err)
	}
	p[file] = program
	return program, nil
}

// Close frees the programs.
func (p programs) Close() error {
	for _, file := range slices.Sorted(maps.Keys(p)) {
		if err := p[file].Close(context.Background()); err != nil {
			return err
		}
	}
	return nil
}
