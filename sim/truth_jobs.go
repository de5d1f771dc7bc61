package sim

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// trueQueue is the model of one queue.
type trueQueue struct {
	row        store.Queue // its counters
	name       string      // in the scenario
	outbox     *Outbox     // nil of one that is none
	forgotten  int64       // jobs that were done, and then forgotten by a restart
	lost       int64       // jobs that were not, and then forgotten by a restart
	incoming   int64       // jobs of the tick under way
	perProcess int         // workers
	workers    []*worker   // of all processes
	byHand     bool        // they are not the engine's

	// Of each worker of the engine's.
	concurrency int
	timeout     time.Duration

	doomed    events[store.JobID] // jobs by when they are doomed, and some that are no more
	claimable claimable

	dead   map[store.JobID]deadJob
	deaths [deathCauses]int64 // how many of each cause

	delivered                  map[store.JobID]bool // of an outbox: the entries that came through
	deliveries, deliveredAgain int64                // how often one did, and how often one that had
}

// death is why a job died.
type death uint8

const (
	failed  death = iota // its last attempt did (QU5)
	lapsed               // the claim of its last attempt (QU5)
	expired              // before it was done (QU9)

	deathCauses = iota
)

// deadJob is the model of a job that is dead.
type deadJob struct {
	cause     death
	lastError string
}

// DeathCauses lists the keys of [QueueResult.DeadReasons].
func DeathCauses() []string { return deathWords[:] }

// deathWords are the causes in a result.
var deathWords = [deathCauses]string{failed: "failed", lapsed: "lapsed", expired: "expired"}

// trueJob is the model of a job that is pending or claimed.
type trueJob struct {
	id       store.JobID
	queue    *trueQueue
	schedule *trueSchedule
	boundary store.Instant
	payload  []byte
	key      string // "" without one (QU12)
	priority int16
	stamps   store.Stamps
	runAt    store.Instant
	expires  store.Instant

	incarnation store.ScheduleID // of its schedule
	origin      store.JobID      // of the delivery of a result: the job whose it is
	timeoutMS   int64
	results     []result // that this attempt has staged
	alone       bool     // not handed out while another of its schedule is claimed (X9)
	once        bool     // the only one of its incarnation (X8)

	claimed   bool
	attempts  int32
	lastError string // of the attempt that failed last
	cause     int64  // its latest event
	fault     int    // that it met last, from 1
	deadline  store.Instant
	claim     int // among those of its queue
}

// readyAt is when the job may be handed out (QU1, QU3).
func (j *trueJob) readyAt() store.Instant {
	if j.claimed {
		return j.deadline + 1
	}
	return j.runAt
}

// doomedAt is from when it can only die: it has expired, or its last claim has
// lapsed (QU5, QU9).
func (j *trueJob) doomedAt() store.Instant {
	switch {
	case j.attempts >= j.stamps.MaxAttempts:
		return j.readyAt()
	case j.claimed && j.expires != store.None:
		return max(j.expires, j.deadline+1)
	default:
		return j.expires
	}
}

// held reports whether the claim of this attempt holds at now (QU3, QU4).
func (j *trueJob) held(attempt int32, now store.Instant) bool {
	return j.claimed && j.attempts == attempt && now <= j.deadline
}

// has reports whether the row has what was put into the job, and what its attempts
// left of it.
func (j *trueJob) has(row *store.Job) bool {
	return row.Schedule == j.schedule.scenario.Name && row.FireAt == j.boundary && bytes.Equal(row.Payload, j.payload) &&
		row.Key == j.key && row.Stamps == j.stamps && row.Priority == j.priority && row.RunAt == j.runAt &&
		row.ExpiresAt == j.expires && row.LastError == j.lastError && row.ScheduleID == j.incarnation &&
		row.Origin == j.origin && row.TimeoutMS == j.timeoutMS && row.Alone == j.alone
}

