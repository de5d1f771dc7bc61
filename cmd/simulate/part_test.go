package main

import (
	"bytes"
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/sim"
)

// varied has failures, excuses, faults of several kinds and marks.
const varied = `simulate v1
engine runners=2 lease=5s queue-limit=20
run 30m
schedule a every=5s queue=q catch-up=latest handler=fail:10%:0s..9s visibility=8s
swarm faults=1..4
expect a.skipped=0
`

var variedSeeds = sim.Seeds{First: 1, Last: 24}

// TestMergeIsOfASet: however a sweep is cut, and in whatever order and groups the
// parts are merged, by way of files, they come to the sweep of the whole.
func TestMergeIsOfASet(t *testing.T) {
	whole := swept(partOf(t, varied, variedSeeds), variedSeeds, sweepCommand{})
	require.Positive(t, whole.Failed)
	require.NotEmpty(t, whole.Excuses)
	one := make([]string, variedSeeds.Count())
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 12).Draw(t, "shards")
		var parts []*part
		for i := uint64(1); i <= n; i++ {
			asked, err := variedSeeds.Shard(i, n)
			require.NoError(t, err)
			p := &part{build: whole.build, file: whole.file, seeds: whole.seeds, SweepResult: newResult(whole.Scenario)}
			for seed := asked.First; seed <= asked.Last; seed++ {
				merged, err := parsePart([]byte(cached(t, one, whole, seed)))
				require.NoError(t, err)
				p.merge(merged)
			}
			parts = append(parts, p)
		}
		for len(parts) > 1 {
			i := rapid.IntRange(0, len(parts)-1).Draw(t, "into")
			j := rapid.IntRange(0, len(parts)-2).Draw(t, "from")
			if j >= i {
				j++
			}
			path := filepath.Join(folder, "part.json")
			require.NoError(t, (&sweepReport{part: parts[j], asked: parts[j].seeds}).keep(path))
			read, err := readPart(path)
			require.NoError(t, err)
			require.NoError(t, parts[i].sameSweep(read))
			parts[i].merge(read)
			parts = append(parts[:j], parts[j+1:]...)
		}
		require.Equal(t, whole, parts[0])
	})
}

// cached is the part of one seed as text.
func cached(t require.TestingT, texts []string, whole *part, seed uint64) string {
	if text := &texts[seed-1]; *text == "" {
		p := &part{build: whole.build, file: whole.file, seeds: whole.seeds, SweepResult: newResult(whole.Scenario)}
		swept(p, sim.Seeds{First: seed, Last: seed}, sweepCommand{})
		var err error
		*text, err = newSweepObject(&sweepReport{part: p, asked: p.seeds}).text()
		require.NoError(t, err)
	}
	return texts[seed-1]
}

// TestResumedSweepGoesOnWhereItEnded: interrupted at every few runs, a sweep comes to
// the same as in one go.
func TestResumedSweepGoesOnWhereItEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	asked, err := variedSeeds.Shard(2, 3)
	require.NoError(t, err)
	for begun := int64(0); ; {
		p := partOf(t, varied, variedSeeds)
		require.NoError(t, resume(p, path, asked))
		require.Equal(t, begun, p.Runs)
		interrupted(p, asked, begun+1)
		require.NoError(t, (&sweepReport{part: p, asked: asked}).keep(path))
		if begun = p.Runs; len(p.done.gaps(asked)) == 0 {
			require.Equal(t, swept(partOf(t, varied, variedSeeds), asked, sweepCommand{}), p)
			return
		}
	}
}

