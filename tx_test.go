package tickonce_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// txRig is a rig with something of every kind to write.
type txRig struct {
	*rig
	pending, dead, dead2 tickonce.JobID
	claimed, second      *tickonce.Job
}

func newTxRig(t *testing.T, r *rig) *txRig {
	t.Helper()
	x := &txRig{rig: r}
	r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
	r.schedule("paused", "@every 1m", tickonce.ScheduleOptions{})
	_, err := r.Pause(r.ctx, "paused")
	require.NoError(t, err)
	x.dead, x.dead2 = r.fail("d"), r.fail("d")
	r.enqueue("c", tickonce.EnqueueOptions{Priority: 1})
	r.enqueue("c", tickonce.EnqueueOptions{Priority: 1})
	x.claimed, x.second = r.mustClaim(), r.mustClaim()
	x.pending = r.enqueue("p", tickonce.EnqueueOptions{})
	r.take()
	return x
}

// stageAll stages a write of every kind.
func (x *txRig) stageAll(tx *tickonce.Tx) (jobs []*tickonce.TxJob) {
	t := x.t
	t.Helper()
	_, err := tx.Schedule("new", "@every 7s", "q", []byte("p"), tickonce.ScheduleOptions{})
	require.NoError(t, err)
	for _, staged := range []func() (bool, error){
		func() (bool, error) { return tx.Pause("s") },
		func() (bool, error) { return tx.Resume("paused", tickonce.ResumeOptions{}) },
	} {
		ok, err := staged()
		require.NoError(t, err)
		require.True(t, ok)
	}
	enqueued, err := tx.Enqueue("q", []byte("e"), tickonce.EnqueueOptions{Key: "k"})
	require.NoError(t, err)
	posted, err := tx.Outbox("o").Enqueue([]byte("o"), tickonce.OutboxOptions{})
	require.NoError(t, err)
	requeued, err := tx.Requeue("q", x.dead)
	require.NoError(t, err)
	require.NoError(t, tx.Purge("q", x.dead2))
	require.NoError(t, tx.Cancel("q", x.pending))
	require.NoError(t, tx.Ack(x.claimed))
	require.NoError(t, tx.Fail(x.second, errBoom))
	return []*tickonce.TxJob{enqueued, posted, requeued}
}

func TestO7CommitWritesTheWholeBatchInOneCall(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		x := newTxRig(t, r)
		var jobs []*tickonce.TxJob
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			jobs = x.stageAll(tx)
			for _, job := range jobs {
				require.Zero(t, job.ID(), "ids are given at the commit")
				require.False(t, job.Existing())
			}
			require.Empty(t, r.take(), "nothing has happened yet")
			return nil
		}))
		require.Equal(t, "@every 7s", r.lookup("new").Spec)
		require.Equal(t, tickonce.PausedByUser, r.lookup("s").Paused)
		require.Equal(t, tickonce.Active, r.lookup("paused").Paused)
		rows := r.jobs("q")
		require.Len(t, rows, 3, "the second claim dead, the requeued, the enqueued")
		require.Equal(t, store.Dead, rows[0].State)
		require.Equal(t, x.second.ID, rows[0].ID)
		require.Equal(t, jobs[2].ID(), rows[1].ID)
		require.Equal(t, jobs[0].ID(), rows[2].ID)
		entry := r.jobs(outboxQueue)[0]
		require.Equal(t, jobs[1].ID(), entry.ID)
		require.Equal(t, "o", string(entry.Payload))
		require.Equal(t, store.Stamps{VisibilityMS: 60_000, MaxAttempts: 5, BaseBackoffMS: 5_000}, entry.Stamps)
		r.queue()

		var kinds []tickonce.EventKind
		for _, event := range r.take() {
			kinds = append(kinds, event.Kind)
			require.Equal(t, start, event.At)
		}
		require.Equal(t, []tickonce.EventKind{
			tickonce.EventScheduled, tickonce.EventPaused, tickonce.EventResumed, tickonce.EventPurged, tickonce.EventCancelled,
			tickonce.EventDone, tickonce.EventDied, tickonce.EventEnqueued, tickonce.EventEnqueued, tickonce.EventRequeued,
		}, kinds)

		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			job, err := tx.Enqueue("q", nil, tickonce.EnqueueOptions{Key: "k"})
			jobs[1] = job
			return err
		}))
		require.Equal(t, jobs[0].ID(), jobs[1].ID())
		require.True(t, jobs[1].Existing())
		require.Empty(t, r.take(), "nothing was written")
	})
}

