package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
)

// JournalResult is what a recording came to. A journal knows the store's clock
// alone, which is true time here unless it goes back; and of claims, leases and
// faults no more than what became of the rows.
type JournalResult struct {
	Result // without Seed, Faults, Unmet, Excused and Coverage; Events counts the records

	Scenario Scenario           // the schedules as they were last, by name, and the outboxes; when the first record was written, and for how long they were
	CatchUps []tickonce.CatchUp // of its schedules, whose own words are the nearest ones
	Recovery memengine.Recovery
	State    []byte // the snapshot of the engine that wrote the last record, but for its rows that were invalid in the one at the beginning (D1)
}

// WatchJournal goes through what a journal has recorded (D5): it replays the
// records as an engine does that opens them, judges each by those of the
// invariants that rows can break, and tells of what happened as [Watch] does: for
// that it replays them twice. An outbox with the name of a queue is called "outbox"
// and that. The journal of d is not used, and nothing is changed. Its error is that
// of [memengine.Replay].
func WatchJournal(d memengine.Durable, tell func(*Event)) (*JournalResult, error) {
	r := newRecording(tell)
	if tell != nil { // who has to be told the names of queues from the first one on
		s, _, err := memengine.Replay(d, func(*memengine.Record) {})
		if err != nil {
			return nil, err
		}
		if err := r.readNames(s); err != nil {
			return nil, err
		}
	}
	s, recovery, err := memengine.Replay(d, r.record)
	if err != nil {
		return nil, err
	}
	if err := r.readNames(s); err != nil {
		return nil, err
	}
	r.result.Recovery = recovery
	return r.end(s)
}

// recording is a journal that is gone through.
type recording struct {
	tellOf func(*Event) // or nil
	result *JournalResult

	now, shown store.Instant // which never goes back, and the store's
	began      store.Instant // if there was a record
	term       store.Term
	number     int64 // of the record
	last       int64 // event

	skips     []store.SkipRange // of the record
	schedules map[string]*journalSchedule
	passed    map[store.ScheduleID]store.Instant // by each incarnation, the last boundary that fired
	queues    map[string]*journalQueue
	rows      []store.Queue     // of all queues, at the end
	names     map[string]bool   // of those that are no outbox's
	made      [invariants]int64 // checks
}

// journalSchedule is a schedule with what was counted of it.
type journalSchedule struct {
	ScheduleResult
	row store.Schedule
}

// journalQueue is what the records say of the jobs of a queue, by their states.
type journalQueue struct {
	jobs   [store.Done]int64
	deaths map[string]int64
}

func newRecording(tell func(*Event)) *recording {
	return &recording{
		tellOf: tell, result: new(JournalResult), schedules: map[string]*journalSchedule{},
		passed: map[store.ScheduleID]store.Instant{}, queues: map[string]*journalQueue{},
	}
}

func (r *recording) record(rec *memengine.Record) {
	first := r.result.Events == 0
	if first {
		r.began, r.now = rec.Now, rec.Now
	}
	r.result.Events++
	r.now, r.shown, r.number = max(r.now, rec.Now), rec.Now, rec.Number
	d := &r.result.Digest
	d.Int(1, rec.Number)
	d.Text(2, rec.Op)
	d.Int(3, int64(rec.Now))
	d.Int(4, int64(rec.Bytes))
	r.check(termsRise, first || rec.Term >= r.term, "", "the last term falls from %d to %d", r.term, rec.Term)

	fires := map[store.ScheduleID]int64{}
	if rec.Op == "advance" {
		for _, c := range rec.Jobs {
			if c.Before == nil {
				fires[c.After.ScheduleID]++
			}
		}
	}
	r.skips = append(r.skips[:0], rec.Skips...)
	for _, c := range rec.Schedules {
		r.schedule(rec, c, fires)
	}
	for i := range r.skips {
		r.skip(&r.skips[i])
	}
	r.count(rec)
	for _, c := range rec.Jobs {
		r.job(rec, c)
	}
	for _, c := range rec.Locks {
		r.lock(c)
	}
	r.term = rec.Term
}