// add takes a job into the model.
func (t *truth) add(id store.JobID, job trueJob) {
	var j *trueJob
	if last := len(t.spare) - 1; last >= 0 {
		j, t.spare = t.spare[last], t.spare[:last]
	} else {
		j = new(trueJob)
	}
	*j = job
	j.id = id
	t.jobs[id] = j
	if j.claimed {
		j.queue.claimable.claim(j)
	} else {
		j.queue.claimable.wait(j, t.w.shown())
	}
	if j.key != "" {
		t.keyed[liveKey{j.queue, j.key}] = id
	}
	t.lastJob = max(t.lastJob, id)
	t.doom(id, j)
}

// liveKey is a key in its queue, which a pending or claimed job has (QU12).
type liveKey struct {
	queue *trueQueue
	key   string
}

// doom notes when the job will be doomed.
func (t *truth) doom(id store.JobID, j *trueJob) {
	if at := j.doomedAt(); at != store.None {
		j.queue.doomed.push(at, 0, id)
	}
}

// drop ends a job.
func (t *truth) drop(id store.JobID) {
	j := t.jobs[id]
	if j.claimed {
		j.queue.claimable.end(j)
	}
	delete(t.keyed, liveKey{j.queue, j.key})
	t.spare = append(t.spare, j)
	delete(t.jobs, id)
}

// state is the counter of the jobs that are as j is.
func (j *trueJob) state() *int64 {
	if j.claimed {
		return &j.queue.row.Claimed
	}
	return &j.queue.row.Pending
}

// ofSchedule is that of its schedule.
func (j *trueJob) ofSchedule() *int32 {
	if j.claimed {
		return &j.schedule.live.Claimed
	}
	return &j.schedule.live.Pending
}

// openJobs reads the model of the queues from a store that was opened.
func (t *truth) openJobs() {
	open := t.jobs
	t.jobs, t.lastJob, t.memory = map[store.JobID]*trueJob{}, 0, 0
	for i := range t.schedules {
		s := &t.schedules[i]
		s.live, s.waiting, s.starts, s.freedAt = store.Live{}, nil, 0, t.w.now
	}
	t.keyed = map[liveKey]store.JobID{}
	for _, q := range t.queues {
		before, dead, delivered := q.row, q.dead, q.delivered
		unfinished := before.Pending + before.Claimed + before.Dead // those that the store does not have any more
		q.row = t.queueRow(q.row.Name)
		q.doomed, q.claimable = events[store.JobID]{}, claimable{}
		q.dead, q.deaths = map[store.JobID]deadJob{}, [deathCauses]int64{}
		if q.outbox != nil && q.row.Enqueued < before.Enqueued { // an id may be given again
			q.delivered = map[store.JobID]bool{}
		}
		t.eachJob(q, func(row *store.Job) {
			t.memory += jobMemory(row.Payload)
			if delivered[row.ID] {
				q.delivered[row.ID] = true
			}
			died, wasDead := dead[row.ID]
			if wasDead || open[row.ID] != nil {
				unfinished--
			}
			if t.lastJob = max(t.lastJob, row.ID); row.State == store.Dead {
				q.die(row.ID, deadJob{died.cause, row.LastError})
				return
			}
			t.add(row.ID, trueJob{
				queue: q, schedule: t.named[row.Schedule], boundary: row.FireAt,
				payload: row.Payload, key: row.Key, priority: row.Priority, stamps: row.Stamps,
				runAt: row.RunAt, expires: row.ExpiresAt,
				incarnation: row.ScheduleID, origin: row.Origin, timeoutMS: row.TimeoutMS, alone: row.Alone,
				claimed: row.State == store.Claimed, attempts: row.Attempts, lastError: row.LastError, deadline: row.Deadline, cause: t.w.causes.opened,
			})
			if j := t.jobs[row.ID]; j.counts() {
				*j.ofSchedule()++
			}
		})
		if lost := before.Enqueued - q.row.Enqueued; lost > 0 {
			q.lost += unfinished
			q.forgotten += lost - unfinished
		}
		t.memory += int64(len(q.delivered)) * deliveredBytes
	}
}

