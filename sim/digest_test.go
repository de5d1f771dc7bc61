package sim

import (
	"math/bits"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestDigestGolden freezes the digest; the vectors were computed by a second
// implementation in Python.
func TestDigestGolden(t *testing.T) {
	for want, take := range map[string]func(*Digest){
		"0000000000000000": func(*Digest) {},
		"dcc14a070f1df984": func(d *Digest) { d.Int(1, 0) },
		"cf9325632d12e725": func(d *Digest) { d.Int(1, -1) },
		"6b47969119d0ebd6": func(d *Digest) { d.Int(255, 1<<62) },
		"992ea1838a667ef5": func(d *Digest) { d.Text(1, "") },
		"12ee10ce10f332b2": func(d *Digest) { d.Text(2, "report") },
		"248c59a793034b34": func(d *Digest) { d.Text(2, "12345678") },
		"d114aa3318102265": func(d *Digest) { d.Text(2, "123456789") },
		"1df95a2b71770056": func(d *Digest) {
			for i := range 1000 {
				d.Int(1, int64(i*i))
				d.Text(2, strconv.Itoa(i))
			}
		},
	} {
		var d Digest
		take(&d)
		require.Equal(t, want, d.String())
	}
}

func TestDigestTellsApart(t *testing.T) {
	seen := map[Digest]string{}
	for name, take := range map[string]func(*Digest){
		"nothing":                  func(*Digest) {},
		"an integer":               func(d *Digest) { d.Int(1, 7) },
		"another tag":              func(d *Digest) { d.Int(2, 7) },
		"twice":                    func(d *Digest) { d.Int(1, 7); d.Int(1, 7) },
		"a text":                   func(d *Digest) { d.Text(1, "\a") },
		"a text with a zero after": func(d *Digest) { d.Text(1, "\a\x00") },
		"an empty text":            func(d *Digest) { d.Text(1, "") },
		"two texts":                func(d *Digest) { d.Text(1, "ab"); d.Text(1, "c") },
		"cut elsewhere":            func(d *Digest) { d.Text(1, "a"); d.Text(1, "bc") },
		"the other way round":      func(d *Digest) { d.Text(1, "c"); d.Text(1, "ab") },
		"one text":                 func(d *Digest) { d.Text(1, "abc") },
		"eight bytes and none":     func(d *Digest) { d.Text(1, "abcdefgh") },
		"eight bytes and a zero":   func(d *Digest) { d.Text(1, "abcdefgh\x00") },
	} {
		var d Digest
		take(&d)
		require.Empty(t, seen[d], "%s and %s", name, seen[d])
		seen[d] = name
	}
}

// TestDigestSpreads: a change of one bit, however long ago, changes the digest,
// and on average half of its bits once a few words have followed.
func TestDigestSpreads(t *testing.T) {
	total := 0
	for bit := range 64 {
		var a, b Digest
		a.Int(1, 0)
		b.Int(1, 1<<bit)
		for i := range 3 {
			a.Int(2, int64(i))
			b.Int(2, int64(i))
		}
		require.NotEqual(t, a, b)
		total += bits.OnesCount64(uint64(a ^ b))
	}
	require.InDelta(t, 32, total/64, 4)
}

func TestDigestOfOneWordIsABijection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start, a, b := Digest(rapid.Uint64().Draw(t, "start")), rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		x, y := start, start
		x.Int(1, a)
		y.Int(1, b)
		require.Equal(t, a == b, x == y)
	})
}

func BenchmarkDigestInt(b *testing.B) {
	var d Digest
	for i := range b.N {
		d.Int(1, int64(i))
	}
	sink = uint64(d)
}

var sink uint64
