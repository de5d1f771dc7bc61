package tickonce

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// systemClock is the host's clock: the default of [Config.Clock].
type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// The defaults of Config.Seed and Config.Owner come from the platform's
// randomness, once for each engine (L10).

func drawSeed() uint64 { return rand.Uint64() }

func drawOwner() string {
	return strconv.FormatUint(rand.Uint64(), 16) + "-" + strconv.FormatUint(rand.Uint64(), 16)
}
