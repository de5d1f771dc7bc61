package tickonce_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

func TestL2LeadershipIsALockOfTheStore(t *testing.T) {
	onEachStore(t, tickonce.Config{Owner: "me"}, func(t *testing.T, r *rig) {
		lease := r.lead()
		require.Equal(t, store.Lease{
			Lock: schedulerLock, Owner: "me/1", Term: lease.Term, TTLMS: leaseTTL.Milliseconds(), ExpiresAt: instant(leaseTTL),
		}, lease)
		require.NoError(t, r.runner.Stop(r.ctx))

		r.steal("a user of the store")
		r.runner = r.NewRunner()
		require.ErrorIs(t, r.tick(0).err, tickonce.ErrLeadershipLost)
	})
}

// Two runners of one engine contend as those of two do.
func TestL2OneInstanceLeadsOnce(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		r.lead()
		leading := r.runner
		r.runner = r.NewRunner()
		require.ErrorIs(t, r.tick(time.Second).err, tickonce.ErrLeadershipLost)
		r.runner = leading
		require.Len(t, r.tick(time.Second).fires, 1)
	})
}

func TestL3ContenderLosesAtOnceBeforeAnyFire(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		r.steal("b")
		w := r.wire()
		before := r.contents()
		r.take()
		did := r.tick(time.Second)
		require.ErrorIs(t, did.err, tickonce.ErrLeadershipLost)
		require.Equal(t, &tickonce.OpError{
			Op: "run schedules", Phase: tickonce.PhaseAcquire, Err: tickonce.ErrLeadershipLost,
		}, opError(t, did.err))
		require.Equal(t, "acquire", w.take())
		require.Equal(t, before, r.contents())
		require.Len(t, did.events, 1, "it never led")
		require.Equal(t, tickonce.EventStopped, did.events[0].Kind)
		require.ErrorIs(t, did.events[0].Err, tickonce.ErrLeadershipLost)
	})
}

func TestL3StandByContendsEvery5s(t *testing.T) {
	onEachStore(t, tickonce.Config{StandBy: true}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1h", tickonce.ScheduleOptions{})
		other := r.another()
		other.lead()
		w := r.wire()
		r.take()
		for at := time.Duration(0); at < 30*time.Second; at += 5 * time.Second {
			did := r.tick(at)
			require.Equal(t, "acquire", w.take())
			require.Equal(t, at+5*time.Second, did.next)
			if at > 0 {
				require.Empty(t, did.events, "the reason is told once")
				continue
			}
			require.Len(t, did.events, 1)
			require.Equal(t, tickonce.EventStandBy, did.events[0].Kind)
			require.Equal(t, 5*time.Second, did.events[0].Wait)
			require.ErrorIs(t, did.events[0].Err, tickonce.ErrLeadershipLost)
		}

		w.lose = offline
		did := r.tick(30 * time.Second)
		require.Equal(t, "acquire", w.take(), "no retries of its own")
		require.Equal(t, 35*time.Second, did.next)
		require.Equal(t, tickonce.EventStandBy, did.events[0].Kind)
		require.ErrorIs(t, did.events[0].Err, faultstore.ErrLost)
		w.lose = nil

		require.NoError(t, other.runner.Stop(r.ctx))
		did = r.tick(35 * time.Second)
		require.Len(t, of(tickonce.EventLeading, did.events), 1)
		require.NotZero(t, r.leader())
		require.NoError(t, r.runner.Stop(r.ctx))
		require.Zero(t, r.leader())
	})
}

// An outage of D costs a runner that stands by at most D / 5 s + 5 calls, and
// it fires within 5 s of the store's return.
func TestL3I9StandByOutlastsAnOutage(t *testing.T) {
	for _, outage := range []time.Duration{time.Second, 4 * time.Second, 90 * time.Second, time.Hour} {
		for _, verdict := range []faultstore.Verdict{faultstore.LoseRequest, faultstore.LoseReply} {
			onEachStore(t, tickonce.Config{StandBy: true}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
				r.lead()
				const from = 10 * time.Second
				r.tick(from)
				w.take()
				w.lose = func(faultstore.Op) faultstore.Verdict { return verdict }
				next := from + time.Second
				for next < from+outage {
					did := r.tick(next)
					require.NoError(t, did.err)
					require.LessOrEqual(t, did.next, next+5*time.Second)
					next = did.next
				}
				require.LessOrEqual(t, time.Duration(len(w.calls)), outage/(5*time.Second)+5)
				w.lose = nil
				did := r.tick(next)
				require.NoError(t, did.err)
				require.LessOrEqual(t, r.now(), from+outage+5*time.Second)
				require.Greater(t, offset(r.lookup("s").Next), r.now())
				require.Empty(t, of(tickonce.EventStopped, did.events))
			})
		}
	}
}

