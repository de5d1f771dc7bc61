package properties_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
)

// drawHistory draws an operation of a history in which the runners rest
// whenever the clock has moved: then how they get there must not matter.
var drawHistory = either(drawEdit, drawEdit, drawForward, drawForward, drawBack)

// twins play one history, with a rest after each operation, and must fire the
// same.
func twins(t *rapid.T, a, b *world, before func(t *rapid.T)) {
	t.Repeat(map[string]func(*rapid.T){
		"play": func(t *rapid.T) {
			o := draw(t, drawHistory)
			require.Equal(t, o.play(a), o.play(b))
			a.rest()
			before(t)
			b.rest()
		},
	})
	require.Equal(t, a.fired(), b.fired())
}

func TestT15SplitTicksFireTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := newWorld(t, tickonce.Config{Batch: 1000}, memory, 1)
		split := newWorld(t, tickonce.Config{Batch: choose(t, "batch", 1, 2, 65)}, memory, 1)
		twins(t, whole, split, func(*rapid.T) {})
	})
}

func TestT3L2ThreeRunnersFireLikeOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := tickonce.Config{StandBy: true}
		one, three := newWorld(t, c, memory, 1), newWorld(t, c, memory, 3)
		twins(t, one, three, func(t *rapid.T) {
			for range rapid.IntRange(0, 6).Draw(t, "steps before the others'") {
				draw(t, drawStep).play(three)
			}
		})
	})
}

// At each step of a tick the engine may be gone, and begin again from its
// journal: what fires is what would have fired anyway.
func TestD4T3RestartAnywhereFiresTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steady := newWorld(t, tickonce.Config{}, memory, 1)
		var journal memengine.MemJournal
		restarted := &world{t: t, clock: &clock{now: start}}
		restart := func() {
			e, recovery, err := memengine.Open(restarted.config(tickonce.Config{}), memengine.Durable{Log: journal.Bytes(), Journal: &journal})
			require.NoError(t, err)
			require.Empty(t, recovery.Torn)
			restarted.store = e.Store()
			restarted.staff(e.Engine)
		}
		restart()
		twins(t, steady, restarted, func(t *rapid.T) {
			for range rapid.IntRange(0, 6).Draw(t, "steps before the restart") {
				restarted.step(0)
			}
			restart()
		})
	})
}
