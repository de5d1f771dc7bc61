package crashtest

import (
	"context"
	"fmt"
	"time"

	"github.com/tickonce/tickonce"
)

// schedule is one of the load.
type schedule struct {
	name, queue string
	every       time.Duration
	offset      time.Duration // of its grid
	options     tickonce.ScheduleOptions
}

// load are schedules of all kinds. So many are due in every second, at so many
// instants, that something is always under way.
var load = func() (all []schedule) {
	for i := range 300 {
		s := schedule{
			name:   fmt.Sprintf("s%03d", i),
			queue:  queues[i%2],
			every:  time.Duration(1+i%5) * time.Second,
			offset: time.Duration(i*37%1000) * time.Millisecond,
			options: tickonce.ScheduleOptions{
				Visibility: time.Second, BaseBackoff: 10 * time.Millisecond, MaxAttempts: 1 + i%4, Breaker: -1,
			},
		}
		switch i % 10 {
		case 5:
			s.options.Overlap = tickonce.OverlapSkip
		case 6:
			s.options.Overlap = tickonce.OverlapBufferOne
		case 7:
			s.options.CatchUp = tickonce.CatchUpLatest
		case 8:
			s.options.Breaker = 255
		case 9:
			if s.options.RunOnce = i%20 == 9; s.options.RunOnce {
				s.options.MaxAttempts = 1
			}
		}
		all = append(all, s)
	}
	return all
}()

func (s schedule) register(ctx context.Context, e *tickonce.Engine, grid int64) error {
	o := s.options
	o.Anchor = time.UnixMilli(grid).Add(s.offset)
	_, err := e.Schedule(ctx, s.name, "@every "+s.every.String(), s.queue, []byte(s.name), o)
	return err
}
