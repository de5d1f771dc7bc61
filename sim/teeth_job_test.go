package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickonce/tickonce/store"
)

// jobLies are those about jobs and their claims.
var jobLies = []lie{
	{
		lie: "a job has the id of another", fails: oneState, says: "got id", text: calmHour,
		below: liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
			held, err := s.Advance(ctx, t)
			for i := range t.Fires {
				t.Fires[i].Job = 1
			}
			return held, err
		}},
	},
	{
		lie: "a live claim is handed out again", fails: oneClaim, text: slowJobs,
		below: liar{claim: func(s store.Store, queue string, dst []store.Job) (store.Claim, error) {
			c, err := s.Claim(ctx, queue, "liar", dst)
			if c.N == 0 {
				c.N, _, _ = s.Jobs(ctx, store.Filter{Queue: queue, State: store.Claimed}, dst)
			}
			return c, err
		}},
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
		lie: "no job is handed out where there is one", fails: claimOrder, text: calmHour,
		below: liar{claim: func(s store.Store, queue string, dst []store.Job) (store.Claim, error) {
			if now := shownBy(s); now/1000%2 == 0 {
				return store.Claim{Now: now}, nil
			}
			return s.Claim(ctx, queue, "liar", dst)
		}},
	},
	{
		lie: "a job has the error of another", fails: rightJob, says: "was handed out", text: failingJobs,
		below: claim(func(j *store.Job) { j.LastError += "?" }),
	},
	{
		lie: "a handler is told of another error", fails: rightJob, text: failingJobs,
		above: claim(func(j *store.Job) { j.LastError += "?" }),
	},
	{
		lie: "a job is to be ready at another time", fails: rightJob, says: "was handed out", text: calmHour,
		below: claim(func(j *store.Job) { j.RunAt-- }),
	},
	{
		lie: "a job expires at another time", fails: rightJob, says: "was handed out", text: expiringJobs,
		below: claim(func(j *store.Job) { j.ExpiresAt++ }),
	},
	{
		lie: "a job is dead of another error", fails: oneState, text: failingJobs,
		below: dead(func(j *store.Job) { j.LastError = store.ErrorExpired }),
	},
	{
		lie: "another job is dead", fails: oneState, text: failingJobs,
		below: dead(func(j *store.Job) { j.ID, j.LastError = j.ID+1000, "" }),
	},
	{
		lie: "a job has another payload", fails: rightJob, says: "was handed out", text: calmHour,
		below: claim(func(j *store.Job) { j.Payload = []byte("of another") }),
	},
	{
		lie: "a handler gets another payload", fails: rightJob, text: calmHour,
		above: claim(func(j *store.Job) { j.Payload = []byte("of another") }),
	},
	{
		lie: "a job is retried later than its curve", fails: rightEnding, text: failingJobs,
		above: settle(func(s *store.Settle) { s.DelayMS = 2*minuteMS + 1 }),
	},
	{
		lie: "a job is retried sooner than its curve", fails: rightEnding, text: failingJobs,
		above: settle(func(s *store.Settle) { s.DelayMS = minuteMS - 1 }),
	},
	{
		lie: "a job dies that has an attempt left", fails: rightEnding, text: failingJobs,
		above: settle(func(s *store.Settle) { s.To = store.Dead }),
	},
	{
		lie: "a job is retried without its error", fails: rightEnding, says: "was settled as to be tried again", text: failingJobs,
		above: settle(func(s *store.Settle) { s.Error = "" }),
	},
	{
		lie: "a job dies without its error", fails: rightEnding, says: "was settled as dead", text: failingJobs,
		above: settle(func(s *store.Settle) { s.Error = "" }),
	},
	{
		lie: "a job is to be tried again after its last attempt", fails: rightEnding, says: "at attempt 2 of 2", text: failingJobs,
		above: settle(func(s *store.Settle) { s.To = store.Pending }),
	},
	{
		lie: "a failed job is done", fails: rightEnding, text: failingJobs,
		above: settle(func(s *store.Settle) { s.To = store.Done }),
	},
	{
		lie: "a job is tried again after its last attempt", fails: attemptsHeld, text: failingJobs,
		below: liar{settle: func(s store.Store, settles []store.Settle, out []bool) (store.Instant, error) {
			for i := range settles {
				settles[i].To, settles[i].DelayMS = store.Pending, minuteMS
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
				_, err = s.Acquire(ctx, "trace", "liar", minuteMS)
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
		lie: "a restart finds a job counted that there never was", fails: conservation, says: "accounted for", text: downFor90m,
		below: liar{queues: func(s store.Store, from string, dst []store.Queue) (int, store.Instant, error) {
			n, now, err := s.Queues(ctx, from, dst)
			for i := range dst[:n] {
				if timeOf(now).Sub(DefaultStart) > time.Hour {
					dst[i].Enqueued++
				}
			}
			return n, now, err
		}},
	},
	{
		lie: "a job is handed out by another queue", fails: oneState, says: "which does not have it", text: twoQueues,
		below: liar{claim: func(s store.Store, _ string, dst []store.Job) (store.Claim, error) {
			return s.Claim(ctx, "r", "liar", dst)
		}},
	},
	{
		lie: "a job is in two queues", fails: oneState, says: "not as it was written", text: strings.ReplaceAll(twoQueues, "ok:1s", "slow"),
		below: liar{jobs: func(s store.Store, f store.Filter, dst []store.Job) (int, store.Instant, error) {
			f.Queue = "q"
			return s.Jobs(ctx, f, dst)
		}},
	},
	{
		lie: "a queue counts a claim too many", fails: conservation, text: calmHour,
		below: liar{queues: func(s store.Store, from string, dst []store.Queue) (int, store.Instant, error) {
			n, now, err := s.Queues(ctx, from, dst)
			for i := range dst[:n] {
				dst[i].Claims++
			}
			return n, now, err
		}},
	},
	{
		lie: "a transaction acks for a claim that was lost", fails: staleToken,
		text: strings.NewReplacer("visibility=10m", "visibility=30s heartbeat=1h", "65s", "40s").Replace(transactions),
		below: liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
			done, err := s.Commit(ctx, b)
			if done.Refusal.Why == store.ClaimLost {
				done = store.Committed{Now: done.Now, Inserts: make([]store.Inserted, len(b.Inserts))}
			}
			return done, err
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
}

// rowLies are that a job is not as it was written, field by field: as it is handed
// out, as its handler gets it, and where it is kept.
func rowLies() (lies []lie) {
	for _, c := range []struct {
		field           string
		fired, received func(*store.Job) // nil: told of, or judged, elsewhere
	}{
		{"schedule", func(j *store.Job) { j.Schedule = "b" }, func(j *store.Job) { j.Schedule = "b" }},
		{"boundary", func(j *store.Job) { j.FireAt++ }, func(j *store.Job) { j.FireAt++ }},
		{"priority", func(j *store.Job) { j.Priority++ }, nil},
		{"stamps", func(j *store.Job) { j.Stamps.BaseBackoffMS++ }, func(j *store.Job) { j.Stamps.MaxAttempts++ }},
		{"queue", nil, func(j *store.Job) { j.Queue = "r" }},
		{"attempts", nil, func(j *store.Job) { j.Attempts++ }},
		{"deadline", nil, func(j *store.Job) { j.Deadline++ }},
	} {
		if c.fired != nil {
			lies = append(lies, lie{
				lie: "a job is handed out with another " + c.field, fails: rightJob, says: "was handed out", text: calmHour, below: claim(c.fired),
			})
		}
		if c.received != nil {
			lies = append(lies, lie{
				lie: "a handler gets a job with another " + c.field, fails: rightJob, says: "reached its handler", text: calmHour, above: claim(c.received),
			})
		}
	}
	for _, c := range []struct {
		field  string
		change func(*store.Job)
	}{
		{"state", func(j *store.Job) {
			if j.State == store.Claimed {
				j.State = store.Pending
			}
		}},
		{"attempts", func(j *store.Job) { j.Attempts++ }},
		{"boundary", func(j *store.Job) { j.FireAt++ }},
		{"run-at", func(j *store.Job) { j.RunAt++ }},
		{"deadline", func(j *store.Job) { j.Deadline++ }},
		{"id", func(j *store.Job) { j.ID += 1000 }},
	} {
		lies = append(lies, lie{
			lie: "a job changes its " + c.field + " by itself", fails: oneState, says: "not as it was written", text: slowJobs,
			below: liar{jobs: func(s store.Store, f store.Filter, dst []store.Job) (int, store.Instant, error) {
				n, now, err := s.Jobs(ctx, f, dst)
				for i := range dst[:n] {
					c.change(&dst[i])
				}
				return n, now, err
			}},
		})
	}
	for _, state := range []store.State{store.Pending, store.Claimed, store.Dead} {
		lies = append(lies, lie{
			lie: fmt.Sprintf("a job of state %d is forgotten", state), fails: oneState, says: "dead jobs, there should be", text: jobsOfAllStates,
			below: liar{jobs: func(s store.Store, f store.Filter, dst []store.Job) (int, store.Instant, error) {
				n, now, err := s.Jobs(ctx, f, dst)
				left := slices.DeleteFunc(dst[:n], func(j store.Job) bool { return j.State == state })
				return len(left), now, err
			}},
		})
	}
	return lies
}