// check counts a check of an invariant, and what breaks it.
func (r *recording) check(i invariant, holds bool, schedule, detail string, args ...any) {
	r.made[i]++
	if holds || len(r.result.Failures) == maxFailures {
		return
	}
	f := Failure{Invariant: i.String(), At: timeOf(r.now), Schedule: schedule, Detail: fmt.Sprintf("record %d: ", r.number) + fmt.Sprintf(detail, args...), Verdict: Safety}
	r.result.Failures = append(r.result.Failures, f)
	r.result.Verdict = Safety
	r.tell(Event{Kind: EventViolated, Schedule: schedule, Reason: f.Invariant + ": " + f.Detail})
}

func (r *recording) tell(e Event) {
	if r.tellOf == nil {
		return
	}
	r.last++
	e.ID, e.Step, e.At, e.Shown, e.Digest = r.last, r.result.Events, timeOf(r.now), timeOf(r.shown), r.result.Digest
	r.tellOf(&e)
}

// of is the schedule with the row's name.
func (r *recording) of(row *store.Schedule) *journalSchedule {
	s := r.schedules[row.Name]
	if s == nil {
		s = &journalSchedule{}
		s.Name, s.SkipReasons = row.Name, map[string]int64{}
		r.schedules[row.Name] = s
	}
	s.Spec, s.Queue, s.row = row.Spec, row.Queue, *row
	return s
}

// schedule judges a change of a schedule, in a record that has so many fires of
// each incarnation.
func (r *recording) schedule(rec *memengine.Record, c memengine.Change[store.Schedule], fires map[store.ScheduleID]int64) {
	was, is := c.Before, c.After
	if is == nil {
		r.tell(Event{Kind: EventRemoved, Schedule: was.Name})
		delete(r.passed, was.ID)
		r.of(was)
		return
	}
	s := r.of(is)
	if was == nil {
		r.check(revGuard, is.Rev == 1, is.Name, "a new row has revision %d", is.Rev)
		r.tell(Event{Kind: EventRegistered, Schedule: is.Name, Boundary: timeOf(is.Cursor)})
		return
	}
	r.check(revGuard, is.ID == was.ID && is.Rev == was.Rev+1, is.Name, "revision %d follows %d", is.Rev, was.Rev)
	switch {
	case rec.Op != "advance":
		r.edited(rec, was, is)
		return
	case is.Hold != nil && (was.Hold == nil || is.Hold.Times != was.Hold.Times):
		s.Quarantined++
		r.tell(Event{Kind: EventHeld, Schedule: is.Name, Boundary: timeOf(is.Cursor), Until: timeOf(is.DueAt)})
	}
	fired := fires[is.ID]
	r.check(capHeld, fired <= catchUpCap, is.Name, "%d boundaries fire at once", fired)
	if is.Cursor == was.Cursor {
		r.check(oneFate, fired == 0, is.Name, "%d boundaries fire, and the cursor stays", fired)
		return
	}
	r.check(movesOn, is.Cursor > is.SetAt, is.Name, "the cursor moves to %s, which is not after %s", text(is.Cursor), text(is.SetAt))
	before := trueSchedule{row: *was, interval: intervalOf(was.Spec)}
	if before.interval == 0 || is.Cursor <= was.Cursor {
		r.check(oneFate, false, is.Name, "the cursor moves from %s to %s by the spec %s", text(was.Cursor), text(is.Cursor), shown(was.Spec))
		return
	}
	first := before.first()
	due := int64(is.Cursor-first) / before.interval
	r.check(oneFate, int64(is.Cursor-first)%before.interval == 0 && due >= fired, is.Name,
		"the cursor moves from %s to %s, and %d boundaries fire", text(was.Cursor), text(is.Cursor), fired)
	r.skipped(was, is, due-fired)
}

