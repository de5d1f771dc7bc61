package sim

import (
	"errors"
	"slices"
	"strings"

	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// scheduleLies are those about schedules: their rows, boundaries and ticks.
var scheduleLies = []lie{
	{
		lie: "a boundary fires again in the next tick", fails: firesOnce, text: calmHour,
		below: tick(func(t *store.Tick) { t.Fires[0].Boundary -= minuteMS }),
	},
	{
		lie: "a boundary fires twice in one tick", fails: firesOnce, text: calmHour,
		below: tick(func(t *store.Tick) { t.Fires = slices.Insert(t.Fires, 1, t.Fires[0]); t.Moves[0].Fires++ }),
	},
	{
		lie: "a boundary fires off the grid", fails: onGridOnly, text: calmHour,
		below: tick(func(t *store.Tick) { t.Fires[0].Boundary++ }),
	},
	{
		lie: "a boundary fires early", fails: notEarly, text: calmHour,
		below: tick(func(t *store.Tick) { t.Fires[0].Boundary += minuteMS }),
	},
	{
		lie: "65 fire at once", fails: capHeld, text: downFor90m,
		below: oneTooMany,
	},
	{
		lie: "65 fire where 64 may", fails: oneFate, says: "fired 1 boundary too many", text: downFor90m,
		below: oneTooMany,
	},
	{
		lie: "a due boundary is dropped", fails: oneFate, says: "fired 1 boundary too few", text: calmHour,
		below: tick(func(t *store.Tick) { t.Moves[t.Fires[0].Move].Fires--; t.Fires = t.Fires[1:] }),
	},
	{
		lie: "another boundary fires than the newest", fails: oneFate, text: downFor90m,
		below: tick(func(t *store.Tick) {
			for i := range t.Fires {
				if f := &t.Fires[i]; t.Moves[f.Move].Cursor-f.Boundary == 7*minuteMS && t.Now-f.Boundary > 10_000 {
					f.Boundary -= 7 * minuteMS
				}
			}
		}),
	},
	{
		lie: "a skip lands on now", fails: movesOn, text: calmHour,
		below: tick(func(t *store.Tick) { t.Moves[0].Cursor, t.Moves[0].DueAt = t.Now, t.Now }),
	},
	{
		lie: "a skip passes a boundary that is not due", fails: movesOn, text: calmHour,
		below: tick(func(t *store.Tick) { t.Moves[0].Cursor += minuteMS; t.Moves[0].DueAt += minuteMS }),
	},
	{
		lie: "a skip leaves the grid", fails: movesOn, text: downFor90m,
		below: tick(func(t *store.Tick) { t.Moves[0].Cursor, t.Moves[0].DueAt = t.Now+minuteMS, t.Now+minuteMS }),
	},
	{
		lie: "each hold is the first", fails: holdsStill, text: heldAhead,
		above: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
			for i := range t.Moves {
				if hold := t.Moves[i].Hold; hold != nil {
					t.Moves[i].Hold = &store.Hold{Reason: hold.Reason, Since: t.Now, Times: 1}
				}
			}
			return s.Advance(ctx, t)
		}},
	},
	{
		lie: "a row that is right is held", fails: holdsBad, text: calmHour,
		below: tick(func(t *store.Tick) {
			m := &t.Moves[t.Fires[0].Move]
			m.Hold, m.Cursor, m.DueAt = &store.Hold{Times: 1}, t.Fires[0].Boundary, t.Now+minuteMS
			m.Fires--
			t.Fires = t.Fires[1:]
		}),
	},
	{
		lie: "a queue with room is full", fails: queueBound, text: calmHour,
		below: liar{advance: func(_ store.Store, t *store.Tick) (bool, error) {
			for i := range t.Moves {
				t.Moves[i].Outcome = store.Full
			}
			return true, nil
		}},
	},
	{
		lie: "a runner reports a fire too many", fails: trueReport, text: calmHour,
		above: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
			held, err := s.Advance(ctx, t)
			t.Moves[0].Fires++
			return held, err
		}},
	},
	{
		lie: "a runner reports another boundary than fired", fails: trueReport, text: calmHour,
		above: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
			held, err := s.Advance(ctx, t)
			for i := range t.Fires {
				t.Fires[i].Boundary += minuteMS
			}
			return held, err
		}},
	},
	{
		lie: "a move is not told when it was made", fails: movesOn, text: calmHour,
		above: tick(func(t *store.Tick) { t.Moves[0].SetAt = 0 }),
	},
	{
		lie: "a schedule moves that is not due", fails: rightRows, says: "it moved at", text: calmHour,
		above: liar{due: func(s store.Store, dst []store.Schedule) (store.Due, error) {
			due, err := s.Due(ctx, dst)
			if err == nil {
				due.N, _, err = s.Schedules(ctx, "", dst)
			}
			due.Next = due.Now + minuteMS
			return due, err
		}},
	},
	{
		lie: "a registration is due a minute late", fails: asAsked, text: calmHour,
		above: put(func(row *store.Schedule) { row.DueAt += minuteMS }),
	},
	{
		lie: "a registration has another anchor", fails: asAsked, text: clockAhead,
		above: put(func(row *store.Schedule) { row.Anchor -= minuteMS }),
	},
	{
		lie: "a registration leaves out the first boundary", fails: firstOfGrid, text: calmHour,
		above: put(func(row *store.Schedule) { row.Cursor, row.DueAt = row.Cursor+minuteMS, row.DueAt+minuteMS }),
	},
	{
		lie: "a repair changes an option", fails: repairs, text: clockAhead,
		above: put(func(row *store.Schedule) { row.Priority++ }),
	},
	{
		lie: "a row is repaired that no clock spoilt", fails: repairs, text: clockAhead,
		above: listed(func(row *store.Schedule, now store.Instant) { row.Cursor, row.SetAt = now+60*minuteMS, now+60*minuteMS }),
	},
	{
		lie: "a hold that a clock spoilt is not repaired", fails: liveness, text: heldAhead,
		above: listed(func(row *store.Schedule, _ store.Instant) { row.Hold = nil }),
	},
	{
		lie: "a registration leaves out an option", fails: asAsked, text: calmHour,
		below: put(func(row *store.Schedule) { row.Priority++ }),
	},
	{
		lie: "an edit is not made, but answered as if", fails: asAsked, text: pausedHour,
		above: liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
			if b.Puts[0].Row.Paused != store.Active {
				return store.Committed{Now: shownBy(s), Puts: []store.Schedule{b.Puts[0].Row}}, nil
			}
			return s.Commit(ctx, b)
		}},
	},
	{
		lie: "a paused row stays due", fails: pauses, text: pausedHour,
		below: put(func(row *store.Schedule) {
			if row.Paused != store.Active {
				row.DueAt = row.Cursor
			}
		}),
	},
	{
		lie: "a resume skips a boundary that is not due", fails: pauses, text: pausedHour,
		below: put(func(row *store.Schedule) {
			if row.ID != 0 && row.Paused == store.Active {
				row.Cursor, row.DueAt = row.Cursor+minuteMS, row.DueAt+minuteMS
			}
		}),
	},
	{
		lie: "a resume leaves everything as it was", fails: pauses, text: pausedHour,
		below: put(func(row *store.Schedule) {
			if row.ID != 0 && row.Paused == store.Active {
				first := row.Anchor + 11*minuteMS
				row.Cursor, row.DueAt, row.SetAt = first, first, first-minuteMS
			}
		}),
	},
	{
		lie: "a resume tells another time at which it was decided", fails: pauses, says: "was decided at", text: pausedHour,
		below: put(func(row *store.Schedule) {
			if row.ID != 0 && row.Paused == store.Active {
				row.SetAt++
			}
		}),
	},
	{
		lie: "a resume lets the missed fire", fails: pauses, text: pausedHour,
		below: put(func(row *store.Schedule) {
			if row.ID != 0 && row.Paused == store.Active {
				row.Cursor, row.DueAt = row.Cursor-minuteMS, row.DueAt-minuteMS
			}
		}),
	},
	{
		lie: "the later of two boundaries fires first", fails: fireOrder, says: "came too late in its tick", text: downFor90m,
		below: tick(func(t *store.Tick) { slices.Reverse(t.Fires) }),
	},
	{
		lie: "a boundary fires beyond those that may", fails: oneFate, says: "was to be skipped", text: downFor90m,
		below: oneTooMany,
	},
	{
		lie: "a cursor that a clock spoilt is not repaired", fails: liveness, says: "its cursor was left at", text: clockAhead,
		above: listed(func(row *store.Schedule, now store.Instant) { row.Cursor = min(row.Cursor, now+minuteMS) }),
	},
	{
		lie: "the fires of a tick are out of order", fails: fireOrder, text: calmHour,
		below: tick(func(t *store.Tick) { slices.Reverse(t.Fires) }),
	},
	{
		lie: "schedules that are due at once are read out of the order of their names", fails: fireOrder, text: calmHour,
		below: liar{due: func(s store.Store, dst []store.Schedule) (store.Due, error) {
			due, err := s.Due(ctx, dst)
			slices.Reverse(dst[:due.N])
			return due, err
		}},
	},
	{
		lie: "a tick fires beyond its budget", fails: budgetHeld, text: oneByOne,
		below: tick(func(t *store.Tick) {
			t.Moves = append(t.Moves, t.Moves[0])
			t.Fires = append(t.Fires, store.Fire{Move: 1, Boundary: t.Fires[0].Boundary})
		}),
	},
	{
		lie: "a tick rests on another now than its rows", fails: rightRows, text: calmHour,
		below: tick(func(t *store.Tick) { t.Now++ }),
	},
	{
		lie: "a tick rests on another reading than its rows", fails: rightRows, says: "a tick rests on", text: calmHour,
		above: liar{due: func(s store.Store, dst []store.Schedule) (store.Due, error) {
			n, now, err := s.Schedules(ctx, "", dst)
			return store.Due{N: n, Now: now, Next: now + minuteMS}, err
		}},
	},
	{
		lie: "a move for which there was no room gives a job", fails: revGuard, says: "gave a job", text: fullQueue,
		below: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
			held, err := s.Advance(ctx, t)
			for i := range t.Fires {
				if f := &t.Fires[i]; t.Moves[f.Move].Outcome == store.Full {
					f.Job = 1
				}
			}
			return held, err
		}},
	},
	{
		lie: "an unchanged row is stale", fails: revGuard, text: calmHour,
		below: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
			t.Moves[0].Rev += 100
			defer func() { t.Moves[0].Rev -= 100 }()
			return s.Advance(ctx, t)
		}},
	},
	{
		lie: "a tick is not written, but answered as if", fails: rightRows, text: calmHour,
		below: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
			for i := range t.Moves {
				t.Moves[i].Outcome = store.Moved
			}
			return true, nil
		}},
	},
	{
		lie: "a due row is read as it is not", fails: rightRows, text: calmHour,
		below: dueRows(func(row *store.Schedule) { row.Queue = "other" }),
	},
	{
		lie: "a registration makes the past due", fails: notEarly, text: calmHour,
		below: put(func(row *store.Schedule) { row.Cursor, row.DueAt = row.Cursor-minuteMS, row.DueAt-minuteMS }),
	},
	{
		lie: "a registration moves a cursor back", fails: firesOnce, text: downFor90m,
		above: changed,
		below: put(func(row *store.Schedule) {
			if row.ID != 0 {
				row.Cursor, row.DueAt = row.Cursor-7*minuteMS, row.DueAt-7*minuteMS
			}
		}),
	},
	{
		lie: "a registration begins anew", fails: keepsGrid, text: downFor90m, above: changed,
		below: put(func(row *store.Schedule) { row.ID = 0 }),
	},
	{
		lie: "a registration tells another time at which a cursor was set", fails: keepsGrid, text: downFor90m, above: changed,
		below: put(func(row *store.Schedule) {
			if row.ID != 0 {
				row.SetAt++
			}
		}),
	},
	{
		lie: "an id is given again", fails: keepsGrid, text: calmHour,
		below: written(func(row *store.Schedule) { row.ID = 1 }),
	},
	{
		lie: "a rev stays as it was", fails: revGuard, says: "its rev went from", text: pausedHour,
		below: written(func(row *store.Schedule) {
			if row.Rev > 1 {
				row.Rev--
			}
		}),
	},
	{
		lie: "a cursor is put off the grid", fails: onGridOnly, text: calmHour,
		below: put(func(row *store.Schedule) { row.Cursor++; row.DueAt++ }),
	},
	{
		lie: "a policy is not the one asked for", fails: rightPolicy, text: calmHour,
		below: put(func(row *store.Schedule) { row.CatchUp.Max = 1 }),
	},
	{
		lie: "a row is written over a newer one", fails: revGuard, text: twoRunners,
		above: liar{schedules: func(s store.Store, from string, dst []store.Schedule) (int, store.Instant, error) {
			_, now, err := s.Schedules(ctx, from, dst)
			return 0, now, err
		}},
		below: liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
			var rows [1]store.Schedule
			if n, _, _ := s.Schedules(ctx, b.Puts[0].Row.Name, rows[:]); n > 0 {
				b.Puts[0].Guard.ID, b.Puts[0].Guard.Rev = rows[0].ID, rows[0].Rev
				defer func() { b.Puts[0].Guard.ID, b.Puts[0].Guard.Rev = 0, 0 }()
			}
			return s.Commit(ctx, b)
		}},
	},
	{
		lie: "an ack is told as refused that was accepted", fails: trueEvents, text: calmHour,
		above: liar{settle: func(s store.Store, settles []store.Settle, out []bool) (store.Instant, error) {
			now, err := s.Settle(ctx, settles, out)
			out[0] = false
			return now, err
		}},
	},
	{
		lie: "a claim is told as of another attempt", fails: trueEvents, text: calmHour,
		above: claim(func(j *store.Job) { j.Attempts-- }),
	},
	{
		lie: "a claim is not told", fails: trueEvents, text: calmHour,
		above: liar{claim: func(s store.Store, queue string, dst []store.Job) (store.Claim, error) {
			c, err := s.Claim(ctx, queue, "liar", dst)
			c.N = 0
			return c, err
		}},
	},
	{
		lie: "a fire is told with another boundary", fails: trueEvents, text: calmHour,
		above: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
			held, err := s.Advance(ctx, t)
			for i := range t.Fires {
				t.Fires[i].Boundary += minuteMS
			}
			return held, err
		}},
	},
	{
		lie: "a fire is told as of another queue", fails: trueEvents, says: "of a fire was told", text: calmHour,
		above: dueRows(func(row *store.Schedule) { row.Queue = "r" }),
	},
	{
		lie: "a fire is told as of another schedule", fails: trueEvents, says: "of a fire was told", text: calmHour,
		above: dueRows(func(row *store.Schedule) { row.Name = "b" }),
	},
	{
		lie: "skips are told that were not made", fails: trueEvents, text: downFor90m,
		above: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
			held, err := s.Advance(ctx, t)
			for i := range t.Moves {
				t.Moves[i].Outcome = store.Stale
			}
			return held, err
		}},
	},
	{
		lie: "a pause is told at another time", fails: trueEvents, text: pausedHour,
		above: liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
			done, err := s.Commit(ctx, b)
			done.Now++
			return done, err
		}},
	},
	{
		lie: "a retried job is handed out before its time", fails: notEarly, text: failingJobs,
		below: liar{claim: func(s store.Store, queue string, dst []store.Job) (store.Claim, error) {
			c, err := s.Claim(ctx, queue, "liar", dst)
			if n, now, _ := s.Jobs(ctx, store.Filter{Queue: queue, State: store.Pending}, dst); c.N == 0 && n > 0 {
				c.N = 1
				dst[0].Attempts++
				dst[0].Deadline = now.Add(dst[0].Stamps.VisibilityMS)
			}
			return c, err
		}},
	},
	{
		lie: "a schedule changes by itself", fails: rightRows, says: "not as it was written", text: calmHour,
		below: liar{
			due:       func(store.Store, []store.Schedule) (store.Due, error) { return store.Due{Next: store.None}, nil },
			schedules: listed(func(row *store.Schedule, _ store.Instant) { row.Priority++ }).schedules,
		},
	},
	{
		lie: "a schedule is forgotten", fails: rightRows, text: calmHour,
		below: liar{schedules: func(s store.Store, from string, dst []store.Schedule) (int, store.Instant, error) {
			n, now, err := s.Schedules(ctx, from, dst)
			return min(n, 1), now, err
		}},
	},
	{
		lie: "a transaction rests on what has changed", fails: revGuard, text: transactions,
		above: liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
			if len(b.Settles) > 0 {
				b.Guards = nil
			}
			return s.Commit(ctx, b)
		}},
	},
	{
		lie: "a transaction that nothing speaks against is refused", fails: revGuard, text: transactions,
		below: liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
			if len(b.Settles) > 0 {
				return store.Committed{Now: shownBy(s), Refusal: store.Refusal{Why: store.Conflict}}, nil
			}
			return s.Commit(ctx, b)
		}},
	},
	{
		lie: "a transaction is written without its ack", fails: asAsked, text: transactions,
		above: liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
			b.Settles = nil
			return s.Commit(ctx, b)
		}},
	},
	{
		lie: "a transaction is written without one of its jobs", fails: asAsked, says: "with 1 acks and 1 jobs", text: transactions,
		above: liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
			all := len(b.Inserts)
			b.Inserts = b.Inserts[:min(all, 1)]
			done, err := s.Commit(ctx, b)
			done.Inserts = append(done.Inserts, make([]store.Inserted, all)...)
			return done, err
		}},
	},
	{
		lie: "a transaction is written in spite of a roll-back", fails: asAsked, says: "rolled back", text: strings.ReplaceAll(transactions, "handler=ok", "handler=fail"),
		above: liar{schedules: func(s store.Store, from string, dst []store.Schedule) (int, store.Instant, error) {
			if len(dst) == 1 { // as a transaction reads
				_, _ = s.Commit(ctx, &store.Batch{Inserts: []store.Insert{{Queue: "q"}}})
			}
			return s.Schedules(ctx, from, dst)
		}},
	},
	{
		lie: "a restart loses a schedule", fails: durability, text: downFor90m,
		opened: func(s store.Store) {
			var rows [1]store.Schedule
			_, _, _ = s.Schedules(ctx, "", rows[:])
			_, _ = s.Commit(ctx, &store.Batch{Removes: []store.Guard{{Name: rows[0].Name, ID: rows[0].ID, Rev: rows[0].Rev}}})
		},
	},
	{
		lie: "nothing is ever due", fails: liveness, text: calmHour,
		above: liar{due: func(s store.Store, dst []store.Schedule) (store.Due, error) {
			due, err := s.Due(ctx, nil)
			return store.Due{Now: due.Now, Next: store.None}, err
		}},
	},
	{
		lie: "a boundary is looked at a millisecond late, with nothing in the way", fails: liveness, text: calmHour,
		above: liar{due: func(s store.Store, dst []store.Schedule) (store.Due, error) {
			due, err := s.Due(ctx, dst)
			if due.N > 0 && due.Now == dst[0].DueAt {
				return store.Due{Now: due.Now, Next: due.Now + 1}, err
			}
			return due, err
		}},
	},
	{
		lie: "a boundary is read as due five minutes late", fails: liveness, text: calmHour,
		above: liar{due: func(s store.Store, dst []store.Schedule) (store.Due, error) {
			due, err := s.Due(ctx, dst)
			if due.N > 0 && due.Now < dst[0].DueAt+5*minuteMS {
				return store.Due{Now: due.Now, Next: dst[0].DueAt + 5*minuteMS}, err
			}
			return due, err
		}},
	},
	{
		lie: "a schedule is never registered", fails: liveness, says: "its registration", text: calmHour,
		above: liar{commit: func(store.Store, *store.Batch) (store.Committed, error) { return store.Committed{}, faultstore.ErrLost }},
	},
	{
		lie: "a queue does not tell of its last job", fails: liveness, text: strings.ReplaceAll(failingJobs, "run 2h", "run 119m"),
		above: liar{queues: func(s store.Store, from string, dst []store.Queue) (int, store.Instant, error) {
			_, now, err := s.Queues(ctx, from, dst)
			return 0, now, err
		}},
	},
	{
		lie: "a queue does not tell of its jobs", fails: liveness, text: failingJobs,
		above: liar{queues: func(s store.Store, from string, dst []store.Queue) (int, store.Instant, error) {
			_, now, err := s.Queues(ctx, from, dst)
			return 0, now, err
		}},
	},
	{
		lie: "a call fails by itself", fails: noError, text: calmHour,
		above: liar{claim: func(store.Store, string, []store.Job) (store.Claim, error) {
			return store.Claim{}, errors.New("no reason")
		}},
	},
	{
		lie: "a call panics", fails: panicked, text: calmHour,
		below: liar{claim: func(store.Store, string, []store.Job) (store.Claim, error) { panic("no reason") }},
	},
}
