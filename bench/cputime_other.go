//go:build !unix

package main

import "time"

var started = time.Now()

// cpuTime is the time on the wall, where nothing better is at hand.
func cpuTime() time.Duration { return time.Since(started) }