// insert takes the job of a fire into the model.
func (t *truth) insert(s *trueSchedule, fire *store.Fire, now store.Instant) {
	if fire.Job <= t.lastJob {
		t.w.fail(oneState, s.row.Name, fmt.Sprintf("%s got id %d after id %d", jobOf(fire.Boundary), fire.Job, t.lastJob))
		return
	}
	job := trueJob{
		queue: s.queue, schedule: s, boundary: fire.Boundary, runAt: now, expires: store.None,
		payload: s.row.Payload, priority: s.row.Priority, stamps: s.row.Stamps, cause: t.w.causes.last,
		incarnation: s.row.ID, timeoutMS: rare(s.row.Rare).TimeoutMS, alone: s.row.Overlap != store.Allow,
	}
	if s.row.RunOnce {
		job.once, job.stamps.MaxAttempts = true, 1
	}
	if s.row.ExpiresMS > 0 {
		job.expires = now.Add(s.row.ExpiresMS)
	}
	t.add(fire.Job, job)
	t.memory += jobMemory(job.payload)
	t.count(t.jobs[fire.Job], +1)
	s.queue.row.Enqueued++
	t.wake(s.queue)
}

// wake wakes the workers that sleep: those by hand, and those of the engine that
// knows of the job, as soon as its operation is over.
func (t *truth) wake(q *trueQueue) {
	for _, worker := range q.workers {
		if worker.engine == nil {
			worker.wake(t.w.now)
		} else if worker.node == t.w.acting && len(worker.attempts) < q.concurrency {
			worker.roused, t.w.acting.rouses = true, true
		}
	}
}

// Claim watches [store.Store.Claim]: invariants 4 and 5.
func (t *truth) Claim(ctx context.Context, queue, worker string, dst []store.Job) (store.Claim, error) {
	claim, err := t.Store.Claim(ctx, queue, worker, dst)
	if err != nil {
		return claim, err
	}
	t.w.checked[aClaim]++
	q := t.byQueue[queue]
	t.trips = claim.Tripped
	if dead := t.bury(q, claim.Now); dead != claim.Buried {
		t.w.fail(oneState, "", fmt.Sprintf("queue %q buried %d jobs, of which %d had to die", queue, claim.Buried, dead))
	}
	if len(t.trips) > 0 {
		t.w.fail(opensBreaker, t.trips[0].Schedule, "a claim says that burials opened its breaker")
	}
	t.w.owes(tickonce.EventBuried, claim.Now, 0, int64(claim.Buried))
	for i := range dst[:claim.N] {
		t.w.owes(tickonce.EventClaimed, claim.Now, int64(dst[i].ID)+int64(dst[i].Attempts)<<48, 1)
		t.claimed(q, &dst[i], claim.Now)
	}
	if claim.N < len(dst) && claim.Buried < store.MaxBuried {
		if left := t.first(q, claim.Now); left != nil {
			t.w.fail(claimOrder, left.schedule.scenario.Name, jobOf(left.boundary)+" was not handed out, and nothing was in its way")
		}
	}
	return claim, nil
}

// claimed checks one job that was handed out.
func (t *truth) claimed(q *trueQueue, row *store.Job, now store.Instant) {
	t.w.checked[aClaimedJob]++
	j := t.jobs[row.ID]
	broken := func(i invariant, what string) {
		t.w.fail(i, row.Schedule, jobOf(row.FireAt)+" was handed out "+what)
	}
	switch {
	case j == nil || j.queue != q:
		broken(oneState, fmt.Sprintf("by queue %q, which does not have it", q.name))
		return
	case j.claimed && now <= j.deadline:
		broken(oneClaim, "although its claim holds until "+text(j.deadline))
	case j.readyAt() > now:
		broken(notEarly, "before "+text(j.readyAt()))
	case j.expires <= now:
		broken(oneState, "although it has expired")
	case row.Attempts != j.attempts+1 || row.Attempts > j.stamps.MaxAttempts:
		broken(attemptsHeld, fmt.Sprintf("as attempt %d of %d, after attempt %d", row.Attempts, j.stamps.MaxAttempts, j.attempts))
	case row.Deadline != now.Add(j.stamps.VisibilityMS):
		broken(oneClaim, "until "+text(row.Deadline)+", which is not its visibility")
	case !j.has(row):
		broken(rightJob, "with other contents than it was fired with")
	case j.waits():
		broken(runsAlone, "although another one of its schedule is claimed")
	}
	if s := j.schedule; j.once && j.incarnation == s.row.ID {
		if s.starts++; s.starts > 1 {
			broken(runsOnce, "although its schedule runs once, and has started")
		}
	}
	if first := t.first(q, now); first != nil && first.goesBefore(j) {
		broken(claimOrder, "before "+jobOf(first.boundary)+" of "+first.schedule.scenario.Name)
	}
	t.w.coverage.sometimes(claimReclaimed, j.claimed)
	t.w.digest.Int(tagClaim, j.schedule.index)
	t.w.digest.Int(tagClaim, int64(j.boundary))
	by := t.w.acting.working
	if late := t.w.late(j.readyAt(), max(by.idle, j.freedAt()), t.w.bound()) - by.attends(); late > 0 {
		t.w.failLate(row.Schedule, jobOf(j.boundary), late)
	}
	if !j.claimed {
		q.claimable.claim(j)
	}
	t.count(j, -1)
	j.claimed, j.attempts, j.deadline, j.results = true, row.Attempts, row.Deadline, nil
	t.count(j, +1)
	q.row.Claims++
	t.w.tellOfClaim(row.ID, j)
	t.doom(row.ID, j)
}

