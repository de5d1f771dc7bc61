package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPageBreaksLines: what is told is broken at the width of the page, what is to
// be copied never.
func TestPageBreaksLines(t *testing.T) {
	var b strings.Builder
	p := newPage(&b)
	require.Equal(t, mostPage, p.width, "where there is no terminal")
	p.width = 20
	p.hang("rule: ", "what was missed is dropped")
	p.item("  ", "every invariant held in all")
	p.judge([]string{"interrupted; to go on:", whole + "simulate sweep a.sim --seeds 1..24"})
	p.hang("日本 ", "two columns each of these")
	require.NoError(t, p.Flush())
	require.Equal(t, `rule: what was
      missed is
      dropped
  every invariant
    held in all
  interrupted; to
    go on:
    simulate sweep a.sim --seeds 1..24
日本 two columns
     each of these
`, b.String())
}
