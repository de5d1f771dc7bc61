// Package core holds the decisions of the engine: pure functions on the rows
// of package store. A function here is told what the time is and answers what
// should be written; it reads no clock, takes no lock, starts no goroutine and
// does no I/O, so that the loop, a browser's timer, a WASI host and the
// simulator all run the same decisions.
package core
