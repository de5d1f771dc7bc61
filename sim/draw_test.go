package sim

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// swarming has a bit of everything that is drawn from.
const swarming = `simulate v1
engine   runners=3 lease=5s standby=yes
run      3h quiet-after=2h
schedule tick every=5s queue=fast visibility=30s
schedule report every=10m queue=slow anchor=2025-12-31T23:57:00Z
schedule yearly every=365d queue=slow
swarm    faults=4..9
`

// TestDrawGolden freezes what seeds draw: of a failure that is only known by its
// seed, as of a sweep, the faults have to come again. The vectors were computed
// by a second implementation in Python, from docs/SWARM.md.
func TestDrawGolden(t *testing.T) {
	golden, err := os.ReadFile("testdata/swarm.txt")
	require.NoError(t, err)
	var b strings.Builder
	s := parsed(t, swarming)
	section := func(words string, seeds ...uint64) {
		fmt.Fprintln(&b, "swarm", words)
		s.Swarm, err = ParseSwarm(words)
		require.NoError(t, err)
		for _, seed := range seeds {
			drawn, err := s.Draw(seed)
			require.NoError(t, err)
			fmt.Fprintf(&b, "seed %d ties=%s\n", seed, map[Ties]string{TiesFIFO: "fifo", TiesSeeded: "seeded"}[drawn.Engine.Ties])
			for _, f := range drawn.Faults {
				fmt.Fprintln(&b, f)
			}
		}
	}
	every := "down,crash,restart-storm,pause,throttle,clock-jump,clock-drift,clock-freeze,clock-strobe," +
		"store-error-burst,store-slow,store-full,store-swizzle,store-stale-read,store-repeated-row,store-lost-row," +
		"handler-slow,handler-failing,handler-panicking,handler-hanging,handler-poisoned,handler-spawning," +
		"queue-late-ack,queue-duplicate-ack,queue-lost-ack,queue-overload," +
		"edit-add,edit-change,edit-pause,edit-resume,edit-remove,edit-rename,tamper"
	for _, kinds := range []string{
		"down,crash,pause,clock-jump,clock-drift,clock-freeze,clock-strobe,store-error-burst,store-slow,handler-slow,handler-failing,handler-panicking,queue-late-ack,queue-duplicate-ack",
		"pause,edit-add,edit-change,edit-pause,edit-resume,edit-remove,tamper",
		"restart-storm,throttle,store-full,store-swizzle,store-stale-read,store-repeated-row,store-lost-row,handler-hanging,handler-poisoned,handler-spawning,queue-lost-ack,queue-overload,edit-rename",
	} {
		section("faults=4..9 kinds="+kinds, 0, 1, 2, 3, 4, 5, 6, 7, 1<<63)
	}
	section("portfolio faults=1..6 kinds="+every, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
	section("pairs faults=3 kinds="+every, 0, 1, 2, 3)
	section("exhaustive faults=1..3 kinds="+every, 0, 1, 1000, 100_000, 1<<63+12345, math.MaxUint64)
	section("faults=4..9 kinds=store-full,store-journal-error,store-swizzle", 0, 1, 2, 3, 4, 5, 6, 7, 1<<63)
	section("portfolio faults=1..6 kinds="+strings.Replace(every, "store-swizzle", "store-journal-error,store-swizzle", 1),
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
	s.Outboxes = []Outbox{{Name: "mail"}, {Name: "sms"}}
	section("faults=4..9 kinds=handler-failing,handler-spawning", 0, 1, 2, 3, 4, 5, 6, 7, 1<<63)
	s.Schedules[0].Deliver = "mail"
	section("faults=4..9 kinds=handler-slow,handler-failing,handler-panicking,handler-hanging,handler-poisoned", 0, 1, 2, 3, 4, 5, 6, 7, 1<<63)
	require.Equal(t, string(golden), b.String())
}

// TestWhatIsDrawnIsAScenario: of any scenario any seed draws a plan that can be
// kept: a valid text without a swarm, in which all faults end in time.
func TestWhatIsDrawnIsAScenario(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		s.Faults, s.Swarm = nil, Swarm{Min: 1, Max: rapid.IntRange(1, 30).Draw(t, "most")}
		seed := rapid.Uint64().Draw(t, "seed")
		drawn, err := s.Draw(seed)
		require.NoError(t, err)
		require.Equal(t, Swarm{}, drawn.Swarm)
		require.Equal(t, seed, drawn.Engine.Seed)
		require.NotEmpty(t, drawn.Faults)
		require.Positive(t, drawn.QuietAfter)
		for _, f := range drawn.Faults {
			require.LessOrEqual(t, f.At+f.For, drawn.QuietAfter)
		}
		kept, err := Parse("", drawn.String())
		require.NoError(t, err)
		require.Equal(t, drawn.String(), kept.String())
		again, err := s.Draw(seed)
		require.NoError(t, err)
		require.Equal(t, drawn, again)
	})
}

