package tickonce_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
)

const day = 24 * time.Hour

func TestG3SpecRoundTrips(t *testing.T) {
	for text, interval := range map[string]time.Duration{
		"@every 1s":          time.Second,
		"@every 90m":         90 * time.Minute,
		"@every 36h":         36 * time.Hour,
		"@every 7d":          7 * day,
		"@every 106751d":     106_751 * day,
		"@every 9223372036s": 9_223_372_036 * time.Second,
	} {
		spec, err := tickonce.ParseSpec(text)
		require.NoError(t, err)
		require.Equal(t, text, spec.String())
		require.Equal(t, interval, spec.Interval())
		again, err := tickonce.Every(interval)
		require.NoError(t, err)
		require.Equal(t, spec, again)
	}
}

func TestG3EveryTakesWholeSeconds(t *testing.T) {
	for _, interval := range []time.Duration{
		0, 1, time.Millisecond, 999 * time.Millisecond, time.Second + 1, 1500 * time.Millisecond,
		-time.Second, math.MinInt64, math.MaxInt64,
	} {
		spec, err := tickonce.Every(interval)
		require.ErrorIs(t, err, tickonce.ErrInvalidOption, interval)
		require.ErrorContains(t, err, "want whole seconds from 1s on")
		require.Zero(t, spec)
	}
}

func TestG4SpecError(t *testing.T) {
	spec, err := tickonce.ParseSpec("@every 1h30m")
	require.ErrorIs(t, err, tickonce.ErrInvalidSpec)
	require.Zero(t, spec)
	require.Empty(t, spec.String())
	var details *tickonce.SpecError
	require.ErrorAs(t, err, &details)
	require.Equal(t, tickonce.SpecError{
		Text: "@every 1h30m", Offset: 9, Found: "3",
		Allowed: "the end after one number and one unit", Hint: `write "@every 90m"`,
	}, *details)
}

func TestG3NextIsTheFirstBoundaryAfter(t *testing.T) {
	at := func(d time.Duration) time.Time { return start.Add(d) }
	spec, err := tickonce.ParseSpec("@every 7s")
	require.NoError(t, err)
	for _, c := range []struct {
		name                string
		anchor, after, want time.Time
	}{
		{"before the anchor", at(0), at(-1), at(0)},
		{"at the anchor", at(0), at(0), at(7 * time.Second)},
		{"a nanosecond before a boundary", at(0), at(7*time.Second - 1), at(7 * time.Second)},
		{"at a boundary", at(0), at(7 * time.Second), at(14 * time.Second)},
		{"a nanosecond after a boundary", at(0), at(7*time.Second + 1), at(14 * time.Second)},
		{"a fraction of the anchor is rounded up", at(1), at(time.Second), at(7*time.Second + time.Millisecond)},
		{"another zone is the same grid", at(0).In(time.FixedZone("x", 3600)), at(8 * time.Second), at(14 * time.Second)},
		{"an anchor of 1969", time.Unix(-4, 0), at(0), at(3 * time.Second)},
		{"before the epoch", time.Unix(-14, 0), time.Unix(-8, 0), time.Unix(-7, 0).UTC()},
		{"no anchor", time.Time{}, at(0), time.Time{}},
		{"an anchor out of range", time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC), at(0), time.Time{}},
		{"after out of range", at(0), time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Time{}},
		{"past the last instant", at(0), time.UnixMilli(1<<53 - 1), time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := spec.Next(c.anchor, c.after)
			require.Equal(t, c.want, next)
			require.Equal(t, time.UTC, next.Location())
		})
	}
	require.Zero(t, tickonce.Spec{}.Next(at(0), at(0)))
}

func TestC95FractionsOfASecondAreRefused(t *testing.T) {
	for _, text := range []string{"@every 500ms", "@every 1s999ms", "@every 0.5s", "@every 1.5s", "@every 1000000us"} {
		_, err := tickonce.ParseSpec(text)
		require.ErrorIs(t, err, tickonce.ErrInvalidSpec, text)
	}
}

func TestC96C97ZeroAndNegativeIntervalsAreRefused(t *testing.T) {
	for _, text := range []string{"@every 0s", "@every 0d", "@every -1s", "@every -0s", "@every 00s"} {
		_, err := tickonce.ParseSpec(text)
		require.ErrorIs(t, err, tickonce.ErrInvalidSpec, text)
	}
}

func TestC102HugeNumbersAreRefused(t *testing.T) {
	for _, text := range []string{"@every 1e300s", "@every 1e300", "@every Infs", "@every 106752d", "@every 18446744073709551617s"} {
		_, err := tickonce.ParseSpec(text)
		require.ErrorIs(t, err, tickonce.ErrInvalidSpec, text)
	}
}

func TestC103NinetyDaysAreNinetyDays(t *testing.T) {
	spec, err := tickonce.ParseSpec("@every 90d")
	require.NoError(t, err)
	require.Equal(t, start.Add(90*day), spec.Next(start, start))
}

func TestC107OnlyASCII(t *testing.T) {
	for _, text := range []string{"@every\u00a05m", "@every 5\u00a0m", "@every ٥m", "@every ５m", "@every 5ｍ", "@every 5m\u200b", "＠every 5m", "@every 5µs"} {
		_, err := tickonce.ParseSpec(text)
		require.ErrorIs(t, err, tickonce.ErrInvalidSpec, text)
	}
}
