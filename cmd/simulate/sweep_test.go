package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/sim"
)

// flaky fails for some of the seeds, of those from 3 on the third is the first
// of them: an outage of more than 64 boundaries has some skipped.
const flaky = `simulate v1
run 2h quiet-after=100m
schedule a every=5s queue=q
swarm faults=2 kinds=down
expect a.skipped=0
`

func sweepOf(t *testing.T, text string, c sweepCommand) (*sweepCommand, sim.Scenario) {
	s, err := sim.Parse("a.sim", text)
	require.NoError(t, err)
	c.stdout, c.stderr = io.Discard, io.Discard
	return &c, s
}

func told(*sim.SweepResult) {}

// TestSweepDoesNotDependOnJobs: however many runs are made at once, the result is
// the same.
func TestSweepDoesNotDependOnJobs(t *testing.T) {
	for _, failFast := range []bool{false, true} {
		c, s := sweepOf(t, flaky, sweepCommand{seeds: seeds{sim.Seeds{First: 3, Last: 20}}, jobs: 1, failFast: failFast})
		sum, rest := c.sweep(t.Context(), s, told)
		require.Positive(t, sum.Failed)
		for _, c.jobs = range []jobs{2, 7, 100} {
			again, restAgain := c.sweep(t.Context(), s, told)
			require.Equal(t, sum, again)
			require.Equal(t, rest, restAgain)
		}
	}
}

// TestFailFast ends the sweep with the first seed that fails, whichever was found
// first.
func TestFailFast(t *testing.T) {
	c, s := sweepOf(t, flaky, sweepCommand{seeds: seeds{sim.Seeds{First: 3, Last: 20}}, jobs: 8})
	all, rest := c.sweep(t.Context(), s, told)
	require.Nil(t, rest)
	first := all.Failures[0].Seeds[0]
	require.Greater(t, first, uint64(3), "of this scenario another seed than the first has to fail first")
	c.failFast = true
	sum, rest := c.sweep(t.Context(), s, told)
	require.EqualValues(t, first-2, sum.Runs)
	require.EqualValues(t, 1, sum.Failed)
	require.Equal(t, []uint64{first}, sum.Failures[0].Seeds)
	require.Equal(t, &sim.Seeds{First: first + 1, Last: 20}, rest)
	r := &sweepReport{SweepResult: sum, command: c, rest: rest}
	require.True(t, r.stopped())
	require.False(t, r.interrupted())
}

// TestInterruptKeepsWhatWasFound: the runs under way end and count, what was not
// run is named, and both parts make the whole.
func TestInterruptKeepsWhatWasFound(t *testing.T) {
	c, s := sweepOf(t, flaky, sweepCommand{seeds: seeds{sim.Seeds{First: 1, Last: 400}}, jobs: 3})
	ctx, cancel := context.WithCancel(t.Context())
	sum, rest := c.sweep(ctx, s, func(r *sim.SweepResult) {
		if r.Runs == 5 {
			cancel()
		}
	})
	require.NotNil(t, rest)
	require.GreaterOrEqual(t, sum.Runs, int64(5))
	require.Less(t, sum.Runs, int64(100))
	require.Equal(t, &sim.Seeds{First: uint64(sum.Runs) + 1, Last: 400}, rest)

	r := &sweepReport{SweepResult: sum, command: c, rest: rest, file: "a.sim"}
	require.True(t, r.interrupted())
	var b strings.Builder
	require.NoError(t, r.write(&b))
	require.Contains(t, b.String(), "interrupted; to go on: simulate sweep a.sim --seeds "+rest.String()+"\n")

	c.seeds = seeds{sim.Seeds{First: 1, Last: uint64(sum.Runs)}}
	same, none := c.sweep(t.Context(), s, told)
	require.Nil(t, none)
	require.Equal(t, sum, same)
}

// TestInterruptedSweepIsNoPass: what was to be met may come yet, and nothing is
// said about it.
func TestInterruptedSweepIsNoPass(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, _ := sweepOf(t, flaky, sweepCommand{seeds: seeds{sim.Seeds{First: 1, Last: 4}}, jobs: 1})
	c.stdin = strings.NewReader(strings.ReplaceAll(flaky, "a.skipped=0", "sometimes:two-leaders"))
	require.Equal(t, errInterrupted, c.run(ctx, fromStdin))
	c.stdin = strings.NewReader(strings.ReplaceAll(flaky, "a.skipped=0", "sometimes:two-leaders"))
	require.Equal(t, &failure{sim.Vacuous}, c.run(t.Context(), fromStdin))
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{
		"a/b-c_1.sim":         "a/b-c_1.sim",
		"faults=8..60":        "faults=8..60",
		"faults=8 kinds=down": "'faults=8 kinds=down'",
		"it's":                `'it'\''s'`,
		"$(x)":                "'$(x)'",
		"":                    "''",
		"日本.sim":              "日本.sim",
		"a\x1b":               `'a\x1b'`,
	} {
		require.Equal(t, want, shellWord(in))
	}
}