// TestWhatIsDrawnRunsTheSame: a run with a swarm and one of the text that its
// seed draws are one and the same.
func TestWhatIsDrawnRunsTheSame(t *testing.T) {
	s := parsed(t, swarming)
	for seed := range uint64(5) {
		s.Engine.Seed = seed
		drawn, err := s.Draw(seed)
		require.NoError(t, err)
		first, err := Run(*s)
		require.NoError(t, err)
		second, err := Run(*parsed(t, drawn.String()))
		require.NoError(t, err)
		require.Equal(t, first, second)
		require.NotEmpty(t, first.Faults)
	}
}

// TestDrawIsByKind: one kind more or less to draw from, and the faults of the
// others are drawn from the same streams: the n-th of a kind stays as it is,
// but where it leans on faults of other kinds.
func TestDrawIsByKind(t *testing.T) {
	s := *parsed(t, swarming)
	s.Swarm = Swarm{Min: 40, Max: 40, Kinds: "store-error-burst"}
	chances := func() (list []PPM) {
		drawn, err := s.Draw(7)
		require.NoError(t, err)
		for _, f := range drawn.Faults {
			if f.Kind == FaultStoreErrors {
				list = append(list, f.Chance)
			}
		}
		slices.Sort(list)
		return list
	}
	alone := chances()
	require.Len(t, alone, 40)
	require.Len(t, slices.Compact(alone), 4)
}

// TestDrawLeansOnEdges: half of the instants lie at a boundary or a little beside
// it, and every kind and every special magnitude comes.
func TestDrawLeansOnEdges(t *testing.T) {
	s := *parsed(t, swarming)
	s.Swarm = Swarm{Min: 8, Max: 8}
	s.Schedules = s.Schedules[1:] // 5 s are everywhere
	faults, beside := 0, 0
	kinds, lasts, bys, restarts := map[FaultKind]int{}, map[time.Duration]int{}, map[time.Duration]int{}, map[Restart]int{}
	for seed := range uint64(1000) {
		for _, f := range s.draw(seed).Faults {
			faults++
			switch (f.At + 13*time.Minute) % (10 * time.Minute) { // 23:57 and every 10 m
			case 0, time.Millisecond, time.Second, 10*time.Minute - time.Millisecond, 10*time.Minute - time.Second:
				beside++
			}
			kinds[f.Kind]++
			lasts[f.For]++
			bys[f.By]++
			restarts[f.Restart]++
		}
	}
	require.Equal(t, 8000, faults)
	require.InDelta(t, faults/4+faults/10, beside, float64(faults/10), "half of the boundaries are those of a year, of which there is none")
	require.Len(t, kinds, len(faultWords))
	for _, special := range []time.Duration{
		time.Millisecond, time.Second, 5*time.Second - time.Millisecond, 5*time.Second + time.Millisecond,
		10 * time.Minute, 10*time.Minute - time.Millisecond, 5*time.Minute + time.Millisecond,
	} {
		require.Positive(t, lasts[special], special)
	}
	for _, special := range []time.Duration{time.Millisecond, time.Second, time.Hour, 400 * 24 * time.Hour, 640 * time.Minute, 5*time.Second + time.Millisecond} {
		require.Positive(t, bys[special], special)
		require.Positive(t, bys[-special], special)
	}
	require.Len(t, restarts, 4)
}

// TestSwarmIsAPortfolio: some runs have all kinds of faults, some only a few.
func TestSwarmIsAPortfolio(t *testing.T) {
	s := *parsed(t, swarming)
	s.Swarm = Swarm{Min: 300, Max: 300}
	few, all := 0, 0
	for seed := range uint64(200) {
		kinds := map[FaultKind]bool{}
		for _, f := range s.draw(seed).Faults {
			kinds[f.Kind] = true
		}
		switch n := len(kinds); {
		case n <= 3:
			few++
		case n == len(faultWords):
			all++
		}
	}
	require.InDelta(t, 60, few, 30)
	require.InDelta(t, 50, all, 20)
}

// TestEveryKindIsDrawn: each kind of the format has a row that says how, here and
// in docs/SWARM.md.
func TestEveryKindIsDrawn(t *testing.T) {
	require.Len(t, drawings, len(faultRules))
	for k := FaultDown; int(k) < len(faultRules); k++ {
		require.NotNil(t, drawings[k].draw, k.String())
		require.NotEmpty(t, drawings[k].group, k.String())
		require.Equal(t, 1, strings.Count(" "+strings.Join(kindNames(), " ")+" ", " "+k.word()+" "), "a kind is called like a group")
	}
	swarm, err := os.ReadFile("../docs/SWARM.md")
	require.NoError(t, err)
	for k := FaultDown; int(k) < len(drawings); k++ {
		require.Regexp(t, "(?m)^\\| .*`"+k.word()+"`.* \\| "+drawings[k].group+" \\| ", string(swarm))
	}
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	flat := strings.Join(strings.Fields(strings.ReplaceAll(string(doc), "\n//", " ")), " ")
	var groups []string
	for _, d := range drawings[FaultDown:] {
		if !slices.Contains(groups, d.group) {
			groups = append(groups, d.group)
		}
	}
	last := len(groups) - 1
	require.Contains(t, flat, "the groups are "+strings.Join(groups[:last], ", ")+" and "+groups[last]+";")
}