// After an outage that exhausted the retries the lease may still be its own:
// a clean stop releases it.
func TestL5StopWhileStandingByReleasesTheLease(t *testing.T) {
	onEachStore(t, tickonce.Config{StandBy: true}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.lead()
		w.lose = offline
		did := r.tick(time.Second)
		for len(of(tickonce.EventStandBy, did.events)) == 0 {
			did = r.tick(did.next)
		}
		w.lose = nil
		require.NotZero(t, r.leader())
		require.NoError(t, r.runner.Stop(r.ctx))
		require.Zero(t, r.leader())
	})
}

// Frozen for ten hours before any call of a tick, with nobody there to take
// its lock, the runner drops what it planned, leads anew and reads again.
func TestL4LapsedLeaseIsAcquiredAnew(t *testing.T) {
	const frozen = 10 * time.Hour
	for _, method := range []faultstore.Method{faultstore.Renew, faultstore.Due, faultstore.Advance} {
		t.Run("before "+method.String(), func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.schedule("s", "@every 7s", tickonce.ScheduleOptions{})
				r.schedule("t", "@every 60s", tickonce.ScheduleOptions{})
				first := r.lead()
				w.before = once(method, func() { r.at(frozen) })
				did := r.tick(7 * time.Second)
				require.NoError(t, did.err)
				require.Equal(t, every(7*time.Second, 7*time.Second, 64), did.fired("s"))
				require.Equal(t, every(time.Minute, time.Minute, 64), did.fired("t"))
				require.Equal(t, int64(frozen/(7*time.Second)-64), did.skipped("s"))
				require.Zero(t, offset(r.lookup("s").Next)%(7*time.Second))
				require.Greater(t, offset(r.lookup("s").Next), frozen)

				require.Len(t, of(tickonce.EventLeaseLapsed, did.events), 1)
				require.Equal(t, start.Add(frozen), of(tickonce.EventLeaseLapsed, did.events)[0].At)
				require.Empty(t, of(tickonce.EventLeadershipLost, did.events))
				require.Greater(t, r.leader().Term, first.Term)
			})
		})
	}
}

// The same with a taker: the end, nothing fired, and the taker untouched.
func TestL4LeaseTakenByAnotherIsTheEnd(t *testing.T) {
	const frozen = 10 * time.Hour
	for _, method := range []faultstore.Method{faultstore.Renew, faultstore.Due, faultstore.Advance} {
		t.Run("before "+method.String(), func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.schedule("s", "@every 7s", tickonce.ScheduleOptions{})
				r.lead()
				var taken store.Lease
				w.before = once(method, func() {
					r.at(frozen)
					taken = r.steal("b")
				})
				before := r.contents()
				did := r.tick(7 * time.Second)
				require.ErrorIs(t, did.err, tickonce.ErrLeadershipLost)
				require.Equal(t, before, r.contents())
				require.Equal(t, taken, r.leader())
				require.Len(t, of(tickonce.EventLeadershipLost, did.events), 1)
				require.Empty(t, of(tickonce.EventLeaseLapsed, did.events))
			})
		})
	}
}

func TestL4StandByLeadsAgainAfterATaker(t *testing.T) {
	onEachStore(t, tickonce.Config{StandBy: true}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1h", tickonce.ScheduleOptions{})
		r.lead()
		r.at(leaseTTL)
		taken := r.steal("b")
		did := r.tick(leaseTTL)
		require.NoError(t, did.err)
		require.Len(t, of(tickonce.EventLeadershipLost, did.events), 1)
		require.Len(t, of(tickonce.EventStandBy, did.events), 1)
		require.Equal(t, taken, r.leader())
		for did.next < 2*leaseTTL {
			did = r.tick(did.next)
			require.Empty(t, of(tickonce.EventLeadershipLost, did.events), "it is lost once")
		}
		did = r.tick(2 * leaseTTL)
		require.Len(t, of(tickonce.EventLeading, did.events), 1)
		require.Empty(t, of(tickonce.EventLeaseLapsed, did.events), "it was taken, and did not lapse")
	})
}

