package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutputIsThatOfTheREADME(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))

	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(readme), "\n## Output\n")
	blocks := strings.Split(section, "```\n")
	require.Len(t, blocks, 3)
	require.Equal(t, blocks[1], out.String())
}
