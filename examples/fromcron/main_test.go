package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutputIsThatOfTheREADME(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "```\n"+out.String()+"```\n")
}