// TestStateIsKeptNowAndThen: every ten seconds, and not after each run.
func TestStateIsKeptNowAndThen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	r := &sweepReport{part: partOf(t, varied, variedSeeds), asked: variedSeeds}
	begin := time.Unix(0, 0)
	state := stateFile{path: path, kept: begin}
	kept := func(at time.Duration) uint64 {
		r.done.add(sim.Seeds{First: uint64(r.Runs) + 1, Last: uint64(r.Runs) + 1})
		r.Runs++
		state.keepAt(begin.Add(at), r)
		require.NoError(t, state.err)
		p, err := readPart(path)
		if errors.Is(err, os.ErrNotExist) {
			return 0
		}
		require.NoError(t, err)
		return p.done.count()
	}
	require.EqualValues(t, 0, kept(stateEvery-1))
	require.EqualValues(t, 2, kept(stateEvery))
	require.EqualValues(t, 2, kept(2*stateEvery-1))
	require.EqualValues(t, 4, kept(2*stateEvery))

	state.path = filepath.Join(path, "none")
	state.keepAt(begin.Add(3*stateEvery), r)
	require.Error(t, state.err)
	(&stateFile{}).keepAt(begin, r)
}

// TestResumeRefusesAnotherSweep and says in what it differs, before the first run.
func TestResumeRefusesAnotherSweep(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "state.json")
	asked, err := variedSeeds.Shard(2, 3)
	require.NoError(t, err)
	p := partOf(t, varied, variedSeeds)
	interrupted(p, asked, 3)
	require.NoError(t, (&sweepReport{part: p, asked: asked}).keep(path))

	require.NoError(t, resume(partOf(t, varied, variedSeeds), path, variedSeeds), "of the whole, too, it is a part")
	for want, again := range map[string]func() error{
		"found another scenario: its line 3 is \"run      30m\", want \"run      31m\"; to begin anew, name another file": func() error {
			return resume(partOf(t, strings.ReplaceAll(varied, "30m", "31m"), variedSeeds), path, asked)
		},
		"found runs of the build git 1, want git 2; to begin anew, name another file": func() error {
			p := partOf(t, varied, variedSeeds)
			p.build = "git 2"
			return resume(p, path, asked)
		},
		"found a sweep of the seeds 1..24, want 1..25; to begin anew, name another file": func() error {
			return resume(partOf(t, varied, sim.Seeds{First: 1, Last: 25}), path, asked)
		},
		"found runs of the seeds " + p.done.String() + ", want none but of 1..8; to begin anew, name another file": func() error {
			return resume(partOf(t, varied, variedSeeds), path, sim.Seeds{First: 1, Last: 8})
		},
	} {
		require.EqualError(t, again(), path+": "+want)
	}
	require.ErrorIs(t, resume(partOf(t, varied, variedSeeds), filepath.Join(folder, "none", "state.json"), asked), os.ErrNotExist,
		"a file that cannot be written")
}

// TestDamagedPartIsRefused: whatever byte of it is changed or missing. The place
// is named where the text is no JSON.
func TestDamagedPartIsRefused(t *testing.T) {
	p := swept(partOf(t, varied, variedSeeds), sim.Seeds{First: 1, Last: 20}, sweepCommand{})
	text, err := newSweepObject(&sweepReport{part: p, asked: p.seeds}).text()
	require.NoError(t, err)
	_, err = parsePart([]byte(text))
	require.NoError(t, err)

	random := rand.New(rand.NewSource(1))
	for range 2000 {
		damaged := []byte(text)
		at := random.Intn(len(text))
		if damaged[at] ^= 1 << random.Intn(7); strings.ContainsRune(" \n", rune(text[at])) {
			continue
		}
		if bytes.EqualFold(damaged, []byte(text)) {
			continue // names are read in either case
		}
		_, err := parsePart(damaged)
		require.Error(t, err, "%q at %d", damaged[at], at)
	}
	_, err = parsePart([]byte(text[:len(text)/2]))
	require.ErrorContains(t, err, "line ")
	require.ErrorContains(t, err, "unexpected end of JSON input")
}

