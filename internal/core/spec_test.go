package core_test

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/internal/core"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func TestG1Accepted(t *testing.T) {
	for text, ms := range map[string]int64{
		"@every 1s":          1000,
		"@every 2s":          2000,
		"@every 5s":          5000,
		"@every 15s":         15_000,
		"@every 30s":         30_000,
		"@every 360s":        360_000,
		"@every 1m":          60_000,
		"@every 3m":          180_000,
		"@every 5m":          300_000,
		"@every 10m":         600_000,
		"@every 1440m":       86_400_000,
		"@every 1h":          3_600_000,
		"@every 6h":          21_600_000,
		"@every 24h":         86_400_000,
		"@every 72h":         259_200_000,
		"@every 168h":        604_800_000,
		"@every 1d":          86_400_000,
		"@every 90d":         7_776_000_000,
		"@every 106751d":     106_751 * 86_400_000,
		"@every 2562047h":    2_562_047 * 3_600_000,
		"@every 153722867m":  153_722_867 * 60_000,
		"@every 9223372036s": 9_223_372_036_000,
	} {
		spec, err := core.ParseSpec(text)
		require.NoError(t, err, text)
		require.Equal(t, ms, spec.IntervalMS(), text)
		require.Equal(t, text, spec.String(), "G3")
	}
}

func TestG1G2RefusedAtByte(t *testing.T) {
	for _, c := range []struct {
		name, text string
		at         int
	}{
		{"nothing", "", 0},
		{"the prefix alone", "@every ", 7},
		{"a prefix cut short", "@ever", 5},
		{"no space", "@every5s", 6},
		{"two spaces", "@every  5s", 7},
		{"a tab", "@every\t5s", 6},
		{"a no-break space", "@every\u00a05s", 6},
		{"a blank before", " @every 5s", 0},
		{"a blank behind", "@every 5s ", 9},
		{"a line end behind", "@every 5s\n", 9},
		{"a NUL behind", "@every 5s\x00", 9},
		{"a NUL before", "\x00@every 5s", 0},
		{"a byte-order mark", "\ufeff@every 5s", 0},
		{"upper-case prefix", "@EVERY 5s", 1},
		{"upper-case unit", "@every 5S", 8},
		{"no number", "@every s", 7},
		{"no unit", "@every 5", 8},
		{"unknown unit", "@every 5w", 8},
		{"two units", "@every 5ss", 9},
		{"milliseconds", "@every 500ms", 11},
		{"minutes and a rest", "@every 5min", 9},
		{"zero", "@every 0s", 7},
		{"leading zero", "@every 05m", 7},
		{"minus", "@every -1s", 7},
		{"plus", "@every +5s", 7},
		{"a fraction", "@every 1.5h", 8},
		{"a comma", "@every 1,5h", 8},
		{"two parts", "@every 1h30m", 9},
		{"an exponent", "@every 1e3s", 8},
		{"an underscore", "@every 1_000s", 8},
		{"hexadecimal", "@every 0x10s", 7},
		{"Arabic digits", "@every ٥m", 7},
		{"full-width digits", "@every ５m", 7},
		{"a space before the unit", "@every 5 m", 8},
		{"a no-break space before the unit", "@every 5\u00a0m", 8},
		{"invalid UTF-8", "@every 5\xff", 8},
		{"days past a Duration", "@every 106752d", 7},
		{"hours past a Duration", "@every 2562048h", 7},
		{"minutes past a Duration", "@every 153722868m", 7},
		{"seconds past a Duration", "@every 9223372037s", 7},
		{"int64's end in days", "@every 9223372036854775807d", 7},
		{"int64's end plus one", "@every 9223372036854775808s", 7},
		{"a product that wraps to a small positive one", "@every 213503982334602d", 7},
		{"twenty digits", "@every 10000000000000000000s", 7},
		{"uint64 wraps to 5", "@every 18446744073709551621s", 7},
		{"a thousand digits", "@every " + strings.Repeat("9", 1000) + "s", 7},
		{"1e300", "@every 1" + strings.Repeat("0", 300) + "s", 7},
		{"a descriptor", "@daily", 1},
		{"cron", "*/5 * * * *", 0},
		{"cron of numbers", "0 30 * * * *", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, err := core.ParseSpec(c.text)
			require.ErrorIs(t, err, core.ErrInvalidSpec)
			require.Zero(t, spec)
			var details *core.SpecError
			require.ErrorAs(t, err, &details)
			require.Equal(t, c.text, details.Text)
			require.Equal(t, c.at, details.Offset)
			require.NotEmpty(t, details.Allowed)
			require.Less(t, len(err.Error()), 2000, "a message for people")
		})
	}
}

