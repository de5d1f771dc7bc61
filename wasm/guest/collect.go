//go:build wasm

package main

import (
	"runtime"
	"runtime/metrics"
)

// The collector's own pace does not fit a guest. Its workers run inside calls
// alone, by the time that passes between them, and memory that a module has got
// it never gives back: 100,000 schedules, added one by one, took 80 MB, and
// 470 MB with GOGC=25. So it is called at the end of calls, once they have
// allocated a quarter of what is live; in the middle of a long call it goes by
// its own pace.
var heap = []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}

// collectAt is how many bytes will have been allocated when the collector is
// due, and unread how many calls there were since that was looked at.
var (
	collectAt uint64 = leastGarbage
	unread    int
)

const (
	leastGarbage = 2 << 20 // below the 4 MiB at which the collector begins by itself
	readEvery    = 16      // calls, since to look takes as long as a short one
)

// collect runs the collector if it is due.
func collect() {
	if unread++; unread < readEvery {
		return
	}
	unread = 0
	if metrics.Read(heap[:1]); heap[0].Value.Uint64() < collectAt {
		return
	}
	runtime.GC()
	metrics.Read(heap)
	collectAt = heap[0].Value.Uint64() + max(leastGarbage, heap[1].Value.Uint64()/4)
}
