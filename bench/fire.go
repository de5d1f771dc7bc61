package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// entrant is a contestant at work.
type entrant struct {
	name  string
	run   run
	nowMS int64

	ns     sample  // per fire
	allocs float64 // per fire
	idle   float64 // bytes per schedule, before any has fired
	fired  float64 // and when all have

	total int           // fires of all its steps
	spent time.Duration // on what was measured
}

// measureFires lets the contestants fire n schedules in turns.
func measureFires(n, repetitions, ticks int) ([]row, error) {
	w := newWorkload(n)
	entrants := make([]*entrant, len(contestants))
	for i, c := range contestants {
		e, err := enter(c, w)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		entrants[i] = e
	}
	// With the collector off, what a drain leaves behind is not charged to the
	// fires that come next.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for range repetitions {
		runtime.GC()
		fired := -1
		for _, e := range entrants {
			spent, fires, err := e.advance(w, ticks)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.name, err)
			}
			if fired >= 0 && fires != fired {
				return nil, fmt.Errorf("%s fired %d times, %s %d times", e.name, fires, entrants[0].name, fired)
			}
			fired = fires
			e.ns.add(spent, fires)
		}
	}
	rows := make([]row, len(entrants))
	for i, e := range entrants {
		rows[i] = newRow("fire", n, e.name, e.ns)
		rows[i].Allocs, rows[i].IdleBytes, rows[i].FiredBytes = &e.allocs, &e.idle, &e.fired
		if i > 0 {
			rows[i].compare(entrants[0].name, e.ns.over(entrants[0].ns))
		}
	}
	return rows, nil
}

// enter opens a contestant, lets every schedule fire, and takes the measures
// that need no repetition.
func enter(c contestant, w *workload) (*entrant, error) {
	before := memory().HeapAlloc
	r, err := c.open(w)
	if err != nil {
		return nil, err
	}
	e := &entrant{name: c.name, run: r, nowMS: epoch}
	bytes := func() float64 {
		return float64(memory().HeapAlloc-before)/float64(len(w.schedules)) - float64(r.payloadBytes())
	}
	e.idle = bytes()
	if _, _, err := e.advance(w, 2*w.rounds()); err != nil {
		return nil, err
	}
	e.fired = bytes()
	e.allocs, err = e.countAllocs(w, 20)
	return e, err
}

// advance moves time on by so many steps. Only the fires are timed.
func (e *entrant) advance(w *workload, ticks int) (spent time.Duration, fires int, err error) {
	for range ticks {
		e.nowMS += w.stepMS
		begin := cpuTime()
		err := e.run.fire(e.nowMS)
		spent += cpuTime() - begin
		if err != nil {
			return 0, 0, err
		}
		n, err := e.run.drain()
		if err != nil {
			return 0, 0, err
		}
		fires += n
	}
	e.total += fires
	return spent, fires, nil
}

// countAllocs is advance, but counts allocations per fire.
func (e *entrant) countAllocs(w *workload, ticks int) (float64, error) {
	var before, after runtime.MemStats
	allocs, fires := uint64(0), 0
	for range ticks {
		e.nowMS += w.stepMS
		runtime.ReadMemStats(&before)
		err := e.run.fire(e.nowMS)
		runtime.ReadMemStats(&after)
		if err != nil {
			return 0, err
		}
		n, err := e.run.drain()
		if err != nil {
			return 0, err
		}
		allocs += after.Mallocs - before.Mallocs
		fires += n
	}
	e.total += fires
	return float64(allocs) / float64(fires), nil
}

// memory reads the heap when it has been collected.
func memory() runtime.MemStats {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m
}