// What is accepted is exactly what a second reading of G1 and G2 accepts.
func TestG1MatchesItsWording(t *testing.T) {
	unit := map[byte]uint64{'s': 1, 'm': 60, 'h': 3600, 'd': 86_400}
	accepted := func(text string) bool {
		number, ok := strings.CutPrefix(text, "@every ")
		if !ok || number == "" || unit[number[len(number)-1]] == 0 {
			return false
		}
		n, err := strconv.ParseUint(number[:len(number)-1], 10, 64)
		return err == nil && n >= 1 && strconv.FormatUint(n, 10) == number[:len(number)-1] &&
			n <= math.MaxInt64/1_000_000_000/unit[number[len(number)-1]]
	}
	text := rapid.OneOf(
		rapid.StringMatching(`@every [0-9]{1,20}[smhdw]`),
		rapid.StringMatching(`@every [1-9][0-9]{0,7}[smhd]`),
		rapid.StringMatching(`@every [0-9+\-. _]{0,4}[smhd ]{0,2}`),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		s := text.Draw(t, "text")
		spec, err := core.ParseSpec(s)
		require.Equal(t, accepted(s), err == nil, "%q: %v", s, err)
		if err == nil {
			require.Equal(t, s, spec.String(), "G3")
			require.Positive(t, spec.IntervalMS())
			require.Zero(t, spec.IntervalMS()%1000)
		}
	})
}

func TestG3EveryPicksTheLargestUnit(t *testing.T) {
	for ms, want := range map[int64]string{
		1000:                 "@every 1s",
		59_000:               "@every 59s",
		60_000:               "@every 1m",
		61_000:               "@every 61s",
		5_410_000:            "@every 5410s",
		5_400_000:            "@every 90m",
		3_600_000:            "@every 1h",
		86_400_000:           "@every 1d",
		129_600_000:          "@every 36h",
		604_800_000:          "@every 7d",
		106_751 * 86_400_000: "@every 106751d",
		9_223_372_036_000:    "@every 9223372036s",
		9_223_372_036_854:    "",
		9_223_372_037_000:    "",
		math.MaxInt64:        "",
		0:                    "",
		-1000:                "",
		1:                    "",
		999:                  "",
		1001:                 "",
		math.MinInt64:        "",
		math.MinInt64 + 808:  "", // a whole number of seconds
	} {
		spec, ok := core.Every(ms)
		require.Equal(t, want != "", ok, "%d ms", ms)
		require.Equal(t, want, spec.String(), "%d ms", ms)
	}
}

func TestG3EveryRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := 1000 * rapid.Int64Range(1, core.MaxIntervalMS/1000).Draw(t, "seconds")
		spec, ok := core.Every(ms)
		require.True(t, ok)
		parsed, err := core.ParseSpec(spec.String())
		require.NoError(t, err)
		require.Equal(t, spec, parsed)
		require.Equal(t, ms, parsed.IntervalMS())
	})
}

// Every suggestion is itself a spec.
func TestG4SuggestionsParse(t *testing.T) {
	suggestions := 0
	for _, text := range goldenSpecs(t) {
		_, err := core.ParseSpec(text)
		var details *core.SpecError
		require.ErrorAs(t, err, &details, text)
		for _, quoted := range strings.SplitAfter(details.Hint, "write ")[1:] {
			prefix, err := strconv.QuotedPrefix(quoted)
			if err != nil {
				continue // "write its period"
			}
			spec, err := strconv.Unquote(prefix)
			require.NoError(t, err)
			_, err = core.ParseSpec(spec)
			require.NoError(t, err, "suggested for %q", text)
			suggestions++
		}
	}
	require.Greater(t, suggestions, 20)
}