// A tick is fenced in the same atomic step: one that stalls until its lease is
// over, by a millisecond or by the clock's step back, writes nothing.
func TestL6StalledTickIsRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		at      time.Duration
		refused bool
	}{
		{"the last millisecond of the lease", 10*time.Second + leaseTTL - time.Millisecond, false},
		{"at its expiry", 10*time.Second + leaseTTL, true},
		{"a step back of the slack", 9 * time.Second, false},
		{"a step back that the lease outlasts", 9*time.Second - time.Millisecond, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
				r.tick(0)
				r.at(10 * time.Second)
				r.stepTo(w, faultstore.Due)
				before := r.contents()
				w.before = once(faultstore.Advance, func() { r.at(c.at) })
				_, report := r.step()
				require.Equal(t, "advance", w.take())
				fires := 0
				for range report.Fires() {
					fires++
				}
				for range report.Passed() {
					fires++
				}
				if !c.refused {
					require.Equal(t, 2, fires)
					return
				}
				require.Zero(t, fires, "a report of what was refused")
				require.Equal(t, before, r.contents())
				require.Empty(t, of(tickonce.EventFired, r.take()))
			})
		})
	}
}

func TestL10OwnersDiffer(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		owners := map[string]bool{}
		for range 100 {
			e, err := tickonce.New(r.store, tickonce.Config{Seed: 1, Clock: r.clock})
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(e.Config().Owner), 16)
			for range 3 {
				r.runner = e.NewRunner()
				owner := r.lead().Owner
				require.True(t, strings.HasPrefix(owner, e.Config().Owner))
				require.False(t, owners[owner], "equal tokens make two leaders of two (LK2)")
				owners[owner] = true
				require.NoError(t, r.runner.Stop(r.ctx))
			}
		}
	})
}

// A failed renewal is the end of leading, and the write carries the term: one
// that believes that it leads, for as long as it likes, inserts nothing.
func TestC47BelievingToLeadInsertsNothing(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
		r.tick(0)
		r.at(time.Minute)
		r.stepTo(w, faultstore.Due) // and believes

		r.at(19 * 24 * time.Hour)
		other := r.another()
		fired := len(other.tick(19 * 24 * time.Hour).fires)
		require.Equal(t, 64, fired)
		before := r.contents()
		r.step()
		require.Equal(t, "advance", w.take())
		require.Equal(t, before, r.contents())
		require.ErrorIs(t, r.tick(19*24*time.Hour).err, tickonce.ErrLeadershipLost)
		require.Equal(t, before, r.contents())
	})
}

func TestC49ReplicaThatComesLaterDoesNotFireAgain(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1h", tickonce.ScheduleOptions{})
		r.tick(0)
		require.Len(t, r.tick(time.Hour).fires, 1)
		require.NoError(t, r.runner.Stop(r.ctx))
		require.Empty(t, r.another().tick(time.Hour+200*time.Millisecond).fires)
	})
}

func TestC51NewLeaderStartsFromTheSharedCursor(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
		r.tick(0)
		require.Len(t, r.tick(time.Minute).fires, 1)
		other := r.another() // the first one crashed; nobody fires until its lease is over
		require.ErrorIs(t, other.tick(time.Minute+leaseTTL-time.Millisecond).err, tickonce.ErrLeadershipLost)
		require.Equal(t, every(time.Minute, 2*time.Minute, 4), r.another().tick(5*time.Minute).fired("s"))
	})
}

