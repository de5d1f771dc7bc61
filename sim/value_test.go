package sim

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0s":           0,
		"1ms":          time.Millisecond,
		"250ms":        250 * time.Millisecond,
		"70s":          70 * time.Second,
		"90m":          90 * time.Minute,
		"1h30m":        90 * time.Minute,
		"14d":          14 * 24 * time.Hour,
		"1d1h1m1s1ms":  25*time.Hour + time.Minute + time.Second + time.Millisecond,
		"106751d":      106751 * 24 * time.Hour,
		"106751d23h":   106751*24*time.Hour + 23*time.Hour,
		"153722867m1s": 153722867*time.Minute + time.Second,
	} {
		d, r := parseDuration(text)
		require.Nil(t, r, text)
		require.Equal(t, want, d, text)
	}
}

func TestDurationRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text, found, allowed string
		at                   int
		hint                 string
	}{
		"nothing":               {"", `the end of ""`, durationForm, 0, ""},
		"a number alone":        {"60", `the end of "60"`, durationOrder, 2, ""},
		"a unit alone":          {"h", `"h"`, durationForm, 0, ""},
		"a sign":                {"-5m", `"-5m"`, durationForm, 0, ""},
		"a fraction":            {"1.5h", `".5h"`, durationOrder, 1, "write 1h30m"},
		"a leading zero":        {"05m", `"05m"`, durationForm, 0, "write 5m"},
		"another zero":          {"0m", `"0m"`, durationForm, 0, ""},
		"a zero part":           {"1h0m", `"0m"`, durationForm, 2, "write 1h"},
		"the smaller one first": {"1s5m", `"m"`, durationOrder, 3, "put the larger unit first: write 5m1s"},
		"smaller ones first":    {"30m1h", `"h"`, durationOrder, 4, "put the larger unit first: write 1h30m"},
		"a unit twice":          {"1h1h", `"h"`, durationOrder, 3, "write 2h"},
		"an unknown unit":       {"2w", `"w"`, durationOrder, 1, "write 14d"},
		"an unknown long unit":  {"2mss", `"mss"`, durationOrder, 1, ""},
		"a capital unit":        {"5S", `"S"`, durationOrder, 1, "write 5s"},
		"a blank":               {"1h 5m", `" 5m"`, durationForm, 2, "write 1h5m"},
		"other digits":          {"٥m", `"٥m"`, durationForm, 0, ""},
		"too much":              {"106752d", `"106752d"`, "at most 106751d", 0, ""},
		"a sum of too much":     {"106751d24h", `"106751d24h"`, "at most 106751d", 0, ""},
		"more than 64 bits":     {"99999999999999999999s", `"99999999999999999999s"`, "at most 106751d", 0, ""},
	} {
		_, r := parseDuration(c.text)
		require.Equal(t, &refusal{at: c.at, found: c.found, allowed: c.allowed, hint: c.hint}, r, name)
	}
}

func TestDurationReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, math.MaxInt64/1_000_000).Draw(t, "ms")) * time.Millisecond
		back, r := parseDuration(formatDuration(d))
		require.Nil(t, r)
		require.Equal(t, d, back)
	})
}

// TestDurationWithoutText: a duration that the format cannot say must not be
// written as one that it can.
func TestDurationWithoutText(t *testing.T) {
	for _, d := range []time.Duration{-1, -time.Second, 1, 1500 * time.Microsecond, math.MinInt64, math.MaxInt64} {
		_, r := parseDuration(formatDuration(d))
		require.NotNil(t, r, d)
	}
}

