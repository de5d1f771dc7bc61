package main

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/sim/htmlreport"
)

// addReport adds the flag --report.
func addReport(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "report", "", "write a report of the run, one HTML `FILE` for a browser; docs/REPORT.md says what its marks mean")
	completeExt(cmd, "report", "html")
}

// writeHTML writes the report of a run for a browser.
func (r *report) writeHTML(path, text string, recorder *htmlreport.Recorder) error {
	judged := *r.Result
	judged.Verdict, judged.Unmet = r.verdict, r.unmet()
	return writePage(path, recorder, &judged, htmlreport.Source{File: r.file, Text: withoutOutcome(r.scenario, text)})
}

// withoutOutcome is the text of the scenario without the recorded outcome.
func withoutOutcome(s *sim.Scenario, text string) string {
	if s.Outcome == "" {
		return text
	}
	return strings.TrimSuffix(strings.TrimSuffix(text, s.Outcome), "----\n")
}

func writePage(path string, recorder *htmlreport.Recorder, result *sim.Result, source htmlreport.Source) error {
	var page strings.Builder
	if err := recorder.Write(&page, result, source); err != nil {
		return err
	}
	return writeFile(path, page.String())
}

// writePageLine says where the report is, if there is one.
func writePageLine(w io.Writer, path string) {
	if path != "" {
		fmt.Fprintf(w, "report for a browser: %s\n", printable(path))
	}
}

// linkTo is the address of a place on the page of a report.
func linkTo(path, place string) string {
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	address := url.URL{Scheme: "file", Path: filepath.ToSlash(path), Fragment: place}
	return address.String()
}
