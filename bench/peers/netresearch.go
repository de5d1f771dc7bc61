package peers

import (
	"time"

	cron "github.com/netresearch/go-cron"
)

var netresearch = &Peer{
	Name:    "netresearch/go-cron",
	Module:  "github.com/netresearch/go-cron",
	License: "MIT",
	Clocked: true,
	Open: func(c *Clock) (Scheduler, error) {
		var options []cron.Option
		if c != nil {
			options = append(options, cron.WithClock(netresearchClock{c}))
		}
		return &netresearchScheduler{cron.New(options...)}, nil
	},
}

type netresearchScheduler struct{ *cron.Cron }

func (s *netresearchScheduler) Every(name string, interval time.Duration, run func()) (func() error, error) {
	id, err := s.AddFunc("@every "+interval.String(), run, cron.WithName(name))
	return s.remover(id), err
}

func (s *netresearchScheduler) On(name string, g Grid, run func()) (func() error, error) {
	id, err := s.ScheduleJob(&g, cron.FuncJob(run), cron.WithName(name))
	return s.remover(id), err
}

func (s *netresearchScheduler) remover(id cron.EntryID) func() error {
	return func() error { s.Remove(id); return nil }
}

func (s *netresearchScheduler) Stop()        { <-s.Cron.Stop().Done() }
func (s *netresearchScheduler) Note() string { return "" }

type netresearchClock struct{ *Clock }

func (c netresearchClock) NewTimer(d time.Duration) cron.Timer {
	ch, t := c.timer(d)
	return netresearchTimer{t, ch}
}

type netresearchTimer struct {
	*time.Timer
	c <-chan time.Time
}

func (t netresearchTimer) C() <-chan time.Time { return t.c }
