package tickonce_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// bad makes the stored spec one that no longer parses.
func bad(row *store.Schedule) { row.Spec = "@fortnightly" }

func TestQ1C75OneBadRowOfAThousandStopsNoOther(t *testing.T) {
	onEachStore(t, tickonce.Config{Batch: 2000}, func(t *testing.T, r *rig) {
		for i := range 1000 {
			r.schedule("s"+strconv.Itoa(i), "@every 10s", tickonce.ScheduleOptions{})
		}
		r.tamper("s500", bad)
		did := r.tick(10 * time.Second)
		require.NoError(t, did.err)
		require.Len(t, did.fires, 999)
		require.Empty(t, did.fired("s500"))
		require.Len(t, did.holds(), 1)
		require.Len(t, of(tickonce.EventQuarantined, did.events), 1)
		require.Len(t, r.jobs("q"), 999)
	})
}

func TestQ2C81OneTypedEventNamesTheSchedule(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.tick(0)
		r.tamper("s", bad)
		want := tickonce.Event{
			Kind: tickonce.EventQuarantined, At: start.Add(12 * time.Second), Schedule: "s", Queue: "q", Count: 1,
			Reason: `invalid spec "@fortnightly": at byte 1 found "f", want a spec like "@every 5m": a whole number and one of s, m, h, d`,
		}
		require.Equal(t, []tickonce.Event{want}, r.tick(12*time.Second).events)
		r.tick(40 * time.Second) // so that the lease lives on
		want.At, want.Count = start.Add(73*time.Second), 2
		require.Equal(t, []tickonce.Event{want}, r.tick(73*time.Second).events)
	})
}

func TestQ3AHeldRowDoesNotSpin(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		r.tamper("s", bad)
		events, steps := 0, 0
		for now := time.Second; now <= time.Hour; now += time.Second {
			did := r.tick(now)
			require.NoError(t, did.err)
			require.Empty(t, did.fires)
			events += len(of(tickonce.EventQuarantined, did.events))
			steps += did.steps
		}
		require.Equal(t, 60, events)
		require.Less(t, steps, 2*3600, "a look a second, and little more")
		require.Equal(t, start.Add(time.Second), r.lookup("s").Next, "the cursor stays")
	})
}

func TestQ3TheHoldLastsAMinuteFromNow(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.tamper("s", bad)
		r.tick(12 * time.Second)
		require.Equal(t, start.Add(72*time.Second), r.lookup("s").Due)
		r.restart()
		require.Empty(t, r.tick(72*time.Second-time.Millisecond).passed)
		require.Contains(t, r.tick(72*time.Second).holds(), "s")
	})
}

func TestQ4AHeldScheduleStaysListedWithItsMark(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.tamper("s", bad)
		for now := 10 * time.Second; now <= 130*time.Second; now += 30 * time.Second {
			r.tick(now)
		}
		s := r.lookup("s")
		require.Equal(t, []string{"s"}, r.names())
		require.Equal(t, "@fortnightly", s.Spec, "as stored")
		require.Equal(t, &tickonce.Hold{Reason: s.Hold.Reason, Since: start.Add(10 * time.Second), Times: 3}, s.Hold)
		require.Contains(t, s.Hold.Reason, "@fortnightly")
		require.Empty(t, r.jobs("q"))
	})
}

