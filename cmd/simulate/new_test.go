package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/sim"
)

// TestNewRuns: whatever schedules are given, the file is one that passes, within
// little time, and in which something goes wrong.
func TestNewRuns(t *testing.T) {
	for _, schedules := range [][]string{
		nil,
		{"report=@every 5m"},
		{"a=@every 1s", "b=@every 30d"},
		{"ages=@every 106751d"},
		{"leap=@every 25h", "odd=@every 61m"},
		{"a=b=@every 7s", `it's a "name"=@every 1h`, "日本=@every 1d", "#=@every 3h"},
	} {
		c := newCommand{schedules: schedules}
		s, err := c.scenario()
		require.NoError(t, err, schedules)
		text, err := starter{s, "a b.sim"}.text()
		require.NoError(t, err)
		require.NotContains(t, text, "\n\n\n")
		read, err := sim.Parse("a b.sim", text)
		require.NoError(t, err, text)
		require.Equal(t, s.String(), read.String())
		r, err := sim.Run(read)
		require.NoError(t, err)
		require.Equal(t, sim.Pass, r.Verdict, r.Unmet)
		require.EqualValues(t, 1, r.Faults[0].Effect)
		require.LessOrEqual(t, r.Schedules[0].Boundaries, int64(mostFires))
	}
}

func TestNewRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"report":                `--schedule: found "report", want NAME=SPEC such as "report=@every 5m"`,
		"report=5m":             `--schedule "report=5m": `,
		"report=@every 0s":      `--schedule "report=@every 0s": `,
		"=@every 5m":            `found "", want `,
		"__alkstore_=@every 5m": `found "__alkstore_", want `,
	} {
		_, err := (&newCommand{schedules: []string{text}}).scenario()
		require.ErrorContains(t, err, want)
	}
	_, err := (&newCommand{schedules: []string{"a=@every 5m", "a=@every 6m"}}).scenario()
	require.ErrorContains(t, err, `"a"`)
}

// TestNewTeachesWhatIsSo: each command of the comments runs, and each line that
// they offer can stand in the place of the outage.
func TestNewTeachesWhatIsSo(t *testing.T) {
	t.Chdir(t.TempDir())
	require.Zero(t, simulate([]string{"new", "-o", "it's.sim"}, nil, io.Discard, io.Discard))
	text, err := os.ReadFile("it's.sim")
	require.NoError(t, err)
	commands, faults := 0, 0
	for line := range strings.Lines(string(text)) {
		line, shown := strings.CutPrefix(strings.TrimSpace(line), "#   ")
		switch {
		case !shown:
		case strings.HasPrefix(line, "simulate "):
			commands++
			words := shellWords(t, line)
			require.Zero(t, simulate(words[1:], nil, io.Discard, os.Stderr), line)
		default:
			faults++
			changed := strings.ReplaceAll(string(text), "\nduring 8h..14h down\n", "\n"+line+"\n")
			require.NotEqual(t, string(text), changed)
			s, err := sim.Parse("a.sim", changed)
			require.NoError(t, err)
			r, err := sim.Run(s)
			require.NoError(t, err)
			require.Empty(t, r.Failures, line)
			require.Positive(t, r.Faults[0].Effect, line)
		}
	}
	require.Equal(t, 5, commands)
	require.Equal(t, 5, faults)
}

// shellWords are the words of a command line whose quotes are single ones.
func shellWords(t *testing.T, line string) (words []string) {
	word, quoted, begun := "", false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			quoted, begun = !quoted, true
		case c == '\\' && !quoted:
			i++
			word += string(line[i])
		case c == ' ' && !quoted:
			if begun {
				words = append(words, word)
			}
			word, begun = "", false
		default:
			word, begun = word+string(c), true
		}
	}
	require.False(t, quoted)
	return append(words, word)
}

// TestNewOverwritesNothing unless it is told to.
func TestNewOverwritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "my.sim")
	c := newCommand{output: path, stdout: io.Discard, stderr: io.Discard}
	require.NoError(t, c.run())
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	require.EqualError(t, c.run(), path+" is there already: name another file, or replace it with --force")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
	c.force = true
	require.NoError(t, c.run())
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "simulate v1\n")
}
