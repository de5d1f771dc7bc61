package peers

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// TestC01C07Clock holds the clock that the peers are observed with to what
// clocks of machines do: a step changes what is read, not when timers end; a
// freeze delays the timers that end in it, and no others.
func TestC01C07Clock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(Clock)
		begin := c.Now()
		passed := func() time.Duration { return c.Now().Sub(begin) }

		c.Step(-time.Hour)
		require.Equal(t, -time.Hour, passed())
		<-c.After(time.Minute)
		require.Equal(t, -59*time.Minute, passed())
		c.Step(time.Hour)

		c.Freeze(10 * time.Minute)
		inTheFreeze, afterIt := c.After(time.Minute), c.After(11*time.Minute)
		require.Equal(t, begin.Add(11*time.Minute), <-inTheFreeze)
		require.Equal(t, begin.Add(12*time.Minute), <-afterIt)
	})
}

func TestGridNext(t *testing.T) {
	first := time.UnixMilli(1000)
	g := Grid{First: first, Interval: 5 * time.Second}
	for after, want := range map[int64]int64{0: 1000, 999: 1000, 1000: 6000, 5999: 6000, 6000: 11_000} {
		require.Equal(t, want, g.Next(time.UnixMilli(after)).UnixMilli(), "after %d ms", after)
	}
}

// TestPeersFireTheSame lets every peer fire a grid that they are measured on.
func TestPeersFireTheSame(t *testing.T) {
	for _, p := range All {
		fires := []time.Duration{}
		synctest.Test(t, func(t *testing.T) {
			s, err := p.Open(nil)
			require.NoError(t, err)
			defer s.Stop()
			begin := time.Now()
			_, err = s.On("job", Grid{First: begin.Add(7 * time.Second), Interval: time.Minute}, func() {
				fires = append(fires, time.Since(begin).Truncate(10*time.Second))
			})
			require.NoError(t, err)
			s.Start()
			Pass(3 * time.Minute)
		})
		require.Equal(t, []time.Duration{0, time.Minute, 2 * time.Minute}, fires, p.Name)
	}
}
