package tickonce_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

var errBoom = errors.New("boom")

// settles are the calls that end or renew a claim.
var settles = []struct {
	name string
	call func(ctx context.Context, j *tickonce.Job) error
}{
	{"ack", func(ctx context.Context, j *tickonce.Job) error { return j.Ack(ctx) }},
	{"retry", func(ctx context.Context, j *tickonce.Job) error { return j.Retry(ctx, errBoom) }},
	{"retry after", func(ctx context.Context, j *tickonce.Job) error { return j.RetryAfter(ctx, errBoom, time.Second) }},
	{"fail", func(ctx context.Context, j *tickonce.Job) error { return j.Fail(ctx, errBoom) }},
	{"heartbeat", func(ctx context.Context, j *tickonce.Job) error { return j.Heartbeat(ctx, time.Second) }},
}

func TestQU2ClaimCarriesTheJob(t *testing.T) {
	onEachStore(t, tickonce.Config{Poll: -1}, func(t *testing.T, r *rig) {
		r.schedule("s", "@every 10s", tickonce.ScheduleOptions{Priority: 5, MaxAttempts: 4, Visibility: time.Minute})
		r.tick(0)
		r.tick(12 * time.Second)
		r.at(15 * time.Second)
		job := r.mustClaim()
		require.Equal(t, "s", string(job.Payload))
		require.Equal(t, [...]any{"q", "s", 1, 4, int16(5), ""},
			[...]any{job.Queue, job.Schedule, job.Attempt, job.MaxAttempts, job.Priority, job.LastError})
		require.Equal(t, seconds(10, 12, 12, 75),
			[]time.Duration{offset(job.Boundary), offset(job.Enqueued), offset(job.RunAt), offset(job.Deadline)})
		require.Equal(t, time.UTC, job.Boundary.Location())
		row := r.jobs("q")[0]
		require.Equal(t, "w", row.Worker)
		require.Equal(t, int32(1), row.Attempts)
		require.Equal(t, instant(75*time.Second), row.Deadline)

		job.Payload[0] = 'X'
		require.Equal(t, "s", string(r.jobs("q")[0].Payload), "a copy of its own")
		require.NoError(t, job.Retry(r.ctx, errBoom))
		r.at(time.Hour)
		job = r.mustClaim()
		require.Equal(t, "boom", job.LastError)
		require.Equal(t, "s", string(job.Payload))
		require.Equal(t, 2, job.Attempt)
	})
}

func TestQU2PayloadIsCopiedAtTheEnqueue(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		payload := []byte("before")
		_, err := r.Enqueue(r.ctx, "q", payload, tickonce.EnqueueOptions{})
		require.NoError(t, err)
		copy(payload, "after!")
		require.Equal(t, "before", string(r.mustClaim().Payload))
	})
}

// A claim holds up to its deadline and not a millisecond longer; only then is
// the job handed out again.
func TestQU3ClaimHoldsUpToItsDeadline(t *testing.T) {
	for _, s := range settles {
		t.Run(s.name, func(t *testing.T) {
			for _, c := range []struct {
				at   time.Duration
				lost bool
			}{{time.Minute - time.Millisecond, false}, {time.Minute, false}, {time.Minute + time.Millisecond, true}} {
				onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
					r.enqueue("p", tickonce.EnqueueOptions{Visibility: time.Minute})
					job := r.mustClaim()
					r.at(c.at)
					if !c.lost {
						require.Nil(t, r.claim(), "handed out while it is held")
						require.NoError(t, s.call(r.ctx, job))
						return
					}
					before := r.contents()
					r.take()
					require.Equal(t, tickonce.ErrClaimLost, s.call(r.ctx, job))
					require.Equal(t, before, r.contents())
					lost := r.take()
					require.Len(t, lost, 1)
					require.Equal(t, tickonce.EventClaimLost, lost[0].Kind)
					require.NotNil(t, r.claim())
				})
			}
		})
	}
}

// A token fits one attempt: not the next one of the same worker, and not after
// the claim was settled.
func TestQU4StaleTokenChangesNothing(t *testing.T) {
	for _, s := range settles {
		t.Run(s.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
				r.enqueue("p", tickonce.EnqueueOptions{Visibility: time.Minute})
				stale := r.mustClaim()
				r.at(2 * time.Minute)
				live := r.mustClaim()
				before := r.contents()
				require.ErrorIs(t, s.call(r.ctx, stale), tickonce.ErrClaimLost)
				require.Equal(t, before, r.contents())
				require.NoError(t, live.Ack(r.ctx))
				for _, job := range []*tickonce.Job{stale, live} {
					require.ErrorIs(t, s.call(r.ctx, job), tickonce.ErrClaimLost)
				}
				require.Empty(t, r.jobs("q"))
			})
		})
	}
}