// The messages are read by people: changes are reviewed as a diff.
func TestG4Messages(t *testing.T) {
	var got strings.Builder
	for _, text := range goldenSpecs(t) {
		_, err := core.ParseSpec(text)
		require.ErrorIs(t, err, core.ErrInvalidSpec, text)
		got.WriteString(err.Error() + "\n")
	}
	file := filepath.Join("testdata", "refused.golden")
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

// goldenSpecs are refused texts that people will try, one quoted text a line.
func goldenSpecs(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "refused.txt"))
	require.NoError(t, err)
	var texts []string
	for line := range strings.Lines(string(data)) {
		text, err := strconv.Unquote(strings.TrimSpace(line))
		require.NoError(t, err, line)
		texts = append(texts, text)
	}
	return texts
}

func TestG4CronIsNamed(t *testing.T) {
	for _, text := range []string{
		"@daily", "@hourly", "@midnight", "@weekly", "@monthly", "@yearly", "@annually",
		"* * * * *", "*/5 * * * *", "0 30 * * * *", "0 0 12 * * ? 2026", "TZ=UTC 0 6 * * MON-FRI",
	} {
		_, err := core.ParseSpec(text)
		require.ErrorContains(t, err, "cron", text)
		require.ErrorContains(t, err, "not in this grammar", text)
	}
}

// A step that does not divide the hour or the day has no even period: none is
// suggested.
func TestG4SuggestsThePeriodOfCron(t *testing.T) {
	for text, want := range map[string]string{
		"*/5 * * * *":          `write "@every 5m"`,
		"*/5 * * * * *":        `write "@every 5s"`,
		"* * * * *":            `write "@every 1m"`,
		"0 * * * *":            `write "@every 1h"`,
		"30 * * * *":           `write "@every 1h"`,
		"0 30 * * * *":         `write "@every 1h"`,
		"15 */2 * * *":         `write "@every 2h"`,
		"0 0 * * *":            `write "@every 1d"`,
		"30 4 * * *":           `write "@every 1d"`,
		"0 0 12 * * ?":         `write "@every 1d"`,
		"TZ=UTC */10 * * * *":  `write "@every 10m"`,
		"*/7 * * * *":          "write its period",
		"*/90 * * * *":         "write its period",
		"0 */5 * * *":          "write its period",
		"*/0 * * * *":          "write its period",
		"0,30 * * * *":         "write its period",
		"0 0 1 * *":            "\"@every 30d\" is near, but leaves the calendar",
		"30 0 0 1 * ?":         "\"@every 30d\" is near",
		"0 0 1 1 *":            "\"@every 365d\" is near, but leaves the calendar",
		"0 0 1 JAN *":          "\"@every 365d\" is near",
		"0 0 * * 0":            "write \"@every 7d\", which keeps the period but not the hour; an anchor keeps the hour in UTC",
		"0 3 * * sun":          "write \"@every 7d\"",
		"0 3 * * 1-5":          "write its period",
		"0 3 1,15 * *":         "write its period",
		"0 3 1 * 0":            "write its period",
		"0 9 * * MON-FRI":      "write its period",
		"0 0 12 * * ? 2026":    `only "@every <n><unit>" is`,
		"0 0 12 31 12 ? 2026":  `only "@every <n><unit>" is`,
		"@every 5m # comments": "the end after one number and one unit",
	} {
		_, err := core.ParseSpec(text)
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzG1ParseSpec(f *testing.F) {
	for _, s := range []string{"@every 1s", "@every 106751d", "@every 9223372036854775807d", "@daily", "*/5 * * * *", "@every 1h30m", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		spec, err := core.ParseSpec(s)
		if err != nil {
			require.ErrorIs(t, err, core.ErrInvalidSpec)
			require.NotEmpty(t, err.Error())
			return
		}
		require.Equal(t, s, spec.String())
		require.Zero(t, spec.IntervalMS()%1000)
		require.GreaterOrEqual(t, spec.IntervalMS(), int64(1000))
		require.LessOrEqual(t, spec.IntervalMS(), int64(core.MaxIntervalMS))
	})
}

func BenchmarkParseSpec(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := core.ParseSpec("@every 9223372036s"); err != nil {
			b.Fatal(err)
		}
	}
}

func TestG5ParsingAllocatesNothing(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = core.ParseSpec("@every 106751d") }))
}