func TestG5Q5ItHeals(t *testing.T) {
	for _, c := range []struct {
		name  string
		heal  func(r *rig)
		fired []time.Duration // until 125 s; held at 10 s and at 70 s, healed at 75 s
		next  time.Duration
	}{
		{"the spec is valid again", func(r *rig) {
			r.tamper("s", func(row *store.Schedule) { row.Spec = "@every 10s" })
		}, every(10*time.Second, 10*time.Second, 13), 140 * time.Second},
		{"it came back with another interval", func(r *rig) {
			r.tamper("s", func(row *store.Schedule) { row.Spec = "@every 25s" })
		}, seconds(25, 50, 75, 100, 125), 150 * time.Second},
		{"the name is scheduled anew", func(r *rig) {
			r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		}, every(10*time.Second, 10*time.Second, 13), 140 * time.Second},
		{"the name is scheduled anew with another interval", func(r *rig) {
			r.schedule("s", "@every 25s", tickonce.ScheduleOptions{})
		}, seconds(25, 50, 75, 100, 125), 150 * time.Second},
		{"the name is scheduled anew on a new grid", func(r *rig) {
			r.schedule("s", "@every 25s", tickonce.ScheduleOptions{ResetCursor: true})
		}, seconds(100, 125), 150 * time.Second},
		{"it was paused and resumed", func(r *rig) {
			r.tamper("s", func(row *store.Schedule) { row.Spec = "@every 10s" })
			_, err := r.Pause(r.ctx, "s")
			require.NoError(r.t, err)
			_, err = r.Resume(r.ctx, "s", tickonce.ResumeOptions{})
			require.NoError(r.t, err)
		}, every(10*time.Second, 80*time.Second, 6), 140 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
				r.tamper("s", bad)
				require.Contains(t, r.tick(10*time.Second).holds(), "s")
				require.Contains(t, r.tick(70*time.Second).holds(), "s")
				r.at(75 * time.Second)
				c.heal(r)
				fired := r.tick(75 * time.Second).fired("s")
				for now := 80 * time.Second; now <= 130*time.Second; now += 5 * time.Second {
					did := r.tick(now)
					require.Empty(t, did.holds())
					fired = append(fired, did.fired("s")...)
				}
				require.Equal(t, c.fired, fired)
				require.Nil(t, r.lookup("s").Hold)
				require.Equal(t, c.next, offset(r.lookup("s").Next))
			})
		})
	}
}

// What lies past the cap after a long hold is skipped, as after any gap.
func TestQ5TheCatchUpRulesApplyAfterAHold(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.tamper("s", bad)
		r.tick(10 * time.Second)
		r.tamper("s", func(row *store.Schedule) { row.Spec = "@every 10s" })
		did := r.tick(time.Hour)
		require.Equal(t, every(10*time.Second, 10*time.Second, 64), did.fired("s"))
		require.Equal(t, int64(360-64), did.skipped("s"))
	})
}

func TestQ5Q6ARowThatIsOutOfRangeHealsWhenScheduledAnew(t *testing.T) {
	for name, spoil := range map[string]func(row *store.Schedule){
		"anchor": func(row *store.Schedule) { row.Anchor = store.MaxInstant + 1 },
		"cursor": func(row *store.Schedule) { row.Cursor = store.MinInstant - 1 },
		"policy": func(row *store.Schedule) { row.CatchUp.Max = 0 },
		"queue":  func(row *store.Schedule) { row.Queue = "__alkstore_outbox:mail" },
	} {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
				r.tamper("s", spoil)
				did := r.tick(10 * time.Second)
				require.NoError(t, did.err)
				require.Contains(t, did.holds(), "s")
				for _, q := range r.contents().Queues {
					require.Zero(t, q.Enqueued)
				}
				r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
				require.NotEmpty(t, r.tick(20*time.Second).fired("s"))
				require.Nil(t, r.lookup("s").Hold)
			})
		})
	}
}

// The queue is full for 90 s: the boundary of that time fires late, once.
func TestQ3Q5AFullQueueDelaysABoundary(t *testing.T) {
	onEachStore(t, tickonce.Config{Limits: tickonce.Limits{QueueLength: 2}}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1h", tickonce.ScheduleOptions{})
		r.at(time.Hour - time.Second)
		for range 2 {
			_, err := r.Enqueue(r.ctx, "q", nil, tickonce.EnqueueOptions{})
			require.NoError(t, err)
		}
		var fired []time.Duration
		var reasons []string
		for now := time.Hour - time.Second; now <= time.Hour+150*time.Second; now += time.Second {
			r.at(now)
			if now == time.Hour+89*time.Second {
				job, err := r.Claim(r.ctx, "q", "w")
				require.NoError(t, err)
				require.NoError(t, job.Ack(r.ctx))
			}
			did := r.tick(now)
			require.NoError(t, did.err)
			fired = append(fired, did.fired("s")...)
			for _, e := range of(tickonce.EventQuarantined, did.events) {
				reasons = append(reasons, e.Reason)
			}
		}
		require.Equal(t, []time.Duration{time.Hour}, fired)
		require.Equal(t, []string{"the queue is full", "the queue is full"}, reasons, "at 1 h and a minute later")
		require.Nil(t, r.lookup("s").Hold)
	})
}