// checkJob checks the job that a handler gets (T2).
func (t *truth) checkJob(job *tickonce.Job, q *trueQueue) {
	j := t.jobs[store.JobID(job.ID)]
	if j == nil {
		return // it has ended on the way here
	}
	t.w.checked[aJobReceived]++
	if j.queue != q || job.Queue != q.row.Name || job.Schedule != j.schedule.scenario.Name || job.Boundary != timeOf(j.boundary) ||
		job.Origin != j.origin || !bytes.Equal(job.Payload, j.payload) || job.MaxAttempts != int(j.stamps.MaxAttempts) || job.Attempt > int(j.attempts) ||
		job.Attempt == int(j.attempts) && j.claimed && (job.Deadline.After(timeOf(j.deadline)) || job.LastError != j.lastError) {
		t.w.fail(rightJob, job.Schedule, fmt.Sprintf("%s reached its handler as one of %q and queue %q, boundary %s, attempt %d of %d until %s, with %d bytes, after %q",
			jobOf(j.boundary), job.Schedule, job.Queue, job.Boundary, job.Attempt, job.MaxAttempts, job.Deadline, len(job.Payload), job.LastError))
	}
}

// bury lets the jobs of the queue die that are doomed at now, at most as many
// as one claim buries, and answers how many.
func (t *truth) bury(q *trueQueue, now store.Instant) int {
	if q.doomed.next() > now {
		return 0
	}
	type doomed struct {
		at store.Instant
		id store.JobID
	}
	var due []doomed
	for q.doomed.next() <= now {
		at, id := q.doomed.pop()
		if j := t.jobs[id]; j != nil && j.doomedAt() == at {
			due = append(due, doomed{at, id})
		}
	}
	slices.SortFunc(due, func(a, b doomed) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
	})
	due = slices.Compact(due)
	for len(due) > store.MaxBuried {
		last := due[len(due)-1]
		due = due[:len(due)-1]
		q.doomed.push(last.at, 0, last.id)
	}
	for _, d := range due {
		died := deadJob{lapsed, store.ErrorExhausted}
		if t.jobs[d.id].expires <= now { // of both it is this (QU9)
			died = deadJob{expired, store.ErrorExpired}
		}
		trip := uint8(0)
		if died.cause != expired {
			trip = t.tripOf(t.jobs[d.id])
		}
		told := Event{}
		if t.jobs[d.id].claimed && t.jobs[d.id].queue.outbox == nil {
			told.Execution = store.Lost
		}
		t.die(d.id, died, trip, told)
	}
	return len(due)
}

// die notes a dead job.
func (q *trueQueue) die(id store.JobID, died deadJob) {
	q.dead[id] = died
	q.deaths[died.cause]++
}

