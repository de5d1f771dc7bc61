package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
)

// afterStart is a time after the default start.
func afterStart(d time.Duration) time.Time { return DefaultStart.Add(d) }

// untold are the passages without their words.
func untold(told *Explanation) []Passage {
	var list []Passage
	for _, p := range told.Passages {
		p.Text = ""
		list = append(list, p)
	}
	return list
}

func passage(fate Fate, rule string, first, last time.Duration, count int64, maxLate, minLate time.Duration) Passage {
	return Passage{
		Fate: fate, First: afterStart(first), Last: afterStart(last), Count: count, MaxLate: maxLate, MinLate: minLate, Note: Note{Rule: rule},
	}
}

func TestExplain(t *testing.T) {
	const s, m, h = time.Second, time.Minute, time.Hour
	for _, c := range []struct {
		name     string
		question Question
		want     []Passage
		fired    int64
		skipped  int64
		next     time.Duration
	}{
		{
			"on time",
			Question{Spec: "@every 5m"},
			[]Passage{passage(Fired, "T2", 5*m, 15*m, 3, 0, 0)},
			3, 0, 20 * m,
		},
		{
			"T6: past the 64 it skips, and keeps the grid",
			Question{Spec: "@every 7s", Down: 10 * m},
			[]Passage{
				passage(CaughtUp, "T5", 7*s, 448*s, 64, 593*s, 152*s),
				passage(Skipped, "T6", 455*s, 595*s, 21, 145*s, 5*s),
				passage(Fired, "T2", 602*s, 616*s, 3, 0, 0),
			},
			67, 21, 623 * s,
		},
		{
			"T7: exactly 64 are due",
			Question{Spec: "@every 1s", Down: 64*s + 500*time.Millisecond, For: s},
			[]Passage{
				passage(CaughtUp, "T5", s, 64*s, 64, 63*s+500*time.Millisecond, 500*time.Millisecond),
				passage(Fired, "T2", 65*s, 65*s, 1, 0, 0),
			},
			65, 0, 66 * s,
		},
		{
			"a boundary at the end of the outage is on time",
			Question{Spec: "@every 1h", Down: 2 * h, For: m},
			[]Passage{passage(CaughtUp, "T5", h, h, 1, h, h), passage(Fired, "T2", 2*h, 2*h, 1, 0, 0)},
			2, 0, 3 * h,
		},
		{
			"T14: latest",
			Question{Spec: "@every 1h", Down: 3*h + m, CatchUp: CatchUpLatest, For: m},
			[]Passage{
				passage(Skipped, "T14", h, 2*h, 2, 2*h+m, h+m),
				passage(CaughtUp, "T14", 3*h, 3*h, 1, m, m),
			},
			1, 2, 4 * h,
		},
		{
			"T14: grace drops the old ones and the cap the new ones",
			Question{Spec: "@every 1s", Down: 10 * m, CatchUp: CatchUpGrace, For: time.Millisecond},
			[]Passage{
				passage(Skipped, "T14", s, 479*s, 479, 599*s, 121*s),
				passage(CaughtUp, "T14", 480*s, 543*s, 64, 120*s, 57*s),
				passage(Skipped, "T6", 544*s, 600*s, 57, 56*s, 0),
			},
			64, 536, 601 * s,
		},
		{
			"T14: none, and none on time",
			Question{Spec: "@every 1m", Down: 2*m + 11*s, CatchUp: CatchUpNone, For: s},
			[]Passage{passage(Skipped, "T14", m, 2*m, 2, 71*s, 11*s)},
			0, 2, 3 * m,
		},
		{
			"K1: a jump forward is caught up like an outage",
			Question{Spec: "@every 1h", Jump: 90 * m, For: 30 * m},
			[]Passage{passage(CaughtUp, "T5", h, h, 1, 30*m, 30*m), passage(Fired, "T2", 2*h, 2*h, 1, 0, 0)},
			2, 0, 3 * h,
		},
		{
			"K1: after a step back the same boundary comes once",
			Question{Spec: "@every 1h", Down: 30 * m, Jump: -20 * m, For: h},
			[]Passage{passage(Fired, "T2", h, h, 1, 0, 0)},
			1, 0, 2 * h,
		},
		{
			"nothing comes", Question{Spec: "@every 1d", Down: h, For: h}, nil, 0, 0, 24 * h,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			told, err := Explain(c.question)
			require.NoError(t, err)
			require.Equal(t, c.want, untold(told))
			require.Equal(t, c.fired, told.Fired)
			require.Equal(t, c.skipped, told.Skipped)
			require.Equal(t, afterStart(c.next), told.Next)
		})
	}
}