// edited is what a change of a schedule is that is no fire.
func (r *recording) edited(rec *memengine.Record, was, is *store.Schedule) {
	e := Event{Kind: EventRegistered, Schedule: is.Name, Boundary: timeOf(is.Cursor)}
	switch {
	case is.Paused == was.Paused && is.Failures != was.Failures: // the end of a job
		return
	case slices.ContainsFunc(rec.Jobs, func(c memengine.Change[store.Job]) bool {
		return c.Before == nil && triggered(c.After) && c.After.ScheduleID == is.ID
	}):
		return // of which the job tells
	case was.Paused == store.Active && is.Paused == store.PausedByBreaker:
		e.Kind, e.Boundary, e.Count = EventBreakerOpened, time.Time{}, int64(is.Failures)
	case was.Paused == store.Active && is.Paused != store.Active:
		e.Kind, e.Boundary = EventPaused, time.Time{}
	case was.Paused != store.Active && is.Paused == store.Active:
		e.Kind = EventResumed
		if interval := intervalOf(was.Spec); interval > 0 && is.Cursor > was.Cursor && len(rec.Skips) == 0 { // of version 1
			before, f := trueSchedule{row: *was, interval: interval}, fates{}
			f.skip(store.SkipPause, before.first(), is.Cursor, interval)
			r.unnamed(was, f)
		}
	}
	r.tell(e)
}

// skipped judges what a tick names of so many boundaries that it passed over.
func (r *recording) skipped(was, is *store.Schedule, skipped int64) {
	named := int64(0)
	for i := range r.skips {
		if r.skips[i].ScheduleID == is.ID {
			named += r.skips[i].Count
		}
	}
	if named == 0 && skipped > 0 { // of version 1, where the catch-up policy alone decided
		before := trueSchedule{row: *was, interval: intervalOf(was.Spec)}
		f := before.judge(is.SetAt)
		named = f.skipped()
		r.unnamed(was, f)
	}
	r.check(namedSkips, named == skipped, is.Name, "%d boundaries are passed over, and %d named", skipped, named)
}

// unnamed adds the skips of a record that names none.
func (r *recording) unnamed(row *store.Schedule, f fates) {
	for _, skip := range f.skips {
		if skip.Count > 0 {
			r.skips = append(r.skips, skip.Range(row.Name, row.ID, r.shown))
		}
	}
}

// skip counts boundaries that did not fire. Those that a new grid leaves behind
// are none, nor are those before it, as in [Watch].
func (r *recording) skip(k *store.SkipRange) {
	s := r.schedules[k.Schedule]
	r.check(namedSkips, s != nil, k.Schedule, "boundaries are skipped of a schedule that is not written")
	if s == nil || s.row.ID != k.ScheduleID || k.Reason == store.SkipBefore {
		return
	}
	s.Skipped += k.Count
	s.SkipReasons[k.Reason.String()] += k.Count
	r.tell(Event{Kind: EventSkipped, Schedule: s.Name, Boundary: timeOf(k.First), Last: timeOf(k.Last), Count: k.Count, Reason: k.Reason.String()})
}

// fired judges a job that a tick has made of a boundary.
func (r *recording) fired(job *store.Job) {
	s := r.schedules[job.Schedule]
	if s == nil || s.row.ID != job.ScheduleID {
		r.check(firesOnce, false, job.Schedule, "job %d is of schedule %d, which did not move", job.ID, job.ScheduleID)
		return
	}
	last, again := r.passed[job.ScheduleID]
	r.check(firesOnce, !again || job.FireAt > last, s.Name, "%s fires after %s", text(job.FireAt), text(last))
	r.check(onGridOnly, onGrid(&s.row, job.FireAt) && job.FireAt < s.row.Cursor, s.Name, "%s fires, and the cursor is %s", text(job.FireAt), text(s.row.Cursor))
	r.check(notEarly, job.FireAt <= job.RunAt, s.Name, "%s fires at %s", text(job.FireAt), text(job.RunAt))
	r.check(rightJob, job.Queue == s.Queue && bytes.Equal(job.Payload, s.row.Payload), s.Name, "job %d has not the queue and the payload of its schedule", job.ID)
	r.passed[job.ScheduleID] = max(job.FireAt, last)
	late := time.Duration(r.now-job.FireAt) * time.Millisecond
	if s.Fired++; s.Fired == 1 {
		s.FirstFire = timeOf(job.FireAt)
	}
	s.LastFire, s.MaxLate = timeOf(job.FireAt), max(s.MaxLate, late)
	r.tell(Event{Kind: EventFired, Schedule: s.Name, Queue: job.Queue, Boundary: timeOf(job.FireAt), Late: late, Job: int64(job.ID)})
}

