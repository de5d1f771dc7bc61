package peers

import (
	"testing"
	"testing/synctest"
	"time"
)

// Bubble is a bubble of virtual time that is driven from outside. Its time
// stands still between two calls of Do.
type Bubble struct {
	calls chan func()
	done  chan struct{}
}

// NewBubble begins one. Its time is midnight of 2000-01-01, UTC.
func NewBubble() *Bubble {
	b := &Bubble{calls: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(b.done)
		inBubble(func() {
			for call := range b.calls {
				call()
				b.done <- struct{}{}
			}
		})
	}()
	return b
}

// Do calls a function inside the bubble.
func (b *Bubble) Do(call func()) {
	b.calls <- call
	<-b.done
}

// Close ends a bubble whose goroutines have ended.
func (b *Bubble) Close() {
	close(b.calls)
	<-b.done
}

// inBubble calls a function inside a bubble of its own. A bubble can be had of
// a test only; nothing of this test is used but that it is one.
func inBubble(call func()) {
	synctest.Test(new(testing.T), func(*testing.T) { call() })
}

// Pass lets time go by, inside a bubble, and whatever comes due in it happen.
func Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
