package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for m, entry := range catalogue {
		require.NotEmpty(t, entry.id)
		require.NotEmpty(t, entry.about, entry.id)
		require.False(t, seen[entry.id], entry.id)
		require.Equal(t, entry.id, quote(entry.id), "an id is a bare word")
		seen[entry.id] = true
		found, ok := markOf(entry.id)
		require.True(t, ok)
		require.Equal(t, mark(m), found)
	}
	_, ok := markOf("no such mark")
	require.False(t, ok)
}

// TestTheManualHasEveryWord: the package comment lists the coverage marks with
// their meanings, and the verdicts with their exit codes.
func TestTheManualHasEveryWord(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var marks, verdicts strings.Builder
	for _, m := range catalogue {
		fmt.Fprintf(&marks, "//\t%-24s  %s\n", m.id, m.about)
	}
	require.Contains(t, string(doc), marks.String())
	listed := regexp.MustCompile(`(?m)^//\t([a-z-]+) +([0-9])  [a-z]`).FindAllStringSubmatch(string(doc), -1)
	for _, words := range listed {
		fmt.Fprintf(&verdicts, "%s %s\n", words[1], words[2])
	}
	var want strings.Builder
	for v := range verdictWords {
		fmt.Fprintf(&want, "%s %d\n", Verdict(v), Verdict(v).ExitCode())
	}
	require.Equal(t, want.String(), verdicts.String())
}

func TestCoverage(t *testing.T) {
	var one, two Coverage
	one.sometimes(capHit, false)
	one.sometimes(capHit, true)
	two.sometimes(capHit, true)
	two.sometimes(deadLetter, false)
	require.True(t, one.reached(capHit))
	require.False(t, two.reached(deadLetter), "looked at is not reached")

	ab, ba := one, two
	ab.Add(&two)
	ba.Add(&one)
	require.Equal(t, ab, ba)

	list := ab.Marks()
	require.Len(t, list, int(marks), "what was never looked at shows, too")
	for _, r := range list {
		switch r.ID {
		case "cap-hit":
			require.Equal(t, [2]int64{3, 2}, [2]int64{r.Evaluated, r.Reached})
		case "dead-letter":
			require.Equal(t, [2]int64{1, 0}, [2]int64{r.Evaluated, r.Reached})
		default:
			require.Equal(t, [2]int64{}, [2]int64{r.Evaluated, r.Reached}, r.ID)
		}
	}
}

func TestVerdict(t *testing.T) {
	want := []string{"pass", "bad-input", "safety", "liveness", "nondeterministic", "vacuous", "budget", "handler-crash"}
	for code, word := range want {
		require.Equal(t, word, Verdict(code).String())
		require.Equal(t, code, Verdict(code).ExitCode())
	}
	require.Equal(t, "unmet", Unmet.String())
	require.Equal(t, Safety.ExitCode(), Unmet.ExitCode())
	require.Equal(t, "verdict(9)", Verdict(9).String())
	text, err := json.Marshal(map[string]Verdict{"verdict": Safety})
	require.NoError(t, err)
	require.JSONEq(t, `{"verdict": "safety"}`, string(text))
	require.Equal(t, HandlerCrash, Verdict(7))
}
