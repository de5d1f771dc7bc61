package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
)

func newReplay() *cobra.Command {
	var c replayCommand
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Run a recorded scenario again, and say where it differs",
		Long: `Run a recorded scenario again, and say whether it is the same run. FILE is a
scenario file, or - for standard input. The run is made twice, and compared
with

- itself: what differs then is chance;
- the recorded outcome below the line "----" of the file;
- with --tape, a tape: every random choice and every event of the recorded run.
  The choices are played from the tape. The first event that differs is shown,
  or the first choice that the run makes elsewhere.

A tape is recorded with --record, by the version that is to be compared with.
It is a text, a line for each choice and each event. With --guest, whose
programs run the jobs, an outcome is compared with a run of the same programs
only; a tape shows where another version of a program does something else.

Exit codes:
  0  the same run
  1  usage or bad input, or nothing to compare with
  2  another run than the recorded one
  4  nondeterministic: the two runs differ`,
		Example: `  simulate replay examples/scenarios/paused-leader.sim
  simulate replay examples/scenarios/paused-leader.sim --record paused-leader.tape
  simulate replay examples/scenarios/paused-leader.sim --tape paused-leader.tape`,
		Args:              oneFile,
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.stdin, c.stdout = cmd.InOrStdin(), cmd.OutOrStdout()
			defer c.guests.close()
			return c.run(args[0])
		},
	}
	c.addGuests(cmd)
	cmd.Flags().StringVar(&c.tape, "tape", "", "compare with the tape in this `FILE`")
	cmd.Flags().StringVar(&c.record, "record", "", "record the run as a tape in this `FILE`")
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	completeExt(cmd, "tape", "tape")
	completeExt(cmd, "record", "tape")
	return cmd
}

type replayCommand struct {
	input
	tape, record string
	json         bool
	stdout       io.Writer
}

func (c *replayCommand) run(path string) error {
	s, text, err := c.scenario(path)
	if err != nil {
		return err
	}
	if s.Outcome == "" && c.tape == "" && c.record == "" {
		return fmt.Errorf("%s has no recorded outcome to compare with, which stands below a line \"----\": "+
			"record it with simulate run --rewrite, or a tape with --record", path)
	}
	if was, is := recordedGuests(s.Outcome), c.guests.in(&s); was != is && s.Outcome != "" && c.tape == "" && c.record == "" {
		return fmt.Errorf("%s was recorded with %s as handlers, found %s: give --guest as it was then, or compare with a tape", path, orNone(was), orNone(is))
	}
	var old *sim.Tape
	if c.tape != "" {
		if old, err = readTape(c.tape); err != nil {
			return err
		}
	}
	result, tape, err := sim.Record(s)
	if err != nil {
		return err
	}
	if c.record != "" {
		if tape == nil {
			return fmt.Errorf("the run is too long for a tape, whose text may have %d MiB: make it shorter", sim.MaxTape>>20)
		}
		if err := writeFile(c.record, tape.String()); err != nil {
			return err
		}
	}
	r := replayed{report: &report{Result: result, scenario: &s, file: path, outcome: outcomeNone, guests: c.guests}, record: c.record, tape: c.tape}
	again, tapeAgain, err := sim.Record(s)
	if err != nil {
		return err
	}
	if r.chance = result.Outcome() != again.Outcome(); r.chance {
		r.event = firstDifference(tape, tapeAgain)
	} else if err := r.play(s, old); err != nil {
		return err
	}
	r.compare(text)
	if c.json {
		err = writeJSON(c.stdout, r.object())
	} else {
		err = r.write(c.stdout)
	}
	if verdict := r.verdict(); err == nil && verdict != sim.Pass {
		err = &failure{verdict}
	}
	return err
}

// orNone are the lines as words, or words for there being none.
func orNone(lines string) string {
	if lines == "" {
		return "no programs"
	}
	return strings.ReplaceAll(strings.TrimSpace(strings.ReplaceAll(lines, guestWord, "")), "\n", ", ")
}

// readTape reads a tape, but not much more than the longest one.
func readTape(path string) (*sim.Tape, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, sim.MaxTape+1))
	if err != nil {
		return nil, err
	}
	return sim.ParseTape(printable(path), string(text))
}

// replayed is a run that was made again.
type replayed struct {
	*report
	tape, record string // files, or ""
	chance       bool   // the two runs of now differ
	event        *eventDifference
	parted       *sim.Divergence // from the tape
}

