package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/fileengine"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/sim/htmlreport"
)

func newJournal() *cobra.Command {
	var c journalCommand
	cmd := &cobra.Command{
		Use:   "journal DIRECTORY|FILE",
		Short: "Replay what an engine has recorded, and judge it",
		Long: `Replay what an engine has recorded, and judge it. DIRECTORY is one that package
fileengine keeps its state in; FILE is a log of such a directory that no
snapshot has come before, or holds the records that a journal of package
memengine was given.

The records are replayed as the engine does when it opens them. Each is held
against the rules that rows can tell of: boundaries fire once, in order, on
their grid and not early; jobs are counted, claimed by one worker at a time and
ended by the one that has the claim; terms rise. What happened before the oldest
snapshot is not in a journal any more, nor is why: it knows of no faults, no
processes and no lease of the scheduler.

Nothing is changed, and no lock is taken: the engine may be running. The end of
a log that is no whole record, as a crash leaves one, is dropped and reported;
of a running engine it may be what was being written. A file that is damaged, or
of a later version, is refused.

The state is named by the SHA-256 of its snapshot, which is that of the bytes
that Engine.Snapshot of the engine returns that wrote the last record.

Exit codes:
  0  the records keep the rules
  1  usage or bad input, or a file that is damaged
  2  a record breaks a rule`,
		Example: `  simulate journal state
  simulate journal --report out.html state
  simulate journal --state state`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d arguments came, want one: write %s DIRECTORY", len(args), cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c.stdout = cmd.OutOrStdout()
			return c.run(args[0])
		},
	}
	cmd.Flags().BoolVar(&c.state, "state", false, "print the SHA-256 of the state, and nothing else")
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	addReport(cmd, &c.html)
	cmd.MarkFlagsMutuallyExclusive("state", "json")
	return cmd
}

type journalCommand struct {
	state, json bool
	html        string // where to, or ""
	stdout      io.Writer
}

func (c *journalCommand) run(path string) error {
	r, err := readJournal(path)
	if err != nil {
		return err
	}
	if c.html != "" {
		if err := r.writeHTML(c.html); err != nil {
			return err
		}
	}
	r.page = c.html
	switch {
	case c.state:
		_, err = fmt.Fprintln(c.stdout, r.state)
	case c.json:
		err = writeJSON(c.stdout, r.object())
	default:
		err = r.write(c.stdout)
	}
	if err == nil && r.verdict != sim.Pass {
		err = &failure{r.verdict}
	}
	return err
}

// journal is a recording that was replayed, and all that is told of it.
type journal struct {
	report
	*fileengine.Recording
	result *sim.JournalResult
	bytes  int
	state  string // of which the SHA-256 is this
}

func readJournal(path string) (*journal, error) {
	recording, err := fileengine.Read(path)
	if err != nil {
		return nil, err
	}
	result, err := sim.WatchJournal(recording.Durable, nil)
	if err != nil {
		return nil, recording.Judge(memengine.Recovery{}, err)
	}
	if err := recording.Judge(result.Recovery, nil); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(result.State)
	return &journal{
		report:    report{Result: &result.Result, scenario: &result.Scenario, file: path, verdict: result.Verdict, outcome: outcomeNone},
		Recording: recording, result: result, bytes: len(recording.Log), state: hex.EncodeToString(sum[:]),
	}, nil
}

// writeHTML replays the recording once more, now that it is known which schedules
// are in it, and writes the report for a browser.
func (r *journal) writeHTML(path string) error {
	if n := len(r.Schedules); n > sim.MaxSchedules {
		return fmt.Errorf("--report: found %s, want no more than %s", count(int64(n), "schedule", "schedules"), number(sim.MaxSchedules))
	}
	recorder := htmlreport.NewRecorder(*r.scenario)
	if _, err := sim.WatchJournal(r.Durable, recorder.Tell); err != nil {
		return err
	}
	return writePage(path, recorder, r.Result, htmlreport.Source{File: r.file, Recording: r.result})
}