// QU6: base 5 s waits within [2.5, 5], [5, 10], [10, 20], [20, 40] s, the same
// on every run of a seed.
func TestQU6RetryCurve(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		spread := map[time.Duration]bool{}
		for range 20 {
			r.enqueue("p", tickonce.EnqueueOptions{MaxAttempts: 5, BaseBackoff: 5 * time.Second})
		}
		for attempt := 1; attempt <= 4; attempt++ {
			most := 5 * time.Second << (attempt - 1)
			var jobs []*tickonce.Job
			for job := r.claim(); job != nil; job = r.claim() {
				jobs = append(jobs, job)
			}
			require.Len(t, jobs, 20)
			for _, job := range jobs {
				r.take()
				require.NoError(t, job.Retry(r.ctx, errBoom))
				retried := r.take()[0]
				require.Equal(t, tickonce.EventRetried, retried.Kind)
				require.Equal(t, int64(attempt), retried.Count)
				require.GreaterOrEqual(t, retried.Wait, most/2)
				require.LessOrEqual(t, retried.Wait, most)
				spread[retried.Wait] = true
			}
			for _, row := range r.jobs("q") {
				require.Equal(t, store.Pending, row.State)
				require.Equal(t, "boom", row.LastError)
			}
			r.at(r.now() + most)
		}
		require.Greater(t, len(spread), 70, "jitter")

		job := r.mustClaim()
		r.take()
		require.NoError(t, job.Retry(r.ctx, errBoom))
		died := r.take()[0]
		require.Equal(t, tickonce.EventDied, died.Kind)
		require.Equal(t, "boom", r.dead()[0].LastError)
		require.Equal(t, 5, r.dead()[0].Attempts)
	})
}

// A retry's wait follows from seed, job and attempt alone: one whose requests
// were lost waits, asked again, as long as it would have.
func TestQU6LostRetriesMoveNoJitter(t *testing.T) {
	onEachStore(t, tickonce.Config{Seed: 7}, func(t *testing.T, r *rig) {
		w := r.wire()
		r.enqueue("p", tickonce.EnqueueOptions{BaseBackoff: time.Hour})
		job := r.mustClaim()
		w.lose = first(3, faultstore.Settle, faultstore.LoseRequest)
		for range 3 {
			require.Error(t, job.Retry(r.ctx, errBoom))
		}
		require.NoError(t, job.Retry(r.ctx, errBoom))
		wait := core.BackoffMS(7, job.ID, 1, time.Hour.Milliseconds())
		require.Equal(t, instant(r.now()).Add(wait), r.jobs("q")[0].RunAt)
	})
}

func TestQU6RetryAfterTakesItsOwnDelay(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.enqueue("p", tickonce.EnqueueOptions{MaxAttempts: 3})
		for _, delay := range []time.Duration{0, 90 * time.Minute} {
			require.NoError(t, r.mustClaim().RetryAfter(r.ctx, errBoom, delay))
			require.Equal(t, instant(r.now()+delay), r.jobs("q")[0].RunAt)
			r.at(r.now() + delay)
		}
		job := r.mustClaim()
		for _, delay := range []time.Duration{-time.Second, time.Microsecond} {
			require.ErrorIs(t, job.RetryAfter(r.ctx, errBoom, delay), tickonce.ErrInvalidOption)
		}
		require.NoError(t, job.RetryAfter(r.ctx, errBoom, time.Second))
		require.Len(t, r.dead(), 1, "no attempt is left")
	})
}

func TestQU7FailIsDeadAtOnce(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		id := r.fail("p")
		require.Equal(t, id, r.dead()[0].ID)
		require.Equal(t, "boom", r.dead()[0].LastError)
		require.Equal(t, 1, r.dead()[0].Attempts)
	})
}

func TestQU8HeartbeatSetsTheDeadlineFromNow(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.enqueue("p", tickonce.EnqueueOptions{Visibility: time.Minute})
		job := r.mustClaim()
		for _, c := range []struct{ at, extension, deadline time.Duration }{
			{30 * time.Second, 0, 90 * time.Second},
			{60 * time.Second, 10 * time.Second, 70 * time.Second},
			{70 * time.Second, time.Hour, time.Hour + 70*time.Second},
			{80 * time.Second, time.Millisecond, 80*time.Second + time.Millisecond},
		} {
			r.at(c.at)
			require.NoError(t, job.Heartbeat(r.ctx, c.extension))
			require.Equal(t, c.deadline, offset(job.Deadline))
			require.Equal(t, instant(c.deadline), r.jobs("q")[0].Deadline)
		}
		require.ErrorIs(t, job.Heartbeat(r.ctx, -time.Second), tickonce.ErrInvalidOption)
		require.ErrorIs(t, job.Heartbeat(r.ctx, time.Microsecond), tickonce.ErrInvalidOption)

		r.at(2 * time.Minute)
		other := r.mustClaim()
		require.ErrorIs(t, job.Heartbeat(r.ctx, time.Hour), tickonce.ErrClaimLost, "late heartbeats cannot steal back")
		require.NoError(t, other.Ack(r.ctx))
	})
}

