package properties_test

import (
	"math/big"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce"
)

var grammar = regexp.MustCompile(`^@every ([1-9][0-9]*)([smhd])$`)

// modelSpec reads a spec with a pattern and unbounded numbers.
func modelSpec(text string) (interval *big.Int, ok bool) {
	m := grammar.FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	unit := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": day}[m[2]]
	n, _ := new(big.Int).SetString(m[1], 10)
	interval = n.Mul(n, big.NewInt(int64(unit)))
	return interval, interval.IsInt64()
}

// checkSpec compares the parser with the model, and looks for what must hold
// of every answer.
func checkSpec(t require.TestingT, text string) {
	interval, ok := modelSpec(text)
	spec, err := tickonce.ParseSpec(text)
	if ok {
		require.NoError(t, err)
		require.Equal(t, text, spec.String())
		require.Equal(t, interval.Int64(), int64(spec.Interval()))
		return
	}
	require.ErrorIs(t, err, tickonce.ErrInvalidSpec)
	require.Zero(t, spec)
	var fault *tickonce.SpecError
	require.ErrorAs(t, err, &fault)
	require.Equal(t, text, fault.Text)
	require.LessOrEqual(t, 0, fault.Offset)
	require.LessOrEqual(t, fault.Offset, len(text))
	require.NotEmpty(t, err.Error())
}

// drawSpecText draws a spec, or something that nearly is one.
func drawSpecText(t *rapid.T) string {
	number := rapid.OneOf(
		rapid.StringMatching(`[1-9][0-9]{0,4}`),
		rapid.StringMatching(`[0-9]{0,20}`),
		rapid.SampledFrom([]string{"106751", "106752", "2562047", "2562048", "153722867", "153722868", "9223372036", "9223372037", "9223372036854775808"}),
	).Draw(t, "number")
	text := "@every " + number + rapid.StringMatching(`[smhd]`).Draw(t, "unit")
	for range rapid.IntRange(0, 2).Draw(t, "mutations") {
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		rest := text[min(at+rapid.IntRange(0, 1).Draw(t, "cut"), len(text)):]
		text = text[:at] + rapid.SampledFrom([]string{"", "0", "s", "S", "w", " ", "\t", "+", "-", ".", "_", "1h", "٥", "\x00", "\xff", "* "}).Draw(t, "put") + rest
	}
	return text
}

func TestG1G2G3ParseAcceptsTheGrammarAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			checkSpec(t, rapid.Custom(drawSpecText).Draw(t, "text"))
		}
	})
}

func TestG3EveryReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, day}).Draw(t, "unit")
		n := rapid.Int64Range(1, int64(106_751*day/unit)).Draw(t, "n")
		interval := time.Duration(n) * unit
		spec, err := tickonce.Every(interval)
		require.NoError(t, err)
		require.Equal(t, interval, spec.Interval())

		again, err := tickonce.ParseSpec(spec.String())
		require.NoError(t, err)
		require.Equal(t, spec, again)

		text := spec.String()
		larger := map[byte]time.Duration{'s': time.Minute, 'm': time.Hour, 'h': day}[text[len(text)-1]]
		require.True(t, larger == 0 || interval%larger != 0, "a larger unit divides it")

		part := time.Duration(rapid.Int64Range(1, int64(time.Second)-1).Draw(t, "part"))
		for _, refused := range []time.Duration{interval - part, -interval, 0} {
			_, err = tickonce.Every(refused)
			require.ErrorIs(t, err, tickonce.ErrInvalidOption)
		}
	})
}

// S2: the first boundary of a registration is the same function.
func TestG3S2NextIsTheFirstBoundaryAfter(t *testing.T) {
	const edge = 8_700_000_000_000_000 // ms; near the ends of the years that are allowed
	instant := rapid.OneOf(rapid.Int64Range(-edge, edge), rapid.Int64Range(-100_000, 100_000))
	rapid.Check(t, func(t *rapid.T) {
		spec, err := tickonce.Every(time.Duration(rapid.Int64Range(1, 106_751*86_400).Draw(t, "seconds")) * time.Second)
		require.NoError(t, err)
		every := big.NewInt(spec.Interval().Milliseconds())
		anchor, after := instant.Draw(t, "anchor"), instant.Draw(t, "after")
		part := time.Duration(rapid.Int64Range(0, int64(time.Millisecond)-1).Draw(t, "part"))

		// The quotient is rounded down, so k is the least with anchor + k·every > after.
		k := new(big.Int).Div(new(big.Int).Sub(big.NewInt(after), big.NewInt(anchor)), every)
		k.Add(k, big.NewInt(1))
		if k.Sign() < 0 {
			k.SetInt64(0)
		}
		want := k.Mul(k, every)
		want.Add(want, big.NewInt(anchor))

		got := spec.Next(time.UnixMilli(anchor), time.UnixMilli(after).Add(part))
		require.Equal(t, time.UnixMilli(want.Int64()).UTC(), got)
	})
}
