package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

const (
	skippers = 1000 // schedules that skip in one tick
	nearSkip = 100
	farSkip  = 1_000_000_000_000
	farSkips = 17 // between the first instant and the last there is room for 18
)

// skipRun has schedules of one boundary a second, of which each tick fires the
// latest. It begins near the first instant, because the far skip takes 31,700
// years.
type skipRun struct{ *engineRun }

func openSkip() (skipRun, error) {
	e, err := newEngine(int64(store.MinInstant)+1000, time.Minute)
	if err != nil {
		return skipRun{}, err
	}
	for i := range skippers {
		options := tickonce.ScheduleOptions{CatchUp: tickonce.CatchUpLatest}
		if _, err := e.engine.Schedule(context.Background(), "skip-"+strconv.Itoa(i), "@every 1s", queueName, payload, options); err != nil {
			return skipRun{}, err
		}
	}
	return skipRun{e}, e.fire(e.clock.ms)
}

// miss lets so many boundaries of each schedule go by, of which one fires, and
// answers how long the tick took. Both skips outlast the lease, and so are
// measured with its acquisition.
func (r skipRun) miss(boundaries int64) (time.Duration, error) {
	begin := cpuTime()
	if err := r.fire(r.clock.ms + boundaries*1000); err != nil {
		return 0, err
	}
	spent := cpuTime() - begin
	n, err := r.drain()
	if err == nil && n != skippers {
		err = fmt.Errorf("%d schedules fired, want %d", n, skippers)
	}
	return spent, err
}

// measureSkip lets a few and very many boundaries go by in turns.
func measureSkip() ([]row, error) {
	var near, far sample
	r, err := openSkip()
	if err != nil {
		return nil, err
	}
	for range farSkips {
		for _, m := range []struct {
			ns         *sample
			boundaries int64
		}{{&near, nearSkip}, {&far, farSkip}} {
			runtime.GC()
			spent, err := r.miss(m.boundaries)
			if err != nil {
				return nil, err
			}
			m.ns.add(spent, skippers)
		}
	}
	rows := []row{
		newRow("skip 100 boundaries", skippers, "tickonce", near),
		newRow("skip 10^12 boundaries", skippers, "tickonce", far),
	}
	rows[1].compare("skip 100", far.over(near))
	return rows, nil
}
