package core

import (
	"math"
	"strconv"
)

// Spec is a parsed spec: a whole number of one unit. The zero Spec is none.
type Spec struct {
	n    int64
	unit byte
}

const (
	specPrefix = "@every "

	// MaxIntervalMS is the longest interval: what a time.Duration holds (G2).
	MaxIntervalMS = math.MaxInt64 / 1_000_000
)

// units from the largest to the smallest.
var units = [...]struct {
	letter byte
	ms     int64
}{{'d', 86_400_000}, {'h', 3_600_000}, {'m', 60_000}, {'s', 1000}}

func unitMS(letter byte) int64 {
	for _, u := range units {
		if u.letter == letter {
			return u.ms
		}
	}
	return 0
}

// ParseSpec parses a spec (G1, G2). The error is a [*SpecError].
func ParseSpec(text string) (Spec, error) {
	spec, fault := scanSpec(text)
	if fault != 0 {
		return Spec{}, explainSpec(text)
	}
	return spec, nil
}

// scanSpec reads the grammar of G1 and G2 and nothing else; fault is the
// offset at which the text leaves it, plus one, or 0. It is separate from the
// messages because it runs at every tick (G5).
func scanSpec(text string) (spec Spec, fault int) {
	for i := range len(specPrefix) {
		if i >= len(text) || text[i] != specPrefix[i] {
			return Spec{}, i + 1
		}
	}
	i := len(specPrefix)
	if i < len(text) && text[i] == '0' {
		return Spec{}, i + 1
	}
	var n int64
	for ; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
		digit := int64(text[i] - '0')
		if n > (MaxIntervalMS-digit)/10 {
			return Spec{}, len(specPrefix) + 1
		}
		n = n*10 + digit
	}
	if n == 0 || i >= len(text) {
		return Spec{}, i + 1
	}
	ms := unitMS(text[i])
	switch {
	case ms == 0:
		return Spec{}, i + 1
	case n > MaxIntervalMS/ms:
		return Spec{}, len(specPrefix) + 1
	case i+1 != len(text):
		return Spec{}, i + 2
	}
	return Spec{n: n, unit: text[i]}, 0
}

// Every returns the spec of an interval of whole seconds, in the largest unit
// that divides it (G3), or false where there is none.
func Every(intervalMS int64) (Spec, bool) {
	if intervalMS <= 0 || intervalMS > MaxIntervalMS {
		return Spec{}, false
	}
	for _, u := range units {
		if intervalMS%u.ms == 0 {
			return Spec{n: intervalMS / u.ms, unit: u.letter}, true
		}
	}
	return Spec{}, false
}

// String returns the text of the spec (G3), and "" of the zero Spec.
func (s Spec) String() string {
	if s.n == 0 {
		return ""
	}
	return specPrefix + strconv.FormatInt(s.n, 10) + string(rune(s.unit))
}

// IntervalMS is the interval in milliseconds, a multiple of 1000.
func (s Spec) IntervalMS() int64 { return s.n * unitMS(s.unit) }
