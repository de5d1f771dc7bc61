package sim

import (
	"strconv"
	"strings"
)

// Digest is a rolling 64-bit hash of everything that happened in a run: equal
// runs have equal digests on every platform. The zero Digest is that of
// nothing.
//
// It takes tagged values, so that a value cannot be mistaken for its
// neighbour. Each word taken is a bijection of the state: two runs that differ
// in one word only never have the same digest. It is no defence against
// somebody who chooses the values.
type Digest uint64

// String is the digest in 16 hex digits.
func (d Digest) String() string {
	text := strconv.FormatUint(uint64(d), 16)
	return strings.Repeat("0", 16-len(text)) + text
}

// Int takes in an integer.
func (d *Digest) Int(tag uint8, v int64) {
	*d = d.word(uint64(tag)<<8 | 1).word(uint64(v))
}

// Text takes in a string.
func (d *Digest) Text(tag uint8, s string) {
	h := d.word(uint64(len(s))<<16 | uint64(tag)<<8 | 2)
	for ; len(s) >= 8; s = s[8:] {
		h = h.word(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
	}
	if len(s) > 0 {
		var last uint64
		for i := range len(s) {
			last |= uint64(s[i]) << (8 * i)
		}
		h = h.word(last)
	}
	*d = h
}

// word takes in one word; each of its steps is invertible.
func (d Digest) word(v uint64) Digest {
	x := (uint64(d) ^ v) * 0x9e3779b97f4a7c15
	return Digest((x ^ x>>32) + 0x2545f4914f6cdd1d)
}
