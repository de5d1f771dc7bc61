package tickonce_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "renew recorded outputs, as docs/CONTRACT.md's column of tests")

const contractFile = "docs/CONTRACT.md"

// Every rule, invariant and case of the contract has a test that carries its id,
// or says "not yet" and why; no test carries an id that the contract does not
// have; and the column of tests says what there is.
func TestContractNamesATestOfEachRule(t *testing.T) {
	text, err := os.ReadFile(contractFile)
	require.NoError(t, err)
	tests := testsByID(t)
	renewed := contractOf(string(text), tests, func(fault string) { t.Error(fault) })
	if *rewrite {
		require.NoError(t, os.WriteFile(contractFile, []byte(renewed), 0o644))
		return
	}
	if !bytes.Equal(text, []byte(renewed)) {
		t.Errorf("the tests in %s are not those there are; renew them: go test -run TestContract . -rewrite", contractFile)
	}
}

// The check is able to fail.
func TestContractCanary(t *testing.T) {
	const table = "| id | promise | tests |\n|---|---|---|\n"
	for _, c := range []struct{ name, text, fault string }{
		{"a rule without a test", table + "| T1 | due iff | |\n", "T1 has no test"},
		{"a test of an unknown rule", table + "| T2 | each | |\n", "TestT9Skip carries T9, which " + contractFile + " does not have"},
		{"not yet without a reason", table + "| T2 | each | |\n| T9 | skip | |\n| T3 | atomic | not yet: |\n", "T3 is said not to be there yet, without a reason"},
		{"not yet although it is", table + "| T2 | each | |\n| T9 | skip | not yet: later |\n", "T9 is said not to be there yet, but has a test"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var faults []string
			contractOf(c.text, map[string][]string{"T2": {"TestT2Each"}, "T9": {"TestT9Skip"}}, func(f string) { faults = append(faults, f) })
			require.Contains(t, faults, c.fault)
		})
	}
	tests := testsByID(t)
	require.Contains(t, tests["T6"], "TestT6C46C31SkippedBoundariesNeverFireAndTheGridStays")
	require.Contains(t, tests["C46"], "TestT6C46C31SkippedBoundariesNeverFireAndTheGridStays")
	require.Contains(t, tests["LK3"], "storetest “LK3 not another's, nor another term, nor another lock”")
	require.Contains(t, tests["I11"], "sim “11 durable”")
	require.Contains(t, tests["T3"], "sim “T3 guard”")
	require.Contains(t, tests["C100"], "wasm/js “C100 a boundary in 60 days is slept for in slices, and nothing fires until then”")
}

// contractOf is the text with the column of tests renewed.
func contractOf(text string, tests map[string][]string, fault func(string)) string {
	row := regexp.MustCompile(`^\| ((?:[A-Z]+\d+ ?)+)\|(.*)\|([^|]*)\|$`)
	known := map[string]bool{}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		ids := strings.Fields(m[1])
		var names []string
		for _, id := range ids {
			known[id] = true
			names = append(names, tests[id]...)
		}
		slices.Sort(names)
		names = slices.Compact(names)
		reason, notYet := strings.CutPrefix(strings.TrimSpace(m[3]), "not yet:")
		switch {
		case notYet && len(names) > 0:
			fault(ids[0] + " is said not to be there yet, but has a test")
		case notYet && strings.TrimSpace(reason) == "":
			fault(ids[0] + " is said not to be there yet, without a reason")
		case notYet:
			continue
		case len(names) == 0:
			fault(ids[0] + " has no test")
		}
		lines[i] = "| " + strings.Join(ids, " ") + " |" + m[2] + "| " + strings.Join(names, ", ") + " |"
	}
	var strangers []string
	for id, names := range tests {
		if !known[id] {
			strangers = append(strangers, names[0]+" carries "+id+", which "+contractFile+" does not have")
		}
	}
	slices.Sort(strangers)
	for _, stranger := range strangers {
		fault(stranger)
	}
	return strings.Join(lines, "\n")
}

var (
	ruleIDs    = regexp.MustCompile(`^(?:(?:[A-Z]{1,3}\d+)+)`)
	ruleID     = regexp.MustCompile(`[A-Z]{1,3}\d+`)
	suiteNames = regexp.MustCompile(`^(?:[A-Z]{1,3}\d+ )+`)
	nodeTests  = regexp.MustCompile(`(?m)^\s*(?:test|scenario)\("(((?:[A-Z]{1,3}\d+ )+)[^"]*)"`)
)

// testsByID finds the tests of all modules and of the npm package that carry ids
// in their names, the scenarios of the conformance suite, and what the simulator
// judges.
func testsByID(t *testing.T) map[string][]string {
	tests := map[string][]string{}
	add := func(ids, name string) {
		for _, id := range ruleID.FindAllString(ids, -1) {
			tests[id] = append(tests[id], name)
		}
	}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if filepath.Dir(path) == filepath.Join("wasm", "js", "test") {
			text, err := os.ReadFile(path)
			for _, m := range nodeTests.FindAllSubmatch(text, -1) {
				add(string(m[2]), "wasm/js “"+string(m[1])+"”")
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		suite, judges := filepath.Dir(path) == "storetest", filepath.Dir(path) == "sim"
		if !suite && !judges && !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if name, ok := strings.CutPrefix(n.Name.Name, "Test"); ok && n.Recv == nil {
					add(ruleIDs.FindString(name), n.Name.Name)
				}
			case *ast.KeyValueExpr:
				key, isName := n.Key.(*ast.Ident)
				value, isText := n.Value.(*ast.BasicLit)
				if suite && isName && isText && key.Name == "name" {
					name, _ := strconv.Unquote(value.Value)
					add(suiteNames.FindString(name), "storetest “"+name+"”")
				}
			case *ast.ValueSpec:
				if !judges || n.Names[0].Name != "rules" || len(n.Values) == 0 {
					return true
				}
				for _, rule := range n.Values[0].(*ast.CompositeLit).Elts {
					text := rule.(*ast.KeyValueExpr).Value.(*ast.CompositeLit).Elts[0].(*ast.BasicLit)
					name, _ := strconv.Unquote(text.Value)
					add(idOfInvariant(name), "sim “"+name+"”")
				}
			}
			return true
		})
		return nil
	})
	require.NoError(t, err)
	return tests
}

// idOfInvariant is the id at the beginning of what the simulator judges, as in
// "1 fires once" or "T3 guard". What bears none, as "no panic", is no promise
// of its own.
func idOfInvariant(name string) string {
	id, _, _ := strings.Cut(name, " ")
	if _, err := strconv.Atoi(id); err == nil {
		return "I" + id
	}
	return ruleIDs.FindString(id)
}
