package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string][]word{
		"":          nil,
		" \t ":      nil,
		"# a b":     nil,
		"a #b":      {{column: 1, raw: "a", text: "a", textAt: 1}},
		"a#b":       {{column: 1, raw: "a#b", text: "a#b", textAt: 1}},
		"\ta  b=c":  {{column: 2, raw: "a", text: "a", textAt: 2}, {column: 5, raw: "b=c", key: "b", text: "c", textAt: 7}},
		"b=":        {{column: 1, raw: "b=", key: "b", textAt: 3}},
		"b=c=d":     {{column: 1, raw: "b=c=d", key: "b", text: "c=d", textAt: 3}},
		`"a b"`:     {{column: 1, raw: `"a b"`, text: "a b", textAt: 1, quoted: true}},
		`"a=b"`:     {{column: 1, raw: `"a=b"`, text: "a=b", textAt: 1, quoted: true}},
		`k="\"#"`:   {{column: 1, raw: `k="\"#"`, key: "k", text: `"#`, textAt: 3, quoted: true}},
		`"a b".c=1`: {{column: 1, raw: `"a b".c=1`, key: `"a b".c`, text: "1", textAt: 9}},
		"ä=ö":       {{column: 1, raw: "ä=ö", key: "ä", text: "ö", textAt: 4}},
	} {
		words, r := split(line)
		require.Nil(t, r, line)
		require.Equal(t, want, words, line)
	}
}

func TestQuotedTextReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z"=#. ]*`)).Draw(t, "text")
		for _, line := range []string{quote(text) + " x", "k=" + quote(text) + "\tx"} {
			words, r := split(line)
			require.Nil(t, r, line)
			require.Len(t, words, 2, line)
			require.Equal(t, text, words[0].text, line)
		}
	})
}

func TestNearest(t *testing.T) {
	known := []string{"every=", "expires=", "queue=", "handler=", "p="}
	for word, want := range map[string]string{
		"evry=": "every=", "eevry=": "every=", "ever=": "every=", "queu=": "queue=", "qeueu=": "queue=",
		"x=": "p=", "expire=": "expires=", "every": "every=", "frobnicate=": "", "": "",
	} {
		require.Equal(t, want, nearest(word, known), word)
	}
	require.Equal(t, "ab", nearest("aa", []string{"ab", "ac"}), "the first of equals")
	require.Equal(t, 1, edits("ab", "ba"))
	require.Equal(t, 3, edits("ca", "abc"), "no edit inside a swap")
}
