package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Without faults it does not matter to what fires how many processes there are,
// in which order things happen that happen at once, and how often all of them
// crash and begin again, at any instant, with what the journal kept.
func TestD4T3L2CalmTwinsFireTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCalm(t)
		s.For = min(s.For, time.Hour)
		plain, twin := *s, *s
		plain.Engine.Runners, plain.Engine.Ties = 1, TiesFIFO
		twin.Engine.Seed = rapid.Uint64().Draw(t, "seed")
		twin.Engine.SnapshotEvery = rapid.SampledFrom([]time.Duration{0, 3 * time.Minute}).Draw(t, "snapshot every")
		every := everyOf(&s.Schedules[0])
		for range rapid.IntRange(0, 4).Draw(t, "crashes") {
			at := rapid.Int64Range(0, s.For.Milliseconds()/every).Draw(t, "crash at boundary") * every
			at += rapid.SampledFrom([]int64{0, 0, -1, 1, 500}).Draw(t, "beside")
			twin.Faults = append(twin.Faults, Fault{
				Kind: FaultCrash, Restart: FromJournal, For: time.Millisecond,
				At: time.Duration(min(max(at, 1), s.For.Milliseconds()-5000)) * time.Millisecond,
			})
		}
		want, _ := fires(t, &plain)
		got, _ := fires(t, &twin)
		require.Equal(t, want, got)
	})
}
