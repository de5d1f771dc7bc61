package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// lie is something that a store, or what stands before it, does wrong.
type lie struct {
	lie    string
	fails  invariant // is there to find it
	says   string    // in its words, where it is found in several ways
	text   string
	below  liar
	above  liar
	opened func(store.Store) // at the second opening
}

const minuteMS = 60_000

// TestChecksHaveTeeth tells one lie at a time, below the truth or above it, and
// demands that the check fails which is there for it.
func TestChecksHaveTeeth(t *testing.T) {
	passes := map[string]bool{}
	for _, c := range slices.Concat(scheduleLies, leaseLies, jobLies, rowLies(), fieldLies(), entryLies(), outboxLies, resultLies, historyLies) {
		t.Run(c.lie, func(t *testing.T) {
			s, err := Parse("lies.sim", c.text)
			require.NoError(t, err)
			if !passes[c.text] {
				honest := run(&s, rig{budget: maxEvents})
				require.Equal(t, Pass, honest.Verdict, honest.Failures)
				passes[c.text] = true
			}

			openings := 0
			r := run(&s, rig{
				budget: 100_000,
				below: func(s store.Store) store.Store {
					if openings++; openings == 2 && c.opened != nil {
						c.opened(s)
					}
					l := c.below
					l.Store = s
					return l
				},
				above: func(s store.Store) store.Store {
					l := c.above
					l.Store = s
					return l
				},
			})
			require.True(t, slices.ContainsFunc(r.Failures, func(f Failure) bool {
				return f.Invariant == c.fails.String() && strings.Contains(f.Detail, c.says)
			}),
				"%s is broken, found were %+v, verdict %s", c.fails, r.Failures[:min(len(r.Failures), 3)], r.Verdict)
			for _, f := range r.Failures {
				i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Invariant == f.Invariant })
				require.Positive(t, r.Checks[i].Count, "%s failed and was never checked", f.Invariant)
				require.NotContains(t, f.Detail, "0x", "an address, which is another one in each run")
				require.NotRegexp(t, `[{}]|map\[|\b(true|false)\b|%!`, f.Detail, "values as Go prints them")
			}
		})
	}
}
