package sim

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// TestChecksHaveTeeth tells one lie at a time, below the truth or above it, and
// demands that the check fails which is there for it.
func TestChecksHaveTeeth(t *testing.T) {
	const minute = 60_000
	for _, c := range []struct {
		lie    string
		fails  invariant
		text   string
		below  liar
		above  liar
		opened func(store.Store) // at the second opening
	}{
		{
			lie: "a boundary fires again in the next tick", fails: firesOnce, text: calmHour,
			below: tick(func(t *store.Tick) { t.Fires[0].Boundary -= minute }),
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
			below: tick(func(t *store.Tick) { t.Fires[0].Boundary += minute }),
		},
		{
			lie: "65 fire at once", fails: capHeld, text: downFor90m,
			below: tick(func(t *store.Tick) {
				for i := len(t.Fires) - 1; i >= 0; i-- {
					if last := t.Fires[i]; t.Moves[last.Move].Fires == 64 {
						last.Boundary += minute
						t.Fires = append(t.Fires, last)
						t.Moves[last.Move].Fires++
					}
				}
			}),
		},
		{
			lie: "a due boundary is dropped", fails: oneFate, text: calmHour,
			below: tick(func(t *store.Tick) { t.Moves[t.Fires[0].Move].Fires--; t.Fires = t.Fires[1:] }),
		},
		{
			lie: "another boundary fires than the newest", fails: oneFate, text: downFor90m,
			below: tick(func(t *store.Tick) {
				for i := range t.Fires {
					if f := &t.Fires[i]; t.Moves[f.Move].Cursor-f.Boundary == 7*minute && t.Now-f.Boundary > 10_000 {
						f.Boundary -= 7 * minute
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
			below: tick(func(t *store.Tick) { t.Moves[0].Cursor += minute; t.Moves[0].DueAt += minute }),
		},
		{
			lie: "a skip leaves the grid", fails: movesOn, text: downFor90m,
			below: tick(func(t *store.Tick) { t.Moves[0].Cursor, t.Moves[0].DueAt = t.Now+minute, t.Now+minute }),
		},
		{
			lie: "a held row moves its cursor", fails: holdsStill, text: calmHour,
			below: tick(func(t *store.Tick) { t.Moves[0].Hold = &store.Hold{Times: 1} }),
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
				m.Hold, m.Cursor, m.DueAt = &store.Hold{Times: 1}, t.Fires[0].Boundary, t.Now+minute
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
					t.Fires[i].Boundary += minute
				}
				return held, err
			}},
		},
		{
			lie: "a move is not told when it was made", fails: movesOn, text: calmHour,
			above: tick(func(t *store.Tick) { t.Moves[0].SetAt = 0 }),
		},
		{
			lie: "a schedule moves that is not due", fails: rightRows, text: calmHour,
			above: liar{due: func(s store.Store, dst []store.Schedule) (store.Due, error) {
				n, now, err := s.Schedules(ctx, "", dst)
				return store.Due{N: n, Now: now, Next: now + minute}, err
			}},
		},
		{
			lie: "a registration is due a minute late", fails: asAsked, text: calmHour,
			above: put(func(row *store.Schedule) { row.DueAt += minute }),
		},
		{
			lie: "a registration has another anchor", fails: asAsked, text: clockAhead,
			above: put(func(row *store.Schedule) { row.Anchor -= minute }),
		},
		{
			lie: "a registration leaves out the first boundary", fails: firstOfGrid, text: calmHour,
			above: put(func(row *store.Schedule) { row.Cursor, row.DueAt = row.Cursor+minute, row.DueAt+minute }),
		},
		{
			lie: "a repair changes an option", fails: repairs, text: clockAhead,
			above: put(func(row *store.Schedule) { row.Priority++ }),
		},
		{
			lie: "a row is repaired that no clock spoilt", fails: repairs, text: clockAhead,
			above: listed(func(row *store.Schedule, now store.Instant) { row.Cursor, row.SetAt = now+60*minute, now+60*minute }),
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
					row.Cursor, row.DueAt = row.Cursor+minute, row.DueAt+minute
				}
			}),
		},
		{
			lie: "a resume leaves everything as it was", fails: pauses, text: pausedHour,
			below: put(func(row *store.Schedule) {
				if row.ID != 0 && row.Paused == store.Active {
					first := row.Anchor + 11*minute
					row.Cursor, row.DueAt, row.SetAt = first, first, first-minute
				}
			}),
		},
		{
			lie: "a resume lets the missed fire", fails: pauses, text: pausedHour,
			below: put(func(row *store.Schedule) {
				if row.ID != 0 && row.Paused == store.Active {
					row.Cursor, row.DueAt = row.Cursor-minute, row.DueAt-minute
				}
			}),
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
			lie: "a job has the id of another", fails: oneState, text: calmHour,
			below: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
				held, err := s.Advance(ctx, t)
				for i := range t.Fires {
					t.Fires[i].Job = 1
				}
				return held, err
			}},
		},
		{
			lie: "a due row is read as it is not", fails: rightRows, text: calmHour,
			below: liar{due: func(s store.Store, dst []store.Schedule) (store.Due, error) {
				due, err := s.Due(ctx, dst)
				if due.N > 0 {
					dst[0].Queue = "other"
				}
				return due, err
			}},
		},
		{
			lie: "a registration makes the past due", fails: notEarly, text: calmHour,
			below: put(func(row *store.Schedule) { row.Cursor, row.DueAt = row.Cursor-minute, row.DueAt-minute }),
		},
		{
			lie: "a registration moves a cursor back", fails: firesOnce, text: downFor90m,
			above: changed,
			below: put(func(row *store.Schedule) {
				if row.ID != 0 {
					row.Cursor, row.DueAt = row.Cursor-7*minute, row.DueAt-7*minute
				}
			}),
		},
		{
			lie: "a registration begins anew", fails: keepsGrid, text: downFor90m, above: changed,
			below: put(func(row *store.Schedule) { row.ID = 0 }),
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
			lie: "a live claim is handed out again", fails: oneClaim, text: slowJobs,
			below: func() liar {
				last := map[string]store.Job{}
				return liar{claim: func(s store.Store, queue string, dst []store.Job) (store.Claim, error) {
					c, err := s.Claim(ctx, queue, "liar", dst)
					if c.N == 0 && last[queue].ID != 0 {
						dst[0], c.N = last[queue], 1
					}
					if last[queue] = (store.Job{}); c.N > 0 {
						last[queue] = dst[0]
					}
					return c, err
				}}
			}(),
		},
		{
			lie: "a claim lasts longer than its visibility", fails: oneClaim, text: calmHour,
			below: claim(func(j *store.Job) { j.Deadline++ }),
		},
		{
			lie: "an attempt is not counted", fails: attemptsHeld, text: calmHour,
			below: claim(func(j *store.Job) { j.Attempts-- }),
		},
		{
			lie: "a job comes from nowhere", fails: oneState, text: calmHour,
			below: claim(func(j *store.Job) { j.ID += 1000 }),
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
					t.Fires[i].Boundary += minute
				}
				return held, err
			}},
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
			lie: "a job is handed out before an earlier one", fails: claimOrder, text: calmHour,
			below: secondJob(),
		},
		{
			lie: "a job is handed out before one of a higher priority", fails: claimOrder,
			text:  strings.ReplaceAll(calmHour, "schedule b", "schedule b priority=1"),
			below: secondJob(),
		},
		{
			lie: "a job is handed out before one whose claim has lapsed", fails: claimOrder, text: panickingJobs,
			below: secondJob(),
		},
		{
			lie: "a job has another payload", fails: rightJob, text: calmHour,
			below: claim(func(j *store.Job) { j.Payload = []byte("of another") }),
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
			lie: "a handler gets another payload", fails: rightJob, text: calmHour,
			above: claim(func(j *store.Job) { j.Payload = []byte("of another") }),
		},
		{
			lie: "a job is retried later than its curve", fails: rightEnding, text: failingJobs,
			above: settle(func(s *store.Settle) { s.DelayMS = 2*minute + 1 }),
		},
		{
			lie: "a job is retried sooner than its curve", fails: rightEnding, text: failingJobs,
			above: settle(func(s *store.Settle) { s.DelayMS = minute - 1 }),
		},
		{
			lie: "a job dies that has an attempt left", fails: rightEnding, text: failingJobs,
			above: settle(func(s *store.Settle) { s.To = store.Dead }),
		},
		{
			lie: "a job is retried without its error", fails: rightEnding, text: failingJobs,
			above: settle(func(s *store.Settle) { s.Error = "" }),
		},
		{
			lie: "a failed job is done", fails: rightEnding, text: failingJobs,
			above: settle(func(s *store.Settle) { s.To = store.Done }),
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
			lie: "a job is tried again after its last attempt", fails: attemptsHeld, text: failingJobs,
			below: liar{settle: func(s store.Store, settles []store.Settle, out []bool) (store.Instant, error) {
				for i := range settles {
					settles[i].To, settles[i].DelayMS = store.Pending, minute
				}
				return s.Settle(ctx, settles, out)
			}},
		},
		{
			lie: "more jobs are buried than had to die", fails: oneState, text: calmHour,
			below: liar{claim: func(s store.Store, queue string, dst []store.Job) (store.Claim, error) {
				c, err := s.Claim(ctx, queue, "liar", dst)
				c.Buried++
				return c, err
			}},
		},
		{
			lie: "a stale ack is accepted", fails: staleToken, text: slowJobs,
			below: liar{settle: func(s store.Store, settles []store.Settle, out []bool) (store.Instant, error) {
				now, err := s.Settle(ctx, settles, out)
				for i := range out {
					out[i] = true
				}
				return now, err
			}},
		},
		{
			lie: "a refused ack changes something", fails: staleToken, text: doubledAcks,
			below: liar{settle: func(s store.Store, settles []store.Settle, out []bool) (store.Instant, error) {
				now, err := s.Settle(ctx, settles, out)
				if !out[0] {
					_, err = s.Acquire(ctx, "trace", "liar", minute)
				}
				return now, err
			}},
		},
		{
			lie: "a lapsed claim is extended", fails: staleToken, text: beatenJobs,
			below: liar{extend: func(s store.Store, extends []store.Extend, out []store.Instant) (store.Instant, error) {
				now := shownBy(s)
				out[0] = now.Add(extends[0].ForMS)
				return now, nil
			}},
		},
		{
			lie: "an extension is shorter than was asked for", fails: staleToken, text: strings.ReplaceAll(beatenJobs, "70s", "50s"),
			below: liar{extend: func(s store.Store, extends []store.Extend, out []store.Instant) (store.Instant, error) {
				now, err := s.Extend(ctx, extends, out)
				out[0]--
				return now, err
			}},
		},
		{
			lie: "an ack in time is refused", fails: staleToken, text: calmHour,
			below: liar{settle: func(s store.Store, settles []store.Settle, out []bool) (store.Instant, error) {
				return shownBy(s), nil
			}},
		},
		{
			lie: "a job is forgotten", fails: oneState, text: calmHour,
			below: liar{jobs: func(s store.Store, f store.Filter, dst []store.Job) (int, store.Instant, error) {
				n, now, err := s.Jobs(ctx, f, dst)
				return max(n-1, 0), now, err
			}},
		},
		{
			lie: "a queue counts one too many", fails: conservation, text: calmHour,
			below: liar{queues: func(s store.Store, from string, dst []store.Queue) (int, store.Instant, error) {
				n, now, err := s.Queues(ctx, from, dst)
				for i := range dst[:n] {
					dst[i].Enqueued++
				}
				return n, now, err
			}},
		},
		{
			lie: "a schedule is forgotten", fails: rightRows, text: calmHour,
			below: liar{schedules: func(s store.Store, from string, dst []store.Schedule) (int, store.Instant, error) {
				n, now, err := s.Schedules(ctx, from, dst)
				return min(n, 1), now, err
			}},
		},
		{
			lie: "an expired lease is renewed", fails: oneLease, text: lapsedLease,
			below: liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) {
				return granted(l, shownBy(s)), nil
			}},
		},
		{
			lie: "a live lease is not renewed", fails: oneLease, text: calmHour,
			below: liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) {
				return store.Grant{Now: shownBy(s)}, nil
			}},
		},
		{
			lie: "two runners get the lease", fails: oneLease, text: twoRunners,
			below: liar{acquire: func(s store.Store, lock, owner string, ttlMS int64) (store.Grant, error) {
				return granted(store.Lease{Lock: lock, Owner: owner, Term: 7, TTLMS: ttlMS}, shownBy(s)), nil
			}},
		},
		{
			lie: "two processes have the same owner token", fails: oneLease, text: twoRunners,
			above: liar{acquire: func(s store.Store, lock, _ string, ttlMS int64) (store.Grant, error) {
				return s.Acquire(ctx, lock, "the same", ttlMS)
			}},
		},
		{
			lie: "a lease is renewed for longer", fails: oneLease, text: calmHour,
			above: liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) { return s.Renew(ctx, l, ttlMS+1) }},
		},
		{
			lie: "a lease is let go", fails: keepsLease, text: calmHour,
			above: liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) {
				return granted(l, shownBy(s)), nil
			}},
		},
		{
			lie: "a lease is renewed when half of it is over", fails: keepsLease, text: calmHour,
			above: liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) {
				if now := shownBy(s); now/20_000%2 == 0 {
					return granted(l, now), nil
				}
				return s.Renew(ctx, l, ttlMS)
			}},
		},
		{
			lie: "a clean stop keeps the lease", fails: releases, text: downFor90m,
			above: liar{release: func(store.Store, store.Lease) (bool, error) { return true, nil }},
		},
		{
			lie: "a term is given again after a restart", fails: termsRise, text: downFor90m,
			below: liar{acquire: func(s store.Store, lock, owner string, ttlMS int64) (store.Grant, error) {
				g, err := s.Acquire(ctx, lock, owner, ttlMS)
				g.Lease.Term = 1
				return g, err
			}},
		},
		{
			lie: "nobody gets the lease", fails: oneLease, text: calmHour,
			below: liar{acquire: func(s store.Store, lock, owner string, ttlMS int64) (store.Grant, error) {
				return store.Grant{Now: shownBy(s)}, nil
			}},
		},
		{
			lie: "a term is given again", fails: termsRise, text: lapsedLease,
			below: liar{acquire: func(s store.Store, lock, owner string, ttlMS int64) (store.Grant, error) {
				g, err := s.Acquire(ctx, lock, owner, ttlMS)
				g.Lease.Term = 1
				return g, err
			}},
		},
		{
			lie: "a tick without a live lease is written", fails: fence, text: lapsedLease,
			above: liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) {
				_, err := s.Renew(ctx, l, ttlMS)
				return granted(l, shownBy(s)), err
			}},
			below: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
				by := t.By
				defer func() { t.By = by }()
				if g, _ := s.Acquire(ctx, by.Lock, by.Owner, by.TTLMS); g.OK {
					t.By = g.Lease
				}
				return s.Advance(ctx, t)
			}},
		},
		{
			lie: "a tick under a live lease is refused", fails: fence, text: calmHour,
			below: liar{advance: func(s store.Store, t *store.Tick) (bool, error) { return false, nil }},
		},
		{
			lie: "a refused tick writes something", fails: failedWrite, text: lapsedLease,
			above: liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) {
				_, err := s.Renew(ctx, l, ttlMS)
				return granted(l, shownBy(s)), err
			}},
			below: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
				held, err := s.Advance(ctx, t)
				if !held {
					_, err = s.Acquire(ctx, "trace", "liar", minute)
				}
				return held, err
			}},
		},
		{
			lie: "a write that the journal refused leaves a trace", fails: failedWrite,
			text: calmHour + "during 10m..20m store journal-error p=0.5\n",
			below: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
				held, err := s.Advance(ctx, t)
				for kept := err == nil; !kept; {
					_, failed := s.Acquire(ctx, "trace", "liar", minute)
					kept = failed == nil
				}
				return held, err
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
			lie: "a transaction acks for a claim that was lost", fails: staleToken,
			text: strings.NewReplacer("visibility=10m", "visibility=30s", "65s", "40s").Replace(transactions),
			below: liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
				done, err := s.Commit(ctx, b)
				if done.Refusal.Why == store.ClaimLost {
					done = store.Committed{Now: done.Now, Inserts: make([]store.Inserted, len(b.Inserts))}
				}
				return done, err
			}},
		},
		{
			lie: "a transaction that is refused leaves its jobs", fails: failedWrite, text: transactions,
			below: liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
				done, err := s.Commit(ctx, b)
				if done.Refusal.Why != store.NotRefused {
					_, _ = s.Commit(ctx, &store.Batch{Inserts: b.Inserts})
				}
				return done, err
			}},
		},
		{
			lie: "a transaction is written in spite of a roll-back", fails: asAsked, text: strings.ReplaceAll(transactions, "handler=ok", "handler=fail"),
			above: liar{schedules: func(s store.Store, from string, dst []store.Schedule) (int, store.Instant, error) {
				if len(dst) == 1 { // as a transaction reads
					_, _ = s.Commit(ctx, &store.Batch{Inserts: []store.Insert{{Queue: "q"}}})
				}
				return s.Schedules(ctx, from, dst)
			}},
		},
		{
			lie: "a runner spins in an outage", fails: noSpin, text: calmHour + "during 10m..12m store error-burst applied=no\n",
			above: liar{acquire: func(s store.Store, lock, owner string, ttlMS int64) (g store.Grant, err error) {
				for range 2 {
					g, err = s.Acquire(ctx, lock, owner, ttlMS)
				}
				return g, err
			}},
		},
		{
			lie: "a worker spins in an outage", fails: noSpin, text: calmHour + "during 10m..12m store error-burst applied=no\n",
			above: liar{claim: func(s store.Store, queue string, dst []store.Job) (c store.Claim, err error) {
				for range 2 {
					c, err = s.Claim(ctx, queue, "liar", dst)
				}
				return c, err
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
			lie: "a runner ends although no other leads", fails: exits, text: strings.ReplaceAll(calmHour, "engine standby=yes\n", ""),
			above: liar{acquire: func(s store.Store, lock, owner string, ttlMS int64) (store.Grant, error) {
				return store.Grant{Now: shownBy(s)}, nil
			}},
		},
		{
			lie: "a tick is written twice, and renewed once", fails: renewsFirst, text: calmHour,
			above: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
				_, _ = s.Advance(ctx, t)
				return s.Advance(ctx, t)
			}},
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
				if due.N > 0 && due.Now < dst[0].DueAt+5*minute {
					return store.Due{Now: due.Now, Next: dst[0].DueAt + 5*minute}, err
				}
				return due, err
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
	} {
		t.Run(c.lie, func(t *testing.T) {
			s, err := Parse("lies.sim", c.text)
			require.NoError(t, err)
			honest := run(&s, rig{budget: maxEvents})
			require.Equal(t, Pass, honest.Verdict, honest.Failures)

			openings := 0
			r := run(&s, rig{
				budget: 100_000,
				below: func(s store.Store) store.Store {
					if openings++; openings == 2 && c.opened != nil {
						c.opened(s)
					}
					l := c.below
					l.Store = s
					return l
				},
				above: func(s store.Store) store.Store {
					l := c.above
					l.Store = s
					return l
				},
			})
			require.True(t, slices.ContainsFunc(r.Failures, func(f Failure) bool { return f.Invariant == c.fails.String() }),
				"%s is broken, found were %+v, verdict %s", c.fails, r.Failures[:min(len(r.Failures), 3)], r.Verdict)
			for _, f := range r.Failures {
				i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Invariant == f.Invariant })
				require.Positive(t, r.Checks[i].Count, "%s failed and was never checked", f.Invariant)
				require.NotContains(t, f.Detail, "0x", "an address, which is another one in each run")
			}
		})
	}
}
