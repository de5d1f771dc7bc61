package wire

import (
	"context"
	"errors"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

func (s *Server) schedule(r *Request, a *Reply) error {
	row, err := s.engine.Schedule(background, r.Name, r.Spec, r.Queue, r.Payload, r.Schedule)
	a.Schedule = &row
	return err
}

func (s *Server) unschedule(r *Request, a *Reply) (err error) {
	a.Done, err = s.engine.Unschedule(background, r.Name)
	return err
}

func (s *Server) pause(r *Request, a *Reply) (err error) {
	a.Done, err = s.engine.Pause(background, r.Name)
	return err
}

func (s *Server) resume(r *Request, a *Reply) (err error) {
	a.Done, err = s.engine.Resume(background, r.Name, tickonce.ResumeOptions{CatchUp: r.CatchUp})
	return err
}

func (s *Server) trigger(r *Request, a *Reply) (err error) {
	a.Job, err = s.engine.Trigger(background, r.Name)
	return err
}

func (s *Server) lookup(r *Request, a *Reply) error {
	row, found, err := s.engine.Lookup(background, r.Name)
	if found {
		a.Schedule = &row
	}
	return err
}

// page is how many rows a call answers.
func page(max int) (int, error) {
	switch {
	case max == 0:
		return MaxPage, nil
	case max < 0 || max > MaxPage:
		return 0, &RequestError{"max", "is out of range, want 1 to 1000, or 0 for 1000"}
	default:
		return max, nil
	}
}

// after is the first name that sorts after one, and the first of all after "".
func after(name string) string {
	if name == "" {
		return ""
	}
	return name + "\x00"
}

func (s *Server) schedules(r *Request, a *Reply) error {
	n, err := page(r.Max)
	if err != nil {
		return err
	}
	rows := make([]store.Schedule, n)
	n, _, err = s.engine.Store().Schedules(background, after(r.After), rows)
	for i := range rows[:n] {
		row, found, err := s.engine.Lookup(background, rows[i].Name)
		if err != nil {
			return err
		}
		if found {
			a.Schedules = append(a.Schedules, row)
		}
	}
	return err
}

func (s *Server) enqueue(r *Request, a *Reply) (err error) {
	if r.Outbox == "" {
		a.Job, err = s.engine.Enqueue(background, r.Queue, r.Payload, r.Enqueue)
		return err
	}
	o, err := outboxOptions(r.Enqueue)
	if err != nil {
		return err
	}
	a.Job, err = s.engine.Outbox(r.Outbox).Enqueue(background, r.Payload, o)
	return err
}

// outboxOptions are the options of an entry of an outbox.
func outboxOptions(e tickonce.EnqueueOptions) (tickonce.OutboxOptions, error) {
	o := tickonce.OutboxOptions{MaxAttempts: e.MaxAttempts, Key: e.Key}
	if e != (tickonce.EnqueueOptions{MaxAttempts: e.MaxAttempts, Key: e.Key}) {
		return o, &RequestError{"options", "of an entry of an outbox are maxAttempts and key alone"}
	}
	return o, nil
}

func (s *Server) claim(r *Request, a *Reply) error {
	n := r.Max
	if n == 0 {
		n = 1
	}
	jobs, err := s.engine.ClaimBatch(background, r.Queue, r.Worker, n)
	for _, job := range jobs {
		s.claims.add(tokenOf(job), job, func(job *tickonce.Job) bool { return !job.Deadline.Before(s.now.at) })
		s.begun(job, 0, 0)
	}
	return err
}

func tokenOf(job *tickonce.Job) Claim { return Claim{job.ID, int32(job.Attempt)} }

// claimed is the job of a claim that this handle gave, by a call or with a run.
func (s *Server) claimed(c Claim) (*tickonce.Job, error) {
	if job := s.claims.of[c]; job != nil {
		return job, nil
	}
	if job := s.inHand[c]; job != nil {
		return job, nil
	}
	return nil, tickonce.ErrClaimLost
}

// ack acks one job by itself, since that may have deliveries.
func (s *Server) ack(r *Request, a *Reply) error {
	a.Acked = make([]bool, len(r.Claims))
	var jobs []*tickonce.Job
	var at []int
	for i, c := range r.Claims {
		if job, err := s.claimed(c); err == nil {
			jobs, at = append(jobs, job), append(at, i)
		}
	}
	var acked []bool
	var err error
	switch len(jobs) {
	case 0:
		return nil
	case 1:
		err = jobs[0].Ack(background)
		acked = []bool{err == nil}
		if errors.Is(err, tickonce.ErrClaimLost) {
			err = nil
		}
	default:
		acked, err = s.engine.AckAll(background, jobs)
	}
	if err != nil {
		return err
	}
	for i, yes := range acked {
		if a.Acked[at[i]] = yes; yes {
			delete(s.claims.of, r.Claims[at[i]])
		}
	}
	return nil
}

func (s *Server) retry(r *Request, _ *Reply) error {
	job, err := s.claimed(r.Claim)
	if err != nil {
		return err
	}
	cause := r.Error.cause()
	if after := r.Error.after(); after != nil {
		err = job.RetryAfter(background, cause, after.For)
	} else {
		err = job.Retry(background, cause)
	}
	return s.settled(r.Claim, err)
}

func (s *Server) fail(r *Request, _ *Reply) error {
	job, err := s.claimed(r.Claim)
	if err != nil {
		return err
	}
	return s.settled(r.Claim, job.Fail(background, r.Error.cause()))
}

// settled forgets a claim that is over. One that was refused may live again, if
// the clock goes back.
func (s *Server) settled(c Claim, err error) error {
	if err == nil {
		delete(s.claims.of, c)
	}
	return err
}

func (s *Server) heartbeat(r *Request, a *Reply) error {
	job, err := s.claimed(r.Claim)
	if err != nil {
		return err
	}
	err = job.Heartbeat(background, r.For)
	a.At = job.Deadline
	return err
}

func (s *Server) deliver(r *Request, _ *Reply) error {
	job, err := s.claimed(r.Claim)
	if err != nil {
		return err
	}
	return job.Deliver(r.Outbox, r.Payload)
}

func (s *Server) summarize(r *Request, _ *Reply) error {
	job, err := s.claimed(r.Claim)
	if err != nil {
		return err
	}
	job.Summarize(r.Text)
	return nil
}

func (s *Server) cancel(r *Request, a *Reply) (err error) {
	a.Done, err = s.engine.Cancel(background, r.Queue, r.Job)
	return err
}

func (s *Server) requeue(r *Request, a *Reply) (err error) {
	if r.Outbox != "" {
		a.Job, err = s.engine.Outbox(r.Outbox).Requeue(background, r.Job)
		return err
	}
	a.Job, err = s.engine.Requeue(background, r.Queue, r.Job)
	return err
}

func (s *Server) purge(r *Request, _ *Reply) error {
	if r.Outbox != "" {
		return s.engine.Outbox(r.Outbox).Purge(background, r.Jobs...)
	}
	return s.engine.Purge(background, r.Queue, r.Jobs...)
}

func (s *Server) sweep(r *Request, a *Reply) error {
	var n int
	var err error
	if r.Outbox != "" {
		n, err = s.engine.Outbox(r.Outbox).Sweep(background)
	} else {
		n, err = s.engine.Sweep(background, r.Queue)
	}
	a.Count = int64(n)
	return err
}

func (s *Server) dead(r *Request, a *Reply) error {
	n, err := page(r.Max)
	if err != nil {
		return err
	}
	of, err := s.named(r)
	if err != nil {
		return err
	}
	rows := make([]store.Job, min(int64(n), of.Dead))
	n, _, err = s.engine.Store().Jobs(background, store.Filter{Queue: of.Name, State: store.Dead, From: tickonce.JobID(r.From)}, rows)
	for i := range rows[:n] {
		a.Dead = append(a.Dead, deadJobOf(&rows[i]))
	}
	return err
}

// deadJobOf is the row as [tickonce.Engine.Dead] yields it, from the first one on.
// The payload is the store's.
func deadJobOf(row *store.Job) tickonce.DeadJob {
	return tickonce.DeadJob{
		ID: row.ID, Queue: row.Queue, Payload: row.Payload,
		Schedule: row.Schedule, Boundary: timeOf(row.FireAt), Origin: row.Origin, Attempts: int(row.Attempts),
		LastError: row.LastError, Enqueued: timeOf(row.EnqueuedAt), Died: timeOf(row.Since),
	}
}

func timeOf(at store.Instant) time.Time {
	if at == store.None {
		return time.Time{}
	}
	return time.UnixMilli(int64(at)).UTC()
}

// named is what is known of the queue, or the outbox, of a request.
func (s *Server) named(r *Request) (tickonce.QueueInfo, error) {
	if r.Outbox != "" {
		return s.engine.Outbox(r.Outbox).Info(background)
	}
	return s.engine.Queue(background, r.Queue)
}

func (s *Server) nextClaim(r *Request, a *Reply) error {
	info, err := s.named(r)
	a.At = info.NextClaimAt
	return err
}

func (s *Server) queue(r *Request, a *Reply) error {
	info, err := s.named(r)
	a.Queue = &info
	return err
}

func (s *Server) queues(r *Request, a *Reply) error {
	n, err := page(r.Max)
	if err != nil {
		return err
	}
	rows := make([]store.Queue, n)
	n, _, err = s.engine.Store().Queues(background, after(r.After), rows)
	for i := range rows[:n] {
		a.Queues = append(a.Queues, queueInfoOf(&rows[i]))
	}
	return err
}

// queueInfoOf is the row as [tickonce.Engine.Queues] yields it, from the first one
// on.
func queueInfoOf(row *store.Queue) tickonce.QueueInfo {
	return tickonce.QueueInfo{
		Name: row.Name, Pending: row.Pending, Claimed: row.Claimed, Dead: row.Dead, Enqueued: row.Enqueued,
		Claims: row.Claims, Retried: row.Retried, Done: row.Done, Died: row.Died, Cancelled: row.Cancelled,
		Requeued: row.Requeued, Purged: row.Purged, NextClaimAt: timeOf(row.NextClaimAt), Waiting: row.Waiting,
	}
}

func (s *Server) lock(r *Request, a *Reply) error {
	lock, err := s.engine.Lock(background, r.Name, r.Owner, r.For)
	if lock != nil {
		a.Term, a.At = lock.Term(), lock.ExpiresAt()
		s.locks.add(a.Term, lock, func(l *tickonce.Lock) bool { return l.ExpiresAt().After(s.now.at) })
	}
	return err
}

func (s *Server) renewLock(r *Request, a *Reply) (err error) {
	lock := s.locks.of[r.Term]
	if lock == nil {
		return nil
	}
	if a.Done, err = lock.Renew(background, r.For); a.Done {
		a.At = lock.ExpiresAt()
	}
	return err
}

func (s *Server) releaseLock(r *Request, a *Reply) (err error) {
	lock := s.locks.of[r.Term]
	if lock == nil {
		return nil
	}
	if a.Done, err = lock.Release(background); a.Done {
		delete(s.locks.of, r.Term)
	}
	return err
}

func (s *Server) history(r *Request, a *Reply) error {
	n, err := page(r.Max)
	if err != nil {
		return err
	}
	for run, err := range s.engine.History(background, r.Name, tickonce.HistoryOptions{Before: r.Before}) {
		if err != nil {
			return err
		}
		if a.Runs = append(a.Runs, run); len(a.Runs) == n {
			break
		}
	}
	return nil
}

func (s *Server) skips(r *Request, a *Reply) error {
	n, err := page(r.Max)
	if err != nil {
		return err
	}
	for skip, err := range s.engine.Skips(background, r.Name, tickonce.HistoryOptions{Before: r.Before}) {
		if err != nil {
			return err
		}
		if a.Skips = append(a.Skips, skip); len(a.Skips) == n {
			break
		}
	}
	return nil
}

func (s *Server) totals(r *Request, a *Reply) error {
	totals, err := s.engine.Totals(background, r.Name)
	t := totalsOf(&totals)
	a.Totals = &t
	return err
}

func (s *Server) why(r *Request, a *Reply) error {
	why, err := s.engine.Why(background, r.Name, r.Boundary)
	if err == nil {
		a.Why, a.WhyText = &why, why.String()
	}
	return err
}

func (s *Server) details(r *Request, a *Reply) error {
	n, err := page(r.Max)
	if err != nil {
		return err
	}
	over, cancel := context.WithCancel(background)
	cancel() // those that are there, and wait for no more
	for detail := range s.engine.Details(over) {
		if detail.Number < r.From {
			continue
		}
		if len(a.Details) == n {
			break
		}
		a.Details = append(a.Details, detail)
	}
	a.Count = s.engine.DroppedDetails()
	return nil
}

func (s *Server) recovered(_ *Request, a *Reply) error {
	found := s.recovery
	a.Recovery = &found
	return nil
}

// begun puts out a job that was handed out.
func (s *Server) begun(job *tickonce.Job, worker int32, run int64) {
	record := Begun(job)
	record.Run, record.Worker = run, worker
	s.out = record.Append(s.out)
}

// failed is an error whose text the host said.
type failed string

func (f failed) Error() string { return string(f) }

// cause is the error that the host means; nil of none.
func (f *Failure) cause() error {
	if f == nil {
		return nil
	}
	return failed(f.Message)
}

func (f *Failure) after() *RetryAfter {
	if f == nil {
		return nil
	}
	return f.RetryAfter
}

// Err is the failure as the error of a handler, with its mark; nil of none.
func (f *Failure) Err() error {
	err := f.cause()
	switch {
	case f == nil:
		return nil
	case f.Permanent:
		return tickonce.Permanent(err)
	case f.RetryAfter != nil:
		return tickonce.RetryAfter(max(f.RetryAfter.For, 0), err)
	case f.Transient:
		return tickonce.Transient(err)
	case f.Panicked:
		return tickonce.Panicked(f.Message)
	}
	return err
}
