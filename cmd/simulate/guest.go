package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/sim/guest"
)

// guests are the programs that a command runs as handlers, of the flag --guest,
// in the order of their schedules' names.
type guests []given

// given is one of them: the handler of a schedule, or without a name of all that
// have none of their own.
type given struct {
	Schedule string `json:"schedule"`
	File     string `json:"file"`
	Sum      string `json:"sha256"` // of the file; "" until it is compiled
	program  *guest.Program
}

func (g *given) String() string {
	if g.Schedule == "" {
		return g.File
	}
	return g.Schedule + "=" + g.File
}

// addGuests adds the flag --guest.
func (c *input) addGuests(cmd *cobra.Command) {
	cmd.Flags().Var(&c.guests, "guest", "a program compiled to WebAssembly as the handler of a schedule, or without a name of all others")
	completeExt(cmd, "guest", "wasm")
}

// flags are the flags as they were given.
func (g guests) flags() (words []string) {
	for i := range g {
		words = append(words, "--guest", shellWord(g[i].String()))
	}
	return words
}

func (g *guests) String() string { return "" }

func (*guests) Type() string { return "[NAME=]FILE" }

func (g *guests) Set(text string) error {
	name, file, named := strings.Cut(text, "=")
	if !named {
		name, file = "", text
	}
	if file == "" || named && name == "" || g.of(name) != nil && g.of(name).Schedule == name {
		return fmt.Errorf("--guest: found %q, want FILE, or NAME=FILE of a schedule, once of each", text)
	}
	*g = append(*g, given{Schedule: name, File: file})
	slices.SortFunc(*g, func(a, b given) int { return cmp.Compare(a.Schedule, b.Schedule) })
	return nil
}

// of is the one for the schedule, or nil.
func (g guests) of(schedule string) (found *given) {
	for i := range g {
		if g[i].Schedule == "" || g[i].Schedule == schedule {
			found = &g[i] // the one of no name is the first
		}
	}
	return found
}

// handle has the programs be the handlers of the scenario, in the place of what it
// says of them. They are to be closed when it has run.
func (g guests) handle(s *sim.Scenario) error {
	for i := range g {
		named := func(o sim.Schedule) bool { return o.Name == g[i].Schedule }
		if g[i].Schedule != "" && !slices.ContainsFunc(s.Schedules, named) {
			return fmt.Errorf("--guest: found %q, which is no schedule of the scenario", g[i].String())
		}
		if err := g.compile(&g[i]); err != nil {
			return fmt.Errorf("--guest: %w", err)
		}
	}
	s.Handlers = sim.Handlers{}
	for i := range s.Schedules {
		if one := g.of(s.Schedules[i].Name); one != nil {
			s.Schedules[i].Handler, s.Handlers[s.Schedules[i].Name] = sim.Handler{}, one.program.Handle
		}
	}
	return nil
}

// mostGuest is how large a module may be.
const mostGuest = 256 << 20

func (g guests) compile(one *given) error {
	if i := slices.IndexFunc(g, func(o given) bool { return o.File == one.File && o.program != nil }); i >= 0 {
		one.program, one.Sum = g[i].program, g[i].Sum
		return nil
	}
	f, err := os.Open(one.File)
	if err != nil {
		return err
	}
	defer f.Close()
	wasm, err := io.ReadAll(io.LimitReader(f, mostGuest+1))
	switch {
	case err != nil:
		return err
	case len(wasm) > mostGuest:
		return fmt.Errorf("%s: found more than %d MiB, want a program in WebAssembly of at most so much", one.File, mostGuest>>20)
	}
	sum := sha256.Sum256(wasm)
	one.Sum = hex.EncodeToString(sum[:])
	one.program, err = guest.Compile(context.Background(), one.File, wasm, guest.Limits{})
	return err
}

// close frees the programs.
func (g guests) close() {
	for i := range g {
		if g[i].program != nil {
			_ = g[i].program.Close(context.Background())
		}
	}
}

// sameAs reports whether the others are the same programs for the same schedules,
// wherever their files are.
func (g guests) sameAs(others guests) bool {
	return slices.EqualFunc(g, others, func(a, b given) bool { return a.Schedule == b.Schedule && a.Sum == b.Sum })
}

// words are the programs as they were given, or words for there being none.
func (g guests) words() string {
	if len(g) == 0 {
		return "no programs"
	}
	words := make([]string, len(g))
	for i := range g {
		words[i] = fmt.Sprintf("%s (sha256 %s)", &g[i], g[i].Sum)
	}
	return strings.Join(words, ", ")
}

// in says which programs are handlers in the scenario, line by line.
func (g guests) in(s *sim.Scenario) string {
	var b strings.Builder
	for i := range s.Schedules {
		if name := s.Schedules[i].Name; s.Handlers[name] != nil {
			fmt.Fprintf(&b, "%s%q sha256 %s\n", guestWord, name, g.of(name).Sum)
		}
	}
	return b.String()
}

// guestWord begins the lines of an outcome that name programs.
const guestWord = "guest    "

// outcome is the outcome of a run of the scenario as it is recorded: what the
// programs were stands before what the run came to.
func (g guests) outcome(s *sim.Scenario, r *sim.Result) string { return g.in(s) + r.Outcome() }

// recordedGuests are the lines of a recorded outcome that name programs.
func recordedGuests(outcome string) string {
	rest := outcome
	for strings.HasPrefix(rest, guestWord) {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	return outcome[:len(outcome)-len(rest)]
}

// textOf is the scenario as a file has it: which programs are its handlers is
// said by the flag alone.
func textOf(s sim.Scenario) string {
	s.Handlers = nil
	return s.String()
}
