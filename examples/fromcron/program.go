package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/eventlog"
	"github.com/tickonce/tickonce/memengine"
)

// program stands for one that runs schedules; its clock jumps from wake to
// wake, so that a month passes in no time. It is the engine's clock.
type program struct {
	now    time.Time
	wake   time.Time
	out    io.Writer
	eng    *memengine.Engine
	runner *tickonce.Runner
}

func (p *program) Now() time.Time                       { return p.now }
func (p *program) After(time.Duration) <-chan time.Time { return nil } // nothing waits on it

// start starts a program, at noon of a Sunday, or where the last one ended.
func start(last *program, w io.Writer) (*program, error) {
	p := &program{now: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC), out: w}
	config := tickonce.Config{
		Clock:    p,
		LeaseTTL: time.Hour,
		Observer: eventlog.New(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))),
	}
	var err error
	if last == nil {
		p.eng, err = memengine.New(config)
	} else {
		p.now = last.now
		var saved []byte
		if saved, err = last.eng.Snapshot(); err != nil {
			return nil, err
		}
		p.eng, err = memengine.Restore(config, saved)
	}
	if err != nil {
		return nil, err
	}
	p.runner = p.eng.NewRunner()
	return p, nil
}

// restart goes on from a snapshot of p.
func (p *program) restart() (*program, error) { return start(p, p.out) }

// pass lets time go by and steps the runner whenever it asks for it.
func (p *program) pass(ctx context.Context, d time.Duration) error {
	for end := p.now.Add(d); ; p.now = p.wake {
		for p.wake = p.now; !p.wake.After(p.now); {
			next, _, err := p.runner.Step(ctx)
			if err != nil || next.IsZero() {
				return err
			}
			p.wake = next
		}
		if p.wake.After(end) {
			p.now = end
			return nil
		}
	}
}
