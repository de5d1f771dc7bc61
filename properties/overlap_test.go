package properties_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// overlapRun is a schedule that never allows overlap, in the hands of workers
// of two queues, and what the calls on it have told of its jobs.
type overlapRun struct {
	*world
	policy tickonce.Overlap
	live   map[tickonce.JobID]store.State // pending or claimed
	hands  []*tickonce.Job
}

var twoQueues = []string{"q", "r"}

func (r *overlapRun) count(state store.State) (n int) {
	for _, s := range r.live {
		if s == state {
			n++
		}
	}
	return n
}

// register gives the schedule a queue, an interval and a policy, and often a
// grid of its own.
func (r *overlapRun) register(t *rapid.T) {
	policy := rapid.SampledFrom([]tickonce.Overlap{tickonce.OverlapSkip, tickonce.OverlapBufferOne}).Draw(t, "policy")
	_, err := r.engine().Schedule(ctx, "s",
		rapid.SampledFrom([]string{"@every 1s", "@every 5s"}).Draw(t, "spec"), rapid.SampledFrom(twoQueues).Draw(t, "queue"), nil,
		tickonce.ScheduleOptions{
			Overlap: policy, ResetCursor: rapid.Bool().Draw(t, "anew"), MaxAttempts: rapid.IntRange(1, 3).Draw(t, "attempts"),
			Visibility: 4 * time.Second, BaseBackoff: 2 * time.Second, CatchUp: tickonce.CatchUpLatest, Breaker: -1,
			Expires:  rapid.SampledFrom([]time.Duration{0, 0, 3 * time.Second}).Draw(t, "expires"),
			Priority: rapid.Int16Range(0, 1).Draw(t, "priority"),
		})
	require.NoError(t, err)
	r.policy = policy
}

func (r *overlapRun) unschedule(t *rapid.T) {
	_, err := r.engine().Unschedule(ctx, "s")
	require.NoError(t, err)
}

func (r *overlapRun) pause(t *rapid.T) {
	_, err := r.engine().Pause(ctx, "s")
	require.NoError(t, err)
	_, err = r.engine().Resume(ctx, "s", tickonce.ResumeOptions{CatchUp: rapid.Bool().Draw(t, "catch up")})
	require.NoError(t, err)
}

// tick steps the runner to its rest: it fires once at most, and not while the
// policy minds.
func (r *overlapRun) tick(t *rapid.T) {
	r.move(time.Duration(rapid.IntRange(0, 6000).Draw(t, "ms")) * time.Millisecond)
	for range 10 {
		did := r.step(0)
		require.Empty(t, did.Err)
		require.LessOrEqual(t, len(did.Fires), 1)
		for _, fire := range did.Fires {
			require.Zero(t, r.count(store.Pending), "fired beside a pending one")
			require.False(t, r.policy == tickonce.OverlapSkip && r.count(store.Claimed) > 0, "fired beside a claimed one")
			r.live[fire.Job] = store.Pending
		}
		if did.Next.After(r.clock.now) {
			break
		}
	}
}

func (r *overlapRun) trigger(t *rapid.T) {
	id, err := r.engine().Trigger(ctx, "s")
	if err != nil {
		return
	}
	require.Zero(t, r.count(store.Pending))
	require.False(t, r.policy == tickonce.OverlapSkip && r.count(store.Claimed) > 0)
	r.live[id] = store.Pending
}

// claim asks for several jobs of a queue: of those that are live no two are
// claimed then, lapsed or not.
func (r *overlapRun) claim(t *rapid.T) {
	queue := rapid.SampledFrom(twoQueues).Draw(t, "queue")
	jobs, err := r.engine().ClaimBatch(ctx, queue, rapid.SampledFrom([]string{"w", "v"}).Draw(t, "worker"), 3)
	require.NoError(t, err)
	for dead, err := range r.engine().Dead(ctx, queue) {
		require.NoError(t, err)
		delete(r.live, dead.ID)
	}
	for _, j := range jobs {
		require.Contains(t, r.live, j.ID)
		r.live[j.ID] = store.Claimed
		r.hands = append(r.hands, j)
	}
	require.LessOrEqual(t, r.count(store.Claimed), 1, "two are claimed at once")
}

func (r *overlapRun) settle(t *rapid.T) {
	if len(r.hands) == 0 {
		t.Skip("nothing was handed out")
	}
	j := rapid.SampledFrom(r.hands).Draw(t, "job")
	var err error
	to := rapid.SampledFrom([]store.State{store.Done, store.Pending, store.Dead}).Draw(t, "to")
	switch to {
	case store.Done:
		err = j.Ack(ctx)
	case store.Dead:
		err = j.Fail(ctx, nil)
	default:
		if j.Attempt == j.MaxAttempts {
			to = store.Dead
		}
		err = j.Retry(ctx, nil)
	}
	if err != nil {
		require.ErrorIs(t, err, tickonce.ErrClaimLost)
		return
	}
	if r.live[j.ID] = to; to != store.Pending {
		delete(r.live, j.ID)
	}
}

func (r *overlapRun) cancel(t *rapid.T) {
	if len(r.hands) == 0 {
		t.Skip("nothing was handed out")
	}
	j := rapid.SampledFrom(r.hands).Draw(t, "job")
	done, err := r.engine().Cancel(ctx, j.Queue, j.ID)
	require.NoError(t, err)
	if done {
		delete(r.live, j.ID)
	}
}

// requeue makes all dead jobs pending, so that many wait for one.
func (r *overlapRun) requeue(t *rapid.T) {
	for _, queue := range twoQueues {
		var dead []tickonce.JobID
		for j, err := range r.engine().Dead(ctx, queue) {
			require.NoError(t, err)
			dead = append(dead, j.ID)
		}
		for _, id := range dead {
			again, err := r.engine().Requeue(ctx, queue, id)
			require.NoError(t, err)
			delete(r.live, id)
			r.live[again] = store.Pending
		}
	}
}

// check compares what the store counts with what the calls have told. A job
// that is doomed is counted until a claim buries it.
func (r *overlapRun) check(t *rapid.T) {
	rows := make([]store.Schedule, 1)
	n, _, err := r.store.Schedules(ctx, "s", rows)
	require.NoError(t, err)
	if n > 0 {
		require.Equal(t, store.Live{Pending: int32(r.count(store.Pending)), Claimed: int32(r.count(store.Claimed))}, rows[0].Live)
	}
	for _, queue := range twoQueues {
		info, err := r.engine().Queue(ctx, queue)
		require.NoError(t, err)
		if r.count(store.Claimed) == 0 {
			require.Zero(t, info.Waiting, "nobody is in the way")
		}
	}
}

// No two jobs of a schedule that minds overlap are claimed at once, whatever
// happens to the schedule and to its jobs.
func TestX9NoTwoAreClaimedAtOnce(t *testing.T) {
	for _, kind := range []string{memory, naive} {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := &overlapRun{world: newWorld(t, tickonce.Config{}, kind, 1), live: map[tickonce.JobID]store.State{}}
				r.register(t)
				t.Repeat(map[string]func(*rapid.T){
					"register": r.register, "unschedule": r.unschedule, "pause": r.pause, "trigger": r.trigger,
					"tick": r.tick, "tock": r.tick, "claim": r.claim, "claim more": r.claim,
					"settle": r.settle, "cancel": r.cancel, "requeue": r.requeue, "": r.check,
				})
			})
		})
	}
}
