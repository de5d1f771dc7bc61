package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tickonce/tickonce/sim"
)

// The marks of a picture. Where several things happen in one cell of a row, the
// mark further down is the one that is drawn.
var pictureMarks = []struct {
	mark  byte
	about string
}{
	{' ', ""},
	{'-', "stands by"},
	{'=', "runs the schedules"},
	{'p', "stands still"},
	{'#', "is down"},
	{'.', "fired on time"},
	{'E', "fired early"},
	{'L', "fired late"},
	{'A', "fired again"},
	{'H', "was set aside"},
	{'s', "skipped"},
	{'x', "a job died"},
	{'!', "a rule was broken"},
}

// weight is how far down a mark is in the list; those of faults are digits.
func weight(mark byte) int {
	return slices.IndexFunc(pictureMarks, func(m struct {
		mark  byte
		about string
	},
	) bool {
		return m.mark == mark
	})
}

// The sizes of a picture.
const (
	pictureWidth   = 80 // where there is no terminal that says another
	leastPicture   = 40
	mostPicture    = 1000
	mostRowsDrawn  = 30
	mostPictureTag = 20 // columns of a name
)

// picture draws a run as rows of marks over time: its faults, processes and
// schedules.
type picture struct {
	scenario   *sim.Scenario
	start      time.Time
	cells, tag int
	faults     []byte
	processes  []pictureProcess
	schedules  []pictureRow
	row        map[string]int
	drawn      [math.MaxUint8 + 1]bool
}

type pictureRow struct {
	name  string
	cells []byte
	worst int // the weight of its worst mark
}

type pictureProcess struct {
	pictureRow
	leads, lapses time.Time // zero: it does not lead
	down          time.Time // zero: it is up
}

func newPicture(s *sim.Scenario, width int) *picture {
	p := &picture{scenario: s, start: startOf(s), row: map[string]int{}, tag: len("processes")}
	for i := range s.Schedules {
		p.tag = max(p.tag, len(pictureTag(s.Schedules[i].Name)))
	}
	p.cells = width - p.tag - columnGap
	blank := func(mark byte) []byte { return bytes.Repeat([]byte{mark}, p.cells) }
	p.faults = blank(' ')
	for i := range max(s.Engine.Runners, 1) {
		p.processes = append(p.processes, pictureProcess{pictureRow: pictureRow{fmt.Sprintf("process %d", i+1), blank(' '), 0}})
	}
	for i := range s.Schedules {
		p.row[s.Schedules[i].Name] = i
		p.schedules = append(p.schedules, pictureRow{pictureTag(s.Schedules[i].Name), blank(' '), 0})
	}
	return p
}

// pictureTag is a name in ASCII, cut to the room that there is.
func pictureTag(name string) string {
	tag := strings.Trim(strconv.QuoteToASCII(name), `"`)
	if len(tag) > mostPictureTag {
		tag = tag[:mostPictureTag-2] + ".."
	}
	return tag
}

// cell is where an instant is, if it is in the picture.
func (p *picture) cell(t time.Time) int {
	at := int64(t.Sub(p.start)) / max(int64(p.scenario.For)/int64(p.cells), 1)
	return int(min(max(at, 0), int64(p.cells-1)))
}

// paint draws a mark from one instant to another, over what weighs less.
func (p *picture) paint(row *pictureRow, from, to time.Time, mark byte) {
	for i := p.cell(from); i <= p.cell(to); i++ {
		if weight(mark) >= weight(row.cells[i]) {
			row.cells[i] = mark
		}
	}
	row.worst = max(row.worst, weight(mark))
}

func (p *picture) tell(e *sim.Event) {
	switch e.Kind {
	case sim.EventFaultBegan:
		mark := byte('0' + min(e.Fault, 9))
		for i := p.cell(e.At); i <= p.cell(e.At.Add(p.scenario.Faults[e.Fault-1].For)); i++ {
			if p.faults[i] == ' ' {
				p.faults[i] = mark
			} else if p.faults[i] != mark {
				p.faults[i] = '+'
			}
		}
	case sim.EventLeaseGranted:
		for i := range p.processes {
			p.endLead(&p.processes[i], e.At)
		}
		p.processes[e.Process-1].leads = e.At
		p.processes[e.Process-1].lapses = e.At.Add(e.Until.Sub(e.Shown))
	case sim.EventLeaseRenewed:
		p.processes[e.Process-1].lapses = e.At.Add(e.Until.Sub(e.Shown))
	case sim.EventLeaseReleased, sim.EventRunnerEnded:
		if e.Process > 0 {
			p.endLead(&p.processes[e.Process-1], e.At)
		}
	case sim.EventProcessPaused:
		p.paint(&p.processes[e.Process-1].pictureRow, e.At, e.Last, 'p')
	case sim.EventProcessStopped:
		n := &p.processes[e.Process-1]
		p.endLead(n, e.At)
		n.down = e.At
	case sim.EventProcessStarted:
		p.endDown(&p.processes[e.Process-1], e.At)
	case sim.EventFired:
		mark := byte('.')
		switch e.Fate() {
		case sim.FiredAgain:
			mark = 'A'
		case sim.CaughtUp:
			mark = 'L'
		case sim.FiredEarly:
			mark = 'E'
		}
		p.mark(e, e.At, e.At, mark)
	case sim.EventSkipped:
		if e.Count > int64(p.cells) {
			p.mark(e, e.Boundary, e.Last, 's')
			return
		}
		for i := range e.Count {
			at := e.Boundary.Add(e.Last.Sub(e.Boundary) / time.Duration(max(e.Count-1, 1)) * time.Duration(i))
			p.mark(e, at, at, 's')
		}
	case sim.EventHeld, sim.EventQueueFull:
		p.mark(e, e.At, e.At, 'H')
	case sim.EventJobDied:
		p.mark(e, e.At, e.At, 'x')
	case sim.EventViolated:
		p.mark(e, e.At, e.At, '!')
	}
}

