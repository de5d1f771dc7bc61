package peers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
)

var tickOnce = &Peer{
	Name:    "tickonce",
	Module:  "github.com/tickonce/tickonce",
	License: "Apache-2.0",
	Clocked: true,
	Open: func(c *Clock) (Scheduler, error) {
		return openTickonce(newTickonce(c, "first"), nil)
	},
	reopen: func(c *Clock, stopped Scheduler) (Scheduler, error) {
		snapshot, err := stopped.(*tickonceScheduler).store.Snapshot()
		if err != nil {
			return nil, err
		}
		return openTickonce(newTickonce(c, "next"), snapshot)
	},
	share: func(c *Clock, running Scheduler) (Scheduler, error) {
		s := newTickonce(c, "second")
		s.store = running.(*tickonceScheduler).store
		var err error
		s.engine, err = tickonce.New(s.store, s.config)
		return s, err
	},
	repair: func(c *Clock) (Scheduler, error) {
		s := newTickonce(c, "first")
		s.config.ClockRepair = tickonce.RepairRearm
		return openTickonce(s, nil)
	},
}

// tickonceScheduler is the engine in memory with its own loop and worker.
type tickonceScheduler struct {
	config tickonce.Config
	engine *tickonce.Engine
	store  *memengine.Store

	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	jobs    map[string]func() // by schedule
	skipped int64
	ahead   int
	err     error
}

func newTickonce(c *Clock, owner string) *tickonceScheduler {
	s := &tickonceScheduler{jobs: map[string]func(){}}
	if c == nil {
		c = new(Clock)
	}
	s.config = tickonce.Config{Clock: c, Seed: 1, Owner: owner, StandBy: true, Observer: s.observe}
	return s
}

func openTickonce(s *tickonceScheduler, snapshot []byte) (Scheduler, error) {
	e, _, err := memengine.Open(s.config, memengine.Durable{Snapshot: snapshot})
	if err != nil {
		return nil, err
	}
	s.engine, s.store = e.Engine, e.Store()
	return s, nil
}

func (s *tickonceScheduler) observe(e tickonce.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case tickonce.EventSkipped:
		s.skipped += e.Count
	case tickonce.EventCursorAhead:
		s.ahead++
	}
}

func (s *tickonceScheduler) Every(name string, interval time.Duration, run func()) (func() error, error) {
	return s.add(name, interval, tickonce.ScheduleOptions{}, run)
}

func (s *tickonceScheduler) On(name string, g Grid, run func()) (func() error, error) {
	return s.add(name, g.Interval, tickonce.ScheduleOptions{Anchor: g.First}, run)
}

func (s *tickonceScheduler) add(name string, interval time.Duration, options tickonce.ScheduleOptions, run func()) (func() error, error) {
	spec := interval.String()
	if interval%time.Second == 0 { // a spec has one number and one unit
		spec = fmt.Sprintf("%ds", interval/time.Second)
	}
	ctx := context.Background()
	if _, err := s.engine.Schedule(ctx, name, "@every "+spec, "jobs", nil, options); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.jobs[name] = run
	s.mu.Unlock()
	return func() error {
		_, err := s.engine.Unschedule(ctx, name)
		return err
	}, nil
}

func (s *tickonceScheduler) Start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Go(func() { s.fail(s.engine.RunSchedules(ctx)) })
	s.running.Go(func() {
		s.fail(s.engine.RunWorker(ctx, "jobs", s.work, tickonce.WorkerConfig{Concurrency: 1000}))
	})
}

func (s *tickonceScheduler) work(_ context.Context, job *tickonce.Job) error {
	s.mu.Lock()
	run := s.jobs[job.Schedule]
	s.mu.Unlock()
	run()
	return nil
}

func (s *tickonceScheduler) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, err)
}

func (s *tickonceScheduler) Stop() {
	s.stop()
	s.running.Wait()
}

func (s *tickonceScheduler) Note() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var notes []string
	if s.skipped > 0 {
		notes = append(notes, fmt.Sprintf("told of %d skipped", s.skipped))
	}
	if s.ahead > 0 {
		notes = append(notes, fmt.Sprintf("told of %d cursor ahead", s.ahead))
	}
	if s.err != nil {
		notes = append(notes, s.err.Error())
	}
	s.skipped, s.ahead, s.err = 0, 0, nil
	return strings.Join(notes, ", ")
}
