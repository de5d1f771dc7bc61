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

func partOf(t *testing.T, text string, seeds sim.Seeds) *part {
	s, err := sim.Parse("a.sim", text)
	require.NoError(t, err)
	return &part{build: "git 1", file: "a.sim", seeds: seeds, SweepResult: newResult(s)}
}

// swept is the part with the seeds run.
func swept(p *part, asked sim.Seeds, c sweepCommand) *part {
	c.jobs = max(c.jobs, 2)
	if err := c.sweep(context.Background(), p, asked, func() {}); err != nil {
		panic(err)
	}
	return p
}

// TestSweepDoesNotDependOnJobs: however many runs are made at once, the result is
// the same.
func TestSweepDoesNotDependOnJobs(t *testing.T) {
	seeds := sim.Seeds{First: 3, Last: 20}
	for _, failFast := range []bool{false, true} {
		sum := swept(partOf(t, flaky, seeds), seeds, sweepCommand{jobs: 1, failFast: failFast})
		require.Positive(t, sum.Failed)
		for _, n := range []jobs{2, 100} {
			require.Equal(t, sum, swept(partOf(t, flaky, seeds), seeds, sweepCommand{jobs: n, failFast: failFast}))
		}
	}
}

// TestSweepFailsFast ends the sweep with the first seed that fails, whichever was found
// first, and goes no further when it is begun again.
func TestSweepFailsFast(t *testing.T) {
	seeds := sim.Seeds{First: 3, Last: 20}
	all := swept(partOf(t, flaky, seeds), seeds, sweepCommand{})
	require.Empty(t, all.done.gaps(seeds))
	first := all.Failures[0].Seeds[0]
	require.Greater(t, first, uint64(3), "of this scenario another seed than the first has to fail first")
	p := swept(partOf(t, flaky, seeds), seeds, sweepCommand{failFast: true})
	for range 2 {
		require.EqualValues(t, first-2, p.Runs)
		require.EqualValues(t, 1, p.Failed)
		require.Equal(t, []uint64{first}, p.Failures[0].Seeds)
		r := &sweepReport{part: p, asked: seeds, failFast: true}
		require.Equal(t, seedSet{{First: first + 1, Last: 20}}, r.rest())
		require.True(t, r.stopped())
		require.Equal(t, &failure{sim.Unmet}, r.end())
		swept(p, seeds, sweepCommand{failFast: true})
	}
	require.Equal(t, all, swept(p, seeds, sweepCommand{}), "without fail-fast it goes on to the end")
}

// interrupted sweeps until so many runs were made.
func interrupted(p *part, asked sim.Seeds, runs int64) {
	ctx, cancel := context.WithCancel(context.Background())
	(&sweepCommand{jobs: 3}).sweep(ctx, p, asked, func() {
		if p.Runs == runs {
			cancel()
		}
	})
}

// TestInterruptedSweepKeepsWhatWasFound: the runs under way end and count, what was not
// run is named, and both parts make the whole.
func TestInterruptedSweepKeepsWhatWasFound(t *testing.T) {
	seeds := sim.Seeds{First: 1, Last: 24}
	p := partOf(t, flaky, seeds)
	interrupted(p, seeds, 5)
	require.GreaterOrEqual(t, p.Runs, int64(5))
	require.Less(t, p.Runs, int64(20))
	r := &sweepReport{part: p, asked: seeds, goOn: []string{"this command"}}
	rest := seedSet{{First: uint64(p.Runs) + 1, Last: 24}}
	require.Equal(t, rest, r.rest())
	require.False(t, r.stopped())
	var b strings.Builder
	require.NoError(t, r.write(&b))
	require.Contains(t, b.String(), "interrupted; to go on:\n    this command\n")
	require.Equal(t, "simulate sweep a.sim --seeds "+rest.String(), (&sweepCommand{}).goOn(r))
	require.Equal(t, "simulate sweep a.sim --seeds 1..24 --shard 3/64 --state 'a b.json'",
		(&sweepCommand{shard: shard{3, 64}, state: "a b.json"}).goOn(r))

	require.Equal(t, swept(partOf(t, flaky, seeds), seeds, sweepCommand{}), swept(p, seeds, sweepCommand{}))
}

// TestUnfinishedSweepIsNoPass: what was to be met may come yet, and nothing is
// said about it.
func TestUnfinishedSweepIsNoPass(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := sweepCommand{seeds: seeds{sim.Seeds{First: 1, Last: 4}}, jobs: 1}
	c.stdout, c.stderr = io.Discard, io.Discard
	c.stdin = strings.NewReader(strings.ReplaceAll(flaky, "a.skipped=0", "sometimes:two-leaders"))
	require.Equal(t, errUnfinished, c.run(ctx, fromStdin))
	c.stdin = strings.NewReader(strings.ReplaceAll(flaky, "a.skipped=0", "sometimes:two-leaders"))
	require.Equal(t, &failure{sim.Vacuous}, c.run(t.Context(), fromStdin))
	c.shard = shard{2, 2}
	c.stdin = strings.NewReader(strings.ReplaceAll(flaky, "a.skipped=0", "sometimes:two-leaders"))
	require.NoError(t, c.run(t.Context(), fromStdin), "another shard may reach it")
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
