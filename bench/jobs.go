package main

import (
	"fmt"
	"runtime"
)

// jobTurns is how many turns the numbers of schedules take with their jobs.
const jobTurns = 20

// measureJobs lets engines with so many schedules each fire as many jobs, which
// are claimed and acked behind each tick: what a job costs from its boundary to
// its end, and what is kept in memory when all are done. The smallest number is
// what the others are compared with.
func measureJobs(sizes []int, jobs int) ([]row, error) {
	loads := make([]*load, len(sizes))
	for i, n := range sizes {
		l := &load{w: newWorkload(n), nowMS: epoch}
		before := memory().HeapAlloc
		var err error
		if l.engine, err = openEngine(l.w); err != nil {
			return nil, err
		}
		if _, err := l.pass(2 * n); err != nil { // until each has fired
			return nil, err
		}
		l.bytes = float64(memory().HeapAlloc-before)/float64(n) - float64(l.engine.payloadBytes())
		loads[i] = l
	}
	for range jobTurns {
		for _, l := range loads {
			runtime.GC()
			begin := cpuTime()
			done, err := l.pass(jobs / jobTurns)
			if err != nil {
				return nil, err
			}
			l.ns.add(cpuTime()-begin, done)
		}
	}
	var rows []row
	for i, l := range loads {
		r := newRow(fmt.Sprintf("job, of %d", jobs), sizes[i], "tickonce", l.ns)
		r.FiredBytes = &l.bytes
		if i > 0 {
			r.compare(fmt.Sprint(sizes[0]), l.ns.over(loads[0].ns))
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// load is an engine with a number of schedules, and what its jobs took.
type load struct {
	engine run
	w      *workload
	nowMS  int64
	ns     sample  // per job
	bytes  float64 // per schedule, once each has fired and its jobs are done
}

// pass lets time go by until at least so many jobs are done.
func (l *load) pass(jobs int) (done int, err error) {
	for done < jobs {
		l.nowMS += l.w.stepMS
		if err := l.engine.fire(l.nowMS); err != nil {
			return done, err
		}
		n, err := l.engine.drain()
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}
