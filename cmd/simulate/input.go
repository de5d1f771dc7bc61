package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
)

// input is where a command has its scenario from.
type input struct {
	stdin  io.Reader
	swarm  swarm
	guests guests
	faults []string // that are added
}

const fromStdin = "-"

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d files came, want one: write %s FILE", len(args), cmd.CommandPath())
	}
	return nil
}

// addSwarm adds the flag --swarm.
func (c *input) addSwarm(cmd *cobra.Command) {
	cmd.Flags().Var(&c.swarm, "swarm", "faults drawn from the seed, in the place of the file's own, such as portfolio or \"faults=8..60 kinds=all,-handler\"")
	completeText(cmd, "swarm", func(_ sim.Scenario, text string) []string { return sim.CompleteSwarm(text) })
}

// addFaults adds the flag --fault.
func (c *input) addFaults(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&c.faults, "fault", nil, "what `FAULT` goes wrong beside what the file has, such as \"down for=10h at=2d\"; may be given several times")
	completeText(cmd, "fault", sim.Scenario.CompleteFault)
}

// withFaults is the scenario with the faults of the flag.
func (c *input) withFaults(s sim.Scenario) (sim.Scenario, error) {
	s.Faults = slices.Clone(s.Faults)
	for _, text := range c.faults {
		f, err := s.ParseFault(text)
		if err != nil {
			return s, fmt.Errorf("--fault %q: %w", text, err)
		}
		s.Faults = append(s.Faults, f)
	}
	return s, nil
}

// scenario reads the file, and gives it the swarm and the programs of the flags, if
// there are any. The programs are to be closed when it has run.
func (c *input) scenario(path string) (sim.Scenario, string, error) {
	text, err := c.read(path)
	if err != nil {
		return sim.Scenario{}, "", err
	}
	s, err := sim.Parse(printable(path), text)
	if err == nil && c.swarm.given {
		s = s.WithSwarm(c.swarm.Swarm)
		err = s.Validate()
	}
	if err == nil && len(c.guests) > 0 {
		err = c.guests.handle(&s)
	}
	return s, text, err
}

// read reads the file, but not much more than the longest one.
func (c *input) read(path string) (string, error) {
	in := c.stdin
	if path != fromStdin {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, sim.MaxFile+1))
	return string(text), err
}

// seed is a flag for a seed.
type seed struct {
	n     uint64
	given bool
}

func (*seed) Type() string { return "N" }

func (s *seed) String() string {
	if !s.given {
		return ""
	}
	return strconv.FormatUint(s.n, 10)
}

func (s *seed) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("--seed: found %q, want a whole number from 0 to %d", text, uint64(math.MaxUint64))
	}
	s.n, s.given = n, true
	return nil
}

// swarm is a flag for a swarm.
type swarm struct {
	sim.Swarm
	given bool
}

func (*swarm) Type() string { return "WORDS" }

func (s *swarm) Set(text string) (err error) {
	if s.Swarm, err = sim.ParseSwarm(text); err != nil {
		return fmt.Errorf("--swarm: %w", err)
	}
	s.given = true
	return nil
}

// seeds is a flag for a range of seeds.
type seeds struct{ sim.Seeds }

func (*seeds) Type() string { return "RANGE" }

func (s *seeds) Set(text string) (err error) {
	if s.Seeds, err = sim.ParseSeeds(text); err != nil {
		return fmt.Errorf("--seeds: %w", err)
	}
	return nil
}

// shard is a flag for one of several parts of the seeds.
type shard struct{ i, n uint64 }

func (*shard) Type() string { return "I/N" }

func (s *shard) String() string {
	if s.n == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.i, s.n)
}

func (s *shard) Set(text string) error {
	i, n, ok := strings.Cut(text, "/")
	var bad [2]error
	s.i, bad[0] = strconv.ParseUint(i, 10, 64)
	s.n, bad[1] = strconv.ParseUint(n, 10, 64)
	if !ok || errors.Join(bad[:]...) != nil || s.i < 1 || s.i > s.n {
		return fmt.Errorf("--shard: found %q, want I/N with I from 1 to N, such as 3/64", text)
	}
	return nil
}

// of are the seeds of the shard, or all if the flag was not given.
func (s *shard) of(all sim.Seeds) (sim.Seeds, error) {
	if s.n == 0 {
		return all, nil
	}
	seeds, err := all.Shard(s.i, s.n)
	if err != nil {
		err = fmt.Errorf("--shard: %w", err)
	}
	return seeds, err
}

// jobs is a flag for how many runs are made at once.
type jobs int

const mostJobs = 1024

func (*jobs) Type() string     { return "N" }
func (j *jobs) String() string { return strconv.Itoa(int(*j)) }

func (j *jobs) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostJobs {
		return fmt.Errorf("--jobs: found %q, want a whole number from 1 to %d", text, mostJobs)
	}
	*j = jobs(n)
	return nil
}