func (t *truth) die(id store.JobID, died deadJob, tripped uint8, told Event) {
	j, cause := t.jobs[id], died.cause
	t.w.coverage.sometimes(deadLetter, true)
	t.w.coverage.sometimes(jobExpired, cause == expired)
	t.w.coverage.sometimes(lastClaimLapsed, cause == lapsed)
	told.Kind, told.Reason, told.Error = EventJobDied, deathWords[cause], died.lastError
	t.w.tellOfJob(id, j, told)
	t.w.digest.Int(tagSettle, int64(j.boundary))
	t.count(j, -1)
	j.queue.row.Dead++
	j.queue.row.Died++
	j.queue.die(id, died)
	if cause != expired {
		t.jobEnded(j, true, tripped)
	}
	t.drop(id)
}

// Settle watches [store.Store.Settle]: a stale token changes nothing, the live
// one does (invariant 5).
func (t *truth) Settle(ctx context.Context, settles []store.Settle, out []bool) (store.Instant, error) {
	now, err := t.Store.Settle(ctx, settles, out)
	if err != nil {
		return now, err
	}
	for i := range settles {
		t.w.acting.settles(out[i])
		t.settled(&settles[i], out[i], now)
	}
	return now, nil
}

func (t *truth) settled(s *store.Settle, done bool, now store.Instant) {
	t.w.checked[aSettlement]++
	j := t.jobs[s.Job]
	a := t.w.acting.attemptAt(s.Job, s.Attempt)
	t.w.owesEnd(a, j, s, done, now)
	if a != nil && a.run != nil && t.w.acting.handling == nil {
		a.isSettled(done)
	}
	if held := j != nil && j.held(s.Attempt, now); held != done {
		t.w.fail(staleToken, "", fmt.Sprintf("a settlement of attempt %d was done: %s, its claim holds: %s", s.Attempt, yesNo(done), yesNo(held)))
	}
	if !done && t.w.watched() {
		t.w.tellOfRefusal(s.Job, s.Attempt)
	}
	if !done || j == nil {
		return
	}
	t.w.digest.Int(tagSettle, j.schedule.index)
	t.w.digest.Int(tagSettle, int64(j.boundary))
	t.w.digest.Int(tagSettle, int64(s.To))
	t.checkEnding(a, j, s)
	q, told := j.queue, t.outcomeOf(a, j, s)
	t.w.reaches(j, s, &told)
	switch s.To {
	case store.Done:
		if len(j.results) > 0 {
			t.w.fail(withItsAck, j.schedule.scenario.Name, jobOf(j.boundary)+" was acked without what its handler had delivered")
		}
		t.w.coverage.sometimes(deadLetter, false)
		told.Kind = EventJobDone
		t.w.tellOfJob(s.Job, j, told)
		t.count(j, -1)
		q.row.Done++
		t.memory -= jobMemory(j.payload)
		t.jobEnded(j, false, s.Tripped)
		t.drop(s.Job)
	case store.Dead:
		t.die(s.Job, deadJob{failed, s.Error}, s.Tripped, told)
	default:
		if j.attempts >= j.stamps.MaxAttempts {
			t.w.fail(attemptsHeld, j.schedule.scenario.Name, jobOf(j.boundary)+" is tried again after its last attempt")
		}
		t.count(j, -1)
		q.claimable.end(j)
		j.claimed, j.runAt, j.lastError, j.results = false, now.Add(s.DelayMS), s.Error, nil
		told.Kind, told.Until, told.Error = EventJobRetried, timeOf(j.runAt), s.Error
		t.w.tellOfJob(s.Job, j, told)
		q.claimable.wait(j, now)
		t.count(j, +1)
		q.row.Retried++
		t.doom(s.Job, j)
		t.wake(q)
	}
}

// checkEnding checks that the job ends as its handler did, or is tried again
// within the bounds of its curve (QU6).
func (t *truth) checkEnding(a *attempt, j *trueJob, s *store.Settle) {
	if t.w.checked[anEnding]++; j.origin != 0 {
		t.w.checked[aTry]++
	}
	right, by := s.To == store.Done, t.w.acting.worksOn()
	switch {
	case t.w.acting.handling != nil || by == nil || by.queue.byHand:
	case a != nil:
		right = a.endsAs(s, j)
	default:
		right = t.w.orphaned() || by.givesBack(s, j)
	}
	if t.w.intent.ends == fails {
		right = s.Error == string(t.w.intent.reason) && j.fails(s, t.w.intent.class)
	}
	if !right {
		broken := rightEnding
		if j.origin != 0 {
			broken = rightTries
		}
		t.w.fail(broken, j.schedule.scenario.Name, fmt.Sprintf("%s, at attempt %d of %d, was settled as %s after %d ms, with the error %s",
			jobOf(j.boundary), j.attempts, j.stamps.MaxAttempts, endWords[s.To], s.DelayMS, shown(s.Error)))
	}
}

