package sim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScenarioFiles runs the scenarios of the examples and checks what they
// expect.
func TestScenarioFiles(t *testing.T) {
	files, err := filepath.Glob("../examples/scenarios/*.sim")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		s, err := Parse(file, string(text))
		require.NoError(t, err)
		r, err := Run(s)
		require.NoError(t, err)
		require.Empty(t, r.Failures, file)
		require.Empty(t, r.Unmet, file)
		require.Equal(t, Pass, r.Verdict, file)
	}
}
