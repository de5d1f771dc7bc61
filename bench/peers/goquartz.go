package peers

import (
	"context"
	"fmt"
	"time"

	"github.com/reugn/go-quartz/job"
	"github.com/reugn/go-quartz/logger"
	"github.com/reugn/go-quartz/quartz"
)

var goQuartz = &Peer{
	Name:    "go-quartz",
	Module:  "github.com/reugn/go-quartz",
	License: "MIT",
	Open: func(c *Clock) (Scheduler, error) {
		s := &quartzScheduler{misfired: make(chan quartz.ScheduledJob, 1<<16)}
		options := []quartz.SchedulerOpt{quartz.WithMisfiredChan(s.misfired)}
		if c != nil {
			options = append(options, quartz.WithLogger(&quartzLogger{clock: c, scheduler: s}))
		}
		var err error
		s.Scheduler, err = quartz.NewStdScheduler(options...)
		return s, err
	},
}

type quartzScheduler struct {
	quartz.Scheduler
	misfired chan quartz.ScheduledJob
	endless  bool
}

func (s *quartzScheduler) Every(name string, interval time.Duration, run func()) (func() error, error) {
	return s.add(name, quartz.NewSimpleTrigger(interval), run)
}

func (s *quartzScheduler) On(name string, g Grid, run func()) (func() error, error) {
	return s.add(name, &quartzGrid{g}, run)
}

func (s *quartzScheduler) add(name string, trigger quartz.Trigger, run func()) (func() error, error) {
	key := quartz.NewJobKey(name)
	function := func(context.Context) (struct{}, error) { run(); return struct{}{}, nil }
	err := s.ScheduleJob(quartz.NewJobDetail(job.NewFunctionJobWithDesc(function, ""), key), trigger)
	return func() error { return s.DeleteJob(key) }, err
}

func (s *quartzScheduler) Start() { s.Scheduler.Start(context.Background()) }

func (s *quartzScheduler) Stop() {
	s.Scheduler.Stop()
	s.Wait(context.Background())
}

func (s *quartzScheduler) Note() string {
	switch n := len(s.misfired); {
	case s.endless:
		return "its loop does not end within one instant"
	case n > 0:
		for range n {
			<-s.misfired
		}
		return fmt.Sprintf("told of %d misfire(s)", n)
	}
	return ""
}

type quartzGrid struct{ Grid }

func (g *quartzGrid) NextFireTime(prev int64) (int64, error) {
	return g.Next(time.Unix(0, prev)).UnixNano(), nil
}

func (g *quartzGrid) Description() string { return "" }

// endless is how many ticks within one instant are taken for a loop that does
// not end.
const endless = 10_000

// quartzLogger is called by the loop, and so can hold it up, and stop it.
type quartzLogger struct {
	logger.NoOpLogger
	clock     *Clock
	scheduler *quartzScheduler
	at        time.Time
	ticks     int
}

func (l *quartzLogger) Trace(msg string, _ ...any) {
	if msg != "Tick" {
		return
	}
	l.clock.wait()
	if now := time.Now(); !now.Equal(l.at) {
		l.at, l.ticks = now, 0
	}
	if l.ticks++; l.ticks == endless {
		l.scheduler.endless = true
		l.scheduler.Scheduler.Stop()
	}
}
