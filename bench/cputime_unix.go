//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime is what the process has used of its cores. Unlike the time on the
// wall it does not run while others have the machine, and it includes the
// collector's part.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic("getrusage: " + err.Error())
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
