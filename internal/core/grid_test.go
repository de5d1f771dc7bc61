package core_test

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

const (
	first = store.MinInstant
	last  = store.MaxInstant
)

// boundaryAfter is the definition of the next boundary in numbers without end.
func boundaryAfter(anchor store.Instant, intervalMS int64, t store.Instant) *big.Int {
	a, at, every := big.NewInt(int64(anchor)), big.NewInt(int64(t)), big.NewInt(intervalMS)
	k := new(big.Int).Sub(at, a)
	k.Add(k.Div(k, every), big.NewInt(1)) // Div rounds down
	if k.Sign() < 0 || t < anchor {
		k.SetInt64(0)
	}
	return k.Add(k.Mul(k, every), a)
}

func TestG6BoundaryAfter(t *testing.T) {
	for _, c := range []struct {
		name       string
		anchor     store.Instant
		intervalMS int64
		t          store.Instant
		want       store.Instant
		ok         bool
	}{
		{"before the anchor", 100, 7000, 99, 100, true},
		{"at the anchor", 100, 7000, 100, 7100, true},
		{"just before a boundary", 0, 7000, 6999, 7000, true},
		{"at a boundary", 0, 7000, 7000, 14_000, true},
		{"just after a boundary", 0, 7000, 7001, 14_000, true},
		{"before the epoch, at a boundary", -14_000, 7000, -7000, 0, true},
		{"before the epoch, between", -14_000, 7000, -7001, -7000, true},
		{"the 7 s example", 0, 7000, 1_000_000, 1_001_000, true},
		{"the last instant is a boundary", last - 5000, 1000, last - 1, last, true},
		{"at the last instant", last - 5000, 1000, last, 0, false},
		{"past the last instant by 1 ms", last - 999, 1000, last - 999, 0, false},
		{"the longest interval from the first instant", first, core.MaxIntervalMS, first, first + core.MaxIntervalMS, true},
		{"the longest interval at the end", last, core.MaxIntervalMS, last, 0, false},
		{"the anchor is the last instant", last, 1000, last - 1, last, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			next, ok := core.BoundaryAfter(c.anchor, c.intervalMS, c.t)
			require.Equal(t, c.ok, ok)
			if ok {
				require.Equal(t, c.want, next)
			}
		})
	}
}

// instants are of the whole range, its ends and the surroundings of zero above
// all.
var instants = rapid.Custom(func(t *rapid.T) store.Instant {
	near := rapid.Int64Range(0, 20_000).Draw(t, "near")
	switch rapid.IntRange(0, 4).Draw(t, "where") {
	case 0:
		return first + store.Instant(near)
	case 1:
		return last - store.Instant(near)
	case 2:
		return store.Instant(near - 10_000)
	default:
		return store.Instant(rapid.Int64Range(int64(first), int64(last)).Draw(t, "instant"))
	}
})

// intervals are what specs can say, in milliseconds.
var intervals = rapid.Custom(func(t *rapid.T) int64 {
	if rapid.Bool().Draw(t, "short") {
		return 1000 * rapid.Int64Range(1, 10).Draw(t, "seconds")
	}
	return 1000 * rapid.Int64Range(1, core.MaxIntervalMS/1000).Draw(t, "seconds")
})

func TestG6NextBoundaryIsExactInTheWholeRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		anchor, at := instants.Draw(t, "anchor"), instants.Draw(t, "t")
		every := intervals.Draw(t, "interval")
		want := boundaryAfter(anchor, every, at)
		next, ok := core.BoundaryAfter(anchor, every, at)
		require.Equal(t, want.Cmp(big.NewInt(int64(last))) <= 0, ok)
		if ok {
			require.Equal(t, want.Int64(), int64(next))
		}
	})
}
