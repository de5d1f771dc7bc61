package memengine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// checkOverlap compares the overlap index with the jobs, and answers how many
// of each name are live.
func checkOverlap(t testing.TB, s *Store) map[string]store.Live {
	t.Helper()
	type place struct {
		q    *queue
		name string
		own  int32
	}
	live, members := map[string]store.Live{}, map[place]int{}
	for j := range s.jobs.from(0) {
		if j.Counts() {
			n := live[j.Schedule]
			tally(&n, 0, j.State)
			live[j.Schedule] = n
		}
		if j.Alone && j.Schedule != "" && (j.waiting != 0 || j.come != 0) {
			members[place{j.q, j.Schedule, ownClaims(j)}]++
		}
	}
	lines := map[string]int{}
	for p, n := range members {
		lines[p.name]++
		siblings := s.overlap.siblings[p.name]
		require.NotNil(t, siblings, p.name)
		l := siblings.line(p.q, p.own)
		require.NotNil(t, l, p.name)
		require.Equal(t, n, l.n)
		require.Same(t, l, p.q.lines[l.at])
		require.Equal(t, live[p.name].Claimed > p.own, l.waits)
		for i, turns := range p.q.turns() {
			first, rest := l.first[i], l.rest[i].rows
			require.False(t, l.waits && first != nil, "a job that waits is among those that do not")
			require.False(t, !l.waits && first == nil && len(rest) > 0, "nobody leads the line")
			if first != nil {
				require.Same(t, first, turns.rows[*turns.place(first)-1])
			}
			for k, j := range rest {
				require.Equal(t, int32(k+1), *turns.place(j))
				require.False(t, first != nil && turns.before(j, first))
			}
		}
	}
	for name, siblings := range s.overlap.siblings {
		require.Equal(t, live[name], siblings.Live, name)
		require.Len(t, siblings.lines, lines[name], name)
		require.True(t, lines[name] > 0 || s.row(name, 0) == nil && live[name] != store.Live{}, "%s: kept for nothing", name)
	}
	s.queues.Scan(func(name string, q *queue) bool {
		for _, l := range q.lines {
			require.Same(t, q, l.q)
			require.Positive(t, l.n)
		}
		return true
	})
	for name, n := range live {
		require.True(t, n == store.Live{} || s.overlap.siblings[name] != nil || s.row(name, 0) != nil, "%s is not counted", name)
	}
	return live
}

// TestX9AClaimMeetsNoneOfThoseThatWait: 100,000 jobs of one name wait for one
// that is claimed. Goal: what a claim, an end and a read of the queue cost does
// not depend on them. Method: it counts the jobs that change their place.
func TestX9AClaimMeetsNoneOfThoseThatWait(t *testing.T) {
	c := &clock{now: 100}
	s := newStore(c.read, store.Limits{}, nil)
	const n = 30_000
	for range n / 10_000 {
		in := make([]store.Insert, 10_000)
		for i := range in {
			in[i] = store.Insert{RunAt: store.None, From: &store.Source{Schedule: "s", FireAt: 100, Alone: true}}
		}
		insert(t, s, in...)
	}
	q, _ := s.queues.Get("q")
	moved := 0
	for i, turns := range q.turns() {
		before := turns.before
		counting := func(a, b *job) bool { moved++; return before(a, b) }
		turns.before = counting
		for _, l := range q.lines {
			l.rest[i].before = counting
		}
	}
	for turn := range 20 {
		moved = 0
		ids, _ := claim(t, s, 2)
		require.Equal(t, []store.JobID{store.JobID(turn + 1)}, ids)
		ids, _ = claim(t, s, 2)
		require.Empty(t, ids)
		require.Equal(t, int64(n-turn-1), q.waits)
		require.Equal(t, store.Instant(151), q.nextClaimAt())
		out := make([]bool, 1)
		_, err := s.Settle(ctx, []store.Settle{{Job: store.JobID(turn + 1), Attempt: 1, To: store.Done}}, out)
		require.NoError(t, err)
		require.Equal(t, []bool{true}, out)
		if turn > 0 { // the first puts all in the order of their turns
			require.Less(t, moved, 1000, "comparisons of a claim and its end")
		}
	}
	checkIndexes(t, s, c.now)
}

// A snapshot with two claimed jobs that each have to be alone is none: they
// would wait for each other for ever.
func TestX9D1TwoThatAreAloneAndClaimedAreADamage(t *testing.T) {
	c := &clock{now: 100}
	s := newStore(c.read, store.Limits{}, nil)
	from := &store.Source{Schedule: "s", FireAt: 100}
	insert(t, s, store.Insert{RunAt: 100, From: from}, store.Insert{RunAt: 100, From: from})
	_, _ = claim(t, s, 2)
	for j := range s.jobs.from(0) {
		j.Alone = true
	}
	b, err := s.Snapshot()
	require.NoError(t, err)
	_, _, err = restoreStore(c.read, store.Limits{}, b, nil, nil, nil)
	require.ErrorContains(t, err, `two claimed jobs of schedule "s" that run alone`)
}

// A record that gives a job another schedule is refused, not counted.
func TestX9D3ARecordChangesNoJobsSchedule(t *testing.T) {
	a := store.Job{Queue: "q", Key: "k", Schedule: "s", ScheduleID: 1, Origin: 2, Alone: true}
	require.True(t, sameJob(&a, &a))
	for _, change := range []func(b *store.Job){
		func(b *store.Job) { b.Queue = "r" },
		func(b *store.Job) { b.Key = "" },
		func(b *store.Job) { b.Schedule = "t" },
		func(b *store.Job) { b.ScheduleID = 2 },
		func(b *store.Job) { b.Origin = 0 },
		func(b *store.Job) { b.Alone = false },
	} {
		b := a
		change(&b)
		require.False(t, sameJob(&a, &b))
	}
}
