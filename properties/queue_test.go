package properties_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// queueRun plays operations on one queue in a world and in the model.
type queueRun struct {
	*world
	queue string
	model queueModel
}

func (r *queueRun) now() int64 { return sinceStart(r.clock.now) }

const queueLimit = 6

func (r *queueRun) enqueue(t *rapid.T) {
	o := rapid.Custom(drawEnqueue).Draw(t, "enqueue").(enqueue)
	options := o.options()
	runAt := r.now() + max(0, time.Duration(o.Delay).Milliseconds())
	if choose(t, "as an instant", false, true) { // the same as an instant, which may have passed
		options.Delay = 0
		past := choose(t, "past", 0, time.Millisecond, time.Hour)
		options.RunAt = atMS(runAt).Add(-past)
		runAt = max(r.now(), sinceStart(options.RunAt))
	}
	id, err := r.engine().Enqueue(ctx, r.queue, nil, options)
	switch j := r.model.keyed(o.Key); {
	case j != nil:
		require.NoError(t, err)
		require.Equal(t, j.id, id)
		return
	case len(r.model.jobs) >= queueLimit:
		require.ErrorIs(t, err, tickonce.ErrLimit)
		return
	}
	require.NoError(t, err)
	expiresAt := int64(never)
	if o.Expires != 0 {
		expiresAt = runAt + time.Duration(o.Expires).Milliseconds()
	}
	r.model.add(modelJob{
		id: id, key: o.Key, priority: o.Priority, runAt: runAt, expiresAt: expiresAt,
		visibility: options.Visibility.Milliseconds(), backoff: options.BaseBackoff.Milliseconds(), most: o.MaxAttempts,
	})
}

func (r *queueRun) claim(t *rapid.T) {
	n := choose(t, "n", 1, 1, 1, 2, 5)
	claimed, err := r.engine().ClaimBatch(ctx, r.queue, "worker", n)
	require.NoError(t, err)
	want := r.model.claim(r.now(), n)
	require.Len(t, claimed, len(want))
	for i, j := range claimed {
		require.Equal(t, want[i].id, j.ID)
		require.Equal(t, want[i].attempts, j.Attempt)
		require.Equal(t, want[i].most, j.MaxAttempts)
		require.Equal(t, want[i].err, j.LastError)
		require.Equal(t, atMS(want[i].deadline), j.Deadline)
	}
	r.claims = append(r.claims, claimed...)
}

// settle ends a claim, often one that is not the live one any more: then
// nothing changes.
func (r *queueRun) settle(t *rapid.T) {
	o := rapid.Custom(drawSettle).Draw(t, "settle").(settle)
	claim, ok := latest(r.claims, o.Which)
	if !ok {
		t.Skip("nothing was claimed")
	}
	j := r.model.held(claim.ID, claim.Attempt, r.now())
	r.take()
	told := o.play(r.world).(answer).Err
	if j == nil {
		require.Equal(t, tickonce.ErrClaimLost.Error(), told)
		return
	}
	require.Empty(t, told)
	switch o.How {
	case "ack":
		r.model.counts.Done++
		r.model.remove(j.id)
	case "retry":
		event := r.take()[0]
		if event.Kind == tickonce.EventRetried {
			top := min(j.backoff<<(j.attempts-1), time.Hour.Milliseconds())
			require.GreaterOrEqual(t, 2*event.Wait.Milliseconds(), top)
			require.LessOrEqual(t, event.Wait.Milliseconds(), top)
		}
		r.model.retry(j, r.now()+event.Wait.Milliseconds())
	case "retry after":
		r.model.retry(j, r.now()+retryAfter.Milliseconds())
	case "fail":
		r.model.die(j, "failed")
	case "heartbeat":
		j.deadline = r.now() + j.visibility
		require.Equal(t, atMS(j.deadline), claim.Deadline)
	}
}

