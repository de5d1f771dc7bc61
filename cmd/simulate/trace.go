package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickonce/tickonce/sim"
)

func newTrace() *cobra.Command {
	var c traceCommand
	cmd := &cobra.Command{
		Use:   "trace FILE",
		Short: "Tell what happens in a run, event by event, and why",
		Long: `Tell what happens in a run, event by event: its number, true time, by how much
the store's clock is wrong, who, what, which schedule, and the details.

Without --kind what comes with every fire and renewal in good order is left
out: a lease that is kept, or asked for while another has it, rows that are
read, ticks that are written, jobs that are claimed and done. With --all it is
not.

With --why only one event is told, with those that led to it, the oldest first.
It is named by its number, or by a schedule and one of its boundaries, which is
an instant at which it is due: report@2026-03-29T01:05:00Z, or report@1h5m from
the start on.

With --json each event is a JSON object on a line of its own, without a limit
unless --limit is given.

With --chrome a timeline of the run is written, to be opened in Perfetto
(ui.perfetto.dev) or in chrome://tracing.

With --guest a program of your own runs the jobs; see simulate run --help.`,
		Example: `  simulate trace examples/scenarios/regional-outage.sim --from 5d14h --limit 50
  simulate trace examples/scenarios/leader-crash.sim --kind lease-granted,process-stopped
  simulate trace examples/scenarios/regional-outage.sim --why update_mirrors@2026-12-31T06:50:00Z
  simulate trace examples/scenarios/regional-outage.sim --json --kind skipped
  simulate trace examples/scenarios/regional-outage.sim --chrome timeline.json`,
		Args:              oneFile,
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.stdin, c.stdout = cmd.InOrStdin(), cmd.OutOrStdout()
			if c.json && !cmd.Flags().Changed("limit") {
				c.limit = 0
			}
			defer c.guests.close()
			return c.run(args[0])
		},
	}
	c.addFaults(cmd)
	c.addGuests(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.why, "why", "", "tell one event and its causes: its `NUMBER`, or SCHEDULE@TIME of a boundary")
	flags.StringArrayVar(&c.schedules, "schedule", nil, "only the events of this schedule, by its `NAME`; may be given several times")
	flags.StringSliceVar(&c.kinds, "kind", nil, "only events of these `KINDS`, such as fired,skipped")
	flags.BoolVar(&c.all, "all", false, "what is routine, too")
	flags.StringVar(&c.from, "from", "", "only events from this `TIME` on, in RFC 3339 or from the start on: 5d14h")
	flags.StringVar(&c.to, "to", "", "only events up to this `TIME`")
	flags.IntVar(&c.last, "last", 0, "only the last `N` events of these")
	flags.IntVar(&c.limit, "limit", 10_000, "print at most `N` events; 0: all of them")
	flags.BoolVar(&c.json, "json", false, "print each event as a line of JSON")
	flags.StringVar(&c.chrome, "chrome", "", "write a timeline in Chrome's trace format to `FILE`, and print no events")
	completeFlag(cmd, "kind", cobra.FixedCompletions(kindWords(), cobra.ShellCompDirectiveNoFileComp))
	completeText(cmd, "schedule", completeSchedule)
	completeExt(cmd, "chrome", "json")
	completeNothing(cmd, "why", "from", "to", "last", "limit")
	cmd.MarkFlagsMutuallyExclusive("why", "chrome")
	cmd.MarkFlagsMutuallyExclusive("json", "chrome")
	cmd.MarkFlagsMutuallyExclusive("last", "limit")
	return cmd
}

// kindWords are the words of all kinds of events.
func kindWords() (list []string) {
	for k := sim.EventFaultBegan; k <= sim.EventViolated; k++ {
		list = append(list, k.String())
	}
	return list
}

type traceCommand struct {
	input
	why, from, to    string
	chrome           string // where to, or ""
	schedules, kinds []string
	all, json        bool
	last, limit      int
	stdout           io.Writer
}

