package main

import (
	"bytes"
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const root = ".."

func patches(t *testing.T) []mutant {
	mutants, err := load("patches")
	require.NoError(t, err)
	require.NotEmpty(t, mutants)
	return mutants
}

// TestPatchesApply: every patch applies to the tree, changes each file that it
// names, and leaves it Go; so that the campaign does not begin with one that
// has gone stale.
func TestPatchesApply(t *testing.T) {
	for _, m := range patches(t) {
		folder := t.TempDir()
		_, err := m.plant(root, folder)
		require.NoError(t, err, m.Name)
		for _, file := range m.files {
			before, err := os.ReadFile(filepath.Join(root, file))
			require.NoError(t, err, m.Name)
			after, err := os.ReadFile(filepath.Join(folder, file))
			require.NoError(t, err, m.Name)
			require.NotEqual(t, string(before), string(after), "%s changes nothing in %s", m.Name, file)
			require.NotContains(t, file, "_test.go", "%s breaks a test", m.Name)
			if strings.HasPrefix(file, npmFolder+"/") {
				require.Regexp(t, "^"+npmFolder+`/src/.*\.ts$`, file, m.Name)
				require.Equal(t, []string{npmFolder}, m.Tests, "%s is seen by the tests of the npm package alone", m.Name)
				require.NotEmpty(t, m.Unseen, "%s: the simulator has no JavaScript", m.Name)
				continue
			}
			_, err = parser.ParseFile(token.NewFileSet(), file, after, parser.SkipObjectResolution)
			require.NoError(t, err, m.Name)
		}
	}
}

// TestPatchesNameWhatThereIs: the rules of a patch are the contract's, its
// packages have tests, and the canary is there.
func TestPatchesNameWhatThereIs(t *testing.T) {
	contract, err := os.ReadFile(filepath.Join(root, "docs", "CONTRACT.md"))
	require.NoError(t, err)
	rules := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ((?:[A-Z]+\d+ ?)+)\|`).FindAllStringSubmatch(string(contract), -1) {
		for _, id := range strings.Fields(row[1]) {
			rules[id] = true
		}
	}
	names := map[string]bool{}
	for _, m := range patches(t) {
		names[m.Name] = true
		for _, id := range m.Rules {
			require.True(t, rules[id], "%s: %s is no rule of the contract", m.Name, id)
		}
		for _, folder := range m.Tests {
			pattern := "*_test.go"
			if folder == npmFolder {
				pattern = "test/*.test.ts"
			}
			tests, err := filepath.Glob(filepath.Join(root, folder, pattern))
			require.NoError(t, err)
			require.NotEmpty(t, tests, "%s: %s has no tests", m.Name, folder)
		}
	}
	require.True(t, names[canaryName])
	require.False(t, names[unchangedName], "the name of what changes nothing")
}

const patch = `Description: Nothing is as
 it was.
Rules: T6 T9
Tests: internal/core .
Simulator: it looks away

--- a/spec.go
+++ b/spec.go
@@ -1 +1 @@
-a
+b
`

func TestParse(t *testing.T) {
	m, err := parse([]byte(patch))
	require.NoError(t, err)
	require.Equal(t, "Nothing is as it was.", m.Description)
	require.Equal(t, []string{"T6", "T9"}, m.Rules)
	require.Equal(t, []string{"internal/core", "."}, m.Tests)
	require.Equal(t, "it looks away", m.Unseen)
	require.Equal(t, []string{"spec.go"}, m.files)
	require.Equal(t, patch[strings.Index(patch, "---"):], string(m.patch))
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ old, becomes, fault string }{
		"no rules":         {"Rules: T6 T9\n", "", "want Description, Rules and Tests"},
		"no tests":         {"Tests: internal/core .\n", "", "want Description, Rules and Tests"},
		"no description":   {"Description: Nothing is as\n it was.\n", "", "want Description, Rules and Tests"},
		"an unknown field": {"Rules:", "Rule:", "unknown field Rule"},
		"no patch":         {"+++ b/spec.go", "", "no file is patched"},
		"no end of head":   {patch[strings.Index(patch, "\n\n"):], "", "no empty line"},
		"no field":         {"Rules: T6 T9", "Rules T6 T9", "malformed"},
	} {
		require.Contains(t, patch, c.old, name)
		_, err := parse([]byte(strings.Replace(patch, c.old, c.becomes, 1)))
		require.ErrorContains(t, err, c.fault, name)
	}
}

// TestPlantRefusesAStalePatch: what does not fit the tree is an error, and
// never guessed.
func TestPlantRefusesAStalePatch(t *testing.T) {
	tree := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tree, "spec.go"), []byte("c\n"), 0o644))
	m, err := parse([]byte(patch))
	require.NoError(t, err)
	_, err = m.plant(tree, t.TempDir())
	require.ErrorContains(t, err, "git apply")
	m.files = []string{"gone.go"}
	_, err = m.plant(tree, t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestPlantLeavesTheTree: the patch goes to a copy, and the overlay points there.
func TestPlantLeavesTheTree(t *testing.T) {
	tree, folder := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tree, "spec.go"), []byte("a\n"), 0o644))
	m, err := parse([]byte(patch))
	require.NoError(t, err)
	overlay, err := m.plant(tree, folder)
	require.NoError(t, err)
	text, err := os.ReadFile(overlay)
	require.NoError(t, err)
	require.JSONEq(t, `{"Replace": {"`+filepath.Join(tree, "spec.go")+`": "`+filepath.Join(folder, "spec.go")+`"}}`, string(text))
	for path, want := range map[string]string{filepath.Join(tree, "spec.go"): "a\n", filepath.Join(folder, "spec.go"): "b\n"} {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

// TestJudge: the first test that fails is the one that killed, and how it did is
// read from what it said.
func TestJudge(t *testing.T) {
	type event struct{ Action, Test, Output string }
	says := func(test, output string) event { return event{"output", test, output + "\n"} }
	fails := func(test string) event { return event{Action: "fail", Test: test} }
	for _, c := range []struct {
		name   string
		events []event
		want   *kill
	}{
		{"all pass", []event{{Action: "start"}, {"output", "TestA", "--- PASS: TestA (0.00s)\n"}, {"pass", "TestA", ""}, {Action: "pass"}}, nil},
		{"no tests", []event{{Action: "start"}, {Action: "pass"}}, nil},
		{
			"the first that fails",
			[]event{says("TestA/edge", "    --- FAIL: TestA/edge (0.00s)"), fails("TestA/edge"), fails("TestA"), fails("TestB"), fails("")},
			&kill{Test: "TestA/edge", How: failed},
		},
		{"a failure before a hang", []event{says("TestA", "--- FAIL: TestA (0.00s)")}, &kill{Test: "TestA", How: failed}},
		{
			"a panic of the test",
			[]event{says("TestA/edge", "    --- FAIL: TestA/edge (0.00s)"), says("TestA", "--- FAIL: TestA (0.00s)"), says("TestA", "panic: nil map"), fails("TestA"), fails("")},
			&kill{Test: "TestA/edge", How: panicked},
		},
		{"a panic of a goroutine", []event{says("TestA", "panic: nil map"), fails("TestA"), fails("")}, &kill{Test: "TestA", How: panicked}},
		{"a deadlock", []event{says("TestA", "fatal error: all goroutines are asleep - deadlock!"), fails("TestA")}, &kill{Test: "TestA", How: panicked}},
		{
			"a panic that is only told of",
			[]event{says("TestA", "    panic: told"), says("TestA", "--- FAIL: TestA (0.00s)"), fails("TestA")},
			&kill{Test: "TestA", How: failed},
		},
		{
			"a hang",
			[]event{says("TestA", "panic: test timed out after 2m0s"), says("TestA", "panic: again"), fails("TestA"), fails("")},
			&kill{Test: "TestA", How: timedOut},
		},
		{"outside a test", []event{says("", "exit status 3"), fails("")}, &kill{How: failed}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told bytes.Buffer
			for _, e := range c.events {
				require.NoError(t, json.NewEncoder(&told).Encode(e))
			}
			calls := 0
			got, err := judge(&told, func() { calls++ })
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, c.want != nil, calls == 1, "the end is announced once")
		})
	}
	_, err := judge(strings.NewReader("no event"), func() {})
	require.Error(t, err)
}

func TestSweepIsRead(t *testing.T) {
	var f found
	require.NoError(t, f.read([]byte(`{"failures": [{"verdict": "safety", "what": "fence", "seeds": [7, 9]}, {"verdict": "liveness", "seeds": [2]}]}`)))
	require.Equal(t, found{Seed: 7, Why: "safety: fence"}, f)
	require.NoError(t, f.read([]byte(`{"failures": [{"verdict": "budget", "what": "budget", "seeds": [1]}]}`)))
	require.Equal(t, found{Seed: 1, Why: "budget"}, f)
	require.ErrorContains(t, f.read([]byte(`{"failures": []}`)), "no seed failed")
	require.Error(t, f.read(nil))
}

// TestSuite: what a patch does to a module of one function is told as what it
// is, by tests that run under its overlay.
func TestSuite(t *testing.T) {
	tree := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module small\n\ngo 1.26\n",
		"answer.go": "package small\n\nfunc answer() int { return 42 }\n",
		"answer_test.go": `package small

import "testing"

func TestAnswer(t *testing.T) {
	t.Run("is 42", func(t *testing.T) {
		if answer() != 42 {
			t.Fail()
		}
	})
}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644))
	}
	for _, c := range []struct {
		name, answer string
		timeout      time.Duration
		want         *kill
		err          string
	}{
		{"no bug", "return 6 * 7", time.Minute, nil, ""},
		{"a bug", "return 43", time.Minute, &kill{Package: ".", Test: "TestAnswer/is_42", How: failed}, ""},
		{"a panic", "panic(42)", time.Minute, &kill{Package: ".", Test: "TestAnswer/is_42", How: panicked}, ""},
		{"a hang", "select {}", time.Second, &kill{Package: ".", Test: "TestAnswer/is_42", How: timedOut}, ""},
		{"no Go", "return x", time.Minute, nil, "undefined: x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mutant{files: []string{"answer.go"}, patch: []byte("--- a/answer.go\n+++ b/answer.go\n@@ -3 +3 @@\n" +
				"-func answer() int { return 42 }\n+func answer() int { " + c.answer + " }\n")}
			folder := t.TempDir()
			overlay, err := m.plant(tree, folder)
			require.NoError(t, err)
			s := suite{root: tree, timeout: c.timeout}
			got, err := s.run(t.Context(), overlay, folder, []string{"."})
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// TestCanariesDecide: a campaign whose canaries misbehave shows nothing, and
// says so.
func TestCanariesDecide(t *testing.T) {
	killed := &kill{Package: ".", Test: "TestA", How: failed}
	seen, missed := &found{Scenario: "a.sim", Seed: 3, Seeds: 500, Why: "safety: fence"}, &found{Seeds: 500}
	for _, c := range []struct {
		name              string
		unchanged, canary result
		fault             string
	}{
		{"as they should", result{Found: missed}, result{Killed: killed, Found: seen}, ""},
		{"without the simulator", result{}, result{Killed: killed}, ""},
		{"the tree fails its tests", result{Killed: killed}, result{Killed: killed}, "the tree without a bug fails: TestA in ."},
		{"the tree fails the simulator", result{Found: seen}, result{Killed: killed, Found: seen}, "fails the simulator: seed 3 of a.sim, safety: fence"},
		{"the tree does not compile", result{Error: "undefined: x"}, result{Killed: killed}, "could not be tried"},
		{"no test sees the canary", result{}, result{}, "the canary survives the tests"},
		{"the simulator does not see it", result{Found: missed}, result{Killed: killed, Found: missed}, "the canary survives the simulator"},
		{"the canary does not apply", result{}, result{Error: "git apply"}, "the canary could not be tried"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := misbehaved(&c.unchanged, &c.canary); c.fault == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.fault)
			}
		})
	}
}