func (r *queueRun) ackAll(t *rapid.T) {
	batch := r.claims[max(0, len(r.claims)-4):]
	acked, err := r.engine().AckAll(ctx, batch)
	require.NoError(t, err)
	for i, claim := range batch {
		j := r.model.held(claim.ID, claim.Attempt, r.now())
		require.Equal(t, j != nil, acked[i])
		if j != nil {
			r.model.counts.Done++
			r.model.remove(j.id)
		}
	}
}

// some draws one of the jobs, live or dead, or an id that no job has.
func (r *queueRun) some(t *rapid.T) (tickonce.JobID, *modelJob) {
	i := rapid.IntRange(0, len(r.model.jobs)).Draw(t, "job")
	if i == len(r.model.jobs) {
		return 1_000_000, nil
	}
	return r.model.jobs[i].id, r.model.jobs[i]
}

func (r *queueRun) cancel(t *rapid.T) {
	id, j := r.some(t)
	done, err := r.engine().Cancel(ctx, r.queue, id)
	require.NoError(t, err)
	require.Equal(t, j != nil && j.state != store.Dead, done)
	if done {
		r.model.counts.Cancelled++
		r.model.remove(id)
	}
}

func (r *queueRun) requeue(t *rapid.T) {
	id, j := r.some(t)
	again, err := r.engine().Requeue(ctx, r.queue, id)
	if j == nil || j.state != store.Dead {
		require.ErrorIs(t, err, tickonce.ErrNotFound)
		return
	}
	require.NoError(t, err)
	r.model.requeue(id, again, r.now())
}

func (r *queueRun) purge(t *rapid.T) {
	id, j := r.some(t)
	err := r.engine().Purge(ctx, r.queue, id)
	if j == nil || j.state != store.Dead {
		require.ErrorIs(t, err, tickonce.ErrNotFound)
		return
	}
	require.NoError(t, err)
	r.model.counts.Purged++
	r.model.remove(id)
}

func (r *queueRun) sweep(t *rapid.T) {
	n, err := r.engine().Sweep(ctx, r.queue)
	require.NoError(t, err)
	require.Equal(t, r.model.bury(r.now()), n)
}

// check compares all that can be read, and counts the jobs (invariant 4).
func (r *queueRun) check(t *rapid.T) {
	info, err := r.engine().Queue(ctx, r.queue)
	require.NoError(t, err)
	want := r.model.info()
	want.Name = r.queue
	require.Equal(t, want, info)
	require.Equal(t, info.Enqueued, info.Pending+info.Claimed+info.Dead+info.Done+info.Cancelled+info.Requeued+info.Purged)

	rows := r.jobs(r.queue, 0)
	require.Len(t, rows, len(r.model.jobs))
	for i, row := range rows {
		j := r.model.jobs[i]
		require.Equal(t, j.id, row.ID)
		require.Equal(t, j.state, row.State, "job %d", j.id)
		require.EqualValues(t, j.attempts, row.Attempts, "job %d", j.id)
		require.LessOrEqual(t, j.attempts, j.most)
		require.Equal(t, j.err, row.LastError, "job %d", j.id)
	}
}

func TestI4I5QU1QU2QU3QU4QU5QU6QU7QU8QU9QU10QU11QU12QU14QueueIsTheModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := tickonce.Config{Limits: tickonce.Limits{QueueLength: queueLimit}}
		w := newWorld(t, c, choose(t, "store", memory, naive), 1)
		r := &queueRun{world: w, queue: queueNames[0]}
		clock := func(t *rapid.T) { draw(t, drawMilliseconds).play(w) }
		t.Repeat(map[string]func(*rapid.T){
			"": r.check, "enqueue": r.enqueue, "enqueue more": r.enqueue, "claim": r.claim, "claim more": r.claim,
			"settle": r.settle, "settle more": r.settle, "ack all": r.ackAll, "cancel": r.cancel,
			"requeue": r.requeue, "purge": r.purge, "sweep": r.sweep, "clock": clock, "clock on": clock,
		})
	})
}