func (c *traceCommand) run(path string) error {
	scenario, _, err := c.scenario(path)
	if err != nil {
		return err
	}
	if scenario, err = scenario.Draw(scenario.Engine.Seed); err != nil {
		return err
	}
	if scenario, err = c.withFaults(scenario); err != nil {
		return err
	}
	t := trace{&scenario, c.json}
	switch {
	case c.why != "":
		return t.explain(c.stdout, c.why)
	case c.chrome != "":
		return t.writeChrome(c.chrome)
	}
	f, err := c.filter(&scenario)
	if err != nil {
		return err
	}
	return t.list(c.stdout, f, c.last, c.limit)
}

// filter is what the flags leave of the events.
func (c *traceCommand) filter(s *sim.Scenario) (filter, error) {
	f := filter{schedules: c.schedules, kinds: c.kinds, routine: c.all || len(c.kinds) > 0}
	for _, name := range c.schedules {
		if err := known(s, name); err != nil {
			return f, fmt.Errorf("--schedule: %w", err)
		}
	}
	kinds := kindWords()
	for _, kind := range c.kinds {
		if !slices.Contains(kinds, kind) {
			return f, fmt.Errorf("--kind: found %q, want one of %s", kind, strings.Join(kinds, ", "))
		}
	}
	if c.last < 0 || c.limit < 0 {
		return f, errors.New("--last and --limit are whole numbers from 0 on")
	}
	var err error
	if f.from, err = timeIn(s, c.from); err != nil {
		return f, fmt.Errorf("--from: %w", err)
	}
	if f.to, err = timeIn(s, c.to); err != nil {
		return f, fmt.Errorf("--to: %w", err)
	}
	return f, nil
}

// known says which schedules there are, if none has the name.
func known(s *sim.Scenario, name string) error {
	var names []string
	for i := range s.Schedules {
		names = append(names, s.Schedules[i].Name)
	}
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("found the schedule %q, want one of %s", name, someOf(names))
}

// timeIn reads an instant of a run: in RFC 3339, or how long after its start; ""
// is the zero time.
func timeIn(s *sim.Scenario, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UTC(), nil
	}
	var q sim.Question // whose durations are those of scenario files
	if err := q.Set("down", text); err != nil {
		want := "a time such as 2026-03-29T01:05:00Z, or how long after the start, such as 2h30m"
		if _, hint, ok := strings.Cut(err.Error(), "; "); ok {
			want += "; " + hint
		}
		return time.Time{}, fmt.Errorf("found %q, want %s", text, want)
	}
	return startOf(s).Add(q.Down), nil
}

// filter says which events are told. An empty list or time lets all through.
type filter struct {
	schedules, kinds []string
	from, to         time.Time
	routine          bool // events that are, too
}

// isRoutine reports whether the event comes with every fire or renewal that goes
// well.
func isRoutine(e *sim.Event) bool {
	switch e.Kind {
	case sim.EventLeaseRenewed, sim.EventRowsRead, sim.EventTickWritten, sim.EventClaimed, sim.EventJobDone:
		return true
	case sim.EventLeaseRefused:
		return e.Op == "acquire"
	case sim.EventHandlerEnded:
		return e.Reason == "ok"
	default:
		return false
	}
}

func (f *filter) passes(e *sim.Event) bool {
	return (len(f.schedules) == 0 || slices.Contains(f.schedules, e.Schedule)) &&
		(len(f.kinds) == 0 || slices.Contains(f.kinds, e.Kind.String())) &&
		!e.At.Before(f.from) && (f.to.IsZero() || !e.At.After(f.to))
}

// trace tells what happens in a run.
type trace struct {
	scenario *sim.Scenario
	json     bool
}

const traceHeader = "   event  true time                clock  who            what             schedule                  details"

