package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The example scenarios fire the same, where nothing goes wrong, with one process
// and with three, in small ticks and in large ones, and an hour and a bit later
// that much later.
func TestL2T15CalmExamplesHaveTwins(t *testing.T) {
	for name, s := range calmExamples(t) {
		t.Run(name, func(t *testing.T) {
			s.For = min(s.For, time.Hour)
			if s.Start.IsZero() {
				s.Start = DefaultStart
			}
			one, three, small, later := *s, *s, *s, *s
			one.Engine.Runners, three.Engine.Runners, small.Engine.Batch = 1, 3, 1
			three.Engine.Ties = TiesSeeded
			want, _ := fires(t, &one)
			for _, twin := range []*Scenario{&three, &small} {
				got, _ := fires(t, twin)
				require.Equal(t, want, got)
			}

			const by = time.Hour + 7*time.Second
			later.Start = s.Start.Add(by)
			later.Schedules = slices.Clone(s.Schedules)
			for i := range later.Schedules {
				if anchor := &later.Schedules[i].Anchor; !anchor.IsZero() {
					*anchor = anchor.Add(by)
				}
			}
			got, _ := fires(t, &later)
			for _, at := range got {
				for i := range at {
					at[i] -= by.Milliseconds()
				}
			}
			require.Equal(t, want, got)
		})
	}
}

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