// A full queue holds only its own schedules, and is not a store error.
func TestQ6AFullQueueConcernsItsSchedulesOnly(t *testing.T) {
	onEachStore(t, tickonce.Config{Limits: tickonce.Limits{QueueLength: 1}}, func(t *testing.T, r *rig) {
		r.schedule("a", "@every 10s", tickonce.ScheduleOptions{})
		r.schedule("b", "@every 10s", tickonce.ScheduleOptions{})
		_, err := r.Schedule(r.ctx, "c", "@every 10s", "other", nil, tickonce.ScheduleOptions{})
		require.NoError(t, err)
		did := r.tick(10 * time.Second)
		require.NoError(t, did.err)
		require.Equal(t, seconds(10), did.fired("a"))
		require.Equal(t, seconds(10), did.fired("c"))
		require.Equal(t, map[string]tickonce.Hold{
			"b": {Reason: "the queue is full", Since: start.Add(10 * time.Second), Times: 1},
		}, did.holds())
		require.Empty(t, of(tickonce.EventRetrying, did.events))
	})
}

func TestQ6G6TheEndOfTimeHoldsTheRow(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.clock.ms.Store(int64(store.MaxInstant) - 300_000)
		r.schedule("s", "@every 4m", tickonce.ScheduleOptions{})
		r.clock.ms.Add(240_000)
		did := r.untilRest()
		require.NoError(t, did.err)
		require.Empty(t, did.fires)
		require.Equal(t, "the next boundary is past the last instant", did.holds()["s"].Reason)
		require.Empty(t, r.jobs("q"))
	})
}

// Of a row of a later version nothing is known but that it does not parse.
func TestC76ARowOfALaterVersionIsQuarantined(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("a", "@every 10s", tickonce.ScheduleOptions{})
		r.schedule("z", "@every 10s", tickonce.ScheduleOptions{})
		r.tamper("a", func(row *store.Schedule) { row.Spec = "@cron v2 0 6 * * *" })
		r.restore()
		did := r.tick(10 * time.Second)
		require.Equal(t, seconds(10), did.fired("z"))
		require.Contains(t, did.holds(), "a")
	})
}

// A hold that a wrong clock made ends when the clock is right again: nothing
// fires twice by it.
func TestQ5K1AHoldOfAClockThatWasAheadEnds(t *testing.T) {
	for _, policy := range []tickonce.ClockRepair{tickonce.RepairHold, tickonce.RepairRearm} {
		onEachStore(t, tickonce.Config{ClockRepair: policy}, func(t *testing.T, r *rig) {
			w := r.wire()
			r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
			r.tamper("s", bad)
			require.Contains(t, r.tick(8*time.Hour).holds(), "s")
			r.tamper("s", func(row *store.Schedule) { row.Spec = "@every 10s" })
			w.take()
			did := r.tick(25 * time.Second)
			require.Equal(t, seconds(10, 20), did.fired("s"))
			require.Empty(t, of(tickonce.EventCursorAhead, did.events))
			require.Empty(t, of(tickonce.EventRearmed, did.events))
			require.Equal(t, 1, w.count(faultstore.Commit))
			require.Equal(t, seconds(30), r.tick(30*time.Second).fired("s"))
		})
	}
}

// refusing is a store that cannot write a schedule's jobs.
type refusing struct {
	store.Store
	schedule store.ScheduleID
}

func (s refusing) Advance(ctx context.Context, t *store.Tick) (bool, error) {
	at := slices.IndexFunc(t.Moves, func(m store.Move) bool { return m.ID == s.schedule && m.Fires > 0 })
	if at < 0 {
		return s.Store.Advance(ctx, t)
	}
	rev := t.Moves[at].Rev
	t.Moves[at].Rev = 0
	held, err := s.Store.Advance(ctx, t)
	t.Moves[at].Rev, t.Moves[at].Outcome = rev, store.Refused
	return held, err
}

// A move that the store refuses holds its row in the next tick, with the reason.
func TestQ6ARefusedMoveHoldsItsRow(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		r.schedule("a", "@every 10s", tickonce.ScheduleOptions{})
		r.schedule("b", "@every 10s", tickonce.ScheduleOptions{})
		rows := make([]store.Schedule, 1)
		_, _, err := r.store.Schedules(r.ctx, "a", rows)
		require.NoError(t, err)
		r.on(refusing{r.store, rows[0].ID})
		did := r.tick(10 * time.Second)
		require.NoError(t, did.err)
		require.Empty(t, did.fired("a"))
		require.Len(t, did.fired("b"), 1)
		require.Equal(t, tickonce.Hold{Reason: "the store refuses what it would write", Since: start.Add(10 * time.Second), Times: 1}, did.holds()["a"])
		require.Equal(t, start.Add(10*time.Second), r.lookup("a").Next, "the cursor stays")
		require.Equal(t, start.Add(70*time.Second), r.lookup("a").Due)
	})
}
