package core_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

func TestN2Names(t *testing.T) {
	ok, invalid, reserved := error(nil), core.ErrInvalidName, core.ErrReservedName
	for _, c := range []struct {
		name, text string
		want       error
	}{
		{"one byte", "a", ok},
		{"128 bytes", strings.Repeat("a", 128), ok},
		{"128 bytes of two-byte letters", strings.Repeat("é", 64), ok},
		{"129 bytes", strings.Repeat("a", 129), invalid},
		{"65 letters, but 130 bytes", strings.Repeat("é", 65), invalid},
		{"empty", "", invalid},
		{"a space inside", "a b", ok},
		{"only a space", " ", invalid},
		{"leading space", " a", invalid},
		{"trailing space", "a ", invalid},
		{"leading no-break space", "\u00a0a", invalid},
		{"trailing ideographic space", "a\u3000", invalid},
		{"a no-break space inside", "a\u00a0b", ok},
		{"NUL", "a\x00b", invalid},
		{"a line end", "a\nb", invalid},
		{"a tab", "a\tb", invalid},
		{"delete", "a\x7f", invalid},
		{"a C1 control", "a\u0085b", invalid},
		{"invalid UTF-8", "a\xffb", invalid},
		{"a cut letter", "a\xc3", invalid},
		{"a surrogate", "a\xed\xa0\x80", invalid},
		{"the replacement character itself", "a\ufffd", ok},
		{"an emoji", "⏰", ok},
		{"slash, dot, quote", `a/b.c"d'`, ok},
		{"the reserved prefix alone", "__alkstore_", reserved},
		{"a reserved name", "__alkstore_x", reserved},
		{"the leader's lock", store.SchedulerLock, reserved},
		{"an outbox queue", core.OutboxPrefix + "mail", reserved},
		{"upper case is not reserved", "__ALKSTORE_x", ok},
		{"mixed case is not reserved", "__Alkstore_x", ok},
		{"the prefix further on", "x__alkstore_", ok},
		{"the prefix cut short", "__alkstore", ok},
		{"malformed and reserved: the syntax is checked first", "__alkstore_ ", invalid},
		{"too long and reserved", "__alkstore_" + strings.Repeat("a", 118), invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := core.CheckName("queue", c.text)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.want)
			var details *core.NameError
			require.ErrorAs(t, err, &details)
			require.Equal(t, core.NameError{What: "queue", Name: c.text, Problem: details.Problem, Kind: c.want}, *details)
			require.NotEmpty(t, details.Problem)
			require.ErrorContains(t, err, "queue")
			for _, other := range []error{invalid, reserved, core.ErrInvalidSpec} {
				require.Equal(t, other == c.want, details.Is(other))
			}
		})
	}
}

func TestN2TheMessageSaysWhere(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "is empty, want 1 to 128 bytes",
		strings.Repeat("a", 300): "has 300 bytes, want at most 128",
		"ab\xff":                 "is not valid UTF-8 at byte 2",
		"é\x07":                  "has a control character at byte 2",
		" a":                     "begins with a space",
		"a ":                     "ends with a space",
		"__alkstore_a":           "begins with __alkstore_, which belongs to the engine",
	} {
		require.ErrorContains(t, core.CheckName("lock", text), want)
	}
	require.EqualError(t, core.CheckName("lock", "a\x00"), `invalid name: lock "a\x00" has a control character at byte 1`)
}

func TestCleanText(t *testing.T) {
	for _, c := range []struct {
		name, in string
		limit    int
		want     string
	}{
		{"as it is", "error: é", 100, "error: é"},
		{"at the limit", "abc", 3, "abc"},
		{"one past the limit", "abcd", 3, "abc"},
		{"cut before a letter of two bytes", "abé", 3, "ab"},
		{"cut before an emoji", "ab⏰", 4, "ab"},
		{"NUL", "a\x00b", 100, "a\ufffdb"},
		{"invalid UTF-8", "a\xffb", 100, "a\ufffdb"},
		{"a run of invalid bytes", "a\xff\xfe\xfdb", 100, "a\ufffdb"},
		{"what grows is cut too", "\x00\x00", 5, "\ufffd"},
		{"nothing fits", "⏰", 2, ""},
		{"limit 0", "abc", 0, ""},
		{"empty", "", 10, ""},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, core.CleanText(c.in, c.limit)) })
	}
}

func TestCleanTextIsAlwaysClean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "text"))
		limit := rapid.IntRange(0, 50).Draw(t, "limit")
		out := core.CleanText(in, limit)
		require.True(t, utf8.ValidString(out))
		require.NotContains(t, out, "\x00")
		require.LessOrEqual(t, len(out), limit)
		require.Equal(t, out, core.CleanText(out, limit), "clean already")
	})
}