func TestO7CallsOfATransaction(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		w := r.wire()
		x := newTxRig(t, r)
		w.take()
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			x.stageAll(tx)
			require.Equal(t, "schedules schedules schedules", w.take(), "one read for each schedule")
			_, err := tx.Unschedule("new")
			require.NoError(t, err)
			require.Empty(t, w.take())
			return nil
		}))
		require.Equal(t, "commit", w.take())
		require.NoError(t, r.Tx(r.ctx, func(*tickonce.Tx) error { return nil }))
		require.Empty(t, w.take(), "an empty one makes no call")
	})
}

// However fn ends without success, no call is made and nothing is written.
func TestO7Rollback(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(r *rig, fn func(*tickonce.Tx) error)
		end  func() error
	}{
		{"an error", func(r *rig, fn func(*tickonce.Tx) error) {
			require.Equal(r.t, errBoom, r.Tx(r.ctx, fn))
		}, func() error { return errBoom }},
		{"a panic", func(r *rig, fn func(*tickonce.Tx) error) {
			require.PanicsWithValue(r.t, "boom", func() { _ = r.Tx(r.ctx, fn) })
		}, func() error { panic("boom") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				w := r.wire()
				x := newTxRig(t, r)
				before := r.contents()
				var kept *tickonce.Tx
				var jobs []*tickonce.TxJob
				c.run(r, func(tx *tickonce.Tx) error {
					kept = tx
					jobs = x.stageAll(tx)
					w.take()
					return c.end()
				})
				require.Empty(t, w.take())
				require.Equal(t, before, r.contents())
				require.Empty(t, r.take())
				require.Zero(t, jobs[0].ID())
				_, err := kept.Pause("s")
				require.ErrorIs(t, err, tickonce.ErrTxDone)
				require.NoError(t, x.claimed.Ack(r.ctx), "the claim is live")
			})
		})
	}
}

