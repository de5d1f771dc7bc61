// Package gotest has the recurring tasks of a service, and a test that runs
// them through outages before the service meets one.
package gotest

import (
	"context"
	"fmt"
	"time"

	"github.com/tickonce/tickonce"
)

// Task is a recurring task of the service.
type Task struct {
	Name, Spec, Queue string
	Options           tickonce.ScheduleOptions
}

var midnight = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Tasks are all of them.
var Tasks = []Task{
	// Each minute is billed, however late.
	{"metering", "@every 1m", "billing", tickonce.ScheduleOptions{Anchor: midnight}},
	// After an outage one backup is enough.
	{"backup", "@every 6h", "storage", tickonce.ScheduleOptions{
		Anchor: midnight.Add(3 * time.Hour), CatchUp: tickonce.CatchUpLatest, Visibility: 30 * time.Minute,
	}},
	// A probe that is late tells nothing.
	{"probe", "@every 5m", "probes", tickonce.ScheduleOptions{Anchor: midnight, CatchUp: tickonce.CatchUpNone}},
}

// Register registers the tasks, as the service does when it starts.
func Register(ctx context.Context, eng *tickonce.Engine) error {
	for _, t := range Tasks {
		if _, err := eng.Schedule(ctx, t.Name, t.Spec, t.Queue, nil, t.Options); err != nil {
			return fmt.Errorf("task %s: %w", t.Name, err)
		}
	}
	return nil
}

// Ledger has what was charged, by the minute.
type Ledger map[time.Time]int

// Charge bills the minute, once: a job may run again after it did its work, when
// its process crashed before the engine heard of it.
func (l Ledger) Charge(minute time.Time) {
	if l[minute] == 0 {
		l[minute]++
	}
}
