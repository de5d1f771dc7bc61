package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/store"
)

func TestReached(t *testing.T) {
	var forthAndBack timeline = []stretch{{from: 0}}
	forthAndBack.jump(100, 50)  // shows 150 to 250
	forthAndBack.jump(200, -80) // shows 170 on
	for _, c := range []struct {
		name         string
		shown, first store.Instant
	}{
		{"before the jumps", 40, 40},
		{"at the instant of the jump", 100, 100},
		{"jumped over", 120, 100},
		{"where the jump ended", 150, 100},
		{"between the jumps", 160, 110},
		{"shown twice", 240, 190},
		{"the latest before the jump back", 250, 200},
		{"after both", 251, 281},
	} {
		require.Equal(t, c.first, forthAndBack.reached(c.shown), c.name)
	}
}

// TestReachedIsTheFirstTime compares with a walk along the clock.
func TestReachedIsTheFirstTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := timeline{{from: 0}}
		type reading struct{ now, shown store.Instant }
		var seen []reading
		now := store.Instant(0)
		for range rapid.IntRange(1, 6).Draw(t, "stretches") {
			for range rapid.IntRange(0, 9).Draw(t, "lasts") {
				seen = append(seen, reading{now, now.Add(clock.offset())})
				now++
			}
			seen = append(seen, reading{now, now.Add(clock.offset())})
			clock.jump(now, rapid.Int64Range(-15, 15).Draw(t, "by"))
			seen = append(seen, reading{now, now.Add(clock.offset())})
		}
		for _, r := range seen {
			first := r
			for _, earlier := range seen {
				if earlier.shown >= r.shown {
					first = earlier
					break
				}
			}
			require.Equal(t, first.now, clock.reached(r.shown), "%d", r.shown)
		}
	})
}