// Whatever of the batch is refused at the commit, nothing of it is written.
func TestO7RefusedCommitWritesNothing(t *testing.T) {
	for _, c := range []struct {
		name      string
		meanwhile func(x *txRig)
		err       error
		schedule  string
		queue     string
	}{
		{"a schedule that it changes was changed", func(x *txRig) {
			x.tamper("s", func(row *store.Schedule) { row.Payload = []byte("new") })
		}, tickonce.ErrConflict, "s", ""},
		{"a schedule that it changes was removed", func(x *txRig) {
			_, err := x.Unschedule(x.ctx, "s")
			require.NoError(x.t, err)
		}, tickonce.ErrConflict, "s", ""},
		{"a schedule that it creates was created", func(x *txRig) {
			x.schedule("new", "@every 7s", tickonce.ScheduleOptions{})
		}, tickonce.ErrConflict, "new", ""},
		{"a claim lapsed", func(x *txRig) { x.at(5*time.Minute + time.Millisecond) }, tickonce.ErrClaimLost, "", ""},
		{"a claim was settled", func(x *txRig) {
			require.NoError(x.t, x.second.Ack(x.ctx))
		}, tickonce.ErrClaimLost, "", ""},
		{"a job that it cancels is gone", func(x *txRig) {
			_, err := x.Cancel(x.ctx, "q", x.pending)
			require.NoError(x.t, err)
		}, tickonce.ErrNotFound, "", "q"},
		{"a job that it requeues is gone", func(x *txRig) {
			require.NoError(x.t, x.Purge(x.ctx, "q", x.dead))
		}, tickonce.ErrNotFound, "", "q"},
		{"a job that it purges is gone", func(x *txRig) {
			_, err := x.Requeue(x.ctx, "q", x.dead2)
			require.NoError(x.t, err)
		}, tickonce.ErrNotFound, "", "q"},
		{"the queue is full", func(x *txRig) {
			for range 5 {
				x.enqueue("p", tickonce.EnqueueOptions{})
			}
		}, tickonce.ErrLimit, "", "q"},
		{"there are as many schedules as are allowed", func(x *txRig) {
			x.schedule("third", "@every 1s", tickonce.ScheduleOptions{})
		}, tickonce.ErrLimit, "new", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Limits: tickonce.Limits{QueueLength: 10, Schedules: 3}}, func(t *testing.T, r *rig) {
				x := newTxRig(t, r)
				var before contents
				var jobs []*tickonce.TxJob
				err := r.Tx(r.ctx, func(tx *tickonce.Tx) error {
					for range 3 {
						_, err := tx.Enqueue("q", nil, tickonce.EnqueueOptions{})
						require.NoError(t, err)
					}
					jobs = x.stageAll(tx)
					c.meanwhile(x)
					before = r.contents()
					r.take()
					return nil
				})
				require.ErrorIs(t, err, c.err)
				require.Equal(t, [...]string{"transaction", c.schedule, c.queue},
					[...]string{opError(t, err).Op, opError(t, err).Schedule, opError(t, err).Queue})
				require.Equal(t, before, r.contents())
				lost := r.take()
				if c.err == tickonce.ErrClaimLost {
					require.Len(t, lost, 1, "as the job's own method tells it")
					require.Equal(t, tickonce.EventClaimLost, lost[0].Kind)
					require.Contains(t, []tickonce.JobID{x.claimed.ID, x.second.ID}, lost[0].Job)
					lost = nil
				}
				require.Empty(t, lost)
				require.Zero(t, jobs[0].ID())
			})
		})
	}
}

// A row that was only read guards the commit like one that is written; so does
// the absence of one.
func TestO7WhatWasReadMustStillBeSo(t *testing.T) {
	for _, c := range []struct {
		name      string
		read      func(tx *tickonce.Tx) error
		meanwhile func(r *rig) error
		conflict  bool
	}{
		{"a schedule, changed", lookupTx("s"), func(r *rig) error {
			_, err := r.Pause(r.ctx, "s")
			return err
		}, true},
		{"a schedule, removed and added again", lookupTx("s"), func(r *rig) error {
			_, err := r.Unschedule(r.ctx, "s")
			r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
			return err
		}, true},
		{"an absence, ended", lookupTx("new"), func(r *rig) error {
			r.schedule("new", "@every 1m", tickonce.ScheduleOptions{})
			return nil
		}, true},
		{"a pause that changed nothing", func(tx *tickonce.Tx) error {
			changed, err := tx.Pause("paused")
			if changed {
				return errors.New("it was paused already")
			}
			return err
		}, func(r *rig) error {
			_, err := r.Resume(r.ctx, "paused", tickonce.ResumeOptions{})
			return err
		}, true},
		{"an absence that it filled and restored, ended", func(tx *tickonce.Tx) error {
			if _, err := tx.Schedule("new", "@every 1s", "q", nil, tickonce.ScheduleOptions{}); err != nil {
				return err
			}
			_, err := tx.Unschedule("new")
			return err
		}, func(r *rig) error {
			r.schedule("new", "@every 1m", tickonce.ScheduleOptions{})
			return nil
		}, true},
		{"one that was fired meanwhile", lookupTx("s"), func(r *rig) error {
			return r.tick(time.Minute).err
		}, true},
		{"another schedule", lookupTx("s"), func(r *rig) error {
			_, err := r.Unschedule(r.ctx, "paused")
			return err
		}, false},
		{"a pause that changed nothing meanwhile", lookupTx("paused"), func(r *rig) error {
			_, err := r.Pause(r.ctx, "paused")
			return err
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				newTxRig(t, r)
				var before contents
				err := r.Tx(r.ctx, func(tx *tickonce.Tx) error {
					require.NoError(t, c.read(tx))
					_, err := tx.Enqueue("mark", nil, tickonce.EnqueueOptions{})
					require.NoError(t, err)
					require.NoError(t, c.meanwhile(r))
					before = r.contents()
					return nil
				})
				if c.conflict {
					require.ErrorIs(t, err, tickonce.ErrConflict)
					require.Equal(t, before, r.contents())
				} else {
					require.NoError(t, err)
					require.Len(t, r.jobs("mark"), 1)
				}
			})
		})
	}
}

