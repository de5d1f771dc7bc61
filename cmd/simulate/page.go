package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// page is what a command prints for people, with lines as long as its terminal
// is wide. Only what is to be copied, such as a command, may be longer.
type page struct {
	*bufio.Writer
	width int // in columns of a terminal
}

const (
	leastPage = 60
	mostPage  = 100 // and where there is no terminal
)

func newPage(to io.Writer) *page {
	return &page{bufio.NewWriter(to), min(max(terminalWidth(to, mostPage), leastPage), mostPage)}
}

// terminalWidth is how many columns the terminal has that is written to, or, if
// it is none, what is said.
func terminalWidth(to io.Writer, otherwise int) int {
	if f, ok := to.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return otherwise
}

// hang writes a text behind its head, on as many lines as needed, which begin
// below one another.
func (p *page) hang(head, s string) {
	p.fill(head, strings.Repeat(" ", columns(head[strings.LastIndexByte(head, '\n')+1:])), s)
}

// item writes a text of a list, so far from the left: what does not fit the line
// is further in than what begins one.
func (p *page) item(indent, s string) { p.fill(indent, indent+"  ", s) }

// fill writes a text behind its head, on as many lines as needed, with an indent.
func (p *page) fill(head, indent, s string) {
	for line := range strings.Lines(text.WrapSoft(s, p.width-len(indent))) {
		fmt.Fprintln(p, strings.TrimRight(head+line, " \n"))
		head = indent
	}
}

// whole begins a line of a judgement that is never broken: it is to be copied, or
// compared with the next one.
const whole = "  "

// judge writes what a verdict rests on.
func (p *page) judge(lines []string) {
	for _, line := range lines {
		if line = printable(line); strings.HasPrefix(line, whole) {
			fmt.Fprintln(p, "  "+line)
		} else {
			p.item("  ", line)
		}
	}
}