func TestPartOfSomethingElseIsRefused(t *testing.T) {
	p := swept(partOf(t, varied, variedSeeds), sim.Seeds{First: 1, Last: 20}, sweepCommand{})
	for want, change := range map[string]func(*sweepObject){
		`found the format "simulate sweep v0", want "simulate sweep v1"`: func(o *sweepObject) { o.Format = "simulate sweep v0" },
		"text:2:1: ":                     func(o *sweepObject) { o.Text = "simulate v1\nrum 1h\n" },
		`seeds: found "x", want a range`: func(o *sweepObject) { o.Seeds = "x" },
		`done: found "1.", want a range`: func(o *sweepObject) { o.Done = []string{"1."} },
		"done: found the seeds 5..7 behind 1..4, want ranges in order": func(o *sweepObject) { o.Done = []string{"1..4", "5..7"} },
		"done: found the seeds 1..25, want none but of 1..24":          func(o *sweepObject) { o.Done = []string{"1..25"} },
		"runs: found 20, want 21":                                      func(o *sweepObject) { o.Done = []string{"1..21"} },
		`digest: found "xyz", want 16 hex digits`:                      func(o *sweepObject) { o.Digest = "xyz" },
		"failures[0]: found unmet of the seeds []":                     func(o *sweepObject) { o.Failures[0].Seeds = nil },
		"coverage[1]: found other marks than this build has":           func(o *sweepObject) { o.Coverage = o.Coverage[:1] },
		"checks: found others than this build has":                     func(o *sweepObject) { delete(o.Checks, "1 fires once") },
		"coverage[0]: found other marks than this build has":           func(o *sweepObject) { o.Coverage[0].Mark = "x" },
	} {
		o := newSweepObject(&sweepReport{part: p, asked: p.seeds})
		change(o)
		text, err := o.text()
		require.NoError(t, err)
		_, err = parsePart([]byte(text))
		require.ErrorContains(t, err, want)
	}
	for text, want := range map[string]string{
		"":                      "unexpected end of JSON input",
		"[]":                    "line 1, column 1: ",
		`{"format":7}`:          "line 1, column 11: ",
		"{}":                    `found the format "", want "simulate sweep v1"`,
		"simulate v1\nrun 1h\n": "line 1, column 1: invalid character 's'",
	} {
		_, err := parsePart([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
	_, err := parsePart([]byte(`{"format": "simulate sweep v1", "more": 1}`))
	require.ErrorContains(t, err, `unknown field "more"`)
}

// TestBuildIsTheCommitIfThatIsAll: with changes, or without a commit, it is the
// program.
func TestBuildIsTheCommitIfThatIsAll(t *testing.T) {
	info := func(pairs ...string) *debug.BuildInfo {
		i := &debug.BuildInfo{}
		for ; len(pairs) > 0; pairs = pairs[2:] {
			i.Settings = append(i.Settings, debug.BuildSetting{Key: pairs[0], Value: pairs[1]})
		}
		return i
	}
	require.Equal(t, "git 12ab", cleanRevision(info("vcs", "git", "vcs.revision", "12ab", "vcs.modified", "false")))
	require.Empty(t, cleanRevision(info("vcs", "git", "vcs.revision", "12ab", "vcs.modified", "true")))
	require.Empty(t, cleanRevision(info("vcs", "git", "vcs.revision", "12ab")))
	require.Empty(t, cleanRevision(info()))
	id, err := buildID()
	require.NoError(t, err)
	require.Regexp(t, "^(sha256|git) [0-9a-f]{40,64}$", id)
}

// A state file is one sweep's at a time, and the next one's when that has ended.
func TestStateIsOneSweepsAtATime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	unlock, err := lockState(file)
	require.NoError(t, err)
	_, err = lockState(file)
	require.ErrorContains(t, err, "another sweep keeps what it has done in this file")
	other, err := lockState(file + "2")
	require.NoError(t, err)
	require.NoError(t, other())
	require.NoError(t, unlock())
	again, err := lockState(file)
	require.NoError(t, err)
	require.NoError(t, again())
}
