package store

// Instant is a point in time in milliseconds since the Unix epoch, within
// [MinInstant, MaxInstant], so that it is exact in a JavaScript number.
type Instant int64

const (
	// MaxInstant and MinInstant bound every instant.
	MaxInstant Instant = 1<<53 - 1
	MinInstant Instant = -MaxInstant

	// None stands for the absence of an instant: never due, never expiring.
	// It sorts after every instant.
	None Instant = 1<<63 - 1
)

// Add returns the instant ms milliseconds later, held within
// [MinInstant, MaxInstant]. None stays None.
func (t Instant) Add(ms int64) Instant {
	if t == None {
		return None
	}
	switch sum := t + Instant(ms); {
	case ms > 0 && (sum < t || sum > MaxInstant):
		return MaxInstant
	case ms < 0 && (sum > t || sum < MinInstant):
		return MinInstant
	default:
		return sum
	}
}

// Valid reports whether t lies within [MinInstant, MaxInstant].
func (t Instant) Valid() bool { return MinInstant <= t && t <= MaxInstant }