// endWords are what a settlement makes of a job.
var endWords = map[store.State]string{store.Done: "done", store.Pending: "to be tried again", store.Dead: "dead"}

// backoffMS is the longest delay after the attempt.
func backoffMS(base int64, attempt int32) int64 {
	const most = 3_600_000
	for ; attempt > 1 && base < most; attempt-- {
		base *= 2
	}
	return min(base, most)
}

// Extend watches [store.Store.Extend]: the live token alone moves the deadline,
// and to now plus the visibility, which is what handlers ask for (QU8).
func (t *truth) Extend(ctx context.Context, extends []store.Extend, out []store.Instant) (store.Instant, error) {
	now, err := t.Store.Extend(ctx, extends, out)
	if err != nil {
		return now, err
	}
	for i := range extends {
		t.w.checked[anExtension]++
		t.w.acting.extends()
		e := &extends[i]
		j, want := t.jobs[e.Job], store.None
		held := j != nil && j.held(e.Attempt, now)
		if held {
			want = now.Add(j.stamps.VisibilityMS)
		}
		if out[i] != want {
			t.w.fail(staleToken, "", fmt.Sprintf("an extension of attempt %d was answered with %s, not %s; its claim holds: %s",
				e.Attempt, text(out[i]), text(want), yesNo(held)))
		}
		if a := t.w.acting.attemptAt(e.Job, e.Attempt); a != nil && a.run != nil && t.w.acting.handling == nil {
			t.w.coverage.sometimes(heartbeatRefused, !held)
			if held && t.w.acting.reply == faultstore.Pass {
				a.renewed(j.stamps.VisibilityMS)
			}
		}
		if !held {
			t.w.owesLoss(now, e.Job, e.Attempt)
		}
		if !held && t.w.watched() {
			t.w.tellOfRefusal(e.Job, e.Attempt)
		}
		if held {
			t.w.digest.Int(tagSettle, int64(want))
			j.deadline = want
			t.doom(e.Job, j)
		}
	}
	return now, nil
}

// eachJob reads all jobs of the queue in id order.
func (t *truth) eachJob(q *trueQueue, f func(*store.Job)) {
	page := t.jobPage[:]
	filter := store.Filter{Queue: q.row.Name}
	for n := len(page); n == len(page); filter.From = page[n-1].ID + 1 {
		var err error
		if n, _, err = t.Store.Jobs(ctx, filter, page); err != nil {
			panic(err)
		}
		if n == 0 {
			return
		}
		for i := range page[:n] {
			f(&page[i])
		}
	}
}

// queueRow reads the counters of one queue.
func (t *truth) queueRow(name string) store.Queue {
	var rows [1]store.Queue
	n, _, err := t.Store.Queues(ctx, name, rows[:])
	if err != nil {
		panic(err)
	}
	if n == 0 || rows[0].Name != name {
		return store.Queue{Name: name}
	}
	rows[0].NextClaimAt, rows[0].Waiting = 0, 0
	return rows[0]
}

func (q *trueQueue) result() QueueResult {
	r := QueueResult{
		Name: q.name, Outbox: q.outbox != nil, Delivered: q.deliveries, DeliveredAgain: q.deliveredAgain, Enqueued: q.row.Enqueued, Done: q.row.Done, Dead: q.row.Dead,
		Pending: q.row.Pending, Claimed: q.row.Claimed, Cancelled: q.row.Cancelled,
		Retried: q.row.Retried, Claims: q.row.Claims, DoneForgotten: q.forgotten, Lost: q.lost,
		DeadReasons: map[string]int64{},
	}
	for cause, n := range q.deaths {
		if n > 0 {
			r.DeadReasons[deathWords[cause]] = n
		}
	}
	return r
}