func TestKinds(t *testing.T) {
	words := func(text string) string {
		kinds, r := kindsOf(text)
		if r != nil {
			return fmt.Sprintf("%d: found %s, want %s", r.at, r.found, strings.SplitN(r.allowed, ",", 3)[0])
		}
		var list []string
		for _, k := range kinds {
			list = append(list, k.word())
		}
		return strings.Join(list, " ")
	}
	whole := words("all")
	require.Len(t, strings.Fields(whole), len(faultWords))
	for text, want := range map[string]string{
		"down":                  "down",
		"crash,down,down":       "down crash",
		"store-error-burst":     "store-error-burst",
		"handler,-handler-slow": "handler-failing handler-panicking handler-hanging handler-poisoned handler-spawning",
		"all,-handler,-queue":   strings.Split(whole, " handler-")[0] + strings.TrimPrefix(words("all,-handler,-queue"), strings.Split(whole, " handler-")[0]),
		"-down":                 strings.TrimPrefix(whole, "down "),
		"-all,down":             "down",
		"down,-down":            `0: found "down,-down", want a list that leaves at least one kind of fault`,
		"down,tampered":         `5: found "tampered", want one of all`,
		"down,":                 `5: found "", want one of all`,
		"store error-burst":     `0: found "store error-burst", want one of all`,
		"--down":                `0: found "-down", want one of all`,
	} {
		require.Equal(t, want, words(text), text)
	}
	require.NotContains(t, words("all,-handler,-queue"), "handler")
	require.Contains(t, words("all,-handler,-queue"), "crash")
}

func TestParseSwarm(t *testing.T) {
	for text, want := range map[string]Swarm{
		"faults=8..60":                        {Min: 8, Max: 60},
		"kinds=all,-handler faults=7":         {Min: 7, Max: 7, Kinds: "all,-handler"},
		"portfolio":                           {Mode: ModePortfolio},
		"pairs kinds=clock faults=2":          {Min: 2, Max: 2, Kinds: "clock", Mode: ModePairs},
		"faults=0..3   kinds=\"clock,store\"": {Max: 3, Kinds: "clock,store"},
	} {
		s, err := ParseSwarm(text)
		require.NoError(t, err, text)
		require.Equal(t, want, s)
		again, err := ParseSwarm(s.String())
		require.NoError(t, err)
		require.Equal(t, s, again)
	}
	const number = `a whole number from 1 to 10000, or two with .. between, such as 8..60`
	for text, want := range map[string]string{
		"":                            "found the end of the line, want faults=",
		"kinds=all":                   "found the end of the line, want faults=",
		"faults=":                     `found "", want ` + number,
		"faults=0":                    `found "0", want ` + number,
		"faults=..":                   `found "..", want ` + number,
		"faults=5..":                  `found "5..", want ` + number,
		"faults=1..10001":             `found "1..10001", want ` + number,
		"faults=-1..3":                `found "-1..3", want ` + number,
		"faults=5..1":                 `found "5..1", want a range whose end is not before its beginning`,
		"portfolo":                    `found "portfolo", want one of portfolio, calm, lite, some, all-on, unmasked, pairs, exhaustive; did you mean "portfolio"?`,
		"kinds=all portfolio":         `found "portfolio", want one of faults=, kinds=`,
		"portfolio calm":              `found "calm", want one of faults=, kinds=`,
		"faults=1..3 knds=all":        `found "knds=", want one of faults=, kinds=; did you mean "kinds="?`,
		"faults=1..3 kinds=clok-jump": `found "clok-jump", want ` + oneOf(kindNames()) + `; did you mean "clock-jump"?`,
		"faults=1..3 faults=1..3":     `found "faults=1..3", want faults= only once in a line`,
	} {
		_, err := ParseSwarm(text)
		require.EqualError(t, err, want, text)
	}
}

// TestWithSwarm: what was expected of the file's own faults is not expected of
// drawn ones.
func TestWithSwarm(t *testing.T) {
	s := *parsed(t, calmHour+"at 5m down for=1m\nexpect no-double-fire a.fires=3 a.skipped=1 a.quarantined=0 verdict=pass sometimes:skipped\n----\nverdict pass\n")
	swarm := Swarm{Min: 1, Max: 3}
	got := s.WithSwarm(swarm)
	require.NoError(t, got.Validate())
	require.Equal(t, swarm, got.Swarm)
	require.Empty(t, got.Faults)
	require.Empty(t, got.Outcome)
	require.Equal(t, []Expect{{Kind: ExpectNoDoubleFire}, {Kind: ExpectMark, Mark: "skipped"}}, got.Expect)
	require.Len(t, s.Expect, 6, "the scenario itself is as it was")
}

func TestDrawRefusesAnInvalidScenario(t *testing.T) {
	_, err := Scenario{}.Draw(1)
	var mistakes *Mistakes
	require.ErrorAs(t, err, &mistakes)
}
