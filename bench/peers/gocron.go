package peers

import (
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
)

var goCron = &Peer{
	Name:    "gocron",
	Module:  "github.com/go-co-op/gocron/v2",
	License: "MIT",
	Clocked: true,
	Open: func(c *Clock) (Scheduler, error) {
		var options []gocron.SchedulerOption
		if c != nil {
			options = append(options, gocron.WithClock(gocronClock{clockwork.NewRealClock(), c}))
		}
		s, err := gocron.NewScheduler(options...)
		return &gocronScheduler{s}, err
	},
}

type gocronScheduler struct{ gocron.Scheduler }

func (s *gocronScheduler) Every(name string, interval time.Duration, run func()) (func() error, error) {
	return s.add(interval, run, gocron.WithName(name))
}

func (s *gocronScheduler) On(name string, g Grid, run func()) (func() error, error) {
	return s.add(g.Interval, run, gocron.WithName(name), gocron.WithStartAt(gocron.WithStartDateTime(g.First)))
}

func (s *gocronScheduler) add(interval time.Duration, run func(), options ...gocron.JobOption) (func() error, error) {
	job, err := s.NewJob(gocron.DurationJob(interval), gocron.NewTask(run), options...)
	if err != nil {
		return nil, err
	}
	return func() error { return s.RemoveJob(job.ID()) }, nil
}

func (s *gocronScheduler) Stop() {
	if err := s.Shutdown(); err != nil {
		panic("gocron does not stop: " + err.Error())
	}
}

func (s *gocronScheduler) Note() string { return "" }

// gocronClock is a clock for what gocron uses of clocks: the time, and calls
// after a while.
type gocronClock struct {
	clockwork.Clock
	clock *Clock
}

func (c gocronClock) Now() time.Time { return c.clock.Now() }

func (c gocronClock) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	return gocronTimer{c.clock.afterFunc(d, f)}
}

type gocronTimer struct{ *time.Timer }

func (t gocronTimer) Chan() <-chan time.Time { return t.C }
