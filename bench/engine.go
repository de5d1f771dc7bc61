package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
)

// engineRun is the engine in memory, stepped under a clock that is set.
type engineRun struct {
	clock  *clock
	engine *memengine.Engine
	runner *tickonce.Runner // nil before the first fire
	next   time.Time        // when it is to be woken
}

func newEngine(nowMS int64, leaseTTL time.Duration) (*engineRun, error) {
	c := &clock{nowMS}
	e, err := memengine.New(tickonce.Config{Clock: c, Seed: 1, Owner: "bench", Batch: batch, LeaseTTL: leaseTTL})
	if err != nil {
		return nil, err
	}
	return &engineRun{clock: c, engine: e}, nil
}

func openEngine(w *workload) (run, error) {
	r, err := newEngine(epoch, time.Hour) // outlasts the steps of a workload
	if err != nil {
		return nil, err
	}
	return r, register(r.engine, w)
}

// register puts the schedules of a workload into the engine.
func register(e *memengine.Engine, w *workload) error {
	specs := map[int64]string{}
	for _, m := range minutes {
		specs[m*time.Minute.Milliseconds()] = fmt.Sprintf("@every %dm", m)
	}
	for _, s := range w.schedules {
		options := tickonce.ScheduleOptions{Anchor: time.UnixMilli(s.firstMS)}
		if _, err := e.Schedule(context.Background(), s.name, specs[s.intervalMS], queueName, payload, options); err != nil {
			return err
		}
	}
	return nil
}

func (r *engineRun) fire(nowMS int64) error {
	r.clock.ms = nowMS
	if r.runner == nil {
		r.runner = r.engine.NewRunner()
	}
	return r.settle()
}

// settle steps the runner until it rests.
func (r *engineRun) settle() error {
	for {
		next, report, err := r.runner.Step(context.Background())
		if err = cmp.Or(err, report.Err); err != nil {
			return err
		}
		if next.UnixMilli() > r.clock.ms {
			r.next = next
			return nil
		}
	}
}

func (r *engineRun) drain() (int, error) { return drainBatches(r.engine, batch) }

func (r *engineRun) payloadBytes() int { return len(payload) }
