package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// bar shows on a terminal how far a work of many runs is: a bar, how many were
// made, in what time and at what rate, and how long the others may take.
type bar struct {
	to      io.Writer
	writer  progress.Writer // nil where nobody looks
	tracker progress.Tracker
	drawn   sync.WaitGroup
}

// newBar shows the bar, if w is a terminal.
func newBar(w io.Writer, total int64) *bar {
	b := &bar{to: w, tracker: progress.Tracker{Total: total}}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return b
	}
	b.writer = progress.NewWriter()
	b.writer.SetOutputWriter(w)
	if width, _, err := term.GetSize(int(f.Fd())); err == nil {
		b.writer.SetTerminalWidth(width)
	}
	style := progress.StyleBlocks
	style.Visibility.ETA, style.Visibility.Speed = true, true
	style.Options.ETAString, style.Options.TimeInProgressPrecision = "left", time.Second
	style.Options.Separator, style.Options.PercentFormat = "  ", "%3.0f%%"
	b.writer.SetStyle(style)
	b.writer.AppendTracker(&b.tracker)
	b.drawn.Go(b.writer.Render)
	return b
}

// set shows how many runs were made, and how many of the sweep's have failed.
func (b *bar) set(runs, failed int64) {
	message := ""
	if failed > 0 {
		message = number(failed) + " failed"
	}
	b.show(runs, message)
}

// show shows how many runs were made, and a message if there is one.
func (b *bar) show(runs int64, message string) {
	b.tracker.SetValue(runs)
	if message != "" {
		b.tracker.UpdateMessage(message)
	}
}

// say tells something beside the bar.
func (b *bar) say(text string) {
	if b.writer != nil {
		b.writer.Log("%s", text)
		return
	}
	fmt.Fprintln(b.to, text)
}

// stop takes the bar away.
func (b *bar) stop() {
	if b.writer == nil {
		return
	}
	b.tracker.MarkAsDone()
	b.writer.Stop()
	b.drawn.Wait()
	io.WriteString(b.to, text.CursorUp.Sprint()+text.EraseLine.Sprint())
}

// patience says on a terminal, unless stop is called within three seconds, why
// something takes long.
func patience(to io.Writer, why string) (stop func()) {
	if f, ok := to.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	said := time.AfterFunc(3*time.Second, func() {
		fmt.Fprintln(to, why)
	})
	return func() { said.Stop() }
}

// longRun is why a run takes long, and how it may end.
const longRun = "still running: the scenario is long, or its schedules come very often; " +
	"a run that takes too many events or too much memory is broken off, with the verdict budget"