func lookupTx(name string) func(tx *tickonce.Tx) error {
	return func(tx *tickonce.Tx) error {
		_, _, err := tx.Lookup(name)
		return err
	}
}

// Reads see what was staged over what is committed, through every turn.
func TestO7OverlayShowsWhatWasStaged(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
		before := r.row("s")
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			see := func(name string) tickonce.Schedule {
				s, ok, err := tx.Lookup(name)
				require.NoError(t, err)
				require.True(t, ok, name)
				return s
			}
			gone := func(name string) {
				_, ok, err := tx.Lookup(name)
				require.NoError(t, err)
				require.False(t, ok, name)
			}
			gone("new")
			staged, err := tx.Schedule("new", "@every 5s", "q", []byte("a"), tickonce.ScheduleOptions{})
			require.NoError(t, err)
			require.Equal(t, staged, see("new"))
			_, err = tx.Schedule("new", "@every 5s", "other", []byte("b"), tickonce.ScheduleOptions{})
			require.NoError(t, err)
			require.Equal(t, "b", string(see("new").Payload))
			require.Equal(t, staged.Next, see("new").Next)

			changed, err := tx.Pause("new")
			require.NoError(t, err)
			require.True(t, changed)
			require.Equal(t, tickonce.PausedByUser, see("new").Paused)
			changed, err = tx.Pause("new")
			require.NoError(t, err)
			require.False(t, changed)
			removed, err := tx.Unschedule("new")
			require.NoError(t, err)
			require.True(t, removed)
			gone("new")
			removed, err = tx.Unschedule("new")
			require.NoError(t, err)
			require.False(t, removed)

			_, err = tx.Unschedule("s")
			require.NoError(t, err)
			gone("s")
			require.Equal(t, before, r.row("s"), "nobody else sees it")
			return nil
		}))
		var names []string
		for s, err := range r.Schedules(r.ctx) {
			require.NoError(t, err)
			names = append(names, s.Name)
		}
		require.Empty(t, names)
	})
}

// Removed and added again in one transaction is another incarnation, one put.
func TestO7RemovedAndAddedAgain(t *testing.T) {
	onEachStore(t, tickonce.Config{Limits: tickonce.Limits{Schedules: 1}}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
		before := r.row("s")
		r.at(30 * time.Second)
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			_, err := tx.Unschedule("s")
			require.NoError(t, err)
			_, err = tx.Schedule("s", "@every 1m", "q", nil, tickonce.ScheduleOptions{})
			return err
		}))
		row := r.row("s")
		require.Greater(t, row.ID, before.ID)
		require.Equal(t, store.Rev(1), row.Rev)
		require.Equal(t, instant(30*time.Second), row.Anchor, "a new grid")
		require.Empty(t, r.tick(time.Minute).fires, "no boundary of the old one fires")
		require.Len(t, r.tick(90*time.Second).fires, 1)
	})
}

