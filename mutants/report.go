package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

func (k *kill) String() string {
	test := k.Test
	if test == "" {
		test = "the package"
	}
	if k.How != failed {
		test += ", which " + string(k.How)
	}
	return test + " in " + k.Package
}

// verdict says in a few words what became of the mutant.
func (r *result) verdict() string {
	switch {
	case r.Error != "":
		return "not tried: " + r.Error
	case r.Killed == nil:
		return "survived; " + r.seeds()
	default:
		return "killed by " + r.Killed.String() + "; " + r.seeds()
	}
}

// seeds says how many seeds the simulator needed.
func (r *result) seeds() string {
	switch {
	case r.Unseen != "":
		return "unseen: " + r.Unseen
	case r.Found == nil:
		return "no seeds"
	default:
		return r.Found.String()
	}
}

func (f *found) String() string {
	switch {
	case f.Hung:
		return "hung in " + f.Scenario
	case f.Seed == 0:
		return fmt.Sprintf("not in %d seeds", f.Seeds)
	default:
		return fmt.Sprintf("seed %d of %s, %s", f.Seed, f.Scenario, f.Why)
	}
}

// summary counts the results.
type summary struct {
	Mutants  int `json:"mutants"` // without the canaries
	Killed   int `json:"killed"`
	Survived int `json:"survived"`
	Untried  int `json:"untried"` // did not apply or compile
	Found    int `json:"found"`   // by the simulator
	Missed   int `json:"missed"`
	Unseen   int `json:"unseen"`
}

func sum(results []result) (s summary) {
	for i := range results {
		r := &results[i]
		if r.canary() {
			continue
		}
		s.Mutants++
		switch {
		case r.Error != "":
			s.Untried++
		case r.Killed != nil:
			s.Killed++
		default:
			s.Survived++
		}
		switch {
		case r.Unseen != "":
			s.Unseen++
		case r.Found != nil && r.Found.any():
			s.Found++
		case r.Found != nil:
			s.Missed++
		}
	}
	return s
}

func (r *result) canary() bool { return r.Mutant == unchangedName || r.Mutant == canaryName }

func (s summary) String() string {
	of := "mutants"
	if s.Mutants == 1 {
		of = "mutant"
	}
	text := fmt.Sprintf("%d %s: %d killed, %d survived", s.Mutants, of, s.Killed, s.Survived)
	if s.Untried > 0 {
		text += fmt.Sprintf(", %d could not be tried", s.Untried)
	}
	if s.Found+s.Missed > 0 {
		text += fmt.Sprintf("; the simulator found %d of the %d that it can see", s.Found, s.Found+s.Missed)
	}
	return text
}

func newTable(results []result) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"mutant", "rules", "killed by", "in", "seeds"})
	for i := range results {
		r := &results[i]
		by, in := "survives", ""
		switch {
		case r.Error != "":
			by, _, _ = strings.Cut(r.Error, "\n")
		case r.Killed != nil:
			by, in = r.Killed.Test, r.Killed.Package
			if r.Killed.How != failed {
				by += " (" + string(r.Killed.How) + ")"
			}
		}
		seeds := "—"
		switch {
		case r.Unseen != "":
			seeds += " " + r.Unseen
		case r.Found != nil && r.Found.Hung:
			seeds = "hangs"
		case r.Found != nil && r.Found.Seed != 0:
			seeds = fmt.Sprint(r.Found.Seed)
		case r.Found != nil:
			seeds += fmt.Sprintf(" not in %d", r.Found.Seeds)
		}
		t.AppendRow(table.Row{r.Mutant, strings.Join(r.Rules, " "), by, in, seeds})
	}
	return t
}

func printJSON(out io.Writer, results []result) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Summary summary  `json:"summary"`
		Mutants []result `json:"mutants"`
	}{sum(results), results})
}

// markdown is the record of a whole run.
func markdown(results []result) []byte {
	return fmt.Appendf(nil, `# Mutants

The bugs of [mutants/](../mutants/), the test that killed each, and the seed at which a sweep of the simulator found it. `+"`go run ./mutants --write`"+` wrote this after a whole run; see there for how to read and repeat it.

%s.

%s
`, sum(results), newTable(results).RenderMarkdown())
}
