// Package htmlreport makes of a run one HTML file that shows what became of every
// boundary and why: lanes of the faults, of each runner and of each schedule,
// with the chain of causes of whatever is chosen; tables of the same; and the
// run against the calm one. The file stands alone: it loads nothing and sends
// nothing, and works when it is opened from disk.
//
//	recorder := htmlreport.NewRecorder(scenario)
//	result, err := sim.Watch(scenario, recorder.Tell)
//	…
//	err = recorder.Write(w, result, htmlreport.Source{File: "night.sim", Text: text})
//
// Every figure is of the run; the same scenario gives the same bytes. Names and
// all other texts of a scenario are shown as text, whatever is in them.
//
// The page is made of the sources in web, by "make report-page", which needs Node;
// the result is page.html, kept beside this file so that building the package
// needs no more than Go. "make page" demands that it is what the sources make.
// docs/REPORT.md says what the marks mean.
package htmlreport

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"io"

	"github.com/tickonce/tickonce/sim"
)

//go:embed page.html
var page []byte

// place is where the page has the data of the run.
const place = "%DATA%"

// Source is where a scenario came from.
type Source struct {
	File string // as the command was given it
	Text string // of the file; empty: the scenario as it is written by its String

	// WhatIf is the comparison of another run with the one that is written, of
	// which the page's first sentence then tells. Nil: with the calm run, below.
	WhatIf *sim.Comparison
	Faults []string // that the what-if added to those of the file

	// Recording is that of a journal that was replayed ([sim.WatchJournal]), where no
	// scenario was run: what a journal does not know is left out, and there is nothing
	// to compare with. Else nil.
	Recording *sim.JournalResult

	Shrunk Shrunk // the run's scenario made small; zero: it was not
}

// Shrunk is a scenario that is less and comes to the same, to be shown with what
// was broken.
type Shrunk struct {
	Text string // "": there is none
	Says string // how it was come by
	File string // where it is; "": in none
}

// Write writes the page of the run of which the recorder was told everything,
// and which came to the result. Unless it is that of a what-if, or a recording, it
// runs the scenario again, with and without its faults, to compare.
func (r *Recorder) Write(w io.Writer, result *sim.Result, source Source) error {
	run, err := r.run(result, source)
	if err != nil {
		return err
	}
	text, err := json.Marshal(run) // which escapes what could end the element it stands in
	if err != nil {
		return err
	}
	before, after, _ := bytes.Cut(page, []byte(place))
	for _, part := range [][]byte{before, text, after} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
