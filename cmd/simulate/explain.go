package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
)

func newExplain() *cobra.Command {
	var q sim.Question
	asJSON := false
	cmd := &cobra.Command{
		Use:   "explain SPEC",
		Short: "Tell what a schedule does through an outage, boundary by boundary",
		Long: `Tell what a schedule does through an outage, boundary by boundary.

The schedule is registered at --from. With --down nobody runs it for so long
from then on; with --jump the clock jumps after that. Then one tick catches up
what --catch-up allows, and the schedule is run on for --for. The engine itself
decides; rule ids such as T6 are those of docs/CONTRACT.md.

The boundaries are the anchor and the instants that are whole intervals after
it: a schedule that is to run daily at 03:00 UTC has --anchor
2026-01-01T03:00:00Z.

Policies are --overlap, --hours, --run-once, --breaker and --timeout, as in a
scenario. A worker does the jobs as soon as they are there, and each takes
--takes.

A duration is a sum of whole numbers with units, the larger unit first: 90s,
1h30m, 14d.`,
		Example: `  simulate explain "@every 7s" --down 10m
  simulate explain "@every 1h" --down 15h --catch-up latest
  simulate explain "@every 1d" --anchor 2026-01-01T03:00:00Z --down 2d
  simulate explain "@every 5m" --from 2026-03-29T00:30:00Z --jump -8h --for 9h
  simulate explain "@every 5m" --overlap skip --takes 12m --for 1h
  simulate explain "@every 1h" --hours 08:00-17:30@Europe/Berlin --for 1d`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return fmt.Errorf("a spec is missing: write %s \"@every 5m\"", cmd.CommandPath())
			case len(args) > 1:
				for _, word := range []string{"yes", "no"} {
					if slices.Contains(args, word) {
						return fmt.Errorf("found %q beside the spec: write --run-once=%s", word, word)
					}
				}
				return fmt.Errorf("%d arguments came, want one spec: quote it, as in %s %q", len(args), cmd.CommandPath(), strings.Join(args, " "))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("policy") && cmd.Flags().Changed("catch-up") {
				return errors.New("--policy and --catch-up are two names of one flag: give one of them")
			}
			q.Spec = args[0]
			told, err := sim.Explain(q)
			if err != nil {
				return inFlags(cmd, err)
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), explanationJSON(&q, told))
			}
			return writeExplanation(cmd.OutOrStdout(), &q, told)
		},
	}
	for _, f := range []struct{ name, form, usage string }{
		{"from", "TIME", "when the schedule is registered, in RFC 3339 (default 2026-01-01T00:00:00Z)"},
		{"anchor", "TIME", "an instant that its boundaries are counted from, in RFC 3339 (default: --from)"},
		{"down", "DURATION", "how long nobody runs it from then on"},
		{"jump", "DURATION", "by how much the clock jumps after that: 8h, or -8h back"},
		{"catch-up", "WORD", "what is caught up: all, latest, grace or none (default all)"},
		{"policy", "WORD", "another name of --catch-up"},
		{"for", "DURATION", "how long it is run after that (default: three boundaries)"},
		{"takes", "DURATION", "how long each of its jobs takes"},
		{"overlap", "WORD", "whether it fires while a job of it is not done: allow, skip or buffer-one (default allow)"},
		{"hours", "HOURS", "the times of day outside of which nothing fires: 08:00-17:30, or 22:00-06:00@Europe/Berlin"},
		{"run-once", "yes|no", "whether it fires once, and never again (default no)"},
		{"breaker", "N", "how many of its jobs have to die in a row to pause it (default off)"},
		{"timeout", "DURATION", "how long one of its jobs may take before it has failed"},
	} {
		cmd.Flags().Var(&setting{question: &q, name: f.name, form: f.form}, f.name, f.usage)
	}
	cmd.Flags().Lookup("run-once").NoOptDefVal = "yes"
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	for _, flag := range []string{"policy", "catch-up"} {
		completeFlag(cmd, flag, cobra.FixedCompletions([]string{"all", "latest", "grace", "none"}, cobra.ShellCompDirectiveNoFileComp))
	}
	completeFlag(cmd, "overlap", cobra.FixedCompletions([]string{"allow", "skip", "buffer-one"}, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(cmd, "run-once", cobra.FixedCompletions([]string{"yes", "no"}, cobra.ShellCompDirectiveNoFileComp))
	completeNothing(cmd, "from", "anchor", "down", "jump", "for", "takes", "hours", "breaker", "timeout")
	return cmd
}

// inFlags names the flag of an option that was refused.
func inFlags(cmd *cobra.Command, err error) error {
	var bad *sim.OptionError
	if errors.As(err, &bad) {
		if flag := cmd.Flags().Lookup(strings.ToLower(bad.Option)); flag != nil {
			return fmt.Errorf("--%s %s", flag.Name, bad.Problem)
		}
	}
	return err
}

// setting is a flag that sets a part of a question.
type setting struct {
	question         *sim.Question
	name, form, text string
}

func (s *setting) String() string { return s.text }
func (s *setting) Type() string   { return s.form }
func (s *setting) Set(text string) error {
	s.text = text
	if err := s.question.Set(s.name, text); err != nil {
		return fmt.Errorf("--%s: %w", s.name, err)
	}
	return nil
}

// entry is one boundary, or a run of them where they are summed up.
type entry struct {
	passage *sim.Passage
	first   int64 // within the passage
	count   int64
}

// at is the i-th boundary of the entry.
func (e entry) at(i int64, interval time.Duration) time.Time {
	// Three intervals may be more than a time.Duration holds.
	return time.UnixMilli(e.passage.First.UnixMilli() + (e.first+i)*interval.Milliseconds()).UTC()
}

// late is how late, by the clock, a boundary of the entry was met.
func (e entry) late(i int64, interval time.Duration) time.Duration {
	if e.passage.MaxLate == 0 {
		return 0
	}
	return e.passage.MaxLate - time.Duration(e.first+i)*interval
}

// entries lists the boundaries of the passages. Of a passage with more than most
// only edge at each end are listed, and the others summed up.
func entries(passages []sim.Passage, most, edge int64) []entry {
	var list []entry
	for i := range passages {
		p := &passages[i]
		single := func(from, to int64) {
			for k := from; k < to; k++ {
				list = append(list, entry{p, k, 1})
			}
		}
		edge := edge
		if p.Fate == sim.Skipped {
			edge = 0
		}
		if p.Count <= most {
			single(0, p.Count)
			continue
		}
		single(0, edge)
		list = append(list, entry{p, edge, p.Count - 2*edge})
		single(p.Count-edge, p.Count)
	}
	return list
}

// writeExplanation writes what is told for people.
func writeExplanation(to io.Writer, q *sim.Question, told *sim.Explanation) error {
	w := newPage(to)
	head := fmt.Sprintf("%s, registered at %s, catch-up %s", told.Spec, instant(told.From), q.CatchUp)
	if policies := q.Policies.String(); policies != "" {
		head += ", " + policies
	}
	if q.Takes > 0 {
		head += ", each job takes " + exact(q.Takes)
	}
	w.hang("", head)
	w.hang("", outage(q, told))
	fmt.Fprintln(w)
	writeBoundaries(w, told)
	for _, n := range told.Notes {
		w.hang(n.Rule+": ", n.Text+".")
	}
	w.hang("", tally(told)+".")
	w.hang("", upcoming(told))
	if rules := cited(told); len(rules) > 0 {
		fmt.Fprintf(w, "%s: see docs/CONTRACT.md.\n", strings.Join(rules, ", "))
	}
	return w.Flush()
}

// cited lists the rules that the explanation rests on.
func cited(told *sim.Explanation) []string {
	var rules []string
	cite := func(rule string) {
		if !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	for _, p := range told.Passages {
		cite(p.Rule)
	}
	for _, n := range told.Notes {
		cite(n.Rule)
	}
	return rules
}

// outage says in words what the question has happen.
func outage(q *sim.Question, told *sim.Explanation) string {
	var parts []string
	if q.Down > 0 {
		parts = append(parts, "nobody runs it for "+exact(q.Down))
	}
	if q.Jump > 0 {
		parts = append(parts, "the clock jumps forward by "+exact(q.Jump))
	}
	if q.Jump < 0 {
		parts = append(parts, "the clock jumps back by "+exact(-q.Jump))
	}
	if len(parts) == 0 {
		return "it is run from then on"
	}
	return strings.Join(parts, ", then ") + "; the first tick is at " + instant(told.Tick)
}

func writeBoundaries(w *page, told *sim.Explanation) {
	const most, edge = 10, 2
	var rows [][]string
	for _, e := range entries(told.Passages, most, edge) {
		p := e.passage
		row := []string{clock(e.at(0, told.Interval)), "", "", fateText[p.Fate], p.Rule}
		if e.count > 1 {
			end := e.at(e.count-1, told.Interval)
			row[0] += " .. " + clockAfter(end, e.at(0, told.Interval))
			row[1] = number(e.count)
		}
		if p.MaxLate > 0 {
			row[2] = span(e.late(0, told.Interval))
			if e.count > 1 {
				row[2] += " .. " + span(e.late(e.count-1, told.Interval))
			}
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		fmt.Fprint(w, "No boundary came.\n\n")
		return
	}
	writeTable(w, []column{
		{"boundary (UTC)", words},
		{"count", numbers},
		{"late by", words},
		{"fate", words},
		{"rule", words},
	}, rows, nil)
	fmt.Fprintln(w)
	var reasons []string
	for _, p := range told.Passages {
		head := fmt.Sprintf("%s (%s): ", fateText[p.Fate], p.Rule)
		if !slices.Contains(reasons, head+p.Text) {
			reasons = append(reasons, head+p.Text)
			w.hang(head, p.Text)
		}
	}
	fmt.Fprintln(w)
}

var fateText = [...]string{sim.Fired: "on time", sim.CaughtUp: "late", sim.Skipped: "skipped"}

// clock is an instant for people.
func clock(t time.Time) string {
	return strings.TrimSuffix(strings.Replace(instant(t), "T", " ", 1), "Z")
}

// clockAfter is clock without the date, if that is the one of before.
func clockAfter(t, before time.Time) string {
	day, time, _ := strings.Cut(clock(t), " ")
	if strings.HasPrefix(clock(before), day+" ") {
		return time
	}
	return day + " " + time
}

func tally(told *sim.Explanation) string {
	var late int64
	for _, p := range told.Passages {
		if p.Fate == sim.CaughtUp {
			late += p.Count
		}
	}
	text := fmt.Sprintf("%s fired", count(told.Fired, "boundary", "boundaries"))
	if late > 0 {
		text += fmt.Sprintf(", %s of them late", number(late))
	}
	return text + fmt.Sprintf("; %s skipped", number(told.Skipped))
}

func upcoming(told *sim.Explanation) string {
	if told.Next.IsZero() {
		return "No boundary comes any more."
	}
	return fmt.Sprintf("The next boundary is %s; the grid is still %s + k·%s.", instant(told.Next), instant(told.Anchor), exact(told.Interval))
}
