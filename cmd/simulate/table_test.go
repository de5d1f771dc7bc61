package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPrintable(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":             {"update_mirrors", "update_mirrors"},
		"other scripts":     {"日本 émoji 🎉", "日本 émoji 🎉"},
		"a colour":          {"\x1b[31mred", `\x1b[31mred`},
		"a bell and a tab":  {"a\a\tb", `a\a\tb`},
		"a line":            {"a\nb\r", `a\nb\r`},
		"delete":            {"\x7f", `\x7f`},
		"an 8-bit control":  {"\u009b31m", `\u009b31m`},
		"right to left":     {"a\u202eb", `a\u202eb`},
		"no width":          {"a\u200bb", `a\u200bb`},
		"no-break space":    {"a\u00a0b", `a\u00a0b`},
		"invalid":           {"a\xffb", `a\xffb`},
		"the replacement":   {"a\uFFFDb", "a\uFFFDb"},
		"quotes, backslash": {`a"'\b`, `a"'\b`},
	} {
		require.Equal(t, c.want, printable(c.in), name)
	}
	require.Equal(t, "a\n  b\\x1b", printableLines("a\n\tb\x1b"))
}

func TestSpan(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s":        0,
		"1ms":       time.Millisecond,
		"90ms":      90*time.Millisecond + time.Microsecond,
		"1m30s":     90 * time.Second,
		"15h":       15 * time.Hour,
		"1h2m3s":    time.Hour + 2*time.Minute + 3*time.Second + 4*time.Millisecond,
		"2d13h55m":  2*day + 13*time.Hour + 55*time.Minute + 59*time.Second,
		"100d23h":   101*day - 1,
		"106751d":   106_751*day + 23*time.Hour,
		"-8h":       -8 * time.Hour,
		"-1d2h3m":   -(day + 2*time.Hour + 3*time.Minute + 4*time.Second),
		"1s500ms":   1500 * time.Millisecond,
		"99d23h59m": 100*day - 1,
	} {
		require.Equal(t, want, span(d))
	}
	require.Equal(t, "106751d23h47m16s854ms", exact(1<<63-1))
	require.Equal(t, "0s", exact(0))
}

func TestNumber(t *testing.T) {
	for want, n := range map[string]int64{
		"0": 0, "999": 999, "1,000": 1000, "12,345,678": 12_345_678, "-1,000": -1000, "-999": -999,
		"9,223,372,036,854,775,807": 1<<63 - 1, "-9,223,372,036,854,775,808": -1 << 63,
	} {
		require.Equal(t, want, number(n))
	}
	require.Equal(t, "1 jump", count(1, "jump", "jumps"))
	require.Equal(t, "2,000 jumps", count(2000, "jump", "jumps"))
}

func TestInstant(t *testing.T) {
	at := time.Date(2026, 3, 29, 1, 30, 0, 0, time.FixedZone("", 3600))
	require.Equal(t, "2026-03-29T00:30:00Z", instant(at))
	require.Equal(t, "2026-03-29T00:30:00.050Z", instant(at.Add(50*time.Millisecond)))
}

// TestTableFitsThePage draws tables with cells of every length, on pages of
// several widths.
func TestTableFitsThePage(t *testing.T) {
	columns := []column{{"name", cut}, {"n", numbers}, {"w", words}, {"about", wrapped}}
	draw := func(width int, rows [][]string, footer []string) string {
		var b strings.Builder
		p := newPage(&b)
		p.width = width
		writeTable(p, columns, rows, footer)
		require.NoError(t, p.Flush())
		return b.String()
	}
	for name, cells := range map[string][]string{
		"short":      {"a", "1", "b", "c"},
		"long names": {strings.Repeat("name ", 30), "1", "b", "c"},
		"long texts": {"a", "1", "b", strings.Repeat("many words ", 40)},
		"all long":   {strings.Repeat("n", 500), "9,223,372,036,854,775,807", "words", strings.Repeat("t", 500)},
		"wide":       {strings.Repeat("日本", 100), "1", "b", strings.Repeat("日本", 100)},
	} {
		for _, width := range []int{mostPage, 80, 70} {
			text := draw(width, [][]string{cells, {"a", "2", "b", "c"}}, []string{"sum", "3", "", ""})
			require.GreaterOrEqual(t, strings.Count(text, "\n"), 6, name)
			requireFits(t, width, text)
		}
	}
	require.Contains(t, draw(mostPage, [][]string{{strings.Repeat("n", 200), "1", "b", "c"}}, nil), "nnn…  1  b  c\n")
}

// requireFits demands that no line is longer than the page is wide.
func requireFits(t *testing.T, width int, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		require.LessOrEqual(t, columns(line), width, line)
		require.Equal(t, strings.TrimRight(line, " "), line)
	}
}
