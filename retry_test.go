package tickonce_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// retryWaits are the waits before the second, third and fourth attempt.
var retryWaits = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}

// failing are the calls of a run that can fail, with the phase that their
// error names and the calls of the attempt that follows.
var failing = []struct {
	method faultstore.Method
	phase  tickonce.Phase
	again  string // up to the failing call
}{
	{faultstore.Acquire, tickonce.PhaseAcquire, "acquire"},
	{faultstore.Schedules, tickonce.PhaseSelect, "renew schedules"},
	{faultstore.Renew, tickonce.PhaseRenew, "renew"},
	{faultstore.Due, tickonce.PhaseSelect, "renew due"},
	{faultstore.Advance, tickonce.PhaseAdvance, "renew due advance"},
}

// upTo is a rig whose runner is about to make the call, at ten seconds, with a
// schedule "s" due.
func upTo(t *testing.T, r *rig, method faultstore.Method) *wire {
	t.Helper()
	w := r.wire()
	r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
	if method != faultstore.Acquire && method != faultstore.Schedules {
		r.tick(0)
	}
	r.at(10 * time.Second)
	w.take()
	r.take()
	return w
}

// A tick, or the first acquire, whose call fails k times in a row is begun
// again from its renewal, three times at most.
func TestR1FailedTickIsBegunAgain(t *testing.T) {
	for _, c := range failing {
		for k := 1; k <= 4; k++ {
			t.Run(c.method.String()+" fails "+strconv.Itoa(k)+" times", func(t *testing.T) {
				onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
					w := upTo(t, r, c.method)
					w.lose = first(k, c.method, faultstore.LoseRequest)
					at := 10 * time.Second
					did := r.tick(at)
					for i, wait := range retryWaits[:min(k, len(retryWaits))] {
						retrying := of(tickonce.EventRetrying, did.events)
						require.Len(t, retrying, 1)
						require.ErrorIs(t, retrying[0].Err, faultstore.ErrLost)
						retrying[0].Owner, retrying[0].Err = "", nil
						require.Equal(t, tickonce.Event{
							Kind: tickonce.EventRetrying, At: start.Add(at), Phase: c.phase, Count: int64(i + 1), Wait: wait,
						}, retrying[0])
						require.Equal(t, at+wait, did.next)

						w.take()
						at = did.next
						require.Equal(t, at, r.tick(at-time.Millisecond).next)
						require.Empty(t, w.take(), "a call before the wait was over")
						did = r.tick(at)
						require.True(t, strings.HasPrefix(w.take(), c.again))
					}
					require.Empty(t, of(tickonce.EventRetrying, did.events))
					if k > len(retryWaits) {
						require.ErrorIs(t, did.err, faultstore.ErrLost)
						require.Empty(t, r.jobs("q"))
						return
					}
					require.NoError(t, did.err)
					require.Greater(t, did.next, at)
					require.Len(t, r.jobs("q"), 1)
				})
			})
		}
	}
}

// The report of a step whose call failed says so.
func TestR1ReportCarriesTheErrorThatIsRetried(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		w := upTo(t, r, faultstore.Due)
		r.step()
		w.lose = offline
		_, report := r.step()
		require.Equal(t, tickonce.PhaseSelect, report.Phase)
		require.ErrorIs(t, report.Err, faultstore.ErrLost)
	})
}

func TestR2LostLeadershipIsNotRetried(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.steal("b")
		w := r.wire()
		did := r.tick(0)
		require.ErrorIs(t, did.err, tickonce.ErrLeadershipLost)
		require.Equal(t, "acquire", w.take())
		require.Empty(t, of(tickonce.EventRetrying, did.events))
	})
}

// broken is a store with a programming error.
type broken struct{ store.Store }

func (broken) Due(context.Context, []store.Schedule) (store.Due, error) { panic("broken") }

func TestR2ProgrammingErrorIsNotRetried(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.on(broken{r.store})
		require.PanicsWithValue(t, "broken", func() { r.tick(0) })
		require.Empty(t, of(tickonce.EventRetrying, r.take()))
	})
}

// forbidden is a store that lets nobody write a tick.
type forbidden struct{ store.Store }

func (forbidden) Advance(context.Context, *store.Tick) (bool, error) {
	return false, fmt.Errorf("no privilege: %w", store.ErrPermanent)
}

func TestR2PermanentErrorIsNotRetried(t *testing.T) {
	for _, standBy := range []bool{false, true} {
		onEachStore(t, tickonce.Config{Poll: -1, StandBy: standBy}, func(t *testing.T, r *rig) {
			r.schedule("s", "@every 10s", tickonce.ScheduleOptions{})
			r.on(forbidden{r.store})
			did := r.tick(10 * time.Second)
			require.Empty(t, of(tickonce.EventRetrying, did.events))
			if standBy {
				require.NoError(t, did.err)
				require.Len(t, of(tickonce.EventStandBy, did.events), 1)
				require.Equal(t, 15*time.Second, did.next)
				return
			}
			require.ErrorIs(t, did.err, store.ErrPermanent)
			require.EqualError(t, did.err, `run schedules: advance: schedule "s": no privilege: permanent error of the store`)
		})
	}
}

