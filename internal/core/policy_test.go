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
		change func(s *store.Stamps, expires *int64, c *store.CatchUp, priority *int32)
		good   bool
	}{
		{"the shortest", func(s *store.Stamps, _ *int64, c *store.CatchUp, _ *int32) {
			*s, *c = store.Stamps{VisibilityMS: 1, MaxAttempts: 1, BaseBackoffMS: 1}, store.CatchUp{Max: 1}
		}, true},
		{"the longest", func(s *store.Stamps, e *int64, c *store.CatchUp, p *int32) {
			*s, *e = store.Stamps{VisibilityMS: most, MaxAttempts: 1<<31 - 1, BaseBackoffMS: 3_600_000}, most
			*c, *p = store.CatchUp{WindowMS: most, Max: 64}, 32_767
		}, true},
		{"the least priority", func(_ *store.Stamps, _ *int64, _ *store.CatchUp, p *int32) { *p = -32_768 }, true},
		{"visibility past a Duration", func(s *store.Stamps, _ *int64, _ *store.CatchUp, _ *int32) { s.VisibilityMS = most + 1 }, false},
		{"negative visibility", func(s *store.Stamps, _ *int64, _ *store.CatchUp, _ *int32) { s.VisibilityMS = -1 }, false},
		{"negative attempts", func(s *store.Stamps, _ *int64, _ *store.CatchUp, _ *int32) { s.MaxAttempts = -1 }, false},
		{"backoff past an hour", func(s *store.Stamps, _ *int64, _ *store.CatchUp, _ *int32) { s.BaseBackoffMS = 3_600_001 }, false},
		{"backoff 0", func(s *store.Stamps, _ *int64, _ *store.CatchUp, _ *int32) { s.BaseBackoffMS = 0 }, false},
		{"expiry past a Duration", func(_ *store.Stamps, e *int64, _ *store.CatchUp, _ *int32) { *e = most + 1 }, false},
		{"window past a Duration", func(_ *store.Stamps, _ *int64, c *store.CatchUp, _ *int32) { c.WindowMS = most + 1 }, false},
		{"negative count", func(_ *store.Stamps, _ *int64, c *store.CatchUp, _ *int32) { c.Max = -1 }, false},
	} {
		stamps, expires, catchUp, priority := core.PlainStamps, int64(0), all, int32(0)
		c.change(&stamps, &expires, &catchUp, &priority)
		require.Equal(t, c.good, core.CheckPolicy(stamps, expires, catchUp, priority) == "", c.name)
	}
}