// TestExplainT9AnyGap asks for gaps that cannot be walked through.
func TestExplainT9AnyGap(t *testing.T) {
	const longest = 106_751 * 24 * time.Hour
	for name, q := range map[string]Question{
		"down":      {Spec: "@every 1s", Down: longest},
		"a jump":    {Spec: "@every 1s", Jump: longest},
		"half each": {Spec: "@every 1s", Down: longest / 2, Jump: longest / 2},
	} {
		told, err := Explain(q)
		require.NoError(t, err, name)
		require.Equal(t, int64(64+3), told.Fired, name)
		require.Equal(t, int64(longest/time.Second)-64, told.Skipped, name)
		require.Equal(t, afterStart(longest+4*time.Second), told.Next, name)
	}

	told, err := Explain(Question{Spec: "@every 106751d"})
	require.NoError(t, err)
	require.Equal(t, int64(3), told.Fired)
}

func TestExplainNotes(t *testing.T) {
	rules := func(q Question) (rules []string) {
		told, err := Explain(q)
		require.NoError(t, err)
		for _, n := range told.Notes {
			rules = append(rules, n.Rule)
		}
		return rules
	}
	require.Nil(t, rules(Question{Spec: "@every 1h", Down: 9 * time.Hour}))
	require.Equal(t, []string{"K1"}, rules(Question{Spec: "@every 1h", Jump: -time.Minute}))
	require.Equal(t, []string{"T11", "K1"}, rules(Question{Spec: "@every 1h", Jump: -9 * time.Hour}))
}

func TestExplainRefuses(t *testing.T) {
	for _, c := range []struct {
		name     string
		question Question
		is       error
		says     string
	}{
		{"a bad spec", Question{Spec: "@daily"}, tickonce.ErrInvalidSpec, `write "@every 1d"`},
		{
			"too many boundaries to run on",
			Question{Spec: "@every 1s", For: (MaxRunOn + 1) * time.Second},
			tickonce.ErrInvalidOption, "for is 1d3h46m41s, want at most 1d3h46m40s",
		},
		{
			"an outage longer than a duration",
			Question{Spec: "@every 1s", Down: 100_000 * 24 * time.Hour, Jump: 100_000 * 24 * time.Hour},
			tickonce.ErrInvalidOption, "jump is 100000d after 100000d, want at most 106751d in all",
		},
	} {
		_, err := Explain(c.question)
		require.ErrorIs(t, err, c.is, c.name)
		require.ErrorContains(t, err, c.says, c.name)
	}
	_, err := Explain(Question{Spec: "@every 1s", For: MaxRunOn * time.Second})
	require.NoError(t, err)
}

func TestQuestionSet(t *testing.T) {
	var q Question
	for name, text := range map[string]string{
		"from": "2026-03-29T01:30:00+01:00", "down": "1h30m", "jump": "8h", "policy": "none", "for": "2d",
	} {
		require.NoError(t, q.Set(name, text), name)
	}
	require.Equal(t, Question{
		From: time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC), Down: 90 * time.Minute, Jump: 8 * time.Hour,
		CatchUp: CatchUpNone, For: 48 * time.Hour,
	}, q)
	require.NoError(t, q.Set("jump", "-8h"))
	require.Equal(t, -8*time.Hour, q.Jump)

	require.NoError(t, q.Set("catch-up", "grace"))
	require.Equal(t, CatchUpGrace, q.CatchUp, "the policy's name in scenario files")
	require.NoError(t, q.Set("anchor", "2026-01-01T03:00:00Z"))
	require.Equal(t, DefaultStart.Add(3*time.Hour), q.Anchor)

	require.EqualError(t, q.Set("policy", "newest"), `found "newest", want one of all, latest, grace, none; did you mean "latest"?`)
	require.EqualError(t, q.Set("down", "-1h"), `found "-1h", want a duration such as 250ms, 70s, 1h30m or 14d`)
	require.Panics(t, func() { _ = q.Set("until", "1h") })
}

// TestExplainEnds although its engine always has something to do at once, as it
// has when its clock stands still.
func TestExplainEnds(t *testing.T) {
	engine, err := memengine.New(tickonce.Config{Clock: &explainer{clock: DefaultStart}, Seed: 1, Owner: "explain"})
	require.NoError(t, err)
	x := explainer{question: &Question{}, clock: DefaultStart, runner: engine.NewRunner()}
	x.told.Next = DefaultStart.Add(time.Hour)
	require.EqualError(t, x.tick(x.told.Next), "the runner does not rest at 2026-01-01T01:00:00Z, after 10000 steps")

	x.question.Takes = time.Second
	x.worker, err = engine.NewWorker(explained, tickonce.WorkerConfig{})
	require.NoError(t, err)
	require.EqualError(t, x.work(x.clock), "the worker does not rest at 2026-01-01T01:00:00Z, after 10000 steps")
}