func TestO7JobEndsOnceInATransaction(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		x := newTxRig(t, r)
		other := r.another()
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			require.NoError(t, tx.Retry(x.claimed, errBoom))
			require.ErrorIs(t, tx.Ack(x.claimed), tickonce.ErrClaimLost)
			require.ErrorIs(t, tx.Cancel("q", x.claimed.ID), tickonce.ErrNotFound)
			require.NoError(t, tx.Cancel("q", x.second.ID))
			require.ErrorIs(t, tx.Fail(x.second, nil), tickonce.ErrClaimLost)
			require.NoError(t, tx.Purge("q", x.dead))
			_, err := tx.Requeue("q", x.dead)
			require.ErrorIs(t, err, tickonce.ErrNotFound)
			return nil
		}))
		require.Equal(t, store.Pending, r.jobs("q")[1].State)
		require.Equal(t, "boom", r.jobs("q")[1].LastError)

		job := r.claim()
		require.NoError(t, other.Tx(r.ctx, func(tx *tickonce.Tx) error {
			require.ErrorIs(t, tx.Ack(job), tickonce.ErrInvalidOption)
			return nil
		}))
		require.NoError(t, job.Ack(r.ctx))
	})
}

// Nothing is locked while fn runs: it may call the engine, transact inside,
// and run the schedules.
func TestO7FunctionMayCallTheEngine(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		x := newTxRig(t, r)
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			_, err := tx.Enqueue("outer", nil, tickonce.EnqueueOptions{})
			require.NoError(t, err)
			require.NoError(t, x.claimed.Heartbeat(r.ctx, time.Hour))
			r.enqueue("p", tickonce.EnqueueOptions{})
			require.NoError(t, r.Tx(r.ctx, func(inner *tickonce.Tx) error {
				_, err := inner.Enqueue("inner", nil, tickonce.EnqueueOptions{})
				return err
			}))
			require.Len(t, r.tick(time.Minute).fires, 1)
			return tx.Ack(x.claimed)
		}))
		require.Len(t, r.jobs("outer"), 1)
		require.Len(t, r.jobs("inner"), 1)
	})
}

func TestO7TransactionIsOverAfterItsFunction(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		x := newTxRig(t, r)
		var tx *tickonce.Tx
		require.NoError(t, r.Tx(r.ctx, func(current *tickonce.Tx) error {
			tx = current
			return nil
		}))
		w := r.wire()
		errs := map[string]error{}
		_, errs["Schedule"] = tx.Schedule("s", "@every 1s", "q", nil, tickonce.ScheduleOptions{})
		_, errs["Unschedule"] = tx.Unschedule("s")
		_, errs["Pause"] = tx.Pause("s")
		_, errs["Resume"] = tx.Resume("s", tickonce.ResumeOptions{})
		_, _, errs["Lookup"] = tx.Lookup("s")
		_, errs["Enqueue"] = tx.Enqueue("q", nil, tickonce.EnqueueOptions{})
		_, errs["Outbox"] = tx.Outbox("o").Enqueue(nil, tickonce.OutboxOptions{})
		_, errs["Requeue"] = tx.Requeue("q", x.dead)
		errs["Purge"] = tx.Purge("q", x.dead)
		errs["Cancel"] = tx.Cancel("q", x.pending)
		errs["Ack"] = tx.Ack(x.claimed)
		errs["Retry"] = tx.Retry(x.claimed, nil)
		errs["Fail"] = tx.Fail(x.claimed, nil)
		require.Len(t, errs, 13)
		for call, err := range errs {
			require.ErrorIs(t, err, tickonce.ErrTxDone, call)
		}
		require.Empty(t, w.take())
	})
}

// A refused call stages nothing, and the transaction goes on without it.
func TestO7RefusedCallStagesNothing(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			_, err := tx.Schedule("s", "* * * * *", "q", nil, tickonce.ScheduleOptions{})
			require.ErrorIs(t, err, tickonce.ErrInvalidSpec)
			_, err = tx.Schedule("__alkstore_x", "@every 1s", "q", nil, tickonce.ScheduleOptions{})
			require.ErrorIs(t, err, tickonce.ErrReservedName)
			for _, call := range []func() (bool, error){
				func() (bool, error) { return tx.Unschedule("__alkstore_x") },
				func() (bool, error) { return tx.Pause("") },
				func() (bool, error) { return tx.Resume("", tickonce.ResumeOptions{}) },
			} {
				_, err := call()
				require.Error(t, err)
			}
			_, err = tx.Enqueue("q", []byte("p"), tickonce.EnqueueOptions{})
			return err
		}))
		require.Len(t, r.jobs("q"), 1)
		require.Empty(t, r.contents().Schedules)
	})
}