// list lists the events that pass, the last ones or the first.
func (t trace) list(to io.Writer, f filter, last, limit int) error {
	w := newPage(to)
	line := t.line
	if t.json {
		line = func(e *sim.Event) string { return t.object(e, sim.Note{}) }
	} else {
		fmt.Fprintln(w, traceHeader)
	}
	var kept []string // of the last ones, a ring
	var n, routine int64
	_, err := sim.Watch(*t.scenario, func(e *sim.Event) {
		switch {
		case !f.passes(e):
			return
		case !f.routine && isRoutine(e):
			routine++
			return
		}
		n++
		switch {
		case last > 0 && len(kept) < last:
			kept = append(kept, line(e))
		case last > 0:
			kept[(n-1)%int64(last)] = line(e)
		case limit == 0 || n <= int64(limit):
			fmt.Fprintln(w, line(e))
		}
	})
	if err != nil {
		return err
	}
	for i := range kept {
		fmt.Fprintln(w, kept[(n+int64(i))%int64(len(kept))])
	}
	if t.json {
		return w.Flush()
	}
	switch {
	case n == 0:
		fmt.Fprintln(w, "no event passes the filters")
	case last == 0 && limit > 0 && n > int64(limit):
		fmt.Fprintf(w, "and %s more; --limit 0 prints them all, --from goes on from here\n", count(n-int64(limit), "event", "events"))
	}
	if routine > 0 {
		fmt.Fprintf(w, "left out: %s, which --all prints\n", count(routine, "routine event", "routine events"))
	}
	return w.Flush()
}

// line is one event in fixed columns.
func (t trace) line(e *sim.Event) string {
	off := ""
	if by := e.Shown.Sub(e.At); by != 0 {
		if off = span(by); by > 0 {
			off = "+" + off
		}
	}
	return strings.TrimRight(fmt.Sprintf("%8d  %s  %9s  %-13s  %-15s  %s  %s", e.ID, e.At.Format("2006-01-02 15:04:05.000"), off,
		pad(t.who(e), 13), e.Kind, pad(printable(e.Schedule), 24), printable(t.details(e))), " ")
}

// pad cuts or fills a printable text to so many columns of a terminal.
func pad(s string, width int) string {
	s = snip(s, width)
	return s + strings.Repeat(" ", max(width-columns(s), 0))
}

// who is whose event it is.
func (t trace) who(e *sim.Event) string {
	switch {
	case e.Worker != "":
		return printable(e.Worker)
	case e.Process != 0:
		return fmt.Sprintf("process %d", e.Process)
	case e.Kind == sim.EventFaultBegan || e.Kind == sim.EventFaultEnded:
		return fmt.Sprintf("fault %d", e.Fault)
	case e.Kind == sim.EventStoreOpened || e.Kind == sim.EventClockTurned || e.Schedule == "":
		return "store"
	default:
		return ""
	}
}

// details says what happened.
func (t trace) details(e *sim.Event) string {
	switch e.Kind {
	case sim.EventFaultBegan:
		return "begins: " + t.scenario.Faults[e.Fault-1].String()
	case sim.EventFaultEnded:
		return "is over"
	default:
		return e.Text()
	}
}

// link is what is kept of each event to find its causes.
type link struct {
	cause, since int64
	kind         sim.EventKind
}

// explain tells one event and those that led to it. The run is made twice, since
// it is only known at the end which these are.
func (t trace) explain(to io.Writer, what string) error {
	want, err := t.question(what)
	if err != nil {
		return err
	}
	links := make([]link, 1)
	var found []int64
	_, err = sim.Watch(*t.scenario, func(e *sim.Event) {
		links = append(links, link{e.Cause, e.Since, e.Kind})
		if want.is(e) {
			found = append(found, e.ID)
		}
	})
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return t.nothing(to, want)
	}
	w := newPage(to)
	told := map[int64]bool{}
	for _, id := range found {
		for at := []int64{id}; len(at) > 0; at = at[1:] {
			if at[0] > 0 && !told[at[0]] {
				told[at[0]] = true
				at = append(at, links[at[0]].cause, links[at[0]].since)
			}
		}
	}
	if _, err := sim.Watch(*t.scenario, func(e *sim.Event) {
		if !told[e.ID] {
			return
		}
		var note sim.Note
		asked := slices.Contains(found, e.ID)
		if asked {
			note = t.scenario.Why(e, links[e.Since].kind)
		}
		if t.json {
			fmt.Fprintln(w, t.object(e, note))
			return
		}
		t.tell(w, e)
		if asked {
			if note.Rule != "" {
				w.hang("\nWhy: ", printable(note.Text)+" ("+note.Rule+", see docs/CONTRACT.md)")
			}
			if e.ID != found[len(found)-1] {
				fmt.Fprint(w, "\nand later\n\n")
			}
		}
	}); err != nil {
		return err
	}
	return w.Flush()
}