// write writes the recording for people. Its last line is the state.
func (r *journal) write(to io.Writer) error {
	w := newPage(to)
	after := ""
	if r.Snapshot != nil {
		after = " behind a snapshot"
	}
	fmt.Fprintf(w, "%s: %s, %s%s", printable(r.file), count(r.Events, "record", "records"), count(int64(r.bytes), "byte", "bytes"), after)
	if r.Events > 0 {
		fmt.Fprintf(w, ", %s from %s", exact(r.Simulated), instant(r.start()))
	}
	fmt.Fprint(w, "\n\n")
	r.writeSchedules(w)
	r.writeQueues(w)
	if r.Snapshot != nil && len(r.Queues) > 0 {
		w.hang("queues and outboxes: ", "counted since the state began, and not from the snapshot on")
		fmt.Fprintln(w)
	}
	for _, t := range r.Dropped {
		w.hang("dropped: ", dropped(&t))
	}
	r.writeProblems(w)
	fmt.Fprintf(w, "verdict: %s\n", r.verdict)
	w.judge([]string{r.found()})
	fmt.Fprintln(w, checksMade(r.Checks))
	writePageLine(w, r.page)
	fmt.Fprintf(w, "state %s\n", r.state)
	return w.Flush()
}

func (r *journal) found() string {
	switch {
	case r.verdict != sim.Pass:
		return "a record breaks a rule, or what it was replayed on does"
	case r.Events == 0:
		return "there is no record behind the snapshot, so this shows nothing"
	default:
		return "no record breaks a rule that rows can tell of"
	}
}

// dropped says what the end of a log was that is no whole record.
func dropped(t *fileengine.Tail) string {
	text := fmt.Sprintf("%s of %s, from byte %s on: %s", count(t.Bytes, "byte", "bytes"), printable(t.File), number(t.Offset), t.Reason)
	if t.Records > 0 {
		text += fmt.Sprintf("; %s behind that", count(int64(t.Records), "whole record", "whole records"))
	}
	return text
}

type journalObject struct {
	Journal     string            `json:"journal"`
	Snapshot    bool              `json:"snapshot"` // the records are behind one
	Records     int64             `json:"records"`
	Bytes       int               `json:"bytes"`
	Start       *string           `json:"start"` // null without a record
	RecordedMS  int64             `json:"recorded_ms"`
	Verdict     sim.Verdict       `json:"verdict"`
	Schedules   []scheduleObject  `json:"schedules"`
	Queues      []queueObject     `json:"queues"`
	Dropped     []tailObject      `json:"dropped"`
	Checks      map[string]int64  `json:"checks"`
	Violations  []violationObject `json:"violations"`
	StateSHA256 string            `json:"state_sha256"`
}

type tailObject struct {
	File    string `json:"file"`
	Offset  int64  `json:"offset"`
	Bytes   int64  `json:"bytes"`
	Records int    `json:"records"`
	Reason  string `json:"reason"`
}

func (r *journal) object() journalObject {
	run := runJSON(&r.report)
	o := journalObject{
		Journal: r.file, Snapshot: r.Snapshot != nil, Records: r.Events, Bytes: r.bytes, RecordedMS: run.SimulatedMS, Verdict: r.verdict,
		Schedules: run.Schedules, Queues: run.Queues, Dropped: []tailObject{}, Checks: run.Checks, Violations: run.Violations, StateSHA256: r.state,
	}
	if r.Events > 0 {
		o.Start = &run.Start
	}
	maps.DeleteFunc(o.Checks, func(_ string, n int64) bool { return n == 0 }) // rows cannot tell of most
	for _, t := range r.Dropped {
		o.Dropped = append(o.Dropped, tailObject{t.File, t.Offset, t.Bytes, t.Records, t.Reason})
	}
	return o
}
