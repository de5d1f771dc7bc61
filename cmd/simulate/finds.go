package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/tickonce/tickonce/sim"
)

// findRuns is how many runs the shrinking of one failure of a sweep may take.
const findRuns = 500

// keepFinds writes each distinct failure of the sweep into the folder: the
// scenario of its first seed, shrunk. When ctx is done, what there is by then is
// written.
func (r *sweepReport) keepFinds(ctx context.Context, folder string) error {
	for i := range r.Failures {
		g := &r.Failures[i]
		s, err := r.Scenario.Draw(g.Seeds[0])
		if err != nil {
			return err
		}
		text := textOf(s)
		so, err := sim.Shrink(s, sim.Shrinking{Runs: findRuns, Told: func(*sim.Shrunk) bool { return ctx.Err() == nil }})
		if err == nil {
			text = (&shrunk{so, s, r.file, r.guests}).text()
		} else {
			header, rest, _ := strings.Cut(text, "\n")
			text = fmt.Sprintf("%s\n# %s: %s, seed %d of %s; not shrunk: %s\n%s", header, g.Verdict,
				snip(printable(g.What), mostReason), g.Seeds[0], printable(r.file), snip(printable(err.Error()), mostReason), rest)
		}
		path := filepath.Join(folder, fileWord(g.Verdict.String()+" "+g.What)+".sim")
		if err := writeFile(path, text); err != nil {
			return err
		}
		r.finds = append(r.finds, path)
	}
	return nil
}

// fileWord is the text as a part of a file's name.
func fileWord(text string) string {
	const most = 80
	word := strings.Join(strings.FieldsFunc(strings.ToLower(text), func(c rune) bool {
		return c >= utf8.RuneSelf || !('a' <= c && c <= 'z' || '0' <= c && c <= '9')
	}), "-")
	return word[:min(len(word), most)]
}
