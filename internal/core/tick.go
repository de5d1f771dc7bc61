package core

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tickonce/tickonce/store"
)

// TickPlan is the decision for one tick. Its buffers are used again.
type TickPlan struct {
	Tick  store.Tick
	Plans []FirePlan // one for each move; Plans[i] decided rows[i]
}

// Plan decides the rows, which are in (DueAt, Name) order, at now. Rows are
// taken until the next one would exceed the budget in fires, but at least one
// (T15); it answers how many. Refusal says why the move of a row was not made at
// its revision, or "".
func (p *TickPlan) Plan(
	rows []store.Schedule, now store.Instant, budget int, refusal func(*store.Schedule) string, minutes Minutes,
) int {
	p.Tick.Now = now
	p.Tick.Moves, p.Tick.Fires = p.Tick.Moves[:0], p.Tick.Fires[:0]
	p.Tick.Skips, p.Plans = p.Tick.Skips[:0], p.Plans[:0]
	for i := range rows {
		p.Plans = append(p.Plans, FirePlan{})
		plan := &p.Plans[i]
		plan.decide(&rows[i], now, refusal(&rows[i]), minutes)
		if i > 0 && len(p.Tick.Fires)+int(plan.Move.Fires) > budget {
			p.Plans = p.Plans[:i]
			break
		}
		boundary := plan.First
		for range plan.Move.Fires {
			p.Tick.Fires = append(p.Tick.Fires, store.Fire{Move: int32(i), Boundary: boundary})
			boundary += store.Instant(plan.EveryMS)
		}
		for _, skip := range plan.Skips {
			if skip.Count > 0 {
				skip.Move = int32(i)
				p.Tick.Skips = append(p.Tick.Skips, skip)
			}
		}
		p.Tick.Moves = append(p.Tick.Moves, plan.Move)
	}
	byBoundary := func(a, b store.Fire) int {
		if order := cmp.Compare(a.Boundary, b.Boundary); order != 0 {
			return order
		}
		return strings.Compare(rows[a.Move].Name, rows[b.Move].Name)
	}
	if !slices.IsSortedFunc(p.Tick.Fires, byBoundary) {
		slices.SortFunc(p.Tick.Fires, byBoundary) // total: a schedule has a boundary once
	}
	return len(p.Tick.Moves)
}