// A hundred changes of leader at random times, by a clean stop, by a crash and
// by a lease that another one takes, lose and double nothing.
func TestC52ChangesOfLeaderFireTheGrid(t *testing.T) {
	onEachStore(t, tickonce.Config{Batch: 2}, func(t *testing.T, r *rig) {
		for _, name := range []string{"a", "b", "c"} {
			r.schedule(name, "@every 13s", tickonce.ScheduleOptions{})
		}
		draw := newDraw(52)
		fired := map[string][]time.Duration{}
		at := time.Duration(0)
		run := func(until time.Duration) {
			for at < until {
				did := r.tick(at)
				for _, name := range []string{"a", "b", "c"} {
					fired[name] = append(fired[name], did.fired(name)...)
				}
				if did.err != nil {
					at = until
					return
				}
				at = did.next
			}
			at = until
		}
		for range 100 {
			run(at + time.Duration(draw(120_000))*time.Millisecond)
			switch draw(3) {
			case 0:
				require.NoError(t, r.runner.Stop(r.ctx))
			case 1:
				at += time.Duration(draw(90_000)) * time.Millisecond
			}
			r.at(at)
			r.runner = r.another().runner
		}
		at += leaseTTL
		r.crash()
		run(at + time.Minute)
		boundaries := int(r.lookup("a").Next.Sub(start)/(13*time.Second)) - 1
		require.Greater(t, boundaries, 400)
		for _, name := range []string{"a", "b", "c"} {
			require.Equal(t, every(13*time.Second, 13*time.Second, boundaries), fired[name], name)
		}
	})
}

func TestC55ManyRunnersEnqueueOnce(t *testing.T) {
	onEachStore(t, tickonce.Config{StandBy: true}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		var runners []*rig
		for range 5 {
			runners = append(runners, r.another())
		}
		fires := 0
		for at := time.Duration(0); at <= 10*time.Minute; at += time.Second {
			for _, runner := range runners {
				fires += len(runner.tick(at).fires)
			}
		}
		require.Equal(t, 60, fires)
		require.Len(t, r.jobs("q"), 60)
	})
}

// Hosts whose clocks differ by hours, taking turns, fire each boundary once:
// only the store's clock counts.
func TestC57SkewedHostsDoNotFireAgain(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
		for turn := range 10 {
			at := time.Duration(turn) * time.Minute
			r.at(at)
			host := &clock{}
			host.ms.Store(int64(instant(at + time.Duration(turn-5)*3*time.Hour)))
			config := r.config
			config.Clock, config.Owner = host, "host-"+strconv.Itoa(turn)
			e, err := tickonce.New(r.store, config)
			require.NoError(t, err)
			runner := e.NewRunner()
			for range 8 {
				_, _, err := runner.Step(r.ctx)
				require.NoError(t, err)
			}
			require.Len(t, r.jobs("q"), turn)
			require.NoError(t, runner.Stop(r.ctx))
		}
	})
}

func TestC59NothingIsWrittenAfterTheLease(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.schedule("s", "@every 1s", tickonce.ScheduleOptions{})
		r.lead()
		for range 50 {
			r.at(r.now() + time.Second)
			r.stepTo(w, faultstore.Due)
			r.at(r.now() + leaseTTL) // works on, past its lease
			before := r.contents()
			r.step()
			require.Equal(t, "advance", w.take())
			require.Equal(t, before, r.contents())
			require.NoError(t, r.tick(r.now()).err)
		}
	})
}

// Of two that plan the same boundary under one live lease one wins, and only
// that one says that it fired.
func TestC61LostRaceIsNotReportedAsAFire(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		w := r.wire()
		const boundary = 10 * time.Second
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
		r.schedule("t", "@every 10s", tickonce.ScheduleOptions{})
		r.lead()
		r.at(boundary)
		r.stepTo(w, faultstore.Due)
		row := r.row("s")
		tick := store.Tick{
			By: r.leader(), Now: instant(boundary),
			Moves: []store.Move{{ID: row.ID, Rev: row.Rev, Cursor: instant(2 * boundary), DueAt: instant(2 * boundary), Fires: 1}},
			Fires: []store.Fire{{Boundary: instant(boundary)}},
		}
		held, err := r.store.Advance(r.ctx, &tick)
		require.NoError(t, err)
		require.True(t, held)
		require.Equal(t, store.Moved, tick.Moves[0].Outcome)

		r.take()
		did := r.tick(boundary)
		require.Empty(t, did.fired("s"))
		require.Equal(t, []time.Duration{boundary}, did.fired("t"))
		require.Len(t, of(tickonce.EventFired, did.events), 1)
		require.Len(t, did.passed, 1)
		require.Len(t, r.jobs("q"), 2)
	})
}