// A retry never masks a lost lease: it is renewed before each attempt.
func TestR3LeaseStolenDuringTheBackoff(t *testing.T) {
	for _, method := range []faultstore.Method{faultstore.Renew, faultstore.Due, faultstore.Advance} {
		t.Run(method.String(), func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
				w := upTo(t, r, method)
				w.lose = first(1, method, faultstore.LoseRequest)
				did := r.tick(10 * time.Second)
				before := r.contents()
				released, err := r.store.Release(r.ctx, r.leader())
				require.NoError(t, err)
				require.True(t, released)
				stolen := r.steal("thief")

				w.take()
				did = r.tick(did.next)
				require.ErrorIs(t, did.err, tickonce.ErrLeadershipLost)
				require.Equal(t, "renew acquire", w.take())
				require.Equal(t, before, r.contents())
				require.Equal(t, stolen, r.leader())
			})
		})
	}
}

func TestR3LeaseThatLapsesDuringTheBackoffIsAcquiredAnew(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		w := upTo(t, r, faultstore.Advance)
		w.lose = first(1, faultstore.Advance, faultstore.LoseRequest)
		r.tick(10 * time.Second)
		w.take()
		did := r.tick(2 * time.Minute) // the host slept
		require.Equal(t, "renew acquire due advance", w.take())
		require.Equal(t, every(10*time.Second, 10*time.Second, 12), did.fired("s"))
	})
}

func TestR4StopDuringTheBackoff(t *testing.T) {
	for _, c := range failing {
		t.Run(c.method.String(), func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
				w := upTo(t, r, c.method)
				w.lose = first(1, c.method, faultstore.LoseRequest)
				did := r.tick(10 * time.Second)
				before := r.contents()
				require.Greater(t, did.next, r.now())
				ctx, cancel := context.WithCancel(r.ctx)
				cancel()
				next, _, err := r.runner.Step(ctx)
				require.NoError(t, err)
				require.Zero(t, next)
				require.Zero(t, r.leader())
				require.Equal(t, before, r.contents())
			})
		})
	}
}

// A tick whose reply was lost is begun again and fires nothing twice; one
// whose request was lost has fired nothing.
func TestR5RetriedTickFiresOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		verdict faultstore.Verdict
		fired   int
	}{{"request lost", faultstore.LoseRequest, 0}, {"reply lost", faultstore.LoseReply, 3}} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
				w := upTo(t, r, faultstore.Advance)
				r.tick(10 * time.Second)
				w.lose = first(1, faultstore.Advance, c.verdict)
				at := 40 * time.Second
				did := r.tick(at)
				require.Len(t, r.jobs("q"), 1+c.fired)
				require.Empty(t, of(tickonce.EventFired, did.events), "an outcome that nobody knows")
				did = r.tick(did.next)
				require.NoError(t, did.err)
				require.Len(t, did.fires, 3-c.fired)
				var boundaries []time.Duration
				for _, job := range r.jobs("q") {
					boundaries = append(boundaries, time.Duration(job.FireAt-instant(0))*time.Millisecond)
				}
				require.Equal(t, seconds(10, 20, 30, 40), boundaries)
			})
		})
	}
}

// A whole tick resets the budget, an idle one too; a renewal alone, or a look,
// does not.
func TestR6SuccessResetsTheBudget(t *testing.T) {
	for _, c := range []struct {
		name   string
		method faultstore.Method
	}{{"a tick that fires", faultstore.Advance}, {"an idle tick", faultstore.Due}} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
				w := upTo(t, r, c.method)
				at := 10 * time.Second
				for range 5 {
					w.lose = first(3, c.method, faultstore.LoseRequest)
					var waits []time.Duration
					did := ticked{next: at}
					for len(waits) < 4 {
						at = did.next
						did = r.tick(at)
						require.NoError(t, did.err)
						waits = append(waits, did.next-at)
						if len(of(tickonce.EventRetrying, did.events)) == 0 {
							break
						}
					}
					require.Equal(t, retryWaits, waits[:3])
					require.Len(t, waits, 4)
					at = did.next
				}
			})
		})
	}
}

// A tick that leaves more due is a success as well.
func TestR6BacklogResetsTheBudgetAtEachTick(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1, Batch: 1}, func(t *testing.T, r *rig) {
		w := r.wire()
		for _, name := range []string{"a", "b", "c", "d"} {
			r.schedule(name, "@every 10s", tickonce.ScheduleOptions{})
		}
		r.tick(0)
		calls := 0
		w.lose = func(op faultstore.Op) faultstore.Verdict {
			if op.Method != faultstore.Advance {
				return faultstore.Pass
			}
			if calls++; calls%4 == 0 {
				return faultstore.Pass
			}
			return faultstore.LoseRequest
		}
		did := ticked{next: 10 * time.Second}
		for did.next < 20*time.Second {
			did = r.tick(did.next)
			require.NoError(t, did.err)
		}
		require.Len(t, r.jobs("q"), 4)
		require.Equal(t, 16, calls)
	})
}

