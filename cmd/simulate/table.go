package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

const (
	columnGap = 2
	leastCut  = 12 // what a column is cut to at least
)

// column is a column of a table.
type column struct {
	title string
	kind  columnKind
}

type columnKind uint8

const (
	words   columnKind = iota // left, whole
	numbers                   // right, whole
	cut                       // left; shares what the whole columns leave
	wrapped                   // left; takes what the others leave, on as many lines as needed
)

// writeTable writes a table of printable cells, no wider than a page unless the
// whole columns are.
func writeTable(w *page, columns []column, rows [][]string, footer []string) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.Style{
		Box:     table.BoxStyle{PaddingRight: strings.Repeat(" ", columnGap), MiddleHorizontal: "─"},
		Options: table.Options{SeparateHeader: true, SeparateFooter: true},
	})
	t.SuppressTrailingSpaces()
	widths := columnWidths(w.width, columns, append(rows, footer))
	header, configs := table.Row{}, []table.ColumnConfig{}
	for i, c := range columns {
		header = append(header, c.title)
		config := table.ColumnConfig{Number: i + 1, WidthMax: widths[i], WidthMaxEnforcer: snip}
		switch c.kind {
		case numbers:
			config.Align, config.AlignHeader, config.AlignFooter = text.AlignRight, text.AlignRight, text.AlignRight
		case wrapped:
			config.WidthMaxEnforcer = text.WrapSoft
		}
		configs = append(configs, config)
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(configs)
	for _, row := range rows {
		t.AppendRow(cells(row))
	}
	if footer != nil {
		t.AppendFooter(cells(footer))
	}
	t.Render()
}

// columns is how wide a text is on a terminal.
func columns(s string) int { return text.StringWidth(s) }

func snip(s string, width int) string { return text.Snip(s, width, "…") }

func cells(row []string) table.Row {
	r := make(table.Row, len(row))
	for i, cell := range row {
		r[i] = cell
	}
	return r
}

// columnWidths gives each column its width on a page: the whole ones what they need, the
// others an equal share of the rest, from left to right, or what they need if
// that is less.
func columnWidths(page int, columns []column, rows [][]string) []int {
	widths := make([]int, len(columns))
	rest, shares := page-columnGap*len(columns), 0
	for i, c := range columns {
		widths[i] = text.StringWidth(c.title)
		for _, row := range rows {
			if row != nil {
				widths[i] = max(widths[i], text.StringWidth(row[i]))
			}
		}
		if c.kind == cut || c.kind == wrapped {
			shares++
		} else {
			rest -= widths[i]
		}
	}
	for i, c := range columns {
		if c.kind == cut || c.kind == wrapped {
			widths[i] = min(widths[i], max(rest/shares, leastCut))
			rest -= widths[i]
			shares--
		}
	}
	return widths
}

// printable is the text with what a terminal might obey, or show as something
// else, escaped.
func printable(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unicode.IsPrint(r):
			escaped := strconv.QuoteRune(r)
			b.WriteString(escaped[1 : len(escaped)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// printableLines is printable for a text of several lines.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = printable(strings.ReplaceAll(lines[i], "\t", "  "))
	}
	return strings.Join(lines, "\n")
}

// number is a number with separators between the thousands.
func number[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// count is a number with its noun.
func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// span is a duration in its largest units, to be read at a glance: 1d2h3m, 15h,
// 250ms, 400d.
func span(d time.Duration) string {
	switch {
	case d.Abs() >= 1000*day:
		return inUnits(d, 1)
	case d.Abs() >= 100*day:
		return inUnits(d, 2)
	default:
		return inUnits(d, 3)
	}
}

// exact is a duration in all its units, down to the millisecond.
func exact(d time.Duration) string { return inUnits(d, 5) }

const day = 24 * time.Hour

// inUnits is a duration in its largest unit and as many after that as make
// most.
func inUnits(d time.Duration, most int) string {
	if d < 0 {
		return "-" + inUnits(-d, most)
	}
	var s string
	for _, u := range []struct {
		name string
		unit time.Duration
	}{{"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}} {
		n := d / u.unit
		d -= n * u.unit
		if n > 0 && most > 0 {
			s += strconv.FormatInt(int64(n), 10) + u.name
		}
		if s != "" {
			most--
		}
	}
	if s == "" {
		return "0s"
	}
	return s
}

// instant is a time in RFC 3339, with milliseconds where there are any.
func instant(t time.Time) string {
	if t.Nanosecond() == 0 {
		return t.UTC().Format("2006-01-02T15:04:05Z")
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
