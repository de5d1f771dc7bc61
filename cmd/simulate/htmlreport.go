package main

import (
	"strings"

	"github.com/tickonce/tickonce/sim/htmlreport"
)

// writeHTML writes the report of a run for a browser.
func (r *report) writeHTML(path, text string, recorder *htmlreport.Recorder) error {
	judged := *r.Result
	judged.Verdict, judged.Unmet = r.verdict, r.unmet()
	if recorded := r.scenario.Outcome; recorded != "" {
		text = strings.TrimSuffix(strings.TrimSuffix(text, recorded), "----\n")
	}
	var page strings.Builder
	if err := recorder.Write(&page, &judged, htmlreport.Source{File: r.file, Text: text}); err != nil {
		return err
	}
	return writeFile(path, page.String())
}