// count counts the jobs of each queue by their states, and compares with the
// queue's own counters.
func (r *recording) count(rec *memengine.Record) {
	for _, c := range rec.Queues {
		if r.queues[c.After.Name] == nil {
			q := &journalQueue{deaths: map[string]int64{}}
			if c.Before != nil {
				q.jobs[store.Pending], q.jobs[store.Claimed], q.jobs[store.Dead] = c.Before.Pending, c.Before.Claimed, c.Before.Dead
			}
			r.queues[c.After.Name] = q
		}
	}
	gone := map[string]int64{}
	for _, c := range rec.Jobs {
		if c.Before != nil {
			r.queues[c.Before.Queue].jobs[c.Before.State]--
		}
		if c.After != nil {
			r.queues[c.After.Queue].jobs[c.After.State]++
		} else {
			gone[c.Before.Queue]++
		}
	}
	for _, c := range rec.Queues {
		was, is, jobs := store.Queue{}, c.After, &r.queues[c.After.Name].jobs
		if c.Before != nil {
			was = *c.Before
		}
		ended := func(q *store.Queue) int64 { return q.Done + q.Cancelled + q.Requeued + q.Purged }
		kept := jobs[store.Pending] + jobs[store.Claimed] + jobs[store.Dead]
		r.check(oneState, jobs[store.Pending] == is.Pending && jobs[store.Claimed] == is.Claimed && jobs[store.Dead] == is.Dead, "",
			"queue %s says %d pending, %d claimed, %d dead, and has %d, %d, %d", shown(is.Name), is.Pending, is.Claimed, is.Dead,
			jobs[store.Pending], jobs[store.Claimed], jobs[store.Dead])
		r.check(conservation, is.Enqueued == kept+ended(is) && ended(is)-ended(&was) == gone[is.Name] && is.Enqueued >= was.Enqueued, "",
			"queue %s was given %d jobs, of which it has %d, and %d have ended; %d ended in this record", shown(is.Name), is.Enqueued, kept, ended(is), gone[is.Name])
	}
}

// job judges a change of a job.
func (r *recording) job(rec *memengine.Record, c memengine.Change[store.Job]) {
	was, is := c.Before, c.After
	row := cmp.Or(is, was)
	e := Event{Schedule: row.Schedule, Job: int64(row.ID), Attempt: int(row.Attempts), Origin: int64(row.Origin)}
	e.Queue, _ = r.name(row.Queue)
	if row.Schedule != "" && row.FireAt != store.None {
		e.Boundary = timeOf(row.FireAt)
	}
	execution := r.ran(rec, e)
	switch {
	case was == nil && rec.Op == "advance":
		r.fired(is)
		return
	case was == nil && triggered(is):
		e.Kind = EventTriggered
	case was == nil:
		e.Kind = EventEnqueued
	case is == nil:
		if was.State == store.Dead {
			return // buried, or begun anew
		}
		if rec.Op == "settle" {
			r.held(rec, was)
		}
		e.Kind = EventJobDone
	default:
		r.turned(rec, was, is, &e)
	}
	switch e.Kind {
	case 0:
		return
	case EventJobDone, EventJobRetried, EventJobDied:
		if e.Execution = execution; e.Origin != 0 {
			e.Delivery = deliveredAs(&e, row)
		}
	}
	r.tell(e)
}

// triggered reports whether the job was fired by hand.
func triggered(job *store.Job) bool { return job.Counts() && job.FireAt == store.None }

// deliveredAs is what became of the try of a delivery: one that is not made again
// although another try was left was permanent.
func deliveredAs(e *Event, entry *store.Job) tickonce.Delivery {
	switch {
	case e.Kind == EventJobDone:
		return tickonce.Delivered
	case e.Kind == EventJobDied && e.Reason == deathWords[failed] && entry.Attempts < entry.Stamps.MaxAttempts:
		return tickonce.DeliveryPermanent
	default:
		return tickonce.DeliveryTransient
	}
}

