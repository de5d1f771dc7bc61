package crashtest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// clean is an account without faults: a schedule that fired twice, whose jobs
// were done, the second at its second attempt, and skipped once; and an order
// whose job died.
func clean() *account {
	const (
		pending, claimed, dead, done = store.Pending, store.Claimed, store.Dead, store.Done
	)
	return &account{
		schedules: map[int64]*grid{1: {
			name: "s", every: 1000, from: 5000, next: 8000, overlap: store.SkipLive,
			fired: map[int64]int{5000: 1, 7000: 1}, skipped: map[int64]int{6000: 1},
		}},
		jobs: map[int64]*life{
			1: {id: 1, Queue: "q", Schedule: 1, FireAt: 5000, at: 5001, changes: []change{
				{1, 0, pending, 0}, {2, pending, claimed, 1}, {3, claimed, claimed, 1}, {4, claimed, done, 1},
			}},
			2: {id: 2, Queue: "q", Schedule: 1, FireAt: 7000, at: 7001, changes: []change{
				{5, 0, pending, 0}, {6, pending, claimed, 1}, {7, claimed, claimed, 2}, {8, claimed, done, 2},
			}},
			3: {id: 3, Queue: "q", Payload: "1", kept: dead, changes: []change{
				{9, 0, pending, 0}, {10, pending, claimed, 1}, {11, claimed, dead, 1},
			}},
		},
		orders:   map[int64]bool{1: true},
		handled:  map[attempt]bool{{1, 1}: true, {2, 2}: true},
		runs:     map[attempt]int{{1, 1}: 1, {2, 1}: 1, {2, 2}: 1},
		counters: map[string]store.Queue{"q": {Name: "q", Dead: 1, Claims: 4, Done: 2, Died: 1}},
	}
}

func TestEachFaultIsSeen(t *testing.T) {
	require.Empty(t, func() map[string]int { v := clean().judge(); return v.faults }())
	for _, c := range []struct {
		kind string
		do   func(*account)
	}{
		{doubleFire, func(a *account) { a.schedules[1].fired[5000]++ }},
		{doubleFire, func(a *account) { a.schedules[1].fired[6000]++ }},
		{doubleFire, func(a *account) { a.schedules[1].skipped[6000]++ }},
		{doubleFire, func(a *account) { a.schedules[1].once = true }},
		{gap, func(a *account) { delete(a.schedules[1].fired, 7000) }},
		{gap, func(a *account) { delete(a.schedules[1].skipped, 6000) }},
		{gap, func(a *account) { a.schedules[1].next = 9000 }},
		{offGrid, func(a *account) { a.schedules[1].fired[7500]++ }},
		{offGrid, func(a *account) { a.schedules[1].fired[8000]++ }},
		{early, func(a *account) { a.jobs[1].at = 4999 }},
		{overlaps, func(a *account) { a.jobs[2].changes[0].id, a.jobs[1].changes[3].id = 4, 5 }},
		{overlaps, func(a *account) { // one waits already
			a.schedules[1].overlap = store.BufferOne
			a.jobs[2].changes[0].id, a.jobs[1].changes[1].id = 2, 5
		}},
		{overlaps, func(a *account) { // two in hand
			a.schedules[1].overlap = store.BufferOne
			a.jobs[2].changes[0].id, a.jobs[2].changes[1].id, a.jobs[1].changes[2].id, a.jobs[1].changes[3].id = 3, 4, 5, 6
		}},
		{impossible, func(a *account) { a.jobs[1].changes[1].attempts = 2 }},
		{impossible, func(a *account) { a.jobs[1].changes[3].before = store.Pending }},
		{impossible, func(a *account) { a.jobs[1].changes = slices.Delete(a.jobs[1].changes, 1, 2) }},
		{impossible, func(a *account) { a.jobs[1].changes[3].attempts = 2 }},
		{impossible, func(a *account) { a.jobs[1].kept = store.Claimed }},
		{impossible, func(a *account) { a.jobs[3].kept = 0 }},
		{unhandled, func(a *account) { delete(a.handled, attempt{2, 2}) }},
		{wrongRuns, func(a *account) { delete(a.runs, attempt{2, 1}) }},
		{wrongRuns, func(a *account) { a.runs[attempt{1, 1}]++ }},
		{wrongRuns, func(a *account) { a.runs[attempt{3, 1}]++ }},
		{miscounted, func(a *account) { a.counters["q"] = store.Queue{Name: "q", Dead: 1, Claims: 3, Done: 2, Died: 1} }},
		{miscounted, func(a *account) { delete(a.counters, "q") }},
		{wrongJob, func(a *account) { delete(a.orders, 1) }},
		{wrongJob, func(a *account) { a.orders[2] = true }},
		{wrongJob, func(a *account) { a.jobs[3].Payload = "2" }},
	} {
		a := clean()
		c.do(a)
		v := a.judge()
		require.Contains(t, v.faults, c.kind)
	}
	a := clean() // the first job is to be tried again when the second fires
	a.schedules[1].overlap = store.BufferOne
	a.jobs[1].changes = append(a.jobs[1].changes[:3], change{4, store.Claimed, store.Pending, 1})
	v := a.judge()
	require.NotContains(t, v.faults, overlaps)

	c := &campaign{done: []int64{1, 2}, ordered: []int64{1}}
	for _, more := range []campaign{{done: []int64{1}}, {done: []int64{3}}, {done: []int64{4}}, {ordered: []int64{2}}} {
		v := verdict{faults: map[string]int{}}
		c.judge(clean(), &v)
		require.Empty(t, v.faults)
		told := &campaign{done: append(slices.Clone(c.done), more.done...), ordered: append(slices.Clone(c.ordered), more.ordered...)}
		told.judge(clean(), &v)
		require.Equal(t, map[string]int{lostAnswer: 1}, v.faults)
	}
}