func TestR7ErrorNamesPhaseAndSchedule(t *testing.T) {
	for _, c := range []struct {
		method   faultstore.Method
		phase    tickonce.Phase
		more     int // schedules due beside "s"
		schedule string
		rows     int
		text     string
	}{
		{faultstore.Acquire, tickonce.PhaseAcquire, 0, "", 0, "run schedules: acquire: store call lost: "},
		{faultstore.Renew, tickonce.PhaseRenew, 0, "", 0, "run schedules: renew: store call lost: "},
		{faultstore.Due, tickonce.PhaseSelect, 0, "", 0, "run schedules: select: store call lost: "},
		{faultstore.Advance, tickonce.PhaseAdvance, 0, "s", 1, `run schedules: advance: schedule "s": store call lost: `},
		{faultstore.Advance, tickonce.PhaseAdvance, 2, "s", 3, `run schedules: advance: schedule "s" and 2 more: store call lost: `},
	} {
		t.Run(c.text, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
				w := upTo(t, r, c.method)
				r.at(0)
				for i := range c.more {
					r.schedule("t"+strconv.Itoa(i), "@every 10s", tickonce.ScheduleOptions{})
				}
				w.lose = first(4, c.method, faultstore.LoseRequest)
				did := ticked{next: 10 * time.Second}
				for did.err == nil {
					did = r.tick(did.next)
				}
				op := opError(t, did.err)
				require.Equal(t, tickonce.OpError{
					Op: "run schedules", Phase: c.phase, Schedule: c.schedule, Rows: c.rows, Err: op.Err,
				}, *op)
				require.ErrorIs(t, did.err, faultstore.ErrLost)
				require.True(t, strings.HasPrefix(did.err.Error(), c.text), did.err.Error())
				stopped := of(tickonce.EventStopped, did.events)
				require.Len(t, stopped, 1)
				require.Equal(t, did.err, stopped[0].Err)
			})
		})
	}
}

// On the error exit the lease is left to lapse: a new runner loses until then.
func TestR8ErrorExitLeavesTheLease(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		w := upTo(t, r, faultstore.Renew)
		lease := r.leader()
		w.lose = first(4, faultstore.Renew, faultstore.LoseRequest)
		did := ticked{next: 10 * time.Second}
		for did.err == nil {
			did = r.tick(did.next)
		}
		require.Zero(t, w.count(faultstore.Release))
		require.Equal(t, lease, r.leader())
		for _, at := range []time.Duration{r.now(), leaseTTL - time.Millisecond} {
			r.runner = r.NewRunner()
			require.ErrorIs(t, r.tick(at).err, tickonce.ErrLeadershipLost)
		}
		r.runner = r.NewRunner()
		require.NoError(t, r.tick(leaseTTL).err)
		require.Greater(t, r.leader().Term, lease.Term)
	})
}

// An error at any call of the start ends in leading or in the error, never in
// a leader that fires nothing.
func TestC77ErrorAtTheStart(t *testing.T) {
	for n := range 12 {
		for _, verdict := range []faultstore.Verdict{faultstore.LoseRequest, faultstore.LoseReply} {
			onEachStore(t, tickonce.Config{Poll: -1, Batch: 1}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
				calls := 0
				w.lose = func(faultstore.Op) faultstore.Verdict {
					if calls++; calls == n+1 {
						return verdict
					}
					return faultstore.Pass
				}
				did := ticked{}
				for did.next < 2*time.Minute {
					did = r.tick(did.next)
					require.NoError(t, did.err)
				}
				require.Greater(t, calls, n)
				require.Len(t, r.jobs("q"), 1)
			})
		}
	}
}

// Fire and advance are one step: whichever call an outage hits, and whether
// that one was applied or not, no boundary is lost or doubled.
func TestC85OutageAtAnyCallLosesNothing(t *testing.T) {
	for n := range 40 {
		for _, verdict := range []faultstore.Verdict{faultstore.LoseRequest, faultstore.LoseReply} {
			onEachStore(t, tickonce.Config{Poll: -1, StandBy: true}, func(t *testing.T, r *rig) {
				w := r.wire()
				r.schedule("a", "@every 5s", tickonce.ScheduleOptions{})
				r.schedule("b", "@every 7s", tickonce.ScheduleOptions{})
				calls := 0
				w.lose = func(faultstore.Op) faultstore.Verdict {
					if calls++; n < calls && calls <= n+6 {
						return verdict
					}
					return faultstore.Pass
				}
				did := ticked{}
				for did.next < 5*time.Minute+time.Second {
					did = r.tick(did.next)
				}
				fired := map[string][]time.Duration{}
				for _, job := range r.jobs("q") {
					fired[job.Schedule] = append(fired[job.Schedule], time.Duration(job.FireAt-instant(0))*time.Millisecond)
				}
				require.Equal(t, every(5*time.Second, 5*time.Second, 60), fired["a"])
				require.Equal(t, every(7*time.Second, 7*time.Second, 42), fired["b"])
			})
		}
	}
}
