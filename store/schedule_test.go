package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// Ends of jobs, d for done and f for failed, and what they leave.
func TestX4EndedCountsFailuresInARow(t *testing.T) {
	for _, c := range []struct {
		name     string
		breaker  uint8
		from     uint8
		paused   store.Pause
		ends     string
		failures uint8
		becomes  store.Pause
		changes  int
		trips    int
	}{
		{"two, one done, two", 3, 0, store.Active, "ffdff", 2, store.Active, 5, 0},
		{"three", 3, 0, store.Active, "fff", 3, store.PausedByBreaker, 3, 1},
		{"and more", 3, 0, store.Active, "fffff", 3, store.PausedByBreaker, 3, 1},
		{"done does not resume", 3, 0, store.Active, "fffd", 0, store.PausedByBreaker, 4, 1},
		{"one", 1, 0, store.Active, "f", 1, store.PausedByBreaker, 1, 1},
		{"off", 0, 0, store.Active, "ffffdf", 0, store.Active, 0, 0},
		{"done changes nothing", 3, 0, store.Active, "ddd", 0, store.Active, 0, 0},
		{"paused by the user it counts, and does not open", 2, 0, store.PausedByUser, "fff", 2, store.PausedByUser, 2, 0},
		{"at its count already, and active", 2, 2, store.Active, "f", 2, store.PausedByBreaker, 1, 1},
		{"the largest", 255, 254, store.Active, "ff", 255, store.PausedByBreaker, 1, 1},
	} {
		s := store.Schedule{Breaker: c.breaker, Failures: c.from, Paused: c.paused, DueAt: 7}
		changes, trips := 0, 0
		for _, end := range c.ends {
			changed, tripped := s.Ended(end == 'f')
			if changed {
				changes++
			}
			if tripped {
				trips++
				require.Equal(t, store.None, s.DueAt, c.name)
			}
		}
		require.Equal(t, []any{c.failures, c.becomes, c.changes, c.trips}, []any{s.Failures, s.Paused, changes, trips}, c.name)
	}
}