func TestQU13LostRepliesOfClaimAndAck(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.enqueue("p", tickonce.EnqueueOptions{Visibility: time.Minute})
		w := r.wire()
		w.lose = first(1, faultstore.Claim, faultstore.LoseReply)
		_, err := r.Claim(r.ctx, "q", "w")
		require.ErrorIs(t, err, faultstore.ErrLost)
		require.Nil(t, r.claim())
		r.at(time.Minute + time.Millisecond)
		job := r.mustClaim()
		require.Equal(t, 2, job.Attempt, "it has cost one attempt")

		w.lose = first(1, faultstore.Settle, faultstore.LoseReply)
		require.ErrorIs(t, job.Ack(r.ctx), faultstore.ErrLost)
		require.ErrorIs(t, job.Ack(r.ctx), tickonce.ErrClaimLost, "done rows are counted, not kept")
		require.Equal(t, int64(1), r.queue().Done)
	})
}

// K3: a step forward lets claims lapse; a step back makes them last longer and
// never doubles a live handler.
func TestK3ClaimsUnderClockSteps(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.enqueue("p", tickonce.EnqueueOptions{Visibility: time.Minute})
		job := r.mustClaim()
		r.at(-time.Hour)
		require.Nil(t, r.claim())
		r.at(time.Minute)
		require.Nil(t, r.claim())
		r.at(time.Hour)
		other := r.mustClaim()
		require.ErrorIs(t, job.Ack(r.ctx), tickonce.ErrClaimLost)
		require.NoError(t, other.Ack(r.ctx))
	})
}

// K4: delayed and expiring jobs move with the clock, and one that was ready is
// not until its run-at comes again.
func TestK4WaitingJobsUnderClockSteps(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.enqueue("delayed", tickonce.EnqueueOptions{Delay: time.Hour})
		r.enqueue("ready", tickonce.EnqueueOptions{})
		r.at(-time.Minute)
		require.Nil(t, r.claim())
		r.at(-time.Millisecond)
		require.Nil(t, r.claim())
		r.at(0)
		ready := r.mustClaim()
		require.Equal(t, "ready", string(ready.Payload))
		require.NoError(t, ready.Ack(r.ctx))
		r.at(time.Hour - time.Millisecond)
		require.Nil(t, r.claim())
		r.at(time.Hour)
		require.Equal(t, "delayed", string(r.mustClaim().Payload))
	})
}

// A poison job that kills its worker each time dies of its attempts.
func TestC89PoisonJobDies(t *testing.T) {
	onEachStore(t, tickonce.Config{}, func(t *testing.T, r *rig) {
		r.enqueue("poison", tickonce.EnqueueOptions{})
		deaths := 0
		for r.claim() != nil {
			deaths++
			r.at(r.now() + 5*time.Minute + time.Millisecond)
			r.crash()
		}
		require.Equal(t, 3, deaths)
		require.Equal(t, store.ErrorExhausted, r.dead()[0].LastError)
		require.Equal(t, 3, r.dead()[0].Attempts)
	})
}

// mute is an error whose text cannot be had.
type mute struct{ text string }

func (m *mute) Error() string { return m.text }

func TestErrorTextIsMadeFitToKeep(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		kept string
	}{
		{"none", nil, ""},
		{"empty", errors.New(""), ""},
		{"at the limit", errors.New("12345678"), "12345678"},
		{"over it", errors.New("123456789"), "12345678"},
		{"cut between characters", errors.New("1234567é"), "1234567"},
		{"NUL", errors.New("a\x00b"), "a\uFFFDb"},
		{"invalid UTF-8", errors.New("a\xffb"), "a\uFFFDb"},
		{"a nil pointer", (*mute)(nil), "an error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Limits: tickonce.Limits{LastError: 8}}, func(t *testing.T, r *rig) {
				r.enqueue("p", tickonce.EnqueueOptions{})
				require.NoError(t, r.mustClaim().Fail(r.ctx, c.err))
				require.Equal(t, c.kept, r.dead()[0].LastError)
				require.True(t, utf8.ValidString(r.dead()[0].LastError))
			})
		})
	}
	r := newRig(t, tickonce.Config{})
	r.enqueue("p", tickonce.EnqueueOptions{})
	require.NoError(t, r.mustClaim().Fail(r.ctx, errors.New(strings.Repeat("x", 2000))))
	require.Len(t, r.dead()[0].LastError, 1024, "the default limit")
}
