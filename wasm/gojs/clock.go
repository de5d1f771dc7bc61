//go:build js

package gojs

import (
	"sync"
	"syscall/js"
	"time"

	"github.com/tickonce/tickonce"
)

// clock is the system's, whose waits are over as soon as the page is seen again.
type clock struct {
	mu      sync.Mutex
	waiting map[chan time.Time]*time.Timer
}

// Clock is the system's clock, with waits that are over early when the page is
// seen again, thawed, or connected again: its timers may have stood still since.
// Loops that are woken early look whether something is due, and sleep again.
// There is one for all; in a host without such events it is the system's.
var Clock = sync.OnceValue(func() tickonce.Clock {
	c := &clock{waiting: map[chan time.Time]*time.Timer{}}
	wake := js.FuncOf(func(js.Value, []js.Value) any { // as long as the page
		c.wake()
		return nil
	})
	for _, of := range [...]struct{ target, event string }{
		{"document", "visibilitychange"}, {"document", "resume"}, {"window", "pageshow"}, {"window", "online"},
	} {
		if target := js.Global().Get(of.target); target.Type() == js.TypeObject {
			target.Call("addEventListener", of.event, wake)
		}
	}
	return c
})

func (c *clock) Now() time.Time { return time.Now() }

func (c *clock) After(d time.Duration) <-chan time.Time {
	over := make(chan time.Time, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[over] = time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end(over)
	})
	return over
}

// end ends a wait, if it is not over.
func (c *clock) end(over chan time.Time) {
	if timer := c.waiting[over]; timer != nil {
		timer.Stop()
		delete(c.waiting, over)
		over <- time.Now()
	}
}

// wake ends all waits.
func (c *clock) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for over := range c.waiting {
		c.end(over)
	}
}