// tell tells an event as a sentence.
func (t trace) tell(w *page, e *sim.Event) {
	subject := printable(e.Schedule)
	switch e.Kind {
	case sim.EventClaimed, sim.EventHandlerEnded, sim.EventHandlerCut, sim.EventJobDone, sim.EventJobRetried, sim.EventJobDied, sim.EventClaimLost:
		if who := t.who(e); subject == "" {
			subject = who
		} else if who != "" {
			subject = who + ", " + subject
		}
	default:
		if subject == "" && e.Kind != sim.EventStoreOpened && e.Kind != sim.EventViolated {
			subject = t.who(e)
		}
	}
	if subject != "" {
		subject += ": "
	}
	w.hang(fmt.Sprintf("%8d  %s  ", e.ID, clock(e.At)), subject+printable(t.details(e)))
}

// question is which events are asked for.
type question struct {
	id       int64
	schedule string
	boundary time.Time
}

func (t trace) question(text string) (q question, err error) {
	if id, err := strconv.ParseInt(text, 10, 64); err == nil && id > 0 {
		return question{id: id}, nil
	}
	at := strings.LastIndexByte(text, '@')
	if at <= 0 {
		return q, fmt.Errorf("--why: found %q, want the number of an event, or SCHEDULE@TIME, such as report@2026-03-29T01:05:00Z", text)
	}
	q.schedule = text[:at]
	if err := known(t.scenario, q.schedule); err != nil {
		return q, fmt.Errorf("--why: %w", err)
	}
	if q.boundary, err = timeIn(t.scenario, text[at+1:]); err == nil && q.boundary.IsZero() {
		err = errors.New("a time is missing behind the @")
	}
	if err != nil {
		return q, fmt.Errorf("--why: %w", err)
	}
	return q, nil
}

// is reports whether the event is the one, or became of the boundary.
func (q *question) is(e *sim.Event) bool {
	switch {
	case q.id != 0:
		return e.ID == q.id
	case e.Schedule != q.schedule:
		return false
	case e.Kind == sim.EventFired:
		return e.Boundary.Equal(q.boundary)
	case e.Kind == sim.EventSkipped:
		if e.Boundary.Equal(q.boundary) || e.Last.Equal(q.boundary) {
			return true
		}
		if e.Count < 3 || q.boundary.Before(e.Boundary) || q.boundary.After(e.Last) {
			return false
		}
		every := (e.Last.UnixMilli() - e.Boundary.UnixMilli()) / (e.Count - 1)
		return (q.boundary.UnixMilli()-e.Boundary.UnixMilli())%every == 0
	default:
		return false
	}
}

// nothing says that there is no such event, and which ones are near.
func (t trace) nothing(to io.Writer, q question) error {
	var last int64
	var before, after *sim.Event
	_, err := sim.Watch(*t.scenario, func(e *sim.Event) {
		last = e.ID
		if e.Schedule != q.schedule || e.Kind != sim.EventFired && e.Kind != sim.EventSkipped {
			return
		}
		near := *e
		if e.Kind == sim.EventFired {
			near.Last = e.Boundary
		}
		if !near.Last.After(q.boundary) && (before == nil || !near.Last.Before(before.Last)) {
			before = &near
		}
		if near.Boundary.After(q.boundary) && after == nil {
			after = &near
		}
	})
	if err != nil {
		return err
	}
	if q.id != 0 {
		return fmt.Errorf("--why: there is no event %d, the last one is %d", q.id, last)
	}
	if t.json {
		return nil
	}
	w := newPage(to)
	fmt.Fprintf(w, "%s has no boundary at %s that fired or was skipped in this run.\n", printable(q.schedule), clock(q.boundary))
	fmt.Fprintln(w, "The nearest that did:")
	for _, near := range []*sim.Event{before, after} {
		if near != nil {
			t.tell(w, near)
		}
	}
	return w.Flush()
}
