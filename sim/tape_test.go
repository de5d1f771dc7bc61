package sim

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func recorded(t *testing.T, s Scenario) (*Result, *Tape) {
	t.Helper()
	r, tape, err := Record(s)
	require.NoError(t, err)
	require.NotNil(t, tape)
	return r, tape
}

// TestTapePlaysTheRunThatItRecorded: whatever the seed draws, the choices of the
// tape make the same run of it, and its text the same tape.
func TestTapePlaysTheRunThatItRecorded(t *testing.T) {
	sites := map[string]bool{}
	seeds := uint64(30)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		s := drawScenario(seed)
		want, err := Run(s)
		require.NoError(t, err)
		r, tape := recorded(t, s)
		require.Equal(t, want, r, "recording changes nothing")
		require.Len(t, tape.Events, len(eventTexts(t, s)))

		read, err := ParseTape("", tape.String())
		require.NoError(t, err)
		require.Equal(t, tape, read)
		r, again, err := Play(s, read)
		require.NoError(t, err)
		require.Equal(t, want, r)
		require.Equal(t, tape, again)
		for _, c := range tape.Choices {
			sites[c.Site] = true
		}
	}
	require.Greater(t, len(sites), 12, "each site of newSites, or nearly")
}

func eventTexts(t *testing.T, s Scenario) (list []string) {
	_, err := Watch(s, func(e *Event) { list = append(list, e.String()) })
	require.NoError(t, err)
	return list
}

// TestTapeDecides: the run has the values of the tape, not those of the seed.
func TestTapeDecides(t *testing.T) {
	s := *parsed(t, strings.Replace(calmHour, "ok:1s", "ok:1s..9s", 1))
	_, tape := recorded(t, s)
	require.Positive(t, len(tape.Choices))
	for i := range tape.Choices {
		if tape.Choices[i].Site == "handler takes" && tape.Choices[i].N > 1 {
			tape.Choices[i].Value = 0
		}
	}
	_, played, err := Play(s, tape)
	require.NoError(t, err)
	require.Len(t, played.Choices, len(tape.Choices))
	for i, c := range tape.Choices {
		c.Step = played.Choices[i].Step
		require.Equal(t, c, played.Choices[i])
	}
	require.NotEqual(t, tape.Events, played.Events)
	all := strings.Join(played.Events, "\n")
	require.Contains(t, all, "2026-01-01T00:01:01Z handler-ended")
	require.NotContains(t, all, ":09Z handler-ended")
}

// TestTapeSaysWhereTheRunLeavesIt: step, place, the recorded site and the asked
// one; and the run is broken off there.
func TestTapeSaysWhereTheRunLeavesIt(t *testing.T) {
	s := *parsed(t, strings.Replace(calmHour, "ok:1s", "ok:1s..9s", 1))
	whole, tape := recorded(t, s)
	const at = 10
	was := tape.Choices[at]
	play := func(change func(*Tape)) (*Result, *Tape, *Divergence) {
		copied := *tape
		copied.Choices = append([]Choice{}, tape.Choices...)
		change(&copied)
		r, played, err := Play(s, &copied)
		var parted *Divergence
		require.ErrorAs(t, err, &parted)
		return r, played, parted
	}

	r, played, parted := play(func(t *Tape) { t.Choices[at].Site = "elsewhere" })
	require.Equal(t, &Divergence{Place: at + 1, Step: was.Step, Recorded: Choice{was.Step, "elsewhere", was.N, was.Value}, Asked: was}, parted)
	require.Less(t, r.Events, whole.Events)
	require.GreaterOrEqual(t, r.Events, was.Step)
	require.LessOrEqual(t, len(played.Events), len(tape.Events))

	_, _, parted = play(func(t *Tape) { t.Choices[at].N++ })
	require.Equal(t, was.N+1, parted.Recorded.N)
	require.Equal(t, was.N, parted.Asked.N)

	_, _, parted = play(func(t *Tape) { t.Choices = t.Choices[:at] })
	require.Equal(t, &Divergence{Place: at + 1, Step: was.Step, Asked: was}, parted)
	require.Regexp(t, `^the run leaves the tape in step \d+, at choice 11: the end of the tape; asked for at site "[a-z ]+", of \d+$`, parted.Error())

	more := Choice{Step: 7, Site: "handler takes", N: 3, Value: 2}
	r, _, parted = play(func(t *Tape) { t.Choices = append(t.Choices, more) })
	require.Equal(t, more, parted.Recorded)
	require.Empty(t, parted.Asked)
	require.Equal(t, whole, r)
	require.Regexp(t, `: recorded in step 7 at site "handler takes", of 3; the end of the run$`, parted.Error())
}

