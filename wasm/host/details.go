package host

import (
	"context"
	"iter"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/wire"
)

// Why is [tickonce.Engine.Why].
func (e *Engine) Why(ctx context.Context, schedule string, boundary time.Time) (tickonce.Why, error) {
	reply, err := e.call(ctx, wire.OpWhy, &wire.Request{Name: schedule, Boundary: boundary})
	if err != nil {
		return tickonce.Why{}, err
	}
	return *reply.Why, nil
}

// Details is [tickonce.Engine.Details]. It ends with the engine as well, and goes
// on with the first detail of an instance that took the place of one that died.
func (e *Engine) Details(ctx context.Context) iter.Seq[tickonce.Detail] {
	return func(yield func(tickonce.Detail) bool) {
		for from, instance := int64(1), 0; ; {
			e.mu.Lock()
			moved := e.moved.next() // before the look, so that none is missed
			if e.opened != instance {
				from, instance = 1, e.opened
			}
			e.unlock()
			reply, err := e.call(context.WithoutCancel(ctx), wire.OpDetails, &wire.Request{From: from})
			if err != nil {
				return
			}
			for _, detail := range reply.Details {
				if from = detail.Number + 1; !yield(detail) {
					return
				}
			}
			if len(reply.Details) > 0 {
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-moved:
			}
		}
	}
}

// DroppedDetails is [tickonce.Engine.DroppedDetails].
func (e *Engine) DroppedDetails() int64 {
	reply, err := e.call(context.Background(), wire.OpDetails, &wire.Request{Max: 1})
	if err != nil {
		return 0
	}
	return reply.Count
}
