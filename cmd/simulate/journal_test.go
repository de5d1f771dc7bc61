package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/fileengine"
)

// standing is a clock that stands.
type standing struct{ time.Time }

func (c *standing) Now() time.Time                     { return c.Time }
func (*standing) After(time.Duration) <-chan time.Time { return nil }

// recordEngine runs an engine that keeps its state in a directory, for an hour
// with an outage in it, and has a snapshot of it if wanted, before the last of its
// writes: engine DIRECTORY [snapshot]. Beside it stands DIRECTORY.sha256, that of
// the state that it was left in.
func recordEngine(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ctx := context.Background()
	now := &standing{time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)}
	e, _, err := fileengine.Open(dir, tickonce.Config{Clock: now, Seed: 1, Owner: "engine"}, fileengine.Options{SyncEvery: -1})
	ts.Check(err)
	_, err = e.Schedule(ctx, "report", "@every 5m", "reports", []byte("payload"), tickonce.ScheduleOptions{MaxAttempts: 2})
	ts.Check(err)
	_, err = e.Schedule(ctx, "sweep", "@every 10s", "sweeps", nil, tickonce.ScheduleOptions{})
	ts.Check(err)
	runner := e.NewRunner()
	for second := range 3600 {
		now.Time = now.Add(time.Second)
		if 1200 <= second && second < 2400 {
			continue
		}
		for {
			next, _, err := runner.Step(ctx)
			ts.Check(err)
			if next.After(now.Time) {
				break
			}
		}
		for _, queue := range []string{"reports", "sweeps"} {
			jobs, err := e.ClaimBatch(ctx, queue, "w", 100)
			ts.Check(err)
			for _, j := range jobs {
				if queue == "reports" && j.Boundary.Minute()%3 == 0 {
					err = j.Retry(ctx, errors.New("no paper"))
				} else {
					err = j.Ack(ctx)
				}
				ts.Check(err)
			}
		}
	}
	if len(args) > 1 {
		ts.Check(e.Rotate())
	}
	_, err = e.Enqueue(ctx, "reports", nil, tickonce.EnqueueOptions{})
	ts.Check(err)
	state, err := e.Snapshot()
	ts.Check(err)
	ts.Check(os.WriteFile(dir+".sha256", fmt.Appendf(nil, "%x\n", sha256.Sum256(state)), 0o666))
	ts.Check(e.Close())
}

// damage spoils the header of a log, or has the log end in what is no record:
// damage FILE header|torn
func damage(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	if args[1] == "torn" {
		b = append(b, "half a record"...)
	} else {
		b[20]++
	}
	ts.Check(os.WriteFile(path, b, 0o666))
}