func TestWithCanaries(t *testing.T) {
	all := withCanaries([]mutant{{Name: "a", Tests: []string{"sim", "."}}, {Name: canaryName, Tests: []string{"."}}, {Name: "z"}})
	require.Equal(t, []mutant{
		{Name: unchangedName, Description: "Nothing is changed.", Tests: []string{".", "sim"}},
		{Name: canaryName, Tests: []string{"."}},
		{Name: "a", Tests: []string{"sim", "."}},
		{Name: "z"},
	}, all)
}

func TestChoose(t *testing.T) {
	all := []mutant{{Name: canaryName}, {Name: "cap-65"}, {Name: "no-fence"}}
	names := func(mutants []mutant) (list []string) {
		for _, m := range mutants {
			list = append(list, m.Name)
		}
		return list
	}
	for _, c := range []struct {
		patterns, want []string
		fault          string
	}{
		{nil, []string{canaryName, "cap-65", "no-fence"}, ""},
		{[]string{"cap-*"}, []string{canaryName, "cap-65"}, ""},
		{[]string{"cap-65", "no-*"}, []string{canaryName, "cap-65", "no-fence"}, ""},
		{[]string{"cap-65", "cap-66"}, nil, `no mutant matches "cap-66"`},
	} {
		got, err := choose(all, c.patterns)
		if c.fault != "" {
			require.EqualError(t, err, c.fault)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, names(got))
	}
}

