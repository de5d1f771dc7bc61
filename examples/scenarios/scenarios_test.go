package scenarios_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/sim"
)

// TestScenarios runs each file: it meets what the file expects and comes to
// its recorded outcome, and without -short does so twice in the same way. All
// digests make one, so that platforms are easily compared.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("*.sim")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	digests := make([]sim.Digest, len(files))
	t.Cleanup(func() {
		var all sim.Digest
		for _, d := range digests {
			all.Int(0, int64(d))
		}
		t.Logf("%d scenarios, digest %s", len(files), all)
	})
	for i, file := range files {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			scenario, err := sim.Parse(file, string(text))
			require.NoError(t, err)
			require.NotEmpty(t, scenario.Expect)

			first, err := sim.Run(scenario)
			require.NoError(t, err)
			require.Empty(t, first.Failures)
			require.Empty(t, first.Unmet)
			require.Equal(t, sim.Pass, first.Verdict)
			require.Equal(t, scenario.Outcome, first.Outcome(), "if this is meant: simulate run --rewrite %s", file)
			digests[i] = first.Digest

			if testing.Short() {
				return
			}
			second, err := sim.Run(scenario)
			require.NoError(t, err)
			require.Equal(t, first, second)
		})
	}
}

var portfolioSeeds = flag.Uint64("seeds", 100, "how many seeds of portfolio.sim make a digest")

// TestPortfolio logs the digest of the digests of many seeds, so that platforms are
// easily compared; simulate sweep prints the same one.
func TestPortfolio(t *testing.T) {
	const file = "portfolio.sim"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	scenario, err := sim.Parse(file, string(text))
	require.NoError(t, err)
	seeds := sim.Seeds{First: 1, Last: *portfolioSeeds}
	sweep, err := sim.Sweep(scenario, seeds)
	require.NoError(t, err)
	sweep.Require(t)
	t.Logf("seeds %s of %s, digest %s", seeds, file, sweep.Digest)
}

// TestInterleavings: whatever the seeds draw, every invariant holds, and of enough
// seeds one comes to each mark.
func TestInterleavings(t *testing.T) {
	const file = "interleavings.sim"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	scenario, err := sim.Parse(file, string(text))
	require.NoError(t, err)
	seeds := sim.Seeds{First: 1, Last: 300}
	if testing.Short() {
		seeds.Last = 30
		scenario.Expect = nil
	}
	sweep, err := sim.Sweep(scenario, seeds)
	require.NoError(t, err)
	sweep.Require(t)
}

// TestScenariosAreAsTheReadmeSays keeps the table of the files whole.
func TestScenariosAreAsTheReadmeSays(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	files, err := filepath.Glob("*.sim")
	require.NoError(t, err)
	for _, file := range files {
		require.Contains(t, string(readme), "["+file+"]("+file+")")
	}
}