// ran tells how the run of the job ended, if the record ends one, and answers that.
func (r *recording) ran(rec *memengine.Record, e Event) store.Execution {
	i := slices.IndexFunc(rec.Runs, func(run store.Run) bool { return int64(run.Job) == e.Job })
	if i < 0 {
		return 0
	}
	e.Kind, e.Attempt = EventHandlerEnded, int(rec.Runs[i].Attempt)
	switch rec.Runs[i].Ended {
	case store.OK:
		e.Reason = succeeds.String()
	case store.Failed:
		e.Reason = fails.String()
	case store.Panicked:
		e.Reason = panics.String()
	case store.TimedOut:
		e.Kind, e.Reason = EventHandlerCut, "timeout"
	case store.Cancelled:
		e.Kind, e.Reason = EventHandlerCut, "stop"
	default:
		e.Kind, e.Reason = EventHandlerCut, "claim-lost"
	}
	r.tell(e)
	return rec.Runs[i].Ended
}

// held says that the claim that ends, or is extended, is live.
func (r *recording) held(rec *memengine.Record, was *store.Job) {
	r.check(staleToken, was.Holds(was.Attempts, rec.Now), was.Schedule, "a claim of job %d ends at %s that did not hold any more", was.ID, text(rec.Now))
}

// turned judges a job that stays, and says what happened to it.
func (r *recording) turned(rec *memengine.Record, was, is *store.Job, e *Event) {
	r.check(attemptsHeld, was.Attempts <= is.Attempts && is.Attempts <= max(is.Stamps.MaxAttempts, was.Attempts), is.Schedule,
		"job %d comes from attempt %d to %d of %d", is.ID, was.Attempts, is.Attempts, is.Stamps.MaxAttempts)
	r.check(oneState, was.State != store.Dead, is.Schedule, "job %d is dead, and turned into something else", is.ID)
	switch {
	case rec.Op == "claim" && is.State == store.Claimed:
		r.check(oneClaim, was.State == store.Pending || rec.Now > was.Deadline, is.Schedule, "job %d is handed out at %s, and is claimed until %s", is.ID, text(rec.Now), text(was.Deadline))
		r.check(notEarly, was.RunAt <= rec.Now, is.Schedule, "job %d is handed out at %s, before %s", is.ID, text(rec.Now), text(was.RunAt))
		e.Kind, e.Worker, e.Until = EventClaimed, is.Worker, timeOf(is.Deadline)
	case is.State == store.Dead:
		e.Kind, e.Reason, e.Error = EventJobDied, deathWords[failed], is.LastError
		switch {
		case rec.Op != "claim":
			r.held(rec, was)
		case is.LastError == store.ErrorExpired:
			e.Reason = deathWords[expired]
		default:
			e.Reason = deathWords[lapsed]
		}
		r.queues[is.Queue].deaths[e.Reason]++
	case is.State == store.Pending:
		r.held(rec, was)
		e.Kind, e.Until, e.Error = EventJobRetried, timeOf(is.RunAt), is.LastError
	default: // extended
		r.held(rec, was)
	}
}

// lock judges a lease that is not the scheduler's.
func (r *recording) lock(c memengine.Change[store.Lease]) {
	was, is := c.Before, c.After
	switch {
	case is == nil:
	case was == nil || was.Term != is.Term:
		r.check(termsRise, is.Term > r.term, "", "the lock %s is granted with term %d after %d", shown(is.Lock), is.Term, r.term)
		r.check(oneLease, was == nil || was.Owner == is.Owner || !was.Live(r.shown), "", "the lock %s is granted to %s while %s holds it", shown(is.Lock), shown(is.Owner), shown(cmp.Or(was, is).Owner))
		r.term = max(r.term, is.Term)
	default:
		r.check(oneLease, was.Owner == is.Owner && was.Live(r.shown), "", "the lock %s goes on although it had lapsed, or with another owner", shown(is.Lock))
	}
}