func TestO7StoreErrors(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 1m", tickonce.ScheduleOptions{})
		w := r.wire()
		w.lose = offline
		err := r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			_, err := tx.Pause("s")
			require.ErrorIs(t, err, faultstore.ErrLost)
			require.Equal(t, "s", opError(t, err).Schedule)
			return err
		})
		require.Equal(t, "pause", opError(t, err).Op)

		w.lose = first(1, faultstore.Commit, faultstore.LoseReply)
		err = r.Tx(r.ctx, func(tx *tickonce.Tx) error {
			_, err := tx.Pause("s")
			return err
		})
		require.Equal(t, "transaction", opError(t, err).Op)
		require.Equal(t, "s", opError(t, err).Schedule)
		require.Equal(t, tickonce.PausedByUser, r.lookup("s").Paused, "the outcome is unknown: here it was written")

		ctx, cancel := context.WithCancel(r.ctx)
		err = r.Tx(ctx, func(tx *tickonce.Tx) error {
			_, err := tx.Resume("s", tickonce.ResumeOptions{})
			cancel()
			return err
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, tickonce.PausedByUser, r.lookup("s").Paused)
	})
}

// Read, changed and written: each transaction either counts or says that it
// did not.
func TestO7ManyTransactionsLoseNoUpdate(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.schedule("counter", "@every 1h", tickonce.ScheduleOptions{})
		conflicts := 0
		for range 50 {
			err := r.Tx(r.ctx, func(tx *tickonce.Tx) error {
				s, _, err := tx.Lookup("counter")
				require.NoError(t, err)
				if conflicts < 20 && len(s.Payload)%2 == 0 {
					r.tamper("counter", func(row *store.Schedule) { row.Priority++ })
				}
				_, err = tx.Schedule("counter", "@every 1h", "q", append(s.Payload, 'x'), s.Options)
				return err
			})
			if errors.Is(err, tickonce.ErrConflict) {
				conflicts++
				continue
			}
			require.NoError(t, err)
		}
		require.Equal(t, 20, conflicts)
		require.Len(t, r.lookup("counter").Payload, 50-conflicts+len("counter"))
	})
}

func TestO7ATransactionIsBounded(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		before := r.contents()
		enqueue := func(n int) error {
			return r.Tx(r.ctx, func(tx *tickonce.Tx) error {
				for range n {
					if _, err := tx.Enqueue("q", nil, tickonce.EnqueueOptions{}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		err := enqueue(10_001)
		require.EqualError(t, err, "invalid option: the schedules and jobs of the transaction are 10001, want at most 10000")
		require.Equal(t, before, r.contents())
		tickonce.LimitBatchPayload(r.Engine, 100)
		payloads := func(job, schedule int) error {
			return r.Tx(r.ctx, func(tx *tickonce.Tx) error {
				_, err := tx.Enqueue("q", make([]byte, job), tickonce.EnqueueOptions{})
				require.NoError(t, err)
				_, err = tx.Schedule("large", "@every 1h", "q", make([]byte, schedule), tickonce.ScheduleOptions{})
				return err
			})
		}
		require.EqualError(t, payloads(41, 60), "invalid option: the payloads of the transaction are 101 bytes long, want at most 100")
		require.Equal(t, before, r.contents())
		require.NoError(t, payloads(40, 60))
		require.EqualError(t, r.Purge(r.ctx, "q", make([]tickonce.JobID, 10_001)...), "invalid option: jobs are 10001, want at most 10000")
	})
}
