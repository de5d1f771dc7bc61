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
		require.True(t, lines[name] > 0 || s.overlap.row(name, 0) == nil && live[name] != store.Live{}, "%s: kept for nothing", name)
	}
	s.queues.Scan(func(name string, q *queue) bool {
		for _, l := range q.lines {
			require.Same(t, q, l.q)
			require.Positive(t, l.n)
		}
		return true
	})
	for name, n := range live {
		require.True(t, n == store.Live{} || s.overlap.siblings[name] != nil || s.overlap.row(name, 0) != nil, "%s is not counted", name)
	}
	return live
}