// TestExplainAnchors: the grid is the anchor's, whenever it is registered.
func TestExplainAnchors(t *testing.T) {
	for _, anchor := range []time.Time{DefaultStart.Add(-21 * time.Hour), DefaultStart.Add(3 * time.Hour)} {
		told, err := Explain(Question{Spec: "@every 1d", Anchor: anchor, Down: 50 * time.Hour})
		require.NoError(t, err)
		require.Equal(t, anchor, told.Anchor)
		require.Equal(t, DefaultStart.Add(3*time.Hour), told.Passages[0].First)
		require.EqualValues(t, 2, told.Passages[0].Count)
	}
	told, err := Explain(Question{Spec: "@every 1d"})
	require.NoError(t, err)
	require.Equal(t, DefaultStart, told.Anchor)
}

// Policies decide in an explanation as in a run, and are said first.
func TestExplainPolicies(t *testing.T) {
	const m, h = time.Minute, time.Hour
	for _, c := range []struct {
		name     string
		question Question
		want     []Passage
		notes    []string // rules
		next     time.Duration
	}{
		{
			"X9: a job that takes longer than its interval",
			Question{Spec: "@every 5m", Takes: 12 * m, For: 16 * m, Policies: Policies{Overlap: OverlapSkip}},
			[]Passage{passage(Fired, "T2", 5*m, 5*m, 1, 0, 0), passage(Skipped, "X9", 10*m, 15*m, 2, 0, 0)},
			[]string{"X9"},
			20 * m,
		},
		{
			"X9: a job that takes centuries",
			Question{Spec: "@every 1d", Takes: 90_000 * 24 * h, For: 90_000 * 24 * h, Policies: Policies{Overlap: OverlapSkip}},
			[]Passage{passage(Fired, "T2", 24*h, 24*h, 1, 0, 0), passage(Skipped, "X9", 48*h, 90_000*24*h, 89_999, 0, 0)},
			[]string{"X9"},
			90_001 * 24 * h,
		},
		{
			"X9: one waits, and runs when the first is done",
			Question{Spec: "@every 5m", Takes: 12 * m, For: 21 * m, Policies: Policies{Overlap: OverlapBufferOne}},
			[]Passage{passage(Fired, "T2", 5*m, 10*m, 2, 0, 0), passage(Skipped, "X9", 15*m, 15*m, 1, 0, 0), passage(Fired, "T2", 20*m, 20*m, 1, 0, 0)},
			[]string{"X9"},
			25 * m,
		},
		{
			"X10: outside its hours, in its zone",
			Question{Spec: "@every 1h", For: 9 * h, Policies: Policies{Hours: Hours{Start: 8 * h, End: 9 * h, Zone: "Europe/Berlin"}}},
			[]Passage{passage(Skipped, "X10", h, 6*h, 6, 0, 0), passage(Fired, "T2", 7*h, 7*h, 1, 0, 0), passage(Skipped, "X10", 8*h, 9*h, 2, 0, 0)},
			[]string{"X10"},
			10 * h,
		},
		{
			"X8: once, and then no more",
			Question{Spec: "@every 1h", For: 9 * h, Policies: Policies{RunOnce: true}},
			[]Passage{passage(Fired, "T2", h, h, 1, 0, 0)},
			[]string{"X8"},
			-1,
		},
		{
			"X4, X5: runs that take too long open the breaker",
			Question{Spec: "@every 1h", Takes: 2 * m, For: 9 * h, Policies: Policies{Timeout: m, Breaker: 2}},
			[]Passage{passage(Fired, "T2", h, 2*h, 2, 0, 0)},
			[]string{"X4", "X5", "X4"},
			-1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			told, err := Explain(c.question)
			require.NoError(t, err)
			require.Equal(t, c.want, untold(told))
			var rules []string
			for _, n := range told.Notes {
				rules = append(rules, n.Rule)
			}
			require.Equal(t, c.notes, rules)
			if c.next < 0 {
				require.Zero(t, told.Next)
			} else {
				require.Equal(t, afterStart(c.next), told.Next)
			}
		})
	}
}

// A worker that has more to do at once, since a job was given back while others run,
// does it at that very instant.
func TestX4BreakerOpensInTheTimeOfTheExplanation(t *testing.T) {
	const m = time.Minute
	told, err := Explain(Question{Spec: "@every 1m", Takes: m, For: 20 * m, Policies: Policies{Timeout: m / 2, Breaker: 2}})
	require.NoError(t, err)
	require.Len(t, told.Notes, 3)
	require.Equal(t, Note{"X4", "its breaker paused it at 2026-01-01T00:05:53.281Z, and nothing more comes until it is resumed"}, told.Notes[2])
}
