package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

func TestT14TheGraceWindow(t *testing.T) {
	for interval, want := range map[int64]int64{
		1000:               120_000,
		239_000:            120_000,
		240_000:            120_000,
		242_000:            121_000,
		3_600_000:          1_800_000,
		14_400_000:         7_200_000,
		14_402_000:         7_200_000,
		86_400_000:         7_200_000,
		core.MaxIntervalMS: 7_200_000,
	} {
		require.Equal(t, want, core.GraceWindowMS(interval), "interval %d ms", interval)
	}
}

func TestS3TheDerivedDefaults(t *testing.T) {
	require.Equal(t, store.Stamps{VisibilityMS: 300_000, MaxAttempts: 3, BaseBackoffMS: 60_000}, core.PlainStamps)
	require.Equal(t, store.Stamps{VisibilityMS: 60_000, MaxAttempts: 5, BaseBackoffMS: 5_000}, core.OutboxStamps)
}

func TestS10PolicyBounds(t *testing.T) {
	const most = core.MaxIntervalMS
	for _, c := range []struct {
		name   string
		change func(r *store.Schedule)
		good   bool
	}{
		{"the shortest", func(r *store.Schedule) {
			r.Stamps, r.CatchUp = store.Stamps{VisibilityMS: 1, MaxAttempts: 1, BaseBackoffMS: 1}, store.CatchUp{Max: 1}
		}, true},
		{"the longest", func(r *store.Schedule) {
			r.Stamps, r.ExpiresMS = store.Stamps{VisibilityMS: most, MaxAttempts: 1<<31 - 1, BaseBackoffMS: 3_600_000}, most
			r.CatchUp, r.Priority = store.CatchUp{WindowMS: most, Max: 64}, 32_767
			r.Overlap, r.Breaker, r.Failures = store.BufferOne, 255, 255
			r.Rare = &store.Rare{Hours: store.Hours{Start: 1439, End: 1439}, TimeoutMS: most}
		}, true},
		{"visibility past a Duration", func(r *store.Schedule) { r.Stamps.VisibilityMS = most + 1 }, false},
		{"negative visibility", func(r *store.Schedule) { r.Stamps.VisibilityMS = -1 }, false},
		{"negative attempts", func(r *store.Schedule) { r.Stamps.MaxAttempts = -1 }, false},
		{"backoff past an hour", func(r *store.Schedule) { r.Stamps.BaseBackoffMS = 3_600_001 }, false},
		{"backoff 0", func(r *store.Schedule) { r.Stamps.BaseBackoffMS = 0 }, false},
		{"expiry past a Duration", func(r *store.Schedule) { r.ExpiresMS = most + 1 }, false},
		{"window past a Duration", func(r *store.Schedule) { r.CatchUp.WindowMS = most + 1 }, false},
		{"negative count", func(r *store.Schedule) { r.CatchUp.Max = -1 }, false},
		{"an unknown overlap", func(r *store.Schedule) { r.Overlap = store.BufferOne + 1 }, false},
		{"more failures than the breaker's", func(r *store.Schedule) { r.Breaker, r.Failures = 3, 4 }, false},
		{"hours that start past the day", func(r *store.Schedule) { r.Rare = &store.Rare{Hours: store.Hours{Start: 1440}} }, false},
		{"hours that end past the day", func(r *store.Schedule) { r.Rare = &store.Rare{Hours: store.Hours{End: 1440}} }, false},
		{"a negative timeout", func(r *store.Schedule) { r.Rare = &store.Rare{TimeoutMS: -1} }, false},
		{"timeout past a Duration", func(r *store.Schedule) { r.Rare = &store.Rare{TimeoutMS: most + 1} }, false},
	} {
		row := store.Schedule{Stamps: core.PlainStamps, CatchUp: all}
		c.change(&row)
		require.Equal(t, c.good, core.CheckPolicy(&row) == "", c.name)
	}
}