// eventDifference is the first event in which two runs differ.
type eventDifference struct {
	Number int    `json:"number"` // from 1
	Was    string `json:"was"`
	Is     string `json:"is"`
}

// firstDifference is the first event in which the tapes differ; nil if there is
// none, or one of them is none.
func firstDifference(was, is *sim.Tape) *eventDifference {
	if was == nil || is == nil {
		return nil
	}
	for i := range max(len(was.Events), len(is.Events)) {
		if a, b := eventAt(was, i), eventAt(is, i); a != b {
			return &eventDifference{i + 1, a, b}
		}
	}
	return nil
}

// eventAt is the event, or words for there being none.
func eventAt(t *sim.Tape, i int) string {
	if i < len(t.Events) {
		return t.Events[i]
	}
	return "(no event)"
}

// play plays the tape, if there is one.
func (r *replayed) play(s sim.Scenario, old *sim.Tape) error {
	if old == nil {
		return nil
	}
	_, tape, err := sim.Play(s, old)
	if err != nil && !errors.As(err, &r.parted) {
		return fmt.Errorf("%s: %w", r.tape, err)
	}
	if r.event = firstDifference(old, tape); r.parted != nil && r.event != nil && tape != nil && r.event.Number > len(tape.Events) {
		r.event = nil // the run was broken off by then
	}
	return nil
}

func (r *replayed) verdict() sim.Verdict {
	switch {
	case r.chance:
		return sim.Nondeterministic
	case r.difference != nil || r.event != nil || r.parted != nil:
		return sim.Unmet
	}
	return sim.Pass
}

// write writes for people what came.
func (r *replayed) write(to io.Writer) error {
	w := bufio.NewWriter(to)
	words := map[sim.Verdict]string{
		sim.Pass: "the same run", sim.Unmet: "another run than the recorded one", sim.Nondeterministic: "two runs of the same scenario that differ: chance decides something",
	}
	if r.outcome == outcomeNone && r.tape == "" && r.verdict() == sim.Pass {
		words[sim.Pass] = "recorded"
	}
	fmt.Fprintf(w, "%s: %s\n", printable(r.file), words[r.verdict()])
	if e := r.event; e != nil {
		was := "recorded"
		if r.chance {
			was = "first"
		}
		fmt.Fprintf(w, "  the first event that differs is number %d\n    %-8s  %s\n    %-8s  %s\n", e.Number, was, printable(e.Was), "now", printable(e.Is))
	}
	if r.parted != nil {
		fmt.Fprintf(w, "  %s\n", printable(r.parted.Error()))
	}
	if d := r.difference; d != nil {
		fmt.Fprintf(w, "  line %d differs from the recorded outcome\n    %-8s  %s\n    %-8s  %s\n", d.line, "recorded", printable(d.was), "now", printable(d.is))
		if r.tape == "" && !r.chance {
			fmt.Fprint(w, "  to see the first event that differs, record a tape with the version that recorded the outcome,\n"+
				"  simulate replay --record, and compare with it here, simulate replay --tape\n")
		}
	}
	if r.record != "" {
		fmt.Fprintf(w, "  recorded as %s\n", printable(r.record))
	}
	fmt.Fprintf(w, "verdict of the run: %s\ndigest %s\n", r.Verdict, r.Digest)
	return w.Flush()
}

type replayObject struct {
	Scenario string           `json:"scenario"`
	Same     bool             `json:"same"`
	Chance   bool             `json:"nondeterministic"`
	Outcome  outcome          `json:"outcome"`
	Line     *lineDifference  `json:"line"`
	Event    *eventDifference `json:"event"`
	Choice   *string          `json:"choice"` // at which the run left the tape
	Verdict  sim.Verdict      `json:"verdict"`
	Digest   string           `json:"digest"`
}

// lineDifference is the first line of the outcome that differs.
type lineDifference struct {
	Line int    `json:"line"` // of the file
	Was  string `json:"was"`
	Is   string `json:"is"`
}

func (r *replayed) object() replayObject {
	o := replayObject{
		Scenario: r.file, Same: r.verdict() == sim.Pass, Chance: r.chance, Outcome: r.outcome,
		Event: r.event, Verdict: r.Verdict, Digest: r.Digest.String(),
	}
	if d := r.difference; d != nil {
		o.Line = &lineDifference{d.line, d.was, d.is}
	}
	if r.parted != nil {
		text := r.parted.Error()
		o.Choice = &text
	}
	return o
}