func TestTapeOfAnotherScenarioIsRefused(t *testing.T) {
	s := *parsed(t, calmHour)
	_, tape := recorded(t, s)
	other := s
	other.Engine.Seed = 1
	r, played, err := Play(other, tape)
	require.ErrorContains(t, err, "found the tape of another scenario, "+tape.Scenario.String()+", want one of this, ")
	require.Nil(t, r)
	require.Nil(t, played)

	other = s
	other.Outcome = "verdict pass\n"
	_, _, err = Play(other, tape)
	require.NoError(t, err, "a recorded outcome is no part of what runs")
	var mistakes *Mistakes
	_, _, err = Play(Scenario{}, tape)
	require.ErrorAs(t, err, &mistakes)
	_, _, err = Record(Scenario{})
	require.ErrorAs(t, err, &mistakes)
}

// TestTapeMistakesHaveTheirPlace: whatever is wrong with a tape's text is said
// with its line and column.
func TestTapeMistakesHaveTheirPlace(t *testing.T) {
	const good = "simulate tape v1\nscenario 0123456789abcdef\nchoice 1 \"a site\" 5 4\nevent 1 anything \"at\" all\nend 1 1\n"
	tape, err := ParseTape("a.tape", good)
	require.NoError(t, err)
	require.Equal(t, &Tape{0x0123456789abcdef, []Choice{{1, "a site", 5, 4}}, []string{`1 anything "at" all`}}, tape)
	require.Equal(t, good, tape.String())
	for name, c := range map[string]struct{ text, want string }{
		"empty":                 {"", `a.tape:1:1: found "", want "simulate tape v1" as the first line`},
		"a scenario":            {calmHour, `a.tape:1:1: found "simulate v1", want "simulate tape v1" as the first line`},
		"the header alone":      {"simulate tape v1\n", `a.tape:2:1: found the end of the text, want more of the tape, up to a line end; it is cut off`},
		"no scenario":           {"simulate tape v1\nend 0 0\n", `a.tape:2:1: found "end", want scenario and the digest of its text`},
		"a bad digest":          {strings.Replace(good, "0123", "0x23", 1), `a.tape:2:10: found "0x23456789abcdef", want what there is in "scenario 0123456789abcdef"`},
		"a short digest":        {strings.Replace(good, "0123", "", 1), `a.tape:2:10: found "456789abcdef", want `},
		"cut off at a line":     {good[:strings.Index(good, "end")], `a.tape:5:1: found the end of the text, want more of the tape`},
		"cut off in a line":     {good[:len(good)-5], `a.tape:5:4: found the end of the line, want more, as in "end 120 450, `},
		"a word too many":       {strings.Replace(good, "5 4", "5 4 3", 1), `a.tape:3:23: found "3", want the end of the line, as in "choice 17 `},
		"cut off in an event":   {good[:strings.Index(good, "ing")], `a.tape:4:1: found the end of the text, want more of the tape`},
		"a value too large":     {strings.Replace(good, "5 4", "4 4", 1), `a.tape:3:21: found "4", want what there is in "choice 17`},
		"a value below 0":       {strings.Replace(good, "5 4", "5 -4", 1), `a.tape:3:21: found "-4", want `},
		"of nothing":            {strings.Replace(good, "5 4", "0 0", 1), `a.tape:3:19: found "0", want `},
		"a choice too many":     {strings.Replace(good, "choice 1 \"a site\" 5 4\n", "", 1), `a.tape:4:5: found "1", want `},
		"another word":          {strings.Replace(good, "choice", "choise", 1), `a.tape:3:1: found "choise", want one of choice, event, end; did you mean "choice"?`},
		"an open quote":         {strings.Replace(good, "site\"", "site", 1), `a.tape:3:10: found `},
		"something behind":      {good + "end 1 1\n", `a.tape:6:1: found "end 1 1", want nothing behind the end`},
		"one that is not ended": {strings.TrimSuffix(good, "\n"), ""},
		"line ends of Windows":  {strings.ReplaceAll(good, "\n", "\r\n"), ""},
	} {
		_, err := ParseTape("a.tape", c.text)
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.Error(t, err, name)
		require.True(t, strings.HasPrefix(err.Error(), c.want), "%s: %s", name, err)
	}
}

// TestCutTapesAreRefused: wherever a tape ends early, that is said.
func TestCutTapesAreRefused(t *testing.T) {
	_, tape := recorded(t, *parsed(t, strings.Replace(calmHour, "2h", "2m", 1)))
	text := tape.String()
	for end := range len(text) - 1 {
		_, err := ParseTape("", text[:end])
		require.Error(t, err, end)
	}
}

func FuzzParseTape(f *testing.F) {
	f.Add("simulate tape v1\nscenario 0123456789abcdef\nchoice 1 \"a site\" 5 4\nevent 1 any\nend 1 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		tape, err := ParseTape("", text)
		if err != nil {
			return
		}
		again, err := ParseTape("", tape.String())
		require.NoError(t, err)
		require.Equal(t, tape, again)
	})
}

// TestLongTapesAreNotKept: the run goes on, without one.
func TestLongTapesAreNotKept(t *testing.T) {
	s := *parsed(t, calmHour)
	whole, err := Run(s)
	require.NoError(t, err)
	r, tape, err := taped(s, &deck{length: MaxTape}, rig{budget: maxEvents})
	require.NoError(t, err)
	require.Equal(t, whole, r)
	require.Nil(t, tape)
}
