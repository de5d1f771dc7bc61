package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/sim"
)

func TestWriteFileIsWholeOrNothing(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a.sim")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o640))
	require.NoError(t, os.Chmod(path, 0o640)) // whatever the umask

	require.NoError(t, writeFile(path, "new"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "new", string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, files, 1)

	link := filepath.Join(t.TempDir(), "link.sim")
	require.NoError(t, os.Symlink(path, link))
	require.NoError(t, writeFile(link, "newer"))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "newer", string(text), "the file behind a link")

	require.Error(t, writeFile(filepath.Join(folder, "none", "b.sim"), "new"))
	require.Error(t, writeFile(folder, "new"))
	files, err = os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, files, 1)
}

// A run as root would otherwise put a file into the place of the machine's
// /dev/null. The pipe is named as /dev/stdout names one.
func TestWriteFileLeavesWhatIsNoFile(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	path := fmt.Sprintf("/dev/fd/%d", w.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("the platform has no /dev/fd to name a pipe by")
	}
	require.NoError(t, writeFile(path, "text"))
	require.NoError(t, w.Close())
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))

	require.ErrorContains(t, writeFile(t.TempDir(), "text"), "is a folder, want the name of a file")
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestEveryCommandSaysThatItCouldNotPrint(t *testing.T) {
	const corpus = "../../sim/testdata/corpus"
	for _, command := range []string{
		"new", "run FILE", "run FILE --json", "run FILE --print", "what-if FILE", "what-if FILE --json", "trace FILE", "trace FILE --why 1",
		"explain @every_1h", "sweep FILE --seeds 1", "sweep FILE --seeds 1 --json", "replay ../../examples/scenarios/bad-row.sim", "shrink FILE --keep no-double-fire",
		"corpus list " + corpus, "corpus list --json " + corpus,
	} {
		file := filepath.Join(t.TempDir(), "a.sim")
		require.NoError(t, os.WriteFile(file, []byte("simulate v1\nrun 2h\nschedule a every=1h queue=q\nat 30m down for=1h\n"), 0o600))
		args := strings.Fields(command)
		for i := range args {
			args[i] = strings.NewReplacer("FILE", file, "@every_", "@every ").Replace(args[i])
		}
		var stderr strings.Builder
		require.Equal(t, 1, simulate(args, strings.NewReader(""), full{}, &stderr), command)
		require.Contains(t, stderr.String(), "no space left on device", command)
	}
}

// result is a run of nothing, to be filled.
func result(verdict sim.Verdict) *report {
	return &report{
		Result: &sim.Result{Verdict: verdict, Simulated: time.Hour}, scenario: &sim.Scenario{For: time.Hour},
		file: "a.sim", wall: time.Millisecond, verdict: verdict,
	}
}

func written(t *testing.T, r *report) string {
	var b strings.Builder
	require.NoError(t, r.write(&b))
	return b.String()
}

func TestReportSaysWhatEachVerdictMeans(t *testing.T) {
	for v := sim.Pass; v <= sim.Unmet; v++ {
		require.NotEmpty(t, verdictText[v], v.String())
		require.Contains(t, written(t, result(v)), "verdict: "+v.String()+"\n  ")
	}
	require.Len(t, verdictText, int(sim.Unmet)+1)
}

func TestReportShowsViolations(t *testing.T) {
	r := result(sim.Safety)
	r.Failures = []sim.Failure{{
		Invariant: "1 fires once", At: sim.DefaultStart.Add(90 * time.Second), Schedule: "report\x1b", Detail: "fired again\x1b[2J",
	}}
	r.Excused = []sim.Excuse{{Kind: "nobody", Text: "nobody was there"}}
	text := written(t, r)
	require.Contains(t, text, `1 fires once  +1m30s  report\x1b  fired again\x1b[2J`+"\n")
	require.Contains(t, text, "a rule that holds whatever happens was broken\n  excused: nobody was there\n")
	require.True(t, strings.HasSuffix(text, "\ndigest 0000000000000000\n"))

	o := runJSON(r)
	require.Equal(t, []violationObject{{"1 fires once", 90_000, "report\x1b", "fired again\x1b[2J"}}, o.Violations)
}

func TestReportCutsLongLists(t *testing.T) {
	r := result(sim.Pass)
	for range 101 {
		r.Schedules = append(r.Schedules, sim.ScheduleResult{Name: "a", Spec: "@every 1m", Fired: 1000})
	}
	text := written(t, r)
	require.Equal(t, mostRows, strings.Count(text, "\na "))
	require.Contains(t, text, "and 1 more, which --json lists\n")
	require.Contains(t, text, "101 schedules")
	require.Contains(t, text, "101,000")
	require.Len(t, runJSON(r).Schedules, 101)
}

func TestReportNamesTheEffectOfEachFault(t *testing.T) {
	for kind := sim.FaultDown; kind <= sim.FaultTamper; kind++ {
		r, f := result(sim.Pass), &sim.FaultResult{Fault: sim.Fault{Kind: kind}}
		require.Equal(t, []string{"none"}, r.effect(f))
		f.Effect = 2
		require.Len(t, r.effect(f), 1)
		require.Regexp(t, "^(2|nothing) [a-z ]+$", r.effect(f)[0])
	}
}

func TestReportTellsTheCostOfFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		kind sim.FaultKind
		cost sim.Cost
		want []string
	}{
		{
			"everything", sim.FaultDown,
			sim.Cost{Due: 1015, OnTime: 1, Late: 1000, Skipped: 3, Forgotten: 5, Left: 6, FiredAgain: 7},
			[]string{"1,015 due: 1 on time, 1,000 late, 3 skipped, 5 forgotten, 6 left; 7 fired again"},
		},
		{"one thing", sim.FaultCrash, sim.Cost{Due: 2, Late: 2}, []string{"2 due: 2 late"}},
		{"fired again alone", sim.FaultCrash, sim.Cost{FiredAgain: 2}, []string{"nothing due; 2 fired again"}},
		{
			"a wrong clock", sim.FaultClockJump,
			sim.Cost{FiredEarly: 50, MaxEarly: 8 * time.Hour, FiredAgain: 48, Silence: 9 * time.Hour, Silent: "a\x1b"},
			[]string{"50 fired early, by up to 8h", "48 fired again", `a\x1b silent for 9h`},
		},
		{"a clock that steps back", sim.FaultClockJump, sim.Cost{Silence: time.Hour, Silent: "a"}, []string{"nothing fired early", "a silent for 1h"}},
	} {
		r := result(sim.Pass)
		require.Equal(t, c.want, r.effect(&sim.FaultResult{Fault: sim.Fault{Kind: c.kind}, Effect: 1, Cost: c.cost}), c.name)
		r.Faults = []sim.FaultResult{{Fault: sim.Fault{Kind: c.kind}, Effect: 1, Cost: c.cost}}
		if c.cost.FiredAgain > 0 {
			require.Equal(t, 1, strings.Count(written(t, r), "\nfired again: "), "a word is explained once")
		}
	}
}

// TestPassSaysWhatItRestsOn: the words of a pass claim no more than is so.
func TestPassSaysWhatItRestsOn(t *testing.T) {
	const all = "every boundary that came due fired once, or was skipped for a stated reason"
	for _, c := range []struct {
		schedule sim.ScheduleResult
		want     []string
	}{
		{sim.ScheduleResult{}, []string{"no boundary came due, so this shows nothing"}},
		{sim.ScheduleResult{Boundaries: 1}, []string{all}},
		{sim.ScheduleResult{Left: 3}, []string{all + ";", "3 still due when the run ended"}},
		{
			sim.ScheduleResult{Boundaries: 90, FiredAgain: 34, FiredByRepair: 48, Forgotten: 1},
			[]string{
				all + ";", "34 that a restart had forgotten fired again;", "48 that clock-repair=rearm took back fired again;",
				"1 that a restart did not know never fired",
			},
		},
	} {
		r := result(sim.Pass)
		r.Schedules = []sim.ScheduleResult{c.schedule}
		require.Equal(t, c.want, r.judgement())
	}
}

func TestCompareFindsTheFirstDifference(t *testing.T) {
	const head = "simulate v1\nrun 1h\n----\n"
	r := result(sim.Pass)
	same := r.Outcome()
	for name, c := range map[string]struct {
		recorded string
		want     *difference
	}{
		"none is recorded": {"", nil},
		"equal":            {same, nil},
		"other line ends":  {strings.ReplaceAll(same, "\n", " \r\n"), nil},
		"a line":           {strings.Replace(same, "pass", "liveness", 1), &difference{4, "verdict  liveness", "verdict  pass"}},
		"one more":         {same + "more\n", &difference{6, "more", "(no line)"}},
		"one less":         {"verdict  pass\n", &difference{5, "(no line)", "digest   0000000000000000"}},
	} {
		r := result(sim.Pass)
		r.scenario.Outcome = c.recorded
		r.compare(head + c.recorded)
		require.Equal(t, c.want, r.difference, name)
		require.Equal(t, c.want != nil, r.verdict == sim.Unmet, name)
	}

	broken := result(sim.Liveness)
	broken.scenario.Outcome = same
	broken.compare(head + same)
	require.Equal(t, sim.Liveness, broken.verdict, "the graver verdict stays")
}

// TestMessagesAreHarmless runs a file whose path, text and names hold what a
// terminal might obey.
func TestMessagesAreHarmless(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a\x1b[2J\nb.sim")
	text := "simulate v1\nrun 1h\nschedule \"\\u202ea\" every=5m queue=mail\nexpect b.fires=1\nexpect <b>.fires=1\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	var stdout, stderr strings.Builder
	require.Equal(t, 1, simulate([]string{"run", path}, nil, &stdout, &stderr))
	require.Empty(t, stdout.String())
	require.Contains(t, stderr.String(), `a\x1b[2J\nb.sim:4:8: found "b", want a schedule: \u202ea`+"\n")
	require.Equal(t, 2, strings.Count(stderr.String(), "\n"))
	require.NotContains(t, stderr.String(), "\x1b")
	require.NotContains(t, stderr.String(), "\u202e")

	text = strings.ReplaceAll(text[:strings.Index(text, "expect")], `\u202ea`, "<b>")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	require.Equal(t, 0, simulate([]string{"run", "--json", path}, nil, &stdout, &stderr))
	require.Contains(t, stdout.String(), `"name": "<b>"`)
	require.NotContains(t, stdout.String(), "\x1b")
}

// What broke a rule has a link to its place on the page.
func TestABrokenRuleHasALink(t *testing.T) {
	r := &report{
		Result: &sim.Result{Failures: []sim.Failure{{Invariant: "6 fence", At: sim.DefaultStart}, {Invariant: "7 spin", At: sim.DefaultStart}}}, scenario: &sim.Scenario{}, page: "/pages/my run#1.html",
	}
	var b strings.Builder
	w := newPage(&b)
	r.writeProblems(w)
	require.NoError(t, w.Flush())
	require.Contains(t, b.String(), "file:///pages/my%20run%231.html#sel=violation-1\n")
	require.Contains(t, b.String(), "file:///pages/my%20run%231.html#sel=violation-2\n")
}
