package tickonce

import (
	"context"
	"time"
)

// RunSchedules runs the schedules until ctx ends, and then releases its lease
// and returns nil (L5). It returns [ErrLeadershipLost] when another runner
// leads (L3, L4), and the store's error, as an [*OpError] with phase and
// schedule, when the retries are exhausted (R1, R7); with [Config.StandBy] it
// returns only when ctx ends. Nothing fires while nobody runs the schedules
// (L1).
//
// It is the goroutine's driver of [Runner.Step]: it sleeps on the engine's
// clock in slices of at most 1 s, since timers stand still while a machine
// sleeps (L7), and is woken at once by a schedule that this engine adds (L8).
func (e *Engine) RunSchedules(ctx context.Context) error {
	r := e.NewRunner()
	for ctx.Err() == nil {
		woken := e.woken.next() // before the step, so that no wake is missed
		next, report, err := r.step(ctx)
		if err != nil {
			return err
		}
		sleep := min(next.Sub(e.config.Clock.Now()), sliceTime)
		if report.Phase == "" { // no call was made: sleep, whatever the host's clock says by now
			sleep = max(sleep, time.Millisecond)
		}
		if sleep > 0 {
			select {
			case <-ctx.Done():
			case <-woken:
			case <-e.config.Clock.After(sleep):
			}
		}
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), sliceTime)
	defer cancel()
	return r.Stop(release)
}
