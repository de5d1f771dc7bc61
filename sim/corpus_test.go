package sim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCorpus runs the scenarios that are kept, before the tests that draw seeds:
// each comes to what it expects and to its recorded outcome, none of its faults
// is there in vain, and for each mark of the catalogue there is one. What to do
// about a file that does not is said by: simulate corpus check
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/corpus/*.sim")
	require.NoError(t, err)
	kept := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		s := parsed(t, string(text))
		r, err := Run(*s)
		require.NoError(t, err)
		require.Equal(t, Pass, r.Verdict, "%s: %+v %v", file, r.Failures, r.Unmet)
		require.Equal(t, s.Outcome, r.Outcome(), file)
		for i := range r.Faults {
			require.Positive(t, r.Faults[i].Effect, "%s: %s", file, r.Faults[i].Text)
		}
		for _, e := range s.Expect {
			kept[e.Mark] = true
		}
	}
	for _, id := range markIDs() {
		require.True(t, kept[id], "no file is kept for the mark %s: simulate shrink --keep sometimes:%s", id, id)
	}
}