func (p *picture) mark(e *sim.Event, from, to time.Time, mark byte) {
	if i, ok := p.row[e.Schedule]; ok {
		p.paint(&p.schedules[i], from, to, mark)
	}
}

func (p *picture) endLead(n *pictureProcess, at time.Time) {
	if n.leads.IsZero() {
		return
	}
	if n.lapses.Before(at) {
		at = n.lapses
	}
	p.paint(&n.pictureRow, n.leads, at, '=')
	n.leads = time.Time{}
}

func (p *picture) endDown(n *pictureProcess, at time.Time) {
	if !n.down.IsZero() {
		p.paint(&n.pictureRow, n.down, at, '#')
		n.down = time.Time{}
	}
}

// write writes the picture, with its legend.
func (p *picture) write(w *page) {
	end := p.start.Add(p.scenario.For)
	for i := range p.processes {
		n := &p.processes[i]
		p.endLead(n, end)
		p.endDown(n, end)
		for i, mark := range n.cells {
			if mark == ' ' {
				n.cells[i] = '-'
			}
		}
	}
	p.writeAxis(w, end)
	if len(p.scenario.Faults) > 0 {
		p.line(w, "faults", p.faults)
	}
	for i := range p.processes {
		p.line(w, p.processes[i].name, p.processes[i].cells)
	}
	fmt.Fprintln(w)
	rows := slices.Clone(p.schedules)
	if len(rows) > mostRowsDrawn {
		slices.SortStableFunc(rows, func(a, b pictureRow) int { return cmp.Compare(b.worst, a.worst) })
	}
	for _, row := range rows[:min(len(rows), mostRowsDrawn)] {
		p.line(w, row.name, row.cells)
	}
	if more := len(rows) - mostRowsDrawn; more > 0 {
		fmt.Fprintf(w, "and %s more, none of them worse than the last one here\n", count(int64(more), "schedule", "schedules"))
	}
	p.writeLegend(w)
}

func (p *picture) line(w *page, name string, cells []byte) {
	for _, mark := range cells {
		p.drawn[mark] = true
	}
	fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-*s  %s", p.tag, name, cells), " "))
}

// writeAxis writes when the picture begins, its middle and its end.
func (p *picture) writeAxis(w *page, end time.Time) {
	const form = "2006-01-02 15:04"
	axis := bytes.Repeat([]byte{' '}, p.cells)
	copy(axis, p.start.Format(form))
	if p.cells > 2*len(form) {
		copy(axis[p.cells-len(form):], end.Format(form))
	}
	if middle := p.start.Add(p.scenario.For / 2).Format(form); p.cells > 4*len(form) {
		copy(axis[p.cells/2:], middle)
	}
	ticks := bytes.Repeat([]byte{' '}, p.cells)
	for _, at := range []int{0, p.cells / 2, p.cells - 1} {
		ticks[at] = '|'
	}
	indent := strings.Repeat(" ", p.tag+columnGap)
	fmt.Fprintf(w, "%s%s\n%s%s\n", indent, strings.TrimRight(string(axis), " "), indent, strings.TrimRight(string(ticks), " "))
}

// writeLegend explains the marks that were drawn.
func (p *picture) writeLegend(w *page) {
	var words []string
	for _, m := range pictureMarks {
		if p.drawn[m.mark] && m.about != "" {
			words = append(words, fmt.Sprintf("%c %s", m.mark, m.about))
		}
	}
	if p.drawn['+'] {
		words = append(words, "+ several faults at once")
	}
	words = append(words, fmt.Sprintf("a column is %s", exact((p.scenario.For/time.Duration(p.cells)).Round(time.Second))))
	fmt.Fprintln(w)
	w.hang("", strings.Join(words, "; "))
	for i := range p.scenario.Faults {
		mark := fmt.Sprint(min(i+1, 9))
		if !p.drawn[mark[0]] && !p.drawn['+'] {
			continue
		}
		if i >= 9 {
			fmt.Fprintf(w, "9 also the other %d\n", len(p.scenario.Faults)-i)
			break
		}
		fmt.Fprintf(w, "%s %s\n", mark, printable(p.scenario.Faults[i].String()))
	}
	fmt.Fprintln(w)
}

// pictureWidthOn is how wide a picture is to be: as the flag says, or as what it is
// drawn on.
func pictureWidthOn(w io.Writer, flag int) int {
	if flag != 0 {
		return flag
	}
	return min(max(terminalWidth(w, pictureWidth), leastPicture), mostPicture)
}