func TestValueTexts(t *testing.T) {
	var (
		chance  PPM
		by      time.Duration
		takes   Span
		small   int16
		seed    uint64
		handler Handler
		when    time.Time
		spec    string
	)
	values := map[string]value{
		"p": chanceValue{&chance}, "by": offsetValue{&by}, "takes": spanValue{s: &takes, least: time.Millisecond},
		"priority": numberValue[int16]{n: &small, least: math.MinInt16, most: math.MaxInt16},
		"seed":     numberValue[uint64]{n: &seed, most: math.MaxUint64},
		"handler":  handlerValue{&handler}, "start": instantValue{&when}, "every": everyValue{&spec},
	}
	for _, c := range []struct{ value, text, want string }{
		{"p", "1", "1"},
		{"p", "1.0", "1"},
		{"p", "0.3", "0.3"},
		{"p", "0.000001", "0.000001"},
		{"p", "0.300000", "0.3"},
		{"p", "30%", "0.3"},
		{"p", "100%", "1"},
		{"p", "0.0001%", "0.000001"},
		{"p", "12.5%", "0.125"},
		{"by", "+8h", "+8h"},
		{"by", "-90s", "-1m30s"},
		{"takes", "2s", "2s"},
		{"takes", "1s..5s", "1s..5s"},
		{"takes", "0s..5s", "0s..5s"},
		{"takes", "5s..5s", "5s"},
		{"priority", "-32768", "-32768"},
		{"priority", "32767", "32767"},
		{"priority", "0", ""},
		{"seed", "18446744073709551615", "18446744073709551615"},
		{"handler", "ok", ""},
		{"handler", "ok:0s", ""},
		{"handler", "ok:2s", "ok:2s"},
		{"handler", "ok:1s..5s", "ok:1s..5s"},
		{"handler", "fail", "fail"},
		{"handler", "fail:30%", "fail:0.3"},
		{"handler", "fail:0.3:1s..5s", "fail:0.3:1s..5s"},
		{"handler", "fail:2s", "fail:2s"},
		{"handler", "slow", "slow"},
		{"start", "2026-03-29T02:30:00+02:00", "2026-03-29T00:30:00Z"},
		{"start", "2026-03-29T02:30:00.007Z", "2026-03-29T02:30:00.007Z"},
		{"every", "168h", "168h"},
		{"every", "106751d", "106751d"},
	} {
		v := values[c.value]
		require.Nil(t, v.parse(c.text), c.text)
		require.Equal(t, c.want, v.text(), c.text)
	}
	for _, c := range []struct{ value, text, found, allowed, hint string }{
		{"p", "0", `"0"`, chanceForm, ""},
		{"p", "1.000001", `"1.000001"`, chanceForm, ""},
		{"p", ".3", `".3"`, chanceForm, ""},
		{"p", "0.", `"0."`, chanceForm, ""},
		{"p", "0.0000001", `"0.0000001"`, chanceForm, ""},
		{"p", "101%", `"101%"`, chanceForm, ""},
		{"p", "00.3", `"00.3"`, chanceForm, ""},
		{"p", "1e-3", `"1e-3"`, chanceForm, ""},
		{"p", "-0.3", `"-0.3"`, chanceForm, ""},
		{"p", "%", `"%"`, chanceForm, ""},
		{"p", "70000", `"70000"`, chanceForm, ""},
		{"by", "8h", `"8h"`, "an offset with its sign, such as +8h or -90s", ""},
		{"by", "+0s", `"0s"`, "a duration of at least 1ms", ""},
		{"takes", "5s..1s", `"5s..1s"`, "a range whose end is not before its beginning", ""},
		{"takes", "0s", `"0s"`, "at least 1ms", ""},
		{"takes", "1s..", `"1s.."`, spanForm, ""},
		{"takes", "..1s", `"..1s"`, spanForm, ""},
		{"takes", "1s..x", `"x"`, durationForm, ""},
		{"priority", "32768", `"32768"`, "a whole number from -32768 to 32767", ""},
		{"priority", "+1", `"+1"`, "a whole number from -32768 to 32767", ""},
		{"priority", "01", `"01"`, "a whole number from -32768 to 32767", ""},
		{"priority", "98304", `"98304"`, "a whole number from -32768 to 32767", ""},
		{"seed", "-1", `"-1"`, "a whole number from 0 to 18446744073709551615", ""},
		{"seed", "18446744073709551616", `"18446744073709551616"`, "a whole number from 0 to 18446744073709551615", ""},
		{"handler", "fial", `"fial"`, handlerForm, `did you mean "fail"?`},
		{"handler", "slow:5s", `"5s"`, "a handler such as " + handlerForm, ""},
		{"handler", "ok:0.3", `"0.3"`, "a handler such as " + handlerForm, ""},
		{"handler", "fail:2:1s", `"2"`, chanceForm, ""},
		{"handler", "fail:0.3:1s:2s", `"1s:2s"`, "a handler such as " + handlerForm, ""},
		{"handler", "ok:", `""`, "a handler such as " + handlerForm, ""},
		{"start", "2026-03-29", `"2026-03-29"`, instantForm, ""},
		{"start", "2026-03-29T00:00:00.0001Z", `"2026-03-29T00:00:00.0001Z"`, instantForm, ""},
		{"start", "0001-01-01T00:00:00Z", `"0001-01-01T00:00:00Z"`, instantForm, ""},
		{"start", "2026-02-30T00:00:00Z", `"2026-02-30T00:00:00Z"`, instantForm, ""},
		{"start", "2026-03-29T00:00:00,5Z", `"2026-03-29T00:00:00,5Z"`, instantForm, ""},
		{"every", "1h30m", `"3"`, "the end after one number and one unit", `write every="90m"`},
		{"every", "", `the end of ""`, "a whole number from 1 on, without a sign", ""},
		{"every", "@every 5m", `"@"`, "a whole number from 1 on, without a sign", "leave out @every"},
		{
			"every", "@daily", `"@"`, "a whole number from 1 on, without a sign",
			`@daily is cron, which is not in this grammar: write every="1d"`,
		},
		{"every", "*/5 * * * *", `"*"`, "a whole number from 1 on, without a sign", `write every="5m"`},
	} {
		v := values[c.value]
		before := v.text()
		r := v.parse(c.text)
		require.NotNil(t, r, c.text)
		require.Equal(t, c.found, r.found, c.text)
		require.Equal(t, c.allowed, r.allowed, c.text)
		require.Equal(t, c.hint == "", r.hint == "", c.text)
		require.Contains(t, r.hint, c.hint, c.text)
		if c.value != "handler" {
			require.Equal(t, before, v.text(), "a refused %s changes nothing", c.text)
		}
	}
}
