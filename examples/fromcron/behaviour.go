package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tickonce/tickonce"
)

// missRuns: cron runs nothing of what came due while the program was down.
// Here the schedule's policy decides.
func missRuns(ctx context.Context, w io.Writer) error {
	p, err := start(nil, w)
	if err != nil {
		return err
	}
	policies := []struct {
		name    string
		catchUp tickonce.CatchUp
	}{
		{"all", tickonce.CatchUpAll},
		{"latest", tickonce.CatchUpLatest},
		{"none", tickonce.CatchUpNone},
	}
	for _, policy := range policies {
		options := tickonce.ScheduleOptions{CatchUp: policy.catchUp}
		if _, err := p.eng.Schedule(ctx, policy.name, "@every 10m", policy.name, nil, options); err != nil {
			return err
		}
	}
	p.now = p.now.Add(3*time.Hour + time.Minute)
	if err := p.pass(ctx, 0); err != nil {
		return err
	}
	for _, policy := range policies {
		q, err := p.eng.Queue(ctx, policy.name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "policy %s: %d of 18 missed runs are caught up\n", policy.name, q.Enqueued)
	}
	fmt.Fprintln(w, "cron: 0")
	return nil
}

// restart: cron's @every begins anew at each start, so that an interval longer
// than the program's life never ends. Here the snapshot keeps what is next,
// and the same registration at each start leaves it alone.
func restart(ctx context.Context, w io.Writer) error {
	p, err := start(nil, w)
	if err != nil {
		return err
	}
	for range 15 {
		if _, err := p.eng.Schedule(ctx, "git_gc_repos", "@every 72h", "maintenance", nil, tickonce.ScheduleOptions{}); err != nil {
			return err
		}
		if err := p.pass(ctx, 48*time.Hour); err != nil {
			return err
		}
		if p, err = p.restart(); err != nil {
			return err
		}
	}
	q, err := p.eng.Queue(ctx, "maintenance")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "here: %d runs\ncron: 0\n", q.Enqueued)
	return nil
}

// overlap: cron starts a run although the last one has not ended, unless the
// job is wrapped in SkipIfStillRunning. Here that is a policy of the schedule,
// whose history keeps what was skipped.
func overlap(ctx context.Context, w io.Writer) error {
	p, err := start(nil, w)
	if err != nil {
		return err
	}
	if _, err := p.eng.Schedule(ctx, "update_mirrors", "@every 10m", "maintenance", nil, tickonce.ScheduleOptions{
		Overlap:    tickonce.OverlapSkip,
		Visibility: 30 * time.Minute, // longer than a run, or the worker sends heartbeats
	}); err != nil {
		return err
	}
	for end := p.now.Add(2*time.Hour + 15*time.Minute); p.now.Before(end); {
		job, err := p.eng.Claim(ctx, "maintenance", "worker-1")
		if err != nil {
			return err
		}
		if job == nil {
			if err := p.pass(ctx, time.Minute); err != nil {
				return err
			}
			continue
		}
		if err := p.pass(ctx, 25*time.Minute); err != nil {
			return err
		}
		if err := job.Ack(ctx); err != nil {
			return err
		}
	}
	q, err := p.eng.Queue(ctx, "maintenance")
	if err != nil {
		return err
	}
	totals, err := p.eng.Totals(ctx, "update_mirrors")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "here, with OverlapSkip: %d started, one at a time, %d skipped\n", q.Claims, totals.Skipped(tickonce.SkippedByOverlap))
	fmt.Fprintln(w, "cron: 13 started, up to 3 at once")
	return nil
}
