package peers

import (
	"time"

	"github.com/robfig/cron/v3"
)

var robfig = &Peer{
	Name:    "robfig/cron",
	Module:  "github.com/robfig/cron/v3",
	License: "MIT",
	Open: func(c *Clock) (Scheduler, error) {
		var options []cron.Option
		if c != nil {
			options = append(options, cron.WithLogger(robfigLogger{c}))
		}
		return &robfigScheduler{cron.New(options...)}, nil
	},
}

type robfigScheduler struct{ *cron.Cron }

func (s *robfigScheduler) Every(_ string, interval time.Duration, run func()) (func() error, error) {
	id, err := s.AddFunc("@every "+interval.String(), run)
	return s.remover(id), err
}

func (s *robfigScheduler) On(_ string, g Grid, run func()) (func() error, error) {
	return s.remover(s.Schedule(&g, cron.FuncJob(run))), nil
}

func (s *robfigScheduler) remover(id cron.EntryID) func() error {
	return func() error { s.Remove(id); return nil }
}

func (s *robfigScheduler) Stop()        { <-s.Cron.Stop().Done() }
func (s *robfigScheduler) Note() string { return "" }

// robfigLogger is called by the loop, and so can hold it up.
type robfigLogger struct{ clock *Clock }

func (l robfigLogger) Info(msg string, _ ...any) {
	if msg == "wake" {
		l.clock.wait()
	}
}

func (l robfigLogger) Error(error, string, ...any) {}
