package sim

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/store"
)

type planned struct {
	at store.Instant
	c  class
	id int
}

// TestEventsComeInOrder: pushes and pops in any order against a sorted list.
func TestEventsComeInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q events[int]
		var model []planned
		for id := range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(model) > 0 && rapid.IntRange(0, 2).Draw(t, "pop") == 0 {
				slices.SortStableFunc(model, func(a, b planned) int {
					return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.c, b.c))
				})
				require.Equal(t, model[0].at, q.next())
				at, got := q.pop()
				require.Equal(t, model[0], planned{at, model[0].c, got})
				model = model[1:]
			} else {
				p := planned{store.Instant(rapid.Int64Range(-5, 5).Draw(t, "at")), class(rapid.IntRange(0, 2).Draw(t, "class")), id}
				model = append(model, p)
				q.push(p.at, p.c, id)
			}
			require.Equal(t, len(model), q.len())
		}
		if len(model) == 0 {
			require.Equal(t, store.None, q.next())
		}
	})
}

// order pushes n events of one instant and pops them.
func order(q *events[int], n int) []int {
	for i := range n {
		q.push(0, class(i%2), i)
	}
	list := make([]int, n)
	for i := range list {
		_, list[i] = q.pop()
	}
	return list
}

func TestEventsOfOneInstant(t *testing.T) {
	require.Equal(t, []int{0, 2, 4, 6, 8, 1, 3, 5, 7, 9}, order(&events[int]{}, 10), "by class, then as they were pushed")

	one := order(&events[int]{shuffle: true, seed: 1}, 100)
	require.Equal(t, one, order(&events[int]{shuffle: true, seed: 1}, 100), "the same for the same seed")
	require.NotEqual(t, one, order(&events[int]{shuffle: true, seed: 2}, 100), "another for another")
	require.False(t, slices.IsSorted(one[:50]))
	for i, id := range one {
		require.Equal(t, i/50, id%2, "classes are not shuffled")
	}
}

func TestEventsDoNotAllocate(t *testing.T) {
	var q events[[2]int64]
	for i := range 100 {
		q.push(store.Instant(i), 0, [2]int64{})
	}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		at, e := q.pop()
		q.push(at+100, 0, e)
	}))
}

func BenchmarkEvents(b *testing.B) {
	var q events[[2]int64]
	for i := range 10_000 {
		q.push(store.Instant(i*7919%10_000), 0, [2]int64{})
	}
	for i := range b.N {
		at, e := q.pop()
		q.push(at+1+store.Instant(i*7919%10_000), 0, e)
	}
}

// A loss of which two answers are under way is told by the one that comes first,
// though it may have been given later.
func TestALossIsToldByTheAnswerThatComesFirst(t *testing.T) {
	r := passes(t, `simulate v1
run      10m
schedule a every=6m queue=q handler=fail:1s visibility=1s
during 5m..7m store slow p=0.5 late=reply takes=1ms
during 5m..7m queue duplicate-ack
expect   sometimes:duplicate-ack-refused
`)
	require.Positive(t, r.Faults[0].Effect)
}