// readNames reads the queues of the store that the recording leads to.
func (r *recording) readNames(s *memengine.Store) error {
	r.rows, r.names = nil, map[string]bool{}
	var page [64]store.Queue
	for from, n := "", len(page); n == len(page); {
		var err error
		if n, _, err = s.Queues(ctx, from, page[:]); err != nil {
			return err
		}
		for _, q := range page[:n] {
			from = q.Name + "\x00"
			r.rows = append(r.rows, q)
			if _, outbox := tickonce.OutboxName(q.Name); !outbox {
				r.names[q.Name] = true
			}
		}
	}
	return nil
}

// name is what a queue is called in events and figures: an outbox by its own name or,
// where that is a queue's as well, by one that tells them apart.
func (r *recording) name(queue string) (name string, outbox bool) {
	name, outbox = tickonce.OutboxName(queue)
	if outbox && r.names[name] {
		name = "outbox " + name
	}
	return name, outbox
}

// end is what the recording came to, and the store that it led to.
func (r *recording) end(s *memengine.Store) (*JournalResult, error) {
	result := r.result
	t := truth{Store: s}
	t.eachSchedule(func(row *store.Schedule) { r.of(row) })
	for _, name := range slices.Sorted(maps.Keys(r.schedules)) {
		q := r.schedules[name]
		q.Boundaries = q.Fired + q.Skipped
		result.Schedules = append(result.Schedules, q.ScheduleResult)
		result.Scenario.Schedules = append(result.Scenario.Schedules, Schedule{
			Name: name, Spec: q.Spec, Queue: q.Queue, Anchor: timeOf(q.row.Anchor), CatchUp: catchUpOf(q.row.CatchUp), Priority: q.row.Priority,
			Policies: policiesOf(&q.row),
		})
		c := q.row.CatchUp
		result.CatchUps = append(result.CatchUps, tickonce.CatchUp{Window: time.Duration(c.WindowMS) * time.Millisecond, Count: int(c.Max), Newest: c.Newest})
	}
	for _, q := range r.rows {
		dead := map[string]int64{}
		if told := r.queues[q.Name]; told != nil {
			dead = told.deaths
		}
		name, outbox := r.name(q.Name)
		delivered := int64(0)
		if outbox {
			delivered = q.Done
			result.Scenario.Outboxes = append(result.Scenario.Outboxes, Outbox{Name: name})
		}
		result.Queues = append(result.Queues, QueueResult{
			Name: name, Outbox: outbox, Delivered: delivered, Enqueued: q.Enqueued, Done: q.Done, Dead: q.Died, Pending: q.Pending, Claimed: q.Claimed, Cancelled: q.Cancelled,
			DeadReasons: dead, Claims: q.Claims, Retried: q.Retried,
		})
	}
	result.Scenario.Start = timeOf(r.began)
	result.Scenario.For = time.Duration(r.now-r.began) * time.Millisecond
	result.Simulated = result.Scenario.For
	result.Checks = make([]Check, invariants)
	for i, rule := range rules {
		result.Checks[i] = Check{rule.name, rule.about, r.made[i]}
	}
	var err error
	result.State, err = s.Snapshot()
	return result, err
}

// policiesOf are the policies of a row.
func policiesOf(row *store.Schedule) Policies {
	p := Policies{RunOnce: row.RunOnce, Breaker: int(row.Breaker)}
	p.Overlap = Overlap(slices.Index(overlaps[:], row.Overlap))
	if rare := row.Rare; rare != nil {
		p.Timeout = time.Duration(rare.TimeoutMS) * time.Millisecond
		p.Hours = Hours{Start: time.Duration(rare.Hours.Start) * time.Minute, End: time.Duration(rare.Hours.End) * time.Minute, Zone: rare.Hours.Zone}
	}
	return p
}

// catchUpOf is the nearest of the policies of a scenario.
func catchUpOf(c store.CatchUp) CatchUp {
	switch {
	case c.Max == 1 && c.Newest && c.WindowMS == 0:
		return CatchUpLatest
	case c.Max == 1 && c.Newest:
		return CatchUpNone
	case c.WindowMS > 0:
		return CatchUpGrace
	default:
		return CatchUpAll
	}
}
