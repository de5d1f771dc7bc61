package peers

import (
	"sync"
	"time"
)

// Clock is a clock inside a bubble that can do what the clocks of machines do.
// It can step: then it reads another time, while timers go on. And it can
// freeze, as for a process that the machine does not run: time goes by, and the
// timers that end in it are heard of afterwards. Its times have no monotonic
// reading. It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	offset time.Duration
	thaw   time.Time
}

func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Round(0).Add(c.offset)
}

// After sends the time when d has gone by.
func (c *Clock) After(d time.Duration) <-chan time.Time {
	ch, _ := c.timer(d)
	return ch
}

// Step sets the clock forward, or back.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// Freeze freezes the process from now on.
func (c *Clock) Freeze(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.thaw = time.Now().Add(d)
}

// wait returns when the process is not frozen.
func (c *Clock) wait() {
	c.mu.Lock()
	frozen := time.Until(c.thaw)
	c.mu.Unlock()
	time.Sleep(frozen)
}

// afterFunc is time.AfterFunc, but for a freeze.
func (c *Clock) afterFunc(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() {
		c.wait()
		f()
	})
}

func (c *Clock) timer(d time.Duration) (<-chan time.Time, *time.Timer) {
	ch := make(chan time.Time, 1)
	return ch, c.afterFunc(d, func() { ch <- c.Now() })
}
