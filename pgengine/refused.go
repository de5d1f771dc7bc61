package pgengine

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tickonce/tickonce/store"
)

// Advance implements [store.Store]. If the tables do not take what a tick writes,
// as where somebody set a cursor back by hand to boundaries whose jobs are there,
// it is made in halves, and these again, down to the moves at fault, which are
// refused. So in that case alone it is several steps: an error leaves those that
// were made.
func (s *Store) Advance(ctx context.Context, t *store.Tick) (held bool, err error) {
	held, queues, err := s.tick(ctx, t)
	if !unwritable(err) {
		if err == nil {
			if held && slices.ContainsFunc(t.Moves, func(m store.Move) bool { return m.Outcome == store.Stale }) {
				s.passed.Store(true)
			}
			err = s.wrote(ctx, false, queues)
		}
		return held, err
	}
	if len(t.Moves) == 1 {
		t.Moves[0].Outcome = store.Refused
		for i := range t.Fires {
			t.Fires[i].Job = 0
		}
		return true, nil // else nothing would have been written
	}
	for _, half := range [][2]int{{0, len(t.Moves) / 2}, {len(t.Moves) / 2, len(t.Moves)}} {
		part, fires := partOf(t, int32(half[0]), int32(half[1]))
		if held, err = s.Advance(ctx, &part); !held || err != nil {
			return false, err
		}
		for i, at := range fires {
			t.Fires[at].Job = part.Fires[i].Job
		}
	}
	return true, nil
}

// partOf is a tick of some of the moves, which it shares, and where in t its
// fires are.
func partOf(t *store.Tick, from, to int32) (part store.Tick, fires []int) {
	part = store.Tick{By: t.By, Now: t.Now, Moves: t.Moves[from:to]}
	for i, fire := range t.Fires {
		if from <= fire.Move && fire.Move < to {
			fire.Move -= from
			part.Fires = append(part.Fires, fire)
			fires = append(fires, i)
		}
	}
	for _, skip := range t.Skips {
		if from <= skip.Move && skip.Move < to {
			skip.Move -= from
			part.Skips = append(part.Skips, skip)
		}
	}
	return part, fires
}

// unwritable reports whether the server has refused values: those of class 22,
// data exceptions, and 23, violated constraints.
func unwritable(err error) bool {
	server, ok := errors.AsType[*pgconn.PgError](err)
	return ok && len(server.Code) == 5 && (server.Code[:2] == "22" || server.Code[:2] == "23")
}