// TestReport: what the table, the line of the summary and the end of the
// command say follows from the results alone.
func TestReport(t *testing.T) {
	results := []result{
		{Mutant: unchangedName, Found: &found{Seeds: 500}},
		{Mutant: canaryName, Rules: []string{"T2"}, Killed: &kill{Package: ".", Test: "TestA", How: failed}, Found: &found{Seed: 1, Seeds: 500}},
		{Mutant: "a", Rules: []string{"T5", "T7"}, Killed: &kill{Package: "sim", Test: "TestB", How: timedOut}, Found: &found{Seed: 7, Seeds: 500}},
		{Mutant: "b", Rules: []string{"T6"}, Found: &found{Seeds: 500}},
		{Mutant: "c", Rules: []string{"G1"}, Killed: &kill{Package: ".", Test: "TestC", How: failed}, Unseen: "refused before the run"},
		{Mutant: "d", Rules: []string{"G1"}, Error: "does not compile: x\ny"},
	}
	require.Equal(t, summary{Mutants: 4, Killed: 2, Survived: 1, Untried: 1, Found: 1, Missed: 1, Unseen: 1}, sum(results))
	require.Equal(t, "4 mutants: 2 killed, 1 survived, 1 could not be tried; the simulator found 1 of the 2 that it can see", sum(results).String())
	require.Equal(t, "1 mutant: 1 killed, 0 survived", summary{Mutants: 1, Killed: 1}.String())
	text := newTable(results).RenderMarkdown()
	for _, row := range []string{
		"| unchanged |  | survives |  | — not in 500 |",
		"| canary | T2 | TestA | . | 1 |",
		"| a | T5 T7 | TestB (timed out) | sim | 7 |",
		"| b | T6 | survives |  | — not in 500 |",
		"| c | G1 | TestC | . | — refused before the run |",
		"| d | G1 | does not compile: x |  | — |",
	} {
		require.Contains(t, text, row)
	}
}

// TestTAPIsRead: what node --test says is read up to the end of the first failure.
func TestTAPIsRead(t *testing.T) {
	const passes = "TAP version 13\n# Subtest: a\nok 1 - a\n  ---\n  duration_ms: 1\n  ...\n"
	const fails = "# Subtest: D2 whole\n    # Subtest: seed 1\n    not ok 1 - issue \\#7 - seed 1\n      ---\n      failureType: 'testCodeFailure'\n      ...\n"
	for _, c := range []struct {
		name, told string
		want       *kill
	}{
		{"none fails", passes, nil},
		{"the first that fails", passes + fails + "not ok 2 - D2 whole\n", &kill{Test: "issue #7 - seed 1", How: failed}},
		{"a hang", "not ok 1 - a\n  ---\n  failureType: 'testTimeoutFailure'\n  ...\n", &kill{Test: "a", How: timedOut}},
		{"a failure that is cut", passes + "not ok 2 - b\n", &kill{Test: "b", How: failed}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, judgeTAP(strings.NewReader(c.told)))
		})
	}
}
